"""Devices are the machine's: servers of one or of two users, and strangers on a slot, never run over each other."""

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises.place import Place
from torchyard.engines.local.devices import Devices

TWO = {"compute": {"gpuDevicesRequest": 2}}
ONE = {"compute": {"gpuDevicesRequest": 1}}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Place]]:
    """Two servers with data folders of their own, on a machine of two slots."""
    folder = tmp_path_factory.mktemp("pair")
    shared = {"TORCHYARD_LOCK_DIR": str(folder / "locks"), "TORCHYARD_CPU_SLOTS": "2"}
    one, two = Place(folder / "one", **shared), Place(folder / "two", **shared)
    one.launch()
    two.launch()
    one.wait_up()
    two.wait_up()
    yield one, two
    one.end()
    two.end()


def locks(place: Place) -> Path:
    return Path(place.env["TORCHYARD_LOCK_DIR"])


def test_two_servers_share_the_devices(pair: tuple[Place, Place]) -> None:
    one, two = pair
    one.submit("mine", "sleep 600", spec=TWO)
    one.reach("mine", "Running")
    two.submit("waits", "true", spec=ONE)
    told = "needs 1 device, 0 of 2 are free (2 not ours: mine of another server of yours); next in line"
    assert two.reach("waits", "Pending")["phaseMessage"] == told
    assert told in two.explain("waits")["sentence"]
    one.stop("mine")
    two.reach("waits", "Completed")


def test_another_user_is_named(pair: tuple[Place, Place]) -> None:
    one, _ = pair
    locks(one).mkdir(exist_ok=True)
    with (locks(one) / "cpu-0").open("w") as slot:
        fcntl.flock(slot, fcntl.LOCK_EX)
        json.dump({"key": "x", "uid": 12345, "since": 0, "workload": "theirs"}, slot)
        slot.flush()
        one.submit("after-them", "true", spec=TWO)
        assert "1 not ours: a workload of user 12345" in one.reach("after-them", "Pending")["phaseMessage"]
    one.reach("after-them", "Completed")


@pytest.mark.parametrize("said", ["", "[]", "nonsense", '{"key": "x", "uid": "root", "since": 1e300}'])
def test_a_lock_of_a_program_that_says_nothing_sensible(tmp_path: Path, said: str) -> None:
    with (tmp_path / "cpu-1").open("w") as slot:
        fcntl.flock(slot, fcntl.LOCK_EX)
        slot.write(said)
        slot.flush()
        free, held = Devices(tmp_path, 2).look()
    assert free.free
    assert not held.ours and held.held_by == "a program that does not say whose it is"


def test_a_second_server_on_the_same_folder_is_refused(pair: tuple[Place, Place]) -> None:
    one, _ = pair
    assert one.server is not None
    refused = one.torchyard("server", "run", code=2)
    assert f"pid {one.server.pid}" in refused.stderr
