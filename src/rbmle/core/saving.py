"""One file for a bandit: a zip of arrays and a JSON manifest, no pickle, written whole or not at all.

Arrays of the state go to the zip under their path in its tree, numbers to the manifest. The tree's
shape is not stored: the policy makes it again, and its leaves are then replaced. The same bandit gives
the same bytes.
"""

import dataclasses
import importlib
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rbmle.core.bandit import Bandit
from rbmle.core.diagnosis import Observed
from rbmle.core.encoding import Encoded, Encoder, Places
from rbmle.core.errors import FileError
from rbmle.core.events import Events
from rbmle.core.files import written_whole
from rbmle.core.offers import Arms
from rbmle.core.policy import Policy
from rbmle.core.state import Learned, LearnedDecisions
from rbmle.core.trees import leaves, replace_leaves
from rbmle.core.types import Moments, Scales

FORMAT = "rbmle bandit"
VERSION, WITHOUT_ROWS = 3, 2  # a file that has all rows of its arrays can be read as before
LARGE = 2**18  # numbers in an array of which only the rows that moved are saved
MANIFEST = "manifest.json"
OBSERVED = "observed"  # the sums behind a diagnosis
KNOWN = "known_decisions"  # digests of the decisions that were learned
Parts = tuple[dict[str, np.ndarray], dict[str, float | int], int]
# Settings that files of earlier versions lack, with values that keep the behaviour of that time.
EARLIER: dict[str, dict[str, Any]] = {
    "Regression": {"is_standardised": False},
    "TorchRegression": {"is_standardised": False},
    "Ridge": {"is_standardised": False},
    "GLM": {"is_standardised": False},
    "NeuralRBMLEGA": {"linear": None},
}
OURS = "rbmle."  # the only package whose classes a file may name
# Modules that files of earlier versions name, and where their classes are now.
MOVED = {
    "rbmle.interop.torch_network": "rbmle.interop.torch_models",
    "rbmle.interop.torch_precision": "rbmle.interop.torch_models",
    "rbmle.interop.torch_regression": "rbmle.interop.torch_models",
    "rbmle.interop.vw_explorers": "rbmle.interop.vowpal_wabbit",
    "rbmle.likelihoods.bernoulli": "rbmle.likelihoods",
    "rbmle.likelihoods.gaussian": "rbmle.likelihoods",
    "rbmle.likelihoods.mixture": "rbmle.likelihoods",
    "rbmle.models.generalised_linear": "rbmle.models.linear",
    "rbmle.models.ridge": "rbmle.models.linear",
    "rbmle.models.training": "rbmle.models.regression",
    "rbmle.policies.glm_rbmle": "rbmle.policies.lin_rbmle",
    "rbmle.policies.glm_ts": "rbmle.policies.lin_ts",
    "rbmle.policies.glm_ucb": "rbmle.policies.lin_ucb",
    "rbmle.policies.neu_fast_cb": "rbmle.policies.neu_cb",
    "rbmle.policies.neu_square_cb": "rbmle.policies.neu_cb",
    "rbmle.policies.uniform": "rbmle.policies.epsilon_greedy",
}


def save(bandit: Bandit, path: str | os.PathLike[str]) -> None:
    """Write a bandit to a file, whole or not at all."""
    with written_whole(Path(path)) as file:
        write(bandit, file)


def write(bandit: Bandit, file: BinaryIO, untaught: Bandit | None = None) -> None:
    """Write a bandit to an open file; raise SnapshotError for a snapshot.

    `untaught` is a bandit of the same settings before any data, or a snapshot of one. If it is missing, or its
    settings differ, one is made, which takes as much memory as the bandit.
    """
    with bandit.learner.holding():
        _write(bandit, file, untaught)


def _write(bandit: Bandit, file: BinaryIO, untaught: Bandit | None) -> None:
    """Write a bandit whose lock is held."""
    arrays, numbers, _ = parts_of(bandit)
    rows = _moved_rows(bandit, arrays, untaught)
    manifest = {
        "format": FORMAT,
        "version": VERSION if rows else WITHOUT_ROWS,
        "policy": encode(bandit.policy),
        "encoding": bandit.encoding.value,
        "features": bandit.features
        if isinstance(bandit.encoder, Places)
        else encode(bandit.encoder),
        "seed": bandit.seed,
        "floor": bandit.floor,
        "draws": bandit.draws,
        "on_repeat": bandit.on_repeat,
        "decisions": bandit.decisions,
        "round": bandit.round,
        "arms": None if bandit.arms is None else bandit.arms.ids,
        "retired": []
        if bandit.arms is None
        else [a for a in bandit.arms.ids if a in bandit.arms.retired],
        "arrays": sorted(arrays),
        "numbers": numbers,
    } | ({"rows": sorted(rows)} if rows else {})
    known = bandit.learner.now.known
    if len(known):
        manifest["known"] = KNOWN
    if bandit.resets:
        manifest["events"] = bandit.learner.now.events.as_dict()
    observed: dict[str, np.ndarray] = {}
    if bandit.learner.now.observed.rounds:
        observed, manifest["observed"] = leaves(bandit.learner.now.observed, OBSERVED)
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(manifest, indent=1))
        for name in sorted(arrays):
            array = arrays[name]
            if name in rows:
                _put(zipped, f"{name}.rows", rows[name])
                array = array[rows[name]]
            _put(zipped, name, array)
        if len(known):
            _put(zipped, KNOWN, known.as_array())
        for name, array in observed.items():
            _put(zipped, name, array)


def _put(zipped: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    with zipped.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
        np.lib.format.write_array(entry, array, allow_pickle=False)


def _moved_rows(
    bandit: Bandit, arrays: dict[str, np.ndarray], untaught: Bandit | None
) -> dict[str, np.ndarray]:
    """Return, for each large array of which most rows are as before any data, the rows that are not.

    With hashed features, training touches few rows of W_1; the others are made again by `load`.
    """
    large = [name for name, array in arrays.items() if array.size >= LARGE]
    if not large:
        return {}
    if untaught is None or _start_of(untaught) != _start_of(bandit):
        untaught = _untaught(bandit)
    before, _, _ = parts_of(untaught)
    moved = {}
    for name in large:
        array, start = arrays[name], before.get(name)  # a snapshot does not have all
        if start is None or array.shape != start.shape or array.dtype != start.dtype:
            continue
        rows = moved_rows(array, start)
        if 2 * len(rows) < len(array):
            moved[name] = rows
    return moved


def moved_rows(array: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the rows of an array that differ from its start in at least one bit."""
    bits = np.dtype(f"u{array.itemsize}")  # as integers, −0 differs from 0, and NaN equals itself
    differs = (array.view(bits) != start.view(bits)).reshape(len(array), -1).any(axis=1)
    return np.flatnonzero(differs)


def _start_of(bandit: Bandit) -> tuple[Any, ...]:
    """Return the settings that determine the arrays of a bandit before any data."""
    arms = None if bandit.arms is None else bandit.arms.ids
    return bandit.policy, arms, bandit.encoder, bandit.seed, bandit.encoding


def _untaught(bandit: Bandit) -> Bandit:
    return Bandit(
        bandit.policy,
        arms=None if bandit.arms is None else bandit.arms.ids,
        features=Encoded(bandit.encoder),
        seed=bandit.seed,
        encoding=bandit.encoding,
        floor=bandit.floor,
        draws=bandit.draws,
        on_repeat=bandit.on_repeat,
    )


def snapshot_of(snapshot: Bandit, parts: Parts) -> Bandit:
    """Return a snapshot with the parts of another one of the same settings; nothing is copied."""
    arrays, numbers, round = parts
    now = snapshot.learner.now
    state, scales = replace_leaves(now.state, arrays, numbers), _scales(now, arrays)
    learned = Learned(state=state, arms=now.arms, round=round, scales=scales)
    return snapshot._with(snapshot.learner.with_learned(learned))


def parts_of(snapshot: Bandit) -> Parts:
    """Return the arrays and numbers that a snapshot decides by, by their names, and its round."""
    arrays, numbers = leaves(snapshot.state)
    if (scales := snapshot.learner.scales) is not None:
        arrays |= leaves(scales, "scales")[0]
    return arrays, numbers, snapshot.round


def _scales(now: Learned, arrays: dict[str, np.ndarray]) -> Scales | Moments | None:
    return None if now.scales is None else replace_leaves(now.scales, arrays, {}, "scales")


def load(
    path: str | os.PathLike[str] | BinaryIO,
    policy: Policy[Any] | None = None,
    features: Encoder | None = None,
) -> Bandit:
    """Return the bandit in a file, or raise FileError."""
    try:
        with zipfile.ZipFile(path) as zipped:
            manifest = json.loads(zipped.read(MANIFEST))
            _check(path, manifest)
            policy = _part("policy", path, manifest, policy)
            features = _part("features", path, manifest, features)
            arrays = {name: _get(zipped, name) for name in manifest["arrays"]}
            rows = {name: _get(zipped, f"{name}.rows") for name in manifest.get("rows", ())}
            known = _get(zipped, manifest["known"]).tolist() if "known" in manifest else ()
            observed = Observed()
            if "observed" in manifest:
                sums = {name: _get(zipped, name) for name in leaves(observed, OBSERVED)[0]}
                observed = replace_leaves(observed, sums, manifest["observed"], OBSERVED)
        bandit = _rebuild(manifest, policy, features, arrays, rows)
        bandit.learner.now.known = LearnedDecisions(known)
        bandit.learner.now.observed = observed
        return bandit
    except FileError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        ValueError,
        TypeError,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        where = path if isinstance(path, str | os.PathLike) else "the file"
        raise FileError(
            f"{where} is not a saved bandit, or it is damaged ({type(error).__name__}: {error}); "
            "use a file that Bandit.save wrote, or an older copy of this one"
        ) from error


def _get(zipped: zipfile.ZipFile, name: str) -> np.ndarray:
    with zipped.open(f"{name}.npy") as entry:
        array = np.lib.format.read_array(entry, allow_pickle=False)
        entry.read()  # zipfile compares the checksum at the end
    return array


def encode(value: Any) -> Any:
    """Return a policy, or a part of one, as JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        parts = {
            f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init
        }
        return {
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "with": parts,
            "repr": repr(value),
        }
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    return {"foreign": repr(value)}


def decode(value: Any) -> Any:
    """Return the value that `encode` was given; raise LookupError for a class outside of rbmle."""
    match value:
        case {"class": str(path), "with": dict(parts)}:
            module, _, name = path.rpartition(".")
            if not path.startswith(OURS) or "<" in path:
                raise LookupError(path)
            kind: Any = getattr(importlib.import_module(MOVED.get(module, module)), name)
            if "__dataclass_fields__" not in vars(kind):
                raise ValueError(f"{path} is neither a policy nor a part of one")
            settings = EARLIER.get(name, {}) | {key: decode(part) for key, part in parts.items()}
            return kind(**settings)
        case {"tuple": list(items)}:
            return tuple(decode(item) for item in items)
        case {"foreign": text}:
            raise LookupError(text)
    return value


def _update_paths(value: Any) -> Any:
    """Return what `encode` made in an earlier version, with the present modules of classes."""
    match value:
        case {"class": str(path)}:
            module, _, name = path.rpartition(".")
            parts = {key: _update_paths(part) for key, part in value["with"].items()}
            return value | {"class": f"{MOVED.get(module, module)}.{name}", "with": parts}
        case {"tuple": list(items)}:
            return {"tuple": [_update_paths(item) for item in items]}
    return value


def _check(path: Any, manifest: Any) -> None:
    """Raise FileError for a file of another kind or of another version."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise FileError(f"{path} is not a saved bandit; use a file that Bandit.save wrote")
    if manifest["version"] > VERSION:
        raise FileError(
            f"{path} is of version {manifest['version']}, but this rbmle reads up to {VERSION}; "
            "install a later rbmle"
        )
    if manifest["version"] < WITHOUT_ROWS:
        raise FileError(
            f"{path} is of version {manifest['version']}, whose models were laid out differently, and this "
            f"rbmle reads version {VERSION}; learn again from the log, or use the rbmle that wrote it"
        )


def _part(name: str, path: Any, manifest: dict[str, Any], replacement: Any) -> Any:
    """Return the policy or the features of a file, or the replacement if it is equal to them."""
    saved = manifest[name]
    if replacement is None:
        try:
            return decode(saved)
        except LookupError as error:
            raise FileError(
                f"{path} has {error} in its {name}, which is not part of rbmle; make it again and give it, "
                f"as in Bandit.load(path, {name}=…)"
            ) from None
    if encode(replacement) != _update_paths(saved):
        shown = saved.get("repr", saved) if isinstance(saved, dict) else saved
        raise FileError(
            f"{path} was saved with the {name} {shown}, not {replacement!r}; give that one"
        )
    return replacement


def _rebuild(
    manifest: dict[str, Any],
    policy: Policy[Any],
    features: int | Encoder,
    arrays: dict[str, np.ndarray],
    rows: dict[str, np.ndarray],
) -> Bandit:
    """Return a bandit with the state of a file; for arrays named in `rows`, the file has only those rows."""
    bandit = Bandit(
        policy,
        arms=None if manifest["arms"] is None else manifest["arms"],
        features=Encoded(features),
        seed=manifest["seed"],
        encoding=manifest["encoding"],
        floor=manifest["floor"],
        draws=manifest["draws"],
        on_repeat=manifest.get("on_repeat", "raise"),  # earlier files lack it
    )
    learner = bandit.learner
    if learner.now.arms is not None:
        learner.now.arms = Arms(ids=tuple(manifest["arms"]), retired=frozenset(manifest["retired"]))
    if "events" in manifest:
        learner.now.events = Events.from_dict(manifest["events"])
    learner.decisions, learner.now.round = manifest["decisions"], manifest["round"]
    before, _, _ = parts_of(bandit)
    for name, moved in rows.items():
        before[name][moved] = arrays[name]
        arrays[name] = before[name]
    learner.now.state = replace_leaves(learner.now.state, arrays, manifest["numbers"])
    learner.now.scales = _scales(learner.now, arrays)
    return bandit
