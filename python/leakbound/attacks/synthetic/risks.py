"""The three questions of European regulators as attacks: singling out, linkability, inference.

Each scores an audited record by how well an attack on it succeeded, and by 0 if it did not: a
success is something that a person recognises, and says so without membership. As all attacks here
they see `Tables`, so that scores are functions of the synthetic table and of the set of records.

Whom a synthetic table singles out in the data that it was made from is looked at with labels, after
scores, and no attack sees it.
"""

from typing import NamedTuple

import numpy as np

from leakbound._base.scores import Scores
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.attacks.synthetic.encoding import MISSING
from leakbound.attacks.synthetic.neighbours import Neighbours, nearest
from leakbound.attacks.synthetic.tables import NEIGHBOURS, Tables, scored

LEAST_DISTANCE = 1e-3  # distances below count as this: a thousandth of a spread
LOG_TWICE = float(np.log(2))  # this much nearer than to others, a record singles somebody out
UNIQUE_VALUE_NATS = float(np.log(4))  # worth of a value that nobody else has: four times as near
UNIQUE_SHARE = 0.99  # of people with a value of their own, in a column that tells people apart
NATS_PER_LOG_RATIO = 6.0  # what a match e times as near is worth
MOST_CLOSENESS_NATS = 40.0
CHANCE_LINK_SCORE = 1e-6  # of a link that is no closer than chance
CHANCE_NATS = 7.0  # from which a right guess counts: chance explains one in a thousand
MOST_CLOSE_SHARE = 0.05  # of values as close to the truth, if a guessed number counts as right
BLOCK_SIZE = 1 << 22  # differences of coordinates held at a time


def singling_out(tables: Tables) -> Scores:
    r"""Score records by how clearly the table isolates them: one person, and nobody else.

    An intruder takes a synthetic record as a description, "somebody about like this". It singles a
    person out if it is at least twice as near to this person as to anybody else, and scores
    :math:`\ln(d_2/d_1)` with the distances of the nearest and the second nearest person. In a
    column where 99 % of people have a value of their own, a value in the table that one person
    alone has singles this person out too, and adds ln 4.

    Parameters
    ----------
    tables : Tables
        Records and synthetic table.

    References
    ----------
    Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques (WP216), names the three
    risks. A. Cohen, K. Nissim, "Towards formalizing the GDPR's notion of singling out", 2020.

    Examples
    --------
    >>> tables = Tables.of([[0.0], [1.0], [5.0]], [[1.1], [4.0]])
    >>> singling_out(tables).values.round(2).tolist()
    [0.0, 2.2, 1.61]
    """
    point_scores = np.zeros(len(tables.points))
    if len(tables.points) > 1:
        points_near_synthetic = tables.of_synthetic
        log_neighbour_distances = log_distance(points_near_synthetic.distances)
        log_distance_ratios = log_neighbour_distances[:, 1] - log_neighbour_distances[:, 0]
        points_nearest_to_synthetic = points_near_synthetic.indices[:, 0]
        is_isolated_point = log_distance_ratios >= LOG_TWICE
        is_isolated_point &= tables.counts[points_nearest_to_synthetic] == 1
        isolated_points = points_nearest_to_synthetic[is_isolated_point]
        np.maximum.at(point_scores, isolated_points, log_distance_ratios[is_isolated_point])
    for identifying_column in identifying_columns(tables, tables.counts):
        is_unique = identifying_column.people_sharing(tables.counts) == 1
        point_scores[is_unique & identifying_column.in_synthetic] += UNIQUE_VALUE_NATS
    return scored(tables, point_scores, "singling_out")


class IdentifyingColumn(NamedTuple):
    """A column that tells people apart: values of points, and which the synthetic table has.

    `values` numbers the values of all points from 0, `in_synthetic` says whether a synthetic record
    has that value.
    """

    values: IntArray
    in_synthetic: BoolArray

    def people_sharing(self, people: IntArray) -> IntArray:
        """Return how many people have the value of each point, with `people` at each point."""
        people_by_value = np.bincount(self.values, people)
        return people_by_value[self.values]


def identifying_columns(tables: Tables, people_at_points: IntArray) -> list[IdentifyingColumn]:
    """Return the columns in which 99 % of people have a value that nobody else has.

    `people_at_points` says how many people stand at each point.
    """
    found_columns = []
    for point_codes, synthetic_codes in zip(
        tables.values.points.T, tables.values.synthetic.T, strict=True
    ):
        has_value = point_codes != MISSING
        _, value_numbers = np.unique(point_codes, return_inverse=True)
        identifying_column = IdentifyingColumn(
            value_numbers, np.isin(point_codes, synthetic_codes) & has_value
        )
        has_unique_value = has_value & (identifying_column.people_sharing(people_at_points) == 1)
        if people_at_points[has_unique_value].sum() >= UNIQUE_SHARE * people_at_points.sum():
            found_columns.append(identifying_column)
    return found_columns


def linkability(tables: Tables) -> Scores:
    """Score records by how well the table joins two files, each with half of their columns.

    An intruder looks for a person's nearest synthetic record by one half of the columns, and by the
    other. If both are the same record, and nearer than any other, the table links the halves. The
    score is the closeness by the worse half. Halves tell about as much each: columns are sorted by
    their entropy in the synthetic table, and dealt 1-2-2-1.

    Parameters
    ----------
    tables : Tables
        Records and synthetic table.

    References
    ----------
    M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnádi, "A Unified Framework for Quantifying Privacy
    Risk in Synthetic Data", 2022, arXiv:2211.10459: the event of Anonymeter, with one neighbour.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> records = rng.normal(size=(200, 4))
    >>> scores = linkability(Tables.of(records, records[:100] + 0.01)).values
    >>> int((scores[:100] > 0).sum()), int((scores[100:] > 0).sum()) < 20
    (100, True)
    """
    link_scores = np.zeros(tables.audited.size)
    if all(tables.halves) and tables.joined.size > 1:
        neighbours_by_first_half, neighbours_by_second_half = tables.of_halves
        is_linked = (
            neighbours_by_first_half.indices[:, 0] == neighbours_by_second_half.indices[:, 0]
        )
        for neighbours_by_half in (neighbours_by_first_half, neighbours_by_second_half):
            distances_to_nearest = neighbours_by_half.distances[:, 0]
            distances_to_second = neighbours_by_half.distances[:, 1]
            is_linked &= distances_to_second > distances_to_nearest
        first_closeness = closeness(neighbours_by_first_half.distances)
        second_closeness = closeness(neighbours_by_second_half.distances)
        worse_closeness = np.minimum(first_closeness, second_closeness)
        worse_closeness = np.maximum(worse_closeness, CHANCE_LINK_SCORE)
        link_scores[is_linked] = worse_closeness[is_linked]
    return scored(tables, link_scores, "linkability")


def inference(tables: Tables) -> Scores:
    """Score records by how surprisingly well a secret follows from all other columns.

    An intruder knows every column but the secret, and guesses the value of the nearest synthetic
    record. A right guess counts if closeness and surprise are 7 nats or more, what chance gives
    once in a thousand times; what is beyond is the score. *Surprise* is minus the logarithm of the
    share of synthetic values that are as close to the truth. A guess is right if it is equal, or
    for numbers and dates if this share is at most 5 %. Secrets are those of `Tables`, found by an
    exact search. If there are none, every column is guessed in turn, from the 32 records nearest
    by the half without it, ranked again by all other columns; scores are added up.

    Parameters
    ----------
    tables : Tables
        Records and synthetic table.

    References
    ----------
    M. Giomi et al., 2022, arXiv:2211.10459, for the attack by the nearest record.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> records = rng.normal(size=(200, 4))
    >>> scores = inference(Tables.of(records, records[:100] + 0.01)).values
    >>> int((scores[:100] > 0).sum()) > 90, int((scores[100:] > 0).sum()) < 20
    (True, True)
    """
    inference_scores = np.zeros(tables.audited.size)
    column_names = tables.values.columns
    if len(column_names) < 2:
        return scored(tables, inference_scores, "inference")
    if tables.secrets:
        for secret in tables.secrets:
            if secret in column_names:
                nearest_synthetic = _nearest_without_secret(tables, secret)
                inference_scores += _scores_of_secret(tables, secret, nearest_synthetic)
    else:
        for known_half in (0, 1):
            inference_scores += _inferences_from_half(tables, known_half)
    return scored(tables, inference_scores, "inference")


def closeness(distances: FloatArray) -> FloatArray:
    """Return how unlikely so near a match is by chance, in nats.

    The largest of 6 ln(d_j / d_1) - ln(j - 1) over the next records, j = 2 to 10: where a record
    was copied several times, the next ones are copies too.

    Parameters
    ----------
    distances : ndarray, shape (n, k)
        Distances of the nearest records of each query, increasing; of more than 10, the first 10.
    """
    log_neighbour_distances = log_distance(distances[:, :NEIGHBOURS])
    if log_neighbour_distances.shape[1] < 2:
        return np.zeros(len(log_neighbour_distances))
    log_distance_ratios = log_neighbour_distances[:, 1:] - log_neighbour_distances[:, :1]
    log_numbers_of_rivals = np.log(np.arange(1, log_neighbour_distances.shape[1]))
    nats_of_next_records = NATS_PER_LOG_RATIO * log_distance_ratios - log_numbers_of_rivals
    return np.asarray(np.clip(nats_of_next_records.max(axis=1), 0.0, MOST_CLOSENESS_NATS))


def _nearest_without_secret(tables: Tables, secret: str) -> Neighbours:
    """Return which of `joined` are nearest to each audited point, by all columns but a secret."""
    every_dimension = np.arange(len(tables.sources))
    known_dimensions = np.setdiff1d(every_dimension, tables.dimensions(secret))
    return tables.nearest_joined(known_dimensions, NEIGHBOURS, "Inferences")


def _inferences_from_half(tables: Tables, known_half: int) -> FloatArray:
    """Return the scores of secrets in the other half, each guessed from candidates by this one."""
    inference_scores = np.zeros(tables.audited.size)
    if not tables.halves[known_half]:
        return inference_scores
    candidate_records = tables.of_halves[known_half].indices
    every_dimension = np.arange(len(tables.sources))
    squared_distances = _squared_distances_of_candidates(tables, candidate_records, every_dimension)
    for secret in tables.halves[1 - known_half]:
        squared_secret_distances = _squared_distances_of_candidates(
            tables, candidate_records, tables.dimensions(secret)
        )
        squared_known_distances = np.maximum(squared_distances - squared_secret_distances, 0.0)
        known_distances = np.sqrt(squared_known_distances)
        nearest_first = np.argsort(known_distances, axis=1, kind="stable")[:, :NEIGHBOURS]
        candidate_neighbours = Neighbours(known_distances, candidate_records)
        nearest_synthetic = candidate_neighbours.at_places(nearest_first)
        inference_scores += _scores_of_secret(tables, secret, nearest_synthetic)
    return inference_scores


def _squared_distances_of_candidates(
    tables: Tables, candidate_records: IntArray, compared_dimensions: IntArray
) -> FloatArray:
    """Return squared distances of audited points from candidates, in some dimensions."""
    audited_coordinates = tables.points[tables.audited][:, compared_dimensions]
    synthetic_coordinates = tables.synthetic[tables.joined][:, compared_dimensions]
    squared_distances = np.empty(candidate_records.shape)
    differences_per_point = candidate_records.shape[1] * compared_dimensions.size
    block_rows = max(1, BLOCK_SIZE // differences_per_point)
    for block_start in range(0, len(audited_coordinates), block_rows):
        block_of_points = slice(block_start, block_start + block_rows)
        candidate_coordinates = synthetic_coordinates[candidate_records[block_of_points]]
        coordinate_differences = audited_coordinates[block_of_points, None] - candidate_coordinates
        squared_distances[block_of_points] = (coordinate_differences**2).sum(axis=2)
    return squared_distances


def _scores_of_secret(tables: Tables, secret: str, nearest_synthetic: Neighbours) -> FloatArray:
    """Return what right guesses of a secret are worth beyond 7 nats, by the nearest record."""
    guessed_synthetic_records = tables.joined[nearest_synthetic.indices[:, 0]]
    is_right_guess, close_shares = _guesses_of_secret(tables, secret, guessed_synthetic_records)
    surprise = -np.log(close_shares)
    closeness_and_surprise = closeness(nearest_synthetic.distances) + surprise
    nats_beyond_chance = np.maximum(closeness_and_surprise - CHANCE_NATS, 0.0)
    return np.where(is_right_guess, nats_beyond_chance, 0.0)


def _guesses_of_secret(
    tables: Tables, secret: str, guessed_synthetic_records: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Return which guesses are right, and the share of synthetic values as close to the truth.

    `guessed_synthetic_records` has the record whose value is the guess for each audited point.
    """
    secret_column = tables.values.columns.index(secret)
    true_value_codes = tables.values.points[tables.audited, secret_column]
    synthetic_value_codes = tables.values.synthetic[:, secret_column]
    guessed_value_codes = synthetic_value_codes[guessed_synthetic_records]
    is_right_guess = guessed_value_codes == true_value_codes
    # Missing values come first, at code -1.
    synthetic_code_counts = np.bincount(synthetic_value_codes - MISSING)
    values_as_close = synthetic_code_counts[guessed_value_codes - MISSING]
    if secret in tables.values.ordered:
        have_both_values = (guessed_value_codes != MISSING) & (true_value_codes != MISSING)
        secret_dimension = tables.dimensions(secret)[0]
        synthetic_coordinates = tables.synthetic[:, secret_dimension]
        true_coordinates = tables.points[tables.audited, secret_dimension]
        errors_of_guesses = np.abs(
            synthetic_coordinates[guessed_synthetic_records] - true_coordinates
        )
        sorted_synthetic_coordinates = np.sort(
            synthetic_coordinates[synthetic_value_codes != MISSING]
        )
        values_below = np.searchsorted(
            sorted_synthetic_coordinates, true_coordinates - errors_of_guesses, "left"
        )
        values_up_to = np.searchsorted(
            sorted_synthetic_coordinates, true_coordinates + errors_of_guesses, "right"
        )
        values_as_close = np.where(
            have_both_values, values_up_to - values_below, synthetic_code_counts[0]
        )
        is_close_guess = values_as_close / synthetic_value_codes.size <= MOST_CLOSE_SHARE
        is_right_guess |= have_both_values & is_close_guess
    close_shares = values_as_close / synthetic_value_codes.size
    return is_right_guess, np.maximum(close_shares, 1 / synthetic_value_codes.size)


def log_distance(distances: FloatArray) -> FloatArray:
    """Return logarithms of distances, of which those below a thousandth count as that."""
    return np.asarray(np.log(np.maximum(distances, LEAST_DISTANCE)))


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
