"""Members unlike non-members, in real data: classes as sites, and surveys of two years."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch import nn
from torch.utils.data import TensorDataset

from leakbound._base.numerics import expit
from leakbound.torch import score
from leakbound.torch.device import reproducible
from real_data import Table, census_income, fashion_mnist
from streams import derived, generator
from training import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from leakbound._base.types import BoolArray, FloatArray, IntArray

__all__ = ["SHIFTS", "Shifted"]

_STRENGTH = 2.0
"""Log-odds of membership of the class that members favour most."""
_FEATURES = 50
"""Numbers that propensities are learnt from, as many as the paper keeps of its embeddings."""
_EPOCHS = 60
_YEAR = "year"
_LABEL = "education"
_GROWN = 25
_ONE_YEAR = (
    *("employment", "region before", "state before", "migration in msa", "migration in region"),
    *("migration within region", "same house", "sunbelt before"),
)
"""Columns with answers that only one year has: with them no person could be in both."""


@dataclass(frozen=True)
class Drawn:
    """Examples, who of them became a member, and the log-odds of that where they are known."""

    values: NDArray[np.float32]
    labels: IntArray
    features: FloatArray
    member: BoolArray
    log_odds: FloatArray | None


@dataclass(frozen=True)
class Shifted:
    """Scores of a network that overfits its members, and what propensities are learnt from."""

    scores: FloatArray
    member: BoolArray
    features: FloatArray
    holdout_features: FloatArray
    holdout_member: BoolArray
    log_odds: FloatArray | None

    @property
    def propensity(self) -> FloatArray | None:
        """The probability of membership, where it is known."""
        if self.log_odds is None:
            return None
        return expit(self.log_odds)

    @classmethod
    def create(cls, draw: Callable[[int, int], Drawn], m: int, seed: int) -> Shifted:
        """Draw 2m examples, train on the members among them, and score the first half."""
        drawn = draw(2 * m, seed)
        values = torch.from_numpy(drawn.values)
        labels = torch.from_numpy(drawn.labels)
        chosen = torch.from_numpy(drawn.member)
        width = values.shape[1]
        classes = int(labels.max()) + 1

        def network() -> nn.Module:
            return nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, classes))

        recipe = Recipe(network, batch_size=128, learning_rate=2e-3)
        with reproducible():
            (model,) = recipe.overfit(
                TensorDataset(values[chosen], labels[chosen]),
                [_EPOCHS],
                derived("papers/shifted", seed),
            )
            audited = TensorDataset(values[:m], labels[:m])
            scores = score(model.network, audited, device="cpu", progress=False).values
        log_odds = None
        if drawn.log_odds is not None:
            log_odds = drawn.log_odds[:m]
        return cls(
            scores=scores,
            member=drawn.member[:m],
            features=drawn.features[:m],
            holdout_features=drawn.features[m:],
            holdout_member=drawn.member[m:],
            log_odds=log_odds,
        )


def _images(n: int, seed: int, *, strength: float) -> Drawn:
    """Draw images of classes that members favour, from one end of the list to the other."""
    train, _ = fashion_mnist()
    rng = generator("papers/sites", seed)
    rows = rng.choice(len(train.labels), size=n, replace=False)
    pixels = train.values[rows].reshape(n, -1)
    values = (pixels / 255 - 0.3).astype(np.float32)
    labels = train.labels[rows]
    log_odds_of_classes = strength * np.linspace(-1, 1, num=10)
    log_odds = log_odds_of_classes[labels]
    one_hot_classes = np.eye(10)[labels]
    principal_components = _components(values, _FEATURES - 10)
    return Drawn(
        values=values,
        labels=labels,
        features=np.concatenate([one_hot_classes, principal_components], axis=1),
        member=rng.random(n) < expit(log_odds),
        log_odds=log_odds,
    )


def _people(n: int, seed: int, *, years: bool) -> Drawn:
    """Draw people whose year of the survey is their membership, or people of 1994 by coins."""
    table = _adults()
    year = table.values[:, table.columns.index(_YEAR)]
    rng = generator("papers/surveys", seed)
    asked = np.arange(year.size)
    if not years:
        asked = np.flatnonzero(year == year.min())
    left_out = [table.columns.index(name) for name in (*_ONE_YEAR, _YEAR, "weight")]
    answers = np.delete(table.values, left_out, axis=1)
    # Networks cannot tell equal answers apart: each is there once.
    drawn = rng.permutation(asked)[: 2 * n]
    _, first = np.unique(answers[drawn], axis=0, return_index=True)
    rows = drawn[np.sort(first)[:n]]
    columns = tuple(np.delete(table.columns, left_out).tolist())
    label = columns.index(_LABEL)
    labels = answers[rows, label].astype(np.int64)

    def encoded(without: list[int]) -> NDArray[np.float32]:
        names = tuple(np.delete(columns, without).tolist())
        kept = np.delete(answers[rows], without, axis=1)
        return Table(
            values=kept, columns=names, categories=table.categories, labels=labels
        ).encoded()

    values = encoded([label])
    features = _components(encoded([]), _FEATURES)
    if years:
        return Drawn(
            values=values,
            labels=labels,
            features=features,
            member=year[rows] == year.min(),
            log_odds=None,
        )
    return Drawn(
        values=values,
        labels=labels,
        features=features,
        member=rng.random(n) < 0.5,
        log_odds=np.zeros(n),
    )


@cache
def _adults() -> Table:
    """Return the people of the census whose education is over."""
    table = census_income()
    age = table.values[:, table.columns.index("age")]
    is_grown = age >= _GROWN
    return Table(
        values=table.values[is_grown],
        columns=table.columns,
        categories=table.categories,
        labels=table.labels[is_grown],
    )


def _components(values: NDArray[Any], number: int) -> FloatArray:
    components = PCA(number, svd_solver="covariance_eigh").fit_transform(values)
    return np.asarray(components / components.std(), np.float64)


SHIFTS: dict[str, Callable[[int, int], Drawn]] = {
    "images, IID": partial(_images, strength=0.0),
    "images, sites": partial(_images, strength=_STRENGTH),
    "census, IID": partial(_people, years=False),
    "census, 1994 and 1995": partial(_people, years=True),
}
"""What draws so many examples with a seed, by name."""


@cache
def shifted(name: str, m: int, seed: int) -> Shifted:
    """Return one of them, trained once for all that is shown of it."""
    return Shifted.create(SHIFTS[name], m, seed)
