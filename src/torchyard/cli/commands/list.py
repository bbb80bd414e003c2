"""List workloads. Knows rows and columns."""

import click

from torchyard.cli.output import Column, Row, age, note, output_options, show_rows
from torchyard.cli.session import Session, project_option
from torchyard.client import workloads


def _progress(row: Row) -> str:
    known = row.get("progress") or {}
    step, total = known.get("step"), known.get("total")
    if step is None:
        return "-"
    return f"{known.get('unit') or 'step'} {step}" + (f"/{total}" if total else "")


def _ended(row: Row) -> str:
    return age(row.get("completedAt")) if row.get("completedAt") else "-"


def _phase(text: str) -> str:
    """The phase that is meant. Raises BadParameter with those that there are."""
    from torchyard.domain.workload import Phase

    wanted = text.strip().capitalize()
    if wanted not in set(Phase):
        raise click.BadParameter(f"{text[:40]!r} is no phase; one of {', '.join(Phase)}", param_hint="'--status'")
    return wanted


COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("KIND", lambda row: str(row["type"]).lower()),
    Column("PHASE", lambda row: row["phase"]),
    Column("REPLICAS", lambda row: str(row.get("replicas", "-"))),
    Column("DEVICES", lambda row: str(row.get("devices", "-"))),
    Column("ATTEMPT", lambda row: str(row.get("attempt") or "-")),
    Column("PROGRESS", _progress),
    Column("AGE", lambda row: age(row.get("createdAt"))),
    Column("ENDED", _ended, wide=True),
    Column("PROJECT", lambda row: row["projectName"], wide=True),
    Column("CLUSTER", lambda row: str(row.get("clusterName", "-")), wide=True),
    Column("BY", lambda row: str(row.get("submittedBy") or "-"), wide=True),
    Column("ID", lambda row: row["id"], wide=True),
    Column("REASON", lambda row: row.get("phaseMessage") or "", wide=True),
)


def make(kind: str | None = None) -> click.Command:
    """`list`, of one kind or of all."""

    @click.command("list")
    @project_option
    @click.option("-A", "--all", "everywhere", is_flag=True, help="Workloads of all projects.")
    @click.option("--status", metavar="PHASE", help="Only those in this phase: Running, Pending, Failed, ...")
    @click.option("--deleted", is_flag=True, help="Those that were deleted.")
    @click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many.")
    @click.option("--offset", type=click.IntRange(min=0), default=0, help="How many to leave out first.")
    @output_options
    def listing(
        project: str | None,
        everywhere: bool,
        status: str | None,
        deleted: bool,
        limit: int,
        offset: int,
        output: str,
    ) -> None:
        """List workloads, the newest first."""
        session = Session(project)
        if project is not None and not everywhere:
            # A name that nobody has would be an empty list.
            _ = session.project_id
        wanted = {
            "projectName": None if everywhere else session.project,
            "phase": _phase(status) if status else None,
            "type": kind,
        }
        filters = ",".join(f"{field}=={value}" for field, value in wanted.items() if value)
        rows, following = workloads.page(
            session.server,
            filterBy=filters or None,
            limit=limit,
            offset=offset or None,
            deleted=deleted or None,
            sortBy="createdAt",
            sortOrder="desc",
        )
        show_rows(rows, COLUMNS, output, name=lambda row: str(row["name"]))
        if following is not None and output in ("table", "wide"):
            note(f"there are more: --offset {following}")
        if not rows and output in ("table", "wide"):
            note("no workloads; start one with `torchyard run train.py`")

    return listing


command = make()
