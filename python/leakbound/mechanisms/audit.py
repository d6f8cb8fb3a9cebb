"""Run a mechanism on one of two inputs, again and again, until a claim about it is refuted."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, instance, integer, real, seed_of, shown
from leakbound._base.console import bar
from leakbound._base.files import digest, file_alone, open_archive, replacing
from leakbound._base.imports import needs
from leakbound._base.odds import logit
from leakbound._base.reading import array_of, columns_of, readable, refuse_unread
from leakbound._base.streams import SCHEME, Purpose
from leakbound._base.types import AnyArray, BoolArray, FloatArray, IntArray, PathInput
from leakbound.audits import Stream
from leakbound.audits.trials import INDEPENDENT, NEIGHBOURS
from leakbound.claims import CLAIMS, Claim
from leakbound.claims.families import curve_at
from leakbound.errors import FormatError, InputError, InputTypeError, OptionError
from leakbound.results import Assumption, AuditResult
from leakbound.results.wording import TRIALS

# Runs in a batch, or later their share of those before: each batch has a new classifier
_BATCH = 50
_GROWTH = 0.25
# Runs that a classifier learns from at most, its trees, and runs in a leaf at least
_LESSONS = 10_000
_TREES = 60
_LEAF = 3
# Knots of a feature's part of the log-odds, and the inverse penalty on its coefficients
_KNOTS = 5
_PENALTY = 0.3
# Runs on each input that every leaf is given beside its own: they say nothing, and outweigh the
# few runs of a rare output, which would come first otherwise
_UNSEEN = 20


def audit_mechanism(
    run: Callable[[Any, np.random.Generator], Any],
    d0: Any,
    d1: Any,
    claim: Claim,
    *,
    parameter: float,
    score: Callable[[Any], Any] | None = None,
    confidence: float = 0.95,
    most_runs: int = 5000,
    seed: int | None = None,
    path: PathInput | None = None,
) -> AuditResult:
    """Run a mechanism on two neighbouring inputs until a claim about it is refuted.

    A fair coin decides which input a run gets, and outputs are scored before the coins of their
    batch are used. The bound holds whenever the audit stops.

    Parameters
    ----------
    run : callable
        The mechanism: takes an input and a `numpy.random.Generator`, and returns a real number or
        an array of such, of the same shape and kind every time, with no entry masked or NaN.
    d0, d1 : object
        Two inputs that the claim regards as neighbours. Each run gets a copy if it is an array;
        others must not be changed by a run.
    claim : PureDP, ApproxDP, GaussianDP, LaplaceDP, SubsampledGaussianDP or TradeOffFamily
        What the mechanism is said to satisfy.
    parameter : float
        The claimed value of the claim's parameter, such as ε or μ. The audit stops once its bound
        is larger.
    score : callable, optional
        Takes an array of outputs, one for each run, and returns a number for each output, higher
        where `d1` is likelier: best the log-likelihood ratio. By default a classifier learns
        it from all earlier batches, which needs the extra ``ml``; the first batch only trains it.
    confidence : float
        Probability that the bound is never above the truth, in (0, 1).
    most_runs : int
        Runs at most, between 10 and 10^8.
    seed : int, optional
        Seed of coins and of the runs' generators; random by default, or that of the file.
    path : str or os.PathLike, optional
        An ``.npz`` file that keeps outputs. It is written after each batch, and when a run fails or
        is interrupted; a call with the same arguments goes on from there. A second process that
        would write it is refused. If runs take their noise
        from `rng` only, the first run on each input is repeated, to see that nothing has changed.

    Returns
    -------
    AuditResult
        The result of `Stream`, with the promise as its `checked`: "refuted", "not refuted", or
        "inconclusive" if so few runs could not refute it. It counts all runs but for those that
        only trained the classifier; its options have the number of all `runs` and the `seed`.
        Warnings name equal outputs.

    Examples
    --------
    >>> import leakbound as lb
    >>> from leakbound.mechanisms import LaplaceNoise, audit_mechanism
    >>> wrong = LaplaceNoise(epsilon=1.0, fault="half_noise")
    >>> result = audit_mechanism(wrong.run, 0, 1, lb.PureDP(), parameter=1.0, seed=0)
    >>> result.summary().answer
    'The claimed ε = 1 is refuted (95 % confidence).'
    """
    instance(claim, name="claim", types=CLAIMS)
    _check_function("run", run)
    scored = "learnt"
    if score is not None:
        _check_function("score", score)
        scored = "given"
    theta = real(parameter, name="parameter", least=0, below=math.inf)
    stream = Stream(claim=claim, confidence=confidence)
    curve = curve_at(claim, theta=theta, sides="both").delta(np.linspace(0, 5, 11))
    made_of = {
        "claim": [claim.name, digest(curve)],
        "parameter": theta,
        "confidence": float(confidence),
        "pair of inputs": [_identity(d0), _identity(d1)],
        "score": scored,
        "random streams": SCHEME,
    }
    most = integer(most_runs, name="most_runs", least=10, most=MOST_EXAMPLES)
    runs = _Runs(run=run, inputs=(d0, d1), path=path, made_of=made_of)
    with file_alone(path), bar("running the mechanism", total=most) as move:
        runs.open(seed, most)
        while stream.bound <= theta and runs.scored < most:
            start = runs.scored
            stop = runs.next_end(most)
            outputs = runs.until(stop, move)
            if score is not None:
                stream.update(score(outputs[start:]), runs.member[start:stop])
            elif start:
                scores = _learnt(outputs, member=runs.member[:start], seed=runs.seed)
                stream.update(scores, runs.member[start:stop])
            # Kept at once: who goes on later must not divide runs otherwise whose coins were used
            runs.ends.append(stop)
            runs.save()
    result = stream.result()
    made = {"runs": runs.scored, "seed": runs.seed, "design": "trials"}
    # Of pure DP, the first two are about coins and examples of one training run
    assumed = (Assumption(*INDEPENDENT, "declared"), NEIGHBOURS, *result.assumptions[2:])
    found = replace(
        result,
        options=result.options | made,
        wording=TRIALS,
        assumptions=assumed,
        warnings=(*result.warnings, *runs.warnings()),
    )
    return found.with_check(parameter=theta)


def _check_function(name: str, function: object) -> None:
    if not callable(function):
        raise InputTypeError(f"{name} must be a function, got {shown(function)}")


class _Runs:
    """The outputs so far, and the file that keeps them."""

    def __init__(
        self,
        run: Callable[..., Any],
        inputs: tuple[Any, Any],
        path: PathInput | None,
        made_of: dict[str, Any],
    ) -> None:
        self._run = run
        self._inputs = inputs
        self._made_of = made_of
        self._path = None
        if path is not None:
            self._path = Path(path)
        self._outputs: list[Any] = []
        self.ends: list[int] = []  # of batches whose coins were used
        self._stored: list[int] = []  # ends in the file, some still to be repeated

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
        self.member = Purpose.MECHANISM_COINS.coins(self.seed, most)
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
        # The first run on each input; noise that is from elsewhere cannot be compared
        for number in np.unique(self.member[: len(self._outputs)], return_index=True)[1].tolist():
            now = self._one(number)
            again = self._one(number)
            before = self._outputs[number]
            if np.array_equal(now, again) and not np.array_equal(now, before):
                raise OptionError(
                    f"run {number} returns {shown(now)} now, and {shown(before)} in {self._path}: "
                    "the mechanism or its inputs have changed, so choose another file"
                )

    def next_end(self, most: int) -> int:
        """Return where the next batch ends: as the file has it, or by the rule."""
        if len(self.ends) < len(self._stored):
            return self._stored[len(self.ends)]
        return min(most, self.scored + max(min(_BATCH, most // 2), int(_GROWTH * self.scored)))

    def until(self, stop: int, move: Callable[..., None]) -> Any:
        """Run until there are so many outputs, and return that many."""
        move(completed=min(stop, len(self._outputs)))
        try:
            while len(self._outputs) < stop:
                self._outputs.append(self._one(len(self._outputs)))
                move(advance=1)
        finally:  # before they are scored, too
            self.save()
        return np.array(self._outputs[:stop])

    def warnings(self) -> list[str]:
        """Name outputs that repeat where noise should make each different."""
        rows = np.array(self._outputs).reshape(len(self._outputs), -1)
        if (rows == rows[0]).all():
            return [f"all {len(rows)} outputs are equal: does the mechanism add noise?"]
        drawn = (rows != np.round(rows)).any(axis=1)
        parts = [rows[drawn & (self.member[: len(rows)] == coin)] for coin in (False, True)]
        repeated = sum(len(part) - len(np.unique(part, axis=0)) for part in parts)
        if not repeated:
            return []
        told = (
            f"{repeated} of {len(rows)} outputs repeat an earlier one of the same input, and are "
            "not whole numbers: if runs share seeds or ignore their generator, they are not "
            "independent. Ignore this if the mechanism rounds its outputs"
        )
        return [told]

    def _one(self, number: int) -> Any:
        coin = bool(self.member[number])
        where = f"run {number} on d{coin:d} (seed {self.seed})"
        rng = Purpose.MECHANISM_RUNS.rng(self.seed, number)
        data = self._inputs[coin]
        try:
            # Copies, as a mechanism may write to its input, and again to its output
            data_of_run = data
            if isinstance(data, np.ndarray):
                data_of_run = data.copy()
            returned = self._run(data_of_run, rng)
        except Exception as error:
            raise InputError(
                f"{where} raised {type(error).__name__}: {error}; the same seed repeats it"
            ) from error
        output = _numbers_of(returned, where)
        first = output
        if self._outputs:
            first = self._outputs[0]
        if (output.shape, output.dtype.kind) != (first.shape, first.dtype.kind):
            raise InputError(
                f"{where} returned {output.dtype} of shape {output.shape}, and run 0 "
                f"{first.dtype} of shape {first.shape}: return the same every time, padded to the "
                "longest, and either integers below 2^63 or floats"
            )
        if np.isnan(output).any():
            raise InputError(f"{where} returned NaN: return a number that stands for no output")
        return output

    def save(self) -> None:
        """Write the file, unless it has more batches than were scored."""
        if self._path is None or len(self.ends) < len(self._stored):
            return
        with replacing(self._path) as file:
            np.savez(
                file,
                allow_pickle=False,
                outputs=np.array(self._outputs),
                ends=np.array(self.ends, dtype=np.int64),
                made_of=np.array(json.dumps(self._made_of)),
            )

    def _read(self, path: Path) -> dict[str, Any]:
        wrong = ""
        made_of = dict[str, Any]()
        try:
            with open_archive(path) as content:
                self._outputs = list(content["outputs"])
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


def _numbers_of(returned: Any, where: str) -> AnyArray:
    """Return a copy of what a run returned, as an array of numbers; raise if it holds others.

    No number is changed: what a mask hides, or float64 would round, is refused.
    """
    output = np.zeros(0)
    wrong = ""
    if isinstance(returned, bytes | bytearray | memoryview):
        wrong = "bytes are not read as numbers"
    else:
        try:
            output, wrong = _read(returned)
        except InputTypeError as error:
            wrong = str(error)
    if wrong:
        raise InputTypeError(
            f"{where} returned {shown(returned)}: return a number or an array of numbers. {wrong}"
        )
    return output


def _read(returned: Any) -> tuple[AnyArray, str]:
    """Return an array of what a run returned, and what is wrong with it."""
    refuse_unread(returned, name="It")
    parts = list(_parts(returned))
    if any(np.ma.is_masked(part) for part in parts):
        return np.zeros(0), "It has masked entries: let a number stand for no output"
    # A copy, as mechanisms may write to their output again
    output = array_of(returned, name="It", exact=True).copy()
    if not output.size:
        return output, "It is empty: let a number stand for no output"
    if output.dtype.kind not in "biuf":
        return output, (
            f"It is read as {output.dtype}: convert decimals and fractions by float(), words to "
            "codes, and integers beyond 64 bits, or beyond 2^53 beside floats, to several numbers"
        )
    if output.dtype.kind == "f" and any(map(_is_rounded, parts)):
        return output, "Floats would merge its integers beyond 2^53: write each as several numbers"
    return output, ""


def _parts(returned: Any, depth: int = 64) -> Iterator[Any]:
    """Yield what is in lists, of as many levels as NumPy reads, and in the columns of frames."""
    columns = columns_of(returned)
    if columns:
        yield from columns
    elif depth > 0 and isinstance(returned, list | tuple):
        for part in returned:
            yield from _parts(part, depth - 1)
    else:
        yield returned


def _is_rounded(part: Any) -> bool:
    """Whether float64 rounds an integer of a part of an output."""
    whole = part
    if not isinstance(part, int):
        whole = np.asarray(readable(part))
    if isinstance(whole, np.ndarray) and whole.dtype.kind not in "iu":
        return False
    return any(int(float(one)) != one for one in np.ravel(whole).tolist())


def _identity(data: Any) -> str:
    """Return a digest of the values of an input, or its type if they cannot be told.

    The pickle of a set of words is another in each process.
    """
    with suppress(Exception):  # of any object
        return _digest_of(data).hex()
    return type(data).__name__


def _digest_of(data: Any) -> bytes:
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
        held: Any = array.tolist() if array.dtype.hasobject else digest(array)
        parts = [_digest_of([list(array.shape), held])]
    else:
        parts = [_digest_of(vars(data))]
    return hashlib.sha256(b"".join([kind.encode(), *parts])).digest()


def _learnt(outputs: Any, member: BoolArray, seed: int) -> FloatArray:
    """Return log-odds of `d1` for the outputs after those whose coins are known.

    They are the sum of what two classifiers say: one adds up a function of each feature, the other
    finds what features say together. Of outputs that few runs had, both say little.
    """
    with needs("ml", "audit_mechanism without score"):
        from sklearn.ensemble import ExtraTreesClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import SplineTransformer

    known = member.size
    table = outputs.reshape(len(outputs), -1)
    lessons = slice(max(0, known - _LESSONS), known)
    coins = member[lessons]
    if coins.all() or not coins.any():
        return np.zeros(len(table) - known)
    # Ranks among earlier outputs, ties in the middle: outputs may be infinite, or of any scale
    ranks = np.empty(table.shape)
    for column, values in enumerate(table.T):
        known_values = np.sort(values[lessons])
        places = [np.searchsorted(known_values, values, side) for side in ("left", "right")]
        ranks[:, column] = np.mean(places, axis=0) / known_values.size
    trees = ExtraTreesClassifier(
        n_estimators=_TREES,
        min_samples_leaf=_LEAF,
        random_state=Purpose.MECHANISM_TREES.derived(seed, known, bits=32),
    )
    spline = SplineTransformer(n_knots=_KNOTS, degree=1)
    added = make_pipeline(spline, LogisticRegression(C=_PENALTY))
    earlier = ranks[lessons]
    asked = ranks[known:]
    added.fit(earlier, coins)
    trees.fit(earlier, coins)
    said = _likely(trees.apply(earlier), member=coins, asked=trees.apply(asked))
    return np.asarray(added.decision_function(asked) + logit(said))


def _likely(learnt: IntArray, member: BoolArray, asked: IntArray) -> FloatArray:
    """Return the mean over trees of the share of `d1` in leaves, shrunk towards one half.

    `learnt` and `asked` have the leaves of runs, with a column for each tree.
    """
    total = np.zeros(len(asked))
    for leaves, found in zip(learnt.T, asked.T, strict=True):
        size = 1 + max(int(leaves.max()), int(found.max()))
        runs = np.bincount(leaves, minlength=size)
        ones = np.bincount(leaves[member], minlength=size)
        total += ((ones + _UNSEEN) / (runs + 2 * _UNSEEN))[found]
    mean: FloatArray = total / learnt.shape[1]
    return mean
