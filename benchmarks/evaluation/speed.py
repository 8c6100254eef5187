"""`python -m benchmarks.evaluation.speed`: ten million decisions from Parquet, how fast and in what memory."""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rbmle.evaluation import evaluate

ARMS = 5
GROUP = 100_000
MENUS = 1_000  # lists of actions that differ; a page of news has new articles all the time


def batches(rows: int, rng: np.random.Generator) -> Iterator[pa.Table]:
    """Yield a log with three features of the user and two of each article."""
    menus = [
        json.dumps(
            [
                {
                    "id": f"article-{(7 * k + arm) % 200}",
                    "features": [{"topic": f"t{arm}", "age": k}],
                }
                for arm in range(ARMS)
            ]
        )
        for k in range(MENUS)
    ]
    for first in range(0, rows, GROUP):
        n = min(GROUP, rows - first)
        menu, place = rng.integers(MENUS, size=n), rng.integers(ARMS, size=n)
        ages, hours = rng.integers(16, 80, size=n), rng.integers(24, size=n)
        yield pa.table(
            {
                "event_id": [f"e{i}" for i in range(first, first + n)],
                "context": [
                    f'[{{"user": {{"age": {age}, "country": "c{age % 7}"}}, "hour": {hour}}}]'
                    for age, hour in zip(ages.tolist(), hours.tolist(), strict=True)
                ],
                "actions": [menus[k] for k in menu.tolist()],
                "arm": [f"article-{k % 200}" for k in (7 * menu + place).tolist()],
                "propensity": np.full(n, 1 / ARMS),
                "reward": (rng.random(n) < 0.1).astype(float),
            }
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--estimators", default="ips,snips")
    parser.add_argument("--policy", default="uniform")
    parser.add_argument("--interval", default="bootstrap")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        writer = None
        for table in batches(given.rows, np.random.default_rng(0)):
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
        if writer is not None:
            writer.close()
        start, cpu = time.perf_counter(), time.process_time()
        found = evaluate(path, given.policy, estimators=given.estimators, interval=given.interval)
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{given.rows:,} decisions in {took:.1f} s, {given.rows / took:,.0f} a second, "
            f"{given.rows / cpu:,.0f} in a second of CPU; {most:.2f} GiB of memory at most"
        )
        for one in found.estimates:
            print(one)


if __name__ == "__main__":
    main()
