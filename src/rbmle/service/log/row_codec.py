"""A row as the values of a table's columns, with a checksum over all of them and its place in the order."""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from rbmle.service.log.base import Row, Stored
from rbmle.service.log.errors import DuplicateRequest, LogDamaged

# seq, kind, event, request, time, payload, checksum. Texts are UTF-8, whatever a database thinks
# of characters; so every text can be stored, and damaged ones can be read and reported.
EncodedRow = tuple[int, bytes, bytes, bytes | None, int, bytes, int]

COLUMNS = ("seq", "kind", "event", "request", "time", "payload", "checksum")
HEAD = struct.Struct("<qqqqqq")
NO_REQUEST = -1  # its length; an empty request has length 0
CHUNK = 64  # rows that are read at a time: reads are short, and hold no more than this in memory


def encoded_rows(first: int, rows: Sequence[Row]) -> list[EncodedRow]:
    """Return the values of rows that are numbered from `first` on."""
    return [_encoded(seq, row) for seq, row in enumerate(rows, first)]


def stored(encoded: EncodedRow) -> Stored:
    """Return the row that has these values; raise LogDamaged if they are not what was stored."""
    seq, kind, event, request, time, payload, checksum = encoded
    try:
        is_sound = checksum == _checksum(encoded)
    except (TypeError, struct.error):  # damage can make any value one of another type
        is_sound = False
    if not is_sound:
        raise LogDamaged(
            f"row {seq} of the log is damaged: it does not have the checksum it was stored with; "
            f"restore the log from a copy",
            seq,
        )
    texts = kind.decode(), event.decode(), None if request is None else request.decode()
    return Stored(seq, Row(*texts, time, payload))


def in_chunks(
    ask: Callable[[int, int], list[EncodedRow]], after: int, limit: int | None
) -> Iterator[EncodedRow]:
    """Yield rows in their order, where ask(after, n) returns the next n of them, or all there are."""
    while limit is None or limit > 0:
        size = CHUNK if limit is None else min(limit, CHUNK)
        chunk = ask(after, size)
        yield from chunk
        if len(chunk) < size:
            return
        after = chunk[-1][0]
        limit = None if limit is None else limit - size


def problems_of(entries: Iterable[EncodedRow]) -> list[str]:
    """Return the gaps and the damaged rows of a whole log, read in order."""
    problems = []
    last = 0
    for entry in entries:
        seq = entry[0]
        if seq != last + 1:
            problems.append(f"row {last + 1} should follow row {last}, but row {seq} does")
        last = seq
        try:
            stored(entry)
        except LogDamaged as damage:
            problems.append(str(damage))
    return problems


def duplicate(rows: Sequence[Row], known: Iterable[bytes]) -> DuplicateRequest:
    """Return the refusal of a batch, of whose requests these were stored before."""
    seen = set(known)
    places = []
    for place, row in enumerate(rows):
        request = None if row.request is None else row.request.encode()
        if request in seen:
            places.append(place)
        elif request is not None:
            seen.add(request)
    again = ", ".join(repr(rows[place].request) for place in places)
    return DuplicateRequest(f"stored before, or twice in one batch: request {again}", places)


def requests_of(rows: Sequence[Row]) -> list[bytes]:
    """Return the requests there are, as they are stored."""
    return [row.request.encode() for row in rows if row.request is not None]


def _encoded(seq: int, row: Row) -> EncodedRow:
    request = None if row.request is None else row.request.encode()
    encoded = (seq, row.kind.encode(), row.event.encode(), request, row.time, row.payload)
    return (*encoded, _checksum((*encoded, 0)))


def _checksum(encoded: EncodedRow) -> int:
    """Return the CRC-32 of all values but the last, each with its length."""
    seq, kind, event, request, time, payload, _ = encoded
    lengths = (
        len(kind),
        len(event),
        NO_REQUEST if request is None else len(request),
        len(payload),
    )
    head = HEAD.pack(seq, time, *lengths) + kind + event + (request or b"")
    return zlib.crc32(payload, zlib.crc32(head))
