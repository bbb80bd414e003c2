"""Start, stop and look after this machine's server. It starts by itself on first use, and training outlives it."""

import contextlib
import json
import os
import select
import signal
from pathlib import Path

import click

from torchyard.cli import unit
from torchyard.cli.output import age, fields, note, output_options, write
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session
from torchyard.client import org
from torchyard.client.http import Address, Server
from torchyard.client.local import Running, read_token, running, settings_of, start_server
from torchyard.domain.errors import TorchyardError, Unavailable
from torchyard.domain.quantities import parse_duration

STOP_SECONDS = 15.0


@click.group("server", cls=Guessing)
def command() -> None:
    """Start, stop and look after this machine's server."""


@command.command("run")
def run() -> None:
    """Serve in the foreground until Ctrl-C or SIGTERM. Settings are TORCHYARD_* variables."""
    from torchyard.app import serve

    serve(settings_of(os.environ))


@command.command("start")
def start() -> None:
    """Start it, unless it runs."""
    known = running(settings_of(os.environ).data)
    found = known or start_server(os.environ)
    click.echo(f"{found.url} (pid {found.pid}){', it ran already' if known else ''}")


@command.command("status")
@output_options
def status(output: str) -> int:
    """Say whether it runs. Exit code 1 when it does not."""
    data = settings_of(os.environ).data
    found = running(data)
    if found is None:
        click.echo(f"not running; data in {data}. It starts on first use, or with `torchyard server start`")
        return 1
    health = _health(found, data)
    if output in ("json", "yaml"):
        told = {"url": found.url, "pid": found.pid, "data": str(data), **health}
        write(json.dumps(told, indent=2) + "\n" if output == "json" else _yaml(told))
        return 0
    write(
        fields(
            [
                ("Url", found.url),
                ("Pid", str(found.pid)),
                ("Version", str(health.get("version", "?"))),
                ("Data", str(data)),
                ("Up for", age(_since(data))),
            ]
        )
    )
    return 0


@command.command("stop")
def stop() -> None:
    """Stop it. What trains goes on, and the next server takes it up again."""
    found = running(settings_of(os.environ).data)
    if found is None:
        click.echo("not running")
        return
    _end(found)
    click.echo("stopped; what trains goes on, and the next server takes it up again")


@command.command("install")
@click.option("--system", is_flag=True, help="For the whole machine (as root) instead of this user.")
@click.option("--user", "user", metavar="USER", help="With --system: who it runs as, else who called sudo.")
@click.option("--print", "only_print", is_flag=True, help="Print the unit instead of writing it.")
def install(system: bool, user: str | None, only_print: bool) -> None:
    """Write a systemd unit, so that it starts with the machine or at log-in."""
    made = unit.make(os.environ, system=system, user=user)
    if only_print:
        write(made.text)
        return
    made.path.parent.mkdir(parents=True, exist_ok=True)
    made.path.write_text(made.text)
    click.echo(f"written to {made.path}; now type\n" + "".join(f"  {line}\n" for line in made.next_steps), nl=False)


@command.command("prune")
@click.option("--older-than", metavar="TIME", help="Over for longer than this: 7d, 12h. Else the retention setting.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@output_options
def prune(older_than: str | None, dry_run: bool, output: str) -> None:
    """Remove logs, attempts and code copies of workloads that are over."""
    seconds = parse_duration(older_than) if older_than is not None else None
    done = org.prune(Session().server, seconds, dry_run)
    if output in ("json", "yaml"):
        write(json.dumps(done, indent=2) + "\n" if output == "json" else _yaml(done))
    else:
        click.echo(done["sentence"])


def _yaml(value: dict[str, object]) -> str:
    from torchyard.cli.output import as_text

    return as_text(value, "yaml")


def _health(found: Running, data: Path) -> dict[str, object]:
    try:
        return org.health(Server(lambda: Address(found.url, read_token(data / "token"))))
    except TorchyardError as error:
        note(f"it does not answer: {error.message}")
        return {}


def _since(data: Path) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp((data / "server.json").stat().st_mtime, UTC).isoformat()


def _end(found: Running) -> None:
    """SIGTERM, and wait for the end. A pidfd cannot hit a process that has taken the number since."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(found.pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            ended, _, _ = select.select([handle], [], [], STOP_SECONDS)
        finally:
            os.close(handle)
        if not ended:
            raise Unavailable(
                f"the server (pid {found.pid}) has not ended yet", "its log is server.log in the data folder"
            )
