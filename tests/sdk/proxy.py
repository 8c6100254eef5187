"""A network that fails once: it stands between a client and the service."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

REQUEST_ID = "x-ms-client-request-id"


class Failure(Enum):
    """What becomes of the first request."""

    REFUSED = auto()  # it is answered with 503, and the service never hears of it
    LOST = auto()  # the service has answered it, and the client is told 503
    DROPPED = auto()  # the service has answered it, and the connection ends


@dataclass(slots=True, kw_only=True)
class Proxy:
    """Hands requests to a service and answers back, but fails the first."""

    address: str
    ids: list[str] = field(default_factory=list)  # of all requests, in order


def assert_same_call_again(proxy: Proxy) -> None:
    """Check that a client has sent one call more than once, with one id, which is its own."""
    assert len(proxy.ids) > 1
    assert len(set(proxy.ids)) == 1
    assert proxy.ids[0]


@contextmanager
def failing(address: str, failure: Failure) -> Iterator[Proxy]:
    """Yield a proxy before the service at an address."""
    target = urlsplit(address)
    ids: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            ids.append(self.headers.get(REQUEST_ID, ""))
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            is_first = len(ids) == 1
            if is_first and failure is Failure.REFUSED:
                self._answer(503, b"")
                return
            with closing(HTTPConnection(target.netloc, timeout=30)) as connection:
                connection.request("POST", self.path, body, dict(self.headers.items()))
                answer = connection.getresponse()
                status, content = answer.status, answer.read()
            if is_first and failure is Failure.DROPPED:
                self.close_connection = True
            elif is_first:
                self._answer(503, b"")
            else:
                self._answer(status, content)

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            if status != 204:
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Proxy(address=f"http://127.0.0.1:{server.server_port}", ids=ids)
        finally:
            server.shutdown()
            thread.join()
