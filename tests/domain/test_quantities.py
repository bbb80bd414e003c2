"""Sizes and durations: what people write, what is refused, and that nothing is lost on the way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard.domain.errors import Invalid
from torchyard.domain.quantities import parse_duration, parse_size, show_duration, show_size

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10TB", 10 * 10**12),
        ("10T", 10 * 10**12),
        ("10Ti", 10 * 2**40),
        ("10TiB", 10 * 2**40),
        ("10 GB", 10**10),
        ("500mb", 5 * 10**8),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("+5", 5),
        (".5Gi", 2**29),
        ("0.1", 1),
        ("0", 0),
        ("9223372036854775807", 2**63 - 1),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "ten",
        "",
        " ",
        "-5",
        "-1Gi",
        "100m",
        "1e",
        "10i",
        "10iB",
        "Ti",
        "1.2.3",
        "1_000",
        "١٠",
        "inf",
        "nan",
        "10TT",
        "10 Ti B",
    ],
)
def test_no_sizes(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_size(text)
    assert "10Ti" in (caught.value.details or "")


@pytest.mark.parametrize("text", ["9" * 39, "8Ei", "1e99", "9223372036854775808"])
def test_too_large_sizes(text: str) -> None:
    with pytest.raises(Invalid, match="larger than any storage"):
        parse_size(text)


def test_a_long_text_is_not_repeated() -> None:
    for parse in (parse_size, parse_duration):
        with pytest.raises(Invalid) as caught:
            parse("9" * 10_000)
        assert len(caught.value.message) < 100


@given(st.integers(0, 9999), st.sampled_from(sorted(UNITS)), st.sampled_from(["", "B"]))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str, b: str) -> None:
    assert parse_size(f"{number}{unit}{b}") == number * UNITS[unit]


@given(st.integers(0, 2**60))
def test_a_shown_size_can_be_read_back(size: int) -> None:
    assert parse_size(show_size(size)) == pytest.approx(size, rel=0.06, abs=1)


@given(st.text(max_size=60))
def test_any_text_is_a_size_or_one_clear_error(text: str) -> None:
    try:
        assert 0 <= parse_size(text) < 2**63
    except Invalid as error:
        assert "\n" not in error.message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("2d", 172800),
        ("0.5h", 1800),
        ("100ms", 0.1),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "-5s", "1h30", "5 weeks", "1e3", "inf", "s", "5M"])
def test_no_durations(text: str) -> None:
    with pytest.raises(Invalid, match="is not a duration"):
        parse_duration(text)


def test_a_duration_has_an_end() -> None:
    with pytest.raises(Invalid, match="ten years"):
        parse_duration("9999999d")


@given(st.integers(0, 10**8))
def test_a_shown_duration_can_be_read_back(seconds: int) -> None:
    unit = 86400 if seconds >= 86400 else 3600 if seconds >= 3600 else 60
    assert abs(parse_duration(show_duration(seconds)) - seconds) < unit
