"""Parts of pages that are made from the code: a page has `<!-- generated: NAME -->` where they belong."""

import dataclasses
import inspect
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = re.compile(r"<!-- generated: ([\w-]+)(?: ([\w:.-]+))? -->")

LINKS = {  # what the reference adds to the description of a setting
    "work_per_second": "See [limits](limits.md).",
    "settle": "See [late rewards](../how-to/late-rewards.md).",
}


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def cell(text: str) -> str:
    """Return text on one line of a table."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


# ------------------------------------------------------------------------------- command line


def commands(group: Any = None, prefix: str = "rbmle") -> Iterator[tuple[str, Any]]:
    """Yield the full name of each command, and what typer knows of it."""
    import typer

    from rbmle.cli import app

    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix} {name}")
        elif not command.hidden:
            yield f"{prefix} {name}", command


def cli() -> str:
    """Return a section for each command."""
    return "\n\n".join(_command(name, command) for name, command in commands())


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join([name, *((p.metavar or p.name).upper() for p in arguments)])
    parts = [f"## `{name}`", _help(command.help or ""), f"```text\n{usage} [OPTIONS]\n```"]
    rows = [
        (f"`{(p.metavar or p.name).upper()}`", cell(getattr(p, "help", "") or ""), "")
        for p in arguments
    ]
    rows += [(_names(p), cell(p.help or ""), _default(p)) for p in options if p.name != "help"]
    if rows:
        parts.append(table(("Option", "What it does", "Default"), rows))
    return "\n\n".join(parts)


def _help(text: str) -> str:
    """Return the help of a command as Markdown, its examples as a block of code."""
    blocks = []
    for block in inspect.cleandoc(text).split("\n\n"):
        if block.startswith("\b"):
            lines = inspect.cleandoc(block.partition("Examples:\n")[2])
            blocks.append(f"```text\n{lines}\n```")
        else:
            blocks.append(block)
    return "\n\n".join(blocks)


def _names(option: Any) -> str:
    names = [*option.opts, *option.secondary_opts]
    return ", ".join(f"`{name}`" for name in names)


def _default(option: Any) -> str:
    if isinstance(option.show_default, str):
        return option.show_default
    value = option.default
    if value is None or value == "" or callable(value) or (option.is_flag and not value):
        return "required" if option.required else ""
    return f"`{value}`"


# ------------------------------------------------------------------------------- service


def serve_settings() -> str:
    """Return every key of serve.toml with its default."""
    from rbmle.service.settings import FeatureSettings, ServeSettings

    return "\n\n".join(
        [
            _struct(ServeSettings),
            "### `[features]`",
            _struct(FeatureSettings),
        ]
    )


def _struct(kind: Any) -> str:
    import msgspec

    from rbmle.service.settings import descriptions

    about = descriptions(kind)
    rows = []
    for field in msgspec.structs.fields(kind):
        default = field.default if field.default is not msgspec.NODEFAULT else None
        rows.append((f"`{field.name}`", _value(default), _linked(field.name, about[field.name])))
    return table(("Key", "Default", "What it does"), rows)


def configuration_settings() -> str:
    """Return every setting of `[configuration]` and `/v1/configuration`."""
    from rbmle.service.settings import SETTINGS, ServiceConfiguration

    rows = []
    for name, default in ServiceConfiguration().to_json().items():
        setting = SETTINGS[name]
        text = _linked(name, setting.description)
        rows.append((f"`{name}`", _value(default), _allowed(setting), text))
    return table(("Key", "Default", "Allowed", "What it does"), rows)


def _linked(name: str, text: str) -> str:
    return f"{text} {LINKS[name]}" if name in LINKS else text


def _allowed(setting: Any) -> str:
    if "enum" in setting.kind.schema:
        return ", ".join(f"`{value}`" for value in setting.kind.schema["enum"])
    return cell(setting.allowed)


def _value(value: Any) -> str:
    if value is None or value == "":
        return "–"
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"


def http_api() -> str:
    """Return a section for each call of the OpenAPI document."""
    from rbmle.service.api.openapi import openapi

    document = openapi("0")
    schemas = document["components"]["schemas"]
    parts = []
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            parts.append(f"## `{method.upper()} {path}`")
            parts.append(call.get("summary", "") + ".")
            body = call.get("requestBody")
            if body:
                parts.append("**Body**")
                parts.append(_schema(_content(body), schemas))
            rows = []
            for status, answer in call["responses"].items():
                rows.append((status, cell(answer.get("description", ""))))
            parts.append(table(("Status", "Meaning"), rows))
            good = next((a for s, a in call["responses"].items() if s.startswith("2")), {})
            if good.get("content"):
                parts.append("**Answer**")
                parts.append(_schema(_content(good), schemas))
    parts.append("## Parts of bodies and answers")
    parts += [_part(name, schemas) for name in _parts(document["paths"], schemas)]
    return "\n\n".join(parts)


def _parts(paths: Any, schemas: dict[str, Any]) -> list[str]:
    """Return the names of schemas that are parts of others, in the order in which they are met."""
    names = r"schemas/(\w+)"
    met = list(dict.fromkeys(re.findall(names, json.dumps(paths))))
    parts: list[str] = []
    for name in met:  # it grows
        inner = list(dict.fromkeys(re.findall(names, json.dumps(schemas[name]))))
        parts += [each for each in inner if each not in parts]
        met += [each for each in inner if each not in met]
    return parts


def _part(name: str, schemas: dict[str, Any]) -> str:
    return f"### {name}\n\n{_schema(schemas[name], schemas)}"


def _content(part: dict[str, Any]) -> dict[str, Any]:
    return next(iter(part["content"].values()))["schema"]


def _schema(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    required = set(schema.get("required", ()))
    rows = []
    for name, kind in schema.get("properties", {}).items():
        about = kind.get("description", "")
        if "default" in kind:
            stop = "." if about and not about.endswith(".") else ""
            about += f"{stop} Default: `{json.dumps(kind['default'])}`."
        rows.append((f"`{name}`", _type(kind), "yes" if name in required else "", cell(about)))
    return table(("Field", "Type", "Required", "Description"), rows)


def _type(kind: dict[str, Any]) -> str:
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in kind:
        return ", ".join(f"`{value}`" for value in kind["enum"])
    if "anyOf" in kind:
        return " or ".join(_type(one) for one in kind["anyOf"])
    if kind.get("type") == "array":
        return f"array of {_type(kind['items'])}" if kind.get("items") else "array"
    return str(kind.get("type", "any"))


# ------------------------------------------------------------------------------- library


@cache
def policies() -> dict[str, type]:
    """Return the registered policies by name."""
    import rbmle

    return dict(rbmle.POLICIES)


def policy_settings(name: str) -> str:
    """Return the settings of a policy with their defaults."""
    kind = policies()[name]
    rows = []
    for field, symbol in zip(dataclasses.fields(kind), _symbols(kind), strict=True):
        default = getattr(kind(), field.name)
        rows.append((f"`{field.name}`", symbol, f"`{default!r}`"))
    if not rows:
        return "No settings."
    return table(("Setting", "Symbol", "Default"), rows)


def _symbols(kind: type) -> list[str]:
    """Return what the comment beside each field says."""
    try:
        source = inspect.getsource(kind)
    except OSError:
        source = ""
    found = []
    for field in dataclasses.fields(kind):
        match = re.search(rf"^    {field.name}: [^#\n]*#\s*(.+)$", source, re.MULTILINE)
        found.append(cell(match[1]) if match else "")
    return found


def errors() -> str:
    """Return the exceptions of the library."""
    import rbmle.core.errors as module
    from rbmle.core.errors import RBMLEError
    from rbmle.datasets.catalog import DatasetError
    from rbmle.evaluation.results import LogFileError

    kinds = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, RBMLEError)
    ]
    rows = []
    for kind in [*kinds, DatasetError, LogFileError]:
        also = ", ".join(f"`{base.__name__}`" for base in kind.__bases__ if base is not Exception)
        rows.append((f"`{kind.__name__}`", also, cell((kind.__doc__ or "").split("\n")[0])))
    return table(("Exception", "Is also a", "Raised for"), rows)


API = {  # public names of `rbmle` by page; a test holds this against `rbmle.__all__`
    "bandit": ("Bandit", "Decision", "Event", "Hashing", "RBMLEError"),
    "models": (
        *("Regression", "Network", "Replay", "FullBatch", "Memory", "Ridge", "GLM", "LinearPart"),
        *(
            "ArmAscent",
            "Diagonal",
            "Exact",
            "Power",
            "Logarithm",
            "Gaussian",
            "Bernoulli",
            "Mixture",
        ),
    ),
}
WITH_MEMBERS = ("Bandit", "Decision", "Event")


def api(page: str) -> str:
    """Return the directives of a page of the API: names of `rbmle`, or all names of a module."""
    import importlib

    if page == "policies":
        names = [kind.__name__ for kind in policies().values()]
        return _directives("rbmle", names, members=("as_printed",))
    if page in API:
        return _directives("rbmle", API[page])
    module = importlib.import_module(page)
    return _directives(page, [n for n in sorted(module.__all__) if not inspect.ismodule(n)])


def _directives(module: str, names: Any, members: tuple[str, ...] = ()) -> str:
    import importlib

    home, lines = importlib.import_module(module), ["```{eval-rst}"]
    for name in names:
        value = getattr(home, name)
        if inspect.ismodule(value):
            continue
        if inspect.isclass(value):
            lines.append(f".. autoclass:: {module}.{name}")
            here = [m for m in members if hasattr(value, m)]
            if name in WITH_MEMBERS:
                lines.append("   :members:")
            elif here:
                lines.append(f"   :members: {', '.join(here)}")
        elif callable(value):
            lines.append(f".. autofunction:: {module}.{name}")
        else:
            lines += [f".. py:data:: {module}.{name}", "", f"   A ``{type(value).__name__}``."]
        lines.append("")
    return "\n".join([*lines, "```"])


PARTS: dict[str, Callable[..., str]] = {
    "cli": cli,
    "serve-settings": serve_settings,
    "configuration-settings": configuration_settings,
    "http-api": http_api,
    "policy": policy_settings,
    "errors": errors,
    "api": api,
}


def expand(text: str) -> str:
    """Return the Markdown of a page with its generated parts."""
    return MARK.sub(lambda mark: PARTS[mark[1]](*([mark[2]] if mark[2] else [])), text)


def read(app: "Sphinx", name: str, source: list[str]) -> None:
    """Expand a page as Sphinx reads it."""
    source[0] = expand(source[0])


def setup(app: "Sphinx") -> dict[str, Any]:
    """Connect the expansion."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
