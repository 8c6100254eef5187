"""Figures for Prometheus, as it would read them."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from rbmle.service.http.metrics import (
    ENTRIES,
    NAME_BYTES,
    WIDTH,
    Metrics,
    WorkerCounters,
    counters_file,
)
from rbmle.service.log.publications import REPORT
from rbmle.service.model.report import Report, ShadowReport, losing_notices
from rbmle.service.notices import Notice
from rbmle.service.settings import ServiceConfiguration
from rbmle.service.statistics.guarding import GuardReport
from rbmle.service.statistics.lift_intervals import HoldoutLift, Lift, WindowLift
from tests.services import Service, learned, offer, rank, reward, running, small_start, wait_until


def figures(metrics: Metrics) -> dict[str, float]:
    """Return all figures by name and labels."""
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        sample.name
        + "".join(f"|{value}" for _, value in sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with running(small_start(tmp_path, configuration=ServiceConfiguration())) as service:
        yield service


def test_rewards_are_summed_and_counted(service: Service) -> None:
    for value in (1.0, 0.5, -0.25):
        reward(service, rank(service, offer("a", "b")).event, value)
    learned(service)
    found = figures(Metrics(service))
    assert found["rbmle_reward_count"] == service.report.summary.settled
    assert found["rbmle_reward_sum"] == pytest.approx(service.statistics.ranges.total().played.wr)
    assert found["rbmle_rewards_total|joined"] == service.report.counts.joined


def test_durations_are_histograms_without_quantiles(service: Service) -> None:
    rank(service, offer("a", "b"))
    metrics = Metrics(service)
    for seconds in (0.0005, 0.003, 7.0):
        metrics.count("rank", 201, seconds)
    found = figures(metrics)
    assert found["rbmle_request_seconds_bucket|0.001|rank"] == 1
    assert found["rbmle_request_seconds_bucket|0.005|rank"] == 2
    assert found["rbmle_request_seconds_bucket|1.0|rank"] == 2
    assert found["rbmle_request_seconds_bucket|+Inf|rank"] == 3
    assert found["rbmle_request_seconds_sum|rank"] == pytest.approx(7.0035)
    assert found["rbmle_commit_seconds_bucket|+Inf"] == service.writer.timings.count > 0
    assert found["rbmle_commit_seconds_count"] == service.writer.timings.count
    assert not any("p99" in name for name in found)


def test_the_process_is_measured(service: Service) -> None:
    found = figures(Metrics(service))
    for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "start_time_seconds"):
        assert found[f"process_{name}"] > 0


def test_notices_of_the_learner_are_shown_by_code_the_most_urgent_first(service: Service) -> None:
    notices = [
        Notice(code="model-reset", level="info", title="The model was reset."),
        Notice(code="losing", level="alarm", title="The policy earns less than the baseline."),
    ]
    service.learner.stop()
    service._thread.join()
    report = msgspec.msgpack.encode(Report(time=0, notices=notices))
    service.learner.publications.put(REPORT, report, token=2)  # of a learner that came after
    wait_until(lambda: bool(service.notices))
    assert [notice.code for notice in service.notices] == ["losing", "model-reset"]
    found = figures(Metrics(service))
    assert found["rbmle_notices|losing|alarm"] == 1
    assert found["rbmle_notices|model-reset|info"] == 1


def test_lifts_of_windows_are_metrics_and_a_loss_is_an_alarm(service: Service) -> None:
    hour = WindowLift(
        window="hour", plays=900, played=0.2, baseline=0.3, low=-0.2, high=-0.05, error=0.02
    )
    service.learner.stop()  # which would report what it knows itself
    service._thread.join()
    report = Report(time=0, lifts=[hour], notices=losing_notices([hour]))
    service.learner.publications.put(REPORT, msgspec.msgpack.encode(report))
    wait_until(lambda: bool(service.report.lifts))
    found = figures(Metrics(service))
    assert found["rbmle_lift|value|hour"] == pytest.approx(-0.1)
    assert (found["rbmle_lift|low|hour"], found["rbmle_lift|high|hour"]) == (-0.2, -0.05)
    assert found["rbmle_losing"] == 1
    assert found["rbmle_notices|now-losing|alarm"] == 1
    (notice,) = service.notices
    assert "In the last hour a decision earned 0.200" in notice.text


def test_the_lift_over_the_holdout_is_a_metric(service: Service) -> None:
    lift = HoldoutLift(
        share=0.1,
        play="baseline",
        difference=Lift(value=0.05, low=0.01, high=0.09, is_relative=False),
        relative=None,
        policy_plays=900,
        held_plays=100,
        policy_mean=0.35,
        held_mean=0.3,
    )
    assert not any("rbmle_holdout" in name for name in figures(Metrics(service)))
    service.learner.stop()
    service._thread.join()
    report = Report(time=0, holdout=lift)
    service.learner.publications.put(REPORT, msgspec.msgpack.encode(report))
    wait_until(lambda: service.report.holdout is not None)
    found = figures(Metrics(service))
    assert found["rbmle_holdout_lift|value"] == 0.05
    assert (found["rbmle_holdout_lift|low"], found["rbmle_holdout_lift|high"]) == (0.01, 0.09)
    assert found["rbmle_holdout_plays|policy"] == 900
    assert found["rbmle_holdout_reward|holdout"] == 0.3


def test_the_room_of_conservative_mode_is_a_metric(service: Service) -> None:
    service.learner.stop()
    service._thread.join()
    guard = GuardReport(plays=500, surplus=20.0, low=6.0, pending=1.6, share=0.5)
    report = Report(time=0, guard=guard)
    service.learner.publications.put(REPORT, msgspec.msgpack.encode(report))
    wait_until(lambda: service.report.guard is not None)
    found = figures(Metrics(service))
    assert found["rbmle_guard_surplus|value"] == 20.0
    assert found["rbmle_guard_surplus|low"] == 6.0
    assert found["rbmle_guard_surplus|pending"] == 1.6
    assert found["rbmle_guard_baseline_share"] == 0.5


def test_the_lifts_of_shadows_are_metrics(service: Service) -> None:
    service.learner.stop()
    service._thread.join()
    early = ShadowReport(
        policy="lin-ts",
        plays=3,
        since=0,
        reward=None,
        played=None,
        low=None,
        high=None,
        is_behind=False,
    )
    better = msgspec.structs.replace(
        early, policy="lin-ucb", plays=900, reward=0.5, played=0.25, low=0.125, high=0.375
    )
    report = Report(time=0, shadows=[early, better])
    service.learner.publications.put(REPORT, msgspec.msgpack.encode(report))
    wait_until(lambda: bool(service.report.shadows))
    found = figures(Metrics(service))
    assert found["rbmle_shadow_lift|value|lin-ucb"] == 0.25
    assert (found["rbmle_shadow_lift|low|lin-ucb"], found["rbmle_shadow_lift|high|lin-ucb"]) == (
        *(0.125, 0.375),
    )
    assert not any("lin-ts" in name for name in found)


def test_any_worker_reads_the_sum_of_all() -> None:
    with counters_file(3) as file:
        workers = [WorkerCounters(file.fileno(), number, 3) for number in range(3)]
        for number, counters in enumerate(workers):
            counters.values("requests", "rank", "201")[0] += number + 1
            counters.values("seconds", "rank")[WIDTH - 1] += 0.5
        workers[1].values("requests", "rank", "409")[0] += 1
        for counters in workers:
            total = counters.total()
            assert total["requests", "rank", "201"][0] == 6
            assert total["requests", "rank", "409"][0] == 1
            assert total["seconds", "rank"][-1] == 1.5


def test_a_restarted_worker_continues_its_counters() -> None:
    with counters_file(2) as file:
        other = WorkerCounters(file.fileno(), 0, 2)
        for _ in range(3):  # lives of the same worker
            again = WorkerCounters(file.fileno(), 1, 2)
            again.values("requests", "rank", "201")[0] += 5
            again.values("commits")[0] += 1
        assert other.total() == again.total()
        assert other.total()["requests", "rank", "201"][0] == 15
        assert other.total()["commits",][0] == 3


def test_a_half_written_counter_name_is_overwritten() -> None:
    with counters_file(1) as file:
        counters = WorkerCounters(file.fileno())
        counters._memory[1:30] = b"x" * 29  # all but the first byte of a name
        assert counters.total() == {}
        counters.values("pid")[0] = 7
        assert list(counters.total()) == [("pid",)]


def test_counters_beyond_the_page_are_dropped() -> None:
    counters = WorkerCounters()
    counters.values("x" * (NAME_BYTES + 1))[0] += 1
    for number in range(ENTRIES + 10):
        counters.values("requests", str(number))[0] += 1
    assert len(counters.total()) == ENTRIES


def test_a_worker_knows_whether_all_others_can_decide() -> None:
    with counters_file(2) as file:
        first, second = (WorkerCounters(file.fileno(), worker, 2) for worker in range(2))
        before = first.others_are_warm
        second.note_warm()
        assert (before, first.others_are_warm, second.others_are_warm) == (False, True, False)
    assert WorkerCounters().others_are_warm
