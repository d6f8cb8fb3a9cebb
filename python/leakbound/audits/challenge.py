"""Whether features alone tell which of a pair is the member: then the split was not random."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from leakbound._base.imports import needs
from leakbound._base.records import Lazy
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits.pairs import Pairs
from leakbound.propensity.falsification import beliefs, bets, default_sceptics, fisher
from leakbound.results import AuditResult
from leakbound.stats import poisson_binomial_tail_offsets

CONTRADICTED_BELOW = 1e-3
"""p-value below which a split counts as not random: a false alarm withholds an honest bound."""
_PARTS = 5


@dataclass(frozen=True)
class Challenge:
    """What bets on membership from features alone came to; of several models the best."""

    p_value: float
    correct: int
    guesses: int
    model: str
    telling: str

    @property
    def contradicted(self) -> bool:
        """Whether a random split would hardly have let them win so often."""
        return self.p_value < CONTRADICTED_BELOW

    @property
    def words(self) -> str:
        """The numbers, in words."""
        return (
            f"features alone tell the member of a pair from the non-member: {self.model} is right "
            f"on {self.correct:,} of {self.guesses:,} pairs (p = {self.p_value:.2g}), and "
            f"by itself {self.telling}"
        )


def challenge(
    pairs: Pairs, features: FloatArray, seed: int, names: Sequence[str] = ()
) -> Challenge:
    """Bet on which of each pair is the member, from features of the units.

    Pairs are put in random order and cut into five parts. From the second on, a classifier learns
    membership from the earlier parts, and guesses where it is surest. Given the pairs and all
    earlier coins, a random split makes each guess right with probability 1/2; so minus the sum of
    the logarithms of the four tails is at most a Gamma(4) variable in distribution (Fisher).
    Columns of `features` go by `names`, or by their number.
    """
    with needs("ml", "a challenge of the split"):
        from threadpoolctl import threadpool_limits
    # 1. Members first, then the others in the same order; parts of pairs in a random order.
    count = pairs.count
    table = np.concatenate([features[pairs.members], features[pairs.others]])
    labels = np.arange(2 * count) < count
    parts = np.array_split(Purpose.SPLIT_PARTS.rng(seed).permutation(count), _PARTS)
    # 2. Each classifier bets on a part by what it learnt of the parts before.
    results = {}
    for name, model in default_sceptics().items():
        tails, correct, guesses = list[float](), 0, 0
        for k in range(1, _PARTS):
            past, tested = np.concatenate(parts[:k]), parts[k]
            learnt_from = np.concatenate([past, past + count])
            rows = np.concatenate([tested, tested + count])
            with threadpool_limits(1):  # so few rows keep other threads waiting
                belief = beliefs(model, table, labels, learnt_from, rows, seed, k)
            if belief is None:
                continue
            apart = belief[: tested.size] - belief[tested.size :]
            first = pairs.first[tested]
            surest, guess = bets(np.zeros(tested.size), np.where(first, apart, -apart))
            right = int(((guess > 0) == first[surest]).sum())
            if surest.size:
                fair = np.zeros(surest.size)
                tails.append(float(poisson_binomial_tail_offsets(right, fair, 0.0, log=True)))
            correct, guesses = correct + right, guesses + surest.size
        results[name] = (fisher(tails) if tails else 1.0, correct, guesses)
    # 3. The best counts, at a price for having had two (Bonferroni).
    best = min(results, key=lambda name: results[name][0])
    p_value, correct, guesses = results[best]
    telling = _telling(table, labels, names)
    return Challenge(min(1.0, len(results) * p_value), correct, guesses, best, telling)


def _telling(table: FloatArray, labels: BoolArray, names: Sequence[str]) -> str:
    """Return which column tells most by itself, by the largest advantage of any threshold."""
    advantages = []
    for column in table.T:
        order = np.argsort(column, kind="stable")
        ends = np.flatnonzero(np.diff(column[order], append=np.inf))  # of blocks of equal values
        gaps = np.cumsum(np.where(labels[order], 1, -1))[ends]
        advantages.append(2 * float(np.abs(gaps).max()) / labels.size)
    best = int(np.argmax(advantages))
    name = repr(names[best]) if names else f"{best} of the features, counted from 0,"
    return f"column {name} tells most (advantage {advantages[best]:.2f})"


def challenged(result: AuditResult, bets: Challenge) -> AuditResult:
    """Return a result that says what bets came to, its bound withheld where they won.

    What is withheld has no other warnings: they are about the size of the bound.
    """
    tested = {name: getattr(bets, name) for name in ("p_value", "correct", "guesses", "model")}
    result = replace(result, options=result.options | {"challenge": tested})
    split, *rest = result.assumptions
    if not bets.contradicted:
        text = f"{split.statement} Features alone do not contradict it (p = {bets.p_value:.2g})."
        return replace(result, assumptions=(replace(split, statement=text), *rest))
    curve = result._curve  # noqa: SLF001 (drawn when asked for)
    split = replace(split, statement=f"{split.statement} But {bets.words}.", status="contradicted")
    warning = (
        f"{bets.words}: the split was not random, and the bound is withheld; if that column was "
        "written after the split, such as an index or a position in a file, drop it and audit "
        "again; if members differ from non-members, use ZeroRun"
    )
    return replace(
        result,
        bound=0.0,
        reason=f"it is withheld: {bets.words}, so that this split was not random",
        rejected=None,
        warnings=(warning,),
        assumptions=(split, *rest),
        _curve=Lazy(lambda: replace(curve.value, bound=np.zeros(curve.value.bound.size))),
    )
