"""What there is: policies and datasets."""

from dataclasses import fields

from rich.console import Console
from rich.table import Table

from rbmle.cli.app import app


@app.command()
def policies() -> None:
    """List the policies, with their index and their settings."""
    from rbmle.policies import POLICIES

    table = Table("policy", "class", "what its index is", "settings", show_lines=True)
    for name, kind in POLICIES.items():
        formula = (kind.__doc__ or "").strip().splitlines()[0]
        settings = ", ".join(f.name for f in fields(kind))  # type: ignore[arg-type]  # policies are dataclasses
        table.add_row(name, kind.__name__, formula, settings)
    Console().print(table)


@app.command()
def datasets() -> None:
    """List the datasets, with their shape and where they come from, and the synthetic problems."""
    from rbmle.datasets import DATASETS
    from rbmle.environments import FUNCTIONS, SYNTHETIC

    table = Table("dataset", "title", "rows", "features", "classes", "licence", "with the package")
    for name, source in DATASETS.items():
        shape = (f"{source.rows:,}", f"{source.features:,}", str(source.classes))
        shipped = "yes" if source.shipped else "downloaded"
        table.add_row(name, source.title, *shape, source.licence, shipped)
    Console().print(table)
    drawn = Table("synthetic", "reward function", "noise", "features", "arms")
    for name, world in SYNTHETIC.items():
        formula = (FUNCTIONS[world.function].__doc__ or "").splitlines()[0]
        noise = str(world.settings["noise"])
        drawn.add_row(name, formula, noise, str(world.features), str(world.arms))
    Console().print(drawn)
