"""The table of cases: adding an audit, a policy or a kind of game is adding a line.

The public names are those of `leakbound.validity`.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, cast

import numpy as np

from leakbound import simulate
from leakbound._base.odds import logit
from leakbound._base.streams import Purpose
from leakbound._base.types import SidesChoice
from leakbound._base.validation import integer, real
from leakbound.audits import audit_one_run
from leakbound.claims import ApproxDP, Claim, GaussianDP, LaplaceDP, PureDP
from leakbound.cuts import (
    CutPolicy,
    Fixed,
    KLScan,
    OutsideIn,
    UnionBound,
)
from leakbound.errors import OptionTypeError
from leakbound.stats import kl_scan
from leakbound.validity.asymmetric import asymmetric_cases
from leakbound.validity.attackers import attacker_cases
from leakbound.validity.designs import design_cases
from leakbound.validity.games import (
    Attack,
    Attacks,
    Boundary,
    LaplaceNoise,
    Looks,
    Play,
    Response,
    UserGame,
)
from leakbound.validity.implied import implied_cases
from leakbound.validity.learnt import learnt_cases
from leakbound.validity.nuisance import nuisance_cases
from leakbound.validity.random_splits import split_cases
from leakbound.validity.same_seed import same_seed_cases
from leakbound.validity.suite import CHEAP, COSTLY, DEAR, FUTILE, MODERATE, Case
from leakbound.validity.synthetic import synthetic_cases
from leakbound.validity.ties import coarse_cases
from leakbound.validity.trials import ERROR, OneRun, OneRunClaims, Panoramia, Stream
from leakbound.validity.zero_run import zero_run_cases

__all__ = ["attack_cases", "cases", "pure_policies"]

_SIDES: tuple[SidesChoice, ...] = ("both", "member")
_RARE = 1e-4
"""γ and δ of PANORAMIA, in games of 150 examples."""
_DELTA = 0.01
"""δ of the games: so large that failures happen in a few hundred games."""


def pure_policies(m: int) -> dict[str, CutPolicy]:
    """Return the policies that a pure claim is tried with, by name."""
    return {
        "kl": KLScan(),
        "kl-late": KLScan(min_guesses=m // 4, kappa=3.0),
        "union": UnionBound(),
        "geometric": UnionBound(grid="geometric"),
        "hoeffding": UnionBound(tail="hoeffding"),
        "fixed": Fixed(m // 2),
    }


def _approx_policies(m: int) -> dict[str, CutPolicy | None]:
    return {
        "planned": None,
        "fixed": Fixed(m // 2),
        "kl": KLScan(min_guesses=m // 4),
        "union": UnionBound(),
        "geometric": UnionBound(grid="geometric"),
    }


def _boundaries() -> dict[str, tuple[int, Play]]:
    """Return kinds of games for pure DP: examples, enough for an error to be within reach."""
    return {
        "noise": (60, partial(simulate.null, 60)),
        "p=0.5": (60, Boundary(m=60, p=0.5)),
        "p=0.73": (80, Boundary(m=80, p=0.73)),
        "p=0.95": (300, Boundary(m=300, p=0.95)),
        "p=0.993": (2000, Boundary(m=2000, p=0.993)),
        "tied": (80, Boundary(m=80, p=0.73, tied=True)),
        "wavering": (80, Boundary(m=80, p=0.73, wavering=True)),
        "response": (80, partial(simulate.randomized_response, 80, 1.0)),
        "response-30%": (150, partial(simulate.randomized_response, 150, 1.5, fraction=0.3)),
    }


_LEAKS: dict[str, tuple[int, Play]] = {
    "noise": (150, partial(simulate.null, 150)),
    "response": (150, partial(simulate.randomized_response, 150, 1.0, delta=_DELTA)),
    "gaussian": (150, partial(simulate.gaussian, 150, 1.0)),
    "mixture": (150, partial(simulate.mixture, 150, 1.0)),
}
"""Games for claims with δ > 0."""


def _one_run(
    truth: tuple[str, Play],
    claim: Claim,
    cuts: tuple[str, CutPolicy | None],
    sides: SidesChoice,
    options: Mapping[str, Any] | None = None,
    **how: Any,
) -> Case:
    return Case(
        audit="one-run",
        claim=claim.name,
        cuts=cuts[0],
        sides=sides,
        truth=truth[0],
        error=ERROR,
        trial=OneRun(truth[1], claim, {"cuts": cuts[1], "sides": sides, **(options or {})}),
        **how,
    )


_CHEAP = {"kl", "fixed", "union", "geometric"}
"""Policies for pure DP that are the default, or as quick."""


def _pure() -> Iterator[Case]:
    for sides in _SIDES:
        for truth, (m, play) in _boundaries().items():
            for cuts in pure_policies(m).items():
                cheap = CHEAP if cuts[0] in _CHEAP else MODERATE
                quick, long = (100, DEAR) if m > 200 else (200, cheap)
                yield _one_run((truth, play), PureDP(), cuts, sides, quick=quick, long=long)


_SLOW = {"split", "geometric", "adaptive"}
"""Policies for families of trade-off functions that try many counts."""


def _families() -> Iterator[Case]:
    policies: dict[str, CutPolicy | None] = {
        "planned": None,
        "fixed": Fixed(75),
        "geometric": UnionBound(grid="geometric"),
    }
    for sides in _SIDES:
        for truth in ("noise", "gaussian", "mixture"):
            play = (truth, _LEAKS[truth][1])
            for cuts in policies.items():
                games = COSTLY if cuts[0] in _SLOW else DEAR
                yield _one_run(play, GaussianDP(), cuts, sides, quick=40, long=games)
            recursion = "fixed-recursion", Fixed(75)
            how = {"test": "recursion"}
            yield _one_run(play, GaussianDP(), recursion, sides, how, quick=40, long=DEAR)
        laplace = "laplace", LaplaceNoise(m=150)
        for cuts in policies.items():
            games = COSTLY if cuts[0] in _SLOW else DEAR
            yield _one_run(laplace, LaplaceDP(), cuts, sides, quick=40, long=games)


def _approx() -> Iterator[Case]:
    claim = ApproxDP(delta=_DELTA)
    for sides in _SIDES:
        for truth, (m, play) in _LEAKS.items():
            for cuts in _approx_policies(m).items():
                yield _one_run((truth, play), claim, cuts, sides, quick=100, long=DEAR)


def _named_bounds() -> Iterator[Case]:
    """Yield cases of the bounds under δ > 0 that are not the default."""
    claim = ApproxDP(delta=_DELTA)
    policies: dict[str, CutPolicy] = {
        "fixed": Fixed(75),
        "union": UnionBound(),
        "geometric": UnionBound(grid="geometric"),
    }
    for bound in ("steinke", "coupling"):
        for name, cuts in policies.items():
            for sides in _SIDES:
                for truth, (_, play) in _LEAKS.items():
                    named, how = (f"{name}-{bound}", cuts), {"bound": bound}
                    yield _one_run((truth, play), claim, named, sides, how, quick=50, long=DEAR)


_PRIORS = (0.2, 0.9)


def _not_fair() -> Iterator[Case]:
    """Yield cases of coins that are not fair."""
    policies: dict[str, CutPolicy] = {"kl": KLScan(), "fixed": Fixed(60)}
    for sides in _SIDES:
        for prior in _PRIORS:
            for epsilon in (0.0, 1.0):
                truth = f"π={prior:g},ε={epsilon:g}", Response(m=120, prior=prior, epsilon=epsilon)
                for cuts in policies.items():
                    options = {"prior": prior}
                    yield _one_run(truth, PureDP(), cuts, sides, options, quick=100, long=MODERATE)


def _together() -> Iterator[Case]:
    """Yield cases of three attacks of which the best counts."""
    for sides in _SIDES:
        for truth in ("noise", "p=0.73", "p=0.95"):
            m, play = _boundaries()[truth]
            three = f"three-{truth}", Attacks(play=play, number=3)
            for name in ("kl", "fixed", "geometric"):
                cuts = name, pure_policies(m)[name]
                yield _one_run(three, PureDP(), cuts, sides, quick=100, long=DEAR)
        for truth, claim in _OUTSIDE_IN:
            play, planned = _LEAKS[truth][1], ("planned", None)
            looks = f"three-{truth}", Looks(play=play, number=3)
            yield _one_run(looks, claim, planned, sides, quick=20, long=COSTLY)


_OUTSIDE_IN: tuple[tuple[str, Claim], ...] = (
    ("noise", GaussianDP()),
    ("gaussian", GaussianDP()),
    ("mixture", GaussianDP()),
    ("noise", ApproxDP(delta=_DELTA)),
    ("response", ApproxDP(delta=_DELTA)),
)
"""Games at the boundary of claims whose number of guesses labels choose from the outside in."""


def _claims_together() -> Iterator[Case]:
    """Yield cases of two claims about the same game, neither of which may be too much."""
    both: tuple[Claim, ...] = (GaussianDP(), ApproxDP(delta=_DELTA))
    for sides in _SIDES:
        for truth in ("noise", "gaussian", "mixture"):
            yield Case(
                audit="one-run",
                claim=" and ".join(one.name for one in both),
                cuts="planned",
                sides=sides,
                truth=truth,
                error=ERROR,
                trial=OneRunClaims(_LEAKS[truth][1], both, {"sides": sides}),
                quick=20,
                long=COSTLY,
            )


def _streams() -> Iterator[Case]:
    for sides in _SIDES:
        batches: dict[str, Play] = {
            "noise": partial(simulate.null, 30),
            "p=0.73": Boundary(m=30, p=0.73),
            "p=0.95": Boundary(m=40, p=0.95),
            "wavering": Boundary(m=30, p=0.73, wavering=True),
        }
        for truth, play in batches.items():
            yield Case(
                audit="stream",
                claim=PureDP().name,
                cuts="ville",
                sides=sides,
                truth=truth,
                error=ERROR,
                trial=Stream(play, sides),
                quick=100,
                long=COSTLY,
            )


_JOINT: dict[str, dict[str, Any]] = {
    "kl": {},
    "union": {"cuts": UnionBound()},
    "hoeffding": {"cuts": UnionBound(), "tail": "hoeffding"},
    "fixed": {"cuts": Fixed(50)},
}
_PAIRS = ((0.5, 0.5), (0.5, 0.73), (0.6, 0.8), (0.8, 0.8), (0.73, 0.95))
_LIMITS: dict[str, tuple[float, dict[str, Any]]] = {
    "real-nonmembers": (2 * logit(0.73), {"real_nonmembers": True}),
    "c-upper": (logit(0.73) - logit(0.6), {"c_upper": logit(0.6)}),
}
"""What makes c + ε speak of ε, and the true ε, where the attack is right with probability 0.73.

Of two real examples, both answers change where one replaces the other.
"""


def _panoramia() -> Iterator[Case]:
    row = partial(Case, audit="panoramia", sides="member", error=ERROR, long=MODERATE)
    for cuts, options in _JOINT.items():
        for pair in _PAIRS:
            truth, trial = "p={:g},{:g}".format(*pair), Panoramia(*pair, None, options)
            yield row(claim="c, c+ε", cuts=cuts, truth=truth, trial=trial)
    for limit, (epsilon, options) in _LIMITS.items():
        trial = Panoramia(0.5, 0.73, epsilon, options)
        yield row(claim=f"ε, {limit}", cuts="kl", truth="p=0.5,0.73", trial=trial)
    # γ and δ so small that no failure happens: the cost of allowing for them is all there is
    for cuts, policy in {
        "planned": None,
        "kl": KLScan(),
        "outside-in": OutsideIn([20, 60]),
    }.items():
        for pair in _PAIRS:
            options = {"gamma": _RARE, "delta": _RARE, "cuts": policy}
            truth, trial = "p={:g},{:g}".format(*pair), Panoramia(*pair, None, options)
            yield row(claim="(c, γ), (c+ε, γ+δ)", cuts=cuts, truth=truth, trial=trial)
    # no leakage, and a generator that the attack can tell from the data where the baseline cannot
    blind = Panoramia(0.5, 0.8, 0.0, {})
    yield row(claim="ε̃ as ε", cuts="kl", truth="blind", trial=blind, valid=False, long=FUTILE)


def _ties_by_label(seed: int) -> bool:
    """Whether noise looks like leakage if members come first among equal scores."""
    rng = Purpose.TIES_BY_LABEL.rng(seed)
    member = rng.random(200) < 0.5
    scores = rng.integers(0, 4, size=200)
    return kl_scan(member[np.lexsort((~member, -scores))], beta=ERROR).logit > 0


def _half_of_six(seed: int) -> bool:
    """Whether six correct guesses of six count as leakage, if exactly three of them are members."""
    member = Purpose.HALF_OF_SIX.rng(seed).permutation(6) < 3
    result = audit_one_run(np.arange(6.0), member, cuts=Fixed(6), confidence=0.98, seed=seed)
    return result.bound > 0


def _traps() -> Iterator[Case]:
    trap = partial(Case, audit="trap", claim="pure DP", truth="noise", valid=False, long=FUTILE)
    yield trap(cuts="ties-by-label", sides="member", error=ERROR, trial=_ties_by_label)
    yield trap(
        cuts="fixed-size", sides="both", error=0.02, trial=_half_of_six, quick=3000, long=MODERATE
    )


_TABLES = (
    _pure,
    _approx,
    _named_bounds,
    _families,
    _not_fair,
    _together,
    _claims_together,
    _streams,
    _panoramia,
    zero_run_cases,
    learnt_cases,
    attacker_cases,
    coarse_cases,
    same_seed_cases,
    design_cases,
    split_cases,
    asymmetric_cases,
    nuisance_cases,
    synthetic_cases,
    implied_cases,
    _traps,
)


def cases(words: str = "") -> tuple[Case, ...]:
    """Return the cases of this package's audits.

    Parameters
    ----------
    words : str
        Words that a case must have, all of them, such as "one-run kl both"; all cases if empty.

    Returns
    -------
    tuple of Case
        The cases; empty if no case has these words.

    Examples
    --------
    >>> cases("uncorrected")[0].valid
    False
    """
    wanted = set(words.split())
    return tuple(case for table in _TABLES for case in table() if wanted <= set(case.name.split()))


def attack_cases(attack: Attack, *, truth: float = 0.0, m: int = 200) -> tuple[Case, ...]:
    """Return cases that put an attack of yours, and what it attacks, under every valid audit.

    Parameters
    ----------
    attack : callable
        ``attack(member, seed)`` returns scores, array-like of shape (m,). `member` says what the
        coins said, a bool array of shape (m,): train on the members, or ignore it to see what your
        scoring makes of noise. All randomness comes from the integer `seed`.
    truth : float
        The ε that your training keeps, at least 0; 0 if it ignores `member`.
    m : int
        Examples of each game, at least 8.

    Returns
    -------
    tuple of Case
        One case for each cut policy and choice of sides.

    Raises
    ------
    OptionError, OptionTypeError
        If an option is outside its range, or `attack` cannot be called.

    Examples
    --------
    >>> def honest(member, seed):
    ...     return np.random.default_rng(seed).normal(size=member.size)
    >>> def cheat(member, seed):  # the coins leak through a threshold chosen on them
    ...     return honest(member, seed) + 0.5 * member
    >>> from leakbound.validity import run
    >>> [run(attack_cases(a)[:1], repetitions=50).ok for a in (honest, cheat)]
    [True, False]
    """
    if not callable(cast("object", attack)):
        message = f"attack must be callable as attack(member, seed), got {attack!r}"
        raise OptionTypeError(message)
    size = integer(m, "m", least=8)
    play = UserGame(attack=attack, m=size, truth=real(truth, "truth", least=0))
    return tuple(
        _one_run(("attack", play), PureDP(), cuts, sides)
        for cuts in pure_policies(size).items()
        for sides in _SIDES
    )
