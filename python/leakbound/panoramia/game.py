"""The game of one seed: parts, training of baseline and attacks, coins, scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import complement
from leakbound._base.files import Arrays
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.errors import OptionError
from leakbound.panoramia.examples import Examples, Sample
from leakbound.panoramia.models.attack import FittedAttack
from leakbound.panoramia.options import Options

LEAST = 20  # pairs in a part: with fewer, no bound is above 0 and no model worth its choice


@dataclass(frozen=True, eq=False)
class Side:
    """Members or non-members, the outputs of each model, and how far its losses fell."""

    examples: Examples
    helper: FloatArray
    targets: Mapping[str, FloatArray]
    falls: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def table(self) -> FloatArray:
        """What is known of each example without a target, as columns."""
        parts = [self.examples.x, self.helper]
        if self.examples.y is not None:
            parts.append(self.examples.y)
        return np.column_stack([part.reshape(len(self), -1) for part in parts]).astype(np.float64)

    def signals(self, target: str | None, rows: IntArray) -> FloatArray:
        """Return what the baseline sees of some examples, or the attack on a target."""
        helper = self.helper[rows]
        if target is None:
            return helper
        return np.concatenate([helper, self.targets[target][rows]], axis=1)


@dataclass(frozen=True)
class Parts:
    """Numbers of pairs for training, validation and the audit."""

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
        return Parts(train=train, validation=validation, test=pairs - train - validation)

    def check(self) -> None:
        """Check that no part is too small."""
        if min(self.train, self.validation, self.test) < LEAST:
            raise OptionError(
                f"every part needs at least {LEAST} pairs, got {self}: pass more members"
            )

    def drawn(self, examples: int, purpose: Purpose, seed: int) -> list[IntArray]:
        """Return rows for each part, drawn at random."""
        order = purpose.rng(seed).permutation(examples)[: self.all]
        return np.split(order, np.cumsum([self.train, self.validation]))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of a member and another example: their rows on either side."""

    members: Side
    others: Side
    mine: IntArray
    theirs: IntArray

    def first(self, count: int) -> "Pairs":
        """Return so many of the pairs."""
        return replace(self, mine=self.mine[:count], theirs=self.theirs[:count])

    def seen(self, target: str | None = None) -> Sample:
        """Return both examples of each pair as the attack on a target sees them, members first.

        Without a target, as the baseline sees them.
        """
        members = self.members.examples.take(self.mine)
        others = self.others.examples.take(self.theirs)
        signals = [
            self.members.signals(target, self.mine),
            self.others.signals(target, self.theirs),
        ]
        return Sample(
            examples=members.joined(others),
            signals=np.concatenate(signals),
            member=np.repeat([True, False], self.mine.size),
        )

    def falls(self, coins: BoolArray) -> Arrays:
        """Return how far the losses of the examples shown fell, by target."""
        fell = {}
        for name, mine in self.members.falls.items():
            theirs = self.others.falls[name]
            fell[f"losses-{name}"] = np.where(coins, mine[self.mine], theirs[self.theirs])
        return fell


def play(
    members: Side,
    others: Side,
    parts: Parts,
    sizes: tuple[int, ...],
    options: Options,
    *,
    seed: int,
    tick: Callable[[str], None],
) -> Arrays:
    """Train baseline and attacks, then flip the coins and score the examples shown."""
    # 1. Pairs that train, choose and are audited.
    rows = parts.drawn(len(members), Purpose.GAME_MEMBERS, seed)
    other_rows = parts.drawn(len(others), Purpose.GAME_OTHERS, seed)
    lesson, validation, tested = (
        Pairs(members, others, mine, theirs) for mine, theirs in zip(rows, other_rows, strict=True)
    )
    # 2. Training.
    baselines, attacks = _trained(lesson, validation, sizes, options, seed=seed, tick=tick)
    # 3. Coins, once training is over: they show one example of each pair.
    coins = Purpose.GAME_COINS.rng(seed).random(parts.test) < 0.5
    shown = np.arange(coins.size) + np.where(coins, 0, coins.size)

    def scores(attack: FittedAttack, target: str | None = None) -> FloatArray:
        test = tested.seen(target)
        return attack.score(test.examples.take(shown), test.signals[shown])

    return {
        "rows": tested.mine,
        "others": tested.theirs,
        "coins": coins,
        "baseline-validation": baselines["baseline"].validation,
        **{name: scores(baseline) for name, baseline in baselines.items()},
        **{f"attack-{target}": scores(attack, target) for target, attack in attacks.items()},
        **tested.falls(coins),
    }


def _trained(
    lesson: Pairs,
    validation: Pairs,
    sizes: tuple[int, ...],
    options: Options,
    *,
    seed: int,
    tick: Callable[[str], None],
) -> tuple[dict[str, FittedAttack], dict[str, FittedAttack]]:
    """Return baselines, which do not use a target, and an attack on each target."""
    device = options.device or "cpu"

    def fit(pairs: Pairs, target: str | None = None, ready: object = None) -> FittedAttack:
        return options.attack.fit(
            pairs.seen(target),
            validation.seen(target),
            seed=seed,
            level=shares.RANKINGS.of(complement(options.confidence), 2),
            cuts=options.cuts,
            device=device,
            prepared=ready,
        )

    baselines = {}
    for size in sizes:  # further baselines learn from fewer pairs
        tick(f"seed {seed}: a baseline from {2 * size:,} examples")
        baselines[f"baseline-{size}"] = fit(lesson.first(size))
    tick(f"seed {seed}: the baseline")
    ready = options.attack.prepare(lesson.seen(), validation.seen(), seed=seed, device=device)
    baselines["baseline"] = fit(lesson, ready=ready)
    attacks = {}
    for target in lesson.members.targets:
        tick(f"seed {seed}: the attack on {target}")
        attacks[target] = fit(lesson, target, ready)
    return baselines, attacks
