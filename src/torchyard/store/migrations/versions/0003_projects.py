"""Departments; projects belong to one, and both may have a quota."""

from datetime import UTC, datetime

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, String, Text, column, table

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

MOMENT = String(32)


def upgrade() -> None:
    """Projects that there are come into the default department; ids of deleted ones are never given again."""
    op.create_table(
        "departments",
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column("name", String(63), nullable=False, unique=True),
        Column("created_at", MOMENT, nullable=False),
        Column("description", Text, nullable=False),
        Column("deserved", Integer, nullable=True),
        Column("device_limit", Integer, nullable=True),
        sqlite_autoincrement=True,
    )
    first = {
        "name": "default",
        "created_at": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "description": "",
    }
    named = table("departments", *(column(name) for name in first))
    op.execute(named.insert().values(first))
    with op.batch_alter_table("projects", table_kwargs={"sqlite_autoincrement": True}) as projects:
        projects.add_column(
            Column(
                "department_id",
                Integer,
                ForeignKey("departments.id", name="fk_projects_department_id_departments"),
                nullable=False,
                server_default="1",
            )
        )
        projects.add_column(Column("description", Text, nullable=False, server_default=""))
        projects.add_column(Column("namespace", String(63), nullable=True))
        projects.add_column(Column("deserved", Integer, nullable=True))
        projects.add_column(Column("device_limit", Integer, nullable=True))
    op.execute("UPDATE projects SET namespace = name")
    with op.batch_alter_table("projects", table_kwargs={"sqlite_autoincrement": True}) as projects:
        projects.alter_column("namespace", existing_type=String(63), nullable=False)
        projects.create_unique_constraint("uq_projects_namespace", ["namespace"])
