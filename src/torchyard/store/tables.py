"""The tables. Documents hold whole values; the columns beside them are for finding and sorting."""

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "uq": "uq_%(table_name)s_%(column_0_N_name)s"}
)

MOMENT = String(32)
"""Moments are ISO 8601 in UTC with microseconds, so that text order is time order on every database."""

departments = Table(
    "departments",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(63), nullable=False, unique=True),
    Column("created_at", MOMENT, nullable=False),
    Column("description", Text, nullable=False),
    Column("deserved", Integer, nullable=True),
    Column("device_limit", Integer, nullable=True),
    sqlite_autoincrement=True,
)

projects = Table(
    "projects",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(63), nullable=False, unique=True),
    Column("created_at", MOMENT, nullable=False),
    Column("department_id", Integer, ForeignKey("departments.id"), nullable=False),
    Column("description", Text, nullable=False),
    Column("namespace", String(63), nullable=False, unique=True),
    Column("deserved", Integer, nullable=True),
    Column("device_limit", Integer, nullable=True),
    sqlite_autoincrement=True,
)

clusters = Table(
    "clusters",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("name", String(63), nullable=False, unique=True),
    Column("engine", String(63), nullable=False),
    Column("created_at", MOMENT, nullable=False),
)

workloads = Table(
    "workloads",
    metadata,
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
    Column("lease_token", Integer, nullable=False, default=0),
    Column("lease_until", MOMENT, nullable=True),
    UniqueConstraint("project", "live_name"),
)
Index(None, workloads.c.deleted_at, workloads.c.created_at)
Index(None, workloads.c.created_at, workloads.c.id)
Index(None, workloads.c.settled)
Index(None, workloads.c.phase)

attempts = Table(
    "attempts",
    metadata,
    Column("workload_id", String(36), ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("document", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("workload_id", String(36), ForeignKey("workloads.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("at", MOMENT, nullable=False),
    Column("type", String(16), nullable=False),
    Column("reason", String(63), nullable=False),
    Column("message", Text, nullable=False),
    Column("attempt", Integer, nullable=True),
    Column("replica", String(63), nullable=True),
)

claims = Table(
    "claims",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("project", String(63), nullable=False),
    Column("name", String(63), nullable=False),
    Column("claim_name", String(63), nullable=False),
    Column("document", Text, nullable=False),
    UniqueConstraint("project", "name"),
    UniqueConstraint("project", "claim_name"),
)

sealed = Table(
    "sealed",
    metadata,
    Column("workload_id", String(36), ForeignKey("workloads.id", ondelete="CASCADE"), primary_key=True),
    Column("blob", LargeBinary, nullable=False),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", String(255), primary_key=True),
    Column("actor", String(255), primary_key=True),
    Column("workload_id", String(36), nullable=False),
    Column("body_hash", String(64), nullable=False),
    Column("at", MOMENT, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", MOMENT, nullable=False),
    Column("actor", String(255), nullable=False),
    Column("action", String(63), nullable=False),
    Column("object", String(255), nullable=False),
)

users = Table(
    "users",
    metadata,
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

access_keys = Table(
    "access_keys",
    metadata,
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

access_rules = Table(
    "access_rules",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("user_id", String(36), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("role_id", Integer, nullable=False),
    Column("scope_type", String(16), nullable=False),
    Column("scope_id", String(63), nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("created_by", String(255), nullable=False),
    UniqueConstraint("user_id", "role_id", "scope_type", "scope_id"),
)
