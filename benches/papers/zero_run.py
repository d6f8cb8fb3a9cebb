"""The figure of the Zero-Run paper on its synthetic mechanism."""

from typing import Any

import numpy as np

from leakbound._base.console import track
from leakbound._base.types import FloatArray
from leakbound.audits.designs import audit_of
from leakbound.claims import GaussianDP, PureDP
from leakbound.cuts import Fixed
from leakbound.propensity import LogisticPropensity, PropensityFit
from leakbound.results.zero_run import ZeroRunResult
from leakbound.stats import composition_bound
from noisy_sums import NoisySum, noisy_sum
from outcomes import Cell, Line, Outcome, Reproduction

__all__ = ["ERROR", "PAPER", "ZERO_RUN"]

PAPER = 'Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run"'
_MU = 0.66
ERROR = 0.025
"""Probability of error of a bound with known propensities, as in the paper."""
_SWEEP = (1000, 500, 200, 100, 50, 25)
"""Numbers of guesses that the paper sweeps: 9,000 to 9,975 abstentions of 10,000."""
_SHIFTS = (1.0, 0.9, 0.8, 0.6, 0.4, 0.2)

_MECHANISM = (
    "The noisy sum of Appendix F with μ = 0.66, bias 2 and as many dimensions as examples, which "
    "the paper does not state; shift is the bias of non-members as a share of that of members."
)
_ORACLE = "Except in two columns propensities are exact, and the probability of error is 0.025."
_BEST_OF_SIX = (
    "As in the paper, the columns “best of six” test counts by Algorithm 3 of Mahloujifar et al., "
    "and report the largest bound over six numbers of guesses, without a correction; those below "
    "are what audits report."
)
_LEARNT = (
    "In the columns “learnt” propensities are not given: a logistic model learns from a tenth "
    "as many other examples, at probability of error 0.05 as in the paper. Its percentile of 600 "
    "refits is no confidence bound; the bound over a confidence set, which the audited "
    "labels enter too, is."
)
_INVALID = "The uncorrected audit takes membership for a fair coin: above 0.66 it is wrong."


def _shift_sweep(*, full: bool, m: int = 10_000, repetitions: int = 3) -> Outcome:
    """Bounds against shift: Figure 2(a)."""
    if full:
        repetitions = 20
    names = tuple(_bounds(noisy_sum(50, holdout=50, seed=0)))
    pairs = [(shift, seed) for shift in _SHIFTS for seed in range(repetitions)]
    found: dict[float, list[list[float]]] = {shift: [] for shift in _SHIFTS}
    for shift, seed in track(pairs, "games", total=len(pairs), shown=True):
        game = noisy_sum(m, mu=_MU, shift=shift, holdout=m // 10, seed=seed)
        found[shift].append(list(_bounds(game).values()))
    means = {shift: np.mean(values, axis=0) for shift, values in found.items()}
    rows: list[tuple[Cell, ...]] = []
    for shift, values in found.items():
        wrong = sum(row[0] > _MU for row in values)
        rows.append((shift, *(round(float(x), 3) for x in means[shift]), f"{wrong}/{repetitions}"))
    curves = {name: tuple(float(means[s][i]) for s in _SHIFTS) for i, name in enumerate(names)}
    return Outcome(
        columns=("shift", *names, "uncorrected above 0.66"),
        rows=tuple(rows),
        notes=(
            f"{_MECHANISM} {m:,} examples, means of {repetitions} games.",
            _ORACLE,
            _LEARNT,
            _BEST_OF_SIX,
            _INVALID,
            "The last column of bounds is on ε of pure DP, which this mechanism does not satisfy.",
        ),
        lines=tuple(
            Line(panel="", name=name, x=tuple(1 - s for s in _SHIFTS), y=curves[name])
            for name in names[:-1]
        ),
        axes=("1 - shift", "bound on μ"),
    )


def _bounds(game: NoisySum) -> dict[str, float]:
    """Return the bounds of every method on one game."""

    def bound(**options: Any) -> float:
        return _audit(game, **options).bound

    def best(*, shift: float = 0.0, **options: Any) -> float:
        allowed = [r for r in _SWEEP if r <= game.member.size] or [game.member.size // 2]
        return max(_published(_audit(game, cuts=Fixed(r), **options), shift) for r in allowed)

    paper: dict[str, Any] = {"correction": "tamper", "variant": "paper"}
    half = np.full(game.member.size, fill_value=0.5)
    fit = LogisticPropensity(calibration=None).fit(
        game.holdout_features, game.holdout_member, seed=0
    )
    learnt: dict[str, Any] = {
        "features": game.features,
        "falsify": False,
        "confidence": 1 - 2 * ERROR,
    }
    worst = float(np.abs(game.log_odds).max())
    return {
        "uncorrected, best of six": best(propensity=half, adversary="raw"),
        "composition, best of six": best(correction="composition", shift=worst),
        "paper's tampering, unaware, best of six": best(adversary="raw", **paper),
        "paper's tampering, aware, best of six": best(adversary="paper_aware", **paper),
        "directional tampering": bound(correction="tamper", max_log_odds=0.25),
        "matching": bound(),
        "learnt, percentile of refits": bound(propensity=fit, uncertainty="bootstrap", **learnt),
        "learnt, confidence set": bound(propensity=fit, uncertainty="set", **learnt),
        "signed odds, ε": bound(claim=PureDP()),
    }


def _published(found: ZeroRunResult, shift: float) -> float:
    """Test the counts of an audit as the paper does, and take off what shift leaks."""
    counts = found.correct, found.guesses, found.m_eff
    return composition_bound(*counts, claim=GaussianDP(), epsilon_ds=shift, tau=ERROR)


def _audit(
    game: NoisySum, *, propensity: FloatArray | PropensityFit | None = None, **options: Any
) -> ZeroRunResult:
    given = propensity
    if propensity is None:
        given = game.propensity
    options = {"confidence": 1 - ERROR, "seed": 0} | options
    result = audit_of("zero_run", game.scores, member=game.member, propensity=given, **options)
    assert isinstance(result, ZeroRunResult)
    return result


ZERO_RUN: dict[str, Reproduction] = {
    "zerorun-figure2a": Reproduction(
        title="Bounds against distribution shift",
        source=f"{PAPER}, Figure 2(a)",
        compute=_shift_sweep,
    ),
}
"""Reproductions by name."""
