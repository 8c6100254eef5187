"""Which actions are shown: the choices of some calls at once, by the model that is published."""

from collections.abc import Sequence

import msgspec
import numpy as np

from rbmle.core.types import Chosen, Probabilities
from rbmle.core.weighing import shares
from rbmle.features.json_rows import Offered
from rbmle.service.configuration import LearningMode, ServiceConfiguration
from rbmle.service.deciding.requests import Action, RankRequest, Slot
from rbmle.service.deciding.slot_assignment import SlotAssignment
from rbmle.service.learning.model import offered
from rbmle.service.learning.published import Published
from rbmle.service.log.records import NO_FEATURES, Play, RawFeatures


def plays_of(
    events: Sequence[str],
    requests: Sequence[RankRequest],
    published: Published,
    configuration: ServiceConfiguration,
) -> list[list[Play]]:
    """Return the plays of each request, one for each slot; raise FeatureError.

    Requests without slots are decided together, as if each were alone.
    """
    choices = [
        ActionChoice(event, request.context, request.actions, _eligible(request))
        for event, request in zip(events, requests, strict=True)
        if not request.slots
    ]
    only = iter(_play_all(choices, published, configuration))
    return [
        _slots(request, event, published, configuration) if request.slots else [next(only)]
        for event, request in zip(events, requests, strict=True)
    ]


class ActionChoice(msgspec.Struct, frozen=True):
    """A choice to be made: one action of the eligible ones, for a slot or for a whole event."""

    seed: str
    context: RawFeatures
    actions: Sequence[Action]
    eligible: list[int]
    baseline: int | None = None  # None: the first eligible action
    slot: Slot | None = None  # None: for a whole event

    @property
    def offered(self) -> Offered:
        """Return the features of what is offered."""
        own = NO_FEATURES if self.slot is None else self.slot.features
        return offered(self.context, own, [self.actions[place] for place in self.eligible])


def _play_all(
    choices: Sequence[ActionChoice], published: Published, configuration: ServiceConfiguration
) -> list[Play]:
    """Make each choice, as if it were alone."""
    if not choices:
        return []
    contexts = published.model.contexts([choice.offered for choice in choices], published.bandit)
    sizes, seeds = [len(choice.eligible) for choice in choices], [choice.seed for choice in choices]
    bandit, floor = published.bandit, configuration.exploration
    sharpness = (
        published.model.sharpness_of(bandit) if floor > 0 else 0.0
    )  # 0 is no exploration at all
    chosen = bandit.weigh_all(contexts, sizes, seeds, floor, sharpness)
    return [_play(choice, one, configuration) for choice, one in zip(choices, chosen, strict=True)]


def _play(choice: ActionChoice, chosen: Chosen, configuration: ServiceConfiguration) -> Play:
    """Return what is shown: what was chosen, or the baseline while the model only learns."""
    place, indices, probabilities = chosen
    if probabilities is None:  # no exploration, and a policy that knows no chances
        (probabilities,) = shares(indices[None])
    eligible = choice.eligible
    shown, preferred = eligible[place], None
    baseline = eligible[0] if choice.baseline is None else choice.baseline
    if configuration.learning_mode is not LearningMode.ONLINE:
        shown = baseline if baseline in eligible else eligible[0]
        preferred = eligible[int(np.argmax(probabilities))]
        probabilities = _certain(eligible.index(shown), len(eligible))
    return Play(
        eligible=eligible,
        probabilities=probabilities.tolist(),
        chosen=shown,
        slot="" if choice.slot is None else choice.slot.id,
        features=NO_FEATURES if choice.slot is None else choice.slot.features,
        baseline=baseline,
        preferred=preferred,
    )


def _slots(
    request: RankRequest, event: str, published: Published, configuration: ServiceConfiguration
) -> list[Play]:
    """Return the plays of all slots, each action shown once."""
    places = {action.id: place for place, action in enumerate(request.actions)}
    allowed = [
        [place for id, place in places.items() if id not in set(slot.excluded)]
        for slot in request.slots
    ]
    baselines = [places[slot.baseline] for slot in request.slots]
    assignment = SlotAssignment(allowed, baselines)
    plays = []
    for at, slot in enumerate(request.slots):
        seed, eligible = f"{event}/{slot.id}", assignment.eligible(at)
        choice = ActionChoice(seed, request.context, request.actions, eligible, baselines[at], slot)
        (play,) = _play_all([choice], published, configuration)
        assignment.take(at, play.chosen)
        plays.append(play)
    return plays


def _eligible(request: RankRequest) -> list[int]:
    """Return the places of the actions that may be chosen."""
    places = range(len(request.actions))
    if not request.excluded:
        return [*places]
    excluded = set(request.excluded)
    return [place for place in places if request.actions[place].id not in excluded]


def _certain(place: int, n: int) -> Probabilities:
    """Return probabilities of which one is 1."""
    chances = np.zeros(n)
    chances[place] = 1.0
    return chances
