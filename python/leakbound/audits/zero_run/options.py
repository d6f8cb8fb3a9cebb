"""What a Zero-Run audit is asked: options, checked once, and which examples are audited."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from leakbound._base.checks import choice, flag, real
from leakbound._base.features import Encoding, FeatureTable, placed_features
from leakbound._base.messages import Message
from leakbound._base.streams import Purpose
from leakbound._base.types import Adversary, ArrayInput, BoolArray, FloatArray, IntArray
from leakbound.audits.road import AlignedScores, Request
from leakbound.cuts import Fixed
from leakbound.cuts.games import all_scores_are_equal
from leakbound.errors import AbstentionError, DesignError, OptionError
from leakbound.propensity import PropensityFit

CorrectionChoice: TypeAlias = Literal[
    "conditional", "match", "poisson_binomial", "tamper", "composition"
]
Uncertainty: TypeAlias = Literal["set", "bootstrap", "none"]
ZeroRunVariant: TypeAlias = Literal["directional", "paper", "untampered"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroRunOptions:
    """The options of `ZeroRun`, checked."""

    correction: CorrectionChoice = "conditional"
    adversary: Adversary | None = None
    variant: ZeroRunVariant = "directional"
    uncertainty: Uncertainty | None = None
    features: ArrayInput | None = None
    max_log_odds: float | None = None
    falsify: bool = True
    release_refuted: bool = False

    def __post_init__(self) -> None:
        choice(self.correction, "correction", CorrectionChoice)
        choice(self.variant, "variant", ZeroRunVariant)
        if self.adversary is not None:
            choice(self.adversary, "adversary", Adversary)
        if self.uncertainty is not None:
            choice(self.uncertainty, "uncertainty", Uncertainty)
        for name in ("falsify", "release_refuted"):
            object.__setattr__(self, name, flag(getattr(self, name), name))
        if self.max_log_odds is not None:
            limit = real(self.max_log_odds, "max_log_odds", above=0)
            object.__setattr__(self, "max_log_odds", limit)

    @property
    def limit(self) -> float:
        """The largest |λ| of an example that is audited."""
        return np.inf if self.max_log_odds is None else self.max_log_odds


def audited_rows_of(
    examples: AlignedScores,
    largest_log_odds: FloatArray,
    options: ZeroRunOptions,
    request: Request,
    left_out: BoolArray | None = None,
) -> IntArray:
    """Return the rows that are audited, in an order that says nothing about membership.

    `largest_log_odds` has the largest |λ| of each example, and `left_out` are examples of which
    features do not tell all: rows are chosen by features alone.
    """
    is_audited = largest_log_odds <= options.limit
    if left_out is not None:
        is_audited &= ~left_out
    audited_rows = np.flatnonzero(is_audited)
    if audited_rows.size < 2:
        raise no_overlap(_too_few_to_pair(audited_rows.size, options))
    for attack_scores in examples.attacks.scores.values():
        if attack_scores[audited_rows].min() == attack_scores[audited_rows].max():
            raise AbstentionError(all_scores_are_equal(audited_rows.size))
    if isinstance(request.cuts, Fixed):
        request.cuts.check(audited_rows.size)
    return Purpose.AUDITED_ORDER.rng(request.seed).permutation(audited_rows)


def _too_few_to_pair(examples: int, options: ZeroRunOptions) -> str:
    """Say that too few examples are left."""
    size = f"{examples} example{'' if examples == 1 else 's'}"
    within = ""
    if options.max_log_odds is not None:
        within = f" with |log-odds| of at most {options.limit:g}"
    return f"there is no pair to compare among {size}{within}"


def features_of(
    examples: AlignedScores, options: ZeroRunOptions, encoding: Encoding | None = None
) -> FeatureTable:
    """Return the features of examples, in the columns that the model was fitted to."""
    if options.features is None:
        message = "a propensity model needs the features of the audited examples: {features=}"
        raise OptionError(Message(message))
    return placed_features(examples.order, options.features, encoding=encoding)


def features_for_fit(
    examples: AlignedScores, options: ZeroRunOptions, model: PropensityFit
) -> FeatureTable:
    """Return the features that a fitted model needs, of examples none of which is in its D'."""
    feature_table = features_of(examples, options, model.rows.encoding)
    ids = examples.order.distinct_ids
    if ids is not None:
        model.rows.check_disjoint(ids)
    return feature_table


def no_overlap(why: str) -> DesignError:
    """Return the error that says why nothing can be concluded."""
    return DesignError(
        f"{why}: members and non-members do not overlap, so high scores of members may be due to "
        "their features as well as to training, and no audit can distinguish the two (Proposition "
        "3 of Cebere, Even, Bleistein and Bellet); find non-members that could have been members"
    )
