"""The command line: `rbmle`."""

from importlib import import_module

from rbmle.cli.extras import NEEDED, is_installed, main_without_commands

if all(map(is_installed, NEEDED)):
    from rbmle.cli.app import app, main

    for module in ("running", "paper", "evaluating", "serving", "logs", "listing"):
        import_module(f"rbmle.cli.{module}")  # in this order, `rbmle --help` shows their commands

    __all__ = ["app", "main"]
else:
    main = main_without_commands
    __all__ = ["main"]
