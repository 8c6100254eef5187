"""Names that tell apart what is shown: files of one name, and settings or codes of one policy."""

import ast
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from rbmle.datasets.formats import title

Key = TypeVar("Key", bound=Hashable)
CODE = "code"


def file_names(files: Iterable[str], parts: int = 1) -> dict[str, str]:
    """Return for each path its shortest end that no other has, of at least so many parts.

    >>> file_names(["/x/a/data.csv", "/x/b/data.csv", "/x/b/more.csv"])
    {'/x/a/data.csv': 'a/data', '/x/b/data.csv': 'b/data', '/x/b/more.csv': 'more'}
    """
    paths = {file: Path(file) for file in dict.fromkeys(files)}
    bare = {file: (*path.parent.parts, title(path)) for file, path in paths.items()}
    whole = {file: path.parts for file, path in paths.items()}
    return {
        file: _end(file, bare, parts) or _end(file, whole, parts) or file.lstrip("/")
        for file in paths
    }


def _end(file: str, paths: Mapping[str, Sequence[str]], least: int) -> str:
    """Return the shortest end of a path that no other has, or nothing."""
    own = paths[file]
    for count in range(least, len(own) + 1):
        if all(other[-count:] != own[-count:] for name, other in paths.items() if name != file):
            return "/".join(own[-count:]).lstrip("/")
    return ""


def labels(policies: Mapping[Key, tuple[str, str]]) -> dict[Key, str]:
    """Return for each policy, given by its `repr` and its code, how it differs from the others.

    >>> labels({1: ("P(a=1, b=P(c=2))", ""), 2: ("P(a=1, b=P(c=3))", "")})
    {1: 'b.c=2', 2: 'b.c=3'}
    """
    flat = {key: _flat(settings) | {CODE: code} for key, (settings, code) in policies.items()}
    paths = list(dict.fromkeys(path for values in flat.values() for path in values))
    varied = [path for path in paths if len({values.get(path) for values in flat.values()}) > 1]
    whole = [path for path in varied if not any(path.startswith(f"{up}.") for up in varied)]
    for chosen in (whole, varied):
        named = {
            key: ", ".join(_shown(path, values[path]) for path in chosen if path in values)
            for key, values in flat.items()
        }
        if len(set(named.values())) == len(named):
            return named
    return {key: f"{settings}, code {code}" for key, (settings, code) in policies.items()}


def _shown(path: str, value: str) -> str:
    """Return a setting, or the code."""
    return f"code {value}" if path == CODE else f"{path}={value}"


def _flat(settings: str) -> dict[str, str]:
    """Return the settings in the `repr` of a policy by their path; the whole text if it has none."""
    try:
        node = ast.parse(settings, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {"settings": settings}
    return dict(_leaves(node, ""))


def _leaves(node: ast.expr, path: str) -> Iterable[tuple[str, str]]:
    """Yield paths and values; a part is known by its class, and by its own settings."""
    match node:
        case ast.Call(func=kind, args=[], keywords=[_, *_] as words):
            yield path or "class", ast.unparse(kind)
            for word in words:
                yield from _leaves(word.value, f"{path}.{word.arg}" if path else str(word.arg))
        case _:
            yield path or "class", ast.unparse(node).removesuffix("()")
