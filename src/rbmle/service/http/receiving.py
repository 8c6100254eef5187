"""Bodies of requests, within a size and a time."""

import asyncio

from starlette.types import Message, Receive
from starlette.types import Scope as ASGIScope

from rbmle.service.api.faults import GoneError, TooLargeError, TooSlowError


async def receive_body(scope: ASGIScope, receive: Receive, *, limit: int, seconds: float) -> bytes:
    """Return the whole body, at most `limit` bytes that arrive within `seconds`.

    A length that is announced and too large is refused before anything is read; a body without one, in
    the message that passes the limit.
    """
    if _content_length(scope) > limit:
        raise TooLargeError(limit)
    parts: list[bytes] = []
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                parts.append(_part(message, sum(map(len, parts)), limit))
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise TooSlowError(
            f"the body was not there within {seconds:g} s; send it at once, or over a faster line"
        ) from None


def _content_length(scope: ASGIScope) -> int:
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
