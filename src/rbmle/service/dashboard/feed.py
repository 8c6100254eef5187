"""What is shown now, made once however many look."""

from dataclasses import dataclass, field

import msgspec

from rbmle.service.dashboard.overview import Backend
from rbmle.service.dashboard.view import View, view

FRESH_SECONDS = 0.9  # less than the time between two messages


@dataclass(slots=True, kw_only=True)
class Feed:
    """The latest view, and its JSON."""

    source: Backend
    _view: View | None = field(default=None, init=False, repr=False)
    _message: bytes = field(default=b"", init=False, repr=False)
    _until: float = field(default=0.0, init=False)

    def view(self) -> View:
        """Return what is to be shown."""
        now = self.source.now()
        if self._view is None or now >= self._until:
            self._view = view(self.source.overview())
            self._message = msgspec.json.encode(self._view)
            self._until = now + FRESH_SECONDS
        return self._view

    def message(self) -> bytes:
        """Return the same as JSON."""
        self.view()
        return self._message
