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
from leakbound.report.parts import Checked, ScoreAudit
from leakbound.results.dp_sgd import DPSGDAudit
from leakbound.results.one_run import AuditResult
from leakbound.results.terms import asked, audited, claimed_delta

if TYPE_CHECKING:
    from leakbound.results.panoramia import PanoramiaResult
    from leakbound.results.zero_run import ZeroRunResult

# Deviations of an AUC from 1/2, in standard deviations, that are chance, and that are large
_CHANCE = 3
# Views of a split that are about its records, and not about a column
_OF_RECORDS = {"closest pairs", "usual rows", "surprising labels"}
_LARGE = 12
# The ε that a perfect attack should reach at least, and the share of it that is nearly all
_REACH = 1.0
_NEAR = 0.9
# Shares of all examples that are few, and that are many
_FEW = 0.1
_MANY = 0.5
# An ε beyond which no audit reaches, and examples that no audit has
_HIGHEST = 100.0
_MANAGEABLE = 1e9
_FLAWS = "duplicates, outliers or wrong labels"
_OF_PARTS = {
    "membership": "Look for data that bypasses clipping, such as batch statistics, and for "
    "examples that are used twice: the canaries show more than the accountant allows.",
    "steps": "Check how noise is scaled: its standard deviation must be the noise multiplier times "
    "the clipping norm, before the sum is divided by the batch size.",
    "sampling": "Use a loader that draws Poisson samples at the stated rate, or give the "
    "accountant the sampling that was used.",
    "accounting": "Recompute ε with another accountant: the same noise, rate and steps allow a "
    "larger ε than the stated one.",
}


def first(steps: Iterable[str]) -> Strings:
    """Return the most urgent steps."""
    return tuple(islice(dict.fromkeys(steps), 3))


def of_audit(result: AuditResult, terms: Terms) -> Iterator[str]:
    """Yield steps after an audit of one ranking, the most urgent first."""
    unit = terms.units
    one = result.checked
    reach = terms.ceiling
    proves = KINDS[result.kind].proves
    if result.is_withheld:
        yield _of_withheld(result)
        return
    # 1. Scores, or a number of examples, that cannot show what the model leaks.
    flaws = (*_of_doubts(result), *_of_scores(result))
    yield from flaws
    yield from _of_whole(result)
    shifted = _is_shifted(result)
    target = _REACH
    if one is not None and one.verdict == "inconclusive" and _of_epsilon(result, one):
        target = max(target, one.value)
    few = proves and reach <= target
    if few:
        overlap = ""
        if _is_shifted(result):
            overlap = _of_overlap(result, terms)
        yield overlap or _of_reach(result, terms=terms, target=target)
    elif not result.bound and not flaws and shifted:
        yield from _of_no_residue()
    elif not result.bound and not flaws:
        yield from _of_nothing(result, unit)
    # 2. What is special about the design.
    yield from _of_shift(result)
    if not result.bound:
        return
    # 3. Where the leak is, and how to prove more.
    is_filled = _is_filled(result)
    located = proves and not is_filled and not result.wording.is_mechanism
    if located and terms.epsilon >= SMALL:
        yield _of_leak(result, unit)
    yield from _of_more(result, terms, few=few)


def _of_epsilon(result: AuditResult, one: Checked) -> bool:
    """Return whether an ε was claimed, and no other parameter."""
    return claimed_delta(result.claim, one) is not None


def _of_more(result: AuditResult, terms: Terms, *, few: bool) -> Iterator[str]:
    """Yield how to prove more than a bound above 0; `few` if more examples were asked for."""
    unit = terms.units
    m = audited(result)
    one = result.checked
    reach = terms.ceiling
    proves = KINDS[result.kind].proves
    reached = f"{terms.symbol} = {number(reach)}{terms.at}."
    near = math.isfinite(reach) and terms.epsilon >= _NEAR * reach and not few
    if near and proves and not _is_shifted(result) and not _is_filled(result):
        yield (
            f"To prove more, audit more {unit}: a perfect attack on these {m:,} would have reached "
            f"only {reached}"
        )
    if one is not None and one.verdict == "not refuted":
        yield (
            f"To test the claimed {asked(result.claim, one)} harder, choose a stronger attack for "
            f"the next audit: these {unit} allow bounds up to {reached}"
        )
    if isinstance(result.claim, PureDP) and proves and result.copies == 1:
        small = 10.0 ** -math.ceil(math.log10(10 * m))
        yield Message(
            "This bound only rules out guarantees with δ = 0. To test an (ε, δ) guarantee, use "
            "{with_delta} in the next audit.",
            with_delta=Option("claim", ApproxDP(delta=small)),
        )


def _of_withheld(result: AuditResult) -> str:
    """Return what to do about a bound that is withheld."""
    if _is_shifted(result):
        return "Fit richer propensities, or fit them to more examples, and audit again."
    found = result.options.get("challenge")
    if isinstance(found, dict) and found.get("view") in _OF_RECORDS:
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


def _of_reach(result: AuditResult, terms: Terms, target: float) -> str:
    """Return how many examples it takes to reach what was claimed, or an ε that is not small."""
    if result.copies > 1:
        return (
            f"Insert each record once: {result.copies} copies share one {terms.symbol}, so that "
            f"even a perfect attack on these {audited(result):,} {terms.units} reaches only "
            f"{terms.symbol} = {number(terms.ceiling)}{terms.at} for one record."
        )
    enough = _enough(result, target)
    one = result.checked
    many = f"more {terms.units}"
    if enough:
        many = f"about {enough:,} {terms.units}"
    aim = f"prove {terms.symbol} = {target:g}{terms.at}"
    if one is not None and target == one.value:
        aim = f"refute the claimed ε = {target:g}"
    return (
        f"To be able to {aim}, audit {many}: with these {audited(result):,}, even a perfect attack "
        f"reaches only {terms.symbol} = {number(terms.ceiling)}{terms.at}."
    )


def _is_shifted(result: AuditResult) -> TypeGuard["ZeroRunResult"]:
    """Return whether features may explain guesses; the type of such results loads propensities."""
    return hasattr(result, "correction")


def _of_overlap(result: "ZeroRunResult", terms: Terms) -> str:
    """Return what to do where features leave a perfect attack little; "" where they do not."""
    if not result.guesses and not result.searched and result.kept == result.m:
        return f"{result.reason[:1].upper()}{result.reason[1:]}."  # it says what to do
    if result.correction == "match" and result.kept < _MANY * result.m:
        return _of_matched(result)
    if result.correction == "composition":
        return Message(
            'Audit with {correction="match"}: composition subtracts the most that the features of '
            "any one example may reveal, and leaves even a perfect attack only {ceiling}.",
            ceiling=f"{terms.symbol} = {number(terms.ceiling)}{terms.at}",
        )
    if result.overlap.m_eff >= _MANY * result.m:
        return ""
    return (
        "Look for members and non-members that resemble each other: with the odds that features "
        f"give these {result.m:,} {terms.units}, even a perfect attack reaches only "
        f"{terms.symbol} = {number(terms.ceiling)}{terms.at}."
    )


def _of_matched(result: "ZeroRunResult") -> str:
    most = "at most "
    if result.learnt is None:
        most = ""
    return (
        f"Look for non-members that resemble the members more: matching kept {most}"
        f"{result.kept:,} of {result.m:,} examples."
    )


def _of_no_residue() -> Iterator[str]:
    """Yield what to do about a Zero-Run bound of 0 where a perfect attack would show something."""
    yield (
        "For the next audit, choose a stronger attack, such as offline_lira or rmia with reference "
        "models: these scores say too little about membership beyond the features."
    )


def _of_doubts(result: "AuditResult | PanoramiaResult") -> Iterator[str]:
    """Yield which assumptions to check."""
    for one in result.assumptions:
        if one.status == "contradicted":
            yield f"Check “{one.name}” before you use this result: the data contradict it."


def _of_whole(result: AuditResult) -> Iterator[str]:
    """Yield whose ε a refuted claim must be."""
    one = result.checked
    if one is None or one.verdict != "refuted" or not _of_one_training(result):
        return
    yield (
        f"Check that the claimed {asked(result.claim, one)} is that of the whole training: all "
        "rounds, epochs and clients together. A claim for a single round does not hold for the "
        "released model: compose all rounds first."
    )


def _of_one_training(result: AuditResult) -> bool:
    """Return whether one training run was audited, all at once and without correction."""
    mechanism = result.wording.is_mechanism
    return not (mechanism or _is_shifted(result) or "batches" in result.options)


def _is_filled(ranking: "ScoreAudit | PanoramiaResult") -> bool:
    """Return whether all of one part share a score, as where missing ones were filled in."""
    return any(FILLED in text for text in ranking.warnings)


def _of_scores(ranking: ScoreAudit) -> Iterator[str]:
    """Yield what to do about scores that were filled in, or inverted; warnings tell ties."""
    if _is_filled(ranking):
        yield (
            "Check how the scores were made: all of one part have the same, which almost none "
            "of the other part have. Score all records in the same way, and audit again."
        )
    if _deviations(ranking) < -_CHANCE:
        yield (
            "Check the sign of the score: members score lower than non-members (AUC "
            f"{ranking.auc:.3f}). Do not flip it for these records: a flipped sign needs new "
            "coins, or a new split."
        )


def _of_nothing(result: AuditResult, unit: str) -> Iterator[str]:
    """Yield what to do about a bound of 0 where examples are enough."""
    deviations = _deviations(result)
    m = audited(result)
    auc = f"AUC {result.auc:.3f}"
    if deviations > _CHANCE:
        yield (
            f"Audit more {unit}, about {4 * m:,}: the scores separate members from non-members "
            f"({auc}), but too weakly for {m:,} {unit}."
        )
        return
    yield (
        "For the next audit, choose a stronger attack, such as offline_lira or rmia with reference "
        f"models: these scores separate members from non-members no better than chance ({auc})."
    )
    if result.relation == "add_remove" and _of_one_training(result):
        yield (
            f"Audit canaries that the model can only get right by memorising them: these {unit} "
            "may be easy to learn without memorising."
        )


def _of_shift(result: Any) -> Iterator[str]:
    """Yield what to do about a Zero-Run audit."""
    if result.kind == "exploratory_lower_bound":
        yield (
            'Audit with uncertainty="set": this number ignores the error of the learnt '
            "propensities, so no claim can be tested with it."
        )
    if getattr(result, "correction", "") != "match":
        return
    if result.kept < _MANY * result.m:
        yield _of_matched(result)
    if result.by_tampering is not None and result.by_tampering < _MANY * result.bound:
        yield Message(
            "Check the propensities before you rely on this bound: matching needs a right model. "
            '{correction="tamper"}, which allows for some error in it, shows much less here.'
        )


def _of_leak(result: AuditResult, unit: str) -> str:
    """Return where the leak is, and what may be done about it."""
    # of groups that differ, features alone may separate the scores
    shifted = _is_shifted(result)
    guessed = result.guesses / max(1, audited(result))
    if guessed < _MANY and (shifted or _deviations(result) <= _LARGE):
        return _of_few(result, unit, is_few=guessed <= _FEW)
    auc = ""
    if not shifted:
        auc = f" (AUC {result.auc:.3f})"
    return (
        "Reduce overfitting (train less, choose a smaller model, regularise), or train with "
        f"DP: the leak is spread over many {unit}{auc}."
    )


def _of_few(result: AuditResult, unit: str, *, is_few: bool) -> str:
    """Return at which examples to look, where a part of them was guessed about."""
    where = {"members": "the highest scores", "non-members": "the lowest scores"}
    extreme = "the most extreme scores"
    if _is_shifted(result):
        extreme += ", given their features"
    who = f"{result.guesses:,} {unit} with {where.get(result.path, extreme)}"
    if result.guessed == PILOT_GUESSES:
        who = f"{result.guesses:,} {unit} at ranks chosen with a pilot sample"
    listed = result.exposed
    if listed is not None and listed.rows.size:
        who = f"{listed.rows.size:,} most exposed members (result.exposed)"
    few = ""
    if is_few:
        few = "The bound is from few records. "
    look = f"{few}Look at the {who}. Are there {_FLAWS}?"
    if result.path == "non-members":
        return look
    return f"{look} Fix or remove these, and train again."


# How an audit of given scores gets more than an estimate.
_WITH_FEATURES = Message(
    "Pass features to get a conditional lower bound from the same examples. With real "
    "non-members, {real_nonmembers=True} gives a lower bound without a condition."
)


def of_estimate(result: "PanoramiaResult", more_bounds: str = _WITH_FEATURES) -> Iterator[str]:
    """Yield steps after an audit against generated non-members.

    `more_bounds` says how to get lower bounds next to the estimate; "" if there are no more.
    """
    attack = result.attack
    baseline = result.baseline
    c = result.c_lb
    estimate = result.kind == "estimate"
    yield from _of_doubts(result)
    yield from _of_scores(attack)
    if estimate and c > _MANY * attack.ceiling:
        yield (
            "Improve the generator: its examples are so easy to distinguish from real ones (c ≥ "
            f"{number(c)} of at most {number(attack.ceiling)}) that ε̃ cannot exceed "
            f"{number(max(0.0, attack.ceiling - c))}, whatever the model leaks."
        )
    if not result.bound:
        aucs = f"with the model its AUC is {attack.auc:.3f}, and without {baseline.auc:.3f}"
        weak = _deviations(attack) - _deviations(baseline) < _CHANCE
        way = "Audit more examples"
        if weak:
            way = "Use a stronger attack"
        yield f"{way}: {aucs}."
    if result.conditional is not None and result.conditional.bound > 0:
        bound = f"ε ≥ {number(result.conditional.epsilon())}"
        yield (
            f"Report the conditional bound, {bound}, and its condition together with the estimate."
        )
    if estimate and result.conditional is None and more_bounds:
        yield more_bounds
    symbol = "ε"
    if estimate:
        symbol = "ε̃"
    if result.bound and result.bound >= _NEAR * result.ceiling and not _is_filled(result):
        yield (
            f"To see more, audit more than {result.m:,} examples: with these, even a perfect "
            f"attack shows at most {symbol} = {number(result.ceiling)}."
        )


def of_run(result: DPSGDAudit) -> Iterator[str]:
    """Yield steps after an audit of a training run with DP-SGD."""
    stated = result.accounted
    proved = result.epsilon()
    yield from (_OF_PARTS[part] for part in result.refuted_by)
    if not result.sampling.limits:
        yield "Pass examples=len(dataset): without it, the sampling rate is not tested."
    yield from _of_scores(result.membership)
    if stated is not None and proved < _MANY * stated.epsilon:
        yield (
            f"To get closer to the accounted ε ({stated.epsilon:.4g}), use more than "
            f"{result.membership.m:,} canaries, or canaries with larger gradients. A gap is normal."
        )


def _deviations(ranking: ScoreAudit) -> float:
    """Return how many standard deviations of chance an AUC is above 1/2."""
    roc = ranking.roc
    if not roc.guesses.size:
        return 0.0
    members = int(roc.members[-1])
    examples = int(roc.guesses[-1])
    pairs = max(1, members * (examples - members))
    return (ranking.auc - 0.5) / math.sqrt((examples + 1) / (12 * pairs))


def _enough(result: AuditResult, target: float) -> int:
    """Return about how many examples a perfect attack needs for an ε; 0 if unknown or absurd."""
    if not isinstance(result.claim, PureDP) or result.ceiling <= 0:
        return 0
    # all of m guesses right have probability level = q^m, with q = e^ceiling / (e^ceiling + k - 1)
    others = result.options.get("k", 2) - 1
    copies = result.copies  # of which a guess is about all at once
    aimed = min(copies * target, _HIGHEST)
    each = math.log1p(others * math.exp(-aimed))
    now = math.log1p(others * math.exp(-copies * result.ceiling))
    exact = audited(result) * now / each
    if exact > _MANAGEABLE:
        return 0
    magnitude = math.floor(math.log10(exact))
    digits: int = 10 ** max(0, magnitude - 1)
    return math.ceil(1.1 * exact / digits) * digits
