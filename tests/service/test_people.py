"""People's data in a running service: private features, erasure, retention and `DELETE /logs`."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from rbmle.core.errors import FeatureError
from rbmle.service.exports.erasing import Condition, EventSearch
from rbmle.service.front.decider import ConflictError
from rbmle.service.front.front_end import FrontEnd
from rbmle.service.front.requests import Slot
from rbmle.service.learner.checkpoints import Checkpoints, check_newest
from rbmle.service.log import LOG_FILE, Row, open_log, open_publications
from rbmle.service.log.records import NO_FEATURES
from rbmle.service.model.private import KEY_FILE, FeatureHasher, key_of, make_key
from tests.services import learned, offer, running, small_start, wait_until

MAIN = "from rbmle.cli import main; main()"
SECRET = "a-person-7f3a"
DAY = 86_400_000
TOML = """
port = 0
no_keys = true
policy = "neural-rbmle-pc"
policy_settings = "model.network=Network(width=8)"
seed = 7
private_features = ["user.id"]
checkpoint_seconds = 0.5
[features]
bits = 6
[configuration]
settle = "on-reward"
log_retention_days = 2
"""


@dataclass
class Serving:
    """A service in processes of its own."""

    process: "subprocess.Popen[str]"
    client: httpx.Client
    lines: list[str] = field(default_factory=list)

    def rank(self, user: str) -> str:
        actions = [{"id": "tea"}, {"id": "coffee", "features": {"strong": True}}]
        body = {"context": {"user": {"id": user}}, "actions": actions}
        answer = self.client.post("/v1/rank", json=body)
        assert answer.status_code == 201
        return str(answer.json()["event"])

    def reward(self, event: str, value: float) -> None:
        assert self.client.post(f"/v1/events/{event}/reward", json={"value": value}).is_success

    def status(self) -> dict[str, Any]:
        return dict(self.client.get("/v1/status").json())

    def metric(self, name: str) -> float:
        (value,) = re.findall(rf"^{name} (\S+)$", self.client.get("/metrics").text, re.M)
        return float(value)

    def learner(self) -> int:
        asked = ["pgrep", "-P", str(self.process.pid), "-f", "learn --supervised"]
        return min(
            map(
                int,
                subprocess.run(asked, check=False, capture_output=True, text=True).stdout.split(),
            )
        )


@contextmanager
def serving(folder: Path) -> Iterator[Serving]:
    toml = folder.with_suffix(".toml")
    toml.write_text(TOML)
    command = [sys.executable, "-c", MAIN, "serve", "--config", str(toml), "--data", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"serves at (http://[^,\s\"]+)", line):
                break
        else:
            raise AssertionError("".join(lines))
        threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True).start()
        try:
            with httpx.Client(base_url=found[1], timeout=60) as client:
                wait_until(lambda: client.get("/readyz").is_success)
                yield Serving(process, client, lines)
        finally:
            process.terminate()
            process.wait(60)


def rbmle(*arguments: str) -> str:
    command = [sys.executable, "-c", MAIN, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return " ".join(ended.stdout.split())


def in_files(folder: Path, text: str) -> list[str]:
    return [path.name for path in folder.iterdir() if text.encode() in path.read_bytes()]


def test_a_private_feature_is_nowhere_and_its_person_can_be_erased(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with serving(folder) as service:
        for i in range(30):
            event = service.rank(SECRET if i % 3 == 0 else f"u{i % 5}")
            service.reward(event, float(i % 2))
        assert in_files(folder, SECRET) == []
        assert (folder / KEY_FILE).stat().st_mode & 0o077 == 0
        asked = {"where": {"user.id": SECRET}, "dry_run": True}
        planned = service.client.post("/v1/erasures", json=asked).json()
        assert planned == {"events": 10, "records": 20, "deleted": 0}
        assert service.status()["erasures"] == 0
        assert (
            service.client.post("/v1/erasures", json=asked | {"dry_run": False}).json() == planned
        )
        wait_until(lambda: service.status()["erasures"] == 1)
        wait_until(lambda: service.status()["backlog"] == 0)
        assert service.metric("rbmle_log_erasures") == 1
        assert service.client.post("/v1/erasures", json={}).status_code == 400
        dashboard = service.client.get("/dashboard").text
        assert "Erasures of people" in dashboard
        where = ["--where", "user.id=u1", "--data", str(folder)]
        assert "4 events with 8 records would be erased" in rbmle(
            "log", "erase", *where, "--dry-run"
        )
        printed = rbmle("log", "erase", *where)
        assert "Erased: 4 events with 8 records." in printed
        assert "The learner has made the model again without them." in printed
        assert service.rank("u2")
    with closing(open_log(str(folder / LOG_FILE), is_read_only=True)) as log:
        assert log.verify() == []
        assert check_newest(log, folder) == []
        assert log.extent().erasures == 2
    offline = rbmle("log", "erase", "--where", "user.id=u2", "--data", str(folder))
    assert "The model is made again without them." in offline
    assert "The log is sound." in rbmle("log", "verify", "--data", str(folder))
    assert "MB now" in rbmle("log", "compact", "--data", str(folder))


def test_retention_and_erasure_beside_a_service_whose_learner_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with serving(folder) as service:
        for i in range(120):
            service.reward(service.rank(f"u{i % 5}"), float(i % 2))
    path = folder / LOG_FILE
    with closing(open_log(str(path), is_read_only=True)) as log:
        rows = [stored.row for stored in log.read()]
    for file in (*folder.glob("log.db*"), *folder.glob("published*"), *folder.glob("checkpoint*")):
        file.unlink()
    with closing(open_log(str(path))) as log:
        log.append([aged(row, -3 * DAY + 20_000 * place) for place, row in enumerate(rows)])
        before = log.last()
    with serving(folder) as service:
        stop = threading.Event()
        answers: list[int] = []

        def go_on() -> None:
            while not stop.is_set():
                service.rank("u9")
                answers.append(1)

        visitor = threading.Thread(target=go_on)
        visitor.start()
        for _ in range(3):
            time.sleep(1.5)
            os.kill(service.learner(), signal.SIGKILL)
        wait_until(lambda: service.metric("rbmle_log_deleted_records") == before)
        asked = {"where": {"user.id": "u9"}, "older": "keep"}
        refused = service.client.post("/v1/erasures", json=asked | {"older": None})
        assert (refused.status_code, refused.json()["error"]["target"]) == (409, "older")
        erased = service.client.post("/v1/erasures", json=asked).json()
        assert erased["events"] > 10
        os.kill(service.learner(), signal.SIGKILL)
        stop.set()
        visitor.join()
        assert len(answers) > 10
        wait_until(lambda: service.status()["erasures"] >= 1)
        assert "Deleted by retention" in service.client.get("/dashboard").text
        assert service.client.delete("/personalizer/v1.0/logs").status_code == 204
        last = service.status()["records"]
        wait_until(lambda: service.metric("rbmle_log_deleted_records") >= last - 1)
        assert service.rank("u1")
    with closing(open_log(str(path), is_read_only=True)) as log:
        assert log.verify() == []
        assert check_newest(log, folder) == []
        assert "rewarded" not in {stored.row.kind for stored in log.read()}
    for checkpoint in Checkpoints(folder).paths():
        checkpoint.unlink()
    with serving(folder) as service:
        assert service.status()["observations"] > 100


def aged(row: Row, by: int) -> Row:
    return Row(row.kind, row.event, row.request, row.time + by, row.payload)


HASHER = FeatureHasher(b"0123456789abcdef", ("user.id", "email"))


def hidden(features: object) -> Any:
    return json.loads(bytes(HASHER.hide(raw([features]))))[0]


def raw(value: object) -> Any:
    from msgspec import Raw

    return Raw(json.dumps(value).encode())


def test_values_of_private_features_are_hashed_and_others_stay() -> None:
    assert hidden({"user": {"id": "u7", "age": 7}}) == {
        "user": {"id": HASHER.hash("user.id", "u7"), "age": 7}
    }
    assert hidden({"user.id": "u7"}) == {"user.id": HASHER.hash("user.id", "u7")}
    assert hidden({"email": ["a", 7, None]}) == {
        "email": [HASHER.hash("email", "a"), HASHER.hash("email", "7"), None]
    }
    assert hidden({"email": {"a": 7.0}}) == {"email": {"a": HASHER.hash("email", "7")}}
    assert HASHER.hide(NO_FEATURES) is NO_FEATURES
    assert HASHER.hash("user.id", "u7") != HASHER.hash("email", "u7")
    assert len(HASHER.hash("email", "x" * 10_000)) == 32
    assert "0123456789abcdef" not in repr(HASHER)
    with pytest.raises(FeatureError):
        HASHER.hide(raw({"no": "array"}))


def test_a_repeated_request_is_known_without_storing_a_hash_of_its_body(tmp_path: Path) -> None:
    path = str(tmp_path / LOG_FILE)
    with running(small_start(tmp_path)) as service:
        learned(service)
        front = FrontEnd(
            open_log(path),
            open_publications(path),
            tmp_path,
            private=FeatureHasher(b"k" * 16, ("who",)),
        )
        with front:
            request = offer("a", "b", event="e", who=SECRET, slots=(Slot(id="s", baseline="a"),))
            (draft,) = front.decider.draft([(request, None, b"body")])
            front.writer.submit([draft.row]).result(60)
            assert front.decider.repeat("e", request, b"body") == draft.answer
            with pytest.raises(ConflictError):
                front.decider.repeat("e", request, b"other")
            assert SECRET.encode() not in draft.row.payload
            search = EventSearch([Condition("who", SECRET)], front.private)
            assert search.find(service.log, 0, lambda seq: None) == {"e"}


def test_the_key_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RBMLE_FEATURE_KEY", raising=False)
    assert key_of(tmp_path) is None
    key = make_key(tmp_path)
    assert make_key(tmp_path) == key_of(tmp_path) == key
    monkeypatch.setenv("RBMLE_FEATURE_KEY", "one-of-the-operator")
    assert key_of(tmp_path) == b"one-of-the-operator"
    monkeypatch.setenv("RBMLE_FEATURE_KEY", "short")
    with pytest.raises(Exception, match="16 to 64"):
        key_of(tmp_path)
