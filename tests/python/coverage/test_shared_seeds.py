"""Audits whose seed is the very integer that drew the members, by every idiom there is.

Nothing leaks: scores are noise, distinct, tied, or nearly all tied. An audit that drew the order of
ties, of rows or of parts from the stream that drew the members would see who is one, and accuse
every game with ties. The quick form plays the idioms that such an audit fails, the long one (`make
validity`) all of them. Memberships of fixed size depend on one another, which changes the
probability of an error by about 1/M of itself.
"""

import contextlib
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

import flat
import leakbound as lb
from leakbound.cuts import Fixed
from leakbound.errors import AbstentionError
from leakbound.propensity import LogisticPropensity

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


def shuffled(shuffle: Callable[[Any], object]) -> Bools:
    member = np.arange(M) < M // 2
    shuffle(member)
    return member


def chosen(rows: Any) -> Bools:
    return np.isin(np.arange(M), rows)


def child(seed: int, number: int) -> np.random.Generator:
    return rng(np.random.SeedSequence(seed).spawn(3)[number])


IDIOMS: dict[str, Callable[[int], Bools]] = {
    "permutation < n/2": lambda s: rng(s).permutation(M) < M // 2,
    "permutation[:n/2]": lambda s: chosen(rng(s).permutation(M)[: M // 2]),
    "shuffle": lambda s: shuffled(rng(s).shuffle),
    "choice": lambda s: chosen(rng(s).choice(M, M // 2, replace=False)),
    "child 0 permutation": lambda s: child(s, 0).permutation(M) < M // 2,
    "legacy shuffle": lambda s: shuffled(legacy(s).shuffle),
    "random < 1/2": lambda s: rng(s).random(M) < 0.5,
    "normal > 0": lambda s: rng(s).normal(size=M) > 0,
    "[s, 1] random": lambda s: rng([s, 1]).random(M) < 0.5,
    "child 1 random": lambda s: child(s, 1).random(M) < 0.5,
    "torch.rand": lambda s: torch.rand(M, generator=torch.Generator().manual_seed(s)).numpy() < 0.5,
    "plan": lambda s: lb.InclusionPlan.create(M, seed=s).member,
}


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
"""From scores, members and seed to whether a bound above 0 is claimed."""


def claims(audit: Callable[..., Any], **options: Any) -> Audit:
    return lambda scores, member, seed: bool(audit(scores, member, seed=seed, **options).bound > 0)


one_run = partial(claims, flat.coins)
"""Memberships of fixed size are said to be coins, or a random split where options say so."""


def known(scores: Floats, member: Bools, **options: Any) -> Any:
    """Propensities of 1/2; memberships of fixed size are said to be coins."""
    return flat.zero_run(scores, member, np.full(M, 0.5), **options)


def learnt(scores: Floats, member: Bools, **options: Any) -> Any:
    """Propensities over a confidence set, of a feature that tells nothing."""
    how: dict[str, Any] = {"features": FEATURE, "falsify": False, **options}
    return flat.zero_run(scores, member, LogisticPropensity(), **how)


def counted(scores: Floats, member: Bools, **options: Any) -> Any:
    """A tally, whose ties the core orders from a seed of its own."""
    return flat.coins(lb.Tally.of(scores, member), **options)


def by_groups(scores: Floats, member: Bools, **options: Any) -> Any:
    """Two rows of each example, which the split moved as one."""
    rows: dict[str, Any] = {"design": "random_split", "groups": np.repeat(np.arange(M), 2)}
    return flat.coins(np.repeat(scores, 2), np.repeat(member, 2), **rows, **options)


def synthetic(scores: Floats, member: Bools, **options: Any) -> Any:
    """Records that the scores are all there is of: those of a value are the same record."""
    members, others = scores[member], scores[~member]
    own = {"own": np.concatenate([members, others])}
    how: dict[str, Any] = {"attacks": own, "challenge": False, **options}
    made = np.linspace(-1, 1, 9)[:, None]
    return lb.audit_synthetic(members[:, None], others[:, None], made, **how)


def panoramia(**options: Any) -> Audit:
    """Either of the bounds on c and on c + ε, of two rankings by the same noise, one reversed."""

    def claim(scores: Floats, member: Bools, seed: int) -> bool:
        found = flat.panoramia(scores, -scores, member, seed=seed, **options)
        return max(found.c_lb, found.c_plus_epsilon_lb) > 0

    return claim


def stream(scores: Floats, member: Bools, seed: int) -> bool:
    """Four batches, looked at after each."""
    del seed
    audit = lb.Stream()
    parts = zip(np.split(scores, 4), np.split(member, 4), strict=True)
    return any(audit.update(*part).bound > 0 for part in parts)


FEATURE = rng([2**131]).normal(size=(M, 1))
GAUSSIAN, PURE, APPROX = lb.GaussianDP(), lb.PureDP(), lb.ApproxDP(delta=1e-5)

AUDITS: dict[str, Audit] = {
    "one run, ε": one_run(),
    "one run, ε, fixed": one_run(cuts=Fixed(50)),
    "one run, ε, prior": one_run(prior=np.nextafter(0.5, 1)),
    "one run, (ε, δ)": one_run(claim=APPROX),
    "one run, μ": one_run(claim=GAUSSIAN),
    "one run, μ, fixed": one_run(claim=GAUSSIAN, cuts=Fixed(50)),
    "split, ε": one_run(design="random_split"),
    "split, μ": one_run(design="random_split", claim=GAUSSIAN),
    "split, groups": claims(by_groups),
    "tally, ε": claims(counted),
    "tally, μ": claims(counted, claim=GAUSSIAN),
    "synthetic": claims(synthetic),
    "stream": stream,
    "panoramia": panoramia(),
    "panoramia, γ and δ": panoramia(gamma=1e-4, delta=1e-5),
    **{
        f"zero run, {named}, {correction}": claims(known, claim=claim, correction=correction)
        for named, claim, corrections in (
            ("μ", GAUSSIAN, ("match", "tamper", "composition")),
            ("ε", PURE, ("match", "tamper", "composition", "poisson_binomial")),
            ("(ε, δ)", APPROX, ("match", "composition")),
        )
        for correction in corrections
    },
    "zero run, μ, learnt": claims(learnt, claim=GAUSSIAN),
    "zero run, ε, learnt": claims(learnt, claim=PURE),
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
