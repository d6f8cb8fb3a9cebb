"""The game of one seed: parts, training of baseline and attacks, coins, scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from leakbound._base.files import Arrays
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.cuts import CutPolicy
from leakbound.errors import OptionError
from leakbound.panoramia.examples import Examples, Sample
from leakbound.panoramia.models.attack import StackedAttack
from leakbound.panoramia.models.stacking import FittedAttack

LEAST = 20  # pairs in a part: with fewer, no bound is above 0 and no model worth its choice


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
            message = f"every part needs at least {LEAST} pairs, got {self}: pass more members"
            raise OptionError(message)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Members and as many non-members."""

    members: Side
    others: Side

    def first(self, pairs: int) -> "_Pairs":
        return _Pairs(self.members.take(slice(pairs)), self.others.take(slice(pairs)))

    def sample(self, target: str | None) -> Sample:
        """Return all of them, as an attack on the target learns from them."""
        return Sample(
            self.members.examples.joined(self.others.examples),
            np.concatenate([side.signals(target) for side in (self.members, self.others)]),
            np.repeat([True, False], len(self.members)),
        )

    def scores(
        self, attack: FittedAttack, target: str | None, coins: BoolArray | None = None
    ) -> FloatArray:
        """Return scores of what the coins show; or of all members, then of all non-members."""
        sample = self.sample(target)
        if coins is None:
            return attack.score(sample.examples, sample.signals)
        rows = np.arange(coins.size) + np.where(coins, 0, coins.size)
        return attack.score(sample.examples.take(rows), sample.signals[rows])


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
        # 1. Pairs that train, choose and are audited.
        rows = self._divided(len(members), Purpose.GAME_MEMBERS)
        other_rows = self._divided(len(others), Purpose.GAME_OTHERS)
        train, validation, test = (
            _Pairs(members.take(one), others.take(other))
            for one, other in zip(rows, other_rows, strict=True)
        )

        # 2. Baselines, which know no target, and an attack on each.
        def fit(part: _Pairs, target: str | None, prepared: object = None) -> FittedAttack:
            return self.attack.fit(
                part.sample(target),
                validation.sample(target),
                seed=self.seed,
                level=self.level,
                cuts=self.cuts,
                prepared=prepared,
            )

        fitted = dict[str, tuple[FittedAttack, str | None]]()
        for size in self.sizes:
            tick(f"seed {self.seed}: a baseline from {2 * size:,} examples")
            fitted[f"baseline-{size}"] = fit(train.first(size), None), None
        tick(f"seed {self.seed}: the baseline")
        prepared = self.attack.prepare(train.sample(None), validation.sample(None), seed=self.seed)
        fitted["baseline"] = fit(train, None, prepared), None
        for name in members.targets:
            tick(f"seed {self.seed}: the attack on {name}")
            fitted[f"attack-{name}"] = fit(train, name, prepared), name
        # 3. Coins, when nothing is left to train.
        coins = Purpose.GAME_COINS.rng(self.seed).random(self.parts.test) < 0.5
        return {
            "rows": rows[2],
            "others": other_rows[2],
            "coins": coins,
            "baseline-validation": validation.scores(*fitted["baseline"]),
            **{key: test.scores(attack, name, coins) for key, (attack, name) in fitted.items()},
        }

    def _divided(self, examples: int, purpose: Purpose) -> list[IntArray]:
        """Return rows for each part, drawn at random."""
        order = purpose.rng(self.seed).permutation(examples)[: self.parts.all]
        return np.split(order, np.cumsum([self.parts.train, self.parts.validation]))
