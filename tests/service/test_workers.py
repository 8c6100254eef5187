"""`rbmle serve --workers 2`: both processes are one service to a browser and to Prometheus."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

START_SECONDS = 120.0
SETTINGS = """
port = 0
workers = 2
policy_settings = "model.network=Network(width=8)"
seed = 7
[features]
bits = 6
"""
SUMMED = (
    "rbmle_requests_total|rank|201",
    "rbmle_request_seconds_count|rank",
    "rbmle_request_seconds_bucket|+Inf|rank",
)


class Workers:
    """A running service of two front ends."""

    def __init__(self, process: subprocess.Popen[bytes], address: str, key: str) -> None:
        self.process = process
        self.address = address
        self.key = key

    @property
    def fronts(self) -> list[int]:
        """Return the process ids of the front ends."""
        asked = ["pgrep", "-P", str(self.process.pid), "-f", "front --supervised"]
        found = subprocess.run(asked, check=False, capture_output=True, text=True)
        return sorted(int(line) for line in found.stdout.split())

    @contextmanager
    def only(self, pid: int) -> Iterator[httpx.Client]:
        """Yield a client that a single front end answers: the others are stopped meanwhile."""
        others = [other for other in self.fronts if other != pid]
        for other in others:
            os.kill(other, signal.SIGSTOP)
            wait_until(lambda other=other: state_of(other) == "T")  # type: ignore[misc]
        try:
            with httpx.Client(base_url=self.address, timeout=30.0) as client:
                yield client
        finally:
            for other in others:
                os.kill(other, signal.SIGCONT)

    def rank(self, client: httpx.Client, count: int) -> None:
        """Ask for some decisions."""
        body = {"context": {"hour": 9}, "actions": [{"id": "a"}, {"id": "b"}]}
        for _ in range(count):
            assert client.post("/v1/rank", json=body, headers=self.headers).status_code == 201

    def figures(self, client: httpx.Client) -> dict[str, float]:
        """Return all metrics by name and labels."""
        text = client.get("/metrics", headers=self.headers).text
        return {
            sample.name + "".join(f"|{v}" for _, v in sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}


def state_of(pid: int) -> str:
    """Return the state of a process: T if it is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_until(is_done: Callable[[], Any]) -> None:
    end = time.monotonic() + START_SECONDS
    while not is_done():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    folder = tmp_path_factory.mktemp("workers")
    (folder / "serve.toml").write_text(SETTINGS)
    output = folder / "stderr"
    command = [sys.executable, "-c", "from rbmle.cli import main; main()", "serve"]
    options = ["--config", str(folder / "serve.toml"), "--data", str(folder / "data")]
    environment = {name: value for name, value in os.environ.items() if name != "RBMLE_KEY"}
    with output.open("wb") as file:
        process = subprocess.Popen([*command, *options], stderr=file, env=environment)
    try:
        address = re.compile(r"serves at (http://\S+),")
        wait_until(lambda: address.search(output.read_text()) or process.poll() is not None)
        found = address.search(output.read_text())
        assert found is not None, output.read_text()
        keys = json.loads((folder / "data" / "keys.json").read_text())
        running = Workers(process, found[1], keys["admin"]["primary"])
        with httpx.Client(base_url=running.address) as client:
            wait_until(lambda: client.get("/readyz").status_code == 200)
        yield running
    finally:
        process.terminate()
        process.wait(60)


def test_a_session_is_valid_at_every_worker(workers: Workers) -> None:
    first, second = workers.fronts
    with workers.only(first) as client:
        assert client.post("/dashboard/login", data={"key": workers.key}).status_code == 303
        cookie = {"cookie": f"rbmle_session={client.cookies['rbmle_session']}"}
        assert client.get("/dashboard", headers=cookie).status_code == 200
    with workers.only(second) as client:
        assert client.get("/dashboard", headers=cookie).status_code == 200
        assert client.post("/dashboard/logout", headers=cookie).status_code == 303
        assert client.get("/dashboard", headers=cookie).status_code == 303
    with workers.only(first) as client:
        assert client.get("/dashboard", headers=cookie).status_code == 303


def test_metrics_are_the_sums_of_all_workers_and_never_fall(workers: Workers) -> None:
    first, second = workers.fronts
    with workers.only(first) as client:
        before = workers.figures(client)
        workers.rank(client, 3)
    with workers.only(second) as client:
        workers.rank(client, 4)
        here = workers.figures(client)
    with workers.only(first) as client:
        there = workers.figures(client)
    for found in (here, there):
        for name in SUMMED:
            assert found[name] == before.get(name, 0.0) + 7, name
        assert (
            found["rbmle_commit_seconds_count"] >= before.get("rbmle_commit_seconds_count", 0) + 7
        )
        assert found["process_resident_memory_bytes|0"] > 0
        assert found["process_resident_memory_bytes|1"] > 0

    os.kill(first, signal.SIGKILL)
    wait_until(lambda: len(workers.fronts) == 2 and first not in workers.fronts)
    (third,) = {*workers.fronts} - {second}
    for pid in (second, third):
        with workers.only(pid) as client:
            wait_until(lambda client=client: client.get("/readyz").status_code == 200)  # type: ignore[misc]
            again = workers.figures(client)
            for name in [*SUMMED, "rbmle_commit_seconds_count", "rbmle_commit_seconds_sum"]:
                assert again[name] >= there[name], name
