"""The description of an audit whose members were chosen at random."""

import math
from dataclasses import replace
from operator import itemgetter

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
from leakbound.report.style import MEMBER
from leakbound.results.descriptions import next_steps
from leakbound.results.descriptions.shared import (
    closing_metrics,
    figures_of,
    is_checked_promise,
    plainly,
    sentences_of,
    standard_description,
)
from leakbound.results.one_run import AuditResult, as_epsilon, converted
from leakbound.results.terms import (
    audited,
    claimed_delta,
    delta_of,
    guarantee_of_copies,
    guesses_in_order,
    guesses_of,
    scale_of,
    sentence_about_right_guesses,
    stated_claim,
    terms_of,
)

# How many exposed members are named, and how much of a name is shown
_MOST_NAMED_IDS = 4
_LONGEST_ID = 24
# The chance of a fair coin
_FAIR_COIN = 0.5
# An ε whose exponential is still a number
_LARGEST_EXPONENT = 500.0
# What a test that shares the probability of error is about
_WORDS_OF_TESTS = {
    "outside-in": "most confident guesses",
    "planned": "most confident guesses, as many as planned",
    "look": "pilot ranks",
    "scan": "all thresholds",
}


def describe(result: AuditResult) -> Description:
    """Describe an audit whose members were chosen at random."""
    return description_of_audit(result)


def sentences(result: AuditResult) -> Sentences:
    """Return what is printed of an audit whose members were chosen at random."""
    sentences_of_audit = leading_sentences(result, terms_of_audit(result))
    # Of a promise, the answer comes first.
    headline = sentences_of_audit.headline
    paragraphs = _evidence_of_audit(result, sentences_of_audit)
    if is_checked_promise(result, result.wording):
        paragraphs = (headline, *paragraphs)
        headline = sentences_of_audit.answer
    return replace(
        sentences_of_audit, plainly=plainly(result), headline=headline, paragraphs=paragraphs
    )


def leading_sentences(result: AuditResult, terms: Terms) -> Sentences:
    """Return headline, answer and next steps of an audit in the words of its design."""
    sentences_of_audit = sentences_of(
        result, result, terms, result.wording, withheld=result.is_withheld
    )
    return replace(
        sentences_of_audit,
        headline=_headline_of_audit(result, sentences_of_audit),
        next_steps=next_steps.most_urgent_steps(next_steps.steps_after_audit(result, terms)),
    )


def description_of_audit(
    result: AuditResult, sentences_of_audit: Sentences | None = None
) -> Description:
    """Describe an audit; its sentences, if given, are those of another design."""
    if sentences_of_audit is None:
        sentences_of_audit = sentences(result)
    terms = sentences_of_audit.terms
    described = standard_description(
        result,
        sentences_of_audit,
        ranking=result,
        figures=_figures_of_audit(result, terms),
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
        metrics=_metrics_of_audit(result, described, terms=terms),
        claimed=_claimed_epsilon_on_axis(result),
    )


def terms_of_audit(result: AuditResult, condition: str = "") -> Terms:
    """Return bound and ceiling as an ε: of a family at its δ, by the rejected curve."""
    claim = result.claim
    kind = KINDS[result.kind]
    least_delta = result.least_delta
    epsilon = as_epsilon(claim, value=result.bound, curve=result.rejected, least_delta=least_delta)
    ceiling = as_epsilon(
        claim, value=result.ceiling, curve=result.rejectable, least_delta=least_delta
    )
    replaced = result.wording.changed(result.relation)
    scale = scale_of(claim)
    own_units = scale.behind(result.bound, proves=kind.proves), scale.equal(result.ceiling)
    if not claim.has_epsilon:
        own_units = "", ""  # bound and ceiling are in this unit themselves
    terms = terms_of(
        stated_claim(result),
        values=(epsilon, ceiling),
        replaced=replaced,
        condition=condition or kind.condition,
        units=result.wording.units,
        own=own_units,
        least_delta=least_delta,
    )
    if result.copies == 1:
        return terms
    return replace(terms, copies=result.copies, grouped=guarantee_of_copies(result))


def _figures_of_audit(result: AuditResult, terms: Terms) -> tuple[Figure, ...]:
    """Return the figures of one ranking, and of a family the curve that is ruled out."""
    is_family = isinstance(result.claim, FAMILIES)
    bound_in_words = number(result.bound)
    if is_family:
        bound_in_words = f"{number(terms.epsilon)}{terms.at}"
    series = Series(
        name=f"this {result.wording.subject}",
        symbol=terms.symbol,
        prefix="",
        colour=MEMBER,
        bound=bound_in_words,
        ranking=result,
        units=_units_of_scores(result),
    )
    drawing = Drawing(
        kind=result.kind,
        series=(series,),
        family=is_family,
        has_epsilon=result.claim.has_epsilon,
        rejected=result.rejected,
        rejectable=result.rejectable,
        copies=result.copies,
        together=_curve_of_all_copies(result),
        batches="batches" in result.options,
    )
    return figures_of(drawing)


def _units_of_scores(result: AuditResult) -> str:
    """Return what each score is of: what is audited, or one of its candidates."""
    histogram = result.histogram
    scores = int(histogram.members.sum() + histogram.non_members.sum())
    if scores == audited(result):
        return result.wording.units
    return plural(result.wording.unit)


def _metrics_of_audit(
    result: AuditResult, description: Description, terms: Terms
) -> tuple[Metric, ...]:
    """Return the key numbers: ε, with the parameter of a family in brackets."""
    kind = KINDS[result.kind]
    symbol = terms.symbol
    if kind.proves:
        symbol = f"{symbol} at least"
    note = kind.tag
    if isinstance(result.claim, FAMILIES):
        note += f", {result.claim.name}"
    note += terms.replaced
    if result.copies > 1 and result.wording.unit == "example":
        note += ", for one record"
    return (
        *description.metrics,
        Metric(
            name=symbol + terms.at, value=epsilon_in_both_units(terms.epsilon, terms.own), note=note
        ),
        Metric(
            name="Ceiling" + terms.at,
            value=epsilon_in_both_units(terms.ceiling, terms.own_ceiling),
            note=f"a perfect attack, same {terms.units}{_at_ceiling(result)}",
        ),
        *_metric_of_copies(terms),
        Metric(
            name="Correct guesses",
            value=f"{result.correct:,} of {result.guesses:,}",
            note=_note_about_guesses(result),
        ),
        *_metrics_of_tests(result),
        *closing_metrics(
            result, ranking=result, terms=terms, wording=result.wording, auc="0.5 is guessing"
        ),
        *_metric_of_exposed(result),
        *_metric_of_blind_baseline(result),
    )


def _metrics_of_tests(result: AuditResult) -> tuple[Metric, ...]:
    """Return what each test proved that shared the probability of error, if several did."""
    stored_tests: object = result.options.get("parts")  # what was read may hold anything
    if not isinstance(stored_tests, list) or not all(map(_is_stored_test, stored_tests)):
        return ()
    tests = [test for test in stored_tests if test["level"] > 0]
    if not tests:
        return ()
    whole_level = sum(test["level"] for test in tests)
    scale = scale_of(result.claim)
    best_test = max(tests, key=itemgetter("bound"))
    outcomes = list[str]()
    of_error = " of the error probability"
    for test in tests:
        test_name = test["name"]
        share_of_level = percent(test["level"] / whole_level)
        bound = scale.rounded(test["bound"])
        if best_test["bound"] > test["bound"] == 0:
            bound = "not larger"  # which is not computed
        outcomes.append(
            f"{_WORDS_OF_TESTS.get(test_name, test_name)} ({share_of_level}{of_error}): {bound}"
        )
        of_error = ""
    return (
        Metric(
            name=f"Largest of {len(tests)} tests",
            value=best_test["name"],
            note="; ".join(outcomes),
        ),
    )


def _is_stored_test(told: object) -> bool:
    """Return whether what was read is what a test proved, and at which level."""
    if not isinstance(told, dict) or not isinstance(told.get("name"), str):
        return False
    return isinstance(told.get("level"), float) and isinstance(told.get("bound"), float)


def _metric_of_exposed(result: AuditResult) -> tuple[Metric, ...]:
    """Return how many members the audit singles out, and the first of them."""
    exposed = result.exposed
    if exposed is None:
        return ()
    rate_in_words = f"at a false discovery rate of {percent(exposed.rate)}"
    names = exposed.ids or tuple(
        f"row {row}" for row in exposed.rows[: _MOST_NAMED_IDS + 1].tolist()
    )
    first_names = ", ".join(map(_shortened_id, names[:_MOST_NAMED_IDS]))
    and_others = ""
    if len(names) > _MOST_NAMED_IDS:
        and_others = " and others"
    name = "Most exposed members"
    return (
        Metric(
            name=name,
            value=f"{exposed.rows.size:,}",
            note=f"{rate_in_words}{': ' * bool(first_names)}{first_names}{and_others}",
        ),
    )


def _shortened_id(name: str) -> str:
    if len(name) <= _LONGEST_ID:
        return name
    return f"{name[:_LONGEST_ID]}…"


def _metric_of_blind_baseline(result: AuditResult) -> tuple[Metric, ...]:
    """Return how well features alone tell membership, if an audit had features."""
    blind_baseline = result.blind_baseline
    if blind_baseline is None:
        return ()
    note = (
        f"pairs in which {blind_baseline.classifier} picks the member from features alone; a "
        "difference is expected here, and corrected for"
    )
    if blind_baseline.p is not None:
        note = (
            f"pairs in which {blind_baseline.classifier} picks the member without the "
            f"{result.wording.subject}; half if the split was random (p = {blind_baseline.p:.2g})"
        )
    value = f"{blind_baseline.right:,} of {blind_baseline.guesses:,}"
    return (Metric(name="Blind baseline", value=value, note=note),)


def _curve_of_all_copies(result: AuditResult) -> TradeOff | None:
    """Return the curve that is rejected of all copies of a record, where there are several."""
    if result.copies == 1 or result.rejected is None or not isinstance(result.claim, FAMILIES):
        return None
    sides = result.options.get("sides", "both")
    return result.claim.attained(result.copies * result.bound, sides)


def _metric_of_copies(terms: Terms) -> tuple[Metric, ...]:
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


def _claimed_epsilon_on_axis(result: AuditResult) -> float | None:
    """Return the claimed ε where the axis of the bound has it: at its δ and of its relation."""
    checked_claim = result.checked
    if checked_claim is None:
        return None
    is_family = isinstance(result.claim, FAMILIES)
    delta = claimed_delta(result.claim, checked_claim)
    delta_of_axis = delta_of(result.claim, result.least_delta)
    if delta is None or (is_family and delta != delta_of_axis):
        return None
    if result.relation != "replace" or checked_claim.compares != "add_remove":
        return checked_claim.value
    if is_family:
        return None
    epsilon_for_replacing, _ = replacing(checked_claim.value, delta)
    return epsilon_for_replacing


def epsilon_in_both_units(epsilon: float, own_unit: str) -> str:
    """Write an ε, with the same in a family's own unit behind it."""
    if not own_unit:
        return number(epsilon)
    epsilon_in_words = number(epsilon)
    if math.isinf(epsilon):
        epsilon_in_words = "not finite"
    return f"{epsilon_in_words} ({own_unit})"


def formula(result: AuditResult, bound: float) -> str:
    """Return a value of the claim's parameter as an ε with its sign, and as it is in brackets."""
    proves = KINDS[result.kind].proves
    claim = result.claim
    own_unit = scale_of(claim).behind(bound, proves=proves)
    epsilon = converted(result, bound)
    if epsilon is None or (own_unit and math.isinf(epsilon)):
        return own_unit
    sign = "≈"
    if proves:
        sign = "≥"
    epsilon_in_words = f"ε {sign} {number(epsilon)}"
    if own_unit:
        return f"{epsilon_in_words} at δ = {delta_of(claim):g} ({own_unit})"
    return epsilon_in_words


def _headline_of_audit(result: AuditResult, sentences_of_audit: Sentences) -> str:
    """Return the verdict in one sentence, with the noise of DP-SGD where that is bounded."""
    if result.is_withheld:
        return (
            "Withheld: the records alone, without a score, contradict a random split, which may "
            "explain the correct guesses. Nothing is proved."
        )
    if sentences_of_audit.leaks and isinstance(result.claim, SubsampledGaussianDP):
        return _headline_of_dp_sgd(result, sentences_of_audit, result.claim)
    return sentences_of_audit.headline


def _headline_of_dp_sgd(
    result: AuditResult, sentences_of_audit: Sentences, claim: SubsampledGaussianDP
) -> str:
    """Return the headline of a bound on the noise of DP-SGD."""
    terms = sentences_of_audit.terms
    condition = "if"
    if terms.condition:
        condition = f"{terms.condition} and"
    steps = f"{claim.steps:,} step"
    if claim.steps > 1:
        steps += "s"
    batches = ""
    if claim.sampling == "fixed_size":
        batches = " with batches of fixed size"
    return (
        f"This {sentences_of_audit.subject} leaks: {condition} training is DP-SGD{batches} (q = "
        f"{claim.sampling_rate:g}, {steps}), ε is at least "
        f"{number(terms.epsilon)}{terms.at}{terms.replaced} "
        f"{terms.sure(percent(result.confidence))}."
    )


def _evidence_of_audit(result: AuditResult, sentences_of_audit: Sentences) -> Strings:
    """Return what was guessed right, what that means for a promise of ε, and how sure it is."""
    if result.is_withheld:
        return (f"The bound is 0 because {result.reason}.",)
    terms = sentences_of_audit.terms
    sentence_about_guesses = sentence_about_right_guesses(
        result.correct,
        guesses=result.guesses,
        guessed=result.guessed,
        about=f" about {result.wording.question}",
    )
    if not result.refutes:
        return (_evidence_if_nothing_is_proved(result, terms, sentence_about_guesses),)
    what_is_private = "training"
    if result.wording.is_mechanism:
        what_is_private = "the mechanism"
    sentence_about_odds = _sentence_about_odds(result)
    sentence_about_promise = (
        f"{sentence_about_odds}If {what_is_private} satisfied a smaller {terms.parameter}, results "
        f"this strong would occur at most {percent(1 - result.confidence)} of the time."
    )
    evidence_sentences = [
        sentence_about_guesses,
        result.searched,
        sentence_about_attacks(result),
        sentence_about_promise,
    ]
    return (" ".join(filter(None, evidence_sentences)),)


def _evidence_if_nothing_is_proved(
    result: AuditResult, terms: Terms, sentence_about_guesses: str
) -> str:
    """Return what guesses that prove nothing mean."""
    sentences_about_chance = ""
    if result.guesses:
        explanation = "Chance can explain this."
        if result.correct * int(result.options.get("k", 2)) <= result.guesses:
            explanation = "Random guesses do as well."
        sentences_about_chance = f"{sentence_about_guesses} {explanation} "
    return (
        f"{sentences_about_chance}No {terms.symbol} is ruled out. This is not evidence of privacy: "
        "a stronger attack may still reveal leakage."
    )


def sentence_about_attacks(result: AuditResult) -> str:
    """Return how many attacks were tested, if not one."""
    attacks = result.options.get("attacks")
    if not isinstance(attacks, dict) or len(attacks) < 2:
        return ""
    return (
        f"This is the best of {len(attacks)} attacks, each tested at an equal share of the error "
        "probability."
    )


def _sentence_about_odds(result: AuditResult) -> str:
    """Return the odds that a promise of the bound allows each guess, where all have the same."""
    prior = result.options.get("prior", _FAIR_COIN)
    if not isinstance(result.claim, PureDP) or prior != _FAIR_COIN:
        return ""
    # as printed, and for one of k candidates shared among the k - 1 others
    shown_epsilon = number(result.bound)
    other_candidates = result.options.get("k", 2) - 1
    copies = result.copies  # of which a guess is about all at once
    epsilon_of_copies = min(copies * float(shown_epsilon), _LARGEST_EXPONENT)
    largest_odds = shown_epsilon
    if shown_epsilon != "∞":
        largest_odds = number(math.exp(epsilon_of_copies) / other_candidates)
    about_copies = ""
    if copies > 1:
        about_copies = f" about {copies} copies"
    return (
        f"If ε is {shown_epsilon}, each guess{about_copies} is right with odds of at most "
        f"{largest_odds} to 1. "
    )


def _note_about_guesses(result: AuditResult) -> str:
    """Return what guesses are about, and which come first."""
    wording = result.wording
    if wording.order:
        return guesses_in_order(wording.question, order=wording.order, guessed=result.guessed)
    return guesses_of(result.path, result.guessed)
