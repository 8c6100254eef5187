"""What there is: `rbmle policies`, `datasets` and `studies`; and `rbmle warm`, which compiles kernels."""

import inspect
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Column, Table

from rbmle.cli.app import INSPECT, command, open_console, print_line
from rbmle.cli.extras import EXTRAS, is_installed
from rbmle.cli.options import complete_policy, split_names
from rbmle.core.errors import SettingError

ARMS, FEATURES, ROUNDS = 5, 20, 200  # of the game in which the cost of a policy is measured
LONGEST_SECONDS = 5.0  # of that game


@command(INSPECT)
def policies(
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=complete_policy,
            help="A policy: show its formula, its settings with their defaults, and its cost.",
            show_default="list all policies",
        ),
    ] = None,
) -> None:
    """List the policies, or show one with its formula, settings, defaults and cost.

    rbmle policies
    rbmle policies neural-rbmle-ga
    """
    if name is None:
        _list_policies()
    else:
        _show_policy(name)


def _list_policies() -> None:
    from rbmle.policies import POLICIES
    from rbmle.policies.registry import RIVALS, import_policy, list_installed

    groups = {"Policies": [(name, *_describe(kind)) for name, kind in POLICIES.items()]}
    groups["Policies of other libraries; each needs an extra"] = [
        (name, *_describe(import_policy(path))) for name, path in RIVALS.items()
    ]
    others = list_installed()
    for policy in others:
        same = [other.package for other in others if other.name == policy.name and other != policy]
        owners = "rbmle" if policy.name in POLICIES else ", ".join(same)
        try:
            kind, formula = _describe(import_policy(policy.path))
        except SettingError as error:
            kind, formula = policy.path, str(error)
        if owners:
            formula += f" [{owners} uses this name too: write {policy.path}]"
        groups.setdefault(f"Policies of {policy.package}", []).append((policy.name, kind, formula))
    for title, rows in groups.items():
        table = Table(
            Column("policy", no_wrap=True), Column("class", no_wrap=True), "index", title=title
        )
        for row in rows:
            table.add_row(*row)
        open_console().print(table)
    print_line("rbmle policies NAME shows its settings, their defaults, and what a round costs.")


def _describe(kind: type) -> tuple[str, str]:
    """Return a policy's class and the formula of its index."""
    formula = ((kind.__doc__ or "").strip().splitlines() or [""])[0]
    return kind.__name__, formula.removeprefix("Index").lstrip(": ")


def _show_policy(name: str) -> None:
    from rbmle.policies.registry import parse_policy

    specification = parse_policy(name)
    policy = specification.policy()
    kind = type(policy)
    print_line(f"{name}: {kind.__name__}\n\n{inspect.cleandoc(kind.__doc__ or '')}\n")
    table = Table("setting", "default" if not specification.settings else "value", "meaning")
    settings = list(_settings(policy))
    for row in settings:
        table.add_row(*row)
    if settings:
        open_console().print(table)
        numbers = [row for row in settings if row[1][:1].isdigit()]
        key, value, _ = min(numbers or settings, key=lambda row: row[0].count("."))
        print_line(f"Set them behind the name, as in --policy {specification.name}:{key}={value}")
    else:
        print_line("It has no settings.")
    print_line(_cost(policy))


def _settings(part: Any, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield name, value and meaning of each setting, those of its parts below a part."""
    comments = _comments(type(part))
    for field in fields(part):
        value = getattr(part, field.name)
        is_part = is_dataclass(value)
        shown = type(value).__name__ if is_part else repr(value)
        yield f"{prefix}{field.name}", shown, comments.get(field.name, "")
        if is_part:
            yield from _settings(value, f"{prefix}{field.name}.")


def _comments(kind: type) -> dict[str, str]:
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        return {}
    return dict(re.findall(r"^    (\w+): [^#\n]*#\s*(.+)$", source, re.MULTILINE))


def _cost(policy: Any) -> str:
    """Return how long a round takes here, deciding and learning together, kernels compiled."""
    from rbmle.core.bandit import Bandit

    rng = np.random.default_rng(0)
    try:
        bandit = Bandit(policy, arms=ARMS, features=FEATURES)
        times: list[float] = []
        start = time.perf_counter()
        while len(times) < 2 * ROUNDS and time.perf_counter() < start + LONGEST_SECONDS:
            x, reward = rng.normal(size=FEATURES) / FEATURES**0.5, float(rng.random() < 0.5)
            before = time.process_time()
            bandit.learn(bandit.decide(x), reward)
            times.append(time.process_time() - before)
    except SettingError as error:
        return f"Its cost is not known: {error}"
    late = times[len(times) // 2 :]
    return (
        f"A round costs {1000 * float(np.median(late)):.3g} ms of CPU time on this machine: {ARMS} arms, "
        f"{FEATURES} features, rounds {len(times) - len(late) + 1:,} to {len(times):,}."
    )


@command(INSPECT)
def datasets() -> None:
    """List the datasets with their shape and licence, and the synthetic problems."""
    from rbmle.datasets import COLLECTIONS, DATASETS
    from rbmle.environments import ALTERATIONS, COINS, EVERYDAY, FAMILIES, FUNCTIONS, SYNTHETIC

    table = Table("dataset", "title", "rows", "features", "classes", "licence", "with the package")
    for name, source in DATASETS.items():
        shape = (f"{source.rows:,}", f"{source.features:,}", str(source.classes))
        shipped = "yes" if source.shipped else "downloaded"
        table.add_row(name, source.title, *shape, source.licence, shipped)
    open_console().print(table)
    others = ", ".join(f"{c.prefix}:… (as {c.example})" for c in COLLECTIONS.values())
    print_line(f"Collections: {others}.")
    name_column = Column("synthetic", no_wrap=True)
    drawn = Table(name_column, "reward function", "noise", "features", "arms")
    for name, world in SYNTHETIC.items():
        formula = (FUNCTIONS[world.function].__doc__ or "").splitlines()[0]
        noise = str(world.settings["noise"])
        drawn.add_row(name, formula, noise, str(world.features), str(world.arms))
    for name, coins in COINS.items():
        chances = f"r = 1 with probability {' or '.join(map(str, coins.chances))}"
        drawn.add_row(name, chances, "bernoulli", str(coins.features), str(coins.arms))
    for name, everyday in EVERYDAY.items():
        described = (FAMILIES[everyday.family].draw.__doc__ or "").splitlines()[0]
        late = f"{everyday.delay} rounds late"
        drawn.add_row(name, described, late, str(everyday.features), str(everyday.arms))
    open_console().print(drawn)
    open_console().print(
        f"Each also with a suffix: {', '.join('+' + name for name in ALTERATIONS)}."
    )


@command(INSPECT)
def studies() -> None:
    """List the studies that rbmle reproduce runs, with a line each."""
    from rbmle.studies import MEASURED, STUDIES

    table = Table("study", "what it shows", "of the paper")
    for name, study in STUDIES.items():
        table.add_row(name, study.title, "yes" if study.is_of_the_paper else "")
    for name, measured in MEASURED.items():
        table.add_row(name, measured.title, "yes" if name.startswith("table") else "")
    table.add_row("all", "Every table and figure of the paper", "yes")
    open_console().print(table)
    print_line("Run one with rbmle reproduce NAME; --quick takes minutes instead of hours.")


@command(INSPECT)
def warm(
    policy: Annotated[
        str,
        typer.Option(autocompletion=complete_policy, help="Policies, separated by commas, or all."),
    ] = "all",
) -> None:
    """Compile all kernels now and keep them, so that nothing is compiled later: for images and CI."""
    from rbmle.engine.compiled import cache_folder, compiling, is_writable, seconds_compiled

    console = open_console()
    folder = cache_folder()
    if folder is None or not is_writable(folder):
        raise SettingError(
            f"kernels cannot be kept in {folder or 'a home folder, for there is none'}; "
            "set RBMLE_CACHE to a writable folder"
        )
    compiling.is_quiet = True  # the lines below say as much
    begun = time.monotonic()
    for name, plays in _games(policy):
        before = seconds_compiled()
        for play in plays:
            play()
        print_line(f"{name}: {seconds_compiled() - before:.1f} s of compilation", console)
    files = list(folder.glob("*.kernel"))
    size = sum(file.stat().st_size for file in files) / 1e6
    print_line(
        f"{len(files)} kernels, {size:.1f} MB, are in {folder}, after {time.monotonic() - begun:.0f} s.",
        console,
    )


def _games(policy: str) -> Iterator[tuple[str, list[Callable[[], None]]]]:
    """Yield names, and functions that use all kernels of that name once."""
    from rbmle.classical.simulation import warm_up as warm_up_classical
    from rbmle.control.simulation import warm_up as warm_up_control
    from rbmle.policies import POLICIES
    from rbmle.policies.registry import policy_named
    from rbmle.policies.warming import encode, play, variants

    names = list(POLICIES) if policy == "all" else split_names(policy)
    for name in names:
        yield name, [partial(play, variant) for variant in variants(policy_named(name))]
    if policy != "all":
        return
    yield "features", [encode]
    yield "classical", [warm_up_classical]
    yield "control", [warm_up_control]
    if all(is_installed(package) for package in EXTRAS["experiments"]):
        from rbmle.evaluation.evaluation import warm_up as warm_up_evaluation

        yield "rbmle evaluate", [warm_up_evaluation]
    if all(is_installed(package) for package in EXTRAS["serve"]):
        from rbmle.service.model.settings import ModelSettings

        yield "rbmle serve", [ModelSettings().warm_up]
