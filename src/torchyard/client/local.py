"""The server of this machine: found by the files it leaves in the data folder, started when there is none.

Knows processes and files; nothing of what the server does.
"""

import contextlib
import fcntl
import json
import os
import re
import sys
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchyard.client import logins
from torchyard.client.config import Config, load_config
from torchyard.client.http import Address, Server
from torchyard.domain.errors import Invalid, TorchyardError, Unauthorized, Unavailable
from torchyard.settings import BadSetting, Settings, started_at

START_SECONDS = 30.0
_LOOK_EVERY = 0.02


@dataclass(frozen=True, slots=True)
class Running:
    """A server that lives: what its server.json says."""

    url: str
    pid: int


def connect(env: Mapping[str, str] = os.environ, config: Config | None = None, *, start: bool = True) -> Server:
    """A connection to the configured server, or to this machine's, which is started when it is not there."""
    known = config or load_config(env)
    if known.url:
        url = known.url
        return Server(lambda: _configured_address(env, url))
    data = settings_of(env).data
    if running(data) is None and start:
        start_server(env)
    return Server(lambda: _local_address(env, data))


def _configured_address(env: Mapping[str, str], url: str) -> Address:
    """A server given by its address: TORCHYARD_TOKEN lets us in, else a login there, else the owner's token file."""
    token = env.get("TORCHYARD_TOKEN", "").strip()
    if token:
        return Address(url, token, "TORCHYARD_TOKEN")
    found = logins.address_of(url, env)
    if found is not None:
        return found
    data = settings_of(env).data
    if not _of_this_machine(url, data) or not (data / "token").exists():
        # Never shown to other machines: it lets its reader do everything here.
        raise Unauthorized(
            f"you are not logged in at {url}",
            f"`torchyard login access-key --client-id ID --url {url}`, or `torchyard login user -u NAME --url {url}`",
        )
    return Address(url, read_token(data / "token"), f"token file {data / 'token'}")


def _of_this_machine(url: str, data: Path) -> bool:
    try:
        host = urllib.parse.urlsplit(url).hostname or ""
    except ValueError:
        return False
    if host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host):
        return True
    found = running(data)
    return found is not None and found.url == url.rstrip("/")


def settings_of(env: Mapping[str, str]) -> Settings:
    """The settings of this environment. Raises Invalid with a sentence."""
    try:
        return Settings.from_environment(env)
    except BadSetting as error:
        raise Invalid(str(error)) from None


def read_token(path: Path) -> str:
    """The token that lets the OS user in."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        raise Unauthorized(f"there is no token at {path}", "set TORCHYARD_TOKEN, or start the server here") from None
    except OSError as error:
        raise Unauthorized(f"{path} cannot be read: {error.strerror}", "the server belongs to another user") from None


def running(data: Path) -> Running | None:
    """The server of a data folder, if it lives.

    The process must be the very one that wrote server.json, and belong to its owner: otherwise the port of a server
    that died could be taken by somebody who wants our token.
    """
    try:
        owner = (data / "server.json").stat().st_uid
        told: Any = json.loads((data / "server.json").read_bytes())
        found = Running(str(told["url"]), int(told["pid"]))
        same = started_at(found.pid) == told["started"]
        lives = same and Path(f"/proc/{found.pid}").stat().st_uid == owner and not _zombie(found.pid)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if lives else None


def crashed(data: Path) -> bool:
    """A server.json without its server: it was killed, not stopped."""
    return (data / "server.json").exists() and running(data) is None


def start_server(env: Mapping[str, str]) -> Running:
    """Start this machine's server and wait until it answers. Two callers at once start one."""
    data = settings_of(env).data
    _make_private(data)
    with _only_one(data / "start.lock"):
        return running(data) or _spawn(env, data)


def _local_address(env: Mapping[str, str], data: Path) -> Address:
    found = running(data) or (start_server(env) if crashed(data) else None)
    if found is None:
        raise Unavailable("the torchyard server is not running", "start it with `torchyard server start`")
    return Address(found.url, read_token(data / "token"), f"token file {data / 'token'}")


def _spawn(env: Mapping[str, str], data: Path) -> Running:
    import subprocess

    log = data / "server.log"
    with log.open("ab") as out:
        begin = out.tell()
        child = subprocess.Popen(
            [sys.executable, "-m", "torchyard.cli.main", "server", "run"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=data,
            env=dict(env),
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while child.poll() is None and time.monotonic() < deadline:
        found = running(data)
        if found is not None and found.pid == child.pid and _answers(found, data):
            # It outlives us on purpose: no warning that nobody waited for it.
            child.returncode = 0
            return found
        time.sleep(_LOOK_EVERY)
    # Another one may have been there all along, and is found again by now.
    found = running(data)
    if found is not None and _answers(found, data):
        return found
    raise Unavailable(_why_not(child.poll(), log, begin), f"its log is {log}")


def _answers(found: Running, data: Path) -> bool:
    try:
        server = Server(lambda: Address(found.url, read_token(data / "token")))
        answer = server.get("/health")
        server.close()
    except TorchyardError:
        return False
    return isinstance(answer, dict)


def _why_not(code: int | None, log: Path, begin: int) -> str:
    with log.open("rb") as lines:
        lines.seek(begin)
        said = [line for line in lines.read()[-8192:].decode("utf-8", "replace").splitlines() if line.strip()]
    if code is None:
        return f"the torchyard server did not answer within {START_SECONDS:g} s"
    ours = [line.removeprefix("torchyard: ") for line in said if line.startswith("torchyard: ")]
    return f"the torchyard server did not start: {(ours or said or [f'exit {code}'])[-1]}"


def _make_private(data: Path) -> None:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Invalid(f"{data} cannot be made: {error.strerror}", "set TORCHYARD_DATA to a folder of yours") from None


@contextlib.contextmanager
def _only_one(path: Path) -> Iterator[None]:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Invalid(f"{path} cannot be made: {error.strerror}", "set TORCHYARD_DATA to a folder of yours") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
