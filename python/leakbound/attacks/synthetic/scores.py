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
from leakbound._base.types import FloatArray, IntArray
from leakbound.attacks.synthetic.neighbours import nearest, random_rows
from leakbound.attacks.synthetic.risks import inference, linkability, singling_out
from leakbound.attacks.synthetic.tables import NEIGHBOURS, Tables, scored

KERNEL_POWER = 16.0  # power of the distance in the kernel of `local_likelihood`
LEAST_SHARE_WITHOUT = 1e-12  # share of a kernel density that is left without one record, at least
BANDWIDTH_NEIGHBOUR = 5  # the distance to this neighbour is the bandwidth of a density
MOST_DENSITY_RECORDS = 20_000  # records, synthetic and others, that a density is estimated from
MOST_TRAINING_RECORDS = 20_000  # records, synthetic and others, that a classifier learns from
BOOSTING_ROUNDS = 60  # trees of a classifier
SMALLEST_POSITIVE = 1e-300  # smallest distance and density that logarithms are taken of


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
    distances_to_closest = tables.of_audited.distances[:, 0]
    return scored(tables, 0.0 - distances_to_closest, "nearest_synthetic")


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
    synthetic_distances = tables.of_audited.distances
    distances_to_closest = tables.at_records(synthetic_distances[:, 0])
    radius = np.median(distances_to_closest)
    synthetic_neighbours = (synthetic_distances <= radius).sum(axis=1)
    return scored(tables, synthetic_neighbours.astype(np.float64), "neighbourhood")


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
    attributed_isolation = np.zeros(len(tables.points))
    if len(tables.points) > 1:
        points_near_synthetic = tables.of_synthetic
        two_nearest_distances = np.maximum(
            points_near_synthetic.distances[:, :2], SMALLEST_POSITIVE
        )
        log_nearest_distances = np.log(two_nearest_distances)
        # Logarithm of the nearest-neighbour distance ratio (NNDR).
        log_distance_ratios = log_nearest_distances[:, 1] - log_nearest_distances[:, 0]
        nearest_points = points_near_synthetic.indices[:, 0]
        np.add.at(attributed_isolation, nearest_points, log_distance_ratios)
        # Of equal records each is as likely the one meant.
        attributed_isolation /= tables.counts
    return scored(tables, attributed_isolation, "attribution")


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
    log_likelihood_ratios = np.zeros(len(tables.points))
    points_near_synthetic = tables.of_synthetic
    if points_near_synthetic.distances.shape[1] > 1:
        neighbour_distances = np.maximum(points_near_synthetic.distances, SMALLEST_POSITIVE)
        nearest_distances = neighbour_distances[:, :1]
        kernel_weights = (nearest_distances / neighbour_distances) ** KERNEL_POWER
        # The last neighbour has no weight, so that nothing jumps where neighbours are equally far.
        kernel_weights -= kernel_weights[:, -1:]
        kernel_weights = kernel_weights[:, :-1]
        neighbour_points = points_near_synthetic.indices[:, :-1]
        # Kernel density at each synthetic record, and the share of it that one record has.
        multiplicities = tables.counts[neighbour_points]
        kernel_densities = (kernel_weights * multiplicities).sum(axis=1, keepdims=True)
        density_shares = np.divide(
            kernel_weights,
            kernel_densities,
            out=np.zeros_like(kernel_weights),
            where=kernel_densities > 0,
        )
        density_shares_without = np.maximum(1 - density_shares, LEAST_SHARE_WITHOUT)
        np.add.at(log_likelihood_ratios, neighbour_points, -np.log(density_shares_without))
    return scored(tables, log_likelihood_ratios, "local_likelihood")


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
    audited_points = tables.points[tables.audited]
    reference_rows = _density_rows(tables, size=len(tables.points), stream=0)
    synthetic_rows = _density_rows(tables, size=len(tables.synthetic), stream=1)
    neighbour_count = min(NEIGHBOURS + 1, reference_rows.size)
    reference_neighbours = nearest(
        tables.points[reference_rows],
        audited_points,
        neighbour_count,
        what="Densities",
        shown=tables.progress,
    )
    # A record never counts for itself.
    reference_points = reference_rows[reference_neighbours.indices]
    is_itself = reference_points == tables.audited[:, None]
    record_multiplicities = tables.counts[reference_points] - is_itself
    bandwidths = _kernel_bandwidths(reference_neighbours.distances, record_multiplicities)
    synthetic_distances = tables.of_audited.distances
    if synthetic_rows.size < len(tables.synthetic):
        synthetic_neighbours = nearest(
            tables.synthetic[synthetic_rows],
            audited_points,
            NEIGHBOURS,
            what="Densities",
            shown=tables.progress,
        )
        synthetic_distances = synthetic_neighbours.distances
    # Gaussian kernels
    synthetic_kernels = np.exp(-((synthetic_distances / bandwidths) ** 2) / 2)
    reference_kernels = np.exp(-((reference_neighbours.distances / bandwidths) ** 2) / 2)
    synthetic_density = synthetic_kernels.sum(axis=1)
    reference_density = (record_multiplicities * reference_kernels).sum(axis=1)
    densities = np.stack([synthetic_density, reference_density])
    log_densities = np.log(np.maximum(densities, SMALLEST_POSITIVE))
    log_density_ratios = log_densities[0] - log_densities[1]
    return scored(tables, log_density_ratios, "density_ratio")


def _density_rows(tables: Tables, *, size: int, stream: int) -> IntArray:
    """Return which of `size` records a density is estimated from: a random part of many."""
    rng = Purpose.SYNTHETIC_PART.rng(tables.seed, stream)
    return random_rows(np.arange(size), MOST_DENSITY_RECORDS, rng)


def _kernel_bandwidths(distances: FloatArray, record_multiplicities: IntArray) -> FloatArray:
    """Return a column of bandwidths: each record's distance to the fifth nearest other record.

    Parameters
    ----------
    distances, record_multiplicities : ndarray, shape (n, k)
        Distances of the nearest points of each record, increasing, and how many other records are
        at each of them.
    """
    cumulative_records = np.cumsum(record_multiplicities, axis=1)
    places_before_fifth = (cumulative_records < BANDWIDTH_NEIGHBOUR).sum(axis=1)
    fifth_place = np.minimum(places_before_fifth, distances.shape[1] - 1)
    bandwidths = np.take_along_axis(distances, fifth_place[:, None], axis=1)
    # Where so many records are equal, the nearest one that differs; if all are, any will do.
    positive_distances = np.where(distances > 0, distances, np.inf)
    nearest_different = positive_distances.min(axis=1, keepdims=True)
    bandwidths = np.where(bandwidths > 0, bandwidths, nearest_different)
    return np.where(np.isfinite(bandwidths), bandwidths, 1.0)


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
    point_count = len(tables.points)
    folds = _fewest_classifier_folds(point_count, folds)
    fold_of_point = drawn_folds(rng, point_count, folds)
    decision_values = np.zeros(point_count)
    with threadpool_limits(1):  # trees this small wait for other threads longer than they work
        for fold in track(range(folds), "Classifiers", total=folds, shown=tables.progress):
            training_points = np.flatnonzero(fold_of_point != fold)
            held_out_points = np.flatnonzero(fold_of_point == fold)
            if not training_points.size or not held_out_points.size:
                continue
            # Equal records are repeated: with weights, each quantile of a column is another sort.
            repeated_training_points = np.repeat(training_points, tables.counts[training_points])
            drawn_reference_points = random_rows(
                repeated_training_points, MOST_TRAINING_RECORDS, rng
            )
            drawn_synthetic_records = random_rows(
                np.arange(len(tables.synthetic)), MOST_TRAINING_RECORDS, rng
            )
            training_records = np.concatenate(
                [tables.points[drawn_reference_points], tables.synthetic[drawn_synthetic_records]]
            )
            is_synthetic = np.arange(len(training_records)) >= drawn_reference_points.size
            boosted_trees = HistGradientBoostingClassifier(
                max_iter=BOOSTING_ROUNDS,
                early_stopping=False,
                random_state=Purpose.SYNTHETIC_TREES.derived(tables.seed, fold, bits=32),
            )
            boosted_trees.fit(training_records, is_synthetic)
            decision_values[held_out_points] = boosted_trees.decision_function(
                tables.points[held_out_points]
            )
    return scored(tables, decision_values, "classifier")


def _fewest_classifier_folds(size: int, most_folds: int) -> int:
    """Return the fewest folds that leave as many points as a classifier learns from."""
    for folds in range(2, most_folds):
        largest_fold = -(-size // folds)
        if size - largest_fold >= MOST_TRAINING_RECORDS:
            return folds
    return most_folds


_EVERY_ATTACK = (
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
ATTACKS: Mapping[str, Callable[[Tables], Scores]] = MappingProxyType(
    {attack.__name__: attack for attack in _EVERY_ATTACK}
)
"""The attacks by name."""
RISKS = ("singling_out", "linkability", "inference")
"""Those that answer the three questions of regulators."""
DEFAULT = ("attribution", "local_likelihood", "classifier", "density_ratio", *RISKS)
"""Those that an audit makes unless told otherwise: each finds what others miss."""
