"""Reward-biased maximum likelihood estimation for neural contextual bandits.

Names are loaded when they are first used: `import rbmle` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rbmle import core

__version__ = "0.1.0"

# What the lower layers need from upper ones; each is loaded when it is first used.
core.MAKERS["policy"] = lambda policy: import_module("rbmle.policies.registry").policy_from(policy)
core.MAKERS["running"] = lambda encoder: import_module("rbmle.features.running").Running(of=encoder)
core.ADAPTERS.update(
    {
        "tree-ts": "rbmle.interop.tree_ts:TreeTS",
        "vw:squarecb": "rbmle.interop.vowpal_wabbit:SquareCB",
        "vw:regcb": "rbmle.interop.vowpal_wabbit:RegCB",
        "vw:cover": "rbmle.interop.vowpal_wabbit:Cover",
        "vw:epsilon": "rbmle.interop.vowpal_wabbit:Epsilon",
        "vw:first": "rbmle.interop.vowpal_wabbit:First",
        "mabwiser:linucb": "rbmle.interop.mabwiser_linear:MABWiserLinUCB",
    }
)

if TYPE_CHECKING:
    from rbmle.core.bandit import Bandit as Bandit
    from rbmle.core.errors import RBMLEError as RBMLEError
    from rbmle.core.events import Event as Event
    from rbmle.core.types import Decision as Decision
    from rbmle.features import Hashing as Hashing
    from rbmle.likelihoods import Bernoulli as Bernoulli
    from rbmle.likelihoods import Gaussian as Gaussian
    from rbmle.likelihoods import Mixture as Mixture
    from rbmle.models import GLM as GLM
    from rbmle.models import ArmAscent as ArmAscent
    from rbmle.models import Diagonal as Diagonal
    from rbmle.models import Exact as Exact
    from rbmle.models import FullBatch as FullBatch
    from rbmle.models import LinearPart as LinearPart
    from rbmle.models import Memory as Memory
    from rbmle.models import Network as Network
    from rbmle.models import Regression as Regression
    from rbmle.models import Replay as Replay
    from rbmle.models import Ridge as Ridge
    from rbmle.policies import *  # noqa: F403  # all that is registered

_HOMES = {
    "rbmle.core.bandit": ("Bandit",),
    "rbmle.core.errors": ("RBMLEError",),
    "rbmle.core.events": ("Event",),
    "rbmle.core.types": ("Decision",),
    "rbmle.features": ("Hashing",),
    "rbmle.likelihoods": ("Bernoulli", "Gaussian", "Mixture"),
    "rbmle.models": (
        "GLM",
        "ArmAscent",
        "Diagonal",
        "Exact",
        "FullBatch",
        "LinearPart",
        "Memory",
        "Network",
        "Regression",
        "Replay",
        "Ridge",
    ),
    "rbmle.policies": ("POLICIES", "Logarithm", "Power"),
}
_FOLDERS = (
    "classical",
    "control",
    "core",
    "datasets",
    "environments",
    "evaluation",
    "features",
    "likelihoods",
    "models",
    "plots",
    "policies",
    "testing",
    "theory",
)
_OPEN = ("classical", "control", "theory")  # folders for users that need no extra
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from its home, or a folder; policies are those that are registered."""
    if name in _FOLDERS:
        return import_module(f"rbmle.{name}")
    if name == "__all__":
        return ["__version__", *_HOME, *_policies(), *_OPEN]
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name[0].isupper() and name in _policies():
        value = _policies()[name]
    else:
        known = sorted([*_HOME, *_policies()]) if name[0].isupper() else sorted(_HOME)
        raise AttributeError(f"rbmle has no {name!r}; it has {', '.join(known)}")
    globals()[name] = value
    return value


def _policies() -> dict[str, Any]:
    """Return the classes of policies by their names; this loads them."""
    registered = import_module("rbmle.policies").POLICIES
    return {kind.__name__: kind for kind in registered.values()}


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__getattr__("__all__"))
