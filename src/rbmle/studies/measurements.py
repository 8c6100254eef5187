"""Measurements on disk, one file each, named by their content: what was measured is not measured again."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rbmle.core.files import write_text
from rbmle.experiments.code import own_code
from rbmle.experiments.versions import versions

MEASURED = ("classical", "control")  # folders that studies measure, and no trial plays
JSONRecord = dict[str, Any]  # JSON
ENDING = "-seeds.json"  # of results by seed


def kept(folder: Path, settings: JSONRecord, measure: Callable[[], JSONRecord]) -> JSONRecord:
    """Return what the folder has for these settings, versions and code; measure it if there is nothing."""
    content = {"settings": settings, "versions": versions(), "code": own_code(*MEASURED).settings}
    text = json.dumps(content, sort_keys=True)
    path = folder / f"{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.json"
    try:
        return dict(json.loads(path.read_text())["measured"])
    except (OSError, ValueError, KeyError, TypeError):  # missing or damaged
        measured = measure()
    write_text(path, json.dumps(content | {"measured": measured}, indent=1) + "\n")
    return measured


def write_results(path: Path, head: JSONRecord, lists: dict[str, list[Any]]) -> Path:
    """Write results as JSON: first what they are, then lists with one entry a line."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, entries in lists.items():
        inner = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
        lines.append(f" {json.dumps(key)}: [\n{inner}\n ]")
    return write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
