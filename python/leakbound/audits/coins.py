"""One training run in which a coin of its own decided on each example, and how many it drew."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

import leakbound._core as _core
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_ids, check_length, numbers, real, vector
from leakbound._base.odds import expit
from leakbound._base.tally import Tally
from leakbound._base.types import (
    ArrayInput,
    BoolArray,
    FloatArray,
    HasMember,
    JsonValue,
    Status,
)
from leakbound.audits.design import Design, Request, Scores
from leakbound.audits.road import (
    Attacks,
    Examples,
    delta_warnings,
    family_assumption,
    options_before,
    scores_from,
)
from leakbound.claims import FAMILIES, Claim, PureDP, SubsampledGaussianDP
from leakbound.cuts import Game, ScoreGame
from leakbound.errors import ImplausibleCoinsError, IncompatibleOptionsError, OptionError
from leakbound.results import Assumption, AuditResult
from leakbound.stats import poisson_binomial_tail

_THEOREM = (
    "Given the trained model and the coins of the guesses before, each guess is right with "
    "probability at most e^ε / (1 + e^ε) if training is ε-DP (Steinke, Nasr and Jagielski 2023, "
    "Proposition 5.1). "
)

_HALF = 0.5
"""The probability of a fair coin."""

_APPROX_THEOREM = (
    "Given the coins of the other examples, each guess is right with probability at most "
    "e^ε / (1 + e^ε), but for failures that (ε, δ)-DP makes rare. "
)

_PRIOR_THEOREM = (
    "Given the trained model and the coins of the guesses before, each guess is right with odds of "
    "at most e^ε times those of its example's own coin if training is ε-DP (as Steinke, Nasr and "
    "Jagielski 2023, Proposition 5.1, for a coin that is not fair). "
)

_FAMILY_THEOREM = (
    "Given the coins of the other examples, each correct guess obeys the trade-off function, and "
    "so do the probabilities of all counts of correct guesses together (Mahloujifar, Melis and "
    "Chaudhuri 2025, Theorem 3.1). ε is a conversion of the rejected curve and holds within the "
    "family. "
)

IMPOSSIBLE = 1e-6
"""p-value below which no bound is computed: a false alarm costs an honest audit its result."""
DOUBTFUL = 1e-3
"""p-value below which the design counts as contradicted: a false alarm costs a word."""
_FAIR = "fair coins"
_HALVED = 0.05
"""Chance of an exact half below which one is a sign of a split: from 256 coins on."""

_COINS = (
    "If the members are a random part of the examples, as of a split into training and test set, "
    "audit them by RandomSplit; if the coins were biased, give their "
    "probabilities with prior=; where nothing was randomised, use ZeroRun"
)
_PAIRS = (
    "A fair coin of its own must decide for each pair whether the member or the non-member is "
    "shown: draw such coins; where nothing was randomised, use ZeroRun"
)
_PROPENSITIES = (
    "They cannot be the probabilities of membership of these examples: take those of this design "
    "(PropensityFit.with_member_share), or learn them and pass the model or its replicates"
)


@dataclass(frozen=True, eq=False)
class Coins(Design[AuditResult]):
    """A coin of its own decided for each of m examples whether training saw it.

    Parameters
    ----------
    member : array-like of shape (m,), or InclusionPlan
        What the coins said, left out with a tally: booleans, {0, 1} or {-1, +1}. A plan, or a
        pandas Series, is joined with scores that have ids.
    prior : float or array-like, shape (m,)
        Probability of each coin to include, in (0, 1), in the order of the scores or with ids to
        join by. Other than ½ it is for `PureDP` with `KLScan` or `Fixed`; ties are then broken by
        the seed.

    References
    ----------
    T. Steinke, M. Nasr and M. Jagielski, "Privacy auditing with one (1) training run", 2023
    (arXiv 2305.08846); S. Mahloujifar, L. Melis and K. Chaudhuri, "Auditing f-differential privacy
    in one run", 2025 (arXiv 2410.22235).

    Examples
    --------
    Of 1,000 examples, each was included with probability 0.8:

    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(1000) < 0.8
    >>> scores = rng.normal(size=1000) + 2 * member
    >>> lb.audit(scores, lb.Coins(member, prior=0.8)).bound > 0.5
    True
    """

    name: ClassVar[str] = "coins"
    member: ArrayInput | HasMember | None = None
    prior: float | ArrayInput = field(default=0.5, kw_only=True)

    def audit(self, scores: Scores, request: Request, /) -> AuditResult:
        """See `Design.audit`."""
        # What coins decided is whether an example is there, not which of two is.
        claim = request.claim
        if isinstance(claim, SubsampledGaussianDP) and claim.relation == "replace":
            message = (
                'relation="replace" is for RandomSplit: coins decide whether an example is there, '
                "which is to add or remove one"
            )
            raise IncompatibleOptionsError(message)
        if isinstance(scores, Tally):
            from leakbound.audits.counted import counted

            examples, count = counted(self, scores, request)
        else:
            examples, count = self.listed(scores, request)
        count.refuse()
        return examples.audit(request, self.name)

    def listed(self, scores: Any, request: Request) -> tuple[Examples, MemberCount]:
        """Read scores and membership in one order."""
        if self.member is None:
            message = (
                "member is missing: give Coins(member) membership of each example, or audit a "
                "Tally, which counts members"
            )
            raise IncompatibleOptionsError(message)
        order = ExampleOrder(request.ids)
        attacks = Attacks.read(scores, order)
        member = order.member(self.member, attacks.examples)
        if request.ids is not None:
            check_ids(request.ids, member)
        prior = checked_prior(request, order.placed(self.prior, "prior"), attacks.examples)
        count = MemberCount.of_coins(int(member.sum()), member.size, prior)
        # A plan knows its coins, so that half of them may be members by chance.
        halved = () if getattr(self.member, "seed", None) is not None else count.halved()

        def game(values: FloatArray) -> Game:
            return ScoreGame(scores=values, member=member, sides=request.sides, seed=request.seed)

        return Examples(
            attacks=attacks,
            game=game,
            prior=prior,
            theorem=theorem(request.claim, prior),
            assumptions=assumptions(request.claim, prior, count, attacks.others),
            options={"sides": request.sides, "prior": described(prior)},
            warnings=(
                *count.warnings(),
                *halved,
                *delta_warnings(request.claim.delta, attacks.examples),
            ),
            inputs={**attacks.digested, "member": member, **_digested(prior)},
        ), count


def prior_of(prior: float | ArrayInput, examples: int) -> FloatArray | None:
    """Read probabilities of membership, one for all or one each; None if all are ½."""
    if isinstance(prior, float | int | np.floating | np.integer):
        chance = real(prior, "prior", above=0, below=1)
        return None if chance == _HALF else np.full(examples, chance)
    given = vector(prior, "prior")
    check_length(given, examples, "prior")
    values = numbers(given, "prior", least=0, most=1).astype(np.float64)
    certain = np.flatnonzero((values <= 0) | (values >= 1))
    if certain.size:
        message = (
            f"prior must be strictly between 0 and 1, got {values[certain[0]]:g} at row "
            f"{certain[0]}: drop examples whose membership was certain"
        )
        raise OptionError(message)
    return None if (values == _HALF).all() else values


def described(prior: FloatArray | None) -> JsonValue:
    """Return prior probabilities as options show them: the one value, or the range and the mean."""
    if prior is None:
        return _HALF
    low, high = float(prior.min()), float(prior.max())
    return low if low == high else {"least": low, "most": high, "mean": float(prior.mean())}


def checked_prior(request: Request, prior: float | ArrayInput, examples: int) -> FloatArray | None:
    """Return the probabilities of the coins, or None if all are fair."""
    chances = prior_of(prior, examples)
    if chances is not None and not isinstance(request.claim, PureDP):
        message = (
            f"prior other than 1/2 is for PureDP(): under {request.claim.name} which guesses a "
            "failure can make right depends on the scores, and the bounds here need coins that "
            "are fair"
        )
        raise IncompatibleOptionsError(message)
    return chances


def as_if_fair(scores: Scores, member: ArrayInput, request: Request) -> AuditResult:
    """Audit examples as if fair coins had decided, whatever their number says: for other audits."""
    examples, _ = Coins(member).listed(scores, request)
    warnings = delta_warnings(request.claim.delta, examples.attacks.examples)
    return replace(examples, warnings=warnings).audit(request, Coins.name)


def _digested(prior: FloatArray | None) -> dict[str, FloatArray]:
    return {} if prior is None else {"prior": prior}


def theorem(claim: Claim, prior: FloatArray | None) -> str:
    """Return why a bound from coins holds."""
    if prior is not None:
        return _PRIOR_THEOREM
    if isinstance(claim, FAMILIES):
        return _FAMILY_THEOREM
    return _APPROX_THEOREM if claim.delta else _THEOREM


def assumptions(
    claim: Claim, prior: FloatArray | None, count: MemberCount, attempts: str
) -> tuple[Assumption, ...]:
    """Return what a bound from coins rests on."""
    coins = "fair coin" if prior is None else "coin, of the probability given,"
    apart = not isinstance(claim, PureDP) or prior is not None
    subject = "The trade-off function" if isinstance(claim, FAMILIES) else "ε"
    return (
        Assumption(
            "independent fair coins" if prior is None else "independent coins of known odds",
            count.statement(
                f"Each example was in the training set if its own {coins} said so; the bound is "
                "over these coins and whatever training and audit draw, given everything else."
            ),
            count.status("declared"),
        ),
        Assumption(
            "add or remove one example",
            f"{subject} is that of training with and without one example, also an audited one."
            + (f" δ is {claim.delta:g}." if claim.delta else ""),
            "declared",
        ),
        scores_from("trained model", "examples"),
        options_before(attempts),
        Assumption(
            "order from scores alone",
            "Cuts, sides and order of the guesses depend on scores only; "
            + ("ties are broken by the seed." if apart else "ties stay together."),
            "checked",
        ),
        *family_assumption(claim),
    )


@dataclass(frozen=True)
class MemberCount:
    """How many of the examples are members, and how well their probabilities explain that.

    `expected` and `spread` are mean and standard deviation of the number; `log_p` is the logarithm
    of twice the tail on its side, a binomial or Poisson-binomial sum in exact arithmetic.
    """

    members: int
    examples: int
    expected: float
    spread: float
    log_p: float
    given_by: str
    ways_out: str

    @classmethod
    def of_coins(
        cls, members: int, examples: int, prior: FloatArray | None = None, *, pairs: bool = False
    ) -> MemberCount:
        """Count the members that coins gave; of pairs, they decide which of two is shown."""
        if prior is not None:
            return cls._of(members, prior, prior, "coins of these probabilities", _COINS)
        spread = math.sqrt(examples) / 2
        side = max(members, examples - members)
        return cls(
            members=members,
            examples=examples,
            expected=examples / 2,
            spread=spread,
            log_p=_doubled(_tail(side, np.full(1, _HALF), examples)),
            given_by=_FAIR,
            ways_out=_PAIRS if pairs else _COINS,
        )

    @classmethod
    def of_propensities(cls, member: BoolArray, low: FloatArray, high: FloatArray) -> MemberCount:
        """Count members, given limits for their log-odds: those count that explain it best."""
        return cls._of(
            int(member.sum()), expit(low), expit(high), "the propensities", _PROPENSITIES
        )

    @classmethod
    def _of(
        cls, members: int, low: FloatArray, high: FloatArray, given_by: str, ways_out: str
    ) -> MemberCount:
        """Hold the number against the ends of the ranges that are nearest to it."""
        above = members > low.sum()
        chance = high if above else low
        expected = float(chance.sum())
        within = expected >= members if above else expected <= members
        if within:
            log_tail = 0.0
        elif above:
            log_tail = _tail(members, chance)
        else:
            log_tail = _tail(low.size - members, 1 - chance)
        return cls(
            members=members,
            examples=low.size,
            expected=expected,
            spread=math.sqrt(float((chance * (1 - chance)).sum())),
            log_p=_doubled(log_tail),
            given_by=given_by,
            ways_out=ways_out,
        )

    @property
    def impossible(self) -> bool:
        """Whether the probabilities cannot have given this number."""
        return self.log_p < math.log(IMPOSSIBLE)

    @property
    def doubtful(self) -> bool:
        """Whether they would hardly have."""
        return self.log_p < math.log(DOUBTFUL)

    def refuse(self) -> None:
        """Raise ImplausibleCoinsError if the number of members is impossible."""
        if self.impossible:
            message = f"{self.found}. No bound is computed. {self.ways_out}"
            raise ImplausibleCoinsError(message)

    @property
    def found(self) -> str:
        """The numbers, in words."""
        return (
            f"{self.members:,} of {self.examples:,} examples are members, where {self.given_by} "
            f"give {self.expected:,.10g} ± {self.spread:,.1f} (p = {_power(self.log_p)})"
        )

    def status(self, otherwise: Status) -> Status:
        """Return the status of that assumption: `otherwise`, unless the number contradicts it."""
        return "contradicted" if self.doubtful else otherwise

    def statement(self, text: str) -> str:
        """Return the statement of that assumption, with the numbers where they contradict it."""
        return f"{text} But {self.found}." if self.doubtful else text

    def warnings(self) -> tuple[str, ...]:
        """Return one warning, or none."""
        if not self.doubtful:
            return ()
        return (f"{self.found}: the result holds only if {self.given_by} decided who is one",)

    def halved(self) -> tuple[str, ...]:
        """Return a warning if exactly half are members: equal splits have one, coins seldom.

        Of few examples coins often give a half, and a warning would say nothing.
        """
        if 2 * self.members != self.examples or self.given_by != _FAIR:
            return ()
        # both tails have the middle in common
        chance = 2 * math.exp(_tail(self.members, np.full(1, _HALF), self.examples)) - 1
        if chance >= _HALVED:
            return ()
        said = (
            f"exactly half of the {self.examples:,} examples are members, as after an equal split, "
            f"and in {100 * chance:.2g} % of audits with coins: if a random split decided, this "
            "bound does not hold: audit it by RandomSplit; if coins did, pass the "
            "InclusionPlan that has their seed"
        )
        return (said,)


def _tail(count: int, chance: FloatArray, coins: int = 0) -> float:
    """Return ln P(at least so many), by the binomial tail where all have one probability."""
    if chance.min() == chance.max():
        size = np.array([coins or chance.size], dtype=np.uint64)
        made = np.array([max(count, 0)], dtype=np.uint64)
        return float(_core.binomial_tail(made, size, chance[:1], log=True)[0])
    return float(poisson_binomial_tail(count, chance, log=True))


def _doubled(log_tail: float) -> float:
    return min(0.0, log_tail + math.log(2))


def _power(log_p: float) -> str:
    """Return a probability that a double may not hold."""
    if log_p == -math.inf:
        return "0"
    exponent = math.floor(log_p / math.log(10))
    return f"{math.exp(log_p):.2g}" if exponent > -300 else f"1e{exponent}"
