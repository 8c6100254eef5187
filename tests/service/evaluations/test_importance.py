"""Which features matter."""

import pytest

from rbmle.evaluation import LogFileError
from rbmle.service.evaluations.importance import scores
from rbmle.service.log.records import packed
from tests.service.evaluations.samples import asked, day
from tests.service.exports.samples import OVER, decided, kept


def test_what_rewards_hang_on_is_found() -> None:
    first, *others = scores(day(), asked(), step=lambda: None)
    assert (first.namespace, first.name) == ("context", "time")
    assert (
        first.score > 1
    )  # shuffled, it is wrong in half of the decisions: E′ is 0.5, and Var(r) is 0.25
    assert {(one.namespace, one.name) for one in others} == {
        ("context", "noise"),
        ("action", "hot"),
    }
    assert all(abs(one.score) < 0.1 for one in others)


def test_namespaces_are_told() -> None:
    context = packed([{"user": {"age": 3, "address": {"city": "x"}}}, {"hour": 4}])
    story = [(number, f"e{number}", decided(context=context)) for number in range(40)]
    log = kept(*story, (OVER + 1_000, "g", decided()))
    found = scores(log, asked(), step=lambda: None)
    names = {(one.namespace, one.name) for one in found}
    # air, which was chosen, has no features
    assert names == {("user", "age"), ("user", "address.city"), ("context", "hour")}
    assert all(one.score == 0 for one in found)


def test_a_few_decisions_are_too_few() -> None:
    with pytest.raises(LogFileError, match="19 decisions of this time are settled, but 20"):
        scores(day(19), asked(), step=lambda: None)
