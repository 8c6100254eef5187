"""Preprocessing, by hand: the column `unit` is 0/1, and shows by what all rows were multiplied."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rbmle.datasets import PREPROCESSINGS, DatasetError, load, online
from rbmle.datasets.preprocessing import preprocess
from rbmle.datasets.preprocessing import standard as encoded
from rbmle.environments import Classification
from tests.datasets.samples import soft, standard, table


def test_numbers_are_centred_at_the_median_and_scaled_by_their_quartiles() -> None:
    """Median 2, quartiles 1 and 3: z = (x − 2) / (2 / 1.349), and then the soft bound."""
    X = standard(a=[0, 1, 2, 3, 4])
    np.testing.assert_allclose(X[:, 0], soft(1.349 / 2 * np.array([-2, -1, 0, 1, 2])), rtol=1e-6)


def test_numbers_are_also_given_by_rank() -> None:
    """Shares 0.1, 0.3, 0.5, 0.7, 0.9, less ½, times √12, whatever the distances are."""
    for last in (4, 1e300):
        X = standard(a=[2, 0, 3, 1, last])
        np.testing.assert_allclose(
            X[:, 1], 12**0.5 * np.array([0, -0.4, 0.2, -0.2, 0.4]), rtol=1e-6
        )


def test_equal_numbers_share_the_middle_of_their_ranks() -> None:
    """Four 5s have the shares 0 … 0.8, middle 0.4; the 9 has 0.8 … 1, middle 0.9."""
    X = standard(a=[5, 5, 9, 5, 5])
    np.testing.assert_allclose(
        X[:, 1], 12**0.5 * np.array([-0.1, -0.1, 0.4, -0.1, -0.1]), rtol=1e-6
    )


def test_ranks_of_many_numbers_have_the_variance_one() -> None:
    X = standard(a=np.random.default_rng(0).normal(size=1000))
    assert X[:, 1].var() == pytest.approx(1.0, abs=1e-4)
    assert 1.72 < X[:, 1].max() < 3**0.5


@pytest.mark.parametrize("huge", [1e10, 1e300, np.finfo(np.float64).max])
def test_outliers_are_bounded_by_three(huge: float) -> None:
    z = soft(np.array([-1.349, -0.6745, 0, 0.6745]))
    np.testing.assert_allclose(standard(a=[0, 1, 2, 3, huge])[:, 0], [*z, 3], rtol=1e-6)
    np.testing.assert_allclose(standard(a=[0, -1, -2, -3, -huge])[:, 0], [*-z, -3], rtol=1e-6)


def test_the_soft_bound_keeps_the_order() -> None:
    """A clip makes all of 3 and beyond one number; 4 and 10 deviations stay two."""
    steps = standard(a=np.linspace(-10, 10, 101) ** 3)
    assert (np.diff(steps[:, 0]) > 0).all()
    wild = standard(a=np.sort(np.random.default_rng(0).standard_cauchy(10_000)) ** 5)
    assert (np.diff(wild[:, 0]) >= 0).all()
    assert (np.diff(wild[:, 1]) > 0).all()
    assert np.abs(wild[:, 0]).max() <= 3 * (1 + 1e-6)


def test_equal_quartiles_give_way_to_the_standard_deviation() -> None:
    """Mean 0.8, variance 2.56, deviation 1.6: z = 4 / 1.6 = 2.5, and 2.5/√(1 + 25/36) = 15/√61."""
    X = standard(a=[0, 0, 0, 0, 4])
    np.testing.assert_allclose(X[:, 0], [0, 0, 0, 0, 15 / 61**0.5], rtol=1e-6)


def test_a_missing_number_is_zero_by_value_and_by_rank_and_is_shown() -> None:
    """Median, scale and ranks are those of the others."""
    X = standard(a=[0, 1, np.nan, 2, 3, 4], b=[0.0, 1, 1, np.nan, 0, 1])
    z = soft(1.349 / 2 * np.array([1, 2]))
    np.testing.assert_allclose(X[:, 0], [-z[1], -z[0], 0, 0, z[0], z[1]], rtol=1e-6)
    np.testing.assert_allclose(X[:, 1], 12**0.5 * np.array([-0.4, -0.2, 0, 0, 0.2, 0.4]), rtol=1e-6)
    np.testing.assert_array_equal(X[:, 2], [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(X[:, 3], [0, 1, 1, 0, 0, 1])
    np.testing.assert_array_equal(X[:, 4], [0, 0, 0, 1, 0, 0])
    assert X.shape == (6, 6)


def test_categories_are_one_hot_and_missing_is_one_of_them() -> None:
    X = standard(c=["b", "?", "a", None, "missing", "b"])
    np.testing.assert_array_equal(
        X[:, :3], [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 1, 0]]
    )


def test_zeros_and_ones_stay_and_constants_go() -> None:
    X = standard(a=[0, 1, 1], b=[7, 7, 7], c=["x", "x", "x"], d=[True, False, False], e=[None] * 3)
    np.testing.assert_array_equal(X[:, :2], [[0, 1], [1, 0], [1, 0]])
    assert X.shape == (3, 3)


def test_a_constant_with_gaps_is_only_its_gaps() -> None:
    np.testing.assert_array_equal(standard(a=[1, np.nan, 1])[:, 0], [0, 1, 0])


def test_a_constant_has_half_of_the_mean_squared_length_and_the_features_the_other() -> None:
    """Of 0, 1, 1, 1 the mean square is ¾, and √(½ / ¾) = √⅔."""
    X = preprocess(table(a=[0, 1, 1, 1]), "standard").X
    np.testing.assert_allclose(X[:, 0], (2 / 3) ** 0.5 * np.array([0, 1, 1, 1]), rtol=1e-6)
    np.testing.assert_allclose(X[:, 1], [0.5**0.5] * 4, rtol=1e-7)
    assert X.shape == (4, 2)


def test_all_features_have_one_scale() -> None:
    """Rows keep their different lengths."""
    X = preprocess(table(a=[0, 1, 2, 3, 4], b=[0, 0, 0, 1, 1]), "standard").X
    z, share = soft(1.349 / 2 * np.array([1, 2])), 12**0.5 * np.array([0.2, 0.4])
    total = 2 * (z**2).sum() + 2 * (share**2).sum() + 2
    scale = (total / 5 * 2) ** -0.5
    np.testing.assert_allclose(X[4], [scale * z[1], scale * share[1], scale, 0.5**0.5], rtol=1e-6)
    np.testing.assert_allclose(X[2], [0, 0, 0, 0.5**0.5], rtol=1e-6)


@pytest.mark.parametrize("kind", [np.uint8, np.int64])
def test_images_have_length_two(kind: type) -> None:
    pixels: np.ndarray = np.random.default_rng(0).integers(0, 256, (30, 70)).astype(kind)
    pixels[0, 0] = 0
    pixels[:, 5] = 0
    pixels[:, 6] //= 32  # a dark one stays dark
    pixels[7] = 0  # a black image stays black
    X = preprocess(table(**{f"p{i}": pixels[:, i] for i in range(70)}), "standard").X
    lit = np.delete(pixels, 5, axis=1).astype(float)
    length = np.maximum((lit**2).sum(axis=1, keepdims=True) ** 0.5, 1)
    np.testing.assert_allclose(X[:, :-1], 2 * lit / length, rtol=1e-6)
    np.testing.assert_allclose(X[:, -1], 0.5**0.5, rtol=1e-7)


def test_integers_of_different_scales_are_not_an_image() -> None:
    X = standard(**{f"c{i}": [0, 1, 2, 3, 250 if i < 9 else 4] for i in range(70)})
    last = X[:, 2 * 69]  # each is there by value and by rank
    np.testing.assert_allclose(last, soft(1.349 / 2 * np.array([-2, -1, 0, 1, 2])), rtol=1e-6)


def test_paired_rows_are_those_of_the_paper_twice_at_the_same_length() -> None:
    X = preprocess(table(a=[3.0, 1.0], c=["z", "y"]), "paired").X
    np.testing.assert_allclose(X[0], np.array([3, 1, 3, 1]) / 20**0.5, rtol=1e-6)
    np.testing.assert_allclose(X[1], np.array([1, 0, 1, 0]) / 2**0.5, rtol=1e-6)


def test_the_paper_has_codes_minus_ones_and_rows_of_length_one() -> None:
    X = preprocess(
        table(
            a=[3.0, np.nan, 0.0, 1e300],
            c=["z", "y", "x", "?"],
            d=pd.Categorical(
                ["q", "missing", "p", None], categories=["unused", "q", "p", "missing"]
            ),
        ),
        "paper",
    ).X
    np.testing.assert_allclose(
        X,
        [
            np.array([3, 2, 1]) / 14**0.5,
            np.array([-1, 1, -1]) / 3**0.5,
            np.array([0, 0, 0]),
            np.array([1, 0, 0]),
        ],
        rtol=1e-6,
    )


@pytest.mark.parametrize("method", PREPROCESSINGS)
def test_labels_have_no_say_in_features(method: str) -> None:
    one = table(a=[0, 1, 5, 3], c=["x", "y", "y", "z"])
    other = replace(one, labels=one.labels[::-1])
    X = preprocess(one, method).X
    np.testing.assert_array_equal(X, preprocess(other, method).X)
    assert X.dtype == np.float32
    assert X.flags.c_contiguous


def test_online_features_are_those_of_the_rows_so_far() -> None:
    """Fitted in rounds 0, 1, 2 and 4, to what has come and the row at hand."""
    frame = table(a=[0, 1, 2, 3, 4], c=["x", "y", "y", "x", "y"]).frame
    order = np.array([2, 0, 4, 1, 3])
    X = online(frame, order)
    so_far = frame.iloc[order[:3]]  # 2, 0, 4, when row 4 comes
    np.testing.assert_allclose(X[4, :2], encoded(so_far)[2, :2], rtol=1e-6)
    np.testing.assert_allclose(X[3], encoded(frame)[3], rtol=1e-6)  # the last one has seen all
    assert X[2, :2].tolist() == [0, 0]  # nothing is known of the first one's size
    assert X.shape == encoded(frame).shape
    later = frame.assign(a=[0, -50, 2, 3, 4])  # row 1 comes fourth
    np.testing.assert_allclose(online(later, order)[[2, 0, 4]], X[[2, 0, 4]], rtol=1e-6)


def test_online_features_of_images_need_nothing_fitted() -> None:
    images = load("digits", preprocessing="online")
    assert images.frame is not None
    order = np.arange(len(images.labels))[::-1]
    np.testing.assert_array_equal(online(images.frame, order), images.X)


def test_an_environment_prepares_rows_as_its_seed_orders_them() -> None:
    world = Classification(dataset="magic", preprocessing="online")
    rounds = [world.round(3, seed=seed).x for seed in (0, 1, 0)]
    np.testing.assert_array_equal(rounds[0], rounds[2])
    assert len(rounds[0]) == world.features
    assert world.settings["preprocessing"] == "online"
    assert not np.array_equal(rounds[0], Classification(dataset="magic").round(3, seed=0).x)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1, 1, 1]}, "no feature varies: all 1 columns are constant"),
        ({"a": [1.0, np.inf, 2.0]}, "column 'a' is inf in row 2; expected finite"),
        (
            {"key": [f"row {i}" for i in range(1001)]},
            "column 'key' has 1001 categories.*--drop key",
        ),
    ],
)
def test_features_that_cannot_be_scaled_are_refused(columns: Any, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        preprocess(table(**columns), "standard")
