"""Starts a container whose image knows what to run: has the image brought, reads its command, becomes the run. The
keeper inside finds the command in its environment."""

from __future__ import annotations

import json
import os
import sys

from .shapes import table, words

COMMAND = "TORCHYARD_IMAGE_COMMAND"


def main(pull: str, image: str, args: list[str]) -> None:
    """Become the command line in our arguments, a `podman run` or `docker run`. `args` replace the image's own."""
    run = sys.argv[1:]
    config = None if pull == "always" else _config(run[0], image)
    if config is None and pull != "never":
        _pull(run[0], image)
        config = _config(run[0], image)
    if config is None:
        sys.exit(f"the image {image} is not on this machine")
    command = words(config.get("Entrypoint")) + (args or words(config.get("Cmd")))
    if not command:
        sys.exit(f"the image {image} names no command: say what to run")
    os.execv(run[0], [*run[:2], "--env", f"{COMMAND}={json.dumps(command)}", *run[2:]])


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
