"""What a policy would have earned, told from what another one was paid: IPS and SNIPS.

An action a that was chosen with probability p(a) and paid r counts for a target policy π with the
weight w = π(a) / p(a). Over n such plays

    IPS    V = Σ w r / n        s² = Σ (w r − V)² / (n (n − 1))
    SNIPS  V = Σ w r / Σ w      s² = Σ w² (r − V)² / (Σ w)²

and the interval of 95 % is V ± 1.96 s. IPS is the mean of independent terms without a bias (Horvitz and
Thompson 1952), and s² is their sample variance. SNIPS (Swaminathan and Joachims 2015) stays between the
rewards that were seen, and s² is the delta method's (Owen, Monte Carlo theory, Eq. 9.8). Intervals are
the normal ones: the floor under each probability bounds the weights, so means of some dozens of plays
are near to normal, where an empirical Bernstein interval would be several times as wide. They are not
given before the plays are worth that many.
"""

import msgspec

NORMAL_95 = 1.959963984540054  # the normal distribution has 95 % within ± this
FEWEST = 30  # plays of weight 1 that the sum must be worth, before an interval is given
SMALLEST = 1e-6  # a probability below it is no chance: one weight would be most of the sum
ROUNDING = 1e-12  # a variance that is a smaller part of the mean square is none


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean and its interval of 95 %."""

    value: float | None = None  # None: it is not known
    low: float | None = None  # None: there is no interval
    high: float | None = None
    problem: str = ""  # why there is no value, or no interval

    @property
    def has_interval(self) -> bool:
        """Return whether it is known how far off the value may be."""
        return self.low is not None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What one target policy would have earned."""

    ips: Estimate
    snips: Estimate
    coverage: float  # the part of all plays that tell of it
    effective: float  # how many plays of weight 1 they are worth


class Sums(msgspec.Struct, array_like=True):
    """All that the estimates of one target policy need of any number of plays."""

    plays: int = 0  # n
    unsupported: int = 0  # plays that tell nothing: what the target would play had no chance
    w: float = 0.0  # Σ w
    wr: float = 0.0
    ww: float = 0.0
    wwr: float = 0.0
    wwrr: float = 0.0

    def add(self, weight: float | None, reward: float) -> None:
        """Count a play; a weight of None says that it tells nothing of the target."""
        if weight is None:
            self.unsupported += 1
            return
        self.plays += 1
        self.w += weight
        self.wr += weight * reward
        self.ww += weight * weight
        self.wwr += weight * weight * reward
        self.wwrr += weight * weight * reward * reward

    def merged(self, later: "Sums") -> "Sums":
        """Return both together."""
        return Sums(*(getattr(self, f) + getattr(later, f) for f in self.__struct_fields__))

    @property
    def effective(self) -> float:
        """Return (Σ w)² / Σ w², how many plays of weight 1 these are worth (Kish 1965)."""
        return self.w * self.w / self.ww if self.ww else 0.0

    @property
    def coverage(self) -> float:
        """Return the part of all plays that tell of the target; 0 if there is none."""
        total = self.plays + self.unsupported
        return self.plays / total if total else 0.0

    def compared(self) -> Comparison:
        """Return both estimates."""
        return Comparison(
            ips=self.ips(), snips=self.snips(), coverage=self.coverage, effective=self.effective
        )

    def ips(self) -> Estimate:
        """Return the estimate by inverse propensity.

        >>> sums = Sums()
        >>> for weight, reward in [(2.0, 1.0), (0.0, 1.0), (2.0, 0.0), (0.0, 0.0)]:
        ...     sums.add(weight, reward)
        >>> sums.ips().value
        0.5
        """
        if not self.w:
            return Estimate(problem=self._nothing())
        n = self.plays
        value = self.wr / n
        squares = self.wwrr - n * value * value
        return self._around(value, squares / (n * max(n - 1, 1)), self.wwrr / (n * n))

    def snips(self) -> Estimate:
        """Return the self-normalised estimate.

        >>> sums = Sums()
        >>> for weight, reward in [(3.0, 1.0), (1.0, 0.0)]:
        ...     sums.add(weight, reward)
        >>> sums.snips().value
        0.75
        """
        if not self.w:
            return Estimate(problem=self._nothing())
        value = self.wr / self.w
        squares = self.wwrr - 2 * value * self.wwr + value * value * self.ww
        return self._around(value, squares / self.w**2, self.wwrr / self.w**2)

    def _around(self, value: float, variance: float, scale: float) -> Estimate:
        """Return a value with its interval, if it can have one."""
        if self.effective < FEWEST:
            return Estimate(value=value, problem="too few plays for an interval")
        if variance <= ROUNDING * scale:
            return Estimate(value=value, problem="no interval: all rewards were equal so far")
        deviation = NORMAL_95 * variance**0.5
        return Estimate(value=value, low=value - deviation, high=value + deviation)

    def _nothing(self) -> str:
        """Return why nothing tells of the target."""
        if self.plays:
            return "it was not chosen yet"
        if self.unsupported:
            return "not known: what it would play had no chance of being chosen"
        return "no reward yet"
