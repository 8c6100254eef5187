"""What clients can ask of the service, whichever dialect they speak; each waits until it is on disk."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rbmle.core.policy import Policy
from rbmle.service.api.waiting import Waiting
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.deciding.decider import InFlightError, Proposal
from rbmle.service.deciding.requests import (
    ActivateRequest,
    EventAnswer,
    RankAnswer,
    RankRequest,
    RewardRequest,
    StatusAnswer,
)
from rbmle.service.front_end import FrontEnd
from rbmle.service.learning.model import bounded, default_policy
from rbmle.service.log.errors import DuplicateRequest, LogUnavailable
from rbmle.service.log.records import OPERATOR

MOST_WAITING = 10_000  # calls that are queued for the log; more are sent away
LEARNED_LOOKS, LEARNED_SECONDS = 100, 0.02  # for whether a change of the model is in force
IN_FLIGHT = (0.0, 0.01, 0.05, 0.2)  # seconds after which an earlier copy of a request is looked for


@dataclass(frozen=True, slots=True)
class ModelTimes:
    """When the model that decides was begun, and what it knows last."""

    created: datetime
    modified: datetime


class Calls:
    """The service as coroutines of one loop."""

    def __init__(self, service: FrontEnd, waiting: Waiting) -> None:
        self.service = service
        self.waiting = waiting
        self._operating = asyncio.Lock()  # who changes the model sees what was changed before

    async def rank(self, request: RankRequest, key: str | None) -> RankAnswer:
        """Return the answer of a decision; a repeated request gets the answer it got."""
        self.check_queue()
        proposal = self.service.decider.rank(request, key)
        try:
            await self._stored(proposal.stored)
        except DuplicateRequest:
            return await self._recorded(proposal)
        return proposal.answer

    async def reward(self, request: RewardRequest, key: str | None) -> None:
        """Write a reward once for each key."""
        self.check_queue()
        try:
            await self._stored(self.service.decider.reward(request, key))
        except DuplicateRequest:
            await self._retried(self.service.decider.check_rewarded, request, key)

    async def check_reward(self, request: RewardRequest) -> None:
        """Raise RequestError for a reward that its event, if it is known, cannot have."""
        if self.service.decider.slots.may_mismatch(request):
            await asyncio.to_thread(self.service.decider.slots.check, request)

    async def activate(self, request: ActivateRequest) -> None:
        """Write that a deferred event was shown."""
        self.check_queue()
        try:
            await self._stored(self.service.decider.activate(request))
        except DuplicateRequest:
            return

    async def event(self, event: str) -> EventAnswer | None:
        """Return what is known of an event; None if there is none."""
        return await asyncio.to_thread(self.service.event, event)

    def status(self) -> StatusAnswer:
        """Return how the service is."""
        return self.service.status()

    @property
    def configuration(self) -> ServiceConfiguration:
        """Return the configuration that decisions follow."""
        return self.service.decider.configuration

    async def configure(
        self, changed: Callable[[ServiceConfiguration], ServiceConfiguration]
    ) -> None:
        """Change the configuration, given the one that holds when those before are changed."""
        async with self._operating:
            await self._stored(self.service.configure(changed(self.configuration)))

    @property
    def policy(self) -> Policy[Any]:
        """Return the policy that decides."""
        return self.service.model.policy

    async def choose_policy(self, policy: Policy[Any] | None) -> Policy[Any]:
        """Begin a model of another policy, or of the default one; return it."""
        chosen: Policy[Any] = default_policy() if policy is None else bounded(policy)
        async with self._operating:
            model = replace(self.service.model, policy=chosen)
            if model != self.service.model:
                await asyncio.to_thread(model.warm_up)
                await self._in_force(self.service.remodel(model))
        return chosen

    async def export_model(self) -> bytes:
        """Return the model that decides."""
        return await asyncio.to_thread(self.service.export_model)

    async def import_model(self, model: bytes) -> None:
        """Go on with a model that was exported before."""
        async with self._operating:
            await self._in_force(await asyncio.to_thread(self.service.import_model, model))

    async def reset_model(self) -> None:
        """Begin the model anew."""
        async with self._operating:
            await self._in_force(self.service.reset())

    async def model_times(self) -> ModelTimes:
        """Return when the model was begun and last changed."""
        rows = await asyncio.to_thread(self.service.log.of_event, OPERATOR)
        created = max(s.row.time for s in rows if s.row.kind != "configured")
        published = self.service.published
        modified = created if published is None else max(created, published.time)
        return ModelTimes(_date(created), _date(modified))

    async def log_times(self) -> tuple[datetime, datetime]:
        """Return the times of the first and the last record."""
        first, last = await asyncio.to_thread(self.service.log_times)
        return _date(first), _date(last)

    async def _stored(self, stored: "Future[int]") -> None:
        """Wait until something is on disk, or raise LogUnavailable."""
        await self.waiting.wait(stored)

    async def _in_force(self, stored: "Future[int]") -> None:
        """Wait until something is on disk and decides; if the learner is far behind, only for the first."""
        await self._stored(stored)
        seq = stored.result()
        for _ in range(LEARNED_LOOKS):
            published = self.service.published
            if published is not None and published.seq >= seq:
                return
            await asyncio.sleep(LEARNED_SECONDS)

    async def _recorded(self, proposal: Proposal) -> RankAnswer:
        event = proposal.answer.event
        return await self._retried(self.service.decider.recorded, event, proposal.digest)

    async def _retried(self, look: Any, *arguments: Any) -> Any:
        """Look for what an earlier copy of a request stored, while it is being stored."""
        for seconds in IN_FLIGHT:
            await asyncio.sleep(seconds)
            try:
                return await asyncio.to_thread(look, *arguments)
            except InFlightError as error:
                last = error
        raise last

    def check_queue(self) -> None:
        """Raise LogUnavailable if too many calls wait for the log."""
        waiting = self.service.writer.waiting
        if waiting > MOST_WAITING:
            raise LogUnavailable(
                f"{waiting} calls are waiting for the log; send the same request again later",
                is_public=True,
            )


def _date(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
