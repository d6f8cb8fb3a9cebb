"""What overfitting leaks, and what DP-SGD does about it, on scikit-learn's handwritten digits.

Usage: python benches/papers/digits.py [--out leakbound-out/digits] [--seed 0]

300 digits get a wrong label (canaries), and a fair coin decides whether each is in the training
set. Longer training memorises more canaries, so audits prove a larger ε. Each network is also
audited without canaries, on its training set and test set: this proves less, since it predicts
digits with right labels nearly as well unseen. No download; about half a minute on one core.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain
from math import ceil
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset

import leakbound as lb
from leakbound import report
from leakbound._base.console import bar
from leakbound._base.formatting import number, percent
from leakbound._base.scores import Scores
from leakbound._base.types import BoolArray
from leakbound.cli import output
from leakbound.report.description import Overview
from leakbound.results import AuditResult
from leakbound.torch import score
from leakbound.torch.device import reproducible
from streams import generator
from training import TrainedModel, accuracy, classifier_of_images

CANARIES, CLEAN = 300, 1200  # of 1,797 digits; the other 297 are the test set
ERROR = 0.05  # probability that the headline about all models says too much
RECIPE = classifier_of_images(pixels=64)
HEADINGS = ("Model", "Test acc", "Split ε̂", "AUC", "Guesses", "Correct", "ε̂", "Ceiling", "Verdict")
NOTE = (
    "ε̂ is a lower bound on ε at 95 % confidence for each model separately. The ceiling is the "
    "bound that a perfect attack would have reached.\n"
    "Split ε̂ is a lower bound on ε for replacing one example, which is at most twice the ε for "
    "adding or removing one. It compares the training set with the test set and needs no canaries."
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model, and the audit of its logit margins on the canaries.

    `simultaneous` is the same audit at the confidence with which those of all models hold together.
    `split` is the audit of the margins on digits that are no canaries: a random split.
    """

    name: str
    test_accuracy: float
    scores: Scores
    result: AuditResult
    simultaneous: AuditResult
    split: AuditResult


@dataclass(frozen=True)
class Task:
    """The digits, split: what models are trained on, audited on and tested on."""

    plan: lb.InclusionPlan
    canaries: TensorDataset
    training: TensorDataset
    clean: TensorDataset
    trained_on: BoolArray
    test: TensorDataset

    @classmethod
    def create(cls, seed: int) -> "Task":
        """Give 300 random digits wrong labels, and toss a coin for each."""
        rng = generator("demos/digits", seed)
        images, labels = load_digits(return_X_y=True)
        order = rng.permutation(len(labels))
        centred_images = images[order] / 16 - 0.3
        labels = labels[order]
        # A wrong label, each of the nine as likely.
        shifts_of_labels = rng.integers(1, 10, size=CANARIES)
        labels[:CANARIES] = (labels[:CANARIES] + shifts_of_labels) % 10
        x = torch.tensor(centred_images, dtype=torch.float32)
        y = torch.tensor(labels)
        plan = lb.InclusionPlan.create(CANARIES, seed=seed)
        clean_x, test_x = x[CANARIES:].tensor_split([CLEAN])
        clean_y, test_y = y[CANARIES:].tensor_split([CLEAN])
        return cls(
            plan=plan,
            canaries=TensorDataset(x[:CANARIES], y[:CANARIES]),
            training=TensorDataset(
                torch.cat([clean_x, plan.included(x[:CANARIES])]),
                torch.cat([clean_y, plan.included(y[:CANARIES])]),
            ),
            clean=TensorDataset(x[CANARIES:], y[CANARIES:]),
            trained_on=np.repeat([True, False], [len(clean_y), len(test_y)]),
            test=TensorDataset(test_x, test_y),
        )


def run(
    out: Path,
    *,
    seed: int = 0,
    epochs: Sequence[int] = (5, 20, 50, 100, 200),
    epsilons: Sequence[float] = (1.0, 8.0),
    private_epochs: int = 30,
) -> list[Row]:
    """Train the models, audit each, and store scores and the bundle of the largest bound."""
    epochs = sorted(epochs)
    # All models together share the error; each confidence has three decimals, rounded up.
    confidence = ceil(1_000 * (1 - ERROR / (len(epochs) + len(epsilons)))) / 1_000
    epochs_of_all = epochs[-1] + private_epochs * len(epsilons)
    with reproducible(), bar("Training", total=epochs_of_all) as move:
        task = Task.create(seed)
        models_with_dp_sgd = (
            RECIPE.privately(task.training, epsilon, private_epochs, seed, move)
            for epsilon in epsilons
        )
        models = chain(RECIPE.overfit(task.training, epochs, seed, move), models_with_dp_sgd)
        rows = [
            audited(task, model=model, seed=seed, out=out, confidence=confidence)
            for model in models
        ]
    task.plan.save(out / "plan.npz")
    most = max(rows, key=lambda row: row.result.bound)
    most.result.bundle(out / "bundle", scores=most.scores, plan=task.plan)
    return rows


def audited(task: Task, model: TrainedModel, seed: int, out: Path, confidence: float) -> Row:
    """Audit one model with and without canaries, and store its scores for `leakbound coins`."""
    margins = partial(score, model.network, device="cpu", progress=False)
    scores = margins(task.canaries, ids=task.plan.ids)
    columns = zip(
        scores.ids.tolist(), task.plan.member.tolist(), scores.values.tolist(), strict=True
    )
    lines = [f"{label},{int(member)},{value!r}" for label, member, value in columns]
    name = model.name.lower().replace(", ε = ", "-epsilon-").replace(" ", "-")
    (out / "scores").mkdir(parents=True, exist_ok=True)
    (out / "scores" / f"{name}.csv").write_text("\n".join(["id,member,score", *lines, ""]))
    audit = partial(lb.audit, scores, lb.Coins(task.plan), ids=scores.ids, seed=seed)
    return Row(
        name=model.name,
        test_accuracy=accuracy(model.network, task.test),
        scores=scores,
        result=audit(),
        simultaneous=audit(confidence=confidence),
        split=lb.audit(margins(task.clean).values, lb.RandomSplit(task.trained_on), seed=seed),
    )


def cells(row: Row) -> tuple[str, ...]:
    """Return a line of the table, below the headings."""
    result = row.result
    said = row.result.summary()
    shares = (f"{row.test_accuracy:.3f}", number(row.split.bound), f"{result.auc:.3f}")
    counts = (f"{result.guesses:,}", f"{result.correct:,}")
    return (row.name, *shares, *counts, number(said.epsilon), number(said.ceiling), said.verdict)


def together(rows: list[Row]) -> str:
    """Return one statement about all models at once."""
    worst = largest(rows)
    models = f"{len(rows)} models"
    said = worst.simultaneous.summary()
    if not said.refutes:
        return f"No guarantee was refuted for any of the {models}."
    leaking = sum(row.simultaneous.summary().leaks for row in rows)
    return (
        f"{leaking} of {models} leak. The worst is “{worst.name}”: its audit rules "
        f"out every {said.terms.guarantee} with ε < {number(said.epsilon)} "
        f"({percent(worst.result.confidence)} confidence, simultaneously over the {models})."
    )


def largest(rows: list[Row]) -> Row:
    """Return the model with the largest of the bounds that hold together."""
    return max(rows, key=lambda row: row.simultaneous.bound)


def write(rows: list[Row], out: Path, seed: int) -> None:
    """Write all results as JSON, and the report of the model that leaks most."""
    audits = ("result", "simultaneous", "split")
    stored = [
        {"name": row.name, "test_accuracy": row.test_accuracy}
        | {audit: getattr(row, audit).to_dict() for audit in audits}
        for row in rows
    ]
    (out / "result.json").write_text(json.dumps(stored, allow_nan=False, ensure_ascii=False) + "\n")
    worst = largest(rows)
    members = worst.result.members
    table = [(name, verdict, *numbers) for name, *numbers, verdict in [HEADINGS, *map(cells, rows)]]
    page = report.render(
        worst.simultaneous,
        title="Digits: leakage from overfitting, and the effect of DP-SGD",
        summary=f"A small network trained on {CLEAN + members:,} of scikit-learn's digits, "
        f"{members} of them canaries: digits with a wrong label, {CANARIES} in all, each in the "
        "training set or not by its own fair coin. The audits see the logit margins of the "
        f"canaries. This page is about “{worst.name}”, which leaks most. Seed {seed}.",
        about={
            "Model": worst.name,
            "Auditor": "make demo",
            "Date": date.today().isoformat(),
        },
        overview=Overview(
            title=f"All {len(rows)} models", table=table, note=f"{together(rows)} {NOTE}"
        ),
    )
    (out / "report.html").write_text(page, encoding="utf-8")


def show(rows: list[Row]) -> None:
    """Print the table and what it means."""
    columns = [(name, name not in {"Model", "Verdict"}) for name in HEADINGS]
    output.say(output.grid(columns, map(cells, rows)))
    output.say("")
    output.say(together(rows), "bold")
    output.say(NOTE)


def main(arguments: list[str] | None = None) -> None:
    """Train the models, audit each, and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("leakbound-out/digits"))
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    given = parser.parse_args(arguments)
    output.prepare(given.out)
    rows = run(given.out, seed=given.seed)
    write(rows, out=given.out, seed=given.seed)
    show(rows)
    print(f"Report: {given.out / 'report.html'}")


if __name__ == "__main__":
    main()
