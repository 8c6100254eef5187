"""Logs that break one promise each; the contract must catch them all."""

import time
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from rbmle.service.log import DuplicateRequest, Row, Stored
from rbmle.service.log.backend import EncodedRow, encode_rows
from rbmle.service.log.base import Base, Extent
from rbmle.service.log.memory import MemoryLog, MemoryRows
from tests.contract import log_promises as promises


@dataclass(kw_only=True)
class InMemory:
    """A place in memory for a log of this kind."""

    kind: Callable[[list[EncodedRow]], MemoryLog] = MemoryLog
    kept: MemoryRows = field(default_factory=MemoryRows)
    logs: list[MemoryLog] = field(default_factory=list)

    def open(self) -> MemoryLog:
        self.logs.append(self.kind(self.kept))
        return self.logs[-1]

    def damage(self, seq: int) -> None:
        *before, payload, checksum = self.kept[seq - 1]
        flipped = bytes([payload[0] ^ 1]) + payload[1:]
        self.kept[seq - 1] = (*before, flipped, checksum)  # type: ignore[assignment]  # seven cells

    @contextmanager
    def failing(self) -> Iterator[None]:
        self.logs[-1].is_unavailable = True
        yield
        self.logs[-1].is_unavailable = False


class CountsFromZero(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        return MemoryLog.append(self, rows) - 1


class ForgetsTheLimit(MemoryLog):
    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        return MemoryLog.read(self, after)


class StoresNewestFirst(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        return MemoryLog.append(self, rows[::-1])


class StopsAtNul(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        cut = [replace(row, payload=row.payload.split(b"\0")[0]) for row in rows]
        return MemoryLog.append(self, cut)


class TidiesUnicode(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        tidy = [replace(row, event=unicodedata.normalize("NFC", row.event)) for row in rows]
        return MemoryLog.append(self, tidy)


class CutsLongPayloads(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        return MemoryLog.append(self, [replace(r, payload=r.payload[:65535]) for r in rows])


class StoresWhatItCan(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        try:
            return MemoryLog.append(self, rows)
        except DuplicateRequest as error:
            if error.places[0] > 0:
                MemoryLog.append(self, rows[: error.places[0]])
            raise


class TakesRequestsTwice(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        self._seqs.clear()
        return MemoryLog.append(self, rows)


class ForgetsRequestsWhenClosed(MemoryLog):
    def __init__(self, kept: list[EncodedRow]) -> None:
        MemoryLog.__init__(self, kept)
        self._seqs = {}


class TakesNoRequestForOne(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        return MemoryLog.append(self, [replace(row, request=row.request or "") for row in rows])


class BlamesOneOnly(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        try:
            return MemoryLog.append(self, rows)
        except DuplicateRequest as error:
            raise DuplicateRequest(str(error), error.places[:1]) from None


class KeepsNothing(MemoryLog):
    def __init__(self, kept: list[EncodedRow]) -> None:
        MemoryLog.__init__(self, [])


class IgnoresCase(MemoryLog):
    def of_event(self, event: str) -> list[Stored]:
        return [s for s in self.read() if s.row.event.lower() == event.lower()]


class FindsTheFirstOnly(MemoryLog):
    def of_event(self, event: str) -> list[Stored]:
        return MemoryLog.of_event(self, event)[:1]


class LooksForEvents(MemoryLog):
    def of_request(self, request: str) -> Stored | None:
        return next((s for s in self.read() if s.row.event == request), None)


class StoresRowByRow(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        first = MemoryLog.append(self, rows[:1])
        time.sleep(0.001)  # lets readers look
        for row in rows[1:]:
            MemoryLog.append(self, [row])
        return first


class ReadsWhatWasThere(MemoryLog):
    def read(self, after: int = 0, limit: int | None = None) -> Iterator[Stored]:
        return iter(list(MemoryLog.read(self, after, limit)))


class SaysAllIsWell(MemoryLog):
    def verify(self) -> list[str]:
        MemoryLog.verify(self)
        return []


class CriesWolf(MemoryLog):
    def verify(self) -> list[str]:
        return [*MemoryLog.verify(self), "row 3 looks odd"]


class MendsChecksums(MemoryLog):
    def __init__(self, kept: list[EncodedRow]) -> None:
        seen = [Row("kind", e.decode(), (r or b"").decode(), t, p) for _, _, e, r, t, p, _ in kept]
        MemoryLog.__init__(self, encode_rows(1, seen) or kept)


class BurnsNumbers(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        if self.is_unavailable:
            seq, *others = self._kept[-1]
            self._kept[-1] = (seq + 1, *others)  # type: ignore[assignment]  # seven cells
        return MemoryLog.append(self, rows)


class StoresBeforeItFails(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        is_unavailable, self.is_unavailable = self.is_unavailable, False
        first = MemoryLog.append(self, rows)
        self.is_unavailable = is_unavailable
        return first if not is_unavailable else MemoryLog.append(self, rows)


class FailsForGood(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        if self.is_unavailable:
            self.close()
        return MemoryLog.append(self, rows)


class TakesNothing(MemoryLog):
    def append(self, rows: Sequence[Row]) -> int:
        return MemoryLog.append(self, rows) if rows else self.last() + 1


class WeighsNothing(MemoryLog):
    def size(self) -> int:
        return MemoryLog.size(self) * 0


class KeepsWhatItDiscards(MemoryLog):
    def discard(self, after: int, limit: int, kept: Collection[str]) -> int | None:
        return None


class DiscardsWhatIsNeeded(MemoryLog):
    def rebase(self, before: Extent, base: Base) -> bool:
        return MemoryLog.rebase(self, before, replace(base, needed=()))


class RebasesBlindly(MemoryLog):
    def rebase(self, before: Extent, base: Base) -> bool:
        return MemoryLog.rebase(self, self.extent(), base)


class KeepsErasedRequests(MemoryLog):
    def of_request(self, request: str) -> Stored | None:
        return MemoryLog.of_request(self, request) or next(iter(self.read()))


class HidesItsErasures(MemoryLog):
    def extent(self) -> Extent:
        return replace(MemoryLog.extent(self), erasures=0)


class NeverCloses(MemoryLog):
    def close(self) -> None:
        pass


LIARS: tuple[tuple[Callable[[list[EncodedRow]], MemoryLog], promises.Promise], ...] = (
    (KeepsWhatItDiscards, promises.retention_deletes_what_the_base_covers),
    (DiscardsWhatIsNeeded, promises.retention_deletes_what_the_base_covers),
    (RebasesBlindly, promises.retention_deletes_what_the_base_covers),
    (KeepsErasedRequests, promises.an_erasure_leaves_empty_rows),
    (HidesItsErasures, promises.an_erasure_leaves_empty_rows),
    (CountsFromZero, promises.rows_come_back_in_their_order),
    (ForgetsTheLimit, promises.rows_come_back_in_their_order),
    (StoresNewestFirst, promises.rows_come_back_in_their_order),
    (StopsAtNul, promises.every_bit_comes_back),
    (TidiesUnicode, promises.every_bit_comes_back),
    (CutsLongPayloads, promises.every_bit_comes_back),
    (StoresWhatItCan, promises.a_batch_is_stored_whole_or_not_at_all),
    (TakesRequestsTwice, promises.a_request_is_stored_once),
    (ForgetsRequestsWhenClosed, promises.a_request_is_stored_once),
    (TakesNoRequestForOne, promises.a_request_is_stored_once),
    (BlamesOneOnly, promises.a_request_is_stored_once),
    (KeepsNothing, promises.opened_again_it_is_the_same),
    (IgnoresCase, promises.rows_are_found_by_event_and_by_request),
    (FindsTheFirstOnly, promises.rows_are_found_by_event_and_by_request),
    (LooksForEvents, promises.rows_are_found_by_event_and_by_request),
    (StoresRowByRow, promises.readers_see_whole_batches_in_order),
    (ReadsWhatWasThere, promises.a_paused_reader_holds_nothing_and_goes_on),
    (SaysAllIsWell, promises.a_flipped_bit_is_found),
    (CriesWolf, promises.a_flipped_bit_is_found),
    (MendsChecksums, promises.a_flipped_bit_is_found),
    (BurnsNumbers, promises.failures_leave_no_gap_and_no_trace),
    (StoresBeforeItFails, promises.failures_leave_no_gap_and_no_trace),
    (FailsForGood, promises.failures_leave_no_gap_and_no_trace),
    (TakesNothing, promises.a_batch_of_no_rows_is_refused),
    (WeighsNothing, promises.it_grows_by_what_is_stored),
    (NeverCloses, promises.a_closed_log_says_so),
)
