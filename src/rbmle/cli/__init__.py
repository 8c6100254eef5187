"""The command line: one file for each group of commands."""

from rbmle.cli import listing, paper, running
from rbmle.cli.app import app, main

__all__ = ["app", "listing", "main", "paper", "running"]
