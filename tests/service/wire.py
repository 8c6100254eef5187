"""HTTP by hand: what is sent and received on a connection, byte for byte."""

import re
import socket
from contextlib import closing


def connect(port: int, data: bytes = b"") -> socket.socket:
    """Return a connection on which something was sent."""
    client = socket.create_connection(("127.0.0.1", port), timeout=10)
    client.sendall(data)
    return client


def close_after(request: bytes) -> bytes:
    """Return a request that is the last one of its connection."""
    return request.replace(b"Host: a", b"Host: a\r\nConnection: close")


def received(client: socket.socket) -> bytes:
    """Return all until the end, and close."""
    data = b""
    with closing(client):
        try:
            while part := client.recv(65_536):
                data += part
        except ConnectionResetError:  # it was sending when it was closed
            pass
    return data


def replies(client: socket.socket, count: int = 1) -> list[bytes]:
    """Return so many replies, each of which says how long it is."""
    data = b""
    found: list[bytes] = []
    while len(found) < count:
        end = data.find(b"\r\n\r\n") + 4
        length = re.search(rb"content-length: (\d+)", data[:end])
        size = end + (int(length[1]) if length else 0)
        if end > 3 and len(data) >= size:
            found.append(data[:size])
            data = data[size:]
        else:
            part = client.recv(65_536)
            assert part, (found, data)
            data += part
    assert not data
    return found
