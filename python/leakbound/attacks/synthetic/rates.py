"""Whom a synthetic table singles out in the data that it was made from.

This is looked at with labels, after scores, and no attack sees it.
"""

import numpy as np

from leakbound._base.types import BoolArray, IntArray
from leakbound.attacks.synthetic.neighbours import Neighbours, nearest
from leakbound.attacks.synthetic.risks import LOG_TWICE, identifying_columns, log_distance
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
    members_at_point = np.bincount(tables.place[member], minlength=len(tables.points))
    two_nearest_members = _two_nearest_member_points(tables, members_at_point)
    isolates_member = np.zeros(len(tables.points), dtype=np.bool_)
    isolates_other = isolates_member.copy()
    # 1. Synthetic records near to one member, and half as near to the next.
    log_member_distances = log_distance(two_nearest_members.distances)
    nearest_member_points = two_nearest_members.indices[:, 0]
    log_distance_ratios = log_member_distances[:, 1] - log_member_distances[:, 0]
    isolates_nearest_member = log_distance_ratios >= LOG_TWICE
    isolates_nearest_member &= members_at_point[nearest_member_points] == 1
    isolates_member[nearest_member_points[isolates_nearest_member]] = True
    # 2. Those near to somebody held out, and half as near to any member.
    points_near_synthetic = tables.of_synthetic
    log_nearest_member_distances = log_member_distances[:, :1]
    log_neighbour_distances = log_distance(points_near_synthetic.distances)
    is_twice_as_near = log_nearest_member_distances - log_neighbour_distances >= LOG_TWICE
    isolates_other[points_near_synthetic.indices[is_twice_as_near]] = True
    # Where even the last of these neighbours is so near, perhaps others beyond them are too.
    for synthetic_row in np.flatnonzero(is_twice_as_near[:, -1]):
        coordinate_differences = tables.points - tables.synthetic[synthetic_row]
        distances_of_points = np.sqrt((coordinate_differences**2).sum(axis=1))
        isolates_other |= (
            log_member_distances[synthetic_row, 0] - log_distance(distances_of_points) >= LOG_TWICE
        )
    # 3. Values that nobody else has.
    for identifying_column in identifying_columns(tables, members_at_point):
        members_sharing_value = identifying_column.people_sharing(members_at_point)
        isolates_member |= identifying_column.in_synthetic & (members_sharing_value == 1)
        isolates_other |= identifying_column.in_synthetic & (members_sharing_value == 0)
    return np.where(member, isolates_member[tables.place], isolates_other[tables.place])


def _two_nearest_member_points(tables: Tables, members_at_point: IntArray) -> Neighbours:
    """Return the two points nearest to each synthetic record at which there are members.

    If all members are at one point, this point twice.
    """
    points_near_synthetic = tables.of_synthetic
    has_members_at_neighbour = members_at_point[points_near_synthetic.indices] > 0
    places_with_members_first = np.argsort(~has_members_at_neighbour, axis=1, kind="stable")
    second_place = min(1, has_members_at_neighbour.shape[1] - 1)
    places_of_two_members = places_with_members_first[:, [0, second_place]]
    nearest_members = points_near_synthetic.at_places(places_of_two_members)
    rows_with_too_few = np.flatnonzero(has_members_at_neighbour.sum(axis=1) < 2)
    if rows_with_too_few.size:
        member_points = np.flatnonzero(members_at_point)
        two_searched_members = nearest(
            tables.points[member_points],
            tables.synthetic[rows_with_too_few],
            2,
            what="Data",
            shown=False,
        )
        # Of a single point with members, the last place is also the first.
        first_and_last = [0, -1]
        distances_of_searched_members = two_searched_members.distances[:, first_and_last]
        points_of_searched_members = member_points[two_searched_members.indices[:, first_and_last]]
        nearest_members.distances[rows_with_too_few] = distances_of_searched_members
        nearest_members.indices[rows_with_too_few] = points_of_searched_members
    return nearest_members
