"""Programs that show how it is used; each runs as it stands."""

import subprocess
import sys
from pathlib import Path

import pytest

ELSEWHERE = ("coba_side_by_side",)  # needs other libraries: tests/interop/test_coba.py
EXAMPLES = sorted(
    path
    for path in (Path(__file__).parents[1] / "examples").glob("*.py")
    if path.stem not in ELSEWHERE
)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_best_policy_of_the_news_shows_readers_what_they_like(tmp_path: Path) -> None:
    path = next(path for path in EXAMPLES if path.stem == "news")
    text = subprocess.check_output([sys.executable, str(path)], cwd=tmp_path, text=True)
    assert "shows a reader of science science-" in text
