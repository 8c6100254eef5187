"""What is awaited from the log: each outcome arrives once, in time, whatever happens to the others."""

import asyncio
import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest

from rbmle.service.api.commits import Commits, Outcome
from rbmle.service.log.base import LogUnavailable, Row

ROW = Row("decided", "event", None, 0, b"{}")


class Appended:
    """A writer that remembers who is to be told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def submit(self, rows: list[Row], done: Any) -> None:
        assert rows == [ROW]
        self.told.append(done)


def awaited(seconds: float) -> tuple[Commits, list[Any]]:
    writer = Appended()
    return Commits(writer, seconds), writer.told  # type: ignore[arg-type]  # it has what is needed


def test_a_failing_callback_harms_no_other_and_each_is_called_once() -> None:
    async def run() -> None:
        errors: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        commits, told = awaited(0.05)
        outcomes: list[list[Outcome]] = [[] for _ in range(7)]

        def then(place: int, outcome: Outcome) -> None:
            outcomes[place].append(outcome)
            if place in (0, 3):
                raise OSError("no")

        for place in range(6):
            commits.append(ROW, lambda outcome, place=place: then(place, outcome))  # type: ignore[misc]  # of this turn
        for seq, commit in enumerate(told[:3]):
            commit.set_result(seq)
        await asyncio.sleep(0.1)
        assert outcomes[:3] == [[0], [1], [2]]
        assert all(isinstance(late[0], LogUnavailable) for late in outcomes[3:6])
        assert len(errors) == 2
        commits.append(ROW, lambda outcome: then(6, outcome))
        await asyncio.sleep(0.1)
        for commit in told:
            commit.set_exception(OSError("too late"))
        await asyncio.sleep(0.01)
        assert [len(one) for one in outcomes] == [1] * 7

    asyncio.run(run())


def test_a_finished_commit_is_not_late() -> None:
    async def run() -> None:
        commits, told = awaited(0.02)
        outcomes: list[Outcome] = []
        commits.append(ROW, outcomes.append)
        await asyncio.sleep(0)
        thread = threading.Thread(target=told[0].set_result, args=(5,))
        thread.start()
        thread.join()
        time.sleep(0.05)  # the loop is busy
        await asyncio.sleep(0.01)
        assert outcomes == [5]

    asyncio.run(run())


def test_a_future_of_another_call_can_be_awaited() -> None:
    async def run() -> None:
        commits, _ = awaited(0.05)
        good: Future[int] = Future()
        good.set_result(8)
        assert await commits.wait(good) == 8
        with pytest.raises(LogUnavailable, match=r"within 0\.05 s"):
            await commits.wait(Future())

    asyncio.run(run())


def test_a_writer_may_finish_after_the_loop_is_closed() -> None:
    outcomes: list[Outcome] = []

    async def made() -> Any:
        commits, told = awaited(1.0)
        commits.append(ROW, outcomes.append)
        return told[0]

    asyncio.run(made()).set_result(3)
    assert outcomes == []  # there is no loop to tell
