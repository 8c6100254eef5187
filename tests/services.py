"""A small service for tests, in one process: a network of eight units, and few slots for features."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import msgspec

from rbmle.features import Hashing
from rbmle.policies.registry import policy_with
from rbmle.service.api.operations import describe_event, export_model
from rbmle.service.front.front_end import FrontEnd
from rbmle.service.front.requests import (
    Action,
    ActivateRequest,
    EventAnswer,
    RankAnswer,
    RankRequest,
    RewardRequest,
    Slot,
)
from rbmle.service.learner.fold import Fold
from rbmle.service.learner.learner import LogLearner
from rbmle.service.learner.start import Start
from rbmle.service.log import LOG_FILE, open_log, open_publications
from rbmle.service.log.records import NO_FEATURES, pack_features
from rbmle.service.settings import ServiceConfiguration, Settle
from rbmle.service.statistics.summary import Statistics

SMALL = "model.network=Network(width=8) model.memory=Memory(keep='window',size=500)"
PATIENCE = 60.0  # seconds, on a busy machine


def small_start(folder: Path, policy: Any = "neural-rbmle-pc", **others: Any) -> Start:
    """Return the start of a small service in a folder, which learns a reward as soon as it comes."""
    start = Start(
        data=folder,
        policy=policy_with(policy, SMALL) if isinstance(policy, str) else policy,
        featuriser=Hashing(bits=6),
        seed=7,
        configuration=ServiceConfiguration(settle=Settle.ON_REWARD),
    )
    return replace(start, **others)


@dataclass(frozen=True)
class Proposal:
    """An answer to a rank call that is being stored."""

    answer: RankAnswer
    request: RankRequest
    body: bytes
    stored: "Future[int]"


class Service(FrontEnd):
    """A front end whose learner is a thread beside it."""

    def __init__(self, start: Start, notify: Callable[[str], None]) -> None:
        """Open the log and begin to learn; `notify` is given each line for the operator."""
        start.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = str(start.data / LOG_FILE)
        log, publications = open_log(start.log or beside), open_publications(beside)
        try:
            self.learner = LogLearner(log, publications, start, notify)
            self.learner.prepare()
        except BaseException:
            log.close()
            raise
        self._thread = threading.Thread(target=self.learner.run, name="rbmle-learner", daemon=True)
        super().__init__(log, publications, start.data)
        self._thread.start()

    def close(self) -> None:
        """Write what is queued and a checkpoint, and let go."""
        if not self._is_closed:
            self.writer.close()
            self.learner.stop()
            self._thread.join()
        super().close()

    @property
    def fold(self) -> Fold:
        """Return what is known; the learner's thread changes it."""
        return self.learner.fold

    @property
    def statistics(self) -> Statistics:
        """Return what is counted; the learner's thread changes it."""
        return self.learner.statistics

    def event(self, event: str) -> EventAnswer | None:
        """Return what the log has of an event."""
        return describe_event(self, event)

    def export_model(self) -> bytes:
        """Return the model after the last record."""
        return export_model(self)

    def rank(self, request: RankRequest, key: str | None = None) -> Proposal:
        """Return an answer that is being stored."""
        body = msgspec.json.encode(request)
        (draft,) = self.decider.draft([(request, key, body)])
        return Proposal(draft.answer, request, body, self.writer.submit([draft.row]))

    def reward(self, request: RewardRequest, key: str | None = None) -> "Future[int]":
        """Store a reward."""
        return self.writer.submit([self.decider.reward_row(request, key)])

    def activate(self, request: ActivateRequest) -> "Future[int]":
        """Store that a deferred event was shown."""
        return self.writer.submit([self.decider.activate_row(request)])


@contextmanager
def running(start: Start) -> Iterator[Service]:
    """Yield a service that is ready."""
    with Service(start, notify=lambda message: None) as service:
        wait_until(lambda: service.problem is None)
        yield service


def wait_until(holds: Any) -> None:
    """Wait for a condition, or fail."""
    end = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < end, "it did not come true in time"
        sleep(0.005)


def learned(service: Service) -> None:
    """Wait until all that is in the log is learned, and decides."""

    def is_learned() -> bool:
        published, bandit = service.published, service.fold.bandit
        return (
            service.fold.seq >= service.writer.last
            and published is not None
            and bandit is not None
            and published.bandit.round == bandit.round
            and service.report.seq == service.fold.seq
        )

    wait_until(is_learned)


def configure(service: Service, configuration: ServiceConfiguration) -> None:
    """Change the configuration, and wait until decisions follow it."""
    service.configure(configuration).result(PATIENCE)
    wait_until(lambda: service.decider.configuration == configuration)


def offer(
    *ids: str, event: str | None = None, who: str = "u", slots: tuple[Slot, ...] = (), **others: Any
) -> RankRequest:
    """Return a rank request without features but who asks."""
    return RankRequest(
        event=event,
        context=pack_features([{"who": who}]),
        actions=[Action(id, NO_FEATURES) for id in ids],
        slots=list(slots),
        **others,
    )


def rank(service: Service, request: RankRequest, key: str | None = None) -> RankAnswer:
    """Return the answer to a request that is stored."""
    proposal = service.rank(request, key)
    proposal.stored.result(PATIENCE)
    return proposal.answer


def reward(
    service: Service, event: str, value: float, slot: str = "", key: str | None = None
) -> None:
    """Store a reward."""
    request = RewardRequest(event=event, values={slot: value})
    service.reward(request, key).result(PATIENCE)


def busy(service: Service, events: int) -> None:
    """Decide and reward, and leave some events without a reward."""
    for i in range(events):
        answer = rank(service, offer("a", "b", "c", who="uvw"[i % 3]))
        if i % 4:
            reward(service, answer.event, float(answer.chosen == "b"))
