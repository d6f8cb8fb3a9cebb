"""Words that all results share."""

import math
from dataclasses import dataclass, replace
from typing import Any

from leakbound._base.formatting import down, up
from leakbound._base.types import Kind, PathName, Relation
from leakbound.claims import (
    FAMILIES,
    ApproxDP,
    Claim,
    EventFamily,
    LaplaceDP,
    SubsampledGaussianDP,
)
from leakbound.claims.base import failure_of_one
from leakbound.cuts.look import PILOT_GUESSES
from leakbound.report.description import Meaning, Terms
from leakbound.report.parts import Checked
from leakbound.results.wording import Wording

# The δ at which bounds on families of trade-off functions are stated, if no failure is claimed
DELTA = 1e-5
# What a guarantee compares, as a verb
COMPARED: dict[Relation, str] = {"add_remove": "adding or removing", "replace": "replacing"}
# Names of parameters
_SYMBOLS = {"epsilon": "ε", "mu": "μ", "rho": "ρ"}  # noqa: RUF001 (Greek)
# Which guesses were made
_ROLES: dict[PathName, str] = {
    "member": "of membership",
    "members": "of membership",
    "non-members": "of non-membership",
    "interleaved": "of members and non-members",
    "ends": "of members and non-members",
    "pairs": "pairs where the attack picked the member",
}
# In which order, where the most confident ones come first
_ORDERS: dict[PathName, str] = {
    "member": "highest scores first",
    "members": "highest scores first",
    "non-members": "lowest scores first",
    "interleaved": "alternating",
    "ends": "",
    "pairs": "clearest pairs first",
}
# What a number that is not a bound says
MEANINGS: dict[Kind, Meaning] = {
    "estimate": Meaning(
        says=(
            "Two lower bounds hold together at the stated confidence: one on c, the distance of "
            "the generator from the data, and one on c + ε, what the attack shows with the model.",
            "ε̃ is their difference. If c equals its bound, the model is not ε-DP for any smaller "
            "ε. Here ε is for replacing one example by another.",
        ),
        does_not_say=(
            "ε̃ is not a lower bound on ε. It overstates leakage if c is larger than its bound, "
            "for example because the baseline had too little training data.",
            "ε̃ = 0 is not evidence of privacy.",
        ),
    ),
    "exploratory_lower_bound": Meaning(
        says=(
            "What the audit finds if the learnt propensities, or most of their refits, are right.",
        ),
        does_not_say=(
            "It is not a lower bound at the stated confidence. With many features and few examples "
            "to learn propensities from, it can report leakage where there is none.",
            "An exploratory number of 0 is not evidence of privacy.",
        ),
    ),
}
_WITHHELD = Meaning(
    says=(
        "Nothing about this model. The data contradict an assumption of the bound, so it is "
        "withheld: features alone may explain the correct guesses.",
    ),
    does_not_say=("That the model is private, or that it leaks.",),
)
NO_UPPER_LIMIT = "The true ε may be much larger: no audit gives an upper bound."


def meaning_of(
    kind: Kind,
    terms: Terms,
    wording: Wording,
    *,
    refuted: bool,
    searched: str,
    withheld: bool = False,
) -> Meaning:
    """Return what a number of this kind says, and what it does not say.

    `searched` is what the cut policy says about the thresholds that were tested.
    """
    if kind in MEANINGS:
        return MEANINGS[kind]
    if withheld:
        return _WITHHELD
    condition = ""
    if terms.condition:
        condition = f", and {terms.condition}"
    audited = f"the procedure that trained this {wording.subject}"
    curve_of = "training"
    others = (
        f"It is about the worst case over the audited {terms.units}, not about the risk of an "
        "average person in the data."
    )
    if wording.is_mechanism:
        audited = f"this {wording.subject}"
        curve_of = "the mechanism"
        others = (
            "It is about the inputs that were audited: others that differ in one example may leak "
            "more."
        )
    says = (
        f"At the stated confidence{condition}, no {terms.guarantee} with {terms.smaller} "
        f"holds for {audited}.",
        f"{terms.qualified('The bound is a lower limit')}: a better attack may show more.",
    )
    if not refuted:
        says = _meaning_of_no_bound(terms)
    not_said = [
        NO_UPPER_LIMIT.replace("ε", terms.symbol),
        "A bound of 0 is not evidence of privacy. Compare it with the ceiling.",
        others,
    ]
    if terms.symbol != "ε":
        not_said.append(f"A bound on {terms.symbol} implies no ε at any δ: audit ApproxDP for one.")
    if terms.at:
        not_said.append(
            f"It gives no bound on ε outside {terms.family}: if the trade-off function of "
            f"{curve_of} is not in this family, ε may be smaller."
        )
    if terms.condition:
        not_said.append(
            f"It holds only {terms.condition}. Otherwise features alone may explain the guesses."
        )
    return Meaning(says=(*says, *filter(None, [searched])), does_not_say=tuple(not_said))


def _meaning_of_no_bound(terms: Terms) -> tuple[str, str]:
    """Return what a bound of 0 says."""
    return (
        f"At the stated confidence, no {terms.guarantee} could be refuted, however small "
        f"{terms.symbol} is.",
        f"No attack on these {terms.units} could refute a guarantee whose {terms.parameter} is "
        "at or above the ceiling.",
    )


@dataclass(frozen=True)
class Scale:
    """How values of a claim's parameter are written.

    For DP-SGD this is the noise multiplier, which is inverse: less noise leaks more. `limit` comes
    between name and bound.
    """

    name: str
    sign: str = "≥"
    limit: str = "at least"
    inverse: bool = False
    unit: str = ""
    """What a stored bound is, if it is not an ε at the δ of the claim."""
    at: str = ""
    """What comes after a value."""

    def value(self, theta: float) -> float:
        """Return what is shown for a value of the parameter."""
        if not self.inverse:
            return theta
        if theta:
            return 1 / theta
        return math.inf

    def rounded(self, bound: float) -> str:
        """Return a bound with two decimals, rounded in the safe direction."""
        if self.inverse:
            return up(self.value(bound))
        return down(bound)

    def formula(self, bound: float) -> str:
        """Return a bound with the name of its parameter and its sign."""
        return f"{self.name} {self.sign} {self.rounded(bound)}{self.at}"

    def equal(self, value: float) -> str:
        """Return a value of a family's own parameter with its name; "" if it has none."""
        if self.unit:
            return self.formula(value).replace(self.sign, "=", 1)
        return ""

    def behind(self, bound: float, *, proves: bool = True) -> str:
        """Return a bound on a family's own parameter, to put behind its ε; "" if it has none."""
        if not self.unit:
            return ""
        if proves:
            return self.formula(bound)
        return self.formula(bound).replace(self.sign, "≈", 1)


def guesses_of(path: PathName, guessed: str) -> str:
    """Return which guesses were made, and where in the ranking by what they are called."""
    return guesses_in_order(_ROLES[path], order=_ORDERS[path], guessed=guessed)


def guesses_in_order(roles: str, order: str, guessed: str) -> str:
    """Put behind guesses in which order they come, or who chose their ranks."""
    if guessed == PILOT_GUESSES:
        order = "at ranks chosen with a pilot sample"
    if order:
        return f"{roles}, {order}"
    return roles


def sentence_about_right_guesses(
    correct: int, *, guesses: int, guessed: str, about: str = "", right: str = "right"
) -> str:
    """Return the sentence on how many of an attack's guesses, about something, were right."""
    made = guessed or "guesses"
    where = ""
    if guessed == PILOT_GUESSES:
        made = "guesses"
        where = guessed.removeprefix(made)
    if guesses == 1:
        made = made.removesuffix("es")
    count = f"{correct:,}"
    if correct == guesses:
        count = "All"
    if correct == 0:
        count = "None"
    were = "were"
    if correct <= 1:
        were = "was"
    if correct == guesses == 1:
        count = "1"
    return f"{count} of the attack's {guesses:,} {made}{about}{where} {were} {right}."


def audited(ranking: Any) -> int:
    """Return how many examples were audited, or secrets, each with k candidates."""
    return int(ranking.options.get("secrets", ranking.m))


def stated_claim(result: Any) -> Claim:
    """Return the claim as a bound on one record states it.

    Of several copies, (ε, δ)-DP was tested for all at once: for one record, the bound is at the
    largest δ that implies no more than the δ tested.
    """
    claim: Claim = result.claim
    copies = int(result.options.get("copies", 1))
    if copies == 1 or not isinstance(claim, ApproxDP):
        return claim
    return ApproxDP(delta=failure_of_one(claim.delta, result.bound, copies=copies))


def guarantee_of_copies(result: Any) -> str:
    """Return the bound on all copies of a record at once, as a headline has it; "" for one."""
    copies = int(result.options.get("copies", 1))
    if copies == 1:
        return ""
    claim = result.claim
    scale = scale_of(result.claim)
    at = ""
    if isinstance(claim, ApproxDP):
        at = f" at δ = {claim.delta:g}"
    return f"{scale.formula(copies * result.bound)}{at} for the {copies} copies of each at once"


def delta_of(claim: Claim, least_delta: float | None = None) -> float:
    """Return the δ that a bound on the claim, as an ε, is stated at.

    Failures of a family are on top of δ = 1e-5: no ε covers them. Those of one's own family are
    below its `least_delta`, where that is larger.
    """
    if not isinstance(claim, FAMILIES):
        return claim.delta
    failures = claim.delta
    if least_delta is not None and least_delta > DELTA:
        failures = math.nextafter(least_delta, 0.0)
    return min(DELTA + failures, (1 + failures) / 2)  # below 1, whatever fails


def scale_of(claim: Claim) -> Scale:
    """Return how values of the claim's parameter are written."""
    if isinstance(claim, SubsampledGaussianDP):
        return Scale(
            name="noise multiplier",
            sign="≤",
            limit="at most",
            inverse=True,
            unit="1 / noise multiplier",
        )
    if isinstance(claim, EventFamily):
        return Scale("noise divided by", unit="what the noise of the event is divided by")
    name = claim.parameter
    shown = _SYMBOLS.get(name, name.replace("_", " "))
    if not isinstance(claim, FAMILIES):
        return Scale(shown)
    at = ""
    if isinstance(claim, LaplaceDP):
        at = " at δ = 0"
    return Scale(shown, unit=f"{shown} of {claim.name}", at=at)


def checked_parameter(claim: Claim, checked_claim: Checked) -> str:
    """Return what was claimed of the parameter, such as "μ = 1"."""
    scale = Scale("ε")
    if checked_claim.delta is None:
        scale = scale_of(claim)
    sign = "="
    if scale.inverse:
        sign = "≥"
    return f"{scale.name} {sign} {scale.value(checked_claim.value):g}"


def claimed_delta(claim: Claim, checked_claim: Checked) -> float | None:
    """Return the δ of a claimed ε, also one of the bound's own δ; None of another parameter."""
    if checked_claim.delta is None and not isinstance(claim, FAMILIES):
        return claim.delta
    return checked_claim.delta


def terms_of(
    claim: Claim,
    values: tuple[float, float],
    replaced: str,
    condition: str,
    units: str,
    own: tuple[str, str] = ("", ""),
    least_delta: float | None = None,
) -> Terms:
    """Return what a bound on the claim refers to; `values` are bound and ceiling as an ε.

    `own` are both in the unit of a family's own parameter.
    """
    if isinstance(claim, FAMILIES):
        return _terms_of_family(claim, values, replaced, condition, units, own, least_delta)
    pair = "ε"
    if claim.delta:
        pair = f"(ε, {claim.delta:g})"
    family = f"{pair}-differential privacy{replaced}"
    guarantee = f"{pair}-DP guarantee{replaced}"
    return Terms(guarantee, family, *values, "", condition, units, replaced, claim.delta)


def _terms_of_family(
    claim: Claim,
    values: tuple[float, float],
    replaced: str,
    condition: str,
    units: str,
    own: tuple[str, str],
    least_delta: float | None,
) -> Terms:
    """Return the same of a claim of a family, whose parameter may bound no ε."""
    name = claim.name + replaced
    guarantee = f"guarantee of {name}"
    delta = delta_of(claim, least_delta)
    at = f" at δ = {delta:g}"
    terms = Terms(guarantee, name, *values, at, condition, units, replaced, delta, *own)
    if claim.has_epsilon:
        return terms
    symbol = scale_of(claim).name
    return replace(terms, at="", delta=0.0, own="", own_ceiling="", symbol=symbol)
