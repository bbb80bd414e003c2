"""All settings of a server, read once from the environment (prefix TORCHYARD_). Knows no floor above it."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PREFIX = "TORCHYARD_"
LOCK_DIR = Path("/run/lock/torchyard")


class BadSetting(ValueError):
    """A variable that cannot be understood. The message names it and says what is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a server is told. Every field has a variable of its name: `cpu_slots` is TORCHYARD_CPU_SLOTS."""

    data: Path
    """The data folder: store, logs, claims, token."""
    host: str = "127.0.0.1"
    port: int = 0
    """0: any free port; `server.json` in the data folder says which."""
    cpu_slots: int | None = None
    """Devices of a machine without GPUs; None: as many as cores, at least four."""
    lock_dir: Path = LOCK_DIR
    """Where all servers of a machine agree on who holds which device."""
    retention_days: float = 30.0
    """How long logs, attempts and code copies of a workload that is over are kept."""
    disk_reserve_gb: float = 2.0
    """Free space of the data folder below which the server warns."""
    heartbeat: float = 15.0
    """Seconds between two signs of life on a quiet stream."""

    @property
    def database_file(self) -> Path:
        """Where the store is."""
        return self.data / "torchyard.db"

    @property
    def token_file(self) -> Path:
        """The file whose content lets the OS user in."""
        return self.data / "token"

    @property
    def server_file(self) -> Path:
        """Written once the server listens: {url, pid, started, version}."""
        return self.data / "server.json"

    @property
    def port_file(self) -> Path:
        """The port of the last server that listened here."""
        return self.data / "port"

    @property
    def seal_key_file(self) -> Path:
        """The key that secrets are sealed with."""
        return self.data / "seal.key"

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "Settings":
        """Settings of this environment; defaults follow XDG. Raises BadSetting with a sentence."""
        read = _Reader(env)
        slots = read.number("CPU_SLOTS", -1, least=1, most=4096, whole=True)
        return cls(
            data=read.folder("DATA") or _data_folder(env),
            host=read.loopback("HOST", "127.0.0.1"),
            port=int(read.number("PORT", 0, most=65535, whole=True)),
            cpu_slots=int(slots) if slots > 0 else None,
            lock_dir=read.folder("LOCK_DIR") or LOCK_DIR,
            retention_days=read.number("RETENTION_DAYS", 30.0, most=36500),
            disk_reserve_gb=read.number("DISK_RESERVE_GB", 2.0),
            heartbeat=read.number("HEARTBEAT", 15.0, least=0.1),
        )


def started_at(pid: int | str) -> str:
    """When a process began, as no other with its number did: boot id and clock ticks (proc(5)). Raises OSError."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}:{ticks}"


def _data_folder(env: Mapping[str, str]) -> Path:
    # The XDG specification has a relative path ignored.
    shared = Path(env.get("XDG_DATA_HOME", ""))
    if shared.is_absolute():
        return shared / "torchyard"
    home = Path(env.get("HOME", ""))
    return (home if home.is_absolute() else Path.home()) / ".local" / "share" / "torchyard"


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads single variables of an environment; an empty one counts as not set."""

    env: Mapping[str, str]

    def folder(self, name: str) -> Path | None:
        text = self.env.get(PREFIX + name, "")
        if not text:
            return None
        path = Path(text).expanduser()
        if not path.is_absolute():
            raise BadSetting(f"{PREFIX}{name} is {text!r}: give an absolute path")
        return path

    def number(self, name: str, default: float, least: float = 0, most: float = 1e9, whole: bool = False) -> float:
        text = self.env.get(PREFIX + name, "").strip()
        if not text:
            return default
        kind = "whole number" if whole else "number"
        try:
            value: float = int(text) if whole else float(text)
        except ValueError:
            raise BadSetting(f"{PREFIX}{name} is {text!r}: give a {kind}") from None
        if not least <= value <= most:
            raise BadSetting(f"{PREFIX}{name} is {text}: give a {kind} from {least:g} to {most:g}")
        return value

    def loopback(self, name: str, default: str) -> str:
        text = self.env.get(PREFIX + name, "").strip() or default
        try:
            loopback = ipaddress.ip_address(text).is_loopback
        except ValueError:
            loopback = text == "localhost"
        if not loopback:
            raise BadSetting(
                f"{PREFIX}{name} is {text!r}: the server listens on this machine only (127.0.0.1, ::1 or localhost); "
                "reach it from another machine through `ssh -L`"
            )
        return text
