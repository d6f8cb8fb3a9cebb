"""The game of one seed: parts, training of baseline and attacks, coins, scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from leakbound._base.files import Arrays
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.cuts import CutPolicy
from leakbound.errors import IncompatibleOptionsError
from leakbound.panoramia.examples import Examples, Sample
from leakbound.panoramia.models.attack import StackedAttack
from leakbound.panoramia.models.stacking import FittedAttack

LEAST = 20
"""Fewest pairs in a part."""


@dataclass(frozen=True, eq=False)
class Side:
    """Members, or non-members, and what each model says of them."""

    examples: Examples
    helper: FloatArray
    targets: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.examples)

    def take(self, rows: IntArray | slice) -> "Side":
        """Return some of the examples, with what models say of them."""
        targets = {name: values[rows] for name, values in self.targets.items()}
        return Side(self.examples.take(rows), self.helper[rows], targets)

    @property
    def table(self) -> FloatArray:
        """What is known of each example without a target, as columns."""
        parts = [self.examples.x, self.helper]
        if self.examples.y is not None:
            parts.append(self.examples.y)
        return np.column_stack([part.reshape(len(self), -1) for part in parts]).astype(np.float64)

    def signals(self, target: str | None) -> FloatArray:
        """Return what the baseline sees, or the attack on a target."""
        if target is None:
            return self.helper
        return np.concatenate([self.helper, self.targets[target]], axis=1)


@dataclass(frozen=True)
class Parts:
    """How many pairs train, choose and are audited."""

    train: int
    validation: int
    test: int

    @property
    def all(self) -> int:
        """All pairs."""
        return self.train + self.validation + self.test

    def within(self, pairs: int) -> "Parts":
        """Return these parts, or the same shares of fewer pairs."""
        if pairs >= self.all:
            return self
        train, validation = (pairs * part // self.all for part in (self.train, self.validation))
        return Parts(train, validation, pairs - train - validation)

    def check(self) -> None:
        """Check that no part is too small."""
        if min(self.train, self.validation, self.test) < LEAST:
            message = (
                f"every part needs at least {LEAST} pairs, got {self}; pass more members and "
                "non-members, or other shares"
            )
            raise IncompatibleOptionsError(message)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Members and as many non-members."""

    members: Side
    others: Side

    def first(self, pairs: int) -> "_Pairs":
        return _Pairs(self.members.take(slice(pairs)), self.others.take(slice(pairs)))

    def sample(self, target: str | None) -> Sample:
        """Return all of them, as an attack on the target learns from them."""
        both = (self.members, self.others)
        return Sample(
            self.members.examples.joined(self.others.examples),
            np.concatenate([side.signals(target) for side in both]),
            np.repeat([True, False], len(self.members)),
        )

    def scores(self, attack: FittedAttack, target: str | None, coins: BoolArray) -> FloatArray:
        """Return the scores of what the coins show."""
        sample = self.sample(target)
        shown = np.arange(coins.size) + np.where(coins, 0, coins.size)
        return attack.score(sample.examples.take(shown), sample.signals[shown])

    def all_scores(self, attack: FittedAttack) -> FloatArray:
        """Return a baseline's scores of all members, then of all non-members."""
        sample = self.sample(None)
        return attack.score(sample.examples, sample.signals)


@dataclass(frozen=True)
class Game:
    """Members against non-members, for one seed."""

    attack: StackedAttack
    parts: Parts
    sizes: tuple[int, ...]
    level: float
    cuts: CutPolicy
    seed: int

    def play(self, members: Side, others: Side, tick: Callable[[str], None]) -> Arrays:
        """Train baseline and attacks, then toss the coins and score what they show."""
        rows = self._drawn(len(members), Purpose.GAME_MEMBERS)
        other_rows = self._drawn(len(others), Purpose.GAME_OTHERS)
        train, validation, test = (
            _Pairs(members.take(one), others.take(two))
            for one, two in zip(self._split(rows), self._split(other_rows), strict=True)
        )
        trained: dict[str, tuple[FittedAttack, str | None]] = {}
        for size in self.sizes:
            tick(f"seed {self.seed}: a baseline from {2 * size:,} examples")
            trained[f"baseline-{size}"] = self._fit(train.first(size), validation, None), None
        tick(f"seed {self.seed}: the baseline")
        prepared = self.attack.prepare(train.sample(None), validation.sample(None), seed=self.seed)
        trained["baseline"] = self._fit(train, validation, None, prepared), None
        for name in members.targets:
            tick(f"seed {self.seed}: the attack on {name}")
            trained[f"attack-{name}"] = self._fit(train, validation, name, prepared), name
        coins = Purpose.GAME_COINS.rng(self.seed).random(self.parts.test) < 0.5
        return {
            "rows": self._split(rows)[2],
            "others": self._split(other_rows)[2],
            "coins": coins,
            "baseline-validation": validation.all_scores(trained["baseline"][0]),
            **{key: test.scores(one, target, coins) for key, (one, target) in trained.items()},
        }

    def _drawn(self, examples: int, purpose: Purpose) -> IntArray:
        order = purpose.rng(self.seed).permutation(examples)
        return order[: self.parts.all]

    def _split(self, rows: IntArray) -> list[IntArray]:
        return np.split(rows, np.cumsum([self.parts.train, self.parts.validation]))

    def _fit(
        self, train: _Pairs, validation: _Pairs, target: str | None, prepared: object = None
    ) -> FittedAttack:
        return self.attack.fit(
            train.sample(target),
            validation.sample(target),
            seed=self.seed,
            level=self.level,
            cuts=self.cuts,
            prepared=prepared,
        )
