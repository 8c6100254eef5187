"""Bodies that are almost right, over HTTP: no 5xx, and nothing in the log that was refused."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection
from random import Random
from types import MappingProxyType
from urllib.parse import quote

from tests.fuzz.bodies import SAMPLES, changed
from tests.fuzz.sites import Site
from tests.services import PATIENCE

V2022 = "?api-version=2022-09-01-preview"
OLD = ("/personalizer/v1.0", "/personalizer/v1.1-preview.3", "/personalizer")
PATHS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "rank": ("POST", "/v1/rank"),
        "reward": ("POST", "/v1/events/{id}/reward"),
        "configuration": ("PUT", "/v1/configuration"),
        "change": ("PATCH", "/v1/configuration"),
        "old rank": ("POST", "/rank"),
        "old slots rank": ("POST", "/multislot/rank"),
        "old reward": ("POST", "/events/{id}/reward"),
        "old slots reward": ("POST", "/multislot/events/{id}/reward"),
        "old configuration": ("PUT", "/configurations/service"),
    }
)
_WEIGHTED = tuple(PATHS) + ("rank", "old rank", "old slots rank") * 2
_IDS = (
    "e-1",
    "e/2",
    "é",
    "{id}",
    "..",
    "a b",
    "%",
    "?x",
    "\x00",
    "\x85",
    "x" * 257,
    "reward",
    "\u202e",
)
STATUSES = (200, 201, 204, 400, 409, 413)
_STORED = {
    "rank": "decided",
    "reward": "rewarded",
    "configuration": "configured",
    "change": "configured",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked."""

    name: str
    method: str
    path: str
    body: bytes
    headers: dict[str, str]


@dataclass(slots=True)
class Heard:
    """What the service answered, and what it thereby has in its log."""

    statuses: Counter[int] = field(default_factory=Counter)
    events: set[str] = field(default_factory=set)
    stored: Counter[str] = field(default_factory=Counter)


def request_of(seed: int, number: int, key: str) -> Request:
    """Return what is asked, always the same for the same number."""
    rng = Random(f"{seed}/{number}")
    name = rng.choice(_WEIGHTED)
    method, path = PATHS[name]
    if name.startswith("old"):
        where = rng.choice(OLD)
        path = where + path + (V2022 if where == OLD[-1] else "")
    path = path.replace("{id}", quote(rng.choice(_IDS), safe=""))
    body = changed(rng.choice(SAMPLES[name]), rng)
    headers = {"authorization": f"Bearer {key}"}
    if name.startswith("old"):
        headers = {"ocp-apim-subscription-key": key}
    return Request(name=name, method=method, path=path, body=body, headers=headers)


def ask_all(site: Site, seed: int, numbers: range) -> Heard:
    """Ask one after the other, and return what was heard; a 5xx is a fault."""
    heard = Heard()
    with closing(HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE)) as connection:
        for number in numbers:
            request = request_of(seed, number, site.key)
            connection.request(request.method, request.path, request.body, request.headers)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status in STATUSES, f"{seed}/{number}: {answer.status} for {request}"
            _hear(heard, request.name, answer.status, body)
    return heard


def _hear(heard: Heard, name: str, status: int, body: bytes) -> None:
    heard.statuses[status] += 1
    if status >= 400:
        assert json.loads(body)["error"]["message"]
    elif name.endswith("rank"):
        answer = json.loads(body)
        heard.events.add(answer.get("event") or answer["eventId"])
    else:
        heard.stored[_STORED[name.removeprefix("old ").removeprefix("slots ")]] += 1


def check_log(site: Site, heard: Heard) -> None:
    """Raise AssertionError unless the log has what was acknowledged, and no more."""
    rows = list(site.service.log.read())
    kinds = Counter(stored.row.kind for stored in rows)
    events = [stored.row.event for stored in rows if stored.row.kind == "decided"]
    assert sorted(events) == sorted(heard.events)
    assert kinds["rewarded"] == heard.stored["rewarded"]
    assert kinds["configured"] == heard.stored["configured"] + 1  # and the one it began with
    assert set(kinds) <= {"modelled", "configured", "decided", "rewarded", "ticked"}
