"""What all adapters have in common: a missing library is named, and the docs show what works."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rbmle.interop as adapters
from rbmle.core.errors import SettingError
from rbmle.interop.needs import is_there

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "other-libraries.md"
EXAMPLES = re.findall(r"```py\n# Needs (\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("name", adapters.__all__)
def test_a_missing_library_is_named_with_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rbmle.interop.needs.find_spec", lambda _: None)
    with pytest.raises(SettingError, match=rf"{name} needs \w+.*pip install 'rbmle\[\w+\]'"):
        getattr(adapters, name)


def test_an_unknown_adapter_is_refused_with_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="has no 'Nothing'; it has BanditClassifier"):
        adapters.Nothing  # noqa: B018


def test_every_adapter_is_in_the_docs() -> None:
    page = PAGE.read_text()
    assert [name for name in adapters.__all__ if f"`{name}`" not in page] == []


def test_no_example_of_the_docs_is_left_out() -> None:
    assert len(EXAMPLES) == PAGE.read_text().count("```py\n")


@pytest.mark.parametrize(("package", "code"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_the_example_of_the_docs_runs(package: str, code: str, tmp_path: Path) -> None:
    if not is_there(package):
        pytest.skip(f"{package} is not installed: pip install 'rbmle[{package}]'")
    path = tmp_path / "example.py"
    path.write_text(code)
    assert subprocess.run([sys.executable, str(path)], cwd=tmp_path, check=False).returncode == 0
