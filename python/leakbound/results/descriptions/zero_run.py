"""The description of a Zero-Run audit, with a figure of the overlap."""

from dataclasses import replace

from leakbound._base.formatting import number, percent
from leakbound._base.types import Correction, FloatArray, Strings
from leakbound.report.description import KINDS, Description, Figure, Metric, Sentences
from leakbound.results.descriptions.one_run import (
    description_of_audit,
    formula,
    leading_sentences,
    sentence_about_attacks,
    terms_of_audit,
)
from leakbound.results.terms import sentence_about_right_guesses
from leakbound.results.zero_run import ZeroRunResult

# Each correction in a few words
HOW: dict[Correction, str] = {
    "match": "after matching",
    "poisson_binomial": "with the odds of each example",
    "tamper": "after tampering",
    "composition": "by composition",
}
# How each correction works, said after what was guessed right
_SENTENCES_ABOUT_CORRECTION: dict[Correction, str] = {
    "match": "All guesses are about examples that matching kept ({kept} of {m:,}): each of these "
    "was a member with probability 1/2.",
    "poisson_binomial": "The test allows for the odds of membership of each of {m:,} examples, "
    "given its features.",
    "tamper": "Right guesses that features make likely were dropped at random.",
    "composition": "The most that features of any of {m:,} examples may reveal was subtracted.",
}
# Share of the examples that fair coins are worth, below which the groups hardly overlap
_HARDLY_ANY_OVERLAP = 0.1
_NOT_PRIVATE = "No {} is ruled out. This is not evidence of privacy."
# With one of these, counts depend on the propensities
_CORRECTIONS_BY_PROPENSITY: tuple[Correction, ...] = ("match", "tamper")


def describe(result: ZeroRunResult) -> Description:
    """Describe a Zero-Run audit: the correction for shift, and the bound without it."""
    description = description_of_audit(result, sentences(result))
    overlap = Figure(
        "overlap",
        "Overlap",
        result.overlap.plot,
        "The probability of membership given features alone. Where members and non-members "
        "overlap, a correct guess is evidence about the model.",
    )
    return replace(
        description,
        design="given members and non-members, corrected for distribution shift",
        metrics=(*description.metrics, *_metrics_of_zero_run(result)),
        figures=(*description.figures[:1], overlap, *description.figures[1:]),
        shown=2,
        papers=("Zero-Run",),
    )


def sentences(result: ZeroRunResult) -> Sentences:
    """Return what is printed of a Zero-Run audit."""
    condition = ""
    if result.learnt is not None:
        condition = "if log-odds of membership are linear in the features"
    zero_run_sentences = leading_sentences(result, terms_of_audit(result, condition))
    headline = zero_run_sentences.headline
    if result.withheld:
        headline = (
            "Withheld: the data contradict the propensities. Features alone may explain the "
            "correct guesses. Nothing is proved."
        )
    return replace(
        zero_run_sentences,
        headline=headline,
        paragraphs=_evidence_of_zero_run(result, zero_run_sentences),
    )


def _evidence_of_zero_run(result: ZeroRunResult, zero_run_sentences: Sentences) -> Strings:
    """Return why nothing is proved, or what was guessed right, and what the bound depends on."""
    sentence_without_correction = (
        "Without the correction, the audit would have claimed "
        f"{zero_run_sentences.terms.symbol} = {number(result.naive)}{zero_run_sentences.terms.at}."
    )
    not_private = _NOT_PRIVATE.format(zero_run_sentences.terms.symbol)
    why_withheld = ""
    if result.withheld:
        why_withheld = _why_zero_run_is_withheld(result, zero_run_sentences)
    if why_withheld:
        return (f"{why_withheld} {sentence_without_correction}",)
    why_zero = ""
    if result.reason:
        why_zero = f"The bound is 0 because {_why_bound_is_zero(result)}."
    if not result.guesses and not result.searched:
        return tuple(filter(None, [why_zero, f"{not_private} {sentence_without_correction}"]))
    evidence_sentences = list[str]()
    if result.guesses:
        evidence_sentences.append(_sentence_about_guesses(result))
        if KINDS[result.kind].proves:
            evidence_sentences.append(result.searched)
        evidence_sentences.append(sentence_about_attacks(result))
    if result.refutes:
        evidence_sentences.append(
            f"If training satisfied a smaller {zero_run_sentences.terms.parameter}, and the "
            "condition holds, results this strong would occur at most "
            f"{percent(1 - result.confidence)} of the time."
        )
    else:
        evidence_sentences.append(not_private)
    if result.learnt is not None:
        evidence_sentences.append(
            "This is the worst case over all plausible propensity models. The best-fitting model "
            f"would give {formula(result, result.learnt.at_estimate)}."
        )
    return tuple(
        filter(
            None,
            [why_zero, " ".join(filter(None, [*evidence_sentences, sentence_without_correction]))],
        )
    )


def _why_zero_run_is_withheld(result: ZeroRunResult, zero_run_sentences: Sentences) -> str:
    """Return what contradicts the propensities, if that was found by a test."""
    falsification_test = result.falsification
    if falsification_test is not None and falsification_test.refuted:
        return (
            "An independent model predicts membership better than the propensities allow "
            f"(p = {falsification_test.p_value:.2g})."
        )
    if zero_run_sentences.contradicted:
        return zero_run_sentences.contradicted[0].statement
    return ""


def _why_bound_is_zero(result: ZeroRunResult) -> str:
    """Return why the bound is 0: first of all that the groups hardly overlap, if they do not."""
    effective_examples = result.overlap.m_eff
    if effective_examples >= _HARDLY_ANY_OVERLAP * result.m or not result.guesses:
        return result.reason
    return (
        f"members and non-members hardly overlap: given their features, membership of {result.m:,} "
        f"examples is as uncertain as {effective_examples:.1f} fair coins ({result.reason})"
    )


def _sentence_about_guesses(result: ZeroRunResult) -> str:
    """Return which guesses were right; over a set of propensities, in the worst case."""
    counted = "right"
    if result.correction == "tamper":
        counted = "right and count"
    sentence = sentence_about_right_guesses(
        result.correct, guesses=result.guesses, guessed=result.guessed, right=counted
    )
    if result.learnt is not None and result.correction in _CORRECTIONS_BY_PROPENSITY:
        sentence = f"Under the least favourable propensities, {sentence[0].lower()}{sentence[1:]}"
    sentence_about_correction = _SENTENCES_ABOUT_CORRECTION[result.correction].format(
        kept=_matched_examples(result), m=result.m
    )
    return f"{sentence} {sentence_about_correction}"


def _matched_examples(result: ZeroRunResult) -> str:
    """Return how many examples were kept; over a set of propensities, at most."""
    if result.learnt is None:
        return f"{result.kept:,}"
    return f"at most {result.kept:,}"


def _metric_of_refits(result: ZeroRunResult, bounds: FloatArray) -> Metric:
    """Return how far bounds of refits are apart."""
    note = f"from {formula(result, bounds.min())} to {formula(result, bounds.max())}"
    return Metric("Refits of the propensities", f"{bounds.size:,}", note)


def _metrics_of_zero_run(result: ZeroRunResult) -> list[Metric]:
    """Return what the correction kept, and what the tests found."""
    metrics = [Metric("Correction", result.correction.replace("_", "-"), HOW[result.correction])]
    if result.correction == "match" and (result.guesses or result.searched):
        metrics.append(
            Metric("Kept", f"{_matched_examples(result)} of {result.m:,}", "after matching")
        )
    if result.abstained:
        note = "left out: features nearly reveal membership, or have a rare value"
        metrics.append(Metric("Abstained", f"{result.abstained:,}", note))
    if result.bootstrap is not None:
        metrics.append(_metric_of_refits(result, result.bootstrap.bounds))
    if result.learnt is not None:
        best_fitting_bound = formula(result, result.learnt.at_estimate).replace("≥", "=")
        metrics.append(Metric("Best-fitting propensities", best_fitting_bound, "not a bound"))
    if result.tested is not None:
        p_value = f"{result.tested:.2g}"
        metrics.append(Metric("Smallest p-value", p_value, "tests of the propensities"))
    return metrics
