"""Adapters to other libraries, and policies that stand on them; each needs an extra.

A library is not imported before it is needed: names are loaded when they are first used.
"""

from importlib import import_module
from typing import Any

from rbmle.interop.needs import need

# The name of an adapter: its module, the package that it adapts, and the extra that brings it.
_ADAPTERS = {
    "BanditClassifier": ("sklearn_classifier", "sklearn", "sklearn"),
    "BanditEnv": ("gymnasium_env", "gymnasium", "gymnasium"),
    "gymnasium_bandit": ("gymnasium_play", "gymnasium", "gymnasium"),
    "play_gymnasium": ("gymnasium_play", "gymnasium", "gymnasium"),
    "CobaLearner": ("coba_learner", "coba", "coba"),
    "CobaEnvironment": ("coba_environment", "coba", "coba"),
    "RiverPolicy": ("river_policy", "river", "river"),
    "TorchNetwork": ("torch_network", "torch", "torch"),
    "Perceptron": ("torch_network", "torch", "torch"),
    "TorchRegression": ("torch_regression", "torch", "torch"),
    "Minibatch": ("torch_regression", "torch", "torch"),
    "TorchDiagonal": ("torch_precision", "torch", "torch"),
}
__all__ = [*_ADAPTERS]  # noqa: PLE0604  # strings, all of them


def __getattr__(name: str) -> Any:
    """Load an adapter; raise SettingError that names the extra if its library is missing."""
    if name not in _ADAPTERS:
        raise AttributeError(f"rbmle.interop has no {name!r}; it has {', '.join(_ADAPTERS)}")
    module, package, extra = _ADAPTERS[name]
    need(package, extra, name)
    return getattr(import_module(f"rbmle.interop.{module}"), name)
