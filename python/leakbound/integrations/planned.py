"""An audit planned before training and made after it: what callbacks of all trainers share.

Loading this module loads PyTorch.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from leakbound._base.checks import complement, instance
from leakbound._base.imports import needs

with needs("torch", "leakbound.integrations"):
    from torch import nn
    from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset

from leakbound._base.scores import Scores
from leakbound._base.types import FloatArray, PathInput
from leakbound.audits import Coins, audit
from leakbound.claims import ApproxDP, Claim, PureDP
from leakbound.errors import InputTypeError, OptionError
from leakbound.planning.inclusion import InclusionPlan
from leakbound.results import AuditResult
from leakbound.results.base import check_delta
from leakbound.results.dp_sgd import Accounted
from leakbound.torch import Signal, score
from leakbound.torch.signals import signal_name


class PlannedCallback:
    """What callbacks of all trainers share; they call `_begin_training` and `_end_training`."""

    scores: Scores | None = None
    """The scores of all canaries, once training has ended."""
    result: AuditResult | None = None
    """The audit, once training has ended."""
    _training_data: "ConcatDataset[object] | None" = None
    _scores_before: FloatArray | None = None

    def __init__(
        self,
        plan: InclusionPlan,
        canaries: object,
        signal: Signal,
        *,
        claim: Claim | None = None,
        confidence: float = 0.95,
        accounted: Accounted | Callable[[], Accounted] | None = None,
        out: PathInput | None = None,
    ) -> None:
        # Everything is checked now, and not after hours of training.
        instance(plan, name="plan", types=InclusionPlan)
        complement(confidence)
        signal_name(signal)
        if accounted is not None and not callable(accounted):
            instance(accounted, name="accounted", types=Accounted)
            if claim is not None:
                check_delta(accounted.delta, claim)
        if accounted is not None and plan.copies > 1:
            raise OptionError(
                f"accounted goes with plans of one copy, and this one has {plan.copies}: leave it "
                "out, and compare with callback.result.against(…) after training"
            )
        columns: Iterable[object] = (canaries,)
        if isinstance(canaries, Mapping):
            columns = canaries.values()
        for column in columns:
            plan.included(column)  # which refuses another number than that of the coins
        with needs("plot", "the report of an audit"):
            import matplotlib as mpl  # noqa: F401
        self._plan = plan
        self._canaries = canaries
        self._signal = signal
        self._claim = claim
        self._confidence = confidence
        self._accounted = accounted
        self._out = out

    def insert(self, dataset: Any) -> "ConcatDataset[object]":
        """Return a dataset with the included canaries behind its own examples: train on it.

        Parameters
        ----------
        dataset : map-style dataset or sequence
            The training data, without any canary.
        """
        has_positions = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
        if isinstance(dataset, IterableDataset) or not has_positions:
            raise InputTypeError(
                "the training data must have a length and be indexed by position, so that "
                f"canaries can be inserted, got {type(dataset).__name__}"
            )
        rows = self._canary_rows()
        canary_type = _type_of_training_row(rows[0])
        example_type = canary_type
        if len(dataset):
            example_type = _type_of_training_row(dataset[0])
        if canary_type != example_type:
            raise InputTypeError(
                f"canaries must be rows as those of the training data, {example_type}, got "
                f"{canary_type}"
            )
        included = np.repeat(self._plan.indices, self._plan.copies)
        canaries: Subset[object] = Subset(rows, included.tolist())
        self._training_data = ConcatDataset([dataset, canaries])
        return self._training_data

    def _begin_training(self, model: nn.Module, loader: object, *, is_spread: bool) -> None:
        """Check that canaries are in the training data; score them where the signal needs it."""
        if is_spread:  # no process has all parameters of the model
            raise OptionError(
                "the parameters of the model are spread over processes, so no single process can "
                "score: gather them after training, and call leakbound.torch.score"
            )
        if self.result is not None:
            raise OptionError(
                "coins are tossed for one training run: make another plan and callback"
            )
        dataset = getattr(loader, "dataset", None)
        if self._training_data is None or dataset is not self._training_data:
            raise OptionError(
                "the training data has no canaries: train on callback.insert(dataset) alone"
            )
        # What cannot be scored is refused now, and not after hours of training.
        if self._signal == "loss_drop":
            scores = self._score_canaries(model, loader=loader, signal="cross_entropy")
            self._scores_before = scores.values
        else:
            self._score_canaries(model, loader=loader, signal=self._signal, first=1)

    def _end_training(self, model: nn.Module, loader: object, folder: PathInput) -> None:
        """Score all canaries, audit the scores, and write the result and its report."""
        # 1. Score, as the difference from the beginning where the signal is one.
        if self._scores_before is None:
            scores = self._score_canaries(model, loader=loader, signal=self._signal)
        else:
            scores_after = self._score_canaries(model, loader=loader, signal="cross_entropy")
            loss_drops = scores_after.values - self._scores_before
            scores = Scores(values=loss_drops, ids=scores_after.ids, signal="loss_drop")
        self.scores = scores
        # 2. Audit, and put the accountant's claim beside the bound.
        accounted = self._accounted
        if callable(accounted):
            accounted = accounted()
        claim = self._claim
        if claim is None:
            claim = PureDP()
            if accounted is not None:
                claim = ApproxDP(delta=accounted.delta)
        result: AuditResult = audit(
            scores, Coins(self._plan), claim=claim, confidence=self._confidence, ids=scores.ids
        )
        if accounted is not None:
            result = result.against(
                epsilon=accounted.epsilon,
                delta=accounted.delta,
                relation=accounted.relation,
                source=accounted.source,
            )
        # 3. Write the result and its report.
        self.result = result
        audit_folder = Path(folder) / "audit"
        if self._out is not None:
            audit_folder = Path(self._out)
        audit_folder.mkdir(parents=True, exist_ok=True)
        result.to_json(audit_folder / "result.json")
        result.report(audit_folder / "report.html")

    def _score_canaries(
        self, model: nn.Module, loader: object, signal: Signal, *, first: int | None = None
    ) -> Scores:
        """Score the canaries, or the first ones, in batches made as those of training are."""
        ids = self._plan.ids[:first]
        batches: DataLoader[object] = DataLoader(
            Subset(self._canary_rows(), range(len(ids))),
            batch_size=getattr(loader, "batch_size", None) or 32,
            collate_fn=getattr(loader, "collate_fn", None),
        )
        return score(model, batches, signal=signal, ids=ids, progress=False)

    def _canary_rows(self) -> Any:
        """Return the canaries one by one: columns under their names are cut into rows."""
        columns = self._canaries
        if not isinstance(columns, Mapping):
            return columns

        def row_at(position: int) -> dict[str, Any]:
            return {name: column[position] for name, column in columns.items()}

        return [row_at(position) for position in range(len(self._plan))]


def _type_of_training_row(row: object) -> str:
    """Return the type of a row, as far as collators distinguish it."""
    if isinstance(row, Mapping):
        return "mappings"
    if isinstance(row, tuple | list):
        return "tuples"
    return type(row).__name__
