"""What every claim offers, and the claims without a trade-off family: pure and approximate DP."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from functools import lru_cache
from typing import ClassVar

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import choice, flag, integer, real
from leakbound._base.messages import OF_FAMILIES, hinted
from leakbound._base.numerics import halved
from leakbound._base.types import CountOptions, FdpTest, Kind, Sides, TailBound, TailOptions
from leakbound.claims.tradeoff import TradeOff

# The smallest level of a Clopper-Pearson limit
_SMALLEST = 1e-300
# Share of a δ that its division may be off by
_ROUNDING = 2.0**-50
_THREE_DIGITS = Context(prec=3, rounding=ROUND_FLOOR)
# An ε of which e^ε - 1 is no number that divides
_NO_LOSS = 1e-300
# The largest exponent whose exponential is a number
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, kw_only=True)
class GuessWords:
    """The words of a design for its guesses, which the theorem of a claim takes."""

    given: str = "the trained model and the coins of earlier guesses"
    """What a chance is conditional on where guesses are one after the other."""
    others: str = "the coins of the other examples"
    """What it is conditional on where all guesses are taken together."""
    among: str = ""
    """What a guess chooses from, such as " among 10 candidates"."""
    chance: str = "e^ε / (1 + e^ε)"
    """The most probability of a right guess under ε-DP."""
    replacing: str = ""
    """What is replaced, such as " replacing one candidate"; empty where examples are added."""
    source: str = " (Steinke, Nasr and Jagielski 2023, Proposition 5.1)"
    """Who proved this for ε-DP."""
    adapted: str = ""
    """How the proofs of others differ, such as ", with pairs in place of examples"."""
    before: str = ""
    """Why guesses are about fair coins, where that has to be shown."""


class Guarantee(ABC):
    """A privacy guarantee with one parameter, which audits bound from below: more is leakier.

    `parameter` is its name, `delta` the largest δ that a bound on it refers to.
    """

    kind: ClassVar[Kind] = "lower_bound"
    """What a bound on its parameter is."""
    subject: ClassVar[str] = "ε"
    """What its assumption about neighbouring data is about."""
    has_epsilon: ClassVar[bool] = True
    """Whether a bound on the parameter bounds an ε too, at some δ."""
    most_guesses: ClassVar[int] = 2**53
    """The most guesses of a count: the core counts in doubles."""
    width: ClassVar[float] = 0.0
    """Relative width at which a search for the parameter ends, on the rejected side."""

    @property
    @abstractmethod
    def name(self) -> str:
        """How results and reports call the claim."""

    def lower_bound(
        self,
        correct: int,
        guesses: int,
        m: float,
        level: float,
        *,
        form: TailBound = "exact",
        test: FdpTest = "tight",
        one_sided: bool = False,
    ) -> float:
        """Return what so many correct guesses prove, their number fixed in advance; 0 if nothing.

        Parameters
        ----------
        correct, guesses : int
            Correct guesses, of those made; 0 made prove nothing.
        m : float
            Examples, guessed or not; positive. After weighting, their effective number.
        level : float
            Probability of error, in (0, 1).
        form : {"exact", "steinke", "coupling", "zero_run", "panoramia"}
            For (ε, δ)-DP, the bound on so many correct guesses: see
            `leakbound.stats.one_run_p_value`.
        test : {"tight", "recursion"}
            For families of trade-off functions, the test of the count.
        one_sided : bool
            Whether no guess but "member" is ever made.

        Examples
        --------
        >>> from leakbound.claims import ApproxDP, PureDP
        >>> round(PureDP().lower_bound(75, 80, 1000, 0.05), 4)
        1.9284
        >>> round(ApproxDP(delta=1e-5).lower_bound(75, 80, 1000, 0.05), 4)
        1.9277
        """
        members_only = flag(one_sided, name="one_sided")  # 1 would be a hit of the cache for True
        return _lower_bound(
            self,
            correct=correct,
            guesses=guesses,
            m=m,
            level=level,
            form=form,
            test=test,
            one_sided=members_only,
        )

    @property
    def search(self) -> tuple[float, float]:
        """The values of the parameter between which bounds are."""
        return (0.0, math.inf)

    @abstractmethod
    def theorem(self, words: GuessWords) -> str:
        """Return why a bound from guesses about fair coins holds, whatever the cuts."""

    @abstractmethod
    def curve(self, theta: float, sides: Sides) -> TradeOff:
        """Return the trade-off function that the claim allows at a value of its parameter."""

    def stored_least_delta(self, sides: Sides) -> float | None:  # noqa: ARG002 (families)
        """Return the least δ with an ε, of a family whose function is not stored; else None."""
        return None

    def rejected(self, bound: float, sides: Sides) -> TradeOff | None:  # noqa: ARG002 (families)
        """Return the curve of a family that a bound rejects; None if none, or no family."""
        return None

    @abstractmethod
    def _least_refuted(
        self, counts: CountOptions, level: float, form: TailBound, test: FdpTest
    ) -> float:
        """Return the bound that counts prove, at least one guess being made."""


@lru_cache(maxsize=65_536)
def _lower_bound(
    claim: Guarantee,
    correct: int,
    guesses: int,
    m: float,
    level: float,
    form: TailBound,
    test: FdpTest,
    one_sided: bool,  # noqa: FBT001 (a cache's key)
) -> float:
    made = integer(guesses, name="guesses", least=0, most=claim.most_guesses)
    if not made:
        return 0.0
    choice(form, name="form", allowed=TailBound)
    choice(test, name="test", allowed=FdpTest)
    right = integer(correct, name="correct", least=0, most=made)
    examples = real(m, name="m", above=0, below=math.inf)
    counts = counts_of(right, guesses=made, m=examples, one_sided=one_sided)
    error = real(level, name="level", least=_SMALLEST, below=1)
    return claim._least_refuted(counts, error, form, test)  # noqa: SLF001


def counts_of(correct: int, guesses: int, m: float, *, one_sided: bool, k: int = 2) -> CountOptions:
    """Return the counts of guesses among `k` values, as the core takes them."""
    return {"correct": correct, "guesses": guesses, "m": m, "k": k, "one_sided": one_sided}


def tail_of(counts: CountOptions, bound: TailBound, delta: float) -> TailOptions:
    """Return the bound on so many correct guesses under (ε, δ)-DP, as the core takes it."""
    m = counts["m"]
    k = counts["k"]
    one_sided = counts["one_sided"]
    return {"bound": bound, "m": m, "delta": delta, "k": k, "one_sided": one_sided}


def unexplained(counts: CountOptions, level: float) -> bool:
    """Return whether even a mechanism that tells all rarely allows so many correct guesses.

    Their mean is at most m, and of guesses of "member" at most m/2, whatever the mechanism. A
    larger count means that coins were not fair or luck was great, and nothing about privacy.
    """
    most = counts["m"]
    if counts["one_sided"]:
        most /= 2
    return level * counts["correct"] >= most


# The core counts the guesses of a tail bound in 32 bits
_MOST = 2**32 - 1


@hinted(
    positional="write lb.PureDP(): ε is what is bounded, and result.check(epsilon=…) tests one",
    **OF_FAMILIES,
)
@dataclass(frozen=True)
class PureDP(Guarantee):
    """Pure ε-differential privacy: one example changes any odds by a factor of at most e^ε.

    An audit bounds ε, so the claim takes no number: ``result.check(epsilon=ε)`` tests one.
    """

    name = "pure DP"
    parameter = "epsilon"
    delta = 0.0

    def theorem(self, words: GuessWords) -> str:
        """See `Guarantee.theorem`."""
        change = words.replacing and f" for{words.replacing}"
        return (
            f"{words.before}Given {words.given}, each guess{words.among} is right with "
            f"probability at most {words.chance} if training is ε-DP{change}{words.source}. "
        )

    def curve(self, theta: float, _sides: Sides) -> TradeOff:
        """See `Guarantee.curve`."""
        return TradeOff.approx(theta)

    def _least_refuted(
        self, counts: CountOptions, level: float, _form: TailBound, _test: FdpTest
    ) -> float:
        correct = np.array([counts["correct"]], dtype=np.uint64)
        guesses = np.array([counts["guesses"]], dtype=np.uint64)
        limits = _core.clopper_pearson(correct, guesses, beta=np.array([level]))
        accuracy = float(limits[0])
        if accuracy <= 0:
            return 0.0
        log_odds = math.log(accuracy) - math.log1p(-accuracy)
        return max(0.0, log_odds)


@hinted(
    positional="write lb.ApproxDP(delta=…): ε is what is bounded, and result.check(epsilon=…) "
    "tests one",
    **OF_FAMILIES,
)
@dataclass(frozen=True, kw_only=True)
class ApproxDP(Guarantee):
    """(ε, δ)-differential privacy at one δ, the probability that odds change by more than e^ε.

    An audit bounds ε at this δ, so the claim takes δ only: ``result.check(epsilon=ε)`` tests an ε.

    Parameters
    ----------
    delta : float
        δ, in (0, 1).
    """

    parameter = "epsilon"
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", real(self.delta, name="delta", above=0, below=1))

    @property
    def name(self) -> str:
        """How results and reports call the claim."""
        return f"approximate DP with delta = {self.delta:g}"

    def theorem(self, words: GuessWords) -> str:
        """See `Guarantee.theorem`."""
        change = words.replacing and f" for{words.replacing}"
        return (
            f"{words.before}Given {words.others}, each guess{words.among} is right with "
            f"probability at most {words.chance}, except in failures that (ε, δ)-DP{change} makes "
            "rare. "
        )

    def curve(self, theta: float, _sides: Sides) -> TradeOff:
        """See `Guarantee.curve`."""
        return TradeOff.approx(theta, self.delta)

    def _least_refuted(
        self, counts: CountOptions, level: float, form: TailBound, _test: FdpTest
    ) -> float:
        made = integer(counts["guesses"], name="guesses", least=1, most=_MOST)
        tail = tail_of(counts, bound=form, delta=self.delta)
        return _core.approx_epsilon(counts["correct"], made, level, tail)


def replacing(epsilon: float, delta: float = 0.0) -> tuple[float, float]:
    """Return the guarantee for replacing one example that follows from one for adding it.

    To replace an example is to remove one and add another. If training is (ε, δ)-DP for both, it is
    (2ε, (1 + e^ε) δ)-DP for the replacement, and for no smaller values in general. A δ above 1
    guarantees nothing.

    Parameters
    ----------
    epsilon, delta : float
        ε of adding or removing one example, at least 0, in nats, and its δ, in [0, 1).

    Notes
    -----
    Halving an ε at the same δ is no way back: μ-Gaussian DP with μ = 1 has ε(10⁻⁵) = 4.38, and
    replacing one example, 2μ, has 10.0.

    Examples
    --------
    >>> replacing(1.0)
    (2.0, 0.0)
    >>> round(replacing(1.0, 1e-5)[1] * 1e5, 3)
    3.718
    """
    loss = real(epsilon, name="epsilon", least=0, below=math.inf)
    failure = real(delta, name="delta", least=0, below=1)
    return 2 * loss, (1 + math.exp(min(loss, 700.0))) * failure


def grouped(epsilon: float, delta: float = 0.0, *, copies: int) -> tuple[float, float]:
    """Return the guarantee for several copies of a record that follows from one for one record.

    To add R copies is to add a record R times. If training is (ε, δ)-DP for one, it is
    (Rε, δ (e^(Rε) - 1) / (e^ε - 1))-DP for R: group privacy. A δ above 1 guarantees nothing.

    Parameters
    ----------
    epsilon, delta : float
        ε of one record, at least 0, in nats, and its δ, in [0, 1).
    copies : int
        R, at least 1.

    Notes
    -----
    `Coins` and `Choices` with `copies` test the guarantee of all copies at once. To test ε at δ for
    one record, audit with ``ApproxDP(delta=grouped(ε, δ, copies=R)[1])``.

    Examples
    --------
    >>> grouped(0.5, copies=10)
    (5.0, 0.0)
    >>> round(grouped(0.5, 1e-6, copies=10)[1] * 1e6, 2)
    227.24
    """
    loss = real(epsilon, name="epsilon", least=0, below=math.inf)
    failure = real(delta, name="delta", least=0, below=1)
    several = integer(copies, name="copies", least=1)
    if failure:
        failure *= group_factor(loss, several)
    return several * loss, failure


def group_factor(epsilon: float, copies: int) -> float:
    """Return (e^(Rε) - 1) / (e^ε - 1), by which δ grows for R records; infinity beyond doubles.

    It is the sum of e^(iε) over i < R: R at ε = 0, and increasing.
    """
    if copies == 1 or epsilon <= _NO_LOSS:
        return float(copies)
    if copies * epsilon > _LARGEST_EXPONENT:
        return math.inf
    return math.expm1(copies * epsilon) / math.expm1(epsilon)


def failure_of_one(delta: float, epsilon: float, *, copies: int) -> float:
    """Return the largest δ of one record that is at most `delta` for R of them, with its ε.

    It is rounded down to three digits, so that a text can show all of them.
    """
    exact = delta / group_factor(epsilon, copies) * (1 - _ROUNDING)
    rounded = float(_THREE_DIGITS.create_decimal(repr(exact)))
    return max(rounded, _SMALLEST)


def loss_of_one(epsilon: float, delta: float, within: float, *, copies: int) -> float:
    """Return the largest ε up to one at which δ of one record is at most `within` for R of them.

    There is one where R δ is at most `within`; it is rounded down.
    """

    def is_within(loss: float) -> bool:
        return delta * group_factor(loss, copies) <= within

    if is_within(epsilon):
        return epsilon
    return halved(0.0, epsilon, is_within)[0]
