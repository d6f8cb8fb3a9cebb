"""`leakbound score` next to a plain forward pass of the same batches, and killed twice.

python benches/python/scoring_job.py                  sizes for a CPU
python benches/python/scoring_job.py --full           10^6 images and 10^5 sequences, for a GPU
python benches/python/scoring_job.py --kill 100000    documents of a run that is killed twice

Prints a line for each, with the name of the device.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet
from torch import Tensor, nn

from leakbound.cli.commands import program

HERE = Path(__file__).parent
PROGRAM = [sys.executable, "-m", "leakbound", "score"]
BATCH = 64
ROWS = 4096
ROUNDS = 5
SIDE = 32
CLASSES = 10


class Images(nn.Module):
    """A convolutional net on images of bytes."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        torch.manual_seed(0)
        layers = [
            layer
            for ins, outs in pairwise((3, *widths))
            for layer in (nn.Conv2d(ins, outs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        ]
        size = widths[-1] * (SIDE >> len(widths)) ** 2
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(size, CLASSES))

    def forward(self, pixels: Tensor) -> Any:
        return self.layers(pixels.to(torch.float32) / 255 - 0.5)


def small() -> nn.Module:
    """Return the net for a CPU."""
    return Images((32, 64, 64))


def large() -> nn.Module:
    """Return the net for a GPU."""
    return Images((128, 256, 512))


def images(folder: Path, number: int) -> Path:
    """Write images of random bytes, and labels."""
    rng = np.random.default_rng(0)
    path = folder / "images.parquet"
    kind = pa.list_(pa.list_(pa.list_(pa.uint8(), SIDE), SIDE), 3)
    schema = pa.schema({"id": pa.int64(), "features": kind, "label": pa.int64()})
    with parquet.ParquetWriter(path, schema) as file:
        for first in range(0, number, ROWS):
            ids = np.arange(first, min(first + ROWS, number))
            nested: Any = pa.array(rng.integers(256, size=ids.size * 3 * SIDE**2, dtype=np.uint8))
            for size in (SIDE, SIDE, 3):
                nested = pa.FixedSizeListArray.from_arrays(nested, size)
            labels = rng.integers(CLASSES, size=ids.size)
            file.write_table(pa.table([ids, nested, labels], schema=schema))
    return path


def documents(folder: Path, number: int, longest: int) -> Path:
    """Write texts of random words, and coins."""
    rng = np.random.default_rng(0)
    path = folder / "documents.parquet"
    words = np.array(["".join(rng.choice([*"abcdefgh"], size)) for size in rng.integers(1, 9, 500)])
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(2, longest // 4, number)]
    member = rng.random(number) < 0.5
    parquet.write_table(pa.table({"id": np.arange(number), "text": texts, "member": member}), path)
    return path


def language(folder: Path, longest: int, width: int, layers: int) -> Path:
    """Write a language model with random weights and a tokenizer of words and letters."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    letters = pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {letter: token for token, letter in enumerate(sorted(letters))}
    rules = Tokenizer(models.BPE(vocab=vocabulary | {"<end>": len(letters)}, merges=[]))
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    end = len(letters)
    config = GPT2Config(
        vocab_size=end + 1,
        n_positions=longest,
        n_embd=width,
        n_layer=layers,
        n_head=width // 32,
        bos_token_id=end,
        eos_token_id=end,
    )
    torch.manual_seed(0)
    GPT2LMHeadModel(config).save_pretrained(folder / "language")
    words = PreTrainedTokenizerFast(tokenizer_object=rules, eos_token="<end>")
    words.save_pretrained(folder / "language")
    return folder / "language"


def seconds(run: Callable[[], object]) -> float:
    """Return how long something took; on a CPU, which others use too, the processor's time."""
    clock = time.process_time
    if torch.cuda.is_available():
        clock = time.perf_counter
    begun = clock()
    run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - begun


def compare(what: str, command: list[str], run: Callable[[], None], number: int) -> None:
    """Time the command and a plain forward pass in turn, and print the medians."""
    rounds = []
    for _ in range(ROUNDS):
        with TemporaryDirectory() as name:
            words = ["score", *command, "--batch-size", str(BATCH), "--out", name]
            ours = seconds(partial(program("score"), words, standalone_mode=False))
        theirs = seconds(run)
        rounds.append((ours / theirs, ours, theirs))
    ratios = sorted(ratio for ratio, _, _ in rounds)
    ratio, ours, theirs = sorted(rounds)[ROUNDS // 2]
    on = "CPU, processor's time"
    if torch.cuda.is_available():
        on = torch.cuda.get_device_name()
    sys.stdout.write(
        f"{number:,} {what} ({on}): {ours:.1f} s, {number / ours:,.0f}/s; a plain forward pass "
        f"{theirs:.1f} s; ratio {ratio:.3f} "
        f"({ratios[0]:.3f} to {ratios[-1]:.3f})\n"
    )


def plain(model: nn.Module, device: str, batches: Iterator[dict[str, Tensor]]) -> None:
    """Run a model over batches."""
    with torch.inference_mode():
        for batch in batches:
            model(**{name: tensor.to(device) for name, tensor in batch.items()})


def compare_images(folder: Path, number: int, device: str, *, full: bool) -> None:
    """Compare the command on images."""
    path = images(folder, number)
    name = "small"
    build = small
    if full:
        name = "large"
        build = large
    model = build().to(device).eval()
    pixels = torch.randint(256, (ROWS, 3, SIDE, SIDE), dtype=torch.uint8)

    def batches() -> Iterator[dict[str, Tensor]]:
        for first in range(0, number, BATCH):
            yield {"pixels": pixels[first % ROWS :][: min(BATCH, number - first)]}

    words = [f"scoring_job:{name}", str(path), "--device", device]
    compare(
        "images",
        command=words,
        run=lambda: plain(model, device=device, batches=batches()),
        number=number,
    )


def compare_sequences(folder: Path, number: int, device: str, *, full: bool) -> None:
    """Compare the command on documents; the peer gets tokens in the same batches."""
    from transformers import AutoTokenizer, GPT2LMHeadModel

    longest = 128
    width = 128
    layers = 2
    if full:
        longest = 512
        width = 768
        layers = 12
    path = documents(folder, number=number, longest=longest)
    place = language(folder, longest=longest, width=width, layers=layers)
    tokenizer = AutoTokenizer.from_pretrained(place)
    model: Any = GPT2LMHeadModel.from_pretrained(place)
    model = model.to(device).eval()
    model.config.use_cache = False
    texts = parquet.read_table(path)["text"].to_pylist()
    tokens = tokenizer(texts, truncation=True, max_length=longest)["input_ids"]
    ready: list[dict[str, Tensor]] = []
    for first in range(0, number, ROWS):
        rows = sorted(tokens[first : first + ROWS], key=len, reverse=True)
        for start in range(0, len(rows), BATCH):
            lists = [torch.tensor(row) for row in rows[start : start + BATCH]]
            padded = nn.utils.rnn.pad_sequence(lists, batch_first=True)
            mask = nn.utils.rnn.pad_sequence(
                [torch.ones_like(row) for row in lists], batch_first=True
            )
            ready.append({"input_ids": padded, "attention_mask": mask})
    words = [str(place), str(path), "--device", device]
    compare(
        "sequences",
        command=words,
        run=lambda: plain(model, device=device, batches=iter(ready)),
        number=number,
    )


def kill(folder: Path, number: int) -> None:
    """Kill a run twice, let it go on, and compare its shards with those of another run."""
    path = documents(folder, number=number, longest=128)
    place = language(folder, longest=128, width=64, layers=2)
    command = [*PROGRAM, str(place), str(path), "--batch-size", str(BATCH), "--out"]
    whole = folder / "whole"
    out = folder / "killed"
    begun = time.perf_counter()
    subprocess.run([*command, str(whole)], check=True)
    spent = time.perf_counter() - begun
    expected = {one.name: one.read_bytes() for one in whole.glob("*.parquet")}
    left = []
    for share in (3, 1.5):
        process = subprocess.Popen([*command, str(out)])
        while len([*out.glob("*.parquet")]) < len(expected) / share:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        left.append(len([*out.glob("*.parquet")]))
    begun = time.perf_counter()
    subprocess.run([*command, str(out)], check=True)
    rest = time.perf_counter() - begun
    assert {one.name: one.read_bytes() for one in out.glob("*.parquet")} == expected
    sys.stdout.write(
        f"{number:,} documents in {len(expected)} shards: {spent:.1f} s uninterrupted; killed "
        f"after {left[0]} and {left[1]} shards, the rest took {rest:.1f} s; equal to the bit\n"
    )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--kill", type=int, default=0)
    chosen = parser.parse_args()
    sys.path.insert(0, str(HERE))
    device = "cpu"
    if torch.cuda.is_available():
        device = "cuda"
    sizes = (20_000, 10_000)
    if chosen.full:
        sizes = (1_000_000, 100_000)
    with TemporaryDirectory() as name:
        if chosen.kill:
            kill(Path(name), chosen.kill)
            return
        compare_images(Path(name), number=sizes[0], device=device, full=chosen.full)
        compare_sequences(Path(name), number=sizes[1], device=device, full=chosen.full)


if __name__ == "__main__":
    main()
