"""Who may do what where: one table of roles, and scopes that contain each other. Pure; knows neither users nor HTTP."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What is done to a resource."""

    CREATE = "create"
    READ = "read"
    UPDATE = "update"
    DELETE = "delete"


class Resource(StrEnum):
    """What it is done to."""

    WORKLOADS = "workloads"
    EXEC = "exec"
    DATA_SOURCES = "data-sources"
    FILES = "files"
    PROJECTS = "projects"
    DEPARTMENTS = "departments"
    CLUSTERS = "clusters"
    NODES = "nodes"
    USERS = "users"
    ACCESS_RULES = "access-rules"
    SERVER = "server"


class ScopeType(StrEnum):
    """Where a role holds, the widest first."""

    SYSTEM = "system"
    TENANT = "tenant"
    CLUSTER = "cluster"
    DEPARTMENT = "department"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is. Empty: it belongs to nobody's project, cluster or department."""

    project: str = ""
    department: str = ""
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of the organisation, by id."""

    type: ScopeType
    id: str

    def covers(self, place: Place) -> bool:
        """The place lies within it."""
        match self.type:
            case ScopeType.SYSTEM | ScopeType.TENANT:
                return True
            case ScopeType.CLUSTER:
                return self.id == place.cluster != ""
            case ScopeType.DEPARTMENT:
                return self.id == place.department != ""
            case ScopeType.PROJECT:
                return self.id == place.project != ""


@dataclass(frozen=True, slots=True)
class Role:
    """What a person may do; `id` is a number, as access rules name it."""

    id: int
    name: str
    allows: frozenset[tuple[Resource, Action]]


@dataclass(frozen=True, slots=True)
class Grant:
    """A role at a scope."""

    role: Role
    scope: Scope


def _may(actions: Iterable[Action], *resources: Resource) -> frozenset[tuple[Resource, Action]]:
    return frozenset((resource, action) for resource in resources for action in actions)


_READ = (Action.READ,)
_PLACES = (Resource.PROJECTS, Resource.DEPARTMENTS, Resource.CLUSTERS, Resource.NODES)
_SEEN = _may(_READ, Resource.WORKLOADS, Resource.DATA_SOURCES, *_PLACES)
_WORK = _SEEN | _may(Action, Resource.WORKLOADS, Resource.EXEC, Resource.DATA_SOURCES, Resource.FILES)

ADMINISTRATOR = Role(1, "System administrator", _may(Action, *Resource))
DEPARTMENT_ADMINISTRATOR = Role(
    2, "Department administrator", _WORK | _may(Action, Resource.PROJECTS) | _may(_READ, Resource.ACCESS_RULES)
)
EDITOR = Role(3, "Project editor", _WORK)
VIEWER = Role(4, "Viewer", _SEEN)
ROLES = (ADMINISTRATOR, DEPARTMENT_ADMINISTRATOR, EDITOR, VIEWER)

EVERYTHING = (Grant(ADMINISTRATOR, Scope(ScopeType.SYSTEM, "")),)
"""What the owner of the server has."""


def role_of(role_id: int) -> Role | None:
    """The role with this number."""
    return next((role for role in ROLES if role.id == role_id), None)


def allows(grants: Iterable[Grant], resource: Resource, action: Action, place: Place) -> bool:
    """Somebody with these grants may do this there."""
    return any((resource, action) in grant.role.allows and grant.scope.covers(place) for grant in grants)


def allows_somewhere(grants: Iterable[Grant], resource: Resource, action: Action) -> bool:
    """There is some place where they may."""
    return any((resource, action) in grant.role.allows for grant in grants)
