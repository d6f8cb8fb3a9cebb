"""Logs of language models behind an API: texts with the log-probabilities of their tokens.

Three formats of JSON lines: answers with `prompt_logprobs` (vLLM), answers with `echo` and
`logprobs` (completions of OpenAI and compatible servers), and samples of lm-evaluation-harness.
Lines are read one by one. Whatever a line holds, what is wrong with it names file and line.
"""

import codecs
import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import count, islice
from pathlib import Path
from typing import IO, Literal, TypeAlias, TypeGuard

from leakbound._base.checks import shown
from leakbound._base.files import Unpacked
from leakbound.attacks.tokens import ROUNDING, Tokens
from leakbound.errors import FormatError

LogSource: TypeAlias = Literal["vllm", "openai", "lm-eval"]
"""What wrote a log."""

# Most bytes of a line: a text of 100,000 tokens with a few candidates for each.
_LONGEST = 1 << 26
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
# How servers write tokens that are asked for as their ids.
_AS_ID = "token_id:"
_WRAPPED = '{"id": …, "member": …, "response": <the answer>}'


@dataclass(frozen=True)
class Line:
    """An object of a log, and where it is."""

    path: Path
    number: int
    content: Mapping[str, object]

    def __str__(self) -> str:
        return f"{self.path}, line {self.number}"

    def refusal(self, text: str) -> FormatError:
        """Return the error that something is wrong with this line."""
        return FormatError(f"{self}: {text}")


@dataclass(frozen=True)
class Logged:
    """A text of a log.

    `size` is its number of tokens, if it is known. Two logs have the same tokens of a text if their
    `spelling` is equal, and log-probabilities of the same part of it if `part` is.
    """

    line: Line
    id: str
    tokens: Tokens
    size: int | None
    unscored: int
    spelling: bytes
    part: bytes | None


def lines(path: Path, most_rows: int | None = None) -> Iterator[Line]:
    """Yield the objects of a file of JSON lines, which may be packed by gzip."""
    unpacked = Unpacked(path.stat().st_size, most_rows)
    number = 0
    try:
        with _opened(path) as file:
            for number in count(1):
                text = file.readline(_LONGEST)
                if not text:
                    return
                unpacked.add(len(text), 1)
                if text.strip():
                    yield _parsed(path, number, text)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(
            f"{path}, line {number}: its compressed data are damaged or cut short ({error}): copy "
            "the file again"
        ) from error
    except FormatError as error:
        if str(error).startswith(str(path)):
            raise
        raise FormatError(f"{path}, line {number}: {error}") from error


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    if path.suffix.lower() == ".gz":
        return gzip.open(path)
    return path.open("rb")


def _parsed(path: Path, number: int, text: bytes) -> Line:
    """Return a line of JSON as an object."""
    line = Line(path, number, {})
    if len(text) == _LONGEST and not text.endswith(b"\n"):
        raise line.refusal(
            f"it has more than {_LONGEST:,} bytes: log fewer candidates for each token, and one "
            "text in each line"
        )
    if number == 1 and text[:2] in _UTF16:
        raise line.refusal("the file is UTF-16: write UTF-8, as JSON is")
    try:
        content = json.loads(text.removeprefix(codecs.BOM_UTF8).decode())
    except UnicodeDecodeError as error:
        raise line.refusal(f"it is not UTF-8 ({error.reason}): write UTF-8, as JSON is") from error
    except (ValueError, RecursionError) as error:
        hint = "repair or remove this line"
        if not text.endswith(b"\n"):
            hint = "the file is cut short here: log this text again, or remove the line"
        raise line.refusal(f"it is not JSON ({error}): {hint}") from error
    if not isinstance(content, dict):
        raise line.refusal(
            f"it must be an object, got {shown(content)}: give one object in each line"
        )
    return Line(path, number, content)


def logged(line: Line, source: LogSource) -> Logged:
    """Return the text that a line is about."""
    return _READERS[source](line)


# What a line is about.


def _answer(line: Line, wanted: str) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the answer of a server, and its only choice: empty if it has none.

    The line is the answer, or has it in "response" or "body", as files of batches have.
    """
    found = line.content
    for name in ("response", "body"):
        inner = found.get(name)
        if isinstance(inner, dict) and "choices" not in found and wanted not in found:
            found = inner
    for one in (line.content, found):
        if one.get("error") is not None:
            raise line.refusal(f"the server answered {shown(one['error'])}: repeat this request")
    choices = found.get("choices", [{}])
    if not isinstance(choices, list) or not all(isinstance(one, dict) for one in choices):
        raise line.refusal(f"choices must be a list of objects, got {shown(choices)}")
    if len(choices) != 1:
        raise line.refusal(
            f"the answer has {len(choices)} choices: send one prompt in each request and n=1, so "
            "that each has its id"
        )
    return found, choices[0]


def _id_of(line: Line, *names: str) -> str:
    """Return the id of a text: the first of some names that the line has."""
    content = line.content
    for name in names:
        value = content.get(name)
        if value is not None:
            return _id(line, name, value)
    raise line.refusal(f"it has no id: write {_WRAPPED}")


def _id(line: Line, name: str, value: object) -> str:
    plain = isinstance(value, str | int) and not isinstance(value, bool)
    text = ""
    if plain:
        text = str(value).strip()
    if not text or not _is_unicode(text):
        raise line.refusal(f"{name} must be a number or word, got {shown(value)}")
    return text


def _is_unicode(text: str) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(text.encode())
    return False


def _listed(line: Line, values: object, name: str) -> list[object]:
    if not isinstance(values, list):
        raise line.refusal(f"{name} must be a list, got {shown(values)}")
    return values


def _log_probability(line: Line, value: object, name: str) -> float:
    """Return a number that may be a log-probability."""
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
    if math.isnan(number):
        raise line.refusal(f"{name} must be a number, got {shown(value)}")
    if number > ROUNDING:
        raise line.refusal(
            f"{name} is {number:g}, and log-probabilities are at most 0: log them, not "
            "probabilities or logits"
        )
    return number


def _text_of(line: Line, *places: Mapping[str, object]) -> str:
    """Return the text, if it was logged."""
    for place in (line.content, *places):
        for name in ("text", "prompt"):
            value = place.get(name)
            if isinstance(value, str) and value:
                return value
    return ""


def _digest(parts: Sequence[object]) -> bytes:
    return sha256(json.dumps([*parts]).encode()).digest()


def _sequence(
    line: Line,
    values: list[float],
    names: Sequence[object],
    words: Sequence[str] | None,
    text: str,
) -> Logged:
    """Return a text of tokens, the first of which may have no log-probability."""
    unscored = len(names) - len(values)
    if not values:
        raise line.refusal(
            f"no token has a log-probability ({len(names)} in total): leave this text out"
        )
    part = None
    if words is not None:
        scored = "".join(words[unscored:])
        part = sha256(scored.encode("utf-8", "surrogatepass")).digest()
        text = text or "".join(words)
    return Logged(
        line=line,
        id=_id_of(line, "custom_id", "id", "request_id"),
        tokens=Tokens(values, len(values), text),
        size=len(names),
        unscored=unscored,
        spelling=_digest(names),
        part=part,
    )


# vLLM: prompt_logprobs.


def _vllm(line: Line) -> Logged:
    answer, choice = _answer(line, "prompt_logprobs")
    place = choice
    if place.get("prompt_logprobs") is None:
        place = answer
    if place.get("prompt_logprobs") is None:
        raise line.refusal(
            "it has no prompt_logprobs: request them, prompt_logprobs=0, and keep the answer in "
            f"the line, {_WRAPPED}"
        )
    entries = _listed(line, place["prompt_logprobs"], "prompt_logprobs")
    known = _token_ids(line, place.get("prompt_token_ids", answer.get("prompt_token_ids")), entries)
    values = list[float]()
    names = list[object]()
    words = list[str]()
    for number, (entry, own) in enumerate(zip(entries, known, strict=True)):
        if entry is None and number == 0:
            # Its id is known only where prompt_token_ids are: logs with and without compare.
            names.append("")
            words.append("")
            continue
        value, name, word = _entry(line, number, entry, own)
        values.append(value)
        names.append(name)
        if word is not None:
            words.append(word)
    spelled: list[str] | None = words
    if len(words) < len(names):
        spelled = None
    return _sequence(line, values, names, spelled, _text_of(line, answer))


def _token_ids(line: Line, ids: object, entries: list[object]) -> list[object]:
    """Return the id of each token of the prompt; None for each where they are not logged."""
    if ids is None:
        return [None] * len(entries)
    known = _listed(line, ids, "prompt_token_ids")
    if len(known) != len(entries):
        raise line.refusal(
            f"it has {len(known)} prompt_token_ids and {len(entries)} prompt_logprobs"
        )
    return known


def _entry(line: Line, place: int, entry: object, own: object) -> tuple[float, object, str | None]:
    """Return the log-probability of a token of the prompt, its id and its text."""
    where = f"prompt_logprobs[{place}]"
    if not isinstance(entry, dict):
        return _log_probability(line, entry, where), own, None
    if not entry:
        raise line.refusal(f"{where} is empty: each token needs its log-probability")
    key = next(iter(entry))
    if own is not None:
        key = str(own)
        if key not in entry:
            raise line.refusal(f"{where} lists no token {key}, which prompt_token_ids has there")
    elif len(entry) > 1 and not _is_own_first([*entry.values()]):
        raise line.refusal(
            f"{where} lists {len(entry)} tokens, and it cannot be told which is the prompt's: "
            "request prompt_logprobs=0, or keep prompt_token_ids (return_token_ids=true)"
        )
    found = entry[key]
    if not isinstance(found, dict):
        return _log_probability(line, found, f"{where}[{key!r}]"), key, None
    word = found.get("decoded_token")
    if not isinstance(word, str):
        word = None
    name = f"{where}[{key!r}].logprob"
    return _log_probability(line, found.get("logprob"), name), key, word


def _is_own_first(candidates: list[object]) -> bool:
    """Return whether ranks show that candidates are as vLLM lists them: the prompt's, then the top.

    Ranks of the others are 1, 2, …, less that of the first: in another order, as of sorted keys,
    they are not.
    """
    ranks = [one.get("rank") for one in candidates if isinstance(one, dict)]
    if len(ranks) < len(candidates):
        return False
    first, *others = ranks
    top = islice((rank for rank in count(1) if rank != first), len(others))
    return first is not None and others == [*top]


# Completions of OpenAI and of compatible servers: echo and logprobs.


def _openai(line: Line) -> Logged:
    answer, choice = _answer(line, "choices")
    found = choice.get("logprobs")
    if not isinstance(found, dict):
        raise line.refusal(
            "it has no choices[0].logprobs: request completions with echo=true and logprobs=0, and "
            f"keep the answer in the line, {_WRAPPED}"
        )
    if "content" in found:
        raise line.refusal(
            "it is the answer of a chat, which has log-probabilities of generated tokens only: "
            "request completions with echo=true and logprobs=0"
        )
    words = _listed(line, found.get("tokens"), "tokens")
    numbers = _listed(line, found.get("token_logprobs"), "token_logprobs")
    if len(words) != len(numbers):
        raise line.refusal(f"it has {len(words)} tokens and {len(numbers)} token_logprobs")
    names = [word for word in words if isinstance(word, str)]
    if len(names) < len(words):
        wrong = next(word for word in words if not isinstance(word, str))
        raise line.refusal(f"tokens must hold text, got {shown(wrong)}")
    size = _prompt_size(line, answer, numbers)
    values = [
        _log_probability(line, value, f"token_logprobs[{place}]")
        for place, value in enumerate(numbers[:size])
        if place or value is not None
    ]
    names = names[:size]
    spelled: list[str] | None = names
    if any(name.startswith(_AS_ID) for name in names):
        spelled = None
    return _sequence(line, values, names, spelled, _text_of(line))


def _prompt_size(line: Line, answer: Mapping[str, object], numbers: list[object]) -> int:
    """Return how many tokens are the prompt's: those that were generated follow them."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        usage = {}
    asked = usage.get("prompt_tokens")
    made = usage.get("completion_tokens") or 0
    if not _is_count(asked) or not _is_count(made):
        raise line.refusal(
            "it has no usage.prompt_tokens, which tells the prompt's tokens from generated ones: "
            "keep the whole answer"
        )
    total = len(numbers)
    echoed = total == asked + made
    # With max_tokens=0 vLLM counts one generated token that it does not return.
    alone = total == asked and (total != made or numbers[:1] == [None])
    if not echoed and not alone:
        raise line.refusal(
            f"it has {total} tokens, for a prompt of {asked} and {made} generated ones: "
            "request echo=true, so that those of the prompt are there"
        )
    return asked


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# lm-evaluation-harness: samples_*.jsonl.


def _lm_eval(line: Line) -> Logged:
    if "resps" not in line.content:
        raise line.refusal(
            "it has no resps: give files samples_*.jsonl, which lm_eval --log_samples writes"
        )
    answers = _listed(line, line.content["resps"], "resps")
    chosen = 0
    if len(answers) != 1:
        chosen = _target(line, len(answers))
    value = answers[chosen]
    for _ in range(2):  # of repeats, and of the pair with is_greedy
        if isinstance(value, list) and value:
            value = value[0]
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    if not isinstance(value, int | float):
        raise line.refusal(
            f"resps must hold log-likelihoods, got {shown(value)}: use a task with output_type "
            "loglikelihood_rolling, or loglikelihood"
        )
    value = _log_probability(line, value, "the log-likelihood in resps")
    given = _arguments(line, chosen)
    doc = line.content.get("doc")
    name = "doc_id"
    own = line.content.get(name)
    if isinstance(doc, dict) and isinstance(doc.get("id"), str | int):
        name, own = "doc.id", doc["id"]
    text = given[-1]
    size = len(text.encode("utf-8", "surrogatepass"))
    spelling = _digest(given)
    return Logged(
        line=line,
        id=_id(line, name, own),
        tokens=Tokens([value], size, text),
        size=None,
        unscored=0,
        spelling=spelling,
        part=spelling,
    )


def _target(line: Line, requests: int) -> int:
    """Return which of several requests is that of the right answer."""
    target = line.content.get("target")
    if isinstance(target, int | str) and not isinstance(target, bool):
        with suppress(ValueError):
            chosen = int(target)
            if 0 <= chosen < requests:
                return chosen
    raise line.refusal(
        f"it has {requests} requests, and its target {shown(target)} does not say which is the "
        "right one: use a task with output_type loglikelihood_rolling, or loglikelihood"
    )


def _arguments(line: Line, chosen: int) -> list[str]:
    """Return the texts of a request: of a context, if there is one, and what was scored."""
    found = line.content.get("arguments")
    if isinstance(found, dict):
        found = [*found.values()]
    request = _listed(line, found, "arguments")
    if len(request) <= chosen:
        raise line.refusal(f"it has {len(request)} arguments, and none for request {chosen}")
    texts = request[chosen]
    if isinstance(texts, dict):
        texts = [*texts.values()]
    texts = _listed(line, texts, f"arguments of request {chosen}")[:2]
    known = [one for one in texts if isinstance(one, str)]
    if not texts or len(known) < len(texts) or not known[-1]:
        raise line.refusal(f"arguments of request {chosen} must be texts, got {shown(texts)}")
    return known


_READERS: Mapping[LogSource, Callable[[Line], Logged]] = {
    "vllm": _vllm,
    "openai": _openai,
    "lm-eval": _lm_eval,
}
