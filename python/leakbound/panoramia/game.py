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
        arrays_of_examples = [self.examples.x, self.helper]
        if self.examples.y is not None:
            arrays_of_examples.append(self.examples.y)
        flat_arrays = [array.reshape(len(self), -1) for array in arrays_of_examples]
        return np.column_stack(flat_arrays).astype(np.float64)

    def signals(self, target: str | None, rows: IntArray) -> FloatArray:
        """Return what the baseline sees of some examples, or the attack on a target."""
        helper_signals = self.helper[rows]
        if target is None:
            return helper_signals
        target_signals = self.targets[target][rows]
        return np.concatenate([helper_signals, target_signals], axis=1)


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
        train_pairs = pairs * self.train // self.all
        validation_pairs = pairs * self.validation // self.all
        test_pairs = pairs - train_pairs - validation_pairs
        return Parts(train=train_pairs, validation=validation_pairs, test=test_pairs)

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
    """Pairs of a member and a non-member: their rows on either side."""

    members: Side
    nonmembers: Side
    member_rows: IntArray
    nonmember_rows: IntArray

    def first(self, pair_count: int) -> "Pairs":
        """Return so many of the pairs."""
        return replace(
            self,
            member_rows=self.member_rows[:pair_count],
            nonmember_rows=self.nonmember_rows[:pair_count],
        )

    def sample(self, target: str | None = None) -> Sample:
        """Return both examples of each pair as the attack on a target sees them, members first.

        Without a target, as the baseline sees them.
        """
        member_examples = self.members.examples.take(self.member_rows)
        nonmember_examples = self.nonmembers.examples.take(self.nonmember_rows)
        member_signals = self.members.signals(target, self.member_rows)
        nonmember_signals = self.nonmembers.signals(target, self.nonmember_rows)
        return Sample(
            examples=member_examples.joined(nonmember_examples),
            signals=np.concatenate([member_signals, nonmember_signals]),
            member=np.repeat([True, False], self.member_rows.size),
        )

    def loss_decreases(self, coins: BoolArray) -> Arrays:
        """Return how far the losses of the examples shown fell, by target."""
        decreases_of_shown = {}
        for target, member_decreases in self.members.falls.items():
            nonmember_decreases = self.nonmembers.falls[target]
            decreases_of_shown[f"losses-{target}"] = np.where(
                coins,
                member_decreases[self.member_rows],
                nonmember_decreases[self.nonmember_rows],
            )
        return decreases_of_shown


def play(
    members: Side,
    nonmembers: Side,
    parts: Parts,
    sizes: tuple[int, ...],
    options: Options,
    *,
    seed: int,
    tick: Callable[[str], None],
) -> Arrays:
    """Train baseline and attacks, then flip the coins and score the examples shown."""
    # 1. Pairs that train, choose and are audited.
    rows_of_parts = zip(
        parts.drawn(len(members), Purpose.GAME_MEMBERS, seed),
        parts.drawn(len(nonmembers), Purpose.GAME_OTHERS, seed),
        strict=True,
    )
    training, validation, audited = (
        Pairs(members, nonmembers, member_rows=member_rows, nonmember_rows=nonmember_rows)
        for member_rows, nonmember_rows in rows_of_parts
    )
    # 2. Training.
    baselines, attacks = _trained_attacks(
        training, validation, sizes, options, seed=seed, tick=tick
    )
    # 3. Coins, once training is over: they show one example of each pair.
    coins = Purpose.GAME_COINS.rng(seed).random(parts.test) < 0.5
    shown_rows = np.arange(coins.size) + np.where(coins, 0, coins.size)

    def scores_of_shown(attack: FittedAttack, target: str | None = None) -> FloatArray:
        sample = audited.sample(target)
        shown_examples = sample.examples.take(shown_rows)
        return attack.score(shown_examples, sample.signals[shown_rows])

    scores = {}
    for name, baseline in baselines.items():
        scores[name] = scores_of_shown(baseline)
    for target, attack in attacks.items():
        scores[f"attack-{target}"] = scores_of_shown(attack, target)
    return {
        "rows": audited.member_rows,
        "others": audited.nonmember_rows,
        "coins": coins,
        "baseline-validation": baselines["baseline"].validation,
        **scores,
        **audited.loss_decreases(coins),
    }


def _trained_attacks(
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

    def fitted_attack(
        pairs: Pairs, target: str | None = None, prepared: object = None
    ) -> FittedAttack:
        return options.attack.fit(
            pairs.sample(target),
            validation.sample(target),
            seed=seed,
            level=ranking_level,
            cuts=options.cuts,
            device=device,
            prepared=prepared,
        )

    baselines = {}
    for size in sizes:  # further baselines learn from fewer pairs
        tick(f"seed {seed}: a baseline from {2 * size:,} examples")
        baselines[f"baseline-{size}"] = fitted_attack(training.first(size))
    tick(f"seed {seed}: the baseline")
    prepared_models = options.attack.prepare(
        training.sample(), validation.sample(), seed=seed, device=device
    )
    baselines["baseline"] = fitted_attack(training, prepared=prepared_models)
    attacks = {}
    for target in training.members.targets:
        tick(f"seed {seed}: the attack on {target}")
        attacks[target] = fitted_attack(training, target, prepared=prepared_models)
    return baselines, attacks
