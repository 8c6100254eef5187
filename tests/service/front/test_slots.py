"""Slots: no choice leaves a later slot without an action."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rbmle.service.front.decider import SlotAssignment


def test_a_choice_that_would_leave_a_slot_without_an_action_is_not_eligible() -> None:
    assignment = SlotAssignment([[0, 1, 2], [1]], baselines=[0, 1])
    assert assignment.eligible(0) == [0, 2]  # 1 is all that the second slot has
    assignment.take(0, 2)
    assert assignment.eligible(1) == [1]


def test_other_slots_move_to_make_room() -> None:
    assignment = SlotAssignment([[0, 1, 2], [0, 1], [1, 2]], baselines=[0, 1, 2])
    assert assignment.eligible(0) == [0, 1, 2]
    assignment.take(0, 1)  # the second slot takes 0, the third keeps 2
    assert assignment.eligible(1) == [0]
    assignment.take(1, 0)
    assert assignment.eligible(2) == [2]


@st.composite
def problems(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    actions = draw(st.integers(1, 5))
    slots = draw(st.integers(1, actions))
    allowed = [sorted({slot, *draw(st.sets(st.integers(0, actions - 1)))}) for slot in range(slots)]
    return actions, allowed


@given(problems(), st.data())
def test_an_action_is_eligible_if_some_full_assignment_has_it(
    problem: tuple[int, list[list[int]]], data: st.DataObject
) -> None:
    actions, allowed = problem
    assignment = SlotAssignment(allowed, baselines=list(range(len(allowed))))
    taken: list[int] = []
    for slot in range(len(allowed)):
        possible = {
            seating[slot]
            for seating in itertools.permutations(range(actions), len(allowed))
            if list(seating[:slot]) == taken
            and all(action in allowed[s] for s, action in enumerate(seating))
        }
        assert set(assignment.eligible(slot)) == possible != set()
        chosen = data.draw(st.sampled_from(sorted(possible)))
        assignment.take(slot, chosen)
        taken.append(chosen)
