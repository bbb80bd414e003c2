"""Users, their keys, and who may do what where."""

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, String, Text, UniqueConstraint

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MOMENT = String(32)


def upgrade() -> None:
    """Make them; nobody is lost, for there was one user and the store did not know it."""
    op.create_table(
        "users",
        Column("id", String(36), primary_key=True),
        Column("username", String(255), nullable=False, unique=True),
        Column("owner", Integer, nullable=False),
        Column("enabled", Integer, nullable=False),
        Column("password", Text, nullable=True),
        Column("temporary", Integer, nullable=False),
        Column("generation", Integer, nullable=False),
        Column("created_at", MOMENT, nullable=False),
        Column("created_by", String(255), nullable=False),
        Column("updated_at", MOMENT, nullable=False),
        Column("last_login", MOMENT, nullable=True),
    )
    op.create_table(
        "access_keys",
        Column("id", String(36), primary_key=True),
        Column("client_id", String(63), nullable=False, unique=True),
        Column("name", String(63), nullable=False),
        Column("kind", String(32), nullable=False),
        Column("user_id", String(36), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
        Column("secret", String(64), nullable=False),
        Column("enabled", Integer, nullable=False),
        Column("generation", Integer, nullable=False),
        Column("created_at", MOMENT, nullable=False),
        Column("created_by", String(255), nullable=False),
        Column("updated_at", MOMENT, nullable=False),
        Column("last_used", MOMENT, nullable=True),
        UniqueConstraint("user_id", "kind", "name"),
    )
    op.create_table(
        "access_rules",
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column("user_id", String(36), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
        Column("role_id", Integer, nullable=False),
        Column("scope_type", String(16), nullable=False),
        Column("scope_id", String(63), nullable=False),
        Column("created_at", MOMENT, nullable=False),
        Column("created_by", String(255), nullable=False),
        UniqueConstraint("user_id", "role_id", "scope_type", "scope_id"),
    )
