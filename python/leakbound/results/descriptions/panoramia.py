"""The description of an audit against generated non-members."""

from dataclasses import replace
from decimal import Decimal

from leakbound._base.formatting import number
from leakbound.report.description import (
    KINDS,
    Description,
    Drawing,
    Levels,
    Metric,
    Series,
    estimated,
)
from leakbound.report.style import MEMBER, OTHER
from leakbound.results.descriptions import next_steps
from leakbound.results.descriptions.shared import (
    closing_metrics,
    figures_of,
    section_of_grounds,
    sentences_of,
    standard_description,
)
from leakbound.results.descriptions.zero_run import HOW
from leakbound.results.panoramia import PanoramiaResult
from leakbound.results.terms import sentence_about_right_guesses, terms_of
from leakbound.results.wording import PAIRS

_REPLACED = " for replacing one example"


def describe(result: PanoramiaResult) -> Description:
    """Describe an audit against generated non-members: c, c + ε, and their difference."""
    values = (result.bound, result.ceiling)
    condition = KINDS[result.kind].condition
    terms = terms_of(
        result.claim, values=values, replaced=_REPLACED, condition=condition, units="examples"
    )
    drawing = Drawing(kind=result.kind, series=_series_of_both_rankings(result))
    others = "generated"
    if result.options["real_nonmembers"]:
        others = "real"
    drawn = f"a fair coin for each pair of a member and a {others} non-member"
    wording = replace(PAIRS, drawn=drawn)
    sentences = sentences_of(result, result.attack, terms, wording)
    said = standard_description(
        result, sentences, ranking=result.attack, figures=figures_of(drawing), wording=wording
    )
    # Doubts about the conditional bounds are shown as well.
    conditionals = tuple(one.summary() for one in result.conditionals)
    doubted = (*said.contradicted, *(x for one in conditionals for x in one.contradicted))
    headline = said.headline
    paragraphs = [_evidence_of_panoramia(result)]
    beside = _sentence_about_zero_run(result)
    if beside:
        paragraphs.append(beside)
    levels = said.levels
    sections = said.sections
    papers = ["PANORAMIA"]
    # An estimate is not a bound: the bar shows c and c + ε.
    if result.kind == "estimate":
        tilde = number(result.bound)
        levels = _levels_of_estimate(result)
        headline = f"Estimated leakage: ε̃ = {tilde}. This is not a lower bound on ε."
        if not result.bound:
            headline = NOTHING
    if conditionals:
        shown = tuple(one for one in conditionals[0].figures if one.name == "overlap")
        title = "The conditional lower bound"
        papers.append("Zero-Run")
        sections = (
            *sections,
            section_of_grounds(result.conditionals[0], title, beside, figures=shown),
        )
    return replace(
        said,
        headline=headline,
        paragraphs=tuple(paragraphs),
        metrics=_metrics_of_panoramia(result, said=said, conditionals=conditionals),
        next_steps=next_steps.most_urgent_steps(next_steps.steps_after_estimate(result)),
        levels=levels,
        sections=sections,
        shown=2,
        contradicted=tuple(dict.fromkeys(doubted)),
        papers=tuple(papers),
    )


def _series_of_both_rankings(result: PanoramiaResult) -> tuple[Series, Series]:
    """Return what figures draw of both rankings."""
    attack = result.attack
    baseline = result.baseline
    return (
        Series(
            name="with the model",
            symbol="c + ε",
            prefix="with the model: ",
            colour=MEMBER,
            bound=number(attack.bound),
            ranking=attack,
        ),
        Series(
            name="baseline",
            symbol="c",
            prefix="baseline: ",
            colour=OTHER,
            bound=number(baseline.bound),
            ranking=baseline,
        ),
    )


def _levels_of_estimate(result: PanoramiaResult) -> Levels:
    """Return the bar of an estimate: c, and c + ε."""
    both = result.c_plus_epsilon_lb
    return estimated(
        number(result.c_lb),
        c_lb=result.c_lb,
        both=number(both),
        both_lb=both,
        epsilon=number(result.bound),
    )


# The headline of an estimate of 0
NOTHING = "No leakage estimated: the attack with the model finds no more than the baseline."


def _evidence_of_panoramia(result: PanoramiaResult) -> str:
    """Return both bounds, and what follows from them."""
    right = sentence_about_right_guesses(
        result.correct, guesses=result.guesses, guessed=result.attack.guessed
    )
    of_baseline = number(result.baseline.bound)
    both = (
        f"{right} Without the model, the baseline shows c ≥ {of_baseline}; with it, the "
        f"attack shows c + ε ≥ {number(result.c_plus_epsilon_lb)}. "
    )
    if result.c_upper is not None:
        source = "real non-members"
        if result.c_upper != 0:
            source = f"c at most {result.c_upper:g}"
        return f"{both}With {source}, this gives the bound on ε."
    if result.bound > 0:
        return (
            f"{both}If c is {number(result.c_lb)}, every ε < {number(result.bound)} is ruled out"
            f"{_REPLACED}. If c is larger, the generator explains part or all of the difference."
        )
    return f"{both}This is not evidence of privacy."


def _sentence_about_zero_run(result: PanoramiaResult) -> str:
    """Return what Zero-Run shows on the same examples, and on which condition."""
    results = result.conditionals
    if not results:
        return ""
    model_of_membership = str(results[0].options["propensity"])
    if any(one.withheld for one in results):
        refuted_p_values = [one.tested for one in results if one.withheld and one.refuted]
        with_p_value = ""
        if refuted_p_values:
            with_p_value = f"; p = {refuted_p_values[0]:.2g}"
        return (
            "Zero-Run on the same examples gives no bound, because the data contradict its "
            f"propensities ({model_of_membership}{with_p_value})."
        )
    if not any(one.bound for one in results):
        return (
            "Zero-Run on the same examples gives no bound either: features and chance can explain "
            "all correct guesses."
        )
    proved_bounds = "a conditional lower bound"
    they_hold = "It holds"
    if len(results) > 1:
        proved_bounds = "two conditional lower bounds, by two methods"
        they_hold = "They hold"
    bounds_in_words = " and ".join(
        f"ε ≥ {number(one.bound)} {HOW[one.correction]}" for one in results
    )
    smallest_p_value = results[0].tested
    sentence_about_tests = ""
    if smallest_p_value is not None:
        sentence_about_tests = (
            f" The data do not contradict these odds (p = {smallest_p_value:.2g})."
        )
    return (
        f"Zero-Run on the same examples gives {proved_bounds}: {bounds_in_words}. {they_hold} if "
        f"the odds of membership are right ({model_of_membership}).{sentence_about_tests}"
    )


def _metrics_of_panoramia(
    result: PanoramiaResult, said: Description, conditionals: tuple[Description, ...]
) -> tuple[Metric, ...]:
    """Return the key numbers; a note says how the first follows from the others."""
    most = result.c_plus_epsilon_lb
    c = result.c_lb
    allowed = c
    if result.c_upper is not None:
        allowed = result.c_upper
    difference = "0, as c + ε is no larger than c"
    if most > allowed:
        known = "c"
        if result.c_upper is not None:
            known = f"{number(allowed)}, the limit of c"
        adds = Decimal(number(most)) - Decimal(number(allowed)) == Decimal(number(result.bound))
        difference = f"the bound on c + ε minus that on {known}"
        if not adds:
            difference += ", before rounding"
    name = {"estimate": "Estimate ε̃", "lower_bound": "ε at least"}.get(result.kind, "ε")
    on_condition = []
    for one, part in zip(conditionals, result.conditionals, strict=True):
        note = HOW[part.correction]
        if part.withheld:
            note = "withheld: the data contradict the propensities"
        name_of = "Conditionally, ε at least"
        on_condition.append(Metric(name=name_of, value=number(one.epsilon), note=note))
    return (
        Metric(
            name=name, value=number(result.bound), note=f"{KINDS[result.kind].tag}; {difference}"
        ),
        Metric(name="c + ε at least", value=number(most), note="attack, with the model"),
        Metric(
            name="c at least",
            value=number(result.baseline.bound),
            note="baseline, without the model",
        ),
        _metric_of_baseline(result),
        *on_condition,
        *closing_metrics(
            result,
            ranking=result.attack,
            terms=said.terms,
            wording=PAIRS,
            auc=f"baseline {result.baseline.auc:.3f}",
        ),
    )


def _metric_of_baseline(result: PanoramiaResult) -> Metric:
    """Return how well an attack that never sees the model tells who is a member."""
    blind = result.blind_baseline
    note = "baseline guesses, right without the model: due to the generator"
    if result.options.get("real_nonmembers"):
        note = "baseline guesses, right without the model; half if the split was random"
    return Metric("Blind baseline", f"{blind.right:,} of {blind.guesses:,}", note)
