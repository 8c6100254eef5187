"""How a service is run: a file, flags before it, and what cannot be."""

from dataclasses import replace
from pathlib import Path

import pytest

from rbmle.core.errors import SettingError
from rbmle.policies.specification import policy_with
from rbmle.service.learning.model import bounded, default_policy
from rbmle.service.learning.start import begin, settings_of
from rbmle.service.log import open_log
from rbmle.service.settings import Settings, in_force, read_settings

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
    start = settings.start()
    assert (settings.host, settings.port) == ("127.0.0.1", 9001)
    assert "exploration=0.3" in repr(start.policy)
    assert start.featuriser is not None
    assert (start.featuriser.bits, start.featuriser.interactions) == (10, (("user", "article"),))
    assert start.configuration is not None
    assert start.configuration.exploration == 0.1
    assert start.fits_per_second == 50


def test_without_a_file_the_model_is_that_of_the_log() -> None:
    start = read_settings(None, {}).start()
    assert (start.policy, start.featuriser, start.seed, start.fits_per_second) == (None,) * 4


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
        begin(log, read_settings(None, given).start(), notify=print)
        assert in_force(settings_of(log)) == [line]


def test_a_model_that_has_the_given_settings_goes_on_whatever_the_others_are() -> None:
    log, lines = open_log("memory:"), list[str]()
    asked = Settings(policy_settings="model.alarm=0").start()
    # As before settings were added to the tuned ones.
    before = bounded(policy_with("neural-rbmle-pc", "model.alarm=0"))
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
        begin(log, Settings(policy_settings="model.alarm=20").start(), lines.append)
    begin(log, replace(asked, is_new_model=True), lines.append)
    model = settings_of(log).model
    assert model is not None
    assert model.policy == asked.policy != default_policy()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "unknown field `prot`"),
        ("port = 'a'", "at `\\$.port`"),
        ("port = ", "is not valid TOML"),
        ("[configuration]\nexploration = 2", "configuration.exploration"),
        ("policy = 'best'", "best"),
        ("work_per_second = -1", "`work_per_second` must be 0 or more, got -1"),
        ("host = '0.0.0.0'\nno_keys = true", "keys are needed"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(text)
    with pytest.raises(SettingError, match=message):
        _read(path)


def _read(path: Path) -> None:
    settings = read_settings(path, {})
    settings.start()
    settings.binding()
    settings.budget()
