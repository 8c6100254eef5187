"""The arm-specific estimators θ̃_a of NeuralRBMLE-GA, from the shared base θ̂."""

from dataclasses import dataclass

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.types import Contexts, Indices
from rbmle.engine.ascent import biased_ascent
from rbmle.engine.compiled import scalar
from rbmle.engine.full_batch import full_batch, log_likelihood
from rbmle.engine.layout import Parameters
from rbmle.models.regression import Regression, RegressionState
from rbmle.models.training import FullBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAscent:
    """Gradient ascent on ℓ_λ(F_t; θ) + α f(x_a; θ) for each arm; nothing of it is kept.

    With a `Replay` model: `steps` times a step on a sample of the arm's block and one along the bias.
    The objective is divided by the number n of the block's observations, which leaves the maximiser
    as it is: a replayed sample has the weight 1, the bias α/n, and the ridge λ/n.
    With a `FullBatch` model: its J steps on the whole history, from θ̂ or from θ₀, as Algorithm 1 says.
    """

    steps: int
    rate: float  # η

    def __post_init__(self) -> None:
        """Raise SettingError for steps or a rate that cannot be."""
        if self.steps < 1 or not 0 < self.rate < float("inf"):
            raise SettingError(
                f"an ascent of {self.steps} steps at rate {self.rate} cannot work; "
                "it needs at least one step and a positive rate"
            )

    def estimates(
        self,
        model: Regression,
        state: RegressionState,
        contexts: Contexts,
        alpha: float,
        key: np.uint64,
        with_gains: bool,
    ) -> tuple[Indices, Indices]:
        """Return f(x_a; θ̃_a), and ℓ_λ(F_t; θ̃_a) − ℓ_λ(F_t; θ̂) if asked for, else zeros."""
        match model.training:
            case FullBatch():
                return self._full(model, state, contexts, alpha, model.training)
            case _:
                return self._replayed(model, state, contexts, alpha, key, with_gains)

    def _replayed(
        self,
        model: Regression,
        state: RegressionState,
        contexts: Contexts,
        alpha: float,
        key: np.uint64,
        with_gains: bool,
    ) -> tuple[Indices, Indices]:
        history, rows = state.history, model.network.rows(contexts)
        counts = np.maximum(history.member_counts[rows.blocks], 1)
        estimates, gains = np.empty(len(contexts)), np.zeros(len(contexts))
        biased_ascent(
            state.net,
            history.rows,
            history.rewards,
            history.members,
            history.member_starts,
            history.member_counts,
            rows,
            self.steps,
            self.rate,
            model.pull,
            scalar(model.likelihood.mean),
            scalar(model.likelihood.b) if with_gains else 0,
            alpha / counts,
            1.0 / counts,
            key,
            estimates,
            gains,
        )
        return estimates, gains

    def _full(
        self,
        model: Regression,
        state: RegressionState,
        contexts: Contexts,
        alpha: float,
        training: FullBatch,
    ) -> tuple[Indices, Indices]:
        history, rows = state.history, model.network.rows(contexts)
        estimates, gains = np.empty(len(contexts)), np.empty(len(contexts))
        past = (history.rows, history.rewards, history.count)
        base = log_likelihood(state.net, *past, model.pull, scalar(model.likelihood.b))
        for arm in range(len(contexts)):
            start = state.net.theta if training.warm else state.net.start
            net = state.net._replace(theta=Parameters(*(part.copy() for part in start)))
            full_batch(
                net,
                *past,
                training.steps,
                training.step_size(history.count),
                model.pull,
                scalar(model.likelihood.mean),
                rows,
                arm,
                alpha,
            )
            estimates[arm] = model.network.predict(net, contexts.row(arm))[0]
            biased = log_likelihood(net, *past, model.pull, scalar(model.likelihood.b))
            gains[arm] = biased - base
        return estimates, gains
