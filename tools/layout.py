"""Measure the layout of a Python package: `python tools/layout.py [FOLDER]`.

FOLDER is a checkout with `src/rbmle`, or the folder of a package; without it, this checkout is measured. To
measure an older commit, check it out beside this one: `git worktree add ../old COMMIT`.
"""

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SHORTEST_FILE = 6  # lines; shorter files are left out everywhere
SMALL_FILE = 50  # lines; a smaller file needs a reason
PLACEHOLDERS = frozenset({"found", "given", "one", "own", "each", "said", "among", "anew"})
IRREGULAR_PARTICIPLES = """
begun bound built chosen drawn driven found frozen given gone grown held hidden kept known laid
led left lost made meant met paid said seen sent shown spent taken taught thrown told
understood won worn written
"""
VERBS = " embed exceed feed need proceed seed shed speed succeed "

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A source file, parsed."""

    name: str  # dotted
    folder: str  # the first level below the package; "." for files of the package itself
    lines: int
    is_package: bool
    tree: ast.Module

    @property
    def functions(self) -> Iterator[Function]:
        """Yield all functions and methods, nested ones included."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node


def read_modules(package: Path) -> list[Module]:
    """Return the modules of a package that have more than five lines."""
    modules = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = len(text.splitlines())
        if lines < SHORTEST_FILE:
            continue
        parts = path.relative_to(package.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        modules.append(
            Module(
                name=".".join(parts[:-1] if is_package else parts),
                folder=parts[1] if len(parts) > 2 else ".",
                lines=lines,
                is_package=is_package,
                tree=ast.parse(text),
            )
        )
    return modules


def count_import_lines(module: Module) -> int:
    """Return the lines that import statements take, wherever they are."""
    nodes = [n for n in ast.walk(module.tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def find_importers(modules: Iterable[Module]) -> dict[str, set[str]]:
    """Return which modules import each module; a package's own `__init__` does not count as an importer."""
    names = {module.name for module in modules}
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in ast.walk(module.tree):
            for target in _find_targets(node, module, names):
                is_reexport = module.is_package and target.startswith(f"{module.name}.")
                if target != module.name and not is_reexport:
                    importers[target].add(module.name)
    return importers


def _find_targets(node: ast.AST, module: Module, names: set[str]) -> Iterator[str]:
    match node:
        case ast.Import(names=aliases):
            yield from (alias.name for alias in aliases if alias.name in names)
        case ast.ImportFrom(module=source, names=aliases, level=level):
            base = module.name.split(".")
            parent = base[: len(base) - level + module.is_package] if level else []
            prefix = ".".join([*parent, *([source] if source else [])])
            inner = {f"{prefix}.{alias.name}" for alias in aliases} & names
            yield from inner
            if prefix in names and len(inner) < len(aliases):
                yield prefix


def strip_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Return a body without its docstring."""
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
    return body


def is_forwarder(function: Function) -> bool:
    """Say whether a function only calls another one with its own arguments, as they are."""
    body = strip_docstring(function.body)
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    value = body[0].value
    if isinstance(value, ast.Await):
        value = value.value
    if not isinstance(value, ast.Call):
        return False
    signature = function.args
    parameters = [a.arg for a in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs)]
    parameters += [a.arg for a in (signature.vararg, signature.kwarg) if a is not None]
    own = [name for name in parameters if name not in ("self", "cls")]
    values = [a.value if isinstance(a, ast.Starred) else a for a in value.args]
    values += [keyword.value for keyword in value.keywords]
    passed = [argument.id for argument in values if isinstance(argument, ast.Name)]
    is_decorated = any(not isinstance(d, ast.Name) for d in function.decorator_list)
    return bool(own) and len(passed) == len(values) and passed == own and not is_decorated


def has_needless_docstring(function: Function) -> bool:
    """Say whether a function has a docstring and a single statement."""
    rest = strip_docstring(function.body)
    is_promise = len(rest) == 1 and isinstance(rest[0], ast.Expr | ast.Raise | ast.Pass)
    return len(rest) == 1 and len(function.body) == 2 and not is_promise


def is_participle(function: Function) -> bool:
    """Say whether a function, and no property, is named by a bare participle."""
    decorators = {ast.unparse(d).split("(")[0].rpartition(".")[2] for d in function.decorator_list}
    if decorators & {"property", "cached_property", "setter", "fixture"}:
        return False
    name = function.name.strip("_")
    if f" {name} " in VERBS:
        return False
    return bool(re.fullmatch(r"[a-z]+ed", name)) or name in IRREGULAR_PARTICIPLES.split()


def find_placeholders(module: Module) -> Iterator[str]:
    """Yield each binding of a variable whose name could mean anything."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if name in PLACEHOLDERS:
                yield name
            case ast.arg(arg=name) if name in PLACEHOLDERS:
                yield name


def measure(modules: Sequence[Module], importers: dict[str, set[str]]) -> dict[str, str]:
    """Return the measurements of some modules, by name."""
    lines = [module.lines for module in modules]
    functions = [function for module in modules for function in module.functions]
    classes = [
        (node.name, module.name)
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    ]
    homes = Counter(name for name, _ in set(classes))
    placeholders = [list(find_placeholders(module)) for module in modules]
    imports = sum(map(count_import_lines, modules))
    small = sum(n < SMALL_FILE for n in lines)
    single = [m for m in modules if not m.is_package and len(importers.get(m.name, ())) == 1]
    return {
        "files": f"{len(lines):,}",
        "lines": f"{sum(lines):,}",
        "median lines": f"{median(lines):g}",
        "imports": f"{imports / sum(lines):.1%}",
        f"under {SMALL_FILE} lines": f"{small / len(lines):.0%}",
        "one importer": str(len(single)),
        "forwarders": str(sum(map(is_forwarder, functions))),
        "duplicate classes": str(sum(count > 1 for count in homes.values())),
        "placeholders": f"{sum(map(len, placeholders))} in {sum(map(bool, placeholders))} files",
        "participles": str(sum(map(is_participle, functions))),
        "docstrings on one statement": str(sum(map(has_needless_docstring, functions))),
    }


def format_table(rows: dict[str, dict[str, str]]) -> str:
    """Return the measurements in Markdown, a row for each folder."""
    head = ["folder", *next(iter(rows.values()))]
    cells = [[name, *row.values()] for name, row in rows.items()]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]

    def line(texts: Sequence[str]) -> str:
        first, *rest = zip(texts, widths, strict=True)
        return f"| {' | '.join([first[0].ljust(first[1]), *(t.rjust(w) for t, w in rest)])} |"

    rule = "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])])
    return "\n".join([line(head), f"|{rule}|", *map(line, cells)])


def find_package(folder: Path) -> Path:
    """Return the folder of the package in a checkout."""
    for candidate in (folder / "src" / "rbmle", folder):
        if (candidate / "__init__.py").is_file():
            return candidate
    raise SystemExit(
        f"there is no package in {folder}; give a checkout, or the folder of a package"
    )


def main() -> None:
    """Print the table of a package as a whole and of each of its folders."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument(
        "--names", action="store_true", help="list what was counted, file by file, to rename it"
    )
    arguments = parser.parse_args()
    package = find_package(arguments.folder)
    modules = read_modules(package)
    importers = find_importers(modules)
    rows = {package.name: measure(modules, importers)}
    for folder in sorted({module.folder for module in modules}):
        rows[folder] = measure([m for m in modules if m.folder == folder], importers)
    print(format_table(rows))
    if arguments.names:
        print("\n".join(list_names(modules, importers)))


def list_names(modules: Sequence[Module], importers: dict[str, set[str]]) -> Iterator[str]:
    """Yield what is counted, one line each."""
    homes = defaultdict(set)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(module.name)
    for name, places in sorted(homes.items()):
        if len(places) > 1:
            yield f"duplicate class: {name} in {', '.join(sorted(places))}"
    for module in modules:
        for function in module.functions:
            where = f"{module.name}.{function.name} (line {function.lineno})"
            if is_forwarder(function):
                yield f"forwarder: {where}"
            if is_participle(function):
                yield f"participle: {where}"
        for name, count in Counter(find_placeholders(module)).items():
            yield f"placeholder: {module.name}: {name} × {count}"
        if not module.is_package and len(importers.get(module.name, ())) == 1:
            yield f"one importer: {module.name} by {next(iter(importers[module.name]))}"


if __name__ == "__main__":
    main()
