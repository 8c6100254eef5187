"""What compares: trials, and what is shown of them."""

from rbmle.experiments.trial import Trial, play

__all__ = ["Trial", "play"]
