"""The database file: made, migrated, killed over, full, damaged; the folder it may lie in, and who may have it."""

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import alembic.command
import alembic.config
import pytest
from sqlalchemy import create_engine
from tests.store.samples import NOW

from torchyard import store
from torchyard.domain.errors import Conflict, Unavailable
from torchyard.store import departments, projects, users
from torchyard.store.database import open_database, read, write
from torchyard.store.lock import check_disk, file_system, lead
from torchyard.store.sealing import Sealer
from torchyard.store.tables import metadata


def test_the_migrations_make_exactly_the_tables(tmp_path: Path) -> None:
    database = open_database(tmp_path / "a.db")
    with sqlite3.connect(tmp_path / "a.db") as plain:
        rows = plain.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        made = {name for (name,) in rows} - {"alembic_version"}
        assert made == set(metadata.tables)
        for table in metadata.tables.values():
            columns = {row[1]: bool(row[3]) for row in plain.execute(f"PRAGMA table_info({table.name})")}
            assert set(columns) == {column.name for column in table.columns}
    plain.close()
    database.dispose()
    open_database(tmp_path / "a.db").dispose()


def make_old(path: Path, version: str) -> None:
    """A database as an earlier version made it, with two projects."""
    config = alembic.config.Config()
    config.set_main_option("script_location", str(Path(store.__file__).parent / "migrations"))
    database = create_engine(f"sqlite:///{path}")
    with database.begin() as connection:
        config.attributes["connection"] = connection
        alembic.command.upgrade(config, version)
        for number, name in ((1, "default"), (7, "vision")):
            row = f"({number}, '{name}', '2026-01-0{number}T00:00:00.000000Z')"
            connection.exec_driver_sql(f"INSERT INTO projects (id, name, created_at) VALUES {row}")
    database.dispose()


@pytest.mark.parametrize("version", ["0001", "0002"])
def test_a_database_of_every_earlier_schema_is_brought_along(tmp_path: Path, version: str) -> None:
    path = tmp_path / "a.db"
    make_old(path, version)
    database = open_database(path)
    with write(database) as c:
        (department,) = departments.listing(c)
        assert (department.id, department.name) == ("1", "default")
        projects.ensure_default(c, NOW)
        users.ensure_owner(c, "ann", NOW)
        found = projects.listing(c)
        assert [(p.id, p.name, p.namespace, p.department_id) for p in found] == [
            ("1", "default", "default", "1"),
            ("7", "vision", "vision", "1"),
        ]
        assert all(p.quota.most is None for p in found)
        projects.remove(c, "7")
        assert projects.insert(c, replace(found[1], name="text", namespace="text")) == "8"
        with pytest.raises(Conflict, match="already"):
            projects.insert(c, replace(found[0], name="other"))
    database.dispose()


WRITER = """
import sys
from pathlib import Path
from datetime import UTC, datetime
from sqlalchemy import insert
from torchyard.store.database import open_database, write
from torchyard.store.tables import audit
database = open_database(Path(sys.argv[1]))
number = 0
while True:
    with write(database) as c:
        for half in (1, 2):
            c.execute(insert(audit).values(at="", actor="a", action=str(number), object=str(half)))
    print(number, flush=True)
    number += 1
"""


def test_a_writer_may_be_killed_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = -1
        while said < 20:
            said = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        said = max([said, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    database = open_database(path)
    with read(database) as c:
        rows = c.exec_driver_sql("SELECT action, count(*) FROM audit GROUP BY action").all()
    database.dispose()
    assert {count for _, count in rows} == {2}, "a transaction is there as a whole or not at all"
    assert {int(action) for action, _ in rows} >= set(range(said + 1)), "what was said to be written is there"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(Unavailable, match=r"a\.db cannot be used"):
        open_database(path)


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    open_database(tmp_path / "a.db").dispose()
    with sqlite3.connect(tmp_path / "a.db") as plain:
        plain.execute("UPDATE alembic_version SET version_num = '9999'")
    plain.close()
    with pytest.raises(Unavailable, match="newer torchyard"):
        open_database(tmp_path / "a.db")


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_is_said_and_outlived(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], check=True)
    try:
        database = open_database(tmp_path / "a.db")
        filler = tmp_path / "filler"
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(b"x" * 65536)
        with pytest.raises(Unavailable, match="full"), write(database) as c:
            for _ in range(200):
                c.exec_driver_sql("INSERT INTO audit (at, actor, action, object) VALUES ('', '', '', ?)", ("x" * 9999,))
        filler.unlink()
        with write(database) as c:
            c.exec_driver_sql("INSERT INTO audit (at, actor, action, object) VALUES ('', '', '', '')")
        with read(database) as c:
            assert c.exec_driver_sql("SELECT count(*) FROM audit").scalar() == 1
        database.dispose()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_one_server_a_folder(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text('{"pid": 4711, "url": "http://127.0.0.1:1"}')
    first = lead(tmp_path)
    with pytest.raises(Conflict, match=r"pid 4711, http://127\.0\.0\.1:1"):
        lead(tmp_path)
    first.release()
    second = lead(tmp_path)
    assert second.epoch == first.epoch + 1
    second.release()


def test_the_lock_goes_with_a_killed_server(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from torchyard.store.lock import lead; kept = lead(Path(sys.argv[1]))"
    argv = [sys.executable, "-c", code + "; print('mine', flush=True); sys.stdin.read()", str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None and server.stdout.readline() == b"mine\n"
        with pytest.raises(Conflict):
            lead(tmp_path)
        server.kill()
    lead(tmp_path).release()


MOUNTS = """\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 21 0:40 / /home rw,relatime shared:1 - nfs4 server:/home rw
31 30 0:41 / /home/local rw - ext4 /dev/vdb rw
32 21 0:42 / /mnt/with\\040space rw - fuse.sshfs host: rw
33 21 0:43 / /run rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", "ext4"),
        ("/home/ann/.local", "nfs4"),
        ("/home/local/data", "ext4"),
        ("/mnt/with space/x", "fuse.sshfs"),
        ("/run/x", "tmpfs"),
        ("/homes", "ext4"),
    ],
)
def test_the_file_system_of_a_folder(path: str, kind: str) -> None:
    assert file_system(Path(path), MOUNTS) == kind


KINDS = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "fuse.sshfs",
    "fuse.s3fs",
    "fuse",
    "ceph",
    "lustre",
    "glusterfs",
    "beegfs",
    "9p",
    "afs",
]


@pytest.mark.parametrize("kind", KINDS)
def test_network_file_systems_are_known(kind: str) -> None:
    with pytest.raises(Unavailable, match=rf"network file system \({kind}\)"):
        check_disk(Path("/data/x"), f"21 1 8:0 / / rw - ext4 /dev/vda rw\n22 21 0:9 / /data rw - {kind} far rw\n")


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "f2fs"])
def test_local_file_systems_are_taken(kind: str) -> None:
    check_disk(Path("/data/x"), f"21 1 8:0 / / rw - nfs far rw\n22 21 0:9 / /data rw - {kind} here rw\n")


def test_the_last_mount_on_a_point_counts_and_odd_lines_do_not() -> None:
    below = "22 21 0:9 / /d rw - nfs far rw"
    above = "23 22 0:9 / /d rw shared:1 master:2 - xfs b rw"
    text = f"21 1 8:0 / / rw - ext4 a rw\n\nodd\n{below}\n{above}\n"
    assert file_system(Path("/d/x"), text) == "xfs"


def test_a_network_file_system_is_refused() -> None:
    with pytest.raises(Unavailable, match="nfs4") as refused:
        check_disk(Path("/home/ann"), MOUNTS)
    assert "TORCHYARD_DATA" in (refused.value.details or "")
    check_disk(Path("/var"), MOUNTS)


def test_sealed_is_sealed(tmp_path: Path) -> None:
    key = tmp_path / "seal.key"
    blob = Sealer(key).seal(b"hf_secret", "workload-1")
    assert b"hf_secret" not in blob
    assert key.stat().st_mode & 0o777 == 0o600
    assert Sealer(key).open(blob, "workload-1") == b"hf_secret"
    with pytest.raises(Unavailable, match="cannot be opened"):
        Sealer(key).open(blob, "workload-2")
    key.unlink()
    with pytest.raises(Unavailable, match="cannot be opened"):
        Sealer(key).open(blob, "workload-1")


def test_the_default_project_is_made_once(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    database = open_database(tmp_path / "a.db")
    for _ in range(2):
        with write(database) as c:
            projects.ensure_default(c, datetime.now(UTC))
    with read(database) as c:
        assert [(p.id, p.name) for p in projects.listing(c)] == [("1", "default")]
    database.dispose()
