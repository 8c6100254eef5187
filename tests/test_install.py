"""The library without extras, and the command line that names the extra it needs."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rbmle.cli.extras import EXTRAS

ROOT = Path(__file__).parents[1]
WITHOUT = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        missing = name.partition(".")[0] in {packages!r}
        return None if missing else self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""
EVERY_POLICY = """
import numpy as np
from rbmle import Bandit, POLICIES
for name, kind in POLICIES.items():
    bandit = Bandit(kind(), arms=["a", "b"], features=2, seed=0)
    for t in range(5):
        bandit.learn(bandit.decide([t, 1.0]), reward=float(t % 2))
    bandit.save(f"{name}.rbmle")
    assert Bandit.load(f"{name}.rbmle").decide([1.0, 1.0]).arm == bandit.decide([1.0, 1.0]).arm
"""
COMMAND = "from rbmle.cli import main; main()"


def test_every_policy_decides_learns_and_is_saved_without_an_extra(tmp_path: Path) -> None:
    packages = sorted({package for brought in EXTRAS.values() for package in brought})
    found = python(packages, EVERY_POLICY, tmp_path)
    assert found.returncode == 0, found.stderr
    assert len(list(tmp_path.glob("*.rbmle"))) >= 11


@pytest.mark.parametrize(
    ("missing", "arguments", "message"),
    [
        (("typer", "rich"), ["policies"], "the command line is not installed"),
        (("pandas",), ["run", "--dataset", "magic"], "datasets need pandas"),
        (
            ("matplotlib", "joblib"),
            ["run", "--dataset", "cosine"],
            "this command needs joblib, matpl",
        ),
        (("apsw", "uvicorn"), ["serve"], "this command needs apsw, uvicorn"),
        (("msgspec",), ["key", "--data", "."], "msgspec is not installed"),
    ],
)
def test_a_command_names_the_extra_it_needs(
    missing: tuple[str, ...], arguments: list[str], message: str, tmp_path: Path
) -> None:
    """In one line, with the exit code 2."""
    found = python(missing, COMMAND, tmp_path, arguments)
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert found.stderr.startswith(f"rbmle: {message}")
    extra = "serve" if arguments[0] in ("serve", "key") else "experiments"
    assert f"pip install 'rbmle[{extra}]'" in found.stderr


def test_a_dataset_names_the_extra_it_needs(tmp_path: Path) -> None:
    found = python(["pandas"], "from rbmle.datasets import load; load('magic')", tmp_path)
    assert (
        "DatasetError: datasets need pandas; run pip install 'rbmle[experiments]'" in found.stderr
    )


def test_the_extras_are_those_of_the_package() -> None:
    """Named as they are imported there, and as they are installed in pyproject.toml."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {"scikit-learn": "sklearn", "prometheus-client": "prometheus_client"}
    for extra, packages in EXTRAS.items():
        listed = stated["optional-dependencies"][extra]
        installed = {line.partition(">")[0].partition("[")[0] for line in listed} - {"rbmle"}
        wanted = {names.get(name, name) for name in installed} - {"uvloop"}  # not on Windows
        assert wanted == set(packages)
        assert not wanted & {line.partition(">")[0] for line in stated["dependencies"]}


def python(
    missing: tuple[str, ...] | list[str],
    code: str,
    folder: Path,
    arguments: list[str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run code where some packages are not installed."""
    text = WITHOUT.format(packages=tuple(missing)) + code
    return subprocess.run(
        [sys.executable, "-c", text, *(arguments or [])],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
