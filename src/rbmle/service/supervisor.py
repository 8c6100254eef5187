"""`rbmle serve`: starts front ends and a learner on one machine, and restarts processes that end.

The supervisor holds the listening sockets, so that clients wait for a front end that is restarted, and are not
refused. A spare learner waits, with its kernels loaded, for the lease of the first one. All processes end with
the supervisor, however that ends. A process that shows no sign of life, because it is stopped or starved, is
killed and restarted.
"""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rbmle.service.http.logging import tell
from rbmle.service.http.metrics import WorkerCounters, counters_file
from rbmle.service.http.server import Binding, open_sockets
from rbmle.service.learner.start import Start
from rbmle.service.processes import address_of, hasher_of, keys_of, run_front_end, run_learner
from rbmle.service.settings import ServeSettings

PROGRAM: tuple[str, ...] = (sys.executable, "-c", "from rbmle.cli import main; main()")
LEARN, FRONT = "learn", "front"  # commands
READY = b"ready\n"
SETTING_ERROR = 2  # the exit code of a mistake that the operator has to correct
SHORTEST_LIFE = 5.0  # seconds; a process that fails sooner is restarted after RETRY_SECONDS
RETRY_SECONDS = 1.0
SPARE_SECONDS = (
    1.0  # after which a spare learner is started, so that it does not slow down the others
)
STOP_SECONDS = 30.0  # for a process to end before it is killed
BEAT_SECONDS = 1.0  # between two signs of life
HUNG_SECONDS = 10.0  # without a sign of life and idle, after which a process is killed
BUSY_SECONDS = 300.0  # the same for one that computes: a compiler blocks the other threads
GAP_SECONDS = 5.0  # between two looks, after which the supervisor was held up itself


@dataclass(frozen=True, slots=True)
class Role:
    """The task of a process."""

    command: str
    is_spare: bool = False  # a learner that waits until nobody else leads
    worker: int = 0  # the number of a front end, for its counters


class Child:
    """A process of the service."""

    def __init__(self, role: Role, order: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Start it; `order` is sent to its standard input, and it inherits the file descriptors."""
        self.role = role
        self.begun = time.monotonic()
        self.heard: float | None = None  # the time of its last sign of life
        self._cpu = 0.0  # seconds of CPU that it has taken
        self._computed = 0.0  # when they were last seen to grow
        self._beats, beats = os.pipe()
        os.set_blocking(self._beats, False)
        self._is_settled, self._was_ready = threading.Event(), False
        self.process = subprocess.Popen(
            [*PROGRAM, role.command, "--supervised"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[*descriptors, beats],
        )
        os.close(beats)
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, which `watch` notices
            self.process.stdin.write(json.dumps(order | {"beats": beats}).encode() + b"\n")
            self.process.stdin.flush()  # it stays open until the supervisor ends

    def is_ready(self) -> bool:
        """Wait until the process is ready, or has ended; return whether it is ready."""
        self._is_settled.wait()
        return self._was_ready

    def watch(self) -> bool:
        """Wait for `is_ready`, in a thread of its own."""
        assert self.process.stdout is not None
        self._was_ready = self.process.stdout.readline() == READY
        self._is_settled.set()
        return self._was_ready

    def end(self) -> None:
        """Wait until it has ended, and close its pipes."""
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def hung_seconds(self) -> float | None:
        """Return for how long there was no sign of life, if that is too long; else None."""
        now = time.monotonic()
        with suppress(BlockingIOError):
            if os.read(self._beats, 4096):
                self.heard = now
        if (cpu := _cpu_seconds(self.process.pid)) != self._cpu:
            self._cpu, self._computed = cpu, now
        if self.heard is None:
            return None
        silent, idle = now - self.heard, now - self._computed
        is_hung = min(silent, idle) > HUNG_SECONDS or silent > BUSY_SECONDS
        return silent if is_hung else None

    def stop_listening(self) -> None:
        os.close(self._beats)

    def stop(self) -> int:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Supervisor:
    """Keeps front ends and a learner alive until it is stopped."""

    def __init__(self, settings: ServeSettings, sockets: Sequence[socket.socket]) -> None:
        self.settings = settings
        self.sockets = sockets
        self.counters = counters_file(settings.workers)
        self.code = 0
        # A process that has ended, or a role to start; None: stop.
        self._events: queue.SimpleQueue[Child | Role | None] = queue.SimpleQueue()
        self._children: list[Child] = []
        self._worked: set[str] = set()  # commands of processes that were ready once
        self._looked = time.monotonic()  # for signs of life

    def run(self, started: Callable[[], None]) -> int:
        """Start all processes, call `started` when clients are answered, and return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._events.put(None))
        fronts = [Role(FRONT, worker=worker) for worker in range(self.settings.workers)]
        roles = [Role(LEARN), *fronts]
        try:
            children = [self._begin(role) for role in roles]
            if all(child.is_ready() for child in children[1:]):
                started()
                self._begin_later(Role(LEARN, is_spare=True), SPARE_SECONDS)
            while self._go_on():
                pass
        finally:
            self._stop()
            self.counters.close()
        return self.code

    def _go_on(self) -> bool:
        try:
            event = self._events.get(timeout=BEAT_SECONDS)
        except queue.Empty:
            self._end_hung()
            return True
        return event is not None and self._follow(event)

    def _end_hung(self) -> None:
        now = time.monotonic()
        is_late, self._looked = now - self._looked > GAP_SECONDS, now
        for child in self._children:
            seconds = child.hung_seconds()
            if is_late and child.heard is not None:
                child.heard = now
            elif seconds is not None:
                tell(
                    f"the process `{child.role.command}` ({child.process.pid}) has shown no sign of life for "
                    f"{seconds:.0f} s; it is killed"
                )
                child.process.kill()
                child.heard = None

    def _begin(self, role: Role) -> Child:
        sockets, counters = [s.fileno() for s in self.sockets], self.counters.fileno()
        order: dict[str, Any] = {
            "settings": msgspec.to_builtins(self.settings),
            "sockets": sockets,
            "counters": counters,
            "worker": role.worker,
            "is_spare": role.is_spare,
        }
        descriptors = [*sockets, counters] if role.command == FRONT else []
        child = Child(role, order, descriptors)
        self._children.append(child)
        threading.Thread(target=self._watch, args=(child,), daemon=True).start()
        return child

    def _watch(self, child: Child) -> None:
        if child.watch():
            self._worked.add(child.role.command)
        child.end()
        self._events.put(child)

    def _begin_later(self, role: Role, seconds: float) -> None:
        timer = threading.Timer(seconds, self._events.put, (role,))
        timer.daemon = True
        timer.start()

    def _follow(self, event: Child | Role) -> bool:
        """Start what is due; return False if the operator has to correct a setting first."""
        match event:
            case Role():
                self._begin(event)
                return True
            case Child():
                return self._begin_again(event)

    def _begin_again(self, ended: Child) -> bool:
        """Restart a process, unless the operator has to correct a setting first.

        A process that was ready with these settings fails for another reason, such as a full disk.
        """
        self._children.remove(ended)
        ended.stop_listening()
        role, code = ended.role, ended.process.returncode
        if code == SETTING_ERROR and role.command not in self._worked:
            self.code = code
            return False
        tell(f"the process `{role.command}` has ended with code {code}; it is started again")
        has_failed = code >= 0 and time.monotonic() - ended.begun < SHORTEST_LIFE
        has_spare = any(child.role.command == role.command == LEARN for child in self._children)
        if has_failed or has_spare:
            self._begin_later(role, RETRY_SECONDS if has_failed else SPARE_SECONDS)
        else:
            self._begin(role)
        return True

    def _stop(self) -> None:
        """Stop the front ends, which finish their requests, and then the learner, which saves its model."""
        for command in (FRONT, LEARN):
            children = [child for child in self._children if child.role.command == command]
            for child in children:
                with suppress(ProcessLookupError):
                    child.process.send_signal(signal.SIGTERM)
            for child in children:
                self.code = self.code or max(0, child.stop())


def serve(settings: ServeSettings, started: Callable[[str], None]) -> int:
    """Serve on one machine until SIGTERM or SIGINT; return the exit code."""
    binding = Binding.of(settings)
    address_of(settings)
    Start.of(settings)
    settings.budget()
    with open_sockets(binding) as sockets:  # first, so that a port in use leaves no files behind
        Path(settings.data).mkdir(mode=0o700, parents=True, exist_ok=True)
        keys_of(settings)
        hasher_of(settings)
        address = binding.address(sockets[0].getsockname()[1])
        return Supervisor(settings, sockets).run(lambda: started(address))


def run_supervised(command: str) -> None:
    """Run a process with the settings that the supervisor sends to standard input, until it stops."""
    order = json.loads(sys.stdin.buffer.readline())
    settings = msgspec.convert(order["settings"], ServeSettings)
    threading.Thread(target=_end_with_supervisor, daemon=True).start()
    threading.Thread(target=_beat, args=(order["beats"],), daemon=True).start()
    if command == LEARN:
        run_learner(settings, _say_ready, is_spare=order["is_spare"])
    else:
        sockets = [socket.socket(fileno=descriptor) for descriptor in order["sockets"]]
        counters = WorkerCounters(order["counters"], order["worker"], settings.workers)
        run_front_end(settings, lambda _: _say_ready(), sockets, counters)


def _say_ready() -> None:
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return float(fields[11]) + float(fields[12])
    except (OSError, IndexError, ValueError):
        return time.monotonic()


def _beat(descriptor: int) -> None:
    with suppress(OSError):  # of a supervisor that has ended
        while os.write(descriptor, b"."):
            time.sleep(BEAT_SECONDS)


def _end_with_supervisor() -> None:
    """Stop when standard input ends, for then the supervisor has ended."""
    while os.read(sys.stdin.fileno(), 1):  # unbuffered, without a lock on standard input
        pass
    os.kill(os.getpid(), signal.SIGTERM)
