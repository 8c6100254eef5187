"""The service at one glance."""

import time
from copy import copy
from datetime import UTC, datetime

from rbmle.policies.specification import name_of
from rbmle.service.dashboard.overview import Overview
from rbmle.service.http.metrics import Metrics
from rbmle.service.service import Service


def overview_of(service: Service, metrics: Metrics) -> Overview:
    """Return all that the dashboard shows."""
    learner, writer, configuration = service.learner, service.writer, service.decider.configuration
    status, published, now = service.status(), learner.published, time.time()
    failure = writer.failure or learner.failure
    with learner.lock:
        summary, counts = service.statistics.summary(), copy(learner.fold.joiner.counts)
        pending = len(learner.fold.joiner.pending)
    return Overview(
        time=int(now * 1000),
        version=status.version,
        uptime_seconds=(datetime.now(UTC) - service.started).total_seconds(),
        policy="" if published is None else name_of(published.model.policy),
        learning_mode=configuration.learning_mode.value,
        exploration=configuration.exploration,
        summary=summary,
        counts=counts,
        pending=pending,
        records=status.records,
        learned=status.learned,
        observations=status.observations,
        model_age_seconds=None if published is None else max(0.0, now - published.time / 1000),
        log_bytes=learner.log_bytes,
        log_unavailable_since=None if failure is None else int(failure.since * 1000),
        log_problem=learner.broken or ("" if failure is None else failure.why),
        fsync_p99_seconds=writer.timings.quantile(0.99),
        latency_p50_seconds=metrics.timings.quantile(0.5),
        latency_p99_seconds=metrics.timings.quantile(0.99),
        requests=dict(metrics.requests),
        errors=dict(metrics.errors),
    )
