"""The long forms: python -m tests.fuzz, or some of them by name, as python -m tests.fuzz decoder http."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz import asking, decoding, frequencies, schemas
from tests.fuzz.bodies import changed, json_values
from tests.fuzz.decoding import NAMES, Tally, body_of, try_body
from tests.fuzz.sites import served
from tests.services import learned, running, small_start

BODIES, VALUES, REQUESTS = 190_000, 10_000, 20_000
CASES = 10_000  # of schemathesis, at least
PHASES = {"coverage,fuzzing": 2_000, "stateful": 200}  # examples of each operation, or walks
EVENTS = {"neural-rbmle-pc": 70_000, "neural-ts": 30_000}
SEED = 1


def decoder(folder: Path) -> str:
    """Fuzz the decoders and decisions without HTTP."""
    tally = Tally()
    with running(small_start(folder, log="memory:")) as service:
        for number in range(BODIES):
            try_body(service, *body_of(SEED, number), tally)

        @settings(
            max_examples=VALUES,
            phases=[Phase.generate],
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(name=st.sampled_from(NAMES), value=json_values(), seed=st.integers(0, 99))
        def any_value(name: str, value: object, seed: int) -> None:
            body = msgspec.json.encode(value)
            try_body(service, name, changed(body, Random(seed)), tally)

        any_value()
        decoding.check_log(service, tally)
        learned(service)
        assert service.problem is None
    outcomes = ", ".join(f"{count:,} {kind}" for kind, count in tally.outcomes.most_common())
    return (
        f"{tally.outcomes.total():,} bodies: {outcomes}; all decided are in the log, and no other"
    )


def http(folder: Path) -> str:
    """Fuzz both dialects over HTTP."""
    with served(folder) as site:
        heard = asking.ask_all(site, SEED, range(REQUESTS))
        asking.check_log(site, heard)
        learned(site.service)
        assert site.service.problem is None
    statuses = ", ".join(f"{count:,} × {status}" for status, count in heard.statuses.most_common())
    return f"{heard.statuses.total():,} requests: {statuses}; the log has what was acknowledged"


def document(folder: Path) -> str:
    """Let schemathesis compare the service with its document, call by call and then along its links."""
    if not schemas.is_installed():
        raise AssertionError(schemas.MISSING)
    with served(folder) as site:
        cases = 0
        for phases, examples in PHASES.items():
            verdict = schemas.examine(site, folder, examples, SEED, "--phases", phases)
            assert verdict.is_good, verdict.text
            cases += verdict.cases
        assert cases >= CASES, f"there were {cases} cases only"
        learned(site.service)
        assert site.service.problem is None
    return f"{cases:,} cases of schemathesis, all checks kept"


def chances(folder: Path) -> str:
    """Compare what was chosen with the logged probabilities."""
    lines = []
    for policy, events in EVENTS.items():
        with running(small_start(folder / policy, policy)) as service:
            frequencies.decide(service, events, SEED)
            found = frequencies.agreement(service)
        assert found.is_good, found
        assert found.events == events
        lines.append(f"{policy}: {found}")
    return "\n  ".join(lines)


FORMS: dict[str, Callable[[Path], str]] = {
    "decoder": decoder,
    "http": http,
    "document": document,
    "frequencies": chances,
}


def main(names: list[str]) -> None:
    """Run some forms, or all of them."""
    for name in names or FORMS:
        begun = time.monotonic()
        with TemporaryDirectory() as folder:
            outcome = FORMS[name](Path(folder))
        print(f"{name} ({time.monotonic() - begun:.0f} s): {outcome}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
