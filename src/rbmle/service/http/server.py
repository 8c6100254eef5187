"""One process that answers HTTP with an application: start and graceful stop."""

import asyncio
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from rbmle.service.http.binding import Binding, ServerError, bound, cannot_listen, tls_of
from rbmle.service.http.connections import Connection, Connections
from rbmle.service.http.direct import DirectConnection, Submit, addresses

Started = Callable[[str], None]  # is told the address

_BACKLOG = 512  # connections that the system holds until they are accepted
_RESERVED_FILES = 256  # descriptors for the log, and for connections that are about to be closed
_TLS_FAREWELL_SECONDS = 2.0
_HSTS = ("strict-transport-security", "max-age=31536000")  # a year of TLS only, for browsers


class Server:
    """An application on a binding: run it in a thread of its own, or in the main one with signals.

    The application speaks ASGI with lifespan events. SIGTERM and SIGINT stop as `stop` does; a second
    SIGINT waits for nothing.
    """

    def __init__(
        self,
        app: ASGIApp,
        binding: Binding,
        started: Started,
        submit: Submit | None = None,
    ) -> None:
        """Make it; `submit` takes requests of the API that come whole; others go to the application."""
        self.binding = binding
        self._server = _Uvicorn(app, binding, started, submit)

    def run(self, sockets: Sequence[socket.socket] | None = None) -> None:
        """Serve until stopped, on these sockets or on those of its binding.

        Raise ServerError if that cannot begin, or did not end well.

        When it listens, `started` is called with the address. When it is stopped, nothing more is
        accepted, running requests are finished, and then the application shuts down.
        """
        if sockets is None:
            with bound(self.binding) as own:
                self._server.run(own)
        else:
            self._server.run(list(sockets))
        if self._server.lifespan.shutdown_failed:
            raise ServerError("the application did not shut down well; its log says why")

    def stop(self) -> None:
        """Stop soon; from any thread."""
        self._server.should_exit = True

    @property
    def is_stopping(self) -> bool:
        """Return whether it waits for running requests to end."""
        return self._server.should_exit


class _Uvicorn(uvicorn.Server):
    """uvicorn's server with our connections, which leaves signals and exit codes to the caller."""

    def __init__(
        self,
        app: ASGIApp,
        binding: Binding,
        started: Started,
        submit: Submit | None,
    ) -> None:
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            ws="none",
            interface="asgi3",
            lifespan="on",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            headers=[] if binding.certificate is None else [_HSTS],
            workers=1,
            proxy_headers=bool(binding.proxies),
            forwarded_allow_ips=binding.proxies,
            timeout_keep_alive=binding.keep_alive_seconds,
            timeout_graceful_shutdown=binding.graceful_seconds,
        )
        super().__init__(config)
        self._binding = binding
        self._started = started
        self._submit = submit
        self._address_of = addresses(binding.proxies)
        self._tls = tls_of(binding)
        self._connections = Connections(_most(binding), binding.head_seconds, self.server_state)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen, then say so."""
        assert sockets
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise ServerError("the application did not start; its log says why")
        self.servers = []
        try:
            for listener in sockets:
                self.servers.append(await self._listen(listener))
            self._started(self._binding.address(sockets[0].getsockname()[1]))
        except BaseException:
            await self.shutdown(sockets)
            raise
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections, ten times a second."""
        now = asyncio.get_running_loop().time()
        self._connections.close_late(now)
        if counter % 10 == 0:
            self._connections.abort_stalled(now)
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop by signals; unlike uvicorn's, not die of them afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _connection(self) -> Connection:
        parts = (self.config, self._connections, self.lifespan.state)
        if self._submit is None:
            return Connection(*parts)
        return DirectConnection(*parts, self._submit, self._address_of)

    async def _listen(self, listener: socket.socket) -> asyncio.Server:
        has_tls = self._tls is not None
        try:
            return await asyncio.get_running_loop().create_server(
                self._connection,
                sock=listener,
                backlog=_BACKLOG,
                ssl=self._tls,
                ssl_handshake_timeout=self._binding.head_seconds if has_tls else None,
                ssl_shutdown_timeout=_TLS_FAREWELL_SECONDS if has_tls else None,
            )
        except OSError as error:  # another process bound the port as well, and listens
            raise cannot_listen(self._binding, error) from None


def _most(binding: Binding) -> int:
    """Return how many connections there may be: those asked for, if the system has the files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return binding.connections
    return max(1, min(binding.connections, files - _RESERVED_FILES))
