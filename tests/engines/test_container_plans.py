"""What a container is given: shared memory, an image's own command and user, and sentences where it cannot be."""

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.engines.images import buildah, make_python
from tests.engines.places import LocalPlace, one, over, until
from tests.engines.test_launch import archive
from torchyard.domain.launch import Mount
from torchyard.domain.spec import Isolation
from torchyard.engines.local import isolation

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif("TORCHYARD_TEST_CONTAINER" not in os.environ, reason="TORCHYARD_TEST_CONTAINER is not set"),
]
CONTAINER: dict[str, Any] = {"isolation": Isolation.CONTAINER}
ECHO = "python3 -c 'import sys; print(*sys.argv[1:])'"
ENTRY = json.dumps([*shlex.split(ECHO), "entry"])
SHM = ("python3", "-c", "import os; fs = os.statvfs('/dev/shm'); print(fs.f_frsize * fs.f_blocks)")


async def test_shared_memory(here: LocalPlace) -> None:
    machine = os.statvfs("/dev/shm")
    for size, there in ((64 * 2**20, 64 * 2**20), (None, machine.f_frsize * machine.f_blocks)):
        made = here.run(*SHM, image=make_python(), shm=size, **CONTAINER)
        assert await here.output(made) == [str(there)]


def image(name: str, script: str | None = None, **config: str) -> str:
    """The small image with something changed: its configuration, or a script in the place of its python3."""
    container = buildah("from", "--pull-never", make_python())
    if script is not None:
        python = Path(buildah("mount", container)) / "usr/local/bin/python3"
        python.unlink()
        python.write_text(script)
        python.chmod(0o755)
        buildah("umount", container)
    for option, value in config.items():
        buildah("config", f"--{option}", value, container)
    buildah("commit", "--quiet", "--rm", container, f"localhost/torchyard-test-{name}:1")
    return f"localhost/torchyard-test-{name}:1"


async def refusal(here: LocalPlace, **more: Any) -> str:
    """Why a container cannot start."""
    engine = here.engine()
    handle = await here.launch(engine, here.run(*more.pop("argv", ("true",)), **more, **CONTAINER))
    seen = one(await over(engine, handle))
    assert seen.reason == "start"
    return seen.message or ""


@pytest.mark.parametrize(
    ("config", "argv", "said"),
    [
        ({"cmd": f"{ECHO} of the image"}, (), ["of the image"]),
        ({"cmd": "of the image", "entrypoint": ENTRY}, (), ["entry of the image"]),
        ({"cmd": "of the image", "entrypoint": ENTRY}, ("x y", "$Z"), ["entry x y $Z"]),
        ({"cmd": "false"}, ("sh", "-c", "echo args alone"), ["args alone"]),
    ],
)
async def test_an_image_that_knows_what_to_run(
    here: LocalPlace, config: dict[str, str], argv: tuple[str, ...], said: list[str]
) -> None:
    made = here.run(*argv, image=image("knows", **config), by_image=True, **CONTAINER)
    assert await here.output(made) == said


async def test_what_the_image_runs_does_not_see_how_we_know(here: LocalPlace) -> None:
    prints = image("prints", cmd="python3 -c 'import os; print(*os.environ)'")
    lines = await here.output(here.run(image=prints, by_image=True, **CONTAINER))
    assert "FROM_IMAGE" in lines[0] and "IMAGE_COMMAND" not in lines[0]


async def test_an_image_that_knows_nothing_to_run(here: LocalPlace) -> None:
    assert "names no command: say what to run" in await refusal(here, argv=(), image=make_python(), by_image=True)


@pytest.mark.parametrize("by_image", [False, True])
async def test_an_image_that_must_not_be_pulled(here: LocalPlace, by_image: bool) -> None:
    said = await refusal(here, image="localhost/no-such-image:1", pull="Never", by_image=by_image)
    assert "no-such-image" in said and "refused" not in said


async def test_an_image_that_is_always_pulled(here: LocalPlace) -> None:
    """No registry has it: to pull it fails, though it is here."""
    for by_image in (False, True):
        assert "torchyard-test-python" in await refusal(here, image=make_python(), pull="Always", by_image=by_image)


async def test_an_image_with_a_user_of_its_own(here: LocalPlace) -> None:
    """It writes into its claim, its code's folder and its ranks' logs, and runs commands beside itself."""
    engine = here.engine()
    await engine.make_claim("default", "ckpt")
    script = "echo $$ > /ckpt/pid; echo x > file; mkdir $PET_LOG_DIR/logs; id -u; until test -e /ckpt/end; do :; done"
    made = here.run(
        "sh",
        "-c",
        script.replace("id -u", "python3 -c 'import os; print(os.getuid())'"),
        image=image("user", user="1234:1234"),
        mounts=(Mount(claim="ckpt", path="/ckpt"),),
        code=archive(here, main="x"),
        **CONTAINER,
    )
    handle = await here.launch(engine, made)
    await until(lambda: engine.log_size(handle, "worker-0"))
    beside = await engine.exec(handle, "worker-0", ("sh", "-c", "echo > /ckpt/end; exit 3"), tty=False)
    assert await beside.wait() == 3
    await beside.close()
    assert one(await over(engine, handle)).code == 0
    assert [line.text async for line in engine.logs(handle, "worker-0", 0, follow=False)] == ["1234"]
    assert stat.S_IMODE(Path(handle.ref).stat().st_mode) == 0o700


async def test_only_our_own_folders_are_labelled(here: LocalPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "SELINUX", here.folder)
    mine = here.folder / "mine"
    mine.mkdir(mode=0o755)
    engine = here.engine()
    await engine.make_claim("default", "ckpt")
    mounts = (Mount(claim="ckpt", path="/ckpt", read_only=True), Mount(claim=str(mine), path="/mine"))
    made = here.run("sh", "-c", "echo well", image=make_python(), mounts=mounts, **CONTAINER)
    assert await here.output(made) == ["well"]
    attempt = here.settings.data / "projects" / "default" / "workloads" / made.workload_id / "attempts" / "1"
    words = json.loads((attempt / "worker-0" / "replica.json").read_text())["keeper_argv"]
    volumes = {word.split(":")[1]: word.split(":")[2:] for flag, word in pairwise(words) if flag == "--volume"}
    assert volumes.pop("/mine") == []
    assert volumes.pop("/ckpt") == ["ro,z"]
    assert all("z" in options[0] for options in volumes.values())
    assert stat.S_IMODE(mine.stat().st_mode) == 0o755


async def test_an_image_with_an_old_python(here: LocalPlace) -> None:
    old = 'exec /usr/local/bin/python -I -S -c "import sys; sys.version_info = (3, 8, 10); $4"'
    said = await refusal(here, image=image("old", f"#!/bin/sh\n{old}\n"))
    assert "localhost/torchyard-test-old:1 has Python 3.8" in said and "3.9 or newer" in said


async def test_an_image_without_python(here: LocalPlace) -> None:
    container = buildah("from", "scratch")
    buildah("commit", "--quiet", "--rm", container, "localhost/torchyard-test-empty:1")
    assert "torchyard needs python3 in the image" in await refusal(here, image="localhost/torchyard-test-empty:1")


ROOTLESS = """
set -e
printf 'nobody:200000:65536\\n' > subids
mount --bind subids /etc/subuid
mount --bind subids /etc/subgid
mkdir home run place
chown nobody home run place
chmod 700 run
export HOME=$PWD/home XDG_RUNTIME_DIR=$PWD/run
as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
# It may read everything, as this interpreter may lie in a folder of root's.
reads="--inh-caps +dac_read_search --ambient-caps +dac_read_search"
$as_nobody podman load --quiet --input image.tar >&2
$as_nobody $reads -- "$@"
$as_nobody podman unshare rm -rf home/.local
kill $(cat run/libpod/tmp/pause.pid)
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder for everybody with a short name: podman's sockets in it have long ones."""
    with tempfile.TemporaryDirectory(prefix="ty") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("newuidmap") is None, reason="needs root, and newuidmap of Debian's uidmap"
)
async def test_without_root_the_images_user_is_the_user_who_runs_it(short: Path) -> None:
    """What it writes belongs to that user, and so do the logs that only their owner may read."""
    wanted = [image("numbered", user="1234:1234"), image("plain")]
    subprocess.run(["podman", "save", "--multi-image-archive", "-qo", short / "image.tar", *wanted], check=True)
    (short / "image.tar").chmod(0o644)
    script = (
        "mkdir -m 700 $PET_LOG_DIR/logs; echo x > /ckpt/$0; "
        "python3 -c 'import os; print(os.getuid(), os.stat(\"/ckpt\").st_uid)'"
    )
    program = (
        "import asyncio, os; from pathlib import Path\n"
        "from tests.engines.places import LocalPlace; from torchyard.domain.launch import Mount\n"
        "from torchyard.domain.spec import Isolation\n"
        "async def main():\n"
        f"    place = LocalPlace(Path({str(short)!r}) / 'place')\n"
        "    await place.engine().make_claim('default', 'ckpt')\n"
        f"    for image in {wanted!r}:\n"
        f"        made = place.run('sh', '-c', {script!r}, image.split('-')[-1], image=image, shm=2**20,\n"
        "            pull='Never', isolation=Isolation.CONTAINER, mounts=(Mount(claim='ckpt', path='/ckpt'),))\n"
        "        print(await place.output(made))\n"
        "    claim = place.settings.data / 'projects/default/claims/ckpt'\n"
        "    print(*(os.stat(path).st_uid for path in claim.iterdir()))\n"
        "    print(*place.settings.data.glob('**/ranks/*'))\n"
        "asyncio.run(main())"
    )
    words = ["unshare", "--mount", "--", "bash", "-c", ROOTLESS, "bash", sys.executable, "-c", program]
    root = str(Path(__file__).parent.parent.parent)
    env = {**os.environ, "PYTHONPATH": f"{root}/src:{root}"}
    done = await anyio.run_process(words, cwd=short, env=env, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines() == ["['1234 1234']", "['0 0']", "65534 65534", ""]
