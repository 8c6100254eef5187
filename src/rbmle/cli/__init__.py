"""The command line: one file for each group of commands."""

from rbmle.cli.extras import is_installed, main_without_commands

if is_installed("typer") and is_installed("rich"):
    from rbmle.cli import evaluating, listing, logs, paper, running, serving, warming
    from rbmle.cli.app import app, main

    __all__ = [
        "app",
        "evaluating",
        "listing",
        "logs",
        "main",
        "paper",
        "running",
        "serving",
        "warming",
    ]
else:
    main = main_without_commands
    __all__ = ["main"]
