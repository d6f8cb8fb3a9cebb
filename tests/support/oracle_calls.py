"""How the oracle and the snapshots call the package: what is audited, one function a design.

Where a name or an option of the package changes, its function here changes, and neither names nor
numbers of cases. All seeds and sides are passed, so that no default of theirs is in a number.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import flat
import leakbound as lb
import noisy_steps
from games import Floats, expit, fine, game, members
from leakbound import planning, propensity, stats
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from scans import kl_scan, union_bound

SEED = 20
Values = dict[str, float | str]
"""What is compared: floats up to rounding, counts and words exactly."""

# --- claims and cuts ------------------------------------------------------------------------------


def corners(theta: float) -> lb.TradeOff:
    """Return a curve of three corners: a table of the least that ε and δ = 2^-10 leave."""
    most = 1 - 2**-10
    power = float(fine(most / (1 + np.exp(theta))))
    return lb.TradeOff.table([0.0, power, most, 1.0], [most, power, 0.0, 0.0])


def one_way(theta: float) -> lb.TradeOff:
    """Return a curve that is not its own mirror image: a pair (ε, δ) and its complement."""
    ignoring = float(fine(-np.expm1(-theta / 2))) + 2**-20
    return lb.TradeOff.profile([-theta / 2, theta], [max(0.25, ignoring), 0.001])


def family(tradeoff: Callable[[float], lb.TradeOff]) -> lb.TradeOffFamily:
    return lb.TradeOffFamily(parameter="theta", tradeoff=tradeoff, bracket=(0.0, 8.0))


CLAIMS: dict[str, Any] = {
    "pure": lb.PureDP(),
    "approx": lb.ApproxDP(delta=1e-3),
    "approx-small": lb.ApproxDP(delta=1e-6),
    "gaussian": lb.GaussianDP(),
    "gaussian-failures": lb.GaussianDP(delta=1e-4),
    "laplace": lb.LaplaceDP(),
    "table": family(corners),
    "one-way": family(one_way),
    "dp-sgd": lb.SubsampledGaussianDP(sampling_rate=0.1, steps=10),
    "dp-sgd-whole": lb.SubsampledGaussianDP(sampling_rate=1.0, steps=2),
}
CUTS: dict[str, Any] = {
    "default": None,
    "kl": lb.KLScan(),
    "kl-options": lb.KLScan(kappa=4.5, min_guesses=20, grid="all"),
    "outside-in": lb.OutsideIn(),
    "outside-in-levels": lb.OutsideIn([20, 60, 120]),
    "fixed": lb.Fixed(60),
    "union": lb.UnionBound(),
    "union-geometric": lb.UnionBound(grid="geometric"),
    "union-grid": lb.UnionBound(grid=[20, 60, 120]),
    "union-hoeffding": lb.UnionBound(tail="hoeffding"),
    "weighted": lb.Weighted(),
}

# --- what is audited ------------------------------------------------------------------------------


@cache
def scored(name: str) -> tuple[Any, Any]:
    """Return scores and membership of a game of fair coins."""
    data, rng = game(20_000, leak=1.0) if name == "large" else game(), np.random.default_rng(9)
    noise = fine(rng.normal(size=400))
    uneven, pairs = members(400, 235), np.repeat(members(200, 100), 2)
    games: dict[str, tuple[Any, Any]] = {
        "leaks": (data.scores, data.member),
        "large": (data.scores, data.member),
        "noise": (noise, data.member),
        "perfect": (4.0 * data.member[:400] + fine(rng.random(400)), data.member),
        "few": (data.scores[:12], data.member[:12]),
        "ties": (np.round(2 * data.scores) / 2, data.member),
        "two-values": ((data.scores > 1).astype(float), data.member),
        "infinite": (np.where(abs(data.scores) > 2, np.inf, 1) * data.scores, data.member),
        "guesses": (expit(data.scores), data.member),
        "two-attacks": ({"strong": data.scores, "weak": data.weak}, data.member),
        "uneven": (fine(noise + 2 * uneven), uneven),
        "pairs": (fine(noise + 2 * pairs), pairs),
    }
    return games[name]


@cache
def biased(name: str) -> tuple[Floats, Any, Any]:
    """Return scores, membership and prior of a game of biased coins."""
    rng = np.random.default_rng(9)
    noise, chances = fine(rng.normal(size=400)), fine(0.2 + 0.6 * rng.random(400))
    prior = 0.25 if name == "one" else chances
    member = rng.random(400) < prior
    return fine(noise + 2 * member), member, prior


@cache
def learnt(name: str) -> Any:
    """Return propensities of the game of Zero-Run, in each form that they are given in."""
    data, rng = game(240, leak=2.5, shift=0.75), np.random.default_rng(41)
    chances, logistic = data.propensity, propensity.LogisticPropensity()
    if name == "reference":
        others = game(400, shift=0.75, seed=1)
        return logistic.fit(others.features, others.member, seed=SEED)
    if name == "crossed":
        return propensity.cross_fit(logistic, data.features, data.member, seed=SEED)
    return {
        "half": np.full(240, 0.5),
        "certain": np.where(chances > 0.75, 1.0, chances),
        "limits": (fine(0.95 * chances), fine(1 - 0.95 * (1 - chances))),
        "labels": logistic,
        "replicates": expit(0.75 * data.features[:, 0] + 0.1 * rng.normal(size=(40, 240))),
    }[name]


# --- how the package is called --------------------------------------------------------------------


def values(found: Any) -> Values:
    """Return the numbers of a result; of DP-SGD's claim the noise multipliers."""
    if isinstance(found, dict):
        return found
    if isinstance(found, planning.Power):
        counted = ("probability", "mean", "median", "low", "high", "ceiling", "guesses")
        return {name: getattr(found, name) for name in counted}
    if isinstance(found, lb.DPSGDAudit):
        return values(found.membership) | {
            "noise of a step": found.steps.bound,
            "noise of a step, by coins": found.steps.by_coins,
            "guesses of the steps": int(found.steps.game.guesses),
            "sampling rate": found.steps.sampling_rate,
            "p of the mean": found.sampling.p_mean,
            "p of the variance": found.sampling.p_variance,
            "attainable": str(None) if found.attainable is None else found.attainable,
            "refuted by": ", ".join(found.refuted_by),
        }
    every: Values = {
        "bound": float(found.bound),
        "ceiling": float(found.ceiling),
        "guesses": int(found.guesses),
        "correct": int(found.correct),
        "kind": str(found.kind),
    }
    if isinstance(found.claim, lb.SubsampledGaussianDP):
        every |= {name: 1 / max(getattr(found, name), 1e-300) for name in ("bound", "ceiling")}
    if isinstance(found, lb.ZeroRunResult):
        every["naive"] = float(found.naive)
    if isinstance(found, lb.PanoramiaResult):
        every |= {"c": found.c_lb, "c + ε": found.c_plus_epsilon_lb, "ε̃": found.epsilon_tilde}
        every["guesses of the baseline"] = int(found.baseline.guesses)
        every["correct of the baseline"] = int(found.baseline.correct)
        parts = {"conditional": found.conditional, "by match": found.conditional_by_match}
        for part, one in parts.items():
            if one is not None:
                every |= {f"{part} {name}": value for name, value in values(one).items()}
    return every


def named(claim: str, cuts: str, sides: str) -> dict[str, Any]:
    return {"claim": CLAIMS[claim], "cuts": CUTS[cuts], "sides": sides, "seed": SEED}


def coins(
    data: str, claim: str = "pure", cuts: str = "default", sides: str = "both", **options: Any
) -> Any:
    """Audit fair coins."""
    scores, member = scored(data)
    return flat.coins(scores, member, **named(claim, cuts, sides), **options)


def trials(data: str, claim: str) -> Any:
    """Audit the scores of coins as if each was from a separate run."""
    scores, member = scored(data)
    return lb.audit(scores, lb.Trials(member), claim=CLAIMS[claim], seed=SEED)


def prior(data: str, cuts: str, sides: str) -> Any:
    """Audit biased coins."""
    scores, member, chances = biased(data)
    return flat.coins(scores, member, prior=chances, **named("pure", cuts, sides))


def split(
    data: str, claim: str = "pure", cuts: str = "default", *units: str, **options: Any
) -> Any:
    """Audit a random split, of strata, of groups, or with features."""
    rows = np.arange(400)
    given = {"strata": rows % 3, "groups": rows // 2, "features": game().features}
    how = named(claim, cuts, "both") | options | {name: given[name] for name in units}
    return flat.split(*scored(data), **how)


def tally(data: str, claim: str = "pure", sides: str = "both", *, bits: int = 20) -> Any:
    """Audit counts of examples by their scores."""
    counts = lb.Tally.of(*scored(data), bits=bits)
    return flat.coins(counts, **named(claim, "default", sides))


def stream(sides: Any, **options: Any) -> Any:
    """Audit a stream of coins after its last batch."""
    data, found = game(600), lb.Stream(sides=sides, **options)
    for rows in np.split(np.arange(600), 6):
        found = found.update(data.scores[rows], data.member[rows])
    return found.result()


def panoramia(
    cuts: str = "default",
    *,
    baseline: str = "baseline",
    leak: float = 1.5,
    shift: float = 0.0,
    features: bool = False,
    **options: Any,
) -> Any:
    """Audit members against generated points."""
    data, rng = game(400, leak=leak, shift=shift), np.random.default_rng(21)
    attack, known = data.scores, data.baseline
    if baseline != "baseline":
        noise, sure = fine(rng.normal(size=400)), data.member + fine(rng.random(400))
        known = {"noise": noise, "perfect": sure, "attack": attack}[baseline]
    if cuts == "weighted":
        known, attack = expit(known), expit(attack)
    if features:
        options["features"] = data.features
    return flat.panoramia(known, attack, data.member, cuts=CUTS[cuts], seed=SEED, **options)


def zero_run(
    claim: str,
    correction: str = "conditional",
    *,
    cuts: str = "default",
    sides: str = "both",
    given: str = "known",
    leak: float = 2.5,
    shift: float = 0.75,
    features: bool = False,
    attacks: bool = False,
    **options: Any,
) -> Any:
    """Audit observed members and non-members."""
    data = game(240, leak=leak, shift=shift)
    scores: Any = {"strong": data.scores, "weak": data.weak} if attacks else data.scores
    chances = data.propensity if given == "known" else learnt(given)
    how = named(claim, cuts, sides) | {"correction": correction} | options
    if features:
        how["features"] = data.features
    return flat.zero_run(scores, data.member, chances, **how)


def synthetic(made: str, claim: str, **options: Any) -> Any:
    """Audit a synthetic table by the attacks of the package."""
    rng = np.random.default_rng(71)
    table, noise = fine(rng.normal(size=(160, 4))), fine(rng.normal(size=(80, 4)))
    released = fine(table[:80] + 0.02 * noise) if made == "copies" else noise
    how: dict[str, Any] = {"claim": CLAIMS[claim], "seed": SEED} | options
    return lb.audit_synthetic(table[:80], table[80:], released, **how)


def dp_sgd(claim: str, *, accounted: Any = None, **run: Any) -> Any:
    """Audit training with DP-SGD: membership, noise of the steps, sizes of batches."""
    seen = noisy_steps.play(1, **run)
    known = (noisy_steps.EXAMPLES, noisy_steps.EXAMPLES)
    return audit_dp_sgd(seen, accounted=accounted, claim=CLAIMS[claim], examples=known)


TRUTHS: dict[str, Any] = {
    "two": 2.0,
    "normal": planning.Gaussian(1.5),
    "few": planning.Response(3.0, fraction=0.25),
}


def power(claim: str, cuts: str, sides: str, truth: str = "two") -> Any:
    """Forecast an audit of fair coins."""
    how = named(claim, cuts, sides) | {"target": 0.5, "simulations": 20}
    return planning.power(200, TRUTHS[truth], **how)


def canaries(target: float, claim: str, truth: str) -> Values:
    """Plan how many canaries an audit takes."""
    how = named(claim, "default", "both") | {"simulations": 20}
    return {"m": str(planning.canaries_needed(target, TRUTHS[truth], **how).m)}


def ceiling(claim: str, cuts: str) -> Values:
    """Return what a perfect attack would prove."""
    asked, policy = CLAIMS[claim], CUTS[cuts]
    return {"ceiling": planning.ceiling(500, claim=asked, cuts=policy, sides="both")}


@cache
def functions() -> dict[str, Callable[..., Any]]:
    """Return what is called of `leakbound.stats`: tails, inverses, what Zero-Run publishes."""
    data, uniforms = game(240, leak=2.5, shift=0.75), fine(np.random.default_rng(51).random(240))
    log_odds, rates = fine(0.75 * data.features[:, 0]), fine(0.25 + 0.5 * uniforms)
    right = data.member[np.argsort(-data.scores, kind="stable")]
    sides, counted, tried = np.where(data.member, 1, -1), (90, 100, 200), [3, 60, 99]
    gaussian, one = lb.GaussianDP(), lb.TradeOff.gaussian(1.0)
    return {
        "normal_cdf": lambda: stats.normal_cdf([-3.0, 0.5, 8.0]),
        "normal_quantile": lambda: stats.normal_quantile([1e-6, 0.5, 0.9]),
        "binomial_tail": lambda: stats.binomial_tail(tried, 100, 0.5),
        "clopper_pearson": lambda: stats.clopper_pearson(tried, 100, beta=0.05),
        "kl_scan": lambda: kl_scan(right, beta=0.05).logit,
        "union_bound": lambda: union_bound(right, beta=0.05).logit,
        "pb_tail": lambda: stats.poisson_binomial_tail([110, 150], rates),
        "pb_epsilon": lambda: stats.poisson_binomial_epsilon([150, 170], log_odds, beta=0.05),
        "composition": lambda: stats.composition_bound(*counted, claim=gaussian, mu_ds=0.25),
        "shift_mu": lambda: stats.shift_mu(0.5),
        "shift_delta": lambda: stats.shift_delta(log_odds, data.member, 0.5),
        "match": lambda: stats.match(data.member, log_odds, uniforms),
        "residual_scores": lambda: stats.residual_scores(data.scores, log_odds),
        "epsilon": partial(stats.one_run_epsilon, *counted, beta=0.05),
        "p_value": partial(stats.one_run_p_value, *counted, epsilon=1.0),
        "fdp_bound": partial(stats.fdp_lower_bound, *counted, claim=gaussian),
        "fdp_p_value": partial(stats.fdp_p_value, *counted, tradeoff=one),
        "tamper_probability": partial(stats.tamper_probability, sides, log_odds),
    }


def tails(name: str, **options: Any) -> Values:
    """Call a function; of many values keep every so-many-th, and their sum."""
    every = np.atleast_1d(functions()[name](**options)).astype(float)
    some = every[:: max(1, every.size // 8)]
    found: Values = {str(i): float(value) for i, value in enumerate(some)}
    return found | {"sum": float(every.sum())}
