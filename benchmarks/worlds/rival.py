"""Vowpal Wabbit, told what the service is told, and rewarded when it is."""

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.worlds.worlds import Event, Named

OPTIONS = "--cb_explore_adf --squarecb -q :: --quiet"


def play(events: Iterable[Event], late: int, seed: int) -> np.ndarray:
    """Return what Vowpal Wabbit earns in each event, if it learns each `late` events later."""
    from vowpalwabbit import Workspace

    workspace = Workspace(f"{OPTIONS} --random_seed {seed}")
    rng = np.random.default_rng([seed, 1])
    waiting: deque[tuple[list[str], int, float, float]] = deque()
    rewards = []
    for event in events:
        if len(waiting) >= late:
            workspace.learn(_labelled(*waiting.popleft()))
        lines = _lines(event)
        chances = np.array(workspace.predict(lines))
        place = int(rng.choice(len(chances), p=chances / chances.sum()))
        rewards.append(event.reward(place))
        waiting.append((lines, place, rewards[-1], float(chances[place])))
    workspace.finish()
    return np.array(rewards)


def _labelled(lines: list[str], place: int, reward: float, chance: float) -> list[str]:
    """Return the lines with the cost of the action that was shown."""
    label = f"{place}:{-reward}:{chance} "
    return [label + line if i == place + 1 else line for i, line in enumerate(lines)]


def _lines(event: Event) -> list[str]:
    own = zip(event.ids, event.actions, strict=True)
    return [
        "shared " + _text(event.context),
        *(f"|_id {id} " + _text(action) for id, action in own),
    ]


def _text(features: Named) -> str:
    """Return features by namespace, as Vowpal Wabbit reads them."""
    return " ".join(
        f"|{space} " + " ".join(_feature(name, value) for name, value in group.items())
        for space, group in features.items()
    )


def _feature(name: str, value: Any) -> str:
    return f"{name}={value}" if isinstance(value, str) else f"{name}:{value}"
