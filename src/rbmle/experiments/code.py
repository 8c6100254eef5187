"""Record the code that a trial depends on: rbmle's, that of other modules, and versions of libraries."""

import ast
import hashlib
import inspect
import platform
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import rbmle
from rbmle.core.errors import SettingError

LIBRARIES = ("rbmle", "numpy", "numba", "llvmlite")
RIVALS = {  # as imported, as installed
    "sklearn": "scikit-learn",
    "vowpalwabbit": "vowpalwabbit",
    "mabwiser": "mabwiser",
}


def versions() -> dict[str, str]:
    """Return the versions of libraries that affect the numbers of a run; rivals' only if they are in use."""
    used = [name for package, name in RIVALS.items() if package in sys.modules]
    return {"python": platform.python_version(), "machine": platform.machine()} | {
        name: version(name) for name in (*LIBRARIES, *used)
    }


# The folders of policies and problems; the others show, store or serve.
FOLDERS = (
    "core",
    "datasets",
    "engine",
    "environments",
    "interop",
    "models",
    "policies",
)
FILES = ("experiments/trial.py", "likelihoods.py")
DIGEST_BYTES = 8
SHOWN = 8  # characters of a digest in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The code of a run: equal codes make equal runs of equal trials."""

    version: str  # of rbmle
    digest: str  # of rbmle's files; empty if it was not recorded
    outside: tuple[tuple[str, str], ...] = ()  # module and digest

    @property
    def title(self) -> str:
        """The code in a few characters; modules outside rbmle come last."""
        parts = [self.digest[:SHOWN] or "unknown"]
        return "+".join([*parts, *(digest[:SHOWN] for _, digest in self.outside)])

    @property
    def settings(self) -> dict[str, Any]:
        return {"version": self.version, "digest": self.digest, "outside": dict(self.outside)}

    @staticmethod
    def of(settings: Mapping[str, Any] | None, version: str = "unknown") -> "Code":
        """Return the code that a run recorded; `version` is for a run that recorded none."""
        if not settings:
            return Code(version=version, digest="")
        outside = tuple(sorted(dict(settings.get("outside", {})).items()))
        return Code(
            version=str(settings["version"]), digest=str(settings["digest"]), outside=outside
        )


def own_code(*more: str) -> Code:
    """Return the code of rbmle on disk, which is read once in a process; `more` are further folders."""
    digest = package_digest(Path(rbmle.__file__).parent, FOLDERS + more)
    return Code(version=rbmle.__version__, digest=digest)


@cache
def package_digest(root: Path, folders: tuple[str, ...] = FOLDERS) -> str:
    """Return the digest of the files in some folders of a package, and of FILES."""
    paths = [path for folder in folders for path in (root / folder).rglob("*.py")]
    paths += [root / name for name in FILES]
    return _digest({path.relative_to(root).as_posix(): path.read_bytes() for path in paths})


def outside_code(*values: Any) -> tuple[tuple[str, str], ...]:
    """Return the modules outside rbmle that define values and their parts, with their digests."""
    kinds = [kind for part in _parts(values) for kind in _kinds(part)]
    names = {kind.__module__: kind for kind in kinds if not _is_known(kind.__module__)}
    return tuple((name, _module_digest(name, names[name])) for name in sorted(names))


def _parts(value: Any) -> Iterator[Any]:
    yield value
    if is_dataclass(value):
        for part in fields(value):
            yield from _parts(getattr(value, part.name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _parts(item)


def _kinds(part: Any) -> tuple[Any, ...]:
    return (part,) if inspect.isroutine(part) or inspect.isclass(part) else type(part).__mro__


def _is_known(module: str | None) -> bool:
    """Return whether a module is Python's own, or of a package whose version is recorded."""
    root = (module or "builtins").partition(".")[0]
    return root in LIBRARIES or root in sys.stdlib_module_names


@cache  # by the class, because a module that is loaded again has a new one
def _module_digest(name: str, kind: Any) -> str:
    """Return the digest of a module and of its neighbours that it imports."""
    sources: dict[str, bytes] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in sources or current not in sys.modules:
            continue
        module = sys.modules[current]
        sources[current] = _source(module, kind if current == name else module)
        imported = _find_imports(sources[current], module.__package__ or "")
        waiting += [other for other in imported if _is_beside(name, other)]
    return _digest(sources)


def _source(module: ModuleType, kind: Any) -> bytes:
    """Return the bytes of a module's file, or of a class that was not written in a file."""
    path = getattr(module, "__file__", None)
    if path and Path(path).is_file():
        return Path(path).read_bytes()
    try:
        return inspect.getsource(kind).encode()
    except (OSError, TypeError):
        raise SettingError(
            f"the source of {kind.__name__} cannot be read, so its runs could be mistaken for those of other "
            "code; define it in a file"
        ) from None


def _find_imports(source: bytes, package: str) -> Iterator[str]:
    """Yield the names of the modules that a source imports, and of the names it imports from them."""
    try:
        nodes = list(ast.walk(ast.parse(textwrap.dedent(source.decode(errors="replace")))))
    except (SyntaxError, ValueError):  # compiled, or not Python
        return
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                parent = ".".join(package.split(".")[: len(package.split(".")) - level + 1])
                whole = ".".join(filter(None, [parent if level else "", module]))
                yield whole
                yield from (f"{whole}.{name.name}" for name in names)


def _is_beside(name: str, other: str) -> bool:
    """Return whether two modules are in the same package, or in the same folder."""
    if name.partition(".")[0] == other.partition(".")[0]:
        return True
    files = [getattr(sys.modules.get(module), "__file__", None) for module in (name, other)]
    return None not in files and Path(str(files[0])).parent == Path(str(files[1])).parent


def _digest(sources: Mapping[str, bytes]) -> str:
    total = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for name in sorted(sources):
        total.update(f"{name} {len(sources[name])}\n".encode())
        total.update(sources[name])
    return total.hexdigest()
