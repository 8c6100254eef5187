"""The HTTP server of a process: sockets, TLS, start and graceful stop."""

import asyncio
import errno
import resource
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any, Self

import uvicorn
from starlette.types import ASGIApp

from rbmle.core.errors import RBMLEError, SettingError
from rbmle.service.http.connections import (
    Connection,
    Connections,
    DirectConnection,
    Submit,
    addresses,
)
from rbmle.service.settings import ServeSettings

_WHY = {
    errno.EADDRINUSE: "is in use; stop the program that uses it, or choose another one (0 for a free one)",
    errno.EACCES: "is not allowed for this user; choose one from 1024 on, or put a proxy in front",
    errno.EADDRNOTAVAIL: "is not on this machine; give one of its addresses, or 0.0.0.0 for all",
}
_NO_IPV6 = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # on some machines, even for localhost

_BACKLOG = 512  # connections that the system holds until they are accepted
_RESERVED_FILES = 256  # descriptors for the log, and for connections that are being closed
_TLS_FAREWELL_SECONDS = 2.0
_HSTS = ("strict-transport-security", "max-age=31536000")  # browsers use only TLS for a year


class ServerError(RBMLEError):
    """The server cannot start, or failed to stop cleanly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Where a server listens, with its timeouts."""

    host: str = "127.0.0.1"
    port: int = 8080  # 0: a free one
    certificate: Path | None = None  # a chain in PEM; None: plain HTTP
    private_key: Path | None = None  # None: it is in the certificate's file
    proxies: str = ""  # addresses and networks whose X-Forwarded headers are trusted, or *
    head_seconds: float = 10.0  # from the first byte of a head, or a new connection, to its end
    keep_alive_seconds: int = 60  # between a reply and the next request
    graceful_seconds: int = 10  # for running requests when it stops
    connections: int = 1_000  # open at once; fewer if the system allows fewer files

    @classmethod
    def of(cls, settings: ServeSettings) -> Self:
        """Return the binding of a service; raise SettingError for a public address without keys."""
        certificate, key = settings.certificate, settings.private_key
        binding = cls(
            host=settings.host,
            port=settings.port,
            certificate=None if certificate is None else Path(certificate),
            private_key=None if key is None else Path(key),
            proxies=settings.proxies,
            connections=settings.connections,
        )
        if settings.no_keys and binding.is_public:
            raise SettingError(
                f"{settings.host} is reachable from other machines, so keys are required; leave --no-keys out, "
                "or listen on 127.0.0.1"
            )
        return binding

    def __post_init__(self) -> None:
        """Raise ServerError if a setting is invalid."""
        if not self.host or set(self.host) & set("[]/ "):
            raise ServerError(
                f"host {self.host!r} is not a name or an address; give 127.0.0.1, ::1 or localhost"
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
        """Whether other machines may reach it: true unless it is certainly a loopback address."""
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
        """Return the URL for clients."""
        scheme = "http" if self.certificate is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}"


@contextmanager
def open_sockets(binding: Binding) -> Iterator[list[socket.socket]]:
    """Open sockets for all addresses of the host on one port; raise ServerError if it is in use."""
    sockets: list[socket.socket] = []
    try:
        port = binding.port
        for family, address in _addresses(binding):
            try:
                sockets.append(_bind(family, (address[0], port, *address[2:])))
            except OSError as error:
                if error.errno not in _NO_IPV6 or not sockets:
                    raise cannot_listen(binding, error) from None
            port = sockets[0].getsockname()[1]
        yield sockets
    finally:
        for listener in sockets:
            listener.close()


def _addresses(binding: Binding) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the families and addresses of the host, IPv4 first."""
    try:
        entries = socket.getaddrinfo(
            binding.host, binding.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (socket.gaierror, UnicodeError):
        raise ServerError(
            f"host {binding.host!r} has no known address; give an address of this machine, "
            "such as 127.0.0.1, or 0.0.0.0 for all"
        ) from None
    return sorted({(int(family), address) for family, _, _, _, address in entries})


def _bind(family: int, address: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def cannot_listen(binding: Binding, error: OSError) -> ServerError:
    """Return the error for a port that cannot be used."""
    why = _WHY.get(error.errno or 0, f"cannot be used: {error.strerror}; choose another one")
    return ServerError(f"port {binding.port} of {binding.host} {why}")


def tls_of(binding: Binding) -> ssl.SSLContext | None:
    """Return the TLS context of a binding; None without a certificate."""
    if binding.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    key = binding.private_key or binding.certificate
    try:
        for path in (binding.certificate, key):
            path.read_bytes()  # OpenSSL does not say which file it cannot read
        context.load_cert_chain(binding.certificate, key, password=lambda: "")  # do not prompt
    except ssl.SSLError as error:
        raise ServerError(
            f"{binding.certificate} and {key} are not a certificate and its private key "
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
                f"proxy {proxy!r} is not an address or a network; give 10.0.0.1, 10.0.0.0/8 or *"
            ) from None


Started = Callable[[str], None]  # takes the URL


class Server(uvicorn.Server):
    """Serves an ASGI application with lifespan events, in any thread: uvicorn with our connections.

    In the main thread, SIGTERM and SIGINT stop it gracefully, and a second SIGINT stops it at once.
    """

    def __init__(
        self, app: ASGIApp, binding: Binding, started: Started, submit: Submit | None = None
    ) -> None:
        """Create it; `submit` takes complete requests of the API, and the application all others."""
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
        self._tell_started = started
        self._submit = submit
        self._address_of = addresses(binding.proxies)
        self._tls = tls_of(binding)
        self._connections = Connections(_most(binding), binding.head_seconds, self.server_state)

    def run(self, sockets: Sequence[socket.socket] | None = None) -> None:
        """Serve until stopped, on these sockets or on those of the binding; raise ServerError.

        `started` is called with the URL as soon as it listens. A stop closes the sockets, finishes running
        requests, and then shuts down the application.
        """
        if sockets is None:
            with open_sockets(self._binding) as opened:
                super().run(opened)
        else:
            super().run(list(sockets))
        if self.lifespan.shutdown_failed:
            raise ServerError("the application did not shut down cleanly; its log says why")

    def stop(self) -> None:
        """Stop soon; callable from any thread."""
        self.should_exit = True

    @property
    def is_stopping(self) -> bool:
        """Whether it waits for running requests to end."""
        return self.should_exit

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen, then call `started`."""
        assert sockets
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise ServerError("the application did not start; its log says why")
        self.servers = []
        try:
            for listener in sockets:
                self.servers.append(await self._listen(listener))
            self._tell_started(self._binding.address(sockets[0].getsockname()[1]))
        except BaseException:
            await self.shutdown(sockets)
            raise
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        """Enforce the deadlines of connections, ten times a second."""
        now = asyncio.get_running_loop().time()
        self._connections.close_late(now)
        if counter % 10 == 0:
            self._connections.abort_stalled(now)
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on signals; unlike uvicorn, do not raise them again afterwards."""
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
        except OSError as error:  # another process bound the port too, and listens
            raise cannot_listen(self._binding, error) from None


def _most(binding: Binding) -> int:
    """Return the largest number of connections that the limit of open files allows."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return binding.connections
    return max(1, min(binding.connections, files - _RESERVED_FILES))
