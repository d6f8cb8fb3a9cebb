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
_MOST_LINE_BYTES = 1 << 26
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# How servers write tokens that are asked for as their ids.
_TOKEN_ID_PREFIX = "token_id:"
_WRAPPED_ANSWER = '{"id": …, "member": …, "response": <the answer>}'


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
    line_number = 0
    try:
        with _open_log(path) as log_file:
            for line_number in count(1):
                line_bytes = log_file.readline(_MOST_LINE_BYTES)
                if not line_bytes:
                    return
                unpacked.add(len(line_bytes), 1)
                if line_bytes.strip():
                    yield _parsed_line(path, line_number, line_bytes)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(
            f"{path}, line {line_number}: its compressed data are damaged or cut short ({error}): "
            "copy the file again"
        ) from error
    except FormatError as error:
        if str(error).startswith(str(path)):
            raise
        raise FormatError(f"{path}, line {line_number}: {error}") from error


def _open_log(path: Path) -> IO[bytes] | gzip.GzipFile:
    """Open a log, which may be packed by gzip."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path)
    return path.open("rb")


def _parsed_line(path: Path, line_number: int, line_bytes: bytes) -> Line:
    """Return a line of JSON as an object."""
    line = Line(path, line_number, {})
    if len(line_bytes) == _MOST_LINE_BYTES and not line_bytes.endswith(b"\n"):
        raise line.refusal(
            f"it has more than {_MOST_LINE_BYTES:,} bytes: log fewer candidates for each token, "
            "and one text in each line"
        )
    if line_number == 1 and line_bytes[:2] in _UTF16_MARKS:
        raise line.refusal("the file is UTF-16: write UTF-8, as JSON is")
    try:
        content = json.loads(line_bytes.removeprefix(codecs.BOM_UTF8).decode())
    except UnicodeDecodeError as error:
        raise line.refusal(f"it is not UTF-8 ({error.reason}): write UTF-8, as JSON is") from error
    except (ValueError, RecursionError) as error:
        remedy = "repair or remove this line"
        if not line_bytes.endswith(b"\n"):
            remedy = "the file is cut short here: log this text again, or remove the line"
        raise line.refusal(f"it is not JSON ({error}): {remedy}") from error
    if not isinstance(content, dict):
        raise line.refusal(
            f"it must be an object, got {shown(content)}: give one object in each line"
        )
    return Line(path, line_number, content)


def logged(line: Line, source: LogSource) -> Logged:
    """Return the text that a line is about."""
    return _READERS[source](line)


# What a line is about.


def _answer_and_choice(
    line: Line, needed_field: str
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the answer of a server, and its only choice: empty if it has none.

    The line is the answer, or has it in "response" or "body", as files of batches have.
    """
    answer = line.content
    for name in ("response", "body"):
        wrapped_answer = answer.get(name)
        if (
            isinstance(wrapped_answer, dict)
            and "choices" not in answer
            and needed_field not in answer
        ):
            answer = wrapped_answer
    for content in (line.content, answer):
        if content.get("error") is not None:
            raise line.refusal(
                f"the server answered {shown(content['error'])}: repeat this request"
            )
    answer_choices = answer.get("choices", [{}])
    if not isinstance(answer_choices, list) or not all(
        isinstance(choice, dict) for choice in answer_choices
    ):
        raise line.refusal(f"choices must be a list of objects, got {shown(answer_choices)}")
    if len(answer_choices) != 1:
        raise line.refusal(
            f"the answer has {len(answer_choices)} choices: send one prompt in each request and "
            "n=1, so that each has its id"
        )
    return answer, answer_choices[0]


def _id_in_line(line: Line, *names: str) -> str:
    """Return the id of a text: the first of some names that the line has."""
    content = line.content
    for name in names:
        value = content.get(name)
        if value is not None:
            return _checked_id(line, name, value)
    raise line.refusal(f"it has no id: write {_WRAPPED_ANSWER}")


def _checked_id(line: Line, name: str, id_value: object) -> str:
    """Return an id as text; refuse what is neither a number nor a word."""
    is_number_or_word = isinstance(id_value, str | int) and not isinstance(id_value, bool)
    text = ""
    if is_number_or_word:
        text = str(id_value).strip()
    if not text or not is_unicode(text):
        raise line.refusal(f"{name} must be a number or word, got {shown(id_value)}")
    return text


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8, and is not empty."""
    with suppress(UnicodeEncodeError):
        return bool(text.encode())
    return False


def _checked_list(line: Line, values: object, name: str) -> list[object]:
    """Return a field that must be a list."""
    if not isinstance(values, list):
        raise line.refusal(f"{name} must be a list, got {shown(values)}")
    return values


def _checked_log_probability(line: Line, logged_value: object, name: str) -> float:
    """Return a number that may be a log-probability."""
    number = math.nan
    if isinstance(logged_value, int | float) and not isinstance(logged_value, bool):
        with suppress(OverflowError):
            number = float(logged_value)
    if math.isnan(number):
        raise line.refusal(f"{name} must be a number, got {shown(logged_value)}")
    if number > ROUNDING:
        raise line.refusal(
            f"{name} is {number:g}, and log-probabilities are at most 0: log them, not "
            "probabilities or logits"
        )
    return number


def _logged_text(line: Line, *places: Mapping[str, object]) -> str:
    """Return the text, if it was logged."""
    for place in (line.content, *places):
        for name in ("text", "prompt"):
            logged_text = place.get(name)
            if isinstance(logged_text, str) and logged_text:
                return logged_text
    return ""


def _sequence_digest(parts: Sequence[object]) -> bytes:
    """Return a digest of token names or texts, the same for equal ones in the same order."""
    return sha256(json.dumps([*parts]).encode()).digest()


def _logged_tokens(
    line: Line,
    log_probabilities: list[float],
    token_names: Sequence[object],
    token_texts: Sequence[str] | None,
    text: str,
) -> Logged:
    """Return a text of tokens, the first of which may have no log-probability."""
    unscored = len(token_names) - len(log_probabilities)
    if not log_probabilities:
        raise line.refusal(
            f"no token has a log-probability ({len(token_names)} in total): leave this text out"
        )
    part_digest = None
    if token_texts is not None:
        scored_text = "".join(token_texts[unscored:])
        part_digest = sha256(scored_text.encode("utf-8", "surrogatepass")).digest()
        text = text or "".join(token_texts)
    return Logged(
        line=line,
        id=_id_in_line(line, "custom_id", "id", "request_id"),
        tokens=Tokens(log_probabilities, len(log_probabilities), text),
        size=len(token_names),
        unscored=unscored,
        spelling=_sequence_digest(token_names),
        part=part_digest,
    )


# vLLM: prompt_logprobs.


def _read_vllm(line: Line) -> Logged:
    """Read an answer of vLLM with `prompt_logprobs`."""
    server_answer, answer_choice = _answer_and_choice(line, "prompt_logprobs")
    holder = answer_choice
    if holder.get("prompt_logprobs") is None:
        holder = server_answer
    if holder.get("prompt_logprobs") is None:
        raise line.refusal(
            "it has no prompt_logprobs: request them, prompt_logprobs=0, and keep the answer in "
            f"the line, {_WRAPPED_ANSWER}"
        )
    prompt_entries = _checked_list(line, holder["prompt_logprobs"], "prompt_logprobs")
    logged_ids = holder.get("prompt_token_ids", server_answer.get("prompt_token_ids"))
    token_ids = _prompt_token_ids(line, logged_ids, prompt_entries)
    log_probabilities = list[float]()
    token_names = list[object]()
    token_texts = list[str]()
    for position, (prompt_entry, token_id) in enumerate(
        zip(prompt_entries, token_ids, strict=True)
    ):
        if prompt_entry is None and position == 0:
            # Its id is known only where prompt_token_ids are: logs with and without compare.
            token_names.append("")
            token_texts.append("")
            continue
        log_probability, token_name, token_text = _prompt_token(
            line, position, prompt_entry, token_id
        )
        log_probabilities.append(log_probability)
        token_names.append(token_name)
        if token_text is not None:
            token_texts.append(token_text)
    all_texts: list[str] | None = token_texts
    if len(token_texts) < len(token_names):
        all_texts = None
    return _logged_tokens(
        line, log_probabilities, token_names, all_texts, _logged_text(line, server_answer)
    )


def _prompt_token_ids(line: Line, logged_ids: object, prompt_entries: list[object]) -> list[object]:
    """Return the id of each token of the prompt; None for each where they are not logged."""
    if logged_ids is None:
        return [None] * len(prompt_entries)
    token_ids = _checked_list(line, logged_ids, "prompt_token_ids")
    if len(token_ids) != len(prompt_entries):
        raise line.refusal(
            f"it has {len(token_ids)} prompt_token_ids and {len(prompt_entries)} prompt_logprobs"
        )
    return token_ids


def _prompt_token(
    line: Line, position: int, entry: object, token_id: object
) -> tuple[float, object, str | None]:
    """Return the log-probability of a token of the prompt, its id and its text."""
    entry_name = f"prompt_logprobs[{position}]"
    if not isinstance(entry, dict):
        return _checked_log_probability(line, entry, entry_name), token_id, None
    if not entry:
        raise line.refusal(f"{entry_name} is empty: each token needs its log-probability")
    token_key = next(iter(entry))
    if token_id is not None:
        token_key = str(token_id)
        if token_key not in entry:
            raise line.refusal(
                f"{entry_name} lists no token {token_key}, which prompt_token_ids has there"
            )
    elif len(entry) > 1 and not _is_ranked_own_first([*entry.values()]):
        raise line.refusal(
            f"{entry_name} lists {len(entry)} tokens, and it cannot be told which is the prompt's: "
            "request prompt_logprobs=0, or keep prompt_token_ids (return_token_ids=true)"
        )
    candidate = entry[token_key]
    if not isinstance(candidate, dict):
        log_probability = _checked_log_probability(line, candidate, f"{entry_name}[{token_key!r}]")
        return log_probability, token_key, None
    token_text = candidate.get("decoded_token")
    if not isinstance(token_text, str):
        token_text = None
    field_name = f"{entry_name}[{token_key!r}].logprob"
    log_probability = _checked_log_probability(line, candidate.get("logprob"), field_name)
    return log_probability, token_key, token_text


def _is_ranked_own_first(candidates: list[object]) -> bool:
    """Return whether ranks show that candidates are as vLLM lists them: the prompt's, then the top.

    Ranks of the others are 1, 2, …, less that of the first: in another order, as of sorted keys,
    they are not.
    """
    ranks = [candidate.get("rank") for candidate in candidates if isinstance(candidate, dict)]
    if len(ranks) < len(candidates):
        return False
    own_rank, *other_ranks = ranks
    ranks_of_others = (rank for rank in count(1) if rank != own_rank)
    expected_ranks = [*islice(ranks_of_others, len(other_ranks))]
    return own_rank is not None and other_ranks == expected_ranks


# Completions of OpenAI and of compatible servers: echo and logprobs.


def _read_openai(line: Line) -> Logged:
    """Read an answer of completions with `echo` and `logprobs`."""
    server_answer, answer_choice = _answer_and_choice(line, "choices")
    logprobs = answer_choice.get("logprobs")
    if not isinstance(logprobs, dict):
        raise line.refusal(
            "it has no choices[0].logprobs: request completions with echo=true and logprobs=0, and "
            f"keep the answer in the line, {_WRAPPED_ANSWER}"
        )
    if "content" in logprobs:
        raise line.refusal(
            "it is the answer of a chat, which has log-probabilities of generated tokens only: "
            "request completions with echo=true and logprobs=0"
        )
    tokens = _checked_list(line, logprobs.get("tokens"), "tokens")
    token_logprobs = _checked_list(line, logprobs.get("token_logprobs"), "token_logprobs")
    if len(tokens) != len(token_logprobs):
        raise line.refusal(f"it has {len(tokens)} tokens and {len(token_logprobs)} token_logprobs")
    token_texts = [word for word in tokens if isinstance(word, str)]
    if len(token_texts) < len(tokens):
        no_text = next(word for word in tokens if not isinstance(word, str))
        raise line.refusal(f"tokens must hold text, got {shown(no_text)}")
    prompt_size = _prompt_size(line, server_answer, token_logprobs)
    log_probabilities = [
        _checked_log_probability(line, logprob, f"token_logprobs[{position}]")
        for position, logprob in enumerate(token_logprobs[:prompt_size])
        if position or logprob is not None
    ]
    token_texts = token_texts[:prompt_size]
    all_texts: list[str] | None = token_texts
    if any(name.startswith(_TOKEN_ID_PREFIX) for name in token_texts):
        all_texts = None
    return _logged_tokens(line, log_probabilities, token_texts, all_texts, _logged_text(line))


def _prompt_size(
    line: Line, server_answer: Mapping[str, object], token_logprobs: list[object]
) -> int:
    """Return how many tokens are the prompt's: those that were generated follow them."""
    token_usage = server_answer.get("usage")
    if not isinstance(token_usage, dict):
        token_usage = {}
    prompt_tokens = token_usage.get("prompt_tokens")
    completion_tokens = token_usage.get("completion_tokens") or 0
    if not _is_count(prompt_tokens) or not _is_count(completion_tokens):
        raise line.refusal(
            "it has no usage.prompt_tokens, which tells the prompt's tokens from generated ones: "
            "keep the whole answer"
        )
    token_count = len(token_logprobs)
    is_echoed = token_count == prompt_tokens + completion_tokens
    # With max_tokens=0 vLLM counts one generated token that it does not return.
    may_be_prompt = token_count != completion_tokens or token_logprobs[:1] == [None]
    is_prompt_only = token_count == prompt_tokens and may_be_prompt
    if not is_echoed and not is_prompt_only:
        raise line.refusal(
            f"it has {token_count} tokens, for a prompt of {prompt_tokens} and {completion_tokens} "
            "generated ones: request echo=true, so that those of the prompt are there"
        )
    return prompt_tokens


def _is_count(value: object) -> TypeGuard[int]:
    """Return whether a value of a log is a number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# lm-evaluation-harness: samples_*.jsonl.


def _read_lm_eval(line: Line) -> Logged:
    """Read a sample of lm-evaluation-harness: one log-likelihood for a text."""
    if "resps" not in line.content:
        raise line.refusal(
            "it has no resps: give files samples_*.jsonl, which lm_eval --log_samples writes"
        )
    responses = _checked_list(line, line.content["resps"], "resps")
    request = 0
    if len(responses) != 1:
        request = _target_request(line, len(responses))
    log_likelihood = responses[request]
    for _ in range(2):  # of repeats, and of the pair with is_greedy
        if isinstance(log_likelihood, list) and log_likelihood:
            log_likelihood = log_likelihood[0]
    if isinstance(log_likelihood, str):
        with suppress(ValueError):
            log_likelihood = float(log_likelihood)
    if not isinstance(log_likelihood, int | float):
        raise line.refusal(
            f"resps must hold log-likelihoods, got {shown(log_likelihood)}: use a task with "
            "output_type loglikelihood_rolling, or loglikelihood"
        )
    log_likelihood = _checked_log_probability(line, log_likelihood, "the log-likelihood in resps")
    texts = _request_texts(line, request)
    document = line.content.get("doc")
    id_name = "doc_id"
    id_value = line.content.get(id_name)
    if isinstance(document, dict) and isinstance(document.get("id"), str | int):
        id_name, id_value = "doc.id", document["id"]
    scored_text = texts[-1]
    byte_count = len(scored_text.encode("utf-8", "surrogatepass"))
    text_digest = _sequence_digest(texts)
    return Logged(
        line=line,
        id=_checked_id(line, id_name, id_value),
        tokens=Tokens([log_likelihood], byte_count, scored_text),
        size=None,
        unscored=0,
        spelling=text_digest,
        part=text_digest,
    )


def _target_request(line: Line, requests: int) -> int:
    """Return which of several requests is that of the right answer."""
    logged_target = line.content.get("target")
    if isinstance(logged_target, int | str) and not isinstance(logged_target, bool):
        with suppress(ValueError):
            request_number = int(logged_target)
            if 0 <= request_number < requests:
                return request_number
    raise line.refusal(
        f"it has {requests} requests, and its target {shown(logged_target)} does not say which is "
        "the right one: use a task with output_type loglikelihood_rolling, or loglikelihood"
    )


def _request_texts(line: Line, request_number: int) -> list[str]:
    """Return the texts of a request: of a context, if there is one, and what was scored."""
    requests = line.content.get("arguments")
    if isinstance(requests, dict):
        requests = [*requests.values()]
    listed_requests = _checked_list(line, requests, "arguments")
    if len(listed_requests) <= request_number:
        raise line.refusal(
            f"it has {len(listed_requests)} arguments, and none for request {request_number}"
        )
    request_texts = listed_requests[request_number]
    if isinstance(request_texts, dict):
        request_texts = [*request_texts.values()]
    request_texts = _checked_list(line, request_texts, f"arguments of request {request_number}")[:2]
    known_texts = [text for text in request_texts if isinstance(text, str)]
    if not request_texts or len(known_texts) < len(request_texts) or not known_texts[-1]:
        raise line.refusal(
            f"arguments of request {request_number} must be texts, got {shown(request_texts)}"
        )
    return known_texts


_READERS: Mapping[LogSource, Callable[[Line], Logged]] = {
    "vllm": _read_vllm,
    "openai": _read_openai,
    "lm-eval": _read_lm_eval,
}
