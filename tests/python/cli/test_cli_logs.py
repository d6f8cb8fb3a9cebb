"""`leakbound score --from`: logs of served language models, in shards that audits read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import leakbound as lb
from command_line import leakbound
from leakbound.attacks import logged_scores

LOGS = Path(__file__).parents[2] / "golden" / "logs"
SOURCES = {"vllm": "vllm", "openai": "openai", "lm-eval": "lm-eval-rolling"}


def shards(out: Path) -> pa.Table:
    return pa.concat_tables([parquet.read_table(path) for path in sorted(out.glob("*.parquet"))])


@pytest.mark.parametrize("source", SOURCES)
def test_logs_become_shards_that_audits_read(source: Any, tmp_path: Path) -> None:
    name = SOURCES[source]
    model, base = (LOGS / f"{name}-{stage}.jsonl" for stage in ("model", "base"))
    out = tmp_path / "out"
    chosen = ("--from", source, model, "--reference", base, "--shard-rows", "20")
    answer = leakbound("score", *chosen, "--out", out)
    assert answer.code == 0, answer.err
    assert answer.out == f"{out}: 48 scores in 3 shards\n"
    note = "note: the first token of 48 of 48 texts has no log-probability"
    assert (note in answer.err) == (source != "lm-eval")
    expected = logged_scores(model, source, reference=base)
    table = shards(out)
    np.testing.assert_array_equal(table["score"].to_numpy(), expected.values)
    assert table["id"].to_pylist() == expected.ids.tolist()
    assert table["member"].to_pylist() == expected.kept["member"].tolist()
    if expected.n_tokens is None:
        assert "n_tokens" not in table.column_names
    else:
        assert table["n_tokens"].to_pylist() == expected.n_tokens.tolist()
    result = json.loads(leakbound("coins", out, "--json-full").out)
    tally = lb.Tally.of(expected.values, expected.kept["member"])
    assert result["bound"] == lb.audit(tally, lb.Coins()).bound > 0.5
    split = leakbound("split", out, "--untouched", "--seed", "1", "--json-full")
    assert split.code == 0
    (out / "00000-00001.parquet").unlink()
    assert "has 2 of 3 shards" in leakbound("coins", out).refusal
    again = leakbound("score", *chosen, "--out", out)
    assert "is not empty: choose an empty or new folder" in again.refusal


def test_scores_without_membership_are_joined_with_a_plan(tmp_path: Path) -> None:
    plan = lb.InclusionPlan.create(200, seed=3)
    lines = [
        json.dumps({"custom_id": str(name), "prompt_logprobs": [None, -2.0 + inside + 1e-3 * row]})
        for row, (name, inside) in enumerate(zip(plan.ids, plan.member.tolist(), strict=True))
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(lines))
    plan.save(tmp_path / "plan.npz")
    shifted = log.read_text().replace("-2.", "-3.")
    log.write_text(shifted)
    out = tmp_path / "out"
    answer = leakbound("score", "--from", "vllm", log, "--out", out)
    assert "note: the logs have no field member" in answer.err
    shard = out / "00000-00000.parquet"
    audited = leakbound("coins", shard, "--plan", tmp_path / "plan.npz", "--json-full")
    assert audited.code == 0, audited.err
    assert json.loads(audited.out)["bound"] > 3


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    log = LOGS / "vllm-model.jsonl"
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    out = ("--out", tmp_path / "out")
    told: list[tuple[tuple[Any, ...], str]] = [
        ((tmp_path / "model", log, "--from", "vllm"), "are logs, and there is no MODEL"),
        (("gpt2", log, "--from", "vllm"), "gpt2 does not exist: with --from all arguments are"),
        ((log, "--from", "vllm", "--device", "cpu"), "--device does not go with --from"),
        ((log, "--from", "vllm", "--sep", ";"), "--sep"),
        ((log, "--from", "vllm", "--inputs", "text"), "--inputs does not go with --from"),
        ((log, "--from", "vllm", "--signal", "loss_drop"), "of logs there are mean, sum, min_k"),
        ((log, "--from", "vllm", "--k", "0"), "--k must be"),
        ((log, "--from", "vllm", "--keep", "site"), "it has no site"),
        ((log, "--from", "openai"), "vllm-model.jsonl, line 1: it has no choices[0].logprobs"),
        ((log, "--from", "tgi"), "'tgi' is not one of"),
        ((log,), "DATA is missing: leakbound score MODEL DATA"),
        ((tmp_path / "model", log, "--signal", "mean"), "--signal mean is for logs"),
        ((tmp_path / "model" / "config.json", "--from", "vllm"), "all arguments are .jsonl"),
    ]
    for given, said in told:
        assert said in " ".join(leakbound("score", *given, *out).err.split()), given
        assert not (tmp_path / "out").exists()


def test_a_log_that_is_cut_short_leaves_nothing_behind(tmp_path: Path) -> None:
    content = (LOGS / "vllm-model.jsonl").read_bytes()
    log = tmp_path / "log.jsonl"
    log.write_bytes(content[: len(content) // 2])
    answer = leakbound("score", "--from", "vllm", log, "--shard-rows", "5", "--out", tmp_path / "o")
    assert "log.jsonl, line 2" in answer.refusal
    assert "the file is cut short here" in answer.refusal
    assert [one.name for one in tmp_path.iterdir()] == ["log.jsonl"]
