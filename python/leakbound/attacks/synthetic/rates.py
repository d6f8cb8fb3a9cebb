"""Whom a synthetic table singles out in the data that it was made from.

This is looked at with labels, after scores, and no attack sees it.
"""

import numpy as np

from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.attacks.synthetic.neighbours import nearest
from leakbound.attacks.synthetic.risks import TWICE, log_distance, telling
from leakbound.attacks.synthetic.tables import Tables


def isolated(tables: Tables, member: BoolArray) -> BoolArray:
    """Return who is singled out: members among the members, another person beside them.

    A synthetic record is at least twice as near to this person as to any other person of the data,
    or has a value that this person alone has there. What is said of one held-out person does not
    depend on the other ones: it is a function of the table, the data and this person.

    Parameters
    ----------
    tables, member : Tables, and ndarray of bool of shape (N,)
        Records and synthetic table, and which records are members.
    """
    people = np.bincount(tables.place[member], minlength=len(tables.points))
    distances, points = _of_data(tables, people)
    inside = np.zeros(len(tables.points), dtype=np.bool_)
    outside = inside.copy()
    # 1. Synthetic records near to one member, and half as near to the next.
    gap = log_distance(distances[:, 1]) - log_distance(distances[:, 0])
    first = points[:, 0]
    inside[first[(gap >= TWICE) & (people[first] == 1)]] = True
    # 2. Those near to somebody held out, and half as near to any member.
    near = tables.of_synthetic
    reached = log_distance(distances[:, :1]) - log_distance(near.distances) >= TWICE
    outside[near.indices[reached]] = True
    for row in np.flatnonzero(reached[:, -1]):  # perhaps others too, beyond those found
        far = np.sqrt(((tables.points - tables.synthetic[row]) ** 2).sum(axis=1))
        outside |= log_distance(distances[row, 0]) - log_distance(far) >= TWICE
    # 3. Values that nobody else has.
    for values, there in telling(tables, people):
        having = np.bincount(values, people)[values]
        inside |= there & (having == 1)
        outside |= there & (having == 0)
    return np.where(member, inside[tables.place], outside[tables.place])


def _of_data(tables: Tables, people: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the two nearest points of the data to each synthetic record, and their distances."""
    near = tables.of_synthetic
    used = people[near.indices] > 0
    first = np.argsort(~used, axis=1, kind="stable")[:, [0, min(1, used.shape[1] - 1)]]
    points = np.take_along_axis(near.indices, first, 1)
    distances = np.take_along_axis(near.distances, first, 1)
    few = np.flatnonzero(used.sum(axis=1) < 2)
    if few.size:
        data = np.flatnonzero(people)
        found = nearest(tables.points[data], tables.synthetic[few], 2, what="Data", shown=False)
        both = [0, found.indices.shape[1] - 1]
        points[few] = data[found.indices[:, both]]
        distances[few] = found.distances[:, both]
    return distances, points
