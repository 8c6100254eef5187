"""The arm-specific estimators θ̃_a of NeuralRBMLE-GA, from the shared base θ̂."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rbmle.core.checks import check_positive
from rbmle.core.errors import SettingError
from rbmle.core.policy import has
from rbmle.core.types import Contexts, Indices, Rows, rows_at
from rbmle.engine.ascent import biased_ascent, forecast
from rbmle.engine.compiled import scalar
from rbmle.engine.full_batch import full_batch, log_likelihood
from rbmle.engine.layout import Bias, Fit, Parameters
from rbmle.models.regression import (
    FullBatch,
    Regression,
    RegressionState,
    in_units_of,
)

FEW = 64  # arms that all have their ascent; it is also that of the first ones among many
MARGIN = 2.0


class Ascends(Protocol):
    """A model that finds the arm-specific estimators θ̃_a by itself, as one of another library does."""

    def ascend(
        self, state: Any, contexts: Contexts, alpha: float, key: np.uint64, ascent: Any
    ) -> tuple[Indices, Indices]:
        """Return f(x_a; θ̃_a), and ℓ_λ(F_t; θ̃_a) − ℓ_λ(F_t; θ̂), for every arm."""
        ...

    def frozen_with_history(self, state: Any) -> Any:
        """Return what `ascend` reads, which stays as it is when the state learns."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAscent:
    """Gradient ascent on ℓ_λ(F_t; θ) + α f(x_a; θ) for each arm; nothing of it is kept.

    With a `Replay` model: `steps` times a step on a sample of the arm's block and one along the bias.
    The objective is divided by the number n of the block's observations, which leaves the maximiser
    as it is: a replayed sample has the weight 1, the bias α/n, and the ridge λ/n.
    Arms that cannot win have no ascent: those for which f(x_a; θ̂) + R (`reach` + R), with R what the steps
    along the bias add to f(x_a) to first order, is below the index of another arm that was played.
    With a `FullBatch` model: its J steps on the whole history, from θ̂ or from θ₀, as Algorithm 1 says.
    """

    steps: int
    rate: float  # η
    reach: float = 1.2  # infinity: every arm has its own ascent

    def __post_init__(self) -> None:
        """Raise SettingError for steps or a rate out of range."""
        if self.steps < 1:
            raise SettingError(f"`steps` must be at least 1, got {self.steps}")
        check_positive("rate", self.rate)
        if not self.reach >= 1:
            raise SettingError(f"`reach` must be at least 1, or infinity, got {self.reach}")

    def estimates(
        self,
        model: Regression,
        state: RegressionState,
        contexts: Contexts,
        alpha: float,
        key: np.uint64,
        worth: float,
        least: float = -np.inf,
        offsets: Indices | None = None,
    ) -> tuple[Indices, Indices]:
        """Return f(x_a; θ̃_a), and ℓ_λ(F_t; θ̃_a) − ℓ_λ(F_t; θ̂), or zeros if that is worth nothing.

        An arm's index is the first plus `worth` times the second, and what `offsets` says that it has from
        elsewhere, which neither includes. With a `Replay` model, an f(x_a; θ̂) that
        promises less than `least` counts as that. Arms that cannot have the largest index may
        have an upper bound, and zero; where more than FEW arms share one block, a forecast of both, by which
        they are below the largest too, see `_pruned`.
        """
        if has(model, Ascends):
            return model.ascend(state, contexts, alpha, key, self)
        offsets = np.zeros(len(contexts)) if offsets is None else offsets
        match model.training:
            case FullBatch() as training:
                return self._full(model, state, contexts, alpha, training)
            case _ if len(contexts) > FEW and len(state.net.ages) == state.net.features:
                return self._pruned(model, state, contexts, alpha, key, worth, least, offsets)
            case _:
                rows = model.network.rows(contexts)
                more = (worth, least, offsets, self.reach)
                return self._replayed(model, state, rows, alpha, key, *more)

    def _fit(self, model: Regression) -> Fit:
        return model.fit._replace(steps=self.steps, rate=float(self.rate))

    def _pruned(
        self,
        model: Regression,
        state: RegressionState,
        contexts: Contexts,
        alpha: float,
        key: np.uint64,
        worth: float,
        least: float,
        offsets: Indices,
    ) -> tuple[Indices, Indices]:
        """Return the same, with the ascent left to arms that may still have the largest index.

        The forecast is the ascent to first order. The ascent is taken for the FEW arms with the largest
        forecasts, then for all others that come within MARGIN times the largest shortfall of a forecast
        so far of the largest index so far, until there are none. What is left out depends on numbers
        alone: equal contexts have equal indices, in whichever order they stand.
        """
        past, rows, n = state.history.past, model.network.rows(contexts), len(contexts)
        bias = alpha / max(int(past.member_counts[0]), 1)
        estimates, gains = np.empty(n), np.empty(n)
        fit = in_units_of(self._fit(model), state.watch)
        forecast(state.net, past, rows, fit, bias, least, key, estimates, gains)
        gains *= worth != 0
        foreseen = estimates + worth * gains + offsets
        foreseen[~np.isfinite(foreseen)] = np.inf  # which says nothing
        bar = np.partition(foreseen, n - FEW)[n - FEW]
        is_taken = np.zeros(n, np.bool_)
        shortfall, best = 0.0, -np.inf
        while (among := np.flatnonzero(~is_taken & ~(foreseen < bar))).size:
            some = rows_at(rows, among)
            more = (worth, least, offsets[among], np.inf)
            taken = self._replayed(model, state, some, alpha, key, *more)
            estimates[among], gains[among] = taken
            is_taken[among] = True
            found = estimates[among] + worth * gains[among] + offsets[among]
            shortfall = max(shortfall, float((found - foreseen[among]).max()))
            best = max(best, float(found.max()))
            bar = best - MARGIN * shortfall
        return estimates, gains

    def _replayed(
        self,
        model: Regression,
        state: RegressionState,
        rows: Rows,
        alpha: float,
        key: np.uint64,
        worth: float,
        least: float,
        offsets: Indices,
        reach: float,
    ) -> tuple[Indices, Indices]:
        past, n = state.history.past, len(rows.blocks)
        fit = in_units_of(self._fit(model), state.watch)
        potential = scalar(model.likelihood.b) if worth else 0
        counts = np.maximum(past.member_counts[rows.blocks], 1)
        weights = (alpha / counts, 1.0 / counts)
        estimates, gains = np.empty(n), np.zeros(n)
        rules = (potential, worth, reach, least)
        biased_ascent(state.net, past, rows, fit, *rules, offsets, *weights, key, estimates, gains)
        return estimates, gains

    def _full(
        self,
        model: Regression,
        state: RegressionState,
        contexts: Contexts,
        alpha: float,
        training: FullBatch,
    ) -> tuple[Indices, Indices]:
        rows = model.network.rows(contexts)
        fit = in_units_of(model.fit, state.watch)
        samples = state.history.samples_in(fit)
        fit = fit._replace(rate=training.step_size(samples.count))
        potential = scalar(model.likelihood.b)
        base = log_likelihood(state.net, samples, model.pull, potential)
        estimates, gains = np.empty(len(contexts)), np.empty(len(contexts))
        for arm in range(len(contexts)):
            start = state.net.theta if training.warm else state.net.start
            net = state.net._replace(theta=Parameters(*(part.copy() for part in start)))
            full_batch(net, samples, fit, Bias(rows, arm, float(alpha)))
            estimates[arm] = model.network.predict(net, contexts.row(arm))[0]
            gains[arm] = log_likelihood(net, samples, model.pull, potential) - base
        return estimates, gains
