"""A minimal HTTP client over one persistent connection, which leaves the CPU to the service."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

HOST = "127.0.0.1"
LONGEST_ANSWER = 10.0  # seconds after which a service counts as lost


class LostError(Exception):
    """A connection that was closed or refused before the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request."""

    method: str = "POST"
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1", f"host: {HOST}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += [f"content-length: {len(self.body)}", "", ""]
        return "\r\n".join(lines).encode() + self.body


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """A connection that is opened when it is needed, and again after it was lost."""

    def __init__(self) -> None:
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._port = 0

    async def ask(self, port: int, request: Request) -> Answer:
        """Return the answer, or raise LostError: then it is unknown whether the service took the request."""
        try:
            async with asyncio.timeout(LONGEST_ANSWER):
                reader, writer = await self._connected(port)
                writer.write(request.encoded())
                return await _answer(reader)
        except (OSError, EOFError, TimeoutError) as error:
            await self.close()
            raise LostError(f"{type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            _, writer = self._streams
            self._streams = None
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def _connected(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is not None and self._port != port:
            await self.close()
        if self._streams is None:
            self._streams, self._port = await asyncio.open_connection(HOST, port), port
        return self._streams


async def _answer(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")[:-2]
    headers = {name.lower(): value.strip() for name, _, value in (s.partition(":") for s in lines)}
    if headers.get("transfer-encoding") == "chunked":
        return Answer(int(first.split()[1]), headers, await _chunks(reader))
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Answer(int(first.split()[1]), headers, body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return body


async def ask_once(port: int, path: str, method: str = "GET") -> Answer:
    """Return the answer to one request over a new connection."""
    connection = Connection()
    try:
        return await connection.ask(port, Request(method=method, path=path))
    finally:
        await connection.close()
