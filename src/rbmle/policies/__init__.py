"""What explores: one algorithm per file, its index and little else."""

from typing import Any

from rbmle.core.policy import Policy
from rbmle.policies.bootstrapped_nn import BootstrappedNN
from rbmle.policies.deep_fpl import DeepFPL
from rbmle.policies.epsilon_greedy import EpsilonGreedy
from rbmle.policies.lin_rbmle import LinRBMLE
from rbmle.policies.lin_ts import LinTS
from rbmle.policies.lin_ucb import LinUCB
from rbmle.policies.neural_rbmle_ga import NeuralRBMLEGA
from rbmle.policies.neural_rbmle_pc import NeuralRBMLEPC
from rbmle.policies.neural_ts import NeuralTS
from rbmle.policies.neural_ucb import NeuralUCB
from rbmle.policies.schedules import Logarithm, Power, Schedule
from rbmle.policies.uniform import Uniform

# The name of a policy on the command line, and in the paper's tables.
POLICIES: dict[str, type[Policy[Any]]] = {
    "neural-rbmle-ga": NeuralRBMLEGA,
    "neural-rbmle-pc": NeuralRBMLEPC,
    "neural-ucb": NeuralUCB,
    "neural-ts": NeuralTS,
    "deep-fpl": DeepFPL,
    "bootstrapped-nn": BootstrappedNN,
    "lin-rbmle": LinRBMLE,
    "lin-ucb": LinUCB,
    "lin-ts": LinTS,
    "epsilon-greedy": EpsilonGreedy,
    "uniform": Uniform,
}

__all__ = [
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
    "Schedule",
    "Uniform",
]
