"""The service at one glance."""

import time
from datetime import UTC, datetime

from rbmle.policies.specification import name_of
from rbmle.service.configuration import ServiceConfiguration
from rbmle.service.dashboard.overview import Overview
from rbmle.service.front_end import FrontEnd
from rbmle.service.http.metrics import Metrics


def overview_of(service: FrontEnd, metrics: Metrics) -> Overview:
    """Return all that the dashboard shows."""
    writer, report, published = service.writer, service.report, service.published
    configuration = ServiceConfiguration() if published is None else service.decider.configuration
    status, now = service.status(), time.time()
    failure = None if writer.failure is None else int(writer.failure.since * 1000)
    return Overview(
        time=int(now * 1000),
        version=status.version,
        uptime_seconds=(datetime.now(UTC) - service.started).total_seconds(),
        policy="" if published is None else name_of(published.model.policy),
        learning_mode=configuration.learning_mode.value,
        exploration=configuration.exploration,
        summary=report.summary,
        counts=report.counts,
        pending=report.pending,
        records=status.records,
        learned=status.learned,
        observations=status.observations,
        model_age_seconds=None if published is None else max(0.0, now - published.time / 1000),
        log_bytes=report.log_bytes,
        log_unavailable_since=report.unavailable_since if failure is None else failure,
        log_problem=report.broken
        or (report.unavailable_why if writer.failure is None else writer.failure.why),
        fsync_p99_seconds=writer.timings.quantile(0.99),
        latency_p50_seconds=metrics.timings.quantile(0.5),
        latency_p99_seconds=metrics.timings.quantile(0.99),
        requests=dict(metrics.requests),
        errors=dict(metrics.errors),
    )
