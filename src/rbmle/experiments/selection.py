"""Which runs of a folder may be compared: those of one code, the current one if it has runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rbmle.experiments.code import Code
from rbmle.experiments.trial import Run

NAMED = 3  # codes in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The runs that are used, and those that are left as they are of other code."""

    used: tuple[Run, ...]
    left: tuple[Run, ...]
    is_current: bool  # is the code of those that are used the current one?


def of_one_code(runs: Iterable[Run], current: Code) -> Selection:
    """Return the runs of the current code; if there are none, those of the newest code.

    Of a module outside rbmle the newest code counts, which the current process need not have loaded.
    """
    found = sorted(runs, key=lambda run: run.finished)
    if not found:
        return Selection(used=(), left=(), is_current=True)
    is_current = any(_own(run.code) == _own(current) for run in found)
    wanted = _own(current if is_current else found[-1].code)
    ours = [run for run in found if _own(run.code) == wanted]
    newest = {name: digest for run in ours for name, digest in run.code.outside}
    used = tuple(run for run in ours if _agrees(run.code, newest))
    taken = {run.id for run in used}
    left = tuple(run for run in found if run.id not in taken)
    return Selection(used=used, left=left, is_current=is_current)


def note_on(selection: Selection, folder: Path) -> str:
    """Return which runs of a folder are shown, if not all or not of the current code; else nothing."""
    sentences = []
    if not selection.is_current:
        code = named_codes(run.code for run in selection.used)
        sentences.append(
            f"No run in {folder} is of the current code; these are of the newest there is ({code})."
        )
    if selection.left:
        sentences.append(left_out([run.code for run in selection.left], folder))
    return " ".join(sentences)


def left_out(codes: Sequence[Code], folder: Path) -> str:
    """Return that runs of other code are not used, and how to see them."""
    runs = "1 run" if len(codes) == 1 else f"{len(codes)} runs"
    are, them = ("is", "it") if len(codes) == 1 else ("are", "them")
    return (
        f"{runs} in {folder} {are} of other code ({named_codes(codes)}) and {are} not used; "
        f"rbmle report --all-code shows {them}."
    )


def is_other(code: Code, current: Code, outside: Mapping[str, str]) -> bool:
    """Return whether a run is of other code than the current, and than that of modules outside."""
    return _own(code) != _own(current) or not _agrees(code, outside)


def named_codes(codes: Iterable[Code]) -> str:
    """Return codes for a message, such as: version 0.1.0, code 3fa91c2b."""
    names = list(dict.fromkeys(f"version {code.version}, code {code.title}" for code in codes))
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    return "; ".join([*names[:NAMED], *more])


def _own(code: Code) -> tuple[str, str]:
    """Return rbmle's part of a code."""
    return code.version, code.digest


def _agrees(code: Code, outside: Mapping[str, str]) -> bool:
    """Return whether no module outside has another digest than here."""
    return all(outside.get(name, digest) == digest for name, digest in code.outside)
