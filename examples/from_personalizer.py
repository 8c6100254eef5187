"""From Azure Personalizer to a service of your own: its exported log, a judgement, and a warm start.

Personalizer exports its log as lines of DSJSON. The export is made here, so that the example runs alone: four
videos, and viewers who like their own kind. Replace `export` by your file.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import numpy as np

from rbmle.evaluation import evaluate

VIDEOS = {"goals": "sport", "match": "sport", "recipe": "food", "baking": "food"}
RBMLE = (sys.executable, "-c", "from rbmle.cli import main; main()")
KEY = "a-key-of-your-own-that-nobody-guesses"


def export(path: Path, events: int) -> None:
    """Write what Personalizer would have exported: it showed a video at random in two events of five."""
    rng = np.random.default_rng(0)
    names = list(VIDEOS)
    with path.open("w") as file:
        for number in range(events):
            viewer = ("sport", "food")[number % 2]
            best = 0  # it had not learned much
            shown = int(rng.integers(4)) if rng.random() < 0.4 else best
            liked = float(rng.random() < (0.6 if VIDEOS[names[shown]] == viewer else 0.1))
            chances = [0.7 if place == best else 0.1 for place in range(4)]
            order = sorted(range(4), key=lambda place: place != shown)
            line = {
                "_label_cost": -liked,
                "_label_probability": chances[shown],
                "_label_Action": shown + 1,
                "_labelIndex": shown,
                "o": [{"EventId": f"event-{number}", "v": liked}],
                "Timestamp": f"2024-10-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z",
                "Version": "1",
                "EventId": f"event-{number}",
                "a": [place + 1 for place in order],
                "c": {
                    "FromUrl": [{"viewer": viewer}],
                    "_multi": [{"_tag": name, "j": [{"kind": VIDEOS[name]}]} for name in names],
                },
                "p": [chances[place] for place in order],
            }
            file.write(json.dumps(line) + "\n")


def judge(path: Path) -> None:
    """Print what other policies would have earned."""
    found = evaluate(path, ["uniform", "lin-ucb"], estimators="snips,dr", frozen=0.5, floor=0.1)
    print(f"Personalizer earned {found.mean:.3f} an event.")
    for one in found.estimates:
        print(f"{one.policy:10} {one.estimator:6} {one.value:.3f} [{one.low:.3f}, {one.high:.3f}]")


def call(address: str, path: str, body: dict[str, Any]) -> Any:
    """Call the service as a client of Personalizer does."""
    headers = {"Ocp-Apim-Subscription-Key": KEY, "Content-Type": "application/json"}
    request = Request(f"{address}/personalizer/v1.0/{path}", json.dumps(body).encode(), headers)
    with urlopen(request, timeout=10) as reply:
        return json.loads(reply.read() or "null")


def wait_for(address: str) -> None:
    """Wait until the service has learned the log, and answers."""
    for _ in range(1_200):
        try:
            with urlopen(f"{address}/readyz", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError("the service did not become ready within two minutes")


def shown_to(viewer: str, address: str) -> dict[str, float]:
    """Return with which probability each video would be shown to a viewer."""
    body = {
        "contextFeatures": [{"viewer": viewer}],
        "actions": [{"id": name, "features": [{"kind": kind}]} for name, kind in VIDEOS.items()],
    }
    answer = call(address, "rank", body)
    call(address, f"events/{answer['eventId']}/reward", {"value": 1.0})
    return {action["id"]: action["probability"] for action in answer["ranking"]}


def main() -> None:
    """Judge the export, begin a service with it, and ask that service as a client of Personalizer would."""
    with TemporaryDirectory() as folder:
        log, data = Path(folder) / "export.dsjson", Path(folder) / "rbmle-data"
        export(log, 1_000)
        judge(log)
        subprocess.run([*RBMLE, "log", "import", str(log), "--data", str(data)], check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [*RBMLE, "serve", "--data", str(data), "--port", str(port)]
        service = subprocess.Popen(command, env=os.environ | {"RBMLE_KEY": KEY})
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(address)
            for viewer in ("sport", "food"):
                chances = shown_to(viewer, address)
                print(
                    f"A viewer of {viewer} is shown {max(chances, key=lambda name: chances[name])}."
                )
        finally:
            service.terminate()
            service.wait()


if __name__ == "__main__":
    main()
