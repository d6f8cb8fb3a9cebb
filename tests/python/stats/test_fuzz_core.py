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

Call = tuple[Callable[[], Any], Callable[[Any], bool], object]


def probability(value: Any) -> bool:
    array = np.asarray(value)
    return bool(((array >= 0) & (array <= 1)).all())


def logarithm(value: Any) -> bool:
    return bool((np.asarray(value) <= 0).all())


def number(value: Any) -> bool:
    return not np.isnan(np.asarray(value)).any()


def least_zero(value: Any) -> bool:
    return bool((np.asarray(value) >= 0).all())


def bound(value: Any) -> bool:
    return 0 <= value.p <= 1 and number(value.logit) and value.successes <= value.cut


def poisson_binomial(h: Hostile) -> Call:
    n = h.size()
    options: dict[str, Any] = {}
    if h.one_in(3):
        options["counts"] = h.array(h.counts(n))
    v = h.pick([h.count(n), h.count(n), h.count(10 * n), [h.count(n), h.count(n)], h.real()])
    kind = h.rng.integers(4)
    if kind == 0:
        p, log = h.array(h.units(n)), h.one_in(2)
        sound = logarithm if log else probability
        call = partial(stats.poisson_binomial_tail, v, p, log=log, **options)
        return call, sound, ("tail", v, p, options)
    if kind == 1:
        a, epsilon, log = h.array(h.reals(n)), h.pick([0.0, 1.0, h.real(), h.real()]), h.one_in(2)
        sound = logarithm if log else probability
        call = partial(stats.poisson_binomial_tail_offsets, v, a, epsilon, log=log, **options)
        return call, sound, ("offsets", v, a, epsilon, options)
    a, beta = h.array(h.reals(n)), h.option(h.level())
    call = partial(stats.poisson_binomial_epsilon, v, a, beta=beta, **options)
    return call, number, ("epsilon", v, a, beta, options)


def replicates(h: Hostile) -> Call:
    n, rows = h.size(20), h.size(6)
    offsets = h.reals(n * rows).reshape(rows, n) if h.one_in(2) else h.reals(n)
    counts = h.counts(n * rows).reshape(rows, n) if offsets.ndim == 1 else None
    v, beta = h.rng.integers(0, n + 2, size=rows), h.option(h.level())

    def call() -> Any:
        return stats.poisson_binomial_epsilon(v, offsets, beta=beta, counts=counts)

    return call, number, ("replicates", v, offsets, counts, beta)


def tails(h: Hostile) -> Call:
    n = h.pick([h.size(), 10**6, 2**53, 2**31, 1])
    v, p, beta = h.count(n), h.unit(), h.option(h.level())
    kind = h.rng.integers(5)
    if kind == 0:
        log = h.one_in(2)
        sound = logarithm if log else probability
        return partial(stats.binomial_tail, v, n, p, log=log), sound, ("binomial", v, n, p)
    if kind == 1:
        return partial(stats.clopper_pearson, v, n, beta=beta), probability, ("limit", v, n, beta)
    x = h.array(h.reals(h.size(5)))
    if kind == 2:
        return partial(stats.normal_cdf, x), probability, ("cdf", x)
    if kind == 3:
        return partial(stats.log_normal_cdf, x), logarithm, ("log cdf", x)
    p = h.array(h.units(h.size(5)))
    return partial(stats.normal_quantile, p), number, ("quantile", p)


def paths(h: Hostile) -> Call:
    m = h.size()
    successes, beta = h.flags(m), h.option(h.level())
    least = h.option(h.pick([1, 1, 2, m, m + 1]))
    kappa = h.option(h.pick([None, None, abs(h.real())]))
    kind = h.rng.integers(3)
    if kind == 0:
        delta, sided = h.option(h.pick([0.0, 1e-5, 5e-324, 1 - 2**-53])), h.one_in(2)

        def scan() -> Any:
            return stats.kl_scan(
                successes,
                beta=beta,
                kappa=kappa,
                min_guesses=least,
                delta=delta,
                one_sided=sided,
                grid=h.option("all"),
            )

        return scan, bound, ("kl", successes, beta, kappa, least, delta)
    if kind == 1:
        offsets = h.array(h.reals(m))

        def unlike() -> Any:
            return stats.kl_scan_offsets(
                successes, offsets, beta=beta, kappa=kappa, min_guesses=least
            )

        return unlike, lambda b: number(b.epsilon), ("kl offsets", successes, offsets, beta, kappa)
    grid = h.option(h.pick(["all", "geometric", [1], [m], [1, m], [0], [2**40]]))
    ratio = h.option(h.pick([1.5, 1 + 2**-52, abs(h.real())]))
    call = partial(stats.union_bound, successes, beta=beta, grid=grid, ratio=ratio)
    return call, bound, ("union", successes, beta, grid, ratio)


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
    if h.one_in(2):
        epsilon = h.option(abs(h.real()))
        call = partial(stats.one_run_p_value, **counts, epsilon=epsilon, **options)
        return call, probability, ("p", counts, epsilon, options)
    beta = h.option(h.level())
    call = partial(stats.one_run_epsilon, **counts, beta=beta, **options)
    return call, least_zero, ("epsilon", counts, beta, options)


def curve(h: Hostile) -> TradeOff:
    size = abs(h.pick([0.0, 0.5, 3.0, h.real()]))
    delta = h.pick([0.0, 1e-5, 5e-324, 0.5, 1 - 2**-53])
    kind = h.rng.integers(3)
    if kind == 0:
        return TradeOff.gaussian(size, delta=delta)
    return TradeOff.laplace(size) if kind == 1 else TradeOff.approx(size, delta)


def fdp(h: Hostile) -> Call:
    counts = single(h) | {"k": h.option(h.pick([2, 2, 3, 2**32 - 1])), "one_sided": h.one_in(4)}
    test, tau, kind = h.pick(["tight", "recursion"]), h.option(h.level()), h.rng.integers(4)
    if kind == 0:
        family = h.pick([GaussianDP(), GaussianDP(delta=1e-5), LaplaceDP()])

        def lower() -> Any:
            return stats.fdp_lower_bound(**counts, claim=family, tau=tau, test=test)

        return lower, least_zero, ("fdp bound", counts, family, tau, test)
    if kind == 1:
        claim = h.pick([PureDP(), ApproxDP(delta=1e-5), GaussianDP()])
        counts = {name: counts[name] for name in ("correct", "guesses", "m")}
        size = h.option(abs(h.real()))

        def composed() -> Any:
            return stats.composition_bound(
                **counts, claim=claim, epsilon_ds=size, tau=tau, test="recursion"
            )

        return composed, least_zero, ("composition", counts, claim, size, tau)
    state = h.rng.bit_generator.state

    def made() -> TradeOff:
        h.rng.bit_generator.state = state
        return curve(h)

    if kind == 2:

        def p_value() -> Any:
            return stats.fdp_p_value(**counts, tradeoff=made(), test=test)

        return p_value, probability, ("fdp p", counts, test, state)

    def rejects() -> Any:
        return stats.fdp_rejects(**counts, tradeoff=made(), tau=tau, test=test)

    return rejects, lambda value: value in {True, False}, ("fdp rejects", counts, tau, test, state)


def shift(h: Hostile) -> Call:
    m = h.size()
    odds, uniforms = h.array(h.reals(m)), h.array(h.rng.random(m))
    guesses = h.array(h.rng.integers(-1, 2, size=m).astype(float))
    scores, member = h.array(h.reals(m)), h.flags(m)
    epsilon = h.option(h.pick([None, 0.0, abs(h.real())]))
    variant = h.option(h.pick(["directional", "paper"]))
    kind = h.rng.integers(6)
    call: Callable[[], Any]
    if kind == 0:
        return partial(stats.match, member, odds, uniforms), number, ("match", member, odds)
    options = {"variant": variant, "epsilon": epsilon}
    if kind == 1:
        call = partial(stats.tamper_probability, guesses, odds, **options)
        return call, probability, ("b", guesses, odds, options)
    if kind == 2:
        prior = h.option(h.pick([None, h.level()]))
        call = partial(stats.residual_scores, scores, odds, prior=prior)
        return call, number, ("residual", scores, odds, prior)
    if kind == 3:
        p = h.option(h.level())
        return partial(stats.bootstrap_quantile, scores, p=p), number, ("quantile", scores, p)
    if kind == 4:
        size = h.option(abs(h.real()))
        return partial(stats.shift_mu, size), least_zero, ("shift_mu", size)
    size = h.option(abs(h.real()))
    return (
        partial(stats.shift_delta, odds, member, size),
        probability,
        ("delta", odds, member, size),
    )


def test_numbers_that_used_to_panic_or_to_be_nan() -> None:
    found = stats.poisson_binomial_epsilon(25, [10.0, -10.0] * 25, beta=1e-3)
    assert abs(found + 8.85510334545258) < 1e-12
    assert stats.poisson_binomial_tail_offsets(25, [10.0, -10.0] * 25, found) <= 1e-3
    assert stats.poisson_binomial_tail_offsets(1, [-1e300] * 5, 0.0) == 0.0
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


def run(kind: Callable[[Hostile], Call], cases: int, first: int = 0) -> Tally:
    tally = Tally()
    for case in range(first, first + cases):
        with np.errstate(all="ignore"):
            tally.check(*kind(Hostile(case)))
    return tally


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_hostile_numbers_end_in_a_number_or_an_error(kind: Callable[[Hostile], Call]) -> None:
    tally = run(kind, 150)
    assert tally.results > 30
    assert tally.refusals > 7


@pytest.mark.validity
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_many_hostile_numbers_end_in_a_number_or_an_error(kind: Callable[[Hostile], Call]) -> None:
    tally = run(kind, 100_000, first=1000)
    assert tally.results > 20_000
