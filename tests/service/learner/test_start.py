"""What a log begins with, and what a later start may change."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rbmle.core.errors import SettingError
from rbmle.policies.registry import policy_with
from rbmle.service.learner.start import Start, begin, describe_settings
from rbmle.service.log import open_log
from rbmle.service.model.settings import bound_memory, default_policy, settings_of
from rbmle.service.settings import Aggregation, ServeSettings, ServiceConfiguration, read_settings
from tests.services import PATIENCE, Service, busy, learned, running, small_start, wait_until


def test_another_model_in_an_old_log_has_to_be_asked_for(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        busy(service, 8)
        learned(service)
    with pytest.raises(SettingError, match="--new-model"):
        Service(small_start(tmp_path, "neural-ucb"), notify=print)
    other = small_start(tmp_path, "neural-ucb", is_new_model=True)
    with running(other) as service:
        assert type(service.model.policy).__name__ == "NeuralUCB"
        learned(service)
        assert service.status().observations == 0
        busy(service, 8)
        learned(service)
        assert service.status().observations == 6


def test_the_configuration_of_a_start_is_for_the_first_one(tmp_path: Path) -> None:
    first = ServiceConfiguration(exploration=0.1, reward_wait_time=timedelta(minutes=1))
    start = small_start(tmp_path, configuration=first, configured=frozenset({"exploration"}))
    lines: list[str] = []
    with Service(start, notify=lines.append) as service:
        wait_until(lambda: service.problem is None)
        assert service.decider.configuration == first
        changed = replace(first, exploration=0.4, default_reward=-1.0)
        service.configure(changed).result(PATIENCE)
    assert lines == []
    with Service(start, notify=lines.append) as service:
        wait_until(lambda: service.problem is None)
        assert service.decider.configuration == changed
    (line,) = lines
    assert "`exploration` is 0.4 there, and 0.1 in the file" in line
    assert "PATCH /v1/configuration" in line
    assert "default_reward" not in line  # the file does not have it
    with Service(replace(start, configuration=changed), notify=lines.append):
        assert len(lines) == 1


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        (ServiceConfiguration(default_reward=-0.5), "`default_reward` is -0.5, but .* from 0 to 1"),
        (ServiceConfiguration(reward_aggregation=Aggregation.SUM), "'sum', but .* use 'earliest'"),
    ],
)
def test_rewards_that_the_likelihood_excludes_cannot_be_configured(
    tmp_path: Path, configuration: ServiceConfiguration, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        Service(small_start(tmp_path, "neu-fast-cb", configuration=configuration), notify=print)
    with running(small_start(tmp_path, "neu-fast-cb")) as service:
        with pytest.raises(SettingError, match=message):
            service.configure(configuration)
        default = ServiceConfiguration(default_reward=0.5)
        service.configure(default).result(PATIENCE)
        busy(service, 4)
        learned(service)


def test_a_start_tells_which_settings_are_not_the_defaults(tmp_path: Path) -> None:
    for given, line in (
        ({}, "The policy is neural-rbmle-pc; settings that are not the defaults: none"),
        (
            {
                "policy_settings": "model.alarm=0",
                "features": {"bits": 12},
                "configuration": {"settle": "delayed"},
            },
            "The policy is neural-rbmle-pc; settings that are not the defaults: model.alarm=0.0 "
            "features.bits=12 configuration.settle=delayed",
        ),
    ):
        log = open_log("memory:")
        begin(log, Start.of(read_settings(None, given)), notify=print)
        assert describe_settings(settings_of(log)) == [line]


def test_a_model_that_has_the_given_settings_goes_on_whatever_the_others_are() -> None:
    log, lines = open_log("memory:"), list[str]()
    asked = Start.of(ServeSettings(policy_settings="model.alarm=0"))
    # As before settings were added to the tuned ones.
    before = bound_memory(policy_with("neural-rbmle-pc", "model.alarm=0"))
    begin(log, replace(asked, policy=before), lines.append)
    model = settings_of(log).model
    assert model is not None
    assert model.policy == before
    assert lines == []
    begin(log, asked, lines.append)
    assert settings_of(log).model == model
    (line,) = lines
    assert "model=Regression(network=Network(width=100" in line
    assert "would be neural-rbmle-pc model.alarm=0.0; --new-model begins it" in line
    with pytest.raises(SettingError, match="--new-model"):
        begin(log, Start.of(ServeSettings(policy_settings="model.alarm=20")), lines.append)
    begin(log, replace(asked, is_new_model=True), lines.append)
    model = settings_of(log).model
    assert model is not None
    assert model.policy == asked.policy != default_policy()
