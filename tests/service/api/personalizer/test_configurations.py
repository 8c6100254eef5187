"""What an operator reads and writes in Personalizer's format."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rbmle.service.api.personalizer.bodies import PolicyBody
from rbmle.service.api.personalizer.dialect import (
    decode_configuration,
    decode_policy,
    encode_configuration,
    encode_log_properties,
    encode_model_properties,
)
from rbmle.service.api.personalizer.errors import Version
from rbmle.service.settings import Aggregation, LearningMode, ServiceConfiguration, Settle
from tests.service.api.samples import DAY, NOON, refusal

CONFIGURATION = (
    b'{"rewardAggregation": "sum", "modelExportFrequency": "PT3M", "defaultReward": 1.0, '
    b'"modelRetrainDays": 2, "rewardWaitTime": "PT4H", "explorationPercentage": 0.3, '
    b'"logRetentionDays": -1, "learningMode": "Online"}'
)


def test_a_configuration_is_read_and_written_as_personalizer_does() -> None:
    configuration = decode_configuration(CONFIGURATION, ServiceConfiguration())
    assert configuration == ServiceConfiguration(
        reward_wait_time=timedelta(hours=4),
        default_reward=1.0,
        reward_aggregation=Aggregation.SUM,
        exploration=0.3,
        model_export_frequency=timedelta(minutes=3),
        model_retrain_days=2,
    )
    written = encode_configuration(configuration, Version.V2022)
    assert msgspec.json.decode(written) == msgspec.json.decode(CONFIGURATION) | {
        "logMirrorEnabled": False,
        "isAutoOptimizationEnabled": False,
    }


@pytest.mark.parametrize("settle", Settle)
def test_personalizer_configurations_keep_the_settle_setting(settle: Settle) -> None:
    before = ServiceConfiguration(settle=settle)
    assert decode_configuration(CONFIGURATION, before).settle is settle
    assert b"settle" not in encode_configuration(before, Version.V2022)


@pytest.mark.parametrize("version", Version)
def test_a_configuration_can_be_sent_back_as_it_came(version: Version) -> None:
    configuration = ServiceConfiguration(
        is_auto_optimization_enabled=True,
        auto_optimization_frequency=timedelta(days=7),
        auto_optimization_start_date=DAY,
        learning_mode=LearningMode.LOGGING_ONLY,
        model_retrain_days=3,
    )
    body = encode_configuration(configuration, version)
    assert b'"autoOptimizationFrequency":"P7D"' in body
    assert (b"modelRetrainDays" in body) == (version is Version.V2022)
    edited = msgspec.json.decode(body) | {"lastConfigurationEditDate": "2026-01-01T12:00:00Z"}
    for sent in (body, msgspec.json.encode(edited)):
        assert decode_configuration(sent, configuration) == configuration


@pytest.mark.parametrize(
    ("change", "code", "target"),
    [
        ({"rewardWaitTime": "PT1S"}, "InvalidRewardWaitTime", "rewardWaitTime"),
        ({"rewardWaitTime": 600}, "InvalidServiceConfiguration", "rewardWaitTime"),
        ({"logRetentionDays": 0}, "InvalidLogRetentionDays", "logRetentionDays"),
        ({"modelRetrainDays": -1}, "InvalidModelRetrainDays", "modelRetrainDays"),
        ({"defaultReward": 2}, "InvalidServiceConfiguration", "defaultReward"),
        ({"explorationPercentage": 20}, "InvalidServiceConfiguration", "explorationPercentage"),
        ({"rewardAggregation": "average"}, "InvalidServiceConfiguration", "rewardAggregation"),
        ({"learningMode": "Offline"}, "InvalidServiceConfiguration", "learningMode"),
        ({"logMirrorEnabled": True}, "InvalidServiceConfiguration", "logMirrorEnabled"),
        (
            {"autoOptimizationFrequency": "PT1H"},
            "InvalidServiceConfiguration",
            "autoOptimizationFrequency",
        ),
        ({"learningMode": "Apprentice"}, "InvalidLearningModeServiceConfiguration", "learningMode"),
    ],
)
def test_a_setting_out_of_range_has_its_error_code(
    change: dict[str, Any], code: str, target: str
) -> None:
    body = msgspec.json.encode(msgspec.json.decode(CONFIGURATION) | change)
    refused = refusal(lambda: decode_configuration(body, ServiceConfiguration()))
    assert (refused.status, refused.code, refused.target) == (400, code, target)


def test_learning_settings_and_properties_round_trip() -> None:
    policy = b'{"name":"app1","arguments":"--cb_explore_adf --epsilon 0.2"}'
    settings = PolicyBody(name="app1", arguments="--cb_explore_adf --epsilon 0.2")
    assert decode_policy(policy) == settings
    assert msgspec.json.encode(settings) == policy
    refused = refusal(lambda: decode_policy(b'{"name": "app1"}'))
    assert (refused.code, refused.target) == ("InvalidPolicyContract", "arguments")
    assert encode_model_properties(DAY, NOON) == (
        b'{"creationTime":"2019-01-19T00:00:00Z","lastModifiedTime":"2026-01-01T12:00:00Z"}'
    )
    assert encode_log_properties(DAY, NOON) == (
        b'{"dateRange":{"from":"2019-01-19T00:00:00Z","to":"2026-01-01T12:00:00Z"}}'
    )
