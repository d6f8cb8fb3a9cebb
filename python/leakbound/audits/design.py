"""The one verb: scores and a design in, a lower bound out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, TypeAlias, TypeVar

from leakbound._base.checks import choice, complement, instance
from leakbound._base.streams import seed_of
from leakbound._base.tally import Tally
from leakbound._base.types import ArrayInput, SidesChoice
from leakbound.claims import CLAIMS, Claim, PureDP
from leakbound.cuts import CUT_POLICIES, CutPolicy
from leakbound.errors import OptionError

if TYPE_CHECKING:
    from leakbound.results.base import Result

Scores: TypeAlias = ArrayInput | Mapping[str, ArrayInput] | Tally
"""Scores of one attack or of several, or counts of them."""
R_co = TypeVar("R_co", bound="Result", covariant=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """What is tested, and how surely: the options of `leakbound.audit`."""

    claim: Claim = PureDP()  # noqa: RUF009 (frozen)
    confidence: float = 0.95
    cuts: CutPolicy | None = None
    sides: SidesChoice = "both"
    ids: ArrayInput | None = None
    seed: int
    level: float = field(init=False)
    """The probability of error."""

    def __post_init__(self) -> None:
        instance(self.claim, "claim", CLAIMS)
        if self.cuts is not None:
            instance(self.cuts, "cuts", CUT_POLICIES)
        choice(self.sides, "sides", SidesChoice)
        object.__setattr__(self, "level", complement(self.confidence))
        object.__setattr__(self, "confidence", float(self.confidence))


class Design(ABC, Generic[R_co]):
    """What was random, and so what a right guess proves: where an audit's own options live."""

    name: ClassVar[str]
    """How results and the command line call it."""
    claim: ClassVar[Claim] = PureDP()
    """What is tested if nothing else is claimed."""
    has_sides: ClassVar[bool] = True
    """Whether guesses of "member" alone can be asked for."""

    @abstractmethod
    def audit(self, scores: Scores, request: Request, /) -> R_co:
        """Bound the claim's parameter from below."""


def audit(
    scores: Scores,
    design: Design[R_co],
    *,
    claim: Claim | None = None,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: SidesChoice = "both",
    ids: ArrayInput | None = None,
    seed: int | None = None,
) -> R_co:
    """Bound the privacy loss of a trained model from below.

    The examples of highest score are guessed members, those of lowest score non-members. The design
    says how membership came about, and so how many right guesses a private model explains; the
    largest guarantee too strong to explain them is refuted.

    Parameters
    ----------
    scores : array-like of shape (m,), (m, 1) or (A, m), mapping of str to array-like, or Tally
        Real numbers, higher for likelier members; ±inf allowed. Rows, a mapping from names, or the
        columns of a pandas, polars or Arrow frame, are attacks to audit together: each has its
        share of the probability of error, the best wins, and `options` tells which it is and what
        the others cost. A `Tally` has counts of scores and members, for `Coins()`.
    design : Coins, RandomSplit, Panoramia or ZeroRun
        What was random, with membership and whatever else only this design has.
    claim : PureDP, ApproxDP, GaussianDP, LaplaceDP, SubsampledGaussianDP or TradeOffFamily
        The guarantees, whose parameter is bounded. If None, `PureDP()`, and for `ZeroRun`
        `GaussianDP()`. For three claims, audit three times at a third of the error.
    confidence : float
        Probability that the bound is not above the truth, in (0, 1).
    cuts : CutPolicy, optional
        Which cuts of the ranking are tested, from `leakbound.cuts`. If None, `KLScan()` for pure
        DP, and `OutsideIn()` for other claims; `ZeroRun` says what it takes.
    sides : {"both", "member"}
        Guess members and non-members, or members only: for `Coins` and `ZeroRun`.
    ids : array-like, shape (m,), optional
        One id for each score, in their order; checked for repetition, and joined with what carries
        ids: a plan, the scores of `leakbound.torch.score`, a pandas index.
    seed : int, optional
        Seed of whatever the audit draws: matching, the order of ties. By default a new one, which
        `options` records; one that is passed is chosen before the look.

    Returns
    -------
    AuditResult, PanoramiaResult or ZeroRunResult
        The bound, in units of the claim's parameter, with what it rests on.

    Raises
    ------
    LeakboundError
        If an input cannot be read, membership cannot have come about as declared, or options do not
        go together; the message says which, where, and what to do.

    Notes
    -----
    For pure DP tied scores are never split, so nothing about membership can order them; for other
    claims cuts must not depend on scores, and a random permutation from `seed` orders ties. Except
    for random splits, the result is the same for any increasing transformation of the scores.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(1000) < 0.5
    >>> scores = rng.normal(size=1000) + 2 * member
    >>> result = lb.audit(scores, lb.Coins(member))
    >>> result.kind, 1 < result.bound < result.ceiling
    ('lower_bound', True)
    >>> result.check(epsilon=0.5)
    'refuted'
    """
    request = Request(
        claim=design.claim if claim is None else claim,
        confidence=confidence,
        cuts=cuts,
        sides=sides,
        ids=ids,
        seed=seed_of(seed),
    )
    if not design.has_sides and sides != "both":
        message = f'sides="{sides}" has no meaning for {type(design).__name__}: leave it out'
        raise OptionError(message)
    return design.audit(scores, request)
