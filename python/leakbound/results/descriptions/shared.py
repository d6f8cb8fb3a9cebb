"""The words that all results of one ranking of examples share."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.formatting import number, percent, plural, share
from leakbound.report.description import (
    KINDS,
    SMALL,
    Description,
    Figure,
    Levels,
    Metric,
    Section,
    Sentences,
)
from leakbound.report.figures import PLOTS
from leakbound.report.parts import LOW_RATES
from leakbound.results.one_run import AuditResult
from leakbound.results.terms import (
    COMPARED,
    audited,
    checked_parameter,
    claimed_delta,
    meaning_of,
    scale_of,
    stated_claim,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leakbound.report.description import Drawing, Terms
    from leakbound.report.parts import Checked, ScoreAudit
    from leakbound.results.one_run import AuditResult
    from leakbound.results.panoramia import PanoramiaResult
    from leakbound.results.wording import Wording

    Audit: TypeAlias = AuditResult | PanoramiaResult


def sentences_of(
    result: Audit, ranking: ScoreAudit, terms: Terms, wording: Wording, *, withheld: bool = False
) -> Sentences:
    """Return the sentences that most results share; each type replaces what differs."""
    checked_claim = result.checked
    # the word is for what is proved and more than what was claimed, if something was
    exceeds_claim = True
    answer = ""
    if checked_claim is not None:
        is_refuted = checked_claim.verdict == "refuted"
        exceeds_claim = is_refuted and not wording.is_mechanism
        answer = _answer_about_claim(
            result, checked_claim, ranking, terms, wording, withheld=withheld
        )
    leaks = result.refutes and terms.epsilon >= SMALL and exceeds_claim
    return Sentences(
        terms=terms,
        warnings=result.warnings,
        headline=_headline(result, ranking=ranking, terms=terms, wording=wording, leaks=leaks),
        refutes=result.refutes,
        leaks=leaks,
        subject=wording.subject,
        answer=answer,
        contradicted=tuple(
            assumption for assumption in result.assumptions if assumption.status == "contradicted"
        ),
    )


def standard_description(
    result: Audit,
    sentences: Sentences,
    ranking: ScoreAudit,
    figures: tuple[Figure, ...],
    wording: Wording,
    *,
    withheld: bool = False,
) -> Description:
    """Return the description that most results share, with its sentences."""
    terms = sentences.terms
    epsilon = terms.epsilon
    formula = f"{terms.symbol} ≥ {number(epsilon)}"
    if result.kind == "estimate":
        formula = f"ε̃ = {number(epsilon)}, estimate"
    elif result.kind == "exploratory_lower_bound":
        formula = f"{terms.symbol} ≈ {number(epsilon)}, exploratory"
    return Description(
        **vars(sentences),
        kind=result.kind,
        confidence=result.confidence,
        claim=stated_claim(result).name + terms.replaced,
        design=_design_in_words(wording, terms.copies),
        epsilon=epsilon,
        ceiling=terms.ceiling,
        formula=formula,
        verdict=_verdict_in_words(result, terms, wording, leaks=sentences.leaks, withheld=withheld),
        metrics=_metric_of_accountant(result, wording.unit),
        meaning=meaning_of(
            result.kind,
            terms,
            wording,
            refuted=result.refutes,
            searched=ranking.searched,
            withheld=withheld,
        ),
        levels=levels_of(terms, proves=KINDS[result.kind].proves),
        figures=figures,
        sections=(section_of_grounds(result, "Why it holds"),),
        numbers=_numbers_of_audit(result, ranking=ranking, terms=terms),
        units=units_of(terms, scale_of(result.claim).unit),
    )


def _design_in_words(wording: Wording, copies: int) -> str:
    """Say how members were drawn."""
    if copies > 1:
        return f"{wording.drawn}, inserted {copies} times"
    return wording.drawn


def _verdict_in_words(
    result: Audit, terms: Terms, wording: Wording, *, leaks: bool, withheld: bool
) -> str:
    """Return the verdict in a word or two."""
    kind = KINDS[result.kind]
    if not kind.proves:
        return kind.tag.split(",")[0]
    if withheld:
        return "withheld"
    if result.checked is not None and is_checked_promise(result, wording):
        return result.checked.verdict
    if not result.refutes:
        return "nothing refuted"
    if leaks:
        return terms.qualified("leaks")
    return terms.qualified(f"at least {number(terms.epsilon)}")


def _metric_of_accountant(result: Audit, unit: str) -> tuple[Metric, ...]:
    """Return what was proved beside what the accountant said, if there is both."""
    checked_claim = result.checked
    if checked_claim is None or checked_claim.proved is None:
        return ()
    note = (
        f"{checked_claim.source or 'stated'}; {COMPARED[checked_claim.compares or 'add_remove']} "
        f"one {unit}"
    )
    name = f"ε proved, accounted at δ = {checked_claim.delta:g}"
    return (Metric(name=name, value=checked_claim.interval, note=note),)


def is_checked_promise(result: Audit, wording: Wording) -> bool:
    """Return whether a mechanism made a promise, which was checked.

    The question is then whether it keeps the promise: every mechanism leaks something.
    """
    return result.checked is not None and wording.is_mechanism


def _headline(
    result: Audit, ranking: ScoreAudit, terms: Terms, wording: Wording, *, leaks: bool
) -> str:
    """Return the verdict in one sentence: what is proved, or that nothing is."""
    if result.kind == "exploratory_lower_bound":
        return _exploratory_headline(terms)
    if leaks:
        return terms.conditional(
            f"This {wording.subject} leaks: the audit rules out every {terms.guarantee} with "
            f"{terms.smaller} {terms.sure(percent(result.confidence))}."
        )
    if result.refutes:
        return _headline_of_bound(result, terms)
    return _headline_of_no_bound(result, ranking, terms)


def _exploratory_headline(terms: Terms) -> str:
    """Return the headline of a number that is no bound."""
    own = ""
    if terms.own:
        own = f" ({terms.own})"
    return (
        f"Exploratory: {terms.symbol} ≈ {number(terms.epsilon)}{terms.at}{own}. This is not a "
        "lower bound, because it ignores the error of the learnt propensities. It cannot refute a "
        "claim."
    )


def _headline_of_bound(result: Audit, terms: Terms) -> str:
    """Return the headline of a bound above 0 that is no leak worth the word."""
    bound = f"{number(terms.epsilon)}{terms.at}{terms.within}"
    with_confidence = terms.sure(percent(result.confidence))
    sentence = terms.conditional(f"{terms.symbol} is at least {bound} {with_confidence}.")
    if terms.epsilon >= SMALL:
        return sentence
    return f"Almost nothing could be shown: {sentence} A stronger attack may show more."


def _headline_of_no_bound(result: Audit, ranking: ScoreAudit, terms: Terms) -> str:
    """Return the headline of a bound of 0."""
    with_copies = ""
    if terms.copies > 1:
        with_copies = f", each inserted {terms.copies} times,"
    audited_records = f"these {audited(ranking):,} {terms.units}{with_copies}"
    if terms.ceiling > 0:
        return (
            f"Nothing could be refuted. A perfect attack on {audited_records} would have reached "
            f"{terms.symbol} = {number(terms.ceiling)}{terms.at}; this attack did not."
        )
    return (
        f"No attack could show anything with {audited_records}, not even a perfect one "
        f"({percent(result.confidence)} confidence)."
    )


def _answer_about_claim(
    result: Audit,
    checked_claim: Checked,
    ranking: ScoreAudit,
    terms: Terms,
    wording: Wording,
    *,
    withheld: bool,
) -> str:
    """Return what is said about the guarantee that was checked."""
    claim_in_words = checked_parameter(result.claim, checked_claim)
    delta = claimed_delta(result.claim, checked_claim)
    if delta:
        claim_in_words += f" with δ = {delta:g}"
    if checked_claim.compares:
        claim_in_words += f" for {COMPARED[checked_claim.compares]} one {wording.unit}"
    else:
        claim_in_words += terms.replaced
    if checked_claim.c is not None:
        claim_in_words = f"c = {checked_claim.c:g} with {claim_in_words}"
    with_confidence = f"({percent(result.confidence)} confidence)"
    answer = (
        f"The claimed {claim_in_words} is not refuted, although this audit could have done so "
        f"{with_confidence}."
    )
    if checked_claim.verdict == "refuted":
        answer = terms.conditional(
            f"The claimed {claim_in_words} is refuted{terms.within} {with_confidence}."
        )
    elif result.kind == "estimate" and checked_claim.c is None:
        answer = (
            f"The claimed {claim_in_words} cannot be tested alone, because an estimate cannot "
            "refute a claim: claim c and ε together."
        )
    elif checked_claim.verdict == "inconclusive":
        reason = (
            f"is out of reach. Even a perfect attack on these {audited(ranking):,} {terms.units} "
            "could not refute it"
        )
        if withheld:
            reason = "cannot be tested, because the bound is withheld"
        elif not KINDS[result.kind].proves and checked_claim.c is None:
            reason = "cannot be tested with an exploratory number"
        answer = f"Inconclusive: the claimed {claim_in_words} {reason}."
    if checked_claim.proved is None:
        return answer
    by_accountant = ""
    if checked_claim.source:
        by_accountant = f" ({checked_claim.source})"
    accounted = (
        f"Accounted ε = {checked_claim.value:.4g} at δ = {checked_claim.delta:g}{by_accountant}"
    )
    return f"{accounted}, proved ε ≥ {number(checked_claim.proved)}. {answer}"


def closing_metrics(
    result: Audit, ranking: ScoreAudit, terms: Terms, wording: Wording, auc: str
) -> tuple[Metric, ...]:
    """Return the key numbers that come last: rates, AUC, examples, confidence."""
    note_about_members = wording.each
    rate_metrics = tuple[Metric, ...]()
    if not wording.each:
        note_about_members = f"{ranking.members:,} members, {ranking.m - ranking.members:,} not"
        rate_metrics = tuple(_rate_metrics(ranking, result.confidence))
    return (
        *rate_metrics,
        Metric(name="AUC", value=f"{ranking.auc:.3f}", note=auc),
        Metric(
            name=terms.units.capitalize(), value=f"{audited(ranking):,}", note=note_about_members
        ),
        Metric(name="Confidence", value=percent(result.confidence), note=wording.chance),
    )


def _rate_metrics(ranking: ScoreAudit, confidence: float) -> Iterator[Metric]:
    """Return true positive rates at low false positive rates, and accuracy, with exact limits.

    Thresholds are found by the scores of non-members, or by the number of examples.
    """
    roc = ranking.roc
    if not roc.guesses.size:
        return
    examples = int(roc.guesses[-1])
    members = int(roc.members[-1])
    nonmember_count = examples - members
    if not members or not nonmember_count:
        return
    nonmembers = roc.guesses - roc.members
    for rate in LOW_RATES:
        name = f"TPR at {percent(rate)} FPR"
        fewest_nonmembers = round(1 / rate)
        if nonmember_count < fewest_nonmembers:
            note = f"needs {fewest_nonmembers:,} non-members; there are {nonmember_count:,}"
            yield Metric(name=name, value="unknown", note=note)
            break
        threshold_place = int(np.searchsorted(nonmembers, rate * nonmember_count, side="right")) - 1
        members_found = 0
        if threshold_place >= 0:
            members_found = int(roc.members[threshold_place])
        yield _rate_metric(name, members_found, members, confidence)
    middle_place = int(np.abs(roc.guesses - examples / 2).argmin())
    correct_guesses = int(roc.members[middle_place] + nonmember_count - nonmembers[middle_place])
    yield _rate_metric("Accuracy", correct_guesses, examples, confidence, "; guessing gives 50 %")


def _rate_metric(
    name: str, correct: int, trials: int, confidence: float, remark: str = ""
) -> Metric:
    """Return a rate with Clopper-Pearson limits on both sides."""
    beta = shares.DESCRIBED_SIDES.of(1 - confidence, 2)
    correct_and_wrong = np.array([correct, trials - correct], dtype=np.uint64)
    trials_of_limits = np.full(2, trials, dtype=np.uint64)
    lower_limit, fewest_wrong = _core.clopper_pearson(
        correct_and_wrong, trials_of_limits, beta=np.full(2, beta)
    ).tolist()
    interval = f"interval {share(lower_limit)} to {share(1 - fewest_wrong, up=True)}"
    note = f"{percent(confidence)} {interval}{remark}"
    return Metric(name=name, value=share(correct / trials), note=note)


def levels_of(terms: Terms, *, proves: bool) -> Levels:
    """Return bound and ceiling, and what the parts of the axis between them are."""
    larger_of_both = max(terms.epsilon, terms.ceiling)
    bound_in_words = number(terms.epsilon)
    ceiling_in_words = number(larger_of_both)
    names = (
        f"{terms.qualified('ruled out')}: {terms.smaller}",
        f"not ruled out, but within reach: up to {ceiling_in_words}",
        f"out of reach of this audit: above {ceiling_in_words}",
    )
    if not proves:
        names = (
            f"not a bound: {terms.symbol} below {bound_in_words}",
            f"up to the ceiling, {ceiling_in_words}",
            "above the ceiling",
        )
    return Levels(first=terms.epsilon, second=larger_of_both, names=names)


def _numbers_of_audit(result: Audit, ranking: ScoreAudit, terms: Terms) -> dict[str, float]:
    """Return finite numbers by their names."""
    names_of_counts = ("m", "members", "guesses", "correct", "auc")
    numbers: dict[str, float | None] = {name: getattr(ranking, name) for name in names_of_counts}
    numbers |= {"bound": result.bound, "confidence": result.confidence}
    if result.claim.has_epsilon:
        numbers |= {"epsilon": terms.epsilon, "epsilon_ceiling": terms.ceiling}
        numbers |= {"delta": terms.delta}
    if result.checked is not None:
        numbers |= _numbers_of_check(result.checked)
    return {
        name: float(value)
        for name, value in numbers.items()
        if value is not None and math.isfinite(value)
    }


def _numbers_of_check(checked_claim: Checked) -> dict[str, float | None]:
    """Return the numbers of a guarantee that was checked."""
    is_refuted = {"refuted": True, "not refuted": False}.get(checked_claim.verdict)
    return {
        "checked_value": checked_claim.value,
        "refuted": is_refuted,
        "proved_value": checked_claim.proved,
    }


def units_of(terms: Terms, own: str = "") -> dict[str, str]:
    """Return the units of an ε, if one is bounded, and of a bound on the claim's own parameter."""
    epsilon = f"nats at δ = {terms.delta:g}{terms.replaced}"
    bound = epsilon
    if own:
        bound = f"{own}{terms.replaced}"
    if terms.symbol != "ε":
        return {"bound": bound}
    return {"epsilon": epsilon, "epsilon_ceiling": epsilon, "bound": bound}


def section_of_grounds(
    result: Audit, title: str, *paragraphs_before: str, figures: tuple[Figure, ...] = ()
) -> Section:
    """Return why a bound holds, after some paragraphs, and what it assumes."""
    paragraphs = (*paragraphs_before, result.theorem)
    if result.reason:
        paragraphs = (*paragraphs, f"The bound is 0 because {result.reason}.")
    return Section(
        title=title, paragraphs=paragraphs, assumptions=result.assumptions, figures=figures
    )


def figures_of(drawing: Drawing) -> tuple[Figure, ...]:
    """Return the figures that every audit has, those added to `PLOTS` among them."""
    # a curve of one point shows nothing that the key numbers do not
    most_thresholds = max(
        int(np.isfinite(series.ranking.curve.bound).sum()) for series in drawing.series
    )
    has_curve = most_thresholds > 1 and not drawing.family
    return tuple(
        Figure(
            name=name,
            title=plot.title(drawing),
            draw=partial(plot.draw, drawing),
            caption=plot.caption(drawing),
        )
        for name, plot in PLOTS.items()
        if name != "bound" or (drawing.family and drawing.has_epsilon) or has_curve
    )


# The chance of a fair coin
_FAIR_COIN = 0.5


def plainly(result: AuditResult) -> str:
    """Return the first sentence of a report, without ε; empty where none like it is proved.

    If training is not ε-DP, some outcome is more than e^ε times likelier with some record than
    without it, given all other records. Who sees it, knows these and knew nothing of that record,
    is right about it with probability e^ε / (1 + e^ε) or more; about one of k candidates,
    e^ε / (k - 1 + e^ε). Bounds that hold within a family, on a condition, for several copies at
    once or for runs of a mechanism say less.
    """
    if not _is_stated_plainly(result):
        return ""
    # Of k candidates, a guess is right with probability e^ε / (k - 1 + e^ε).
    candidates = int(result.options.get("k", 2))
    probability_of_right_guess = 1 / (1 + (candidates - 1) * math.exp(-result.bound))
    right_in_hundred = min(99, math.floor(100 * probability_of_right_guess))
    right_by_chance = math.ceil(100 / candidates)
    if right_in_hundred <= right_by_chance:
        return ""
    times = "times"
    if right_by_chance == 1:
        times = "time"
    subject = f"this {result.wording.subject}"
    if result.wording.subject == "generator":
        subject = "the synthetic table"
    return (
        f"Someone who has {subject} and knows all other {_other_records(result)} can guess "
        f"{_guessed_secret(result)}, and be right at least {right_in_hundred} times in 100 (by "
        f"chance: {right_by_chance} {times})."
    )


def _is_stated_plainly(result: AuditResult) -> bool:
    """Return whether a bound is about one record, drawn by a fair coin, and without conditions."""
    if not result.claim.has_epsilon or result.is_withheld or result.wording.is_mechanism:
        return False
    if result.kind != "lower_bound" or not result.refutes or result.bound < SMALL:
        return False
    prior = result.options.get("prior", _FAIR_COIN)
    statuses = {assumption.status for assumption in result.assumptions}
    return prior == _FAIR_COIN and result.copies == 1 and "contradicted" not in statuses


def _guessed_secret(result: AuditResult) -> str:
    """Return what can be guessed about some records, in the words of the design."""
    if result.relation != "add_remove":
        return f"in some cases {result.wording.question.replace(' examples ', ' records ', 1)}"
    records = "records"
    if result.wording.unit != "example":
        records = plural(result.wording.unit)
    return f"for some {records} whether they were in the training data"


def _other_records(result: AuditResult) -> str:
    """Return what was drawn, in the plural."""
    if result.wording.unit == "example":
        return "records"
    return result.wording.units
