"""Figures for Prometheus: requests as they come, and the rest when it is asked for."""

import time
from collections import Counter
from collections.abc import Iterator
from functools import cache

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client import Counter as Count
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rbmle.service.service import Service
from rbmle.service.timings import Timings

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_REWARDS = ("joined", "defaulted", "duplicate", "late", "orphan")


class Metrics:
    """What is counted of requests."""

    def __init__(self, service: Service) -> None:
        self.requests: Counter[str] = Counter()  # by what was asked
        self.errors: Counter[str] = Counter()  # by status
        self.timings = Timings()
        self._registry = CollectorRegistry()
        self._total = Count(
            "rbmle_requests", "Requests", ("operation", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "rbmle_request_seconds",
            "Time from a whole request to its answer",
            ("operation",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(_Live(service))
        self._counter = cache(self._total.labels)  # its own look-up is dear
        self._histogram = cache(self._seconds.labels)

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[operation] += 1
        if status >= 400:
            self.errors[str(status)] += 1
        self.timings.add(seconds)
        self._counter(operation, status).inc()
        self._histogram(operation).observe(seconds)

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return generate_latest(self._registry)


class _Live(Collector):
    """Figures that the service knows by itself."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yield the figures as they are now."""
        service = self._service
        status, counts, learner = service.status(), service.fold.joiner.counts, service.learner
        rewards = CounterMetricFamily("rbmle_rewards", "What became of rewards", labels=["fate"])
        for fate in _REWARDS:
            rewards.add_metric([fate], getattr(counts, fate))
        yield rewards
        yield CounterMetricFamily("rbmle_decisions", "Events decided", counts.decided)
        published = learner.published
        age = 0.0 if published is None else max(0.0, time.time() - published.time / 1000)
        for name, text, value in (
            ("rbmle_backlog_records", "Records that wait to be learned", status.backlog),
            ("rbmle_log_records", "Records of the log", status.records),
            ("rbmle_log_bytes", "Size of the log", learner.log_bytes),
            ("rbmle_model_observations", "Observations of the model", status.observations),
            ("rbmle_model_age_seconds", "Since the last record of the model that decides", age),
            (
                "rbmle_pending_events",
                "Events that may be rewarded",
                len(service.fold.joiner.pending),
            ),
            ("rbmle_commit_p99_seconds", "Of transactions", service.writer.timings.quantile(0.99)),
            ("rbmle_ready", "Whether it can decide and learn", service.problem is None),
        ):
            yield GaugeMetricFamily(name, text, value or 0.0)
