"""Settings: XDG defaults, one variable a field, errors that name the variable and what is taken."""

from dataclasses import fields
from pathlib import Path

import pytest

from torchyard.settings import BadSetting, Settings


def test_defaults_follow_xdg() -> None:
    assert Settings.from_environment({"HOME": "/home/ada"}).data == Path("/home/ada/.local/share/torchyard")
    assert Settings.from_environment({"HOME": "/home/ada", "XDG_DATA_HOME": "/big"}).data == Path("/big/torchyard")
    relative = {"HOME": "/home/ada", "XDG_DATA_HOME": "big"}
    assert Settings.from_environment(relative).data == Path("/home/ada/.local/share/torchyard")


def test_every_field_has_a_variable() -> None:
    values = {
        "data": "/d", "host": "::1", "port": "8080", "cpu_slots": "7", "lock_dir": "/l", "retention_days": "1.5",
        "disk_reserve_gb": "3", "heartbeat": "4",
    }  # fmt: skip
    assert set(values) == {field.name for field in fields(Settings)}
    settings = Settings.from_environment({f"TORCHYARD_{name.upper()}": text for name, text in values.items()})
    assert {name: str(getattr(settings, name)) for name in values} == values | {
        "disk_reserve_gb": "3.0", "heartbeat": "4.0",
    }  # fmt: skip


def test_an_empty_variable_is_not_set() -> None:
    assert Settings.from_environment({"HOME": "/h", "TORCHYARD_PORT": "", "TORCHYARD_CPU_SLOTS": " "}) == (
        Settings.from_environment({"HOME": "/h"})
    )


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("PORT", "eighty", "give a whole number"),
        ("PORT", "70000", "from 0 to 65535"),
        ("CPU_SLOTS", "0", "from 1 to"),
        ("CPU_SLOTS", "1.5", "give a whole number"),
        ("RETENTION_DAYS", "nan", "from 0 to"),
        ("RETENTION_DAYS", "-1", "from 0 to"),
        ("HEARTBEAT", "0", "from 0.1 to"),
        ("DATA", "relative/folder", "absolute path"),
        ("HOST", "0.0.0.0", "this machine only"),
        ("HOST", "example.com", "this machine only"),
    ],
)
def test_a_bad_value_is_one_clear_error(name: str, text: str, says: str) -> None:
    with pytest.raises(BadSetting, match=says) as raised:
        Settings.from_environment({"HOME": "/h", f"TORCHYARD_{name}": text})
    assert f"TORCHYARD_{name}" in str(raised.value)
