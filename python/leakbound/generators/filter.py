"""A filter that drops obviously bad samples."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import instance, integer, real
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray
from leakbound.errors import IncompatibleOptionsError, TooFewSamplesError
from leakbound.generators.folder import FolderOfSamples
from leakbound.generators.protocol import Generator, Sampler, Samples, SeededSampler
from leakbound.generators.tables import read_array, read_labels

FOLDS = 3
ATTEMPTS = 20
"""Batches drawn before a filter that keeps next to nothing is an error."""


@dataclass(frozen=True)
class Filtered:
    """A generator whose obviously bad samples are dropped.

    A classifier learns to tell the members of the generator from samples of it. Samples that look
    less real than all but a small share of those members, each judged by a classifier that did not
    see it, are dropped and drawn anew. Nothing but the generator's own members is used, so that
    what is audited had no say in it.

    A filter helps where the generator goes wrong, and hurts where it drops what real data has: with
    a share of 0.05 one real member in twenty is of a kind that is never generated, and a baseline
    may find it out. Keep it small.

    Parameters
    ----------
    generator : Generator
        What makes the samples.
    share : float
        Share of members that look less real than every sample kept, in [0, 1).
    seed : int
        Seed of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.generators import GaussianCopula
    >>> members = np.random.default_rng(0).normal(size=(400, 3))
    >>> Filtered(GaussianCopula()).fit(members).sample(100, seed=0)
    Samples(n=100, shape=(3,))
    """

    generator: Generator
    _: KW_ONLY
    share: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        instance(self.generator, "generator", Generator)
        if isinstance(self.generator, FolderOfSamples):
            message = (
                "a pool of samples cannot be filtered: the filter would learn from the samples "
                "that it judges; filter before the files are written"
            )
            raise IncompatibleOptionsError(message)
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

    def realness(self, samples: Samples) -> FloatArray:
        """Return the judge's probability that each sample is real."""
        found: FloatArray = self.judge.predict_proba(_rows(samples, self.names))[:, 1]
        return found

    def _draw(self, n: int, seed: int) -> Samples:
        values, labels, kept = [], [], 0
        for attempt in range(ATTEMPTS):
            fresh = Purpose.FILTER_SAMPLES.derived(seed, attempt, bits=32)
            batch = self.sampler.sample(n, seed=fresh)
            good = batch.take(self.realness(batch) >= self.least)
            values.append(good.values)
            labels.append(good.labels)
            kept += len(good)
            if kept >= n:
                known = [one for one in labels if one is not None]
                passed = Samples(np.concatenate(values), np.concatenate(known) if known else None)
                return passed.take(slice(n))
        message = (
            f"the filter kept {kept} of {ATTEMPTS * n} samples, and {n} are asked for: the "
            "generator is too far from its members for a filter to help"
        )
        raise TooFewSamplesError(message)


def _rows(samples: Samples, names: NDArray[Any] | None) -> FloatArray:
    """Return samples as rows of numbers, the label as the last."""
    flat = samples.values.reshape(len(samples), -1).astype(np.float64)
    if names is None or samples.labels is None:
        return flat
    return np.column_stack([flat, np.searchsorted(names, samples.labels)])
