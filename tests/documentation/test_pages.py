"""Every block of code of the documentation runs, and every command that it shows can be given."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from rbmle.cli import app
from tests.documentation.pages import PAGES, ROOT, blocks, commands

RUNNING = [page for page in PAGES if any(block.is_run for block in blocks(page))]
CLI = typer.main.get_command(app)
PARSED = ("sh", "dockerfile", "text")
SHORT = 5  # characters of a reason that says nothing


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.timeout(900)  # of a busy machine; a page takes a minute at most
@pytest.mark.parametrize("page", RUNNING, ids=_name)
def test_the_code_of_a_page_runs(page: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.documentation.pages", _name(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_commands_of_a_page_can_be_given(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "sh":
            for command in commands(block):
                for call in _calls(command):
                    _parse(call, f"{_name(page)}:{block.line}")
        assert block.skipped is None or len(block.skipped) > SHORT, "say why it is not run"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_options_that_a_page_names_are_there(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for call in re.findall(r"`(rbmle [^`]+)`", text):
        words = [word for word in call.split()[1:] if word != "…"]
        command: Any = CLI
        while words and hasattr(command, "commands") and not words[0].startswith("-"):
            assert words[0] in command.commands, f"{_name(page)}: `{call}`"
            command = command.commands[words.pop(0)]
        known = {
            name for option in command.params for name in (*option.opts, *option.secondary_opts)
        }
        for word in words:
            assert not word.startswith("--") or word in {*known, "--help"}, (
                f"{_name(page)}: `{call}`"
            )


def _calls(command: str) -> Iterator[list[str]]:
    """Yield the words of each call of rbmle in a line of shell code."""
    for inner in re.findall(r"\$\((rbmle [^)]*)\)", command):
        yield shlex.split(inner)
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if re.fullmatch(r"[;|&<>()]+", word):
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words[:1] == ["rbmle"]:
                yield words
            words = []
        else:
            words.append(word)


def _parse(call: list[str], where: str) -> None:
    """Give a command to the command line, which reads its options and does nothing."""
    words = call[1:]
    command: Any = CLI
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{where}: {call}"
        command = command.commands[words.pop(0)]
    try:
        command.make_context("rbmle", words)
    except Exception as error:  # of click, or of the copy of it that typer may bring
        if type(error).__name__ != "Exit":  # --help, --version
            assert "does not exist" in str(error), f"{where}: {call}: {error}"
