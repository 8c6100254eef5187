"""Settings: the file, options before it, ranges, JSON, and what may change at once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rbmle.core.errors import SettingError
from rbmle.service.http.server import Binding
from rbmle.service.learner.start import Start
from rbmle.service.settings import (
    Aggregation,
    ConfigurationError,
    LearningMode,
    ServiceConfiguration,
    Settle,
    read_settings,
)

FILE = """
port = 9000
policy = "neural-ucb"
policy_settings = "exploration=0.3"
fits_per_second = 50
[features]
bits = 10
interactions = [["user", "article"]]
[configuration]
exploration = 0.1
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "serve.toml"
    path.write_text(FILE)
    return path


def test_a_file_says_all_and_flags_stand_before_it(path: Path) -> None:
    settings = read_settings(path, {"port": 9001, "host": None})
    start = Start.of(settings)
    assert (settings.host, settings.port) == ("127.0.0.1", 9001)
    assert "exploration=0.3" in repr(start.policy)
    assert start.featuriser is not None
    assert (start.featuriser.bits, start.featuriser.interactions) == (10, (("user", "article"),))
    assert start.configuration is not None
    assert start.configuration.exploration == 0.1
    assert start.fits_per_second == 50


def test_without_a_file_the_model_is_that_of_the_log() -> None:
    start = Start.of(read_settings(None, {}))
    assert (start.policy, start.featuriser, start.seed, start.fits_per_second) == (None,) * 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "unknown field `prot`"),
        ("port = 'a'", "at `\\$.port`"),
        ("port = ", "is not valid TOML"),
        ("[configuration]\nexploration = 2", "configuration.exploration"),
        ("policy = 'best'", "best"),
        ("work_per_second = -1", "`work_per_second` must be 0 or more, got -1"),
        ("host = '0.0.0.0'\nno_keys = true", "keys are required"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(text)
    with pytest.raises(SettingError, match=message):
        _read(path)


def _read(path: Path) -> None:
    settings = read_settings(path, {})
    Start.of(settings)
    Binding.of(settings)
    settings.budget()


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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("default_reward", -0.5),
        ("settle", "on-reward"),
        ("reward_aggregation", "sum"),
        ("highest_reward", 0.0),
    ],
)
def test_conservative_mode_refuses_what_would_break_its_promise(field: str, value: Any) -> None:
    ServiceConfiguration.from_json({field: value})
    with pytest.raises(ConfigurationError, match="conservative mode cannot work") as raised:
        ServiceConfiguration.from_json({field: value, "conservative": 0.1})
    assert raised.value.field == field
