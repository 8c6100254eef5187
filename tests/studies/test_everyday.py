"""The study of everyday rewards runs, is resumed, and its tables say what its shares say."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rbmle import LinUCB
from rbmle.cli import app
from rbmle.core.errors import SettingError
from rbmle.environments import DEVELOPMENT, FAMILIES, REPORTED, Everyday, gap_closed
from rbmle.experiments.summary import summarise
from rbmle.experiments.tables import markdown
from rbmle.experiments.trial import Run, Trial, play
from rbmle.policies.registry import parse_policy
from rbmle.studies import STUDIES, Plan, everyday
from rbmle.studies.everyday import FIXED, Shares, family_table, policy_table, told_the_range

DOCS = Path(__file__).parents[2] / "docs"
STUDY = ["reproduce", "everyday", "--policy", "lin-ucb,lin-ucb:exploration=0.5,glm-ts"]
LITTLE = ["--dataset", "ads,meters", "--rounds", "30", "--seeds", "2", "--executor", "serial"]


def test_it_is_played_and_written_and_not_repeated(tmp_path: Path) -> None:
    arguments = [*STUDY, *LITTLE, "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "10 trials, 2 families, seeds 0 to 1, settings as given" in result.output
    folder = tmp_path / "paper" / "standard" / "everyday"
    for ending in (
        ".md",
        ".tex",
        ".html",
        "-families.md",
        "-shares.png",
        "-shares.pdf",
        "-seeds.json",
    ):
        assert (folder / f"everyday{ending}").stat().st_size > 100
    table = (folder / "everyday.md").read_text()
    assert "LinUCB (exploration=0.5)" in table
    assert "best fixed arm" in table
    assert "<svg" in (folder / "everyday.html").read_text()
    assert "10 of 10 trials are in" in CliRunner().invoke(app, arguments).output


def test_choosing_and_judging_share_neither_families_nor_seeds() -> None:
    plan = Plan(policies="lin-ucb")
    chosen, judged = (
        {(trial.environment.settings["family"], trial.seed) for trial in STUDIES[name].trials(plan)}
        for name in ("everyday-development", "everyday")
    )
    assert {family for family, _ in judged} == set(REPORTED)
    assert {family for family, _ in chosen} == set(DEVELOPMENT)
    assert {seed for _, seed in judged} == set(range(10))
    assert min(seed for _, seed in chosen) >= 1000


def test_trials_are_as_long_as_the_family_says() -> None:
    trials = STUDIES["everyday"].trials(Plan(policies="lin-ucb"))
    lengths = {trial.environment.settings["family"]: trial.horizon for trial in trials}
    assert lengths == {name: family.rounds for name, family in REPORTED.items()}


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(SettingError, match="this study has no 'clicks'; it has ads, "):
        STUDIES["everyday"].trials(Plan(policies="lin-ucb", only=("clicks",)))


def test_a_policy_plays_only_rewards_that_it_can_learn() -> None:
    trials = STUDIES["everyday"].trials(Plan(policies="glm-ts,neu-fast-cb,lin-ucb", count=1))
    played = {name: set[str]() for name in ("glm-ts", "neu-fast-cb", "lin-ucb")}
    for trial in trials:
        played[trial.name].add(trial.environment.settings["family"])
    assert played["lin-ucb"] == set(REPORTED)
    coins = {name for name, family in REPORTED.items() if family.rewards == (0, 1)}
    assert played["glm-ts"] == coins


def test_trees_are_told_the_range_of_rewards_where_there_is_one() -> None:
    pytest.importorskip("sklearn")
    tree = parse_policy("tree-ts").policy()
    stars = told_the_range(tree, FAMILIES["reviews"])
    assert (stars.lowest, stars.highest) == (1, 5)  # type: ignore[union-attr]
    assert told_the_range(tree, FAMILIES["meters"]) == tree


def test_the_round_that_compiles_has_a_reward_that_the_policy_takes() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Starred(LinUCB):
        rewards = (1.0, 5.0)

    trial = Trial(
        policy=Starred(), name="s", environment=Everyday(family="reviews"), horizon=3, seed=0
    )
    assert len(play(trial).regrets) == 3


def test_a_share_is_of_the_regret_of_uniform_play_on_the_same_rounds() -> None:
    runs = _runs()
    shares = Shares.of(summarise(runs))
    for run in runs:
        world = Everyday(family=run.settings["environment"]["family"])
        uniform = world.baselines(len(run.regrets), run.seed).uniform
        shown = shares.families[world.family][run.policy][run.seed]
        assert shown == pytest.approx(gap_closed(run.final_regret, uniform), abs=1e-4)


def test_the_best_fixed_arm_of_a_problem_closes_a_part_of_the_gap() -> None:
    shares = Shares.of(summarise(_runs()))
    assert 0 < shares.mean(FIXED, list(shares.families))[0] < 1


def _runs() -> list[Run]:
    plan = Plan(policies="lin-ucb,glm-ts", only=("ads", "meters", "playlist"), count=2, rounds=30)
    return [play(trial) for trial in STUDIES["everyday"].trials(plan)]


SHARES = Shares(
    families={
        "ads": {"a": [0.5, 0.7], "b": [0.2, 0.4], "c": [0.7, 0.9], FIXED: [0.9, 0.9]},
        "meters": {"a": [0.4, 0.4], "b": [0.5, 0.5], FIXED: [0.1, 0.3]},
    },
    milliseconds={"ads": {"a": 1.0, "b": 2.0, "c": 0.5}, "meters": {"a": 3.0, "b": 2.0}},
    code={"a": "1f", "b": "2e", "c": "1f"},
    note="Two seeds.",
)


def test_means_and_errors_are_what_a_hand_computes() -> None:
    assert SHARES.share("a", "ads") == pytest.approx((0.6, 0.1))
    assert SHARES.mean("a", ["ads", "meters"]) == pytest.approx((0.5, 0.05))
    ratio, family = SHARES.worst("b")
    assert (family, round(ratio, 6)) == ("ads", 0.375)
    assert SHARES.top(["ads"]) == pytest.approx(0.8)  # the best fixed arm is no policy
    assert SHARES.top(["ads", "meters"]) == pytest.approx(0.5)  # c does not play both
    assert SHARES.milliseconds_of("a") == 2.0


def test_the_tables_mark_the_best_policy_and_leave_out_what_was_not_played() -> None:
    rows = dict(policy_table(SHARES).rows)
    assert [title for title, _ in policy_table(SHARES).rows] == ["best fixed arm", "a", "b", "c"]
    assert rows["a"][0].text == "0.50 ± 0.05"
    assert rows["a"][0].is_best
    assert not rows["best fixed arm"][0].is_best
    assert rows["c"][0].text == "–"
    assert rows["c"][1].is_best
    assert [row[-1].text for row in rows.values()] == ["2", "2", "2", "2"]
    assert policy_table(SHARES).caption.endswith("Played by code 1f; b by 2e.")
    families = dict(family_table(SHARES).rows)
    assert [entry.text for entry in families["meters"]][1:] == ["0.40 ± 0.00", "0.50 ± 0.00", "–"]


def test_shares_are_written_small_and_read_again() -> None:
    record = json.loads(SHARES.text)
    assert Shares(**record) == SHARES
    assert record["note"] == "Two seeds."
    assert '"a": [ 0.5, 0.7 ]' in SHARES.text


def test_a_policy_that_was_played_again_replaces_its_shares_alone() -> None:
    again = Shares(
        families={"ads": {"a": [0.6, 0.8, 0.7], FIXED: [0.9, 0.9, 0.8]}},
        milliseconds={"ads": {"a": 0.9}},
        code={"a": "3d"},
        note="Three.",
    )
    merged = SHARES.replaced(again)
    assert merged.families["ads"] == SHARES.families["ads"] | again.families["ads"]
    assert merged.families["meters"] == SHARES.families["meters"]
    assert merged.milliseconds["ads"] == {"a": 0.9, "b": 2.0, "c": 0.5}
    assert merged.code == {"a": "3d", "b": "2e", "c": "1f"}
    assert merged.note == "Two seeds. a again: Three."


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ({"ads": {"a": [0.6], FIXED: [0.8]}}, "ads has other problems than before"),
        ({"pilot": {"a": [0.6], FIXED: [0.8]}}, "there were no shares of pilot yet"),
    ],
)
def test_shares_of_other_problems_are_not_mixed(
    families: dict[str, dict[str, list[float]]], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        SHARES.replaced(Shares(families=families, milliseconds={}, code={"a": "3d"}))


def test_the_docs_list_every_family() -> None:
    text = (DOCS / "evidence" / "everyday.md").read_text()
    for name, family in FAMILIES.items():
        described = (family.draw.__doc__ or "").splitlines()[0].removesuffix(".")
        size = f"{family.arms} × {family.features}"
        assert f"| {name} | {described} | {size} | {family.rounds:,} |" in text


def test_both_tables_of_the_docs_are_made_of_the_shares_that_ship() -> None:
    """Marks say so, and test_seed_results compares what is between them."""
    text = (DOCS / "evidence" / "everyday.md").read_text()
    for view, table in (("policies", policy_table), ("families", family_table)):
        shares = Shares(**json.loads((DOCS / "seeds" / "everyday.json").read_text()))
        marked = f"<!-- results: everyday {view} -->\n"
        assert marked + markdown(table(shares)).partition("\n\n")[0] in text


def test_a_round_that_nobody_learns_from_closes_nothing_of_the_gap() -> None:
    trials = STUDIES["everyday"].trials(
        Plan(policies="uniform", only=("ads",), count=3, rounds=400)
    )
    shares = Shares.of(summarise([play(trial) for trial in trials]))
    assert np.mean(shares.families["ads"]["uniform"]) == pytest.approx(0, abs=0.15)


def test_it_says_what_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everyday, "POLICIES", ("lin-ucb", "absent"))
    (line,) = STUDIES["everyday"].skipped(Plan())
    assert line.startswith("Skipped absent: there is no policy 'absent'")
    assert STUDIES["everyday"].skipped(Plan(policies="lin-ucb")) == []
