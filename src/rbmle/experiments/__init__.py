"""Experiments: trials, how they are run and stored, and tables, figures and reports about them."""

from rbmle.experiments.trial import Trial, play

__all__ = ["Trial", "play"]
