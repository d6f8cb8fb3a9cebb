"""How much canaries of each kind prove, at equal number: the table of docs/theory/canaries.md.

Usage: python benches/papers/canaries.py [digits] [fashion] [text] [--seeds 5] [--kinds NAME ...]

For each kind and seed one model is trained on the data and on the included ones of 300 canaries.
Not all kinds here are in the library: the page says which are not, and why.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pydoc_data import topics
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

import leakbound as lb
from gpt import GPT, LENGTH
from leakbound import canaries
from leakbound.planning.canaries import Canaries
from leakbound.torch import score
from leakbound.torch.placement import reproducible
from panoramia_run import small_images
from real_data import fashion_mnist
from training import Recipe, Ticks

CANARIES = 300
POOL = 600
"""Examples that canaries are made of, and training does without."""
WIDTH = 64
WORDS = 256
OTHER = 1_000
"""Added to the seed of a model, for the reference model."""
CRAFTED_STEPS = 20
TEMPERATURE = 2.0

Pool = tuple[NDArray[Any], NDArray[Any]]
Kind = Callable[[Pool, int], Canaries]


@dataclass(frozen=True)
class Task:
    """Data, a recipe, and the kinds of canaries that suit it."""

    data: Callable[[int], Pool]
    recipe: Recipe
    epochs: int
    kinds: dict[str, Kind]
    signals: tuple[Any, Any]


def canaries_of(
    kind: str, x: NDArray[Any], y: NDArray[Any], taken: NDArray[Any] | None, *, seed: int
) -> Canaries:
    """Return examples as canaries, with a coin for each."""
    if taken is None:
        taken = np.empty((len(x), 0), dtype=np.int64)
    plan = lb.InclusionPlan.create(len(x), seed=seed)
    return Canaries(kind=kind, x=x, y=y.astype(np.int64), taken=taken, plan=plan)


def ordinary(pool: Pool, seed: int) -> Canaries:
    """Examples as they are."""
    x, y = pool
    return canaries_of(
        "ordinary", x=x[:CANARIES], y=y[:CANARIES], taken=np.arange(CANARIES)[:, None], seed=seed
    )


def near_duplicates(pool: Pool, seed: int) -> Canaries:
    """The examples farthest from all others, with noise of a tenth of the least distance."""
    x, y = pool
    flat = x.reshape(len(x), -1).astype(np.float64)
    distance = np.sqrt(((flat[:, None] - flat[None]) ** 2).sum(-1) + np.diag([np.inf] * len(x)))
    alone = np.argsort(-distance.min(1))[:CANARIES]
    noise = np.random.default_rng([seed, 1]).normal(size=x[alone].shape)
    scale = 0.1 * distance.min() / np.sqrt(flat.shape[1])
    made = (x[alone] + scale * noise).astype(x.dtype)
    return canaries_of("near-duplicates", x=made, y=y[alone], taken=alone[:, None], seed=seed)


def blends(pool: Pool, seed: int) -> Canaries:
    """Means of two examples, with labels as likely as each other."""
    x, y = pool
    rng = np.random.default_rng([seed, 2])
    pairs = rng.permutation(len(x))[: 2 * CANARIES].reshape(CANARIES, 2)
    labels = rng.choice(np.unique(y), CANARIES)
    return canaries_of("blends", x=x[pairs].mean(axis=1), y=labels, taken=pairs, seed=seed)


def reference(recipe: Recipe, pool: Pool, epochs: int, seed: int) -> nn.Module:
    """Return a model of the examples that training does without."""
    data = TensorDataset(*(torch.from_numpy(one) for one in pool))
    (model,) = recipe.overfit(data, [epochs], OTHER + seed, Ticks(progress=None, total=epochs))
    return model.network.eval()


def crafted(pool: Pool, seed: int) -> Canaries:
    """Random pixels and labels, moved to where a reference model finds the label least likely."""
    x, y = pool
    start = canaries.random_pixels(x, y, CANARIES, seed=seed)
    network = reference(classifier(x.shape[1]), pool=pool, epochs=20, seed=seed)
    labels = torch.from_numpy(start.y)
    low = float(x.min())
    high = float(x.max())
    moved = torch.from_numpy(start.x)
    for _ in range(CRAFTED_STEPS):
        moved = moved.detach().requires_grad_()
        (slope,) = torch.autograd.grad(
            nn.functional.cross_entropy(network(moved), labels, reduction="sum"), moved
        )
        moved = (moved + (high - low) / CRAFTED_STEPS * slope.sign()).clamp(low, high)
    return canaries_of("crafted", x=moved.detach().numpy(), y=start.y, taken=None, seed=seed)


def high_temperature(pool: Pool, seed: int) -> Canaries:
    """Samples of a reference model at a high temperature, each of which begins as an example."""
    x, _ = pool
    network = reference(WRITER, pool=pool, epochs=5, seed=seed)
    rng = torch.Generator().manual_seed(OTHER + seed)
    made = torch.from_numpy(x[:CANARIES].copy())
    with torch.no_grad():
        for place in range(1, LENGTH):
            logits = network(made[:, :place])[:, -1, :WORDS] / TEMPERATURE
            made[:, place] = torch.multinomial(logits.softmax(1), 1, generator=rng)[:, 0]
    written = made.numpy()
    return canaries_of("high temperature", x=written, y=written, taken=None, seed=seed)


IMAGES: dict[str, Kind] = {
    "ordinary examples": ordinary,
    "near-duplicates of rare ones": near_duplicates,
    "mislabelled": lambda pool, seed: canaries.mislabelled(*pool, CANARIES, seed=seed),
    "random pixels": lambda pool, seed: canaries.random_pixels(*pool, CANARIES, seed=seed),
    "blends": blends,
    "crafted against a reference model": crafted,
}
TEXTS: dict[str, Kind] = {
    "ordinary examples": ordinary,
    "random tokens": lambda _, seed: canaries.random_tokens(
        CANARIES, LENGTH, vocabulary=WORDS, seed=seed
    ),
    "new tokens": lambda pool, seed: canaries.new_tokens(
        pool[0][:CANARIES], vocabulary=WORDS, seed=seed
    ),
    "high-temperature samples": high_temperature,
}


def digits(seed: int) -> Pool:
    """Scikit-learn's digits, in an order of the seed."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng([seed, 0]).permutation(len(labels))
    return (images[order] / 16 - 0.3).astype(np.float32), labels[order]


def fashion(seed: int) -> Pool:
    """Draw as many images of Fashion-MNIST, with squares of two by two pixels averaged."""
    rows = np.random.default_rng([seed, 0]).permutation(60_000)[:1797]
    return small_images()[rows].reshape(1797, -1) - np.float32(0.3), fashion_mnist()[0].labels[rows]


def text(seed: int) -> Pool:
    """Chunks of Python's own documentation."""
    everything = "\n".join(topics.topics.values()).encode()
    whole = len(everything) // LENGTH * LENGTH
    pieces = np.unique(
        np.frombuffer(everything[:whole], dtype=np.uint8).reshape(-1, LENGTH), axis=0
    )
    order = np.random.default_rng([seed, 0]).permutation(len(pieces))
    chunks = pieces[order][: POOL + 1000].astype(np.int64)
    return chunks, chunks


def loss_of_tokens(network: nn.Module, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return the mean over examples of the mean loss of the tokens that count."""
    tokens, labels = batch
    logits = network(tokens)[:, :-1]
    following = labels[:, 1:]
    losses = nn.functional.cross_entropy(logits.transpose(1, 2), following, reduction="none")
    counted = following != -100
    return (losses.sum(1) / counted.sum(1)).mean()


def language_model() -> GPT:
    """Return a GPT whose vocabulary has room for new tokens."""
    network = GPT(length=LENGTH, width=WIDTH)
    network.bytes = nn.Embedding(WORDS + CANARIES, WIDTH)
    network.head = nn.Linear(WIDTH, WORDS + CANARIES, bias=False)
    for module in (network.bytes, network.head):
        nn.init.normal_(module.weight, std=0.02)
    return network


def classifier(pixels: int) -> Recipe:
    """Return how images of so many pixels are learnt."""
    return Recipe(
        lambda: nn.Sequential(nn.Linear(pixels, 128), nn.Tanh(), nn.Linear(128, 10)),
        batch_size=64,
        learning_rate=3e-3,
    )


WRITER = Recipe(
    language_model,
    batch_size=32,
    learning_rate=3e-3,
    loss=loss_of_tokens,
    optimizer=torch.optim.AdamW,
)
TASKS = {
    "digits": Task(
        data=digits,
        recipe=classifier(64),
        epochs=20,
        kinds=IMAGES,
        signals=("logit_margin", "loss_drop"),
    ),
    "fashion": Task(
        data=fashion,
        recipe=classifier(196),
        epochs=20,
        kinds=IMAGES,
        signals=("logit_margin", "loss_drop"),
    ),
    "text": Task(
        data=text, recipe=WRITER, epochs=5, kinds=TEXTS, signals=("cross_entropy", "loss_drop")
    ),
}


def bounds(task: Task, kind: Kind, seed: int) -> Iterator[float]:
    """Train one model and yield the bound by each signal."""
    x, y = task.data(seed)
    made = kind((x[:POOL], y[:POOL]), seed)
    included = made.included
    training = TensorDataset(
        torch.from_numpy(np.concatenate([x[POOL:], included[0]])),
        torch.from_numpy(np.concatenate([y[POOL:], included[1]])),
    )
    before = task.recipe.new(seed)
    (model,) = task.recipe.overfit(
        training, [task.epochs], seed, Ticks(progress=None, total=task.epochs)
    )
    data: Any = TensorDataset(torch.from_numpy(made.x), torch.from_numpy(made.y))
    if task.signals[0] == "cross_entropy":
        data = {"input_ids": torch.from_numpy(made.x), "labels": torch.from_numpy(made.y)}
    for signal in task.signals:
        compared: dict[str, Any] = {}
        if signal == "loss_drop":
            compared = {"reference": before}
        scores = score(model.network, data, signal=signal, device="cpu", progress=False, **compared)
        yield lb.audit(scores, lb.Coins(made.plan), cuts=lb.KLScan(), seed=0).bound


def write(line: str) -> None:
    """Write a line at once: the next takes minutes."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Print one table for each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=[*TASKS])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", help="only these kinds of canaries")
    given = parser.parse_args()
    with reproducible():
        for name in given.tasks:
            task = TASKS[name]
            write(f"\n| {name}: canaries | {task.signals[0]} | {task.signals[1]} |\n|---|---|---|")
            for kind, make in task.kinds.items():
                if given.kinds and kind not in given.kinds:
                    continue
                found = [[*bounds(task, kind=make, seed=seed)] for seed in range(given.seeds)]
                cells = [
                    f"{np.mean(one):.2f} ({min(one):.2f} to {max(one):.2f})"
                    for one in zip(*found, strict=True)
                ]
                write(f"| {kind} | {cells[0]} | {cells[1]} |")


if __name__ == "__main__":
    main()
