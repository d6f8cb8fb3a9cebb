"""The words that all results of one ranking of examples share."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.formatting import number, percent, share
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
from leakbound.results.terms import (
    COMPARED,
    asked,
    audited,
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
    one = result.checked
    # the word is for what is proved and more than what was claimed, if something was
    more = one is None or (one.verdict == "refuted" and not promised(result, wording))
    leaks = result.refutes and terms.epsilon >= SMALL and more
    answer = ""
    if one is not None:
        answer = _answer(result, one, ranking, terms, wording, withheld=withheld)
    return Sentences(
        terms=terms,
        warnings=result.warnings,
        headline=_headline(result, ranking=ranking, terms=terms, wording=wording, leaks=leaks),
        refutes=result.refutes,
        leaks=leaks,
        subject=wording.subject,
        answer=answer,
        contradicted=tuple(one for one in result.assumptions if one.status == "contradicted"),
    )


def standard(
    result: Audit,
    said: Sentences,
    ranking: ScoreAudit,
    figures: tuple[Figure, ...],
    wording: Wording,
    *,
    withheld: bool = False,
) -> Description:
    """Return the description that most results share, with its sentences."""
    terms = said.terms
    epsilon = terms.epsilon
    sign, tail = {
        "estimate": ("ε̃ =", ", estimate"),
        "exploratory_lower_bound": (f"{terms.symbol} ≈", ", exploratory"),
    }.get(result.kind, (f"{terms.symbol} ≥", ""))
    return Description(
        **vars(said),
        kind=result.kind,
        confidence=result.confidence,
        claim=stated_claim(result).name + terms.replaced,
        design=_drawn(wording, terms.copies),
        epsilon=epsilon,
        ceiling=terms.ceiling,
        formula=f"{sign} {number(epsilon)}{tail}",
        verdict=_verdict(result, terms, wording, leaks=said.leaks, withheld=withheld),
        metrics=_accounted(result, wording.unit),
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
        sections=(grounds(result, "Why it holds"),),
        numbers=_numbers(result, ranking=ranking, terms=terms),
        units=units_of(terms, scale_of(result.claim).unit),
    )


def _drawn(wording: Wording, copies: int) -> str:
    """Say how members were drawn."""
    if copies > 1:
        return f"{wording.drawn}, inserted {copies} times"
    return wording.drawn


def _verdict(result: Audit, terms: Terms, wording: Wording, *, leaks: bool, withheld: bool) -> str:
    """Return the verdict in a word or two."""
    kind = KINDS[result.kind]
    if not kind.proves:
        return kind.tag.split(",")[0]
    if withheld:
        return "withheld"
    if result.checked is not None and promised(result, wording):
        return result.checked.verdict
    if not result.refutes:
        return "nothing refuted"
    if leaks:
        return terms.qualified("leaks")
    return terms.qualified(f"at least {number(terms.epsilon)}")


def _accounted(result: Audit, unit: str) -> tuple[Metric, ...]:
    """Return what was proved beside what the accountant said, if there is both."""
    one = result.checked
    if one is None or one.proved is None:
        return ()
    note = f"{one.source or 'stated'}; {COMPARED[one.compares or 'add_remove']} one {unit}"
    name = f"ε proved, accounted at δ = {one.delta:g}"
    return (Metric(name=name, value=one.interval, note=note),)


def promised(result: Audit, wording: Wording) -> bool:
    """Return whether a mechanism made a promise, which was checked.

    The question is then whether it keeps the promise: every mechanism leaks something.
    """
    return result.checked is not None and wording.is_mechanism


def _headline(
    result: Audit, ranking: ScoreAudit, terms: Terms, wording: Wording, *, leaks: bool
) -> str:
    """Return the verdict in one sentence: what is proved, or that nothing is."""
    if result.kind == "exploratory_lower_bound":
        return _exploratory(terms)
    if leaks:
        return terms.conditional(
            f"This {wording.subject} leaks: the audit rules out every {terms.guarantee} with "
            f"{terms.smaller} {terms.sure(percent(result.confidence))}."
        )
    if result.refutes:
        return _shown(result, terms)
    return _nothing(result, ranking, terms)


def _exploratory(terms: Terms) -> str:
    """Return the headline of a number that is no bound."""
    own = ""
    if terms.own:
        own = f" ({terms.own})"
    return (
        f"Exploratory: {terms.symbol} ≈ {number(terms.epsilon)}{terms.at}{own}. This is not a "
        "lower bound, because it ignores the error of the learnt propensities. It cannot refute a "
        "claim."
    )


def _shown(result: Audit, terms: Terms) -> str:
    """Return the headline of a bound above 0 that is no leak worth the word."""
    bound = f"{number(terms.epsilon)}{terms.at}{terms.within}"
    sure = terms.sure(percent(result.confidence))
    said = terms.conditional(f"{terms.symbol} is at least {bound} {sure}.")
    if terms.epsilon >= SMALL:
        return said
    return f"Almost nothing could be shown: {said} A stronger attack may show more."


def _nothing(result: Audit, ranking: ScoreAudit, terms: Terms) -> str:
    """Return the headline of a bound of 0."""
    several = ""
    if terms.copies > 1:
        several = f", each inserted {terms.copies} times,"
    these = f"these {audited(ranking):,} {terms.units}{several}"
    if terms.ceiling > 0:
        return (
            f"Nothing could be refuted. A perfect attack on {these} would have reached "
            f"{terms.symbol} = {number(terms.ceiling)}{terms.at}; this attack did not."
        )
    return (
        f"No attack could show anything with {these}, not even a perfect one "
        f"({percent(result.confidence)} confidence)."
    )


def _answer(
    result: Audit,
    one: Checked,
    ranking: ScoreAudit,
    terms: Terms,
    wording: Wording,
    *,
    withheld: bool,
) -> str:
    """Return what is said about the guarantee that was checked."""
    claim = asked(result.claim, one)
    at = claimed_delta(result.claim, one)
    if at:
        claim += f" with δ = {at:g}"
    if one.compares:
        claim += f" for {COMPARED[one.compares]} one {wording.unit}"
    else:
        claim += terms.replaced
    if one.c is not None:
        claim = f"c = {one.c:g} with {claim}"
    sure = f"({percent(result.confidence)} confidence)"
    said = f"The claimed {claim} is not refuted, although this audit could have done so {sure}."
    if one.verdict == "refuted":
        said = terms.conditional(f"The claimed {claim} is refuted{terms.within} {sure}.")
    elif result.kind == "estimate" and one.c is None:
        said = (
            f"The claimed {claim} cannot be tested alone, because an estimate cannot refute a "
            "claim: claim c and ε together."
        )
    elif one.verdict == "inconclusive":
        why = (
            f"is out of reach. Even a perfect attack on these {audited(ranking):,} {terms.units} "
            "could not refute it"
        )
        if withheld:
            why = "cannot be tested, because the bound is withheld"
        elif not KINDS[result.kind].proves and one.c is None:
            why = "cannot be tested with an exploratory number"
        said = f"Inconclusive: the claimed {claim} {why}."
    if one.proved is None:
        return said
    by = ""
    if one.source:
        by = f" ({one.source})"
    accounted = f"Accounted ε = {one.value:.4g} at δ = {one.delta:g}{by}"
    return f"{accounted}, proved ε ≥ {number(one.proved)}. {said}"


def counted(
    result: Audit, ranking: ScoreAudit, terms: Terms, wording: Wording, auc: str
) -> tuple[Metric, ...]:
    """Return the key numbers that come last: rates, AUC, examples, confidence."""
    noted = wording.each
    rates = tuple[Metric, ...]()
    if not wording.each:
        noted = f"{ranking.members:,} members, {ranking.m - ranking.members:,} not"
        rates = tuple(_rates(ranking, result.confidence))
    return (
        *rates,
        Metric(name="AUC", value=f"{ranking.auc:.3f}", note=auc),
        Metric(name=terms.units.capitalize(), value=f"{audited(ranking):,}", note=noted),
        Metric(name="Confidence", value=percent(result.confidence), note=wording.chance),
    )


def _rates(ranking: ScoreAudit, confidence: float) -> Iterator[Metric]:
    """Return true positive rates at low false positive rates, and accuracy, with exact limits.

    Thresholds are found by the scores of non-members, or by the number of examples.
    """
    roc = ranking.roc
    if not roc.guesses.size:
        return
    examples = int(roc.guesses[-1])
    members = int(roc.members[-1])
    others = examples - members
    if not members or not others:
        return
    wrong = roc.guesses - roc.members
    for rate in LOW_RATES:
        name = f"TPR at {percent(rate)} FPR"
        least = round(1 / rate)
        if others < least:
            note = f"needs {least:,} non-members; there are {others:,}"
            yield Metric(name=name, value="unknown", note=note)
            break
        place = int(np.searchsorted(wrong, rate * others, side="right")) - 1
        members_below = 0
        if place >= 0:
            members_below = int(roc.members[place])
        yield _rate(name, members_below, members, confidence)
    half = int(np.abs(roc.guesses - examples / 2).argmin())
    right = int(roc.members[half] + others - wrong[half])
    yield _rate("Accuracy", right, examples, confidence, "; guessing gives 50 %")


def _rate(name: str, right: int, trials: int, confidence: float, what: str = "") -> Metric:
    """Return a rate with Clopper-Pearson limits on both sides."""
    beta = shares.DESCRIBED_SIDES.of(1 - confidence, 2)
    counts = np.array([right, trials - right], dtype=np.uint64)
    of = np.full(2, trials, dtype=np.uint64)
    low, least_wrong = _core.clopper_pearson(counts, of, beta=np.full(2, beta)).tolist()
    interval = f"interval {share(low)} to {share(1 - least_wrong, up=True)}"
    note = f"{percent(confidence)} {interval}{what}"
    return Metric(name=name, value=share(right / trials), note=note)


def levels_of(terms: Terms, *, proves: bool) -> Levels:
    """Return bound and ceiling, and what the parts of the axis between them are."""
    second = max(terms.epsilon, terms.ceiling)
    low = number(terms.epsilon)
    high = number(second)
    names = (
        f"{terms.qualified('ruled out')}: {terms.smaller}",
        f"not ruled out, but within reach: up to {high}",
        f"out of reach of this audit: above {high}",
    )
    if not proves:
        names = (
            f"not a bound: {terms.symbol} below {low}",
            f"up to the ceiling, {high}",
            "above the ceiling",
        )
    return Levels(first=terms.epsilon, second=second, names=names)


def _numbers(result: Audit, ranking: ScoreAudit, terms: Terms) -> dict[str, float]:
    """Return finite numbers by their names."""
    counts = ("m", "members", "guesses", "correct", "auc")
    numbers: dict[str, float | None] = {name: getattr(ranking, name) for name in counts}
    numbers |= {"bound": result.bound, "confidence": result.confidence}
    if result.claim.has_epsilon:
        numbers |= {"epsilon": terms.epsilon, "epsilon_ceiling": terms.ceiling}
        numbers |= {"delta": terms.delta}
    if result.checked is not None:
        numbers |= _of_check(result.checked)
    return {
        name: float(value)
        for name, value in numbers.items()
        if value is not None and math.isfinite(value)
    }


def _of_check(one: Checked) -> dict[str, float | None]:
    """Return the numbers of a guarantee that was checked."""
    decided = {"refuted": True, "not refuted": False}.get(one.verdict)
    return {"checked_value": one.value, "refuted": decided, "proved_value": one.proved}


def units_of(terms: Terms, own: str = "") -> dict[str, str]:
    """Return the units of an ε, if one is bounded, and of a bound on the claim's own parameter."""
    epsilon = f"nats at δ = {terms.delta:g}{terms.replaced}"
    bound = epsilon
    if own:
        bound = f"{own}{terms.replaced}"
    if terms.symbol != "ε":
        return {"bound": bound}
    return {"epsilon": epsilon, "epsilon_ceiling": epsilon, "bound": bound}


def grounds(result: Audit, title: str, *before: str, figures: tuple[Figure, ...] = ()) -> Section:
    """Return why a bound holds, after some paragraphs, and what it assumes."""
    said = (*before, result.theorem)
    if result.reason:
        said = (*said, f"The bound is 0 because {result.reason}.")
    return Section(title=title, paragraphs=said, assumptions=result.assumptions, figures=figures)


def figures_of(drawing: Drawing) -> tuple[Figure, ...]:
    """Return the figures that every audit has, those added to `PLOTS` among them."""
    # a curve of one point shows nothing that the key numbers do not
    tested = max(int(np.isfinite(one.ranking.curve.bound).sum()) for one in drawing.series)
    told = tested > 1 and not drawing.family
    return tuple(
        Figure(
            name=name,
            title=plot.title(drawing),
            draw=partial(plot.draw, drawing),
            caption=plot.caption(drawing),
        )
        for name, plot in PLOTS.items()
        if name != "bound" or (drawing.family and drawing.has_epsilon) or told
    )
