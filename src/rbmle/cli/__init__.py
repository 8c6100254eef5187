"""The command line: one file for each group of commands."""

from rbmle.cli import listing, logs, paper, running, serving
from rbmle.cli.app import app, main

__all__ = ["app", "listing", "logs", "main", "paper", "running", "serving"]
