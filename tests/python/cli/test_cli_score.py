"""Scoring as a job: shards by the command, kills, bad input; and the scorer that engines map."""

import json
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
import transformers as hf
from pyarrow import csv, parquet
from tokenizers import Tokenizer, models, pre_tokenizers

import leakbound as lb
from command_line import leakbound
from leakbound.errors import InputError, InputTypeError
from leakbound.torch import Scorer, score
from leakbound.torch.loading import quiet
from scored import network

torch.set_num_threads(1)
RNG = np.random.default_rng(0)
M = 120
TEXTS = ["".join(RNG.choice([*"abcdefgh "], size)) for size in RNG.integers(2, 80, M)]
FEATURES = RNG.normal(size=(M, 6)).astype(np.float32)
TABLE = pa.table(
    {
        "id": [f"d{row}" for row in range(M)],
        "text": TEXTS,
        "label": RNG.integers(0, 3, M),
        "member": RNG.random(M) < 0.5,
        "tokens": [list(map(ord, text)) for text in TEXTS],
        "features": FEATURES.tolist(),
        "pixels": RNG.normal(size=(M, 3, 8, 8)).tolist(),
        **{f"x{column}": FEATURES[:, column] for column in range(6)},
    }
)
KILLED = """
import os, sys
from pathlib import Path
from pyarrow import parquet
import torch
from leakbound.cli import main
write, calls = parquet.write_table, []
*arguments, signals = sys.argv
def killed(signal):
    def dies(table, file):
        calls.append(file)
        if len(calls) == 3:
            file.write(b"half")
            os.kill(os.getpid(), signal)
        write(table, file)
    parquet.write_table, sys.argv = dies, arguments
    main()
for signal in map(int, signals.split()):
    child = os.fork()
    if not child:
        killed(signal)
    _, status = os.waitpid(child, 0)
    shards = len(list(Path(arguments[-1]).glob("*.parquet")))
    print(os.waitstatus_to_exitcode(status), shards, flush=True)
"""
"""Runs of the program, each of which a signal ends while it writes its third shard.

Each is a process, which starts from one that has imported all that takes seconds.
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of transformers with random weights and a byte a token, and what they score."""
    place = tmp_path_factory.mktemp("scored")
    torch.manual_seed(0)
    rules = Tokenizer(models.BPE({chr(one): one for one in range(128)} | {"<end>": 128}, []))
    rules.pre_tokenizer = pre_tokenizers.Split(" ", "isolated")
    words = hf.PreTrainedTokenizerFast(tokenizer_object=rules, eos_token="<end>")
    small: Any = {"vocab_size": 129, "bos_token_id": 128, "eos_token_id": 128, "num_labels": 3}
    gpt = hf.GPT2Config(n_positions=64, n_embd=16, n_layer=2, n_head=2, **small)
    layers: Any = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    with quiet():
        for name, model in {
            "language": hf.GPT2LMHeadModel(gpt),
            "texts": hf.GPT2ForSequenceClassification(gpt),
            "images": hf.ViTForImageClassification(
                hf.ViTConfig(image_size=8, patch_size=4, num_labels=3, **layers)
            ),
            "masked": hf.BertForMaskedLM(hf.BertConfig(intermediate_size=16, **layers)),
        }.items():
            model.save_pretrained(place / name)
            words.save_pretrained(place / name)
    shutil.copytree(place / "texts", place / "headless")
    shutil.copy(place / "language" / "model.safetensors", place / "headless")
    parquet.write_table(TABLE, place / "all.parquet", row_group_size=40)
    for name, content in {
        "none": "id,text",
        "columns": "id,words\na,hello",
        "twice": "id,text\na,hello\nb,hello\na,hello",
        "short": "id,text\na,hello\nb,h",
        "label": "id,text,label\na,hello,0\nb,hello,3",
        "cat": "id,text,label\na,hello,cat",
    }.items():
        (place / f"{name}.csv").write_text(content + "\n")
    return place


def shards(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.parquet"))}


def scored(model: object, data: Path, out: Path, *options: object) -> pa.Table:
    answer = leakbound("score", model, data, "--device", "cpu", *options, "--out", out)
    assert answer.code == 0, answer.err
    return pa.concat_tables([parquet.read_table(out / name) for name in shards(out)])


def test_killed_twice_it_goes_on_to_the_shards_of_an_uninterrupted_run(
    folder: Path, tmp_path: Path
) -> None:
    """By a network alone, as a process takes seconds to import what language models need."""
    whole, out = tmp_path / "whole", tmp_path / "killed"
    command = ["score", "scored:network", str(folder / "all.parquet"), "--device", "cpu"]
    command += ["--inputs", "features", "--keep", "member", "--shard-rows", "16", "--out"]
    assert leakbound(*command, whole).out == f"{whole}: 120 scores in 8 shards\n"
    program = [sys.executable, "-c", KILLED, *command, str(out), "9 9 2"]
    beside = Path(network.__code__.co_filename).parent
    died = subprocess.run(program, check=True, capture_output=True, text=True, cwd=beside)
    assert died.stdout == "-9 2\n-9 4\n130 6\n"
    assert "run the same command again to go on\nleakbound: interrupted\n" in died.stderr
    kept = {path: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert leakbound(*command, out).code == 0
    assert shards(out) == shards(whole)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_shards_are_what_the_next_command_reads(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = scored(folder / "language", folder / "all.parquet", out, "--shard-rows", 16)
    assert (found["id"], found["member"]) == (TABLE["id"], TABLE["member"])
    assert found["n_tokens"].to_pylist() == [min(len(text), 64) for text in TEXTS]
    told = json.loads(leakbound("coins", out, "--json-full").out)
    assert told["bound"] == lb.audit(lb.Tally.of(found["score"], TABLE["member"]), lb.Coins()).bound


def test_a_score_is_that_of_the_example_by_itself(folder: Path, tmp_path: Path) -> None:
    with quiet():
        model = hf.GPT2LMHeadModel.from_pretrained(folder / "language")
    alone = [
        score(model, torch.tensor([tokens[:64]]), signal="cross_entropy", device="cpu").values[0]
        for tokens in TABLE["tokens"].to_pylist()
    ]
    for options in ((), ("--inputs", "tokens"), ("--batch-size", 7, "--shard-rows", 11)):
        out = tmp_path / str(len(options))
        found = scored(folder / "language", folder / "all.parquet", out, *options)
        np.testing.assert_allclose(found["score"], alone, rtol=0, atol=2e-6)


def test_texts_of_one_part_that_were_cut_withhold_the_bound(folder: Path, tmp_path: Path) -> None:
    """Training texts have 20 tokens at most: the number of tokens, which was written, tells."""
    member = TABLE["member"].to_pylist()
    texts = [text[:20] if inside else text for text, inside in zip(TEXTS, member, strict=True)]
    parquet.write_table(
        TABLE.select(["id", "member"]).append_column("text", [texts]), tmp_path / "t.parquet"
    )
    scored(folder / "language", tmp_path / "t.parquet", tmp_path / "out")
    answer = leakbound(
        "split", tmp_path / "out" / "00000-00000.parquet", "--untouched", "--json-full"
    )
    assert lb.AuditResult.from_json(answer.out).is_withheld


def test_text_files_arrays_and_images(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "csv").mkdir()
    columns = TABLE.drop(["member", "tokens", "features", "pixels"])
    csv.write_csv(columns[:50], tmp_path / "csv" / "a.csv")
    lines = [json.dumps(row) + "\n" for row in columns[50:].to_pylist()]
    (tmp_path / "csv" / "b.jsonl").write_text("".join(lines))
    data, written = folder / "all.parquet", tmp_path / "csv"
    expected = scored(folder / "texts", data, tmp_path / "0", "--shard-rows", 50)
    np.testing.assert_allclose(
        scored(folder / "texts", written, tmp_path / "1")["score"], expected["score"], atol=2e-6
    )
    pair = torch.tensor(FEATURES), torch.tensor(TABLE["label"].to_pylist())
    plain = score(network(), pair, device="cpu").values
    several = ("--inputs", ",".join(f"x{column}" for column in range(6)))
    for place, options in ((data, ()), (written, several)):
        found = scored("scored:network", place, tmp_path / f"of {place.name}", *options)
        np.testing.assert_allclose(found["score"], plain, rtol=1e-5)
    images = scored(
        folder / "images", data, tmp_path / "2", "--inputs", "pixels", "--keep", "label"
    )
    assert (images["label"], len(images.columns)) == (TABLE["label"], 3)


def test_the_scorer_is_what_engines_map(folder: Path) -> None:
    scorer = Scorer(str(folder / "language"), keep=("member",), device="cpu")
    scorer = pickle.loads(pickle.dumps(scorer))
    (batch,) = TABLE.combine_chunks().to_batches()
    parts = [scorer(batch[start : start + 50]) for start in (0, 50, 100, 150)]
    whole, found = scorer(TABLE), pa.Table.from_batches(parts)
    assert (found.schema, [len(part) for part in parts]) == (whole.schema, [50, 50, 20, 0])
    np.testing.assert_allclose(found["score"], whole["score"], atol=2e-6)
    drop = Scorer(scorer.model, signal="loss_drop", reference=scorer.model, device="cpu")
    assert not drop(TABLE)["score"].to_numpy().any()
    # What a model draws is the same in every run, and nobody else's draws change.
    noisy, state = Scorer("scored:noisy", inputs=("pixels",), device="cpu"), torch.get_rng_state()
    assert noisy(TABLE) == noisy(TABLE)
    assert torch.equal(torch.get_rng_state(), state)
    for name, error, words in (
        ("tokens", InputError, "lists of one length"),
        ("features", InputError, r"cannot take inputs of float64 and shape \(32, 6\): IndexError"),
        ("text", InputTypeError, "numbers, or lists of numbers, got string"),
    ):
        with pytest.raises(error, match=words):
            noisy(TABLE.drop(["pixels"]).append_column("pixels", TABLE[name]))


REFUSED = {
    "nowhere all.parquet": "model 'nowhere' cannot be loaded: give a folder, the name of a cached",
    "no.such:name all.parquet": "cannot be loaded: .* ModuleNotFoundError: No module named 'no'",
    "os:getcwd all.parquet": "what os:getcwd returns must be one of Module",
    "masked all.parquet": "is BertForMaskedLM: scoring needs one of ForCausalLM, LMHeadModel",
    "headless all.parquet": "lacks weights, such as score.weight",
    "language all.parquet --signal loss_drop": "compares with a base model: pass --reference",
    "language all.parquet --signal logit_margin": "shard 00000-00000.parquet: the model must ret",
    "language all.parquet --inputs member": "must hold texts, or lists of tokens, got bool",
    "language all.parquet --keep score": "a column can have only one role",
    "language none.csv": "none.csv has no rows below its header: add one row",
    "language columns.csv": "has no column 'text'; its columns are 'id', 'words'",
    "language twice.csv": "twice.csv: 1 ids occur more than once, the first being a at rows 0, 2",
    "language short.csv": "short.csv, shard 00000-00000.parquet: 'text' of id b .row 1. has too",
    "language -": "DATA must be one of .csv, .jsonl, .ndjson, .parquet, .tsv, and no pipe",
    "texts label.csv": "target 3 at id b .row 1. is outside 0 … 2, the classes",
    "texts cat.csv": "cat.csv: column 'label' must be a number",
    "scored:centring all.parquet --inputs pixels": "depends on the other examples of its batch",
    "scored:diverged all.parquet": "shard 00000-00000.parquet: logit_margin is NaN .* d0 .row 0.",
}


@pytest.mark.parametrize("words", REFUSED)
def test_bad_input_is_refused(
    words: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    answer = leakbound("score", *words.split(), "--device", "cpu", "--out", tmp_path / "out")
    assert re.search(REFUSED[words], answer.refusal), answer.err
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_folder_of_another_job_is_refused(folder: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "data.parquet", tmp_path / "out"
    given: list[object] = ["score", "language", data, "--device", "cpu", "--out", out]

    def again(model: str = "language", *options: object) -> str:
        given[1] = folder / model
        return leakbound(*given, "--shard-rows", 50, *options).refusal

    texts = TABLE.select(["id", "text", "label"])
    parquet.write_table(texts, data)
    before = scored(folder / "language", data, out, "--shard-rows", 50) and shards(out)
    assert "are from another model and another signal; choose another folder" in again("texts")
    for name, value in (("--max-length", 9), ("--shard-rows", 60), ("--batch-size", 8)):
        assert f"are from another {name};" in again("language", name, value)
    # A row that changed is found, and only its shard is scored again.
    parquet.write_table(texts.set_column(1, "text", pa.array(["ab", *TEXTS[1:]])), data)
    assert "was scored from other rows than" in again()
    (out / "00000-00000.parquet").unlink()
    scored(folder / "language", data, out, "--shard-rows", 50)
    assert {one for one, found in shards(out).items() if found != before[one]} == {
        "00000-00000.parquet"
    }
    (out / "00000-00001.parquet").write_bytes(b"damaged")
    assert "00000-00001.parquet is damaged, or" in again()
    (out / "tally.parquet").touch()
    assert "tally.parquet is not a shard of these data" in again()
    (out / "made-of.json").unlink()
    assert "has 00000-00000.parquet but no record of its inputs" in again()


def test_the_command_loads_torch_only_to_score() -> None:
    code = "import sys, leakbound, leakbound.cli.score; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
