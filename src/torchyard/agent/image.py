"""Starts a container for which the image itself must be looked at: has it brought, reads what it says, becomes the
run. The keeper inside finds the image's command in its environment."""

from __future__ import annotations

import json
import os
import sys

from .shapes import table, words

COMMAND = "TORCHYARD_IMAGE_COMMAND"


_WHO = "import os; print('keep-id:uid=%d,gid=%d' % (os.getuid(), os.getgid()))"


def main(pull: str, image: str, args: list[str] | None, as_us: bool) -> None:
    """Become the command line in our arguments, a `podman run` or `docker run`. With `args`, which replace the image's
    own, the image's entry point runs. `as_us`: to the machine, the image's user is the user that we are."""
    run = sys.argv[1:]
    config = None if pull == "always" else _config(run[0], image)
    if config is None and pull != "never":
        _pull(run[0], image)
        config = _config(run[0], image)
    if config is None:
        sys.exit(f"the image {image} is not on this machine")
    options = [] if args is None else _command(image, config, args)
    if as_us and str(config.get("User") or "root").split(":")[0] not in ("root", "0"):
        options += ["--userns", _user(run[0], image)]
    os.execv(run[0], [*run[:2], *options, *run[2:]])


def _command(image: str, config: dict[str, object], args: list[str]) -> list[str]:
    command = words(config.get("Entrypoint")) + (args or words(config.get("Cmd")))
    if not command:
        sys.exit(f"the image {image} names no command: say what to run")
    return ["--env", f"{COMMAND}={json.dumps(command)}"]


def _user(runtime: str, image: str) -> str:
    """Only inside is it known which number a name stands for."""
    import subprocess

    argv = [runtime, "run", "--rm", "--network", "none", "--entrypoint", "python3", image, "-I", "-S", "-c", _WHO]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout.decode().strip()


def _config(runtime: str, image: str) -> dict[str, object] | None:
    import subprocess

    argv = [runtime, "image", "inspect", "--format", "{{json .Config}}", image]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    return table(json.loads(done.stdout)) if done.returncode == 0 else None


def _pull(runtime: str, image: str) -> None:
    import subprocess

    done = subprocess.run([runtime, "pull", image], stdin=subprocess.DEVNULL, stdout=2, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
