"""Bodies that are received by ASGI, within a size and a time."""

import asyncio
import time

import pytest
from starlette.types import Message

from rbmle.service.api.faults import GoneError, TooLargeError, TooSlowError
from rbmle.service.http.asgi import receive_body
from tests.service.http.samples import (
    LATE,
)


def test_a_body_is_refused_in_the_message_that_passes_the_limit() -> None:
    part = {"type": "http.request", "body": b"ab", "more_body": True}
    messages = Messages(part, part, part)
    with pytest.raises(TooLargeError, match="larger than 3 bytes"):
        asyncio.run(receive_body({"headers": []}, messages.receive, limit=3, seconds=1))
    assert len(messages.left) == 1
    announced = {"headers": [(b"host", b"a"), (b"content-length", b"4")]}
    with pytest.raises(TooLargeError):
        asyncio.run(receive_body(announced, messages.receive, limit=3, seconds=1))
    assert len(messages.left) == 1


def test_a_client_that_leaves_is_gone() -> None:
    part = {"type": "http.request", "body": b"ab", "more_body": True}
    for before in ([], [part], [part, part]):
        messages = Messages(*before, {"type": "http.disconnect"})
        with pytest.raises(GoneError):
            asyncio.run(receive_body({"headers": []}, messages.receive, limit=9, seconds=1))


def test_the_whole_body_has_one_deadline() -> None:
    async def receive() -> Message:
        await asyncio.sleep(0.08)
        return {"type": "http.request", "body": b"a", "more_body": True}

    begun = time.monotonic()
    with pytest.raises(TooSlowError, match=r"within 0\.2 s"):
        asyncio.run(receive_body({"headers": []}, receive, limit=100, seconds=0.2))
    assert time.monotonic() - begun < 0.2 + LATE


def test_a_body_that_is_awaited_arrives_and_can_be_cancelled() -> None:
    async def run() -> None:
        arrived = asyncio.Event()
        ends: list[str] = []

        async def receive() -> Message:
            try:
                await arrived.wait()
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise
            return {"type": "http.request", "body": b"late"}

        body = receive_body({"headers": []}, receive, limit=9, seconds=5)
        task = asyncio.create_task(body)
        await asyncio.sleep(0.01)
        arrived.set()
        assert await task == b"late"
        arrived.clear()
        with pytest.raises(TooSlowError):
            await receive_body({"headers": []}, receive, limit=9, seconds=0.01)
        assert ends == ["cancelled"]

    asyncio.run(run())


class Messages:
    """A client whose messages are all here."""

    def __init__(self, *messages: Message) -> None:
        self.left = list(messages)

    async def receive(self) -> Message:
        return self.left.pop(0)
