"""Short forms of `make fuzz`."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from tests.fuzz import asking, decoding, frequencies, schemas
from tests.fuzz.bodies import SAMPLES, changed, json_values
from tests.fuzz.decoding import NAMES, Tally, try_body
from tests.fuzz.frequencies import Cells
from tests.fuzz.sites import Site, served
from tests.services import Service, learned, offer, rank, reward, running, small_start


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    start = small_start(tmp_path_factory.mktemp("decoding"), log="memory:")
    with running(start) as service:
        yield service


@pytest.fixture(scope="module")
def tally(service: Service) -> Iterator[Tally]:
    """Count what the tests of this file decide, and look for it in the log when they are over."""
    tally = Tally()
    yield tally
    decoding.check_log(service, tally)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.mark.parametrize("name", NAMES)
def test_the_samples_are_what_they_should_be(service: Service, tally: Tally, name: str) -> None:
    for sample in SAMPLES[name]:
        before = tally.outcomes["refused"]
        try_body(service, name, sample, tally)
        assert tally.outcomes["refused"] == before


def test_a_body_changed_at_random_is_answered_or_refused(service: Service, tally: Tally) -> None:
    for number in range(1_000):
        try_body(service, *decoding.body_of(0, number), tally)
    assert min(tally.outcomes[kind] for kind in ("refused", "taken", "decided")) > 30


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(NAMES), value=json_values(), seed=st.integers(0, 99))
def test_any_json_is_answered_or_refused(
    service: Service, tally: Tally, name: str, value: object, seed: int
) -> None:
    body = msgspec.json.encode(value)
    try_body(service, name, body, tally)
    try_body(service, name, changed(body, Random(seed)), tally)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(NAMES), body=st.binary(max_size=40))
@example(name="rank", body=b'{"actions":' * 5_000)
def test_any_bytes_are_answered_or_refused(
    service: Service, tally: Tally, name: str, body: bytes
) -> None:
    try_body(service, name, body, tally)


def test_over_http_nothing_refused_is_in_the_log(site: Site) -> None:
    heard = asking.ask_all(site, 0, range(300))
    asking.check_log(site, heard)
    assert site.service.problem is None
    assert min(heard.statuses[status] for status in (201, 400)) > 20


def test_several_rewards_before_their_rank_are_joined(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        for slot in ("", "x", "", "y"):
            reward(service, "e", 1.0, slot=slot)
        rank(service, offer("a", "b", event="e"))
        learned(service)
        assert service.problem is None
        assert service.fold.joiner.counts.duplicate >= 1


def test_the_openapi_document_is_kept(tmp_path: Path) -> None:
    if not schemas.is_installed():
        pytest.skip(schemas.MISSING)
    with served(tmp_path) as site:
        verdict = schemas.examine(site, tmp_path, 2, 0, "--phases", "coverage,fuzzing")
        assert verdict.is_good, verdict.text
        assert site.service.problem is None
    assert verdict.cases > 100


def test_frequencies_agree_with_the_log_while_it_learns(tmp_path: Path) -> None:
    with running(small_start(tmp_path)) as service:
        frequencies.decide(service, 800)
        found = frequencies.agreement(service)
    assert found.is_good
    assert (found.events, found.models > 1) == (800, True)


@pytest.mark.parametrize(("truth", "agrees"), [((0.7, 0.2, 0.1), True), ((0.67, 0.23, 0.1), False)])
def test_a_difference_of_three_hundredths_is_seen(truth: tuple[float, ...], agrees: bool) -> None:
    cells, rng = Cells(3), np.random.default_rng(1)
    for chosen in rng.choice(3, size=10_000, p=truth):
        cells.add(int(chosen), np.array([0.7, 0.2, 0.1]))
    statistic, degrees = cells.statistic()
    assert degrees == 2
    assert (chi2.sf(statistic, degrees) > 0.001) == agrees
