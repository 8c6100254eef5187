"""The numbers the paper prints, in its appendix "Additional Experimental Results"."""

from rbmle.experiments.tables import PaperResults

DATASETS = ("adult", "covertype", "magic", "mnist", "mushroom", "shuttle")

# Rounds of a trial: "T = 15000 … except that we set T = 8000 in the experiments of Mushroom".
HORIZONS = dict.fromkeys(DATASETS, 15_000) | {"mushroom": 8_000}


def _by_dataset(*numbers: float) -> dict[str, float]:
    """Return a row of a table by the names of its columns."""
    return dict(zip(DATASETS, numbers, strict=True))


# Mean of the final cumulative regret, 10 seeds.
TABLE_1 = {
    "neural-rbmle-ga": _by_dataset(3125.2, 4328.1, 3342.9, 1557.8, 313.1, 335.2),
    "neural-rbmle-pc": _by_dataset(3200.6, 4824.9, 3630.2, 2197.7, 580.4, 817.7),
    "neural-ucb": _by_dataset(3154.9, 4697.7, 3555.2, 2079.5, 583.8, 555.0),
    "neural-ts": _by_dataset(3179.0, 4813.3, 3567.1, 2585.7, 594.5, 577.7),
    "deep-fpl": _by_dataset(3174.9, 5207.3, 3559.2, 4473.0, 600.1, 1622.9),
    "bootstrapped-nn": _by_dataset(3351.4, 5265.3, 3929.7, 6437.1, 805.1, 1323.9),
    "lin-rbmle": _by_dataset(3121.9, 4929.8, 3885.0, 11851.9, 656.0, 3193.7),
}

# Standard deviation of the final cumulative regret; the paper does not say by which divisor.
TABLE_2 = {
    "neural-rbmle-ga": _by_dataset(28.05, 50.97, 32.91, 29.80, 19.60, 11.50),
    "neural-rbmle-pc": _by_dataset(115.96, 88.91, 137.96, 82.28, 57.91, 48.37),
    "neural-ucb": _by_dataset(42.21, 62.67, 97.44, 86.48, 40.74, 79.00),
    "neural-ts": _by_dataset(36.67, 87.34, 125.69, 179.94, 44.46, 75.92),
    "deep-fpl": _by_dataset(39.58, 536.48, 93.77, 1255.68, 43.25, 824.98),
    "bootstrapped-nn": _by_dataset(133.52, 126.23, 55.25, 630.02, 64.31, 311.51),
    "lin-rbmle": _by_dataset(24.97, 99.99, 27.20, 279.36, 20.23, 71.27),
}

# Seconds of a round on Covertype, and of them those that Z⁻¹ takes; None where there is no Z⁻¹.
TABLE_3: dict[str, dict[str, float | None]] = {
    "neural-rbmle-ga": {"t_step": 1.6688, "t_Z": None},
    "neural-ucb": {"t_step": 9.9027, "t_Z": 9.6974},
    "neural-ts": {"t_step": 9.7390, "t_Z": 9.5406},
}

PAPER = PaperResults(source="paper", means=TABLE_1, stds=TABLE_2, horizons=HORIZONS)
