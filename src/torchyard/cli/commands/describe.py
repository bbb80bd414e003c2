"""Show all that is known of a workload. Knows how it looks, not what it means."""

from typing import Any

import click

from torchyard.cli.output import Column, age, as_text, fields, output_options, plural, short_duration, table, write
from torchyard.cli.session import Session, project_option
from torchyard.client import workloads

Row = dict[str, Any]


def exit_of(replica: Row) -> str:
    """`0`, `1`, `signal 9`, or nothing yet."""
    if replica.get("signal") is not None:
        return f"signal {replica['signal']}"
    return "-" if replica.get("code") is None else str(replica["code"])


def ranks_of(replica: Row) -> str:
    """`0 (4711), 1 (4712)`: the process of each rank, the last one where torchrun started it again."""
    ranks = sorted(replica.get("ranks") or (), key=lambda rank: int(rank.get("restart") or 0))
    last = {rank["rank"]: rank for rank in ranks}
    return ", ".join(f"{number} ({rank.get('pid') or '-'})" for number, rank in sorted(last.items())) or "-"


_EVENTS = (
    Column("AGE", lambda row: age(row.get("createdAt"))),
    Column("TYPE", lambda row: str(row.get("type", ""))),
    Column("REASON", lambda row: str(row.get("reason") or "")),
    Column("MESSAGE", lambda row: str(row.get("message") or "")),
)
_REPLICAS = (
    Column("ATTEMPT", lambda row: str(row["attempt"])),
    Column("REPLICA", lambda row: row["name"]),
    Column("STATE", lambda row: row["state"]),
    Column("EXIT", exit_of),
    Column("DEVICES", lambda row: ",".join(map(str, row.get("devices") or ())) or "-"),
    Column("PID", lambda row: str(row.get("pid") or "-")),
    Column("AGE", lambda row: age(row.get("startedAt"))),
    Column("RANKS (PID)", ranks_of),
)
_ATTEMPTS = (
    Column("ATTEMPT", lambda row: str(row["number"])),
    Column("AGE", lambda row: age(row.get("createdAt"))),
    Column("CAUSE", lambda row: str(row.get("cause") or "-")),
    Column("ENDED BECAUSE", lambda row: str(row.get("sentence") or ("-" if row.get("endedAt") else "it runs"))),
)


@click.command("describe")
@click.argument("name")
@project_option
@click.option("--event-limit", type=click.IntRange(1, 500), default=20, show_default=True, help="How many events.")
@output_options
def command(name: str, project: str | None, event_limit: int, output: str) -> None:
    """Show all that is known of a workload."""
    session = Session(project)
    row = session.workload(name)
    detail = workloads.get(session.server, row["id"])
    if output == "name":
        write(f"{detail['name']}\n")
        return
    attempts = workloads.attempts(session.server, row["id"])
    events = workloads.happenings(session.server, row["id"], event_limit)
    if output in ("json", "yaml"):
        write(as_text(detail | {"attempts": attempts, "events": events}, output))
        return
    write(describe(detail, attempts, events))


def describe(row: Row, attempts: list[Row], events: list[Row]) -> str:
    """The page about one workload."""
    parts = [fields(_head(row))]
    replicas = [replica | {"attempt": a["number"]} for a in attempts[-1:] for replica in a.get("replicas") or ()]
    for title, columns, rows in (
        ("Attempts", _ATTEMPTS, attempts),
        ("Replicas", _REPLICAS, replicas),
        ("Events", _EVENTS, events),
    ):
        if rows:
            parts.append(f"\n{title}:\n" + _indented(table(rows, columns)))
    return "".join(parts)


def _head(row: Row) -> list[tuple[str, str]]:
    spec = row.get("spec") or {}
    extras = row.get("torchyard") or {}
    claims = (spec.get("storage") or {}).get("pvc") or ()
    progress = row.get("progress") or {}
    step = progress.get("step")
    return [
        ("Name", row["name"]),
        ("Kind", str(row["type"]).lower()),
        ("Project", row["projectName"]),
        ("Cluster", str(row.get("clusterName") or "")),
        ("Phase", f"{row['phase']} for {age(row.get('phaseUpdatedAt'))}"),
        ("Reason", row.get("phaseMessage") or ""),
        (
            "Size",
            f"{plural(int(row.get('replicas') or 0), 'replica')}, {plural(int(row.get('devices') or 0), 'device')}",
        ),
        ("Progress", "" if step is None else _progress(progress)),
        ("Command", spec.get("command") or spec.get("args") or ""),
        ("Image", spec.get("image") or ""),
        ("Folder", spec.get("workingDir") or ""),
        ("Code", extras.get("code") or ""),
        ("Isolation", extras.get("isolation") or ""),
        ("Claims", ", ".join(f"{claim.get('claimName', '?')} at {claim['path']}" for claim in claims)),
        ("Retries", f"{spec.get('backoffLimit', 6)} at most"),
        ("Run time", short_duration(float(row.get("totalRunningTimeSeconds") or 0))),
        ("Created", f"{age(row.get('createdAt'))} ago by {row.get('submittedBy') or '?'}"),
        ("Id", row["id"]),
        *(("Warning", f"{f['where']}: {f['message']}") for f in row.get("findings") or () if f["severity"] != "info"),
    ]


def _progress(progress: Row) -> str:
    total, loss, unit = progress.get("total"), progress.get("loss"), progress.get("unit") or "step"
    return f"{unit} {progress['step']}" + (f" of {total}" if total else "") + (f", loss {loss:.4g}" if loss else "")


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())
