"""Server-sent events: a message each second, until the reader leaves or the server stops."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope, Send

SECONDS = 1.0  # between messages
LOOK_SECONDS = 0.2  # between looks whether the server stops
PATIENCE_SECONDS = 1.0  # with a reader that does not read, when the server stops
MOST_STREAMS = 32  # at the same time


@dataclass(slots=True)
class Gate:
    """How many are watching."""

    streams: int = 0

    @property
    def is_full(self) -> bool:
        """Return whether nobody else may."""
        return self.streams >= MOST_STREAMS


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """An answer that goes on; `message` gives the next message, None when it is over."""

    message: Callable[[], Awaitable[bytes | None]]
    is_stopping: Callable[[], bool]
    gate: Gate
    headers: Mapping[str, str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send messages until any of the three ends it."""
        sending = asyncio.create_task(self._send(send))
        tasks = {sending, asyncio.create_task(_left(receive)), asyncio.create_task(self._stopped())}
        self.gate.streams += 1
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.gate.streams -= 1
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        with suppress(asyncio.CancelledError):
            sending.result()

    async def _send(self, send: Send) -> None:
        headers = {"content-type": "text/event-stream; charset=utf-8", **self.headers}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        async for message in self._messages():
            await send(_body(message, more=True))
        await send(_body(b"", more=False))

    async def _messages(self) -> AsyncIterator[bytes]:
        while not self.is_stopping() and (message := await self.message()) is not None:
            yield b"data: " + message + b"\n\n"
            await self._pause()

    async def _pause(self) -> None:
        for _ in range(round(SECONDS / LOOK_SECONDS)):
            if self.is_stopping():
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _stopped(self) -> None:
        while not self.is_stopping():
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.sleep(PATIENCE_SECONDS)


async def _left(receive: Receive) -> None:
    """Return when the reader has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _body(content: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}
