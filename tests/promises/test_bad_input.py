"""Bad input of every kind: one clear error that says what to do, exit code 2 (125 from run), nothing created."""

import json

import pytest

from tests.promises.place import Place
from torchyard.client import claims

NO_OVERRIDE = "--bounding-set=-dac_override,-dac_read_search"
GOOD = {"kind": "training", "name": "good", "spec": {"command": "true"}}


def there(place: Place) -> tuple[set[str], set[str]]:
    """Workloads and claims, by id."""
    found = claims.listing(place.api, "1")
    return {row["id"] for row in place.rows()}, {claim["meta"]["id"] for claim in found}


def spec(**changes: object) -> str:
    return json.dumps({**GOOD, **changes})


SPECS = {
    "unknown field": (spec(spec={"command": "true", "numWorker": 1}), "did you mean numWorkers?"),
    "unknown field at the top": (spec(nmae="x"), "did you mean name?"),
    "wrong type": (spec(spec={"command": "true", "numWorkers": "two"}), "spec.numWorkers"),
    "empty command": (spec(spec={"command": ""}), "spec.command"),
    "no command": (spec(spec={}), "command"),
    "bad name": (spec(name="Not_Good"), "name"),
    "long name": (spec(name="x" * 10_000), "name"),
    "no size": (spec(spec={"command": "true", "compute": {"cpuMemoryRequest": "ten"}}), "10T"),
    "no duration": (spec(torchyard={"maxTime": "soon"}), "15m"),
    "more devices than there are": (spec(spec={"command": "true", "compute": {"gpuDevicesRequest": 99}}), "99 devices"),
    "missing claim": (
        spec(spec={"command": "true", "storage": {"pvc": [{"claimName": "nope", "path": "/x", "existingPvc": True}]}}),
        "torchyard pvc create nope",
    ),
    "trailing comma": ('{"kind": "training",}', "line 1"),
    "no mapping": ("[1, 2]", "kind"),
    "unknown project": (spec(project="nope"), "nope"),
    "unknown cluster": (spec(cluster="moon"), "moon"),
    "ten megabytes": (spec(spec={"command": "x" * 10_000_000}), "large"),
    "zero byte": (spec(spec={"command": "a\u0000b"}), "command"),
}


@pytest.mark.parametrize("case", SPECS)
def test_a_bad_spec(place: Place, case: str) -> None:
    text, says = SPECS[case]
    (place.work / "bad.json").write_text(text)
    before = there(place)
    ran = place.torchyard("run", "-d", "bad.json", code=125)
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr and len(ran.stderr) < 2000
    assert ran.stdout == ""
    assert there(place) == before, "nothing was created"


COMMANDS = {
    "missing script": (("run", "trian.py"), 125, "there is no script trian.py"),
    "missing spec": (("run", "nope.yaml"), 125, "nope.yaml"),
    "rendezvous flag": (("run", "--master-port", "1", "train.py"), 125, "torchyard sets this"),
    "unknown flag": (("run", "--bogus", "train.py"), 125, "--bogus"),
    "no such workload": (("logs", "nope"), 2, "there is no workload 'nope'"),
    "claim of no size": (("pvc", "create", "c", "--size", "ten", "--path", "/c"), 2, "10T"),
    "claim of a bad name": (("pvc", "create", "C!", "--size", "1G", "--path", "/c"), 2, "name"),
    "no such command": (("lsit",), 2, "list"),
    "folder that is not there": (
        ("training", "pytorch", "submit", "x", "--code", "nowhere", "--command", "--", "true"),
        2,
        "nowhere",
    ),
    "prune of nothing": (("server", "prune", "--older-than", "soon"), 2, "15m"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_a_bad_command_line(place: Place, case: str) -> None:
    words, code, says = COMMANDS[case]
    (place.work / "train.py").write_text("")
    before = there(place)
    ran = place.torchyard(*words, code=code)
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
    assert there(place) == before, "nothing was created"


@pytest.mark.parametrize("size", ["10TB", "10Ti", "10T"])
def test_good_sizes(place: Place, size: str) -> None:
    name = size.lower()
    place.torchyard("pvc", "create", f"c-{name}", "--size", size, "--access-mode", "RWX", "--path", "/c")
    place.torchyard("pvc", "delete", f"c-{name}", "-y")


def test_an_unreadable_folder(place: Place) -> None:
    (place.work / "locked").mkdir(mode=0)
    # Even for root a folder can be unreadable: without the right to overlook permissions.
    ran = place.torchyard(
        "training",
        "submit",
        "x",
        "--code",
        "locked",
        "--command",
        "--",
        "true",
        code=2,
        before=("setpriv", NO_OVERRIDE),
    )
    assert "locked" in ran.stderr
