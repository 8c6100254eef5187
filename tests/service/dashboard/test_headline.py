"""What matters, in one sentence."""

import pytest

from rbmle.service.dashboard.headline import headline
from rbmle.service.dashboard.view import view
from rbmle.service.log.records import Play
from rbmle.service.statistics import Statistics
from tests.service.dashboard.samples import count, overview_of, played


def test_the_headline_says_what_matters() -> None:
    assert headline(overview_of(Statistics())).text == "No decision yet."
    waiting = headline(overview_of(played(1, 0), pending=1))
    assert waiting.text == "1 decision, and none is settled yet."
    assert waiting.verdict.endswith("at the end of the reward wait time; pending: 1.")
    early = headline(overview_of(played(4, 4)))
    assert early.text.startswith("The policy earns 0.500 a decision; it is too early to say")
    log = headline(overview_of(played(2, 0), learning_mode="LoggingOnly"))
    assert log.text == "2 decisions in the log; nothing is learned."


@pytest.mark.parametrize(
    ("others", "tone", "verdict"),
    [(0.9, "good", "Better"), (0.1, "bad", "Worse"), (0.5, "plain", "No clear difference")],
)
def test_the_verdict_needs_intervals_that_do_not_overlap(
    others: float, tone: str, verdict: str
) -> None:
    found = headline(overview_of(contested(others)))
    assert found.tone == tone
    assert found.verdict.startswith(verdict)
    assert "the baseline would have earned 0." in found.text


def test_pending_events_are_told_beside_what_counts() -> None:
    shown = view(overview_of(played(4, 4), pending=1_234))
    assert shown.texts["decisions_note"].endswith("a minute; 1,234 pending")
    (pending,) = [row for row in shown.tables["rewards"] if row[0].text == "Pending"]
    assert pending[1].text == "1,234"


def test_an_apprentice_is_told_as_one() -> None:
    statistics = Statistics()
    for preferred in (0, 0, 0, 1):
        play = Play(eligible=[0, 1], probabilities=[1.0, 0.0], chosen=0, preferred=preferred)
        count(statistics, play, 0.5)
    found = headline(overview_of(statistics, learning_mode="Apprentice"))
    assert "earns 0.500 a decision" in found.text
    assert "the same in 75 % of them" in found.text


def contested(others: float) -> Statistics:
    """Return statistics where the baseline pays ½, and all others what is given."""
    statistics = Statistics()
    for number in range(800):
        chosen = number % 2
        play = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=chosen)
        pays = others if chosen else 0.5
        count(statistics, play, float(number // 2 % 10 < 10 * pays))
    return statistics
