"""What every policy promises, one function each; a broken promise is an AssertionError.

A function takes the policy and the class of the bandit that holds it.
"""

from collections.abc import Callable
from typing import Any

from rbmle.core.bandit import Bandit
from rbmle.core.policy import Policy
from rbmle.testing import indices, learning, runs

Promise = Callable[[Policy[Any], type[Bandit]], None]

PROMISES: tuple[Promise, ...] = (
    indices.index_is_one_finite_number_for_each_arm,
    indices.index_is_finite_for_large_small_and_zero_contexts,
    indices.index_changes_nothing,
    indices.index_asked_twice_answers_the_same,
    runs.same_seed_same_run,
    runs.global_random_state_is_untouched,
    indices.arms_may_be_listed_in_any_order,
    indices.twins_tie,
    runs.a_run_saved_halfway_and_resumed_equals_the_unbroken_run,
    runs.a_copied_state_goes_its_own_way,
    runs.a_snapshot_decides_as_its_original,
    runs.a_batch_is_learned_as_its_observations_one_by_one,
    runs.units_of_rewards_do_not_matter,
    runs.repr_rebuilds_the_policy,
    learning.it_learns,
    learning.the_largest_rewards_leave_the_index_finite,
    learning.bad_input_is_refused_and_leaves_the_state_as_it_was,
    indices.a_new_arm_leaves_the_others_as_they_were,
    indices.probabilities_are_a_distribution,
    indices.a_separate_index_does_not_draw,
    indices.who_ignores_contexts_reads_none,
)
