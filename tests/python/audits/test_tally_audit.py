"""Audits of tallies: those of the scores that they count, in the memory of their counts."""

import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
import leakbound._core as _core
from leakbound import errors
from leakbound._base.types import BoolArray, FloatArray
from leakbound.cuts import CutPolicy

POLICIES: list[CutPolicy] = [
    lb.KLScan(),
    lb.KLScan(grid="all", min_guesses=3),
    lb.UnionBound(),
    lb.UnionBound(grid="geometric"),
    lb.UnionBound(grid=[10, 100, 400], tail="hoeffding"),
    lb.Fixed(120),
    lb.OutsideIn(),
]
FEW: list[CutPolicy | None] = [None, lb.Fixed(200), lb.UnionBound(grid=[50, 300])]
CASES: list[tuple[str, dict[str, Any]]] = [
    *(("distinct", {"cuts": cuts}) for cuts in POLICIES),
    # OutsideIn draws the order of ties, by other streams than that of scores.
    *(("tied", {"cuts": cuts}) for cuts in POLICIES if cuts != lb.OutsideIn()),
    *(
        ("distinct", {"claim": claim, "cuts": cuts})
        for claim in (lb.ApproxDP(delta=1e-5), lb.GaussianDP(), lb.LaplaceDP())
        for cuts in FEW
    ),
    ("distinct", {"claim": lb.ApproxDP(delta=1e-5), "cuts": lb.KLScan()}),
]


def played(kind: str, m: int, seed: int = 0) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(seed)
    member = rng.random(m) < 0.5
    noise = rng.standard_t(3, m) if kind == "t3" else rng.normal(size=m)
    if kind == "tail":
        return noise + 6 * (member & (rng.random(m) < 0.02)), member
    scores = noise + member
    return (np.round(2 * scores) if kind == "tied" else scores), member


def distinct(m: int, seed: int = 0) -> tuple[FloatArray, BoolArray]:
    """Scores that have a key of 32 bits each."""
    scores, member = played("gaussian", m, seed)
    return np.argsort(np.argsort(scores)).astype(float) - m / 3, member


def same(tally: lb.AuditResult, scores: lb.AuditResult) -> None:
    for name in ("bound", "reason", "m", "members", "guesses", "correct", "path", "ceiling"):
        assert getattr(tally, name) == getattr(scores, name), name
    assert tally.auc == pytest.approx(scores.auc, abs=1e-15)
    for name in ("guesses", "correct", "bound"):
        np.testing.assert_array_equal(getattr(tally.curve, name), getattr(scores.curve, name))
    np.testing.assert_array_equal(tally.roc.members, scores.roc.members)
    np.testing.assert_array_equal(tally.roc.guesses, scores.roc.guesses)


@pytest.mark.parametrize("sides", ["auto", "both", "member"])
@pytest.mark.parametrize(("kind", "options"), CASES, ids=repr)
def test_audits_are_those_of_the_scores(kind: str, options: dict[str, Any], sides: Any) -> None:
    """Where scores are distinct, or where the policy takes their ties as they are."""
    scores, member = played("tied", 901) if kind == "tied" else distinct(1201)
    how: dict[str, Any] = {"sides": sides, **options}
    tally = lb.Tally.of(scores, member, bits=32)
    same(flat.coins(tally, **how), flat.coins(scores, member, **how))


@pytest.mark.parametrize("kind", ["gaussian", "t3", "tail", "tied"])
def test_twenty_bits_cost_next_to_nothing_under_pure_dp(kind: str) -> None:
    scores, member = played(kind, 4000, seed=5)
    exact = lb.audit(scores, lb.Coins(member), sides="both")
    tally = lb.audit(lb.Tally.of(scores, member), lb.Coins(), sides="both")
    assert abs(tally.bound - exact.bound) <= 0.01


def test_results_tell_that_examples_were_counted_and_can_be_stored() -> None:
    scores, member = played("gaussian", 20_000)
    tally = lb.Tally.of(scores[:9_000], member[:9_000])
    tally += lb.Tally.of(scores[9_000:], member[9_000:])
    result = lb.audit(tally, lb.Coins())
    assert result.options["tally"] == {"bits": 20, "keys": len(tally), "shards": 2}
    assert set(result.provenance.sha256) == {"tally keys", "tally examples", "tally members"}


def refused(message: str, *args: Any, **options: Any) -> None:
    with pytest.raises(errors.OptionError, match=message):
        flat.coins(*args, **options)


def test_what_counts_cannot_tell_is_refused() -> None:
    scores, member = played("gaussian", 100)
    tally = lb.Tally.of(scores, member)
    refused("leave out member", tally, member)
    refused("member is missing", scores)
    refused("ids= needs single examples", tally, ids=np.arange(100))
    for prior in (0.4999, np.full(100, 0.3)):
        refused("a prior other than 1/2 needs single examples", tally, prior=prior)
    refused("weighs every example", tally, cuts=lb.Weighted(), sides="member")
    mixed: Any = {"a": tally, "b": scores}
    for several in (mixed, [tally, tally]):
        with pytest.raises(errors.InputTypeError, match="a Tally is not for this audit"):
            lb.audit(several, lb.Coins(member))
    for design in (lb.ZeroRun(member), lb.Choices(member, 2)):
        with pytest.raises(errors.InputTypeError, match=r"use audit\(tally, Coins\(\)\)"):
            lb.audit(tally, design)  # type: ignore[misc]
    with pytest.raises(errors.AbstentionError, match="all 100 keys of the tally are equal"):
        lb.audit(lb.Tally.of(np.ones(100), member), lb.Coins())
    with pytest.raises(errors.DesignError):
        lb.audit(lb.Tally.of(scores, np.arange(100) < 90), lb.Coins())
    with pytest.raises(errors.OptionError, match="more guesses than there are examples"):
        lb.audit(tally, lb.Coins(), cuts=lb.Fixed(101))


def billion(keys: int = 200_000) -> lb.Tally:
    """A billion examples of the Gaussian game, as they are expected at some keys."""
    from leakbound.stats import normal_cdf

    edges = np.linspace(-6, 7, keys + 1)
    members = np.rint(np.diff(normal_cdf(edges - 1)) * 5e8).astype(np.int64)
    others = np.rint(np.diff(normal_cdf(edges)) * 5e8).astype(np.int64)
    held = members + others > 0
    at = np.flatnonzero(held) + (1 << 30)
    short = 1_000_000_000 - int((members + others).sum())
    others[keys // 2] += short // 2
    members[keys // 2] += short - short // 2
    return lb.Tally(at, (members + others)[held], members[held], 32)


def test_a_billion_examples_take_the_memory_of_their_counts() -> None:
    tally = billion()
    assert tally.m == 1_000_000_000
    tracemalloc.start()
    results = {
        "pure": lb.audit(tally, lb.Coins(), sides="member"),
        "outside in": lb.audit(tally, lb.Coins(), cuts=lb.OutsideIn()),
        "fixed": lb.audit(tally, lb.Coins(), claim=lb.ApproxDP(delta=1e-10), cuts=lb.Fixed(10**6)),
    }
    assert all(0.5 < one.bound < 20 for one in results.values())
    assert results["pure"].roc.guesses[-1] == tally.m
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_more_examples_than_a_path_holds_are_refused() -> None:
    huge = lb.Tally(np.arange(2**19, 2**19 + 9), np.full(9, 10**9), np.full(9, 5 * 10**8))
    with pytest.raises(errors.LeakboundError, match="more than the 4294967295"):
        lb.audit(huge, lb.Coins())


def test_the_order_of_ties_depends_on_the_seed_alone() -> None:
    scores, member = played("tied", 2000, seed=9)
    tally = lb.Tally.of(scores, member)
    cuts = lb.Fixed(150)
    counts = [
        lb.audit(tally, lb.Coins(), claim=lb.GaussianDP(), cuts=cuts, seed=seed).correct
        for seed in (*range(30), *range(5))
    ]
    assert counts[:5] == counts[30:]
    assert len(set(counts)) > 5


def test_every_order_of_tied_examples_is_equally_likely() -> None:
    def orders(size: int, members: int, ranks: list[int], seeds: int) -> Counter[tuple[int, ...]]:
        counts, inside = np.array([size, 1]), np.array([members, 0])
        seen: Counter[tuple[int, ...]] = Counter()
        for seed in range(seeds):
            path = _core.Ranking.of_blocks(counts, inside, seed=seed).path("member")
            seen[tuple(path.count(rank)[1] for rank in ranks)] += 1
        return seen

    few = orders(6, 3, [1, 2, 3, 4, 5, 6], 8000)
    # 20 orders, each Bin(8,000, 1/20): standard deviation 19.5.
    assert len(few) == 20
    assert all(abs(times - 400) < 100 for times in few.values())
    # The one member of 200 is in each quarter as often: Bin(8,000, 1/4), standard deviation 39.
    one = orders(200, 1, [50, 100, 150], 8000)
    assert len(one) == 4
    assert all(abs(times - 2000) < 200 for times in one.values())
    # Both members of 200 are among the first 50 with probability 50·49/(200·199).
    both = orders(200, 2, [50], 8000)[(2,)]
    assert abs(both - 8000 * 50 * 49 / (200 * 199)) < 110


def test_counts_of_one_order_do_not_depend_on_what_is_asked() -> None:
    counts, members = np.array([1, 300, 5, 1000, 1]), np.array([1, 120, 0, 999, 0])
    ranking = _core.Ranking.of_blocks(counts, members, seed=7)
    for order in ("member", "member_half", "nonmember_half", "interleaved"):
        path = ranking.path(order)
        _, every = path.sample(path.guesses)
        alone = [path.count(guesses)[1] for guesses in range(1, path.guesses + 1)]
        assert every.tolist() == alone
        assert set(np.diff(every).tolist()) <= {0, 1}
        assert path.correct == alone[-1]


def test_a_perfect_path_is_that_of_its_guesses() -> None:
    for guesses, correct in ((1, 0), (1, 1), (90, 31), (64, 64)):
        plain = _core.Path.from_successes(np.arange(guesses) < correct)
        quick = _core.Path.correct_first(guesses, correct)
        for points in (5, 1000):
            for a, b in zip(plain.sample(points), quick.sample(points), strict=True):
                np.testing.assert_array_equal(a, b)
        assert (plain.guesses, plain.correct) == (quick.guesses, quick.correct)
        most = max(1, guesses // 2)
        assert plain.prefix(most).correct == quick.prefix(most).correct
