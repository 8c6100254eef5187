"""Chosen as often as logged: the frequencies of many decisions against the probabilities in the log.

For one decision with probabilities p, the indicator of what was chosen has mean p and covariance
diag(p) − p pᵀ, whatever was learned before. So the sums over many decisions, O of the indicators, E of
the means and S of the covariances, give (O − E)ᵀ S⁺ (O − E), which is χ² with as many degrees of freedom
as S has rank. Cells are actions, within a context, an exploration percentage and a slot; or, in the
second grouping, twenty ranges of the logged probability, within an exploration percentage. Cells that
expect fewer than ten are one.
"""

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from jaxtyping import Float
from scipy.stats import chi2

from rbmle.service.front.requests import Action, RankRequest, RewardRequest, Slot
from rbmle.service.log.records import (
    Configured,
    Decided,
    decode_record,
    pack_features,
    unpack_features,
)
from tests.services import PATIENCE, Service, learned

EXPLORATIONS = (0.05, 0.2, 0.5, 1.0)
ACTIONS = 50
PEOPLE = ("ann", "bob", "eve", "joe")
FEWEST = 10.0  # expected in a cell
RANGES = 20  # of probabilities
ROUNDING = 1e-12
REWARDED = 0.1  # of all events
BATCH = 250  # events that wait for the log together


class Cells:
    """O, E and S of one group of decisions."""

    def __init__(self, size: int) -> None:
        self.observed = np.zeros(size)
        self.expected = np.zeros(size)
        self.covariance = np.zeros((size, size))

    def add(self, chosen: int, p: Float[np.ndarray, "cells"]) -> None:
        """Count one decision."""
        self.observed[chosen] += 1
        self.expected += p
        self.covariance += np.diag(p) - np.outer(p, p)

    def statistic(self) -> tuple[float, int]:
        """Return (O − E)ᵀ S⁺ (O − E) and its degrees of freedom."""
        few = self.expected < FEWEST
        kept = np.flatnonzero(~few)
        sums = np.zeros((len(kept) + 1, len(few)))
        sums[np.arange(len(kept)), kept] = 1
        sums[-1, few] = 1
        difference = sums @ (self.observed - self.expected)
        S = sums @ self.covariance @ sums.T
        threshold = 1e-9 * max(np.trace(S), 1.0)
        values, vectors = np.linalg.eigh(S)
        held = values > threshold
        along = vectors[:, held].T @ difference
        return float(along**2 @ (1 / values[held])), int(held.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What the log says of all decisions in it."""

    events: int
    plays: int
    models: int  # with which it was decided, by how much they had learned
    learned: int  # observations that the last one had seen
    by_action: float  # p-value of the first grouping
    by_probability: float  # of the second

    @property
    def is_good(self) -> bool:
        """Return whether frequencies and probabilities agree."""
        return min(self.by_action, self.by_probability) > 0.001


def decide(service: Service, events: int, seed: int = 0) -> None:
    """Decide, and reward some of the events while the service learns."""
    share = -(-events // len(EXPLORATIONS))
    for place, exploration in enumerate(EXPLORATIONS):
        after = replace(service.decider.configuration, exploration=exploration)
        service.configure(after).result(PATIENCE)
        numbers = range(events)[place * share : (place + 1) * share]
        for first in range(0, len(numbers), BATCH):
            _decide(service, numbers[first : first + BATCH], seed)
        learned(service)


def agreement(service: Service) -> Agreement:
    """Return how the log's choices and probabilities agree; raise AssertionError if a floor is broken."""
    by_action: defaultdict[object, Cells] = defaultdict(lambda: Cells(ACTIONS))
    by_probability: defaultdict[object, Cells] = defaultdict(lambda: Cells(RANGES))
    models: list[int] = []
    plays = 0
    for exploration, decided in _decisions(service):
        models.append(decided.learned)
        for play in decided.plays:
            p = np.array(play.probabilities)
            assert abs(p.sum() - 1) < ROUNDING * len(p)
            assert p.min() >= exploration / len(p) - ROUNDING
            chances = np.zeros(ACTIONS)
            chances[play.eligible] = p
            group = (unpack_features(decided.context)[0]["who"], exploration, play.slot)
            by_action[group].add(play.chosen, chances)
            ranges = np.minimum((p * RANGES).astype(int), RANGES - 1)
            chosen = ranges[play.eligible.index(play.chosen)]
            masses = np.bincount(ranges, weights=p, minlength=RANGES)
            by_probability[exploration].add(chosen, masses)
            plays += 1
    return Agreement(
        events=len(models),
        plays=plays,
        models=len(set(models)),
        learned=max(models),
        by_action=_p_value(by_action),
        by_probability=_p_value(by_probability),
    )


def _decide(service: Service, numbers: range, seed: int) -> None:
    stored: list[Future[int]] = []
    for some in _groups(numbers, Random(f"{seed}/{numbers.start}")):
        rngs = [Random(f"{seed}/{number}") for number in some]
        requests = [_request(rng, str(n)) for rng, n in zip(rngs, some, strict=True)]
        drafts = service.decider.draft([(request, None, b"") for request in requests])
        stored += [service.writer.submit([draft.row]) for draft in drafts]
        for rng, request, draft in zip(rngs, requests, drafts, strict=True):
            if rng.random() < REWARDED:
                chosen = [(s.id, s.chosen) for s in draft.answer.slots]
                pairs = chosen or [("", draft.answer.chosen)]
                who = PEOPLE.index(unpack_features(request.context)[0]["who"])
                values = {slot: float(int(action) % len(PEOPLE) == who) for slot, action in pairs}
                reward = RewardRequest(event=draft.answer.event, values=values)
                stored.append(service.reward(reward))
    for done in stored:
        done.result(PATIENCE)


def _groups(numbers: range, rng: Random) -> Iterator[range]:
    """Yield the numbers in groups, as calls are decided that come together."""
    while numbers:
        size = rng.randint(1, 32)
        yield numbers[:size]
        numbers = numbers[size:]


def _request(rng: Random, event: str) -> RankRequest:
    count = rng.choice((2, 3, 5, 10, ACTIONS))
    actions = [Action(str(place), pack_features([{"kind": place % 4}])) for place in range(count)]
    ids = [action.id for action in actions]
    slots: list[Slot] = []
    excluded: list[str] = []
    if count >= 3 and rng.random() < 0.25:
        names, baselines = ("top", "left", "low"), rng.sample(ids, 3)
        slots = [
            Slot(id=name, baseline=baseline, excluded=_some(rng, ids, baseline))
            for name, baseline in zip(names, baselines, strict=True)
        ]
    elif rng.random() < 0.5:
        excluded = _some(rng, ids, rng.choice(ids))
    return RankRequest(
        event=event,
        context=pack_features([{"who": rng.choice(PEOPLE)}]),
        actions=actions,
        excluded=excluded,
        slots=slots,
    )


def _some(rng: Random, ids: list[str], but: str) -> list[str]:
    """Return up to half of the ids, and not the one."""
    return [id for id in rng.sample(ids, rng.randint(0, len(ids) // 2)) if id != but]


def _decisions(service: Service) -> Iterator[tuple[float, Decided]]:
    """Yield the decisions of the log, with the exploration percentage that held."""
    exploration = 1.0
    for stored in service.log.read():
        match decode_record(stored.row):
            case Configured(configuration=configuration):
                exploration = configuration["exploration"]
            case Decided() as decided:
                yield exploration, decided


def _p_value(groups: dict[object, Cells]) -> float:
    statistics, degrees = zip(*(cells.statistic() for cells in groups.values()), strict=True)
    return float(chi2.sf(sum(statistics), sum(degrees)))
