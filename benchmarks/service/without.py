"""`python -m benchmarks.service.without PART rbmle-arguments…`: the service without one of its tricks."""

import sys
from typing import Any

from rbmle.cli import main
from rbmle.service.api.submit import Batches
from rbmle.service.http.connections import Connection, DirectConnection
from rbmle.service.model import features

PARTS = ("nothing", "direct", "batches", "kernel")


def _leave_out(part: str) -> None:
    """Replace a part by the plain way."""
    if part == "direct":  # every request goes through uvicorn and ASGI
        DirectConnection.begin = Connection.begin  # type: ignore[method-assign]
    elif part == "batches":  # every rank is decided by itself

        def add(self: Batches[Any], item: Any) -> None:
            self._decide([item])

        Batches.add = add  # type: ignore[method-assign]
    elif part == "kernel":  # features are read by Python
        vars(features)["json_rows"] = lambda *_, **__: None


if __name__ == "__main__":
    _leave_out(sys.argv.pop(1))
    main()
