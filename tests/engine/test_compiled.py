"""The first decision on a machine: what is compiled, kept, shared and said."""

import ctypes
import importlib
import os
import pkgutil
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import rbmle
import rbmle.engine
from rbmle.classical.simulation import warm_up as warm_up_classical
from rbmle.cli import app
from rbmle.control.simulation import warm_up as warm_up_control
from rbmle.engine.compiled import Compiling, KernelCache, digest, is_writable, notice
from rbmle.evaluation.evaluation import warm_up as warm_up_evaluation
from rbmle.policies import POLICIES
from rbmle.policies.warming import encode, play, variants
from rbmle.service.model.settings import ModelSettings

SOURCE = Path(rbmle.__file__).parents[1]
NOBODY = 65534  # the user of that name
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2  # of Linux
DECIDE = """
import time, rbmle
bandit = rbmle.Bandit(rbmle.LinUCB(), arms=["tea", "coffee"], features=2, seed=0)
decision = bandit.decide([1.0, 2.0])
bandit.learn(decision, reward=1.0)
from rbmle.engine.compiled import seconds_compiled
print(decision.arm, seconds_compiled() > 0, time.process_time())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that other users can read, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="rbmle-cache-"))
    path.chmod(0o755)
    yield path
    for inside in (path, *path.rglob("*")):
        inside.chmod(inside.stat().st_mode | stat.S_IWUSR)
    shutil.rmtree(path)


def test_a_kernel_is_compiled_once_which_is_said_once(folder: Path) -> None:
    first, second = _decide(folder), _decide(folder)
    assert first.stderr.count("\n") == 1
    assert f"compiling kernels for this machine, which takes some seconds; this happens once, they are kept in {folder}" in first.stderr  # noqa: E501  # fmt: skip
    assert first.stdout.split()[:2] == ["coffee", "True"]
    assert second.stdout.split()[:2] == ["coffee", "False"]
    assert second.stderr == ""


def test_nothing_is_said_to_those_who_want_quiet(folder: Path) -> None:
    done = _decide(folder, RBMLE_QUIET="1")
    assert done.stdout.split()[1] == "True"
    assert done.stderr == ""


def test_a_cache_that_is_read_only_is_used(folder: Path) -> None:
    _decide(folder)
    for inside in (folder, *folder.rglob("*")):
        inside.chmod(inside.stat().st_mode & ~0o222)
        if os.geteuid() == 0:
            os.chown(inside, NOBODY, NOBODY)
    before = _files(folder)
    done = subprocess.run(**_call(folder), preexec_fn=_bow_to_permissions, check=True)
    arm, is_compiled, seconds = done.stdout.split()
    assert (arm, is_compiled, done.stderr) == ("coffee", "False", "")
    assert float(seconds) < 2
    assert _files(folder) == before


def test_without_a_writable_cache_one_line_says_what_to_do() -> None:
    done = _decide(Path("/proc/rbmle"))  # nobody can make a folder there, not even root
    assert done.stdout.split()[:2] == ["coffee", "True"]
    assert done.stderr.count("\n") == 1
    assert "kernels cannot be cached" in done.stderr
    assert "/proc/rbmle" in done.stderr
    assert "set RBMLE_CACHE to a writable folder" in done.stderr


def test_a_cache_outlives_another_installation_of_the_same_source(
    folder: Path, tmp_path: Path
) -> None:
    _decide(folder)
    data = shutil.ignore_patterns("*.parquet", "*.csv*", "__pycache__")
    shutil.copytree(SOURCE / "rbmle", tmp_path / "rbmle", ignore=data)
    done = _decide(folder, PYTHONPATH=str(tmp_path))
    assert done.stdout.split()[1] == "False"


def test_kernels_that_were_installed_with_the_package_are_used(
    folder: Path, tmp_path: Path
) -> None:
    data = shutil.ignore_patterns("*.parquet", "*.csv*", "__pycache__")
    shutil.copytree(SOURCE / "rbmle", tmp_path / "rbmle", ignore=data)
    _decide(tmp_path / "rbmle" / "engine" / "kernels")
    done = _decide(folder, PYTHONPATH=str(tmp_path))
    assert done.stdout.split()[:2] == ["coffee", "False"]
    assert _files(folder) == {}


def test_processes_that_compile_at_once_leave_whole_kernels(folder: Path) -> None:
    running = [subprocess.Popen(**_call(folder)) for _ in range(3)]
    assert [process.communicate()[0].split()[0] for process in running] == ["coffee"] * 3
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} == {".kernel"}
    assert _decide(folder).stdout.split()[1] == "False"


def test_a_kernel_that_is_not_whole_is_compiled_again(folder: Path) -> None:
    _decide(folder)
    whole = _files(folder)
    for path in folder.rglob("*.kernel"):
        path.write_bytes(path.read_bytes()[:-100])
    assert _decide(folder).stdout.split()[:2] == ["coffee", "True"]
    assert set(_files(folder)) == set(whole)
    assert _decide(folder).stdout.split()[1] == "False"


def test_the_kernel_of_a_users_function_is_known_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    stamps = []
    for text in ("def mean(z):\n    return z\n", "def mean(z):\n    return 2.0 * z\n"):
        path.write_text(text)
        names: dict[str, Any] = {}
        exec(compile(text, str(path), "exec"), names)
        stamps.append(KernelCache(names["mean"]).stamp)
    assert stamps[0] != stamps[1]
    exec(compile(text, "<stdin>", "exec"), names)
    assert KernelCache(names["mean"]).cache_path is None


def test_names_of_kernels_tell_parts_apart() -> None:
    assert digest(b"a", b"bc") != digest(b"ab", b"c")


def test_a_quick_compilation_is_not_mentioned(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    compiling = Compiling(is_quiet=False)
    for _ in range(3):
        compiling.begin(tmp_path)
        compiling.begin(tmp_path)  # what one kernel calls
        compiling.end()
        compiling.end()
    assert 0 < compiling.seconds < 0.5
    assert capfd.readouterr().err == ""


def test_a_missing_folder_is_writable_if_its_parent_is(tmp_path: Path) -> None:
    assert is_writable(tmp_path / "a" / "b")
    assert not is_writable(Path("/proc/a/b"))
    assert "there is no home folder" in notice(None)


def test_warm_compiles_what_the_named_policies_need(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = [
        sys.executable,
        "-c",
        "from rbmle.cli import main; main()",
        "warm",
        "--policy",
        "lin-ucb",
    ]
    done = subprocess.run(**_call(folder) | {"args": warm}, check=True)
    assert "lin-ucb" in done.stdout
    assert "4 kernels" in done.stdout
    assert str(folder) in done.stdout
    assert done.stderr == ""
    assert _decide(folder).stdout.split()[1] == "False"


def test_warm_refuses_what_it_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(app, ["warm", "--policy", "lin-ubc"])
    assert "no policy 'lin-ubc'" in str(done.exception)
    refused = [sys.executable, "-c", "from rbmle.cli import main; main()", "warm"]
    told = subprocess.run(**_call(Path("/proc/rbmle")) | {"args": refused}, check=False)
    assert told.returncode == 2
    assert "set RBMLE_CACHE to a writable folder" in told.stderr


@pytest.mark.slow
def test_warm_leaves_no_kernel_out() -> None:
    for kind in POLICIES.values():
        for policy in variants(kind()):
            play(policy)
    encode()
    warm_up_classical()
    warm_up_control()
    warm_up_evaluation()
    ModelSettings().warm_up()
    kernels = {
        f"{module.name}.{name}": value
        for module in pkgutil.iter_modules(rbmle.engine.__path__)
        for name, value in vars(importlib.import_module(f"rbmle.engine.{module.name}")).items()
        if isinstance(getattr(value, "_cache", None), KernelCache)
    }
    assert len(kernels) > 20
    assert [name for name, value in kernels.items() if not value.signatures] == []


def _bow_to_permissions() -> None:
    """Let root, who may read and write what is forbidden, be as other users are."""
    if os.geteuid() == 0:
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0


def _call(folder: Path, **environment: str) -> dict[str, Any]:
    """Return how to start a process that decides and learns, with a cache of its own."""
    kept = {key: value for key, value in os.environ.items() if key != "RBMLE_QUIET"}
    given = {"RBMLE_CACHE": str(folder), "PYTHONPATH": str(SOURCE)} | environment
    return {
        "args": [sys.executable, "-c", DECIDE],
        "env": kept | given,
        "cwd": "/",
        "text": True,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }


def _decide(folder: Path, **environment: str) -> Any:
    return subprocess.run(**_call(folder, **environment), check=True)


def _files(folder: Path) -> dict[str, int]:
    """Return what there is, and when it was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.kernel")}
