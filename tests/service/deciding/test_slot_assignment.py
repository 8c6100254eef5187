"""Actions for slots: no choice leaves a later slot without an action."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rbmle.service.deciding.slot_assignment import Seats


def test_a_choice_that_would_leave_a_slot_without_an_action_is_not_eligible() -> None:
    seats = Seats([[0, 1, 2], [1]], baselines=[0, 1])
    assert seats.eligible(0) == [0, 2]  # 1 is all that the second slot has
    seats.take(0, 2)
    assert seats.eligible(1) == [1]


def test_other_slots_move_to_make_room() -> None:
    seats = Seats([[0, 1, 2], [0, 1], [1, 2]], baselines=[0, 1, 2])
    assert seats.eligible(0) == [0, 1, 2]
    seats.take(0, 1)  # the second slot takes 0, the third keeps 2
    assert seats.eligible(1) == [0]
    seats.take(1, 0)
    assert seats.eligible(2) == [2]


@st.composite
def problems(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    actions = draw(st.integers(1, 5))
    slots = draw(st.integers(1, actions))
    allowed = [sorted({slot, *draw(st.sets(st.integers(0, actions - 1)))}) for slot in range(slots)]
    return actions, allowed


@given(problems(), st.data())
def test_eligible_is_what_some_full_seating_has(
    problem: tuple[int, list[list[int]]], data: st.DataObject
) -> None:
    actions, allowed = problem
    seats = Seats(allowed, baselines=list(range(len(allowed))))
    taken: list[int] = []
    for slot in range(len(allowed)):
        possible = {
            seating[slot]
            for seating in itertools.permutations(range(actions), len(allowed))
            if list(seating[:slot]) == taken
            and all(action in allowed[s] for s, action in enumerate(seating))
        }
        assert set(seats.eligible(slot)) == possible != set()
        chosen = data.draw(st.sampled_from(sorted(possible)))
        seats.take(slot, chosen)
        taken.append(chosen)
