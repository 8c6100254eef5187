"""A real browser for tests of pages."""

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
PHONE, DESK = 390, 1280  # pixels
PATIENCE = 60  # seconds, on a machine that has much else to do


def wait_until(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.02)


class Browser:
    """Chromium by its own protocol over two pipes: no driver and no package are needed."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        flags = (
            "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
            "--disable-background-networking --hide-scrollbars --remote-debugging-pipe"
        )
        self._process = subprocess.Popen(
            [
                "/bin/bash",  # which puts the pipes where chromium looks for them
                "-c",
                f'exec "$0" "$@" 3<&{commands} 4>&{answers}',
                CHROMIUM,
                *flags.split(),
                "--host-resolver-rules=MAP lan.test 127.0.0.1",
                f"--user-data-dir={folder}",
            ],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._sent = 0
        self._rest = b""
        self._session: str | None = None
        self._seen: list[dict[str, Any]] = []

    def open(self) -> None:
        """Open a page of its own, with no cookie of the last one, which is closed."""
        self._session = None
        for context in self.call("Target.getBrowserContexts")["browserContextIds"]:
            self.call("Target.disposeBrowserContext", browserContextId=context)
        made = self.call("Target.createBrowserContext")
        target = self.call("Target.createTarget", url="about:blank", **made)
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self._seen.clear()
        self.screen(DESK)

    def call(self, method: str, **parameters: Any) -> Any:
        self._sent += 1
        command = {"id": self._sent, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._out, json.dumps(command).encode() + b"\0")
        while (answer := self._read()).get("id") != self._sent:
            self._seen.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], PATIENCE)[0], "chromium does not answer"
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "chromium has ended"
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def run(self, code: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=code, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, claim: str) -> None:
        """Wait until a claim holds; while a page changes to the next one, none does."""

        def holds() -> bool:
            try:
                return self.run(f"Boolean({claim})") is True
            except RuntimeError:
                return False

        wait_until(holds)

    def go(self, address: str) -> None:
        """Open an address; nothing is asked meanwhile, as the process that would answer may change."""
        self._seen = [e for e in self._seen if e.get("method") != "Page.loadEventFired"]
        self.call("Page.navigate", url=address)
        while not self._of("Page.loadEventFired"):
            self._seen.append(self._read())

    def screen(self, width: int, is_dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=844,
            deviceScaleFactor=1,
            mobile=width == PHONE,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({selector!r}).innerText"))

    def is_hidden(self, selector: str) -> bool:
        return bool(self.run(f"document.querySelector({selector!r}).checkVisibility() == false"))

    def problems(self) -> list[str]:
        """Return what the console complains of."""
        self.run("0")  # whatever was said before has arrived with the answer
        entries = [e["params"]["entry"] for e in self._of("Log.entryAdded")]
        thrown = [str(e["params"]) for e in self._of("Runtime.exceptionThrown")]
        return [e["text"] for e in entries if e["level"] in ("error", "warning")] + thrown

    def _of(self, method: str) -> Sequence[dict[str, Any]]:
        asked = (method, self._session)
        return [e for e in self._seen if (e.get("method"), e.get("sessionId")) == asked]

    def close(self) -> None:
        self._session = None
        self.call("Browser.close")
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
