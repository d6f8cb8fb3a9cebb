"""A model that was trained on a random part of the examples, and a challenge of the split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import check_features, check_length, choice
from leakbound._base.codes import by_first_row, check_codes
from leakbound._base.imports import needs
from leakbound._base.records import Lazy
from leakbound._base.streams import Purpose
from leakbound._base.types import Aggregate, ArrayInput, BoolArray, FloatArray, HasMember
from leakbound._tally.tally import Stored, by_attack, told
from leakbound.audits import premises, road
from leakbound.audits.pair_tally import PairTally
from leakbound.audits.pairs import Pairs, Units
from leakbound.claims import FAMILIES, Claim, SubsampledGaussianDP
from leakbound.cuts.games import PairTallyGame
from leakbound.errors import OptionError
from leakbound.propensity import falsification
from leakbound.results import Assumption, AuditResult
from leakbound.stats import poisson_binomial_tail_offsets

_COINS = (
    "Members and non-members of a random split are matched at random. Given the pairs and the "
    "rest, a separate fair coin decides which {unit} of each pair was trained on. Turning this "
    "coin over replaces one training {unit} by another. "
)
_PURE = (
    "So each guess is right with probability at most e^ε / (1 + e^ε), given the {output} and "
    "the coins of earlier guesses, if training is ε-DP for replacing one {unit} (as Steinke, "
    "Nasr and Jagielski 2023, Proposition 5.1, with pairs in place of examples). "
)
_APPROX = (
    "So each guess is right with probability at most e^ε / (1 + e^ε), given the coins of the "
    "other pairs, except in failures that (ε, δ)-DP for replacing one {unit} makes rare. "
)
_FAMILY = (
    "So, given the coins of the other pairs, each correct guess obeys the trade-off function of "
    "replacing one {unit}, and so do the probabilities of all counts of correct guesses together "
    "(Mahloujifar, Melis and Chaudhuri 2025, Theorem 3.1, with pairs in place of examples). ε is a "
    "conversion of the rejected curve and holds within the family. "
)


@dataclass(frozen=True, kw_only=True)
class SplitWords:
    """What the split moved one by one, unless groups are told, and what scores were made from.

    `columns` has the names of features, if they have any.
    """

    unit: str = "example"
    output: str = "trained model"
    columns: tuple[str, ...] = ()


_MODEL = SplitWords()
UNCHANGED = "Nothing was removed, added or changed in one part only after the split."
"""What every random split assumes of its parts."""
_UNITS = "pass groups=, the unit of each row"


@dataclass(frozen=True, eq=False)
class RandomSplit(road.Design[road.Listed | PairTally | Mapping[str, PairTally], AuditResult]):
    """The members are a random subset of the examples, as of a split into training and test set.

    The bound is on replacing one example by another.

    Parameters
    ----------
    member : array-like of shape (m,), or InclusionPlan
        Which examples were trained on, left out with a `PairTally`: booleans, {0, 1} or {-1, +1}.
    strata : array-like, shape (m,), optional
        The stratum of each example if the split was made within strata: numbers or text that
        training had no part in.
    groups : array-like, shape (m,), optional
        The group of each example if whole groups were split, such as all rows of a user. The bound
        is then on replacing one of these.
    aggregate : {"mean", "max", "log_mean_exp"}
        The score of a group, from those of its rows.
    features : array-like, shape (m, d), optional
        Features of the examples, from which two classifiers bet on which of each pair is the
        member. If a random split would let them win so often with a probability below 0.001, its
        randomness is contradicted and the bound withheld.

    Notes
    -----
    As many members and non-members as can be are matched at random, within strata, by the seed:
    which of each pair is the member is then a fair coin, whatever the sizes of the parts. A guess
    is the sign of the difference of the two scores, its size the confidence, on a scale that
    membership has no part in (z (1 + |z| / 4) of robust standard scores z). A difference of 0 is no
    guess for pure DP, and the toss of a coin for other claims. One path, from the largest
    difference on, has the whole probability of error. `docs/theory/random-splits.md` has the proof.

    Examples
    --------
    Of 1,000 examples, 800 were drawn to train on:

    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.permutation(1000) < 800
    >>> scores = rng.normal(size=1000) + 2 * member
    >>> result = lb.audit(scores, lb.RandomSplit(member))
    >>> result.options["pairs"], result.options["relation"], result.bound > 1
    (200, 'replace', True)
    """

    name: ClassVar[str] = "random_split"
    member: ArrayInput | HasMember | None = None
    strata: ArrayInput | None = field(default=None, kw_only=True)
    groups: ArrayInput | None = field(default=None, kw_only=True)
    aggregate: Aggregate = field(default="mean", kw_only=True)
    features: ArrayInput | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        choice(self.aggregate, "aggregate", Aggregate)

    def audit(
        self,
        scores: road.Listed | PairTally | Mapping[str, PairTally],
        request: road.Request,
        /,
        words: SplitWords = _MODEL,
    ) -> AuditResult:
        """See `Design.audit`; `words` say what was split."""
        if isinstance(request.claim, SubsampledGaussianDP):
            request = replace(request, claim=replace(request.claim, relation="replace"))
        tallies = by_attack(scores, PairTally) if isinstance(scores, Stored | Mapping) else None
        if tallies is not None:
            return self._counted(tallies, request).audit(request, self.name)
        if self.member is None:
            raise OptionError(
                "member is missing: give RandomSplit(member), or audit a PairTally, which has "
                "counted members"
            )
        if self.groups is not None:
            words = replace(words, unit="user")
        # 1. Scores, membership and what was split as one, in one order.
        order, attacks, member = road.read(scores, self.member, request.ids)
        if self.groups is None:
            premises.refuse_repeated(member, "membership", _UNITS)
        codes = {
            name: check_codes(order.placed(values, name), member.size, name)
            for name, values in (("strata", self.strata), ("groups", self.groups))
            if values is not None
        }
        numbered = {name: by_first_row(one)[2] for name, one in codes.items()}
        units = Units.of(member, numbered.get("strata"), codes.get("groups"), self.aggregate)
        # 2. Pairs of a member and a non-member: which is which was a fair coin.
        pairs = Pairs.drawn(units, request.seed)
        bets = None
        if self.features is not None:
            table = check_features(order.placed(self.features, "features"), "features")
            check_length(table[:, 0], member.size, "features")
            bets = challenge(pairs, units.features(table), request.seed, words.columns)
        grounds = _grounds(
            request.claim,
            attacks,
            words,
            pairs=(pairs.count, units.count - 2 * pairs.count),
            stratified=self.strata is not None,
            whole=self.groups is not None,
        )
        if self.strata is not None:
            grounds["options"]["strata"] = int(np.unique(units.stratum).size)
        if self.groups is not None:
            grounds["options"] |= {"groups": units.count, "aggregate": self.aggregate}
        # 3. What the pairs prove, withheld where features alone tell the member.
        digested = {name: one.astype(np.int64) for name, one in numbered.items()}
        result = road.Examples(
            attacks=attacks,
            game=lambda values: pairs.game(units.scores(values), request.seed),
            **grounds,
            filled=premises.filled(attacks.scores, member) if words.output == _MODEL.output else {},
            inputs={**attacks.digested, "member": member, **digested},
        ).audit(request, self.name)
        return result if bets is None else challenged(result, bets)

    def _counted(
        self, tallies: dict[str, PairTally], request: road.Request
    ) -> road.Examples[PairTallyGame]:
        """Read pairs that are counted."""
        given = {"ids": request.ids, **{one.name: getattr(self, one.name) for one in fields(self)}}
        for name, value in given.items():
            if value is not None and name != "aggregate":
                raise OptionError(f"a PairTally has counts, not single examples: leave out {name}")
        attacks = road.AnyAttacks({name: one.game(request.seed) for name, one in tallies.items()})
        (tally, *_), (options, inputs) = tallies.values(), told(tallies)
        pairing = tally.pairing
        words = replace(_MODEL, unit=pairing.unit)
        grounds = _grounds(
            request.claim,
            attacks,
            words,
            pairs=(tally.pairs, tally.left_over),
            stratified=pairing.stratum is not None,
            whole=pairing.unit == "user",
            seed="the hash",
        )
        grounds["options"] |= options
        grounds["assumptions"] += (Assumption(*tally.assumed, "declared"),)
        missing = pairing.buckets - tally.counted_buckets
        if missing:
            note = (
                f"{missing:,} of {pairing.buckets:,} buckets were not counted: no {pairing.unit} "
                "is in them, or a part was not added"
            )
            grounds["warnings"] += (note,)
        return road.Examples(attacks=attacks, game=lambda game: game, **grounds, inputs=inputs)


def _grounds(
    claim: Claim,
    attacks: road.AnyAttacks[Any],
    words: SplitWords,
    *,
    pairs: tuple[int, int],
    stratified: bool,
    whole: bool,
    seed: str = "the seed",
) -> dict[str, Any]:
    """Return what is said of a split, of strata or of whole users: of so many pairs."""
    unit = words.unit
    subject = "The trade-off function" if isinstance(claim, FAMILIES) else "ε"
    within = ", within each stratum" if stratified else ""
    moved = ", with all rows of a user in one part" if whole else ""
    assumptions = (
        Assumption(
            "random split",
            f"The {unit}s that were trained on are a uniformly random subset, of a fixed size, "
            f"of these {unit}s{within}{moved}. The {unit}s are fixed; random are that choice, "
            f"the matching (by {seed}) and training. {UNCHANGED}",
            "declared",
        ),
        Assumption(
            "audited examples did not choose the model",
            "Training did not use the held-out examples: not for early stopping, to select a "
            "checkpoint, or to tune an option. Validation data is another part of the data.",
            "declared",
        ),
        Assumption(
            f"replace one {unit}",
            f"{subject} refers to replacing one {unit} by another, including audited ones"
            f"{within}. Training that is ε-DP under adding or removing one {unit} may reach 2ε "
            "here." + (f" δ is {claim.delta:g}." if claim.delta else ""),
            "declared",
        ),
        *road.assumed(
            claim,
            attacks,
            words.output,
            f"{unit}s",
            f"{seed.capitalize()} matched pairs at random, given split and scores. Candidate "
            "thresholds and the order of guesses depend on the sizes of differences only.",
        ),
    )
    return {
        "theorem": split_theorem(claim, words),
        "assumptions": assumptions,
        "options": {
            "relation": "replace",
            "unit": unit,
            "pairs": pairs[0],
            "left_over": pairs[1],
            "transform": "stretched",
        },
        "warnings": road.delta_warnings(claim.delta, pairs[0]),
    }


def split_theorem(claim: Claim, words: SplitWords = _MODEL) -> str:
    """Return why a bound from a random split holds, where the split moved such units."""
    follows = _FAMILY if isinstance(claim, FAMILIES) else _APPROX if claim.delta else _PURE
    return (_COINS + follows).replace("{unit}", words.unit).replace("{output}", words.output)


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
    for name, model in falsification.default_sceptics().items():
        tails, correct, guesses = list[float](), 0, 0
        for k in range(1, _PARTS):
            past, tested = np.concatenate(parts[:k]), parts[k]
            learnt_from = np.concatenate([past, past + count])
            rows = np.concatenate([tested, tested + count])
            with threadpool_limits(1):  # so few rows keep other threads waiting
                belief = falsification.beliefs(model, table, labels, learnt_from, rows, seed, k)
            if belief is None:
                continue
            apart = belief[: tested.size] - belief[tested.size :]
            first = pairs.first[tested]
            surest, guess = falsification.bets(
                np.zeros(tested.size), np.where(first, apart, -apart)
            )
            right = int(((guess > 0) == first[surest]).sum())
            if surest.size:
                fair = np.zeros(surest.size)
                tails.append(float(poisson_binomial_tail_offsets(right, fair, 0.0, log=True)))
            correct, guesses = correct + right, guesses + surest.size
        results[name] = (falsification.fisher(tails) if tails else 1.0, correct, guesses)
    # 3. The best counts, at a price for having had several (Bonferroni).
    best = min(results, key=lambda name: results[name][0])
    p_value, correct, guesses = results[best]
    telling = _telling(table, labels, names)
    p_value = min(1.0, shares.CHALLENGERS.price(len(results)) * p_value)
    return Challenge(p_value, correct, guesses, best, telling)


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
