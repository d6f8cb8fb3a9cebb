"""What an audit with random inclusion returns; the public name is that of the package."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Self, get_args

import numpy as np

from leakbound._base import shares
from leakbound._base.brief import brief
from leakbound._base.checks import choice, instance, real, shown
from leakbound._base.drawn import check_unit
from leakbound._base.formatting import down, percent
from leakbound._base.messages import OF_PARAMETERS, Message, Option, hinted
from leakbound._base.records import IF_ANY, Lazy
from leakbound._base.types import (
    BoolArray,
    FloatArray,
    GenericArray,
    IntArray,
    Kind,
    Relation,
    Sides,
    Strings,
    Verdict,
)
from leakbound.claims import (
    FAMILIES,
    ApproxDP,
    Claim,
    EventFamily,
    GaussianDP,
    SubsampledGaussianDP,
    TradeOffFamily,
    ZeroConcentratedDP,
    replacing,
)
from leakbound.claims.base import failure_of_one, group_factor, loss_of_one
from leakbound.claims.families import check_epsilon_at, check_has_epsilon
from leakbound.claims.tradeoff import TradeOff, least_delta
from leakbound.errors import FormatError, OptionError
from leakbound.report.description import KINDS
from leakbound.report.parts import Assumption, Checked, Provenance, ScoreAudit
from leakbound.results.base import Audit, check_delta, judged
from leakbound.results.blind import BlindBaseline, blind_baseline
from leakbound.results.terms import COMPARED, delta_of, scale_of, stated_claim
from leakbound.results.wording import UNSTATED, Wording, implied_by

RATE = 0.1
"""False discovery rate of the list. It is fixed: a rate chosen after a look would not hold."""
# Share of a δ that its conversion to replacing one example may be off by rounding
_CLOSE = 2.0**-48
# Words for one record
_SINGLE = {"example", "record", "candidate"}
# An ε whose exponential is still a number
_HUGE = 700.0
# Guesses up to which a list may reach, so that a stored result stays small
_MOST = 10_000


@dataclass(frozen=True, eq=False)
class Exposed:
    """The most exposed members, at a false discovery rate of 10 %.

    The examples of highest score are guessed to be members. Listed are the correct ones among the
    first k guesses, for the largest k at which (1 + wrong guesses) / (correct guesses) is at most
    `rate`. There are at least ten of them, or none. Non-members are never listed.

    Notes
    -----
    Call a listed member *false* if its guess had posterior odds of at most e^η, given the output of
    training and all other coins. The expected share of false ones in the list is at most
    e^η · `rate`, for every η ≥ 0 at once: at η = 0, these are members about whom the output says
    nothing. The expectation is over fair, independent coins and the randomness of training; how
    coins depend on each other given the output does not matter.

    Proof (as Barber, Candès and Samworth 2020, Theorem 1). Let W be the wrong guesses among the
    first k. By the stopping rule, the false share is at most rate · Σ 1{j false} / (1 + W), over
    listed j. Replace k by k_j, the stopping point if coin j had come up "member", and W by W_j,
    which leaves out j: for listed j both are equal. Neither depends on coin j, nor does whether j
    is false, so each term grows at most by e^η, on average, if coin j is turned to "non-member".
    The sum is then over wrong guesses j ≤ k_j of 1 / (1 + W_j). All such j have the same k_j, since
    from the later of two on, counts do not tell which was turned. So 1 + W_j are the wrong guesses
    up to there, and the sum is at most 1. Stopping points lie between blocks of tied scores, and
    are at most 10,000: neither depends on coins. Of several attacks, of which the best is chosen by
    the coins, each has its equal share of `rate`.

    References
    ----------
    R. F. Barber, E. J. Candès and R. J. Samworth, "Robust inference with knockoffs", Annals of
    Statistics 48, 2020 (arXiv 1801.03896).
    """

    rate: float
    """Bound on the expected share of false discoveries."""
    rows: IntArray
    """Rows of the scores, the most exposed member first."""
    ids: Strings
    """Ids of these examples, as text, where `ids`, scores or a plan told them; else empty."""

    __repr__ = brief

    def _flaw(self) -> str:
        named = len(self.ids) in {0, self.rows.size}
        distinct = np.unique(self.rows).size
        if named and distinct == self.rows.size and (self.rows >= 0).all() and self.rate == RATE:
            return ""
        return "exposed has rows, ids or a rate that no audit lists"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AuditResult(Audit, ScoreAudit):
    """What an audit with random inclusion proves; the fields of `ScoreAudit` are its own."""

    _words = "leakbound.results.descriptions.one_run"

    kind: Kind
    """"lower_bound": holds for every mechanism that satisfies the claim; "family_lower_bound":
    holds among the trade-off functions of the claim, and ε is a conversion;
    "conditional_lower_bound": holds if the model of who became a member is right;
    "exploratory_lower_bound": that model was learnt and its error is not covered."""
    claim: Claim
    """The guarantees whose parameter is bounded: `bound` and `ceiling` are in its units."""
    confidence: float
    """Probability, over the coins, that the bound is not above the truth."""
    theorem: str
    """Why the bound holds."""
    assumptions: tuple[Assumption, ...]
    """What must be true for it."""
    rejected: TradeOff | None = None
    """For a family of trade-off functions, the least private curve that is rejected, if any."""
    least_delta: float | None = field(default=None, metadata=IF_ANY)
    """For a `TradeOffFamily`, the least δ at which its curves have an ε."""
    checked: Checked | None = field(default=None, metadata=IF_ANY)
    """A claimed guarantee that was put to the test, by `with_check` or ``--claim``."""
    wording: Wording = field(default=UNSTATED, metadata=IF_ANY)
    """The words of the design: what was drawn, and what guesses are about."""
    _provenance: Lazy[Provenance] = field(repr=False)
    _rejectable: Lazy[TradeOff | None] = field(default_factory=lambda: Lazy(lambda: None))
    _exposed: Lazy[Exposed | None] = field(default_factory=lambda: Lazy(lambda: None))

    def __post_init__(self) -> None:
        if self.wording is UNSTATED:  # of a file from before words were stored, too
            object.__setattr__(self, "wording", implied_by(self.options))

    def __str__(self) -> str:
        """Return the paragraph of the page, without making figures and tables of it."""
        return str(import_module(self._words).sentences(self))

    @property
    def provenance(self) -> Provenance:
        """Versions, seed and digests of the inputs, taken when this is first read."""
        return self._provenance.value

    @property
    def rejectable(self) -> TradeOff | None:
        """The curve that a perfect attack would have rejected; None if none, or no family."""
        return self._rejectable.value

    @property
    def exposed(self) -> Exposed | None:
        """The most exposed members; None unless a fair, independent coin decided on each example.

        A random split, a tally and coins with a prior have no such list.
        """
        return self._exposed.value

    @property
    def blind_baseline(self) -> BlindBaseline | None:
        """How well features alone, without the model, tell the member of a pair.

        None without features, and where there were too few pairs to bet on. Of a random split it
        should be half of them; in Zero-Run a difference is expected, and corrected for.
        """
        return blind_baseline(self.options)

    @property
    def relation(self) -> Relation:
        """What the bound compares: training with and without an example, or with another one."""
        stored: Relation = self.options.get("relation", "add_remove")
        return stored

    @property
    def copies(self) -> int:
        """How often each member was inserted; the bound is for one record."""
        stored: int = self.options.get("copies", 1)
        return stored

    @property
    def is_withheld(self) -> bool:
        """Whether the bound is withheld because the records contradict a random split."""
        doubted = (one.status == "contradicted" for one in self.assumptions)
        return not self.bound and "challenge" in self.options and any(doubted)

    def epsilon(self, delta: float = 0.0) -> float:  # noqa: D102 (that of `Audit`)
        if isinstance(self.claim, FAMILIES):
            return self._converted(self.rejected, delta)
        if self.copies == 1 or not self.claim.delta:
            return super().epsilon(delta)
        # What was refuted of all copies is δ = that of the claim, and smaller ones.
        at = real(delta, name="delta", least=0, below=1)
        self._check_delta(0.0, at)
        return loss_of_one(self.bound, delta=at, within=self.claim.delta, copies=self.copies)

    epsilon.__doc__ = Audit.epsilon.__doc__

    @hinted(positional="write check(epsilon=…)", **OF_PARAMETERS)
    def check(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        parameter: float | None = None,
        relation: Relation | None = None,
    ) -> Verdict:
        """Return whether the audit refutes a claimed ε, or a claimed parameter.

        "refuted" if the bound is above the claim; "inconclusive" if even a perfect attack could not
        have refuted it, the bound is withheld, or the kind is "exploratory_lower_bound". Of a
        family, what is refuted is the family's own curve with this ε and δ; of zero-concentrated
        DP no ε can be claimed, since a bound on ρ implies none. At a δ at which its
        curves have no finite ε, such as 0 for Gaussian noise, every ε would be refuted: this is an
        error, which proposes a δ.

        Parameters
        ----------
        epsilon : float, optional
            The claimed ε, at least 0: that of the whole training, all rounds, epochs and clients
            together. The ε of one round must be composed first.
        delta : float, optional
            The claimed δ, 0 if not given; of pure and approximate DP at most that of the bound, of
            Gaussian DP more than its failures, and of DP-SGD more than 0. Where records were
            inserted several times, what (ε, δ) implies for all copies must be within the δ of the
            claim: see `leakbound.claims.grouped`.
        parameter : float, optional
            In place of ε, the claimed value of the claim's own parameter, such as μ.
        relation : {"add_remove", "replace"}, optional
            What the claimed guarantee compares. It must be given where the bound is on replacing
            one example: a claim about adding or removing one is then converted to what follows
            from it, (2ε, (1 + e^ε) δ) or 2μ, whether it is claimed by `epsilon` or by `parameter`.
            The bound never is. A `parameter` of `ApproxDP` is an ε at the δ of the bound, and the
            converted δ would be larger: claim `epsilon` and `delta`.
        """
        if (epsilon is None) == (parameter is None):
            raise OptionError("claim either epsilon or parameter, one of them")
        if parameter is not None and delta is not None:
            raise OptionError(
                f"delta={shown(delta)} is not for parameter=: its δ is that of the claim"
            )
        if epsilon is not None:
            check_has_epsilon(self.claim)
        # A claim about adding or removing one example is converted where the bound is on replacing.
        converted = self._crosses(relation, by_parameter=parameter is not None)
        if parameter is not None and self.copies > 1 and isinstance(self.claim, ApproxDP):
            raise OptionError(
                f"the δ of a bound from {self.copies} copies of each record depends on its ε: "
                "claim epsilon and delta"
            )
        if parameter is not None:
            claimed = real(parameter, name="parameter", least=0)
            if converted:
                claimed = self._parameter_for_replacing(claimed)
            return self._judged(self.bound > claimed, lambda: self.ceiling > claimed)
        claimed = real(epsilon, name="epsilon", least=0)
        at = 0.0
        if delta is not None:
            at = real(delta, name="delta", least=0, below=1)
        if isinstance(self.claim, FAMILIES):  # an ε is that of the rejected curve
            return self._judged(
                self._converted(self.rejected, at, halved=converted) > claimed,
                lambda: self._converted(self.rejectable, at, halved=converted) > claimed,
            )
        if converted:
            claimed, at = self._for_replacing(claimed, at)
            if at >= 1:
                return "inconclusive"  # nothing follows for replacing one
        self._check_delta(claimed, at)
        # Pure and approximate DP: a bound is on ε itself.
        return self._judged(self.bound > claimed, lambda: self.ceiling > claimed)

    def _parameter_for_replacing(self, claimed: float) -> float:
        """Return the parameter for replacing one that follows from one for adding or removing."""
        if isinstance(self.claim, ApproxDP):
            failure = _delta_before(claimed, self.claim.delta)
            raise OptionError(
                f"{self.claim.name} for adding or removing one example has a larger δ for "
                "replacing one, which this bound does not refer to: claim ε at a smaller δ, such "
                f'as check(epsilon={claimed:g}, delta={failure:.2e}, relation="add_remove")'
            )
        if isinstance(self.claim, ZeroConcentratedDP):
            return 4 * claimed  # group privacy of two: Bun and Steinke 2016, Proposition 1.9
        return 2 * claimed  # ε of pure DP, and μ of Gaussian DP: families of others were refused

    def _check_delta(self, epsilon: float, delta: float) -> None:
        """Check that the bound refers to a δ, of one record, with an ε."""
        delta_of_bound = self.claim.delta
        if self.copies == 1 or not delta_of_bound:
            check_delta(delta, self.claim)
            return
        delta_of_copies = delta * group_factor(epsilon, self.copies)
        if delta_of_copies > delta_of_bound * (1 + _CLOSE):
            largest_delta = failure_of_one(delta_of_bound, epsilon, copies=self.copies)
            message = (
                f"the bound is on {self.copies} copies of a record at δ = {delta_of_bound:g}, and "
                f"says nothing about ε = {epsilon:g} at δ = {delta:g} for one, which implies δ = "
                f"{delta_of_copies:.3g} for {self.copies}: claim delta={largest_delta:g} or less"
            )
            if delta_of_copies >= 1:
                raise OptionError(message)
            larger_claim = Option("claim", ApproxDP(delta=delta_of_copies))
            raise OptionError(Message(f"{message}, or audit with {{larger}}", larger=larger_claim))

    def _for_replacing(self, epsilon: float, delta: float) -> tuple[float, float]:
        """Return the (ε, δ) for replacing one that follows from one for adding or removing."""
        epsilon_for_replacing, delta_for_replacing = replacing(epsilon, delta)
        if self.copies > 1:
            # The bound refers to less, which is checked with the copies.
            return epsilon_for_replacing, delta_for_replacing
        delta_of_bound = self.claim.delta
        if delta_of_bound < delta_for_replacing <= delta_of_bound * (1 + _CLOSE):
            return epsilon_for_replacing, delta_of_bound  # δ / (1 + e^ε) was meant, and rounded
        if delta_of_bound and delta_of_bound < delta_for_replacing < 1:
            largest_delta = _delta_before(epsilon, delta_of_bound)
            raise OptionError(
                f"a bound on {self.claim.name} says nothing about delta = "
                f"{delta_for_replacing:.3g}, which ε = {epsilon:g} at δ = {delta:g} for adding or "
                f"removing one example becomes for replacing one: claim delta={largest_delta:.2e} "
                "or less"
            )
        return epsilon_for_replacing, delta_for_replacing

    def _converted(self, curve: TradeOff | None, delta: float, *, halved: bool = False) -> float:
        """Return a curve as an ε; the Gaussian one of half the μ, which replacing one doubles.

        Every ε of a family comes from here, and so does the refusal of a δ at which it has none.
        """
        checked = real(delta, name="delta", least=0, below=1)
        check_epsilon_at(self.claim, delta=checked, least=self._least_delta)
        if curve is not None and halved:
            curve = TradeOff.gaussian(curve.parameters["mu"].item() / 2)
        if curve is None:
            return 0.0
        return float(curve.epsilon(checked))

    @property
    def _least_delta(self) -> float | None:
        """The least δ at which the family has an ε; None if its claim tells."""
        if self.least_delta is not None or not isinstance(self.claim, TradeOffFamily):
            return self.least_delta
        # A file of before this was stored: only the name of its function is left.
        curve = self.rejected or self.rejectable
        if curve is None:
            return 0.0
        return least_delta(curve)

    def _judged(self, refuted: bool, refutable: Callable[[], bool]) -> Verdict:  # noqa: FBT001
        return judged(self.kind, refuted=refuted, refutable=refutable, withheld=self.is_withheld)

    @hinted(positional="write against(epsilon=…, delta=…, relation=…)", **OF_PARAMETERS)
    def against(
        self,
        *,
        epsilon: float,
        delta: float,
        relation: Relation,
        unit: str = "example",
        source: str = "",
    ) -> Self:
        """Return this result with an accountant's ε to compare with the proved one.

        The audit gives a lower bound, and the accountant an upper bound. Both must have the same δ,
        relation and unit; otherwise the message names the conversion.

        Parameters
        ----------
        epsilon, delta : float
            What the accountant states: ε at least 0, δ in [0, 1).
        relation : {"add_remove", "replace"}
            What its guarantee compares: of Poisson sampling by default adding or removing one.
        unit : str
            Of what its guarantee adds, removes or replaces one: "example", or as the design calls
            it, such as "user".
        source : str
            The accountant's name, for JSON and pages.

        Examples
        --------
        >>> import numpy as np, leakbound as lb
        >>> member = np.arange(300) % 2 == 0
        >>> scores = member + np.arange(300) / 1e4
        >>> result = lb.audit(scores, lb.Coins(member), claim=lb.ApproxDP(delta=1e-5))
        >>> beside = result.against(epsilon=8, delta=1e-5, relation="add_remove")
        >>> beside.summary().answer.split(",")[0]
        'Accounted ε = 8 at δ = 1e-05'
        """
        check_has_epsilon(self.claim)
        stated_epsilon = real(epsilon, name="epsilon", least=0, below=math.inf)
        stated_delta = real(delta, name="delta", least=0, below=1)
        instance(source, name="source", types=str)
        if not KINDS[self.kind].proves:
            raise OptionError(
                f"this audit is {KINDS[self.kind].tag}: it has no proved ε to compare"
            )
        # Both are about one change of the data, or what follows for the other is said.
        check_unit(unit)
        advice = ""
        audited_unit = self.wording.unit
        if unit != audited_unit and not {unit, audited_unit} <= _SINGLE:
            grouped_unit = unit
            if unit in _SINGLE:
                grouped_unit = audited_unit
            of_group = "(kε, (e^(kε) - 1)/(e^ε - 1) δ)"
            advice = f"by group privacy, for k examples of a {grouped_unit}: {of_group}"
        elif self._crosses(relation, by_parameter=False):
            epsilon_for_replacing, delta_for_replacing = replacing(stated_epsilon, stated_delta)
            guarantee = f"({epsilon_for_replacing:.6g}, {delta_for_replacing:.3g})"
            advice = f"by leakbound.claims.replacing, {guarantee}"
            if delta_for_replacing >= 1:
                advice += ", which is not a guarantee"
        if advice:
            raise OptionError(
                f"the bound is on {COMPARED[self.relation]} one {audited_unit}, and the "
                f"accountant's guarantee on {COMPARED[relation]} one {unit}; convert it {advice}"
            )
        checked = self._checked(epsilon=stated_epsilon, delta=stated_delta, relation=relation)
        return replace(
            self, checked=replace(checked, proved=self.epsilon(stated_delta), source=source or None)
        )

    def _crosses(self, relation: Relation | None, *, by_parameter: bool) -> bool:
        """Return whether a claim about adding or removing one example has to be converted."""
        if relation is not None:
            choice(relation, name="relation", allowed=Relation)
        if self.relation == "add_remove":
            if relation == "replace":
                message = (
                    "the bound is on adding or removing one example, and a guarantee for "
                    "replacing one does not imply one for that: audit a random split "
                    "({RandomSplit})"
                )
                raise OptionError(Message(message))
            return False
        if isinstance(self.claim, SubsampledGaussianDP | EventFamily) and by_parameter:
            return False  # noise is noise: its curve is that of the relation
        if relation is None:
            message = (
                "the bound is for replacing one: say what the claim is about, "
                '{relation="add_remove"} (it is converted: 2ε, 2μ) or {relation="replace"}'
            )
            raise OptionError(Message(message))
        if relation == "replace":
            return False
        has_own_curve = isinstance(self.claim, GaussianDP | ZeroConcentratedDP)
        if isinstance(self.claim, FAMILIES) and (self.claim.delta or not has_own_curve):
            message = (
                "a claim of {claim} for adding or removing one example has no curve of this "
                'family for replacing one: claim that one, with {relation="replace"}'
            )
            raise OptionError(Message(message, claim=self.claim.name))
        return True

    def _refuted_curve(self) -> TradeOff:
        claim = self.claim
        if not isinstance(claim, FAMILIES):
            return super()._refuted_curve()
        if isinstance(claim, GaussianDP):
            claim = GaussianDP()  # without failures
        return claim.attained(self.bound, "member")  # that of guesses of members

    def _kinds(self) -> set[Kind]:
        return {self.claim.kind}

    def _flaw(self) -> str:
        is_sound = (
            self.options.get("relation", "add_remove") in get_args(Relation)
            and type(self.copies) is int
            and self.copies >= 1
            and (self.rejected is None or isinstance(self.claim, FAMILIES))
            and self.kind in self._kinds()
        )
        return super()._flaw() or self._flaw_unless(is_sound)

    def __repr__(self) -> str:
        replaced_unit = self.wording.changed(self.relation)
        copies_in_code = ""
        if self.copies > 1:
            copies_in_code = f", copies={self.copies}"
        epsilon = as_epsilon(self.claim, value=self.bound, curve=self.rejected)
        bound_in_code = in_code(
            self.claim, bound=self.bound, epsilon=epsilon, proves=KINDS[self.kind].proves
        )
        if self.copies > 1 and self.claim.delta:  # epsilon() is at δ = 0, the bound at another
            bound_in_code = bound_in_code.replace("epsilon()", "epsilon")
        return (
            f"{type(self).__name__}({bound_in_code} @ {percent(self.confidence)}, "
            f"{stated_claim(self).name}{replaced_unit}{copies_in_code}, m={self.m}, "
            f"guesses={self.guesses}, correct={self.correct}, {self.kind})"
        )


def as_epsilon(
    claim: Claim, value: float, curve: TradeOff | None, least_delta: float | None = None
) -> float:
    """Return a value of the claim's parameter as an ε, that of its curve at `delta_of` a family.

    Where it bounds no ε it stays as it is, in its own unit.
    """
    if not (isinstance(claim, FAMILIES) and claim.has_epsilon):
        return value
    if curve is None:
        return 0.0
    return curve.epsilon_at(delta_of(claim, least_delta))


def _delta_before(epsilon: float, delta: float) -> float:
    """Return a δ for adding or removing one that is at most `delta` for replacing one.

    It is half a per cent below the largest, so that two decimals can be rounded.
    """
    return 0.995 * delta / (1 + math.exp(min(epsilon, _HUGE)))


def in_code(claim: Claim, bound: float, epsilon: float, *, proves: bool = True) -> str:
    """Write a bound in ASCII, as the call that returns it; a family's parameter is in brackets."""
    scale = scale_of(claim)
    sign = "~"
    if proves:
        sign = ">="
    if not isinstance(claim, FAMILIES):
        return f"epsilon() {sign} {scale.rounded(bound)}"
    parameter_name = claim.parameter
    parameter_sign = sign
    if scale.inverse:
        parameter_name = scale.name.replace(" ", "_")
        parameter_sign = "<="
    delta_in_ascii = scale.at.replace("δ", "delta")
    own_parameter = f"{parameter_name} {parameter_sign} {scale.rounded(bound)}{delta_in_ascii}"
    if math.isinf(epsilon) or not claim.has_epsilon:  # no curve of the family has a finite one
        return own_parameter
    return f"epsilon({delta_of(claim):g}) {sign} {down(epsilon)} ({own_parameter})"


def valued(claim: Claim, value: float, sides: Sides) -> str:
    """Write a value of the claim's parameter: of a family as an ε, with the parameter behind it."""
    if not isinstance(claim, FAMILIES):
        return f"ε = {down(value)}"
    if not claim.has_epsilon:
        return scale_of(claim).equal(value)
    epsilon = as_epsilon(claim, value=value, curve=claim.rejected(value, sides))
    own_parameter = scale_of(claim).equal(value)
    return f"ε = {down(epsilon)} at δ = {delta_of(claim):g} ({own_parameter})"


def converted(result: AuditResult, value: float) -> float | None:
    """Return a value of the claim's parameter as an ε; None if a curve's function is not known.

    Neither is there one of a parameter that bounds none.
    """
    claim = result.claim
    if not claim.has_epsilon:
        return None
    if not isinstance(claim, FAMILIES) or not value:
        return value
    try:
        curve = claim.attained(value, result.options.get("sides", "both"))
    except FormatError:
        return None
    return as_epsilon(claim, value=value, curve=curve)


def exposed(
    scores: FloatArray,
    member: BoolArray,
    ids: GenericArray | None,
    attacks: int = 1,
    given: IntArray | None = None,
) -> Exposed:
    """List the most exposed members by the best of several attacks; `given` has rows as passed."""
    rows_by_score = np.argsort(-scores, kind="stable")[: _MOST + 1]
    correct_guesses = np.cumsum(member[rows_by_score])
    wrong_guesses = np.arange(1, rows_by_score.size + 1) - correct_guesses
    ranked_scores = scores[rows_by_score]
    # the last of all examples ends a block, and the guess after the longest list only shows a tie
    is_end_of_tie = ranked_scores[1:] != ranked_scores[:-1]
    is_end_of_block = np.append(is_end_of_tie, rows_by_score.size <= _MOST)
    rate_of_attack = shares.EXPOSED.of(RATE, attacks)
    is_within_rate = 1 + wrong_guesses <= rate_of_attack * correct_guesses
    possible_stops = np.flatnonzero(is_end_of_block & is_within_rate)
    last_stop = (possible_stops + 1).max(initial=0)
    first_rows = rows_by_score[:last_stop]
    exposed_rows = first_rows[member[first_rows]]
    exposed_ids: Strings = ()
    if ids is not None:
        exposed_ids = tuple(map(str, ids[exposed_rows].tolist()))
    if given is not None:
        exposed_rows = given[exposed_rows]
    return Exposed(rate=RATE, rows=exposed_rows, ids=exposed_ids)
