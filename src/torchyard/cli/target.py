"""What `run` and `submit` need of this machine: the script, the caller's environment, torchrun, the code's folder."""

import difflib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from torchyard.cli.output import note, plural
from torchyard.cli.session import Session
from torchyard.client import code
from torchyard.domain.errors import Invalid


def working_folder() -> Path:
    """The folder that the caller is in. Raises Invalid when it has been deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise Invalid("the folder you are in has been deleted", "cd to one that is there") from None


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment as it goes to the server; what is no text stays here.

    Where torchrun is not on the PATH but stands beside this Python, that folder comes last: a script's own words win.
    """
    known = {name: value for name, value in env.items() if _plain(name) and _plain(value)}
    return known if _which_torchrun(known) else _with_path(known, [known.get("PATH", ""), *_beside()])


def with_torchrun(env: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment with torchrun on its PATH. Raises Invalid when there is none to be found."""
    known = {name: value for name, value in env.items() if _plain(name) and _plain(value)}
    if _which_torchrun(known):
        return known
    if not _beside():
        raise Invalid(
            "there is no torchrun on your PATH", "activate the environment that has torch, or pip install torch"
        )
    return _with_path(known, [*_beside(), known.get("PATH", "")])


def _which_torchrun(env: Mapping[str, str]) -> str | None:
    return shutil.which("torchrun", path=env.get("PATH", ""))


def _beside() -> list[str]:
    folder = Path(sys.executable).parent
    return [str(folder)] if (folder / "torchrun").exists() else []


def _with_path(env: dict[str, str], folders: list[str]) -> dict[str, str]:
    return env | {"PATH": os.pathsep.join(filter(None, folders))}


def check_script(script: str, folder: Path) -> None:
    """Raise Invalid when a script is not there, and name the file that was meant."""
    if not folder.is_dir():
        raise Invalid(f"there is no folder {folder}", "correct the path")
    path = folder / script
    if script and path.is_file():
        return
    if not script.strip():
        raise Invalid("the name of the script is empty", "name a script: torchyard run train.py")
    if path.is_dir():
        raise Invalid(f"{script} is a folder", "name the script in it")
    if shutil.which(script):
        raise Invalid(f"there is no script {script} here", f"to run the program: torchyard run -- {script} ...")
    parent = path.parent
    names = [each.name for each in parent.iterdir()] if parent.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=1)
    hint = f"did you mean {Path(script).parent / near[0]}?" if near else f"looked in {parent}"
    raise Invalid(f"there is no script {script}", hint)


def check_command(word: str, folder: Path, env: Mapping[str, str]) -> None:
    """Raise Invalid when a command is neither a program on the PATH nor a file here."""
    found = (folder / word).is_file() if os.sep in word else shutil.which(word, path=env.get("PATH", ""))
    if found:
        return
    if word.endswith(".py"):
        raise Invalid(f"{word} is not a command", f"to train with it leave out the --: torchyard run {word}")
    raise Invalid(f"there is no command {word!r} on your PATH")


def send_code(session: Session, folder: Path) -> str:
    """Pack a folder, say what stays behind, and give it to the server; answers the hash that the spec names."""
    packed = code.pack(folder)
    if str(packed.left_out):
        note(f"code: {plural(packed.files, 'file')}, {packed.left_out}")
    return code.upload(session.server, packed)


def _plain(text: str) -> bool:
    return bool(text.isascii() or text.encode("utf-8", "replace").decode() == text)
