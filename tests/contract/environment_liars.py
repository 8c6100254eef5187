"""Environments that break one promise each; the contract must catch them all."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rbmle.core.types import Encoding
from rbmle.environments import Round, Synthetic
from tests.contract import environment_promises as promises


@dataclass(kw_only=True)
class Honest:
    """A problem that keeps every promise: the liars differ from it in one line."""

    world: Synthetic = field(default_factory=lambda: Synthetic(function="quadratic"))

    @property
    def arms(self) -> int:
        return self.world.arms

    @property
    def features(self) -> int:
        return self.world.features

    @property
    def encoding(self) -> Encoding:
        return self.world.encoding

    @property
    def rows(self) -> int | None:
        return self.world.rows

    @property
    def settings(self) -> dict[str, Any]:
        return self.world.settings

    def round(self, t: int, seed: int) -> Round:
        return self.world.round(t, seed)


class DrawsFromNowhere(Honest):
    def round(self, t: int, seed: int) -> Round:
        return self.world.round(t, int(np.random.default_rng().integers(10**9)))


class IgnoresTheSeed(Honest):
    def round(self, t: int, seed: int) -> Round:
        return self.world.round(t, 0)


class NeverMovesOn(Honest):
    def round(self, t: int, seed: int) -> Round:
        return self.world.round(0, seed)


@dataclass(kw_only=True)
class CountsItsCalls(Honest):
    calls: int = 0

    def round(self, t: int, seed: int) -> Round:
        self.calls += 1
        return self.world.round(self.calls, seed)


class HidesAnArm(Honest):
    def round(self, t: int, seed: int) -> Round:
        offer = self.world.round(t, seed)
        return replace(offer, rewards=offer.rewards[1:], means=offer.means[1:])


class SharesAContext(Honest):
    def round(self, t: int, seed: int) -> Round:
        offer = self.world.round(t, seed)
        return replace(offer, x=offer.x[0])


class OverflowsNowAndThen(Honest):
    def round(self, t: int, seed: int) -> Round:
        offer = self.world.round(t, seed)
        return replace(offer, rewards=offer.rewards + (math.inf if t == 400 else 0.0))


class PromisesTooMuch(Honest):
    def round(self, t: int, seed: int) -> Round:
        offer = self.world.round(t, seed)
        return replace(offer, means=1.5 * offer.means)


class SwapsMeans(Honest):
    def round(self, t: int, seed: int) -> Round:
        offer = self.world.round(t, seed)
        return replace(offer, means=np.roll(offer.means, 1))


class StatesAnArray(Honest):
    @property
    def settings(self) -> dict[str, Any]:
        return self.world.settings | {"a": np.ones(self.features)}


class ForgetsItsNoise(Honest):
    @property
    def settings(self) -> dict[str, Any]:
        return {k: v for k, v in self.world.settings.items() if k != "deviation"}


@dataclass(kw_only=True)
class HoldsAFunction(Honest):
    h: Callable[[float], float] = field(default_factory=lambda: lambda x: math.cos(3 * x))


@dataclass(kw_only=True)
class KeepsItsRounds(Honest):
    kept: dict[tuple[int, int], Round] = field(default_factory=dict)

    def round(self, t: int, seed: int) -> Round:
        return self.kept.setdefault((t, seed), self.world.round(t, seed))


class TellsTheMeans(Honest):
    def round(self, t: int, seed: int) -> Round:
        offer = self.world.round(t, seed)
        return replace(offer, x=np.column_stack([offer.x[:, 1:], 1 - 2 * offer.means]))


class TellsTheRewards(Honest):
    def round(self, t: int, seed: int) -> Round:
        offer = self.world.round(t, seed)
        return replace(offer, x=np.column_stack([offer.rewards, offer.x[:, 1:]]))


LIARS: tuple[tuple[type[Honest], promises.Promise], ...] = (
    (DrawsFromNowhere, promises.rounds_are_a_function_of_t_and_seed),
    (IgnoresTheSeed, promises.rounds_are_a_function_of_t_and_seed),
    (NeverMovesOn, promises.rounds_are_a_function_of_t_and_seed),
    (CountsItsCalls, promises.rounds_come_in_any_order),
    (HidesAnArm, promises.rounds_have_the_stated_shape),
    (SharesAContext, promises.rounds_have_the_stated_shape),
    (OverflowsNowAndThen, promises.numbers_are_finite),
    (PromisesTooMuch, promises.means_are_the_expected_rewards),
    (SwapsMeans, promises.means_are_the_expected_rewards),
    (StatesAnArray, promises.settings_are_json),
    (ForgetsItsNoise, promises.settings_determine_the_problem),
    (HoldsAFunction, promises.it_can_be_sent_to_another_process),
    (KeepsItsRounds, promises.a_reader_cannot_change_a_round),
    (TellsTheMeans, promises.what_is_seen_does_not_tell_what_is_paid),
    (TellsTheRewards, promises.what_is_seen_does_not_tell_what_is_paid),
)
