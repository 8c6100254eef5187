"""How often the model is fitted: as the budget allows, whatever the rewards are."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rbmle import Bandit
from rbmle.core.encoding import per_arm
from rbmle.service.learner.checkpoints import Checkpoints, read
from rbmle.service.learner.fold import Budget, Fold
from rbmle.service.log.records import Rewarded, Ticked
from rbmle.service.model.settings import save_bytes
from rbmle.service.settings import Aggregation, Settle
from rbmle.service.statistics.summary import Statistics
from tests.service.learner.stories import USUAL, WAIT, Neural, Story, decided


def test_no_more_is_fitted_than_the_budget_has_and_all_is_remembered() -> None:
    story = Story(make=Neural)
    start = network_of(story.bandit)
    for number in range(12):
        story.tell(number, f"e{number}", decided())
    story.tell(20, "e11", Rewarded(values={"": 1.0}))
    assert (network_of(story.bandit) != start).any()
    story.tell(WAIT + 1_000, "", Ticked())  # the bucket is full again, and has 5 for 11
    after = network_of(story.bandit)
    assert story.learned == 12
    story.tell(WAIT + 1_000, "f", decided())
    story.tell(WAIT + 1_100, "f", Rewarded(values={"": 1.0}))  # half a fit since then
    np.testing.assert_array_equal(network_of(story.bandit), after)
    assert story.learned == 13
    story.tell(WAIT + 1_150, "g", decided())
    story.tell(WAIT + 1_200, "g", Rewarded(values={"": 1.0}))
    assert (network_of(story.bandit) != after).any()


@pytest.mark.parametrize("is_old", [False, True])
def test_which_observations_are_fitted_does_not_depend_on_their_rewards_but_in_old_logs(
    is_old: bool,
) -> None:
    configuration = replace(USUAL, reward_aggregation=Aggregation.SUM)
    story = Story(configuration, make=Neural, is_old=is_old)
    for number in range(1, 9):
        story.tell(number, f"e{number}", decided())
    story.tell(10, "e8", Rewarded(values={"": 1.0}))
    story.tell(WAIT + 1_000, "", Ticked())
    by_hand = Neural({"seed": 0}).start()
    first = [True] * 4 + [False] * 3 + [True] if is_old else [True] * 5 + [False] * 3
    rewards = [0.0] * 7 + [1.0]
    by_hand.learn_all(per_arm([[1.0, 0.0]] * 8, 2), rewards, is_fitted=np.array(first))
    assert save_bytes(story.bandit) == save_bytes(by_hand)
    assert story.fold.budget == Budget(WAIT + 1_000, 5_000, prefers_joined=is_old)


@pytest.mark.parametrize("settle", Settle)
@pytest.mark.parametrize("at", [5, 60, 61, 100])
def test_a_budget_goes_on_where_a_checkpoint_left_it(
    at: int, settle: Settle, tmp_path: Path
) -> None:
    story = Story(replace(USUAL, settle=settle), make=Neural)
    for number in range(60):
        story.tell(7 * number, f"e{number}", decided())
        if number % 5 == 0:
            story.tell(7 * number + 1, f"e{number}", Rewarded(values={"": float(number % 2)}))
    for number in range(60):
        story.tell(WAIT + 30 * number, f"f{number}", decided())
    first = Fold(log=story.log, make=Neural)
    for stored in story.log.read(0, at):
        first.apply(stored)
    saved_to = Checkpoints(tmp_path).save(first, Statistics())
    state, bandit = read(saved_to)
    again = Fold(log=story.log, make=Neural)
    again.resume(state.settings, Bandit.load(io.BytesIO(bandit)), state.joined, state.budget)
    for stored in story.log.read(at):
        again.apply(stored)
    assert again.joiner.joined == story.fold.joiner.joined
    assert again.budget == story.fold.budget
    assert again.bandit is not None
    assert save_bytes(again.bandit) == save_bytes(story.bandit)


def network_of(bandit: Bandit) -> np.ndarray:
    walk: np.ndarray = bandit.state.regression.walk.theta.output.copy()
    return walk
