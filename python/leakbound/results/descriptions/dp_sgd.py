"""What is said of an audited training run with DP-SGD."""

import math
from dataclasses import replace

from leakbound._base.formatting import number, percent, up
from leakbound.claims import FAMILIES
from leakbound.report.description import Description, Meaning, Metric, Section, Terms
from leakbound.report.parts import Assumption
from leakbound.results.descriptions.audit import of_audit
from leakbound.results.descriptions.standard import grounds, levels_of
from leakbound.results.dp_sgd import DPSGDAudit, SamplingResult, StepsResult
from leakbound.results.words import NO_UPPER_LIMIT

_STEPS_THEOREM = (
    "Given the batches and all other coins, the coin of a canary in one step moves the sum of that "
    "step by at most one clipped gradient, and nothing else. So no test tells its two sides apart "
    "better than N(0, s²) and N(1, s²), s the noise multiplier of that step, and the coins of all "
    "canaries in all steps are one game with a trade-off function."
)
_BETTING_THEOREM = (
    "Given everything before a step, the coins of its canaries are fair, and no test tells the two "
    "sides of one better than N(0, s²) and N(1, s²). So a bet on the number of correct guesses, "
    "fixed before training, gains nothing on average if the step has noise multiplier s or more, "
    "and reaches 1/p times what it began with only with probability p (Ville 1939)."
)
_NOISE_THEOREM = (
    "Given everything before it, a released value is a mean plus Gaussian noise of standard "
    "deviation s or more. Let R be such a value less what the past predicts of it, and λ be fixed "
    "before training: exp(-λ R²) (1 + 2 λ s²)^(1/2) is at most 1 on average, so that the product "
    "over all values reaches 1/p with probability p at most (Ville 1939), whenever the run ends."
)
_NOISE_ASSUMPTION = Assumption(
    "Gaussian noise",
    "Each step adds fresh Gaussian noise, and its noisy sum is released on the scale that the "
    "optimizer states, without further processing.",
    "declared",
)
_BY_TEST = {
    "noise": "Squares of the released noise say so, if it is fresh Gaussian noise on the scale "
    "that the optimizer states; they say nothing of clipping.",
    "coins": "Guesses about coins of canaries say so, which see noise and clipping together.",
}
_MEANS = (
    "No guarantee whose ε is below what is proved holds for the run that was watched, all noisy "
    "gradients released, at the stated confidence."
)
_CONVERTED = "The ε of membership is a conversion, within {}."
_NOT_MEANT = (
    NO_UPPER_LIMIT,
    "It is about a run whose noisy gradients are all released: the final model may leak less.",
    "It sees what happens to gradients once there is one for each example. Whatever mixes examples "
    "before that, or treats parameters of the model unlike the watcher's, is not seen.",
)
_BETTING_ASSUMPTION = Assumption(
    "coins of steps",
    "Each canary has a fair coin of its own for each step, drawn from a seed that training does "
    "not know; before that step's sum nothing depends on it.",
    "declared",
)


def describe(result: DPSGDAudit) -> Description:
    """Describe an audited run: the verdict is on the mechanism as stated, ε that of membership."""
    # 1. Membership, beside the accountant's ε where nothing else was claimed.
    membership, steps, at = result.membership, result.steps, f" at δ = {result.delta:g}"
    checked, stated = result.checked, result.accounted
    if checked is None and stated is not None:
        checked = membership.with_check(epsilon=stated.epsilon, delta=stated.delta).checked
    said, proved = of_audit(replace(membership, checked=checked)), result.epsilon()
    # 2. ε at the accountant's δ, and what a perfect attack would have proved there.
    name, family = membership.claim.name, isinstance(membership.claim, FAMILIES)
    within, ceiling, means = "", membership.ceiling, [_MEANS]
    if family:
        perfect = membership.rejectable
        ceiling = 0.0 if perfect is None else float(perfect.epsilon(result.delta))
        within, means = f" within {name}", [_MEANS, _CONVERTED.format(name)]
    # 3. Grounds of each of the three audits.
    sections = (
        grounds(membership, "Membership: why it holds"),
        *_grounds(steps),
        Section("Sampling", (_of_sampling(result.sampling),), _assumed(result.sampling)),
    )
    doubted = (x for one in sections for x in one.assumptions if x.status == "contradicted")
    terms = Terms(f"guarantee of {name}", name, proved, ceiling, at)
    return replace(
        said,
        title="Audit of a training run with DP-SGD",
        warnings=result.warnings,
        confidence=result.confidence,
        claim=f"DP-SGD, {name}",
        terms=terms,
        epsilon=proved,
        ceiling=ceiling,
        formula=f"ε ≥ {number(proved)}",
        verdict="refuted" if result.refuted_by else "not refuted",
        refutes=proved > 0,
        leaks=bool(result.refuted_by),
        headline=_headline(result, within),
        paragraphs=_evidence(result, proved, within),
        metrics=_metrics(result, proved, at),
        meaning=Meaning(tuple(means), _NOT_MEANT),
        levels=levels_of(terms, proves=True),
        sections=sections,
        numbers=said.numbers | {"epsilon": proved, "epsilon_ceiling": ceiling},
        contradicted=tuple(dict.fromkeys(doubted)),
        claimed=checked.value if checked is not None and checked.delta == result.delta else None,
        papers=(),
    )


def _headline(result: DPSGDAudit, within: str) -> str:
    """Return what is refuted, what was accounted, which proved ε to quote, and why."""
    sure = f"({percent(result.confidence)} confidence)"
    verdict = "Nothing contradicts the mechanism as stated"
    if result.refuted_by:
        listed = " and ".join(result.refuted_by)
        verdict = f"Refuted, by {listed}: this run is not the mechanism stated {sure}"
    accounted = "" if result.accounted is None else f", accounted {result.accounted.name}"
    quoted = f"Quote ε ≥ {number(result.epsilon())} at δ = {result.delta:g}{within} {sure}"
    return f"{verdict}{accounted}. {quoted}: membership, which is measured end to end."


def _evidence(result: DPSGDAudit, proved: float, within: str) -> tuple[str, ...]:
    """Return what each part says: membership, steps, sampling, and wrong arithmetic."""
    membership = result.membership
    why = f" Nothing, because {membership.reason}." if membership.reason else ""
    said = [
        f"Membership: of {membership.guesses:,} guesses about {membership.m:,} canaries "
        f"{membership.correct:,} were correct, which proves ε ≥ {number(proved)} at δ = "
        f"{result.delta:g}{within}.{why}",
        f"Steps: {_of_steps(result.steps, result.delta)}",
        f"Sampling: {_of_sampling(result.sampling)}",
    ]
    if "accounting" in result.refuted_by and result.accounted is not None:
        said.append(
            f"Accounting: the accountant says {result.accounted.name}, and a test of the mechanism "
            f"as stated attains ε = {number(result.attainable or 0.0)} at that δ."
        )
    return tuple(said)


def _metrics(result: DPSGDAudit, proved: float, at: str) -> tuple[Metric, ...]:
    """Return accounted and proved ε, noise, and rate."""
    steps, sampling, stated = result.steps, result.sampling, result.accounted
    metrics = []
    if stated is not None:
        metrics = [Metric(f"ε accounted{at}", f"{stated.epsilon:.4g}", stated.source or "stated")]
    metrics.append(Metric(f"ε from membership{at}", number(proved), "to quote: end to end"))
    if not steps.varies:
        note = f"computed, if the noise is constant, at {_rate(steps)}"
        metrics.append(Metric(f"ε from steps{at}", number(steps.epsilon(result.delta)), note))
    noise = f"of some step; {steps.noise_multiplier:.4g} stated"
    rate = f"{sampling.sampling_rate:.4g} stated"
    guesses = f"{result.membership.correct:,} of {result.membership.guesses:,}"
    return (
        *metrics,
        Metric("Noise multiplier at most", up(steps.bound), noise),
        Metric("Sampling rate", sampling.limits or "not tested", rate),
        Metric("Correct guesses", guesses, "membership"),
        Metric("Steps", f"{steps.steps:,}", f"{result.max_steps:,} declared"),
    )


def _rate(steps: StepsResult) -> str:
    """Return the rate that ε is converted at, and whether it is just what was claimed."""
    said = "the stated rate of" if steps.rate_source == "stated" else "rate"
    return f"{said} {steps.sampling_rate:.4g} or more"


def _of_steps(steps: StepsResult, delta: float) -> str:
    """Return what is proved about noise, and about ε if the noise is constant."""
    if math.isinf(steps.bound):
        return "Nothing is proved about the noise of any step."
    noise = (
        f"With {percent(steps.confidence)} confidence some step's noise multiplier is at most "
        f"{up(steps.bound)}; the optimizer stated {steps.noise_multiplier:.4g}"
    )
    by = _BY_TEST[steps.test]
    if steps.test == "noise" and math.isfinite(steps.by_coins):
        by += f" Guesses about coins, which need none of that, prove at most {up(steps.by_coins)}."
    if steps.noise.reason:
        by += f" Squares of the released noise were left out: {steps.noise.reason}."
    if steps.varies:
        return f"{noise} at least, and several values, so that no ε follows. {by}"
    return (
        f"{noise}. {by} If the run is {steps.steps:,} steps of one noise multiplier on Poisson "
        f"samples at {_rate(steps)}, all noisy gradients released, then ε ≥ "
        f"{number(steps.epsilon(delta))} at δ = {delta:g}, adding or removing one example."
    )


def _grounds(steps: StepsResult) -> tuple[Section, ...]:
    """Return why the bound on noise holds: for its squares, for bets, and for one game."""
    title = "Steps: why one game of all coins holds"
    game = grounds(steps.game, title, _STEPS_THEOREM, figures=of_audit(steps.game).figures)
    bets, noise = steps.betting, steps.noise
    spread = (
        f"The noise in {noise.values:,} released values has a root mean square of "
        f"{noise.deviation:.4g} clipping norms, which proves that some step's is at most "
        f"{up(noise.bound)}."
    )
    squares = Section("Steps: why squares hold", (spread, _NOISE_THEOREM), (_NOISE_ASSUMPTION,))
    guessed = (
        f"Of {bets.guesses:,} guesses about the {bets.coins:,} coins of each of "
        f"{bets.steps:,} steps {percent(bets.correct / bets.guesses / bets.steps)} were correct."
    )
    why = Section("Steps: why bets hold", (guessed, _BETTING_THEOREM), (_BETTING_ASSUMPTION,))
    return (why, game) if noise.reason else (squares, why, game)


def _of_sampling(sampling: SamplingResult) -> str:
    """Return what the sizes of the batches say."""
    if sampling.reason:
        return f"Sizes of batches were not tested: {sampling.reason}."
    low, high = sampling.least_examples, sampling.most_examples
    examples, mean = f"{low:,}", f"{sampling.sampling_rate * low:.1f}"
    if low != high:
        examples += f" to {high:,}"
        mean += f" to {sampling.sampling_rate * high:.1f}"
    seen = (
        f"{sampling.batches:,} batches of {sampling.mean:.1f} examples on average, variance "
        f"{sampling.variance:.1f}; Poisson samples of {examples} examples at rate "
        f"{sampling.sampling_rate:g} have {mean}, variance {sampling.expected_variance:.1f}"
    )
    if not sampling.refutes:
        stated = "" if sampling.limits else "; the rate is only stated: pass examples=len(dataset)"
        return f"{seen}: nothing speaks against it{stated}."
    wrong = []
    if sampling.largest > high:
        wrong.append(f"a batch has {sampling.largest:,} examples, more than there are")
    elif 2 * sampling.p_mean <= 1 - sampling.confidence:
        limits = f"; it is {sampling.limits}, if samples are Poisson" if sampling.limits else ""
        wrong.append(
            f"the rate is not {sampling.sampling_rate:g} (p = {sampling.p_mean:.2g}{limits})"
        )
    if 2 * sampling.p_variance <= 1 - sampling.confidence:
        how = "too much alike" if sampling.variance < sampling.expected_variance else "too unlike"
        wrong.append(f"sizes are {how} for Poisson sampling (p = {sampling.p_variance:.2g})")
    return f"{seen}. Refuted: {', and '.join(wrong)}."


def _assumed(sampling: SamplingResult) -> tuple[Assumption, ...]:
    """Return what the rate assumes."""
    return (
        Assumption(
            "Poisson sampling",
            f"An example is in a batch with probability {sampling.sampling_rate:g}, by itself. "
            "Sizes of batches show fixed sizes, and a wrong rate where the number of examples is "
            "known; which examples are in them is not seen.",
            "contradicted"
            if sampling.refutes
            else ("checked" if sampling.limits else "unverifiable"),
        ),
        Assumption(
            "number of steps",
            "The number of steps does not depend on the sizes of batches.",
            "declared",
        ),
    )
