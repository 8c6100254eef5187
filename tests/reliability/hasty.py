"""The control of the kill test: a service that acknowledges before the commit."""

from collections.abc import Sequence
from concurrent.futures import Future

from rbmle.cli import main
from rbmle.service.logs.base import Row
from rbmle.service.writer import Writer

_submit = Writer.submit


def acknowledged(self: Writer, rows: Sequence[Row]) -> "Future[int]":
    """Write rows some time, and say at once that it is done."""
    _submit(self, rows)
    done: Future[int] = Future()
    done.set_result(0)
    return done


if __name__ == "__main__":
    Writer.submit = acknowledged  # type: ignore[method-assign]  # that is the control
    main()
