"""Rows of audits of synthetic data: generators at the boundary, innocent ones, and a known trap."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from leakbound._base.numerics import expit
from leakbound._base.types import BoolArray, FloatArray
from leakbound.attacks.synthetic import Tables, density_ratio
from leakbound.audits import RandomSplit, audit, audit_synthetic
from leakbound.errors import AbstentionError
from leakbound.results import AuditResult
from validity.designs import Missed
from validity.lengths import COSTLY, FUTILE
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR

__all__ = ["Innocent", "Responses", "synthetic_cases"]

_CONFIDENCE = 1 - ERROR
_ATTACKS = ("attribution", "local_likelihood", "density_ratio")
_MISSES = 0.05
"""Share of the games in which a wrong reference may pass unseen."""


def _rng(seed: int) -> np.random.Generator:
    return stream("synthetic-game", seed)


@dataclass(frozen=True)
class Responses:
    """A generator that shows one record of each public pair: the member's, as ε allows.

    Of each pair one record is trained on. To replace it by the other changes the odds of what is
    shown by e^ε: the generator is exactly ε-differentially private for replacing within a pair.
    """

    epsilon: float
    pairs: int = 60
    blur: float = 0.0
    error: float = ERROR

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed, and say whether the audit claims more than ε."""
        try:
            _, result = self.outcome(seed)
        except AbstentionError:
            return False
        return result.bound > self.epsilon

    def outcome(self, seed: int) -> tuple[None, AuditResult]:
        """Return the result of the audit of the table of a seed."""
        rng = _rng(seed)
        values = rng.normal(size=(2 * self.pairs, 3))
        pair = np.repeat(np.arange(self.pairs), 2)
        second = rng.random(self.pairs) < 0.5
        member = np.arange(2) == second[:, None]
        truthful = rng.random(self.pairs) < expit(np.array([self.epsilon]))
        shown = (member == truthful[:, None]).ravel()
        made = values[shown] + self.blur * rng.normal(size=(self.pairs, 3))
        inside = member.ravel()
        result = audit_synthetic(
            _with_pair(values[inside], pair[inside]),
            _with_pair(values[~inside], pair[~inside]),
            _with_pair(made, pair[shown]),
            attacks=_ATTACKS,
            columns={"pair": "stratum"},
            confidence=1 - self.error,
            seed=seed,
            challenge=False,
        )
        return None, result


def _with_pair(values: FloatArray, pair: FloatArray) -> dict[str, FloatArray]:
    columns = {f"x{place}": column for place, column in enumerate(values.T)}
    return {**columns, "pair": pair.astype(np.float64)}


@dataclass(frozen=True)
class Innocent:
    """A generator that never saw the records, which were split at random."""

    share: float
    ties: bool = False
    error: float = ERROR

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed, and say whether the audit claims leakage."""
        records, member, made = _innocent(seed, self.share, ties=self.ties)
        try:
            result = audit_synthetic(
                records[member],
                records[~member],
                made,
                attacks=_ATTACKS,
                confidence=1 - self.error,
                seed=seed,
                challenge=False,
            )
        except AbstentionError:
            return False
        return result.bound > 0


def _innocent(
    seed: int, share: float, *, ties: bool = False, records: int = 150
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return records, membership, and a table of the same distribution."""
    rng = _rng(seed)
    both = rng.normal(size=(2 * records, 2))
    if ties:
        both = both.round()
    return both[:records], rng.permutation(records) < round(share * records), both[records:]


def _against_holdout(seed: int) -> AuditResult:
    """Audit an innocent generator by scores whose reference is the part held out."""
    records, member, made = _innocent(seed, 0.5, records=600)
    scores = density_ratio(Tables.of(records, made, reference=records[~member], seed=seed))
    return audit(scores, RandomSplit(member), confidence=_CONFIDENCE, seed=seed)


def _refuted(seed: int) -> bool:
    return _against_holdout(seed).bound > 0


def _holdout_declared(seed: int) -> AuditResult:
    """Audit an innocent generator, with the part held out as the reference."""
    records, member, made = _innocent(seed, 0.5)
    return audit_synthetic(
        records[member],
        records[~member],
        made,
        reference=records[~member],
        attacks="density_ratio",
        seed=seed,
    )


def synthetic_cases() -> Iterator[Case]:
    """Yield the rows of synthetic data."""
    row = partial(Case, audit="synthetic", claim="pure DP", cuts="kl", sides="pairs", error=ERROR)
    for epsilon in (0.0, 1.0, 2.0):
        yield row(truth=f"responses,ε={epsilon:g}", trial=Responses(epsilon), long=COSTLY)
    yield row(truth="blurred,ε=1", trial=Responses(1.0, blur=0.05), long=COSTLY)
    for share in (0.5, 0.8):
        yield row(truth=f"innocent,{share:g}", trial=Innocent(share), long=COSTLY)
    yield row(truth="innocent,ties", trial=Innocent(0.5, ties=True), long=COSTLY)
    yield Case(
        audit="wrong design",
        claim="pure DP",
        cuts="kl",
        sides="pairs",
        truth="holdout-as-reference",
        error=_MISSES,
        trial=Missed(_holdout_declared, "DesignError"),
        quick=20,
        long=COSTLY,
    )
    yield Case(
        audit="trap",
        claim="pure DP",
        cuts="kl",
        sides="pairs",
        truth="scores-against-holdout",
        error=ERROR,
        valid=False,
        trial=_refuted,
        quick=20,
        long=FUTILE,
    )
