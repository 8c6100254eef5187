"""Five explorers of Vowpal Wabbit, each with its own settings."""

from dataclasses import dataclass

from rbmle.interop.vowpal_wabbit import VowpalWabbit


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareCB(VowpalWabbit):
    """pmf by inverse gap weighting (Foster, Rakhlin 2020, "Beyond UCB")."""

    scale: float = 10.0  # γ = scale · t^exponent
    exponent: float = 0.5

    @property
    def explorer(self) -> str:
        """Return the options of the explorer."""
        gamma = f"--gamma_scale {self.scale} --gamma_exponent {self.exponent}"
        return f"--squarecb {gamma} {self.cost_range}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegCB(VowpalWabbit):
    """pmf on the arm of the smallest cost that a model may have (Foster et al. 2018, "Practical CB")."""

    mellowness: float = 0.1  # c₀, which keeps how bad a model may fit

    @property
    def explorer(self) -> str:
        """Return the options of the explorer."""
        return f"--regcbopt --mellowness {self.mellowness} {self.cost_range}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover(VowpalWabbit):
    """pmf of a cover of policies (Agarwal et al. 2014, "Taming the monster"), without uniform play."""

    policies: int = 16
    diversity: float = 0.1  # ψ

    @property
    def explorer(self) -> str:
        """Return the options of the explorer."""
        return f"--cover {self.policies} --psi {self.diversity} --nounif"


@dataclass(frozen=True, slots=True, kw_only=True)
class Epsilon(VowpalWabbit):
    """pmf of 1 − ε on the arm of the smallest cost, plus ε/n on each."""

    epsilon: float = 0.05  # ε

    @property
    def explorer(self) -> str:
        """Return the options of the explorer."""
        return f"--epsilon {self.epsilon}"


@dataclass(frozen=True, slots=True, kw_only=True)
class First(VowpalWabbit):
    """pmf of uniform play at first, then on the arm of the smallest cost."""

    rounds: int = 100  # of uniform play

    @property
    def explorer(self) -> str:
        """Return the options of the explorer."""
        return f"--first {self.rounds}"
