"""Are recorded batches made as stated? The indices say so, given the sizes.

Given the sizes, Poisson samples are independent uniform subsets of the examples whatever the rate,
and so are samples of a fixed size. Statistics of the batches are compared with those of subsets
that are drawn like that, so that all p-values are exact. So they are of any part of the examples
that is chosen without the batches. What is stated about epochs needs no chance: it is looked up.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakbound._base import shares
from leakbound._base.checks import choice, complement, integer, seed_of, shown
from leakbound._base.formatting import percent
from leakbound._base.messages import Message
from leakbound._base.reading import array_of, is_list
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, Batches, FloatArray, IntArray
from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.report.parts import Provenance
from leakbound.results.batches import BATCH_TESTS, BatchesAudit

# Batches, and batches times examples, that are compared at most
_MOST_BATCHES = 300
_MOST_CELLS = 200_000
# Sets of batches that are drawn, at least and at most, and as a multiple of one over the level
_GAMES = (399, 9_999)
_PER_LEVEL = 20
# Numbers of drawn sets in memory
_NUMBERS = 4_000_000
# Pairs of batches with an example in common, of which fewer tell nothing
_FEWEST = 30.0


def audit_batches(
    batches: Iterable[ArrayInput],
    *,
    examples: int,
    sampling: Batches = "poisson",
    batches_per_epoch: int | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
) -> BatchesAudit:
    """Test whether recorded batches are made as stated, such as Poisson samples.

    An accountant for Poisson sampling assumes that every example is drawn by itself. Shuffled
    epochs, a fixed order, and weights give batches of any size, but not independent ones. Nothing
    is trained: any ``batch_sampler`` is a list of its batches.

    Parameters
    ----------
    batches : iterable of array-like
        The indices of the examples in each batch, in the order of the steps. Of distributed
        training, put the batches of all processes together first.
    examples : int
        Number of examples in the data, N. Indices are 0 to N - 1.
    sampling : {"poisson", "fixed_size", "epochs"}
        What is stated, as in `watch_dp_sgd`: Poisson samples, a fresh uniform subset of a fixed
        size in each step, or epochs that have each example once at most, in any order.
    batches_per_epoch : int, optional
        Batches of an epoch, ``len(loader)``: for "epochs" only, where the first batch must be the
        first of an epoch.
    confidence : float
        Probability that batches as stated are not refuted, in (0, 1). Above 0.9994 the draws are
        too few for every test to refute: then the verdict is "inconclusive" unless another one
        does. Epochs as stated are never refuted.
    seed : int, optional
        Seed of the draws; a new one if None.

    Returns
    -------
    BatchesAudit
        What contradicts what is stated. Sizes of Poisson samples are taken as given:
        `watch_dp_sgd` tests them, and the rate.

    Raises
    ------
    InputError
        If there is no batch, or an index is outside of the data.
    OptionError
        If `batches_per_epoch` is missing for epochs, or given for other batches.

    Notes
    -----
    Of many batches the first 300 are tested, and of many examples as many as make 200,000 in all
    batches together; of epochs, all are. What is not tested, such as two rates that hardly differ,
    needs more batches. Indices do not show whether the order of epochs, the number of steps and the
    divisor depend on the data: the guarantee of epochs assumes that they do not.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> poisson = [np.flatnonzero(rng.random(200) < 0.05) for _ in range(60)]
    >>> audit_batches(poisson, examples=200, seed=0).check()
    'not refuted'
    >>> epochs = np.concatenate([rng.permutation(200) for _ in range(3)]).reshape(60, 10)
    >>> audit_batches(epochs, examples=200, seed=0).refuted_by
    ('few in common', 'counts')
    >>> audit_batches(epochs, examples=200, sampling="epochs", batches_per_epoch=20).check()
    'not refuted'
    """
    level = complement(confidence)
    number = integer(examples, name="examples", least=1)
    choice(sampling, name="sampling", allowed=Batches)
    epoch = _epoch(sampling, batches_per_epoch)
    chosen = seed_of(seed)
    drawn = _read(batches, number)
    if epoch is not None:
        found = _of_epochs(drawn, epoch, number)
    else:
        found = _of_subsets(drawn, number, level, Purpose.DP_SGD_INDICES.rng(chosen))
    sizes = np.array([one.size for one in drawn])
    if sampling == "fixed_size":
        found.p_values["sizes"] = float(bool((sizes == sizes[0]).all()))
    options: dict[str, Any] = {"examples": number, "confidence": float(confidence), "seed": chosen}
    if sampling != "poisson":
        options["sampling"] = sampling
    if epoch is not None:
        options["batches_per_epoch"] = epoch
    return BatchesAudit(
        batches=found.batches,
        examples=number,
        examples_tested=found.examples,
        mean=float(sizes.mean()),
        p_values=found.p_values,
        confidence=float(confidence),
        options=options,
        warnings=found.warnings,
        provenance=Provenance.of(chosen, sizes=sizes, batches=np.concatenate(drawn)),
        sampling=sampling,
    )


def _epoch(sampling: Batches, batches_per_epoch: int | None) -> int | None:
    """Return how many batches an epoch has, if there are epochs."""
    if sampling == "epochs":
        if batches_per_epoch is None:
            message = (
                '{sampling="epochs"} needs {batches_per_epoch}, len(loader): what is stated is how '
                "often an example comes in each epoch, and indices do not show where one begins"
            )
            raise OptionError(Message(message), option="batches_per_epoch")
        return integer(batches_per_epoch, name="batches_per_epoch", least=1)
    if batches_per_epoch is not None:
        message = '{batches_per_epoch} is for {sampling="epochs"}, and sampling is {other!r}'
        raise OptionError(Message(message, other=sampling), option="batches_per_epoch")
    return None


class _Found(NamedTuple):
    """What the tests of some batches found."""

    batches: int
    examples: int
    p_values: dict[str, float]
    warnings: tuple[str, ...]


def _of_epochs(drawn: list[IntArray], epoch: int, examples: int) -> _Found:
    """Look up whether an example is in an epoch twice, which needs no chance."""
    parts = [np.concatenate(drawn[first : first + epoch]) for first in range(0, len(drawn), epoch)]
    twice = any(np.unique(one).size < one.size for one in parts)
    said: tuple[str, ...] = ()
    if len(drawn) < epoch:
        few = (
            f"{len(drawn):,} batches are recorded, and an epoch has {epoch:,}: record all batches "
            "of an epoch at least"
        )
        said = (few,)
    return _Found(len(drawn), examples, {"epochs": float(not twice)}, said)


def _of_subsets(
    drawn: list[IntArray], examples: int, level: float, rng: np.random.Generator
) -> _Found:
    """Compare batches with independent uniform subsets of the same sizes."""
    kept = drawn[:_MOST_BATCHES]
    tested = min(examples, max(1, _MOST_CELLS // len(kept)))
    places = np.arange(examples)
    if tested < examples:
        places = np.sort(rng.choice(examples, size=tested, replace=False))
    inside = np.zeros((len(kept), tested), dtype=np.float32)
    for row, one in zip(inside, kept, strict=True):
        row[np.isin(places, one, assume_unique=False)] = 1.0
    repeats = any(np.unique(one).size < one.size for one in drawn)
    p_values = {"repeats": float(not repeats), **_p_values(inside, level, rng)}
    return _Found(len(kept), tested, p_values, (*_warnings(inside), *_out_of_reach(level)))


def _read(batches: Iterable[ArrayInput], examples: int) -> list[IntArray]:
    """Return batches as vectors of indices within the data."""
    if not is_list(batches):
        raise InputTypeError(f"batches must be a list of lists of indices, got {shown(batches)}")
    read = [_indices(one, place, examples) for place, one in enumerate(batches)]
    if not read:
        raise InputError("batches is empty: record the indices of each step's batch")
    return read


def _indices(batch: ArrayInput, place: int, examples: int) -> IntArray:
    """Return one batch as a vector of indices within the data."""
    name = f"batch {place}"
    values = array_of(batch, name=name)
    if not values.size:
        return np.zeros(0, dtype=np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iuf" or (values != np.floor(values)).any():
        raise InputTypeError(f"{name} must be a list of indices, got {shown(batch)}")
    wrong = (values < 0) | (values >= examples)
    if wrong.any():
        raise InputError(
            f"{name} has the index {values[wrong][0]:g}, outside 0 to {examples - 1}: pass "
            "examples as the number of all examples, and indices from 0"
        )
    return values.astype(np.int64)


def _p_values(
    inside: NDArray[np.float32], level: float, rng: np.random.Generator
) -> dict[str, float]:
    """Return p-values of overlaps and counts, by drawing uniform subsets of the same sizes."""
    sizes = inside.sum(1, dtype=np.float64)
    moments = _overlaps(sizes, inside.shape[1])
    seen = _statistics(inside[None], moments)[0]
    games = _games(level)
    chunk = max(1, _NUMBERS // inside.size)
    less = more = np.zeros(3)
    for start in range(0, games, chunk):
        count = min(chunk, games - start)
        found = _statistics(_subsets(sizes.astype(int), inside.shape[1], count, rng), moments)
        less = less + (found <= seen).sum(0)
        more = more + (found >= seen).sum(0)
    low, high = (1 + less) / (games + 1), (1 + more) / (games + 1)
    two_sided = shares.COUNT_SIDES.price(2) * min(low[2], high[2])
    return {
        "few in common": float(low[0]),
        "many in common": float(high[1]),
        "counts": float(min(1.0, two_sided)),
    }


def _games(level: float) -> int:
    """Return how many sets of batches are drawn."""
    return min(max(math.ceil(_PER_LEVEL / level), _GAMES[0]), _GAMES[1])


def _subsets(
    sizes: NDArray[np.int_], examples: int, games: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Draw sets of uniform subsets of some sizes."""
    drawn = np.zeros((games, len(sizes), examples), dtype=np.float32)
    rows = np.arange(games)[:, None]
    for batch, size in enumerate(sizes.tolist()):
        keys = rng.random((games, examples), dtype=np.float32)
        first = np.argpartition(keys, min(size, examples - 1), axis=1)[:, :size]
        drawn[rows, batch, first] = 1.0
    return drawn


def _overlaps(sizes: FloatArray, examples: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of what batches some steps apart have in common.

    Two independent subsets of n and m of N have a hypergeometric number in common; pairs at one
    distance are uncorrelated.
    """
    lags = range(1, max(2, len(sizes) * 3 // 4))
    first = [sizes[:-lag] for lag in lags]
    second = [sizes[lag:] for lag in lags]
    mean = [float((n * m / examples).sum()) for n, m in zip(first, second, strict=True)]
    variance = [
        float((n * m / examples * (1 - n / examples) * (examples - m)).sum()) / max(1, examples - 1)
        for n, m in zip(first, second, strict=True)
    ]
    return np.array(mean), np.sqrt(np.maximum(variance, 1e-12))


def _statistics(inside: NDArray[np.float32], moments: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return the least and the largest standardized overlap of all lags, and squared counts."""
    mean, deviation = moments
    common = inside @ inside.transpose(0, 2, 1)
    sums = [np.trace(common, offset=lag, axis1=1, axis2=2) for lag in range(1, len(mean) + 1)]
    overlaps = (np.stack(sums, axis=1) - mean) / deviation
    squares = (inside.sum(1) ** 2).sum(1)
    return np.stack([overlaps.min(1), overlaps.max(1), squares], axis=1)


def _warnings(inside: NDArray[np.float32]) -> list[str]:
    """Say if batches have too little in common to tell anything."""
    total = float(inside.sum())
    expected = (total**2 - float((inside.sum(1) ** 2).sum())) / (2 * inside.shape[1])
    if expected >= _FEWEST:
        return []
    few = (
        f"independent samples of these sizes have about {expected:.1f} examples in common, of all "
        "pairs of batches together: too few to tell how they were drawn, so give more batches"
    )
    return [few]


def _out_of_reach(level: float) -> list[str]:
    """Say if the smallest p-value that draws can give does not refute."""
    games = _games(level)
    one_sided = shares.BATCHES.price(BATCH_TESTS) / (games + 1)
    if one_sided * shares.COUNT_SIDES.price(2) <= level:
        return []
    cannot = "no test but that of repeats can"
    if one_sided <= level:
        cannot = "the test of counts cannot"
    said = (
        f"with {games:,} drawn sets of batches {cannot} refute at {percent(1 - level)} confidence: "
        "set a lower confidence"
    )
    return [said]
