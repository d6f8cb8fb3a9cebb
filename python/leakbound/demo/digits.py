"""What overfitting leaks, and what DP-SGD does about it, on scikit-learn's handwritten digits.

A small network is trained on 1,200 of the digits and on the included ones of 300 canaries, digits
with a wrong label. Beside their audit stands what needs no canary: the same networks audited on
their own training and test sets, a random split. It shows less, since the network predicts digits
with right labels nearly as well unseen.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain
from math import ceil
from pathlib import Path
from time import perf_counter

import numpy as np

from leakbound._base.checks import integer, real
from leakbound._base.files import write_text
from leakbound._base.imports import needs
from leakbound._base.scores import Scores
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, JsonValue
from leakbound.audits import Coins, RandomSplit, audit
from leakbound.planning.inclusion import InclusionPlan
from leakbound.results import AuditResult

with needs("demo", "the digits demo"):
    import torch
    from sklearn.datasets import load_digits
    from torch import nn
    from torch.utils.data import TensorDataset

    from leakbound.demo.training import Progress, Recipe, Ticks, TrainedModel, accuracy

from leakbound.torch import score
from leakbound.torch.placement import reproducible

CANARIES, TEST_EXAMPLES = 300, 297
ERROR = 0.05  # probability that the headline about all models says too much
RECIPE = Recipe(
    lambda: nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10)),
    batch_size=64,
    learning_rate=3e-3,
)


@dataclass(frozen=True, kw_only=True)
class DigitsRow:
    """One model, and the audit of its logit margins on the canaries.

    `simultaneous` is the same audit at the confidence with which those of all models hold together.
    `split` is the audit of the same margins on the digits that are no canaries: those trained on
    against the test set, a random split.
    """

    name: str
    epochs: int
    epsilon: float | None
    auc: float
    seconds: float
    result: AuditResult
    simultaneous: AuditResult
    train_accuracy: float
    test_accuracy: float
    split: AuditResult

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts."""
        audits = ("result", "simultaneous", "split")
        return vars(self) | {name: getattr(self, name).to_dict() for name in audits}


@dataclass(frozen=True, kw_only=True)
class DigitsReport:
    """All models of the demo."""

    rows: tuple[DigitsRow, ...]
    plan: InclusionPlan
    seed: int
    seconds: float
    training_examples: int

    @property
    def worst(self) -> DigitsRow:
        """The model with the largest of the bounds that hold together."""
        return max(self.rows, key=lambda row: row.simultaneous.bound)

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything but the plan as numbers, strings, lists and dicts."""
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "plan"}
        return {
            "canaries": len(self.plan),
            "included_canaries": self.plan.indices.size,
            **content,
            "rows": [row.to_dict() for row in self.rows],
        }


def run(
    out: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    epochs: Sequence[int] = (5, 20, 50, 100, 200),
    epsilons: Sequence[float] = (1.0, 8.0),
    private_epochs: int = 30,
    progress: Progress | None = None,
) -> DigitsReport:
    """Train the models and audit each, in about 15 seconds on one core."""
    began = perf_counter()
    seed = integer(seed, "seed", least=0)
    marks = sorted({integer(mark, "epochs", least=1) for mark in epochs})
    budgets = [real(epsilon, "epsilons", above=0) for epsilon in epsilons]
    private_epochs = integer(private_epochs, "private_epochs", least=1)
    ticks = Ticks(progress, max(marks, default=0) + private_epochs * len(budgets))
    with reproducible():
        task = _Task.create(seed)
        models = chain(
            RECIPE.overfit(task.training, marks, seed, ticks),
            (
                RECIPE.privately(task.training, epsilon, private_epochs, seed, ticks)
                for epsilon in budgets
            ),
        )
        # All models together share the error; each confidence has three decimals, rounded up.
        confidence = ceil(1_000 * (1 - ERROR / max(1, len(marks) + len(budgets)))) / 1_000
        audited = [_audit(task, model, seed, out, confidence) for model in models]
    rows = tuple(row for row, _ in audited)
    if out is not None:
        task.plan.save(Path(out) / "plan.npz")
        worst, scores = max(audited, key=lambda one: one[0].result.bound)
        worst.result.bundle(Path(out) / "bundle", scores=scores, plan=task.plan)
    return DigitsReport(
        rows=rows,
        plan=task.plan,
        training_examples=len(task.training),
        seed=seed,
        seconds=perf_counter() - began,
    )


@dataclass(frozen=True)
class _Task:
    """The digits, split: what models are trained on, audited on and tested on."""

    plan: InclusionPlan
    canaries: TensorDataset
    training: TensorDataset
    clean: TensorDataset
    trained_on: BoolArray
    test: TensorDataset

    @classmethod
    def create(cls, seed: int) -> "_Task":
        """Give 300 random digits wrong labels, and toss a coin for each."""
        rng = Purpose.DIGITS.rng(seed)
        images, labels = load_digits(return_X_y=True)
        order = rng.permutation(len(labels))
        images, labels = images[order] / 16 - 0.3, labels[order]
        # A wrong label, each of the nine as likely.
        labels[:CANARIES] = (labels[:CANARIES] + rng.integers(1, 10, CANARIES)) % 10
        x, y = torch.tensor(images, dtype=torch.float32), torch.tensor(labels)
        plan = InclusionPlan.create(CANARIES, seed=seed)
        clean = slice(CANARIES, len(labels) - TEST_EXAMPLES)
        test = slice(len(labels) - TEST_EXAMPLES, None)
        return cls(
            plan=plan,
            canaries=TensorDataset(x[:CANARIES], y[:CANARIES]),
            training=TensorDataset(
                torch.cat([x[clean], plan.included(x[:CANARIES])]),
                torch.cat([y[clean], plan.included(y[:CANARIES])]),
            ),
            clean=TensorDataset(x[CANARIES:], y[CANARIES:]),
            trained_on=np.arange(CANARIES, len(labels)) < clean.stop,
            test=TensorDataset(x[test], y[test]),
        )


def _audit(
    task: _Task,
    model: TrainedModel,
    seed: int,
    out: str | os.PathLike[str] | None,
    confidence: float,
) -> tuple[DigitsRow, Scores]:
    scores = score(model.network, task.canaries, ids=task.plan.ids, device="cpu", progress=False)
    if out is not None:
        _write_scores(Path(out) / "scores", model.name, scores, task.plan)
    audited = partial(audit, scores, Coins(task.plan), ids=scores.ids, seed=seed)
    result = audited()
    margins = score(model.network, task.clean, device="cpu", progress=False).values
    row = DigitsRow(
        name=model.name,
        epochs=model.epochs,
        epsilon=model.epsilon,
        train_accuracy=accuracy(model.network, task.training),
        test_accuracy=accuracy(model.network, task.test),
        auc=result.auc,
        seconds=model.seconds,
        result=result,
        simultaneous=audited(confidence=confidence),
        split=audit(margins, RandomSplit(task.trained_on), seed=seed),
    )
    return row, scores


def _write_scores(folder: Path, name: str, scores: Scores, plan: InclusionPlan) -> None:
    """Write scores as a table that ``leakbound coins`` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = zip(scores.ids.tolist(), plan.member.tolist(), scores.values.tolist(), strict=True)
    lines = [f"{label},{int(member)},{value!r}" for label, member, value in columns]
    file = name.lower().replace(", ε = ", "-epsilon-").replace(" ", "-")
    write_text(folder / f"{file}.csv", "\n".join(["id,member,score", *lines, ""]))
