"""Summaries, tables, figures and the report: numbers a hand can check, and names that mean harm."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbmle.experiments.figures import panel_figure, regret_curves
from rbmle.experiments.labels import clipped_top, spread
from rbmle.experiments.paired import p_value
from rbmle.experiments.report import write_report
from rbmle.experiments.report_table import ReportTable, latex, latex_text, markdown
from rbmle.experiments.standings import standings
from rbmle.experiments.styles import OTHERS, STYLES, styles
from rbmle.experiments.summary import DATASET_TITLES, POLICY_TITLES, Summary, summarise
from rbmle.experiments.tables import (
    PaperResults,
    defeats,
    incomparable,
    mean_table,
    std_table,
    unbeaten,
)
from rbmle.experiments.trial import Run
from rbmle.policies import POLICIES
from rbmle.studies.published import HORIZONS, PAPER, TABLE_1, TABLE_2
from tests.browser import CHROMIUM, Browser

HOSTILE = "</script><script>alert('&amp;')</script><img src=x onerror=alert(1)>"


def test_means_and_deviations_are_those_of_a_hand() -> None:
    summary = summarise(
        [run("mnist", "neural-ts", 0, [1, 1, 2]), run("mnist", "neural-ts", 1, [0, 1, 1])]
    )
    (cell,) = summary.cells
    assert cell.mean == 3.0  # of 4 and 2
    assert cell.std == pytest.approx(2**0.5)  # √((1² + 1²) / (2 − 1))
    mean, std = cell.at(2)  # of 2 and 1
    assert mean == 1.5
    assert std == pytest.approx(0.5**0.5)
    assert cell.curve.mean.tolist() == [0.5, 1.5, 3.0]
    assert cell.seeds == (0, 1)
    assert cell.cpu_seconds == 2.0


def test_one_run_has_no_deviation() -> None:
    (cell,) = summarise([run("mnist", "neural-ts", 0, [1, 1])]).cells
    assert cell.std is None
    assert cell.curve.std is None
    assert entries(std_table(summarise([run("mnist", "neural-ts", 0, [1, 1])]))) == [["–"]]


@pytest.mark.parametrize("rounds", [0, 4])
def test_a_round_that_was_not_played_is_refused(rounds: int) -> None:
    (cell,) = summarise([run("mnist", "neural-ts", 0, [1, 1, 2])]).cells
    with pytest.raises(ValueError, match="3 rounds"):
        cell.at(rounds)


def test_a_curve_is_thinned_but_keeps_its_ends() -> None:
    (cell,) = summarise([run("mnist", "neural-ts", 0, [1] * 15_000)]).cells
    assert len(cell.curve.rounds) == 300
    assert (cell.curve.rounds[0], cell.curve.rounds[-1]) == (1, 15_000)
    np.testing.assert_array_equal(cell.curve.mean, cell.curve.rounds)


def test_problems_that_differ_are_not_averaged() -> None:
    summary = summarise(
        [
            run("mnist", "neural-ts", 0, [1, 1], preprocessing="scaled"),
            run("mnist", "neural-ts", 0, [5, 5], preprocessing="unit length"),
            run("mnist", "neural-ts", 0, [5, 5, 5], preprocessing="scaled"),
            run("adult", "neural-ts", 0, [2, 2], preprocessing={"scale": 1}),
        ]
    )
    assert [cell.mean for cell in summary.cells] == [4.0, 2.0, 15.0, 10.0]
    assert [summary.title(problem) for problem in summary.problems] == [
        "Adult",
        "MNIST (scaled, T = 2)",
        "MNIST (scaled, T = 3)",
        "MNIST (unit length, T = 2)",
    ]


def test_a_dataset_whose_file_changed_is_another_problem() -> None:
    runs = [run("zoo", "neural-ts", s, [s], digest=f"{s}a2b3c4d5e6f7a8b9") for s in (1, 2)]
    titles = mean_table(summarise(runs)).columns
    assert titles == ("zoo (digest 1a2b3c4d5e6f)", "zoo (digest 2a2b3c4d5e6f)")


def test_a_run_that_comes_twice_counts_once() -> None:
    twice = [run("mnist", "neural-ts", 0, [1, 1])] * 2
    assert summarise(twice).runs == 1


def test_policies_and_datasets_stand_in_the_papers_order() -> None:
    names = ["uniform", "a new one", "lin-rbmle", "neural-rbmle-ga"]
    runs = [run(data, name, 0, [1]) for name in names for data in ("zoo", "mushroom", "adult")]
    summary = summarise(runs)
    assert summary.policies == ("neural-rbmle-ga", "lin-rbmle", "uniform", "a new one")
    assert mean_table(summary).columns == ("Adult", "Mushroom", "zoo")
    assert list(POLICY_TITLES) == list(POLICIES)
    assert list(TABLE_1) == list(TABLE_2) == list(POLICIES)[:7]
    assert list(TABLE_1["neural-ts"]) == list(DATASET_TITLES)


def test_the_papers_numbers_get_the_papers_bold() -> None:
    summary = papers_summary()
    best = {
        (title, column)
        for title, row in mean_table(summary).rows
        for column, entry in zip(mean_table(summary).columns, row, strict=True)
        if entry.is_best
    }
    assert best == {("NeuralRBMLE-GA", title) for title in DATASET_TITLES.values()} | {
        ("LinRBMLE", "Adult")
    }
    assert defeats(summary) == []


def test_bold_are_the_best_and_all_within_one_percent() -> None:
    finals = {"neural-rbmle-ga": 101.0, "neural-ucb": 100.0, "neural-ts": 101.5}
    summary = summarise([run("zoo", name, 0, [final]) for name, final in finals.items()])
    table = mean_table(summary)
    assert [row[0].is_best for _, row in table.rows] == [True, True, False]
    assert "| NeuralTS | 101.5 |" in markdown(table)
    assert "| NeuralUCB | **100.0** |" in markdown(table)
    assert r"NeuralUCB & \textbf{100.0} \\" in latex(table)


def test_bold_are_the_best_and_all_that_a_paired_test_does_not_tell_from_it() -> None:
    """Seeds are harder or easier for all alike, so a small but steady difference counts."""
    best, steady, wild = [10, 200, 30, 400, 50, 60], [1, 2, 3, 4, 5, 6], [-9, 90, -20, 99, -40, 50]
    finals = {
        "neural-ucb": best,
        "neural-ts": [r + d for r, d in zip(best, steady, strict=True)],
        "deep-fpl": [r + d for r, d in zip(best, wild, strict=True)],
    }
    summary = summarise(
        [run("zoo", name, seed, [f]) for name, fs in finals.items() for seed, f in enumerate(fs)]
    )
    ucb, ts, fpl = summary.cells
    assert p_value(ts, ucb, 1) == 2 / 2**6  # six equal signs, up or down
    assert p_value(fpl, ucb, 1) == 28 / 2**6  # W⁻ = 1 + 2 + 3 or less: 14 of 64 ways, up or down
    assert p_value(ucb, ucb, 1) == 1.0
    table = mean_table(summary)
    assert [row[0].is_best for _, row in table.rows] == [True, False, True]
    assert [row[0].text for _, row in table.rows][:2] == ["125.0 ± 61.5", "128.5 ± 61.5"]
    assert "Wilcoxon" in table.caption


def test_no_deviation_is_crowned() -> None:
    """Uniform play may have the smallest, and is no better for it."""
    runs = [
        run("zoo", name, seed, [10 + seed]) for name in ("uniform", "lin-ts") for seed in (0, 1)
    ]
    table = std_table(summarise(runs))
    assert not any(row[0].is_best for _, row in table.rows)
    assert "bold" not in table.caption
    assert "**" not in markdown(table)


def test_a_policy_that_was_not_played_leaves_a_dash() -> None:
    summary = summarise([run("zoo", "neural-ts", 0, [1]), run("adult", "neural-ucb", 0, [1])])
    assert entries(mean_table(summary)) == [["1.0", "–"], ["–", "1.0"]]
    assert r"NeuralUCB & \textbf{1.0} & -- \\" in latex(mean_table(summary))


def test_the_regret_at_another_round_is_asked_for() -> None:
    summary = summarise([run("zoo", "neural-ts", 0, [1, 2, 4]), run("adult", "neural-ts", 0, [1])])
    assert entries(mean_table(summary, rounds=2)) == [["–", "3.0"]]
    with pytest.raises(ValueError, match="leave out rounds=2"):
        mean_table(summary, PAPER, rounds=2)


def test_settings_that_differ_are_rows_of_their_own(tmp_path: Path) -> None:
    runs = [run("zoo", "neural-ts", s, [s], settings=f"NeuralTS(exploration={s})") for s in (1, 2)]
    summary = summarise(runs)
    assert summary.policies == ("neural-ts (exploration=1)", "neural-ts (exploration=2)")
    assert entries(mean_table(summary)) == [["1.0"], ["2.0"]]
    assert "NeuralTS (exploration=2)" in page_of(summary, tmp_path)


def test_ours_stands_beside_the_published() -> None:
    theirs = published(means={"neural-ts": {"zoo": 4.0}}, stds={}, horizons={"zoo": 2})
    short = summarise([run("zoo", "neural-ts", 0, [1])])
    same = summarise([run("zoo", "neural-ts", 0, [1, 2])])
    long = summarise([run("zoo", "neural-ts", 0, [1, 4, 3])])
    assert note(mean_table(short, theirs)) == ""
    assert incomparable(short, theirs) == list(short.problems)
    assert note(mean_table(same, theirs)) == "paper 4.0, −25.0 %"
    assert note(mean_table(long, theirs)) == "ours at 2 5.0, paper 4.0, +25.0 %"
    assert "| NeuralTS | **3.0** (paper 4.0, −25.0 %) |" in markdown(mean_table(same, theirs))


def test_losses_are_told_by_whom_and_by_how_much() -> None:
    finals = {"neural-rbmle-ga": 110.0, "neural-ucb": 100.0}
    summary = summarise(
        [run("zoo", name, 0, [final]) for name, final in finals.items()]
        + [run("adult", "neural-ucb", 0, [1.0])]
    )
    theirs = published(means={"neural-ucb": {"zoo": 80.0}, "neural-rbmle-ga": {"zoo": 111.0}})
    assert defeats(summary) == [
        "Adult: NeuralRBMLE-GA was not played.",
        "zoo: NeuralUCB has 100.0, NeuralRBMLE-GA 110.0, 10.0 % more.",
    ]
    assert unbeaten(summary, theirs) == ["zoo, NeuralUCB: mean 100.0, paper 80.0, 25.0 % more."]


def test_of_several_settings_of_ours_the_best_is_held_against_the_others() -> None:
    runs = [run("zoo", "neural-ucb", 0, [100.0])]
    runs += [
        run("zoo", "neural-rbmle-ga", 0, [r], settings=f"GA(bias={r})") for r in (120.0, 110.0)
    ]
    (line,) = defeats(summarise(runs))
    assert line == ("zoo: NeuralUCB has 100.0, NeuralRBMLE-GA (bias=110.0) 110.0, 10.0 % more.")


def test_a_defeat_that_may_be_chance_says_so() -> None:
    """One stuck trial turns a mean of 99 into 107.5, and is one sign of six."""
    finals = {"neural-ucb": [100.0] * 6, "neural-rbmle-ga": [99.0] * 5 + [150.0]}
    summary = summarise(
        [run("zoo", name, seed, [f]) for name, fs in finals.items() for seed, f in enumerate(fs)]
    )
    (line,) = defeats(summary)
    assert line.startswith(
        "zoo: NeuralUCB has 100.0, NeuralRBMLE-GA 107.5, 7.5 % more; the seeds do"
    )


def test_an_equal_number_is_not_beaten() -> None:
    summary = summarise([run("zoo", "neural-ucb", 0, [1.0])])
    theirs = published(means={"neural-ucb": {"zoo": 1.0}})
    assert unbeaten(summary, theirs) == ["zoo, NeuralUCB: mean 1.0, paper 1.0, the same."]


def test_latex_prints_special_characters() -> None:
    assert latex_text(r"a_b & 5 % \ {#} ~^ $x$") == (
        r"a\_b \& 5 \% \textbackslash{} \{\#\} \textasciitilde{}\textasciicircum{} \$x\$"
    )
    text = latex(mean_table(summarise([run("my_data & more", "p_1", 0, [1])])))
    assert r"\textbf{my\_data \& more}" in text
    assert r"p\_1 & \textbf{1.0} \\" in text
    assert r"within 1 \% of it" in text


def test_markdown_keeps_its_columns() -> None:
    text = markdown(mean_table(summarise([run("a|b\nc", "*p*", 0, [1])])))
    assert text.splitlines()[0] == r"| Mean final regret | a\|b c |"
    assert r"| \*p\* | **1.0** |" in text


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
def test_lines_with_equal_dashes_can_be_told_apart_by_colour_blind_readers(eyes: str) -> None:
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


def test_curves_of_a_demo_are_drawn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    curves = {name: rng.random((2, 50)).cumsum(axis=1) for name in POLICIES}
    regret_curves(curves, "Digits", tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 10_000


def test_a_report_is_one_file_that_loads_nothing(tmp_path: Path) -> None:
    page = page_of(fake_summary(), tmp_path, PAPER)
    assert "http://" not in page
    assert "https://" not in page
    assert not re.search(r"\b(src|href)\s*=|@import|url\(", page)
    assert "42 runs on 3 datasets by 7 policies, with 2 seeds each" in page
    assert "paper 2079.5" in page
    assert "NeuralTS(exploration=0.1)" in page
    assert "unit length" in page
    check_nesting(page)
    data = data_of(page)
    assert [len(chart["lines"]) for chart in data["charts"]] == [7, 7, 7]
    assert page.count('<figure class="chart">') == 3


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here; apt install chromium")
def test_a_browser_draws_the_curves_and_follows_the_pointer(
    tmp_path: Path, browser: Browser
) -> None:
    page_of(fake_summary(), tmp_path, PAPER)
    browser.go((tmp_path / "out" / "report.html").as_uri())
    browser.wait("document.querySelectorAll('.plot canvas').length == 3")
    assert inked(browser) > 500
    assert "after round 15,000" in browser.text(".legend p")
    browser.run("document.querySelector('.plot').scrollIntoView()")
    box = browser.run("(({x, y, width, height}) => [x, y, width, height])(" + OVER + ")")
    x, y, width, height = box
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + width / 2, y=y + height / 2)
    browser.wait("!document.querySelector('.legend p').textContent.includes('15,000')")
    browser.run("document.querySelector('.plot').focus()")
    for name in ("Home", "ArrowRight"):
        browser.run(
            f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: '{name}'}}))"
        )
    assert browser.run("document.querySelector('.plot').getAttribute('aria-valuenow')") != "15000"
    before = inked(browser)
    for _ in range(7):
        browser.run("document.querySelector('.legend button[aria-pressed=true]').click()")
    assert inked(browser) < before
    assert browser.problems() == []


def test_a_hostile_name_stays_a_name(tmp_path: Path) -> None:
    summary = summarise([run(HOSTILE, HOSTILE, 0, [1, 2], preprocessing=HOSTILE, settings=HOSTILE)])
    page = page_of(summary, tmp_path, title=HOSTILE)
    assert page.count("</script>") == page.count("<script") == 2
    assert "<img" not in page
    check_nesting(page)
    assert data_of(page)["charts"][0]["lines"][0]["title"] == HOSTILE


def test_a_report_without_runs_says_what_to_do(tmp_path: Path) -> None:
    page = page_of(summarise([]), tmp_path, PAPER)
    assert "There are no runs yet" in page
    assert "store.put(play(trial))" in page
    check_nesting(page)
    assert data_of(page)["charts"] == []


def test_a_report_of_other_data_does_not_speak_of_the_paper(tmp_path: Path) -> None:
    """A user's file has a target; it may bear the name of a published dataset."""
    finals = {"lin-ts": 100.0, "neural-rbmle-ga": 150.0, "lin-ucb": 100.5, "uniform": 3000.0}
    runs = [run("adult", name, 0, [final], target="income") for name, final in finals.items()]
    page = page_of(summarise(runs), tmp_path, PAPER)
    assert "paper" not in page.split("<script")[0].lower()
    assert "Where we lose" not in page
    assert "Which policy is best where" in page
    summary = summarise(runs)
    assert standings(summary, summary.problems) == [
        "Adult: LinTS and LinUCB are best, with mean regrets within 1 % of 100.0; then NeuralRBMLE-GA "
        "(+50 %), Uniform (30 times)."
    ]


def test_a_report_says_how_a_file_was_read(tmp_path: Path) -> None:
    found = run("zoo", "lin-ts", 0, [1], target='["odd')
    found.settings["environment"] |= {"left_out": ["id", "name"], "separator": "semicolons"}
    page = page_of(summarise([found]), tmp_path)
    assert "left_out: id, name; separator: semicolons; target: [&quot;odd" in page


def test_a_report_keeps_published_and_other_data_apart(tmp_path: Path) -> None:
    runs = [run(name, "neural-rbmle-ga", 0, [1]) for name in ("adult", "zoo")]
    page = page_of(summarise(runs), tmp_path, PAPER)
    assert "<li>zoo: NeuralRBMLE-GA is best, with a mean regret of 1.0.</li>" in page
    assert "Where we lose" in page
    assert "zoo: NeuralRBMLE-GA has" not in page
    assert "fewer rounds than in the paper" in page
    assert "against the paper" not in page  # there is no number to compare
    assert "the paper's number" not in page


def test_the_best_is_told_where_nothing_is_lost_at_all() -> None:
    summary = summarise([run("zoo", "lin-ts", 0, [0]), run("zoo", "uniform", 0, [3])])
    assert standings(summary, summary.problems) == [
        "zoo: LinTS is best, with a mean regret of 0.0; then Uniform 3.0."
    ]


def test_a_report_says_when_nothing_is_lost(tmp_path: Path) -> None:
    summary = summarise([run("zoo", "neural-rbmle-ga", 0, [1])])
    theirs = published(means={"neural-rbmle-ga": {"zoo": 2.0}})
    page = page_of(summary, tmp_path, theirs)
    assert "Nowhere: NeuralRBMLE-GA is the best" in page
    assert "Nothing: no number that can be compared" in page
    assert "1 run on 1 dataset by 1 policy, with 1 seed each and 1 round." in page


def run(
    dataset: str,
    policy: str,
    seed: int,
    regrets: Any,
    preprocessing: Any = None,
    settings: str = "",
    digest: str = "",
    target: str | None = None,
) -> Run:
    environment = {
        "name": dataset,
        "preprocessing": preprocessing,
        "digest": digest,
        "target": target,
    }
    trial = {
        "policy": policy,
        "settings": settings or f"{POLICY_TITLES.get(policy, policy)}(exploration=0.1)",
        "environment": environment,
        "horizon": len(regrets),
        "seed": seed,
    }
    return Run(
        id=json.dumps(trial, sort_keys=True),
        settings=trial,
        regrets=np.array(regrets, np.float32),
        cpu_seconds=2.0,
        wall_seconds=3.0,
        versions={"python": "3.12.0", "numpy": "2.0.0"},
    )


def papers_summary() -> Summary:
    return summarise(
        run(dataset, policy, 0, [final])
        for policy, row in TABLE_1.items()
        for dataset, final in row.items()
    )


def fake_summary() -> Summary:
    rng = np.random.default_rng(0)
    return summarise(
        run(name, policy, seed, rng.random(HORIZONS[name]) / 5, preprocessing="unit length")
        for name in ("mnist", "mushroom", "shuttle")
        for policy in TABLE_1
        for seed in (0, 1)
    )


def published(
    means: dict[str, dict[str, float]],
    stds: dict[str, dict[str, float]] | None = None,
    horizons: dict[str, int] | None = None,
) -> PaperResults:
    horizons = {"zoo": 1} if horizons is None else horizons
    return PaperResults(source="paper", means=means, stds=stds or {}, horizons=horizons)


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


def entries(table: ReportTable) -> list[list[str]]:
    return [[entry.text for entry in row] for _, row in table.rows]


def note(table: ReportTable) -> str:
    return table.rows[0][1][0].note


OVER = "document.querySelector('.u-over').getBoundingClientRect()"


def inked(browser: Browser) -> int:
    """Return how many pixels of the first chart have one of the colours of lines."""
    return int(
        browser.run(
            "(() => { const c = document.querySelector('.plot canvas');"
            " const k = new OffscreenCanvas(c.width, c.height).getContext('2d', {willReadFrequently: true});"
            " k.drawImage(c, 0, 0); const d = k.getImageData(0, 0, c.width, c.height).data; let n = 0;"
            " for (let i = 0; i < d.length; i += 4) n += d[i + 3] > 200 &&"
            " Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60;"
            " return n; })()"
        )
    )


def page_of(
    summary: Summary, folder: Path, published: PaperResults | None = None, title: str = "A report"
) -> str:
    path = folder / "out" / "report.html"
    write_report(summary, path, published, title)
    return path.read_text(encoding="utf-8")


def data_of(page: str) -> Any:
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def check_nesting(page: str) -> None:
    """Raise AssertionError if an element is closed that is not the last one opened."""
    opened: list[str] = []

    class Nesting(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag not in ("meta", "br"):
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Nesting().feed(page)
    assert opened == []
