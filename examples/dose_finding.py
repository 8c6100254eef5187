"""Which of four doses does a patient need, where the answer comes weeks after the choice?

Patients differ in age, weight and kidneys; the right dose grows with weight and falls with age. Each outcome is
known only after 30 more patients were treated. The bandit keeps nothing of a decision: it is given back later.
The patients are drawn here: this shows how late rewards are learned, and is no medical advice.
"""

import json
from collections import deque

import numpy as np

from rbmle import Bandit, Decision, NeuralRBMLEPC, Uniform

DOSES = ("none", "low", "middle", "high")
PATIENTS, DELAY = 600, 30


def patient(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return what is measured of a patient, and how likely each dose is to help."""
    x = rng.normal(size=3)  # age, weight and kidneys, as deviations from the mean
    right = np.clip(1.5 + x[1] - 0.7 * x[0] + 0.3 * x[2], 0, 3)  # a place in DOSES
    return x, 0.85 - 0.3 * np.abs(np.arange(4) - right)


def treat(bandit: Bandit, seed: int) -> float:
    """Treat patients one after the other, learn late, and return the mean loss against the best dose."""
    rng = np.random.default_rng(seed)
    waiting: deque[tuple[str, float]] = deque()  # decisions as they stand in a file, and outcomes
    lost = 0.0
    for _ in range(PATIENTS):
        x, helps = patient(rng)
        decision = bandit.decide(x)
        chance = helps[DOSES.index(str(decision.arm))]
        lost += helps.max() - chance
        waiting.append((json.dumps(decision.as_dict()), float(rng.random() < chance)))
        if len(waiting) > DELAY:
            line, outcome = waiting.popleft()
            bandit.learn(Decision.from_dict(json.loads(line)), outcome)
    return lost / PATIENTS


def main() -> None:
    """Compare a network that explores by reward bias with doses at random."""
    for title, policy in (("at random", Uniform()), ("NeuralRBMLE-PC", NeuralRBMLEPC())):
        losses = [
            treat(Bandit(policy, arms=DOSES, features=3, seed=seed), seed) for seed in range(3)
        ]
        print(f"{title:16} {np.mean(losses):.3f} fewer successes a patient than with the best dose")


if __name__ == "__main__":
    main()
