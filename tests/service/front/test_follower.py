"""A front end rehearses with a model before it decides with it."""

from pathlib import Path

from rbmle.features import Hashing
from rbmle.policies.registry import policy_with
from rbmle.service.front.front_end import Follower
from rbmle.service.learner.start import begin
from rbmle.service.log import open_log, open_publications
from rbmle.service.log.base import origin_of
from rbmle.service.log.publications import MODEL
from rbmle.service.model.published import Published, encode, initial_model
from rbmle.service.model.settings import ModelSettings
from tests.services import small_start


def test_a_model_of_new_settings_is_rehearsed_before_it_decides(tmp_path: Path) -> None:
    place = str(tmp_path / "log.db")
    log, publications = open_log(place), open_publications(place)
    begin(log, small_start(tmp_path), lambda message: None)
    steps: list[tuple[str, ModelSettings | None]] = []

    def deciding() -> ModelSettings | None:
        return None if follower.published is None else follower.published.model

    def rehearse(published: Published) -> None:
        steps.append(("rehearse", deciding()))

    follower = Follower(
        log, publications, lambda: None, rehearse, lambda: steps.append(("warm", deciding()))
    )
    follower._look()
    assert steps == [("rehearse", None)]  # with the log's model, while nothing is published
    first = ModelSettings(policy=policy_with("uniform", ""), featuriser=Hashing(bits=6))
    second = ModelSettings(policy=policy_with("uniform", ""), featuriser=Hashing(bits=7))
    for model in (first, first, second):
        publications.put(MODEL, encode(initial_model(model), origin_of(log)))
        follower._look()
    assert steps[1:] == [("rehearse", None), ("warm", first), ("rehearse", first), ("warm", second)]
    publications.close()
    log.close()
