"""What is said in the same way of every result that comes from one ranking of the examples."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from leakbound._base.formatting import number, percent
from leakbound.report.description import KINDS, SMALL, Description, Figure, Levels, Metric, Section
from leakbound.report.figures import PLOTS
from leakbound.results.words import COMPARED, Scale, meaning_of, scale_of

if TYPE_CHECKING:
    from leakbound.report.description import Drawing, Terms
    from leakbound.report.parts import ScoreAudit
    from leakbound.results.one_run import AuditResult
    from leakbound.results.panoramia import PanoramiaResult

    Audit: TypeAlias = AuditResult | PanoramiaResult

CUTS = (
    "Each tested cut of the ranking, with the bound it would give were it the best. The dashed "
    "line is the final bound, the dotted line what a perfect attack would have reached."
)


def standard(
    result: Audit,
    ranking: ScoreAudit,
    terms: Terms,
    figures: tuple[Figure, ...],
    *,
    subject: str = "model",
    withheld: bool = False,
) -> Description:
    """Return what is said of most results: types of their own replace what differs."""
    kind, unit, epsilon = KINDS[result.kind], terms.units.removesuffix("s"), terms.epsilon
    leaks = result.refutes and epsilon >= SMALL
    sign, tail = {
        "estimate": ("ε̃ =", ", estimate"),
        "exploratory_lower_bound": ("ε ≈", ", exploratory"),
    }.get(result.kind, ("ε ≥", ""))
    if not kind.proves:
        verdict = kind.tag.split(",")[0]
    elif withheld:
        verdict = "withheld"
    elif not result.refutes:
        verdict = "nothing refuted"
    else:
        verdict = terms.qualified("leaks" if leaks else f"at least {number(epsilon)}")
    one, accounted = result.checked, tuple[Metric, ...]()
    if one is not None and one.proved is not None:
        note = f"{one.source or 'stated'}; {COMPARED[one.compares or 'add_remove']} one {unit}"
        name = f"ε proved, accounted at δ = {one.delta:g}"
        accounted = (Metric(name, one.interval, note),)
    return Description(
        kind=result.kind,
        confidence=result.confidence,
        warnings=result.warnings,
        claim=result.claim.name + terms.replaced,
        design={
            "random_split": "a random split",
            "choices": "uniform draws of one candidate of each secret",
        }.get(str(result.options.get("design")), "independent coins for each example"),
        terms=terms,
        epsilon=epsilon,
        ceiling=terms.ceiling,
        formula=f"{sign} {number(epsilon)}{tail}",
        verdict=verdict,
        headline=_headline(result, ranking, terms, subject, leaks=leaks),
        refutes=result.refutes,
        leaks=leaks,
        metrics=accounted,
        meaning=meaning_of(result.kind, terms, refuted=result.refutes, withheld=withheld),
        levels=levels_of(terms, proves=kind.proves),
        figures=figures,
        sections=(grounds(result, "Why it holds"),),
        numbers=_numbers(result, ranking, terms),
        subject=subject,
        answer=_answer(result, ranking, terms, withheld=withheld),
        contradicted=tuple(x for x in result.assumptions if x.status == "contradicted"),
    )


def _headline(
    result: Audit, ranking: ScoreAudit, terms: Terms, subject: str, *, leaks: bool
) -> str:
    """Return the verdict in one sentence: what is proved, or that nothing is."""
    bound, sure = number(terms.epsilon), f"({percent(result.confidence)} confidence)"
    if result.kind == "exploratory_lower_bound":
        return (
            f"Exploratory: ε ≈ {bound}{terms.at}, with learnt propensities whose error no "
            "confidence set covers. It is not a lower bound, and it refutes nothing."
        )
    if leaks:
        return terms.conditional(
            f"This {subject} leaks: no {terms.guarantee} with ε < {bound}{terms.at} is "
            f"compatible with this audit {sure}."
        )
    if result.refutes:
        return terms.conditional(
            f"ε is at least {bound}{terms.at}{terms.within} {sure}: this audit proves little, "
            "and a stronger one may prove more."
        )
    said = (
        f"Nothing could be refuted. With these {ranking.m:,} {terms.units} a perfect attack would"
    )
    if terms.ceiling > 0:
        reach = f"ε = {number(terms.ceiling)}{terms.at}, so the audit could have shown leakage"
        return f"{said} have reached {reach}: this attack did not."
    return f"{said} refute nothing either {sure}."


def _answer(result: Audit, ranking: ScoreAudit, terms: Terms, *, withheld: bool) -> str:
    """Return what is said about the guarantee that was checked; empty if none was."""
    one = result.checked
    if one is None:
        return ""
    scale = scale_of(result.claim) if one.delta is None else Scale("ε")
    claim = f"{scale.name} {'≥' if scale.inverse else '='} {scale.value(one.value):g}"
    claim += f" with δ = {one.delta:g}" if one.delta else ""
    if one.compares:
        claim += f" for {COMPARED[one.compares]} one {terms.units.removesuffix('s')}"
    else:
        claim += terms.replaced
    claim = claim if one.c is None else f"c = {one.c:g} with {claim}"
    sure = f"({percent(result.confidence)} confidence)"
    said = f"The claimed {claim} is not refuted, though this audit could have refuted it {sure}."
    if one.verdict == "refuted":
        said = terms.conditional(f"The claimed {claim} is refuted{terms.within} {sure}.")
    elif result.kind == "estimate" and one.c is None:
        said = (
            f"The claimed {claim} cannot be tested alone: an estimate refutes nothing. Claim c "
            "and ε together."
        )
    elif one.verdict == "inconclusive":
        why = (
            f"is out of reach, since with these {ranking.m:,} {terms.units} even a perfect attack "
            "could not refute it"
        )
        if withheld:
            why = "cannot be tested, as the bound is withheld"
        elif not KINDS[result.kind].proves and one.c is None:
            why = "cannot be tested: an exploratory number refutes nothing"
        said = f"Inconclusive: the claimed {claim} {why}."
    if one.proved is None:
        return said
    by = f" ({one.source})" if one.source else ""
    accounted = f"Accounted ε = {one.value:.4g} at δ = {one.delta:g}{by}"
    return f"{accounted}, proved ε ≥ {number(one.proved)}. {said}"


def counted(result: Audit, ranking: ScoreAudit, terms: Terms, auc: str) -> tuple[Metric, ...]:
    """Return the key numbers that stand last: AUC, examples, confidence."""
    members = f"{ranking.members:,} members, {ranking.m - ranking.members:,} not"
    split = result.options.get("relation") == "replace"
    chance = "over the random split" if split else "over the coins of membership"
    if result.options.get("design") == "choices":
        chance = "over the draws of candidates"
    return (
        Metric("AUC", f"{ranking.auc:.3f}", auc),
        Metric(terms.units.capitalize(), f"{ranking.m:,}", members),
        Metric("Confidence", percent(result.confidence), chance),
    )


def levels_of(terms: Terms, *, proves: bool) -> Levels:
    """Return bound and ceiling, and what the parts of the axis between them are."""
    second = max(terms.epsilon, terms.ceiling)
    low, high = number(terms.epsilon), number(second)
    names = (f"not a bound: ε below {low}", f"up to the ceiling, {high}", "beyond the ceiling")
    if proves:
        names = (
            f"{terms.qualified('ruled out')}: ε below {low}{terms.at}",
            f"not ruled out, though within reach: up to {high}",
            f"out of reach of this audit: ε of {high} and more",
        )
    return Levels(terms.epsilon, second, names)


def _numbers(result: Audit, ranking: ScoreAudit, terms: Terms) -> dict[str, float]:
    """Return finite numbers by their names."""
    counts = ("m", "members", "guesses", "correct", "auc")
    numbers: dict[str, float | None] = {name: getattr(ranking, name) for name in counts}
    numbers |= {"epsilon": terms.epsilon, "epsilon_ceiling": terms.ceiling, "bound": result.bound}
    numbers |= {"delta": result.claim.delta, "confidence": result.confidence}
    if (one := result.checked) is not None:
        decided = {"refuted": True, "not refuted": False}.get(one.verdict)
        numbers |= {"checked_value": one.value, "refuted": decided, "proved_value": one.proved}
    return {
        name: float(value)
        for name, value in numbers.items()
        if value is not None and math.isfinite(value)
    }


def grounds(result: Audit, title: str, *before: str, figures: tuple[Figure, ...] = ()) -> Section:
    """Return why a bound holds, below some paragraphs, and what it assumes."""
    because = (f"The bound is 0 because {result.reason}.",) if result.reason else ()
    said = (*before, result.theorem, *because)
    return Section(title, said, result.assumptions, figures)


def figures_of(drawing: Drawing, first: tuple[str, str]) -> tuple[Figure, ...]:
    """Return the figures that every audit has; `first` is title and caption of that of bounds."""
    rates = "The dotted line is guessing. Rates of 0 are drawn at the edge."
    if drawing.series[0].ranking.bound > 0:
        rates = (
            "The dashed line is the most that a guarantee at the bound allows. How far the "
            "measured curve passes it is partly chance, which the bound leaves out."
        )
    if drawing.kind in {"conditional_lower_bound", "exploratory_lower_bound"}:
        rates += " Shift is not corrected for here: features alone may lift the curve."
    captions = (
        first,
        ("Precision and recall", "The mark is the chosen cut."),
        ("ROC on logarithmic axes", rates),
        (
            "Scores",
            "The scores used to rank. Leakage shows where the two groups separate, most often in "
            "the right tail. The outermost bins hold everything beyond.",
        ),
    )
    return tuple(
        Figure(name, title, partial(plot, drawing), caption)
        for (name, plot), (title, caption) in zip(PLOTS.items(), captions, strict=True)
    )
