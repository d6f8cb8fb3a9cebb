"""Every function of `leakbound.stats` under hostile input: a sound result or an error of ours."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from hostile import Hostile, Tally
from leakbound import errors, stats
from leakbound.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP
from leakbound.claims.tradeoff import TradeOff

Call = tuple[Callable[[], Any], Callable[[Any], bool]]
"""What is called, and what holds of its result."""


def probability(value: Any) -> bool:
    array = np.asarray(value)
    return bool(((array >= 0) & (array <= 1)).all())


def logarithm(value: Any) -> bool:
    return bool((np.asarray(value) <= 0).all())


def number(value: Any) -> bool:
    return not np.isnan(np.asarray(value)).any()


def least_zero(value: Any) -> bool:
    return bool((np.asarray(value) >= 0).all())


def poisson_binomial(h: Hostile) -> Call:
    n = h.size()
    options: dict[str, Any] = {"counts": h.array(h.counts(n))} if h.one_in(3) else {}
    v = h.pick([h.count(n), h.count(n), h.count(10 * n), [h.count(n), h.count(n)], h.real()])
    kind, log = h.rng.integers(4), h.one_in(2)
    sound = logarithm if log else probability
    if kind == 0:
        p = h.array(h.units(n))
        return partial(stats.poisson_binomial_tail, v, p, log=log, **options), sound
    a = h.array(h.reals(n))
    if kind == 1:
        at = h.pick([0.0, 1.0, h.real(), h.real()])
        return partial(stats.poisson_binomial_tail_offsets, v, a, at, log=log, **options), sound
    beta = h.option(h.level())
    return partial(stats.poisson_binomial_epsilon, v, a, beta=beta, **options), number


def replicates(h: Hostile) -> Call:
    n, rows = h.size(20), h.size(6)
    offsets = h.reals(n * rows).reshape(rows, n) if h.one_in(2) else h.reals(n)
    counts = h.counts(n * rows).reshape(rows, n) if offsets.ndim == 1 else None
    v, how = h.rng.integers(0, n + 2, size=rows), {"beta": h.option(h.level()), "counts": counts}
    return partial(stats.poisson_binomial_epsilon, v, offsets, **how), number


def tails(h: Hostile) -> Call:
    n = h.pick([h.size(), 10**6, 2**53, 2**31, 1])
    v, log, x = h.count(n), h.one_in(2), h.array(h.reals(h.size(5)))
    sound = logarithm if log else probability
    calls: list[Call] = [
        (partial(stats.binomial_tail, v, n, h.unit(), log=log), sound),
        (partial(stats.clopper_pearson, v, n, beta=h.option(h.level())), probability),
        (partial(stats.normal_cdf, x), probability),
        (partial(stats.log_normal_cdf, x), logarithm),
        (partial(stats.normal_quantile, h.array(h.units(h.size(5)))), number),
    ]
    call: Call = h.pick(calls)
    return call


def paths(h: Hostile) -> Call:
    m = h.size()
    successes = h.flags(m)
    how = {
        "beta": h.option(h.level()),
        "kappa": h.option(h.pick([None, None, abs(h.real())])),
        "min_guesses": h.option(h.pick([1, 1, 2, m, m + 1])),
    }
    unlike = partial(stats.kl_scan_offsets, successes, h.array(h.reals(m)), **how)
    return unlike, lambda found: number(found.epsilon)


def single(h: Hostile) -> dict[str, Any]:
    """The counts of one number of guesses."""
    guesses = h.pick([h.size(), 1, 1000, 10**5])
    correct = h.count(guesses)
    m = h.pick([float(guesses), 2.0 * guesses, 1e-300, 1e300, 1.7e308, 5e-324, abs(h.real())])
    return {"correct": h.option(correct), "guesses": h.option(guesses), "m": h.option(m)}


def approx(h: Hostile) -> Call:
    counts = single(h)
    if counts["guesses"] == 10**5:
        counts["guesses"] = 2000  # most bounds look at every count
    options: dict[str, Any] = {
        "delta": h.option(h.pick([0.0, 1e-5, 5e-324, 1e-300, 0.5, 1 - 2**-53])),
        "k": h.option(h.pick([2, 2, 2, 3, 2**32 - 1])),
        "bound": h.pick(["exact", "exact", "steinke", "coupling", "zero_run", "panoramia"]),
        "one_sided": h.one_in(4),
    }
    calls: list[Call] = [
        (partial(stats.one_run_p_value, **counts, epsilon=h.option(abs(h.real()))), probability),
        (partial(stats.one_run_epsilon, **counts, beta=h.option(h.level())), least_zero),
    ]
    call, sound = h.pick(calls)
    return partial(call, **options), sound


def curve(h: Hostile) -> Callable[[], TradeOff]:
    size = abs(h.pick([0.0, 0.5, 3.0, h.real()]))
    delta = h.pick([0.0, 1e-5, 5e-324, 0.5, 1 - 2**-53])
    curves = [
        partial(TradeOff.gaussian, size, delta=delta),
        partial(TradeOff.laplace, size),
        partial(TradeOff.approx, size, delta),
    ]
    chosen: Callable[[], TradeOff] = h.pick(curves)
    return chosen


def against(judge: Callable[..., Any], made: Callable[[], TradeOff], **options: Any) -> Any:
    """Test a curve, which may be none."""
    return judge(tradeoff=made(), **options)


def fdp(h: Hostile) -> Call:
    single_run = single(h)
    counts = single_run | {"k": h.option(h.pick([2, 2, 3, 2**32 - 1])), "one_sided": h.one_in(4)}
    test, tau, made = h.pick(["tight", "recursion"]), h.option(h.level()), curve(h)
    family = h.pick([GaussianDP(), GaussianDP(delta=1e-5), LaplaceDP()])
    shifted = {
        "claim": h.pick([PureDP(), ApproxDP(delta=1e-5), GaussianDP()]),
        "epsilon_ds": h.option(abs(h.real())),
        "test": "recursion",
    }
    how = counts | {"test": test}
    calls: list[Call] = [
        (partial(stats.fdp_lower_bound, **how, claim=family, tau=tau), least_zero),
        (partial(stats.composition_bound, **single_run, tau=tau, **shifted), least_zero),
        (partial(against, stats.fdp_p_value, made, **how), probability),
        (partial(against, stats.fdp_rejects, made, **how, tau=tau), lambda v: v in {True, False}),
    ]
    call: Call = h.pick(calls)
    return call


def shift(h: Hostile) -> Call:
    m = h.size()
    odds, uniforms = h.array(h.reals(m)), h.array(h.rng.random(m))
    guesses = h.array(h.rng.integers(-1, 2, size=m).astype(float))
    scores, member, size = h.array(h.reals(m)), h.flags(m), h.option(abs(h.real()))
    tampered = {
        "variant": h.option(h.pick(["directional", "paper"])),
        "epsilon": h.option(h.pick([None, 0.0, abs(h.real())])),
    }
    prior, p = h.option(h.pick([None, h.level()])), h.option(h.level())
    calls: list[Call] = [
        (partial(stats.match, member, odds, uniforms), number),
        (partial(stats.tamper_probability, guesses, odds, **tampered), probability),
        (partial(stats.residual_scores, scores, odds, prior=prior), number),
        (partial(stats.bootstrap_quantile, scores, p=p), number),
        (partial(stats.shift_mu, size), least_zero),
        (partial(stats.shift_delta, odds, member, size), probability),
    ]
    call: Call = h.pick(calls)
    return call


def test_numbers_that_used_to_panic_or_to_be_nan() -> None:
    found = stats.poisson_binomial_epsilon(25, [10.0, -10.0] * 25, beta=1e-3)
    assert abs(found + 8.85510334545258) < 1e-12
    assert stats.poisson_binomial_tail_offsets(25, [10.0, -10.0] * 25, found) <= 1e-3
    assert stats.poisson_binomial_tail_offsets(1, [-1e300] * 5, 0.0) == 0.0
    assert stats.poisson_binomial_tail_offsets(1, [1e300] * 5, 0.0) == 1.0
    assert stats.poisson_binomial_tail_offsets(1, [300.0] * 50, 700.0) == 1.0
    assert stats.one_run_p_value(8, 10, m=40, epsilon=1e3, delta=1e-5) == 1.0
    # All but the alike half are too unlikely to matter.
    unlike = [-34.2, -100.0] * 48 + [-34.2]
    log = stats.poisson_binomial_tail_offsets(36, unlike, -20.0, log=True)
    assert abs(log + 1924.906114448922) < 1e-9
    assert stats.shift_delta([math.inf, 0.0], [1, 0], math.inf) == 0.0
    assert np.isfinite(stats.residual_scores([1e308, -1e308, 0.0], [0.0, 1.0, 3.0])).all()
    # Between two cuts the walk may come to its end: all that is left is negligible.
    signs = np.array([-1, -1, 1, 1, 1, 1, -1, 1, 1, -1, 1, -1, -1, -1, -1])
    guessed = [True, False, False] + [True] * 12
    walk = stats.kl_scan_offsets(guessed, 96.0858345784158 * signs, beta=1 - 2**-53, kappa=10.0)
    assert not np.isnan(walk.epsilon)
    # As many successes as there are terms whose odds dwarf all others: the secant went astray.
    dwarfed = [-46.30986026289544, 5.758453124160948, 2.6758800677564265, -35.66622012848761]
    dwarfed += [15.615510570852383, 3.734482795764158, 27.00690313532706, -24.534066147370446]
    dwarfed += [70.82056317056046, -46.02215900541035]
    often = [65, 54, 87, 20, 87, 41, 94, 56, 5, 29]
    found = stats.poisson_binomial_epsilon(5, dwarfed, beta=0.7, counts=often)
    assert stats.poisson_binomial_tail_offsets(5, dwarfed, found, counts=often) <= 0.7
    assert stats.poisson_binomial_tail_offsets(5, dwarfed, found + 1e-9, counts=often) > 0.7
    with pytest.raises(errors.OptionError, match="v must be a whole number"):
        stats.poisson_binomial_tail(np.array([np.inf], dtype=np.float16), [0.5])


@pytest.mark.parametrize("seed", range(3))
def test_a_fixed_number_of_guesses_at_log_odds_of_ten(seed: int) -> None:
    rng = np.random.default_rng(seed)
    odds = rng.choice([-10.0, 10.0], size=200)
    shares = 1 / (1 + np.exp(-odds))
    member = rng.random(200) < shares
    result = lb.audit(
        rng.normal(size=200) + member, lb.ZeroRun(member, shares), claim=PureDP(), cuts=lb.Fixed(25)
    )
    assert 0 <= result.bound < 1


KINDS = [poisson_binomial, replicates, tails, paths, approx, fdp, shift]


MANY = pytest.param(range(1000, 101_000), 20_000, marks=pytest.mark.validity)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("cases", "least"), [(range(150), 30), MANY])
def test_hostile_numbers_end_in_a_number_or_an_error(kind: Any, cases: range, least: int) -> None:
    tally = Tally()
    for case in cases:
        with np.errstate(all="ignore"):
            call, sound = kind(Hostile(case))
            tally.check(call, sound, (case, call))
    assert tally.results > least
    assert tally.refusals > 7
