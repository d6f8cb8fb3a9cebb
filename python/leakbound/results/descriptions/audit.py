"""What is said of an audit with random inclusion."""

from __future__ import annotations

from dataclasses import replace

from leakbound._base.formatting import number, percent
from leakbound.claims import FAMILIES, SubsampledGaussianDP, replacing
from leakbound.report.description import (
    KINDS,
    Description,
    Drawing,
    Metric,
    Profile,
    Series,
    Terms,
)
from leakbound.report.style import MEMBER
from leakbound.results.descriptions.standard import CUTS, counted, figures_of, standard
from leakbound.results.one_run import AuditResult, as_epsilon
from leakbound.results.words import DELTA, PATHS, scale_of

_AT = f" at δ = {DELTA:g}"


def describe(result: AuditResult) -> Description:
    """Describe an audit with random inclusion."""
    return of_audit(result)


def of_audit(
    result: AuditResult, *, subject: str = "model", condition: str = "", shifted: bool = False
) -> Description:
    """Describe an audit of a `subject`; the bound may hold on a condition, or under shift."""
    # 1. The bound as an ε: of a family at δ = 1e-5, by the rejected curve.
    unit, claim, kind = result.options.get("unit", "example"), result.claim, KINDS[result.kind]
    replaced = f" for replacing one {unit}" if result.relation == "replace" else ""
    epsilon = as_epsilon(claim, result.bound, result.rejected)
    ceiling = as_epsilon(claim, result.ceiling, result.rejectable)
    family = isinstance(claim, FAMILIES)
    profile = Profile(result.rejected, result.rejectable) if family else None
    # 2. What every audit of one ranking says.
    terms = _terms(result, replaced, epsilon, condition)
    scale = scale_of(claim)
    bound = scale.rounded(result.bound)
    drawn = bound if family else number(result.bound)
    series = Series(f"this {subject}", scale.name, "", MEMBER, drawn, result, terms.units)
    said = standard(
        result,
        result,
        terms,
        epsilon=epsilon,
        ceiling=ceiling,
        replaced=replaced,
        figures=figures_of(
            Drawing(result.kind, (series,), profile),
            _first_figure(result, epsilon, ceiling),
            refuted=epsilon > 0,
            withheld=result.is_withheld,
            shifted=shifted,
        ),
        subject=subject,
        withheld=result.is_withheld,
    )
    # 3. The key numbers: first the family's own parameter, then ε.
    at = _AT if family else ""
    own = f"{scale.name} {scale.limit}" if kind.proves else scale.name
    chosen = result.options.get("design") == "choices"
    asked = f"{_asked(result)}, largest margin first" if chosen else PATHS[result.path]
    metrics = (
        *said.metrics,
        *((Metric(own, bound, claim.name),) if family else ()),
        Metric(("ε at least" if kind.proves else "ε") + at, number(epsilon), kind.tag + replaced),
        Metric("Ceiling" + at, number(ceiling), f"a perfect attack, same {terms.units}"),
        Metric("Correct guesses", f"{result.correct:,} of {result.guesses:,}", asked),
        *counted(result, result, terms, "0.5 is guessing"),
    )
    return replace(
        said,
        formula=formula(result, result.bound) if family and kind.proves else said.formula,
        headline=_headline(result, said),
        paragraphs=_evidence(result, said),
        metrics=metrics,
        claimed=_claimed(result),
    )


def _claimed(result: AuditResult) -> float | None:
    """Return the guarantee that was checked as an ε of the bar, where there is one."""
    one, claim = result.checked, result.claim
    if one is None:
        return None
    crosses = result.relation == "replace" and one.compares == "add_remove"
    if isinstance(claim, FAMILIES):
        if crosses or (one.parameter == "epsilon" and one.delta != DELTA):
            return None
        if one.parameter == "epsilon":
            return one.value
        return float(claim.attained(one.value, "both").epsilon(DELTA))
    return replacing(one.value, one.delta or 0.0)[0] if crosses else one.value


def formula(result: AuditResult, bound: float) -> str:
    """Return a bound on the claim's parameter with its sign."""
    if not isinstance(result.claim, FAMILIES):
        return f"ε ≥ {number(bound)}"
    return scale_of(result.claim).formula(bound)


def _terms(result: AuditResult, replaced: str, epsilon: float, condition: str) -> Terms:
    """Return what the bound refers to."""
    claim, scale = result.claim, scale_of(result.claim)
    condition = condition or KINDS[result.kind].condition
    units = f"{result.options.get('unit', 'example')}s"
    if isinstance(claim, FAMILIES):
        own = f"{scale.name} {scale.refuted} {scale.rounded(result.bound)}"
        return Terms(
            guarantee=f"guarantee of {claim.name}{replaced}",
            family=claim.name + replaced,
            bound=f"{own} (ε < {number(epsilon)}{_AT})",
            however=f"however {scale.smallest} its {scale.name}",
            at=_AT,
            condition=condition,
            units=units,
        )
    pair = f"(ε, {claim.delta:g})" if claim.delta else "ε"
    return Terms(
        guarantee=f"{pair}-DP guarantee{replaced}",
        family=f"{pair}-differential privacy{replaced}",
        bound=f"ε < {number(epsilon)}",
        condition=condition,
        units=units,
    )


def _headline(result: AuditResult, said: Description) -> str:
    """Return the verdict in one sentence, with the noise of DP-SGD where that is bounded."""
    claim = result.claim
    if result.is_withheld:
        return (
            "Withheld: features alone tell members from non-members, so that the split was not "
            "random and correct guesses may be explained by it. Nothing is proved."
        )
    if not (said.leaks and isinstance(claim, SubsampledGaussianDP)):
        return said.headline
    condition = f"{said.terms.condition} and" if said.terms.condition else "if"
    steps = f"{claim.steps:,} step" + ("s" if claim.steps > 1 else "")
    replaced = said.terms.family.removeprefix(claim.name)
    return (
        f"This {said.subject} leaks: {condition} training is DP-SGD "
        f"(q = {claim.sampling_rate:g}, {steps}), its noise multiplier was at most "
        f"{scale_of(claim).rounded(result.bound)}, so ε ≥ {number(said.epsilon)}{_AT}{replaced} "
        f"({percent(result.confidence)} confidence)."
    )


def _evidence(result: AuditResult, said: Description) -> tuple[str, ...]:
    """Return the evidence of a valid audit, or what is missing."""
    if result.is_withheld:
        return (f"The bound is 0 because {result.reason}.",)
    terms = said.terms
    if result.refutes:
        cuts = result.options.get("cuts")  # what was read may hold anything
        fixed = isinstance(cuts, dict) and cuts.get("type") == "Fixed"
        search = "" if fixed else ", the search over the cuts of the ranking included"
        about = _asked(result) if result.path == "pairs" else "membership"
        return (
            f"{result.correct:,} of {result.guesses:,} guesses about {about} were correct. Under "
            f"any {terms.guarantee} with a smaller ε{terms.at}, evidence this strong has a chance "
            f"of at most {percent(1 - result.confidence)}{search}.",
        )
    if said.ceiling > 0:
        return (
            "This is not evidence of privacy: a stronger attack, better scores or planted canaries "
            "may still reveal leakage.",
        )
    return (f"This is not evidence of privacy: audit more {terms.units}.",)


def _asked(result: AuditResult) -> str:
    """Return what guesses within pairs, or among candidates of a secret, were about."""
    return f"which of {result.options.get('k', 'two')} was trained on"


def _first_figure(result: AuditResult, epsilon: float, ceiling: float) -> tuple[str, str, str]:
    """Return title, words and caption of the figure of bounds."""
    if isinstance(result.claim, FAMILIES):
        return (
            "ε against δ",
            f"Privacy loss ε against δ of the rejected curve: {number(epsilon)}{_AT}; a perfect "
            f"attack would reach {number(ceiling)}.",
            "The ε that the least private rejected curve of the family has at each δ, and dotted "
            "the curve that a perfect attack would have rejected.",
        )
    words = (
        f"Lower bound on ε against number of guesses: {number(result.bound)} at {result.guesses:,} "
        f"guesses; a perfect attack would reach {number(ceiling)}."
    )
    return "Bound against guesses", words, CUTS
