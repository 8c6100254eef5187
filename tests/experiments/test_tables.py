"""Summaries and tables: numbers a hand can check."""

from pathlib import Path

import numpy as np
import pytest

from rbmle.experiments.measures import seed_p_value
from rbmle.experiments.summary import DATASET_TITLES, POLICY_TITLES, summarise
from rbmle.experiments.tables import (
    ReportTable,
    defeats,
    incomparable,
    latex,
    latex_text,
    markdown,
    mean_table,
    std_table,
    unbeaten,
)
from rbmle.policies import POLICIES
from rbmle.studies.base import OURS, PAPER, TABLE_1, TABLE_2
from tests.experiments.samples import page_of, papers_summary, published, run


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
    assert defeats(summary, OURS) == []


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
    assert seed_p_value(ts, ucb, 1) == 2 / 2**6  # six equal signs, up or down
    assert (
        seed_p_value(fpl, ucb, 1) == 28 / 2**6
    )  # W⁻ = 1 + 2 + 3 or less: 14 of 64 ways, up or down
    assert seed_p_value(ucb, ucb, 1) == 1.0
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


def test_published_numbers_are_beside_ours() -> None:
    theirs = published(means={"neural-ts": {"zoo": 4.0}}, stds={}, horizons={"zoo": 2})
    short = summarise([run("zoo", "neural-ts", 0, [1])])
    same = summarise([run("zoo", "neural-ts", 0, [1, 2])])
    long = summarise([run("zoo", "neural-ts", 0, [1, 4, 3])])
    assert note(mean_table(short, theirs)) == ""
    assert incomparable(short, theirs) == list(short.problems)
    assert note(mean_table(same, theirs)) == "paper 4.0, −25.0 %"
    assert note(mean_table(long, theirs)) == "ours at 2 5.0, paper 4.0, +25.0 %"
    assert "| NeuralTS | **3.0** (paper 4.0, −25.0 %) |" in markdown(mean_table(same, theirs))


def test_losses_name_the_winner_and_the_difference() -> None:
    finals = {"neural-rbmle-ga": 110.0, "neural-ucb": 100.0}
    summary = summarise(
        [run("zoo", name, 0, [final]) for name, final in finals.items()]
        + [run("adult", "neural-ucb", 0, [1.0])]
    )
    theirs = published(means={"neural-ucb": {"zoo": 80.0}, "neural-rbmle-ga": {"zoo": 111.0}})
    assert defeats(summary, OURS) == [
        "Adult: NeuralRBMLE-GA was not played.",
        "zoo: NeuralUCB has 100.0, NeuralRBMLE-GA 110.0, 10.0 % more.",
    ]
    assert unbeaten(summary, theirs) == ["zoo, NeuralUCB: mean 100.0, paper 80.0, 25.0 % more."]


def test_of_several_settings_of_ours_the_best_is_held_against_the_others() -> None:
    runs = [run("zoo", "neural-ucb", 0, [100.0])]
    runs += [
        run("zoo", "neural-rbmle-ga", 0, [r], settings=f"GA(bias={r})") for r in (120.0, 110.0)
    ]
    (line,) = defeats(summarise(runs), OURS)
    assert line == ("zoo: NeuralUCB has 100.0, NeuralRBMLE-GA (bias=110.0) 110.0, 10.0 % more.")


def test_a_difference_that_is_not_significant_is_marked() -> None:
    """One stuck trial turns a mean of 99 into 107.5, and is one sign of six."""
    finals = {"neural-ucb": [100.0] * 6, "neural-rbmle-ga": [99.0] * 5 + [150.0]}
    summary = summarise(
        [run("zoo", name, seed, [f]) for name, fs in finals.items() for seed, f in enumerate(fs)]
    )
    (line,) = defeats(summary, OURS)
    assert line.startswith(
        "zoo: NeuralUCB has 100.0, NeuralRBMLE-GA 107.5, 7.5 % more; the difference is"
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


def entries(table: ReportTable) -> list[list[str]]:
    return [[entry.text for entry in row] for _, row in table.rows]


def note(table: ReportTable) -> str:
    return table.rows[0][1][0].note


def test_variants_of_what_papers_describe_are_marked() -> None:
    lines = run("mnist", "lin-ucb", 0, [1])
    table = mean_table(summarise([run("mnist", "ee-net", 0, [1], settings="EENet()"), lines]))
    assert "| EE-Net † |" in markdown(table)
    for text in (markdown(table), latex(table)):
        assert "A variant of what its paper describes." in text
    assert "A variant" not in markdown(mean_table(summarise([lines])))
