"""The usual similarity metrics of synthetic data: what is looked at in place of an audit.

They are not bounds, and no bound uses them. They are shown beside the bound to make visible what
they miss: a table can be as far from its training data as from other data and still leak it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.attacks.synthetic.neighbours import nearest, random_rows
from leakbound.attacks.synthetic.tables import Tables

MOST_COMPARED_RECORDS = 5_000  # records of each kind whose distances are looked at
LEAST_DEVIATION = 1e-12  # of a coordinate that varies by more than rounding


@dataclass(frozen=True)
class Similarity:
    """How close a synthetic table is to the members and to the non-members.

    Distances are those of `Tables`, from each synthetic record to the closest of as many members as
    non-members, drawn at random.

    Parameters
    ----------
    copies_of_members, copies_of_nonmembers : float
        Share of synthetic records that equal one in every column that is compared.
    closer_to_members, expected : float
        Share of synthetic records whose nearest record is a member, and the share of members among
        all records, which it is for fresh data.
    distance_to_members, distance_to_nonmembers : float
        Median distance to the closest record (DCR).
    ratio_to_members, ratio_to_nonmembers : float
        Median ratio of the distances of the closest and the second closest (NNDR), in [0, 1].
    marginals : float
        Mean over coordinates of 1 minus the Kolmogorov–Smirnov distance from the members.
    correlations : float
        1 minus half the mean absolute difference of correlations from those of the members.

    References
    ----------
    M. Platzer, T. Reutterer, "Holdout-Based Empirical Assessment of Mixed-Type Synthetic Data",
    2021, arXiv:2104.00635; Z. Zhao, A. Kunar, R. Birke, L. Y. Chen, "CTAB-GAN: Effective Table Data
    Synthesizing", 2021, arXiv:2102.08369.
    """

    copies_of_members: float
    copies_of_nonmembers: float
    closer_to_members: float
    expected: float
    distance_to_members: float
    distance_to_nonmembers: float
    ratio_to_members: float
    ratio_to_nonmembers: float
    marginals: float
    correlations: float


def similarity(tables: Tables, member: BoolArray) -> Similarity:
    """Compare a synthetic table with members and non-members.

    Parameters
    ----------
    tables, member : Tables, and ndarray of bool of shape (N,)
        Records and synthetic table, and which records are members. No attack sees this.
    """
    point_count = len(tables.points)
    members_at_point = np.bincount(tables.place[member], minlength=point_count)
    nonmembers_at_point = np.bincount(tables.place[~member], minlength=point_count)
    copied_points = tables.copied[tables.copied >= 0]
    copies_of_members = np.count_nonzero(members_at_point[copied_points])
    copies_of_nonmembers = np.count_nonzero(nonmembers_at_point[copied_points])
    rng = Purpose.SYNTHETIC_METRICS.rng(tables.seed)
    compared_synthetic = random_rows(tables.synthetic, MOST_COMPARED_RECORDS, rng)
    member_coordinates = tables.points[tables.place[member]]
    nonmember_coordinates = tables.points[tables.place[~member]]
    # As many members as non-members: the closest of more records is closer.
    compared_size = min(len(member_coordinates), len(nonmember_coordinates), MOST_COMPARED_RECORDS)
    to_members = _closest_record(
        random_rows(member_coordinates, compared_size, rng), compared_synthetic
    )
    to_nonmembers = _closest_record(
        random_rows(nonmember_coordinates, compared_size, rng), compared_synthetic
    )
    correlation_differences = _correlations_of_coordinates(
        member_coordinates
    ) - _correlations_of_coordinates(compared_synthetic)
    return Similarity(
        copies_of_members=float(copies_of_members / len(tables.copied)),
        copies_of_nonmembers=float(copies_of_nonmembers / len(tables.copied)),
        closer_to_members=_share_closer_to_members(tables, members_at_point, nonmembers_at_point),
        expected=float(member.mean()),
        distance_to_members=to_members.median_distance,
        distance_to_nonmembers=to_nonmembers.median_distance,
        ratio_to_members=to_members.median_ratio,
        ratio_to_nonmembers=to_nonmembers.median_ratio,
        marginals=_similarity_of_marginals(member_coordinates, tables.synthetic),
        correlations=1 - float(np.abs(correlation_differences).mean()) / 2,
    )


def _share_closer_to_members(
    tables: Tables, members_at_point: IntArray, nonmembers_at_point: IntArray
) -> float:
    """Return the share of synthetic records whose nearest record is a member; ties count in part.

    Synthetic records nearest to a record of the reference do not count.
    """
    points_nearest_to_synthetic = tables.of_synthetic.indices[:, 0]
    audited_at_point = members_at_point + nonmembers_at_point
    nearest_audited_points = points_nearest_to_synthetic[
        audited_at_point[points_nearest_to_synthetic] > 0
    ]
    if not nearest_audited_points.size:
        return 0.0
    member_shares = members_at_point / np.maximum(audited_at_point, 1)
    return float(member_shares[nearest_audited_points].mean())


class _ClosestRecord(NamedTuple):
    """Medians over synthetic records: distance to the closest record, and ratio to the second."""

    median_distance: float
    median_ratio: float


def _closest_record(records: FloatArray, synthetic: FloatArray) -> _ClosestRecord:
    """Return the median distance to the closest record (DCR), and the median distance ratio (NNDR).

    The ratio is that of the distances of the closest and the second closest record.
    """
    neighbour_count = min(2, len(records))
    nearest_records = nearest(records, synthetic, neighbour_count, what="Distances", shown=False)
    closest_distances = nearest_records.distances[:, 0]
    second_closest_distances = nearest_records.distances[:, -1]
    ones = np.ones(len(closest_distances))
    distance_ratios = np.divide(
        closest_distances, second_closest_distances, out=ones, where=second_closest_distances > 0
    )
    return _ClosestRecord(float(np.median(closest_distances)), float(np.median(distance_ratios)))


def _similarity_of_marginals(
    member_coordinates: FloatArray, synthetic_coordinates: FloatArray
) -> float:
    """Return 1 minus the mean Kolmogorov–Smirnov distance of coordinates."""
    with needs("ml", "similarity metrics"):
        from scipy.stats import ks_2samp
    kolmogorov_smirnov_distances = ks_2samp(
        member_coordinates, synthetic_coordinates, method="asymp"
    ).statistic
    return 1 - float(kolmogorov_smirnov_distances.mean())


def _correlations_of_coordinates(coordinates: FloatArray) -> FloatArray:
    """Return the correlations of different coordinates; 0 for those that do not vary."""
    if coordinates.shape[1] == 1:
        return np.zeros(1)
    centred_coordinates = coordinates - coordinates.mean(axis=0)
    standard_deviations = np.sqrt((centred_coordinates**2).mean(axis=0))
    zeros = np.zeros_like(centred_coordinates)
    standardized_coordinates = np.divide(
        centred_coordinates,
        standard_deviations,
        out=zeros,
        where=standard_deviations > LEAST_DEVIATION,
    )
    correlation_matrix = standardized_coordinates.T @ standardized_coordinates / len(coordinates)
    above_diagonal = np.triu_indices(coordinates.shape[1], 1)
    return np.asarray(correlation_matrix[above_diagonal])
