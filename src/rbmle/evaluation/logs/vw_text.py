"""Vowpal Wabbit's own text, as `vw --cb_explore_adf` reads it: a line for each action, then an empty one."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from rbmle.evaluation.logs.lines import Parsed, TextRow, distinct, objects, rows_of
from rbmle.evaluation.logs.table import LogReading
from rbmle.evaluation.results import LogFileError

_UNWRITABLE = re.compile(r"[\s:|]")  # separators, which cannot be part of a name


def parse_vw_text(lines: Iterable[bytes], reading: LogReading) -> Parsed:
    """Yield the decisions of a file; those without a label are counted, and left out."""
    for number, block in _blocks(lines):
        try:
            row = _row([line.decode() for line in block], number)
        except UnicodeDecodeError as error:
            reading.fault(f"line {number}", f"it is not UTF-8: {error}")
        except ValueError as error:
            reading.fault(f"line {number}", str(error))
        else:
            if row is None:
                reading.unlabelled += 1
            else:
                yield number, row


def _blocks(lines: Iterable[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the lines between empty ones, and the number of the first."""
    block: list[bytes] = []
    number = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number - len(block) + 1, block


def _row(block: list[str], number: int) -> TextRow | None:
    """Return the decision of a block, None if it has no label; raise ValueError if it is invalid."""
    context: list[dict[str, Any]] = []
    actions: list[dict[str, Any]] = []
    chosen: tuple[int, float, float] | None = None  # its place, reward and propensity
    for line in block:
        head, bar, rest = line.strip().partition("|")
        if not bar:
            raise ValueError(f"there is no | in {line.strip()!r}, which begins the features")
        words = head.split()
        if words[:1] == ["shared"]:
            context = _features(rest)
            continue
        id = words.pop().removeprefix("'") if _is_tagged(head, words) else ""
        actions.append({"id": id or str(len(actions) + 1), "features": _features(rest)})
        if words:
            if chosen is not None:
                raise ValueError("two actions have a label, but one was played")
            _, cost, probability = _label(words[0])
            chosen = len(actions) - 1, 0.0 - cost, probability
    if chosen is None:
        return None
    place, reward, propensity = chosen
    actions = distinct(actions)
    return TextRow(str(number), None, context, actions, actions[place]["id"], propensity, reward)


def _is_tagged(head: str, words: list[str]) -> bool:
    """Return whether the last word before the bar is a tag: after a quote, or right at the bar."""
    return bool(words) and (
        words[-1].startswith("'") or (not head[-1].isspace() and ":" not in words[-1])
    )


def _label(text: str) -> list[float]:
    try:
        action, cost, probability = map(float, text.split(":"))
    except ValueError:
        raise ValueError(
            f"the label is {text!r}, but action:cost:probability is expected, as in 0:-1:0.8"
        ) from None
    return [action, cost, probability]


def _features(text: str) -> list[dict[str, Any]]:
    """Return the features behind the first bar; a name without a number is a flag.

    >>> _features("user age:31 NL |colour=red")
    [{'user': {'age': 31.0, 'NL': True}}, {'colour=red': {}}]
    """
    parts: list[dict[str, Any]] = []
    for part in text.split("|"):
        words = part.split()
        if not words:
            continue
        namespace = "" if part[:1].isspace() else words.pop(0).partition(":")[0]
        features: dict[str, Any] = {}
        for word in words:
            name, colon, value = word.partition(":")
            key, equals, category = name.partition("=")
            if colon:
                features[name] = _number(name, value)
            elif equals:
                features[key] = category
            else:
                features[name] = True
        parts.append({namespace: features} if namespace else features)
    return parts


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"feature {name!r} is {text!r}, but a number is expected") from None


def write_vw_text(batches: Iterable[pa.RecordBatch], file: BinaryIO) -> int:
    """Write decisions as text, and return their number; ids of events and times are left out."""
    rows = 0
    for batch in batches:
        for row in rows_of(batch):
            file.write(_decision_lines(row).encode())
            rows += 1
    return rows


def _decision_lines(row: TextRow) -> str:
    if row.propensity is None:
        raise LogFileError(
            f"event {row.event_id} has no propensity, which the label of --cb_explore_adf needs; write "
            "Parquet or CSV"
        )
    lines = [f"shared {_bars(row.context)}"]
    for action in row.actions:
        is_played = action["id"] == row.arm and row.reward is not None
        label = f"0:{0.0 - (row.reward or 0.0)!r}:{row.propensity!r} " if is_played else ""
        lines.append(f"{label}'{_name(action['id'])}{_bars(action['features'])}")
    return "\n".join(lines) + "\n\n"


def _bars(features: Any) -> str:
    parts = []
    for item in objects(features):
        bare = {name: value for name, value in item.items() if not isinstance(value, dict)}
        spaces = {name: value for name, value in item.items() if isinstance(value, dict)}
        for namespace, members in {"": bare, **spaces}.items():
            words = [word for name, value in members.items() for word in _words(name, value)]
            if words and not namespace.startswith("_"):
                parts.append(" ".join([f"|{_name(namespace)}", *words]))
    return " ".join(parts) or "|"


def _words(name: str, value: Any) -> Iterator[str]:
    """Yield a feature as words; names that begin with _ are ignored."""
    if name.startswith("_") or value is False:
        return
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from _words(name if isinstance(item, str) else f"{name}[{place}]", item)
    elif value is True:
        yield _name(name)
    elif isinstance(value, int | float):
        yield f"{_name(name)}:{value!r}"
    else:
        yield f"{_name(name)}={_name('null' if value is None else value)}"


def _name(text: str) -> str:
    return _UNWRITABLE.sub("_", text)
