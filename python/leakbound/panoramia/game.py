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
        known = [self.examples.x, self.helper]
        if self.examples.y is not None:
            known.append(self.examples.y)
        columns = [values.reshape(len(self), -1) for values in known]
        return np.column_stack(columns).astype(np.float64)

    def signals(self, target: str | None, rows: IntArray) -> FloatArray:
        """Return what the baseline sees of some examples, or the attack on a target."""
        helper_outputs = self.helper[rows]
        if target is None:
            return helper_outputs
        target_outputs = self.targets[target][rows]
        return np.concatenate([helper_outputs, target_outputs], axis=1)


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
        train = pairs * self.train // self.all
        validation = pairs * self.validation // self.all
        return Parts(train=train, validation=validation, test=pairs - train - validation)

    def check(self) -> None:
        """Check that no part is too small."""
        if min(self.train, self.validation, self.test) < LEAST:
            raise OptionError(
                f"every part needs at least {LEAST} pairs, got {self}: pass more members"
            )

    def drawn(self, examples: int, purpose: Purpose, seed: int) -> list[IntArray]:
        """Return rows for each part, drawn at random."""
        shuffled_rows = purpose.rng(seed).permutation(examples)
        part_ends = np.cumsum([self.train, self.validation])
        return np.split(shuffled_rows[: self.all], part_ends)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of a member and another example: their rows on either side."""

    members: Side
    others: Side
    member_rows: IntArray
    other_rows: IntArray

    def first(self, count: int) -> "Pairs":
        """Return so many of the pairs."""
        return replace(
            self,
            member_rows=self.member_rows[:count],
            other_rows=self.other_rows[:count],
        )

    def seen(self, target: str | None = None) -> Sample:
        """Return both examples of each pair as the attack on a target sees them, members first.

        Without a target, as the baseline sees them.
        """
        members = self.members.examples.take(self.member_rows)
        others = self.others.examples.take(self.other_rows)
        member_signals = self.members.signals(target, self.member_rows)
        other_signals = self.others.signals(target, self.other_rows)
        return Sample(
            examples=members.joined(others),
            signals=np.concatenate([member_signals, other_signals]),
            member=np.repeat([True, False], self.member_rows.size),
        )

    def falls(self, coins: BoolArray) -> Arrays:
        """Return how far the losses of the examples shown fell, by target."""
        falls_shown = {}
        for target, member_falls in self.members.falls.items():
            of_members = member_falls[self.member_rows]
            of_others = self.others.falls[target][self.other_rows]
            falls_shown[f"losses-{target}"] = np.where(coins, of_members, of_others)
        return falls_shown


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
    member_rows = parts.drawn(len(members), Purpose.GAME_MEMBERS, seed)
    other_rows = parts.drawn(len(others), Purpose.GAME_OTHERS, seed)
    training, validation, audited = (
        Pairs(members=members, others=others, member_rows=of_members, other_rows=of_others)
        for of_members, of_others in zip(member_rows, other_rows, strict=True)
    )
    # 2. Training.
    baselines, attacks = _trained(training, validation, sizes, options, seed=seed, tick=tick)
    # 3. Coins, once training is over: they show one example of each pair.
    coins = Purpose.GAME_COINS.rng(seed).random(parts.test) < 0.5
    shown_rows = np.arange(coins.size) + np.where(coins, 0, coins.size)

    def scores(attack: FittedAttack, target: str | None = None) -> FloatArray:
        sample = audited.seen(target)
        return attack.score(sample.examples.take(shown_rows), sample.signals[shown_rows])

    baseline_scores = {name: scores(baseline) for name, baseline in baselines.items()}
    attack_scores = {
        f"attack-{target}": scores(attack, target) for target, attack in attacks.items()
    }
    return {
        "rows": audited.member_rows,
        "others": audited.other_rows,
        "coins": coins,
        "baseline-validation": baselines["baseline"].validation,
        **baseline_scores,
        **attack_scores,
        **audited.falls(coins),
    }


def _trained(
    training: Pairs,
    validation: Pairs,
    sizes: tuple[int, ...],
    options: Options,
    *,
    seed: int,
    tick: Callable[[str], None],
) -> tuple[dict[str, FittedAttack], dict[str, FittedAttack]]:
    """Return baselines, which do not use a target, and an attack on each target."""
    device = options.device or "cpu"
    error_probability = complement(options.confidence)
    ranking_level = shares.RANKINGS.of(error_probability, 2)

    def fit(pairs: Pairs, target: str | None = None, prepared: object = None) -> FittedAttack:
        return options.attack.fit(
            pairs.seen(target),
            validation.seen(target),
            seed=seed,
            level=ranking_level,
            cuts=options.cuts,
            device=device,
            prepared=prepared,
        )

    baselines = {}
    for size in sizes:  # further baselines learn from fewer pairs
        tick(f"seed {seed}: a baseline from {2 * size:,} examples")
        baselines[f"baseline-{size}"] = fit(training.first(size))
    tick(f"seed {seed}: the baseline")
    prepared = options.attack.prepare(training.seen(), validation.seen(), seed=seed, device=device)
    baselines["baseline"] = fit(training, prepared=prepared)
    attacks = {}
    for target in training.members.targets:
        tick(f"seed {seed}: the attack on {target}")
        attacks[target] = fit(training, target=target, prepared=prepared)
    return baselines, attacks
