"""Move from Azure Personalizer to a service of your own
=====================================================

Personalizer has been retired, but what it learned from can be exported: a log of its decisions, as lines
of DSJSON. This takes such a log, judges policies on it, and starts a service that has learned it before
its first request. Clients keep calling the paths that they called before.
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

import matplotlib.pyplot as plt
import numpy as np

from rbmle.evaluation import evaluate
from rbmle.plots import COLOURS, plot_estimates

VIDEOS = {"goals": "sport", "match": "sport", "recipe": "food", "baking": "food"}
VIEWERS = ("sport", "food")
RBMLE = (sys.executable, "-c", "from rbmle.cli import main; main()")  # the command `rbmle`
KEY = "a-key-of-your-own-that-nobody-guesses"


# %%
# The export
# ----------
# It is written here, so that the example runs alone; use your own file instead. Half of the viewers come for
# sport, half for food. They like what they came for in 60 % of the events, and anything else in 10 %. The
# old model preferred the first video, and explored a lot.
def write_export(path: Path, events: int) -> None:
    """Write what Personalizer would have exported."""
    rng = np.random.default_rng(0)
    names, chances = list(VIDEOS), [0.4, 0.2, 0.2, 0.2]
    with path.open("w") as file:
        for number in range(events):
            viewer = VIEWERS[number % 2]
            shown = int(rng.choice(4, p=chances))
            liked = float(rng.random() < (0.6 if VIDEOS[names[shown]] == viewer else 0.1))
            order = sorted(range(4), key=lambda place: place != shown)
            hour, minute = divmod(number // 60, 60)
            line = {
                "_label_cost": -liked,
                "_label_probability": chances[shown],
                "_label_Action": shown + 1,
                "_labelIndex": shown,
                "o": [{"EventId": f"event-{number}", "v": liked}],
                "Timestamp": f"2024-10-01T{hour:02}:{minute:02}:{number % 60:02}Z",
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


folder = TemporaryDirectory()
log, data = Path(folder.name) / "export.dsjson", Path(folder.name) / "rbmle-data"
write_export(log, 2_000)

# %%
# What would other policies have earned?
# --------------------------------------
# The log has only the probability of the video that was shown. An interval also needs to know how small the
# other probabilities may have been: ``floor`` is the smallest.
candidates = {"at random": "uniform", "a bandit": "lin-ucb"}
found = evaluate(log, candidates, estimators="snips,dr", floor=0.2)
ax = plot_estimates(found, estimator="dr")
ax.set_xlabel("reward of an event")
plt.show()

# %%
# The dotted line is what Personalizer earned. A bandit that learns while it goes through the log earns clearly
# more, so the log is worth learning from.

# %%
# Import, serve, ask
# ------------------
# Two commands do it: ``rbmle log import`` and ``rbmle serve``. The client below uses the same paths and the
# same header as it did for Personalizer.
subprocess.run([*RBMLE, "log", "import", str(log), "--data", str(data)], check=True)
with socket.create_server(("127.0.0.1", 0)) as free:
    address = f"http://127.0.0.1:{free.getsockname()[1]}"
command = [*RBMLE, "serve", "--data", str(data), "--port", address.rpartition(":")[2]]
environment = os.environ | {"RBMLE_KEY": KEY}
service = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def wait_until_learned(events: int) -> None:
    """Wait until the service has learned the log. It would answer sooner, but evenly."""
    status = Request(f"{address}/v1/status", headers={"Authorization": f"Bearer {KEY}"})
    for _ in range(6_000):  # a busy machine that has to compile kernels takes minutes
        try:
            with urlopen(status, timeout=5) as reply:
                if json.loads(reply.read())["observations"] >= events:
                    return
        except (URLError, OSError):
            pass
        time.sleep(0.1)
    raise TimeoutError("the service did not learn the log within ten minutes")


def call(path: str, body: dict[str, Any]) -> Any:
    """Call the service as a client of Personalizer does."""
    headers = {"Ocp-Apim-Subscription-Key": KEY, "Content-Type": "application/json"}
    request = Request(f"{address}/personalizer/v1.0/{path}", json.dumps(body).encode(), headers)
    with urlopen(request, timeout=10) as reply:
        return json.loads(reply.read() or "null")


def rank(viewer: str) -> dict[str, float]:
    """Return with which probability each video is shown to a viewer."""
    actions = [{"id": name, "features": [{"kind": kind}]} for name, kind in VIDEOS.items()]
    answer = call("rank", {"contextFeatures": [{"viewer": viewer}], "actions": actions})
    call(f"events/{answer['eventId']}/reward", {"value": 1.0})
    return {action["id"]: action["probability"] for action in answer["ranking"]}


try:
    wait_until_learned(2_000)
    chances = {viewer: rank(viewer) for viewer in VIEWERS}
finally:
    service.terminate()
    service.wait()
    folder.cleanup()

# %%
# A warm start
# ------------
# The very first answers of the service:
figure, ax = plt.subplots(layout="constrained")
for place, (viewer, shares) in enumerate(chances.items()):
    x, heights = np.arange(4) + 0.4 * place - 0.2, [shares[name] for name in VIDEOS]
    ax.bar(x, heights, 0.38, color=COLOURS[place], label=f"viewers of {viewer}")
ax.set_xticks(range(4), [f"{name} ({kind})" for name, kind in VIDEOS.items()])
ax.set_ylabel("probability of being shown")
ax.legend(frameon=False)
plt.show()

# %%
# Each group is mostly shown a video of its own kind. The other bars are the service's exploration, which lets
# it continue to learn.
