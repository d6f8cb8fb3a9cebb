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
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet
from torch import Tensor, nn

from convolutional import convolutional_network
from leakbound.cli.commands import program

HERE = Path(__file__).parent
PROGRAM = [sys.executable, "-m", "leakbound", "score"]
BATCH_SIZE = 64
BATCHES = ("--batch-size", str(BATCH_SIZE))
DEVICE = "cpu"
if torch.cuda.is_available():
    DEVICE = "cuda"
ROWS_OF_CHUNK = 4096
ROUNDS = 5
SIDE = 32
"""Pixels of a side of an image."""
CLASSES = 10


class Images(nn.Module):
    """A convolutional net on images of bytes."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = convolutional_network(CLASSES, widths)

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
    row_type = pa.list_(pa.uint8(), SIDE)
    channel_type = pa.list_(row_type, SIDE)
    image_type = pa.list_(channel_type, 3)
    schema = pa.schema({"id": pa.int64(), "features": image_type, "label": pa.int64()})
    with parquet.ParquetWriter(path, schema) as file:
        for first_row in range(0, number, ROWS_OF_CHUNK):
            last_row = min(first_row + ROWS_OF_CHUNK, number)
            ids = np.arange(first_row, last_row)
            bytes_of_chunk = ids.size * 3 * SIDE**2
            random_bytes = rng.integers(256, size=bytes_of_chunk, dtype=np.uint8)
            pixels: Any = pa.array(random_bytes)
            for length in (SIDE, SIDE, 3):
                pixels = pa.FixedSizeListArray.from_arrays(pixels, length)
            labels = rng.integers(CLASSES, size=ids.size)
            chunk = pa.table([ids, pixels, labels], schema=schema)
            file.write_table(chunk)
    return path


def documents(folder: Path, number: int, longest: int) -> Path:
    """Write texts of random words, and coins."""
    rng = np.random.default_rng(0)
    path = folder / "documents.parquet"
    letters = [*"abcdefgh"]
    vocabulary = []
    for letters_of_word in rng.integers(1, 9, size=500):
        word = rng.choice(letters, size=letters_of_word)
        vocabulary.append("".join(word))
    texts = []
    for words_of_text in rng.integers(2, longest // 4, size=number):
        text = rng.choice(vocabulary, size=words_of_text)
        texts.append(" ".join(text))
    member = rng.random(number) < 0.5
    columns = {"id": np.arange(number), "text": texts, "member": member}
    parquet.write_table(pa.table(columns), path)
    return path


def language_model(folder: Path, longest: int, width: int, layers: int) -> Path:
    """Write a language model with random weights and a tokenizer of words and letters."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    end_token = len(letters)
    tokens = range(end_token + 1)
    vocabulary = dict(zip([*letters, "<end>"], tokens, strict=True))
    rules = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    config = GPT2Config(
        vocab_size=len(vocabulary),
        n_positions=longest,
        n_embd=width,
        n_layer=layers,
        n_head=width // 32,
        bos_token_id=end_token,
        eos_token_id=end_token,
    )
    torch.manual_seed(0)
    model_folder = folder / "language"
    GPT2LMHeadModel(config).save_pretrained(model_folder)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=rules, eos_token="<end>")
    tokenizer.save_pretrained(model_folder)
    return model_folder


def seconds(run: Callable[[], object]) -> float:
    """Return how long something took; on a CPU, which others use too, the processor's time."""
    if DEVICE == "cpu":
        start = time.process_time()
        run()
        return time.process_time() - start
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def compare(what: str, command: list[str], forward_pass: Callable[[], None], number: int) -> None:
    """Time the command and a plain forward pass in turn, and print the medians."""
    rounds = []
    for _ in range(ROUNDS):
        with TemporaryDirectory() as folder:
            words = ["score", *command, "--device", DEVICE, *BATCHES, "--out", folder]
            score = partial(program("score"), words, standalone_mode=False)
            command_seconds = seconds(score)
        pass_seconds = seconds(forward_pass)
        ratio = command_seconds / pass_seconds
        rounds.append((ratio, command_seconds, pass_seconds))
    rounds.sort()
    least_ratio, _, _ = rounds[0]
    largest_ratio, _, _ = rounds[-1]
    ratio, command_seconds, pass_seconds = rounds[ROUNDS // 2]
    examples_per_second = number / command_seconds
    device_name = "CPU, processor's time"
    if DEVICE != "cpu":
        device_name = torch.cuda.get_device_name()
    print(
        f"{number:,} {what} ({device_name}): {command_seconds:.1f} s, "
        f"{examples_per_second:,.0f}/s; a plain forward pass {pass_seconds:.1f} s; "
        f"ratio {ratio:.3f} ({least_ratio:.3f} to {largest_ratio:.3f})"
    )


def run_forward(model: nn.Module, batches: Iterable[dict[str, Tensor]]) -> None:
    """Run a model over batches."""
    with torch.inference_mode():
        for batch in batches:
            on_device = {name: tensor.to(DEVICE) for name, tensor in batch.items()}
            model(**on_device)


def compare_images(folder: Path, number: int, network: Callable[[], nn.Module]) -> None:
    """Compare the command on images."""
    path = images(folder, number)
    model = network().to(DEVICE).eval()
    pixels = torch.randint(256, (ROWS_OF_CHUNK, 3, SIDE, SIDE), dtype=torch.uint8)

    def batches() -> Iterator[dict[str, Tensor]]:
        for first in range(0, number, BATCH_SIZE):
            size = min(BATCH_SIZE, number - first)
            begin = first % ROWS_OF_CHUNK
            yield {"pixels": pixels[begin : begin + size]}

    compare(
        "images",
        command=[f"scoring_job:{network.__name__}", str(path)],
        forward_pass=lambda: run_forward(model, batches()),
        number=number,
    )


def compare_sequences(folder: Path, number: int, longest: int, width: int, layers: int) -> None:
    """Compare the command on documents; the peer gets tokens in the same batches."""
    from transformers import AutoTokenizer, GPT2LMHeadModel

    path = documents(folder, number=number, longest=longest)
    model_folder = language_model(folder, longest=longest, width=width, layers=layers)
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model: Any = GPT2LMHeadModel.from_pretrained(model_folder)
    model = model.to(DEVICE).eval()
    model.config.use_cache = False
    texts = parquet.read_table(path)["text"].to_pylist()
    encoded = tokenizer(texts, truncation=True, max_length=longest)
    batches = list(padded_batches(encoded["input_ids"]))
    compare(
        "sequences",
        command=[str(model_folder), str(path)],
        forward_pass=lambda: run_forward(model, batches),
        number=number,
    )


def padded_batches(sequences: list[list[int]]) -> Iterator[dict[str, Tensor]]:
    """Yield batches as the command makes them: of a chunk the longest sequences first."""
    pad = partial(nn.utils.rnn.pad_sequence, batch_first=True)
    for first in range(0, len(sequences), ROWS_OF_CHUNK):
        chunk = sequences[first : first + ROWS_OF_CHUNK]
        longest_first = sorted(chunk, key=len, reverse=True)
        for begin in range(0, len(longest_first), BATCH_SIZE):
            batch = longest_first[begin : begin + BATCH_SIZE]
            tokens = [torch.tensor(sequence) for sequence in batch]
            masks = [torch.ones_like(sequence) for sequence in tokens]
            yield {"input_ids": pad(tokens), "attention_mask": pad(masks)}


def kill(folder: Path, number: int) -> None:
    """Kill a run twice, let it go on, and compare its shards with those of another run."""
    path = documents(folder, number=number, longest=128)
    model_folder = language_model(folder, longest=128, width=64, layers=2)
    command = [*PROGRAM, str(model_folder), str(path), *BATCHES, "--out"]
    uninterrupted = folder / "whole"
    killed = folder / "killed"
    start = time.perf_counter()
    subprocess.run([*command, str(uninterrupted)], check=True)
    uninterrupted_seconds = time.perf_counter() - start
    expected_shards = shards_of(uninterrupted)
    shards_when_killed = []
    for divisor in (3, 1.5):
        process = subprocess.Popen([*command, str(killed)])
        while len(shards_of(killed)) < len(expected_shards) / divisor:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        shards_when_killed.append(len(shards_of(killed)))
    start = time.perf_counter()
    subprocess.run([*command, str(killed)], check=True)
    resumed_seconds = time.perf_counter() - start
    assert shards_of(killed) == expected_shards
    first_kill, second_kill = shards_when_killed
    print(
        f"{number:,} documents in {len(expected_shards)} shards: {uninterrupted_seconds:.1f} s "
        f"uninterrupted; killed after {first_kill} and {second_kill} shards, the rest took "
        f"{resumed_seconds:.1f} s; equal to the bit"
    )


def shards_of(folder: Path) -> dict[str, bytes]:
    """Return the shards in a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--kill", type=int, default=0)
    chosen = parser.parse_args()
    sys.path.insert(0, str(HERE))
    with TemporaryDirectory() as name:
        folder = Path(name)
        if chosen.kill:
            kill(folder, chosen.kill)
        elif chosen.full:
            compare_images(folder, number=1_000_000, network=large)
            compare_sequences(folder, number=100_000, longest=512, width=768, layers=12)
        else:
            compare_images(folder, number=20_000, network=small)
            compare_sequences(folder, number=10_000, longest=128, width=128, layers=2)


if __name__ == "__main__":
    main()
