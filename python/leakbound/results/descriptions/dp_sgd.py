"""The description of an audited training run with DP-SGD."""

import math
from dataclasses import replace

from leakbound._base.formatting import number, percent, share, up
from leakbound.claims import FAMILIES
from leakbound.report.description import Description, Meaning, Metric, Section, Terms
from leakbound.report.parts import Assumption
from leakbound.results.descriptions.audit import bracketed, of_audit
from leakbound.results.descriptions.standard import grounds, levels_of, units_of
from leakbound.results.descriptions.steps import first, of_run
from leakbound.results.dp_sgd import DPSGDAudit, SamplingResult, StepsResult
from leakbound.results.words import NO_UPPER_LIMIT, scale_of

_STEPS_THEOREM = (
    "Given the batches and all other coins, the coin of a canary in one step changes the sum of "
    "that step by at most one clipped gradient, and nothing else. No test distinguishes heads "
    "from tails better than N(0, s²) from N(1, s²), where s is the noise multiplier of that step. "
    "The coins of all canaries in all steps are therefore one game with a trade-off function."
)
_BETTING_THEOREM = (
    "Given everything before a step, the coins of its canaries are fair, and no test tells heads "
    "from tails better than N(0, s²) from N(1, s²). A bet on the number of correct guesses, fixed "
    "before training, gains nothing on average if the noise multiplier of the step is s or more. "
    "It reaches 1/p times its stake with probability at most p (Ville 1939)."
)
_NOISE_THEOREM = (
    "Given everything before it, a released value is a mean plus Gaussian noise of standard "
    "deviation s or more. Let R be the value minus its prediction from the past, and fix λ before "
    "training. Then exp(-λ R²) (1 + 2 λ s²)^(1/2) is at most 1 on average, so the product over all "
    "values reaches 1/p with probability at most p (Ville 1939), whenever the run ends."
)
_NOISE_ASSUMPTION = Assumption(
    "Gaussian noise",
    "Each step adds fresh Gaussian noise, and releases the noisy sum on the scale that the "
    "optimizer states, without further processing.",
    "declared",
)
_MEANS = (
    "At the stated confidence, no guarantee with a smaller ε than the one proved holds for this "
    "run, if all noisy gradients are released."
)
_CONVERTED = "ε is converted from the bound on membership, within {}."
_NOT_MEANT = (
    NO_UPPER_LIMIT,
    "It is about a run that releases all noisy gradients. The final model may leak less.",
    "It does not detect layers that mix examples before per-example gradients, such as batch "
    "normalisation.",
)
_BETTING_ASSUMPTION = Assumption(
    "coins of steps",
    "Each canary has an independent fair coin for each step, from a seed that training does not "
    "use. Nothing depends on the coin before that step's sum.",
    "declared",
)


def describe(result: DPSGDAudit) -> Description:
    """Describe an audited run: a verdict on the stated mechanism, and the ε of membership."""
    # 1. Membership, compared with the accountant's ε unless something else was claimed.
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
    # 3. Why each of the three audits holds.
    sections = (
        grounds(membership, "Membership: why it holds"),
        *_grounds(steps, result.delta),
        Section("Sampling", (), _assumed(result.sampling)),
    )
    doubted = (x for one in sections for x in one.assumptions if x.status == "contradicted")
    terms = Terms(f"guarantee of {name}", name, proved, ceiling, at, delta=result.delta)
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
        next_steps=first(of_run(result)),
        metrics=_metrics(result, proved, at),
        meaning=Meaning(tuple(means), _NOT_MEANT),
        levels=levels_of(terms, proves=True),
        sections=sections,
        numbers=said.numbers
        | {"epsilon": proved, "epsilon_ceiling": ceiling, "delta": result.delta},
        units=units_of(terms, scale_of(membership.claim).unit),
        contradicted=tuple(dict.fromkeys(doubted)),
        claimed=checked.value if checked is not None and checked.delta == result.delta else None,
        papers=(),
        shown=2,
    )


def _headline(result: DPSGDAudit, within: str) -> str:
    """Return whether the mechanism is refuted, by which part, and which ε to report."""
    sure, verdict = percent(result.confidence), "Nothing contradicts the stated mechanism"
    if result.refuted_by:
        listed = " and ".join(result.refuted_by)
        verdict = f"Refuted, by {listed}: this run is not the stated mechanism"
    proved = f"ε ≥ {number(result.epsilon())} at δ = {result.delta:g}{within}"
    membership = result.membership
    own = scale_of(membership.claim).behind(membership.bound)
    sure = "; ".join(filter(None, [own, f"{sure} confidence"]))
    return f"{verdict}. Membership shows {proved} ({sure})."


def _evidence(result: DPSGDAudit, proved: float, within: str) -> tuple[str, ...]:
    """Return what each part shows: membership, steps, sampling, and accounting."""
    membership, at = result.membership, f" at δ = {result.delta:g}"
    means = f"No promise of any ε is ruled out, because {membership.reason}."
    if not membership.reason:
        means = (
            f"If training kept any promise of ε < {number(proved)}{at}{within}, results this "
            f"strong would occur at most {percent(1 - result.confidence)} of the time."
        )
    said = [
        f"Membership: the attack was right in {membership.correct:,} of its "
        f"{membership.guesses:,} {membership.guessed or 'guesses'} about {membership.m:,} "
        f"canaries. {' '.join(filter(None, [membership.searched, means]))}",
        f"Steps: {_of_steps(result.steps)}",
        f"Sampling: {_of_sampling(result.sampling)}",
    ]
    if "accounting" in result.refuted_by and result.accounted is not None:
        said.append(
            f"Accounting: the accountant states {result.accounted.name}, but a test of the stated "
            f"mechanism attains ε = {number(result.attainable or 0.0)} at that δ."
        )
    return tuple(said)


def _metrics(result: DPSGDAudit, proved: float, at: str) -> tuple[Metric, ...]:
    """Return the accounted and the proved ε, the noise, and the rate."""
    steps, sampling, stated = result.steps, result.sampling, result.accounted
    own = scale_of(result.membership.claim).behind(result.membership.bound)
    value = bracketed(proved, own)
    metrics = [Metric(f"ε from membership{at}", value, "whole run: report this one")]
    if stated is not None:
        source = stated.source or "stated"
        metrics.insert(0, Metric(f"ε accounted{at}", f"{stated.epsilon:.4g}", source))
    if not steps.varies:
        note = "if noise is constant and all noisy gradients are released"
        metrics.append(Metric(f"ε from steps{at}", number(steps.epsilon(result.delta)), note))
    noise = f"of some step; {steps.noise_multiplier:.4g} stated"
    rate = f"{sampling.sampling_rate:.4g} stated"
    guesses = f"{result.membership.correct:,} of {result.membership.guesses:,}"
    return (
        *metrics,
        Metric("Noise multiplier at most", up(steps.bound), noise),
        Metric("Sampling rate", sampling.limits or "not tested", rate),
        Metric("Correct guesses", guesses, "about membership"),
        Metric("Steps", f"{steps.steps:,}", f"{result.max_steps:,} declared"),
    )


def _of_steps(steps: StepsResult) -> str:
    """Return what is proved about the noise."""
    if math.isinf(steps.bound):
        return "nothing is proved about the noise of any step."
    said = (
        f"the noise multiplier of some step is at most {up(steps.bound)} "
        f"({percent(steps.confidence)} confidence); the optimizer stated "
        f"{steps.noise_multiplier:.4g}{' or more' * steps.varies}."
    )
    if steps.test == "noise" and math.isfinite(steps.by_coins):
        said += f" Guesses about coins alone prove at most {up(steps.by_coins)}."
    if steps.noise.reason:
        said += f" The released noise was not tested: {steps.noise.reason}."
    return said + " No ε follows, because the noise varied." * steps.varies


def _grounds(steps: StepsResult, delta: float) -> tuple[Section, ...]:
    """Return why the bound on noise holds: by its squares, by bets, and as one game."""
    title = "Steps: the game of all coins"
    game = grounds(steps.game, title, _STEPS_THEOREM)
    bets, noise = steps.betting, steps.noise
    spread = (
        f"The noise in {noise.values:,} released values has a root mean square of "
        f"{noise.deviation:.4g} clipping norms. This proves that the noise of some step is at most "
        f"{up(noise.bound)}. It does not test clipping; guesses about coins test both together."
    )
    squares = Section("Steps: the squares", (spread, _NOISE_THEOREM), (_NOISE_ASSUMPTION,))
    guessed = (
        f"Of {bets.guesses:,} guesses about the {bets.coins:,} coins of each of "
        f"{bets.steps:,} steps, {share(bets.correct / bets.guesses / bets.steps)} were correct."
    )
    converted = (
        (
            f"If all {steps.steps:,} steps have one noise multiplier and draw Poisson samples at "
            f"rate {steps.sampling_rate:.4g} or more ({steps.rate_source}), and all noisy "
            f"gradients are released, then ε ≥ {number(steps.epsilon(delta))} at δ = {delta:g}."
        )
        if not steps.varies
        else ""
    )
    told = tuple(filter(None, (guessed, _BETTING_THEOREM, converted)))
    why = Section("Steps: the bets", told, (_BETTING_ASSUMPTION,))
    return (why, game) if noise.reason else (squares, why, game)


def _of_sampling(sampling: SamplingResult) -> str:
    """Return what the sizes of the batches show."""
    if sampling.reason:
        return f"batch sizes were not tested: {sampling.reason}."
    low, high, rate = sampling.least_examples, sampling.most_examples, sampling.sampling_rate
    examples, mean = f"{low:,}", f"{rate * low:.1f}"
    if low != high:
        examples, mean = f"{examples} to {high:,}", f"{mean} to {rate * high:.1f}"
    seen = (
        f"{sampling.batches:,} batches have mean size {sampling.mean:.1f} and variance "
        f"{sampling.variance:.1f}. Poisson samples of {examples} examples at rate {rate:g} would "
        f"have {mean} and {sampling.expected_variance:.1f}."
    )
    if not sampling.refutes:
        rest = "" if sampling.limits else " The rate was not tested."
        return f"{seen} The sizes do not contradict Poisson sampling.{rest}"
    wrong = []
    if sampling.largest > high:
        wrong.append(f"a batch has {sampling.largest:,} examples, more than the data set")
    elif sampling.refuted("mean"):
        limits = f"; it is {sampling.limits}, if samples are Poisson" if sampling.limits else ""
        wrong.append(f"the rate is not {rate:g} (p = {sampling.p_mean:.2g}{limits})")
    if sampling.refuted("variance"):
        how = "too similar" if sampling.variance < sampling.expected_variance else "too different"
        wrong.append(f"sizes are {how} for Poisson sampling (p = {sampling.p_variance:.2g})")
    if sampling.p_distinct is not None and sampling.refuted("distinct"):
        wrong.append(f"too few sizes are distinct (p = {sampling.p_distinct:.2g})")
    return f"{seen} Refuted: {', and '.join(wrong)}."


def _assumed(sampling: SamplingResult) -> tuple[Assumption, ...]:
    """Return what the rate assumes."""
    return (
        Assumption(
            "Poisson sampling",
            f"Each example is in a batch with probability {sampling.sampling_rate:g}, "
            "independently. Batch sizes reveal fixed sizes and, if the number of examples is "
            "known, a wrong rate. They do not show which examples are in a batch.",
            "contradicted"
            if sampling.refutes
            else ("checked" if sampling.limits else "unverifiable"),
        ),
        Assumption(
            "number of steps",
            "The number of steps does not depend on batch sizes.",
            "declared",
        ),
    )
