"""Several writers at once, and writers that are killed: one holder a workload, and no half-written state."""

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine as Database
from tests.store.samples import NOW, make

from torchyard.domain.errors import Conflict
from torchyard.store import attempts, events, workloads
from torchyard.store.database import open_database, read, write
from torchyard.store.workloads import Lease


def test_two_threads_lose_no_write(tmp_path: Path) -> None:
    database = open_database(tmp_path / "a.db")
    with write(database) as c:
        workloads.insert(c, make())
    together = threading.Barrier(2)

    def count(times: int) -> None:
        together.wait(10)
        for _ in range(times):
            with write(database) as c:
                workload = workloads.fetch(c, "id-ddp")
                lease = workloads.lease(c, "id-ddp", "server", NOW, 60)
                assert workload is not None and lease is not None
                assert workloads.save(c, replace(workload, user_faults=workload.user_faults + 1), lease, NOW)

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(count, 40) for _ in range(2)]:
            done.result(60)
    with read(database) as c:
        kept = workloads.fetch(c, "id-ddp")
    database.dispose()
    assert kept is not None and kept.user_faults == 80


def test_an_expired_lease_goes_to_one_of_two(tmp_path: Path) -> None:
    first, second = open_database(tmp_path / "a.db"), open_database(tmp_path / "a.db")
    with write(first) as c:
        workloads.insert(c, make())
    together = threading.Barrier(2)
    for turn in range(10):
        later = NOW + timedelta(seconds=100 * turn)

        def take(database: Database, holder: str, later: datetime = later) -> Lease | None:
            together.wait(10)
            with write(database) as c:
                return workloads.lease(c, "id-ddp", holder, later, 60)

        with ThreadPoolExecutor(2) as threads:
            asked = [threads.submit(take, d, f"{n}-{turn}") for n, d in enumerate((first, second))]
            leases = [answer.result(60) for answer in asked]
        assert [lease is None for lease in leases].count(True) == 1
        assert next(lease for lease in leases if lease).token == turn + 1
    first.dispose()
    second.dispose()


def test_a_name_goes_to_one_of_two(tmp_path: Path) -> None:
    database = open_database(tmp_path / "a.db")
    together = threading.Barrier(2)

    def submit(number: int) -> str:
        together.wait(10)
        try:
            with write(database) as c:
                workloads.insert(c, make(id=f"id-{number}"))
        except Conflict:
            return "taken"
        return "mine"

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(submit, range(2))) == ["mine", "taken"]
    database.dispose()


SERVER = """
import sys
from dataclasses import replace
from pathlib import Path
from torchyard.domain.event import Event
from torchyard.domain.workload import Attempt
from torchyard.store import attempts, events, workloads
from torchyard.store.database import open_database, write
from tests.store.samples import NOW
database = open_database(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    with write(database) as c:
        lease = workloads.lease(c, "id-ddp", "server", NOW, 60)
        attempt = Attempt(number=number, reason="again", created_at=NOW)
        workload = replace(workloads.fetch(c, "id-ddp"), attempts=number, attempt=attempt)
        assert workloads.save(c, workload, lease, NOW)
        attempts.save(c, "id-ddp", attempt)
        events.append(c, "id-ddp", [Event(reason=f"E{n}", message=str(number), at=NOW) for n in range(2)])
    print(number, flush=True)
"""


def test_a_killed_server_leaves_workload_attempts_and_events_in_step(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    database = open_database(path)
    with write(database) as c:
        workloads.insert(c, make())
    database.dispose()
    root = Path(__file__).parents[2]
    argv = [sys.executable, "-c", SERVER, str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=root) as server:
        assert server.stdout is not None
        said = 0
        while said < 15:
            said = int(server.stdout.readline())
        server.send_signal(signal.SIGKILL)
        said = max([said, *(int(line) for line in server.stdout if line.endswith("\n"))])
    database = open_database(path)
    with read(database) as c:
        kept = workloads.fetch(c, "id-ddp")
        made = [attempt.number for attempt in attempts.listing(c, "id-ddp")]
        seen = [event.message for _, event in events.listing(c, "id-ddp")]
    with write(database) as c:
        workloads.release_others(c, "next")
        assert workloads.lease(c, "id-ddp", "next", NOW, 60) is not None
    database.dispose()
    assert kept is not None and kept.attempts >= said
    assert made == list(range(1, kept.attempts + 1))
    assert seen == [str(number) for number in made for _ in range(2)]
