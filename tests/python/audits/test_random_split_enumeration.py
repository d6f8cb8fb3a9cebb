"""Random splits of at most 8 examples: exact rates of rejection, over all splits and matchings.

Everything that is random is enumerated: the subset trained on, what a mechanism shows of it, and
the matching. So rates are exact, and at most the level without any tolerance but that of sums.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, linprog

import leakbound as lb
from leakbound.audits.pairs import Aggregate, Units, stretched
from leakbound.audits.road import Request, prove
from leakbound.cuts.games import PairGame
from leakbound.stats import normal_quantile

LEVEL = 0.3
"""Four pairs refute nothing at a level below 1/16."""
Outcomes = dict[tuple[int, ...], float]
"""What is shown of the members, with its probability."""
Mechanism = Callable[[tuple[int, ...], int], Outcomes]
Attack = Callable[[tuple[int, ...], int], np.ndarray]


@dataclass(frozen=True)
class Split:
    """Examples, and the members among those of each stratum."""

    strata: tuple[int, ...]
    members: tuple[int, ...]

    @property
    def examples(self) -> int:
        return sum(self.strata)

    def subsets(self) -> Iterator[tuple[int, ...]]:
        """All equally likely training sets."""
        first = np.cumsum((0, *self.strata))
        parts = [
            itertools.combinations(range(first[i], first[i] + size), self.members[i])
            for i, size in enumerate(self.strata)
        ]
        for chosen in itertools.product(*parts):
            yield tuple(itertools.chain(*chosen))

    def matchings(self, subset: tuple[int, ...]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All equally likely matchings."""
        first = np.cumsum((0, *self.strata))
        parts = []
        for i, size in enumerate(self.strata):
            rows = range(first[i], first[i] + size)
            inside = [row for row in rows if row in subset]
            outside = [row for row in rows if row not in subset]
            few, many = sorted((inside, outside), key=len)
            chosen = itertools.permutations(many, len(few))
            parts.append([(few, one) if few is inside else (one, few) for one in chosen])
        for matched in itertools.product(*parts):
            left, right = zip(*matched, strict=True)
            yield (
                np.array(list(itertools.chain(*left)), dtype=int),
                np.array(list(itertools.chain(*right)), dtype=int),
            )


SPLITS = [
    Split((6,), (3,)),
    Split((7,), (3,)),
    Split((8,), (4,)),
    Split((7,), (5,)),
    Split((4, 4), (2, 2)),
    Split((5, 3), (3, 1)),
]
SKEWED = Split((8,), (7,))
FOUR_STRATA = Split((2, 2, 2, 2), (1, 1, 1, 1))
STRATIFIED = [SPLITS[4], FOUR_STRATA]


@cache
def exponential(epsilon: float) -> Mechanism:
    """A set R as large as the training set S, with probability e^(ε |R ∩ S|) / Z.

    To replace one example changes |R ∩ S| by at most one, and Z not at all.
    """

    def outcomes(subset: tuple[int, ...], examples: int) -> Outcomes:
        shown = {
            one: math.exp(epsilon * len(set(one) & set(subset)))
            for one in itertools.combinations(range(examples), len(subset))
        }
        total = sum(shown.values())
        return {one: weight / total for one, weight in shown.items()}

    return outcomes


@cache
def response(epsilon: float) -> Mechanism:
    """Whether each is a member, right with odds e^(ε/2): two answers change with a replacement."""
    right = 1 / (1 + math.exp(-epsilon / 2))

    def outcomes(subset: tuple[int, ...], examples: int) -> Outcomes:
        shown = {}
        for bits in itertools.product((False, True), repeat=examples):
            same = sum(bit == (i in subset) for i, bit in enumerate(bits))
            named = tuple(i for i, bit in enumerate(bits) if bit)
            shown[named] = right**same * (1 - right) ** (examples - same)
        return shown

    return outcomes


@cache
def failing(base: Mechanism, delta: float) -> Mechanism:
    """With probability δ the training set itself."""

    def outcomes(subset: tuple[int, ...], examples: int) -> Outcomes:
        shown = {one: (1 - delta) * p for one, p in base(subset, examples).items()}
        shown[subset] = shown.get(subset, 0.0) + delta
        return shown

    return outcomes


def plain(shown: tuple[int, ...], examples: int) -> np.ndarray:
    """Score 1 for what is shown: many ties."""
    scores: np.ndarray = np.isin(np.arange(examples), shown).astype(float)
    return scores


def uneven(shown: tuple[int, ...], examples: int) -> np.ndarray:
    """What is shown is trusted by its place, so that no two differences are equal."""
    signs: np.ndarray = np.where(plain(shown, examples) > 0, 1, -1)
    trusted: np.ndarray = signs * 1.37 ** np.arange(examples)
    return trusted


def adaptive(shown: tuple[int, ...], examples: int) -> np.ndarray:
    """Which examples stand out depends on what is shown, and one score is infinite."""
    steps: np.ndarray = 1.0 + (np.arange(examples) * (1 + sum(shown))) % 5
    scores: np.ndarray = plain(shown, examples) * steps
    scores[sum(shown) % examples] *= np.inf if scores[sum(shown) % examples] else 1.0
    return scores


ATTACKS = [plain, uneven, adaptive]


Law = dict[tuple[tuple[int, ...], tuple[bool, ...]], float]
"""Confidence of each guess by rank, 0 for none, and whether it is right; with its probability."""


def confidences(differences: np.ndarray) -> Any:
    """Return, for each row, the rank of each difference by its size, equal ones alike: 0 for 0."""
    sizes = np.abs(np.column_stack([np.zeros(len(differences)), differences]))
    order = np.argsort(sizes, axis=1)
    sizes = np.take_along_axis(sizes, order, axis=1)
    larger = sizes[:, 1:] > sizes[:, :-1]
    ranks = np.zeros(sizes.shape, dtype=int)
    np.put_along_axis(ranks, order[:, 1:], np.cumsum(larger, axis=1), axis=1)
    return ranks[:, 1:].tolist()


def guesses(size: list[int], right: list[bool]) -> Iterator[tuple[Any, float]]:
    """Yield what an audit sees of differences, with its share.

    Which of two equal ones stands first is a coin, and so whether it is the member.
    """
    equal = [i for i, rank in enumerate(size) if rank == 0]
    for coins in itertools.product((False, True), repeat=len(equal)):
        for i, coin in zip(equal, coins, strict=True):
            right[i] = coin
        yield (tuple(size), tuple(right)), 0.5 ** len(coins)


@cache
def law(split: Split, mechanism: Mechanism, attack: Attack) -> Law:
    """Return the exact law of what an audit of the split sees."""
    subsets, found = list(split.subsets()), dict[Any, float]()
    scaled = cache(lambda shown: stretched(attack(shown, split.examples)))
    for subset in subsets:
        outcomes = mechanism(subset, split.examples)
        values = np.array([scaled(shown) for shown in outcomes])
        matchings = list(split.matchings(subset))
        for members, others in matchings:
            turn = np.argsort(np.minimum(members, others))
            apart = values[:, members[turn]] - values[:, others[turn]]
            seen = zip(confidences(apart), (apart > 0).tolist(), outcomes.values(), strict=True)
            for size, right, chance in seen:
                for key, share in guesses(size, right):
                    likely = share * chance / len(matchings) / len(subsets)
                    found[key] = found.get(key, 0.0) + likely
    return found


@cache
def bound(request: Request, size: tuple[int, ...], right: tuple[bool, ...]) -> float:
    """Return the bound of guesses of such confidence, right or not."""
    first = np.arange(len(size)) % 2 == 0
    game = PairGame(
        scores=np.where(np.array(right) == first, 1, -1) * np.array(size, dtype=float),
        member=np.where(np.array(size) == 0, right, first),
        given=np.array([*size, *(0 for _ in size)], dtype=float),
        members=np.arange(len(size)),
        others=np.arange(len(size), 2 * len(size)),
        seed=0,
    )
    return prove(request, game, LEVEL).bound


def refutes(found: float, truth: float) -> bool:
    """Whether a bound denies the truth, which it may come as near to as sums are exact."""
    return found > truth * (1 + 1e-9) + 1e-9


def rate(
    split: Split, mechanism: Mechanism, attack: Attack, request: Request, truth: float
) -> float:
    """Return the exact probability that the bound denies the truth."""
    seen = law(split, mechanism, attack)
    assert math.fsum(seen.values()) == pytest.approx(1)
    return math.fsum(p for key, p in seen.items() if refutes(bound(request, *key), truth))


def asked(claim: lb.claims.Claim, cuts: lb.cuts.CutPolicy | None) -> Request:
    return Request(claim=claim, confidence=1 - LEVEL, cuts=cuts, seed=0)


PURE = [None, lb.UnionBound(), lb.Fixed(2)]


def is_long(split: Split, attack: Attack) -> bool:
    """Return whether a case takes many seconds, as those of 70 training sets do."""
    return split == SPLITS[2] or (split.examples > 6 and split != SPLITS[3] and attack is not plain)


CASES = [
    pytest.param(
        split,
        attack,
        id=f"{split}-{attack.__name__}",
        marks=[pytest.mark.validity] if is_long(split, attack) else [],
    )
    for split in [*SPLITS, SKEWED]
    for attack in ATTACKS
]


@pytest.mark.parametrize(("split", "attack"), CASES)
def test_pure_dp_is_rejected_as_rarely_as_stated(split: Split, attack: Attack) -> None:
    for cuts in PURE:
        if isinstance(cuts, lb.Fixed) and split == SKEWED:
            continue
        for epsilon in (0.0, 1.0):
            mechanisms = [exponential(epsilon)]
            if split.examples == 6:
                mechanisms.append(response(epsilon))
            for mechanism in mechanisms:
                found = rate(split, mechanism, attack, asked(lb.PureDP(), cuts), epsilon)
                assert found <= LEVEL + 1e-12, (cuts, epsilon)


def gaussian(epsilon: float) -> float:
    """The μ of the most private Gaussian curve below that of ε-DP: both are convex."""
    return 2 * float(normal_quantile(1 / (1 + math.exp(-epsilon))))


def laplace(epsilon: float) -> float:
    """The ε of the most private Laplace curve below that of ε-DP."""
    return -2 * math.log(2 / (1 + math.exp(epsilon)))


OWN = lb.TradeOffFamily(parameter="ε", tradeoff=lb.TradeOff.approx, bracket=(0.0, 9.0))


@pytest.mark.parametrize(
    ("split", "attack"),
    [*CASES[:3], *CASES[9:15], pytest.param(FOUR_STRATA, plain, marks=pytest.mark.validity)],
)
def test_other_claims_are_rejected_as_rarely_as_stated(split: Split, attack: Attack) -> None:
    for epsilon in (0.5, 1.5):
        truths: list[tuple[lb.claims.Claim, float]] = [
            (lb.GaussianDP(), gaussian(epsilon)),
            (lb.LaplaceDP(), laplace(epsilon)),
            (OWN, epsilon),
        ]
        for claim, truth in truths:
            for cuts in (lb.Fixed(1), lb.Fixed(2)):
                request = asked(claim, cuts)
                found = rate(split, exponential(epsilon), attack, request, truth)
                assert found <= LEVEL + 1e-12, (claim, cuts, epsilon)
        leaking = failing(exponential(epsilon), 0.05)
        for cut in (lb.Fixed(1), lb.Fixed(2), lb.KLScan()):
            request = asked(lb.ApproxDP(delta=0.05), cut)
            assert rate(split, leaking, attack, request, epsilon) <= LEVEL + 1e-12


@pytest.mark.parametrize(
    "split", [SPLITS[0], pytest.param(SPLITS[2], marks=pytest.mark.validity)], ids=str
)
def test_the_level_is_used(split: Split) -> None:
    """A claim that is too private is rejected more often than the level allows a true one."""
    pairs = split.examples // 2
    rates = [rate(split, exponential(2.0), plain, asked(lb.PureDP(), None), e) for e in (2.0, 0.0)]
    assert rates[0] <= LEVEL < rates[1]
    noise = rate(split, exponential(0.0), plain, asked(lb.PureDP(), lb.Fixed(pairs)), 0.0)
    assert noise > 0.05


def rejection(split: Split, scores: np.ndarray, request: Request, truth: float) -> np.ndarray:
    """Return how likely the truth is denied, over matchings and coins, for each training set."""
    even = stretched(scores)
    rates = []
    for subset in split.subsets():
        rows = []
        for members, others in split.matchings(subset):
            turn = np.argsort(np.minimum(members, others))
            rows.append(even[members[turn]] - even[others[turn]])
        apart, found = np.array(rows), list[float]()
        for size, right in zip(confidences(apart), (apart > 0).tolist(), strict=True):
            seen = guesses(size, right)
            found += [share * refutes(bound(request, *key), truth) for key, share in seen]
        rates.append(math.fsum(found) / len(rows))
    return np.array(rates)


def worst(split: Split, rates: np.ndarray, epsilon: float) -> float:
    """Return the largest rate over all mechanisms that show such scores.

    A mechanism shows scores with probability w(S) of the training set S, and their permutations
    within strata with those of S permuted: splits and matchings are as likely after them. To be
    ε-DP, w is to change by at most e^ε with a replacement; the rate is the mean of rates by w.
    """
    subsets = [set(subset) for subset in split.subsets()]
    bounds = []
    for (i, one), (j, other) in itertools.permutations(enumerate(subsets), 2):
        if len(one - other) == 1:
            row = np.zeros(len(subsets))
            row[i], row[j] = 1.0, -math.exp(epsilon)
            bounds.append(row)
    found = linprog(
        -rates / len(subsets),
        A_ub=np.array(bounds),
        b_ub=np.zeros(len(bounds)),
        A_eq=np.full((1, len(subsets)), 1 / len(subsets)),
        b_eq=[1.0],
    )
    return -float(found.fun)


@pytest.mark.parametrize("split", [Split((3, 3), (2, 1)), SPLITS[5], *STRATIFIED], ids=str)
def test_no_mechanism_is_rejected_more_often_in_strata(split: Split) -> None:
    """Score by score the worst of all mechanisms, by linear programming."""
    rng, size, largest = np.random.default_rng(0), split.examples, 0.0
    shown = [np.arange(size) * 1.0, 1.37 ** np.arange(size), np.arange(size) % 2 * 1.0]
    shown += [rng.normal(size=size) * rng.choice([1, 5, 30], size) for _ in range(2)]
    for epsilon in (0.0, 0.7):
        for cuts in PURE:
            request = asked(lb.PureDP(), cuts)
            for scores in shown:
                found = worst(split, rejection(split, scores, request, epsilon), epsilon)
                assert found <= LEVEL + 1e-9, (cuts, epsilon)
                largest = max(largest, found)
    assert largest > (0.2 if split.examples == 8 else 0.1)


def grouped(how: Aggregate) -> Attack:
    """Units of one to three rows each, stored in turns, whose scores are of rows."""
    unit = np.array([0, 5, 3, 1, 4, 2, 6, 7, 1, 4, 2, 5, 7, 2, 5])

    def attack(shown: tuple[int, ...], examples: int) -> np.ndarray:
        rows = unit[unit < examples]
        units = Units.of(np.isin(rows, shown), None, np.array([f"user {i}" for i in rows]), how)
        values = plain(shown, examples)[rows] * (1 + np.arange(rows.size) % 4) - 0.3 * (rows % 3)
        return units.scores(values)

    return attack


@pytest.mark.parametrize("how", ["mean", "max", "log_mean_exp"])
@pytest.mark.parametrize(
    "split",
    [SPLITS[0], Split((3, 3), (2, 1)), pytest.param(FOUR_STRATA, marks=pytest.mark.validity)],
    ids=str,
)
def test_groups_are_rejected_as_rarely_as_stated(split: Split, how: Aggregate) -> None:
    attack = grouped(how)
    for epsilon in (0.0, 1.0):
        for cuts in PURE:
            request = asked(lb.PureDP(), cuts)
            found = rate(split, exponential(epsilon), attack, request, epsilon)
            assert found <= LEVEL + 1e-12, (cuts, epsilon)
    for claim, truth in ((lb.GaussianDP(), gaussian(1.0)), (lb.LaplaceDP(), laplace(1.0))):
        request = asked(claim, lb.Fixed(2))
        assert rate(split, exponential(1.0), attack, request, truth) <= LEVEL + 1e-12
    leaking = failing(exponential(1.0), 0.05)
    request = asked(lb.ApproxDP(delta=0.05), lb.Fixed(2))
    assert rate(split, leaking, attack, request, 1.0) <= LEVEL + 1e-12


def dp_sgd(epsilon: float, claim: lb.SubsampledGaussianDP) -> float:
    """The least 1/σ whose curve is below that of ε-DP: both are convex, and meet at its corner."""
    corner = 1 / (1 + math.exp(epsilon))

    def above(noise: float) -> float:
        return float(claim.curve(1 / noise, "pairs").f(corner)) - corner

    return 1 / float(brentq(above, 0.2, 20, xtol=1e-6))


@pytest.mark.validity
@pytest.mark.parametrize("split", [SPLITS[0], *STRATIFIED], ids=str)
def test_dp_sgd_is_rejected_as_rarely_as_stated(split: Split) -> None:
    claim = lb.SubsampledGaussianDP(sampling_rate=0.5, steps=2, relation="replace")
    truth = dp_sgd(1.5, claim)
    assert 0.2 < truth < 2
    request = asked(claim, lb.Fixed(2))
    assert rate(split, exponential(1.5), plain, request, truth) <= LEVEL + 1e-12
