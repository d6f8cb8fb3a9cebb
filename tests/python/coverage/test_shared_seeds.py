"""Audits whose seed is the very integer that drew the members, by every idiom there is.

Nothing leaks: scores are noise, distinct, tied, or nearly all tied. An audit that drew the order of
ties, of rows or of parts from the stream that drew the members would see who is one, and accuse
every game with ties. The quick form plays the idioms that such an audit fails, the long one (`make
validity`) all of them. Memberships of fixed size depend on one another, which changes the
probability of an error by about 1/M of itself.
"""

import contextlib
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

import leakbound as lb
from leakbound.cuts import Fixed, KLScan
from leakbound.errors import AbstentionError
from leakbound.propensity import LogisticPropensity, falsify

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

M = 200
BETA = 0.05
QUICK, LONG = 30, 200
FAMILY_WISE = 1e-3
"""Probability that any of these tests fails by bad luck."""


def rng(seed: Any) -> np.random.Generator:
    return np.random.default_rng(seed)


def legacy(seed: int) -> Any:
    """NumPy's old functions, seeded."""
    np.random.seed(seed)  # noqa: NPY002
    return np.random


def halves() -> Bools:
    return np.arange(M) < M // 2


def shuffled(shuffle: Callable[[Any], object]) -> Bools:
    member = halves()
    shuffle(member)
    return member


def chosen(rows: Any) -> Bools:
    member = np.zeros(M, dtype=np.bool_)
    member[np.asarray(rows)] = True
    return member


def tossed(coins: Any) -> Bools:
    return np.asarray(coins).astype(np.bool_)


def child(seed: int, number: int) -> np.random.Generator:
    return rng(np.random.SeedSequence(seed).spawn(3)[number])


def bits(kind: type[np.random.BitGenerator], seed: int) -> np.random.Generator:
    return np.random.Generator(kind(seed))


def torchs(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def python(seed: int) -> random.Random:
    return random.Random(seed)


def uniforms(source: random.Random) -> Floats:
    return np.array([source.random() for _ in range(M)])


FIXED_SIZE: dict[str, Callable[[int], Bools]] = {
    "permutation < n/2": lambda s: rng(s).permutation(M) < M // 2,
    "permutation[:n/2]": lambda s: chosen(rng(s).permutation(M)[: M // 2]),
    "permutation of halves": lambda s: rng(s).permutation(halves()),
    "permuted halves": lambda s: rng(s).permuted(halves()),
    "shuffle": lambda s: shuffled(rng(s).shuffle),
    "choice": lambda s: chosen(rng(s).choice(M, M // 2, replace=False)),
    "choice, unshuffled": lambda s: chosen(rng(s).choice(M, M // 2, replace=False, shuffle=False)),
    "[s] permutation": lambda s: rng([s]).permutation(M) < M // 2,
    "[s, 1] permutation": lambda s: rng([s, 1]).permutation(M) < M // 2,
    "child 0 permutation": lambda s: child(s, 0).permutation(M) < M // 2,
    "child 1 permutation": lambda s: child(s, 1).permutation(M) < M // 2,
    "Philox permutation": lambda s: bits(np.random.Philox, s).permutation(M) < M // 2,
    "PCG64 permutation": lambda s: bits(np.random.PCG64, s).permutation(M) < M // 2,
    "legacy permutation": lambda s: legacy(s).permutation(M) < M // 2,
    "legacy shuffle": lambda s: shuffled(legacy(s).shuffle),
    "legacy choice": lambda s: chosen(legacy(s).choice(M, M // 2, replace=False)),
    "RandomState permutation": lambda s: np.random.RandomState(s).permutation(M) < M // 2,
    "Python's sample": lambda s: chosen(python(s).sample(range(M), M // 2)),
    "Python's shuffle": lambda s: shuffled(python(s).shuffle),
    "torch.randperm": lambda s: torch.randperm(M, generator=torchs(s)).numpy() < M // 2,
}

COINS: dict[str, Callable[[int], Bools]] = {
    "random < 1/2": lambda s: rng(s).random(M) < 0.5,
    "integers": lambda s: tossed(rng(s).integers(0, 2, M)),
    "binomial": lambda s: tossed(rng(s).binomial(1, 0.5, M)),
    "choice of two": lambda s: rng(s).choice([False, True], M),
    "normal > 0": lambda s: rng(s).normal(size=M) > 0,
    "[s] random": lambda s: rng([s]).random(M) < 0.5,
    "[s, 1] random": lambda s: rng([s, 1]).random(M) < 0.5,
    "child 0 random": lambda s: child(s, 0).random(M) < 0.5,
    "child 1 random": lambda s: child(s, 1).random(M) < 0.5,
    "Philox random": lambda s: bits(np.random.Philox, s).random(M) < 0.5,
    "PCG64 random": lambda s: bits(np.random.PCG64, s).random(M) < 0.5,
    "legacy rand": lambda s: legacy(s).rand(M) < 0.5,
    "legacy randint": lambda s: tossed(legacy(s).randint(0, 2, M)),
    "RandomState rand": lambda s: np.random.RandomState(s).rand(M) < 0.5,
    "Python's random": lambda s: uniforms(python(s)) < 0.5,
    "torch.rand": lambda s: torch.rand(M, generator=torchs(s)).numpy() < 0.5,
    "torch.bernoulli": lambda s: tossed(torch.empty(M).bernoulli_(0.5, generator=torchs(s))),
    "plan": lambda s: lb.InclusionPlan.create(M, seed=s).member,
}
IDIOMS = FIXED_SIZE | COINS


def noise(draw: np.random.Generator) -> Floats:
    """Distinct scores."""
    return draw.normal(size=M)


def levels(draw: np.random.Generator) -> Floats:
    """Four scores, each of about M/4 examples."""
    return draw.integers(0, 4, M).astype(float)


def tied(draw: np.random.Generator) -> Floats:
    """One score for all examples but ten, five above it and five below."""
    scores = np.zeros(M)
    scores[draw.choice(M, 10, replace=False)] = np.repeat([1.0, -1.0], 5)
    return scores


SCORES: dict[str, Callable[[np.random.Generator], Floats]] = {
    "distinct": noise,
    "four levels": levels,
    "nearly all tied": tied,
}

Audit = Callable[[Floats, Bools, int], bool]
"""From scores, members and seed to whether more than nothing is claimed."""


def one_run(**options: Any) -> Audit:
    """Memberships of fixed size are said to be coins, or a random split where options say so."""

    def claims(scores: Floats, member: Bools, seed: int) -> bool:
        found = lb.audit_one_run(scores, member, seed=seed, **options)
        return bool(found.bound > 0)

    return claims


def zero_run(**options: Any) -> Audit:
    """Propensities of 1/2; memberships of fixed size are said to be coins."""
    known = np.full(M, 0.5)

    def claims(scores: Floats, member: Bools, seed: int) -> bool:
        return bool(lb.audit_zero_run(scores, member, known, seed=seed, **options).bound > 0)

    return claims


def learnt(**options: Any) -> Audit:
    """Propensities over a confidence set, of a feature that tells nothing."""
    feature = rng([2**131]).normal(size=(M, 1))
    given: dict[str, Any] = {"features": feature, "falsify": False, **options}

    def claims(scores: Floats, member: Bools, seed: int) -> bool:
        found = lb.audit_zero_run(scores, member, LogisticPropensity(), seed=seed, **given)
        return bool(found.bound > 0)

    return claims


def panoramia(**options: Any) -> Audit:
    """Either of the bounds on c and on c + ε, of two rankings by the same noise, one reversed."""

    def claims(scores: Floats, member: Bools, seed: int) -> bool:
        found = lb.audit_panoramia(scores, -scores, member, seed=seed, **options)
        return max(found.c_lb, found.c_plus_epsilon_lb) > 0

    return claims


def counted(**options: Any) -> Audit:
    """The same of a tally, whose ties the core orders from a seed of its own."""

    def claims(scores: Floats, member: Bools, seed: int) -> bool:
        tally = lb.Tally.of(scores, member)
        return bool(lb.audit_one_run(tally, seed=seed, **options).bound > 0)

    return claims


def by_groups(scores: Floats, member: Bools, seed: int) -> bool:
    """Two rows of each example, which the split moved as one."""
    named = np.repeat(np.arange(M), 2)
    rows: dict[str, Any] = {"design": "random_split", "groups": named, "seed": seed}
    return bool(lb.audit_one_run(np.repeat(scores, 2), np.repeat(member, 2), **rows).bound > 0)


def synthetic(scores: Floats, member: Bools, seed: int) -> bool:
    """Records that the scores are all there is of: those of a value are the same record."""
    records, made = scores[:, None], np.linspace(-1, 1, 9)[:, None]
    found = lb.audit_synthetic(
        records[member],
        records[~member],
        made,
        attacks={"own": np.concatenate([scores[member], scores[~member]])},
        challenge=False,
        seed=seed,
        progress=False,
    )
    return found.bound > 0


def stream(scores: Floats, member: Bools, seed: int) -> bool:
    """Four batches, looked at after each."""
    del seed
    audit = lb.OneRunStream()
    parts = zip(np.split(scores, 4), np.split(member, 4), strict=True)
    return any(audit.update(*part).bound > 0 for part in parts)


def scepticism(scores: Floats, member: Bools, seed: int) -> bool:
    """Whether true propensities are refuted, at p < 0.01 if nothing is wrong."""
    return falsify(np.zeros(M), scores[:, None], member, sceptic=Contrarian(), seed=seed).refuted


class Contrarian:
    """A classifier that expects next whom it has seen less of, whatever the features."""

    def __init__(self) -> None:
        self.classes_ = np.array([False, True])
        self.share = 0.5

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002
        return {}

    def set_params(self) -> "Contrarian":
        return self

    def fit(self, features: Floats, member: Bools) -> "Contrarian":
        del features
        self.share = ((~member).sum() + 1) / (member.size + 2)
        return self

    def predict_proba(self, features: Floats) -> Floats:
        return np.tile([1 - self.share, self.share], (len(features), 1))


GAUSSIAN, PURE, APPROX = lb.GaussianDP(), lb.PureDP(), lb.ApproxDP(delta=1e-5)

AUDITS: dict[str, Audit] = {
    "one run, ε": one_run(),
    "one run, ε, fixed": one_run(cuts=Fixed(50)),
    "one run, ε, prior": one_run(prior=np.nextafter(0.5, 1)),
    "one run, ε, prior, fixed": one_run(prior=np.nextafter(0.5, 1), cuts=Fixed(50)),
    "one run, (ε, δ)": one_run(claim=APPROX),
    "one run, (ε, δ), fixed": one_run(claim=APPROX, cuts=Fixed(50)),
    "one run, (ε, δ), coupling": one_run(claim=APPROX, cuts=KLScan()),
    "one run, μ": one_run(claim=GAUSSIAN),
    "one run, μ, fixed": one_run(claim=GAUSSIAN, cuts=Fixed(50)),
    "one run, μ, members": one_run(claim=GAUSSIAN, cuts=Fixed(50), sides="member"),
    "split, ε": one_run(design="random_split"),
    "split, ε, fixed": one_run(design="random_split", cuts=Fixed(50)),
    "split, μ": one_run(design="random_split", claim=GAUSSIAN),
    "split, strata": one_run(design="random_split", strata=np.arange(M) % 4),
    "split, groups": by_groups,
    "tally, ε": counted(),
    "tally, ε, fixed": counted(cuts=Fixed(50)),
    "tally, (ε, δ), fixed": counted(claim=APPROX, cuts=Fixed(50)),
    "tally, μ": counted(claim=GAUSSIAN),
    "synthetic": synthetic,
    "stream": stream,
    "panoramia": panoramia(),
    "panoramia, γ and δ": panoramia(gamma=1e-4, delta=1e-5),
    "sceptic": scepticism,
    **{
        f"zero run, {named}, {correction}": zero_run(claim=claim, correction=correction)
        for named, claim, corrections in (
            ("μ", GAUSSIAN, ("match", "tamper", "composition")),
            ("ε", PURE, ("match", "tamper", "composition", "poisson_binomial")),
            ("(ε, δ)", APPROX, ("match", "composition")),
        )
        for correction in corrections
    },
    "zero run, (ε, δ), untampered": zero_run(claim=APPROX, variant="untampered"),
    "zero run, μ, learnt": learnt(claim=GAUSSIAN),
    "zero run, ε, learnt": learnt(claim=PURE),
    "zero run, ε, learnt, match": learnt(claim=PURE, correction="match"),
}


@cache
def claimed(audit: str, seed: int, members: bytes) -> bool:
    """Whether an audit claims more than the truth, which is 0, from each kind of score in turn.

    Scores come from a stream that nobody shares. An audit that abstains claims nothing.
    """
    scores = list(SCORES.values())[seed % len(SCORES)](rng([2**130, seed]))
    with contextlib.suppress(AbstentionError):
        return AUDITS[audit](scores, np.frombuffer(members, dtype=np.bool_), seed)
    return False


def play(audit: str, idiom: str, *, drawn: bool, games: int) -> int:
    """Count false claims where members are those whom the idiom draws, or all others."""
    return sum(
        claimed(audit, seed, (IDIOMS[idiom](seed) == drawn).tobytes()) for seed in range(games)
    )


def allowed(games: int, cells: int) -> int:
    """The count that a rate of BETA exceeds in any of the cells with probability FAMILY_WISE."""
    return int(stats.binom.isf(FAMILY_WISE / cells, games, BETA))


def check(audit: str, idioms: list[tuple[str, bool]], games: int) -> None:
    limit = allowed(games, len(AUDITS) * len(idioms))
    counts = {
        f"{idiom}, {'members' if drawn else 'the others'}": play(
            audit, idiom, drawn=drawn, games=games
        )
        for idiom, drawn in idioms
    }
    assert {idiom: count for idiom, count in counts.items() if count > limit} == {}


every_audit = pytest.mark.parametrize("audit", AUDITS)


@every_audit
def test_audits_do_not_see_who_was_drawn_from_their_seed(audit: str) -> None:
    failed_before = [("permutation < n/2", False), ("permutation[:n/2]", True), ("shuffle", False)]
    check(audit, failed_before, QUICK)


@pytest.mark.validity
@every_audit
def test_no_idiom_draws_members_that_an_audit_sees(audit: str) -> None:
    check(audit, [(idiom, drawn) for idiom in IDIOMS for drawn in (True, False)], LONG)


@pytest.mark.parametrize("idiom", IDIOMS)
def test_idioms_draw_half_of_the_examples_or_about_half(idiom: str) -> None:
    member = IDIOMS[idiom](5)
    assert member.dtype == np.bool_
    assert member.shape == (M,)
    assert abs(int(member.sum()) - M // 2) < (1 if idiom in FIXED_SIZE else 30)
