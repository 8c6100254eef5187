"""The configuration of the service: durations as on the wire, ranges, and what may change at once."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbmle.service.configuration import (
    SETTINGS,
    Aggregation,
    LearningMode,
    ServiceConfiguration,
    Settle,
)
from rbmle.service.iso8601 import format_date, format_duration, parse_date, parse_duration
from rbmle.service.setting import NUMBER, ConfigurationError


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


def test_a_configuration_comes_back_from_json() -> None:
    configuration = ServiceConfiguration(
        reward_wait_time=timedelta(hours=4),
        default_reward=-0.5,
        reward_aggregation=Aggregation.SUM,
        exploration=0.05,
        learning_mode=LearningMode.APPRENTICE,
        log_retention_days=90,
        model_export_frequency=timedelta(seconds=30),
        model_retrain_days=7,
        is_auto_optimization_enabled=True,
        auto_optimization_frequency=timedelta(days=7),
        auto_optimization_start_date=datetime(2019, 1, 19, tzinfo=UTC),
        settle=Settle.ON_REWARD,
    )
    stored = msgspec.json.decode(msgspec.json.encode(configuration.to_json()))
    assert ServiceConfiguration.from_json(stored) == configuration
    assert stored["reward_wait_time"] == "PT4H"
    assert configuration.wait_milliseconds == 14_400_000


def test_json_keeps_defaults_for_what_it_does_not_say() -> None:
    assert ServiceConfiguration.from_json({}) == ServiceConfiguration()
    assert (
        ServiceConfiguration.from_json(ServiceConfiguration().to_json()) == ServiceConfiguration()
    )


def test_a_record_from_before_there_was_settle_keeps_its_meaning() -> None:
    assert ServiceConfiguration.from_record({}).settle is Settle.ON_REWARD
    written = ServiceConfiguration().to_json()
    assert written["settle"] == "deadline"
    assert ServiceConfiguration.from_record(written) == ServiceConfiguration()


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"reward_wait_time": "PT4S"}, "reward_wait_time", "from PT5S to P2D"),
        ({"reward_wait_time": "P2DT1S"}, "reward_wait_time", "from PT5S to P2D"),
        ({"reward_wait_time": "ten"}, "reward_wait_time", "not a duration"),
        ({"default_reward": 1.5}, "default_reward", "from -1 to 1"),
        ({"default_reward": float("nan")}, "default_reward", "from -1 to 1"),
        ({"default_reward": "1"}, "default_reward", "float"),
        ({"reward_aggregation": "average"}, "reward_aggregation", "earliest, sum"),
        ({"settle": "at once"}, "settle", "one of deadline, on-reward, delayed"),
        ({"exploration": 1.01}, "exploration", "from 0 to 1"),
        ({"learning_mode": "online"}, "learning_mode", "Online, Apprentice, LoggingOnly"),
        ({"log_retention_days": 0}, "log_retention_days", "-1"),
        ({"log_retention_days": 1}, "log_retention_days", "which is 2"),
        ({"log_retention_days": 2**31}, "log_retention_days", "-1"),
        ({"model_export_frequency": "PT0S"}, "model_export_frequency", "longer than nothing"),
        ({"model_retrain_days": 8, "log_retention_days": 7}, "model_retrain_days", "from 0 to"),
        ({"auto_optimization_frequency": "PT1H"}, "auto_optimization_frequency", "a day or longer"),
        ({"auto_optimization_start_date": "soon"}, "auto_optimization_start_date", "not a date"),
        ({"is_auto_optimization_enabled": 1}, "is_auto_optimization_enabled", "bool"),
    ],
)
def test_a_setting_out_of_its_range_is_named(
    given: dict[str, object], field: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        ServiceConfiguration.from_json(given)
    assert caught.value.field == field


def test_a_setting_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown field `epsilon`"):
        ServiceConfiguration.from_json({"epsilon": 0.1})


def test_rewards_and_the_mode_do_not_change_together() -> None:
    online = ServiceConfiguration()
    watching = replace(online, learning_mode=LearningMode.APPRENTICE)
    online.check_change(watching)
    online.check_change(replace(online, default_reward=0.5))
    online.check_change(
        replace(online, learning_mode=LearningMode.LOGGING_ONLY, default_reward=0.5)
    )
    for change in (
        {"default_reward": 0.5},
        {"reward_wait_time": timedelta(hours=1)},
        {"reward_aggregation": Aggregation.SUM},
        {"settle": Settle.ON_REWARD},
    ):
        with pytest.raises(ConfigurationError, match="second call") as caught:
            online.check_change(replace(watching, **change))
        assert caught.value.field == "learning_mode"
        with pytest.raises(ConfigurationError, match="second call"):
            watching.check_change(replace(online, **change))


def test_the_documentation_has_the_defaults() -> None:
    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    text = text[text.index("\n## Configuration\n") : text.index("\nOptions are given")]
    documented = dict(re.findall(r"^\| `([a-z_]+)` \| `?([^`|]+?)`? \|", text, re.MULTILINE))
    defaults = ServiceConfiguration().to_json()
    found = {name: value for name, value in documented.items() if name in defaults}
    assert "exploration" in found
    for name, value in found.items():
        assert defaults[name] == (float(value) if SETTINGS[name].kind is NUMBER else value)
