"""What an operator asks of the service, whichever dialect is spoken: slower than a rank, and seldom."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rbmle.core.policy import Policy
from rbmle.service.api.commits import Commits
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.deciding.requests import EventAnswer, StatusAnswer
from rbmle.service.evaluations.jobs import Job, jobs_of
from rbmle.service.front_end import FrontEnd
from rbmle.service.learning.model import default_policy
from rbmle.service.log.errors import DuplicateRequest, LogUnavailable
from rbmle.service.log.records import OPERATOR, EvaluationAsked, EvaluationDeleted

CONFIGURE_TRIES = 20
LEARNED_LOOKS, LEARNED_SECONDS = 100, 0.02  # for whether a change of the model is in force


@dataclass(frozen=True, slots=True)
class ModelTimes:
    """When the model that decides was begun, and what it knows last."""

    created: datetime
    modified: datetime


class Operations:
    """The service as coroutines of one loop; each returns when what it changed is on disk."""

    def __init__(self, service: FrontEnd, commits: Commits) -> None:
        self._service = service
        self._commits = commits
        self._changing = asyncio.Lock()  # who changes something sees what was changed before

    async def event(self, event: str) -> EventAnswer | None:
        """Return what is known of an event; None if there is none."""
        return await asyncio.to_thread(self._service.event, event)

    def status(self) -> StatusAnswer:
        """Return how the service is."""
        return self._service.status()

    @property
    def configuration(self) -> ServiceConfiguration:
        """Return the configuration that decisions follow."""
        return self._service.decider.configuration

    async def configure(
        self, changed: Callable[[ServiceConfiguration], ServiceConfiguration]
    ) -> None:
        """Change the newest configuration; if another front end was faster, change that one's."""
        async with self._changing:
            for _ in range(CONFIGURE_TRIES):
                before, seq = await asyncio.to_thread(self._service.written_configuration)
                with suppress(DuplicateRequest):
                    await self._commits.wait(self._service.configure(changed(before), after=seq))
                    return
        raise LogUnavailable(
            "the configuration is being changed by others all the time; send the same request again",
            is_public=True,
        )

    @property
    def policy(self) -> Policy[Any]:
        """Return the policy that decides."""
        return self._service.model.policy

    async def choose_policy(self, policy: Policy[Any] | None) -> Policy[Any]:
        """Begin a model of another policy, or of the default one; return it."""
        chosen: Policy[Any] = default_policy() if policy is None else policy
        async with self._changing:
            model = self._service.model.with_policy(chosen)
            if model != self._service.model:
                await asyncio.to_thread(model.warm_up)
                await self._in_force(self._service.remodel(model))
        return chosen

    async def export_model(self) -> bytes:
        """Return the model that decides."""
        return await asyncio.to_thread(self._service.export_model)

    async def import_model(self, model: bytes) -> None:
        """Go on with a model that was exported before."""
        async with self._changing:
            await self._in_force(await asyncio.to_thread(self._service.import_model, model))

    async def reset_model(self) -> None:
        """Begin the model anew."""
        async with self._changing:
            await self._in_force(self._service.reset())

    async def model_times(self) -> ModelTimes:
        """Return when the model was begun and last changed."""
        rows = await asyncio.to_thread(self._service.log.of_event, OPERATOR)
        created = max(s.row.time for s in rows if s.row.kind != "configured")
        published = self._service.published
        modified = created if published is None else max(created, published.time)
        return ModelTimes(_date(created), _date(modified))

    async def log_times(self) -> tuple[datetime, datetime]:
        """Return the times of the first and the last record."""
        first, last = await asyncio.to_thread(self._service.log_times)
        return _date(first), _date(last)

    async def evaluations(self, *, is_importance: bool) -> list[Job]:
        """Return the evaluations of policies or of features, the newest first."""
        jobs = await asyncio.to_thread(jobs_of, self._service.log)
        return [job for job in reversed(jobs) if job.asked.is_importance is is_importance]

    async def evaluation(self, id: str, *, is_importance: bool) -> Job | None:
        """Return an evaluation; None if there is none."""
        jobs = await self.evaluations(is_importance=is_importance)
        return next((job for job in jobs if job.asked.id == id), None)

    async def ask(self, asked: EvaluationAsked) -> Job | None:
        """Ask for an evaluation, and return it; None if its id stands for another one."""
        async with self._changing:
            found = await self.evaluation(asked.id, is_importance=asked.is_importance)
            if found is None:
                await self._commits.wait(self._service.decider.append(asked))
                found = await self.evaluation(asked.id, is_importance=asked.is_importance)
                assert found is not None
        return found if found.asked == asked else None

    async def delete_evaluation(self, job: Job) -> None:
        """Show an evaluation no more, and let it not go on."""
        await self._commits.wait(self._service.decider.append(EvaluationDeleted(asked=job.seq)))

    async def _in_force(self, stored: "Future[int]") -> None:
        """Wait until something is on disk and decides; if the learner is far behind, only for the first."""
        seq = await self._commits.wait(stored)
        for _ in range(LEARNED_LOOKS):
            published = self._service.published
            if published is not None and published.seq >= seq:
                return
            await asyncio.sleep(LEARNED_SECONDS)


def _date(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
