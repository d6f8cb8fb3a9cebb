"""Every audit under hostile arrays and options: a bound up to its ceiling or an error of ours."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from hostile import Hostile, Tally
from leakbound import cuts
from leakbound.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP

CLAIMS: list[Any] = [PureDP(), PureDP(), ApproxDP(delta=1e-5), GaussianDP(), LaplaceDP()]


def sound(result: Any) -> bool:
    """Whether a bound is a number between 0 and the largest that the audit can reach."""
    if isinstance(result, lb.Tally):
        return 0 <= result.members <= result.m
    ceiling = getattr(result, "ceiling", math.inf)
    slack = 1e-9 * (1 + abs(ceiling)) if math.isfinite(ceiling) else 0.0
    return bool(0 <= result.bound <= ceiling + slack)


def policy(h: Hostile, m: int) -> Any:
    choices: list[Callable[[], Any]] = [
        lambda: None,
        lambda: cuts.KLScan(min_guesses=h.option(1)),
        lambda: cuts.Fixed(h.option(h.pick([1, m, max(1, m // 2), m + 1]))),
        lambda: cuts.UnionBound(grid=h.pick(["all", "geometric", [1], [m]])),
        cuts.Weighted,
        lambda: h.pick([1, "all", cuts.KLScan, 0.5]),
    ]
    return h.pick(choices[:-1] if not h.one_in(30) else choices)()


def some(h: Hostile, options: dict[str, Any]) -> dict[str, Any]:
    """About one in five of some options, the others at their defaults."""
    return {name: value for name, value in options.items() if h.one_in(5)}


def basic(h: Hostile, m: int) -> dict[str, Any]:
    return {
        "confidence": h.option(h.pick([0.95, 0.95, 1 - 2**-53, 5e-324, 0.5, 1 - 1e-12])),
        "seed": h.option(int(h.rng.integers(3))),
        "ids": h.pick([None, np.arange(m), h.laid_out(np.arange(m)), np.zeros(m)]),
    }


def one_run(h: Hostile) -> Any:
    m = h.size()
    sides = h.option(h.pick(["both", "member"]))
    options = basic(h, m) | {
        "sides": sides,
        "cuts": policy(h, m),
        "prior": h.option(h.pick([h.level(), h.array(h.units(m))])),
    }
    scores, member, claim = h.array(h.reals(m)), h.flags(m), h.option(h.pick(CLAIMS))
    return flat.coins(scores, member, claim=claim, **some(h, options))


def zero_run(h: Hostile) -> Any:
    m = h.size()
    options = basic(h, m) | {
        "cuts": h.pick([None, None, cuts.Fixed(h.pick([1, m, max(1, m // 2)]))]),
        "sides": h.option(h.pick(["both", "member"])),
        "variant": h.option(h.pick(["directional", "paper"])),
        "max_log_odds": h.option(h.pick([None, 2.0, abs(h.real())])),
        "falsify": h.option(not h.one_in(4)),
        "adversary": h.option(h.pick(["raw", "residual", "paper_aware"])),
    }
    options = some(h, options) | {
        "claim": h.option(h.pick(CLAIMS)),
        "correction": h.pick(["conditional", "match", "poisson_binomial", "tamper", "composition"]),
        "release_refuted": True,
    }
    logits = np.clip(np.nan_to_num(h.reals(m)), -12, 12)
    odds = h.pick([h.units(m), 1 / (1 + np.exp(-logits)), 1 / (1 + np.exp(-logits))])
    scores, member = h.array(h.reals(m)), h.flags(m)
    return flat.zero_run(scores, member, h.array(odds), **options)


def panoramia(h: Hostile) -> Any:
    m = h.size()
    options = basic(h, m) | {
        "cuts": policy(h, m),
        "gamma": h.option(h.pick([0.0, 1e-3, 5e-324, 1 - 2**-53])),
        "claim": h.option(h.pick([PureDP(), lb.ApproxDP(delta=1e-5), lb.ApproxDP(delta=0.5)])),
        "relaxation": h.option(h.pick(["knapsack", "published"])),
        "max_recall": h.option(h.pick([1.0, 0.5, h.unit()])),
        "real_nonmembers": h.option(h.one_in(4)),
        "c_upper": h.option(h.pick([None, abs(h.real())])),
    }
    baseline, attack = h.array(h.reals(m)), h.array(h.reals(m))
    return flat.panoramia(baseline, attack, h.flags(m), **some(h, options))


def stream(h: Hostile) -> Any:
    audit = lb.Stream(shares=h.option(h.pick([(1.0, 0.25), (0.5,)])))
    for _ in range(int(h.rng.integers(1, 4))):
        m = h.size(20)
        audit.update(h.array(h.reals(m)), h.flags(m))
    return audit.result()


def split(h: Hostile) -> Any:
    m = h.size()
    parts = h.pick([1, 2, 5, m])
    options = basic(h, m) | {
        "cuts": policy(h, m),
        "strata": h.option(h.pick([h.flags(m), h.array(h.rng.integers(parts, size=m) + 0.0)])),
        "groups": h.option(h.array(np.arange(m) // h.pick([1, 1, 2, 3]) + 0.0)),
        "aggregate": h.option(h.pick(["mean", "max", "min", "median", "sum"])),
    }
    claim = h.option(h.pick(CLAIMS))
    scores, member = h.array(h.reals(m)), h.flags(m)
    return flat.split(scores, member, claim=claim, **some(h, options))


def counts(h: Hostile) -> Any:
    """A tally of scores, or of keys and counts as they come."""
    m = h.size()
    bits = h.option(h.pick([8, 9, 16, 20, 20, 32]))
    if h.one_in(2):
        tally = lb.Tally.of(h.array(h.reals(m)), h.flags(m), bits=bits)
    else:
        keys = np.cumsum(h.rng.integers(1, 4, size=m)) + (1 << 19)
        examples = h.counts(m) + (not h.one_in(8))
        inside = np.minimum(examples, h.counts(m)) if h.one_in(4) else examples // 2
        key, number, members = (
            h.laid_out(one) if h.one_in(9) else one for one in (keys, examples, inside)
        )
        tally = lb.Tally(key, number, members, 20 if h.one_in(2) else bits)
        if tally.m > 2**16:  # refused, or of the size of an audit that takes long
            return tally + tally if h.one_in(2) else lb.Tally.from_arrow(tally.to_arrow())
    options = basic(h, m) | {
        "cuts": policy(h, m),
        "sides": h.option(h.pick(["both", "member"])),
        "prior": h.option(h.level()),
    }
    return flat.coins(tally, claim=h.option(h.pick(CLAIMS)), **some(h, options))


AUDITS = [one_run, zero_run, panoramia, stream, split, counts]


def told(audit: Callable[[Hostile], Any], h: Hostile) -> Any:
    """A result, now and then with all that it computes when asked."""
    result = audit(h)
    if h.one_in(5) and not isinstance(result, lb.Tally):
        result.to_json()
    return result


MANY = pytest.param(range(1000, 101_000), 5_000, marks=pytest.mark.validity)


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.__name__)
@pytest.mark.parametrize(("cases", "least"), [(range(160), 10), MANY])
def test_hostile_arrays_end_in_a_bound_or_an_error(audit: Any, cases: range, least: int) -> None:
    tally = Tally()
    for case in cases:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tally.check(partial(told, audit, Hostile(case)), sound, (audit, case))
    assert tally.results > least
    assert tally.refusals > 10
