"""The package as a user meets it: light to import, whole, and its command line."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rbmle
from rbmle.cli import app

ROOT = Path(__file__).parents[1]


def test_every_public_name_is_there() -> None:
    for name in rbmle.__all__:
        assert getattr(rbmle, name) is not None
    assert set(rbmle.__all__) <= set(dir(rbmle))
    assert {"classical", "control", "theory"} <= set(rbmle.__all__)
    assert rbmle.theory.effective_dimension(np.eye(2), ridge=1.0) > 0
    with pytest.raises(AttributeError, match="no 'NeuralUBC'; it has"):
        rbmle.NeuralUBC  # noqa: B018  # the point of the test


def test_the_import_is_light() -> None:
    """No compiler, plots, tables or web at import, and under half a second, the interpreter included."""
    code = (
        "import sys, time; t = time.perf_counter(); import rbmle; "
        "took = time.perf_counter() - t; "
        "heavy = {'numba', 'matplotlib', 'pandas', 'sklearn', 'scipy', 'typer'} & set(sys.modules); "
        "print(took, sorted(heavy))"
    )
    took, heavy = subprocess.check_output([sys.executable, "-c", code], text=True).split(" ", 1)
    assert heavy.strip() == "[]"
    assert float(took) < 0.5


def test_the_command_line_lists_policies() -> None:
    result = CliRunner().invoke(app, ["policies"], env={"COLUMNS": "400"})
    assert result.exit_code == 0
    for name in rbmle.POLICIES:
        assert name in result.output
    assert "[max_θ { ℓ_λ(θ) + α(t) θᵀx }" in result.output


def test_the_command_line_knows_its_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.strip() == f"rbmle {rbmle.__version__}"


def test_all_policies_run_and_are_drawn(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app,
        ["run", "--dataset", "digits", "--rounds", "60", "--seeds", "1", "--out", str(tmp_path)],
    )
    assert result.exit_code == 0, result.output
    assert "neural-rbmle-ga" in result.output
    assert (tmp_path / "digits.png").stat().st_size > 10_000


def test_a_run_without_rounds_is_refused() -> None:
    result = CliRunner().invoke(app, ["run", "--dataset", "digits", "--rounds", "0"])
    assert result.exit_code == 2


def test_the_page_on_adding_a_policy_can_be_followed_to_the_letter(tmp_path: Path) -> None:
    """Its file and its lines, put in a copy of the registry, make a policy that passes the contract."""
    page = (ROOT / "docs" / "how-to" / "add-a-policy.md").read_text()
    file, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (lines,) = re.findall(r"```diff\n(.*?)```", page, re.DOTALL)
    added = [line[1:] for line in lines.splitlines() if line.startswith("+")]
    copy, real = tmp_path / "rbmle", Path(rbmle.__file__).parent
    for folder in ("core", "policies"):
        shutil.copytree(real / folder, copy / folder)
    shutil.copy(real / "__init__.py", copy)
    (copy / "policies" / "neural_variance.py").write_text(file)
    registry = copy / "policies" / "__init__.py"
    imported, entry = added
    text = registry.read_text()
    for before, line in (("from rbmle.policies.", imported), ("}\n", entry)):
        text = text.replace(before, f"{line}\n{before}", 1)
    registry.write_text(text)
    followed = f"""
import rbmle
rbmle.__path__.append({str(real)!r})  # all that was not copied
from rbmle import NeuralVariance
from rbmle.experiments.figures import styles
from rbmle.experiments.summary import policy_title
from rbmle.policies.registry import name_of, policy_from
from rbmle.testing import check_policy

assert "NeuralVariance" in rbmle.__all__
policy = policy_from("neural-variance:weight=0.01")
assert policy == NeuralVariance(weight=0.01)
assert name_of(policy) == "neural-variance"
assert policy_title("neural-variance") == "NeuralVariance"
assert styles(["neural-variance"])
check_policy(policy)
"""
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", followed], check=True, cwd=tmp_path, env=environment)
