"""Where a server listens: its address, its sockets, its certificate."""

import errno
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any

from rbmle.core.errors import RBMLEError

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
    proxies: str = ""  # addresses and networks whose X-Forwarded headers are trusted, or *
    head_seconds: float = 10.0  # from a connection's opening or its next first byte to a whole head
    keep_alive_seconds: int = 60  # between an answer and the next first byte
    graceful_seconds: int = 10  # for running requests at the end
    connections: int = 1_000  # open at once; fewer if the system allows fewer files

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not self.host or set(self.host) & set("[]/ "):
            raise ServerError(
                f"host {self.host!r} is neither a name nor an address; give 127.0.0.1, ::1 or localhost"
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


@contextmanager
def bound(binding: Binding) -> Iterator[list[socket.socket]]:
    """Hold sockets of all addresses of the host, with one port; that a port is taken shows at once."""
    sockets: list[socket.socket] = []
    try:
        port = binding.port
        for family, address in _addresses(binding):
            try:
                sockets.append(_bind(family, (address[0], port, *address[2:])))
            except OSError as error:
                if error.errno not in _SWITCHED_OFF or not sockets:
                    raise cannot_listen(binding, error) from None
            port = sockets[0].getsockname()[1]
        yield sockets
    finally:
        for one in sockets:
            one.close()


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
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def cannot_listen(binding: Binding, error: OSError) -> ServerError:
    """Return the error of a port that is not to be had."""
    why = _WHY.get(error.errno or 0, f"cannot be had: {error.strerror}; choose another one")
    return ServerError(f"port {binding.port} of {binding.host} {why}")


def tls_of(binding: Binding) -> ssl.SSLContext | None:
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
                f"proxy {proxy!r} is neither an address nor a network; give 10.0.0.1, 10.0.0.0/8 or *"
            ) from None
