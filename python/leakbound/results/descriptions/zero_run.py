"""What is said of a Zero-Run audit, and its own figure."""

from dataclasses import replace

from leakbound._base.formatting import number
from leakbound._base.types import Correction
from leakbound.report.description import Description, Figure, Metric
from leakbound.results.descriptions.audit import formula, of_audit
from leakbound.results.words import scale_of
from leakbound.results.zero_run import ZeroRunResult

# How each correction comes to its bound, in a few words
HOW: dict[Correction, str] = {
    "match": "after matching",
    "poisson_binomial": "by each example's own odds",
    "tamper": "after tampering",
    "composition": "by composition",
}
# The same in a sentence, with the examples that were kept and audited
_TAKEN_OUT: dict[Correction, str] = {
    "match": "{kept} of {m:,} examples were kept so that membership is a fair coin for each",
    "poisson_binomial": "the odds that features alone give to each of {m:,} examples count against",
    "tamper": "guesses that features make likely were dropped at random, among {m:,} examples",
    "composition": "the worst that features of any of {m:,} examples may tell was taken off",
}


def describe(result: ZeroRunResult) -> Description:
    """Describe a Zero-Run audit: how shift was taken out, and what it would have claimed."""
    linear = "if log-odds of membership are linear in the features"
    condition = "" if result.learnt is None else linear
    said = of_audit(result, condition=condition)
    headline = said.headline
    if result.withheld:
        headline = (
            "Withheld: the propensities were refuted, so that correct guesses may be explained by "
            "the features alone. Nothing is proved."
        )
    overlap = Figure(
        "overlap",
        "Overlap",
        result.overlap.plot,
        "How likely features alone make each example a member. Where members and non-members "
        "overlap, a correct guess says something about the model.",
    )
    return replace(
        said,
        design="members and non-members that differ, compared by their propensities",
        headline=headline,
        paragraphs=(_evidence(result, said),),
        metrics=(*said.metrics, *_metrics(result)),
        figures=(*said.figures, overlap),
        papers=("Zero-Run",),
    )


def _evidence(result: ZeroRunResult, said: Description) -> str:
    """Say how shift was taken out, what is left, and what would have been claimed without."""
    naive = (
        "An audit that takes no account of the features would have claimed ε = "
        f"{number(result.naive)}, which is not a bound here."
    )
    tested = result.falsification
    if result.withheld and tested is not None and tested.refuted:
        return (
            "An independent model predicts membership better than the propensities allow "
            f"(p = {tested.p_value:.2g}): fit a richer one, or to more examples. {naive}"
        )
    if result.withheld and said.contradicted:
        return f"{said.contradicted[0].statement} {naive}"
    how = _TAKEN_OUT[result.correction].format(kept=_kept(result), m=result.m)
    words = [f"{result.correct:,} of {result.guesses:,} guesses count as correct; {how}."]
    if result.learnt is not None:
        words.append(
            "That is at the least favourable of all log-odds that the labels do not rule out; at "
            "the likeliest, the same test would have shown "
            f"{formula(result, result.learnt.at_estimate)}."
        )
    if result.by_tampering is not None:
        words.append(
            "Tampering with guesses in place of matching gives "
            f"{formula(result, result.by_tampering)}; reporting the larger is not covered by the "
            "stated confidence."
        )
    if not result.refutes:
        words.append("This is not evidence of privacy.")
    return " ".join([*words, naive])


def _kept(result: ZeroRunResult) -> str:
    """Return how many examples were kept: of all draws over a set of propensities, the most."""
    return f"{result.kept:,}" if result.learnt is None else f"at most {result.kept:,}"


def _metrics(result: ZeroRunResult) -> list[Metric]:
    """Return what the correction left, and what tests said."""
    metrics = [Metric("Correction", result.correction.replace("_", "-"), HOW[result.correction])]
    if result.correction == "match":
        metrics.append(Metric("Kept", f"{_kept(result)} of {result.m:,}", "after matching"))
    if result.abstained:
        metrics.append(Metric("Abstained", f"{result.abstained:,}", "their features say too much"))
    if result.bootstrap is not None:
        bounds = result.bootstrap.bounds
        note = f"bounds from {number(bounds.min())} to {number(bounds.max())}"
        metrics.append(Metric("Replicates of the propensities", f"{bounds.size:,}", note))
    if result.learnt is not None:
        estimate = scale_of(result.claim).rounded(result.learnt.at_estimate)
        metrics.append(Metric("At the estimated log-odds", estimate, "no bound"))
    if result.tested is not None:
        p_value = f"{result.tested:.2g}"
        metrics.append(Metric("Smallest p-value", p_value, "of tests of the propensities"))
    return metrics
