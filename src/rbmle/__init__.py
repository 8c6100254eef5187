"""Reward-biased maximum likelihood estimation for neural contextual bandits.

Names are loaded when they are first used: `import rbmle` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rbmle.core.bandit import Bandit as Bandit
    from rbmle.core.errors import RBMLEError as RBMLEError
    from rbmle.core.types import Decision as Decision
    from rbmle.likelihoods import Bernoulli as Bernoulli
    from rbmle.likelihoods import Gaussian as Gaussian
    from rbmle.likelihoods import Mixture as Mixture
    from rbmle.models import ArmAscent as ArmAscent
    from rbmle.models import Diagonal as Diagonal
    from rbmle.models import Exact as Exact
    from rbmle.models import FullBatch as FullBatch
    from rbmle.models import Memory as Memory
    from rbmle.models import Network as Network
    from rbmle.models import Regression as Regression
    from rbmle.models import Replay as Replay
    from rbmle.models import Ridge as Ridge
    from rbmle.policies import POLICIES as POLICIES
    from rbmle.policies import BootstrappedNN as BootstrappedNN
    from rbmle.policies import DeepFPL as DeepFPL
    from rbmle.policies import EpsilonGreedy as EpsilonGreedy
    from rbmle.policies import LinRBMLE as LinRBMLE
    from rbmle.policies import LinTS as LinTS
    from rbmle.policies import LinUCB as LinUCB
    from rbmle.policies import Logarithm as Logarithm
    from rbmle.policies import NeuralRBMLEGA as NeuralRBMLEGA
    from rbmle.policies import NeuralRBMLEPC as NeuralRBMLEPC
    from rbmle.policies import NeuralTS as NeuralTS
    from rbmle.policies import NeuralUCB as NeuralUCB
    from rbmle.policies import Power as Power
    from rbmle.policies import Uniform as Uniform

_HOMES = {
    "rbmle.core.bandit": ("Bandit",),
    "rbmle.core.errors": ("RBMLEError",),
    "rbmle.core.types": ("Decision",),
    "rbmle.likelihoods": ("Bernoulli", "Gaussian", "Mixture"),
    "rbmle.models": (
        "ArmAscent",
        "Diagonal",
        "Exact",
        "FullBatch",
        "Memory",
        "Network",
        "Regression",
        "Replay",
        "Ridge",
    ),
    "rbmle.policies": (
        "POLICIES",
        "BootstrappedNN",
        "DeepFPL",
        "EpsilonGreedy",
        "LinRBMLE",
        "LinTS",
        "LinUCB",
        "Logarithm",
        "NeuralRBMLEGA",
        "NeuralRBMLEPC",
        "NeuralTS",
        "NeuralUCB",
        "Power",
        "Uniform",
    ),
}
_FOLDERS = ("core", "datasets", "environments", "likelihoods", "models", "policies", "theory")
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604  # strings, all of them


def __getattr__(name: str) -> Any:
    """Load a public name from its home, or a folder."""
    if name in _FOLDERS:
        return import_module(f"rbmle.{name}")
    if name not in _HOME:
        raise AttributeError(f"rbmle has no {name!r}; it has {', '.join(sorted(_HOME))}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
