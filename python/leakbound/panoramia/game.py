"""The game of one seed: parts, training of baseline and attacks, coins, scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
    both = members, others
    rows = parts.drawn(len(members), Purpose.GAME_MEMBERS, seed)
    other_rows = parts.drawn(len(others), Purpose.GAME_OTHERS, seed)
    lesson, validation, tested = zip(rows, other_rows, strict=True)
    device = options.device or "cpu"

    def fit(target: str | None, pairs: int | None = None, ready: object = None) -> FittedAttack:
        first_pairs = lesson[0][:pairs], lesson[1][:pairs]
        return options.attack.fit(
            _sample(both, rows=first_pairs, target=target),
            _sample(both, rows=validation, target=target),
            seed=seed,
            level=shares.RANKINGS.of(complement(options.confidence), 2),
            cuts=options.cuts,
            device=device,
            prepared=ready,
        )

    # 2. Baselines, which do not use a target, and an attack on each target.
    fitted = dict[str, tuple[FittedAttack, str | None]]()
    # further baselines learn from fewer pairs
    for size in sizes:
        tick(f"seed {seed}: a baseline from {2 * size:,} examples")
        fitted[f"baseline-{size}"] = fit(None, size), None
    tick(f"seed {seed}: the baseline")
    ready = options.attack.prepare(
        _sample(both, rows=lesson, target=None),
        _sample(both, rows=validation, target=None),
        seed=seed,
        device=device,
    )
    fitted["baseline"] = fit(None, ready=ready), None
    for name in members.targets:
        tick(f"seed {seed}: the attack on {name}")
        fitted[f"attack-{name}"] = fit(name, ready=ready), name
    # 3. Coins, once training is over: they show one example of each pair.
    coins = Purpose.GAME_COINS.rng(seed).random(parts.test) < 0.5
    row_of_coin = np.arange(coins.size) + np.where(coins, 0, coins.size)
    scores = {}
    for key, (attack, target) in fitted.items():
        test = _sample(both, rows=tested, target=target)
        scores[key] = attack.score(test.examples.take(row_of_coin), test.signals[row_of_coin])
    mine, theirs = tested
    return {
        "rows": mine,
        "others": theirs,
        "coins": coins,
        "baseline-validation": fitted["baseline"][0].validation,
        **scores,
        **_falls(both, rows=tested, coins=coins),
    }


def _falls(sides: tuple[Side, Side], rows: tuple[IntArray, IntArray], coins: BoolArray) -> Arrays:
    """Return how far the losses of the examples shown fell, by target."""
    members, others = sides
    mine, theirs = rows
    return {
        f"losses-{name}": np.where(coins, falls[mine], others.falls[name][theirs])
        for name, falls in members.falls.items()
    }


def _sample(
    sides: tuple[Side, Side], rows: tuple[IntArray, IntArray], target: str | None
) -> Sample:
    """Return pairs as the attack on a target sees them, members first."""
    members, others = sides
    mine, theirs = rows
    return Sample(
        examples=members.examples.take(mine).joined(others.examples.take(theirs)),
        signals=np.concatenate([members.signals(target, mine), others.signals(target, theirs)]),
        member=np.repeat([True, False], mine.size),
    )
