"""Take the pictures of the dashboard in docs/images: a service, some guests, and a browser on this machine.

Run as `python -m tools.dashboard_pictures`. It needs chromium, and takes ten minutes.
"""

import argparse
import base64
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.browser import DESK, Browser, wait_until

IMAGES = Path(__file__).parents[1] / "docs" / "images"
KEY = "a-key-for-pictures-that-nobody-guesses"
DRINKS = [{"id": "tea"}, {"id": "coffee"}, {"id": "juice"}]
HEIGHT = 820  # of the upper part


class Client:
    """A client that keeps its connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def call(self, path: str, body: Any = None, method: str = "POST") -> Any:
        """Return the answer to a GET, or to another method with a body."""
        headers = {"Authorization": f"Bearer {KEY}"}
        if body is None:
            self._connection.request("GET", path, headers=headers)
        else:
            self._connection.request(method, path, json.dumps(body), headers)
        answer = self._connection.getresponse()
        found = answer.read().decode()
        if answer.status == 503 and path != "/readyz":  # a busy machine
            time.sleep(1)
            return self.call(path, body, method)
        if answer.status >= 400:
            raise RuntimeError(f"{path} is answered by {answer.status}: {found}")
        return json.loads(found) if found.startswith("{") else found


def serve_guests(port: int, guests: int, minutes: float) -> None:
    """Suggest drinks to guests as docs/start/first-service.md does: its words fit these pictures."""
    client, rng = Client(port), random.Random(0)
    client.call("/v1/configuration", {"settle": "on-reward", "exploration": 0.1}, "PATCH")
    begin = time.monotonic()
    for number in range(guests):
        time.sleep(max(begin + 60 * minutes * number / guests - time.monotonic(), 0))
        guest = {"time": rng.choice(["morning", "evening"]), "student": rng.random() < 0.3}
        wish = "juice" if guest["student"] else "coffee" if guest["time"] == "morning" else "tea"
        decision = client.call("/v1/rank", {"context": guest, "actions": DRINKS})
        bought = rng.random() < (0.6 if decision["chosen"] == wish else 0.1)
        client.call(f"/v1/events/{decision['event']}/reward", {"value": float(bought)})
    while client.call("/v1/status")["observations"] < guests:
        time.sleep(0.5)


def take(browser: Browser, path: Path, width: int, height: int | None) -> None:
    """Write a picture of the page, or of its upper part."""
    whole = int(browser.run("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": width, "height": height or whole, "scale": 1}
    shot = browser.call(
        "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
    )
    path.write_bytes(base64.b64decode(shot["data"]))


def photograph(port: int, folder: Path, out: Path) -> None:
    """Sign in, and take each picture."""
    browser = Browser(folder)
    browser.open()
    browser.go(f"http://127.0.0.1:{port}/dashboard")
    browser.run(
        f"document.querySelector('input[type=password]').value = {KEY!r};"
        "document.querySelector('form').requestSubmit()"
    )
    browser.wait("document.querySelector('h1') && document.querySelectorAll('canvas').length")
    print(browser.text("h1"))
    for name, height in (("dashboard", HEIGHT), ("dashboard-whole", None)):
        time.sleep(2)  # until charts are drawn
        take(browser, out / f"{name}.png", DESK, height)


def main() -> None:
    """Start a service, let guests come, and take pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--guests", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=10, help="over which guests come")
    options = parser.parse_args()
    with TemporaryDirectory() as text, socket.create_server(("127.0.0.1", 0)) as free:
        folder, port = Path(text), free.getsockname()[1]
        free.close()
        command = [sys.executable, "-c", "from rbmle.cli import main; main()", "serve"]
        service = subprocess.Popen(
            [*command, "--data", str(folder / "rbmle-data"), "--port", str(port)],
            env=os.environ | {"RBMLE_KEY": KEY},
        )
        try:
            wait_until(lambda: is_ready(port))
            serve_guests(port, options.guests, options.minutes)
            photograph(port, folder / "browser", options.out)
        finally:
            service.terminate()
            service.wait()


def is_ready(port: int) -> bool:
    """Return whether the service answers."""
    try:
        Client(port).call("/readyz")
    except (OSError, RuntimeError):
        return False
    return True


if __name__ == "__main__":
    main()
