"""Opens the database, brings its tables up to date, and hands out short transactions."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError, OperationalError

from torchyard.domain.errors import Unavailable

BUSY_MS = 10_000
POOL = 32
"""Connections; as many as the server has threads that may want one at once."""
_MIGRATIONS = Path(__file__).parent / "migrations"


def open_database(path: Path) -> Engine:
    """The SQLite database in this file, made or migrated if need be.

    Raises Unavailable when the file cannot be used: damaged, from a newer version, or the disk is full.
    """
    engine = create_engine(
        f"sqlite:///{path}", connect_args={"timeout": BUSY_MS / 1000}, pool_size=POOL, max_overflow=0
    )
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    try:
        _migrate(engine, path)
    except DatabaseError as problem:
        engine.dispose()
        raise Unavailable(
            f"the database {path} cannot be used: {problem.orig}",
            "if the file is damaged, put a backup in its place; free space if the disk is full",
        ) from problem
    except Unavailable:
        engine.dispose()
        raise
    return engine


def _on_connect(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver's own transaction handling would begin late and deferred; we say BEGIN ourselves.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", f"busy_timeout={BUSY_MS}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _on_begin(connection: Connection) -> None:
    mode = "IMMEDIATE" if connection.get_execution_options().get("torchyard_write") else "DEFERRED"
    connection.exec_driver_sql(f"BEGIN {mode}")


def _migrate(engine: Engine, path: Path) -> None:
    newest = max(file.stem.split("_")[0] for file in (_MIGRATIONS / "versions").glob("[0-9]*.py"))
    with engine.connect().execution_options(torchyard_write=True) as connection:
        found = _version(connection)
        if found == newest:
            return
        if found is not None and found > newest:
            raise Unavailable(
                f"the database {path} was written by a newer torchyard", "install that version or a newer one"
            )
        # Imported here: a database that is up to date, as nearly always, needs none of it.
        import alembic.command
        import alembic.config

        config = alembic.config.Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        config.attributes["connection"] = connection
        alembic.command.upgrade(config, "head")
        connection.commit()


def _version(connection: Connection) -> str | None:
    """The last migration that the database has seen; None for an empty one."""
    table = "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
    if not connection.exec_driver_sql(table).scalar():
        return None
    version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if version is None else str(version)


@contextmanager
def read(engine: Engine) -> Iterator[Connection]:
    """A connection that sees one moment of the database."""
    with _sentences(), engine.connect() as connection:
        yield connection


@contextmanager
def write(engine: Engine) -> Iterator[Connection]:
    """A transaction that is the only writer from its first line on; committed at the end, else rolled back."""
    with _sentences(), engine.connect().execution_options(torchyard_write=True) as connection, connection.begin():
        yield connection


@contextmanager
def _sentences() -> Iterator[None]:
    """Turns what the database says into what a person can act on."""
    try:
        yield
    except OperationalError as problem:
        text = str(problem.orig)
        if "full" in text:
            raise Unavailable(
                "the disk under the data folder is full",
                "free space, `torchyard server prune` forgets old workloads; training goes on meanwhile",
            ) from problem
        if "locked" in text:
            raise Unavailable("the database is busy", "try again") from problem
        raise Unavailable(f"the database cannot be used now: {text}", "see server.log in the data folder") from problem
    except DatabaseError as problem:
        if isinstance(problem.orig, sqlite3.IntegrityError):
            raise
        raise Unavailable(
            f"the database is damaged: {problem.orig}", "put a backup of torchyard.db in its place"
        ) from problem
