"""What a language model leaks of its training text, and what DP-SGD does about it.

A small GPT reads bytes of the documentation that comes with Python (`pydoc_data.topics`), cut into
chunks of 64 bytes, each of which is in the training set or not by a fair coin. Audits of one
training run at several epochs show leakage grow as the model memorises; the same model trained with
DP-SGD leaks nothing that an audit can prove.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from pydoc_data import topics
from time import perf_counter
from typing import ClassVar

import numpy as np

from leakbound._base.streams import Purpose
from leakbound._base.validation import integer, real
from leakbound.audits import audit_one_run
from leakbound.errors import MissingExtraError
from leakbound.planning.inclusion import InclusionPlan

try:
    import torch
    from torch import Tensor
    from torch.utils.data import TensorDataset

    from leakbound.experiments.demos.gpt import LENGTH, recipe
except ImportError as error:
    message = (
        f"the text demo needs {error.name}, which is not installed: pip install 'leakbound[demo]'"
    )
    raise MissingExtraError(message) from error

from leakbound.experiments.demos.training import (
    AuditedModel,
    DemoReport,
    Progress,
    Ticks,
    TrainedModel,
    reproducible,
    simultaneous,
    write_scores,
)
from leakbound.torch import score

__all__ = ["TextReport", "TextRow", "run"]

WIDTH = 128

RECIPE = recipe(WIDTH, private_batch_size=64)


@dataclass(frozen=True, kw_only=True)
class TextRow(AuditedModel):
    """One model, and the audit of minus the losses of all chunks."""

    train_loss: float
    test_loss: float


@dataclass(frozen=True, kw_only=True)
class TextReport(DemoReport[TextRow]):
    """All models of the demo."""

    examples: ClassVar[str] = "chunks"

    parameters: int


def run(
    out: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    epochs: Sequence[int] = (5, 10, 20, 30, 40),
    epsilons: Sequence[float] = (8.0,),
    private_epochs: int = 10,
    chunks: int = 1250,
    progress: Progress | None = None,
) -> TextReport:
    """Train the models and audit each, in about three minutes on one core.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy Auditing with One (1) Training Run", 2023,
    arXiv:2305.08846.
    """
    began = perf_counter()
    seed = integer(seed, "seed", least=0)
    marks = sorted({integer(mark, "epochs", least=1) for mark in epochs})
    budgets = [real(epsilon, "epsilons", above=0) for epsilon in epsilons]
    private_epochs = integer(private_epochs, "private_epochs", least=1)
    size = integer(chunks, "chunks", least=200, most=5000)
    ticks = Ticks(progress, max(marks, default=0) + private_epochs * len(budgets))
    with reproducible():
        text = _text(size, seed)
        plan = InclusionPlan.create(size, seed=seed)
        training = TensorDataset(plan.included(text))
        models = chain(
            RECIPE.overfit(training, marks, seed, ticks),
            (
                RECIPE.privately(training, epsilon, private_epochs, seed, ticks)
                for epsilon in budgets
            ),
        )
        confidence = simultaneous(len(marks) + len(budgets))
        rows = tuple(_audit(text, plan, model, seed, out, confidence) for model in models)
        parameters = sum(weight.numel() for weight in RECIPE.new(seed).parameters())
    if out is not None:
        plan.save(Path(out) / "plan.npz")
    return TextReport(
        rows=rows, plan=plan, parameters=parameters, seed=seed, seconds=perf_counter() - began
    )


def _text(chunks: int, seed: int) -> Tensor:
    """Choose among the different chunks of Python's documentation."""
    everything = "\n".join(topics.topics.values()).encode()
    whole = len(everything) // LENGTH * LENGTH
    pieces = np.frombuffer(everything[:whole], dtype=np.uint8).reshape(-1, LENGTH)
    different = np.unique(pieces, axis=0)
    chosen = Purpose.TEXT.rng(seed).permutation(different)[:chunks]
    return torch.tensor(chosen, dtype=torch.int64)


def _audit(
    text: Tensor,
    plan: InclusionPlan,
    model: TrainedModel,
    seed: int,
    out: str | os.PathLike[str] | None,
    confidence: float,
) -> TextRow:
    scores = score(
        model.network, text, signal="cross_entropy", ids=plan.ids, device="cpu", progress=False
    )
    if out is not None:
        write_scores(Path(out) / "scores", model.name, scores, plan)
    audit = partial(audit_one_run, scores, plan, ids=scores.ids, seed=seed)
    result = audit()
    return TextRow(
        name=model.name,
        epochs=model.epochs,
        epsilon=model.epsilon,
        train_loss=-float(scores.values[plan.member].mean()),
        test_loss=-float(scores.values[~plan.member].mean()),
        auc=result.auc,
        seconds=model.seconds,
        result=result,
        simultaneous=audit(confidence=confidence),
    )
