"""What a dialect gives back, as HTTP needs it."""

from dataclasses import dataclass

JSON = b"application/json"
BYTES = b"application/octet-stream"

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a body and what is said of them."""

    status: int
    body: bytes = b""
    headers: Headers = ()
    kind: bytes = JSON
