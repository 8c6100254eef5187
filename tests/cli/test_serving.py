"""`rbmle serve` and `rbmle key`: what they print, and what they leave behind."""

import re
import shlex
import socket
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from rbmle.cli.serving import _welcome
from rbmle.service.access.keys import KeyRing, Scope
from rbmle.service.settings import Settings

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


def test_the_greeting_shows_no_password(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(log="postgresql://me:s3cret@db.example/x")
    _welcome(settings, "http://127.0.0.1:8080")
    printed = capsys.readouterr().err
    assert "its log is in postgresql://me:***@db.example/x" in printed
    assert "s3cret" not in printed
    assert "s3cret" not in repr(settings.start())


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
    _welcome(Settings(data=str(folder)), "http://127.0.0.1:8080")
    (command,) = re.findall(r"\$\((rbmle key .*?)\)", capsys.readouterr().err)
    monkeypatch.delenv("RBMLE_KEY", raising=False)
    if first is not None and is_known:
        monkeypatch.setenv("RBMLE_KEY", first)
    for words in (shlex.split(command), ["rbmle", "key", "--data", str(folder)]):
        printed = rbmle([sys.executable, "-c", MAIN, *words[1:]]).stdout.strip()
        assert ring.scope_of(printed) is (Scope.DECIDE if "decide" in words else Scope.ADMIN)
