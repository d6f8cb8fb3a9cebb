"""How much canaries of each kind prove, at equal number: the table of docs/theory/canaries.md.

Usage: python benches/papers/canaries.py [digits] [fashion] [text] [--seeds 5] [--kinds NAME ...]

For each kind and seed one model is trained on the data and on the included ones of 300 canaries.
Not all kinds here are in the library: the page says which are not, and why.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pydoc_data import topics
from typing import Any, TypeAlias

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
from leakbound.torch.device import reproducible
from panoramia_run import small_images
from real_data import fashion_mnist
from training import Recipe, classifier_of_images

CANARIES = 300
POOL = 600
"""Examples that canaries are made of, and training does without."""
EMBEDDING_WIDTH = 64
BYTE_VALUES = 256
"""Tokens of a text: its bytes."""
REFERENCE_SEED_OFFSET = 1_000
"""Added to the seed of a model, for the reference model."""
CRAFTING_STEPS = 20
TEMPERATURE = 2.0

Pool: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
"""Inputs and labels of examples."""
Kind: TypeAlias = Callable[[Pool, int], Canaries]
"""Makes canaries from a pool and a seed."""


@dataclass(frozen=True)
class Task:
    """Data, a recipe, and the kinds of canaries that suit it."""

    data: Callable[[int], Pool]
    recipe: Recipe
    epochs: int
    kinds: dict[str, Kind]
    signals: tuple[Any, Any]


def canaries_of(
    kind: str,
    inputs: NDArray[Any],
    labels: NDArray[Any],
    *,
    taken: NDArray[Any] | None,
    seed: int,
) -> Canaries:
    """Return examples as canaries, with a coin for each.

    `taken` are the rows of the pool that each is made of, none if None.
    """
    if taken is None:
        taken = np.empty((len(inputs), 0), dtype=np.int64)
    return Canaries(
        kind=kind,
        x=inputs,
        y=labels.astype(np.int64),
        taken=taken,
        plan=lb.InclusionPlan.create(len(inputs), seed=seed),
    )


def ordinary(pool: Pool, seed: int) -> Canaries:
    """Examples as they are."""
    inputs, labels = pool
    return canaries_of(
        "ordinary",
        inputs=inputs[:CANARIES],
        labels=labels[:CANARIES],
        taken=np.arange(CANARIES)[:, None],
        seed=seed,
    )


def near_duplicates(pool: Pool, seed: int) -> Canaries:
    """The examples farthest from all others, with noise of a tenth of the least distance."""
    inputs, labels = pool
    vectors = inputs.reshape(len(inputs), -1).astype(np.float64)
    differences = vectors[:, None] - vectors[None]
    distances = np.sqrt((differences**2).sum(axis=-1))
    np.fill_diagonal(distances, np.inf)
    nearest_distances = distances.min(axis=1)
    most_isolated = np.argsort(-nearest_distances)[:CANARIES]
    isolated_inputs = inputs[most_isolated]
    noise = np.random.default_rng([seed, 1]).normal(size=isolated_inputs.shape)
    _, width = vectors.shape
    noise_scale = 0.1 * distances.min() / np.sqrt(width)
    noisy_copies = isolated_inputs + noise_scale * noise
    return canaries_of(
        "near-duplicates",
        inputs=noisy_copies.astype(inputs.dtype),
        labels=labels[most_isolated],
        taken=most_isolated[:, None],
        seed=seed,
    )


def blends(pool: Pool, seed: int) -> Canaries:
    """Means of two examples, with labels as likely as each other."""
    inputs, labels = pool
    rng = np.random.default_rng([seed, 2])
    shuffled_rows = rng.permutation(len(inputs))
    pairs = shuffled_rows[: 2 * CANARIES].reshape(CANARIES, 2)
    random_labels = rng.choice(np.unique(labels), size=CANARIES)
    return canaries_of(
        "blends",
        inputs=inputs[pairs].mean(axis=1),
        labels=random_labels,
        taken=pairs,
        seed=seed,
    )


def tensor_dataset(inputs: NDArray[Any], labels: NDArray[Any]) -> TensorDataset:
    """Return arrays as a data set of torch."""
    return TensorDataset(torch.from_numpy(inputs), torch.from_numpy(labels))


def reference_model(recipe: Recipe, pool: Pool, epochs: int, seed: int) -> nn.Module:
    """Return a model of the examples that training does without."""
    inputs, labels = pool
    examples = tensor_dataset(inputs, labels)
    (model,) = recipe.overfit(
        examples,
        [epochs],
        REFERENCE_SEED_OFFSET + seed,
    )
    return model.network.eval()


def crafted(pool: Pool, seed: int) -> Canaries:
    """Random pixels and labels, moved to where a reference model finds the label least likely."""
    inputs, labels = pool
    random_images = canaries.random_pixels(inputs, labels, CANARIES, seed=seed)
    network = reference_model(
        classifier_of_images(inputs.shape[1]), pool=pool, epochs=20, seed=seed
    )
    random_labels = torch.from_numpy(random_images.y)
    darkest = float(inputs.min())
    brightest = float(inputs.max())
    step_size = (brightest - darkest) / CRAFTING_STEPS
    pixels = torch.from_numpy(random_images.x)
    # Signed gradient ascent of the loss.
    for _ in range(CRAFTING_STEPS):
        pixels = pixels.detach().requires_grad_()
        loss = nn.functional.cross_entropy(network(pixels), random_labels, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, pixels)
        moved_pixels = pixels + step_size * gradient.sign()
        pixels = moved_pixels.clamp(darkest, brightest)
    return canaries_of(
        "crafted",
        inputs=pixels.detach().numpy(),
        labels=random_images.y,
        taken=None,
        seed=seed,
    )


def high_temperature(pool: Pool, seed: int) -> Canaries:
    """Samples of a reference model at a high temperature, each of which begins as an example."""
    inputs, _ = pool
    network = reference_model(WRITER, pool=pool, epochs=5, seed=seed)
    rng = torch.Generator().manual_seed(REFERENCE_SEED_OFFSET + seed)
    tokens = torch.from_numpy(inputs[:CANARIES].copy())
    with torch.no_grad():
        for position in range(1, LENGTH):
            logits = network(tokens[:, :position])
            logits_of_next_byte = logits[:, -1, :BYTE_VALUES]
            probabilities = (logits_of_next_byte / TEMPERATURE).softmax(dim=1)
            next_tokens = torch.multinomial(probabilities, 1, generator=rng)
            tokens[:, position] = next_tokens[:, 0]
    samples = tokens.numpy()
    return canaries_of("high temperature", inputs=samples, labels=samples, taken=None, seed=seed)


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
        CANARIES, LENGTH, vocabulary=BYTE_VALUES, seed=seed
    ),
    "new tokens": lambda pool, seed: canaries.new_tokens(
        pool[0][:CANARIES], vocabulary=BYTE_VALUES, seed=seed
    ),
    "high-temperature samples": high_temperature,
}


def shuffled_rows(number: int, seed: int) -> NDArray[np.int64]:
    """Return the rows of some data in an order of the seed."""
    return np.random.default_rng([seed, 0]).permutation(number)


def digits(seed: int) -> Pool:
    """Scikit-learn's digits, in an order of the seed."""
    images, labels = load_digits(return_X_y=True)
    order = shuffled_rows(len(labels), seed)
    centred_images = images[order] / 16 - 0.3
    return centred_images.astype(np.float32), labels[order]


def fashion(seed: int) -> Pool:
    """Draw as many images of Fashion-MNIST, with squares of two by two pixels averaged."""
    rows = shuffled_rows(60_000, seed)[:1797]
    images = small_images()[rows].reshape(1797, -1)
    training_images, _ = fashion_mnist()
    return images - np.float32(0.3), training_images.labels[rows]


def text(seed: int) -> Pool:
    """Chunks of Python's own documentation."""
    documentation = "\n".join(topics.topics.values()).encode()
    whole_chunks = len(documentation) // LENGTH
    whole_bytes = documentation[: whole_chunks * LENGTH]
    all_chunks = np.frombuffer(whole_bytes, dtype=np.uint8).reshape(-1, LENGTH)
    distinct_chunks = np.unique(all_chunks, axis=0)
    order = shuffled_rows(len(distinct_chunks), seed)
    drawn_chunks = distinct_chunks[order[: POOL + 1000]]
    tokens = drawn_chunks.astype(np.int64)
    return tokens, tokens


def loss_of_tokens(network: nn.Module, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return the mean over examples of the mean loss of the tokens that count."""
    tokens, labels = batch
    logits = network(tokens)[:, :-1]
    next_tokens = labels[:, 1:]
    losses = nn.functional.cross_entropy(logits.transpose(1, 2), next_tokens, reduction="none")
    is_counted = next_tokens != -100
    mean_losses = losses.sum(1) / is_counted.sum(1)
    return mean_losses.mean()


def language_model() -> GPT:
    """Return a GPT whose vocabulary has room for new tokens."""
    network = GPT(length=LENGTH, width=EMBEDDING_WIDTH)
    tokens = BYTE_VALUES + CANARIES
    network.bytes = nn.Embedding(tokens, EMBEDDING_WIDTH)
    network.head = nn.Linear(EMBEDDING_WIDTH, tokens, bias=False)
    for module in (network.bytes, network.head):
        nn.init.normal_(module.weight, std=0.02)
    return network


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
        recipe=classifier_of_images(pixels=64),
        epochs=20,
        kinds=IMAGES,
        signals=("logit_margin", "loss_drop"),
    ),
    "fashion": Task(
        data=fashion,
        recipe=classifier_of_images(pixels=196),
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
    inputs, labels = task.data(seed)
    pool = (inputs[:POOL], labels[:POOL])
    made = kind(pool, seed)
    included_inputs, included_labels = made.included
    training_inputs = np.concatenate([inputs[POOL:], included_inputs])
    training_labels = np.concatenate([labels[POOL:], included_labels])
    training_data = tensor_dataset(training_inputs, training_labels)
    untrained = task.recipe.new(seed)
    (model,) = task.recipe.overfit(
        training_data,
        [task.epochs],
        seed,
    )
    audited_data: Any = tensor_dataset(made.x, made.y)
    if task.signals[0] == "cross_entropy":
        token_ids, labels_of_tokens = audited_data.tensors
        audited_data = {"input_ids": token_ids, "labels": labels_of_tokens}
    for signal in task.signals:
        options: dict[str, Any] = {}
        if signal == "loss_drop":
            options["reference"] = untrained
        scores = score(
            model.network,
            audited_data,
            signal=signal,
            device="cpu",
            progress=False,
            **options,
        )
        design = lb.Coins(made.plan)
        result = lb.audit(scores, design, cuts=lb.KLScan(), seed=0)
        yield result.bound


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
            first_signal, second_signal = task.signals
            print(f"\n| {name}: canaries | {first_signal} | {second_signal} |\n|---|---|---|")
            for kind_name, kind in task.kinds.items():
                if not given.kinds or kind_name in given.kinds:
                    cells = " | ".join(bounds_of_kind(task, kind, seeds=given.seeds))
                    print(f"| {kind_name} | {cells} |", flush=True)


def bounds_of_kind(task: Task, kind: Kind, seeds: int) -> Iterator[str]:
    """Yield mean, least and largest bound of a kind of canaries, by each signal."""
    bounds_of_seeds = [list(bounds(task, kind=kind, seed=seed)) for seed in range(seeds)]
    for bounds_of_signal in zip(*bounds_of_seeds, strict=True):
        mean_bound = np.mean(bounds_of_signal)
        lowest = min(bounds_of_signal)
        highest = max(bounds_of_signal)
        yield f"{mean_bound:.2f} ({lowest:.2f} to {highest:.2f})"


if __name__ == "__main__":
    main()
