"""`rbmle serve`: starts front ends and a learner on one machine, and starts again what ends.

The supervisor holds the listening sockets, so that clients wait for a front end that is started again,
and are not refused. A second learner waits, with its kernels loaded, for the lease of the first one.
A process that it started ends when the supervisor does, however that ends. One that shows no sign of life,
because it is stopped or starved, is killed and started again.
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

from rbmle.service.http.binding import bound
from rbmle.service.http.logging import tell
from rbmle.service.http.worker_counters import WorkerCounters, counters_file
from rbmle.service.roles import address_of, keys_of, run_front_end, run_learner
from rbmle.service.settings import Settings

PROGRAM: tuple[str, ...] = (sys.executable, "-c", "from rbmle.cli import main; main()")
LEARN, FRONT = "learn", "front"  # commands
READY = b"ready\n"
SETTING_ERROR = 2  # the exit code of a mistake that the operator has to mend
SHORTEST_LIFE = 5.0  # seconds; what fails sooner is started again after a while only
RETRY_SECONDS = 1.0
SPARE_SECONDS = 1.0  # after which a spare learner is started: what is needed at once goes first
STOP_SECONDS = 30.0  # for a process to end before it is killed
BEAT_SECONDS = 1.0  # between two signs of life
# Without a sign of life a process that is idle as well is killed; a spare learner leads before that.
HUNG_SECONDS = 10.0
BUSY_SECONDS = 300.0  # the same for one that computes: a compiler lets no other thread on
GAP_SECONDS = (
    5.0  # between two looks, after which a supervisor was held up itself, and judges nobody
)


@dataclass(frozen=True, slots=True)
class Role:
    """What a process is to do."""

    command: str
    is_spare: bool = False  # a learner that waits until nobody else leads
    worker: int = 0  # the number of a front end, whose counters it keeps


class Child:
    """A process of the service."""

    def __init__(self, role: Role, order: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Start it; `order` is all that it is told, and the descriptors are open files that it gets."""
        self.role = role
        self.begun = time.monotonic()
        self.heard: float | None = None  # when it last gave a sign of life; None: it gave none
        self._cpu = 0.0  # seconds that it had taken when they were last seen to grow
        self._computed = 0.0  # when that was
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
        with suppress(BrokenPipeError):  # it has ended, and that is seen soon
            self.process.stdin.write(json.dumps(order | {"beats": beats}).encode() + b"\n")
            self.process.stdin.flush()  # and stays open: its end is the sign that nobody supervises

    def is_ready(self) -> bool:
        """Wait until it works, or ends; return which."""
        self._is_settled.wait()
        return self._was_ready

    def watch(self) -> bool:
        """Wait until it works, or ends, for all that ask; return which."""
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
        """Return for how long it has shown no sign of life, if that is too long; else None."""
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

    def forget(self) -> None:
        """Listen no more."""
        os.close(self._beats)

    def stop(self) -> int:
        """Ask it to end, and wait for that."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Supervisor:
    """Front ends and a learner, kept alive until it is told to stop."""

    def __init__(self, settings: Settings, sockets: Sequence[socket.socket]) -> None:
        self.settings = settings
        self.sockets = sockets
        self.counters = counters_file(settings.workers)
        self.code = 0
        # What has ended, or what is to be started; None: stop.
        self._events: queue.SimpleQueue[Child | Role | None] = queue.SimpleQueue()
        self._children: list[Child] = []
        self._worked: set[str] = set()  # commands
        self._looked = time.monotonic()  # for signs of life

    def run(self, started: Callable[[], None]) -> int:
        """Start all, tell when clients are answered, and look after it; return the exit code."""
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
        """Do what is due; return False to stop."""
        try:
            event = self._events.get(timeout=BEAT_SECONDS)
        except queue.Empty:
            self._end_hung()
            return True
        return event is not None and self._follow(event)

    def _end_hung(self) -> None:
        """Kill processes that show no sign of life."""
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
        sockets, counters = [one.fileno() for one in self.sockets], self.counters.fileno()
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
        """Start what is due, or what has ended; return False if only the operator can mend it."""
        match event:
            case Role():
                self._begin(event)
                return True
            case Child():
                return self._begin_again(event)

    def _begin_again(self, ended: Child) -> bool:
        """Start what has ended once more, unless only the operator can mend it.

        What has worked with these settings fails for another reason, such as a full disk, which may pass.
        """
        self._children.remove(ended)
        ended.forget()
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
        """End the front ends first: they finish what they were asked; then the learner, which saves it."""
        for command in (FRONT, LEARN):
            children = [child for child in self._children if child.role.command == command]
            for child in children:
                with suppress(ProcessLookupError):
                    child.process.send_signal(signal.SIGTERM)
            for child in children:
                self.code = self.code or max(0, child.stop())


def serve(settings: Settings, started: Callable[[str], None]) -> int:
    """Serve on one machine until SIGTERM or SIGINT; return the exit code."""
    binding = settings.binding()
    address_of(settings)
    settings.start()
    settings.budget()
    with bound(binding) as sockets:  # first: a port that is taken leaves nothing behind
        Path(settings.data).mkdir(mode=0o700, parents=True, exist_ok=True)
        keys_of(settings)
        address = binding.address(sockets[0].getsockname()[1])
        return Supervisor(settings, sockets).run(lambda: started(address))


def run_supervised(command: str) -> None:
    """Do what a supervisor orders on standard input, until it stops or ends."""
    order = json.loads(sys.stdin.buffer.readline())
    settings = msgspec.convert(order["settings"], Settings)
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
    """Return the CPU time that a process has taken; where the system does not tell, it always grows."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return float(fields[11]) + float(fields[12])
    except (OSError, IndexError, ValueError):
        return time.monotonic()


def _beat(descriptor: int) -> None:
    """Show the supervisor that this process is alive."""
    with suppress(OSError):  # the supervisor has ended
        while os.write(descriptor, b"."):
            time.sleep(BEAT_SECONDS)


def _end_with_supervisor() -> None:
    """Stop when standard input ends: nobody is left who would."""
    while os.read(sys.stdin.fileno(), 1):  # unbuffered: a lock on standard input would outlive us
        pass
    os.kill(os.getpid(), signal.SIGTERM)
