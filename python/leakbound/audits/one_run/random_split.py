"""Audits of a model that was trained on a random part of the examples."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_ids, check_length
from leakbound._base.types import ArrayInput, FloatArray, HasMember, IntArray, JsonValue
from leakbound.audits.engine.evidence import delta_warnings, family_assumption
from leakbound.audits.engine.pairs import Pairs, Units, check_codes
from leakbound.audits.multiplicity import Attacks, Proof
from leakbound.audits.one_run.challenge import challenge, challenged
from leakbound.audits.one_run.grounds import one_run_result, options_before, scores_from
from leakbound.audits.one_run.proofs import one_run_proof
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.claims import FAMILIES, Claim
from leakbound.propensity.data import check_features
from leakbound.results import Assumption, AuditResult

_COINS = (
    "Members and non-members of a random split are matched at random; given the pairs and what is "
    "left over, a fair coin of its own decides which {unit} of each pair was trained on, and to "
    "turn it replaces one training {unit} by another. "
)
_PURE = (
    "So each guess is right with probability at most e^ε / (1 + e^ε), given the {output} and "
    "the coins of the guesses before, if training is ε-DP for replacing one {unit} (as Steinke, "
    "Nasr and Jagielski 2023, Proposition 5.1, with pairs in place of examples). "
)
_APPROX = (
    "So each guess is right with probability at most e^ε / (1 + e^ε), given the coins of the other "
    "pairs, but for failures that (ε, δ)-DP for replacing one {unit} makes rare. "
)
_FAMILY = (
    "So, given the coins of the other pairs, each correct guess obeys the trade-off function of "
    "replacing one {unit}, and so do the probabilities of all counts of correct guesses together "
    "(Mahloujifar, Melis and Chaudhuri 2025, Theorem 3.1, with pairs in place of examples). ε is a "
    "conversion of the rejected curve and holds within the family. "
)


@dataclass(frozen=True, kw_only=True)
class SplitWords:
    """What the split moved one by one, unless groups are told, and what scores were made from.

    `columns` has the names of features, if they have any.
    """

    unit: str = "example"
    output: str = "trained model"
    columns: tuple[str, ...] = ()


_MODEL = SplitWords()


def audit_split(
    scores: ArrayInput | Mapping[str, ArrayInput],
    member: ArrayInput | HasMember,
    request: OneRunRequest,
    words: SplitWords = _MODEL,
) -> AuditResult:
    """Audit one claim, about replacing one example, where a random subset was trained on."""
    order = ExampleOrder(request.ids)
    attacks = Attacks.read(scores, order)
    included = order.member(member, attacks.examples)
    if request.ids is not None:
        check_ids(request.ids, included)
    codes = {
        name: check_codes(order.placed(given, name), attacks.examples, name)
        for name, given in (("strata", request.strata), ("groups", request.groups))
        if given is not None
    }
    numbered = {name: np.unique(one, return_inverse=True)[1] for name, one in codes.items()}
    units = Units.of(included, numbered.get("strata"), codes.get("groups"), request.aggregate)
    pairs = Pairs.drawn(units, request.seed)

    def prove(values: FloatArray, level: float) -> Proof:
        game = pairs.game(units.scores(values), request.seed)
        return one_run_proof(request, game, None, level)

    made = None
    if request.features is not None:
        table = check_features(order.placed(request.features, "features"), "features")
        check_length(table[:, 0], attacks.examples, "features")
        made = challenge(pairs, units.features(table), request.seed, words.columns)
    if request.groups is not None:
        words = replace(words, unit="user")
    claim = request.claim
    result = one_run_result(
        attacks.prove(request.level, prove),
        request,
        theorem=split_theorem(claim, words),
        assumptions=_assumptions(request, words, attacks.others),
        options=_options(units, pairs, request, words.unit),
        warnings=delta_warnings(claim.delta, pairs.count),
        inputs={**attacks.digested, "member": included, **_digested(numbered)},
    )
    return result if made is None else challenged(result, made)


def _options(units: Units, pairs: Pairs, request: OneRunRequest, unit: str) -> dict[str, JsonValue]:
    more: dict[str, JsonValue] = {
        "relation": "replace",
        "unit": unit,
        "pairs": pairs.count,
        "left_over": units.count - 2 * pairs.count,
        "transform": "stretched",
    }
    if request.strata is not None:
        more["strata"] = int(np.unique(units.stratum).size)
    if request.groups is not None:
        more["groups"] = units.count
        more["aggregate"] = request.aggregate
    return more


def _digested(codes: Mapping[str, IntArray]) -> dict[str, IntArray]:
    return {name: values.astype(np.int64) for name, values in codes.items()}


def split_theorem(claim: Claim, words: SplitWords = _MODEL) -> str:
    """Return why a bound from a random split holds, where the split moved such units."""
    follows = _FAMILY if isinstance(claim, FAMILIES) else _APPROX if claim.delta else _PURE
    return (_COINS + follows).replace("{unit}", words.unit).replace("{output}", words.output)


def _assumptions(request: OneRunRequest, words: SplitWords, others: str) -> tuple[Assumption, ...]:
    claim, unit = request.claim, words.unit
    subject = "The trade-off function" if isinstance(claim, FAMILIES) else "ε"
    within = "" if request.strata is None else ", within each stratum"
    moved = "" if request.groups is None else ", all rows of a user on one side"
    return (
        Assumption(
            "random split",
            f"The {unit}s that were trained on are a uniformly random subset of so many of these "
            f"{unit}s{within}{moved}; the bound is over that choice, the matching that the seed "
            f"draws, and whatever training draws, given the {unit}s.",
            "declared",
        ),
        Assumption(
            "audited examples did not choose the model",
            "Nothing about training looked at the examples held out: no early stopping, selection "
            "of a checkpoint or tuning of an option. Validation data is another part of the data.",
            "declared",
        ),
        Assumption(
            f"replace one {unit}",
            f"{subject} is that of training with one {unit} replaced by another, of those audited "
            f"too{within}. Training that is ε-DP under adding or removing one {unit} may reach 2ε "
            "here." + (f" δ is {claim.delta:g}." if claim.delta else ""),
            "declared",
        ),
        scores_from(words.output, f"{unit}s"),
        options_before(others),
        Assumption(
            "order from scores alone",
            "Given the split and the scores, pairs were matched at random, from the seed; cuts and "
            "order of the guesses depend on the sizes of differences only.",
            "checked",
        ),
        *family_assumption(claim),
    )
