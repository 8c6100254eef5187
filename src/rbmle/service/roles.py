"""The two kinds of process that a service is made of: front ends, and a learner."""

import ctypes
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from rbmle.core.errors import SettingError
from rbmle.service.access.keys import KeyRing
from rbmle.service.evaluations.running import Evaluator
from rbmle.service.front_end import FrontEnd
from rbmle.service.http.app import Application
from rbmle.service.http.binding import bound
from rbmle.service.http.logging import configure_logging, tell
from rbmle.service.http.server import Server
from rbmle.service.http.worker_counters import WorkerCounters
from rbmle.service.learning.learner import LogLearner
from rbmle.service.learning.start import settings_of
from rbmle.service.log.opening import LOG_FILE, open_log, open_publications
from rbmle.service.log.timings import Histogram, Timings
from rbmle.service.settings import Settings, in_force

_M_MMAP_THRESHOLD = -3  # of malloc.h
MAPPED_BYTES = 2**20  # from here on a block of memory is mapped by itself
SWITCH_SECONDS = 0.001  # after which a thread that computes lets another one on


def address_of(settings: Settings) -> str:
    """Return the address of the log; raise SettingError for one that processes cannot share."""
    address = settings.log or str(Path(settings.data) / LOG_FILE)
    if address.startswith("memory:"):
        raise SettingError(
            f"the log is {address}, which only one process can see; give a path, or postgresql://…"
        )
    return address


def keys_of(settings: Settings) -> KeyRing | None:
    """Return the keys of a service, which are made if there are none yet; None if it has no keys."""
    if settings.no_keys:
        return None
    return KeyRing(settings.keys_path, os.environ.get("RBMLE_KEY"))


def run_front_end(
    settings: Settings,
    started: Callable[[str], None],
    sockets: Sequence[socket.socket] | None = None,
    counters: WorkerCounters | None = None,
) -> None:
    """Answer requests until SIGTERM or SIGINT; `started` is told the address, once it listens.

    Without `sockets` it listens where the settings say; without `counters` it counts for itself alone.
    """
    return_freed_memory()
    gc.disable()  # until all is loaded, which makes objects by the hundred thousand and no cycles
    binding, address = settings.binding(), address_of(settings)
    configure_logging()
    with ExitStack() as held:
        if sockets is None:  # first: a port that is taken leaves nothing behind
            sockets = held.enter_context(bound(binding))
        log = open_log(address)
        publications = open_publications(address)
        counters = counters or WorkerCounters()
        commits = Timings(Histogram(counters.values("commits")))
        warmed = partial(_note_warm, counters)
        front_end = held.enter_context(
            FrontEnd(log, publications, Path(settings.data), commits, warmed)
        )
        application = Application(front_end, keys_of(settings), settings.budget(), counters)
        server = Server(application, binding, started, application.submit)
        application.stopping = lambda: server.is_stopping
        gc.freeze()  # what is loaded now stays, and need not be looked at again and again
        gc.enable()
        sys.setswitchinterval(SWITCH_SECONDS)
        server.run(sockets)


def run_learner(
    settings: Settings, started: Callable[[], None], *, is_spare: bool | None = None
) -> None:
    """Learn until SIGTERM or SIGINT; `started` is called once it does, or folds along.

    A spare learner folds nothing before it leads. False: it does while one leads whose checkpoints are
    elsewhere; None: it does whoever leads.
    """
    return_freed_memory()
    start, address = settings.start(), address_of(settings)
    configure_logging()
    start.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = open_log(address)
    publications = open_publications(address)
    try:
        learner = LogLearner(log, publications, start, tell)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: learner.stop())
        if is_spare is not None:
            learner.stand_by(is_spare=is_spare)
        learner.prepare()
        if learner.is_leading:
            for line in in_force(settings_of(log)):
                tell(line)
        evaluator = Evaluator(address, lambda: learner.is_leading, tell)
        evaluator.start()
        started()
        try:
            learner.run()
        finally:
            evaluator.stop()
    finally:
        publications.close()
        log.close()


def _note_warm(counters: WorkerCounters) -> None:
    """Tell the other workers that this one decides without delay.

    The collector passes over all there is from now on: modules and kernels stay, and are 100,000 objects.
    """
    if gc.isenabled():  # else the process has just begun, and looking through all of it takes long
        gc.collect()
    gc.freeze()
    counters.note_warm()


def return_freed_memory() -> None:
    """Let the C library give large blocks back to the system as soon as they are freed.

    glibc maps large blocks one by one, but raises the size from which it does so to that of the largest block
    freed so far. Arrays of a few MiB then come from its heaps, which shrink only if their end is free. A
    threshold that is set explicitly stays. Other C libraries are left as they are.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)
