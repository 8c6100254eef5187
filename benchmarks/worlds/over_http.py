"""The service as a client sees it: ranks at a steady pace, and a reward for each click a moment later."""

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.worlds.worlds import Event

CLICK_SECONDS = 1.0  # from a rank to its click
WAIT = "PT5S"  # for which the service waits for a click
WAIT_SECONDS = 5.0


def play(events: Sequence[Event], per_second: float, settings: Sequence[str]) -> np.ndarray:
    """Return what a service that was just started earns in each event; clicks only are rewarded."""
    with tempfile.TemporaryDirectory() as folder, _service(folder, settings) as url:
        return asyncio.run(_play(url, events, per_second))


async def _play(url: str, events: Sequence[Event], per_second: float) -> np.ndarray:
    limits = httpx.Limits(max_connections=64)
    async with httpx.AsyncClient(base_url=url, timeout=30.0, limits=limits) as client:
        configured = await client.get("/v1/configuration")
        changed = configured.raise_for_status().json() | {"reward_wait_time": WAIT}
        (await client.put("/v1/configuration", json=changed)).raise_for_status()
        begun, tasks = time.monotonic(), []
        for number, event in enumerate(events):
            await asyncio.sleep(max(0.0, begun + number / per_second - time.monotonic()))
            tasks.append(asyncio.create_task(_visit(client, number, event)))
        return np.array(await asyncio.gather(*tasks))


async def _visit(client: httpx.AsyncClient, number: int, event: Event) -> float:
    """Rank, and send the reward of a click; return what was earned."""
    own = zip(event.ids, event.actions, strict=True)
    body: dict[str, Any] = {
        "event": f"e{number}",
        "context": event.context,
        "actions": [{"id": id, "features": features} for id, features in own],
    }
    answer = (await client.post("/v1/rank", json=body)).raise_for_status().json()
    reward = event.reward(event.ids.index(answer["chosen"]))
    if reward:
        await asyncio.sleep(CLICK_SECONDS)
        sent = await client.post(f"/v1/events/e{number}/reward", json={"value": reward})
        sent.raise_for_status()
    return reward


@contextmanager
def _service(folder: str, settings: Sequence[str]) -> Iterator[str]:
    """Yield the address of a service of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-c", "from rbmle.cli import main; main()", "serve", "--no-keys", *settings]
    command += ["--data", str(Path(folder) / "data"), "--port", str(port)]
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when the service decides."""
    end = time.monotonic() + 300
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5.0).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"nothing answers on port {port}; start the service by hand to see why")
