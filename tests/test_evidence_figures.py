"""The pictures of docs/evidence are drawn from the tables on its pages."""

import runpy
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "evidence_figures.py"


def test_all_pictures_can_be_drawn_from_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(TOOL), "--out", str(tmp_path)])
    runpy.run_path(str(TOOL), run_name="__main__")
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {
        f"{name}.png" for name in ("bakeoff-regret", "table-1", "figure-2", "figure-3")
    }
    assert drawn <= {path.name for path in (TOOL.parents[1] / "docs" / "images").iterdir()}


def test_numbers_are_read_from_cells() -> None:
    tool = runpy.run_path(str(TOOL))
    assert tool["number"]("**2,269.8 ± 10.9**") == 2269.8
    table = tool["read_table"]("| | a |\n|---|---:|\n| GA | 1.5 |\n\n", "a")
    assert table == {"GA": {"a": "1.5"}}
    with pytest.raises(ValueError, match="no number"):
        tool["number"]("–")
