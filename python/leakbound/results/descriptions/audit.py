"""What is said of an audit with random inclusion."""

from __future__ import annotations

from dataclasses import replace

from leakbound._base.formatting import number, percent
from leakbound.claims import FAMILIES, SubsampledGaussianDP, replacing
from leakbound.report.description import KINDS, Description, Drawing, Metric, Series
from leakbound.report.style import MEMBER
from leakbound.results.descriptions.standard import CUTS, counted, figures_of, standard
from leakbound.results.one_run import AuditResult, as_epsilon
from leakbound.results.words import AT, DELTA, PATHS, scale_of, terms_of

_PROFILE = (
    "The ε that the least private rejected curve of the family has at each δ, and dotted the curve "
    "that a perfect attack would have rejected."
)


def describe(result: AuditResult) -> Description:
    """Describe an audit with random inclusion."""
    return of_audit(result)


def of_audit(result: AuditResult, *, subject: str = "model", condition: str = "") -> Description:
    """Describe an audit of a `subject`; the bound may hold on a condition."""
    # 1. The bound as an ε: of a family at δ = 1e-5, by the rejected curve.
    unit, claim, kind = result.options.get("unit", "example"), result.claim, KINDS[result.kind]
    replaced = f" for replacing one {unit}" if result.relation == "replace" else ""
    values = (
        as_epsilon(claim, result.bound, result.rejected),
        as_epsilon(claim, result.ceiling, result.rejectable),
    )
    family = isinstance(claim, FAMILIES)
    # 2. What every audit of one ranking says.
    terms = terms_of(claim, values, replaced, condition or kind.condition, f"{unit}s")
    scale = scale_of(claim)
    bound = scale.rounded(result.bound)
    drawn = bound if family else number(result.bound)
    series = Series(f"this {subject}", scale.name, "", MEMBER, drawn, result, terms.units)
    said = standard(
        result,
        result,
        terms,
        figures_of(
            Drawing(result.kind, (series,), family, result.rejected, result.rejectable),
            ("ε against δ", _PROFILE) if family else ("Bound against guesses", CUTS),
        ),
        subject=subject,
        withheld=result.is_withheld,
    )
    # 3. The key numbers: first the family's own parameter, then ε.
    own = f"{scale.name} {scale.limit}" if kind.proves else scale.name
    ranked = f"{_asked(result)}, largest margin first"
    asked = ranked if result.options.get("design") == "choices" else PATHS[result.path]
    metrics = (
        *said.metrics,
        *((Metric(own, bound, claim.name),) if family else ()),
        Metric(
            ("ε at least" if kind.proves else "ε") + terms.at,
            number(terms.epsilon),
            kind.tag + replaced,
        ),
        Metric(
            "Ceiling" + terms.at, number(terms.ceiling), f"a perfect attack, same {terms.units}"
        ),
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
    """Return the claimed ε where the axis of the bound has it: at its δ and of its relation."""
    one, family = result.checked, isinstance(result.claim, FAMILIES)
    if one is None or one.delta is None or (family and one.delta != DELTA):
        return None
    crosses = result.relation == "replace" and one.compares == "add_remove"
    if crosses:
        return None if family else replacing(one.value, one.delta)[0]
    return one.value


def formula(result: AuditResult, bound: float) -> str:
    """Return a bound on the claim's parameter with its sign."""
    if not isinstance(result.claim, FAMILIES):
        return f"ε ≥ {number(bound)}"
    return scale_of(result.claim).formula(bound)


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
    return (
        f"This {said.subject} leaks: {condition} training is DP-SGD "
        f"(q = {claim.sampling_rate:g}, {steps}), its noise multiplier was at most "
        f"{scale_of(claim).rounded(result.bound)}, so ε ≥ {number(said.epsilon)}{AT}"
        f"{said.terms.replaced} ({percent(result.confidence)} confidence)."
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
