"""Figures for Prometheus: requests as they come, and the rest when it is asked for."""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from rbmle.service.front_end import FrontEnd
from rbmle.service.log.timings import Timings

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_REWARDS = ("joined", "defaulted", "duplicate", "late", "orphan")


class Metrics(Collector):
    """What is counted of requests, in plain numbers: 2 µs a request, where Prometheus' own took 60."""

    def __init__(self, service: FrontEnd) -> None:
        self.requests: Counter[str] = Counter()  # by what was asked
        self.errors: Counter[str] = Counter()  # by status
        self.timings = Timings()
        self._statuses: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}  # how many were in each, by what was asked
        self._seconds: dict[str, float] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._registry.register(_Live(service))

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[operation] += 1
        self._statuses[operation, status] += 1
        if status >= 400:
            self.errors[str(status)] += 1
        self.timings.add(seconds)
        self._seconds[operation] = self._seconds.get(operation, 0.0) + seconds
        if operation not in self._buckets:
            self._buckets[operation] = [0] * (len(_BUCKETS) + 1)
        self._buckets[operation][bisect_left(_BUCKETS, seconds)] += 1

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of requests."""
        total = CounterMetricFamily("rbmle_requests", "Requests", labels=["operation", "status"])
        for (operation, status), count in list(self._statuses.items()):
            total.add_metric([operation, str(status)], count)
        yield total
        text = "Time from a whole request to its answer"
        seconds = HistogramMetricFamily("rbmle_request_seconds", text, labels=["operation"])
        for operation, counts in list(self._buckets.items()):
            edges = [*map(str, _BUCKETS), "+Inf"]
            upto = list(zip(edges, accumulate(counts), strict=True))
            seconds.add_metric([operation], upto, self._seconds[operation])
        yield seconds


class _Live(Collector):
    """Figures that the service knows by itself."""

    def __init__(self, service: FrontEnd) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yield the figures as they are now."""
        service = self._service
        status, report, published = service.status(), service.report, service.published
        counts = report.counts
        rewards = CounterMetricFamily("rbmle_rewards", "What became of rewards", labels=["fate"])
        for fate in _REWARDS:
            rewards.add_metric([fate], getattr(counts, fate))
        yield rewards
        yield CounterMetricFamily("rbmle_decisions", "Events decided", counts.decided)
        age = 0.0 if published is None else max(0.0, time.time() - published.time / 1000)
        for name, text, value in (
            ("rbmle_backlog_records", "Records that wait to be learned", status.backlog),
            ("rbmle_log_records", "Records of the log", status.records),
            ("rbmle_log_bytes", "Size of the log", report.log_bytes),
            ("rbmle_model_observations", "Observations of the model", status.observations),
            ("rbmle_model_age_seconds", "Since the last record of the model that decides", age),
            ("rbmle_pending_events", "Events that may be rewarded", report.pending),
            ("rbmle_commit_p99_seconds", "Of transactions", service.writer.timings.quantile(0.99)),
            ("rbmle_ready", "Whether it can decide and learn", service.problem is None),
        ):
            yield GaugeMetricFamily(name, text, value or 0.0)
