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


def lines_of_log(path: Path, most_rows: int | None = None) -> Iterator[Line]:
    """Yield the objects of a file of JSON lines, which may be packed by gzip."""
    unpacked = Unpacked(path.stat().st_size, most_rows)
    line_number = 0
    try:
        with _opened_log_file(path) as log_file:
            for line_number in count(1):
                line_bytes = log_file.readline(_MOST_LINE_BYTES)
                if not line_bytes:
                    return
                unpacked.add(len(line_bytes), 1)
                if line_bytes.strip():
                    yield _parsed_log_line(path, line_number, line_bytes)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(
            f"{path}, line {line_number}: its compressed data are damaged or cut short ({error}): "
            "copy the file again"
        ) from error
    except FormatError as error:
        if str(error).startswith(str(path)):
            raise
        raise FormatError(f"{path}, line {line_number}: {error}") from error


def _opened_log_file(path: Path) -> IO[bytes] | gzip.GzipFile:
    """Open a log, which may be packed by gzip."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path)
    return path.open("rb")


def _parsed_log_line(path: Path, line_number: int, line_bytes: bytes) -> Line:
    """Return a line of JSON as an object."""
    log_line = Line(path, line_number, {})
    if len(line_bytes) == _MOST_LINE_BYTES and not line_bytes.endswith(b"\n"):
        raise log_line.refusal(
            f"it has more than {_MOST_LINE_BYTES:,} bytes: log fewer candidates for each token, "
            "and one text in each line"
        )
    if line_number == 1 and line_bytes[:2] in _UTF16_MARKS:
        raise log_line.refusal("the file is UTF-16: write UTF-8, as JSON is")
    try:
        parsed_content = json.loads(line_bytes.removeprefix(codecs.BOM_UTF8).decode())
    except UnicodeDecodeError as error:
        raise log_line.refusal(
            f"it is not UTF-8 ({error.reason}): write UTF-8, as JSON is"
        ) from error
    except (ValueError, RecursionError) as error:
        remedy = "repair or remove this line"
        if not line_bytes.endswith(b"\n"):
            remedy = "the file is cut short here: log this text again, or remove the line"
        raise log_line.refusal(f"it is not JSON ({error}): {remedy}") from error
    if not isinstance(parsed_content, dict):
        raise log_line.refusal(
            f"it must be an object, got {shown(parsed_content)}: give one object in each line"
        )
    return Line(path, line_number, parsed_content)


def logged_text_of_line(line: Line, source: LogSource) -> Logged:
    """Return the text that a line is about."""
    return _READERS[source](line)


# What a line is about.


def _server_answer_and_choice(
    line: Line, needed_field: str
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the answer of a server, and its only choice: empty if it has none.

    The line is the answer, or has it in "response" or "body", as files of batches have.
    """
    server_answer = line.content
    for wrapper_name in ("response", "body"):
        wrapped_answer = server_answer.get(wrapper_name)
        if (
            isinstance(wrapped_answer, dict)
            and "choices" not in server_answer
            and needed_field not in server_answer
        ):
            server_answer = wrapped_answer
    for answer_or_line in (line.content, server_answer):
        if answer_or_line.get("error") is not None:
            raise line.refusal(
                f"the server answered {shown(answer_or_line['error'])}: repeat this request"
            )
    answer_choices = server_answer.get("choices", [{}])
    if not isinstance(answer_choices, list) or not all(
        isinstance(answer_choice, dict) for answer_choice in answer_choices
    ):
        raise line.refusal(f"choices must be a list of objects, got {shown(answer_choices)}")
    if len(answer_choices) != 1:
        raise line.refusal(
            f"the answer has {len(answer_choices)} choices: send one prompt in each request and "
            "n=1, so that each has its id"
        )
    return server_answer, answer_choices[0]


def _text_id_in_line(line: Line, *id_names: str) -> str:
    """Return the id of a text: the first of some names that the line has."""
    for id_name in id_names:
        id_value = line.content.get(id_name)
        if id_value is not None:
            return _checked_id(line, id_name, id_value)
    raise line.refusal(f"it has no id: write {_WRAPPED_ANSWER}")


def _checked_id(line: Line, id_name: str, id_value: object) -> str:
    """Return an id as text; refuse what is neither a number nor a word."""
    id_text = ""
    if type(id_value) in {str, int}:  # not a boolean
        id_text = str(id_value).strip()
    if not is_unicode_text(id_text):
        raise line.refusal(f"{id_name} must be a number or word, got {shown(id_value)}")
    return id_text


def is_unicode_text(text: str) -> bool:
    """Return whether a text can be written as UTF-8, and is not empty."""
    with suppress(UnicodeEncodeError):
        return bool(text.encode())
    return False


def _checked_list_in_log(line: Line, logged_values: object, field_name: str) -> list[object]:
    """Return a field that must be a list."""
    if not isinstance(logged_values, list):
        raise line.refusal(f"{field_name} must be a list, got {shown(logged_values)}")
    return logged_values


def _checked_log_probability(line: Line, logged_value: object, value_name: str) -> float:
    """Return a number that may be a log-probability."""
    log_probability = math.nan
    if isinstance(logged_value, int | float) and not isinstance(logged_value, bool):
        with suppress(OverflowError):
            log_probability = float(logged_value)
    if math.isnan(log_probability):
        raise line.refusal(f"{value_name} must be a number, got {shown(logged_value)}")
    if log_probability > ROUNDING:
        raise line.refusal(
            f"{value_name} is {log_probability:g}, and log-probabilities are at most 0: log them, "
            "not probabilities or logits"
        )
    return log_probability


def _text_in_log(line: Line, *text_holders: Mapping[str, object]) -> str:
    """Return the text, if it was logged."""
    for text_holder in (line.content, *text_holders):
        for field_name in ("text", "prompt"):
            logged_text = text_holder.get(field_name)
            if isinstance(logged_text, str) and logged_text:
                return logged_text
    return ""


def _digest_of_sequence(parts: Sequence[object]) -> bytes:
    """Return a digest of token names or texts, the same for equal ones in the same order."""
    return sha256(json.dumps([*parts]).encode()).digest()


def _logged_text_of_tokens(
    line: Line,
    log_probabilities: list[float],
    token_names: Sequence[object],
    token_texts: Sequence[str] | None,
    logged_text: str,
) -> Logged:
    """Return a text of tokens, the first of which may have no log-probability."""
    unscored_tokens = len(token_names) - len(log_probabilities)
    if not log_probabilities:
        raise line.refusal(
            f"no token has a log-probability ({len(token_names)} in total): leave this text out"
        )
    part_digest = None
    if token_texts is not None:
        scored_text = "".join(token_texts[unscored_tokens:])
        part_digest = sha256(scored_text.encode("utf-8", "surrogatepass")).digest()
        logged_text = logged_text or "".join(token_texts)
    return Logged(
        line=line,
        id=_text_id_in_line(line, "custom_id", "id", "request_id"),
        tokens=Tokens(log_probabilities, len(log_probabilities), logged_text),
        size=len(token_names),
        unscored=unscored_tokens,
        spelling=_digest_of_sequence(token_names),
        part=part_digest,
    )


# vLLM: prompt_logprobs.


def _read_vllm(line: Line) -> Logged:
    """Read an answer of vLLM with `prompt_logprobs`."""
    server_answer, answer_choice = _server_answer_and_choice(line, "prompt_logprobs")
    holder_of_logprobs = answer_choice
    if holder_of_logprobs.get("prompt_logprobs") is None:
        holder_of_logprobs = server_answer
    if holder_of_logprobs.get("prompt_logprobs") is None:
        raise line.refusal(
            "it has no prompt_logprobs: request them, prompt_logprobs=0, and keep the answer in "
            f"the line, {_WRAPPED_ANSWER}"
        )
    prompt_entries = _checked_list_in_log(
        line, holder_of_logprobs["prompt_logprobs"], "prompt_logprobs"
    )
    logged_ids = holder_of_logprobs.get("prompt_token_ids", server_answer.get("prompt_token_ids"))
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
        log_probability, token_name, token_text = _logged_prompt_token(
            line, position, prompt_entry, token_id
        )
        log_probabilities.append(log_probability)
        token_names.append(token_name)
        if token_text is not None:
            token_texts.append(token_text)
    all_texts: list[str] | None = token_texts
    if len(token_texts) < len(token_names):
        all_texts = None
    return _logged_text_of_tokens(
        line,
        log_probabilities=log_probabilities,
        token_names=token_names,
        token_texts=all_texts,
        logged_text=_text_in_log(line, server_answer),
    )


def _prompt_token_ids(line: Line, logged_ids: object, prompt_entries: list[object]) -> list[object]:
    """Return the id of each token of the prompt; None for each where they are not logged."""
    if logged_ids is None:
        return [None] * len(prompt_entries)
    token_ids = _checked_list_in_log(line, logged_ids, "prompt_token_ids")
    if len(token_ids) != len(prompt_entries):
        raise line.refusal(
            f"it has {len(token_ids)} prompt_token_ids and {len(prompt_entries)} prompt_logprobs"
        )
    return token_ids


def _logged_prompt_token(
    line: Line, position: int, prompt_entry: object, token_id: object
) -> tuple[float, object, str | None]:
    """Return the log-probability of a token of the prompt, its id and its text."""
    entry_name = f"prompt_logprobs[{position}]"
    if not isinstance(prompt_entry, dict):
        return _checked_log_probability(line, prompt_entry, entry_name), token_id, None
    if not prompt_entry:
        raise line.refusal(f"{entry_name} is empty: each token needs its log-probability")
    token_key = next(iter(prompt_entry))
    if token_id is not None:
        token_key = str(token_id)
        if token_key not in prompt_entry:
            raise line.refusal(
                f"{entry_name} lists no token {token_key}, which prompt_token_ids has there"
            )
    elif len(prompt_entry) > 1 and not _is_ranked_own_first([*prompt_entry.values()]):
        raise line.refusal(
            f"{entry_name} lists {len(prompt_entry)} tokens, and it cannot be told which is the "
            "prompt's: request prompt_logprobs=0, or keep prompt_token_ids (return_token_ids=true)"
        )
    logged_value = prompt_entry[token_key]
    value_name = f"{entry_name}[{token_key!r}]"
    token_text = None
    if isinstance(logged_value, dict):
        token_text = logged_value.get("decoded_token")
        logged_value = logged_value.get("logprob")
        value_name = f"{value_name}.logprob"
    if not isinstance(token_text, str):
        token_text = None
    log_probability = _checked_log_probability(line, logged_value, value_name)
    return log_probability, token_key, token_text


def _is_ranked_own_first(token_candidates: list[object]) -> bool:
    """Return whether ranks show that candidates are as vLLM lists them: the prompt's, then the top.

    Ranks of the others are 1, 2, …, less that of the first: in another order, as of sorted keys,
    they are not.
    """
    candidate_ranks = [
        token_candidate.get("rank")
        for token_candidate in token_candidates
        if isinstance(token_candidate, dict)
    ]
    if len(candidate_ranks) < len(token_candidates):
        return False
    own_rank, *other_ranks = candidate_ranks
    ranks_of_others = (rank for rank in count(1) if rank != own_rank)
    expected_ranks = [*islice(ranks_of_others, len(other_ranks))]
    return own_rank is not None and other_ranks == expected_ranks


# Completions of OpenAI and of compatible servers: echo and logprobs.


def _read_openai(line: Line) -> Logged:
    """Read an answer of completions with `echo` and `logprobs`."""
    server_answer, answer_choice = _server_answer_and_choice(line, "choices")
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
    logged_tokens = _checked_list_in_log(line, logprobs.get("tokens"), "tokens")
    token_logprobs = _checked_list_in_log(line, logprobs.get("token_logprobs"), "token_logprobs")
    if len(logged_tokens) != len(token_logprobs):
        raise line.refusal(
            f"it has {len(logged_tokens)} tokens and {len(token_logprobs)} token_logprobs"
        )
    token_texts = list[str]()
    for logged_token in logged_tokens:
        if not isinstance(logged_token, str):
            raise line.refusal(f"tokens must hold text, got {shown(logged_token)}")
        token_texts.append(logged_token)
    prompt_size = _prompt_token_count(line, server_answer, token_logprobs)
    log_probabilities = [
        _checked_log_probability(line, logprob, f"token_logprobs[{position}]")
        for position, logprob in enumerate(token_logprobs[:prompt_size])
        if position or logprob is not None
    ]
    token_texts = token_texts[:prompt_size]
    all_texts: list[str] | None = token_texts
    if any(name.startswith(_TOKEN_ID_PREFIX) for name in token_texts):
        all_texts = None
    return _logged_text_of_tokens(
        line,
        log_probabilities=log_probabilities,
        token_names=token_texts,
        token_texts=all_texts,
        logged_text=_text_in_log(line),
    )


def _prompt_token_count(
    line: Line, server_answer: Mapping[str, object], token_logprobs: list[object]
) -> int:
    """Return how many tokens are the prompt's: those that were generated follow them."""
    token_usage = server_answer.get("usage")
    if not isinstance(token_usage, dict):
        token_usage = {}
    prompt_token_count = token_usage.get("prompt_tokens")
    completion_token_count = token_usage.get("completion_tokens") or 0
    if not _is_token_count(prompt_token_count) or not _is_token_count(completion_token_count):
        raise line.refusal(
            "it has no usage.prompt_tokens, which tells the prompt's tokens from generated ones: "
            "keep the whole answer"
        )
    logged_token_count = len(token_logprobs)
    is_echoed = logged_token_count == prompt_token_count + completion_token_count
    # With max_tokens=0 vLLM counts one generated token that it does not return.
    may_be_prompt = logged_token_count != completion_token_count or token_logprobs[:1] == [None]
    is_prompt_only = logged_token_count == prompt_token_count and may_be_prompt
    if not is_echoed and not is_prompt_only:
        raise line.refusal(
            f"it has {logged_token_count} tokens, for a prompt of {prompt_token_count} and "
            f"{completion_token_count} generated ones: request echo=true, so that those of the "
            "prompt are there"
        )
    return prompt_token_count


def _is_token_count(value: object) -> TypeGuard[int]:
    """Return whether a value of a log is a number of tokens."""
    return type(value) is int and value >= 0


# lm-evaluation-harness: samples_*.jsonl.


def _read_lm_eval(line: Line) -> Logged:
    """Read a sample of lm-evaluation-harness: one log-likelihood for a text."""
    if "resps" not in line.content:
        raise line.refusal(
            "it has no resps: give files samples_*.jsonl, which lm_eval --log_samples writes"
        )
    logged_responses = _checked_list_in_log(line, line.content["resps"], "resps")
    request_number = 0
    if len(logged_responses) != 1:
        request_number = _request_of_right_answer(line, len(logged_responses))
    log_likelihood = logged_responses[request_number]
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
    request_texts = _texts_of_request(line, request_number)
    logged_document = line.content.get("doc")
    id_name = "doc_id"
    id_value = line.content.get(id_name)
    if isinstance(logged_document, dict) and isinstance(logged_document.get("id"), str | int):
        id_name, id_value = "doc.id", logged_document["id"]
    scored_text = request_texts[-1]
    byte_count = len(scored_text.encode("utf-8", "surrogatepass"))
    text_digest = _digest_of_sequence(request_texts)
    return Logged(
        line=line,
        id=_checked_id(line, id_name, id_value),
        tokens=Tokens([log_likelihood], byte_count, scored_text),
        size=None,
        unscored=0,
        spelling=text_digest,
        part=text_digest,
    )


def _request_of_right_answer(line: Line, request_count: int) -> int:
    """Return which of several requests is that of the right answer."""
    logged_target = line.content.get("target")
    if isinstance(logged_target, int | str) and not isinstance(logged_target, bool):
        with suppress(ValueError):
            request_number = int(logged_target)
            if 0 <= request_number < request_count:
                return request_number
    raise line.refusal(
        f"it has {request_count} requests, and its target {shown(logged_target)} does not say "
        "which is the right one: use a task with output_type loglikelihood_rolling, or "
        "loglikelihood"
    )


def _texts_of_request(line: Line, request_number: int) -> list[str]:
    """Return the texts of a request: of a context, if there is one, and what was scored."""
    logged_requests = line.content.get("arguments")
    if isinstance(logged_requests, dict):
        logged_requests = [*logged_requests.values()]
    listed_requests = _checked_list_in_log(line, logged_requests, "arguments")
    if len(listed_requests) <= request_number:
        raise line.refusal(
            f"it has {len(listed_requests)} arguments, and none for request {request_number}"
        )
    request_texts = listed_requests[request_number]
    if isinstance(request_texts, dict):
        request_texts = [*request_texts.values()]
    request_texts = _checked_list_in_log(
        line, request_texts, f"arguments of request {request_number}"
    )[:2]
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
