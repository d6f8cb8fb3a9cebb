"""A filter that drops obviously bad samples."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import instance, integer, real
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray
from leakbound.errors import InputError, OptionError
from leakbound.generators.folder import FolderOfSamples
from leakbound.generators.members import read_array, read_labels
from leakbound.generators.protocol import Generator, Sampler, Samples, SeededSampler, joined

FOLDS = 3  # each member is judged by a classifier of two thirds of the others
ATTEMPTS = 20  # batches drawn before a filter that keeps next to nothing is an error


@dataclass(frozen=True)
class Filtered:
    """A generator whose obviously bad samples are dropped.

    A classifier learns to tell the members of the generator from samples of it. Samples that look
    less real than all but a small share of those members, each judged by a classifier that did not
    see it, are dropped and drawn anew; what is audited has no say in it. With a share of 0.05 one
    real member in twenty is of a kind that is never generated, and a baseline may find it out: keep
    it small.

    Parameters
    ----------
    generator : Generator
        What makes the samples.
    share : float
        Share of members that look less real than every sample kept, in [0, 1).
    seed : int
        Seed of the fit.
    """

    generator: Generator
    _: KW_ONLY
    share: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        instance(self.generator, "generator", Generator)
        if isinstance(self.generator, FolderOfSamples):
            message = (
                "a filter would learn from the pool that it judges: filter before files are made"
            )
            raise OptionError(message)
        real(self.share, "share", least=0, below=1)
        integer(self.seed, "seed", least=0)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "FittedFiltered":
        """Fit the generator, then the filter, to the same members: see `Generator.fit`."""
        with needs("ml", "Filtered"):
            from sklearn.ensemble import HistGradientBoostingClassifier
            from sklearn.model_selection import cross_val_predict
        array = read_array(members)
        classes = read_labels(labels, len(array))
        sampler = self.generator.fit(array, classes)
        made = sampler.sample(len(array), seed=Purpose.FILTER_LESSON.derived(self.seed, bits=32))
        names = None if classes is None else np.unique(classes)
        rows = np.concatenate([_rows(Samples(array, classes), names), _rows(made, names)])
        is_real = np.arange(len(rows)) < len(array)
        judge = HistGradientBoostingClassifier(
            max_iter=50, random_state=Purpose.FILTER_JUDGE.derived(self.seed, bits=32)
        )
        unseen = cross_val_predict(judge, rows, is_real, cv=FOLDS, method="predict_proba")[:, 1]
        least = float(np.quantile(unseen[is_real], self.share, method="lower"))
        return FittedFiltered(sampler, judge.fit(rows, is_real), least, names)


@dataclass(frozen=True, eq=False)
class FittedFiltered(SeededSampler):
    """What `Filtered.fit` returns."""

    sampler: Sampler
    judge: Any
    least: float
    names: NDArray[Any] | None

    def _draw(self, n: int, seed: int) -> Samples:
        passed = list[Samples]()
        for attempt in range(ATTEMPTS):
            fresh = Purpose.FILTER_SAMPLES.derived(seed, attempt, bits=32)
            batch = self.sampler.sample(n, seed=fresh)
            realness = self.judge.predict_proba(_rows(batch, self.names))[:, 1]
            passed.append(batch.take(realness >= self.least))
            if sum(map(len, passed)) >= n:
                return joined(passed).take(slice(n))
        message = (
            f"the filter kept {sum(map(len, passed))} of {ATTEMPTS * n} samples, and {n} are asked "
            "for: the generator is too far from its members for a filter to help"
        )
        raise InputError(message)


def _rows(samples: Samples, names: NDArray[Any] | None) -> FloatArray:
    """Return samples as rows of numbers, the label as the last."""
    flat = samples.values.reshape(len(samples), -1).astype(np.float64)
    if names is None or samples.labels is None:
        return flat
    return np.column_stack([flat, np.searchsorted(names, samples.labels)])
