"""The maximisers θ†_a of the prototypic NeuralRBMLE, on the whole history, from the shared base θ̂."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts
from rbmle.engine.compiled import scalar
from rbmle.engine.layout import Bias, Parameters
from rbmle.engine.network import predict
from rbmle.models.around import AroundRegression
from rbmle.models.line_search import maximise
from rbmle.models.regression_state import RegressionState, no_walk, settled, unmoved
from rbmle.models.training import in_units_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmMaximum(AroundRegression):
    """A regression, and for each arm θ†_a = argmax ℓ_λ(F_t; θ) + α f(x_a; θ), Eq. (12), which is not kept."""

    steps: int  # of each ascent, at most

    def __post_init__(self) -> None:
        """Raise SettingError if there is no step."""
        if self.steps < 1:
            raise SettingError(f"`steps` must be at least 1, got {self.steps}")

    def maxima(
        self, state: RegressionState, contexts: Contexts, alpha: float
    ) -> tuple[Float[np.ndarray, " arms"], Float[np.ndarray, "arms arms"]]:
        """Return ℓ_λ(F_t; θ†_a) of each arm a, and f(x_b; θ†_a) in row a and column b."""
        model, n = self.model, len(contexts)
        samples = state.history.samples_in(in_units_of(model.fit, state.watch))
        rows, potential = model.network.rows(contexts), scalar(model.likelihood.b)
        base, fit = settled(state.net), model.fit._replace(steps=self.steps)
        likelihoods, values = np.empty(n), np.empty((n, n))
        for arm in range(n):
            net = base._replace(theta=Parameters(*(part.copy() for part in base.theta)))
            reached = maximise(net, samples, fit, potential, Bias(rows, arm, float(alpha)))
            predict(net, rows, values[arm])
            likelihoods[arm] = reached - alpha * values[arm, arm]
        return likelihoods, values

    def frozen(self, state: RegressionState) -> RegressionState:
        """Return the network and the history, which the ascent reads."""
        net, history = unmoved(state.net), state.history.frozen(self.model.memory)
        watch = state.watch.copy()
        return RegressionState(net=net, walk=no_walk(net), history=history, watch=watch)
