"""Figures: lines that can be told apart, and names that fit."""

from pathlib import Path

import numpy as np
import pytest

from rbmle.experiments.figures import (
    _label,
    clipped_top,
    final_panels,
    panel_figure,
    regret_curves,
    spread,
)
from rbmle.experiments.styles import OTHERS, STYLES, styles
from rbmle.experiments.summary import summarise
from rbmle.policies import POLICIES
from tests.experiments.samples import fake_summary, run

# Machado, Oliveira and Fernandes (2009): what a reader without one kind of cone sees, in linear RGB.
EYES = {
    "any": np.eye(3),
    "protanopia": np.array(
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
    ),
    "deuteranopia": np.array(
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
    ),
    "tritanopia": np.array(
        [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]
    ),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
ENDS = (("neural-ucb", 200), ("lin-ucb", 201), ("uniform", 400))
WHITE = np.array([0.9505, 1.0, 1.0890])


def linear(colour: str) -> np.ndarray:
    """Return a colour of the form #rrggbb in linear RGB."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(XYZ[1] @ linear(colour))


def lab(colour: str, eyes: str) -> np.ndarray:
    """Return a colour in CIELAB, as some eyes see it."""
    ratios = XYZ @ np.clip(EYES[eyes] @ linear(colour), 0, 1) / WHITE
    x, y, z = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_every_policy_has_its_own_look_in_all_figures() -> None:
    looks = styles([*POLICIES, "new 1", "new 2", "new 3"])
    assert len({(look.colour, look.dashes) for look in looks.values()}) == len(POLICIES) + 3
    assert set(STYLES) <= set(POLICIES)
    assert styles(["new 2", "neural-ts"])["neural-ts"] == looks["neural-ts"]
    many = styles(f"new {i}" for i in range(len(OTHERS) + 10))
    assert len({(look.colour, look.dashes) for look in many.values()}) == len(OTHERS)


def test_a_few_policies_without_a_style_differ_in_colour_and_dashes() -> None:
    looks = styles(f"new {i}" for i in range(5)).values()
    assert len({look.colour for look in looks}) == 5
    assert len({look.dashes for look in looks}) == 5


@pytest.mark.parametrize("eyes", ["any", "protanopia", "deuteranopia", "tritanopia"])
def test_colour_blind_readers_can_distinguish_lines_with_equal_dashes(eyes: str) -> None:
    """A distance of 20 in CIELAB is plain to see; of 2.3 it is just noticed."""
    for one, look in STYLES.items():
        for other, twin in STYLES.items():
            if one < other and look.dashes == twin.dashes:
                assert np.linalg.norm(lab(look.colour, eyes) - lab(twin.colour, eyes)) > 20


@pytest.mark.parametrize("ground", ["#ffffff", "#14161a"])
def test_lines_stand_out_from_a_light_and_a_dark_page(ground: str) -> None:
    for look in (*STYLES.values(), *OTHERS):
        light, dark = sorted([luminance(look.colour), luminance(ground)], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3


def test_names_at_the_ends_of_lines_keep_their_distance_and_order() -> None:
    assert spread([0.1, 0.9], gap=0.1, highest=1.0) == [0.1, 0.9]
    assert spread([0.5, 0.5], gap=0.1, highest=1.0) == pytest.approx([0.45, 0.55])
    assert spread([1.0, 0.99, 0.2], gap=0.1, highest=1.0) == pytest.approx([1.0, 0.9, 0.2])
    assert spread([0.0, 0.0, 0.0], gap=0.1, highest=1.0) == pytest.approx([0.0, 0.1, 0.2])
    assert spread([], gap=0.1, highest=1.0) == []


def test_uniform_play_leaves_the_frame_if_it_would_hide_the_others() -> None:
    assert clipped_top({"uniform": 700.0, "lin-ts": 200.0}) == pytest.approx(220.0)
    assert clipped_top({"uniform": 250.0, "lin-ts": 200.0}) is None
    assert clipped_top({"uniform": 700.0}) is None
    assert clipped_top({"lin-ucb": 700.0, "lin-ts": 200.0}) is None


@pytest.mark.parametrize("panels", [1, 2, 4])
def test_a_legend_fits_into_its_figure(panels: int, tmp_path: Path) -> None:
    """Nothing is drawn beyond the edges: the outermost pixels are white."""
    from matplotlib.image import imread

    names = [f"a policy with a rather long name {i}" for i in range(6)]
    summary = summarise(run(f"data {j}", name, 0, [1, 2]) for name in names for j in range(panels))
    png, _ = panel_figure(summary, tmp_path / "wide")
    pixels = imread(png)[:, :, :3]
    for edge in (pixels[:, 0], pixels[:, -1], pixels[0], pixels[-1]):
        assert (edge == 1.0).all()


def test_figures_are_written_as_png_and_pdf(tmp_path: Path) -> None:
    png, pdf = panel_figure(fake_summary(), tmp_path / "figure_1.5")
    assert (png.name, pdf.name) == ("figure_1.5.png", "figure_1.5.pdf")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert pdf.read_bytes().startswith(b"%PDF")
    assert png.stat().st_size > 20_000
    assert pdf.stat().st_size > 10_000
    with pytest.raises(ValueError, match="no runs"):
        panel_figure(summarise([]), tmp_path / "nothing")


def test_a_figure_shows_names_that_look_like_formulas(tmp_path: Path) -> None:
    summary = summarise([run("$x_{$", "_p$\\frac{$", 0, [1, 2])])
    png, _ = panel_figure(summary, tmp_path / "odd.png")
    assert png.name == "odd.png"


def test_the_growth_of_the_bias_is_typeset() -> None:
    assert _label("α(t) = ν t^0.25") == r"$\alpha(t) = \nu\,t^{1/4}$"
    assert _label("α(t) = ν t^2") == r"$\alpha(t) = \nu\,t^{2}$"
    assert _label("neural-ucb") == "NeuralUCB"


def test_final_regrets_are_a_dot_for_each_policy() -> None:
    """Two seeds tell nothing: what is within 1 % of the best is as good."""
    runs = [run("zoo", name, seed, [1, end + seed]) for name, end in ENDS for seed in (0, 1)]
    (panel,) = final_panels(summarise(runs))
    assert {row.title: (row.value, row.is_filled) for row in panel.rows} == {
        "NeuralUCB": (201.5, True),
        "LinUCB": (202.5, True),
        "Uniform": (401.5, False),
    }
    assert all(row.error == pytest.approx(0.5) for row in panel.rows)


def test_curves_of_a_demo_are_drawn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    curves = {name: rng.random((2, 50)).cumsum(axis=1) for name in POLICIES}
    regret_curves(curves, "Digits", tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 10_000
