"""Runs migrations on the connection that store.database gives."""

from alembic import context

from torchyard.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=False,
    transactional_ddl=True,
)
context.run_migrations()
