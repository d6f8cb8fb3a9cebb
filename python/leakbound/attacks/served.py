"""Scores of language models behind an API, from logs of token log-probabilities."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from leakbound._base import checks
from leakbound._base.scores import Scores
from leakbound._base.types import AnyArray, IntArray, PathInput
from leakbound.attacks.logs import Line, Logged, LogSource, lines, logged
from leakbound.attacks.tokens import LOWEST, SIGNALS, TokenSignal, check_signal, difference
from leakbound.errors import FormatError, OptionError

MEMBER = "member"
# Signals that count nats of a whole text, whatever its tokens are.
_OF_TEXTS = ("sum", "zlib")
# Integers that Arrow and NumPy hold.
_LARGEST = 1 << 63


@dataclass(frozen=True, eq=False, repr=False)
class LoggedScores(Scores):
    """Scores of texts in logs, and what else the logs have about them.

    Parameters
    ----------
    values, ids, signal : ndarray, ndarray and str
        As of `Scores`; ids are text.
    n_tokens : ndarray of int64, shape (m,), or None
        How many tokens each text has; None for logs without tokens.
    kept : mapping of str to ndarray
        Columns of the logs that were kept, such as membership.
    unscored : int
        How many texts have no log-probability for their first token, which is then left out.
    """

    n_tokens: IntArray | None
    kept: Mapping[str, AnyArray]
    unscored: int


@dataclass(frozen=True)
class Row:
    """A text and its score."""

    id: str
    score: float
    n_tokens: int | None
    kept: Mapping[str, object]


@dataclass(frozen=True)
class _Before:
    """What the base model said of a text, without the text."""

    score: float
    logged: Logged


def logged_scores(
    files: PathInput | Sequence[PathInput],
    source: LogSource,
    signal: TokenSignal = "mean",
    *,
    k: float = LOWEST,
    reference: PathInput | Sequence[PathInput] | None = None,
    keep: Sequence[str] | None = None,
    most_rows: int | None = None,
) -> LoggedScores:
    """Score the texts in logs of a language model behind an API.

    Logs are JSON lines, one text in each, also as .gz. They are read line by line: memory holds
    ids and scores. `leakbound score --from` writes the same scores to files.

    Parameters
    ----------
    files : path or sequence of paths
        Logs of the model.
    source : {"vllm", "openai", "lm-eval"}
        What wrote them. "vllm": answers with ``prompt_logprobs``; "openai": answers of completions
        with ``echo`` and ``logprobs``, of OpenAI or a compatible server; "lm-eval": files
        ``samples_*.jsonl`` of lm-evaluation-harness. A line is an answer with an id of your own, or
        has the answer in ``response``, as results of batches have.
    signal, k : str and float
        As for `token_scores`. Logs of lm-eval have one number for a text: its "mean" is per byte of
        the text, and there is no "min_k".
    reference : path or sequence of paths, optional
        Logs of the model before training, of the same format, joined by id. Scores are then
        differences of the signal. Other tokens of a text in the two logs are refused; but for "sum"
        and "zlib", if both cover the same part of the text.
    keep : sequence of str, optional
        Fields to keep, of a line or of ``doc`` in it; by default "member", if there is one.
    most_rows : int, optional
        Most lines of a file. By default any number, but none that unpacks to more than 1 GB and 100
        times its size.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> line = {"id": "a", "member": True, "prompt_logprobs": [None, {"5": {"logprob": -1.5}}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = pathlib.Path(folder) / "log.jsonl"
    ...     _ = log.write_text(json.dumps(line))
    ...     scores = logged_scores(log, "vllm")
    >>> scores.values, scores.ids, scores.kept["member"]
    (array([-1.5]), array(['a'], dtype='<U1'), array([ True]))
    """
    log = ScoredLog(
        _paths(files), source, signal, k=k, reference=_paths(reference), keep=keep, most=most_rows
    )
    rows = [*log]
    sizes = [row.n_tokens for row in rows]
    n_tokens = None
    if None not in sizes:
        n_tokens = np.array(sizes, dtype=np.int64)
    return LoggedScores(
        values=np.array([row.score for row in rows]),
        ids=np.array([row.id for row in rows]),
        signal=signal,
        n_tokens=n_tokens,
        kept={name: np.array([row.kept[name] for row in rows]) for name in log.keep},
        unscored=log.unscored,
    )


class ScoredLog:
    """Logs, scored line by line as they are iterated over."""

    def __init__(
        self,
        files: Sequence[Path],
        source: LogSource,
        signal: TokenSignal,
        *,
        k: float = LOWEST,
        reference: Sequence[Path] = (),
        keep: Sequence[str] | None = None,
        most: int | None = None,
    ) -> None:
        checks.choice(source, name="source", allowed=LogSource)
        self._k = check_signal(signal, k)
        if source == "lm-eval" and signal == "min_k":
            raise OptionError(
                "min_k needs a log-probability for each token, and logs of lm-eval have one for "
                "each text: use mean, sum or zlib, or log the tokens with vllm or openai"
            )
        if not files:
            raise OptionError("files is empty: give at least one log")
        self.keep = [] if keep is None else [*keep]
        self._decided = keep is not None
        self._without: Line | None = None
        self._files = files
        self._source: LogSource = source
        self._signal: TokenSignal = signal
        self._most = most
        self._kinds = dict[str, tuple[type, Line]]()
        self.unscored = 0
        self._base: dict[str, _Before] | None = None
        if reference:
            self._base = {
                one.id: _Before(self._score(one), _slim(one)) for one in self._logged(reference)
            }
            self.unscored = 0

    def __iter__(self) -> Iterator[Row]:
        for one in self._logged(self._files):
            score = self._score(one)
            if self._base is not None:
                score = self._compared(one, score, self._base)
            yield Row(one.id, score, one.size, self._kept(one.line))

    def _logged(self, files: Sequence[Path]) -> Iterator[Logged]:
        """Yield the texts of logs, each id once."""
        seen = dict[str, tuple[Path, int]]()
        for path in files:
            for line in lines(path, self._most):
                one = logged(line, self._source)
                where = (line.path, line.number)
                first = seen.setdefault(one.id, where)
                if first is not where:
                    raise line.refusal(
                        f"the id {one.id} is also in {first[0]}, line {first[1]}: log each text "
                        "once, under its own id"
                    )
                self.unscored += one.unscored
                yield one
        if not seen:
            raise FormatError(f"{files[0]} has no lines: log one text in each")

    def _score(self, one: Logged) -> float:
        if self._signal == "zlib" and not one.tokens.text:
            raise one.line.refusal("zlib packs the text, which is not there: add it as text")
        return SIGNALS[self._signal](one.tokens, self._k)

    def _compared(self, one: Logged, score: float, base: Mapping[str, _Before]) -> float:
        """Return the difference to the base model, if both logs are of the same thing."""
        before = base.get(one.id)
        if before is None:
            known = ", ".join([*base][:3])
            raise one.line.refusal(
                f"the id {one.id} is not in the log of the base model, whose first ids are {known}:"
                " log the same texts with both models, under ids of your own"
            )
        other = before.logged
        if one.spelling != other.spelling:
            self._check_parts(one, other)
        found = difference(score, before.score)
        if math.isnan(found):
            raise one.line.refusal(
                f"it has probability 0 here and in {other.line}: there is no difference"
            )
        return found

    def _check_parts(self, one: Logged, other: Logged) -> None:
        """Check that a text with other tokens can be compared."""
        if one.size is None:
            raise one.line.refusal(f"it has another text than {other.line}: log the same texts")
        tokens = f"it has other tokens than {other.line} ({one.size} and {other.size})"
        if self._signal not in _OF_TEXTS:
            raise one.line.refusal(
                f"{tokens}, so that a {self._signal} over tokens cannot be compared: use the "
                "signal sum or zlib, or a base model with the same tokenizer"
            )
        if one.part is None or one.part != other.part:
            raise one.line.refusal(
                f"{tokens}, and both logs do not score the same part of the text: begin each "
                "prompt with the token of the beginning (BOS), so that all of the text is scored, "
                "and keep the texts of tokens; or use a base model with the same tokenizer"
            )

    def _kept(self, line: Line) -> dict[str, object]:
        """Return the fields to keep."""
        doc = line.content.get("doc")
        places = [line.content]
        if isinstance(doc, dict):
            places.append(doc)
        there = any(MEMBER in place for place in places)
        if not self._decided:
            self.keep = [MEMBER] * there
            self._decided = True
            if not there:
                self._without = replace(line, content={})
        if there and self._without is not None:
            raise line.refusal(f"it has {MEMBER}, and {self._without} has none: give all or none")
        return {name: self._field(line, name, places) for name in self.keep}

    def _field(self, line: Line, name: str, places: Sequence[Mapping[str, object]]) -> object:
        """Return one field, of the same kind as in other lines."""
        value = next((place[name] for place in places if place.get(name) is not None), None)
        if value is None:
            raise line.refusal(f"it has no {name}: give it in each line")
        kind = type(value)
        if kind is int:
            kind = float
        if not _is_plain(value):
            raise line.refusal(
                f"{name} must be a number, a word or true or false, got {checks.shown(value)}"
            )
        known, first = self._kinds.setdefault(name, (kind, replace(line, content={})))
        if known is not kind:
            raise line.refusal(
                f"{name} is {checks.shown(value)}, and of another type in {first}: use one type"
            )
        return value


def _is_plain(value: object) -> bool:
    """Return whether a value is a boolean, a number or a word that a column can hold."""
    if isinstance(value, str):
        return _encodes(value)
    if isinstance(value, int):  # which booleans are, too
        return abs(value) < _LARGEST
    return isinstance(value, float) and not math.isnan(value)


def _encodes(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _slim(one: Logged) -> Logged:
    """Return what comparing needs, without the text and its tokens."""
    line = replace(one.line, content={})
    return replace(one, line=line, tokens=replace(one.tokens, values=(), text=""))


def _paths(files: PathInput | Sequence[PathInput] | None) -> list[Path]:
    """Return one path or several as a list."""
    if files is None:
        return []
    if isinstance(files, str | os.PathLike):
        return [Path(files)]
    return [Path(one) for one in files]
