"""A small service for tests: a network of eight units, and few slots for features."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rbmle.features import Hashing
from rbmle.policies.specification import policy_with
from rbmle.service.configuration import ServiceConfiguration, Settle
from rbmle.service.deciding.requests import Action, RankAnswer, RankRequest, RewardRequest, Slot
from rbmle.service.learning.start import Start
from rbmle.service.log.records import NO_FEATURES, packed
from rbmle.service.service import Service

SMALL = "model.network=Network(width=8) model.memory=Memory(keep='window',size=500)"
PATIENCE = 60.0  # seconds, on a busy machine


def small_start(folder: Path, policy: str = "neural-rbmle-pc", **others: Any) -> Start:
    """Return the start of a small service in a folder, which learns a reward as soon as it comes."""
    start = Start(
        data=folder,
        policy=policy_with(policy, SMALL),
        featuriser=Hashing(bits=6),
        seed=7,
        configuration=ServiceConfiguration(settle=Settle.ON_REWARD),
    )
    return replace(start, **others)


@contextmanager
def running(start: Start) -> Iterator[Service]:
    """Yield a service that is ready."""
    with Service(start, told=lambda message: None) as service:
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
        context=packed([{"who": who}]),
        actions=[Action(id, NO_FEATURES) for id in ids],
        slots=list(slots),
        **others,
    )


def rank(service: Service, request: RankRequest, key: str | None = None) -> RankAnswer:
    """Return the answer to a request that is stored."""
    proposal = service.decider.rank(request, key)
    proposal.stored.result(PATIENCE)
    return proposal.answer


def reward(
    service: Service, event: str, value: float, slot: str = "", key: str | None = None
) -> None:
    """Store a reward."""
    request = RewardRequest(event=event, values={slot: value})
    service.decider.reward(request, key).result(PATIENCE)
