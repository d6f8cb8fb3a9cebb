"""Cut policies under (ε, δ)-DP, and the choice between them before labels are seen.

Each is a policy of `leakbound.cuts` that knows how many examples there are and how likely a failure
is. Guesses on a path with fewer guesses than examples are all of one role.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Self, cast

import numpy as np

import leakbound._core as _core
from leakbound._base.types import (
    ApproxBound,
    JsonValue,
    PathOrder,
    Relaxation,
    Sides,
    TailBound,
    TailOptions,
)
from leakbound.audits.policies.reference import REFERENCE, Reference, best_fixed
from leakbound.claims import ApproxDP
from leakbound.cuts import BestCut, CurvePoints, CutPolicy, Fixed, KLScan, PathPolicy, UnionBound
from leakbound.errors import IncompatibleOptionsError

__all__ = ["ApproxPolicy", "approx_policy", "plan_cuts", "plan_fixed", "relaxed_policy"]

_FEWEST = 100
"""The smallest number of guesses of a scan, where there are so many examples."""
_FORMS: dict[TailBound, str] = {
    "exact": (
        "The largest probability of so many right guesses that Theorem 3.1 of Mahloujifar et al. "
        "(2025) allows for the tradeoff curve e^ε x + δ, in closed form."
    ),
    "steinke": "As published: Steinke, Nasr and Jagielski (2023), Theorem 5.2.",
    "coupling": (
        "The guesses are dominated by independent ones and rare failures of known mean; a "
        "knapsack bounds what these can do, whatever their dependence."
    ),
    "panoramia": "As published: Kazmi et al. (2024), Propositions 3 and 4.",
}


@dataclass(frozen=True, kw_only=True)
class _Claim:
    """What a policy under (ε, δ)-DP has to know."""

    delta: float
    examples: int
    sides: Sides
    form: TailBound

    def one_sided(self, path: _core.Path) -> bool:
        return self.sides == "member" or path.guesses < self.examples

    def options(self, path: _core.Path) -> TailOptions:
        return {
            "bound": self.form,
            "m": self.examples,
            "delta": self.delta,
            "k": 2,
            "one_sided": self.one_sided(path),
        }

    def failures(self, path: _core.Path) -> float:
        return (1 if self.one_sided(path) else 2) * self.examples * self.delta / 2


@dataclass(frozen=True, kw_only=True)
class ApproxPolicy(PathPolicy):
    """A policy with bounds that hold under (ε, δ)-DP."""

    base: Fixed | KLScan | UnionBound
    claim: _Claim

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        how = _FORMS[self.claim.form]
        if isinstance(self.base, Fixed):
            return f"One cut, fixed in advance. {how}"
        if isinstance(self.base, KLScan):
            return f"{self.base.method} {how}"
        grid = self.base.grid
        named = grid if isinstance(grid, str) else f"{len(grid)}-point"
        return f"Union bound over the {named} grid of cuts, each at an equal share. {how}"

    @property
    def horizon(self) -> int:
        """See `PathPolicy.horizon`: beyond 1/δ failures outweigh what examples add."""
        return math.ceil(min(100_000, 1 / self.claim.delta))

    @property
    def fixed_guesses(self) -> int | None:
        """See `PathPolicy.fixed_guesses`."""
        return self.base.fixed_guesses

    def with_guesses(self, guesses: int, examples: int) -> Self:
        """See `PathPolicy.with_guesses`."""
        base = Fixed(guesses) if isinstance(self.base, Fixed) else self.base
        return replace(self, base=base, claim=replace(self.claim, examples=examples))

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """See `PathPolicy.orders`."""
        return self.base.orders(sides)

    def check(self, examples: int) -> None:
        """See `PathPolicy.check`."""
        self.base.check(examples)

    def settled(self, level: float) -> PathPolicy:
        """See `PathPolicy.settled`."""
        return self.base.settled(level)

    def chosen(self, path: _core.Path, best: BestCut) -> tuple[int, int]:
        """See `PathPolicy.chosen`."""
        return self.base.chosen(path, best)

    def bound(self, path: _core.Path, level: float) -> _core.Bound:
        """See `PathPolicy.bound`."""
        if isinstance(self.base, KLScan):
            scan = self.base.settled(level)
            return _core.kl_scan(
                path,
                beta=level,
                kappa=scan.kappa,
                min_guesses=scan.min_guesses or 1,
                grid=scan.grid,
                failures=self.claim.failures(path),
            )
        grid, ratio = self._grid(path)
        return _core.approx_union_bound(
            path, beta=level, grid=grid, ratio=ratio, options=self.claim.options(path)
        )

    def curve(self, path: _core.Path, level: float, points: int) -> CurvePoints:
        """See `PathPolicy.curve`."""
        if isinstance(self.base, Fixed):
            return self.base.curve(path, level, points)
        if isinstance(self.base, KLScan):
            scan = self.base.settled(level)
            return _core.kl_curve(
                path,
                beta=level,
                kappa=scan.kappa,
                min_guesses=scan.min_guesses or 1,
                grid=scan.grid,
                points=points,
                failures=self.claim.failures(path),
            )
        grid, ratio = self._grid(path)
        return _core.approx_union_curve(
            path,
            beta=level,
            grid=grid,
            ratio=ratio,
            options=self.claim.options(path),
            points=points,
        )

    def _grid(self, path: _core.Path) -> tuple[Literal["all", "geometric"] | Sequence[int], float]:
        if isinstance(self.base, Fixed):
            return [self.base.cut(path)[0]], 1.5
        union = cast("UnionBound", self.base)
        return union.on(path), union.ratio


def approx_policy(
    cuts: CutPolicy | None,
    claim: ApproxDP,
    bound: ApproxBound,
    *,
    examples: int,
    sides: Sides,
    beta: float,
) -> tuple[ApproxPolicy, dict[str, JsonValue]]:
    """Return the policy of an audit under (ε, δ)-DP, fixed before labels are seen.

    Parameters
    ----------
    cuts : CutPolicy or None
        What was asked for; planned if None.
    claim : ApproxDP
        The claim.
    bound : {"auto", "exact", "steinke", "coupling"}
        Which bound on so many right guesses.
    examples : int
        m.
    sides : {"both", "member"}
        Whether non-members are guessed too.
    beta : float
        Probability of error, in (0, 1).

    Returns
    -------
    tuple of ApproxPolicy and dict
        The policy, and what planning has to say in the options.

    Raises
    ------
    IncompatibleOptionsError
        If the policy or its tail has no form under δ > 0, or `bound` does not go with it.
    """
    planned: dict[str, JsonValue] = {}
    if cuts is None and bound in {"auto", "exact"}:
        cuts, planned = plan_cuts(examples, beta, claim.delta, sides)
    elif cuts is None:
        cuts = (
            KLScan() if bound == "coupling" else plan_fixed(examples, beta, claim.delta, sides)[0]
        )
    if not isinstance(cuts, Fixed | KLScan | UnionBound):
        message = (
            f"cuts={type(cuts).__name__} is for pure DP: under delta > 0 take Fixed, KLScan or "
            "UnionBound"
        )
        raise IncompatibleOptionsError(message)
    if isinstance(cuts, UnionBound) and cuts.tail != "exact":
        message = (
            f'UnionBound(tail="{cuts.tail}") is for pure DP: under delta > 0 the limit of each cut '
            'is what bound="exact", "steinke" or "coupling" names'
        )
        raise IncompatibleOptionsError(message)
    form = _form(cuts, bound)
    context = _Claim(delta=claim.delta, examples=examples, sides=sides, form=form)
    return ApproxPolicy(base=_started(cuts, examples), claim=context), {"bound": form, **planned}


def relaxed_policy(
    cuts: CutPolicy | None, failures: float, relaxation: Relaxation, *, examples: int
) -> ApproxPolicy:
    """Return the policy for guesses of "member" about members and generated points.

    Parameters
    ----------
    cuts : CutPolicy or None
        What was asked for; `KLScan()`, or for the published form `UnionBound()`, if None.
    failures : float
        γ + δ - γδ, in (0, 1).
    relaxation : {"knapsack", "published"}
        Which bound on so many right guesses.
    examples : int
        m.

    Returns
    -------
    ApproxPolicy
        The policy.

    Raises
    ------
    IncompatibleOptionsError
        If the policy has no form with failures, or not the published one.
    """
    form: TailBound = "coupling" if relaxation == "knapsack" else "panoramia"
    if cuts is None:
        cuts = KLScan() if form == "coupling" else UnionBound()
    allowed = (Fixed, UnionBound) if form == "panoramia" else (Fixed, KLScan, UnionBound)
    if not isinstance(cuts, allowed):
        listed = ", ".join(policy.__name__ for policy in allowed)
        message = (
            f"cuts={type(cuts).__name__} has no {relaxation} form: with gamma or delta above 0 "
            f"take one of {listed}"
        )
        raise IncompatibleOptionsError(message)
    context = _Claim(delta=failures, examples=examples, sides="member", form=form)
    return ApproxPolicy(base=_started(cuts, examples), claim=context)


def _started(cuts: Fixed | KLScan | UnionBound, examples: int) -> Fixed | KLScan | UnionBound:
    """Return the policy with the smallest number of guesses that failures leave worth testing."""
    if isinstance(cuts, KLScan) and cuts.min_guesses is None:
        return replace(cuts, min_guesses=min(_FEWEST, examples))
    return cuts


def _form(cuts: Fixed | KLScan | UnionBound, bound: ApproxBound) -> TailBound:
    if not isinstance(cuts, KLScan):
        return "exact" if bound == "auto" else bound
    if bound in {"auto", "coupling"}:
        return "coupling"
    message = f'bound="{bound}" is for Fixed and UnionBound: a scan under delta > 0 is by coupling'
    raise IncompatibleOptionsError(message)


def plan_cuts(
    examples: int, beta: float, delta: float, sides: Sides
) -> tuple[Fixed | KLScan, dict[str, JsonValue]]:
    """Choose between one number of guesses and a scan, by what each would prove at a reference.

    Parameters
    ----------
    examples : int
        m.
    beta : float
        Probability of error, in (0, 1).
    delta : float
        δ.
    sides : {"both", "member"}
        Whether non-members are guessed too.

    Returns
    -------
    tuple of CutPolicy and dict
        The better policy, and what both would prove if members' scores were N(½, 1) and others'
        N(-½, 1).
    """
    fixed, alone = plan_fixed(examples, beta, delta, sides)
    scan = KLScan(min_guesses=min(_FEWEST, examples))
    together = _scan_at_reference(scan, examples, beta, delta, sides)
    planned: dict[str, JsonValue] = {
        "reference": REFERENCE.name,
        "fixed": alone,
        "scan": together,
    }
    return (fixed if alone >= together else scan), {"planned": planned}


@lru_cache(maxsize=256)
def plan_fixed(
    examples: int, beta: float, delta: float, sides: Sides, reference: Reference = REFERENCE
) -> tuple[Fixed, float]:
    """Return the number of guesses that proves most at the reference, and what it proves there.

    Parameters
    ----------
    examples : int
        m.
    beta : float
        Probability of error, in (0, 1).
    delta : float
        δ.
    sides : {"both", "member"}
        Whether non-members are guessed too.
    reference : Reference
        The truth that is planned for.

    Returns
    -------
    tuple of Fixed and float
        The policy and its mean bound on ε.
    """
    options: TailOptions = {
        "bound": "exact",
        "m": examples,
        "delta": delta,
        "k": 2,
        "one_sided": sides == "member",
    }
    return best_fixed(
        examples,
        reference.curve(sides),
        lambda correct, guesses: _core.approx_epsilon(correct, guesses, beta, options),
    )


@lru_cache(maxsize=256)
def _scan_at_reference(
    scan: KLScan, examples: int, beta: float, delta: float, sides: Sides
) -> float:
    """Return what a scan proves if each count of right guesses is the one expected."""
    claim = _Claim(delta=delta, examples=examples, sides=sides, form="coupling")
    policy = ApproxPolicy(base=scan, claim=claim)
    share, right = REFERENCE.curve(sides)

    def path(guesses: int, examples: int) -> _core.Path:
        expected = np.interp(np.arange(guesses + 1) / examples, share, right) * examples
        return _core.Path.from_successes(np.diff(np.floor(expected)) > 0)

    if sides == "member":
        return max(0.0, policy.bound(path(examples, examples), beta).logit)
    half = examples // 2
    paths = [path(half, half), path(examples, examples)] if half else [path(examples, examples)]
    return max(0.0, *(policy.bound(one, beta / 3).logit for one in paths))
