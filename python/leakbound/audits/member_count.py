"""Whether the number of members is one that the declared probabilities of membership can give."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.messages import Message
from leakbound._base.numerics import expit
from leakbound._base.types import BoolArray, FloatArray, IntArray, Status, Strings
from leakbound.errors import DesignError
from leakbound.results import Assumption
from leakbound.stats import poisson_binomial_tail

# The probability of a fair coin.
_HALF = 0.5
# p-value below which no bound is computed: a false alarm costs an honest audit its result.
IMPOSSIBLE = 1e-6
# p-value below which the design counts as contradicted: a false alarm costs a word.
DOUBTFUL = 1e-3
_FAIR = "fair coins"
# Chance of an exact half below which one is a sign of a split: from 256 coins on.
_HALVED = 0.05

_COINS = Message(
    "If the members are a random part of the examples, as in a split into training and test set, "
    "use {RandomSplit}; if the coins were biased, pass their probabilities as {prior=}; if "
    "nothing was random, use {ZeroRun}"
)
_PAIRS = Message(
    "A separate fair coin must decide for each pair whether the member or the non-member is "
    "shown: draw these coins; if nothing was random, use {ZeroRun}"
)
_CHOICES = (
    "For each secret, one of the candidates must be drawn uniformly: draw with ChoicePlan, and "
    "list candidates in an order that does not depend on the draw"
)
_PROPENSITIES = (
    "These cannot be the probabilities of membership of these examples: use those of this design "
    "(PropensityFit.with_member_share), or learn them and pass the model or its replicates"
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
    are: str = "examples are members"

    @classmethod
    def of_choices(cls, chosen: IntArray, k: int) -> "MemberCount":
        """Count the secrets that have the candidate chosen whose number is the strangest of k."""
        counts = np.bincount(chosen, minlength=k)
        uniform = np.full(chosen.size, 1 / k)
        strangest = int(np.abs(counts - chosen.size / k).argmax())
        member_count = cls._within_limits(
            int(counts[strangest]),
            low=uniform,
            high=uniform,
            given_by=f"draws of {k} candidates",
            ways_out=_CHOICES,
        )
        log_p = member_count.log_p + math.log(shares.CANDIDATES.price(k))
        are = f"secrets have candidate {strangest} chosen"
        return replace(member_count, log_p=min(0.0, log_p), are=are)

    @classmethod
    def of_coins(
        cls,
        members: int,
        examples: int,
        prior: FloatArray | None = None,
        *,
        pairs: bool = False,
        are: str = "examples are members",
    ) -> "MemberCount":
        """Count the members that coins gave; of pairs, they decide which of two is shown."""
        if prior is not None:
            given_by = "coins of these probabilities"
            member_count = cls._within_limits(members, prior, prior, given_by, _COINS)
            return replace(member_count, are=are)
        larger_side = max(members, examples - members)
        log_tail = _log_binomial_tail(larger_side, examples, _HALF)
        ways_out = _COINS
        if pairs:
            ways_out = _PAIRS
        return cls(
            members=members,
            examples=examples,
            expected=examples / 2,
            spread=math.sqrt(examples) / 2,
            log_p=min(0.0, _log_two_sided(log_tail)),
            given_by=_FAIR,
            ways_out=ways_out,
            are=are,
        )

    @classmethod
    def of_propensities(cls, member: BoolArray, low: FloatArray, high: FloatArray) -> "MemberCount":
        """Count members, given limits for their log-odds: those count that explain it best."""
        return cls._within_limits(
            int(member.sum()),
            low=expit(low),
            high=expit(high),
            given_by="the propensities",
            ways_out=_PROPENSITIES,
        )

    @classmethod
    def _within_limits(
        cls, members: int, low: FloatArray, high: FloatArray, given_by: str, ways_out: str
    ) -> "MemberCount":
        """Hold the number against the ends of the ranges that are nearest to it."""
        is_above = members > low.sum()
        probabilities = low
        if is_above:
            probabilities = high
        expected = float(probabilities.sum())
        log_tail = 0.0
        if is_above and expected < members:
            log_tail = _log_tail(members, probabilities)
        elif not is_above and expected > members:
            log_tail = _log_tail(low.size - members, 1 - probabilities)
        variance = float((probabilities * (1 - probabilities)).sum())
        return cls(
            members=members,
            examples=low.size,
            expected=expected,
            spread=math.sqrt(variance),
            log_p=min(0.0, _log_two_sided(log_tail)),
            given_by=given_by,
            ways_out=ways_out,
        )

    @property
    def impossible(self) -> bool:
        """Whether the probabilities cannot have given this number."""
        return self.log_p < math.log(IMPOSSIBLE)

    @cached_property
    def doubtful(self) -> bool:
        """Whether they would hardly have."""
        return self.log_p < math.log(DOUBTFUL)

    def refuse(self) -> None:
        """Raise DesignError if the number of members is impossible."""
        if self.impossible:
            message = "{found}. No bound is computed. {ways_out}"
            raise DesignError(Message(message, found=self.found, ways_out=self.ways_out))

    @property
    def found(self) -> str:
        """The numbers, in words."""
        return (
            f"{self.members:,} of {self.examples:,} {self.are}, where {self.given_by} "
            f"give {self.expected:,.10g} ± {self.spread:,.1f} (p = {_p_in_words(self.log_p)})"
        )

    def assumption(self, name: str, text: str, status: Status = "declared") -> Assumption:
        """Return that assumption, with the numbers where they contradict it."""
        if self.doubtful:
            return Assumption(
                name=name, statement=f"{text} But {self.found}.", status="contradicted"
            )
        return Assumption(name=name, statement=text, status=status)

    def warnings(self) -> Strings:
        """Return one warning, or none."""
        if not self.doubtful:
            return ()
        return (f"{self.found}: the result holds only if {self.given_by} decided",)

    def halved(self) -> Strings:
        """Return a warning if exactly half are members: equal splits have one, coins seldom.

        Of few examples coins often give a half, and a warning would say nothing.
        """
        if 2 * self.members != self.examples or self.given_by != _FAIR:
            return ()
        return self._warning_of_half()

    def _warning_of_half(self) -> Strings:
        """Return a warning of exactly half, if fair coins seldom give that."""
        # both tails have the middle in common
        log_tail = _log_binomial_tail(self.members, self.examples, _HALF)
        probability_of_half = 2 * math.exp(log_tail) - 1
        if probability_of_half >= _HALVED:
            return ()
        warning = Message(
            "exactly half of the {examples:,} {are}, as after an equal split; this happens in "
            "{percent:.2g} % of audits with coins: if a random split decided, this bound does not "
            "hold: use {RandomSplit}; if coins did, pass the InclusionPlan that has their seed",
            examples=self.examples,
            are=self.are,
            percent=100 * probability_of_half,
        )
        return (warning,)


def _log_tail(count: int, probabilities: FloatArray) -> float:
    """Return ln P(at least so many), by the binomial tail where all have one probability."""
    if probabilities.min() == probabilities.max():
        trials = probabilities.size
        return _log_binomial_tail(max(count, 0), trials, float(probabilities[0]))
    return float(poisson_binomial_tail(count, probabilities, log=True))


def _log_binomial_tail(count: int, trials: int, probability: float) -> float:
    """Return ln P(at least so many) of coins that have one probability."""
    (log_tail,) = _core.binomial_tail(
        np.array([count], dtype=np.uint64),
        np.array([trials], dtype=np.uint64),
        np.array([probability]),
        log=True,
    )
    return float(log_tail)


def _log_two_sided(log_tail: float) -> float:
    """Return the logarithm of a p-value from that of the tail on one side."""
    return log_tail + math.log(shares.MEMBER_SIDES.price(2))


def _p_in_words(log_p: float) -> str:
    """Return a probability that a double may not hold."""
    if log_p == -math.inf:
        return "0"
    exponent = math.floor(log_p / math.log(10))
    if exponent > -300:
        return f"{math.exp(log_p):.2g}"
    return f"1e{exponent}"
