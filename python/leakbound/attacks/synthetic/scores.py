"""Attacks that see a synthetic table: a score for each audited record, higher for members.

Each takes `Tables`, and never sees who is a member. The *reference* of an attack is everything that
is not synthetic: audited records and the reference table, a record never counting for itself.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from leakbound._base.checks import integer
from leakbound._base.console import track
from leakbound._base.imports import needs
from leakbound._base.scores import Scores
from leakbound._base.streams import Purpose, drawn_folds
from leakbound._base.types import IntArray
from leakbound.attacks.synthetic.neighbours import nearest, some
from leakbound.attacks.synthetic.risks import inference, linkability, singling_out
from leakbound.attacks.synthetic.tables import NEIGHBOURS, Tables, scored

SHARPNESS = 16.0  # power of the distance in the kernel of `local_likelihood`
LEAST = 1e-12  # share of a synthetic record's neighbours that is left without one of them, at least
BANDWIDTH = 5  # the distance to this neighbour is the bandwidth of a density
MOST = 20_000  # records, synthetic and others, that a density is estimated from
MOST_LESSONS = 20_000  # records, synthetic and others, that a classifier learns from
ROUNDS = 60  # trees of a classifier
SMALLEST = 1e-300  # smallest distance and density that logarithms are taken of


def nearest_synthetic(tables: Tables) -> Scores:
    """Score records by minus the distance to the nearest synthetic record.

    The distance to the closest record, as a test of membership: the full black-box attack of
    GAN-Leaks. Where records are rare it is large for members and for others, which costs power.

    Parameters
    ----------
    tables : Tables
        Records and synthetic table.

    References
    ----------
    D. Chen, N. Yu, Y. Zhang, M. Fritz, "GAN-Leaks: A Taxonomy of Membership Inference Attacks
    against Generative Models", 2020, arXiv:1909.03935.

    Examples
    --------
    >>> tables = Tables.of([[0.0], [1.0], [5.0]], [[1.0], [4.0]])
    >>> nearest_synthetic(tables).values.round(2).tolist()
    [-0.44, 0.0, -0.44]
    """
    return scored(tables, 0.0 - tables.of_audited.distances[:, 0], "nearest_synthetic")


def neighbourhood(tables: Tables) -> Scores:
    """Score records by how many synthetic records are in their neighbourhood.

    The Monte Carlo attack: the radius is the median over records of the distance to the nearest
    synthetic record; at most 10 are counted.

    Parameters
    ----------
    tables : Tables
        Records and synthetic table.

    References
    ----------
    B. Hilprecht, M. Härterich, D. Bernau, "Monte Carlo and Reconstruction Membership Inference
    Attacks against Generative Models", 2019, arXiv:1906.03006.

    Examples
    --------
    >>> tables = Tables.of([[0.0], [1.0], [5.0]], [[1.0], [1.1], [4.0]])
    >>> neighbourhood(tables).values.tolist()
    [0.0, 2.0, 1.0]
    """
    near = tables.of_audited.distances
    radius = np.median(tables.at_records(near[:, 0]))
    return scored(tables, (near <= radius).sum(axis=1).astype(np.float64), "neighbourhood")


def attribution(tables: Tables) -> Scores:
    r"""Score records by the synthetic records that are nearer to them than to any other record.

    Each synthetic record s counts for the record nearest to it, by
    :math:`\ln(d_2(s)/d_1(s))` with the distances of the nearest and the second nearest record: the
    logarithm of the nearest-neighbour distance ratio, a similarity metric, used as an attack. A
    noisy copy is far nearer to its original than to anybody else, whatever the noise is compared
    with other distances. This attack is new in this package.

    Parameters
    ----------
    tables : Tables
        Records and synthetic table.

    Examples
    --------
    >>> tables = Tables.of([[0.0], [1.0], [5.0]], [[1.1], [4.0]])
    >>> attribution(tables).values.round(2).tolist()
    [0.0, 2.2, 1.61]
    """
    found = np.zeros(len(tables.points))
    if len(tables.points) > 1:
        near = tables.of_synthetic
        first, second = np.maximum(near.distances[:, :2].T, SMALLEST)
        # Of equal records each is as likely the one meant.
        isolation = np.log(second) - np.log(first)
        np.add.at(found, near.indices[:, 0], isolation)
        found /= tables.counts
    return scored(tables, found, "attribution")


def local_likelihood(tables: Tables) -> Scores:
    r"""Score records by how much likelier they make the synthetic records around them.

    Gen-LRA: the likelihood ratio of nearby synthetic records s under a density of the reference
    with and without the record x, :math:`\sum_s -\ln(1 - w_x(s))`, with the share :math:`w_x(s)`
    of x in the kernel density at s. The reference is all audited records, x left out, and the
    kernel is a power of the distance, :math:`d^{-16}`, over the 10 records nearest to s: it has no
    bandwidth, and so adapts to both dense and sparse regions.

    Parameters
    ----------
    tables : Tables
        Records and synthetic table.

    References
    ----------
    J. Ward, X. Lin, C.-H. Wang, G. Cheng, "Privacy Auditing Synthetic Data Release through Local
    Likelihood Attacks", 2025, arXiv:2508.21146.

    Examples
    --------
    >>> tables = Tables.of([[0.0], [1.0], [5.0]], [[1.1], [4.0]])
    >>> local_likelihood(tables).values.round(2).tolist()
    [0.0, 27.63, 25.81]
    """
    found = np.zeros(len(tables.points))
    near = tables.of_synthetic
    if near.distances.shape[1] > 1:
        distances = np.maximum(near.distances, SMALLEST)
        # The last neighbour has no weight, so that nothing jumps where neighbours are equally far.
        kernel = (distances[:, :1] / distances) ** SHARPNESS
        kernel -= kernel[:, -1:]
        kernel = kernel[:, :-1]
        indices = near.indices[:, :-1]
        total = (kernel * tables.counts[indices]).sum(axis=1, keepdims=True)
        share = np.divide(kernel, total, out=np.zeros_like(kernel), where=total > 0)
        without = np.maximum(1 - share, LEAST)
        np.add.at(found, indices, -np.log(without))
    return scored(tables, found, "local_likelihood")


def density_ratio(tables: Tables) -> Scores:
    """Score records by the density of synthetic records over that of others.

    DOMIAS with kernel density estimates: around each record the bandwidth is the distance to the
    fifth nearest of the other records, and each density counts the 10 nearest. Of more than 20,000
    synthetic or other records a random part is used.

    Parameters
    ----------
    tables : Tables
        Records and synthetic table.

    References
    ----------
    B. van Breugel, H. Sun, Z. Qian, M. van der Schaar, "Membership Inference Attacks against
    Synthetic Data through Overfitting Detection", 2023, arXiv:2302.12580.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> records = rng.normal(size=(200, 2))
    >>> scores = density_ratio(Tables.of(records, records[:100] + 0.01))
    >>> bool(scores.values[:100].mean() > scores.values[100:].mean())
    True
    """
    own = tables.audited
    real = _part(tables, len(tables.points), 0)
    made = _part(tables, len(tables.synthetic), 1)
    k = min(NEIGHBOURS + 1, real.size)
    what, shown = "Densities", tables.progress
    others = nearest(tables.points[real], tables.points[own], k, what=what, shown=shown)
    itself = real[others.indices] == own[:, None]
    weights = tables.counts[real[others.indices]] - itself
    order = np.cumsum(weights, axis=1)
    fifth = np.minimum((order < BANDWIDTH).sum(axis=1), k - 1)
    bandwidth = others.distances[np.arange(own.size), fifth]
    # Where so many records are equal, the nearest one that differs; if all are, any will do.
    different = np.where(others.distances > 0, others.distances, np.inf).min(axis=1)
    bandwidth = np.where(bandwidth > 0, bandwidth, different)[:, None]
    bandwidth = np.where(np.isfinite(bandwidth), bandwidth, 1.0)
    if made.size == len(tables.synthetic):
        near = tables.of_audited
    else:
        part = tables.synthetic[made]
        near = nearest(part, tables.points[own], NEIGHBOURS, what=what, shown=shown)
    # Gaussian kernels
    there = np.exp(-((near.distances / bandwidth) ** 2) / 2).sum(axis=1)
    kernels = np.exp(-((others.distances / bandwidth) ** 2) / 2)
    here = (weights * kernels).sum(axis=1)
    ratio = np.log(np.maximum(there, SMALLEST)) - np.log(np.maximum(here, SMALLEST))
    return scored(tables, ratio, "density_ratio")


def classifier(tables: Tables, *, folds: int = 5) -> Scores:
    """Score records by how synthetic they look to a classifier.

    Boosted trees tell synthetic records from all others, as the discriminator of LOGAN's black-box
    attack does; each record is scored by trees that were grown without it. Trees see values of
    single columns, and so find what distances miss. Each fold learns from at most 20,000 records of
    either kind; where fewer folds leave as many to learn from, there are no more than these.

    Parameters
    ----------
    tables, folds : Tables and int
        Records and synthetic table, and the most parts that records are divided into, at least 2.

    References
    ----------
    J. Hayes, L. Melis, G. Danezis, E. De Cristofaro, "LOGAN: Membership Inference Attacks Against
    Generative Models", 2019, arXiv:1705.07663.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> records = rng.normal(size=(200, 2))
    >>> scores = classifier(Tables.of(records, records[:100]))
    >>> bool(scores.values[:100].mean() > scores.values[100:].mean())
    True
    """
    folds = integer(folds, "folds", least=2)
    with needs("ml", "the classifier of synthetic records"):
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits
    rng = Purpose.SYNTHETIC_FOLDS.rng(tables.seed)
    size = len(tables.points)
    # As few as leave as many to learn from as there may be.
    folds = next((f for f in range(2, folds) if size - -(-size // f) >= MOST_LESSONS), folds)
    fold = drawn_folds(rng, size, folds)
    found = np.zeros(size)
    with threadpool_limits(1):  # trees this small wait for other threads longer than they work
        for part in track(range(folds), "Classifiers", total=folds, shown=tables.progress):
            kept, left = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
            if not kept.size or not left.size:
                continue
            # Equal records are repeated: with weights, each quantile of a column is another sort.
            real = some(np.repeat(kept, tables.counts[kept]), MOST_LESSONS, rng)
            made = some(np.arange(len(tables.synthetic)), MOST_LESSONS, rng)
            trees = HistGradientBoostingClassifier(
                max_iter=ROUNDS,
                early_stopping=False,
                random_state=Purpose.SYNTHETIC_TREES.derived(tables.seed, part, bits=32),
            )
            lesson = np.concatenate([tables.points[real], tables.synthetic[made]])
            trees.fit(lesson, np.arange(len(lesson)) >= real.size)
            found[left] = trees.decision_function(tables.points[left])
    return scored(tables, found, "classifier")


ATTACKS: Mapping[str, Callable[[Tables], Scores]] = MappingProxyType(
    {
        one.__name__: one
        for one in (
            attribution,
            local_likelihood,
            classifier,
            density_ratio,
            nearest_synthetic,
            neighbourhood,
            singling_out,
            linkability,
            inference,
        )
    }
)
"""The attacks by name."""
RISKS = ("singling_out", "linkability", "inference")
"""Those that answer the three questions of regulators."""
DEFAULT = ("attribution", "local_likelihood", "classifier", "density_ratio", *RISKS)
"""Those that an audit makes unless told otherwise: each finds what others miss."""


def _part(tables: Tables, size: int, which: int) -> IntArray:
    """Return which of so many rows a density is estimated from."""
    return some(np.arange(size), MOST, Purpose.SYNTHETIC_PART.rng(tables.seed, which))
