"""The description of an audit whose members were chosen at random."""

import math
from dataclasses import replace

from leakbound._base.formatting import number, percent, plural
from leakbound._base.types import Strings
from leakbound.claims import FAMILIES, ApproxDP, PureDP, SubsampledGaussianDP, replacing
from leakbound.claims.base import failure_of_one
from leakbound.claims.tradeoff import TradeOff
from leakbound.report.description import (
    KINDS,
    Description,
    Drawing,
    Figure,
    Metric,
    Sentences,
    Series,
    Terms,
)
from leakbound.report.parts import Checked
from leakbound.report.style import MEMBER
from leakbound.results.descriptions import next_steps
from leakbound.results.descriptions.plain_language import plainly
from leakbound.results.descriptions.shared import (
    counted,
    figures_of,
    promised,
    sentences_of,
    standard,
)
from leakbound.results.one_run import AuditResult, as_epsilon, converted
from leakbound.results.terms import (
    claimed_delta,
    count_of_right,
    delta_of,
    guesses_of,
    of_copies,
    ordered,
    scale_of,
    stated_claim,
    terms_of,
)

# How many exposed members are named, and how much of a name is shown
_NAMED = 4
_LONG = 24
# The chance of a fair coin
_FAIR = 0.5
# An ε whose exponential is still a number
_HUGE = 500.0
# What a test that shares the probability of error is about
_TESTED = {
    "outside-in": "most confident guesses",
    "planned": "most confident guesses, as many as planned",
    "look": "pilot ranks",
    "scan": "all thresholds",
}


def describe(result: AuditResult) -> Description:
    """Describe an audit whose members were chosen at random."""
    return of_audit(result)


def sentences(result: AuditResult) -> Sentences:
    """Return what is printed of an audit whose members were chosen at random."""
    said = leading(result, terms_of_audit(result))
    # Of a promise, the answer comes first.
    headline = said.headline
    paragraphs = _evidence(result, said)
    if promised(result, result.wording):
        paragraphs = (headline, *paragraphs)
        headline = said.answer
    return replace(said, plainly=plainly(result), headline=headline, paragraphs=paragraphs)


def leading(result: AuditResult, terms: Terms) -> Sentences:
    """Return headline, answer and next steps of an audit in the words of its design."""
    said = sentences_of(result, result, terms, result.wording, withheld=result.is_withheld)
    return replace(
        said,
        headline=_headline(result, said),
        next_steps=next_steps.first(next_steps.of_audit(result, terms)),
    )


def of_audit(result: AuditResult, said: Sentences | None = None) -> Description:
    """Describe an audit; its sentences, if given, are those of another design."""
    if said is None:
        said = sentences(result)
    terms = said.terms
    described = standard(
        result,
        said,
        ranking=result,
        figures=_figures(result, terms),
        wording=result.wording,
        withheld=result.is_withheld,
    )
    bound = described.formula
    if isinstance(result.claim, FAMILIES):
        bound = formula(result, result.bound)
        if not KINDS[result.kind].proves:
            bound += ", exploratory"
    return replace(
        described,
        formula=bound,
        metrics=_metrics(result, said=described, terms=terms),
        claimed=_claimed(result),
    )


def terms_of_audit(result: AuditResult, condition: str = "") -> Terms:
    """Return bound and ceiling as an ε: of a family at its δ, by the rejected curve."""
    claim = result.claim
    kind = KINDS[result.kind]
    least = result.least_delta
    epsilon = as_epsilon(claim, value=result.bound, curve=result.rejected, least_delta=least)
    ceiling = as_epsilon(claim, value=result.ceiling, curve=result.rejectable, least_delta=least)
    replaced = result.wording.changed(result.relation)
    scale = scale_of(claim)
    own = scale.behind(result.bound, proves=kind.proves), scale.equal(result.ceiling)
    if not claim.has_epsilon:
        own = "", ""  # bound and ceiling are in this unit themselves
    terms = terms_of(
        stated_claim(result),
        values=(epsilon, ceiling),
        replaced=replaced,
        condition=condition or kind.condition,
        units=result.wording.units,
        own=own,
        least_delta=least,
    )
    if result.copies == 1:
        return terms
    return replace(terms, copies=result.copies, grouped=of_copies(result))


def _figures(result: AuditResult, terms: Terms) -> tuple[Figure, ...]:
    """Return the figures of one ranking, and of a family the curve that is ruled out."""
    family = isinstance(result.claim, FAMILIES)
    drawn = number(result.bound)
    if family:
        drawn = f"{number(terms.epsilon)}{terms.at}"
    series = Series(
        name=f"this {result.wording.subject}",
        symbol=terms.symbol,
        prefix="",
        colour=MEMBER,
        bound=drawn,
        ranking=result,
        units=plural(result.wording.unit),
    )
    drawing = Drawing(
        kind=result.kind,
        series=(series,),
        family=family,
        has_epsilon=result.claim.has_epsilon,
        rejected=result.rejected,
        rejectable=result.rejectable,
        copies=result.copies,
        together=_together(result),
        batches="batches" in result.options,
    )
    return figures_of(drawing)


def _metrics(result: AuditResult, said: Description, terms: Terms) -> tuple[Metric, ...]:
    """Return the key numbers: ε, with the parameter of a family in brackets."""
    kind = KINDS[result.kind]
    least = terms.symbol
    if kind.proves:
        least = f"{least} at least"
    note = kind.tag
    if isinstance(result.claim, FAMILIES):
        note += f", {result.claim.name}"
    note += terms.replaced
    if result.copies > 1 and result.wording.unit == "example":
        note += ", for one record"
    return (
        *said.metrics,
        Metric(name=least + terms.at, value=bracketed(terms.epsilon, terms.own), note=note),
        Metric(
            name="Ceiling" + terms.at,
            value=bracketed(terms.ceiling, terms.own_ceiling),
            note=f"a perfect attack, same {terms.units}{_at_ceiling(result)}",
        ),
        *_copies(terms),
        Metric(
            name="Correct guesses",
            value=f"{result.correct:,} of {result.guesses:,}",
            note=_asked(result),
        ),
        *_parts(result),
        *counted(
            result, ranking=result, terms=terms, wording=result.wording, auc="0.5 is guessing"
        ),
        *_exposed(result),
        *_blind(result),
    )


def _parts(result: AuditResult) -> tuple[Metric, ...]:
    """Return what each test proved that shared the probability of error, if several did."""
    told: object = result.options.get("parts")  # what was read may hold anything
    if not isinstance(told, list) or not all(map(_is_part, told)):
        return ()
    parts = [part for part in told if part["level"] > 0]
    if not parts:
        return ()
    whole = sum(part["level"] for part in parts)
    scale = scale_of(result.claim)
    best = max(parts, key=lambda part: float(part["bound"]))
    each: list[str] = []
    for part in parts:
        tested = _TESTED.get(part["name"], part["name"])
        share = percent(part["level"] / whole)
        proved = scale.rounded(part["bound"])
        if best["bound"] > part["bound"] == 0:
            proved = "not larger"  # which is not computed
        whose = "" if each else " of the error probability"
        each.append(f"{tested} ({share}{whose}): {proved}")
    name = f"Largest of {len(parts)} tests"
    return (Metric(name=name, value=best["name"], note="; ".join(each)),)


def _is_part(told: object) -> bool:
    """Return whether what was read is what a test proved, and at which level."""
    if not isinstance(told, dict) or not isinstance(told.get("name"), str):
        return False
    return isinstance(told.get("level"), float) and isinstance(told.get("bound"), float)


def _exposed(result: AuditResult) -> tuple[Metric, ...]:
    """Return how many members the audit singles out, and the first of them."""
    listed = result.exposed
    if listed is None:
        return ()
    rate = f"at a false discovery rate of {percent(listed.rate)}"
    names = listed.ids or tuple(f"row {row}" for row in listed.rows[: _NAMED + 1].tolist())
    first = ", ".join(map(_shortened, names[:_NAMED]))
    more = ""
    if len(names) > _NAMED:
        more = " and others"
    name = "Most exposed members"
    return (
        Metric(
            name=name,
            value=f"{listed.rows.size:,}",
            note=f"{rate}{': ' * bool(first)}{first}{more}",
        ),
    )


def _shortened(name: str) -> str:
    if len(name) <= _LONG:
        return name
    return f"{name[:_LONG]}…"


def _blind(result: AuditResult) -> tuple[Metric, ...]:
    """Return how well features alone tell membership, if an audit had features."""
    blind = result.blind_baseline
    if blind is None:
        return ()
    note = (
        f"pairs in which {blind.classifier} picks the member from features alone; a difference is "
        "expected here, and corrected for"
    )
    if blind.p is not None:
        note = (
            f"pairs in which {blind.classifier} picks the member without the "
            f"{result.wording.subject}; half if the split was random (p = {blind.p:.2g})"
        )
    value = f"{blind.right:,} of {blind.guesses:,}"
    return (Metric(name="Blind baseline", value=value, note=note),)


def _together(result: AuditResult) -> TradeOff | None:
    """Return the curve that is rejected of all copies of a record, where there are several."""
    if result.copies == 1 or result.rejected is None or not isinstance(result.claim, FAMILIES):
        return None
    sides = result.options.get("sides", "both")
    return result.claim.attained(result.copies * result.bound, sides)


def _copies(terms: Terms) -> tuple[Metric, ...]:
    """Return how often each record was inserted, where that was more than once."""
    if terms.copies == 1:
        return ()
    return (Metric(name="Copies of each record", value=f"{terms.copies:,}", note=terms.grouped),)


def _at_ceiling(result: AuditResult) -> str:
    """Return the δ of the ceiling, where it depends on ε: of several copies under (ε, δ)-DP."""
    if result.copies == 1 or not isinstance(result.claim, ApproxDP):
        return ""
    delta = failure_of_one(result.claim.delta, result.ceiling, copies=result.copies)
    return f", at δ = {delta:g}"


def _claimed(result: AuditResult) -> float | None:
    """Return the claimed ε where the axis of the bound has it: at its δ and of its relation."""
    if result.checked is None:
        return None
    return _on_the_axis(result, result.checked)


def _on_the_axis(result: AuditResult, one: Checked) -> float | None:
    """Return the claimed ε of a guarantee that was checked, if the axis of the bound has it."""
    family = isinstance(result.claim, FAMILIES)
    delta = claimed_delta(result.claim, one)
    stated = delta_of(result.claim, result.least_delta)
    if delta is None or (family and delta != stated):
        return None
    crosses = result.relation == "replace" and one.compares == "add_remove"
    if crosses:
        if family:
            return None
        return replacing(one.value, delta)[0]
    return one.value


def bracketed(epsilon: float, own: str) -> str:
    """Write an ε, with the same in a family's own unit behind it."""
    if not own:
        return number(epsilon)
    value = number(epsilon)
    if math.isinf(epsilon):
        value = "not finite"
    return f"{value} ({own})"


def formula(result: AuditResult, bound: float) -> str:
    """Return a value of the claim's parameter as an ε with its sign, and as it is in brackets."""
    proves = KINDS[result.kind].proves
    claim = result.claim
    own = scale_of(claim).behind(bound, proves=proves)
    epsilon = converted(result, bound)
    if epsilon is None or (own and math.isinf(epsilon)):
        return own
    sign = "≈"
    if proves:
        sign = "≥"
    said = f"ε {sign} {number(epsilon)}"
    if own:
        return f"{said} at δ = {delta_of(claim):g} ({own})"
    return said


def _headline(result: AuditResult, said: Sentences) -> str:
    """Return the verdict in one sentence, with the noise of DP-SGD where that is bounded."""
    if result.is_withheld:
        return (
            "Withheld: the records alone, without a score, contradict a random split, which may "
            "explain the correct guesses. Nothing is proved."
        )
    if said.leaks and isinstance(result.claim, SubsampledGaussianDP):
        return _of_noise(result, said, result.claim)
    return said.headline


def _of_noise(result: AuditResult, said: Sentences, claim: SubsampledGaussianDP) -> str:
    """Return the headline of a bound on the noise of DP-SGD."""
    condition = "if"
    if said.terms.condition:
        condition = f"{said.terms.condition} and"
    steps = f"{claim.steps:,} step"
    if claim.steps > 1:
        steps += "s"
    batches = ""
    if claim.sampling == "fixed_size":
        batches = " with batches of fixed size"
    return (
        f"This {said.subject} leaks: {condition} training is DP-SGD{batches} "
        f"(q = {claim.sampling_rate:g}, {steps}), ε is at least {number(said.terms.epsilon)}"
        f"{said.terms.at}{said.terms.replaced} {said.terms.sure(percent(result.confidence))}."
    )


def _evidence(result: AuditResult, said: Sentences) -> Strings:
    """Return what was guessed right, what that means for a promise of ε, and how sure it is."""
    if result.is_withheld:
        return (f"The bound is 0 because {result.reason}.",)
    terms = said.terms
    right = count_of_right(
        result.correct,
        guesses=result.guesses,
        guessed=result.guessed,
        about=f" about {result.wording.question}",
    )
    if not result.refutes:
        return (_of_nothing(result, terms, right),)
    kept = "training"
    if result.wording.is_mechanism:
        kept = "the mechanism"
    odds = _odds(result)
    promise = (
        f"{odds}If {kept} satisfied a smaller {terms.parameter}, results this strong would "
        f"occur at most {percent(1 - result.confidence)} of the time."
    )
    words = [right, result.searched, several(result), promise]
    return (" ".join(filter(None, words)),)


def _of_nothing(result: AuditResult, terms: Terms, right: str) -> str:
    """Return what guesses that prove nothing mean."""
    tried = ""
    if result.guesses:
        chance = "Chance can explain this."
        if result.correct * int(result.options.get("k", 2)) <= result.guesses:
            chance = "Random guesses do as well."
        tried = f"{right} {chance} "
    return (
        f"{tried}No {terms.symbol} is ruled out. This is not evidence of privacy: a stronger "
        "attack may still reveal leakage."
    )


def several(result: AuditResult) -> str:
    """Return how many attacks were tested, if not one."""
    attacks = result.options.get("attacks")
    if not isinstance(attacks, dict) or len(attacks) < 2:
        return ""
    return (
        f"This is the best of {len(attacks)} attacks, each tested at an equal share of the error "
        "probability."
    )


def _odds(result: AuditResult) -> str:
    """Return the odds that a promise of the bound allows each guess, where all have the same."""
    prior = result.options.get("prior", _FAIR)
    if not isinstance(result.claim, PureDP) or prior != _FAIR:
        return ""
    # as printed, and for one of k candidates shared among the k - 1 others
    shown = number(result.bound)
    others = result.options.get("k", 2) - 1
    copies = result.copies  # of which a guess is about all at once
    loss = min(copies * float(shown), _HUGE)
    factor = shown
    if shown != "∞":
        factor = number(math.exp(loss) / others)
    about = ""
    if copies > 1:
        about = f" about {copies} copies"
    return f"If ε is {shown}, each guess{about} is right with odds of at most {factor} to 1. "


def _asked(result: AuditResult) -> str:
    """Return what guesses are about, and which come first."""
    wording = result.wording
    if wording.order:
        return ordered(wording.question, order=wording.order, guessed=result.guessed)
    return guesses_of(result.path, result.guessed)
