"""Stacking, and the choice among attacks by what they prove on validation data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from leakbound._base.types import BoolArray, FloatArray, JsonValue
from leakbound.audits.engine.ranking import audit_scores
from leakbound.cuts import CutPolicy, ScoreGame
from leakbound.errors import AbstentionError, MissingExtraError
from leakbound.panoramia.examples import Examples

__all__ = ["Candidate", "Stack", "choose"]

Score: TypeAlias = Callable[[Examples, FloatArray], FloatArray]
"""From examples and what models say of them to the log-odds of membership."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """An attack that was trained and may be chosen."""

    options: dict[str, JsonValue]
    validation: FloatArray
    score: Score


@dataclass(frozen=True, eq=False)
class Stack:
    """A logistic regression on the log-odds that several models give."""

    model: Any

    @classmethod
    def fit(cls, parts: FloatArray, member: BoolArray) -> Self:
        """Fit the weights."""
        try:
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        except ImportError as error:
            message = (
                "attacks need scikit-learn, which is not installed: pip install 'leakbound[ml]'"
            )
            raise MissingExtraError(message) from error
        return cls(make_pipeline(StandardScaler(), LogisticRegression()).fit(parts, member))

    def logits(self, parts: FloatArray) -> FloatArray:
        """Return the log-odds of membership."""
        return np.asarray(self.model.decision_function(parts), dtype=np.float64)


def choose(
    candidates: Iterable[Candidate], member: BoolArray, *, level: float, cuts: CutPolicy
) -> Candidate:
    """Return the attack that proves most on validation data; of equals, the one of largest AUC."""

    def merit(candidate: Candidate) -> tuple[float, float]:
        try:
            game = ScoreGame(scores=candidate.validation, member=member, sides="member", seed=0)
            found = audit_scores(cuts, game, level)
        except AbstentionError:
            return 0.0, 0.5
        return found.bound, found.auc

    return max(candidates, key=merit)
