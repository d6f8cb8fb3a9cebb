"""Record logs of a language model for tests/golden/logs.

pip install --group record -e ".[hf,io]"
python tests/golden/generate/logs.py

A tiny GPT-2 with a tokenizer of its own is trained on sentences that other records have, and then
on the members: base and model. lm-evaluation-harness scores both on a task of its own, and its
files are kept as it writes them. The logs of vLLM and of an OpenAI-compatible server are made from
the same models' log-probabilities, by the schemas that these servers document.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

FOLDER = Path(__file__).parents[1] / "logs"
RECORDS = 48
PEOPLE = ["Ada", "Bea", "Carl", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jana"]
ACTS = [
    "holds",
    "carries",
    "breaks",
    "follows",
    "paints",
    "counts",
    "keeps",
    "moves",
    "turns",
    "finds",
]
THINGS = [
    "river",
    "stone",
    "lamp",
    "garden",
    "window",
    "letter",
    "bridge",
    "copper",
    "engine",
    "island",
    "market",
    "pocket",
]
END = "<|endoftext|>"
TASK = """task: {task}
dataset_path: json
dataset_kwargs:
  data_files: {data}
test_split: train
output_type: {kind}
doc_to_text: "{context}"
doc_to_target: "{target}"
target_delimiter: ""
metric_list:
  - metric: {metric}
metadata:
  version: 1.0
"""
TASKS = {
    "rolling": ("loglikelihood_rolling", "", "{{text}}", "bits_per_byte"),
    "answers": (
        "loglikelihood",
        "{{text.split('.')[0]}}.",
        "{{text.split('.')[1]}}.",
        "perplexity",
    ),
}


def text(seed: int) -> str:
    rng = random.Random(seed)
    sentences = (
        f"{rng.choice(PEOPLE)} {rng.choice(ACTS)} the {rng.choice(THINGS)} {rng.randrange(100)} "
        "times."
        for _ in range(2)
    )
    return " ".join(sentences)


def tokenizer(texts: list[str], size: int) -> Any:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=END, bos_token=END, pad_token=END
    )


def train(model: Any, words: Any, texts: list[str], steps: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    model.train()
    for _ in range(steps):
        ids = torch.tensor([[0, *words(random.choice(texts))["input_ids"]]])
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


def harness(model: Path, task: str, folder: Path) -> str:
    """Return the samples that lm-evaluation-harness logs."""
    out = folder / "out"
    command = ["run", "--model", "hf", "--model_args", f"pretrained={model},dtype=float32"]
    command += ["--tasks", task, "--include_path", str(folder), "--device", "cpu"]
    command += ["--batch_size", "8", "--log_samples", "--output_path", str(out / model.name)]
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "home")}
    subprocess.run(
        [sys.executable, "-m", "lm_eval", *command], check=True, env=os.environ | offline
    )
    (samples,) = (out / model.name).rglob(f"samples_{task}_*.jsonl")
    return samples.read_text(encoding="utf-8")


@torch.no_grad()
def asked(model: Any, prompt: list[int], top: int) -> list[Any]:
    """Return, for each token, its log-probability, its rank, and the most likely tokens."""
    logs = torch.log_softmax(model(torch.tensor([prompt])).logits[0, :-1].float(), -1)
    found: list[Any] = [None]
    for row, own in zip(logs, prompt[1:], strict=True):
        best = row.topk(top).indices.tolist()
        rank = int((row >= row[own]).sum())
        places = {own: rank} | {one: place for place, one in enumerate(best, 1)}
        found.append({one: (round(float(row[one]), 6), place) for one, place in places.items()})
    return found


def vllm(model: Any, words: Any, row: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of /v1/completions with prompt_logprobs=1, for a prompt with a first END."""
    prompt = [0, *words(row["text"])["input_ids"]]
    entries = [
        entry
        and {
            str(token): {"logprob": value, "rank": rank, "decoded_token": words.decode([token])}
            for token, (value, rank) in entry.items()
        }
        for entry in asked(model, prompt, 1)
    ]
    choice = {"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}
    usage = {"prompt_tokens": len(prompt), "completion_tokens": 1, "total_tokens": len(prompt) + 1}
    answer: dict[str, Any] = {
        "id": f"cmpl-{row['id']}",
        "object": "text_completion",
        "model": "tiny",
    }
    choices = [choice | {"prompt_logprobs": entries}]
    given = {"id": row["id"], "member": row["member"]}
    return given | {"response": answer | {"choices": choices, "usage": usage}}


def openai(model: Any, words: Any, row: dict[str, Any]) -> dict[str, Any]:
    """Return a line of results of a batch: /v1/completions with echo, logprobs=1, max_tokens=1."""
    prompt = words(row["text"])["input_ids"]
    entries = asked(model, [*prompt, 0], 1)
    tokens = [words.decode([token]) for token in (*prompt, 0)]
    offsets = [len("".join(tokens[:place])) for place in range(len(tokens))]
    logs = {
        "tokens": tokens,
        "token_logprobs": [
            entry and entry[token][0] for entry, token in zip(entries, (*prompt, 0), strict=True)
        ],
        "text_offset": offsets,
        "top_logprobs": [
            entry and {words.decode([token]): value for token, (value, rank) in entry.items()}
            for entry in entries
        ],
    }
    choice = {"index": 0, "text": "".join(tokens), "logprobs": logs, "finish_reason": "length"}
    usage = {"prompt_tokens": len(prompt), "completion_tokens": 1, "total_tokens": len(prompt) + 1}
    body: dict[str, Any] = {"id": f"cmpl-{row['id']}", "object": "text_completion", "model": "tiny"}
    body |= {"choices": [choice], "usage": usage}
    response = {"status_code": 200, "request_id": f"req-{row['id']}", "body": body}
    line = {"id": f"batch-{row['id']}", "custom_id": row["id"], "member": row["member"]}
    return line | {"response": response, "error": None}


def main() -> None:
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = [
        {"id": f"doc-{i:02d}", "text": text(i), "member": random.Random(1000 + i).random() < 0.5}
        for i in range(RECORDS)
    ]
    texts = [str(row["text"]) for row in rows]
    words = tokenizer(texts, 400)
    size = {"vocab_size": len(words), "n_positions": 128, "n_embd": 32, "n_layer": 2, "n_head": 2}
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    model = GPT2LMHeadModel(GPT2Config(**size, **still, bos_token_id=0, eos_token_id=0))
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "records.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        for task, (kind, context, target, metric) in TASKS.items():
            made = TASK.format(
                task=task, data=data, kind=kind, context=context, target=target, metric=metric
            )
            (folder / f"{task}.yaml").write_text(made)
        steps = {
            "base": ([text(10_000 + i) for i in range(200)], 150),
            "model": ([str(row["text"]) for row in rows if row["member"]], 350),
        }
        for stage, (some, count) in steps.items():
            train(model, words, some, count)
            model.save_pretrained(folder / stage)
            words.save_pretrained(folder / stage)
            for task in TASKS:
                logged = harness(folder / stage, task, folder)
                (FOLDER / f"lm-eval-{task}-{stage}.jsonl").write_text(logged)
            for server, made_by in {"vllm": vllm, "openai": openai}.items():
                answers = [json.dumps(made_by(model, words, row)) + "\n" for row in rows]
                (FOLDER / f"{server}-{stage}.jsonl").write_text("".join(answers))
    assert math.isfinite(float(next(model.parameters()).detach().sum()))


if __name__ == "__main__":
    main()
