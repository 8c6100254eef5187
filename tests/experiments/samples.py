"""Runs and summaries of which every number is known."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from rbmle.experiments.report import write_report
from rbmle.experiments.summary import POLICY_TITLES, Summary, summarise
from rbmle.experiments.tables import PaperResults
from rbmle.experiments.trial import Run, parse_description
from rbmle.studies.base import HORIZONS, OURS, TABLE_1

HOSTILE = "</script><script>alert('&amp;')</script><img src=x onerror=alert(1)>"


def run(
    dataset: str,
    policy: str,
    seed: int,
    regrets: Any,
    preprocessing: Any = None,
    settings: str = "",
    digest: str = "",
    target: str | None = None,
) -> Run:
    environment = {
        "name": dataset,
        "preprocessing": preprocessing,
        "digest": digest,
        "target": target,
    }
    trial = {
        "policy": policy,
        "settings": parse_description(
            settings or f"{POLICY_TITLES.get(policy, policy)}(exploration=0.1)"
        ),
        "environment": environment,
        "horizon": len(regrets),
        "seed": seed,
    }
    return Run(
        id=json.dumps(trial, sort_keys=True),
        settings=trial,
        regrets=np.array(regrets, np.float32),
        cpu_seconds=2.0,
        wall_seconds=3.0,
        versions={"python": "3.12.0", "numpy": "2.0.0"},
    )


def papers_summary() -> Summary:
    return summarise(
        run(dataset, policy, 0, [final])
        for policy, row in TABLE_1.items()
        for dataset, final in row.items()
    )


def fake_summary() -> Summary:
    rng = np.random.default_rng(0)
    return summarise(
        run(name, policy, seed, rng.random(HORIZONS[name]) / 5, preprocessing="unit length")
        for name in ("mnist", "mushroom", "shuttle")
        for policy in TABLE_1
        for seed in (0, 1)
    )


def published(
    means: dict[str, dict[str, float]],
    stds: dict[str, dict[str, float]] | None = None,
    horizons: dict[str, int] | None = None,
) -> PaperResults:
    horizons = {"zoo": 1} if horizons is None else horizons
    return PaperResults(
        source="paper", means=means, stds=stds or {}, horizons=horizons, policy=OURS
    )


def page_of(
    summary: Summary, folder: Path, published: PaperResults | None = None, title: str = "A report"
) -> str:
    path = folder / "out" / "report.html"
    write_report(summary, path, published, title)
    return path.read_text(encoding="utf-8")
