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
from leakbound.attacks.logs import (
    Line,
    Logged,
    LogSource,
    is_unicode_text,
    lines_of_log,
    logged_text_of_line,
)
from leakbound.attacks.tokens import (
    LOWEST,
    SIGNALS,
    TokenSignal,
    check_token_signal,
    difference_to_base_model,
)
from leakbound.errors import FormatError, OptionError

MEMBER = "member"
# Signals that count nats of a whole text, whatever its tokens are.
_WHOLE_TEXT_SIGNALS = ("sum", "zlib")
# Integers that Arrow and NumPy hold.
_LARGEST_INTEGER = 1 << 63


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
class _BaseText:
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
        _paths_of_logs(files),
        source,
        signal,
        k=k,
        reference=_paths_of_logs(reference),
        keep=keep,
        most=most_rows,
    )
    scored_rows = [*log]
    token_counts = [scored_row.n_tokens for scored_row in scored_rows]
    n_tokens = None
    if None not in token_counts:
        n_tokens = np.array(token_counts, dtype=np.int64)
    return LoggedScores(
        values=np.array([scored_row.score for scored_row in scored_rows]),
        ids=np.array([scored_row.id for scored_row in scored_rows]),
        signal=signal,
        n_tokens=n_tokens,
        kept={
            name: np.array([scored_row.kept[name] for scored_row in scored_rows])
            for name in log.keep
        },
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
        self._k = check_token_signal(signal, k)
        if source == "lm-eval" and signal == "min_k":
            raise OptionError(
                "min_k needs a log-probability for each token, and logs of lm-eval have one for "
                "each text: use mean, sum or zlib, or log the tokens with vllm or openai"
            )
        if not files:
            raise OptionError("files is empty: give at least one log")
        self.keep = []
        if keep is not None:
            self.keep = [*keep]
        self._keep_is_decided = keep is not None
        self._line_without_member: Line | None = None
        self._files = files
        self._source: LogSource = source
        self._signal: TokenSignal = signal
        self._most_rows = most
        self._field_types = dict[str, tuple[type, Line]]()
        self.unscored = 0
        self._base_texts: dict[str, _BaseText] | None = None
        if reference:
            self._base_texts = {
                base_text.id: _BaseText(
                    self._score_of_text(base_text), _logged_without_text(base_text)
                )
                for base_text in self._texts_of_logs(reference)
            }
            self.unscored = 0

    def __iter__(self) -> Iterator[Row]:
        for logged_text in self._texts_of_logs(self._files):
            score = self._score_of_text(logged_text)
            if self._base_texts is not None:
                score = self._difference_to_base(logged_text, score, self._base_texts)
            yield Row(
                id=logged_text.id,
                score=score,
                n_tokens=logged_text.size,
                kept=self._kept_fields_of_line(logged_text.line),
            )

    def _texts_of_logs(self, files: Sequence[Path]) -> Iterator[Logged]:
        """Yield the texts of logs, each id once."""
        first_places = dict[str, tuple[Path, int]]()
        for path in files:
            for line in lines_of_log(path, self._most_rows):
                text_of_line = logged_text_of_line(line, self._source)
                place = (line.path, line.number)
                first_place = first_places.setdefault(text_of_line.id, place)
                if first_place is not place:
                    raise line.refusal(
                        f"the id {text_of_line.id} is also in {first_place[0]}, line "
                        f"{first_place[1]}: log each text once, under its own id"
                    )
                self.unscored += text_of_line.unscored
                yield text_of_line
        if not first_places:
            raise FormatError(f"{files[0]} has no lines: log one text in each")

    def _score_of_text(self, logged_text: Logged) -> float:
        """Return the signal of a text of a log."""
        if self._signal == "zlib" and not logged_text.tokens.text:
            raise logged_text.line.refusal(
                "zlib packs the text, which is not there: add it as text"
            )
        return SIGNALS[self._signal](logged_text.tokens, self._k)

    def _difference_to_base(
        self, logged_text: Logged, score: float, base_texts: Mapping[str, _BaseText]
    ) -> float:
        """Return the difference to the base model, if both logs are of the same thing."""
        base_text = base_texts.get(logged_text.id)
        if base_text is None:
            base_ids = ", ".join([*base_texts][:3])
            raise logged_text.line.refusal(
                f"the id {logged_text.id} is not in the log of the base model, whose first ids are "
                f"{base_ids}: log the same texts with both models, under ids of your own"
            )
        base_logged = base_text.logged
        if logged_text.spelling != base_logged.spelling:
            self._check_comparable_tokens(logged_text, base_logged)
        score_difference = difference_to_base_model(score, base_text.score)
        if math.isnan(score_difference):
            raise logged_text.line.refusal(
                f"it has probability 0 here and in {base_logged.line}: there is no difference"
            )
        return score_difference

    def _check_comparable_tokens(self, logged_text: Logged, base_logged: Logged) -> None:
        """Check that a text with other tokens can be compared."""
        if logged_text.size is None:
            raise logged_text.line.refusal(
                f"it has another text than {base_logged.line}: log the same texts"
            )
        other_tokens = (
            f"it has other tokens than {base_logged.line} "
            f"({logged_text.size} and {base_logged.size})"
        )
        if self._signal not in _WHOLE_TEXT_SIGNALS:
            raise logged_text.line.refusal(
                f"{other_tokens}, so that a {self._signal} over tokens cannot be compared: use "
                "the signal sum or zlib, or a base model with the same tokenizer"
            )
        if logged_text.part is None or logged_text.part != base_logged.part:
            raise logged_text.line.refusal(
                f"{other_tokens}, and both logs do not score the same part of the text: begin "
                "each prompt with the token of the beginning (BOS), so that all of the text is "
                "scored, and keep the texts of tokens; or use a base model with the same tokenizer"
            )

    def _kept_fields_of_line(self, line: Line) -> dict[str, object]:
        """Return the fields to keep."""
        document = line.content.get("doc")
        places = [line.content]
        if isinstance(document, dict):
            places.append(document)
        has_member = any(MEMBER in place for place in places)
        if not self._keep_is_decided:
            self.keep = [MEMBER] * has_member
            self._keep_is_decided = True
            if not has_member:
                self._line_without_member = replace(line, content={})
        if has_member and self._line_without_member is not None:
            raise line.refusal(
                f"it has {MEMBER}, and {self._line_without_member} has none: give all or none"
            )
        return {name: self._kept_field_of_line(line, name, places) for name in self.keep}

    def _kept_field_of_line(
        self, line: Line, name: str, places: Sequence[Mapping[str, object]]
    ) -> object:
        """Return one field, of the same kind as in other lines."""
        value = next((place[name] for place in places if place.get(name) is not None), None)
        if value is None:
            raise line.refusal(f"it has no {name}: give it in each line")
        value_type = type(value)
        if value_type is int:
            value_type = float
        if not _is_column_value(value):
            raise line.refusal(
                f"{name} must be a number, a word or true or false, got {checks.shown(value)}"
            )
        known_type, first_line = self._field_types.setdefault(
            name, (value_type, replace(line, content={}))
        )
        if known_type is not value_type:
            raise line.refusal(
                f"{name} is {checks.shown(value)}, and of another type in {first_line}: use one "
                "type"
            )
        return value


def _is_column_value(value: object) -> bool:
    """Return whether a value is a boolean, a number or a word that a column can hold."""
    if isinstance(value, str):
        return is_unicode_text(value)
    if isinstance(value, int):  # which booleans are, too
        return abs(value) < _LARGEST_INTEGER
    return isinstance(value, float) and not math.isnan(value)


def _logged_without_text(logged_text: Logged) -> Logged:
    """Return what comparing needs, without the text and its tokens."""
    line = replace(logged_text.line, content={})
    return replace(logged_text, line=line, tokens=replace(logged_text.tokens, values=(), text=""))


def _paths_of_logs(files: PathInput | Sequence[PathInput] | None) -> list[Path]:
    """Return one path or several as a list."""
    if files is None:
        return []
    if isinstance(files, str | os.PathLike):
        return [Path(files)]
    return [Path(file) for file in files]
