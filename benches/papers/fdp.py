"""Tables and figures of Mahloujifar, Melis and Chaudhuri (2025), in their idealised game."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from leakbound._base.types import FdpTest
from leakbound.audits import Choices, audit
from leakbound.audits.policies.reference import reference
from leakbound.claims import GaussianDP
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import Fixed, OutsideIn
from leakbound.stats import fdp_lower_bound, one_run_epsilon
from outcomes import Cell, Compute, Line, Outcome, Reproduction

__all__ = ["DELTA", "FDP", "PAPER", "epsilon_of", "gdp_bound", "lines_of_panels", "steinke_bound"]

PAPER = "Mahloujifar, Melis and Chaudhuri 2025 (arXiv 2410.22235)"
DELTA = 1e-5
TAU = 0.05
_MOST = 10**7
"""Canaries of the paper's Figures 6 to 9."""
_CANDIDATES = 400
"""Numbers of guesses that are tried."""
_TABLE_1 = {
    0.5: (10**5, 9.99, 4.99, 5.01, 8.16),
    1.0: (10**5, 4.37, 2.61, 2.71, 3.61),
    2.0: (10**5, 1.99, 1.33, 1.35, 1.59),
    4.0: (10**6, 0.92, 0.61, 0.67, 0.82),
}
"""Canaries, and ε as printed: theoretical, Steinke et al., the same pointwise, the paper's own."""

_GAMES = {10_000: 1, 100: 20}
"""Games of Figure 5 that are played with so many canaries."""
_PLAYED = (
    "Means of played games: 20 of 100 canaries, or one. Every canary is guessed, as in the paper; "
    "with abstention the number of guesses is chosen by `OutsideIn`."
)
_IDEAL = (
    "Counts of correct guesses are those expected of the best attack on a sum of orthogonal "
    "canaries (Algorithm 4 simulates them and rounds; here they are computed, and rounded as said)."
)
_WHY_TABLE_1 = (
    "The printed column “ours” is larger than what Algorithm 3 as printed gives. No setting that "
    "was tried gives that column. The expected count rounded down or up: see the table. The "
    "appendix's audit with abstention, `audit_rh_with_cap`, over its noises in steps of 0.01: "
    "7.27, 3.33 and 1.50 in the first three rows, within a step of Algorithm 3. Its driver, which "
    "calls the audit without abstention and ignores its threshold argument, on the guesses alone: "
    "the theory, at which its search begins. More canaries: the last column has 10^7, as in "
    "Figures 6 to 9."
)

_POINTWISE = (
    "Pointwise: the number of guesses is the best one for Steinke's bound at 1e-5; the curve is "
    "rejected if any of 60 pairs (ε, δ), δ from 1e-3 to 1e-9, is."
)
_BEYOND = (
    "The tight test is not in the paper. Nor are guesses of members only: the top of the ranking, "
    "with half the canaries in the inequality."
)
_GROWS = (
    "As printed, ours grows with the number of canaries where Steinke's bound falls; ours is lower "
    "than printed for the reason given with fdp-table1."
)
_APART = (
    "Values are μ apart, as when one replaces another at noise 0.6: the printed code has the same "
    "distance."
)
_FOLLOWS = (
    "Ours follows the theoretical curve in δ at every confidence; Steinke's bound is 0 at large δ "
    "and flattens at small."
)


def _right(m: int, guesses: int, mu: float) -> float:
    """Return the expected number of correct guesses about the most certain of m canaries."""
    share, right = reference("both", mu=mu)
    return m * float(np.interp(guesses / m, share, right))


def epsilon_of(mu: float, delta: float = DELTA) -> float:
    """Return ε of the Gaussian mechanism."""
    return float(TradeOff.gaussian(mu).epsilon(delta))


def gdp_bound(
    m: int,
    guesses: int,
    correct: int,
    test: FdpTest = "recursion",
    *,
    k: int = 2,
    tau: float = TAU,
    one_sided: bool = False,
) -> float:
    """Return the bound on μ of a count of correct guesses."""
    return fdp_lower_bound(
        correct,
        guesses=guesses,
        m=m,
        claim=GaussianDP(),
        tau=tau,
        k=k,
        one_sided=one_sided,
        test=test,
    )


def steinke_bound(m: int, guesses: int, correct: int, delta: float = DELTA) -> float:
    """Return the bound on ε of Theorem 5.2 of Steinke et al., as published."""
    return one_run_epsilon(correct, guesses=guesses, m=m, delta=delta, beta=TAU, bound="steinke")


def _candidates(m: int, count: int = _CANDIDATES) -> list[int]:
    """Return numbers of guesses, few to all."""
    grid = np.rint(np.geomspace(min(20, m // 2), m, num=count))
    return [int(guesses) for guesses in np.unique(grid)]


def _best(
    m: int, mu: float, bound: Callable[[int, int], float], rounding: Callable[[float], int]
) -> tuple[float, int]:
    """Return the largest bound over numbers of guesses, and the number."""
    found = [(bound(r, min(r, rounding(_right(m, guesses=r, mu=mu)))), r) for r in _candidates(m)]
    return max(found)


def _of_one_size(compute: Callable[[], Outcome]) -> Compute:
    """Return what computes the same at the paper's sizes and at smaller ones."""

    def computed(*, full: bool = False) -> Outcome:  # noqa: ARG001
        return compute()

    return computed


@_of_one_size
def _table_1() -> Outcome:
    rows = []
    for sigma, (m, theory, steinke, pointwise, printed) in _TABLE_1.items():
        mu = 1 / sigma
        low, guesses = _best(m, mu=mu, bound=partial(gdp_bound, m), rounding=math.floor)
        high, _ = _best(m, mu=mu, bound=partial(gdp_bound, m), rounding=math.ceil)
        correct = math.floor(_right(m, guesses=guesses, mu=mu))
        member, members = _member_only(m, mu)
        theirs, fixed = _best(m, mu=mu, bound=partial(steinke_bound, m), rounding=math.floor)
        row: list[Cell] = [sigma, m, theory, epsilon_of(mu), steinke, theirs, pointwise]
        row += [
            _pointwise(m, guesses=fixed, correct=math.floor(_right(m, guesses=fixed, mu=mu))),
            printed,
        ]
        row += [
            epsilon_of(low),
            epsilon_of(high),
            epsilon_of(gdp_bound(m, guesses=guesses, correct=correct, test="tight")),
        ]
        row += [epsilon_of(gdp_bound(m, *members, "tight", one_sided=True)), guesses]
        most, _ = _best(_MOST, mu=mu, bound=partial(gdp_bound, _MOST), rounding=math.floor)
        row.append(epsilon_of(most))
        assert member <= mu
        rows.append(tuple(row))
    return Outcome(
        columns=(
            "sigma",
            "canaries",
            "theory (printed)",
            "theory",
            "Steinke (printed)",
            "Steinke",
            "pointwise (printed)",
            "pointwise",
            "ours (printed)",
            "Algorithm 3, floor",
            "Algorithm 3, ceiling",
            "tight, floor",
            "tight, members only",
            "guesses",
            "Algorithm 3, 10^7 canaries",
        ),
        rows=tuple(rows),
        notes=(
            _IDEAL,
            _WHY_TABLE_1,
            _POINTWISE,
            _BEYOND,
        ),
    )


def _member_only(m: int, mu: float) -> tuple[float, tuple[int, int]]:
    """Return the best bound by guesses of members only, and its guesses and right ones."""
    share, right = reference("member", mu=mu)
    found = []
    for guesses in _candidates(m // 2):
        correct = math.floor(m * float(np.interp(guesses / m, share, right)))
        found.append(
            (gdp_bound(m, guesses=guesses, correct=correct, one_sided=True), (guesses, correct))
        )
    return max(found)


def _pointwise(m: int, guesses: int, correct: int) -> float:
    """Return ε of the least private Gaussian curve that some pair (ε, δ) rejects."""
    best = 0.0
    for delta in 10.0 ** -np.linspace(3, 9, num=60):
        proved = steinke_bound(m, guesses=guesses, correct=correct, delta=float(delta))
        if proved <= epsilon_of(best, float(delta)):
            continue
        low = best
        high = 50.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            if epsilon_of(middle, float(delta)) < proved:
                low = middle
            else:
                high = middle
        best = low
    return epsilon_of(best)


def _figure_1(*, full: bool) -> Outcome:
    sizes = [10**power for power in range(2, 7)]
    if full:
        sizes.append(10**7)
    rows: list[tuple[Cell, ...]] = []
    for sigma in _TABLE_1:
        mu = 1 / sigma
        for m in sizes:
            low, guesses = _best(m, mu=mu, bound=partial(gdp_bound, m), rounding=math.floor)
            theirs, _ = _best(m, mu=mu, bound=partial(steinke_bound, m), rounding=math.floor)
            tight = gdp_bound(
                m,
                guesses=guesses,
                correct=math.floor(_right(m, guesses=guesses, mu=mu)),
                test="tight",
            )
            rows.append(
                (
                    sigma,
                    m,
                    epsilon_of(mu),
                    theirs,
                    epsilon_of(low),
                    epsilon_of(max(low, tight)),
                    guesses,
                )
            )
    names = ("theory", "Steinke et al.", "Algorithm 3", "tight test")
    return Outcome(
        columns=("sigma", "canaries", *names, "guesses"),
        rows=tuple(rows),
        notes=(
            _IDEAL,
            _GROWS,
        ),
        lines=lines_of_panels(rows, names, panel=lambda sigma: f"sigma = {sigma:g}"),
        axes=("log canaries", "ε at δ = 1e-05"),
    )


def lines_of_panels(
    rows: Sequence[tuple[Cell, ...]], names: Sequence[str], panel: Callable[[float], str]
) -> tuple[Line, ...]:
    """Return lines of rows whose first entry is the panel, the second x, and then one y a name."""
    lines = []
    for first in dict.fromkeys(row[0] for row in rows):
        cells = [row[1 : 2 + len(names)] for row in rows if row[0] == first]
        points = [[float(cell or 0) for cell in point] for point in cells]
        x, *values = zip(*points, strict=True)
        for name, y in zip(names, values, strict=True):
            lines.append(Line(panel=panel(float(first or 0)), name=name, x=x, y=y))
    return tuple(lines)


def _played(mu: float, m: int, k: int, seed: int) -> list[float]:
    """Play a game of m secrets with k orthogonal values each; return bounds and counts."""
    rng = np.random.default_rng([5, m, k, seed])
    chosen = rng.integers(k, size=m)
    scores = rng.standard_normal((m, k))
    scores[np.arange(m), chosen] += mu / math.sqrt(2)
    design = Choices(chosen, k)
    claim = GaussianDP()
    every = audit(scores, design, claim=claim, cuts=Fixed(m), seed=seed)
    some = audit(scores, design, claim=claim, cuts=OutsideIn(), seed=seed)
    bounds = (gdp_bound(m, guesses=m, correct=every.correct, k=k), every.bound, some.bound)
    return [*map(epsilon_of, bounds), every.correct, some.guesses, some.correct]


def _figure_5(*, full: bool) -> Outcome:
    mu = 1 / 0.6
    rows: list[tuple[Cell, ...]] = []
    for m, values in ((10_000, (50, 100, 250, 500, 1000, 2500, 5000)), (100, (3, 5, 10, 20, 50))):
        for k in values:
            if m * k > 3 * 10**6 and not full:
                continue
            games = [_played(mu, m=m, k=k, seed=seed) for seed in range(_GAMES[m])]
            rows.append((m, k, epsilon_of(mu), *np.mean(games, axis=0).tolist()))
    names = ("theory", "Algorithm 3", "tight test", "with abstention")
    return Outcome(
        columns=("canaries", "k", *names, "right", "guesses", "right of these"),
        rows=tuple(rows),
        notes=(
            _PLAYED,
            _APART,
        ),
        lines=lines_of_panels(rows, names, panel=lambda m: f"{m:g} canaries"),
        axes=("log k", "ε at δ = 1e-05"),
    )


def _guesses(*, full: bool) -> Outcome:
    m = _MOST
    rows = []
    points = 16
    if full:
        points = 31
    tried = np.rint(np.geomspace(100, m, num=points)).astype(int).tolist()
    for sigma in (1.0, 2.0, 4.0, 0.5):
        for guesses in tried:
            correct = math.floor(_right(m, guesses=guesses, mu=1 / sigma))
            exact = one_run_epsilon(correct, guesses=guesses, m=m, delta=DELTA, beta=TAU)
            tested: tuple[Cell, ...] = (
                epsilon_of(1 / sigma),
                steinke_bound(m, guesses=guesses, correct=correct),
                exact,
                epsilon_of(gdp_bound(m, guesses=guesses, correct=correct)),
            )
            rows.append((sigma, guesses, *tested, correct))
    names = ("theory", "Steinke et al.", "(ε, δ), exact form", "Algorithm 3")
    return Outcome(
        columns=("sigma", "guesses", *names, "right"),
        rows=tuple(rows),
        notes=(_IDEAL, "As printed, few guesses are best: 10^7 canaries, most of them unguessed."),
        lines=lines_of_panels(rows, names, panel=lambda sigma: f"sigma = {sigma:g}"),
        axes=("log guesses", "ε at δ = 1e-05"),
    )


@_of_one_size
def _confidence() -> Outcome:
    m = 10**5
    guesses = 1500
    correct = 1429
    rows: list[tuple[Cell, ...]] = []
    for confidence in (0.8, 0.9, 0.95, 0.99, 0.999):
        tau = 1 - confidence
        low = gdp_bound(m, guesses=guesses, correct=correct, tau=tau)
        high = gdp_bound(m, guesses=guesses, correct=correct, test="tight", tau=tau)
        for delta in 10.0 ** -np.arange(2.0, 10.0):
            theirs = one_run_epsilon(
                correct, guesses=guesses, m=m, delta=float(delta), beta=tau, bound="steinke"
            )
            ours = (epsilon_of(low, float(delta)), epsilon_of(high, float(delta)))
            rows.append((confidence, float(delta), epsilon_of(1.0, float(delta)), theirs, *ours))
    names = ("theory", "Steinke et al.", "Algorithm 3", "tight test")
    return Outcome(
        columns=("confidence", "delta", *names),
        rows=tuple(rows),
        notes=(
            "Counts as in the paper: 10^5 canaries, 1500 guesses, 1429 right, noise 1.",
            _FOLLOWS,
        ),
        lines=lines_of_panels(rows, names, panel=lambda confidence: f"confidence {confidence:g}"),
        axes=("log δ", "ε"),
    )


FDP: dict[str, Reproduction] = {
    "fdp-table1": Reproduction(
        title="Empirical ε of the Gaussian mechanism", source=f"{PAPER}, Table 1", compute=_table_1
    ),
    "fdp-figure1": Reproduction(
        title="Empirical ε against the number of canaries",
        source=f"{PAPER}, Figure 1",
        compute=_figure_1,
    ),
    "fdp-figure5": Reproduction(
        title="Reconstruction among k values", source=f"{PAPER}, Figure 5", compute=_figure_5
    ),
    "fdp-guesses": Reproduction(
        title="Empirical ε against the number of guesses",
        source=f"{PAPER}, Figures 6 to 9",
        compute=_guesses,
    ),
    "fdp-confidence": Reproduction(
        title="Empirical ε at other δ and confidences",
        source=f"{PAPER}, Figures 10 and 11",
        compute=_confidence,
    ),
}
