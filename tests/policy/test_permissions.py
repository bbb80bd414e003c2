"""The table of permissions: roles grow, scopes contain each other, nothing is allowed by nobody."""

from hypothesis import given
from hypothesis import strategies as st

from torchyard.policy.permissions import (
    ADMINISTRATOR,
    DEPARTMENT_ADMINISTRATOR,
    EDITOR,
    ROLES,
    VIEWER,
    Action,
    Grant,
    Place,
    Resource,
    Scope,
    ScopeType,
    allows,
    allows_somewhere,
    role_of,
)

IDS = st.sampled_from(["", "1", "2"])
PLACES = st.builds(Place, IDS, IDS, IDS)
GRANTS = st.lists(
    st.builds(Grant, st.sampled_from(ROLES), st.builds(Scope, st.sampled_from(ScopeType), IDS)), max_size=4
)
RESOURCES, ACTIONS = st.sampled_from(Resource), st.sampled_from(Action)


def test_roles_grow() -> None:
    assert VIEWER.allows < EDITOR.allows < DEPARTMENT_ADMINISTRATOR.allows < ADMINISTRATOR.allows
    assert all(action is Action.READ for _, action in VIEWER.allows)
    assert ADMINISTRATOR.allows == {(resource, action) for resource in Resource for action in Action}
    assert [role_of(role.id) for role in ROLES] == list(ROLES) and role_of(0) is None


def test_only_an_administrator_changes_users_rules_and_the_server() -> None:
    for resource in (Resource.USERS, Resource.ACCESS_RULES, Resource.SERVER):
        able = [role for role in ROLES if any((resource, a) in role.allows for a in Action if a is not Action.READ)]
        assert able == [ADMINISTRATOR]


def test_nobody_sees_into_a_claim_or_a_replica_by_reading() -> None:
    assert not any(resource in (Resource.FILES, Resource.EXEC) for resource, _ in VIEWER.allows)


@given(GRANTS, RESOURCES, ACTIONS, PLACES)
def test_what_is_allowed_there_is_allowed_somewhere(
    grants: list[Grant], resource: Resource, action: Action, place: Place
) -> None:
    assert not allows((), resource, action, place)
    if allows(grants, resource, action, place):
        assert allows_somewhere(grants, resource, action)
    if allows(grants, resource, action, Place()):
        assert allows(grants, resource, action, place), "over everything is everywhere"


@given(GRANTS, RESOURCES, ACTIONS, PLACES, st.builds(Scope, st.sampled_from(ScopeType), IDS))
def test_one_more_rule_never_takes_anything_away(
    grants: list[Grant], resource: Resource, action: Action, place: Place, scope: Scope
) -> None:
    before = allows(grants, resource, action, place)
    assert allows([*grants, Grant(EDITOR, scope)], resource, action, place) >= before


@given(RESOURCES, ACTIONS, st.sampled_from(["1", "2"]))
def test_a_project_ends_where_it_ends(resource: Resource, action: Action, project: str) -> None:
    grants = [Grant(one, Scope(ScopeType.PROJECT, "3")) for one in ROLES]
    assert not allows(grants, resource, action, Place(project, "1", "c"))
