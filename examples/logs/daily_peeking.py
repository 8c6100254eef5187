"""Look at a test every day without being fooled
=============================================

An A/B test runs for a month, and everybody looks at it every morning. One morning the 95 % interval of the
difference no longer contains zero; the test is stopped, and B has won. How often does that happen when A
and B are the same?
"""

import matplotlib.pyplot as plt
import numpy as np

from rbmle.evaluation import ValueSequence
from rbmle.evaluation.estimators import Judged
from rbmle.plots import COLOURS

DAYS, VISITS = 30, 400  # visits each day, half of them see A
TESTS = 200


# %%
# Two intervals for the same visits
# ---------------------------------
# A click on B counts 1 and a click on A counts −1, so the mean is half the difference of the click rates.
# The usual interval is the mean plus and minus 1.96 standard errors. The confidence sequence is the one
# behind ``rbmle evaluate`` and the service's dashboard.
def run_test(rate_a: float, rate_b: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of both intervals on each day, for the difference of B and A."""
    rng = np.random.default_rng(seed)
    sequence = ValueSequence("ips", low=-1.0, high=1.0)
    visits, usual, always = np.zeros(0), np.zeros((DAYS, 2)), np.zeros((DAYS, 2))
    for day in range(DAYS):
        sees_b = rng.random(VISITS) < 0.5
        clicks = rng.random(VISITS) < np.where(sees_b, rate_b, rate_a)
        values = np.where(sees_b, 1.0, -1.0) * clicks
        visits = np.append(visits, values)
        error = 1.96 * visits.std() / len(visits) ** 0.5
        usual[day] = visits.mean() - error, visits.mean() + error
        nothing, nobody = np.zeros(VISITS), np.zeros(VISITS, bool)
        sequence.add(Judged(values, np.ones(VISITS), nothing, nothing, nobody))
        always[day] = sequence.interval(0.95) or (-1.0, 1.0)
    return 2 * usual, 2 * always


# %%
# A/A tests
# ---------
# In 200 tests, A and B both have a click rate of 10 %. What share of the tests has declared a winner by
# each day?
def excludes_zero(intervals: np.ndarray) -> np.ndarray:
    """Return on which days the interval says that A and B differ."""
    return (intervals[:, 0] > 0) | (intervals[:, 1] < 0)


def declared(intervals: np.ndarray) -> np.ndarray:
    """Return by which days somebody who looks each day has stopped the test."""
    return np.logical_or.accumulate(excludes_zero(intervals))


same = [run_test(0.10, 0.10, seed) for seed in range(TESTS)]
better = [run_test(0.10, 0.14, seed) for seed in range(TESTS // 2)]
names = ("usual interval", "confidence sequence")
shares = {
    title: {
        name: np.mean([declared(run[kind]) for run in runs], axis=0)
        for kind, name in enumerate(names)
    }
    for title, runs in {"A and B are the same": same, "B is better": better}.items()
}
days = np.arange(1, DAYS + 1)
figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, (title, lines) in zip(panels, shares.items(), strict=True):
    for (name, share), colour in zip(lines.items(), (COLOURS[1], COLOURS[0]), strict=True):
        ax.step(days, share, color=colour, where="post", lw=2, label=name)
    ax.set(title=title, xlabel="day", ylim=(0, 1.02), xlim=(1, DAYS))
panels[0].axhline(0.05, color="black", lw=1, ls=":")
panels[0].text(DAYS, 0.06, "5 %", ha="right", va="bottom")
panels[0].set_ylabel("share of tests with a winner")
panels[0].legend()
plt.show()

# %%
# The usual interval is valid on any single day, but not for those who look every day: far more than 5 % of the
# A/A tests have a winner by the end of the month. The confidence sequence is valid on all days together. This
# has a price: if B is really better, it needs some days longer to say so.
usual, always = (shares["A and B are the same"][name][-1] for name in names)
print(f"false winners: {usual:.0%} by the usual interval, {always:.1%} by the confidence sequence")

# %%
# One test, day by day
# --------------------
# The A/A test whose usual intervals exclude zero on the most days.
fooled = max(same, key=lambda run: excludes_zero(run[0]).sum() - DAYS * excludes_zero(run[1]).any())
figure, ax = plt.subplots(layout="constrained")
for intervals, name, colour in zip(fooled, names, (COLOURS[1], COLOURS[0]), strict=True):
    ax.fill_between(days, *intervals.T, color=colour, alpha=0.3, lw=0, label=name)
    ax.plot(days, intervals, color=colour, lw=1)
ax.axhline(0, color="black", lw=1)
ax.set(xlabel="day", ylabel="difference of click rates", xlim=(1, DAYS), ylim=(-0.12, 0.12))
ax.legend()
plt.show()

# %%
# On those days the test looks significant. The confidence sequence of the same visits is wider, and always
# contains zero.
