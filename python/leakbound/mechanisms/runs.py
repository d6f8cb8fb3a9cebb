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
from leakbound.mechanisms.outputs import features_of, is_same, output_of, repeated
from leakbound.mechanisms.worker import Failure, Output, pack, together, unpack, words_of

# Runs in a batch, or later their share of those before: each batch has a new classifier
_BATCH = 50
_GROWTH = 0.25
# How often a run that differs from its file is repeated: noise of its own would differ again
_AGAIN = 30
# Runs that are repeated once, to see whether seeds repeat them
_REPEATED = 3
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


class Here:
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
        for number, coin in requests:
            rng = RUN_SEEDS.rng(self._seed, number)
            data = self._inputs[coin]
            # Copies, as a mechanism may write to its input
            if isinstance(data, np.ndarray):
                data = data.copy()
            try:
                output = self._run(data, rng)
            except Exception as error:  # of the mechanism: this is its output
                output = Failure("raised", type(error).__qualname__, words_of(error))
            yield output


class Runs:
    """The outputs so far, and the file that keeps them."""

    def __init__(
        self,
        engine: Callable[[int], Engine],
        path: PathInput | None,
        made_of: dict[str, object],
    ) -> None:
        self._engine_of = engine
        self._made_of = made_of
        self._path = None
        if path is not None:
            self._path = Path(path)
        self._outputs: list[Output] = []
        self.ends: list[int] = []  # of batches whose coins were used
        self._stored: list[int] = []  # ends in the file, some still to be repeated
        self.repeatable = True

    @property
    def scored(self) -> int:
        """Runs whose coins were used."""
        if self.ends:
            return self.ends[-1]
        return 0

    def open(self, seed: int | None, most: int) -> None:
        """Read the file if there is one, and toss the coins."""
        stored = None
        if self._path is not None and self._path.exists():
            stored = self._read(self._path)
        self.seed = seed_of(stored["seed"] if stored and seed is None else seed)
        self._made_of["seed"] = self.seed
        self._most = most
        self.member = Purpose.MECHANISM_COINS.coins(self.seed, most)
        self._engine = self._engine_of(self.seed)
        if stored is None:
            self.save()
            return
        differing = [name for name, one in self._made_of.items() if one != stored.get(name)]
        if differing:
            raise OptionError(
                f"the runs in {self._path} are of another {' and another '.join(differing)}: pass "
                "the same, or choose another file"
            )
        if len(self._outputs) > most:
            raise OptionError(f"{self._path} has {len(self._outputs)} runs, more than {most=}")
        self._compare_with_file()

    def next_end(self) -> int:
        """Return where the next batch ends: as the file has it, or by the rule."""
        if len(self.ends) < len(self._stored):
            return self._stored[len(self.ends)]
        first = min(_BATCH, self._most // 2)
        return min(self._most, self.scored + max(first, int(_GROWTH * self.scored)))

    def until(self, stop: int, move: Callable[..., None]) -> list[Output]:
        """Run until there are so many outputs, and return that many."""
        move(completed=min(stop, len(self._outputs)))
        try:
            self._run_until(stop, move)
        finally:  # before they are scored, too
            self.save()
        if not self.ends:
            self._check_first_batch(self._outputs[:stop])
        return self._outputs[:stop]

    def warnings(self) -> list[str]:
        """Name runs that failed, and outputs that repeat where noise should make each different."""
        found = []
        failures = [one for one in self._outputs if isinstance(one, Failure)]
        if failures:
            first = failures[0]
            found.append(
                f"{len(failures)} of {len(self._outputs)} runs returned nothing, and count as "
                f"outputs: the first {first.kind} ({first.name}: {shown(first.message)})"
            )
        return [*found, *self._warnings_of_equal_outputs()]

    def _warnings_of_equal_outputs(self) -> list[str]:
        outputs = self._outputs
        if all(is_same(one, outputs[0]) for one in outputs):
            return [f"all {len(outputs)} outputs are equal: does the mechanism add noise?"]
        known = self.member[: len(outputs)]
        sides = [
            [one for one, on in zip(outputs, known, strict=True) if on == coin]
            for coin in (False, True)
        ]
        if all(_are_one(side) for side in sides):
            told = (
                "every run on the same input gave the same output: is the mechanism's seed fixed? "
                "Ignore this if other outputs are only rare"
            )
            return [told]
        again = sum(map(repeated, sides))
        if not again:
            return []
        told = (
            f"{again} of {len(outputs)} outputs repeat an earlier one of the same input, and are "
            "not whole numbers: if runs share seeds or ignore their generator, they are not "
            "independent. Ignore this if the mechanism rounds its outputs"
        )
        return [told]

    def _run_until(self, stop: int, move: Callable[..., None]) -> None:
        begin = len(self._outputs)
        requests = [(number, bool(self.member[number])) for number in range(begin, stop)]
        with closing(self._engine.outputs(requests)) as outputs:
            for number, returned in zip(range(begin, stop), outputs, strict=True):
                self._outputs.append(output_of(returned, self._where(number)))
                if not number:
                    self._check_first()
                move(advance=1)
        if not begin and self._engine.repeats:
            for number in range(min(_REPEATED, stop)):
                now = self._one(number)
                self.repeatable &= is_same(now, self._outputs[number])

    def _check_first(self) -> None:
        """Refuse outputs that are too large to keep or to learn from, before there are more."""
        if self._made_of["score"] == "learnt":
            features_of(self._outputs)
        size = len(pack(self._outputs[0]))
        if size * self._most > _MOST_BYTES:
            message = (
                f"an output takes {size:,} bytes, and {self._most:,} of them {size * self._most:,}:"
                f" return fewer numbers, or set {{most_runs}} to at most {_MOST_BYTES // size:,}"
            )
            raise OptionError(Message(message))

    def _check_first_batch(self, outputs: list[Output]) -> None:
        """Refuse a mechanism that never returns: that is not a leak."""
        failures = [one for one in outputs if isinstance(one, Failure)]
        if len(failures) == len(outputs):
            first = failures[0]
            raise InputError(
                f"none of the first {len(outputs)} runs returned an output, on either input. "
                f"{self._where(0)} {first.kind} {first.name}: {first.message}"
            )

    def _compare_with_file(self) -> None:
        """Repeat the first run on each input; noise that is from elsewhere cannot be compared."""
        coins = self.member[: len(self._outputs)]
        for number in np.unique(coins, return_index=True)[1].tolist():
            before = self._outputs[number]
            now = self._one(number)
            if is_same(now, before):
                continue
            self.repeatable = False
            if self._engine.repeats:  # a case, which the file knows by its digest
                continue
            if all(is_same(now, self._one(number)) for _ in range(_AGAIN)):
                raise OptionError(
                    f"run {number} returns {shown(now)} now, and {shown(before)} in {self._path}: "
                    "the mechanism or its inputs have changed, so choose another file"
                )

    def _one(self, number: int) -> Output:
        request = number, bool(self.member[number])
        (returned,) = self._engine.outputs([request])
        return output_of(returned, self._where(number))

    def _where(self, number: int) -> str:
        return f"run {number} on d{self.member[number]:d} (seed {self.seed})"

    def save(self) -> None:
        """Write the file, unless it has more batches than were scored."""
        if self._path is None or len(self.ends) < len(self._stored):
            return
        with replacing(self._path) as file:
            np.savez(
                file,
                allow_pickle=False,
                **_arrays_of(self._outputs),
                ends=np.array(self.ends, dtype=np.int64),
                made_of=np.array(json.dumps(self._made_of)),
            )

    def _read(self, path: Path) -> Named:
        wrong = ""
        made_of: Named = {}
        try:
            with open_archive(path) as content:
                self._outputs = list(_outputs_in(content))
                ends = content["ends"].astype(np.int64)
                made_of = dict(json.loads(str(content["made_of"])))
            self._stored = [int(one) for one in ends]
            if (np.diff(ends, prepend=0, append=len(self._outputs)) < 0).any():
                wrong = "batches have other numbers of runs"
        except (FormatError, ValueError, TypeError, OverflowError, RecursionError) as error:
            wrong = str(error)
        if wrong or not isinstance(made_of.get("seed"), int):
            raise FormatError(
                f"{path} does not hold runs of audit_mechanism ({wrong or 'it has no seed'}): "
                "choose another file"
            )
        return made_of


def _are_one(outputs: list[Output]) -> bool:
    """Return whether several runs gave one output."""
    return len(outputs) > 1 and all(is_same(one, outputs[0]) for one in outputs)


def _arrays_of(outputs: list[Output]) -> dict[str, AnyArray]:
    """Return what a file holds of outputs: one array, if all are numbers of one shape."""
    if not outputs:
        return {"outputs": np.array([])}
    table = together(outputs)
    if isinstance(table, np.ndarray) and len({one.dtype for one in outputs}) == 1:
        return {"outputs": table}
    packed = [pack(one) for one in outputs]
    sizes = np.array([len(one) for one in packed], dtype=np.int64)
    return {"packed": np.frombuffer(b"".join(packed), dtype=np.uint8), "sizes": sizes}


def _outputs_in(content: Archive) -> Iterator[Output]:
    """Yield the outputs in a file."""
    if "outputs" in content.names:
        for one in content["outputs"]:
            yield np.asarray(one)
        return
    packed = content["packed"].astype(np.uint8).tobytes()
    stops = np.cumsum(content["sizes"].astype(np.int64))
    if stops.size and stops[-1] != len(packed):
        raise FormatError("outputs have another size")
    start = 0
    for stop in stops.tolist():
        yield unpack(packed[start:stop])
        start = stop


def identity(data: Output) -> str:
    """Return a digest of the values of an input, or its type if they cannot be told.

    The pickle of a set of words is another in each process.
    """
    with suppress(Exception):  # of any object
        return _digest_of(data).hex()
    return type(data).__name__


def _digest_of(data: Output) -> bytes:
    """Return a digest of type and values, of sets and mappings in any order."""
    kind = f"{type(data).__module__}.{type(data).__qualname__}"
    parts: list[bytes]
    columns = columns_of(data)
    if data is None or isinstance(data, bool | int | float | complex | str | bytes):
        parts = [repr(data).encode("utf-8", "surrogatepass")]
    elif isinstance(data, set | frozenset):
        parts = sorted(map(_digest_of, data))
    elif isinstance(data, Mapping):
        parts = sorted(_digest_of(key) + _digest_of(value) for key, value in data.items())
    elif isinstance(data, list | tuple):
        parts = [*map(_digest_of, data)]
    elif columns:
        parts = [*map(_digest_of, (list(map(str, data.columns)), *columns))]
    elif hasattr(data, "__array__"):
        array = np.asarray(readable(data))
        held: object = array.tolist() if array.dtype.hasobject else digest(array)
        parts = [_digest_of([list(array.shape), held])]
    else:
        parts = [_digest_of(vars(data))]
    return hashlib.sha256(b"".join([kind.encode(), *parts])).digest()
