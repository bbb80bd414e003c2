"""A port was taken by somebody else when the ranks wanted to meet on it."""

import re
from collections.abc import Sequence

from torchyard.diagnosis.evidence import Evidence
from torchyard.diagnosis.signature import Match
from torchyard.domain.cause import Fault

NAME = "portTaken"
_C10D = re.compile(
    r"server socket has failed to (?:listen|bind).*?(?:port: |:)(\d{2,5})\b.*(?:EADDRINUSE|already in use)"
)
_PLAIN = re.compile(r"EADDRINUSE|\[Errno 98\]|Address already in use", re.IGNORECASE)


def port_in(line: str) -> int | None:
    """The port that torch could not listen on, when this line says so."""
    found = _C10D.search(line)
    return int(found[1]) if found else None


def match(lines: Sequence[str], fault: Fault | None, evidence: Evidence) -> Match | None:
    """torch names the port, others only the error."""
    for line in reversed(lines[-60:]):
        port = port_in(line)
        if port is None and not _PLAIN.search(line):
            continue
        if port is not None and port == evidence.port:
            return Match(
                f"port {port}, on which the ranks meet, was taken meanwhile", "nothing: the next attempt has another"
            )
        return Match(
            f"port {port} is in use" if port else "a port that it wanted to listen on is in use",
            "leave --master-port and MASTER_PORT out: torchyard gives every attempt a free port of its own",
        )
    return None
