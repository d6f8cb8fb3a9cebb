"""Zero-Run where propensities are learnt from the audit set itself, each fold's from the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from leakbound._base.validation import check_length
from leakbound.errors import IncompatibleOptionsError, UnmatchedIdsError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from leakbound._base.types import ArrayInput, BoolArray, FloatArray, JsonValue
    from leakbound.audits.multiplicity import Attacks
    from leakbound.propensity import CrossFit, PropensityFit
    from leakbound.results.zero_run import ZeroRunResult

__all__ = ["Fold", "Folds"]


class FoldOptions(TypedDict):
    """Options of an audit that each fold has of its own."""

    features: FloatArray
    ids: ArrayInput | None
    checkpoint: Path | None


@dataclass(frozen=True, eq=False)
class Fold:
    """What is audited with a model that did not see it.

    Parameters
    ----------
    scores : ndarray of float64, or dict of str to it
        Scores of the fold, by attack if there are several.
    member : ndarray of bool
        Membership.
    model : PropensityFit
        Learnt from the other folds.
    options : dict
        Features, ids, and where to keep refits of the model.
    """

    scores: Any
    member: BoolArray
    model: PropensityFit
    options: FoldOptions


@dataclass(frozen=True, eq=False)
class Folds:
    """The folds of an audit set.

    Parameters
    ----------
    crossed : CrossFit
        The models and their folds.
    attacks : Attacks
        Scores of all.
    member : ndarray of bool, shape (m,)
        Membership of all.
    ids : array-like, optional
        Ids of all.
    checkpoint : str or os.PathLike, optional
        A folder that has one for each fold.
    """

    crossed: CrossFit
    attacks: Attacks
    member: BoolArray
    ids: ArrayInput | None
    checkpoint: str | os.PathLike[str] | None

    def check(self, features: ArrayInput | None) -> None:
        """Check that the folds are those of the audited examples.

        Parameters
        ----------
        features : array-like, optional
            What was passed for features; they are those of the folds.

        Raises
        ------
        IncompatibleOptionsError
            If features were passed.
        LengthMismatchError
            If there are more or fewer examples.
        UnmatchedIdsError
            If the membership that the models learnt from is another one, or in another order.
        """
        if features is not None:
            message = "a CrossFit has the features of the audited examples: leave out features"
            raise IncompatibleOptionsError(message)
        check_length(self.crossed.fold, self.attacks.examples, "the folds of propensity")
        other = np.flatnonzero(self.crossed.member != self.member)
        if other.size:
            message = (
                "propensity was cross-fitted with another membership, or with the examples in "
                f"another order than the scores ({other.size} rows differ, the first being row "
                f"{other[0]}): cross-fit in the order of the scores"
            )
            raise UnmatchedIdsError(message)

    def best(self, beta: float, audit: Callable[[Fold, float], ZeroRunResult]) -> ZeroRunResult:
        """Audit every fold at its share of the error probability, and return the best.

        Given the memberships of the other folds, the propensities of a fold are fixed and its own
        memberships independent of them, so that each bound holds at its share and the best at the
        whole. If the propensities of any fold were refuted, its result is returned in place of the
        best, since all models are of one kind.

        Parameters
        ----------
        beta : float
            Probability of error of all together.
        audit : callable
            Audits a fold at a confidence.

        Returns
        -------
        ZeroRunResult
            The winner; its options tell which fold it is of, and what the others proved.
        """
        level = beta / len(self.crossed.fits)
        results = [audit(fold, 1 - level) for fold in self._parts()]
        refuted = [number for number, result in enumerate(results) if result.withheld]
        sign = -1 if results[0].bounds_above else 1
        chosen = max(range(len(results)), key=lambda number: sign * results[number].bound)
        if refuted:
            chosen = refuted[0]
        winner = results[chosen]
        told: dict[str, JsonValue] = {
            "fold": chosen,
            "folds": [result.bound for result in results],
            "folds_level": level,
        }
        return replace(winner, options=winner.options | told)

    def _parts(self) -> Iterator[Fold]:
        for number, (rows, model) in enumerate(self.crossed.parts()):
            scores = {name: values[rows] for name, values in self.attacks.scores.items()}
            yield Fold(
                scores=replace(self.attacks, scores=scores).given,
                member=self.member[rows],
                model=model,
                options={
                    "features": self.crossed.features[rows],
                    "ids": None if self.ids is None else np.asarray(self.ids)[rows],
                    "checkpoint": None
                    if self.checkpoint is None
                    else Path(self.checkpoint, f"fold-{number}"),
                },
            )
