"""The grid: adding an audit, a policy or a kind of game is adding a line."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from leakbound import _core, simulate
from leakbound._base.types import SidesChoice
from leakbound.claims import ApproxDP, Claim, GaussianDP, LaplaceDP, PureDP
from leakbound.cuts import CutPolicy, Fixed, KLScan, OutsideIn, UnionBound
from validity.asymmetric import asymmetric_cases
from validity.attackers import attacker_cases
from validity.choices import choice_cases
from validity.copies import copies_cases
from validity.defaults import default_cases, either_end_cases
from validity.designs import design_cases
from validity.dp_sgd import dp_sgd_cases
from validity.families import family_cases
from validity.games import Attacks, Boundary, LaplaceNoise, Looks, Play, Response
from validity.implied import implied_cases
from validity.independent import independent_cases
from validity.learnt import learnt_cases
from validity.lengths import CHEAP, COSTLY, DEAR, FUTILE, MODERATE
from validity.looks import look_cases
from validity.mechanisms import mechanism_cases
from validity.nuisance import nuisance_cases
from validity.random_splits import split_cases
from validity.same_seed import same_seed_cases
from validity.shifted_looks import shifted_look_cases
from validity.streams import logit, stream
from validity.suite import Case
from validity.synthetic import synthetic_cases
from validity.ties import coarse_cases
from validity.trials import ERROR, OneRun, Panoramia, Stream, pure_policies
from validity.users import user_cases
from validity.verdicts import verdict_cases
from validity.zero_run import zero_run_cases

__all__ = ["cases"]

_SIDES: tuple[SidesChoice, ...] = ("both", "member")
_RARE = 1e-4
"""γ and δ of PANORAMIA, in games of 150 examples."""
_DELTA = 0.01
"""δ of the games: so large that failures happen in a few hundred games."""


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


def _pure() -> Iterator[Case]:
    for sides in _SIDES:
        for truth, (m, play) in _boundaries().items():
            late = {"kl-late": KLScan(min_guesses=m // 4, kappa=3.0)}
            for cuts in (pure_policies(m) | late).items():
                long = DEAR if m > 200 else CHEAP
                yield _one_run((truth, play), PureDP(), cuts, sides, long=long)


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
                games = COSTLY if cuts[0] == "geometric" else DEAR
                yield _one_run(play, GaussianDP(), cuts, sides, long=games)
        laplace = "laplace", LaplaceNoise(m=150)
        for cuts in policies.items():
            games = COSTLY if cuts[0] == "geometric" else DEAR
            yield _one_run(laplace, LaplaceDP(), cuts, sides, long=games)


def _approx() -> Iterator[Case]:
    claim = ApproxDP(delta=_DELTA)
    for sides in _SIDES:
        for truth, (m, play) in _LEAKS.items():
            for cuts in _approx_policies(m).items():
                yield _one_run((truth, play), claim, cuts, sides, long=DEAR)


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
                    yield _one_run(truth, PureDP(), cuts, sides, options, long=MODERATE)


def _together() -> Iterator[Case]:
    """Yield cases of three attacks of which the best counts."""
    for sides in _SIDES:
        for truth in ("noise", "p=0.73", "p=0.95"):
            m, play = _boundaries()[truth]
            three = f"three-{truth}", Attacks(play=play, number=3)
            for name in ("kl", "fixed", "geometric"):
                cuts = name, pure_policies(m)[name]
                yield _one_run(three, PureDP(), cuts, sides, long=DEAR)
        for truth, claim in _OUTSIDE_IN:
            play, planned = _LEAKS[truth][1], ("planned", None)
            looks = f"three-{truth}", Looks(play=play, number=3)
            yield _one_run(looks, claim, planned, sides, long=COSTLY)


_OUTSIDE_IN: tuple[tuple[str, Claim], ...] = (
    ("noise", GaussianDP()),
    ("gaussian", GaussianDP()),
    ("mixture", GaussianDP()),
    ("noise", ApproxDP(delta=_DELTA)),
    ("response", ApproxDP(delta=_DELTA)),
)
"""Games at the boundary of claims whose number of guesses labels choose from the outside in."""


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
    yield Case(
        audit="trap",
        sides="member",
        error=ERROR,
        claim="ε̃ as ε",
        cuts="kl",
        truth="blind",
        trial=blind,
        valid=False,
        quick=40,
        long=FUTILE,
    )


def _ties_by_label(seed: int) -> bool:
    """Whether noise looks like leakage if members come first among equal scores."""
    rng = stream("ties-by-label", seed)
    member = rng.random(200) < 0.5
    scores = rng.integers(0, 4, size=200)
    path = _core.Path.from_successes(member[np.lexsort((~member, -scores))])
    return KLScan(grid="all").bound(path, "member", ERROR).logit > 0


def _traps() -> Iterator[Case]:
    trap = partial(
        Case, audit="trap", claim="pure DP", truth="noise", valid=False, quick=40, long=FUTILE
    )
    yield trap(cuts="ties-by-label", sides="member", error=ERROR, trial=_ties_by_label)


_TABLES = (
    _pure,
    _approx,
    _families,
    _not_fair,
    _together,
    _streams,
    _panoramia,
    zero_run_cases,
    learnt_cases,
    shifted_look_cases,
    attacker_cases,
    coarse_cases,
    same_seed_cases,
    design_cases,
    split_cases,
    choice_cases,
    copies_cases,
    user_cases,
    either_end_cases,
    look_cases,
    asymmetric_cases,
    nuisance_cases,
    synthetic_cases,
    implied_cases,
    dp_sgd_cases,
    family_cases,
    independent_cases,
    mechanism_cases,
    verdict_cases,
    _traps,
)


_FEW = frozenset({"trap", "wrong design"})
"""Audits of the grid that quick runs play too, each with its own number of games."""


def cases(words: str = "") -> tuple[Case, ...]:
    """Return the rows that have all of these words: those of `make test`, and then the grid."""
    grid = (case for table in _TABLES for case in table())
    rest = (case if case.audit in _FEW else replace(case, quick=0) for case in grid)
    wanted = set(words.split())
    rows = itertools.chain(default_cases(), rest)
    return tuple(case for case in rows if wanted <= set(case.name.split()))
