"""Operations: what an operator asks of the service in any dialect, more rarely than ranks and rewards."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rbmle.core.policy import Policy
from rbmle.service.api.commits import Commits
from rbmle.service.exports.erasing import Erasure, EventSearch, Older, erase, erase_in_process
from rbmle.service.exports.evaluator import Job, jobs_of
from rbmle.service.front.decider import answer_of
from rbmle.service.front.front_end import FrontEnd
from rbmle.service.front.requests import EventAnswer
from rbmle.service.learner.checkpoints import fold_log
from rbmle.service.learner.joining import EventJoiner
from rbmle.service.log.base import DuplicateRequest, LogUnavailable
from rbmle.service.log.clock import clock
from rbmle.service.log.records import (
    OPERATOR,
    Decided,
    EvaluationAsked,
    EvaluationDeleted,
    LogCleared,
    PromotionAsked,
    decode_record,
)
from rbmle.service.model.private import FeatureHasher, key_of
from rbmle.service.model.settings import default_policy, save_bytes
from rbmle.service.settings import ServiceConfiguration

CONFIGURE_TRIES = 20
LEARNED_LOOKS, LEARNED_SECONDS = 100, 0.02  # at whether a change of the model is in force


class Operations:
    """Operations as coroutines of one loop; each returns when its change is on disk."""

    def __init__(self, service: FrontEnd, commits: Commits) -> None:
        self.service = service
        self._commits = commits
        self._changing = asyncio.Lock()  # each change sees the one before

    async def configure(
        self, change: Callable[[ServiceConfiguration], ServiceConfiguration]
    ) -> None:
        """Change the newest configuration; try again if another front end has replaced it meanwhile."""
        async with self._changing:
            for _ in range(CONFIGURE_TRIES):
                before, seq = await asyncio.to_thread(self.service.written_configuration)
                with suppress(DuplicateRequest):
                    await self._commits.wait(self.service.configure(change(before), after=seq))
                    return
        raise LogUnavailable(
            "others keep changing the configuration; send the same request again", is_public=True
        )

    async def choose_policy(self, policy: Policy[Any] | None) -> Policy[Any]:
        """Start a model of another policy, or of the default one; return the policy."""
        chosen: Policy[Any] = default_policy() if policy is None else policy
        async with self._changing:
            model = self.service.model.with_policy(chosen)
            if model != self.service.model:
                await asyncio.to_thread(model.warm_up)
                await self._wait_until_in_force(self.service.remodel(model))
        return chosen

    async def import_model(self, model: bytes) -> None:
        """Continue with an exported model."""
        async with self._changing:
            await self._wait_until_in_force(
                await asyncio.to_thread(self.service.import_model, model)
            )

    async def reset_model(self) -> None:
        """Start the same model again, without what it has learned."""
        async with self._changing:
            await self._wait_until_in_force(self.service.reset())

    def find_hasher(self) -> FeatureHasher | None:
        """Return what may have hashed features in the log; None if this service has no key for that."""
        if self.service.private is not None:
            return self.service.private
        key = key_of(self.service.data)
        return None if key is None else FeatureHasher(key)

    async def erase(
        self, search: EventSearch, events: Sequence[str], older: Older | None, *, is_dry_run: bool
    ) -> Erasure:
        """Erase the records of events; the learner then makes the model again."""
        service = self.service
        async with self._changing:
            if service.address is not None:
                return await asyncio.to_thread(
                    erase_in_process, service.address, search, events, older, is_dry_run
                )
            return await asyncio.to_thread(
                partial(erase, service.log, search, events, older=older, is_dry_run=is_dry_run)
            )

    async def clear_log(self) -> None:
        """Have all records until now deleted; the model keeps what it has learned."""
        await self._commits.wait(self.service.decider.append(LogCleared()))

    async def model_times(self) -> tuple[datetime, datetime]:
        """Return when the deciding model was started, and when it last changed."""
        rows = await asyncio.to_thread(self.service.log.of_event, OPERATOR)
        created = max(s.row.time for s in rows if s.row.kind != "configured")
        published = self.service.published
        modified = created if published is None else max(created, published.time)
        return date_of(created), date_of(modified)

    async def evaluations(self, *, is_importance: bool) -> list[Job]:
        """Return the evaluations of policies or of features, the newest first."""
        jobs = await asyncio.to_thread(jobs_of, self.service.log)
        return [job for job in reversed(jobs) if job.asked.is_importance is is_importance]

    async def evaluation(self, id: str, *, is_importance: bool) -> Job | None:
        """Return an evaluation; None if there is no such evaluation."""
        jobs = await self.evaluations(is_importance=is_importance)
        return next((job for job in jobs if job.asked.id == id), None)

    async def ask(self, asked: EvaluationAsked) -> Job | None:
        """Start an evaluation and return it; None if another one has its id."""
        async with self._changing:
            job = await self.evaluation(asked.id, is_importance=asked.is_importance)
            if job is None:
                await self._commits.wait(self.service.decider.append(asked))
                job = await self.evaluation(asked.id, is_importance=asked.is_importance)
                assert job is not None
        return job if job.asked == asked else None

    async def delete_evaluation(self, job: Job) -> None:
        """Delete an evaluation, and stop it if it is running."""
        await self._commits.wait(self.service.decider.append(EvaluationDeleted(asked=job.seq)))

    async def promote(self, policy: str) -> bool:
        """Ask for the promotion of a shadow; return whether there is such a shadow."""
        if policy not in self.service.decider.configuration.shadows:
            return False
        await self._commits.wait(self.service.decider.append(PromotionAsked(policy=policy)))
        return True

    async def _wait_until_in_force(self, stored: "Future[int]") -> None:
        """Wait until a change is on disk, and for a limited time until it is published."""
        seq = await self._commits.wait(stored)
        for _ in range(LEARNED_LOOKS):
            published = self.service.published
            if published is not None and published.seq >= seq:
                return
            await asyncio.sleep(LEARNED_SECONDS)


def describe_event(service: FrontEnd, event: str) -> EventAnswer | None:
    """Return what the log has of an event; None if it was never ranked."""
    records = service.log.of_event(event)
    ranked = next((stored for stored in records if stored.row.kind == "decided"), None)
    if ranked is None:
        return None
    decided = decode_record(ranked.row)
    assert isinstance(decided, Decided)
    state = EventJoiner(service.log, service.decider.configuration).join(
        event, records, clock.now()
    )
    is_activated = any(stored.row.kind == "activated" for stored in records)
    return EventAnswer(
        answer=answer_of(event, decided),
        time=date_of(ranked.row.time),
        is_active=not decided.deferred or is_activated,
        rewards=state.rewards,
        is_closed=state.deadline is None,
        deadline=None if state.deadline is None else date_of(state.deadline),
    )


def export_model(service: FrontEnd) -> bytes:
    """Return the model after the last record, from the newest checkpoint and the records after it."""
    service.require_published()
    bandit = fold_log(service.log, service.data).bandit
    assert bandit is not None
    return save_bytes(bandit)


def log_times(service: FrontEnd) -> tuple[datetime, datetime]:
    """Return the times of the first and the last record."""
    log = service.log
    first, last = next(log.read(log.extent().deleted, 1)), next(log.read(log.last() - 1, 1))
    return date_of(first.row.time), date_of(max(first.row.time, last.row.time))


def date_of(milliseconds: int) -> datetime:
    """Return a time of the log as a date in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
