"""Requests of the API that come by ASGI: from its messages to a request, and from a reply to messages."""

import asyncio

from starlette.types import Message, Receive, Send
from starlette.types import Scope as ASGIScope

from rbmle.service.api.base import Reply, Request, repeated_headers
from rbmle.service.api.faults import BodyNotReceivedError, GoneError, TooLargeError, TooSlowError
from rbmle.service.api.submit import Api

BODY_SECONDS = 10.0  # in which a body is received


async def serve_api(api: Api, scope: ASGIScope, receive: Receive, send: Send) -> None:
    """Submit a request, and send its reply; its body is received only if its head is admitted."""
    replied: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    call = api.begin(request_of(scope), lambda reply: _resolve(replied, reply))
    if call is not None:
        try:
            body = await receive_body(scope, receive, limit=call.most_bytes, seconds=BODY_SECONDS)
        except GoneError:
            return
        except BodyNotReceivedError as error:
            api.refuse(call, error)
        else:
            api.proceed(call, body)
    await send_reply(send, await replied)


def request_of(scope: ASGIScope) -> Request:
    """Return the head of a request."""
    client = scope.get("client")
    return Request(
        method=scope["method"],
        path=scope["raw_path"],
        query=scope["query_string"],
        headers=dict(scope["headers"]),
        address=str(client[0]) if client else "",
        repeated=repeated_headers(scope["headers"]),
    )


async def send_reply(send: Send, reply: Reply) -> None:
    """Send a reply."""
    headers = [(b"content-length", b"%d" % len(reply.body)), *reply.headers]
    if reply.body:
        headers.append((b"content-type", reply.kind))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def _resolve(replied: "asyncio.Future[Reply]", reply: Reply) -> None:
    if not replied.done():  # else the server stopped, and cancelled it
        replied.set_result(reply)


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
