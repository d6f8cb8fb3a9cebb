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
_MOST_MEMBERSHIPS = 200_000
# Sets of batches that are drawn, at least and at most, and as a multiple of one over the level
_DRAWN_SETS_LIMITS = (399, 9_999)
_DRAWN_SETS_PER_LEVEL = 20
# Numbers of drawn sets in memory
_MOST_NUMBERS_IN_MEMORY = 4_000_000
# Pairs of batches with an example in common, of which fewer tell nothing
_FEWEST_COMMON_EXAMPLES = 30.0


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
    example_count = integer(examples, name="examples", least=1)
    choice(sampling, name="sampling", allowed=Batches)
    epoch_length = _checked_batches_per_epoch(sampling, batches_per_epoch)
    chosen_seed = seed_of(seed)
    recorded_batches = _checked_batches(batches, example_count)
    if epoch_length is not None:
        test_results = _test_epochs(recorded_batches, epoch_length, example_count)
    else:
        test_results = _test_uniform_subsets(
            recorded_batches, example_count, level, Purpose.DP_SGD_INDICES.rng(chosen_seed)
        )
    batch_sizes = np.array([batch.size for batch in recorded_batches])
    if sampling == "fixed_size":
        test_results.p_values["sizes"] = float(bool((batch_sizes == batch_sizes[0]).all()))
    options: dict[str, Any] = {
        "examples": example_count,
        "confidence": float(confidence),
        "seed": chosen_seed,
    }
    if sampling != "poisson":
        options["sampling"] = sampling
    if epoch_length is not None:
        options["batches_per_epoch"] = epoch_length
    return BatchesAudit(
        batches=test_results.batches,
        examples=example_count,
        examples_tested=test_results.examples,
        mean=float(batch_sizes.mean()),
        p_values=test_results.p_values,
        confidence=float(confidence),
        options=options,
        warnings=test_results.warnings,
        provenance=Provenance.of(
            chosen_seed, sizes=batch_sizes, batches=np.concatenate(recorded_batches)
        ),
        sampling=sampling,
    )


def _checked_batches_per_epoch(sampling: Batches, batches_per_epoch: int | None) -> int | None:
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


class _BatchTests(NamedTuple):
    """What the tests of some batches found."""

    batches: int
    examples: int
    p_values: dict[str, float]
    warnings: tuple[str, ...]


def _test_epochs(batches: list[IntArray], epoch_length: int, examples: int) -> _BatchTests:
    """Look up whether an example is in an epoch twice, which needs no chance."""
    has_repeated_example = False
    for start in range(0, len(batches), epoch_length):
        indices_of_epoch = np.concatenate(batches[start : start + epoch_length])
        if np.unique(indices_of_epoch).size < indices_of_epoch.size:
            has_repeated_example = True
    warnings: tuple[str, ...] = ()
    if len(batches) < epoch_length:
        warning = (
            f"{len(batches):,} batches are recorded, and an epoch has {epoch_length:,}: record all "
            "batches of an epoch at least"
        )
        warnings = (warning,)
    return _BatchTests(
        len(batches), examples, {"epochs": float(not has_repeated_example)}, warnings
    )


def _test_uniform_subsets(
    batches: list[IntArray], examples: int, level: float, rng: np.random.Generator
) -> _BatchTests:
    """Compare batches with independent uniform subsets of the same sizes."""
    tested_batches = batches[:_MOST_BATCHES]
    tested_examples = min(examples, max(1, _MOST_MEMBERSHIPS // len(tested_batches)))
    tested_indices = np.arange(examples)
    if tested_examples < examples:
        tested_indices = np.sort(rng.choice(examples, size=tested_examples, replace=False))
    is_in_batch = np.zeros((len(tested_batches), tested_examples), dtype=np.float32)
    for row, batch in zip(is_in_batch, tested_batches, strict=True):
        row[np.isin(tested_indices, batch, assume_unique=False)] = 1.0
    has_repeated_example = any(np.unique(batch).size < batch.size for batch in batches)
    p_values = {
        "repeats": float(not has_repeated_example),
        **_subset_p_values(is_in_batch, level, rng),
    }
    return _BatchTests(
        len(tested_batches),
        tested_examples,
        p_values,
        (*_warnings_of_few_common(is_in_batch), *_warnings_of_weak_draws(level)),
    )


def _checked_batches(batches: Iterable[ArrayInput], examples: int) -> list[IntArray]:
    """Return batches as vectors of indices within the data."""
    if not is_list(batches):
        raise InputTypeError(f"batches must be a list of lists of indices, got {shown(batches)}")
    checked = [_checked_indices(batch, number, examples) for number, batch in enumerate(batches)]
    if not checked:
        raise InputError("batches is empty: record the indices of each step's batch")
    return checked


def _checked_indices(batch: ArrayInput, batch_number: int, examples: int) -> IntArray:
    """Return one batch as a vector of indices within the data."""
    name = f"batch {batch_number}"
    indices = array_of(batch, name=name)
    if not indices.size:
        return np.zeros(0, dtype=np.int64)
    if indices.ndim != 1 or indices.dtype.kind not in "iuf" or (indices != np.floor(indices)).any():
        raise InputTypeError(f"{name} must be a list of indices, got {shown(batch)}")
    is_outside = (indices < 0) | (indices >= examples)
    if is_outside.any():
        raise InputError(
            f"{name} has the index {indices[is_outside][0]:g}, outside 0 to {examples - 1}: pass "
            "examples as the number of all examples, and indices from 0"
        )
    return indices.astype(np.int64)


def _subset_p_values(
    is_in_batch: NDArray[np.float32], level: float, rng: np.random.Generator
) -> dict[str, float]:
    """Return p-values of overlaps and counts, by drawing uniform subsets of the same sizes."""
    batch_sizes = is_in_batch.sum(1, dtype=np.float64)
    moments = _overlap_moments(batch_sizes, is_in_batch.shape[1])
    observed_statistics = _batch_statistics(is_in_batch[None], moments)[0]
    drawn_sets = _drawn_sets(level)
    sets_at_once = max(1, _MOST_NUMBERS_IN_MEMORY // is_in_batch.size)
    at_most_observed = np.zeros(3)
    at_least_observed = np.zeros(3)
    for start in range(0, drawn_sets, sets_at_once):
        sets_in_chunk = min(sets_at_once, drawn_sets - start)
        subsets = _draw_uniform_subsets(
            batch_sizes.astype(int), is_in_batch.shape[1], sets_in_chunk, rng
        )
        drawn_statistics = _batch_statistics(subsets, moments)
        at_most_observed += (drawn_statistics <= observed_statistics).sum(axis=0)
        at_least_observed += (drawn_statistics >= observed_statistics).sum(axis=0)
    low_p_values = (1 + at_most_observed) / (drawn_sets + 1)
    high_p_values = (1 + at_least_observed) / (drawn_sets + 1)
    p_value_of_counts = shares.COUNT_SIDES.price(2) * min(low_p_values[2], high_p_values[2])
    return {
        "few in common": float(low_p_values[0]),
        "many in common": float(high_p_values[1]),
        "counts": float(min(1.0, p_value_of_counts)),
    }


def _drawn_sets(level: float) -> int:
    """Return how many sets of batches are drawn."""
    fewest_sets, most_sets = _DRAWN_SETS_LIMITS
    wanted_sets = math.ceil(_DRAWN_SETS_PER_LEVEL / level)
    return min(max(wanted_sets, fewest_sets), most_sets)


def _draw_uniform_subsets(
    batch_sizes: NDArray[np.int_], examples: int, number_of_sets: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Draw sets of uniform subsets of some sizes."""
    is_in_batch = np.zeros((number_of_sets, len(batch_sizes), examples), dtype=np.float32)
    all_sets = np.arange(number_of_sets)[:, None]
    for batch_number, size in enumerate(batch_sizes.tolist()):
        random_keys = rng.random((number_of_sets, examples), dtype=np.float32)
        smallest_keys = np.argpartition(random_keys, min(size, examples - 1), axis=1)[:, :size]
        is_in_batch[all_sets, batch_number, smallest_keys] = 1.0
    return is_in_batch


def _overlap_moments(batch_sizes: FloatArray, examples: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of what batches some steps apart have in common.

    Two independent subsets of n and m of N have a hypergeometric number in common; pairs at one
    distance are uncorrelated.
    """
    means = []
    variances = []
    for lag in range(1, max(2, len(batch_sizes) * 3 // 4)):
        n = batch_sizes[:-lag]
        m = batch_sizes[lag:]
        mean_overlaps = n * m / examples
        variance_numerators = mean_overlaps * (1 - n / examples) * (examples - m)
        means.append(float(mean_overlaps.sum()))
        variances.append(float(variance_numerators.sum()) / max(1, examples - 1))
    return np.array(means), np.sqrt(np.maximum(variances, 1e-12))


def _batch_statistics(
    is_in_batch: NDArray[np.float32], moments: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Return the least and the largest standardized overlap of all lags, and squared counts."""
    means, deviations = moments
    common_examples = is_in_batch @ is_in_batch.transpose(0, 2, 1)
    lags = range(1, len(means) + 1)
    overlaps_at_lags = [np.trace(common_examples, offset=lag, axis1=1, axis2=2) for lag in lags]
    standardized_overlaps = (np.stack(overlaps_at_lags, axis=1) - means) / deviations
    batches_with_example = is_in_batch.sum(axis=1)
    squared_counts = (batches_with_example**2).sum(axis=1)
    least_overlap = standardized_overlaps.min(axis=1)
    largest_overlap = standardized_overlaps.max(axis=1)
    return np.stack([least_overlap, largest_overlap, squared_counts], axis=1)


def _warnings_of_few_common(is_in_batch: NDArray[np.float32]) -> list[str]:
    """Say if batches have too little in common to tell anything."""
    batch_sizes = is_in_batch.sum(axis=1)
    memberships = float(is_in_batch.sum())
    products_of_pairs = (memberships**2 - float((batch_sizes**2).sum())) / 2
    expected_common = products_of_pairs / is_in_batch.shape[1]
    if expected_common >= _FEWEST_COMMON_EXAMPLES:
        return []
    warning = (
        f"independent samples of these sizes have about {expected_common:.1f} examples in common, "
        "of all pairs of batches together: too few to tell how they were drawn, so give more "
        "batches"
    )
    return [warning]


def _warnings_of_weak_draws(level: float) -> list[str]:
    """Say if the smallest p-value that draws can give does not refute."""
    drawn_sets = _drawn_sets(level)
    smallest_p_value = shares.BATCHES.price(BATCH_TESTS) / (drawn_sets + 1)
    if smallest_p_value * shares.COUNT_SIDES.price(2) <= level:
        return []
    weak_tests = "no test but that of repeats can"
    if smallest_p_value <= level:
        weak_tests = "the test of counts cannot"
    warning = (
        f"with {drawn_sets:,} drawn sets of batches {weak_tests} refute at {percent(1 - level)} "
        "confidence: set a lower confidence"
    )
    return [warning]
