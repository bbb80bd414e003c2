"""Spec files: read from disk or stdin, and turned into the API's body. What is right in them, domain knows."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchyard.cli.target import working_folder
from torchyard.client.code import pack
from torchyard.domain.document import parse_text
from torchyard.domain.errors import Invalid, TooLarge

if TYPE_CHECKING:
    from torchyard.domain.spec import Submission
    from torchyard.domain.submission import SpecFile

ENDINGS = (".yaml", ".yml", ".json")
LIMIT = 10_000_000
"""Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecBody:
    """What a file says: its kind, name and places, the body without these, and the folder of code that it names."""

    kind: str
    name: str | None
    project: str | None
    cluster: str | None
    body: dict[str, Any]
    code: Path | None


def is_spec(word: str) -> bool:
    """A word of the command line that names a spec file."""
    return word == "-" or word.lower().endswith(ENDINGS)


def read(word: str) -> SpecBody:
    """Read a file, or stdin for `-`. Raises Invalid with all that is wrong in it."""
    file = _load(word)
    said = file.submission.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return SpecBody(
        kind=said["kind"],
        name=said.get("name"),
        project=said.get("project"),
        cluster=said.get("cluster"),
        body={key: said[key] for key in ("spec", "masterSpec", "torchyard") if key in said},
        code=_folder(word) / file.code if file.code else None,
    )


def submission_of(word: str) -> "Submission":
    """The submission in a file, with the hash of the code that it names. Uploads nothing."""
    file = _load(word)
    if file.code is None:
        return file.submission
    digest = pack(_folder(word) / file.code).digest
    extras = file.submission.torchyard.model_copy(update={"code": digest})
    return file.submission.model_copy(update={"torchyard": extras})


def _load(word: str) -> "SpecFile":
    # Imported here: it takes pydantic along, which no other command needs.
    from torchyard.domain.submission import load_spec_file

    name = "stdin" if word == "-" else word
    return load_spec_file(parse_text(_text(word), name), name)


def _folder(word: str) -> Path:
    return working_folder() if word == "-" else Path(word).parent


def _text(word: str) -> str:
    try:
        raw = sys.stdin.buffer.read(LIMIT + 1) if word == "-" else Path(word).read_bytes()
        text = raw.decode()
    except OSError as error:
        raise Invalid(f"{word} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Invalid(f"{word} is no text") from None
    if len(raw) > LIMIT:
        raise TooLarge(f"{word} is larger than {LIMIT // 1_000_000} MB", "a spec file is small; data goes on a claim")
    return text
