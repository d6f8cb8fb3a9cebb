"""Where propensities may be learnt: rows held out for them, or the other folds of the audit set."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import MOST_REPLICATES, check_ids, integer, vector
from leakbound._base.streams import Purpose, seed_of
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, HasMember, IntArray
from leakbound.propensity.data import check_features
from leakbound.propensity.fit import PropensityFit
from leakbound.propensity.models import as_propensity


def hold_out(ids: ArrayInput, *, size: int, seed: int | None = None) -> tuple[IntArray, IntArray]:
    """Split examples into D', to learn propensities from, and the audit set.

    An example's side depends on its id, the seed and the other ids alone: not on the order of the
    rows, nor on membership. Split before anything else is looked at. Where members and non-members
    are two pools of fixed sizes, split each with a size of its own, fixed beforehand.

    Parameters
    ----------
    ids : array-like, shape (n,)
        A different integer or string for each example.
    size : int
        Number of examples in D', at least 1 and below n.
    seed : int, optional
        Seed of the split; by default a new one.

    Returns
    -------
    held_out, audited : ndarray of int64
        Rows of D' and rows of the audit set, each in ascending order.

    Examples
    --------
    >>> held_out, audited = hold_out(["a", "b", "c", "d", "e"], size=2, seed=1)
    >>> held_out, audited
    (array([2, 3]), array([0, 1, 4]))
    """
    names = vector(ids, "ids", kinds="biufSUOT")
    check_ids(names, np.ones(names.size, dtype=np.bool_))
    count = integer(size, "size", least=1, most=names.size - 1)
    key = Purpose.HOLD_OUT.derived(seed_of(seed)).to_bytes(8, "little")
    keyed = [blake2b(str(name).encode(), key=key).digest() for name in names.tolist()]
    order = np.array(sorted(range(names.size), key=keyed.__getitem__), dtype=np.int64)
    return np.sort(order[:count]), np.sort(order[count:])


@dataclass(frozen=True, eq=False, repr=False)
class CrossFit:
    """Propensities of every example, from models that did not see its membership.

    Made by `cross_fit`. Audit each fold on its own, at 1/k of the error probability: given the
    labels of the other folds, its propensities are fixed and its labels independent of them.

    Attributes
    ----------
    fold : ndarray of int64, shape (m,)
        The fold of each example.
    fits : tuple of PropensityFit
        For each fold, the model learnt from all others.
    features : ndarray of float64, shape (m, d)
        The features, read-only.
    member : ndarray of bool, shape (m,)
        The membership that was learnt from, read-only.

    Examples
    --------
    >>> from leakbound.propensity import LogisticPropensity
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(200) < 0.5
    >>> crossed = cross_fit(LogisticPropensity(), rng.normal(size=(200, 3)), member)
    >>> crossed, crossed.log_odds().shape
    (CrossFit(logistic regression, l2=1, Platt over 5 folds; 2 folds of 200 examples), (200,))
    """

    fold: IntArray
    fits: tuple[PropensityFit, ...]
    features: FloatArray
    member: BoolArray

    @property
    def logistic(self) -> bool:
        """Whether all models are logistic, so that there is a confidence set instead."""
        return all(fit.logistic for fit in self.fits)

    def parts(self) -> Iterator[tuple[IntArray, PropensityFit]]:
        """Yield the rows of each fold and the model that did not see them.

        Yields
        ------
        rows : ndarray of int64
            The rows of the fold.
        fit : PropensityFit
            The model learnt from the other folds.
        """
        for number, fit in enumerate(self.fits):
            yield np.flatnonzero(self.fold == number), fit

    def log_odds(self) -> FloatArray:
        """Return the log-odds of every example, from the model that did not see it.

        Returns
        -------
        ndarray of float64, shape (m,)
            Log-odds of membership.
        """
        values = np.empty(self.fold.size)
        for rows, fit in self.parts():
            values[rows] = fit.log_odds(self.features[rows])
        return values

    def bootstrap(
        self,
        *,
        K: int = 600,
        seed: int | None = None,
        progress: bool = True,
    ) -> FloatArray:
        """Return log-odds under refits, each model resampling the rows that it learnt from.

        Parameters
        ----------
        K, seed, progress
            As for `PropensityFit.bootstrap`.

        Returns
        -------
        ndarray of float64, shape (K, m)
            Log-odds, one row for each resample.
        """
        draws = np.empty((integer(K, "K", least=1, most=MOST_REPLICATES), self.fold.size))
        seed = seed_of(seed)
        for rows, fit in self.parts():
            draws[:, rows] = fit.bootstrap(
                self.features[rows],
                K=K,
                seed=seed,
                progress=progress,
            )
        return draws

    def __repr__(self) -> str:
        return f"CrossFit({self.fits[0].name}; {len(self.fits)} folds of {self.fold.size} examples)"


def cross_fit(
    model: Any,
    X: ArrayInput,
    member: ArrayInput | HasMember,
    *,
    folds: int = 2,
    seed: int | None = None,
) -> CrossFit:
    """Learn propensities from the audit set itself, each fold's from the other folds.

    For when there is too little data to hold any out. The folds are drawn without a look at
    membership, of equal sizes up to one example.

    Parameters
    ----------
    model : Propensity or scikit-learn classifier
        What to fit, such as ``LogisticPropensity()``.
    X : array-like, shape (m, d)
        Features of the audit set.
    member : array-like, shape (m,)
        Its membership; joined with `X` where both have a pandas index.
    folds : int
        Number of folds k, at least 2. Each is audited at 1/k of the error probability.
    seed : int, optional
        Seed of the folds, and of the fits; by default a new one, which the fits record.

    Returns
    -------
    CrossFit
        The models and their folds.

    References
    ----------
    Zero-Run, Algorithm 4 (k = 2).

    Examples
    --------
    See `CrossFit`.
    """
    order = ExampleOrder()
    features = np.array(check_features(order.placed(X, "X"), "X"), order="C")
    labels = order.member(member, features.shape[0])
    for array in (features, labels):
        array.flags.writeable = False
    count = integer(folds, "folds", least=2, most=max(2, labels.size // 2))
    seed = seed_of(seed)
    propensity = as_propensity(model)
    fold = Purpose.CROSS_FIT.rng(seed).permutation(np.arange(labels.size) % count)
    fits = tuple(
        propensity.fit(features[fold != number], labels[fold != number], seed=seed)
        for number in range(count)
    )
    return CrossFit(fold, fits, features, labels)
