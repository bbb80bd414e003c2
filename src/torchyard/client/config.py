"""What the user has set for good: which server, project and cluster. Knows one small file."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from torchyard.domain.errors import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The content of config.json. `url` None: the server of this machine, started on first use."""

    url: str | None = None
    project: str = "default"
    cluster: str = "local"


def config_file(env: Mapping[str, str]) -> Path:
    """Where the file is, after the XDG specification."""
    shared = Path(env.get("XDG_CONFIG_HOME", ""))
    home = Path(env.get("HOME", "")) if Path(env.get("HOME", "")).is_absolute() else Path.home()
    return (shared if shared.is_absolute() else home / ".config") / "torchyard" / "config.json"


def load_config(env: Mapping[str, str] = os.environ) -> Config:
    """The file's settings, with TORCHYARD_URL over its url. Raises Invalid when it cannot be read."""
    path = config_file(env)
    try:
        known = json.loads(path.read_bytes())
    except FileNotFoundError:
        known = {}
    except (OSError, ValueError) as error:
        raise Invalid(f"{path} cannot be read: {error}", "mend it or delete it") from None
    if not isinstance(known, dict):
        raise Invalid(f"{path} holds no JSON object", "mend it or delete it")
    return Config(
        url=env.get("TORCHYARD_URL") or _text(known, "url", path),
        project=_text(known, "project", path) or "default",
        cluster=_text(known, "cluster", path) or "local",
    )


def save_config(config: Config, env: Mapping[str, str] = os.environ) -> Path:
    """Write the file, whole or not at all; answers where it is."""
    path = config_file(env)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(config), indent=2) + "\n")
    fresh.replace(path)
    return path


def change_config(env: Mapping[str, str] = os.environ, **changes: str | None) -> Path:
    """Write some settings and leave the others as they are in the file: TORCHYARD_URL holds for now, not for good."""
    of_the_file = {name: value for name, value in env.items() if name != "TORCHYARD_URL"}
    return save_config(Config(**asdict(load_config(of_the_file)) | changes), env)


def server_url(text: str) -> str:
    """A server's address without the slash at its end. Raises Invalid when it is none."""
    if not text.startswith(("http://", "https://")):
        raise Invalid(f"{text!r} is no address", "write it as http://127.0.0.1:8080")
    return text.rstrip("/")


def _text(known: dict[str, object], key: str, path: Path) -> str | None:
    value = known.get(key)
    if value is not None and not isinstance(value, str):
        raise Invalid(f"{key} in {path} is no text", "mend it or delete it")
    return value or None
