"""Features by what is known of them: numbers by mean and deviation, all of them by how often they came."""

import io
import math
from typing import Any

import msgspec
import numpy as np
import pytest

from rbmle.core.bandit import Bandit
from rbmle.core.types import Contexts, Scales
from rbmle.engine.scaling import CONSTANT, ENOUGH, FULLEST, HORIZON, scaled_values
from rbmle.features import Hashing
from rbmle.features.json_rows import Offered
from rbmle.service.log.records import Decided, OfferedAction, Play, pack_features
from rbmle.service.model.features import contexts_of, read_by_python
from rbmle.service.model.settings import ModelSettings, save_bytes

HASHING = Hashing(bits=8, is_scaled=True)
NAME, OTHER = 2**40 + 5, 2**41 + 5  # in one place of the table, and in one bucket
NAN = math.nan


def scales() -> Scales:
    found = HASHING.start()
    assert found is not None
    return found


def seen(known: Scales, x: float, *, name: int = NAME, is_learning: bool = False) -> float:
    """Return what a network sees of one feature."""
    values = np.array([x])
    one = np.array([1])
    scaled_values(
        np.array([name], np.uint64), one, np.zeros(1, np.int64), known, is_learning, values
    )
    return float(values[0])


def learned(*numbers: float, name: int = NAME) -> Scales:
    known = scales()
    for x in numbers:
        seen(known, x, name=name, is_learning=True)
    return known


def weight(count: int) -> float:
    return math.sqrt(count / (count + ENOUGH))


def test_a_number_is_seen_by_its_distance_from_the_mean_in_deviations() -> None:
    known = learned(1.0, 3.0)  # mean 2, deviation 1
    assert seen(known, 5.0) == pytest.approx(weight(2) * math.asinh(3.0), rel=1e-12)
    assert seen(known, 2.0) == 0.0
    assert seen(known, -1.0) == pytest.approx(-weight(2) * math.asinh(3.0), rel=1e-12)


def test_shift_and_scale_of_a_number_make_no_difference() -> None:
    ages = [16.0, 31.0, 79.0, 44.0]
    plain, other = learned(*ages), learned(*(1e6 - 1e3 * age for age in ages))
    assert seen(other, 1e6 - 1e3 * 25.0) == pytest.approx(-seen(plain, 25.0), rel=1e-6)


def test_the_first_value_of_a_number_and_a_constant_say_nothing() -> None:
    assert seen(learned(7.0), 7.0) == 0.0
    assert seen(learned(*[0.1] * 1000), 0.1) == 0.0
    assert CONSTANT < 1e-20


def test_a_scale_that_drifts_is_followed() -> None:
    known = scales()
    rng = np.random.default_rng(0)
    for x in [*rng.normal(0, 1, 100), *rng.normal(50, 5, 6 * int(HORIZON))]:
        seen(known, float(x), is_learning=True)
    assert seen(known, 55.0) == pytest.approx(weight(int(HORIZON)) * math.asinh(1.0), rel=0.05)


def test_a_feature_counts_more_the_more_often_it_came() -> None:
    known = scales()
    for times in range(1, 6):
        assert seen(known, NAN, is_learning=True) == pytest.approx(weight(times), rel=1e-6)
    assert seen(scales(), NAN) == 0.0  # it never came


def test_names_in_one_place_have_scales_of_their_own() -> None:
    known = learned(1.0, 3.0)
    for x in (100.0, 300.0):
        seen(known, x, name=OTHER, is_learning=True)
    assert known.used.tolist() == [2]
    assert seen(known, 5.0) / seen(known, 500.0, name=OTHER) == pytest.approx(1.0)


def test_numbers_for_which_there_is_no_place_are_seen_by_arcsinh() -> None:
    known = scales()
    most = int(FULLEST * len(known.names))
    for name in range(1, most + 10):
        seen(known, float(name), name=name, is_learning=True)
    assert known.used.tolist() == [most]
    late = most + 5
    count = float(known.counts[late % 256])
    assert seen(known, 3.0, name=late) == pytest.approx(
        math.sqrt(count / (count + ENOUGH)) * math.asinh(3.0), rel=1e-6
    )


def offers(count: int) -> list[Offered]:
    rng = np.random.default_rng(1)
    made = []
    for _ in range(count):
        age, price = int(rng.integers(16, 80)), float(rng.normal())
        context = pack_features([{"user": {"age": age, "at": [price, 2.0]}, "id": f"u{age % 7}"}])
        made.append(Offered([context], ["a"], [pack_features([{"price": price}])]))
    return made


def as_bytes(contexts: Contexts) -> list[bytes]:
    """Return the entries of each row."""
    return [b"".join(part.tobytes() for part in contexts.row(i).rows) for i in range(len(contexts))]


@pytest.mark.parametrize("read", [contexts_of, read_by_python])
def test_calls_are_the_same_together_and_one_by_one(read: Any) -> None:
    sent, together, apart = offers(60), scales(), scales()
    rows = as_bytes(contexts_of(HASHING, sent, together, is_learning=True))
    alone = [as_bytes(read(HASHING, [one], apart, is_learning=True))[0] for one in sent]
    assert rows == alone
    assert all(a.tobytes() == b.tobytes() for a, b in zip(together, apart, strict=True))


def test_deciding_leaves_the_scales_as_they_are() -> None:
    known = scales()
    contexts_of(HASHING, offers(20), known, is_learning=True)
    before = [part.copy() for part in known]
    first, second = (as_bytes(contexts_of(HASHING, offers(20), known)) for _ in range(2))
    assert first == second
    assert all((a == b).all() for a, b in zip(before, known, strict=True))


def play(number: int) -> tuple[Decided, Play]:
    one = Play(eligible=[0, 1], probabilities=[0.5, 0.5], chosen=number % 2)
    actions = [
        OfferedAction(id=id, features=pack_features([{"price": 2.5 * number}])) for id in "ab"
    ]
    context = pack_features([{"age": 16 + 13 * number % 64}])
    return Decided(context=context, actions=actions, plays=[one], digest="", learned=0), one


def small_model() -> ModelSettings:
    return ModelSettings(featuriser=Hashing(bits=8, is_scaled=True), seed=3)


def learn(model: ModelSettings, bandit: Bandit, first: int, last: int) -> None:
    plays = [play(number) for number in range(first, last)]
    contexts = model.chosen_contexts(plays, bandit)
    bandit.learn_all(contexts, [float(number % 3 == 0) for number in range(first, last)])


def test_a_model_that_is_saved_and_loaded_goes_on_to_the_same_bytes() -> None:
    model = small_model()
    whole, begun = model.start(), model.start()
    learn(model, whole, 0, 40)
    learn(model, begun, 0, 17)
    resumed = model.load(save_bytes(begun))
    learn(model, resumed, 17, 40)
    assert save_bytes(resumed) == save_bytes(whole)


def test_a_snapshot_keeps_the_scales_it_was_made_with() -> None:
    model = small_model()
    bandit = model.start()
    learn(model, bandit, 0, 10)
    copy = bandit.snapshot()
    before = as_bytes(model.contexts(offers(5), copy))
    learn(model, bandit, 10, 30)
    assert as_bytes(model.contexts(offers(5), copy)) == before
    assert as_bytes(model.contexts(offers(5), bandit)) != before


def test_settings_from_before_there_were_scales_mean_what_they_meant() -> None:
    written = ModelSettings(featuriser=Hashing(bits=8)).to_json()
    for name in ("is_scaled",):
        del written["featuriser"][name]
    del written["sharpness"]
    model = ModelSettings.from_json(msgspec.json.decode(msgspec.json.encode(written)))
    assert not model.featuriser.is_scaled
    assert model.sharpness == 0.0
    assert model.start().learner.scales is None


def test_a_file_without_scales_is_no_file_of_a_scaled_model() -> None:
    model = small_model()
    plain = Bandit(model.policy, features=256, seed=3, encoding="per-arm", draws=128)
    with pytest.raises(Exception, match="features"):
        model.load(save_bytes(plain))
    assert isinstance(Bandit.load(io.BytesIO(save_bytes(plain))), Bandit)
