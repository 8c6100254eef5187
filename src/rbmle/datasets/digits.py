"""Handwritten digits of 8 × 8 pixels (Alpaydin and Kaynak 1998, UCI, CC BY 4.0), from scikit-learn."""

from rbmle.datasets.base import Dataset


def digits() -> Dataset:
    """Return 1,797 digits; pixels are scaled so that a row has a mean square length of 1."""
    from sklearn.datasets import load_digits  # it takes a second to import

    X, y = load_digits(return_X_y=True)
    return Dataset(name="digits", X=X / (X**2).sum(axis=1).mean() ** 0.5, labels=y)
