"""The algorithms, one or two related ones in a file.

A new policy needs an import and an entry here: titles, colours, the names in `rbmle`, the commands and
the contract are derived. `import A as A` says to type checkers that A is public.
"""

from typing import Any

from rbmle.core.policy import Policy
from rbmle.policies.bootstrapped_nn import BootstrappedNN as BootstrappedNN
from rbmle.policies.deep_fpl import DeepFPL as DeepFPL
from rbmle.policies.ee_net import EENet as EENet
from rbmle.policies.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from rbmle.policies.epsilon_greedy import Uniform as Uniform
from rbmle.policies.fg_ts import FGTS as FGTS
from rbmle.policies.lin_rbmle import GLMRBMLE as GLMRBMLE
from rbmle.policies.lin_rbmle import LinRBMLE as LinRBMLE
from rbmle.policies.lin_ts import GLMTS as GLMTS
from rbmle.policies.lin_ts import LinTS as LinTS
from rbmle.policies.lin_ucb import GLMUCB as GLMUCB
from rbmle.policies.lin_ucb import LinUCB as LinUCB
from rbmle.policies.neu_cb import NeuFastCB as NeuFastCB
from rbmle.policies.neu_cb import NeuSquareCB as NeuSquareCB
from rbmle.policies.neural_lin_ucb import NeuralLinUCB as NeuralLinUCB
from rbmle.policies.neural_rbmle import NeuralRBMLE as NeuralRBMLE
from rbmle.policies.neural_rbmle_ga import NeuralRBMLEGA as NeuralRBMLEGA
from rbmle.policies.neural_rbmle_pc import NeuralRBMLEPC as NeuralRBMLEPC
from rbmle.policies.neural_ts import NeuralTS as NeuralTS
from rbmle.policies.neural_ucb import NeuralUCB as NeuralUCB
from rbmle.policies.npr import NPR as NPR
from rbmle.policies.schedules import Logarithm as Logarithm
from rbmle.policies.schedules import Power as Power
from rbmle.policies.schedules import Schedule as Schedule

# The name of a policy on the command line; the order is that of tables, the paper's first.
POLICIES: dict[str, type[Policy[Any]]] = {
    "neural-rbmle-ga": NeuralRBMLEGA,
    "neural-rbmle-pc": NeuralRBMLEPC,
    "neural-ucb": NeuralUCB,
    "neural-ts": NeuralTS,
    "deep-fpl": DeepFPL,
    "bootstrapped-nn": BootstrappedNN,
    "lin-rbmle": LinRBMLE,
    "neural-rbmle": NeuralRBMLE,
    "lin-ucb": LinUCB,
    "lin-ts": LinTS,
    "glm-rbmle": GLMRBMLE,
    "glm-ucb": GLMUCB,
    "glm-ts": GLMTS,
    "neu-square-cb": NeuSquareCB,
    "neu-fast-cb": NeuFastCB,
    "fg-ts": FGTS,
    "npr": NPR,
    "neural-lin-ucb": NeuralLinUCB,
    "ee-net": EENet,
    "epsilon-greedy": EpsilonGreedy,
    "uniform": Uniform,
}

# Their cost of a round grows with the rounds: `--policy all` and the bake-off skip them.
REFERENCES = ("neural-rbmle",)
