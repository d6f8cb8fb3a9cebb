"""The description of a Zero-Run audit, with a figure of the overlap."""

from dataclasses import replace

from leakbound._base.formatting import number, percent
from leakbound._base.types import Correction, FloatArray, Strings
from leakbound.report.description import KINDS, Description, Figure, Metric, Sentences
from leakbound.results.descriptions.one_run import (
    formula,
    leading,
    of_audit,
    several,
    terms_of_audit,
)
from leakbound.results.terms import count_of_right
from leakbound.results.zero_run import ZeroRunResult

# Each correction in a few words
HOW: dict[Correction, str] = {
    "match": "after matching",
    "poisson_binomial": "with the odds of each example",
    "tamper": "after tampering",
    "composition": "by composition",
}
# How each correction works, said after what was guessed right
_CORRECTED: dict[Correction, str] = {
    "match": "All guesses are about examples that matching kept ({kept} of {m:,}): each of these "
    "was a member with probability 1/2.",
    "poisson_binomial": "The test allows for the odds of membership of each of {m:,} examples, "
    "given its features.",
    "tamper": "Right guesses that features make likely were dropped at random.",
    "composition": "The most that features of any of {m:,} examples may reveal was subtracted.",
}
# Share of the examples that fair coins are worth, below which the groups hardly overlap
_SCARCE = 0.1
_NOT_PRIVATE = "No {} is ruled out. This is not evidence of privacy."
# With one of these, counts depend on the propensities
_COUNTED: tuple[Correction, ...] = ("match", "tamper")


def describe(result: ZeroRunResult) -> Description:
    """Describe a Zero-Run audit: the correction for shift, and the bound without it."""
    said = of_audit(result, sentences(result))
    overlap = Figure(
        "overlap",
        "Overlap",
        result.overlap.plot,
        "The probability of membership given features alone. Where members and non-members "
        "overlap, a correct guess is evidence about the model.",
    )
    return replace(
        said,
        design="given members and non-members, corrected for distribution shift",
        metrics=(*said.metrics, *_metrics(result)),
        figures=(*said.figures[:1], overlap, *said.figures[1:]),
        shown=2,
        papers=("Zero-Run",),
    )


def sentences(result: ZeroRunResult) -> Sentences:
    """Return what is printed of a Zero-Run audit."""
    condition = ""
    if result.learnt is not None:
        condition = "if log-odds of membership are linear in the features"
    said = leading(result, terms_of_audit(result, condition))
    headline = said.headline
    if result.withheld:
        headline = (
            "Withheld: the data contradict the propensities. Features alone may explain the "
            "correct guesses. Nothing is proved."
        )
    return replace(said, headline=headline, paragraphs=_evidence(result, said))


def _evidence(result: ZeroRunResult, said: Sentences) -> Strings:
    """Return why nothing is proved, or what was guessed right, and what the bound depends on."""
    naive = (
        "Without the correction, the audit would have claimed "
        f"{said.terms.symbol} = {number(result.naive)}{said.terms.at}."
    )
    not_private = _NOT_PRIVATE.format(said.terms.symbol)
    why = ""
    if result.withheld:
        why = _why_withheld(result, said)
    if why:
        return (f"{why} {naive}",)
    because = ""
    if result.reason:
        because = f"The bound is 0 because {_why(result)}."
    if not result.guesses and not result.searched:
        return tuple(filter(None, [because, f"{not_private} {naive}"]))
    words = list[str]()
    if result.guesses:
        words.append(_guessed(result))
        if KINDS[result.kind].proves:
            words.append(result.searched)
        words.append(several(result))
    if result.refutes:
        words.append(
            f"If training satisfied a smaller {said.terms.parameter}, and the condition "
            "holds, results this strong would occur at most "
            f"{percent(1 - result.confidence)} of the time."
        )
    else:
        words.append(not_private)
    if result.learnt is not None:
        words.append(
            "This is the worst case over all plausible propensity models. The best-fitting model "
            f"would give {formula(result, result.learnt.at_estimate)}."
        )
    return tuple(filter(None, [because, " ".join(filter(None, [*words, naive]))]))


def _why_withheld(result: ZeroRunResult, said: Sentences) -> str:
    """Return what contradicts the propensities, if that was found by a test."""
    tested = result.falsification
    if tested is not None and tested.refuted:
        return (
            "An independent model predicts membership better than the propensities allow "
            f"(p = {tested.p_value:.2g})."
        )
    if said.contradicted:
        return said.contradicted[0].statement
    return ""


def _why(result: ZeroRunResult) -> str:
    """Return why the bound is 0: first of all that the groups hardly overlap, if they do not."""
    worth = result.overlap.m_eff
    if worth >= _SCARCE * result.m or not result.guesses:
        return result.reason
    return (
        "members and non-members hardly overlap: given their features, membership of "
        f"{result.m:,} examples is as uncertain as {worth:.1f} fair coins ({result.reason})"
    )


def _guessed(result: ZeroRunResult) -> str:
    """Return which guesses were right; over a set of propensities, in the worst case."""
    counted = "right"
    if result.correction == "tamper":
        counted = "right and count"
    right = count_of_right(
        result.correct, guesses=result.guesses, guessed=result.guessed, right=counted
    )
    if result.learnt is not None and result.correction in _COUNTED:
        right = f"Under the least favourable propensities, {right[0].lower()}{right[1:]}"
    corrected = _CORRECTED[result.correction].format(kept=_kept(result), m=result.m)
    return f"{right} {corrected}"


def _kept(result: ZeroRunResult) -> str:
    """Return how many examples were kept; over a set of propensities, at most."""
    if result.learnt is None:
        return f"{result.kept:,}"
    return f"at most {result.kept:,}"


def _refits(result: ZeroRunResult, bounds: FloatArray) -> Metric:
    """Return how far bounds of refits are apart."""
    note = f"from {formula(result, bounds.min())} to {formula(result, bounds.max())}"
    return Metric("Refits of the propensities", f"{bounds.size:,}", note)


def _metrics(result: ZeroRunResult) -> list[Metric]:
    """Return what the correction kept, and what the tests found."""
    metrics = [Metric("Correction", result.correction.replace("_", "-"), HOW[result.correction])]
    if result.correction == "match" and (result.guesses or result.searched):
        metrics.append(Metric("Kept", f"{_kept(result)} of {result.m:,}", "after matching"))
    if result.abstained:
        note = "left out: features nearly reveal membership, or have a rare value"
        metrics.append(Metric("Abstained", f"{result.abstained:,}", note))
    if result.bootstrap is not None:
        metrics.append(_refits(result, result.bootstrap.bounds))
    if result.learnt is not None:
        estimate = formula(result, result.learnt.at_estimate).replace("≥", "=")
        metrics.append(Metric("Best-fitting propensities", estimate, "not a bound"))
    if result.tested is not None:
        p_value = f"{result.tested:.2g}"
        metrics.append(Metric("Smallest p-value", p_value, "tests of the propensities"))
    return metrics
