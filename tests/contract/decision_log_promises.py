"""What a log of decisions promises to whoever judges policies on it."""

from collections.abc import Callable
from itertools import pairwise

import pyarrow as pa

from rbmle.evaluation import LogFileError
from rbmle.evaluation.logs import SCHEMA, DecisionLog, LogReading


def it_can_be_read_again(log: DecisionLog) -> None:
    assert _table(log).equals(_table(log)), "a second reading tells something else"


def it_has_the_columns_of_the_table(log: DecisionLog) -> None:
    assert _table(log).schema.equals(SCHEMA), "these are not the columns of SCHEMA"


def it_gives_the_columns_that_are_asked_for(log: DecisionLog) -> None:
    whole = _table(log)
    for columns in (("propensity", "reward"), ("context", "arm")):
        for batch in log.batches(LogReading(), columns):
            assert tuple(batch.table.schema.names) == columns, "other columns than asked for"
        some = pa.Table.from_batches([b.table for b in log.batches(LogReading(), columns)])
        assert some.equals(whole.select(columns)), "other values than all columns have"


def it_numbers_its_rows(log: DecisionLog) -> None:
    numbers = [int(n) for batch in log.batches(LogReading()) for n in batch.numbers]
    assert len(numbers) == len(_table(log)), "some rows have no number"
    assert numbers[0] >= 1, "rows are counted from 1"
    assert all(a < b for a, b in pairwise(numbers)), "numbers do not increase"


PROMISES = (
    it_can_be_read_again,
    it_has_the_columns_of_the_table,
    it_gives_the_columns_that_are_asked_for,
    it_numbers_its_rows,
)


def it_tells_of_bad_rows(log: DecisionLog) -> None:
    """For a log of which one row is bad."""
    try:
        _table(log)
    except LogFileError as error:
        assert "--skip-bad" in str(error) or "cannot be read" in str(error), (
            "it says not what to do"
        )
    else:
        raise AssertionError("a bad row was passed over")
    reading = LogReading(skips_bad=True)
    list(log.batches(reading))
    assert reading.bad == 1, f"{reading.bad} bad rows were counted, not 1"
    assert len(reading.messages) == 1, "a bad row has one message"


def broken(promise: Callable[[DecisionLog], None], log: DecisionLog) -> bool:
    """Return whether a log breaks a promise."""
    try:
        promise(log)
    except AssertionError:
        return True
    return False


def _table(log: DecisionLog) -> pa.Table:
    tables = [batch.table for batch in log.batches(LogReading())]
    return pa.Table.from_batches(tables) if tables else SCHEMA.empty_table()
