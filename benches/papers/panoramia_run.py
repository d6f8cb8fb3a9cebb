"""What reproductions of Kazmi et al. (2024) have in common: runs on three modalities, and words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors

from leakbound.generators import Labeler, Samples, SequentialCART
from leakbound.panoramia import Helper, Options, Spread, StackedAttack
from outcomes import Cell, Line, Outcome
from real_data import adult, fashion_mnist
from streams import generator
from targets import Audited, Training, audit_targets, divided, perceptron

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from leakbound._base.types import IntArray
    from leakbound.generators.images import FittedLabeler
    from outcomes import Compute
    from targets import Material
    from training import Recipe

__all__ = [
    "IMAGES",
    "LARGE",
    "PAPER",
    "PEOPLE",
    "SMALL",
    "TEXT",
    "Blends",
    "Sizes",
    "audit_images",
    "audit_people",
    "audited",
    "images_run",
    "lines_of",
    "material_of_images",
    "mean_of",
    "means_of",
    "of_images",
    "people_run",
    "private_run",
    "sized",
    "text_run",
]

SMALL = 64
LARGE = 256
"""Units of the hidden layers of networks on images."""
SQUARE = 2
PIXELS = 14
"""Rows and columns of pixels that are averaged over, and of an image that is left."""
TESTED = 0.42
"""Share of the members that is audited, the rest being for generator and attacks."""

PAPER = "Kazmi et al. 2024 (arXiv 2402.09477)"
IMAGES = (
    "Images are Fashion-MNIST at 14 by 14 pixels, networks have two hidden layers of 64 or 256 "
    "units, and the generator blends an image with a near one of its class (SMOTE), where the "
    "paper has CIFAR-10, residual networks and StyleGAN2: layout and shapes compare, figures do "
    "not. A mixture of normals is told from these images without error."
)
PEOPLE = (
    "People are UCI Adult as in the paper, targets networks with two hidden layers of 256 units; "
    "the generator is a sequence of trees (CART), where the paper has MST: copulas and Chow-Liu "
    "trees are told from these people more easily."
)
TEXT = (
    "Text is Python's own documentation in chunks of 64 bytes; a GPT of 0.14 million parameters "
    "reads it, and 40 % of the chunks train another, which writes more, where the paper has GPT-2 "
    "on WikiText."
)


@dataclass(frozen=True)
class Blends:
    """Images between one and a near one of its class (SMOTE: Chawla et al. 2002), relabelled.

    Labels are drawn from what a forest learns of them: those of the two images would be surer than
    real labels are, and surest to a network that was trained on both.
    """

    near: int = 5
    """Neighbours that the other image is drawn from."""
    shares: tuple[float, float] = (0.1, 0.5)
    """Least and largest share of the other image."""
    values: NDArray[np.float32] | None = None
    labels: IntArray | None = None
    labeler: FittedLabeler | None = None

    def fit(self, members: Any, labels: Any = None) -> Blends:
        """Keep the members, and learn their labels."""
        forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
        return replace(
            self,
            values=np.asarray(members, np.float32),
            labels=np.asarray(labels),
            labeler=Labeler(forest).fit(members, labels),
        )

    def sample(self, n: int, *, seed: int) -> Samples:
        """Draw new images, as grey as squares of pixels can be."""
        assert self.values is not None
        assert self.labels is not None
        assert self.labeler is not None
        rng = generator("papers/blends", seed)
        rows = np.sort(rng.integers(0, len(self.labels), size=n))
        made = np.empty((n, *self.values.shape[1:]), np.float32)
        for label in np.unique(self.labels):
            known = self.values[self.labels == label]
            drawn = np.flatnonzero(self.labels[rows] == label)
            near = NearestNeighbors(n_neighbors=min(self.near + 1, len(known)))
            flat = known.reshape(len(known), -1)
            first = rng.integers(0, len(known), size=len(drawn))
            others = near.fit(flat).kneighbors(flat[first], return_distance=False)[:, 1:]
            second = others[
                np.arange(len(drawn)), rng.integers(0, others.shape[1], size=len(drawn))
            ]
            share = rng.uniform(*self.shares, (len(drawn), 1, 1))
            made[drawn] = (1 - share) * known[first] + share * known[second]
        greys = 255 * SQUARE**2
        order = rng.permutation(n)
        return self.labeler.label((np.round(made * greys) / greys)[order], seed=seed)


@dataclass(frozen=True)
class Sizes:
    """What was asked for on the command line."""

    full: bool = False
    m: int | None = None
    seed: int = 0
    seeds: int | None = None

    def of(self, seeds: int, members: int) -> dict[str, Any]:
        """Return seeds and members, by default so many."""
        asked = members
        if self.m is not None:
            asked = round(self.m / TESTED)
        return {"seed": self.seed, "seeds": self.seeds or seeds, "members": asked}

    def chosen(self, full: tuple[int, int], quick: tuple[int, int]) -> dict[str, Any]:
        """Return seeds and members of a full or of a quick run."""
        if self.full:
            return self.of(*full)
        return self.of(*quick)


def sized(compute: Callable[[Sizes], Outcome]) -> Compute:
    """Return what takes sizes by their names."""

    def computed(
        *, full: bool, m: int | None = None, seed: int = 0, seeds: int | None = None
    ) -> Outcome:
        return compute(Sizes(full=full, m=m, seed=seed, seeds=seeds))

    return computed


def audit_people(
    trainings: Sequence[Training] | None = None,
    *,
    members: int = 9600,
    seed: int = 0,
    seeds: int = 3,
    conditional: bool = True,
) -> Audited:
    """Audit networks on UCI Adult."""
    table = adult()
    options = Options(
        inputs=table.encoded,
        helper=Helper(epochs=10),
        seeds=tuple(range(seed, seed + seeds)),
        union=True,
        conditional=conditional,
    )
    recipe = perceptron(table.encoded(table.values[:1]).shape[1], width=256, classes=2)
    return audit_targets(
        SequentialCART(categorical=table.categorical),
        options=options,
        material=divided(
            table.values, labels=table.labels, inputs=table.encoded, members=members, seed=seed
        ),
        trainings=trainings
        or (Training(recipe=recipe, epochs=(10, 100), epsilons=(8.0,), prefix="MLP, "),),
        seed=seed,
    )


def small_images() -> NDArray[np.float32]:
    """Return Fashion-MNIST with squares of two by two pixels averaged."""
    squares = fashion_mnist()[0].values.reshape(-1, PIXELS, SQUARE, PIXELS, SQUARE)
    images: NDArray[np.float32] = squares.mean((2, 4), dtype=np.float32) / np.float32(255)
    return images


def material_of_images(members: int, seed: int) -> Material:
    """Return members, non-members and what judges a network on images."""
    return divided(
        small_images(), labels=fashion_mnist()[0].labels, inputs=None, members=members, seed=seed
    )


def audit_images(
    trainings: Sequence[Training],
    *,
    members: int = 9600,
    seed: int = 0,
    seeds: int = 3,
    conditional: bool = False,
) -> Audited:
    """Audit networks on Fashion-MNIST."""
    options = Options(
        attack=StackedAttack("image"),
        helper=(Helper("generated", epochs=15), Helper("members", epochs=15)),
        seeds=tuple(range(seed, seed + seeds)),
        union=True,
        conditional=conditional,
    )
    return audit_targets(
        Blends(),
        options=options,
        material=material_of_images(members, seed),
        trainings=trainings,
        seed=seed,
    )


def of_images(width: int) -> Recipe:
    """Return how a network of some width is trained on images."""
    return perceptron(PIXELS**2, width=width, classes=10)


@cache
def people_run(sizes: Sizes) -> Audited:
    """Train and audit the targets on a table once for all that is shown of them."""
    return audit_people(**sizes.chosen(full=(3, 9600), quick=(2, 6000)))


@cache
def images_run(sizes: Sizes) -> Audited:
    """Train and audit the targets on images."""
    trainings = (
        Training(recipe=of_images(SMALL), epochs=(5, 40), epsilons=(8.0,), prefix="small, "),
        Training(recipe=of_images(LARGE), epochs=(40,), prefix="large, "),
    )
    return audit_images(trainings, **sizes.chosen(full=(3, 9600), quick=(1, 6000)))


@cache
def private_run(sizes: Sizes) -> Audited:
    """Train and audit networks of two sizes at each printed ε, and one for longer at one ε."""
    small = of_images(SMALL)
    large = of_images(LARGE)
    trainings = [
        Training(
            recipe=small,
            epochs=(40,),
            epsilons=(1.0, 2.0, 4.0, 6.0, 10.0, 15.0, 20.0),
            private_epochs=10,
            prefix="small, ",
        ),
        Training(
            recipe=large,
            epochs=(40,),
            epsilons=(1.0, 2.0, 10.0, 15.0, 20.0),
            private_epochs=10,
            prefix="large, ",
        ),
        Training(
            recipe=small,
            epochs=(),
            epsilons=(20.0,),
            private_epochs=60,
            prefix="small for longer, ",
        ),
    ]
    return audit_images(trainings, **sizes.chosen(full=(3, 9600), quick=(1, 3000)))


@cache
def text_run(sizes: Sizes) -> Audited:
    """Train and audit targets on text."""
    from panoramia_text import audit_text

    if sizes.full:
        return audit_text(**sizes.of(3, 3000))
    return audit_text(epochs=(3, 12), epsilons=(3.0,), **sizes.of(1, 1000))


def audited(made: Audited) -> list[str]:
    """Return the names of the targets."""
    return [target.name for target in made.targets]


def lines_of(
    rows: Sequence[tuple[Cell, ...]], panel: str, names: Sequence[str], *, across: int, first: int
) -> tuple[Line, ...]:
    """Return columns of a table as lines."""
    return tuple(
        Line(
            panel=panel,
            name=name,
            x=tuple(float(row[across] or 0) for row in rows),
            y=tuple(float(row[column] or 0) for row in rows),
        )
        for column, name in enumerate(names, start=first)
    )


def mean_of(spread: Spread | None) -> Cell:
    """Return the mean over seeds, or nothing where an audit has no such number."""
    if spread is None:
        return None
    return spread.mean


def means_of(results: Sequence[Any], *values: Callable[[Any], float]) -> tuple[float, ...]:
    """Return means of several values over results."""
    return tuple(Spread.of([value(result) for result in results]).mean for value in values)
