"""Bodies of requests, within a size and a time."""

import asyncio
import types
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from typing import Any

from rbmle.service.api.faults import GoneError, TooLargeError, TooSlowError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def receive_body(scope: Scope, receive: Receive, *, limit: int, seconds: float) -> bytes:
    """Return the whole body, at most `limit` bytes that arrive within `seconds`.

    A length that is announced and too large is refused before anything is read; a body without one, in
    the message that passes the limit.
    """
    if _content_length(scope) > limit:
        raise TooLargeError(limit)
    message: Message | None = None
    steps = receive().__await__()
    try:
        awaited = next(steps)
    except StopIteration as arrived:  # what is there needs no clock
        message = arrived.value
        if not arrived.value.get("more_body", False):
            return _part(arrived.value, 0, limit)
    try:
        async with asyncio.timeout(seconds):
            if message is None:
                message = await _continued(steps, awaited)
            return await _collected(message, receive, limit)
    except TimeoutError:
        raise TooSlowError(
            f"the body was not there within {seconds:g} s; send it at once, or over a faster line"
        ) from None


async def _collected(message: Message, receive: Receive, limit: int) -> bytes:
    parts = [_part(message, 0, limit)]
    size = len(parts[0])
    while message.get("more_body", False):
        message = await receive()
        parts.append(_part(message, size, limit))
        size += len(parts[-1])
    return b"".join(parts)


@types.coroutine
def _continued(
    steps: Generator[Any, Any, Message], awaited: object
) -> Generator[Any, Any, Message]:
    """Go on with an awaitable whose first step was made outside, and awaits something."""
    try:
        yield awaited
    except asyncio.CancelledError as cancelled:
        steps.throw(cancelled)
    return (yield from steps)


def _content_length(scope: Scope) -> int:
    """Return the length that is announced, 0 for none."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value)
    return 0


def _part(message: Message, before: int, limit: int) -> bytes:
    """Return what a message has of a body, unless with what came before it is over the limit."""
    if message["type"] == "http.disconnect":
        raise GoneError("the client left before its body was there")
    part: bytes = message.get("body", b"")
    if before + len(part) > limit:
        raise TooLargeError(limit)
    return part
