"""Bring a port of a replica to this machine. TensorBoard or Jupyter beside the ranks, in your browser."""

import threading

import click

from torchyard.cli.output import note
from torchyard.cli.session import Session, project_option
from torchyard.client import forward
from torchyard.client.forward import Forward


@click.command("port-forward")
@click.argument("name")
@click.option(
    "--port", "ports", multiple=True, required=True, metavar="LOCAL:REMOTE", help="Ports; may be given more than once."
)
@click.option("--address", default="localhost", show_default=True, metavar="ADDRESS", help="Where to listen here.")
@project_option
@click.option("--replica", "--pod", metavar="REPLICA", help="In this replica, else the first.")
def command(name: str, ports: tuple[str, ...], address: str, project: str | None, replica: str | None) -> None:
    """Bring ports of a replica to this machine, until Ctrl-C."""
    pairs = [forward.parse(text) for text in ports]
    session = Session(project)
    row = session.workload(name)
    listeners = [forward.listen(address, pair.local) for pair in pairs]
    for listener, pair in zip(listeners, pairs, strict=True):
        target = Forward(server=session.another, workload_id=row["id"], replica=replica, port=pair.remote, say=note)
        threading.Thread(target=forward.serve, args=(listener, target), daemon=True).start()
        click.echo(
            f"{address}:{listener.getsockname()[1]} leads to port {pair.remote} of {replica or 'the first replica'}"
        )
    threading.Event().wait()
