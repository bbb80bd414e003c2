"""The systemd unit of a server, as text. Knows paths and accounts; writes nothing."""

import os
import pwd
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchyard.client.local import settings_of
from torchyard.domain.errors import Forbidden, Invalid

NAME = "torchyard.service"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, where it belongs, and what to type then."""

    path: Path
    text: str
    next_steps: tuple[str, ...]


def make(env: Mapping[str, str], *, system: bool, user: str | None) -> Unit:
    """The unit for this user, or with `system` for the machine."""
    if user is not None and not system:
        raise Invalid("--user goes with --system", "a user's own unit runs as that user")
    return _system(env, user) if system else _own(env)


def _own(env: Mapping[str, str]) -> Unit:
    shared = Path(env.get("XDG_CONFIG_HOME", ""))
    folder = shared if shared.is_absolute() else Path.home() / ".config"
    account = pwd.getpwuid(os.getuid())
    return Unit(
        folder / "systemd" / "user" / NAME,
        _text(settings_of(env).data, wanted_by="default.target", user=None, env=env),
        (
            "systemctl --user daemon-reload",
            f"systemctl --user enable --now {NAME}",
            f"loginctl enable-linger {account.pw_name}    # so that it runs while you are not logged in",
        ),
    )


def _system(env: Mapping[str, str], user: str | None) -> Unit:
    if os.getuid() != 0:
        raise Forbidden("a unit for the whole machine is written by root", "sudo torchyard server install --system")
    name = user or env.get("SUDO_USER") or "root"
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        raise Invalid(f"there is no user {name!r} on this machine") from None
    own = {"HOME": account.pw_dir, **({"TORCHYARD_DATA": env["TORCHYARD_DATA"]} if env.get("TORCHYARD_DATA") else {})}
    return Unit(
        Path("/etc/systemd/system") / NAME,
        _text(settings_of(own).data, wanted_by="multi-user.target", user=name, env=env),
        ("systemctl daemon-reload", f"systemctl enable --now {NAME}"),
    )


def _text(data: Path, *, wanted_by: str, user: str | None, env: Mapping[str, str]) -> str:
    settings = {"TORCHYARD_DATA": str(data)} | {
        name: value for name, value in env.items() if name.startswith("TORCHYARD_") and name not in _NOT_SETTINGS
    }
    lines = [f'Environment="{name}={_quoted(value)}"' for name, value in sorted(settings.items())]
    command = shlex.join([sys.executable, "-m", "torchyard.cli.main", "server", "run"]).replace("%", "%%")
    return "\n".join(
        (
            "[Unit]",
            "Description=torchyard server",
            "After=network.target",
            "",
            "[Service]",
            *([f"User={user}"] if user else []),
            f"ExecStart={command}",
            *lines,
            "# Only the server is stopped: what trains goes on, and the next server takes it up again.",
            "KillMode=process",
            "Restart=on-failure",
            "",
            "[Install]",
            f"WantedBy={wanted_by}",
            "",
        )
    )


_NOT_SETTINGS = frozenset({"TORCHYARD_DATA", "TORCHYARD_URL", "TORCHYARD_TOKEN", "TORCHYARD_DEBUG"})


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
