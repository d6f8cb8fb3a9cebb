"""Baseline and attack: a model of the example, and of what other models say of it, stacked."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from leakbound._base.checks import choice, instance, integer, real
from leakbound._base.imports import needs
from leakbound._base.types import BoolArray, FloatArray, JsonValue
from leakbound.cuts import CUT_POLICIES, CutPolicy, KLScan, ScoreGame
from leakbound.errors import AbstentionError, InputError
from leakbound.panoramia.examples import Examples, Sample

Modality: TypeAlias = Literal["tabular", "image", "text"]

_MODULES: dict[Modality, str] = {"tabular": "trees", "image": "images", "text": "text"}


@dataclass(frozen=True, eq=False)
class FittedAttack:
    """What `StackedAttack.fit` returns: an attack that was trained.

    Parameters
    ----------
    options : dict
        Hyper-parameters chosen on the validation data.
    validation : ndarray of float64, shape (n,)
        Scores of the validation data.
    parts : callable
        From examples and signals to the log-odds that each model of the stack gives: columns.
    weights : object
        The logistic regression on these.
    """

    options: dict[str, JsonValue]
    validation: FloatArray
    parts: Callable[[Examples, FloatArray], FloatArray]
    weights: Any

    @classmethod
    def stack(
        cls,
        options: dict[str, JsonValue],
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
        return cls(options, np.asarray(weights.decision_function(table)), parts, weights)

    def score(self, examples: Examples, signals: FloatArray) -> FloatArray:
        """Return the log-odds of membership.

        Parameters
        ----------
        examples : Examples
            Examples of either kind.
        signals : ndarray of float64, shape (n, models, values)
            What the models say of them, in the order of the training data.
        """
        return np.asarray(self.weights.decision_function(self.parts(examples, signals)))


@dataclass(frozen=True)
class StackedAttack:
    """A classifier of members against non-members.

    It sees the example and what models say of it: the helper alone makes it a baseline, helper and
    target the attack. Both are the same kind of model, so that they differ by the target only.

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
        choice(self.modality, "modality", Modality)

    def fit(
        self,
        train: Sample,
        validation: Sample,
        *,
        seed: int = 0,
        level: float = 0.025,
        cuts: CutPolicy | None = None,
        prepared: Any = None,
    ) -> FittedAttack:
        """Train all candidates, and keep the one that proves most on validation data.

        `level` is the probability of error of the bound that is maximised under `cuts`, and
        `prepared` what `prepare` returned for the same examples and seed.
        """
        seed = integer(seed, "seed", least=0)
        level = real(level, "level", above=0, below=1)
        policy = KLScan() if cuts is None else cuts
        instance(policy, "cuts", CUT_POLICIES)
        for name, part in (("train", train), ("validation", validation)):
            _check(part, name, train)
        # Networks on examples alone are the same for baseline and attacks.
        ready = self.prepare(train, validation, seed=seed) if prepared is None else prepared
        candidates = self._models.candidates(train, validation, seed, ready)
        return _choose(candidates, validation.member, level=level, cuts=policy)

    def prepare(self, train: Sample, validation: Sample, *, seed: int = 0) -> Any:
        """Train what sees no signal, and so serves all attacks on the same examples."""
        return self._models.prepare(train, validation, seed)

    @property
    def _models(self) -> Any:
        """The module that trains the models; networks need torch."""
        return import_module(f"leakbound.panoramia.models.{_MODULES[self.modality]}")


def _choose(
    candidates: Iterable[FittedAttack], member: BoolArray, *, level: float, cuts: CutPolicy
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


def _check(part: Sample, name: str, like: Sample) -> None:
    if not len(part.examples) == len(part.signals) == len(part):
        message = f"signals and membership of {name} must describe the same examples"
        raise InputError(message)
    if part.signals.shape[1:] != like.signals.shape[1:]:
        shapes = f"{part.signals.shape[1:]} and {like.signals.shape[1:]}"
        message = f"{name} and training data have signals of shape {shapes}: pass the same models"
        raise InputError(message)
    if not 0 < int(part.member.sum()) < len(part):
        message = f"{name} must hold members and non-members, got {int(part.member.sum())} members"
        raise InputError(message)
