"""How a service starts; `make reliability` measures it with a long log."""

import asyncio
from pathlib import Path

from tests.contract.log_disk import OnDisk
from tests.reliability.running import Setup
from tests.reliability.starting import Past, begin, begin_and_read, forget, make


def test_a_service_starts_from_its_checkpoint_even_if_it_could_not_read_its_log(
    tmp_path: Path,
) -> None:
    setup = Setup(data=tmp_path / "data")
    rows = make(setup, Past(events=2000, learned=100))
    OnDisk(path=tmp_path / "data" / "log.db").damage(rows // 2)
    start = asyncio.run(begin(setup, "the first rank"))
    assert start.listening <= start.ready <= start.answered


def test_the_first_ranks_after_readiness_load_nothing_at_any_worker(tmp_path: Path) -> None:
    setup = Setup(data=tmp_path / "data", workers=2)
    start = asyncio.run(begin(setup, "one of the first ranks", ranks=12))
    assert start.rank_cpu < 0.05  # 0.3 where kernels are loaded, and 0.002 where they are not


def test_a_service_is_ready_before_it_has_read_its_log(tmp_path: Path) -> None:
    setup = Setup(data=tmp_path / "data", policy="", bits=12)
    make(setup, Past(events=20_000))
    forget(setup)
    begun, seconds = asyncio.run(begin_and_read(setup))
    assert begun < seconds
