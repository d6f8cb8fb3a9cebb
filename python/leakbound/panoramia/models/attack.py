"""Baseline and attack: stacked models of the example and of the outputs of other models."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np

from leakbound._base.checks import choice
from leakbound._base.imports import needs
from leakbound._base.types import BoolArray, FloatArray, JsonObject
from leakbound.cuts import CutPolicy, Policy, ScoreGame
from leakbound.errors import AbstentionError
from leakbound.panoramia.examples import Examples, Sample

Modality: TypeAlias = Literal["tabular", "image", "text"]

_MODULES: dict[Modality, str] = {"tabular": "trees", "image": "images", "text": "text"}


@dataclass(frozen=True, eq=False)
class FittedAttack:
    """A trained attack."""

    options: JsonObject
    """Hyper-parameters chosen on the validation data."""
    validation: FloatArray
    """Scores of the validation data."""
    parts: Callable[[Examples, FloatArray], FloatArray]
    """From examples and signals to the log-odds that each model of the stack gives: columns."""
    weights: Any
    """The logistic regression on these."""

    @classmethod
    def stack(
        cls,
        options: JsonObject,
        parts: Callable[[Examples, FloatArray], FloatArray],
        validation: Sample,
    ) -> Self:
        """Weigh models by a logistic regression on the log-odds that they give."""
        with needs("ml", "an attack"):
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        table = parts(validation.examples, validation.signals)
        weights = make_pipeline(StandardScaler(), LogisticRegression())
        weights.fit(table, validation.member)
        return cls(
            options=options,
            validation=np.asarray(weights.decision_function(table)),
            parts=parts,
            weights=weights,
        )

    def score(self, examples: Examples, signals: FloatArray) -> FloatArray:
        """Return the log-odds of membership, from what models say in the order of training."""
        return np.asarray(self.weights.decision_function(self.parts(examples, signals)))


@dataclass(frozen=True)
class StackedAttack:
    """A classifier of members against non-members.

    It sees the example and outputs of models on it: the helper's make it a baseline, helper's and
    target's the attack. Both are the same kind of model, so that they differ by the target only.

    Parameters
    ----------
    modality : {"tabular", "image", "text"}
        "tabular": boosted trees on columns, label and signals over a small grid, stacked by a
        logistic regression with trees on the signals alone. "image": a convolutional network, a
        dense one and boosted trees on image and label, stacked with a network on the signals.
        "text": a transformer on tokens, trained together with a network on the losses of every
        token, stacked with the transformer alone and mean losses.

    Notes
    -----
    Hyper-parameters and the moment to stop are those that prove most on validation data: the bound
    on c for a baseline, on c + ε for an attack (Kazmi et al. 2024, appendix C). Audit them on
    examples that are in neither part.
    """

    modality: Modality = "tabular"

    def __post_init__(self) -> None:
        choice(self.modality, name="modality", allowed=Modality)

    def fit(
        self,
        train: Sample,
        validation: Sample,
        *,
        seed: int,
        level: float,
        cuts: CutPolicy,
        device: str = "cpu",
        prepared: object = None,
    ) -> FittedAttack:
        """Train all candidates, and keep the one that proves most on validation data.

        `level` is the probability of error of the bound that is maximised under `cuts`, `device`
        where networks train, and `prepared` what `prepare` returned for the same examples and seed.
        """
        # Networks on examples alone are the same for baseline and attacks.
        ready = prepared or self.prepare(train, validation, seed=seed, device=device)
        candidates = self._models.candidates(train, validation, seed, ready, device)
        policy = cast("Policy", cuts)  # those of several tests were refused
        return _choose(candidates, validation.member, level=level, cuts=policy)

    def prepare(self, train: Sample, validation: Sample, *, seed: int, device: str = "cpu") -> Any:
        """Train what sees no signal, and so serves all attacks on the same examples."""
        return self._models.prepare(train, validation, seed, device)

    @property
    def _models(self) -> Any:
        """The module that trains the models; networks need torch."""
        return import_module(f"leakbound.panoramia.models.{_MODULES[self.modality]}")


def _choose(
    candidates: Iterable[FittedAttack], member: BoolArray, *, level: float, cuts: Policy
) -> FittedAttack:
    """Return the attack that proves most on validation data; of equals, the one of largest AUC."""

    # An attack whose scores are all tied proves nothing.
    def merit(candidate: FittedAttack) -> tuple[float, float]:
        try:
            game = ScoreGame(scores=candidate.validation, member=member, sides="member", seed=0)
            proof = cuts.audit(game, level)
        except AbstentionError:
            return 0.0, 0.5
        return proof.bound, proof.ranking.auc

    return max(candidates, key=merit)
