"""The two kinds of processes of a service: front ends, and a learner."""

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
from rbmle.service.exports.evaluator import Evaluator
from rbmle.service.exports.shadows import ShadowKeeper
from rbmle.service.front.front_end import FrontEnd
from rbmle.service.http.app import Application
from rbmle.service.http.logging import configure_logging, tell
from rbmle.service.http.metrics import WorkerCounters
from rbmle.service.http.server import Binding, Server, open_sockets
from rbmle.service.learner.learner import LogLearner
from rbmle.service.learner.retention import Retention
from rbmle.service.learner.start import Start, describe_settings
from rbmle.service.log import LOG_FILE, is_postgres, open_log, open_publications
from rbmle.service.log.writer import Histogram, Timings
from rbmle.service.model.private import KEY_VARIABLE, FeatureHasher, key_of, make_key
from rbmle.service.model.settings import settings_of
from rbmle.service.settings import ServeSettings

_M_MMAP_THRESHOLD = -3  # of malloc.h
MAPPED_BYTES = 2**20  # from this size on, a block of memory is mapped by itself
SWITCH_SECONDS = 0.001  # after which a thread that computes yields to another one


def address_of(settings: ServeSettings) -> str:
    """Return the address of the log; raise SettingError for one that processes cannot share."""
    address = settings.log or str(Path(settings.data) / LOG_FILE)
    if address.startswith("memory:"):
        raise SettingError(
            f"the log is {address}, which only one process can see; give a path, or postgresql://…"
        )
    return address


def keys_of(settings: ServeSettings) -> KeyRing | None:
    """Return the keys of a service, which are created if there are none; None if keys are off."""
    if settings.no_keys:
        return None
    return KeyRing(settings.keys_path, os.environ.get("RBMLE_KEY"))


def hasher_of(settings: ServeSettings) -> FeatureHasher | None:
    """Return what hashes private features; None if there are none. A key is made if there is none yet."""
    if not settings.private_features:
        return None
    data = Path(settings.data)
    if is_postgres(address_of(settings)) and key_of(data) is None:
        raise SettingError(
            f"private_features needs a key that all front ends share; set {KEY_VARIABLE}, for example to the "
            "output of `openssl rand -hex 32`"
        )
    return FeatureHasher(make_key(data), tuple(settings.private_features))


def run_front_end(
    settings: ServeSettings,
    started: Callable[[str], None],
    sockets: Sequence[socket.socket] | None = None,
    counters: WorkerCounters | None = None,
) -> None:
    """Answer requests until SIGTERM or SIGINT; `started` is called with the address, once it listens.

    Without `sockets` it listens on the address in the settings; without `counters` it has its own.
    """
    return_freed_memory()
    gc.disable()  # until everything is loaded: hundreds of thousands of objects, and no cycles
    binding, address = Binding.of(settings), address_of(settings)
    configure_logging()
    with ExitStack() as held:
        if sockets is None:  # first, so that a port in use leaves no files behind
            sockets = held.enter_context(open_sockets(binding))
        log = open_log(address)
        publications = open_publications(address)
        counters = counters or WorkerCounters()
        commits = Timings(Histogram(counters.values("commits")))
        warmed = partial(_note_warm, counters)
        front_end = held.enter_context(
            FrontEnd(
                log,
                publications,
                Path(settings.data),
                commits,
                warmed,
                hasher_of(settings),
                address,
            )
        )
        application = Application(front_end, keys_of(settings), settings.budget(), counters)
        server = Server(application, binding, started, application.submit)
        application.stopping = lambda: server.is_stopping
        gc.freeze()  # what is loaded now stays, and need not be visited again
        gc.enable()
        sys.setswitchinterval(SWITCH_SECONDS)
        server.run(sockets)


def run_learner(
    settings: ServeSettings, started: Callable[[], None], *, is_spare: bool | None = None
) -> None:
    """Learn until SIGTERM or SIGINT; `started` is called once it does, or folds along.

    A spare learner folds nothing before it leads. If `is_spare` is False, it folds along while a learner leads
    that keeps its checkpoints elsewhere; if it is None, it always folds along.
    """
    return_freed_memory()
    start, address = Start.of(settings), address_of(settings)
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
            for line in describe_settings(settings_of(log)):
                tell(line)
        evaluator = Evaluator(address, lambda: learner.is_leading, tell)
        retention = Retention(address, start.data, lambda: learner.is_leading, tell)
        evaluator.start()
        keeper = ShadowKeeper(address, lambda: learner.is_leading, tell)
        learner.find_shadows = lambda: keeper.reports
        keeper.start()
        retention.start()
        started()
        try:
            learner.run()
        finally:
            evaluator.stop()
            keeper.stop()
            retention.stop()
    finally:
        publications.close()
        log.close()


def _note_warm(counters: WorkerCounters) -> None:
    """Tell the other workers that this one is warm, and exclude its 100,000 objects from garbage collection."""
    if gc.isenabled():  # else the process has just started, and a collection takes long
        gc.collect()
    gc.freeze()
    counters.note_warm()


def return_freed_memory() -> None:
    """Let the C library return large blocks to the system as soon as they are freed.

    glibc maps large blocks one by one, but raises the threshold for that to the size of the largest block freed
    so far. Arrays of a few MiB then come from its heaps, which shrink only if their end is free. A threshold
    that is set explicitly stays. Other C libraries ignore this.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)
