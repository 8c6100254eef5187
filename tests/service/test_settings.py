"""How a service is run: a file, flags before it, and what cannot be."""

from pathlib import Path

import pytest

from rbmle.core.errors import SettingError
from rbmle.service.settings import read_settings

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
