"""A value that one thread changes at a time while others read it, or a copy of it."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Shared(Generic[Value]):
    """A value under a readers–writer lock in which a reader rarely waits for a writer.

    Readers read the value itself while nobody writes. A writer waits for them to finish, and leaves
    a frozen copy for those who come meanwhile, but only if the last writer met a reader: a value
    that one thread uses is never copied. A reader who finds neither waits for the writer to end.
    """

    def __init__(self, value: Value, freeze: Callable[[Value], Value]) -> None:
        self.value = value
        self.freeze = freeze
        self.writer = threading.RLock()  # held by the one who may write
        self.lock = threading.Lock()  # guards all that follows
        self.turn = threading.Condition(self.lock)
        self.waiting = 0  # threads that wait for their turn
        self.readers = 0  # of the value itself
        self.is_written = False
        self.copy: Value | None = None  # for readers, while the value is written
        self.met_reader = False

    def reading(self) -> "Reading[Value]":
        """Give the value, or a copy of what it was before the write that is under way."""
        return Reading(self)

    def writing(self) -> "Writing[Value]":
        """Give the value to the only one who may change it, once nobody reads it."""
        return Writing(self)

    def wait(self) -> None:
        """Wait until something has changed; the lock is held before and after."""
        self.waiting += 1
        try:
            self.turn.wait()
        finally:
            self.waiting -= 1

    def wake(self) -> None:
        """Wake all who wait; the lock is held."""
        if self.waiting:
            self.turn.notify_all()


class Reading(Generic[Value]):
    """A context in which a value is read."""

    __slots__ = ("is_copy", "shared")

    def __init__(self, shared: Shared[Value]) -> None:
        self.shared = shared

    def __enter__(self) -> Value:
        """Return the value, or a copy if another thread writes it."""
        shared = self.shared
        with shared.lock:
            while shared.is_written:
                shared.met_reader = True
                if shared.copy is not None:
                    self.is_copy = True
                    return shared.copy
                shared.wait()
            self.is_copy = False
            shared.readers += 1
            return shared.value

    def __exit__(self, *_: object) -> None:
        """Let a writer go on who waited for the last reader."""
        if self.is_copy:
            return
        shared = self.shared
        with shared.lock:
            shared.readers -= 1
            shared.wake()


class Writing(Generic[Value]):
    """A context in which a value is changed."""

    __slots__ = ("shared",)

    def __init__(self, shared: Shared[Value]) -> None:
        self.shared = shared

    def __enter__(self) -> Value:
        """Return the value once nobody else writes or reads it."""
        shared = self.shared
        shared.writer.acquire()
        try:
            copy = shared.freeze(shared.value) if shared.met_reader or shared.readers else None
            with shared.lock:
                shared.copy, shared.is_written, shared.met_reader = copy, True, False
                while shared.readers:
                    shared.wait()
        except BaseException:  # a state that cannot be copied, or an interrupt: others must go on
            self.__exit__()
            raise
        return shared.value

    def __exit__(self, *_: object) -> None:
        """Let others read and write."""
        shared = self.shared
        with shared.lock:
            shared.copy, shared.is_written = None, False
            shared.wake()
        shared.writer.release()
