"""Labels for generated examples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import integer
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray
from leakbound.errors import InputError, InputTypeError
from leakbound.generators.members import read_array, read_labels


@dataclass(frozen=True)
class Labeler:
    """Labels examples that a generator made without labels, as their distribution would have it.

    A classifier learns the probability of each label from the members of the generator, and labels
    are *drawn* from it. The likeliest label of each would be a giveaway: real labels are noisy.

    Parameters
    ----------
    classifier : object, optional
        An unfitted classifier of scikit-learn with `predict_proba`, well calibrated; by default a
        logistic regression on standardised values.
    """

    classifier: Any = None

    def __post_init__(self) -> None:
        if self.classifier is not None and not hasattr(self.classifier, "predict_proba"):
            message = f"classifier must be an unfitted classifier, got {self.classifier!r}"
            raise InputTypeError(message)

    def fit(self, values: ArrayInput, labels: ArrayInput) -> "FittedLabeler":
        """Learn labels (integers, booleans or strings) from the generator's members."""
        array = read_array(values)
        classes = read_labels(labels, len(array))
        if classes is None:
            message = "a labeler learns from labels, got None"
            raise InputError(message)
        names = np.unique(classes)
        if names.size == 1:
            return FittedLabeler(None, names)
        with needs("ml", "Labeler"):
            from sklearn.base import clone
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        logistic = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        model = logistic if self.classifier is None else clone(self.classifier)
        model.fit(array.reshape(len(array), -1), classes)
        return FittedLabeler(model, names)


@dataclass(frozen=True, eq=False)
class FittedLabeler:
    """What `Labeler.fit` returns."""

    model: Any
    classes: NDArray[Any]

    def probabilities(self, values: NDArray[Any]) -> FloatArray:
        """Return the probability of each label."""
        if self.model is None:
            return np.ones((len(values), 1))
        return np.asarray(self.model.predict_proba(values.reshape(len(values), -1)), np.float64)

    def sample(self, values: NDArray[Any], *, seed: int) -> NDArray[Any]:
        """Draw a label for each example."""
        rng = Purpose.LABELS.rng(integer(seed, "seed", least=0))
        limits = self.probabilities(values).cumsum(1)[:, :-1]
        labels: NDArray[Any] = self.classes[(rng.random(len(values))[:, None] >= limits).sum(1)]
        return labels
