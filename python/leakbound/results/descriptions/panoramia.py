"""The description of an audit against generated non-members."""

from dataclasses import replace
from decimal import Decimal

from leakbound._base.formatting import number
from leakbound.report.description import KINDS, Description, Drawing, Metric, Series, estimated
from leakbound.report.style import MEMBER, OTHER
from leakbound.results.descriptions import steps
from leakbound.results.descriptions.standard import CUTS, counted, figures_of, grounds, standard
from leakbound.results.descriptions.zero_run import HOW
from leakbound.results.panoramia import PanoramiaResult
from leakbound.results.words import terms_of

_REPLACED = " for replacing one example"


def describe(result: PanoramiaResult) -> Description:
    """Describe an audit against generated non-members: c, c + ε, and their difference."""
    values, condition = (result.bound, result.ceiling), KINDS[result.kind].condition
    terms = terms_of(result.claim, values, _REPLACED, condition, "examples")
    attack, baseline = result.attack, result.baseline
    series = (
        Series("with the model", "c + ε", "with the model: ", MEMBER, number(attack.bound), attack),
        Series("baseline", "c", "baseline: ", OTHER, number(baseline.bound), baseline),
    )
    figures = figures_of(Drawing(result.kind, series), ("Bound against guesses", CUTS))
    said = standard(result, attack, terms, figures)
    # Doubts about the conditional bounds are shown as well.
    others = "real" if result.options["real_nonmembers"] else "generated"
    conditionals = tuple(one.summary() for one in result.conditionals)
    doubted = (*said.contradicted, *(x for one in conditionals for x in one.contradicted))
    beside = _conditional(result)
    headline, levels, sections = said.headline, said.levels, said.sections
    # An estimate is not a bound: the bar shows c and c + ε.
    if result.kind == "estimate":
        c, both = number(result.c_lb), number(result.c_plus_epsilon_lb)
        tilde = number(result.bound)
        levels = estimated(c, result.c_lb, both, result.c_plus_epsilon_lb, tilde)
        headline = f"Estimated leakage: ε̃ = {tilde}. This is not a lower bound on ε."
        if not result.bound:
            headline = NOTHING
    if conditionals:
        shown = tuple(one for one in conditionals[0].figures if one.name == "overlap")
        title = "The conditional lower bound"
        sections = (*sections, grounds(result.conditionals[0], title, beside, figures=shown))
    return replace(
        said,
        design=f"a fair coin for each pair of a member and a {others} non-member",
        headline=headline,
        paragraphs=(_evidence(result), *((beside,) if beside else ())),
        metrics=_metrics(result, said, conditionals),
        next_steps=steps.first(steps.of_estimate(result)),
        levels=levels,
        sections=sections,
        shown=2,
        contradicted=tuple(dict.fromkeys(doubted)),
        papers=("PANORAMIA", "Zero-Run") if conditionals else ("PANORAMIA",),
    )


# The headline of an estimate of 0
NOTHING = "No leakage estimated: the attack with the model finds no more than the baseline."


def _evidence(result: PanoramiaResult) -> str:
    """Return both bounds, and what follows from them."""
    both = (
        f"The attack was right in {result.correct:,} of its {result.guesses:,} "
        f"{result.attack.guessed or 'guesses'}. Without the model, the baseline shows "
        f"c ≥ {number(result.c_lb)}; with it, the attack shows c + ε ≥ "
        f"{number(result.c_plus_epsilon_lb)}. "
    )
    if result.c_upper is not None:
        source = "real non-members" if result.c_upper == 0 else f"c at most {result.c_upper:g}"
        return f"{both}With {source}, this gives the bound on ε."
    if result.bound > 0:
        return (
            f"{both}If c is {number(result.c_lb)}, the model breaks every promise of ε < "
            f"{number(result.bound)}{_REPLACED}. If c is larger, the generator explains part or "
            "all of the difference."
        )
    return f"{both}This is not evidence of privacy."


def _conditional(result: PanoramiaResult) -> str:
    """Return what Zero-Run shows on the same examples, and on which condition."""
    results = result.conditionals
    if not results:
        return ""
    model = str(results[0].options["propensity"])
    if any(one.withheld for one in results):
        refuted = [one.tested for one in results if one.withheld and one.refuted]
        by = f" (p = {refuted[0]:.2g})" if refuted else ""
        return (
            f"Zero-Run on the same examples gives no bound, because its model of membership "
            f"({model}) was refuted{by}."
        )
    if not any(one.bound for one in results):
        return (
            "Zero-Run on the same examples gives no bound either: features and chance can explain "
            "all correct guesses."
        )
    bounds = " and ".join(f"ε ≥ {number(one.bound)} {HOW[one.correction]}" for one in results)
    tested = results[0].tested
    tried = "" if tested is None else f" Tests did not refute it (p = {tested:.2g})."
    return (
        f"Zero-Run on the same examples gives a conditional lower bound: {bounds}. It holds if "
        f"membership follows the model ({model}).{tried}"
    )


def _metrics(
    result: PanoramiaResult, said: Description, conditionals: tuple[Description, ...]
) -> tuple[Metric, ...]:
    """Return the key numbers; a note says how the first follows from the others."""
    most, c = result.c_plus_epsilon_lb, result.c_lb
    allowed = c if result.c_upper is None else result.c_upper
    difference = "0, as c + ε is no larger than c"
    if most > allowed:
        known = "c" if result.c_upper is None else f"{number(allowed)}, the limit of c"
        adds = Decimal(number(most)) - Decimal(number(allowed)) == Decimal(number(result.bound))
        difference = f"c + ε minus {known}" + ("" if adds else ", before rounding")
    name = {"estimate": "Estimate ε̃", "lower_bound": "ε at least"}.get(result.kind, "ε")
    withheld = "withheld: propensities refuted"
    return (
        Metric(name, number(result.bound), f"{KINDS[result.kind].tag}; {difference}"),
        Metric("c + ε at least", number(most), "attack, with the model"),
        Metric("c at least", number(c), "baseline, without the model"),
        *(
            Metric(
                "Conditionally, ε at least",
                number(one.epsilon),
                withheld if part.withheld else HOW[part.correction],
            )
            for one, part in zip(conditionals, result.conditionals, strict=True)
        ),
        *counted(result, result.attack, said.terms, f"baseline {result.baseline.auc:.3f}"),
    )
