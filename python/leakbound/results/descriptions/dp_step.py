"""The description of a probed step of DP-SGD."""

import math
from typing import TYPE_CHECKING

from leakbound._base.formatting import down, number, percent, up
from leakbound.report import style
from leakbound.report.description import (
    Description,
    Figure,
    Levels,
    Meaning,
    Metric,
    Section,
    Terms,
)
from leakbound.results.dp_step import CLOSE, DPStepAudit, PairResult
from leakbound.results.terms import COMPARED, DELTA, NO_UPPER_LIMIT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_THEOREM_OF_STEP = (
    "Run with one seed, a step as claimed releases results on two neighbouring batches that differ "
    "by the same vector Δ whatever the seed. Its noise is N(0, s²I) in each tensor. No test of the "
    "two batches beats that of N(0, 1) against N(μ, 1), where μ² sums |Δ|²/s² over tensors. Δ is "
    "computed, and s is bounded from above by the noise of other seeds."
)
_MEANS = (
    "At the stated confidence, some pair of neighbouring batches that was run has a μ of at least "
    "the bound. A step with the stated noise multiplier has none above its claim.",
    "It is about one step, given its batch. Sampling of batches is not tested here.",
)
_NOT_MEANT = (
    NO_UPPER_LIMIT,
    "Other examples, sizes of batches or devices may show a fault that these pairs and seeds do "
    "not.",
    "An ε of a whole run follows only if every step can be given a pair like this.",
    "A generator of noise that an attacker can predict is not detected.",
)
_REASONS_OF_REFUTATION = {
    "contribution": "one example contributes more than the noise allows",
    "coupling": "the noise depends on the batch",
    "finite": "one example makes released numbers NaN or infinite",
    "normal": "the noise is not normal",
    "independent": "values of the noise depend on each other, or differ in scale within a tensor",
    "steps": "steps in a row do not have fresh noise of the same scale",
}
# Pairs that a figure names
_MOST_PAIRS_DRAWN = 12
# Bounds are drawn up to this many times the claim
_LARGEST_SHARE_DRAWN = 4.0


def describe(result: DPStepAudit) -> Description:
    """Describe a probed step: whether it is as claimed, and how much noise it has at most."""
    epsilon = result.epsilon(DELTA)
    replaced = f" for {COMPARED[result.relation]} one example"
    terms = Terms(
        guarantee=f"guarantee of Gaussian DP{replaced}",
        family="Gaussian DP",
        epsilon=epsilon,
        ceiling=epsilon,
        at=f" at δ = {DELTA:g}",
        delta=DELTA,
        own=f"μ ≥ {number(result.bound)}",
    )
    answer = ""
    if result.checked is not None:
        mu = result.checked.value
        answer = f"The claim μ = {mu:g} of a step is {result.checked.verdict}."
    return Description(
        kind=result.kind,
        confidence=result.confidence,
        warnings=result.warnings,
        claim=f"one step of DP-SGD, noise multiplier {result.stated_noise_multiplier:g}",
        design="the step itself, run on neighbouring batches with the same seeds",
        terms=terms,
        epsilon=epsilon,
        ceiling=epsilon,
        formula=f"μ ≥ {number(result.bound)}",
        verdict=result.check(),
        headline=_headline_of_step(result),
        refutes=result.bound > 0,
        leaks=bool(result.refuted_by),
        metrics=_metrics_of_step(result),
        meaning=Meaning(says=_MEANS, does_not_say=_NOT_MEANT),
        levels=_levels_of_step(result),
        figures=(
            Figure(
                name="pairs",
                title="Pairs of batches",
                draw=lambda ax: plot_pairs(result, ax),
                caption="The lower bound on μ that each pair gives, largest first. The line is the "
                "μ of the stated noise multiplier.",
            ),
        ),
        sections=(
            Section(
                title="Why it holds", paragraphs=(_THEOREM_OF_STEP,), assumptions=result.assumptions
            ),
        ),
        numbers=_numbers_of_step(result, epsilon),
        units={
            "epsilon": f"nats of one step at δ = {DELTA:g}{replaced}",
            "bound": f"μ of Gaussian DP, one step{replaced}",
        },
        title="Probe of a step of DP-SGD",
        subject="training step",
        answer=answer,
        paragraphs=_evidence_of_step(result),
        next_steps=_next_steps_of_step(result),
        contradicted=tuple(
            assumption for assumption in result.assumptions if assumption.status == "contradicted"
        ),
        claimed=result.claimed,
        shown=1,
    )


def _levels_of_step(result: DPStepAudit) -> Levels:
    """Return the bar of μ: what is ruled out, and what a pair at the claim would have shown."""
    bound_in_words, ceiling_in_words = number(result.bound), number(result.ceiling)
    names = (
        f"ruled out: μ < {bound_in_words}",
        f"within reach of a pair at the claim: up to {ceiling_in_words}",
        f"out of reach with so few runs: above {ceiling_in_words}",
    )
    return Levels(first=result.bound, second=result.ceiling, names=names)


def _headline_of_step(result: DPStepAudit) -> str:
    """Return whether the step is refuted, by what, and the noise multiplier proved."""
    confidence_in_words = percent(result.confidence)
    proved_noise = f"noise multiplier at most {up(result.noise_multiplier)}"
    if not result.is_normal:
        proved_noise += " under the claimed form, which is not a bound on leakage"
    stated_noise = f"{result.stated_noise_multiplier:g} stated"
    if result.refuted_by:
        reasons = " and ".join(_REASONS_OF_REFUTATION[part] for part in result.refuted_by)
        return (
            f"Refuted: {reasons} ({proved_noise}, {stated_noise}; {confidence_in_words} "
            "confidence)."
        )
    verdict = "Nothing contradicts the stated step"
    if result.check() == "inconclusive":
        verdict = "Inconclusive: no pair came near the claim"
    headline = f"{verdict} ({proved_noise}, {stated_noise}; {confidence_in_words} confidence)."
    if result.without_power:
        headline += f" Tests without power at this confidence: {', '.join(result.without_power)}."
    return headline


def _evidence_of_step(result: DPStepAudit) -> tuple[str, ...]:
    """Return what the worst pair shows, and what the noise of other pairs does."""
    worst_pair = next(pair for pair in result.pairs if pair.name == result.worst)
    evidence_sentences = [
        f"The step was run {result.runs:,} times, on {len(result.pairs):,} pairs of neighbouring "
        f"batches; it releases {result.values:,} values in {len(result.tensors):,} tensors.",
        f"The worst pair is “{worst_pair.name}”: {_worst_pair_in_words(result, worst_pair)}.",
    ]
    dependent_pairs = [pair for pair in result.pairs if pair.finite and pair.depends]
    if dependent_pairs:
        first_pair = dependent_pairs[0]
        noise_ratio = first_pair.scale
        if first_pair.coupled:
            noise_ratio = first_pair.factor
        other_noise = "of another law"
        if noise_ratio is not None:
            other_noise = f"{noise_ratio:.4g} times as large"
        evidence_sentences.append(
            f"In {len(dependent_pairs):,} pairs the noise depends on the batch. In "
            f"“{first_pair.name}” it is {other_noise}."
        )
        epsilon_of_scale = max(result._of_scale(DELTA), 0.0)  # noqa: SLF001 (its own description)
        if epsilon_of_scale:
            evidence_sentences.append(
                f"The scale of {result.values:,} values tells the two batches apart: "
                f"ε ≥ {number(epsilon_of_scale)} at δ = {DELTA:g} in one step."
            )
    return tuple(evidence_sentences)


def _worst_pair_in_words(result: DPStepAudit, worst_pair: PairResult) -> str:
    """Return what makes the worst pair the worst."""
    if not worst_pair.finite:
        return "one of its batches gives NaN or infinite numbers, and the other does not"
    if math.isinf(result.bound):
        return "some values that differ have no noise, or have noise on one of its batches only"
    share_of_claim = result.bound / result.claimed
    worst_in_words = (
        f"μ ≥ {number(result.bound)}, which is {down(share_of_claim)} times the μ that is claimed"
    )
    most_telling_tensor = max(result.tensors, key=lambda tensor: tensor.length)
    if most_telling_tensor.length:
        worst_in_words += f"; most of it is in {most_telling_tensor.name}"
    return worst_in_words


def _metrics_of_step(result: DPStepAudit) -> tuple[Metric, ...]:
    """Return the key numbers."""
    p_values = ", ".join(f"{name} {p:.2g}" for name, p in result.p_values.items())
    stated_noise = f"{result.stated_noise_multiplier:g} stated"
    claimed_mu = f"{number(result.claimed)} claimed"
    return (
        Metric(
            name="Noise multiplier at most", value=up(result.noise_multiplier), note=stated_noise
        ),
        Metric(name="μ of a step at least", value=number(result.bound), note=claimed_mu),
        Metric(
            name=f"ε of a step at δ = {DELTA:g}",
            value=number(result.epsilon(DELTA)),
            note="given its batch",
        ),
        Metric(name="Pairs of batches", value=f"{len(result.pairs):,}", note=result.worst),
        Metric(name="Runs", value=f"{result.runs:,}", note=f"p-values: {p_values}"),
    )


def _numbers_of_step(result: DPStepAudit, epsilon: float) -> dict[str, float]:
    """Return finite numbers by their names."""
    numbers = {
        "bound": result.bound,
        "bound_ceiling": result.ceiling,
        "epsilon": epsilon,
        "delta": DELTA,
        "noise_multiplier": result.noise_multiplier,
        "stated_noise_multiplier": result.stated_noise_multiplier,
        "refuted": float(bool(result.refuted_by)),
        "runs": float(result.runs),
        "confidence": result.confidence,
    }
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def _next_steps_of_step(result: DPStepAudit) -> tuple[str, ...]:
    """Return what to do next."""
    if result.refuted_by:
        step_by_hand = (
            f"Run the step on the pair “{result.worst}” by hand, and compare what it releases for "
            "the same seed."
        )
        if any(pair.scale is None for pair in result.pairs):
            return (
                step_by_hand,
                "If augmentation, dropout or anything else but the noise follows the seed, fix it "
                "and probe again.",
            )
        return (step_by_hand,)
    next_steps = ["Test how batches are drawn: leakbound.dp_sgd.audit_batches."]
    if result.bound < (1 - CLOSE) * result.claimed:
        next_steps.append("For a sharper bound use more runs (runs=64, 256).")
    return tuple(next_steps)


def plot_pairs(result: DPStepAudit, ax: "Axes | None" = None) -> "Axes":
    """Draw the bound of each pair, with the claim."""
    with style.house_style():
        ax = style.new_axes(ax)
        largest_pairs = sorted(result.pairs, key=lambda pair: pair.bound)[-_MOST_PAIRS_DRAWN:]
        largest_drawn = _LARGEST_SHARE_DRAWN * result.claimed
        drawn_bounds = [min(pair.bound, largest_drawn) for pair in largest_pairs]
        ax.barh(range(len(largest_pairs)), drawn_bounds, color=style.MEMBER)
        ax.set_yticks(
            range(len(largest_pairs)), [_shortened_pair_name(pair.name) for pair in largest_pairs]
        )
        ax.axvline(
            result.claimed, color=style.INK, linewidth=0.9, label=f"claim {number(result.claimed)}"
        )
        ax.legend(loc="lower right")
        style.name_axes(ax, title="Pairs of batches", x="lower bound on μ", y="", kind=result.kind)
    return ax


def _shortened_pair_name(name: str) -> str:
    if len(name) <= 30:
        return name
    return f"{name[:29]}…"
