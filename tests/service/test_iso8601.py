"""Durations and dates as they are on the wire."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbmle.service.iso8601 import format_date, format_duration, parse_date, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT5S", 5),
        ("PT10M", 600),
        ("PT4H", 14_400),
        ("P1D", 86_400),
        ("P2D", 172_800),
        ("P7D", 604_800),
        ("P1DT1H1M1S", 90_061),
        ("PT0.5S", 0.5),
        ("PT0S", 0),
    ],
)
def test_durations_are_written_as_personalizer_writes_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)
    assert format_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("P0D", 0),  # as isodate writes nothing
        ("PT600S", 600),
        ("PT90M", 5400),
        ("PT24H", 86_400),
        ("P1W", 604_800),
        ("P1M", 30 * 86_400),
        ("P1Y", 365 * 86_400),
        ("PT0.0000001S", 0),
    ],
)
def test_durations_are_read_in_all_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "10M",
        "PT10",
        "PT1.5M",
        "-PT5S",
        "PT5s",
        " PT5S",
        "PT5S\n",
        "PT٥S",
        "1:00",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


def test_a_duration_beyond_all_clocks_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        parse_duration("P999999999Y")


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10_000)))
def test_every_duration_comes_back(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        assert parse_duration(text) >= timedelta(0)
    except ValueError as error:
        assert "duration" in str(error)


@pytest.mark.parametrize(
    "text",
    ["2019-01-19T00:00:00Z", "2019-01-19", "2019-01-19T00:00:00.000Z", "2019-01-19T01:00:00+01:00"],
)
def test_dates_are_read_as_clients_send_them(text: str) -> None:
    assert parse_date(text) == datetime(2019, 1, 19, tzinfo=UTC)
    assert format_date(parse_date(text)) == "2019-01-19T00:00:00Z"


@pytest.mark.parametrize("text", ["", "soon", "0001-01-01T00:00:00+10:00", "2019-13-01"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a date"):
        parse_date(text)
