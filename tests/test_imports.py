"""Programs beside the package, the suites that take too long for each run, and where tests are."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "tests/fuzz", "tests/reliability", "tests/sdk")
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if path.name not in {"__main__.py", "__init__.py"} and not path.name.startswith("test_")
)
TEXTS = [
    ROOT / "Makefile",
    *(
        path
        for folder in ("src", "tests", "benchmarks", "docs", "tools", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md", ".toml"} and "node_modules" not in path.parts
    ),
]
ELSEWHERE = {"testing", "theory", "vendored"}  # contract, equations; and what has no Python
RUN_AS_MODULE = re.compile(r"""-m["']?,?\s+["']?((?:rbmle|benchmarks|tests)(?:\.\w+)*)""")


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_no_quick_test_runs_can_be_imported(name: str) -> None:
    if name == "tests.fuzz.hooks":
        pytest.importorskip("schemathesis", reason="`make fuzz` installs schemathesis")
    if name == "benchmarks.coba_side_by_side":
        pytest.importorskip("coba", reason="`make interop` installs coba")
    assert importlib.import_module(name).__name__ == name


def test_every_module_that_is_run_with_m_exists() -> None:
    run = {
        (path.relative_to(ROOT), name)
        for path in TEXTS
        for name in RUN_AS_MODULE.findall(path.read_text(encoding="utf-8"))
    }
    missing = [(path, name) for path, name in run if importlib.util.find_spec(name) is None]
    assert len(run) > 30
    assert missing == []


def test_every_package_has_a_folder_of_tests() -> None:
    packages = {path.name for path in (ROOT / "src" / "rbmle").iterdir() if path.is_dir()}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    assert packages - folders - {"__pycache__"} == ELSEWHERE
