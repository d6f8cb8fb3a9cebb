"""What to do next: at most three steps, chosen by the numbers of a result."""

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeGuard

from leakbound._base.formatting import number
from leakbound._base.messages import Message, Option
from leakbound._base.scores import FILLED
from leakbound._base.types import Strings
from leakbound.claims import ApproxDP, PureDP
from leakbound.cuts.look import PILOT_GUESSES
from leakbound.report.description import KINDS, SMALL, Terms
from leakbound.report.parts import ScoreAudit
from leakbound.results.dp_sgd import DPSGDAudit
from leakbound.results.one_run import AuditResult
from leakbound.results.terms import audited, checked_parameter, claimed_delta

if TYPE_CHECKING:
    from leakbound.results.panoramia import PanoramiaResult
    from leakbound.results.zero_run import ZeroRunResult

# Deviations of an AUC from 1/2, in standard deviations, that are chance, and that are large
_CHANCE_DEVIATIONS = 3
# Views of a split that are about its records, and not about a column
_VIEWS_OF_RECORDS = {"closest pairs", "usual rows", "surprising labels"}
_LARGE_DEVIATIONS = 12
# The ε that a perfect attack should reach at least, and the share of it that is nearly all
_LEAST_CEILING = 1.0
_NEARLY_ALL = 0.9
# Shares of all examples that are few, and that are many
_SMALL_SHARE = 0.1
_LARGE_SHARE = 0.5
# An ε beyond which no audit reaches, and examples that no audit has
_LARGEST_EPSILON = 100.0
_MOST_EXAMPLES = 1e9
_FLAWS_OF_RECORDS = "duplicates, outliers or wrong labels"
_STEPS_FOR_REFUTED_PARTS = {
    "membership": "Look for data that bypasses clipping, such as batch statistics, and for "
    "examples that are used twice: the canaries show more than the accountant allows.",
    "steps": "Check how noise is scaled: its standard deviation must be the noise multiplier times "
    "the clipping norm, before the sum is divided by the batch size.",
    "sampling": "Use a loader that draws Poisson samples at the stated rate, or give the "
    "accountant the sampling that was used.",
    "accounting": "Recompute ε with another accountant: the same noise, rate and steps allow a "
    "larger ε than the stated one.",
}


def most_urgent_steps(steps: Iterable[str]) -> Strings:
    """Return the most urgent steps."""
    return tuple(islice(dict.fromkeys(steps), 3))


def steps_after_audit(result: AuditResult, terms: Terms) -> Iterator[str]:
    """Yield steps after an audit of one ranking, the most urgent first."""
    checked_claim = result.checked
    is_bound = KINDS[result.kind].proves
    if result.is_withheld:
        yield _step_if_withheld(result)
        return
    # 1. Scores, or a number of examples, that cannot show what the model leaks.
    steps_for_flaws = (
        *_steps_for_contradictions(result),
        *_steps_for_flawed_scores(result),
    )
    yield from steps_for_flaws
    yield from _steps_for_refuted_claim(result)
    target_epsilon = _LEAST_CEILING
    if checked_claim is not None and checked_claim.verdict == "inconclusive":
        is_about_epsilon = claimed_delta(result.claim, checked_claim) is not None
        if is_about_epsilon:
            target_epsilon = max(target_epsilon, checked_claim.value)
    needs_more_examples = is_bound and terms.ceiling <= target_epsilon
    if needs_more_examples:
        step_for_overlap = ""
        if _is_zero_run(result):
            step_for_overlap = _step_for_overlap(result, terms)
        yield step_for_overlap or _step_to_reach_target(result, terms, target_epsilon)
    elif not result.bound and not steps_for_flaws:
        yield from _steps_if_nothing_is_proved(result, terms.units)
    # 2. What is special about the design.
    yield from _steps_for_zero_run(result)
    if not result.bound:
        return
    # 3. Where the leak is, and how to prove more.
    is_of_records = not _has_filled_scores(result) and not result.wording.is_mechanism
    if is_bound and is_of_records and terms.epsilon >= SMALL:
        yield _step_for_leak(result, terms.units)
    if not needs_more_examples:
        yield from _steps_near_ceiling(result, terms)
    yield from _steps_to_prove_more(result, terms)


def _steps_near_ceiling(result: AuditResult, terms: Terms) -> Iterator[str]:
    """Yield that more examples prove more, if a bound is near what a perfect attack proves."""
    is_near_ceiling = math.isfinite(terms.ceiling) and (
        terms.epsilon >= _NEARLY_ALL * terms.ceiling
    )
    is_limited = KINDS[result.kind].proves and not _is_zero_run(result)
    if is_near_ceiling and is_limited and not _has_filled_scores(result):
        yield (
            f"To prove more, audit more {terms.units}: a perfect attack on these "
            f"{audited(result):,} would have reached only {_ceiling_in_words(terms)}."
        )


def _ceiling_in_words(terms: Terms) -> str:
    """Return what a perfect attack would have proved."""
    return f"{terms.symbol} = {number(terms.ceiling)}{terms.at}"


def _steps_to_prove_more(result: AuditResult, terms: Terms) -> Iterator[str]:
    """Yield which attack or claim may prove more than a bound above 0."""
    checked_claim = result.checked
    if checked_claim is not None and checked_claim.verdict == "not refuted":
        yield (
            f"To test the claimed {checked_parameter(result.claim, checked_claim)} harder, choose "
            f"a stronger attack for the next audit: these {terms.units} allow bounds up to "
            f"{_ceiling_in_words(terms)}."
        )
    is_bound = KINDS[result.kind].proves
    if isinstance(result.claim, PureDP) and is_bound and result.copies == 1:
        small = 10.0 ** -math.ceil(math.log10(10 * audited(result)))
        yield Message(
            "This bound only rules out guarantees with δ = 0. To test an (ε, δ) guarantee, use "
            "{with_delta} in the next audit.",
            with_delta=Option("claim", ApproxDP(delta=small)),
        )


def _step_if_withheld(result: AuditResult) -> str:
    """Return what to do about a bound that is withheld."""
    if _is_zero_run(result):
        return "Fit richer propensities, or fit them to more examples, and audit again."
    challenge = result.options.get("challenge")
    if isinstance(challenge, dict) and challenge.get("view") in _VIEWS_OF_RECORDS:
        return Message(
            "Find out what was removed, added or changed in one part after the split. Clean first, "
            "then split, train and audit again. If the split was not random, audit with "
            "{ZeroRun(member, features=…)}."
        )
    return Message(
        "Find out why features distinguish members from non-members: drop columns that were "
        "written after the split, such as an index, and audit again. If the split was not "
        "random, audit with {ZeroRun(member, features=…)}."
    )


def _step_to_reach_target(result: AuditResult, terms: Terms, target_epsilon: float) -> str:
    """Return how many examples it takes to reach what was claimed, or an ε that is not small."""
    if result.copies > 1:
        return (
            f"Insert each record once: {result.copies} copies share one {terms.symbol}, so that "
            f"even a perfect attack on these {audited(result):,} {terms.units} reaches only "
            f"{_ceiling_in_words(terms)} for one record."
        )
    examples_needed = _examples_needed(result, target_epsilon)
    more_examples = f"more {terms.units}"
    if examples_needed:
        more_examples = f"about {examples_needed:,} {terms.units}"
    aim = f"prove {terms.symbol} = {target_epsilon:g}{terms.at}"
    if result.checked is not None and target_epsilon == result.checked.value:
        aim = f"refute the claimed ε = {target_epsilon:g}"
    return (
        f"To be able to {aim}, audit {more_examples}: with these {audited(result):,}, even a "
        f"perfect attack reaches only {_ceiling_in_words(terms)}."
    )


def _is_zero_run(result: AuditResult) -> TypeGuard["ZeroRunResult"]:
    """Return whether features may explain guesses; the type of such results loads propensities."""
    return hasattr(result, "correction")


def _step_for_overlap(result: "ZeroRunResult", terms: Terms) -> str:
    """Return what to do where features leave a perfect attack little; "" where they do not."""
    if not result.guesses and not result.searched and result.kept == result.m:
        return f"{result.reason[:1].upper()}{result.reason[1:]}."  # it says what to do
    if result.correction == "match" and result.kept < _LARGE_SHARE * result.m:
        return _step_for_matched_examples(result)
    if result.correction == "composition":
        return Message(
            'Audit with {correction="match"}: composition subtracts the most that the features of '
            "any one example may reveal, and leaves even a perfect attack only {ceiling}.",
            ceiling=_ceiling_in_words(terms),
        )
    if result.overlap.m_eff >= _LARGE_SHARE * result.m:
        return ""
    return (
        "Look for members and non-members that resemble each other: with the odds that features "
        f"give these {result.m:,} {terms.units}, even a perfect attack reaches only "
        f"{_ceiling_in_words(terms)}."
    )


def _step_for_matched_examples(result: "ZeroRunResult") -> str:
    at_most = "at most "
    if result.learnt is None:
        at_most = ""
    return (
        f"Look for non-members that resemble the members more: matching kept {at_most}"
        f"{result.kept:,} of {result.m:,} examples."
    )


def _steps_for_contradictions(result: "AuditResult | PanoramiaResult") -> Iterator[str]:
    """Yield which assumptions to check."""
    for assumption in result.assumptions:
        if assumption.status == "contradicted":
            yield f"Check “{assumption.name}” before you use this result: the data contradict it."


def _steps_for_refuted_claim(result: AuditResult) -> Iterator[str]:
    """Yield whose ε a refuted claim must be."""
    checked_claim = result.checked
    if (
        checked_claim is None
        or checked_claim.verdict != "refuted"
        or not _is_of_one_training(result)
    ):
        return
    claimed_number = checked_parameter(result.claim, checked_claim)
    yield (
        f"Check that the claimed {claimed_number} is that of the whole training: all "
        "rounds, epochs and clients together. A claim for a single round does not hold for the "
        "released model: compose all rounds first."
    )


def _is_of_one_training(result: AuditResult) -> bool:
    """Return whether one training run was audited, all at once and without correction."""
    is_mechanism = result.wording.is_mechanism
    return not (is_mechanism or _is_zero_run(result) or "batches" in result.options)


def _has_filled_scores(ranking: "ScoreAudit | PanoramiaResult") -> bool:
    """Return whether all of one part share a score, as where missing ones were filled in."""
    return any(FILLED in warning for warning in ranking.warnings)


def _steps_for_flawed_scores(ranking: ScoreAudit) -> Iterator[str]:
    """Yield what to do about scores that were filled in, or inverted; warnings tell ties."""
    if _has_filled_scores(ranking):
        yield (
            "Check how the scores were made: all of one part have the same, which almost none "
            "of the other part have. Score all records in the same way, and audit again."
        )
    if _auc_deviations(ranking) < -_CHANCE_DEVIATIONS:
        yield (
            "Check the sign of the score: members score lower than non-members (AUC "
            f"{ranking.auc:.3f}). Do not flip it for these records: a flipped sign needs a "
            "new draw of members."
        )


def _steps_if_nothing_is_proved(result: AuditResult, unit: str) -> Iterator[str]:
    """Yield what to do about a bound of 0 where examples are enough."""
    if _is_zero_run(result):
        yield (
            "For the next audit, choose a stronger attack, such as offline_lira or rmia with "
            "reference models: these scores say too little about membership beyond the features."
        )
        return
    m = audited(result)
    auc = f"AUC {result.auc:.3f}"
    if _auc_deviations(result) > _CHANCE_DEVIATIONS:
        yield (
            f"Audit more {unit}, about {4 * m:,}: the scores separate members from non-members "
            f"({auc}), but too weakly for {m:,} {unit}."
        )
        return
    yield (
        "For the next audit, choose a stronger attack, such as offline_lira or rmia with reference "
        f"models: these scores separate members from non-members no better than chance ({auc})."
    )
    if result.relation == "add_remove" and _is_of_one_training(result):
        yield (
            f"Audit canaries that the model can only get right by memorising them: these {unit} "
            "may be easy to learn without memorising."
        )


def _steps_for_zero_run(result: Any) -> Iterator[str]:
    """Yield what to do about a Zero-Run audit."""
    if result.kind == "exploratory_lower_bound":
        yield (
            'Audit with uncertainty="set": this number ignores the error of the learnt '
            "propensities, so no claim can be tested with it."
        )
    if getattr(result, "correction", "") != "match":
        return
    if result.kept < _LARGE_SHARE * result.m:
        yield _step_for_matched_examples(result)
    if result.by_tampering is not None and result.by_tampering < _LARGE_SHARE * result.bound:
        yield Message(
            "Check the propensities before you rely on this bound: matching needs a right model. "
            '{correction="tamper"}, which allows for some error in it, shows much less here.'
        )


def _step_for_leak(result: AuditResult, unit: str) -> str:
    """Return where the leak is, and what may be done about it."""
    # of groups that differ, features alone may separate the scores
    is_zero_run = _is_zero_run(result)
    guessed_share = result.guesses / max(1, audited(result))
    is_separated = not is_zero_run and _auc_deviations(result) > _LARGE_DEVIATIONS
    if guessed_share < _LARGE_SHARE and not is_separated:
        return _step_for_few_leaks(result, unit, is_few=guessed_share <= _SMALL_SHARE)
    auc = ""
    if not is_zero_run:
        auc = f" (AUC {result.auc:.3f})"
    return (
        "Reduce overfitting (train less, choose a smaller model, regularise), or train with "
        f"DP: the leak is spread over many {unit}{auc}."
    )


def _step_for_few_leaks(result: AuditResult, unit: str, *, is_few: bool) -> str:
    """Return at which examples to look, where a part of them was guessed about."""
    where_members_are = {"members": "the highest scores", "non-members": "the lowest scores"}
    extreme_scores = "the most extreme scores"
    if _is_zero_run(result):
        extreme_scores += ", given their features"
    records_to_look_at = (
        f"{result.guesses:,} {unit} with {where_members_are.get(result.path, extreme_scores)}"
    )
    if result.guessed == PILOT_GUESSES:
        records_to_look_at = f"{result.guesses:,} {unit} at ranks chosen with a pilot sample"
    exposed_members = result.exposed
    if exposed_members is not None and exposed_members.rows.size:
        records_to_look_at = f"{exposed_members.rows.size:,} most exposed members (result.exposed)"
    warning_of_few = ""
    if is_few:
        warning_of_few = "The bound is from few records. "
    look_at_records = (
        f"{warning_of_few}Look at the {records_to_look_at}. Are there {_FLAWS_OF_RECORDS}?"
    )
    if result.path == "non-members":
        return look_at_records
    return f"{look_at_records} Fix or remove these, and train again."


# How an audit of given scores gets more than an estimate.
_WITH_FEATURES = Message(
    "Pass features to get a conditional lower bound from the same examples. With real "
    "non-members, {real_nonmembers=True} gives a lower bound without a condition."
)


def steps_after_estimate(
    result: "PanoramiaResult", more_bounds: str = _WITH_FEATURES
) -> Iterator[str]:
    """Yield steps after an audit against generated non-members.

    `more_bounds` says how to get lower bounds next to the estimate; "" if there are no more.
    """
    attack = result.attack
    baseline = result.baseline
    c = result.c_lb
    is_estimate = result.kind == "estimate"
    yield from _steps_for_contradictions(result)
    yield from _steps_for_flawed_scores(attack)
    if is_estimate and c > _LARGE_SHARE * attack.ceiling:
        yield (
            "Improve the generator: its examples are so easy to distinguish from real ones (c ≥ "
            f"{number(c)} of at most {number(attack.ceiling)}) that ε̃ cannot exceed "
            f"{number(max(0.0, attack.ceiling - c))}, whatever the model leaks."
        )
    if not result.bound:
        aucs = f"with the model its AUC is {attack.auc:.3f}, and without {baseline.auc:.3f}"
        difference_of_aucs = _auc_deviations(attack) - _auc_deviations(baseline)
        remedy = "Audit more examples"
        if difference_of_aucs < _CHANCE_DEVIATIONS:
            remedy = "Use a stronger attack"
        yield f"{remedy}: {aucs}."
    if result.conditional is not None and result.conditional.bound > 0:
        conditional_epsilon = number(result.conditional.epsilon())
        yield (
            f"Report the conditional bound, ε ≥ {conditional_epsilon}, and its condition together "
            "with the estimate."
        )
    if is_estimate and result.conditional is None and more_bounds:
        yield more_bounds
    symbol = "ε"
    if is_estimate:
        symbol = "ε̃"
    if (
        result.bound
        and result.bound >= _NEARLY_ALL * result.ceiling
        and not _has_filled_scores(result)
    ):
        yield (
            f"To see more, audit more than {result.m:,} examples: with these, even a perfect "
            f"attack shows at most {symbol} = {number(result.ceiling)}."
        )


def steps_after_dp_sgd(result: DPSGDAudit) -> Iterator[str]:
    """Yield steps after an audit of a training run with DP-SGD."""
    stated_accountant = result.accounted
    proved_epsilon = result.epsilon()
    yield from (_STEPS_FOR_REFUTED_PARTS[part] for part in result.refuted_by)
    if not result.sampling.limits:
        yield "Pass examples=len(dataset): without it, the sampling rate is not tested."
    yield from _steps_for_flawed_scores(result.membership)
    if stated_accountant is not None and proved_epsilon < _LARGE_SHARE * stated_accountant.epsilon:
        yield (
            f"To get closer to the accounted ε ({stated_accountant.epsilon:.4g}), use more than "
            f"{result.membership.m:,} canaries, or canaries with larger gradients. A gap is normal."
        )


def _auc_deviations(ranking: ScoreAudit) -> float:
    """Return how many standard deviations of chance an AUC is above 1/2."""
    roc = ranking.roc
    if not roc.guesses.size:
        return 0.0
    members = int(roc.members[-1])
    examples = int(roc.guesses[-1])
    pairs_of_member_and_nonmember = max(1, members * (examples - members))
    return (ranking.auc - 0.5) / math.sqrt((examples + 1) / (12 * pairs_of_member_and_nonmember))


def _examples_needed(result: AuditResult, target_epsilon: float) -> int:
    """Return about how many examples a perfect attack needs for an ε; 0 if unknown or absurd."""
    if not isinstance(result.claim, PureDP) or result.ceiling <= 0:
        return 0
    # all of m guesses right have probability level = q^m, with q = e^ceiling / (e^ceiling + k - 1)
    other_candidates = result.options.get("k", 2) - 1
    copies = result.copies  # of which a guess is about all at once
    target_loss = min(copies * target_epsilon, _LARGEST_EPSILON)
    ceiling_loss = copies * result.ceiling
    surprise_at_target = math.log1p(other_candidates * math.exp(-target_loss))
    surprise_at_ceiling = math.log1p(other_candidates * math.exp(-ceiling_loss))
    exact_examples = audited(result) * surprise_at_ceiling / surprise_at_target
    if exact_examples > _MOST_EXAMPLES:
        return 0
    magnitude = math.floor(math.log10(exact_examples))
    second_digit: int = 10 ** max(0, magnitude - 1)
    return math.ceil(1.1 * exact_examples / second_digit) * second_digit
