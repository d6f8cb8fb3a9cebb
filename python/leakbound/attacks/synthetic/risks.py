"""The three questions of European regulators as attacks: singling out, linkability, inference.

Each scores an audited record by how well an attack on it succeeded, and by 0 if it did not: a
success is something that a person recognises, and says so without membership. As all attacks here
they see `Tables`, so that scores are functions of the synthetic table and of the set of records.
"""

import numpy as np

from leakbound._base.scores import Scores
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.attacks.synthetic.encoding import MISSING
from leakbound.attacks.synthetic.neighbours import nearest
from leakbound.attacks.synthetic.tables import NEIGHBOURS, Tables, scored

FLOOR = 1e-3  # distances below count as this: a thousandth of a spread
TWICE = float(np.log(2))  # this much nearer than to anybody else, a record singles somebody out
VALUE = float(np.log(4))  # what a value that nobody else has is worth: four times as near
UNIQUE = 0.99  # share of people with a value of their own, in a column that tells people apart
SHARPNESS = 6.0  # nats that a match e times as near is worth
MOST_NATS = 40.0  # of closeness
LINKED = 1e-6  # score of a link that is no closer than chance
SURPRISE = 7.0  # nats from which a right guess counts: chance explains one in a thousand
CLOSE = 0.05  # share of values as close to the truth, at which a guessed number counts as right
BLOCK = 1 << 22  # differences of coordinates held at a time


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
    found = np.zeros(len(tables.points))
    if len(tables.points) > 1:
        near = tables.of_synthetic
        first = near.indices[:, 0]
        distances = log_distance(near.distances)
        gap = distances[:, 1] - distances[:, 0]
        isolates = (gap >= TWICE) & (tables.counts[first] == 1)
        np.maximum.at(found, first[isolates], gap[isolates])
    for values, there in telling(tables, tables.counts):
        alone = np.bincount(values, tables.counts)[values] == 1
        found[alone & there] += VALUE
    return scored(tables, found, "singling_out")


def telling(tables: Tables, people: IntArray) -> list[tuple[IntArray, BoolArray]]:
    """Return columns that tell people apart: numbers of the values, and which the table has.

    Of each column the values of all points, numbered from 0, and whether a synthetic record has
    that value. `people` says how many stand at each point: 99 % of them have a value of their own.
    """
    found = []
    for place in range(len(tables.values.columns)):
        points = tables.values.points[:, place]
        known = points != MISSING
        _, values = np.unique(points, return_inverse=True)
        alone = np.bincount(values, people)[values] == 1
        if people[alone & known].sum() >= UNIQUE * people.sum():
            there = np.isin(points, tables.values.synthetic[:, place]) & known
            found.append((values, there))
    return found


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
    found = np.zeros(tables.audited.size)
    if all(tables.halves) and tables.joined.size > 1:
        first, second = tables.of_halves
        linked = first.indices[:, 0] == second.indices[:, 0]
        for half in (first, second):
            nearest_one = half.distances[:, 0]
            next_one = half.distances[:, 1]
            linked &= next_one > nearest_one
        worse = np.minimum(closeness(first.distances), closeness(second.distances))
        score = np.maximum(worse, LINKED)
        found[linked] = score[linked]
    return scored(tables, found, "linkability")


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
    found = np.zeros(tables.audited.size)
    columns = tables.values.columns
    if len(columns) > 1:
        for name in tables.secrets:
            if name in columns:
                found += _inferred(tables, name, *_by_all_others(tables, name))
        if not tables.secrets:
            for half in (0, 1):
                found += _each_in_turn(tables, half)
    return scored(tables, found, "inference")


def closeness(distances: FloatArray) -> FloatArray:
    """Return how unlikely so near a match is by chance, in nats.

    The largest of 6 ln(d_j / d_1) - ln(j - 1) over the next records, j = 2 to 10: where a record
    was copied several times, the next ones are copies too.

    Parameters
    ----------
    distances : ndarray, shape (n, k)
        Distances of the nearest records of each query, increasing; of more than 10, the first 10.
    """
    logs = log_distance(distances[:, :NEIGHBOURS])
    if logs.shape[1] < 2:
        return np.zeros(len(logs))
    nearest_log = logs[:, :1]
    others = np.log(np.arange(1, logs.shape[1]))
    nats = SHARPNESS * (logs[:, 1:] - nearest_log) - others
    return np.asarray(np.clip(nats.max(axis=1), 0.0, MOST_NATS))


def _by_all_others(tables: Tables, secret: str) -> tuple[FloatArray, IntArray]:
    """Return distances of the nearest of `joined` by all columns but one, and which they are."""
    others = np.setdiff1d(np.arange(len(tables.sources)), tables.dimensions(secret))
    made = tables.synthetic[tables.joined][:, others]
    queries = tables.points[tables.audited][:, others]
    most = min(NEIGHBOURS, len(made))
    near = nearest(made, queries, most, what="Inferences", shown=tables.progress)
    return near.distances, near.indices


def _each_in_turn(tables: Tables, half: int) -> FloatArray:
    """Return the scores of secrets in the other half, each guessed from candidates by this one."""
    known = tables.halves[half]
    secrets = tables.halves[1 - half]
    found = np.zeros(tables.audited.size)
    if not known:
        return found
    candidates = tables.of_halves[half].indices
    whole = _between(tables, candidates, np.arange(len(tables.sources)))
    for secret in secrets:
        own = _between(tables, candidates, tables.dimensions(secret))
        apart = np.sqrt(np.maximum(whole - own, 0.0))
        order = np.argsort(apart, axis=1, kind="stable")[:, :NEIGHBOURS]
        distances = np.take_along_axis(apart, order, 1)
        indices = np.take_along_axis(candidates, order, 1)
        found += _inferred(tables, secret, distances, indices)
    return found


def _between(tables: Tables, candidates: IntArray, dimensions: IntArray) -> FloatArray:
    """Return squared distances of audited points from candidates, in some dimensions."""
    points = tables.points[tables.audited][:, dimensions]
    made = tables.synthetic[tables.joined][:, dimensions]
    found = np.empty(candidates.shape)
    rows = max(1, BLOCK // (candidates.shape[1] * dimensions.size))
    for start in range(0, len(points), rows):
        part = slice(start, start + rows)
        apart = points[part, None] - made[candidates[part]]
        found[part] = (apart**2).sum(axis=2)
    return found


def _inferred(tables: Tables, secret: str, distances: FloatArray, indices: IntArray) -> FloatArray:
    """Return what right guesses of a secret are worth beyond 7 nats, by the nearest record."""
    right, share = _guessed(tables, secret, tables.joined[indices[:, 0]])
    nats = closeness(distances) - np.log(share)
    return np.where(right, np.maximum(nats - SURPRISE, 0.0), 0.0)


def _guessed(tables: Tables, secret: str, rows: IntArray) -> tuple[BoolArray, FloatArray]:
    """Return which guesses are right, and the share of synthetic values as close to the truth."""
    place = tables.values.columns.index(secret)
    truth = tables.values.points[tables.audited, place]
    made = tables.values.synthetic[:, place]
    guess = made[rows]
    right = guess == truth
    equal = np.bincount(made - MISSING)
    share = equal[guess - MISSING] / made.size
    if secret in tables.values.ordered:
        known = (guess != MISSING) & (truth != MISSING)
        dimension = tables.dimensions(secret)[0]
        values = np.sort(tables.synthetic[made != MISSING, dimension])
        at = tables.points[tables.audited, dimension]
        off = np.abs(tables.synthetic[rows, dimension] - at)
        below = np.searchsorted(values, at - off, "left")
        up_to = np.searchsorted(values, at + off, "right")
        as_close = np.where(known, up_to - below, equal[0])
        share = as_close / made.size
        right |= known & (share <= CLOSE)
    return right, np.maximum(share, 1 / made.size)


def log_distance(distances: FloatArray) -> FloatArray:
    """Return logarithms of distances, of which those below a thousandth count as that."""
    return np.asarray(np.log(np.maximum(distances, FLOOR)))
