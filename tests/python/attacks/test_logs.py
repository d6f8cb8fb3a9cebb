"""Logs of language models behind an API: what is read, and what is refused in which words."""

import gzip
import json
import math
import zlib
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound.attacks import LoggedScores, logged_scores, token_scores
from leakbound.attacks.logs import LogSource
from leakbound.errors import FormatError, InputError, InputTypeError, LeakboundError, OptionError
from peak_memory import peak_over_start

LOGS = Path(__file__).parents[2] / "golden" / "logs"
FILES: dict[LogSource, str] = {
    "vllm": "vllm-{}.jsonl",
    "openai": "openai-{}.jsonl",
    "lm-eval": "lm-eval-rolling-{}.jsonl",
}
SOURCES: list[LogSource] = [*FILES]


def log(source: LogSource, stage: str = "model") -> Path:
    return LOGS / FILES[source].format(stage)


def lines(source: LogSource, stage: str = "model") -> list[dict[str, Any]]:
    text = log(source, stage).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def vllm(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"id": "a", "prompt_logprobs": [*entries]} | more


def openai(tokens: list[Any], numbers: list[Any], made: int = 0, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": len(tokens) - made, "completion_tokens": made}
    logs = {"tokens": tokens, "token_logprobs": numbers}
    return {"id": "a", "choices": [{"logprobs": logs}], "usage": usage} | more


def write(path: Path, *objects: Any) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    return path


def scored(folder: Path, source: LogSource, *objects: Any, **options: Any) -> LoggedScores:
    return logged_scores(write(folder / "log.jsonl", *objects), source, **options)


def refusal(folder: Path, source: LogSource, *objects: Any, **options: Any) -> str:
    with pytest.raises(FormatError) as raised:
        scored(folder, source, *objects, **options)
    return str(raised.value)


# What is read.


def test_recorded_logs_of_one_model_have_the_same_scores() -> None:
    """The harness and the answers made by the schemas are of the same model and texts.

    Its log-likelihoods cover the whole text, as vLLM's do here: prompts begin with a token of the
    beginning. The OpenAI-compatible answers are of prompts without it.
    """
    sums = {source: logged_scores(log(source), source, "sum") for source in SOURCES}
    np.testing.assert_allclose(sums["vllm"].values, sums["lm-eval"].values, atol=1e-3)
    counts = [one.unscored for one in sums.values()]
    assert counts == [48, 48, 0]
    for one in sums.values():
        assert one.ids.tolist() == [f"doc-{row:02d}" for row in range(48)]
        assert one.kept["member"].dtype == np.bool_
    assert sums["lm-eval"].n_tokens is None
    sizes = [one.n_tokens for one in (sums["vllm"], sums["openai"])]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert (sizes[0] == sizes[1] + 1).all()


@pytest.mark.parametrize("source", SOURCES)
def test_a_difference_to_the_base_model_shows_the_leak(source: LogSource) -> None:
    scores = logged_scores(log(source), source, reference=log(source, "base"))
    own, base = (logged_scores(log(source, stage), source) for stage in ("model", "base"))
    np.testing.assert_array_equal(scores.values, own.values - base.values)
    assert lb.audit(scores, lb.Coins(scores.kept["member"]), seed=0).bound > 0.5


def test_signals_are_those_of_token_losses(tmp_path: Path) -> None:
    text = "Ada holds the lamp"
    values = [-0.5, -3.0, -1.0, -0.25, -2.0, -0.125]
    entries = [{str(token): {"logprob": one}} for token, one in enumerate(values)]
    line = vllm(None, *entries, text=text)
    packed = len(zlib.compress(text.encode()))
    expected = {"mean": -6.875 / 6, "sum": -6.875, "min_k": -2.5, "zlib": -6.875 / packed}
    for signal, value in expected.items():
        chosen: Any = {"signal": signal, "k": 40.0}
        assert scored(tmp_path, "vllm", line, **chosen).values.tolist() == [value]
        texts: Any = {"texts": [text]} if signal == "zlib" else {}
        losses = [[*(-one for one in values), math.nan]]
        assert token_scores(losses, **chosen, **texts).values.tolist() == [value]
    assert scored(tmp_path, "vllm", line, signal="min_k", k=1.0).values.tolist() == [-3.0]
    assert scored(tmp_path, "vllm", line, signal="min_k", k=100.0).values[0] == -6.875 / 6


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (vllm(None, {"5": {"logprob": -1.0}}, {"7": -2.0}, -3.0), -2.0),
        (vllm({"5": {"logprob": -4.0}}), -4.0),  # a first token with a log-probability
        (vllm(None, {"5": {"logprob": -math.inf}}), -math.inf),
        ({"id": "a", "response": {"choices": [{"prompt_logprobs": [None, -1.0]}]}}, -1.0),
        (
            {
                "custom_id": "a",
                "id": "b",
                "response": {"status_code": 200, "body": {"prompt_logprobs": [None, -1.0]}},
                "error": None,
            },
            -1.0,
        ),
        # Candidates beside the prompt's token, which comes first, or is told by its id.
        (
            vllm(None, {"9": {"logprob": -4.0, "rank": 3}, "1": {"logprob": -0.1, "rank": 1}}),
            -4.0,
        ),
        (
            vllm(
                None,
                {"1": {"logprob": -0.1, "rank": 1}, "9": {"logprob": -4.0, "rank": 3}},
                prompt_token_ids=[0, 9],
            ),
            -4.0,
        ),
    ],
)
def test_forms_of_vllm(tmp_path: Path, line: Any, value: float) -> None:
    found = scored(tmp_path, "vllm", line)
    assert (found.values.tolist(), found.ids.tolist()) == ([value], ["a"])


def test_generated_tokens_of_completions_do_not_count(tmp_path: Path) -> None:
    for line in (
        openai(["a", "b", "c"], [None, -1.0, -3.0]),
        openai(["a", "b", "c", "d"], [None, -1.0, -3.0, -9.0], made=1),
        # With max_tokens=0 vLLM counts a token that it does not return.
        openai(["a", "b", "c"], [None, -1.0, -3.0])
        | {"usage": {"prompt_tokens": 3, "completion_tokens": 1}},
    ):
        assert scored(tmp_path, "openai", line).values.tolist() == [-2.0]


def test_the_harness_counts_bytes_and_the_right_answer(tmp_path: Path) -> None:
    answers = logged_scores(LOGS / "lm-eval-answers-model.jsonl", "lm-eval", "sum")
    first = lines("lm-eval")[0]
    assert answers.ids[0] == first["doc"]["id"]
    byte = logged_scores(log("lm-eval"), "lm-eval").values[0]
    value, size = first["bits_per_byte"]
    assert byte == value / size
    choice = {
        "doc_id": 3,
        "target": "1",
        "arguments": {f"gen_args_{n}": {"arg_0": "Q", "arg_1": "ab"} for n in range(2)},
        "resps": [[["-5.0", "False"]], [["-3.0", "True"]]],
    }
    found = scored(tmp_path, "lm-eval", choice)
    assert (found.values.tolist(), found.ids.tolist()) == ([-1.5], ["3"])
    older = {"doc_id": 3, "arguments": [["Q", "ab"]], "resps": [[[-3.0, True]]], "target": "x"}
    assert scored(tmp_path, "lm-eval", older).values.tolist() == [-1.5]


def test_packed_files_and_several_are_one_log(tmp_path: Path) -> None:
    whole = logged_scores(log("vllm"), "vllm")
    rows = log("vllm").read_bytes().splitlines(keepends=True)
    (tmp_path / "one.jsonl.gz").write_bytes(gzip.compress(b"\n" + b"".join(rows[:20])))
    (tmp_path / "two.jsonl").write_bytes(b"\xef\xbb\xbf" + b"".join(rows[20:]).rstrip(b"\n"))
    parts = [tmp_path / "one.jsonl.gz", tmp_path / "two.jsonl"]
    np.testing.assert_array_equal(logged_scores(parts, "vllm").values, whole.values)


def test_fields_are_kept(tmp_path: Path) -> None:
    rows = [vllm(None, -1.0, id=row, member=row % 2, site="x") for row in range(4)]
    found = scored(tmp_path, "vllm", *rows, keep=["site", "member"])
    assert {name: one.tolist() for name, one in found.kept.items()} == {
        "site": ["x"] * 4,
        "member": [0, 1, 0, 1],
    }
    assert scored(tmp_path, "vllm", *rows, keep=[]).kept == {}


# What is refused.


def changed(source: LogSource, change: Callable[[dict[str, Any]], Any]) -> list[Any]:
    rows = lines(source)[:3]
    return [rows[0], change(rows[1]) or rows[1], rows[2]]


@pytest.mark.parametrize("row", [None, 3, "text", [1]])
@pytest.mark.parametrize("source", SOURCES)
def test_lines_must_be_objects(tmp_path: Path, source: LogSource, row: Any) -> None:
    said = refusal(tmp_path, source, lines(source)[0], row)
    assert "log.jsonl, line 2: it must be an object" in said


REFUSED: list[tuple[LogSource, Any, str]] = [
    ("vllm", {"prompt_logprobs": [None, -1.0]}, "it has no id: write {"),
    ("vllm", vllm(None, -1.0, id=True), "id must be a number or word, got True"),
    ("vllm", vllm(None, -1.0, id=" "), "id must be a number or word"),
    ("vllm", vllm(None, -1.0, id="\ud800"), "id must be a number or word"),
    ("vllm", {"id": "a", "text": "hello"}, "it has no prompt_logprobs: request them"),
    ("vllm", vllm(None, None), "prompt_logprobs[1] must be a number, got None"),
    ("vllm", vllm(None), "no token has a log-probability (1 in total)"),
    ("vllm", vllm(), "no token has a log-probability (0 in total)"),
    ("vllm", vllm(None, math.nan), "must be a number, got nan"),
    ("vllm", vllm(None, {}), "prompt_logprobs[1] is empty"),
    ("vllm", vllm(None, {"3": {"logprob": 0.9}}), "log-probabilities are at most 0"),
    ("vllm", vllm(None, -1.0, prompt_token_ids=[1]), "1 prompt_token_ids and 2 prompt_logprobs"),
    ("vllm", vllm(None, {"3": -1.0}, prompt_token_ids=[1, 2]), "lists no token 2"),
    ("vllm", vllm(None, {"3": -1.0, "4": -2.0}), "cannot be told which is the prompt's"),
    (
        "vllm",
        vllm(None, {"1": {"logprob": -0.1, "rank": 1}, "9": {"logprob": -4.0, "rank": 3}}),
        "cannot be told which is the prompt's",
    ),
    ("vllm", {"id": "a", "response": None, "error": {"code": 1}}, "the server answered {'code'"),
    ("vllm", {"id": "a", "choices": [{}, {}]}, "has 2 choices: send one prompt in each request"),
    ("vllm", {"id": "a", "choices": 3}, "choices must be a list of objects"),
    ("openai", {"id": "a", "choices": [{"logprobs": None}]}, "echo=true and logprobs=0"),
    ("openai", {"id": "a", "choices": [{"logprobs": {"content": []}}]}, "the answer of a chat"),
    ("openai", openai(["a"], [None, -1.0]), "it has 1 tokens and 2 token_logprobs"),
    ("openai", openai(["a", 3], [None, -1.0]), "tokens must hold text, got 3"),
    ("openai", openai(["a", "b"], [None, -1.0], usage=None), "it has no usage.prompt_tokens"),
    ("openai", openai(["a"], [-1.0], usage={"prompt_tokens": True}), "no usage.prompt_tokens"),
    (
        "openai",
        openai(["a"], [-1.0], usage={"prompt_tokens": 9, "completion_tokens": 1}),
        "for a prompt of 9 and 1 generated ones: request echo=true",
    ),
    (
        "openai",
        openai(["a"], [-1.0], usage={"prompt_tokens": 1, "completion_tokens": 1}),
        "request echo=true",
    ),
    ("lm-eval", {"doc_id": 1}, "it has no resps: give files samples_*.jsonl"),
    ("lm-eval", {"doc_id": 1, "resps": [["a text"]]}, "resps must hold log-likelihoods"),
    ("lm-eval", {"doc_id": 1, "resps": [["-1"], ["-2"]], "target": "A"}, "does not say which"),
    ("lm-eval", {"doc_id": 1, "resps": [["-1"], ["-2"]], "target": 1e999}, "does not say which"),
    ("lm-eval", {"doc_id": 1, "resps": [["-1"]]}, "arguments must be a list"),
    ("lm-eval", {"doc_id": 1, "resps": [["-1"]], "arguments": [[3]]}, "must be texts, got [3]"),
    ("lm-eval", {"resps": [["-1"]], "arguments": [["a"]]}, "doc_id must be a number or word"),
]


@pytest.mark.parametrize(("source", "line", "said"), REFUSED, ids=lambda one: str(one)[:40])
def test_what_is_wrong_with_a_line_is_said(
    tmp_path: Path, source: LogSource, line: Any, said: str
) -> None:
    found = refusal(tmp_path, source, lines(source)[0], line)
    assert found.startswith(f"{tmp_path / 'log.jsonl'}, line 2: ")
    assert said in found


def test_ids_and_fields_are_compared_between_lines(tmp_path: Path) -> None:
    one, two = (vllm(None, -1.0, id=name) for name in "ab")
    again = refusal(tmp_path, "vllm", one, two, vllm(None, -3.0))
    assert "line 3: the id a is also in" in again
    assert again.endswith("log.jsonl, line 1: log each text once, under its own id")
    inside = one | {"member": True}
    for rows, said in (
        ((inside, two), "line 2: it has no member: give it in each line"),
        ((two, inside), "line 2: it has member, and"),
        ((inside, two | {"member": 1}), "line 2: member is 1, and of another type in"),
        ((inside, two | {"member": [1]}), "line 2: member must be a number, a word or"),
        ((one | {"member": 2**70},), "line 1: member must be a number, a word or"),
    ):
        assert said in refusal(tmp_path, "vllm", *rows)
    assert "has no site" in refusal(tmp_path, "vllm", one, keep=["site"])


def test_the_base_model_must_have_the_same_texts_and_tokens(tmp_path: Path) -> None:
    base = tmp_path / "base.jsonl"

    def against(model: Any, before: Any, **options: Any) -> LoggedScores:
        return scored(tmp_path, "openai", model, reference=write(base, before), **options)

    model = openai(["<s>", "ab", "c"], [None, -1.0, -2.0])
    split = openai(["<s>", "a", "b", "c"], [None, -1.0, -2.0, -3.0])
    with pytest.raises(
        FormatError, match=r"log.jsonl, line 1: it has other tokens than .*base.jso"
    ):
        against(model, split)
    with pytest.raises(FormatError, match="use the signal sum or zlib, or a base model with the"):
        against(model, split, signal="min_k")
    assert against(model, split, signal="sum").values.tolist() == [3.0]
    # Without a token of the beginning, sums are of different parts of the text.
    bare = openai(["ab", "c"], [None, -2.0])
    with pytest.raises(FormatError, match=r"do not score the same part .* \(BOS\)"):
        against(bare, openai(["a", "b", "c"], [None, -2.0, -3.0]), signal="sum")
    with pytest.raises(FormatError, match="the id a is not in the log of the base model, whose fi"):
        against(model, model | {"id": "b"})
    nothing = openai(["a", "b"], [None, -math.inf])
    with pytest.raises(FormatError, match=r"probability 0 here and in .*base.jsonl, line 1"):
        against(nothing, nothing)
    twice = write(base, model, model)
    with pytest.raises(FormatError, match=r"base.jsonl, line 2: the id a is also in"):
        scored(tmp_path, "openai", model, reference=twice)
    other = lines("lm-eval")[1] | {"doc": {"id": "doc-00"}}
    write(base, other)
    with pytest.raises(FormatError, match=r"another text than .*: log the same texts"):
        scored(tmp_path, "lm-eval", lines("lm-eval")[0], reference=base)


def test_logs_with_and_without_ids_of_tokens_are_compared(tmp_path: Path) -> None:
    entry = {"9": {"logprob": -4.0, "rank": 3, "decoded_token": "a"}}
    named = vllm(None, entry, prompt_token_ids=[0, 9])
    base = write(tmp_path / "base.jsonl", vllm(None, entry))
    assert scored(tmp_path, "vllm", named, reference=base).values.tolist() == [0.0]
    other = vllm(None, {"8": {"logprob": -1.0, "decoded_token": "a"}})
    assert "it has other tokens than" in refusal(tmp_path, "vllm", other, reference=base)
    found = scored(tmp_path, "vllm", other, signal="sum", reference=base)
    assert found.values.tolist() == [3.0]


def test_tokens_written_as_ids_are_no_text(tmp_path: Path) -> None:
    line = openai(["token_id:3", "token_id:5"], [None, -1.0])
    assert scored(tmp_path, "openai", line).values.tolist() == [-1.0]
    assert "zlib packs the text" in refusal(tmp_path, "openai", line, signal="zlib")
    base = write(tmp_path / "base.jsonl", openai(["token_id:3", "token_id:6"], [None, -1.0]))
    assert "keep the texts of tokens" in refusal(
        tmp_path, "openai", line, signal="sum", reference=base
    )


def test_options_are_refused(tmp_path: Path) -> None:
    path = log("lm-eval")
    chosen: list[tuple[Any, dict[str, Any], str]] = [
        ("tgi", {}, "source must be"),
        ("lm-eval", {"signal": "median"}, "signal must be"),
        ("lm-eval", {"signal": "min_k"}, "min_k needs a log-probability for each token"),
        ("vllm", {"k": 0}, "k must be"),
        ("vllm", {"k": 101}, "k must be"),
    ]
    for source, options, said in chosen:
        with pytest.raises(LeakboundError, match=said):
            logged_scores(path, source, **options)
    with pytest.raises(OptionError, match="files is empty"):
        logged_scores([], "vllm")
    assert "zlib packs the text" in refusal(tmp_path, "vllm", vllm(None, -1.0), signal="zlib")
    assert "has no lines" in refusal(tmp_path, "vllm")


@pytest.mark.parametrize(
    ("losses", "options", "kind", "said"),
    [
        ([[1.0, 2.0], [math.nan, math.nan]], {}, InputError, "has no number in row 1"),
        ([[1.0, -2.0]], {}, InputError, "losses must be at least 0, got -2 in row 0, column 1"),
        ([1.0, 2.0], {}, InputError, "a row for each text"),
        ([["a"]], {}, InputError, "a table of numbers"),
        ([[1.0]], {"signal": "zlib"}, OptionError, "pass texts="),
        ([[1.0]], {"texts": ["a"]}, OptionError, "mean reads no texts"),
        ([[1.0]], {"signal": "zlib", "texts": []}, InputError, "0 texts and 1 rows"),
        ([[1.0]], {"signal": "zlib", "texts": [3]}, InputError, "must hold text"),
        ([[1.0, 2.0]], {"reference": [[1.0, math.nan]]}, InputError, "of the same tokens"),
        ([[1.0]], {"k": "ten"}, InputTypeError, "k must be"),
    ],
)
def test_token_scores_refuse(losses: Any, options: Any, kind: Any, said: str) -> None:
    with pytest.raises(kind, match=said):
        token_scores(losses, **options)
    table = np.array([[1.0, 2.0, np.nan], [0.5, 0.5, 3.5]])
    found = token_scores(table, reference=table + 1, ids=["x", "y"])
    assert (found.values.tolist(), found.ids.tolist()) == ([1.0, 1.0], ["x", "y"])


# Files that are cut, damaged, or bombs.


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("source", SOURCES)
def test_files_cut_at_every_byte_are_read_or_refused_with_their_line(
    tmp_path: Path, source: LogSource, *, packed: bool
) -> None:
    rows = [json.dumps(row) for row in lines(source)[:2]]
    if source != "lm-eval":
        rows = [json.dumps(row) for row in short(source)]
    content = "\n".join(rows).encode() + b"\n"
    name = tmp_path / "log.jsonl"
    if packed:
        content = gzip.compress(content)
        name = tmp_path / "log.jsonl.gz"
    whole = len(rows[0]) + 1
    read = 0
    for end in range(len(content)):
        name.write_bytes(content[:end])
        found, said = tried(partial(logged_scores, name, source))
        if found is None:
            assert said.startswith(f"{name}"), said
            assert end == 0 or ", line " in said or "has no lines" in said, said
            continue
        read += 1
        assert len(found) in {1, 2}
        assert packed or end >= whole - 1
    assert read <= 4  # whole lines only: one, with and without its end, and both without the last


def tried(call: Callable[[], LoggedScores]) -> tuple[LoggedScores | None, str]:
    """Return scores, or why there are none: no other error may be raised."""
    try:
        return call(), ""
    except FormatError as error:
        return None, str(error)


def short(source: LogSource) -> list[dict[str, Any]]:
    """Return two lines with few tokens."""
    if source == "vllm":
        entry = {"7": {"logprob": -2.5, "rank": 2, "decoded_token": " a"}}
        body = {"choices": [{"prompt_logprobs": [None, entry], "prompt_token_ids": [1, 7]}]}
        return [{"id": name, "member": True, "response": body} for name in "ab"]
    return [openai(["a", "b", "c"], [None, -1.0, -2.0], made=1, id=name) for name in "ab"]


WRONG: list[Any] = [
    None,
    True,
    0,
    -1,
    10**400,
    1e999,
    -1e999,
    math.nan,
    "",
    "x",
    "\ud800",
    [],
    [[]],
    {},
    {"": 1},
]


@pytest.mark.parametrize("source", SOURCES)
def test_wrong_types_in_every_field_are_read_or_refused_with_their_line(
    tmp_path: Path, source: LogSource
) -> None:
    first, line = lines(source)[:2]
    if source != "lm-eval":
        first, line = short(source)
    refused = 0
    for where in places(line):
        for value in WRONG:
            rows = (first, replaced(line, where, value))
            found, said = tried(partial(scored, tmp_path, source, *rows))
            if found is None:
                assert ", line 2: " in said, (where, value, said)
                refused += 1
    assert refused > 100


def places(value: Any) -> list[tuple[Any, ...]]:
    """Return the path of every value within another."""
    found: list[tuple[Any, ...]] = []
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for name, one in inside:
        found.append((name,))
        if isinstance(one, dict | list):
            found += [(name, *rest) for rest in places(one)]
    return found


def replaced(line: Any, where: tuple[Any, ...], value: Any) -> Any:
    made = deepcopy(line)
    inner = made
    for name in where[:-1]:
        inner = inner[name]
    inner[where[-1]] = value
    return made


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    good = json.dumps(vllm(None, -1.0)).encode() + b"\n"
    packed = bytearray(gzip.compress(good))
    packed[-6] ^= 255
    cases = {
        "cut.jsonl": (good + good[:-9], "line 2: it is not JSON (.*): the file is cut short here"),
        "bad.jsonl": (b"{'id': 3}\n" + good, "line 1: it is not JSON .*: repair or remove this"),
        "utf16.jsonl": ("{}".encode("utf-16"), "line 1: the file is UTF-16: write UTF-8"),
        "latin.jsonl": (b'{"id": "\xe9"}\n', "line 1: it is not UTF-8"),
        "deep.jsonl": (b"[" * 100_000 + b"\n", "line 1: it is not JSON"),
        "digits.jsonl": (b'{"id": ' + b"9" * 5000 + b"}\n", "line 1: it is not JSON"),
        "list.jsonl": (b"[" + good.strip() + b"]", "line 1: it must be an object"),
        "x.jsonl.gz": (bytes(packed), "line 2: its compressed data are damaged or cut short"),
        "plain.jsonl.gz": (good, "line 1: its compressed data are damaged"),
    }
    for name, (content, said) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(FormatError, match=said):
            logged_scores(path, "vllm")


def test_a_small_file_must_not_unpack_to_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as one line nor as many."""
    monkeypatch.setattr("leakbound._base.files._SMALL", 1 << 20)
    monkeypatch.setattr("leakbound.attacks.logs._MOST_LINE_BYTES", 1 << 16)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "' + b"a" * (1 << 24)))
    with pytest.raises(FormatError, match="line 1: it has more than 65,536 bytes"):
        logged_scores(path, "vllm")
    path.write_bytes(gzip.compress((b" " * 1000 + b"\n") * 30_000))
    with pytest.raises(FormatError, match=r"line \d+: it unpacks from .* say how many rows"):
        logged_scores(path, "vllm")
    with pytest.raises(FormatError, match="it has more than 100 rows"):
        logged_scores(path, "vllm", most_rows=100)


def test_logs_are_read_line_by_line(tmp_path: Path) -> None:
    """Memory holds ids and scores, not the texts and tokens of a log of 17 MB."""
    filling = [{"5": {"logprob": -1.5, "rank": 1, "decoded_token": "abc"}}] * 300
    path = tmp_path / "log.jsonl"
    with path.open("w") as file:
        for row in range(1000):
            file.write(json.dumps(vllm(None, *filling, id=row)) + "\n")
    assert path.stat().st_size > 15_000_000
    peak = peak_over_start(lambda: logged_scores(path, "vllm", reference=path))
    assert peak < 8_000_000
