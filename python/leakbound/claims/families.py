"""Claims of a trade-off family, ordered by one parameter, and the list of all claims."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import leakbound._core as _core
from leakbound._base.checks import choice, instance, integer, real, shown
from leakbound._base.messages import OF_FAMILIES, Message, Option, hinted
from leakbound._base.records import IF_ANY
from leakbound._base.types import CountOptions, FdpTest, InWords, Relation, Sampling, Sides
from leakbound.claims.base import ApproxDP, PureDP
from leakbound.claims.family import FamilyClaim
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import InputTypeError, OptionError

# The law of a sum of more losses takes too much memory, and time
_MOST_STEPS = 10**6
# δ on top of failures, where a message proposes one
_USUAL_DELTA = 1e-5
# Noise multipliers of DP-SGD between which audits search: beyond, ε says nothing or is 0
_LEAST_NOISE = 0.1
_MOST_NOISE = 50.0
# What to write where a family is described, or its bracket, in another way
_HINT_OF_BRACKET = (
    "bracket=(least, most), the smallest and the largest value of the parameter that audits look at"
)
_HINT_OF_FAMILY = 'write lb.TradeOffFamily(parameter="…", tradeoff=…, bracket=(least, most))'


def checked_rate(value: object) -> float:
    """Check a sampling rate, in whose place a batch size is easily given."""
    try:
        return real(value, name="sampling_rate", above=0, most=1)
    except OptionError as error:
        raise OptionError(
            f"{error}: it is the probability of an example to be in a batch; divide the mean size "
            "of a batch by the number of examples"
        ) from error


@hinted(
    positional="write lb.GaussianDP(): μ is what is bounded, and result.check(parameter=μ) tests "
    "one; lb.GaussianDP(delta=…) allows failures",
    **OF_FAMILIES,
)
@dataclass(frozen=True, kw_only=True)
class GaussianDP(FamilyClaim):
    """Gaussian differential privacy: no test beats that of N(0, 1) against N(μ, 1).

    An audit bounds μ, so the claim takes no number for it: ``result.check(parameter=μ)`` tests one.

    Parameters
    ----------
    delta : float
        Probability of a failure that reveals everything, in [0, 1).
    """

    parameter = "mu"
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", real(self.delta, name="delta", least=0, below=1))

    @property
    def name(self) -> str:
        """How results call the claim."""
        if self.delta:
            return f"Gaussian DP with failures of chance {self.delta:g}"
        return "Gaussian DP"

    def tradeoff(self, theta: float) -> TradeOff:
        """Return the curve at μ, at least 0; 0 is no leakage at all."""
        return TradeOff.gaussian(theta, self.delta)

    def _critical(self, counts: CountOptions, level: float, test: FdpTest) -> float | None:
        return _core.fdp_critical_mu(counts, self.delta, level, test)


@hinted(
    positional="write lb.LaplaceDP(): its parameter is what is bounded, and "
    "result.check(parameter=…) tests one",
    **OF_FAMILIES,
)
@dataclass(frozen=True)
class LaplaceDP(FamilyClaim):
    """The trade-off of Laplace noise of scale 1/ε: more private than ε-DP must be.

    An audit bounds ε, so the claim takes no number: ``result.check(parameter=ε)`` tests one.
    """

    name = "Laplace DP"
    parameter = "epsilon"
    delta = 0.0

    def tradeoff(self, theta: float) -> TradeOff:
        """Return the curve at ε, at least 0, in nats."""
        return TradeOff.laplace(theta)

    def _critical(self, counts: CountOptions, level: float, test: FdpTest) -> float | None:
        return _core.fdp_critical_laplace(counts, level, test)


@hinted(
    positional="write lb.SubsampledGaussianDP(sampling_rate=…, steps=…)",
    **OF_FAMILIES,
)
@dataclass(frozen=True, kw_only=True)
class SubsampledGaussianDP(FamilyClaim):
    """DP-SGD: the Gaussian mechanism on random batches, composed; needs the extra `dp`.

    An audit bounds the inverse 1/σ of the noise multiplier, so that more is leakier, as in every
    family, and the claim takes no noise: ``result.check(parameter=1/σ)`` tests one. Results say in
    words what a bound means: σ is at most its inverse.

    Parameters
    ----------
    sampling_rate : float
        Probability that an example is in a batch, in (0, 1].
    steps : int
        Number of batches, at least 1 and at most 10^6.
    relation : {"add_remove", "replace"}
        What the curves compare: training with and without an example, or with one in the place of
        another. An audit of a random split takes the latter.
    sampling : {"poisson", "fixed_size"}
        How batches are drawn: each example by itself, or a fresh uniform subset of a fixed size in
        each step, the rate being its share of all examples. Of subsets the relation is "replace",
        whatever it is given as: an example more would change the rate of all others.

    Notes
    -----
    Curves that are tested allow more than the mechanism: pessimistic estimates of δ by
    dp-accounting on a grid of ε, for P = (1-q) N(0, σ²) + q N(1, σ²) against Q = N(0, σ²) or, to
    replace an example, Q = (1-q) N(0, σ²) + q N(-1, σ²). Of subsets of a fixed size it is q times δ
    of N(0, σ²) against N(2, σ²), at ln(1 + q (e^ε - 1)) (Balle, Barthe and Gaboardi 2018). ε(δ) is
    converted from a curve that allows less: tests of a sum of losses, rounded step by step to a
    lattice, attain it. For subsets they are those of (1-q) N(0, σ²) + q N(2, σ²) against N(0, σ²),
    where all other examples are alike: whoever is not replaced takes the place in the batch.

    Batches of shuffled epochs have no such curve: `GaussianDP` holds for them, in any order.
    """

    parameter = "inverse_noise"
    width = 1e-4
    """Every curve takes tens of milliseconds."""
    delta = 0.0
    sampling_rate: float
    steps: int
    relation: Relation = field(default="add_remove", metadata=IF_ANY)
    sampling: Sampling = field(default="poisson", metadata=IF_ANY)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sampling_rate", checked_rate(self.sampling_rate))
        object.__setattr__(
            self, "steps", integer(self.steps, name="steps", least=1, most=_MOST_STEPS)
        )
        choice(self.relation, name="relation", allowed=Relation)
        choice(self.sampling, name="sampling", allowed=Sampling)
        if self._of_fixed_size:
            object.__setattr__(self, "relation", "replace")

    @property
    def _of_fixed_size(self) -> bool:
        return self.sampling == "fixed_size"

    @property
    def search(self) -> tuple[float, float]:
        """See `Guarantee.search`; in batches of a fixed size one example counts twice."""
        least = _LEAST_NOISE
        if self._of_fixed_size:
            least = 2 * _LEAST_NOISE
        return 1 / _MOST_NOISE, 1 / least

    @property
    def name(self) -> str:
        """How results call the claim."""
        if self._of_fixed_size:
            return (
                f"DP-SGD with batches of fixed size, {self.sampling_rate:g} of all examples, and "
                f"{self.steps} steps"
            )
        return f"DP-SGD with sampling rate {self.sampling_rate:g} and {self.steps} steps"

    def tradeoff(self, theta: float) -> TradeOff:
        """Return the curve at 1/σ, above 0, for guesses of both sides."""
        return self.curve(theta, "both")

    def curve(self, theta: float, sides: Sides) -> TradeOff:
        """See `FamilyClaim.curve`: guesses of members are bounded by one order of the two."""
        if self._of_fixed_size:
            from leakbound.claims.subsets import of_fixed_size

            return of_fixed_size(_noise(theta), sampling_rate=self.sampling_rate, steps=self.steps)
        from leakbound.claims.dp_sgd import subsampled_gaussian

        return subsampled_gaussian(
            _noise(theta),
            sampling_rate=self.sampling_rate,
            steps=self.steps,
            sides=sides,
            relation=self.relation,
        )

    def attained(self, theta: float, sides: Sides) -> TradeOff:
        """See `FamilyClaim.attained`: tests of the losses attain this curve."""
        from leakbound.claims.dp_sgd import attained

        if self._of_fixed_size:
            # Two clipping norms between one example among others that are alike, and its opposite
            return attained(
                _noise(theta) / 2, sampling_rate=self.sampling_rate, steps=self.steps, sides="both"
            )
        return attained(
            _noise(theta),
            sampling_rate=self.sampling_rate,
            steps=self.steps,
            sides=sides,
            relation=self.relation,
        )

    def least_delta(self, sides: Sides) -> float:  # noqa: ARG002 (the same for all)
        """See `FamilyClaim.least_delta`: losses of Gaussian noise have no limit.

        Computed curves do not show this: those that are attained end at the last point of a
        lattice, and those that are tested allow failures of what is beyond it.
        """
        return math.nextafter(0.0, 1.0)

    @property
    def _first_step(self) -> float:
        return self.search[0]  # so that the noise is halved

    def _middle(self, low: float, high: float) -> float:
        return 2 / (1 / low + 1 / high)  # the middle of the noise


def _noise(theta: float) -> float:
    """Return the noise multiplier that a value of the parameter stands for."""
    return 1 / real(theta, name="inverse_noise", above=0, below=math.inf)


@hinted(
    positional="write lb.claims.ZeroConcentratedDP(): rho is what is bounded, and "
    "result.check(parameter=…) tests one",
    **OF_FAMILIES,
)
@dataclass(frozen=True)
class ZeroConcentratedDP(FamilyClaim):
    """Zero-concentrated DP: Rényi divergences of all orders a > 1 are at most ρ a.

    An audit bounds ρ, so the claim takes no number: ``result.check(parameter=ρ)`` tests one.

    Every mechanism with a finite ρ has a least one, so that a bound on ρ needs no family. What the
    divergences allow of tests is taken from all orders at once; Gaussian DP with μ = √(2ρ) allows
    less, and is no translation.

    Notes
    -----
    A bound on ρ implies no ε at any δ. That ρ-zCDP is refuted says that *some* order is exceeded.
    What ρ implies about (ε, δ) is an upper bound: a mechanism that exceeds ρ may still obey it, as
    randomised response has a finite ε at δ = 0. Claim ρ, or audit `ApproxDP` for an ε.

    References
    ----------
    M. Bun and T. Steinke, "Concentrated differential privacy: simplifications, extensions, and
    lower bounds", 2016 (arXiv 1605.02065).

    Examples
    --------
    >>> from leakbound.claims import ZeroConcentratedDP
    >>> curve = ZeroConcentratedDP().tradeoff(0.5)
    >>> round(curve.f(0.05), 2), round(curve.epsilon(1e-5), 1)
    (0.66, 4.8)
    """

    kind = "lower_bound"
    has_epsilon = False
    _follows = (
        "A mechanism that is zero-concentrated DP with some parameter obeys the curve of its least "
        "one."
    )
    parameter = "rho"
    name = "zero-concentrated DP"
    delta = 0.0
    width = 1e-6
    search = (1e-4, 100.0)

    def tradeoff(self, theta: float) -> TradeOff:
        """Return the curve at ρ, at least 0."""
        return self.curve(theta, "both")

    def curve(self, theta: float, sides: Sides) -> TradeOff:  # noqa: ARG002 (alike for all)
        """See `FamilyClaim.curve`: it is its own mirror image."""
        from leakbound.claims.concentrated import zcdp_curve

        return zcdp_curve(real(theta, name="rho", above=0, below=math.inf))

    def attained(self, theta: float, sides: Sides) -> TradeOff:  # noqa: ARG002 (alike for all)
        """See `FamilyClaim.attained`: tests that obey every order."""
        from leakbound.claims.concentrated import attained_zcdp_curve

        return attained_zcdp_curve(real(theta, name="rho", above=0, below=math.inf))

    def rejected(self, bound: float, sides: Sides) -> TradeOff | None:  # noqa: ARG002 (none)
        """See `Guarantee.rejected`: what exceeds some order may obey every curve that is known."""
        return None

    def least_delta(self, sides: Sides) -> float:  # noqa: ARG002 (the same for all)
        """See `FamilyClaim.least_delta`: no order limits losses."""
        return math.nextafter(0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class EventFamily(FamilyClaim):
    """A mechanism as an accountant describes it, with its noise divided: see `from_event`.

    Parameters
    ----------
    event : str
        A `dp_accounting.DpEvent` in JSON: its classes and fields.
    relation : {"add_remove", "replace"}
        What the event's guarantee is about.
    """

    parameter = "noise_divided_by"
    delta = 0.0
    width = 1e-4
    search = (1 / 16, 16.0)
    event: str
    relation: Relation

    def __post_init__(self) -> None:
        from leakbound.claims.events import read_event

        instance(self.event, name="event", types=str)
        read_event(self.event)
        choice(self.relation, name="relation", allowed=Relation)

    @property
    def name(self) -> str:
        """How results call the claim."""
        from leakbound.claims.events import event_name, read_event

        return f"noise-scaled {event_name(read_event(self.event))}"

    def tradeoff(self, theta: float) -> TradeOff:
        """Return the curve at what noise is divided by, above 0, for guesses of both sides."""
        return self.curve(theta, "both")

    def curve(self, theta: float, sides: Sides) -> TradeOff:
        """See `FamilyClaim.curve`: guesses of members are bounded by one order of the two."""
        from leakbound.claims.events import event_curve

        divisor = real(theta, name=self.parameter, above=0, below=math.inf)
        return event_curve(self.event, self.relation, divisor, sides)

    def attained(self, theta: float, sides: Sides) -> TradeOff:
        """See `FamilyClaim.attained`: δ at losses that are rounded down."""
        from leakbound.claims.events import attained_event_curve

        divisor = real(theta, name=self.parameter, above=0, below=math.inf)
        return attained_event_curve(self.event, self.relation, divisor, sides)

    def least_delta(self, sides: Sides) -> float:  # noqa: ARG002 (the same for all)
        """See `FamilyClaim.least_delta`: computed curves end where noise begins."""
        return math.nextafter(0.0, 1.0)

    @property
    def _first_step(self) -> float:
        return self.search[0]

    def _middle(self, low: float, high: float) -> float:
        return math.sqrt(low * high)


def from_event(event: object, *, relation: Relation | None = None) -> EventFamily:
    """Return the family of a mechanism that an accountant knows, in how much less noise it has.

    Its parameter is θ, what all noise of the event is divided by: a bound above 1 says that the
    mechanism has less noise than the event states. It needs the extra `dp`.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Gaussian or Laplace noise, also discrete, a mixture of Gaussians, or on Poisson samples, and
        compositions of these.
    relation : {"add_remove", "replace"}
        What the event's noise is told for; there is no default.

    Raises
    ------
    OptionError
        If no relation is named; if a part is not private, has no noise, or is not supported by the
        accountant of privacy loss distributions under this relation; if nothing can be divided.

    Notes
    -----
    Curves are pessimistic loss distributions of dp-accounting. Whether θ is identified depends on
    all noise being divided alike: a composition whose parts lack different shares of their noise is
    refuted where its parts together are too little.

    Examples
    --------
    >>> import dp_accounting as dp
    >>> from leakbound.claims import from_event
    >>> both = dp.ComposedDpEvent([dp.GaussianDpEvent(1.0), dp.LaplaceDpEvent(2.0)])
    >>> from_event(both, relation="add_remove").name
    'noise-scaled Composed(Gaussian(1), Laplace(2))'
    """
    from leakbound.claims.events import check_event_is_supported, described_event, read_event

    if relation is None:
        raise OptionError(
            'from_event needs a relation: "add_remove" or "replace", whichever the noise '
            "multipliers of the event are told for"
        )
    choice(relation, name="relation", allowed=Relation)
    text = described_event(event)
    check_event_is_supported(read_event(text), relation)
    return EventFamily(event=text, relation=relation)


@hinted(
    positional=_HINT_OF_FAMILY,
    parameter=_HINT_OF_FAMILY,
    tradeoff=_HINT_OF_FAMILY,
    bracket=f"write {_HINT_OF_BRACKET}",
    **OF_FAMILIES,
)
@dataclass(frozen=True, kw_only=True)
class TradeOffFamily(FamilyClaim):
    """Any family of trade-off functions, ordered by a parameter.

    Parameters
    ----------
    parameter : str
        What to call the parameter.
    tradeoff : callable
        Takes a value of the parameter and returns a `TradeOff`: f(α) is the smallest probability
        of missing a member, of all tests that take a non-member for one with probability α. Curves
        must allow more as the parameter increases: of a scale of noise take the inverse.
    bracket : tuple of float
        The smallest and the largest value of the parameter that audits look at: finite, at least 0.

    Notes
    -----
    The audit takes the order on trust. A result that was read from JSON has the rejected curve, but
    not the function.

    Guesses of members are bounded by f, and of both by `TradeOff.symmetrized`. If a guarantee f
    holds in both orders, as that of "differ in one example", state the larger of f and f⁻¹.

    Examples
    --------
    >>> family = TradeOffFamily(
    ...     parameter="inverse scale",
    ...     tradeoff=lambda inverse: TradeOff.laplace(inverse),
    ...     bracket=(0.01, 100),
    ... )
    >>> family.tradeoff(0.5)
    TradeOff.laplace(epsilon=0.5)
    """

    delta = 0.0
    parameter: str
    tradeoff: Callable[[float], TradeOff]
    bracket: tuple[float, ...]

    def __post_init__(self) -> None:
        instance(self.parameter, name="parameter", types=str)
        function: object = self.tradeoff
        if not callable(function) or getattr(function, "__hash__", None) is None:
            raise InputTypeError(f"tradeoff must be a function of a number, got {function!r}")
        bracket: object = self.bracket
        message = (
            f"bracket must be a pair of numbers, got {shown(bracket)}: write {_HINT_OF_BRACKET}"
        )
        if not isinstance(bracket, tuple):
            raise InputTypeError(message)
        if len(bracket) != 2:
            raise OptionError(message)
        low = real(self.bracket[0], name="bracket[0]", least=0, below=math.inf)
        high = real(self.bracket[1], name="bracket[1]", above=low, below=math.inf)
        object.__setattr__(self, "bracket", (low, high))

    @property
    def name(self) -> str:
        """How results call the claim."""
        return f"trade-off family in {self.parameter}"

    @property
    def search(self) -> tuple[float, float]:
        """The bracket."""
        return self.bracket[0], self.bracket[1]

    def stored_least_delta(self, sides: Sides) -> float | None:
        """See `Guarantee.stored_least_delta`."""
        return self.least_delta(sides)


AnyFamily: TypeAlias = (
    GaussianDP
    | LaplaceDP
    | SubsampledGaussianDP
    | ZeroConcentratedDP
    | EventFamily
    | TradeOffFamily
)
"""Any family of trade-off functions that an audit takes."""
FAMILIES = (
    GaussianDP,
    LaplaceDP,
    SubsampledGaussianDP,
    ZeroConcentratedDP,
    EventFamily,
    TradeOffFamily,
)
if TYPE_CHECKING:
    Claim: TypeAlias = PureDP | ApproxDP | AnyFamily
else:
    Claim = InWords("Claim", PureDP | ApproxDP | AnyFamily)
"""Any claim that an audit of one run takes."""
CLAIMS = (PureDP, ApproxDP, *FAMILIES)
"""Every claim that an audit of one run takes."""


def refuse_claim(claim: object, name: str) -> NoReturn:
    """Refuse what is of no class in `CLAIMS`: files store a claim by the name of its class."""
    instance(claim, name=name, types=CLAIMS)
    base = next(kind.__name__ for kind in CLAIMS if isinstance(claim, kind))
    raise OptionError(
        f"{name} is a {type(claim).__name__}, derived from {base}, which could not be read back "
        f"from a file: use {base}, or make a family of your own with "
        "TradeOffFamily(parameter=…, tradeoff=…, bracket=…)",
        option=name,
    )


def check_has_epsilon(claim: Claim) -> None:
    """Check that a bound on the claim's parameter bounds an ε."""
    if claim.has_epsilon:
        return
    message = (
        "{claim.name}: a bound on {claim.parameter} implies no ε at any δ: state "
        "{claim.parameter}, or audit with {claim=ApproxDP(delta=…)}"
    )
    raise OptionError(Message(message, claim=claim))


def check_epsilon_at(claim: Claim, delta: float, least: float | None = None) -> None:
    """Check that the curves of a claim have an ε at a δ, if it is a family.

    `least` is the family's `least_delta`, where it was computed before.
    """
    if not isinstance(claim, FAMILIES):
        return
    check_has_epsilon(claim)
    if least is None:
        least = claim.least_delta("both")
    if delta >= least:
        return
    failures = math.nextafter(least, 0.0)
    above = ""
    if failures:
        above = f" above {failures:g}"
    asked = min(failures + _USUAL_DELTA, (1 + failures) / 2)
    message = (
        "{claim.name} has no ε without a δ{above}: at delta = {delta:g} every ε would be refuted, "
        "by any bound. Give a δ, such as {larger}"
    )
    larger = Option("delta", float(f"{asked:g}"))
    raise OptionError(Message(message, claim=claim, above=above, delta=delta, larger=larger))
