"""What there is: policies and datasets."""

from dataclasses import fields

from rich.table import Column, Table

from rbmle.cli.app import app, open_console


@app.command()
def policies() -> None:
    """List the policies, with their index and their settings, and where they come from."""
    from rbmle.core.errors import SettingError
    from rbmle.policies import POLICIES
    from rbmle.policies.outside import imported, installed
    from rbmle.policies.rivals import RIVALS

    table = Table("policy", "class", "what its index is", "settings", "from", show_lines=True)
    for name, kind in POLICIES.items():
        table.add_row(name, *_described(kind), "rbmle")
    for name, path in RIVALS.items():
        words = _described(imported(path))
        table.add_row(name, *words, "rbmle, with an extra")
    others = installed()
    for each in others:
        same = [other.package for other in others if other.name == each.name and other != each]
        claimed = "rbmle" if each.name in POLICIES else ", ".join(same)
        clash = f"the name is {claimed}'s too: write {each.path}" if claimed else ""
        try:
            words = _described(imported(each.path))
        except SettingError as error:
            words = (each.path, str(error), "")
        origin = f"{each.package}; {clash}" if clash else each.package
        table.add_row(each.name, *words, origin)
    open_console().print(table)


def _described(kind: type) -> tuple[str, str, str]:
    """Return a policy's class, its formula, and its settings."""
    formula = ((kind.__doc__ or "").strip().splitlines() or [""])[0]
    settings = ", ".join(f.name for f in fields(kind))
    return kind.__name__, formula, settings


@app.command()
def datasets() -> None:
    """List the datasets, with their shape and where they come from, and the synthetic problems."""
    from rbmle.datasets import COLLECTIONS, DATASETS
    from rbmle.environments import ALTERATIONS, COINS, EVERYDAY, FAMILIES, FUNCTIONS, SYNTHETIC

    table = Table("dataset", "title", "rows", "features", "classes", "licence", "with the package")
    for name, source in DATASETS.items():
        shape = (f"{source.rows:,}", f"{source.features:,}", str(source.classes))
        shipped = "yes" if source.shipped else "downloaded"
        table.add_row(name, source.title, *shape, source.licence, shipped)
    open_console().print(table)
    others = ", ".join(f"{each.prefix}:… (as {each.example})" for each in COLLECTIONS.values())
    open_console().print(f"Collections: {others}.", highlight=False)
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
