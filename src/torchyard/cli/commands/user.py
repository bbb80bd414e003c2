"""Make users, let them in and say what they may do. For administrators."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from torchyard.cli.commands.delete import ask
from torchyard.cli.output import Column, Row, age, as_text, fields, note, output_options, show_rows, write
from torchyard.cli.root import Guessing
from torchyard.cli.session import Session
from torchyard.client import Server, org, users
from torchyard.domain.errors import NotFound

ROLES = {"admin": 1, "department-admin": 2, "editor": 3, "viewer": 4}
_WORDS = {number: word for word, number in ROLES.items()}

Function = TypeVar("Function", bound=Callable[..., Any])


@click.group("user", cls=Guessing)
def command() -> None:
    """Make users, let them in and say what they may do."""


@command.command("create")
@click.argument("email")
@output_options
def create(email: str, output: str) -> None:
    """Make a user. The password to begin with is shown this once; no role comes with it."""
    server = Session().server
    made = users.create(server, email)
    _show(server, made["username"], made["tempPassword"], output, made)


@command.command("list")
@output_options
def listing(output: str) -> None:
    """List users and their roles."""
    server = Session().server
    roles: dict[str, list[Row]] = {}
    for rule in users.rules(server):
        roles.setdefault(rule["subjectId"], []).append(rule)
    columns = (
        Column("NAME", lambda row: row["username"]),
        Column("ENABLED", lambda row: "yes" if row["enabled"] else "no"),
        Column("ROLES", lambda row: ", ".join(_role(rule) for rule in roles.get(row["id"], ())) or "-"),
        Column("LAST LOGIN", lambda row: age(row.get("lastLogin"))),
        Column("AGE", lambda row: age(row.get("createdAt"))),
        Column("ID", lambda row: row["id"], wide=True),
    )
    rows = [row | {"accessRules": roles.get(row["id"], [])} for row in users.listing(server)]
    show_rows(rows, columns, output, name=lambda row: str(row["username"]))


@command.command("enable")
@click.argument("name")
def enable(name: str) -> None:
    """Let a user in again."""
    _switch(name, True)


@command.command("disable")
@click.argument("name")
def disable(name: str) -> None:
    """Keep a user out, with all access keys of theirs, at once."""
    _switch(name, False)


@command.command("reset-password")
@click.argument("name")
@output_options
def reset_password(name: str, output: str) -> None:
    """Give a user a new password, shown this once. Their logins end; access keys go on."""
    server = Session().server
    found = users.find(server, name)
    password = users.reset_password(server, found["id"])
    _show(server, found["username"], password, output, {"username": found["username"], "password": password})


@command.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete(names: tuple[str, ...], yes: bool) -> None:
    """Delete users with their keys and roles. Their workloads stay."""
    server = Session().server
    found = [users.find(server, name) for name in dict.fromkeys(names)]
    if not yes:
        ask(f"Delete {', '.join(row['username'] for row in found)} with all keys and roles?")
    for row in found:
        users.delete(server, row["id"])
        click.echo(f"{row['username']} is deleted")


def rule_options(function: Function) -> Function:
    """`NAME --role ROLE --scope SCOPE`."""
    function = click.option(
        "--scope", required=True, metavar="SCOPE", help="project:NAME, department:NAME, cluster:NAME or system."
    )(function)
    function = click.option("--role", required=True, type=click.Choice(tuple(ROLES)), help="What they may do.")(
        function
    )
    return click.argument("name")(function)


@command.command("grant")
@rule_options
def grant(name: str, role: str, scope: str) -> None:
    """Give a user a role at a scope; it counts from the next request on."""
    kind, place = _scope(scope)
    server = Session().server
    found = users.find(server, name)
    users.grant(server, found["id"], ROLES[role], kind, _scope_id(server, kind, place))
    click.echo(f"{found['username']} is {role} at {scope}")


@command.command("revoke")
@rule_options
def revoke(name: str, role: str, scope: str) -> None:
    """Take a role away from a user; it counts from the next request on."""
    kind, place = _scope(scope)
    server = Session().server
    found = users.find(server, name)
    rules = _rules(server, found["id"], role, kind, place)
    if not rules:
        raise NotFound(f"{found['username']} has no role {role} at {scope}", "see `torchyard user list`")
    for rule in rules:
        users.revoke(server, rule["id"])
    click.echo(f"{found['username']} is no longer {role} at {scope}")


def _scope(text: str) -> tuple[str, str]:
    kind, _, name = text.partition(":")
    if text != "system" and not (kind in ("project", "department", "cluster") and name):
        raise click.UsageError(
            f"{text[:80]!r} is no scope: write project:NAME, department:NAME, cluster:NAME or system"
        )
    return kind, name or kind


def _scope_id(server: Server, kind: str, name: str) -> str:
    match kind:
        case "project":
            return org.project_id(server, name)
        case "department":
            return org.department_id(server, name)
        case "cluster":
            return org.cluster_id(server, name)
    return ""


def _rules(server: Server, identity: str, role: str, kind: str, place: str) -> list[Row]:
    wanted = (ROLES[role], kind, place)
    found = users.rules(server, identity)
    return [rule for rule in found if (rule["roleId"], rule["scopeType"], rule["scopeName"]) == wanted]


def _role(rule: Row) -> str:
    name = _WORDS.get(rule["roleId"]) or str(rule["roleName"])
    at = rule["scopeType"]
    return f"{name} at {at}" if rule["scopeName"] in ("", at) else f"{name} at {at}:{rule['scopeName']}"


def _switch(name: str, enabled: bool) -> None:
    server = Session().server
    found = users.find(server, name)
    users.enable(server, found["id"], enabled)
    click.echo(f"{found['username']} is {'enabled' if enabled else 'disabled'}")


def _show(server: Server, name: str, password: str, output: str, row: Row) -> None:
    if output in ("json", "yaml"):
        write(as_text(row, output))
        return
    write(fields([("Name", name), ("Password", password)]))
    note(f"the password is shown this once; with it: torchyard login user -u {name} --url {server.address.url}")
