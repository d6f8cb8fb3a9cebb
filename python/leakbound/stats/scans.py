"""Bounds over all cuts of a path of correct guesses, each corrected for the choice."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

import leakbound._core as _core
from leakbound._base.checks import booleans, check_length, flag, integer, real, vector
from leakbound._base.types import ArrayInput
from leakbound.cuts import KLScan, UnionBound
from leakbound.cuts.policies import ScanGrid, UnionGrid
from leakbound.stats.binomial import reals


def kl_scan(
    successes: ArrayInput,
    *,
    beta: float,
    kappa: float | None = None,
    min_guesses: int = 1,
    grid: ScanGrid = "all",
    delta: float = 0.0,
    one_sided: bool = True,
) -> _core.Bound:
    """Bound the probability of success from all cuts of a path: the policy `KLScan`.

    Parameters
    ----------
    successes : array-like of bool, shape (m,)
        Which guesses were right, in visiting order.
    beta : float
        Probability that the bound is above the truth, in (0, 1).
    kappa : float, optional
        Deviation r·KL(W/r ‖ q) that a cut must reach, in nats; ln(1/β) + 1 if None, so
        that another β is another test: at one value of it a smaller β never proves more.
    min_guesses : int
        Smallest cut, in [1, m].
    grid : {"all", "auto"}
        All cuts, or beyond 20,000 guesses only those of a fixed geometric grid of ratio 1.005.
    delta : float
        δ, in [0, 1). If positive, the path holds one guess for each of m examples, in an order
        without ties, and `.p` is e^ε / (1 + e^ε) for the largest ε ≥ 0 that is refuted, else 0. Set
        `min_guesses` to 100 or so: among few guesses one failure is worth a lot.
    one_sided : bool
        Whether no guess but "member" is ever made; matters for δ > 0 only.

    Returns
    -------
    Bound
        `.p` and `.logit` (not clipped, rounded down), `.cut` and `.successes` there. Where no cut
        qualifies they are 0, -inf, 0 and 0.

    Notes
    -----
    The largest q that some cut rejects has an exact law under independent guesses, right with
    probability p; it is inverted in p (Buehler 1957). m successes of m give β^(1/m). Under (ε,
    δ)-DP the guesses are dominated by such independent ones and F rare failures of mean at most g m
    δ / (2 (1 + e^ε)), g = 1 for one-sided guesses and else 2. Whatever the dependence, the chance
    of crossing a boundary is then that of a knapsack: from the crossing probabilities g(k) with a
    head start of k, increments are bought at k a unit until the mean is spent.

    Examples
    --------
    >>> bound = kl_scan([True] * 200, beta=0.05)
    >>> bound.cut, abs(bound.p - 0.05 ** (1 / 200)) < 1e-12
    (200, True)
    """
    path = _path(successes)
    least = integer(min_guesses, "min_guesses", least=1)
    policy = KLScan(kappa=kappa, min_guesses=least, grid=grid)
    policy.check(path.guesses)
    # Failures about non-members count too where both kinds are guessed.
    sides = 1 if flag(one_sided, "one_sided") else 2
    return _core.kl_scan(
        path,
        beta=real(beta, "beta", above=0, below=1),
        kappa=policy.kappa,
        min_guesses=least,
        grid=grid,
        failures=sides * path.guesses * real(delta, "delta", least=0, below=1) / 2,
    )


def kl_scan_offsets(
    successes: ArrayInput,
    offsets: ArrayLike,
    *,
    beta: float,
    kappa: float | None = None,
    min_guesses: int = 1,
) -> _core.OffsetBound:
    """Bound ε from all cuts of a path on which guess i is right with probability ≤ σ(ε + aᵢ).

    As `kl_scan`, with a walk whose steps have unlike probabilities; every cut is examined. Where no
    cut qualifies, `.epsilon`, `.cut` and `.successes` are -inf, 0 and 0.

    Parameters
    ----------
    successes, beta, min_guesses : the same
        As for `kl_scan`.
    offsets : array-like, shape (m,)
        The log-odds aᵢ that each guess has at ε = 0, within ±300, in the same order.
    kappa : float, optional
        Deviation r·KL(W/r ‖ p̄) that a cut must reach, in nats, p̄ the mean of the first r
        probabilities; ln(1/β) + 1 if None.

    Examples
    --------
    >>> bound = kl_scan_offsets([True] * 200, [0.5] * 200, beta=0.05)
    >>> round(bound.epsilon - kl_scan([True] * 200, beta=0.05).logit, 9)
    -0.5
    """
    path = _path(successes)
    least = integer(min_guesses, "min_guesses", least=1)
    policy = KLScan(kappa=kappa, min_guesses=least)
    policy.check(path.guesses)
    values = reals(vector(offsets, "offsets"), "offsets", least=-300, most=300)
    check_length(values, path.guesses, "offsets")
    return _core.kl_scan_offsets(
        path,
        values,
        beta=real(beta, "beta", above=0, below=1),
        kappa=policy.kappa,
        min_guesses=least,
    )


def union_bound(
    successes: ArrayInput,
    *,
    beta: float,
    grid: UnionGrid | Sequence[int] = "all",
    ratio: float = 1.5,
) -> _core.Bound:
    """Bound the probability of success by a union over cuts: the policy `UnionBound`.

    Parameters
    ----------
    successes, beta : the same
        As for `kl_scan`.
    grid : {"all", "geometric"} or sequence of int
        Cuts tested, each at β divided by their number.
    ratio : float
        Ratio of the geometric grid, above 1.

    Examples
    --------
    >>> bound = union_bound([True] * 200, beta=0.05)
    >>> abs(bound.p - (0.05 / 200) ** (1 / 200)) < 1e-12
    True
    """
    return UnionBound(grid=grid, ratio=ratio).bound(
        _path(successes), "member", real(beta, "beta", above=0, below=1)
    )


def _path(successes: ArrayInput) -> _core.Path:
    return _core.Path.from_successes(booleans(vector(successes, "successes"), "successes"))
