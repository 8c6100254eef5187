"""One process that answers HTTP with an application: sockets, TLS, start and graceful stop."""

import asyncio
import errno
import resource
import signal
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any

import uvicorn

from rbmle.core.errors import RBMLEError
from rbmle.service.http.connections import Connection, Crowd
from rbmle.service.http.receiving import Receive, Scope, Send
from rbmle.service.http.whole_requests import Taker, WholeRequests

Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Started = Callable[[str], None]  # is told the address

_BACKLOG = 512  # connections that the system holds until they are accepted
_RESERVED_FILES = 256  # descriptors for the log, and for connections that are about to be closed
_TLS_FAREWELL_SECONDS = 2.0
_WHY = {
    errno.EADDRINUSE: "is in use; stop the program that has it, or choose another one (0 for a free one)",
    errno.EACCES: "is not allowed for this user; choose one from 1024 on, or let a proxy have it",
    errno.EADDRNOTAVAIL: "is not of this machine; give an address that it has, or 0.0.0.0 for all",
}
_SWITCHED_OFF = (
    errno.EADDRNOTAVAIL,
    errno.EAFNOSUPPORT,
)  # IPv6 on some machines, for localhost too


class ServerError(RBMLEError):
    """A server that cannot start, or did not stop well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Where a server listens, and how long it waits for whom."""

    host: str = "127.0.0.1"
    port: int = 8080  # 0 for one that is free
    certificate: Path | None = None  # a chain in PEM; None for plain HTTP
    private_key: Path | None = None  # None if it is in the certificate's file
    proxies: str = ""  # addresses and networks whose X-Forwarded headers are believed, or *
    head_seconds: float = 10.0  # from a connection's opening or its next first byte to a whole head
    keep_alive_seconds: int = 60  # between an answer and the next first byte
    graceful_seconds: int = 10  # for running requests at the end
    connections: int = 1_000  # open at once; fewer if the system allows fewer files

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not self.host or set(self.host) & set("[]/ "):
            raise ServerError(
                f"host {self.host!r} is no name and no address; give one such as 127.0.0.1, ::1 or localhost"
            )
        if not 0 <= self.port <= 65_535:
            raise ServerError(
                f"port {self.port} does not exist; give 1 to 65535, or 0 for a free one"
            )
        if self.private_key is not None and self.certificate is None:
            raise ServerError(
                f"there is a private key, {self.private_key}, but no certificate; give both, or none"
            )
        for name in ("head_seconds", "keep_alive_seconds", "graceful_seconds", "connections"):
            if not 0 < getattr(self, name) < 1e9:
                raise ServerError(f"{name} is {getattr(self, name)}; give a positive number")
        _check_proxies(self.proxies)

    @property
    def is_public(self) -> bool:
        """Return if others than this machine may reach it; what is not surely loopback is public."""
        if self.host.lower() == "localhost" or self.host.lower().endswith(".localhost"):
            return False
        try:
            address = ip_address(self.host.partition("%")[0])
        except ValueError:
            return True
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            return not address.ipv4_mapped.is_loopback
        return not address.is_loopback

    def address(self, port: int) -> str:
        """Return where clients find it."""
        scheme = "http" if self.certificate is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}"


class Server:
    """An application on a binding: run it in a thread of its own, or in the main one with signals.

    The application speaks ASGI with lifespan events. SIGTERM and SIGINT stop as `stop` does; a second
    SIGINT waits for nothing.
    """

    def __init__(
        self,
        app: Application,
        binding: Binding,
        started: Started,
        taker: Callable[[], Taker] | None = None,
    ) -> None:
        """Make it; a `taker`, which is there once the application has started, may answer in its place."""
        self.binding = binding
        self._server = _Uvicorn(app, binding, started, taker)

    def run(self) -> None:
        """Serve until stopped; raise ServerError if that cannot begin, or did not end well.

        When it listens, `started` is called with the address. When it is stopped, nothing more is
        accepted, running requests are finished, and then the application shuts down.
        """
        with _bound(self.binding) as sockets:
            self._server.run(sockets)
        if self._server.lifespan.shutdown_failed:
            raise ServerError("the application did not shut down well; its log says why")

    def stop(self) -> None:
        """Stop soon; from any thread."""
        self._server.should_exit = True

    @property
    def is_stopping(self) -> bool:
        """Return whether it waits for running requests to end."""
        return self._server.should_exit


def serve(app: Application, binding: Binding, started: Started) -> None:
    """Serve an application until SIGTERM or SIGINT; see Server.run."""
    Server(app, binding, started).run()


class _Uvicorn(uvicorn.Server):
    """uvicorn's server with our connections, which leaves signals and exit codes to the caller."""

    def __init__(
        self,
        app: Application,
        binding: Binding,
        started: Started,
        taker: Callable[[], Taker] | None,
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
            workers=1,
            proxy_headers=bool(binding.proxies),
            forwarded_allow_ips=binding.proxies,
            timeout_keep_alive=binding.keep_alive_seconds,
            timeout_graceful_shutdown=binding.graceful_seconds,
        )
        super().__init__(config)
        self._binding = binding
        self._started = started
        self._taker = taker
        self._tls = _tls(binding)
        self._crowd = Crowd(_most(binding), binding.head_seconds, self.server_state)

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
        self._crowd.close_late(now)
        if counter % 10 == 0:
            self._crowd.abort_stalled(now)
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
        parts = (self.config, self._crowd, self.lifespan.state)
        if self._taker is None:
            return Connection(*parts)
        return WholeRequests(*parts, self._taker(), is_direct=not self._binding.proxies)

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
            raise _cannot_listen(self._binding, error) from None


@contextmanager
def _bound(binding: Binding) -> Iterator[list[socket.socket]]:
    """Hold sockets of all addresses of the host, with one port; that a port is taken shows at once."""
    sockets: list[socket.socket] = []
    try:
        port = binding.port
        for family, address in _addresses(binding):
            try:
                sockets.append(_bind(family, (address[0], port, *address[2:])))
            except OSError as error:
                if error.errno not in _SWITCHED_OFF or not sockets:
                    raise _cannot_listen(binding, error) from None
            port = sockets[0].getsockname()[1]
        yield sockets
    finally:
        for bound in sockets:
            bound.close()


def _addresses(binding: Binding) -> list[tuple[int, tuple[Any, ...]]]:
    """Return families and addresses of the host, IPv4 first."""
    try:
        found = socket.getaddrinfo(
            binding.host, binding.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (socket.gaierror, UnicodeError):
        raise ServerError(
            f"no address is known for host {binding.host!r}; give an address of this machine, "
            "such as 127.0.0.1, or 0.0.0.0 for all"
        ) from None
    return sorted({(int(family), address) for family, _, _, _, address in found})


def _bind(family: int, address: tuple[Any, ...]) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def _cannot_listen(binding: Binding, error: OSError) -> ServerError:
    why = _WHY.get(error.errno or 0, f"cannot be had: {error.strerror}; choose another one")
    return ServerError(f"port {binding.port} of {binding.host} {why}")


def _tls(binding: Binding) -> ssl.SSLContext | None:
    """Return the context of a certificate, None without one."""
    if binding.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    key = binding.private_key or binding.certificate
    try:
        for path in (binding.certificate, key):
            path.read_bytes()  # OpenSSL would not say which of them it cannot read
        context.load_cert_chain(binding.certificate, key, password=lambda: "")  # nobody is asked
    except ssl.SSLError as error:
        raise ServerError(
            f"{binding.certificate} and {key} are no certificate and its private key "
            f"({error.reason or 'no PEM'}); give both in PEM, the key without a password"
        ) from None
    except OSError as error:
        raise ServerError(
            f"{error.filename} cannot be read: {error.strerror}; give a certificate and its key in PEM"
        ) from None
    return context


def _check_proxies(proxies: str) -> None:
    for proxy in filter(None, (part.strip() for part in proxies.split(","))):
        try:
            proxy == "*" or ip_network(proxy)
        except ValueError:
            raise ServerError(
                f"proxy {proxy!r} is no address and no network; give some as 10.0.0.1, 10.0.0.0/8, or *"
            ) from None


def _most(binding: Binding) -> int:
    """Return how many connections there may be: those asked for, if the system has the files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return binding.connections
    return max(1, min(binding.connections, files - _RESERVED_FILES))
