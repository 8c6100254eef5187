"""The policies of the paper as studies play them: their learner, and what is tuned of them."""

from dataclasses import replace
from typing import Any

from rbmle.models.arm_ascent import ArmAscent
from rbmle.models.network import Network
from rbmle.models.printed import printed_model
from rbmle.models.regression import Regression
from rbmle.models.training import Replay
from rbmle.policies import LinRBMLE, NeuralRBMLEGA
from rbmle.policies.schedules import Power
from rbmle.studies.tuned import constant_of

POLICIES = (
    "neural-rbmle-ga",
    "neural-rbmle-pc",
    "neural-ucb",
    "neural-ts",
    "deep-fpl",
    "bootstrapped-nn",
    "lin-rbmle",
)
# Of ν, around what was best for each policy, down to greedy play; the others have GRID.
GRIDS = {
    "neural-rbmle-ga": (0.1, 0.03, 0.01, 0.0),
    "neural-rbmle-pc": (1e-3, 1e-4, 1e-5, 0.0),
    "neural-ucb": (0.1, 0.03, 0.01, 0.0),
    "neural-ts": (0.1, 0.03, 0.01, 0.0),
    "deep-fpl": (1.0, 0.1, 0.01, 0.0),
    "lin-rbmle": (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0),  # as many as ν and η of a network
}
PRINTED_GRID = (1.0, 1e-1, 1e-3, 1e-5)  # of ν, in the appendix
RATES = (0.1, 0.4)  # η; with preprocessing `standard` it is chosen as ν is, the first elsewhere
# With the paper's J; it never forgets.
LEARNER = Regression(training=Replay(steps=100, rate=RATES[0]), alarm=0.0, is_standardised=False)
LEARNERS = {"paper": replace(LEARNER, network=Network(start="standard"), ridge=0.001)}
ASCENT = ArmAscent(steps=16, rate=0.25, reach=2.0)  # of GA with preprocessing `paper`


def as_studied(policy: Any, preprocessing: str) -> Any:
    """Return a policy with the learner, the index and the form of α(t) for which ν was tuned."""
    match policy:
        case LinRBMLE():
            policy = replace(policy, growth=Power(exponent=0.5))
        case NeuralRBMLEGA():
            policy = replace(policy, is_bounded=False, linear=None)
            if preprocessing == "paper":
                growth = Power(exponent=0.25)
                policy = replace(policy, growth=growth, is_scaled=False, ascent=ASCENT)
    if isinstance(policy.model, Regression):
        return replace(policy, model=LEARNERS.get(preprocessing, LEARNER))
    return replace(policy, model=replace(policy.model, alarm=0.0, is_standardised=False))


def as_printed(policy: Any, *, is_warm: bool = False) -> Any:
    """Return a policy with the learner of the paper, and α(t) = ν√t.

    Read literally, a network ascends ℓ_λ from θ₀ in each round; with `is_warm` it ascends ℓ_λ/t from θ̂.
    """
    if not isinstance(policy.model, Regression):
        model = replace(policy.model, alarm=0.0, is_standardised=False)
        return replace(policy, model=model, growth=Power(exponent=0.5))
    model = printed_model(objective="mean", warm=True) if is_warm else printed_model()
    policy = replace(policy, model=model)
    if isinstance(policy, NeuralRBMLEGA):
        return replace(policy, is_scaled=False, is_bounded=False, linear=None)
    return policy


def rates(policy: Any, preprocessing: str) -> tuple[float, ...]:
    """Return the rates that a policy is tuned with: several for a network that has a constant."""
    is_tuned = isinstance(policy.model, Regression) and constant_of(type(policy)) is not None
    return RATES if is_tuned and preprocessing == "standard" else RATES[:1]


def at_rate(policy: Any, rate: float) -> Any:
    """Return a policy whose network takes steps of another length."""
    training = replace(policy.model.training, rate=rate)
    return replace(policy, model=replace(policy.model, training=training))
