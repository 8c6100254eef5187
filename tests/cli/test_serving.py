"""`rbmle serve` and `rbmle key`: what they print, and what they leave behind."""

import json
import re
import shlex
import socket
import subprocess
import sys
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from rbmle.cli.serving import _welcome
from rbmle.service.access.keys import KeyRing, Scope
from rbmle.service.learner.start import Start
from rbmle.service.settings import HoldoutPlay, ServeSettings
from tests.services import PATIENCE, running, small_start, wait_until

MAIN = "import sys; from rbmle.cli import main; sys.argv[0] = 'rbmle'; main()"
rbmle = partial(subprocess.run, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", ["serve", "front"])
def test_a_port_that_is_taken_leaves_nothing_behind(tmp_path: Path, command: str) -> None:
    data = tmp_path / "data"
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        options = ["--port", port, "--data", str(data)]
        ended = rbmle([sys.executable, "-c", MAIN, command, *options])
    assert ended.returncode != 0
    assert f"port {port} of 127.0.0.1 is in use" in ended.stderr
    assert not data.exists()


def test_a_database_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    for url in ("postgresql://me:s3cret@127.0.0.1:1/x", "postgresql://me:s3cret@[::1/x"):
        options = ["--data", str(tmp_path), "--log", url]
        ended = rbmle([sys.executable, "-c", MAIN, "learn", *options])
        assert ended.returncode != 0
        assert "s3cret" not in ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr
        assert all("event" in json.loads(line) for line in ended.stderr.splitlines())


@pytest.mark.parametrize(
    "url", ["postgresql://me:s3cret@127.0.0.1:1/x", "postgresql://me@127.0.0.1:1/x"]
)
@pytest.mark.parametrize("is_typed", [False, True])
def test_a_password_that_all_users_can_see_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, is_typed: bool
) -> None:
    command = [sys.executable, "-c", MAIN, "learn", "--data", str(tmp_path)]
    if is_typed:
        command += ["--log", url]
    else:
        monkeypatch.setenv("RBMLE_LOG", url)
    ended = rbmle(command)
    assert "127.0.0.1" in ended.stderr  # which it tried
    is_warned = "set RBMLE_LOG instead" in ended.stderr
    assert is_warned == (is_typed and "s3cret" in url)


LINES = """
import gc, logging, sys, threading, warnings
from rbmle.engine.compiled import compiling
from rbmle.service.http.logging import take_standard_error, tell
take_standard_error()
tell("a message\\nof two lines")
warnings.warn("a warning")
logging.getLogger("uvicorn.error").error("a line of uvicorn")
logging.getLogger("asyncio").error("a callback", exc_info=ValueError("in a callback"))
compiling.say("a notice")
class Finalized:
    def __del__(self): raise ValueError("in a finalizer")
Finalized()
gc.collect()
def fail(): raise ValueError("in a thread")
thread = threading.Thread(target=fail); thread.start(); thread.join()
raise ValueError("in main")
"""


def test_every_line_of_standard_error_is_json_where_nobody_watches() -> None:
    ended = rbmle([sys.executable, "-c", LINES])
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert ended.returncode == 1
    assert len(lines) == 8
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)
    assert lines[0]["event"] == "a message\nof two lines"
    assert "a warning" in lines[1]["event"]
    assert (lines[2]["logger"], lines[2]["event"]) == ("uvicorn.error", "a line of uvicorn")
    for line, text in zip((3, 5, 6, 7), ("callback", "finalizer", "thread", "main"), strict=True):
        assert f"ValueError: in a {text}".replace("a main", "main") in lines[line]["exception"]


def test_a_service_writes_json_alone(tmp_path: Path) -> None:
    toml = tmp_path / "serve.toml"
    toml.write_text("port = 0\n[configuration]\nlog_retention_days = 30\n")
    command = [sys.executable, "-c", MAIN, "serve", "--config", str(toml)]
    command += ["--data", str(tmp_path / "data")]
    lines = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        timer = threading.Timer(PATIENCE, process.kill)
        timer.start()
        for line in process.stderr:
            lines.append(json.loads(line)["event"])
            starts = ("The policy is neural-rbmle-pc", "Try it")
            if all(any(text.startswith(start) for text in lines) for start in starts):
                process.terminate()
        timer.cancel()
    assert process.returncode == 0
    assert any(text.startswith("rbmle serves at http://127.0.0.1:") for text in lines)


def test_the_greeting_shows_no_password(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ServeSettings(log="postgresql://me:s3cret@db.example/x")
    _welcome(settings, "http://127.0.0.1:8080")
    printed = capsys.readouterr().err
    assert "its log is in postgresql://me:***@db.example/x" in printed
    assert "s3cret" not in printed
    assert "s3cret" not in repr(Start.of(settings))


@pytest.mark.parametrize("first", [None, "a-key-from-the-environment"])
@pytest.mark.parametrize("is_known", [False, True])
def test_the_line_to_try_has_a_key_that_works(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    first: str | None,
    is_known: bool,
) -> None:
    folder = tmp_path / "my data"
    ring = KeyRing(folder / "keys.json", first)
    _welcome(ServeSettings(data=str(folder)), "http://127.0.0.1:8080")
    (command,) = re.findall(r"\$\((rbmle key .*?)\)", capsys.readouterr().err)
    monkeypatch.delenv("RBMLE_KEY", raising=False)
    if first is not None and is_known:
        monkeypatch.setenv("RBMLE_KEY", first)
    for words in (shlex.split(command), ["rbmle", "key", "--data", str(folder)]):
        printed = rbmle([sys.executable, "-c", MAIN, *words[1:]]).stdout.strip()
        assert ring.scope_of(printed) is (Scope.DECIDE if "decide" in words else Scope.ADMIN)


def test_configure_changes_the_log_of_a_service_and_shows_it(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path)]

    def configure(*words: str) -> CompletedProcess[str]:
        return rbmle([sys.executable, "-c", MAIN, "configure", *words, *data])

    assert "there is no log" in configure("holdout=0.1").stderr
    with running(small_start(tmp_path)) as service:
        printed = configure("holdout=0.1", "holdout_play=uniform").stdout
        assert "holdout = 0.1" in printed.splitlines()
        wait_until(lambda: service.decider.configuration.holdout == 0.1)
        assert configure().stdout == printed
        assert "from 0 to 0.5" in configure("holdout=0.9").stderr
        assert "write name=value" in configure("holdout").stderr
        assert "no_such_setting" in configure("no_such_setting=1").stderr
    assert service.decider.configuration.holdout_play is HoldoutPlay.UNIFORM
