"""Compiling kernels ahead of time, for images and CI: `rbmle warm`."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

import typer

from rbmle.cli.app import app, open_console
from rbmle.cli.extras import EXTRAS, is_installed
from rbmle.cli.options import listed
from rbmle.core.errors import SettingError


@app.command()
def warm(
    policy: Annotated[str, typer.Option(help="Names of policies, or 'all'.")] = "all",
) -> None:
    """Compile the kernels of policies and their variants, and of all else that has some, and keep them."""
    from rbmle.engine.kernel_cache import cache_folder
    from rbmle.engine.notice import compiling, is_writable, seconds_compiled

    console = open_console()
    folder = cache_folder()
    if folder is None or not is_writable(folder):
        raise SettingError(
            f"kernels cannot be kept in {folder or 'a home folder, for there is none'}; "
            "set RBMLE_CACHE to a writable folder"
        )
    compiling.is_quiet = True  # the lines below say as much
    begun = time.monotonic()
    for name, plays in _plays(policy):
        before = seconds_compiled()
        for play in plays:
            play()
        console.print(
            f"{name}: {seconds_compiled() - before:.1f} s of compilation", highlight=False
        )
    files = list(folder.glob("*.kernel"))
    size = sum(file.stat().st_size for file in files) / 1e6
    console.print(
        f"{len(files)} kernels, {size:.1f} MB, are in {folder}, after {time.monotonic() - begun:.0f} s.",
        highlight=False,
        soft_wrap=True,
    )


def _plays(policy: str) -> Iterator[tuple[str, list[Callable[[], None]]]]:
    """Yield names, and what is to be played to have all kernels of that name compiled."""
    from rbmle.classical.warming import warm_up as warm_up_classical
    from rbmle.control.warming import warm_up as warm_up_control
    from rbmle.policies import POLICIES
    from rbmle.policies.specification import policy_named
    from rbmle.policies.warming import encode, play, variants

    names = list(POLICIES) if policy == "all" else listed(policy)
    for name in names:
        yield name, [partial(play, variant) for variant in variants(policy_named(name))]
    if policy != "all":
        return
    yield "features", [encode]
    yield "classical", [warm_up_classical]
    yield "control", [warm_up_control]
    if all(is_installed(package) for package in EXTRAS["experiments"]):
        from rbmle.evaluation.warming import warm_up as warm_up_evaluation

        yield "rbmle evaluate", [warm_up_evaluation]
    if all(is_installed(package) for package in EXTRAS["serve"]):
        from rbmle.service.learning.model import ModelSettings

        yield "rbmle serve", [ModelSettings().warm_up]
