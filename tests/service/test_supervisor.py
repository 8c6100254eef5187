"""`rbmle serve` as an operator meets it: what it refuses, and what it leaves behind."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rbmle.service import supervisor
from rbmle.service.settings import ServeSettings
from tests.services import SMALL, running, small_start

PROGRAM = [sys.executable, "-c", "from rbmle.cli import main; main()"]


def served(*options: str) -> subprocess.CompletedProcess[str]:
    """Return how a service ended that cannot go on."""
    command = [*PROGRAM, "serve", "--no-keys", *options]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_a_port_that_is_taken_leaves_no_traces(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = served("--data", str(tmp_path / "data"), "--port", str(port))
    assert ended.returncode == 2
    assert f"port {port} of 127.0.0.1 is in use" in ended.stderr
    assert not (tmp_path / "data").exists()


def test_a_log_that_processes_cannot_share_is_refused(tmp_path: Path) -> None:
    ended = served("--data", str(tmp_path / "data"), "--port", "0", "--log", "memory:")
    assert ended.returncode == 2
    assert "only one process can see" in ended.stderr


def test_what_only_the_operator_can_mend_ends_all(tmp_path: Path) -> None:
    with running(small_start(tmp_path)):
        pass
    ended = served("--data", str(tmp_path), "--port", "0", "--policy", "neural-ucb", "--set", SMALL)
    assert ended.returncode == 2
    assert "--new-model" in ended.stderr


FRONT_ENDS = """
import os, pathlib, signal, sys, time
command = sys.argv[1]
sys.stdin.readline()
lives = pathlib.Path(__file__).with_suffix("." + command)
with lives.open("a") as file:
    file.write("born\\n")
life = lives.read_text().count("born")
if command == "front" and life == 2:
    sys.exit(2)
print("ready", flush=True)
if command == "front" and life == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if command == "front" and life == 3:
    os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


LEARNERS = """
import json, os, pathlib, signal, sys, time
command, order = sys.argv[1], json.loads(sys.stdin.readline())
lives = pathlib.Path(__file__).with_suffix("." + command)
with lives.open("a") as file:
    file.write("born\\n")
print("ready", flush=True)
if command == "learn" and lives.read_text().count("born") > 1:
    os.kill(os.getppid(), signal.SIGTERM)
os.write(order["beats"], b".")
if command == "learn":
    os.kill(os.getpid(), signal.SIGSTOP)
while True:  # as a compiler does, which lets no other thread show that it is alive
    pass
"""


def test_a_process_that_is_stopped_is_started_again_and_one_that_computes_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(LEARNERS)
    monkeypatch.setattr(supervisor, "PROGRAM", (sys.executable, str(program)))
    monkeypatch.setattr(supervisor, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(supervisor, "HUNG_SECONDS", 2.0)
    monkeypatch.setattr(supervisor, "SPARE_SECONDS", 600.0)
    assert supervisor.Supervisor(ServeSettings(data=str(tmp_path)), []).run(lambda: None) == 0
    assert (tmp_path / "program.learn").read_text().count("born") == 2
    assert (tmp_path / "program.front").read_text().count("born") == 1
    told = capfd.readouterr().err
    assert "the process `learn`" in told
    assert "has shown no sign of life for" in told


def test_what_has_worked_before_is_started_until_it_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A front end works and is killed, then cannot open the log, then can."""
    program = tmp_path / "program.py"
    program.write_text(FRONT_ENDS)
    monkeypatch.setattr(supervisor, "PROGRAM", (sys.executable, str(program)))
    monkeypatch.setattr(supervisor, "RETRY_SECONDS", 0.05)
    assert supervisor.Supervisor(ServeSettings(data=str(tmp_path)), []).run(lambda: None) == 0
    assert (tmp_path / "program.front").read_text().count("born") == 3
