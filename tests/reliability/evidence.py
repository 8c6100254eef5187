"""Compares a log and its model with what the service acknowledged."""

import json
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from rbmle.core.bandit import Bandit
from rbmle.service.learner.checkpoints import Checkpoints, read
from rbmle.service.learner.fold import Fold
from rbmle.service.log import Log, open_log
from rbmle.service.log.base import Stored
from rbmle.service.log.records import Configured, decode_record
from rbmle.service.model.report import Counts
from rbmle.service.model.settings import ModelSettings, save_bytes
from rbmle.service.settings import Settle
from rbmle.service.statistics.summary import Statistics
from tests.reliability.visitors import Ledger, Ranked


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How many acknowledged ranks and rewards are in the log, and what is wrong."""

    ranks: int
    rewards: int
    lost: int  # acknowledged, but not in the log
    changed: int  # not as acknowledged
    doubled: int  # in the log more than once
    foreign: int  # in the log, but never acknowledged
    problems: tuple[str, ...]  # other problems

    @property
    def is_clean(self) -> bool:
        """Return whether log and model are what was acknowledged."""
        return not (self.lost or self.changed or self.doubled or self.foreign or self.problems)

    def __str__(self) -> str:
        """Return the figures."""
        figures = (
            f"{self.ranks} ranks and {self.rewards} rewards acknowledged: {self.lost} lost, "
            f"{self.changed} changed, {self.doubled} doubled, {self.foreign} never acknowledged"
        )
        return "; ".join((figures, *self.problems[:10]))


def judge(
    place: str, ledger: Ledger, data: Path, models: dict[str, bytes] | None = None
) -> Verdict:
    """Compare a log that nobody writes with what was acknowledged, and its fold with models.

    `models` were read while the service ran; its last checkpoint is compared as well.
    """
    with closing(open_log(place, is_read_only=True)) as log:
        ranks, rewards, doubled = _told(log)
        problems = [*log.verify(), *ledger.complaints]
        if models is not None:
            problems += _model_problems(
                log, data, models, Counter(ranks=len(ranks), rewards=len(rewards))
            )
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (dict(ledger.ranks), dict(ranks)),
        (dict(ledger.rewards), dict(rewards)),
    ]
    return Verdict(
        ranks=len(ledger.ranks),
        rewards=len(ledger.rewards),
        lost=sum(len(acknowledged.keys() - stored.keys()) for acknowledged, stored in pairs),
        changed=sum(
            acknowledged[id] != stored[id]
            for acknowledged, stored in pairs
            for id in acknowledged.keys() & stored
        ),
        doubled=doubled,
        foreign=sum(len(stored.keys() - acknowledged.keys()) for acknowledged, stored in pairs),
        problems=tuple(problems),
    )


def folded_by(settle: str, place: str) -> bytes:
    """Return the model that a log gives with another setting of `settle`."""
    with closing(open_log(place, is_read_only=True)) as log:
        fold = Fold(log=log, make=ModelSettings.from_json)
        for stored in log.read():
            row = stored.row
            record = decode_record(row)
            if isinstance(record, Configured):
                told = Configured(configuration=record.configuration | {"settle": settle})
                row = replace(row, payload=msgspec.json.encode(told))
            fold.apply(Stored(stored.seq, row))
        assert fold.bandit is not None
        return save_bytes(fold.bandit)


def _told(log: Log) -> tuple[dict[str, Ranked], dict[str, tuple[str, float]], int]:
    """Return the ranks and the rewards of a log, and how many there are of an event twice."""
    ranks: dict[str, Ranked] = {}
    rewards: dict[str, tuple[str, float]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for stored in log.read():
        row = stored.row
        if row.kind not in {"decided", "rewarded"}:
            continue
        seen[row.kind, row.event] += 1
        record = json.loads(row.payload)
        if row.kind == "decided":
            ranks[row.event] = _ranked(record)
        else:
            rewards[str(row.request).removeprefix("reward:")] = (row.event, record["values"][""])
    return ranks, rewards, sum(count - 1 for count in seen.values())


def _ranked(decided: dict[str, Any]) -> Ranked:
    """Return a decision as its client got it."""
    (play,) = decided["plays"]
    ids = [action["id"] for action in decided["actions"]]
    probabilities = dict.fromkeys(ids, 0.0)
    probabilities |= {
        ids[place]: chance
        for place, chance in zip(play["eligible"], play["probabilities"], strict=True)
    }
    return Ranked(ids[play["chosen"]], probabilities)


def _model_problems(
    log: Log, data: Path, models: dict[str, bytes], stored: Counter[str]
) -> list[str]:
    """Fold the whole log, and return where it is not what the service knew or should know."""
    state, bandit = read(Checkpoints(data).paths()[0])
    rounds = {name: Bandit.load(BytesIO(model)).round for name, model in models.items()}
    unseen = dict(models)
    problems = []
    statistics = Statistics()
    fold = Fold(log=log, make=ModelSettings.from_json, watcher=statistics)
    for row in log.read():
        fold.apply(row)
        if fold.bandit is None:
            continue
        for name in [name for name in unseen if rounds[name] == fold.bandit.round]:
            if unseen.pop(name) != save_bytes(fold.bandit):
                problems.append(f"{name}: not the sum of the log after {fold.bandit.round} rounds")
        if fold.seq == state.seq:
            problems += _differences(fold, statistics, state, bandit)
    problems += [f"{name}: it has learned what is not in the log" for name in unseen]
    counts: Counts = fold.joiner.counts
    waiting = sum(len(pending.values) for pending in fold.joiner.pending.values())
    expected = {
        "decided": (counts.decided, stored["ranks"]),
        "joined, late or pending": (counts.joined + counts.late + waiting, stored["rewards"]),
        "duplicate": (counts.duplicate, 0),
        "orphan": (counts.orphan, 0),
    }
    problems += [f"{name}: {n}, not {m}" for name, (n, m) in expected.items() if n != m]
    least, most = _to_learn(fold, stored)
    learned = 0 if fold.bandit is None else fold.bandit.round
    if not least <= learned <= most:
        problems.append(f"learned: {learned}, not from {least} to {most}")
    return problems


def _to_learn(fold: Fold, stored: Counter[str]) -> tuple[int, int]:
    """Return the smallest and the largest number of observations of a log, by its setting of `settle`."""
    settled = fold.joiner.counts.joined + fold.joiner.counts.defaulted
    if fold.joiner.configuration.settle is not Settle.DELAYED:
        return settled, settled
    # An event is learned in its turn, or when it is settled; a late reward is learned as well.
    return max(settled, fold.joiner.turns.learned), stored["ranks"] + stored["rewards"]


def _differences(fold: Fold, statistics: Statistics, state: Any, bandit: bytes) -> list[str]:
    """Return where a checkpoint differs from the fold at the same record."""
    assert fold.bandit is not None
    parts = {
        "model": (bandit, save_bytes(fold.bandit)),
        "events": (state.joined, fold.joiner.joined),
        "statistics": (msgspec.json.encode(state.statistics), msgspec.json.encode(statistics)),
    }
    return [
        f"the checkpoint's {name} is not the sum of the log up to {fold.seq}"
        for name, (told, summed) in parts.items()
        if told != summed
    ]
