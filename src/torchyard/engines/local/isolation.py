"""The command line that puts a keeper into its surroundings: plain, a bubblewrap sandbox, or a container."""

import os
import resource
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torchyard.domain.launch import ReplicaPlan
from torchyard.engines.engine import CannotStart

MOST_NEIGHBOURS = 500
SELINUX = Path("/sys/fs/selinux")
INSIDE = "/torchyard"
"""Where the agent and its folders are seen in a container."""
WITHOUT_PYTHON = (
    "torchyard needs python3 in the image, 3.9 or newer: install it there, take another image, or use --isolation "
    "process"
)
_OLD_PYTHON = "sys.version_info < (3, 9) and sys.exit({sentence!r} % sys.version_info[:2]); "
_PULL = {"Always": "always", "IfNotPresent": "missing", "Never": "never"}
_LOOK_AT_IMAGE = "import sys; sys.path.insert(0, {folder!r}); from agent.image import main; main(*{what!r})"
_KEEPER = "import sys; sys.path.insert(0, {folder!r}); from agent.keeper import main; main({run!r})"

HOSTS = Path("/etc/hosts")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around one replica: folders of the machine and where they are seen."""

    attempt: Path
    replica: Path
    claims: Mapping[str, Path]
    own: frozenset[Path]
    """The claims' folders that are torchyard's; the others are the user's."""
    code_at: str | None
    """Where the replica's copy of the code is seen; None: there is no copy."""
    name: str
    """Unique on this machine."""


def keeper_in_process(python: str, around: Surroundings) -> list[str]:
    """The keeper as any process."""
    code = _KEEPER.format(folder=str(around.attempt), run=str(around.replica / "run"))
    return [python, "-I", "-S", "-c", code]


def hosts_of(replica: str) -> str:
    """What /etc/hosts says in a sandbox: the machine's, and the replica's own name, which torchrun looks up."""
    try:
        machines = HOSTS.read_text(errors="replace").rstrip("\n")
    except OSError:
        machines = "127.0.0.1 localhost"
    return f"{machines}\n127.0.0.1 {replica}\n"


def keeper_in_sandbox(python: str, plan: ReplicaPlan, around: Surroundings) -> list[str]:
    """The keeper as PID 1 of a bubblewrap sandbox: the machine's folders, and claims at the very paths asked for."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise CannotStart("bubblewrap is not installed", "apt install bubblewrap, or use --isolation process")
    argv = [bwrap, "--die-with-parent", "--unshare-pid", "--unshare-uts", "--hostname", plan.name, "--as-pid-1"]
    argv += ["--tmpfs", "/"]
    argv += list(_top_level())
    argv += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys"]
    argv += list(_gpu_nodes())
    if plan.shm is None:
        argv += ["--bind", "/dev/shm", "/dev/shm"]
    else:
        argv += ["--size", str(plan.shm), "--tmpfs", "/dev/shm"]
    places = _places(plan, around)
    argv += list(_room_for(places))
    for path, words in sorted(places.items()):
        argv += [*words, str(path)]
    if HOSTS.exists():
        argv += ["--ro-bind", str(around.replica / "hosts"), str(HOSTS.resolve())]
    return [*argv, "--", *keeper_in_process(python, around)]


def _places(plan: ReplicaPlan, around: Surroundings) -> dict[Path, list[str]]:
    """Mount points, links of the machine followed, and what is mounted on each."""
    places: dict[Path, list[str]] = {}
    for scratch in plan.scratch:
        if scratch.path != "/dev/shm":
            size = ["--size", str(scratch.size)] if scratch.size else []
            places[Path(scratch.path).resolve()] = [*size, "--tmpfs"]
    for mount in plan.mounts:
        option = "--ro-bind" if mount.read_only else "--bind"
        places[Path(mount.path).resolve()] = [option, str(around.claims[mount.claim])]
    if around.code_at is not None:
        places[Path(around.code_at).resolve()] = ["--bind", str(around.replica / "work")]
    return places


def keeper_in_container(
    python: str, plan: ReplicaPlan, around: Surroundings, gpus: bool
) -> tuple[list[str], list[str]]:
    """The keeper as PID 1 of a container, and the command that removes what may be left of it."""
    runtime = container_runtime()
    if runtime is None:
        raise CannotStart("neither podman nor docker is installed", "apt install podman, or use --isolation process")
    if plan.image is None:
        raise CannotStart("container isolation needs an image", "name one with --image")
    argv = [
        runtime,
        "run",
        "--rm",
        "--interactive",
        "--name",
        around.name,
        "--hostname",
        plan.name,
        "--network",
        "host",
    ]
    if Path(runtime).name == "podman":
        argv += list(_limits())
    if gpus:
        argv += ["--device", "nvidia.com/gpu=all"] if Path(runtime).name == "podman" else ["--gpus", "all"]
    argv += ["--ipc", "host"] if plan.shm is None else ["--shm-size", str(plan.shm)]
    argv += _volume(around.attempt / "agent", f"{INSIDE}/agent", read_only=True)
    for name in ("run", "ranks"):
        argv += _volume(around.replica / name, f"{INSIDE}/{name}")
    for mount in plan.mounts:
        folder = around.claims[mount.claim]
        argv += _volume(folder, mount.path, read_only=mount.read_only, own=folder in around.own)
    if around.code_at is not None:
        argv += _volume(around.replica / "work", around.code_at)
    for scratch in plan.scratch:
        if scratch.path != "/dev/shm":
            argv += ["--tmpfs", scratch.path + (f":size={scratch.size}" if scratch.size else "")]
    pull = _PULL[plan.pull or "IfNotPresent"]
    rootless = Path(runtime).name == "podman" and os.getuid() != 0
    argv += ["--pull", "never" if plan.by_image or rootless else pull]
    sentence = f"the image {plan.image} has Python %d.%d: {WITHOUT_PYTHON}"
    code = f"import sys; {_OLD_PYTHON.format(sentence=sentence)}" + _KEEPER.format(folder=INSIDE, run=f"{INSIDE}/run")
    argv += ["--entrypoint", "python3", plan.image, "-I", "-S", "-c", code]
    if plan.by_image or rootless:
        what = (pull, plan.image, list(plan.argv) if plan.by_image else None, rootless)
        argv = [python, "-I", "-S", "-c", _LOOK_AT_IMAGE.format(folder=str(around.attempt), what=what), *argv]
    return argv, [runtime, "rm", "--force", around.name]


def _volume(folder: Path, path: str, read_only: bool = False, own: bool = True) -> list[str]:
    # SELinux lets a container see what carries a container's label; a user's own folder is never given one.
    options = ["ro"] * read_only + ["z"] * (own and SELINUX.exists())
    return ["--volume", ":".join([str(folder), path, *([",".join(options)] if options else [])])]


def container_runtime() -> str | None:
    """podman, else docker."""
    return shutil.which("podman") or shutil.which("docker")


def sandbox_works() -> str | None:
    """None, or the sentence that says why not. Runs one."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return "bubblewrap is not installed: apt install bubblewrap, or go on with --isolation process"
    test = [bwrap, "--unshare-pid", "--unshare-uts", "--tmpfs", "/", *_top_level(), "--proc", "/proc", "--dev", "/dev"]
    done = subprocess.run(
        [*test, "--", shutil.which("true") or "/bin/true"], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"bubblewrap cannot make a sandbox here ({said}): go on with --isolation process"


def container_works() -> str | None:
    """None, or the sentence that says why not."""
    runtime = container_runtime()
    if runtime is None:
        return "neither podman nor docker is installed: apt install podman, or go on with --isolation process"
    try:
        done = subprocess.run([runtime, "info"], capture_output=True, text=True, check=False, timeout=20)
    except subprocess.TimeoutExpired:
        return (
            f"{Path(runtime).name} does not answer: see `{Path(runtime).name} info`, or go on with --isolation process"
        )
    if done.returncode == 0:
        return None
    said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"{Path(runtime).name} cannot be used ({said}): go on with --isolation process"


def _top_level() -> Iterator[str]:
    """Every folder of the machine's root, seen where it is. Links stay links."""
    with os.scandir("/") as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.name in ("proc", "dev", "sys"):
                continue
            if entry.is_symlink():
                yield from ("--symlink", str(Path(entry.path).readlink()), entry.path)
            elif entry.is_dir():
                yield from ("--bind", entry.path, entry.path)


def _gpu_nodes() -> Iterator[str]:
    for path in sorted(Path("/dev").glob("nvidia*")):
        yield from ("--dev-bind", str(path), str(path))


def _room_for(places: Collection[Path]) -> Iterator[str]:
    """What makes room for mount points that the machine does not have, without making them on the machine.

    The nearest folder that is there is covered with a tmpfs into which all that it holds is bound again.
    """
    missing = [path for path in places if not _is_there(path) and not any(p in places for p in path.parents)]
    covered = {next(p for p in path.parents if _is_there(p)): path for path in missing}
    for folder, path in sorted(covered.items()):
        if folder == Path("/"):
            continue
        yield from ("--tmpfs", str(folder))
        for entry in _neighbours(folder, path):
            if entry.is_symlink():
                yield from ("--symlink", str(entry.readlink()), str(entry))
            else:
                yield from ("--bind", str(entry), str(entry))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False


def _neighbours(folder: Path, path: Path) -> list[Path]:
    """What must stay to be seen in a folder where `path` is to be made."""
    try:
        neighbours = sorted(folder.iterdir())
    except PermissionError:
        if not os.access(folder, os.X_OK):
            return []
        reason = f"{folder} cannot be listed"
    else:
        if len(neighbours) <= MOST_NEIGHBOURS:
            return neighbours
        reason = f"{folder} holds {len(neighbours)} entries"
    raise CannotStart(
        f"{path} cannot be made in a sandbox: {reason}",
        "mount at a path whose first folder the machine does not have, such as /checkpoints",
    )


def _limits() -> Iterator[str]:
    # podman asks for its own high limits, which fails where the machine's are lower.
    for name, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY and hard < 1048576:
            yield from ("--ulimit", f"{name}={min(hard, 4096)}:{min(hard, 4096)}")
