"""Runs the code of a page as a reader would: each block in order, in one empty folder.

Python blocks share their names. `sh` blocks run in bash; `rbmle serve` starts in the background and ends with
the page. An `output` block is what the block before it prints, with `…` for anything. A block after
`<!-- file: NAME -->` is written to that file, and one after `<!-- not run: REASON -->` is skipped.

`python -m tests.documentation.pages docs/start/first-service.md` runs one page and lists its blocks.
"""

import io
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
PAGES = [page for page in PAGES if not {"_build", "gallery"} & set(page.parts)]
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>file|not run): (?P<text>[^>]+?) -->\n+)?^```(?P<kind>\w+)\n(?P<code>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
RUN = ("python", "sh")
PREPARED = re.compile(r"^(python3? -m )?(pip |pipx |make |cd |git )")  # done before the tests begin
PATIENCE = 200  # seconds for a block
PORT = "8080"  # of the examples; tests use a free one
NUMBER = r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?![\w.-])"  # not the digits of an id or a date
PATIENCE = 400  # seconds, on a busy machine
RBMLE = "from rbmle.cli import main; main()"


class WrongPageError(Exception):
    """A block that fails, or prints something else than the page says."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str
    code: str
    line: int
    file: str | None = None
    skipped: str | None = None  # why it is not run

    @property
    def is_run(self) -> bool:
        """Say whether a test executes it."""
        return self.kind in RUN and self.skipped is None and self.file is None


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text()
    return [
        Block(
            kind=match["kind"],
            code=match["code"],
            line=text[: match.start("code")].count("\n") + 1,
            file=match["text"] if match["mark"] == "file" else None,
            skipped=match["text"] if match["mark"] == "not run" else None,
        )
        for match in BLOCK.finditer(text)
    ]


def commands(block: Block) -> Iterator[str]:
    """Yield the commands of a block of shell code, each on one line and without comments."""
    command = ""
    for line in block.code.replace("\\\n", " ").splitlines():
        command = f"{command}\n{line}" if command else re.sub(r"(^|\s)#[^'\"]*$", "", line).strip()
        if command and command.count("'") % 2 == 0:  # a quoted text may have several lines
            yield command
            command = ""


def run(page: Path, folder: Path) -> list[str]:
    """Run a page in a folder; return a line for each block that was run, or raise WrongPageError."""
    return _Run(page, folder).finish()


class _Run:
    """A page that is being run."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.port = _free_port()
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.services: list[subprocess.Popen[bytes]] = []
        self.done: list[str] = []
        self.last = ""  # shell code
        bin = folder / ".bin"
        bin.mkdir()
        for name, call in (("rbmle", f'-c "{RBMLE}"'), ("python", "")):
            (bin / name).write_text(f'#!/bin/sh\nexec {sys.executable} {call} "$@"\n')
            (bin / name).chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{bin}:{os.environ['PATH']}",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "MPLBACKEND": "agg",
            "RBMLE_QUIET": "1",
        }

    def finish(self) -> list[str]:
        """Run all blocks."""
        os.chdir(self.folder)
        os.environ.update(self.environment)
        printed = ""
        try:
            for block in blocks(self.page):
                try:
                    printed = self._run(block, printed)
                except Exception as error:
                    where = f"{self.page.relative_to(ROOT)}:{block.line}"
                    raise WrongPageError(f"{where}: {error}\n{traceback.format_exc()}") from None
        finally:
            for service in self.services:
                service.terminate()
            for service in self.services:
                service.wait(120)  # of a busy machine; two seconds are usual
        return self.done

    def _run(self, block: Block, printed: str) -> str:
        code = block.code.replace(PORT, str(self.port))
        if block.skipped:
            return ""
        if block.file:
            (self.folder / block.file).write_text(code)
            return ""
        if block.kind == "output":
            self._compare(block, printed)
            self.done.append(f"{block.line}: output compared")
            return printed
        if block.kind not in RUN:
            return ""
        self.done.append(f"{block.line}: {block.kind}, {len(code.splitlines())} lines")
        self.last = code if block.kind == "sh" else ""
        return self._python(code) if block.kind == "python" else self._sh(block, code)

    def _compare(self, block: Block, printed: str) -> None:
        """Compare what was printed; a call of a service, which may still be learning, is tried again."""
        is_call = self.last.startswith("curl ")
        for attempts in reversed(range(10 if is_call else 1)):
            try:
                _compare(block.code, printed.replace(str(self.port), PORT))
                return
            except WrongPageError:
                if not attempts:
                    raise
                time.sleep(1)
                printed = self._sh(block, self.last)

    def _python(self, code: str) -> str:
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile(code, str(self.page), "exec"), self.names)
        return out.getvalue()

    def _sh(self, block: Block, code: str) -> str:
        lines: list[str] = []
        for command in commands(Block("sh", code, block.line)):
            if command.startswith("rbmle serve") and "--print" not in command:
                self._bash(lines)
                lines = []
                self._serve(command)
            elif not PREPARED.match(command):
                lines.append(command)
        return self._bash(lines)

    def _bash(self, lines: list[str]) -> str:
        bash = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=os.environ,
            start_new_session=True,
        )
        try:
            printed, complaints = bash.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(bash.pid, signal.SIGKILL)  # and all that it has started
            raise
        if bash.returncode:
            raise WrongPageError(f"exit code {bash.returncode}\n{printed}{complaints}")
        return printed

    def _serve(self, command: str) -> None:
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", self.port)):  # one of this page is there
                old = self.services.pop()
                old.terminate()
                old.wait(30)
        if "--config" not in command:
            command = command.replace("rbmle serve", f"rbmle serve --port {self.port}", 1)
        log = (self.folder / "service.log").open("ab")
        self.services.append(
            subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder, stdout=log, stderr=log
            )
        )
        for _ in range(10 * PATIENCE):
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5):
                    return
            except (URLError, OSError):
                if self.services[-1].poll() is not None:
                    break
                time.sleep(0.1)
        raise WrongPageError(f"{command} is not ready\n{(self.folder / 'service.log').read_text()}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _compare(expected: str, printed: str) -> None:
    """Raise WrongPageError unless the text is as expected, and its numbers are about as large.

    `…` stands for anything. Numbers may differ a little from machine to machine, and from run to run.
    """
    lines = [" ".join(line.split()) for line in expected.strip().splitlines()]
    parts = re.split(NUMBER, "\n".join(lines))
    pattern = f"({NUMBER})".join(re.escape(part).replace("…", ".*?") for part in parts)
    text = "\n".join(" ".join(line.split()) for line in printed.strip().splitlines())
    match = re.fullmatch(pattern, text, re.DOTALL)
    if match is None:
        raise WrongPageError(f"it prints\n{printed}")
    for shown, number in zip(re.findall(NUMBER, "\n".join(lines)), match.groups(), strict=True):
        a, b = (float(each.replace(",", "")) for each in (shown, number))
        if abs(a - b) > 0.3 * max(abs(a), abs(b)) + 0.3:
            raise WrongPageError(f"it prints {number} instead of {shown}:\n{printed}")


if __name__ == "__main__":
    with TemporaryDirectory() as there:
        for line in run((ROOT / sys.argv[1]).resolve(), Path(there)):
            print(line)
