"""Rows of designs that are not what they are declared to be: caught, or known to pass unseen."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base.numerics import expit
from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits import Coins, Panoramia, Stream, ZeroRun, audit
from leakbound.claims import PureDP
from leakbound.cuts import KLScan
from leakbound.errors import LeakboundError
from leakbound.results import AuditResult, PanoramiaResult
from validity.games import two_rankings
from validity.lengths import COSTLY, DEAREST, FUTILE
from validity.streams import logit, stream
from validity.suite import Case
from validity.trials import ERROR

__all__ = ["Missed", "design_cases"]

_MISSES = 0.05
"""Share of the games in which a wrong design may pass unseen, where it must be caught."""
_CONFIDENCE = 1 - ERROR
_CAUGHT = frozenset({"refuted", "contradicted"})
"""Statuses of an assumption that the data speak against."""

Wrong: TypeAlias = Callable[[int], AuditResult | PanoramiaResult]
Propensities: TypeAlias = Literal["steep", "no product", "no feature"]


@dataclass(frozen=True)
class Missed:
    """Whether a wrong design passes unseen: no error of its name, no status that says so."""

    audit: Wrong
    error: str = ""

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and look at what became of it."""
        try:
            result = self.audit(seed)
        except LeakboundError as error:
            if type(error).__name__ != self.error:
                raise
            return False
        return all(assumption.status not in _CAUGHT for assumption in result.assumptions)


@dataclass(frozen=True)
class _Claims:
    """Whether an audit claims leakage where there is none."""

    audit: Callable[[int], AuditResult]

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        return self.audit(seed).bound > 0


def _rng(seed: int) -> np.random.Generator:
    return stream("wrong-designs", seed)


def _split(seed: int) -> tuple[FloatArray, BoolArray]:
    """Return noise, and a split of 240 members and 60 others."""
    rng = _rng(seed)
    return rng.normal(size=300), rng.permutation(np.arange(300) < 240)


def _split_in_one_run(seed: int) -> AuditResult:
    scores, member = _split(seed)
    return audit(scores, Coins(member), sides="member", confidence=_CONFIDENCE, seed=seed)


def _split_in_panoramia(seed: int) -> PanoramiaResult:
    scores, member = _split(seed)
    return audit(scores, Panoramia(member, baseline=scores), confidence=_CONFIDENCE, seed=seed)


def _split_in_zero_run(seed: int) -> AuditResult:
    scores, member = _split(seed)
    design = ZeroRun(member, np.full(300, 0.5))
    return audit(scores, design, confidence=_CONFIDENCE, seed=seed)


def _split_in_stream(seed: int) -> AuditResult:
    return Stream(confidence=_CONFIDENCE).update(*_split(seed)).result()


def _duplicated(seed: int, *, ids: bool) -> AuditResult:
    """Audit noise on 50 examples that come ten times each."""
    rng = _rng(seed)
    member, scores = np.repeat(rng.random(50) < 0.5, 10), np.repeat(rng.normal(size=50), 10)
    named = np.repeat(np.arange(50), 10) if ids else None
    scores = scores + 1e-9 * rng.random(500)
    options: Any = {"cuts": KLScan(), "confidence": _CONFIDENCE, "seed": seed}
    result: AuditResult = audit(scores, Coins(member), ids=named, **options)
    return result


def _peeking(seed: int) -> AuditResult:
    """Audit noise that was centred on members and on others apart."""
    rng = _rng(seed)
    member, scores = rng.random(200) < 0.5, rng.normal(size=200)
    scores[member] -= scores[member].min()
    scores[~member] -= scores[~member].max()
    return audit(scores, Coins(member), confidence=_CONFIDENCE, seed=seed)


def _twenty(seed: int) -> tuple[FloatArray, BoolArray]:
    rng = _rng(seed)
    return rng.normal(size=(20, 200)), rng.random(200) < 0.5


def _best_of_twenty(seed: int) -> AuditResult:
    """Audit twenty attacks without information one by one, and report the best."""
    scores, member = _twenty(seed)
    alone = partial(audit, design=Coins(member), confidence=_CONFIDENCE, seed=seed)
    result: AuditResult = max((alone(row) for row in scores), key=lambda result: result.bound)
    return result


def _twenty_together(seed: int) -> AuditResult:
    """Audit twenty attacks without information together."""
    scores, member = _twenty(seed)
    return audit(scores, Coins(member), confidence=_CONFIDENCE, seed=seed)


@dataclass(frozen=True)
class _Misspecified:
    """Zero-Run with propensities that are wrong, scores that know the right ones, no leakage."""

    wrong: Propensities
    features: bool
    m: int

    def __call__(self, seed: int) -> AuditResult:
        """Play the game of a seed and audit it."""
        rng = _rng(seed)
        x = rng.normal(size=(self.m, 3))
        declared, right, scores = _PROPENSITIES[self.wrong](x)
        return audit(
            scores,
            ZeroRun(
                rng.random(self.m) < right,
                declared,
                adversary="raw",
                features=x[:, :2] if self.features else None,
            ),
            claim=PureDP(),
            confidence=_CONFIDENCE,
            seed=seed,
        )


def _steep(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Propensities whose log-odds are 2.5 times as large as they are."""
    return expit(2.5 * x[:, 0]), expit(x[:, 0]), -x[:, 0]


def _no_product(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Propensities that lack the product of two features."""
    product = 2 * x[:, 0] * x[:, 1]
    return expit(x[:, 0]), expit(x[:, 0] + product), product


def _no_feature(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Propensities that are right given two features, and ignore a third, which scores know."""
    seen = expit(x[:, 0])
    hidden = 0.8 * np.sign(x[:, 2])
    return seen, seen + hidden * np.minimum(seen, 1 - seen), hidden + 1e-3 * x[:, 1]


_PROPENSITIES = {"steep": _steep, "no product": _no_product, "no feature": _no_feature}
"""From features: propensities as declared, as they are, and scores that know the difference."""


def _c_upper_too_small(seed: int) -> bool:
    """Whether a limit on c that is below c makes PANORAMIA claim leakage where there is none."""
    baseline, attack, member = two_rankings(400, 0.5, 0.8, seed)
    found = audit(
        attack,
        Panoramia(member, baseline=baseline, c_upper=logit(0.6)),
        confidence=_CONFIDENCE,
        seed=seed,
    )
    return found.bound > 0


def design_cases() -> Iterator[Case]:
    """Yield the rows of wrong designs, and of their counterparts that pay for what they do."""
    caught = partial(
        Case,
        audit="wrong design",
        claim="pure DP",
        sides="both",
        error=_MISSES,
        quick=20,
        long=COSTLY,
    )
    splits: dict[str, Wrong] = {
        "one-run": _split_in_one_run,
        "panoramia": _split_in_panoramia,
        "stream": _split_in_stream,
        "zero-run": _split_in_zero_run,
    }
    for name, wrong_coins in splits.items():
        coins = Missed(wrong_coins, "DesignError")
        yield caught(cuts=name, truth="80/20-split-as-coins", trial=coins)
    for told in (True, False):  # without ids, repeated memberships tell
        repeated = Missed(partial(_duplicated, ids=told), "InputError")
        truth = f"duplicates-{'with' if told else 'without'}-ids"
        yield caught(cuts="kl", truth=truth, trial=repeated)
    known: tuple[tuple[Propensities, int], ...] = (("steep", 1000), ("no product", 1000))
    for wrong, m in known:
        trial = Missed(_Misspecified(wrong, features=True, m=m))
        yield caught(
            cuts="poisson_binomial",
            truth=f"propensities-{wrong}",
            trial=trial,
            quick=10 if wrong == "steep" else 0,
            long=DEAREST,
        )

    unseen = partial(
        Case,
        audit="trap",
        claim="pure DP",
        cuts="kl",
        sides="both",
        error=ERROR,
        valid=False,
        quick=40,
        long=FUTILE,
    )
    yield unseen(truth="scores-that-peek", trial=_Claims(_peeking))
    yield unseen(truth="best-of-20-unpaid", trial=_Claims(_best_of_twenty))
    yield unseen(truth="c-upper-too-small", trial=_c_upper_too_small)
    for wrong, m in (*known, ("no feature", 1000)):
        misled = _Claims(_Misspecified(wrong, features=wrong == "no feature", m=m))
        yield unseen(
            cuts="poisson_binomial",
            truth=f"propensities-{wrong}-unseen",
            trial=misled,
            quick=20 if wrong == "steep" else 0,
            long=DEAREST,
        )

    valid = partial(Case, audit="one-run", sides="both", error=ERROR, long=FUTILE)
    yield valid(
        claim="pure DP", cuts="kl", truth="best-of-20-paid", trial=_Claims(_twenty_together)
    )
