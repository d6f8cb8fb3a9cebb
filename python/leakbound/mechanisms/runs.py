"""The runs of an audit: coins, seeds, outputs, and the file that keeps them."""

import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

import numpy as np

from leakbound._base.checks import seed_of, shown
from leakbound._base.files import Archive, digest, open_archive, replacing
from leakbound._base.messages import Message
from leakbound._base.reading import columns_of, readable
from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, Named, PathInput
from leakbound.errors import FormatError, InputError, OptionError
from leakbound.mechanisms.outputs import (
    count_repeated_outputs,
    features_of,
    is_same_output,
    output_of_run,
)
from leakbound.mechanisms.worker import (
    Failure,
    Output,
    outputs_together,
    pack,
    unpack,
    words_of_exception,
)

# Runs in a batch, or later their share of those before: each batch has a new classifier
_FIRST_BATCH = 50
_BATCH_GROWTH = 0.25
# How often a run that differs from its file is repeated: noise of its own would differ again
_REPEATS_OF_CHANGED_RUN = 30
# Runs that are repeated once, to see whether seeds repeat them
_REPEATED_RUNS = 3
RUN_SEEDS = Purpose.MECHANISM_RUNS
"""Of a seed and the number of a run: the run's own stream, wherever it runs."""
# Bytes of all outputs at most
_MOST_BYTES = 2**32


class Engine(Protocol):
    """Whatever runs a mechanism on one of two inputs."""

    repeats: bool
    """Whether a new audit repeats its first runs, too."""

    def outputs(self, requests: Iterable[tuple[int, bool]]) -> Generator[Output]:
        """Yield the output of each run: of its number, and whether its input is `d1`."""


class FunctionEngine:
    """A function, in this process: each run has a generator of its own."""

    repeats = False

    def __init__(
        self, run: Callable[..., Output], inputs: tuple[object, object], seed: int
    ) -> None:
        self._run = run
        self._inputs = inputs
        self._seed = seed

    def outputs(self, requests: Iterable[tuple[int, bool]]) -> Generator[Output]:
        """Yield the output of each run."""
        for run_number, coin in requests:
            rng = RUN_SEEDS.rng(self._seed, run_number)
            input_data = self._inputs[coin]
            # Copies, as a mechanism may write to its input
            if isinstance(input_data, np.ndarray):
                input_data = input_data.copy()
            try:
                output_or_failure = self._run(input_data, rng)
            except Exception as error:  # of the mechanism: this is its output
                output_or_failure = Failure(
                    "raised", type(error).__qualname__, words_of_exception(error)
                )
            yield output_or_failure


class Runs:
    """The outputs so far, and the file that keeps them."""

    def __init__(
        self,
        engine_of_seed: Callable[[int], Engine],
        path: PathInput | None,
        arguments: dict[str, object],
    ) -> None:
        self._engine_of_seed = engine_of_seed
        self._arguments = arguments
        self._path = None
        if path is not None:
            self._path = Path(path)
        self._outputs: list[Output] = []
        self.batch_ends: list[int] = []  # of batches whose coins were used
        self._stored_batch_ends: list[int] = []  # in the file, some still to be repeated
        self.repeatable = True

    @property
    def scored(self) -> int:
        """Runs whose coins were used."""
        if self.batch_ends:
            return self.batch_ends[-1]
        return 0

    def open(self, seed: int | None, most_runs: int) -> None:
        """Read the file if there is one, and toss the coins."""
        stored_arguments = None
        if self._path is not None and self._path.exists():
            stored_arguments = self._read_stored_runs(self._path)
            if seed is None:
                seed = stored_arguments["seed"]
        self.seed = seed_of(seed)
        self._arguments["seed"] = self.seed
        self._most_runs = most_runs
        self.member = Purpose.MECHANISM_COINS.coins(self.seed, most_runs)
        self._engine = self._engine_of_seed(self.seed)
        if stored_arguments is None:
            self.save()
            return
        differing_arguments = [
            name
            for name, argument in self._arguments.items()
            if argument != stored_arguments.get(name)
        ]
        if differing_arguments:
            raise OptionError(
                f"the runs in {self._path} are of another "
                f"{' and another '.join(differing_arguments)}: pass the same, or choose another "
                "file"
            )
        if len(self._outputs) > most_runs:
            message = (
                f"{self._path} has {len(self._outputs)} runs, more than {{most_runs}} allows, "
                f"{most_runs}"
            )
            raise OptionError(Message(message))
        self._compare_with_stored_runs()

    def next_batch_end(self) -> int:
        """Return where the next batch ends: as the file has it, or by the rule."""
        scored_batches = len(self.batch_ends)
        if scored_batches < len(self._stored_batch_ends):
            return self._stored_batch_ends[scored_batches]
        first_batch_size = min(_FIRST_BATCH, self._most_runs // 2)
        batch_size = max(first_batch_size, int(_BATCH_GROWTH * self.scored))
        return min(self._most_runs, self.scored + batch_size)

    def outputs_until(self, batch_end: int, move_bar: Callable[..., None]) -> list[Output]:
        """Run until there are so many outputs, and return that many."""
        move_bar(completed=min(batch_end, len(self._outputs)))
        try:
            self._make_runs_until(batch_end, move_bar)
        finally:  # before they are scored, too
            self.save()
        if not self.batch_ends:
            self._check_that_runs_return(self._outputs[:batch_end])
        return self._outputs[:batch_end]

    def warnings(self) -> list[str]:
        """Name runs that failed, and outputs that repeat where noise should make each different."""
        run_warnings = []
        failed_runs = [output for output in self._outputs if isinstance(output, Failure)]
        if failed_runs:
            first_failure = failed_runs[0]
            run_warnings.append(
                f"{len(failed_runs)} of {len(self._outputs)} runs returned nothing, and count as "
                f"outputs: the first {first_failure.kind} ({first_failure.name}: "
                f"{shown(first_failure.message)})"
            )
        equal_outputs_warning = self._equal_outputs_warning()
        if equal_outputs_warning:
            run_warnings.append(equal_outputs_warning)
        return run_warnings

    def _equal_outputs_warning(self) -> str:
        """Return what to know of outputs that are equal, or nothing."""
        outputs_of_runs = self._outputs
        if _are_equal_outputs(outputs_of_runs):
            return f"all {len(outputs_of_runs)} outputs are equal: does the mechanism add noise?"
        outputs_by_coin: dict[bool, list[Output]] = {False: [], True: []}
        for output, coin in zip(
            outputs_of_runs, self.member[: len(outputs_of_runs)].tolist(), strict=True
        ):
            outputs_by_coin[coin].append(output)
        is_constant_for_coin = [
            len(outputs_of_coin) > 1 and _are_equal_outputs(outputs_of_coin)
            for outputs_of_coin in outputs_by_coin.values()
        ]
        if all(is_constant_for_coin):
            return (
                "every run on the same input gave the same output: is the mechanism's seed fixed? "
                "Ignore this if other outputs are only rare"
            )
        repeated_outputs = sum(map(count_repeated_outputs, outputs_by_coin.values()))
        if not repeated_outputs:
            return ""
        return (
            f"{repeated_outputs} of {len(outputs_of_runs)} outputs repeat an earlier one of the "
            "same input, and are not whole numbers: if runs share seeds or ignore their generator, "
            "they are not independent. Ignore this if the mechanism rounds its outputs"
        )

    def _make_runs_until(self, batch_end: int, move_bar: Callable[..., None]) -> None:
        """Make runs until there are so many outputs; a case repeats its first runs."""
        first_run = len(self._outputs)
        run_numbers = range(first_run, batch_end)
        requests = [self._request_of_run(run_number) for run_number in run_numbers]
        with closing(self._engine.outputs(requests)) as returned_values:
            for run_number, returned_value in zip(run_numbers, returned_values, strict=True):
                self._outputs.append(output_of_run(returned_value, self._name_of_run(run_number)))
                if run_number == 0:
                    self._check_size_of_outputs()
                move_bar(advance=1)
        if first_run == 0 and self._engine.repeats:
            for run_number in range(min(_REPEATED_RUNS, batch_end)):
                repeated_output = self._repeated_output(run_number)
                self.repeatable &= is_same_output(repeated_output, self._outputs[run_number])

    def _check_size_of_outputs(self) -> None:
        """Refuse outputs that are too large to keep or to learn from, before there are more."""
        if self._arguments["score"] == "learnt":
            features_of(self._outputs)
        bytes_per_output = len(pack(self._outputs[0]))
        bytes_of_all_outputs = bytes_per_output * self._most_runs
        if bytes_of_all_outputs > _MOST_BYTES:
            message = (
                f"an output takes {bytes_per_output:,} bytes, and {self._most_runs:,} of them "
                f"{bytes_of_all_outputs:,}: return fewer numbers, or set {{most_runs}} to at most "
                f"{_MOST_BYTES // bytes_per_output:,}"
            )
            raise OptionError(Message(message))

    def _check_that_runs_return(self, first_outputs: list[Output]) -> None:
        """Refuse a mechanism that never returns: that is not a leak."""
        if not all(isinstance(output, Failure) for output in first_outputs):
            return
        first_failure = first_outputs[0]
        raise InputError(
            f"none of the first {len(first_outputs)} runs returned an output, on either input. "
            f"{self._name_of_run(0)} {first_failure.kind} {first_failure.name}: "
            f"{first_failure.message}"
        )

    def _compare_with_stored_runs(self) -> None:
        """Repeat the first run on each input; noise that is from elsewhere cannot be compared."""
        coins_of_stored_runs = self.member[: len(self._outputs)]
        _, first_run_of_each_coin = np.unique(coins_of_stored_runs, return_index=True)
        for run_number in first_run_of_each_coin.tolist():
            stored_output = self._outputs[run_number]
            repeated_output = self._repeated_output(run_number)
            if is_same_output(repeated_output, stored_output):
                continue
            self.repeatable = False
            if self._engine.repeats:  # a case, which the file knows by its digest
                continue
            if self._repeats_its_output(run_number, repeated_output):
                raise OptionError(
                    f"run {run_number} returns {shown(repeated_output)} now, and "
                    f"{shown(stored_output)} in {self._path}: the mechanism or its inputs have "
                    "changed, so choose another file"
                )

    def _repeats_its_output(self, run_number: int, first_repeat: Output) -> bool:
        """Return whether a run gives the same output each time: its noise is that of its seed."""
        return all(
            is_same_output(first_repeat, self._repeated_output(run_number))
            for _ in range(_REPEATS_OF_CHANGED_RUN)
        )

    def _repeated_output(self, run_number: int) -> Output:
        """Return the output of one run, made now."""
        (returned_value,) = self._engine.outputs([self._request_of_run(run_number)])
        return output_of_run(returned_value, self._name_of_run(run_number))

    def _request_of_run(self, run_number: int) -> tuple[int, bool]:
        """Return what an engine needs: the number of a run, and whether its input is `d1`."""
        return run_number, bool(self.member[run_number])

    def _name_of_run(self, run_number: int) -> str:
        """Return how messages name a run."""
        return f"run {run_number} on d{self.member[run_number]:d} (seed {self.seed})"

    def save(self) -> None:
        """Write the file, unless it has more batches than were scored."""
        if self._path is None:
            return
        if len(self.batch_ends) < len(self._stored_batch_ends):
            return
        with replacing(self._path) as file:
            np.savez(
                file,
                allow_pickle=False,
                **_arrays_of_outputs(self._outputs),
                ends=np.array(self.batch_ends, dtype=np.int64),
                made_of=np.array(json.dumps(self._arguments)),
            )

    def _read_stored_runs(self, path: Path) -> Named:
        """Read outputs and ends of batches from a file, and return the arguments it was made of."""
        reason_for_refusal = ""
        stored_arguments: Named = {}
        try:
            with open_archive(path) as archive:
                self._outputs = list(_outputs_in_archive(archive))
                batch_ends = archive["ends"].astype(np.int64)
                stored_arguments = dict(json.loads(str(archive["made_of"])))
            self._stored_batch_ends = [int(batch_end) for batch_end in batch_ends]
            batch_sizes = np.diff(batch_ends, prepend=0, append=len(self._outputs))
            if (batch_sizes < 0).any():
                reason_for_refusal = "batches have other numbers of runs"
        except (FormatError, ValueError, TypeError, OverflowError, RecursionError) as error:
            reason_for_refusal = str(error)
        if not reason_for_refusal and not isinstance(stored_arguments.get("seed"), int):
            reason_for_refusal = "it has no seed"
        if reason_for_refusal:
            raise FormatError(
                f"{path} does not hold runs of audit_mechanism ({reason_for_refusal}): choose "
                "another file"
            )
        return stored_arguments


def _are_equal_outputs(outputs: list[Output]) -> bool:
    """Return whether runs all gave one output."""
    return all(is_same_output(output_of_run, outputs[0]) for output_of_run in outputs)


def _arrays_of_outputs(outputs: list[Output]) -> dict[str, AnyArray]:
    """Return what a file holds of outputs: one array, if all are numbers of one shape."""
    if not outputs:
        return {"outputs": np.array([])}
    array_of_outputs = outputs_together(outputs)
    if isinstance(array_of_outputs, np.ndarray) and len({output.dtype for output in outputs}) == 1:
        return {"outputs": array_of_outputs}
    packed_outputs = [pack(output) for output in outputs]
    packed_sizes = [len(packed_output) for packed_output in packed_outputs]
    return {
        "packed": np.frombuffer(b"".join(packed_outputs), dtype=np.uint8),
        "sizes": np.array(packed_sizes, dtype=np.int64),
    }


def _outputs_in_archive(archive: Archive) -> Iterator[Output]:
    """Yield the outputs in a file."""
    if "outputs" in archive.names:
        for output_array in archive["outputs"]:
            yield np.asarray(output_array)
        return
    bytes_of_outputs = archive["packed"].astype(np.uint8).tobytes()
    output_ends = np.cumsum(archive["sizes"].astype(np.int64))
    if output_ends.size and output_ends[-1] != len(bytes_of_outputs):
        raise FormatError("outputs have another size")
    output_start = 0
    for output_end in output_ends.tolist():
        yield unpack(bytes_of_outputs[output_start:output_end])
        output_start = output_end


def identity(input_data: Output) -> str:
    """Return a digest of the values of an input, or its type if they cannot be told.

    The pickle of a set of words is another in each process.
    """
    with suppress(Exception):  # of any object
        return _digest_of_input(input_data).hex()
    return type(input_data).__name__


def _digest_of_input(input_data: Output) -> bytes:
    """Return a digest of type and values, of sets and mappings in any order."""
    qualified_type_name = f"{type(input_data).__module__}.{type(input_data).__qualname__}"
    part_digests: list[bytes]
    frame_columns = columns_of(input_data)
    if input_data is None or isinstance(input_data, bool | int | float | complex | str | bytes):
        part_digests = [repr(input_data).encode("utf-8", "surrogatepass")]
    elif isinstance(input_data, set | frozenset):
        part_digests = sorted(_digest_of_input(input_element) for input_element in input_data)
    elif isinstance(input_data, Mapping):
        part_digests = sorted(
            _digest_of_input(mapping_key) + _digest_of_input(mapping_value)
            for mapping_key, mapping_value in input_data.items()
        )
    elif isinstance(input_data, list | tuple):
        part_digests = [_digest_of_input(input_element) for input_element in input_data]
    elif frame_columns:
        column_names = [str(name) for name in input_data.columns]
        part_digests = [
            _digest_of_input(frame_part) for frame_part in (column_names, *frame_columns)
        ]
    elif hasattr(input_data, "__array__"):
        part_digests = [_digest_of_input_array(np.asarray(readable(input_data)))]
    else:
        part_digests = [_digest_of_input(vars(input_data))]
    return hashlib.sha256(b"".join([qualified_type_name.encode(), *part_digests])).digest()


def _digest_of_input_array(input_array: AnyArray) -> bytes:
    """Return a digest of the shape and the values of an array."""
    array_shape = list(input_array.shape)
    if input_array.dtype.hasobject:
        return _digest_of_input([array_shape, input_array.tolist()])
    return _digest_of_input([array_shape, digest(input_array)])
