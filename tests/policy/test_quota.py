"""Quotas of projects within that of their department."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from torchyard.domain.project import Department, Project, Quota
from torchyard.policy.quota import misfit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BOUNDS = st.none() | st.integers(0, 8)


def projects(bounds: list[int | None]) -> list[Project]:
    return [
        Project(id=str(n), name=f"p{n}", created_at=NOW, quota=Quota(deserved=bound)) for n, bound in enumerate(bounds)
    ]


@given(BOUNDS, st.lists(BOUNDS, max_size=4))
def test_who_fits_can_never_hold_more_than_the_department_has(whole: int | None, bounds: list[int | None]) -> None:
    department = Department(id="1", name="research", created_at=NOW, quota=Quota(deserved=whole))
    most = sum(float("inf") if bound is None else bound for bound in bounds)
    assert (misfit(department, projects(bounds)) is None) == (whole is None or most <= whole)


def test_a_limit_bounds_where_nothing_is_deserved() -> None:
    assert (Quota().most, Quota(limit=4).most, Quota(2, 4).most, Quota(0, 4).most) == (None, 4, 2, 0)
