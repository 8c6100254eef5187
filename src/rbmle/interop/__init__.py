"""Adapters to other libraries, and policies that need them; each needs an extra.

Libraries are imported when an adapter is first used.
"""

from importlib import import_module
from typing import Any

from rbmle.interop.needs import need

# The name of an adapter: its module, the package that it adapts, and the extra that installs it.
_ADAPTERS = {
    "BanditClassifier": ("sklearn_classifier", "sklearn", "sklearn"),
    "BanditEnv": ("gymnasium_adapters", "gymnasium", "gymnasium"),
    "gymnasium_bandit": ("gymnasium_adapters", "gymnasium", "gymnasium"),
    "play_gymnasium": ("gymnasium_adapters", "gymnasium", "gymnasium"),
    "CobaLearner": ("coba_adapters", "coba", "coba"),
    "CobaEnvironment": ("coba_adapters", "coba", "coba"),
    "RiverPolicy": ("river_policy", "river", "river"),
    "TorchNetwork": ("torch_models", "torch", "torch"),
    "Perceptron": ("torch_models", "torch", "torch"),
    "TorchRegression": ("torch_models", "torch", "torch"),
    "Minibatch": ("torch_models", "torch", "torch"),
    "TorchDiagonal": ("torch_models", "torch", "torch"),
}
__all__ = [*_ADAPTERS]  # noqa: PLE0604  # strings, all of them


def __getattr__(name: str) -> Any:
    if name not in _ADAPTERS:
        raise AttributeError(f"rbmle.interop has no {name!r}; it has {', '.join(_ADAPTERS)}")
    module, package, extra = _ADAPTERS[name]
    need(package, extra, name)
    return getattr(import_module(f"rbmle.interop.{module}"), name)
