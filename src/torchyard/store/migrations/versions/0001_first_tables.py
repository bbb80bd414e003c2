"""The first tables."""

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, String, Text

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = String(32)


def upgrade() -> None:
    """Make everything."""
    op.create_table(
        "projects",
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column("name", String(63), nullable=False, unique=True),
        Column("created_at", MOMENT, nullable=False),
    )
    op.create_table(
        "clusters",
        Column("id", String(36), primary_key=True),
        Column("name", String(63), nullable=False, unique=True),
        Column("engine", String(63), nullable=False),
        Column("created_at", MOMENT, nullable=False),
    )
    op.create_table(
        "workloads",
        Column("id", String(36), primary_key=True),
        Column("name", String(63), nullable=False),
        Column("live_name", String(63), nullable=True),
        Column("project", String(63), nullable=False),
        Column("kind", String(32), nullable=False),
        Column("cluster", String(63), nullable=False),
        Column("framework", String(32), nullable=True),
        Column("phase", String(32), nullable=False),
        Column("phase_at", MOMENT, nullable=False),
        Column("desired", String(32), nullable=False),
        Column("settled", Integer, nullable=False),
        Column("created_at", MOMENT, nullable=False),
        Column("created_by", String(255), nullable=False),
        Column("completed_at", MOMENT, nullable=True),
        Column("deleted_at", MOMENT, nullable=True),
        Column("code", String(71), nullable=True),
        Column("document", Text, nullable=False),
        Column("progress", Text, nullable=True),
        Column("lease_holder", String(255), nullable=True),
        Column("lease_token", Integer, nullable=False),
        Column("lease_until", MOMENT, nullable=True),
    )
    op.create_index("uq_workloads_project_live_name", "workloads", ["project", "live_name"], unique=True)
    op.create_index("ix_workloads_deleted_at_created_at", "workloads", ["deleted_at", "created_at"])
    op.create_index("ix_workloads_created_at_id", "workloads", ["created_at", "id"])
    op.create_index("ix_workloads_settled", "workloads", ["settled"])
    op.create_index("ix_workloads_phase", "workloads", ["phase"])
    op.create_table(
        "attempts",
        Column("workload_id", String(36), ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True),
        Column("number", Integer, primary_key=True),
        Column("document", Text, nullable=False),
    )
    op.create_table(
        "events",
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column("workload_id", String(36), ForeignKey("workloads.id", ondelete="CASCADE"), nullable=False),
        Column("at", MOMENT, nullable=False),
        Column("type", String(16), nullable=False),
        Column("reason", String(63), nullable=False),
        Column("message", Text, nullable=False),
        Column("attempt", Integer, nullable=True),
        Column("replica", String(63), nullable=True),
    )
    op.create_index("ix_events_workload_id", "events", ["workload_id"])
    op.create_table(
        "claims",
        Column("id", String(36), primary_key=True),
        Column("project", String(63), nullable=False),
        Column("name", String(63), nullable=False),
        Column("claim_name", String(63), nullable=False),
        Column("document", Text, nullable=False),
    )
    op.create_index("uq_claims_project_name", "claims", ["project", "name"], unique=True)
    op.create_index("uq_claims_project_claim_name", "claims", ["project", "claim_name"], unique=True)
    op.create_table(
        "sealed",
        Column("workload_id", String(36), ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True),
        Column("blob", LargeBinary, nullable=False),
    )
    op.create_table(
        "idempotency",
        Column("key", String(255), primary_key=True),
        Column("actor", String(255), primary_key=True),
        Column("workload_id", String(36), nullable=False),
        Column("body_hash", String(64), nullable=False),
        Column("at", MOMENT, nullable=False),
    )
    op.create_table(
        "audit",
        Column("id", Integer, primary_key=True, autoincrement=True),
        Column("at", MOMENT, nullable=False),
        Column("actor", String(255), nullable=False),
        Column("action", String(63), nullable=False),
        Column("object", String(255), nullable=False),
    )
