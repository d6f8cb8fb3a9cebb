"""The usual similarity metrics of synthetic data: what is looked at in place of an audit.

They are not bounds, and no bound uses them. They are shown beside the bound to make visible what
they miss: a table can be as far from its training data as from other data and still leak it.
"""

from dataclasses import dataclass

import numpy as np

from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.attacks.synthetic.neighbours import nearest, some
from leakbound.attacks.synthetic.tables import Tables

MOST = 5_000  # records of each kind whose distances are looked at
LEAST_SPREAD = 1e-12  # of a coordinate that varies by more than rounding


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
    size = len(tables.points)
    inside = np.bincount(tables.place[member], minlength=size)
    outside = np.bincount(tables.place[~member], minlength=size)
    copy = tables.copied >= 0
    rng = Purpose.SYNTHETIC_METRICS.rng(tables.seed)
    synthetic = some(tables.synthetic, MOST, rng)
    members = tables.points[tables.place[member]]
    others = tables.points[tables.place[~member]]
    alike = min(len(members), len(others), MOST)
    to_members = _medians(some(members, alike, rng), synthetic)
    to_others = _medians(some(others, alike, rng), synthetic)
    return Similarity(
        copies_of_members=float((copy & (inside[tables.copied] > 0)).mean()),
        copies_of_nonmembers=float((copy & (outside[tables.copied] > 0)).mean()),
        closer_to_members=_closer(tables, inside, outside),
        expected=float(member.mean()),
        distance_to_members=to_members[0],
        distance_to_nonmembers=to_others[0],
        ratio_to_members=to_members[1],
        ratio_to_nonmembers=to_others[1],
        marginals=_marginals(members, tables.synthetic),
        correlations=1
        - float(np.abs(_correlations(members) - _correlations(synthetic)).mean()) / 2,
    )


def _closer(tables: Tables, inside: IntArray, outside: IntArray) -> float:
    """Return the share of synthetic records whose nearest record is a member; ties count in part.

    `inside` and `outside` count members and others at each point.
    """
    first = tables.of_synthetic.indices[:, 0]
    audited = inside + outside
    known = audited[first] > 0
    shares = inside / np.maximum(audited, 1)
    return float(shares[first][known].mean()) if known.any() else 0.0


def _medians(rows: FloatArray, synthetic: FloatArray) -> tuple[float, float]:
    """Return the median distance to the closest row, and the median ratio to the second one."""
    near = nearest(rows, synthetic, min(2, len(rows)), what="Distances", shown=False)
    first, last = near.distances[:, 0], near.distances[:, -1]
    ratio = np.divide(first, last, out=np.ones(len(first)), where=last > 0)
    return float(np.median(first)), float(np.median(ratio))


def _marginals(members: FloatArray, synthetic: FloatArray) -> float:
    """Return 1 minus the mean Kolmogorov–Smirnov distance of coordinates."""
    with needs("ml", "similarity metrics"):
        from scipy.stats import ks_2samp
    return 1 - float(ks_2samp(members, synthetic, method="asymp").statistic.mean())


def _correlations(rows: FloatArray) -> FloatArray:
    """Return the correlations of different coordinates; 0 for those that do not vary."""
    if rows.shape[1] == 1:
        return np.zeros(1)
    centred = rows - rows.mean(axis=0)
    spread = np.sqrt((centred**2).mean(axis=0))
    scaled = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > LEAST_SPREAD)
    above = np.triu_indices(rows.shape[1], 1)
    return np.asarray((scaled.T @ scaled / len(rows))[above])
