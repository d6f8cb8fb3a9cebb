"""The description of an audited training run with DP-SGD."""

import math
from dataclasses import replace

from leakbound._base.formatting import number, percent, share, up
from leakbound._base.types import Relation, Status, Strings
from leakbound.claims import FAMILIES
from leakbound.report.description import Description, Meaning, Metric, Section, Terms
from leakbound.report.parts import Assumption, Checked
from leakbound.results.descriptions.next_steps import most_urgent_steps, steps_after_dp_sgd
from leakbound.results.descriptions.one_run import description_of_audit, epsilon_in_both_units
from leakbound.results.descriptions.shared import levels_of, section_of_grounds, units_of
from leakbound.results.dp_sgd import DPSGDAudit, SamplingResult, StepsResult
from leakbound.results.terms import (
    DELTA,
    NO_UPPER_LIMIT,
    checked_parameter,
    scale_of,
    sentence_about_right_guesses,
)

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
    name="Gaussian noise",
    statement="Each step adds fresh Gaussian noise, and releases the noisy sum on the scale that "
    "the optimizer states, without further processing.",
    status="declared",
)
_MEANS = (
    "At the stated confidence, no guarantee with a smaller ε than the one proved holds for this "
    "run, if all noisy gradients are released."
)
_OF_KNOWN_ORDER = (
    "Batches are those of epochs: every ε here is that against an attacker who also knows their "
    "order. If it is random and secret, ε may be smaller."
)
_CONVERTED = "ε is converted from the bound on membership,{}."
_NOT_MEANT = (
    NO_UPPER_LIMIT,
    "It is about a run that releases all noisy gradients. The final model may leak less.",
    "It does not detect layers that mix examples before per-example gradients, such as batch "
    "normalisation.",
)
_BETTING_ASSUMPTION = Assumption(
    name="coins of steps",
    statement="Each canary has an independent fair coin for each step, from a seed that training "
    "does not use. Nothing depends on the coin before that step's sum.",
    status="declared",
)


def describe(result: DPSGDAudit) -> Description:
    """Describe an audited run: a verdict on the stated mechanism, and the ε of membership."""
    # 1. Membership, compared with the accountant's ε unless something else was claimed.
    membership = result.membership
    checked_claim = _checked_claim_of_run(result)
    description = description_of_audit(replace(membership, checked=checked_claim))
    terms = _terms_of_run(result)
    proved = terms.epsilon
    within = ""
    if isinstance(membership.claim, FAMILIES):
        within = f" within {terms.family}"
    # 2. Why each of the three audits holds.
    sections = (
        section_of_grounds(membership, "Membership: why it holds"),
        *_sections_of_steps(result.steps, result.delta or DELTA),
        Section(
            title="Sampling", paragraphs=(), assumptions=_assumptions_of_sampling(result.sampling)
        ),
    )
    doubted = (x for one in sections for x in one.assumptions if x.status == "contradicted")
    claimed = None
    if checked_claim is not None and checked_claim.delta == result.delta:
        claimed = checked_claim.value
    return replace(
        description,
        plainly="",  # guesses are made from every step, which nobody sees who has the model
        title="Audit of a training run with DP-SGD",
        warnings=result.warnings,
        confidence=result.confidence,
        claim=f"DP-SGD, {terms.family}",
        terms=terms,
        epsilon=proved,
        ceiling=terms.ceiling,
        formula=f"ε ≥ {number(proved)}",
        answer=_answer_about_run(result, description.answer, checked_claim),
        verdict=result.check(),
        refutes=proved > 0,
        leaks=bool(result.refuted_by),
        headline=_headline_of_run(result, within),
        paragraphs=_evidence_of_run(result, proved=proved, within=within),
        next_steps=most_urgent_steps(steps_after_dp_sgd(result)),
        metrics=_metrics_of_run(result, proved=proved, at=terms.at),
        meaning=_meaning_of_run(result, within),
        levels=levels_of(terms, proves=True),
        sections=sections,
        numbers=description.numbers
        | {"epsilon": proved, "epsilon_ceiling": terms.ceiling, "delta": result.delta},
        units=units_of(terms, scale_of(membership.claim).unit),
        contradicted=tuple(dict.fromkeys(doubted)),
        claimed=claimed,
        papers=(),
        shown=2,
    )


def _terms_of_run(result: DPSGDAudit) -> Terms:
    """Return ε at the accountant's δ, and what a perfect attack would have proved there."""
    membership = result.membership
    name = membership.claim.name
    ceiling = membership.ceiling
    if isinstance(membership.claim, FAMILIES):
        perfect = membership.rejectable
        ceiling = 0.0
        if perfect is not None:
            ceiling = float(perfect.epsilon(result.delta))
    return Terms(
        guarantee=f"guarantee of {name}",
        family=name,
        epsilon=result.epsilon(),
        ceiling=ceiling,
        at=f" at δ = {result.delta:g}",
        delta=result.delta,
    )


def _meaning_of_run(result: DPSGDAudit, within: str) -> Meaning:
    """Return what the result says: `within` names the family that ε is converted in, if any."""
    means = [_MEANS]
    if within:
        means.append(_CONVERTED.format(within))
    if result.steps.sampling == "epochs":
        means.append(_OF_KNOWN_ORDER)
    return Meaning(says=tuple(means), does_not_say=_NOT_MEANT)


def _checked_claim_of_run(result: DPSGDAudit) -> Checked | None:
    """Return what was claimed, by default the accountant's ε.

    Of epochs that may count on a secret order, which the audit knows, so that it is not compared.
    """
    stated = result.accounted
    if result.checked is not None or stated is None or result.steps.sampling == "epochs":
        return result.checked
    relation: Relation | None = None
    if stated.relation == "replace":
        relation = "replace"
    return result.membership.with_check(
        epsilon=stated.epsilon, delta=stated.delta, relation=relation
    ).checked


def _answer_about_run(result: DPSGDAudit, answer: str, checked: Checked | None) -> str:
    """Return the answer about what was checked: nobody but the accountant claimed its ε."""
    stated = result.accounted
    if result.checked is not None or checked is None or stated is None:
        return answer
    claimed = f"claimed {checked_parameter(result.membership.claim, checked)}"
    return answer.replace(claimed, f"accountant's ε = {stated.epsilon:.4g}")


def _headline_of_run(result: DPSGDAudit, within: str) -> str:
    """Return whether the mechanism is refuted, by which part, and which ε to report."""
    sure = percent(result.confidence)
    verdict = "Nothing contradicts the stated mechanism"
    if result.sampling.refutes:
        verdict += (
            " at the joint confidence, but the sizes of batches alone contradict its sampling"
        )
    if result.refuted_by:
        parts = " and ".join(result.refuted_by)
        tests = "tests"
        if len(result.refuted_by) == 1:
            tests = "test"
        verdict = f"Refuted by the {tests} of {parts}: this run is not the stated mechanism"
    proved = f"ε ≥ {number(result.epsilon())} at δ = {result.delta:g}{within}"
    membership = result.membership
    own = scale_of(membership.claim).behind(membership.bound)
    sure = "; ".join(filter(None, [own, f"{sure} confidence"]))
    return f"{verdict}. Membership shows {proved} ({sure})."


def _evidence_of_run(result: DPSGDAudit, proved: float, within: str) -> Strings:
    """Return what each part shows: membership, steps, sampling, and accounting."""
    membership = result.membership
    at_delta = f" at δ = {result.delta:g}"
    sentence_about_promise = f"No ε is ruled out, because {membership.reason}."
    if not membership.reason:
        sentence_about_promise = (
            f"If training satisfied ε < {number(proved)}{at_delta}{within}, results this "
            f"strong would occur at most {percent(1 - result.confidence)} of the time."
        )
    sentence_about_guesses = sentence_about_right_guesses(
        membership.correct,
        guesses=membership.guesses,
        guessed=membership.guessed,
        about=f" about {membership.m:,} canaries",
    )
    about_membership = " ".join(
        filter(None, [sentence_about_guesses, membership.searched, sentence_about_promise])
    )
    evidence = [
        f"Membership: {about_membership[0].lower()}{about_membership[1:]}",
        f"Steps: {_noise_of_steps_in_words(result.steps)}",
        f"Sampling: {_sampling_in_words(result.sampling)}",
    ]
    if "accounting" in result.refuted_by and result.accounted is not None:
        evidence.append(
            f"Accounting: the accountant states {result.accounted.name}, but a test of the stated "
            f"mechanism attains ε = {number(result.attainable or 0.0)} at that δ."
        )
    if result.options.get("clipping") == "probed":
        evidence.append(
            "Clipping: it is inside the backward pass, and canaries were added after it. That it "
            "clips every example is what the probe of the step shows, and not these canaries."
        )
    evidence += [f"Probe of the step: {one.summary().headline}" for one in result.probes]
    return tuple(evidence)


def _metrics_of_run(result: DPSGDAudit, proved: float, at: str) -> tuple[Metric, ...]:
    """Return the accounted and the proved ε, the noise, and the rate."""
    steps = result.steps
    sampling = result.sampling
    stated = result.accounted
    own = scale_of(result.membership.claim).behind(result.membership.bound)
    value = epsilon_in_both_units(proved, own)
    metrics = [
        Metric(name=f"ε from membership{at}", value=value, note="whole run: report this one")
    ]
    if stated is not None:
        source = stated.source or "stated"
        metrics.insert(
            0, Metric(name=f"ε accounted{at}", value=f"{stated.epsilon:.4g}", note=source)
        )
    if not steps.varies:
        note = "if noise is constant and all noisy gradients are released"
        if steps.sampling == "epochs":
            note = f"{note}, with an order that the attacker knows"
        delta = result.delta or DELTA  # steps have Gaussian noise, and no ε without a δ
        value = number(steps.epsilon(delta))
        metrics.append(Metric(name=f"ε from steps at δ = {delta:g}", value=value, note=note))
    noise = f"of some step; {steps.noise_multiplier:.4g} stated"
    rate = f"{sampling.sampling_rate:.4g} stated"
    guesses = f"{result.membership.correct:,} of {result.membership.guesses:,}"
    return (
        *metrics,
        Metric(name="Noise multiplier at most", value=up(steps.bound), note=noise),
        Metric(name="Sampling rate", value=sampling.limits or "not tested", note=rate),
        Metric(name="Correct guesses", value=guesses, note="about membership"),
        Metric(name="Steps", value=f"{steps.steps:,}", note=f"{result.max_steps:,} declared"),
    )


def _noise_of_steps_in_words(steps: StepsResult) -> str:
    """Return what is proved about the noise."""
    if math.isinf(steps.bound):
        return "nothing is proved about the noise of any step."
    noise_in_words = (
        f"the noise multiplier of some step is at most {up(steps.bound)} "
        f"({percent(steps.confidence)} confidence); the optimizer stated "
        f"{steps.noise_multiplier:.4g}{' or more' * steps.varies}."
    )
    if steps.test == "noise" and math.isfinite(steps.by_coins):
        noise_in_words += f" From guesses about coins alone: at most {up(steps.by_coins)}."
    if steps.noise.reason:
        noise_in_words += f" The released noise was not tested: {steps.noise.reason}."
    return noise_in_words + " No ε follows, because the noise varied." * steps.varies


def _sections_of_steps(steps: StepsResult, delta: float) -> tuple[Section, ...]:
    """Return why the bound on noise holds: by its squares, by bets, and as one game."""
    title = "Steps: the game of all coins"
    game = section_of_grounds(steps.game, title, _STEPS_THEOREM)
    bets = steps.betting
    noise = steps.noise
    spread = (
        f"The noise in {noise.values:,} released values has a root mean square of "
        f"{noise.deviation:.4g} clipping norms. This proves that the noise of some step is at most "
        f"{up(noise.bound)}. It does not test clipping; guesses about coins test both together."
    )
    section_of_squares = Section(
        title="Steps: the squares",
        paragraphs=(spread, _NOISE_THEOREM),
        assumptions=(_NOISE_ASSUMPTION,),
    )
    guessed = (
        f"Of {bets.guesses:,} guesses about the {bets.coins:,} coins of each of "
        f"{bets.steps:,} steps, {share(bets.correct / bets.guesses / bets.steps)} were correct."
    )
    converted = ""
    if not steps.varies:
        epsilon = number(steps.epsilon(delta))
        converted = (
            f"If all {steps.steps:,} steps have one noise multiplier and "
            f"{_batches_in_words(steps)}, and all noisy gradients are released, then ε ≥ {epsilon} "
            f"at δ = {delta:g}."
        )
    paragraphs_about_bets = tuple(filter(None, (guessed, _BETTING_THEOREM, converted)))
    section_of_bets = Section(
        title="Steps: the bets",
        paragraphs=paragraphs_about_bets,
        assumptions=(_BETTING_ASSUMPTION,),
    )
    if noise.reason:
        return (section_of_bets, game)
    return (section_of_squares, section_of_bets, game)


def _batches_in_words(steps: StepsResult) -> str:
    """Return how batches are made, as a condition."""
    if steps.sampling == "fixed_size":
        return f"draw subsets of a fixed size, {steps.sampling_rate:.4g} of all examples"
    if steps.sampling == "epochs":
        epoch = round(1 / steps.sampling_rate)
        return (
            f"have each example once in an epoch of {epoch:,} steps, in an order that the attacker "
            "knows"
        )
    return f"draw Poisson samples at rate {steps.sampling_rate:.4g} or more ({steps.rate_source})"


def _sizes_of_counted_batches(sampling: SamplingResult) -> str:
    """Return what the sizes of batches show that are not Poisson samples."""
    sizes_in_words = f"{sampling.batches:,} batches have mean size {sampling.mean:.1f}"
    contradictions = []
    if sampling.p_variance == 0:
        contradictions.append(f"their sizes vary, with a variance of {sampling.variance:.1f}")
    if sampling.p_mean == 0 and sampling.sampling == "epochs":
        contradictions.append(
            f"an epoch has more than {sampling.most_examples:,} examples, so that some are in it "
            "twice"
        )
    elif sampling.p_mean == 0:
        contradictions.append(f"their share is not {sampling.sampling_rate:g} of all examples")
    if contradictions:
        return f"{sizes_in_words}. They contradict what is stated: {', and '.join(contradictions)}."
    stated_batches = "batches of a fixed size"
    if sampling.sampling == "epochs":
        stated_batches = "epochs that have each example once"
    return (
        f"{sizes_in_words}. The sizes do not contradict {stated_batches}; they do not show which "
        "examples are in it."
    )


def _sampling_in_words(sampling: SamplingResult) -> str:
    """Return what sizes of batches show, whatever is claimed of them."""
    if sampling.sampling != "poisson" and not sampling.reason:
        return _sizes_of_counted_batches(sampling)
    return _sizes_of_poisson_samples(sampling)


def _sizes_of_poisson_samples(sampling: SamplingResult) -> str:
    """Return what the sizes of the batches show."""
    if sampling.reason:
        return f"batch sizes were not tested: {sampling.reason}."
    fewest_examples = sampling.least_examples
    most_examples = sampling.most_examples
    stated_rate = sampling.sampling_rate
    examples = f"{fewest_examples:,}"
    expected_mean = f"{stated_rate * fewest_examples:.1f}"
    if fewest_examples != most_examples:
        examples = f"{examples} to {most_examples:,}"
        expected_mean = f"{expected_mean} to {stated_rate * most_examples:.1f}"
    sizes_in_words = (
        f"{sampling.batches:,} batches have mean size {sampling.mean:.1f} and variance "
        f"{sampling.variance:.1f}. Poisson samples of {examples} examples at rate {stated_rate:g} "
        f"would have {expected_mean} and {sampling.expected_variance:.1f}."
    )
    if not sampling.refutes:
        remark = " The rate was not tested."
        if sampling.limits:
            remark = ""
        return f"{sizes_in_words} The sizes do not contradict Poisson sampling.{remark}"
    contradictions = []
    if sampling.largest > most_examples:
        contradictions.append(f"a batch has {sampling.largest:,} examples, more than the data set")
    elif sampling.refuted("mean"):
        limits = ""
        if sampling.limits:
            limits = f"; it is {sampling.limits}, if samples are Poisson"
        contradictions.append(
            f"the rate is not {stated_rate:g} (p = {sampling.p_mean:.2g}{limits})"
        )
    if sampling.refuted("variance"):
        difference = "too different"
        if sampling.variance < sampling.expected_variance:
            difference = "too similar"
        contradictions.append(
            f"sizes are {difference} for Poisson sampling (p = {sampling.p_variance:.2g})"
        )
    if sampling.p_distinct is not None and sampling.refuted("distinct"):
        contradictions.append(f"too few sizes are distinct (p = {sampling.p_distinct:.2g})")
    return (
        f"{sizes_in_words} The sizes contradict Poisson sampling: {', and '.join(contradictions)}."
    )


def _status_of_sampling(sampling: SamplingResult) -> Status:
    """Return whether batches were checked to be Poisson samples."""
    if sampling.refutes:
        return "contradicted"
    if sampling.limits:
        return "checked"
    return "unverifiable"


_EPOCHS_ASSUMPTION = Assumption(
    name="batches of epochs",
    statement="Each example is in one batch of each epoch, in an order that does not depend on "
    "what is trained on. The ε of the stated mechanism and of its steps is that against an "
    "attacker who knows this order; if it is random and secret, ε may be smaller. Number "
    "of steps and divisor stay the same whichever example is left out, and so does the place of "
    "each: they are not computed from the number of examples.",
    status="declared",
)
_SUBSETS_ASSUMPTION = Assumption(
    name="batches of a fixed size",
    statement="Each batch is a uniform subset of all examples, drawn independently of all other "
    "batches. Batch sizes reveal sizes that vary. They do not show which examples are in a batch: "
    "shuffled epochs have batches of these sizes too.",
    status="declared",
)


def _assumptions_of_sampling(sampling: SamplingResult) -> tuple[Assumption, ...]:
    """Return what the rate assumes."""
    if sampling.sampling != "poisson":
        one = _SUBSETS_ASSUMPTION
        if sampling.sampling == "epochs":
            one = _EPOCHS_ASSUMPTION
        if sampling.refutes:
            one = replace(one, status="contradicted")
        return (one,)
    return (
        Assumption(
            name="Poisson sampling",
            statement=f"Each example is in a batch with probability {sampling.sampling_rate:g}, "
            "independently. Batch sizes reveal fixed sizes and, if the number of examples is "
            "known, a wrong rate. They do not show which examples are in a batch.",
            status=_status_of_sampling(sampling),
        ),
        Assumption(
            name="number of steps",
            statement="The number of steps does not depend on batch sizes.",
            status="declared",
        ),
    )
