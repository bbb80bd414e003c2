"""Query strings: as lenient as the clients that exist need it, and one clear error where not."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.domain.errors import Invalid
from torchyard.server.query import kept, parse_filters, parse_moment, parse_since

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_filters_come_joined_and_repeated() -> None:
    assert parse_filters(["name==x,phase!=Running", "createdAt>=2026-01-01T00:00:00Z"]) == (
        ("name", "==", "x"),
        ("phase", "!=", "Running"),
        ("createdAt", ">=", "2026-01-01T00:00:00Z"),
    )
    assert parse_filters(["name=@a==b"]) == (("name", "=@", "a==b"),)
    assert parse_filters([""]) == ()


@pytest.mark.parametrize("text", ["name", "name=x", "==x", "na me==x", "name>x"])
def test_what_is_no_filter_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Invalid, match="filterBy") as raised:
        parse_filters([text])
    assert "phase==Running" in (raised.value.details or "")


def test_too_many_filters_are_refused() -> None:
    with pytest.raises(Invalid, match="too many"):
        parse_filters([",".join(["name==x"] * 21)])


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T12:00:00",
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00+00:00",
        "2026-01-31T12:00:00 00:00",
        "2026-01-31T14:00:00+02:00",
        "2026-01-31 12:00:00",
        " 2026-01-31T12:00:00.000Z ",
    ],
)
def test_times_with_and_without_a_zone(text: str) -> None:
    assert parse_moment(text) == NOON


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "0001-01-01T00:00:00+12:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_moment(text)


def test_since_takes_seconds_durations_and_times() -> None:
    assert parse_since("90", NOON) == NOON - timedelta(seconds=90)
    assert parse_since("5m", NOON) == NOON - timedelta(minutes=5)
    assert parse_since("1h30m", NOON) == NOON - timedelta(minutes=90)
    assert parse_since("2026-01-31T11:00:00", NOON) == NOON - timedelta(hours=1)
    for text in ("soon", "999999999999d"):
        with pytest.raises(Invalid):
            parse_since(text, NOON)


@given(st.text(max_size=60))
def test_any_text_is_a_value_or_a_clear_error(text: str) -> None:
    for read in (lambda t: parse_since(t, NOON), parse_moment, lambda t: parse_filters([t])):
        try:
            read(text)
        except Invalid as error:
            assert error.message


VALUES = {"name": "ann", "at": datetime(2026, 1, 1, tzinfo=UTC), "local": True, "seen": None}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("name==ann", True),
        ("name!=ann", False),
        ("name=@n", True),
        ("name!@n", False),
        ("name=^a,name=$n", True),
        ("name>=anm", True),
        ("name<=anm", False),
        ("at==2026-01-01", True),
        ("at!=2026-01-01T00:00:00Z", False),
        ("at>=2026-01-01T01:00:00+02:00", True),
        ("at<=2025-12-31", False),
        ("local==TRUE", True),
        ("local==false", False),
        ("seen==", True),
        ("seen>=2000-01-01", False),
        ("seen<=2100-01-01", False),
        ("seen!=2100-01-01", True),
    ],
)
def test_a_filter_lets_through(text: str, passes: bool) -> None:
    assert kept(VALUES, parse_filters([text])) is passes


@given(st.text(), st.sampled_from(["name", "seen"]))
def test_one_filter_or_its_opposite_lets_through(wanted: str, field: str) -> None:
    for op, opposite in (("==", "!="), ("=@", "!@")):
        if field == "name" or op == "==":
            assert kept(VALUES, [(field, op, wanted)]) is not kept(VALUES, [(field, opposite, wanted)])


@pytest.mark.parametrize("text", ["age==1", "at=@2026", "at==soon"])
def test_a_filter_that_cannot_be_is_named(text: str) -> None:
    with pytest.raises(Invalid):
        kept(VALUES, parse_filters([text]))
