"""A model audited without any training, from members and non-members that are unlike each other.

People of a made-up census whose answers fit together join the training set more readily than
others. A network that never saw them is surer about members all the same, and an audit that takes
membership for a fair coin would call that leakage. A Zero-Run audit takes out what the answers
alone give away: it proves nothing about that network, and finds the leakage of one that learnt its
members by heart.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from leakbound._base.files import write_text
from leakbound._base.odds import expit
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonValue
from leakbound._base.validation import integer
from leakbound.audits import audit_zero_run
from leakbound.errors import MissingExtraError
from leakbound.propensity import LogisticPropensity, PropensityFit, hold_out
from leakbound.results.zero_run import ZeroRunResult

try:
    import torch
    from sklearn.linear_model import LogisticRegression
    from torch import nn
except ImportError as error:
    message = (
        f"the shifted demo needs {error.name}, which is not installed: pip install "
        "'leakbound[demo]'"
    )
    raise MissingExtraError(message) from error

from leakbound.experiments.demos.census_data import Census, features
from leakbound.experiments.demos.training import (
    AuditedModel,
    Progress,
    Ticks,
    TrainedModel,
    reproducible,
    simultaneous,
    train_to_marks,
)
from leakbound.torch import score

__all__ = ["ShiftedReport", "ShiftedRow", "run"]

PEOPLE = 12_000
PUBLIC = 20_000
"""People of an older census, from whom everybody knows which answers fit together."""
READINESS = 1.0
"""How much the log-odds to join grow with a unit of the log-odds of the own income."""
BATCH_SIZE = 128
LEARNING_RATE = 2e-3
STRANGER_EPOCHS = 10


@dataclass(frozen=True, kw_only=True)
class ShiftedRow(AuditedModel):
    """One model, and the audit of its logit margins."""

    result: ZeroRunResult
    simultaneous: ZeroRunResult


@dataclass(frozen=True, kw_only=True)
class ShiftedReport:
    """All models of the demo."""

    rows: tuple[ShiftedRow, ...]
    people: int
    members: int
    held_out: int
    seed: int
    seconds: float

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts."""
        return vars(self) | {"rows": [row.to_dict() for row in self.rows]}


def run(
    out: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    epochs: Sequence[int] = (5, 60),
    progress: Progress | None = None,
) -> ShiftedReport:
    """Train the models and audit each, in about half a minute on one core.

    References
    ----------
    T. Cebere, M. Even, L. Bleistein and A. Bellet, "Privacy auditing with zero (0) training run".
    """
    began = perf_counter()
    seed = integer(seed, "seed", least=0)
    marks = sorted({integer(mark, "epochs", least=1) for mark in epochs})
    ticks = Ticks(progress, STRANGER_EPOCHS + max(marks, default=0))
    with reproducible():
        task = _Task.create(seed)
        models = _models(task, marks, seed, ticks)
        confidence = simultaneous(1 + len(marks))
        rows = tuple(_audit(task, model, seed, out, confidence) for model in models)
    audited = task.member[task.audited]
    return ShiftedReport(
        rows=rows,
        people=audited.size,
        members=int(audited.sum()),
        held_out=task.member.size - audited.size,
        seed=seed,
        seconds=perf_counter() - began,
    )


@dataclass(frozen=True)
class _People:
    """Some people: what a network sees of them, and how well their answers fit together."""

    inputs: torch.Tensor
    labels: torch.Tensor
    fit: FloatArray
    columns: FloatArray

    @classmethod
    def draw(cls, n: int, seed: int, common: LogisticRegression) -> "_People":
        sampled = Census().sample(n, seed=seed)
        assert sampled.labels is not None
        columns = features(sampled.values)
        sign = 2 * sampled.labels - 1
        fit = sign * common.decision_function(columns)
        return cls(
            torch.from_numpy(columns),
            torch.from_numpy(sampled.labels),
            np.asarray(fit, dtype=np.float64),
            np.column_stack([fit, columns[:, :6]]).astype(np.float64),
        )

    def joined(self, rng: np.random.Generator) -> BoolArray:
        """Toss a coin for each, the likelier to join the better the answers fit together."""
        odds = READINESS * (self.fit - np.median(self.fit))
        return rng.random(odds.size) < expit(odds)


@dataclass(frozen=True)
class _Task:
    """Who is audited, who is not, and the propensities learnt from the latter."""

    people: _People
    member: BoolArray
    audited: IntArray
    strangers: _People
    others: BoolArray
    propensities: PropensityFit

    @classmethod
    def create(cls, seed: int) -> "_Task":
        public_seed, people_seed, strangers_seed = (
            Purpose.SHIFTED_PEOPLE.derived(seed, number) for number in range(3)
        )
        public = Census().sample(PUBLIC, seed=public_seed)
        common = LogisticRegression(max_iter=1000).fit(features(public.values), public.labels)
        rng = Purpose.SHIFTED_COINS.rng(seed)
        people = _People.draw(PEOPLE, people_seed, common)
        member = people.joined(rng)
        strangers = _People.draw(PEOPLE, strangers_seed, common)
        learn, audited = hold_out(np.arange(PEOPLE), size=PEOPLE // 2, seed=seed)
        return cls(
            people,
            member,
            audited,
            strangers,
            strangers.joined(rng),
            LogisticPropensity().fit(people.columns[learn], member[learn], ids=learn, seed=seed),
        )


def _models(task: _Task, marks: list[int], seed: int, ticks: Ticks) -> Iterator[TrainedModel]:
    stranger = _trained(task.strangers, task.others, [STRANGER_EPOCHS], seed, ticks)
    for model in stranger:
        yield TrainedModel(
            "never saw the members", model.network, model.epochs, None, model.seconds
        )
    yield from _trained(task.people, task.member, marks, seed, ticks)


def _trained(
    people: _People, chosen: BoolArray, marks: list[int], seed: int, ticks: Ticks
) -> Iterator[TrainedModel]:
    """Train a network on those chosen, and hand it out at each mark."""
    torch.manual_seed(Purpose.SHIFTED_NETWORK.derived(seed))
    inputs, labels = people.inputs[chosen], people.labels[chosen]
    network = nn.Sequential(
        nn.Linear(inputs.shape[1], 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 2),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)

    def train_one_epoch() -> None:
        network.train()
        for rows in torch.split(torch.randperm(len(labels)), BATCH_SIZE):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(inputs[rows]), labels[rows])
            torch.autograd.backward(loss)
            optimizer.step()

    yield from train_to_marks(network, train_one_epoch, marks, ticks)


def _audit(
    task: _Task,
    model: TrainedModel,
    seed: int,
    out: str | os.PathLike[str] | None,
    confidence: float,
) -> ShiftedRow:
    rows = torch.from_numpy(task.audited)
    people = (task.people.inputs[rows], task.people.labels[rows])
    scores = score(model.network, people, ids=task.audited, device="cpu", progress=False)
    columns, member = task.people.columns[task.audited], task.member[task.audited]
    if out is not None:
        _write(Path(out) / "scores", model.name, scores.values, member, task)
    audit = partial(
        audit_zero_run,
        scores.values,
        member,
        task.propensities,
        features=columns,
        ids=task.audited,
        seed=seed,
    )
    result = audit()
    return ShiftedRow(
        name=model.name,
        epochs=model.epochs,
        epsilon=model.epsilon,
        auc=result.auc,
        seconds=model.seconds,
        result=result,
        simultaneous=audit(confidence=confidence),
    )


def _write(folder: Path, name: str, scores: FloatArray, member: BoolArray, task: _Task) -> None:
    """Write scores and propensities as a table that ``leakbound zero-run`` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    propensities = task.propensities.predict(task.people.columns[task.audited])
    rows = zip(
        task.audited.tolist(), member.tolist(), scores.tolist(), propensities.tolist(), strict=True
    )
    lines = [f"{one},{int(joined)},{value!r},{pi!r}" for one, joined, value, pi in rows]
    text = "\n".join(["id,member,score,propensity", *lines, ""])
    write_text(folder / f"{name.replace(' ', '-')}.csv", text)
