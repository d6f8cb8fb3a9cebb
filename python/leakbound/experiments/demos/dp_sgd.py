"""Is DP-SGD what its accountant says? A correct run on handwritten digits, and a zoo of faults.

A small network is trained with DP-SGD on 1,200 of scikit-learn's digits, once as it should be and
once with each of a number of faults that training code has had. Each run is watched by canaries,
and audited beside its accountant.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

from leakbound._base.files import write_text
from leakbound._base.streams import Purpose
from leakbound._base.types import JsonValue
from leakbound._base.validation import integer
from leakbound.claims import Claim, SubsampledGaussianDP
from leakbound.errors import MissingExtraError, OptionError
from leakbound.integrations import watch_dp_sgd
from leakbound.results.dp_sgd import Accounted, DPSGDAudit

try:
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer
    from opacus.utils.batch_memory_manager import BatchMemoryManager
    from sklearn.datasets import load_digits
    from torch import Tensor, nn
    from torch.utils.data import DataLoader, TensorDataset
except ImportError as error:
    message = (
        f"the dp-sgd demo needs {error.name}, which is not installed: pip install 'leakbound[demo]'"
    )
    raise MissingExtraError(message) from error

from leakbound.experiments.demos.dp_sgd_faults import (
    FAULTS,
    Fault,
    PoissonBatches,
    ShuffledBatches,
)
from leakbound.experiments.demos.training import DELTA, Progress, Ticks, quiet_opacus, reproducible

__all__ = ["DPSGDReport", "DPSGDRow", "Recipe", "run", "train"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the network is trained and watched."""

    examples: int = 1_200
    hidden: int = 32
    sampling_rate: float = 0.05
    steps: int = 400
    noise_multiplier: float = 0.8
    clipping_norm: float = 2.0
    learning_rate: float = 0.5
    virtual_batch: int = 20
    canaries: int = 1_000
    step_canaries: int = 500
    claim: Claim | None = None
    """Of membership; the default is that of `DPSGDWatch.audit`."""

    @property
    def epsilon(self) -> float:
        """What the mechanism attains at δ = 1e-5: no accountant can say less."""
        return _attained(self.sampling_rate, self.steps, self.noise_multiplier)


@dataclass(frozen=True, kw_only=True)
class DPSGDRow:
    """One run: its fault, what it was told, and its audit."""

    fault: Fault = field(repr=False)
    audit: DPSGDAudit
    test_accuracy: float
    seconds: float

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.fault.name

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts."""
        return {
            "name": self.name,
            "correct": self.fault.correct,
            "not_detectable": self.fault.unseen or None,
            "refuted_by": list(self.audit.refuted_by),
            "test_accuracy": self.test_accuracy,
            "seconds": self.seconds,
            "audit": self.audit.to_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class DPSGDReport:
    """All runs of the demo."""

    rows: tuple[DPSGDRow, ...]
    seed: int
    seconds: float

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts."""
        rows: list[JsonValue] = [row.to_dict() for row in self.rows]
        return {"rows": rows, "seed": self.seed, "seconds": self.seconds}


def run(
    out: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    faults: Iterable[str] | None = None,
    recipe: Recipe | None = None,
    progress: Progress | None = None,
) -> DPSGDReport:
    """Train a network with each fault, and audit every run; about two minutes on one core.

    The page of the first run is `report.html`; those of the others are in the folder `reports`.
    """
    began = perf_counter()
    seed = integer(seed, "seed", least=0)
    chosen, how = _chosen(faults or None), recipe or Recipe()
    ticks = Ticks(progress, len(chosen))
    rows = []
    for fault in chosen:
        rows.append(train(fault, how, seed))
        ticks(fault.name)
    report = DPSGDReport(rows=tuple(rows), seed=seed, seconds=perf_counter() - began)
    if out is not None:
        _write(report, Path(out))
    return report


def _write(report: DPSGDReport, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report.to_dict(), allow_nan=False, ensure_ascii=False)
    write_text(out / "result.json", text + "\n")
    report.rows[0].audit.report(out / "report.html")
    others = out / "reports"
    others.mkdir(exist_ok=True)
    for row in report.rows[1:]:
        row.audit.report(others / f"{row.name.replace(',', '').replace(' ', '-')}.html")


def train(fault: Fault, recipe: Recipe, seed: int) -> DPSGDRow:
    """Train and audit one network."""
    began = perf_counter()
    with reproducible(), quiet_opacus():
        data, test = _digits(recipe.examples, seed)
        torch.manual_seed(Purpose.DP_SGD_NETWORK.derived(seed))
        network = nn.Sequential(
            nn.Linear(64, recipe.hidden), nn.Tanh(), nn.Linear(recipe.hidden, 10)
        )
        private = GradSampleModule(network)
        noise = torch.Generator()
        noise.manual_seed(Purpose.DP_SGD_NOISE.derived(seed))
        optimizer = fault.optimizer(
            torch.optim.SGD(private.parameters(), lr=recipe.learning_rate),
            noise_multiplier=recipe.noise_multiplier,
            max_grad_norm=recipe.clipping_norm,
            expected_batch_size=int(recipe.examples * recipe.sampling_rate),
            generator=noise,
        )
        with watch_dp_sgd(
            optimizer,
            canaries=recipe.canaries,
            step_canaries=recipe.step_canaries,
            sampling_rate=recipe.sampling_rate * fault.watch_rate,
            max_steps=recipe.steps,
            examples=recipe.examples,
            seed=seed,
        ) as watch:
            _loop(private, optimizer, _loader(data, fault, recipe, seed), fault, recipe)
        rate = recipe.sampling_rate * fault.accountant_rate
        accounted = Accounted(
            epsilon=_attained(rate, recipe.steps, recipe.noise_multiplier) * 1.001,
            delta=DELTA,
            source="PLD accountant",
            sampling_rate=rate,
            steps=recipe.steps,
            noise_multiplier=recipe.noise_multiplier,
        )
        audit = watch.audit(accounted=accounted, claim=recipe.claim)
        accuracy = _accuracy(network, test)
    return DPSGDRow(
        fault=fault, audit=audit, test_accuracy=accuracy, seconds=perf_counter() - began
    )


def _chosen(names: Iterable[str] | None) -> tuple[Fault, ...]:
    if names is None:
        return FAULTS
    known = {fault.name: fault for fault in FAULTS}
    listed = tuple(names)
    for name in listed:
        if name not in known:
            message = f"faults must be among {', '.join(map(repr, known))}, got {name!r}"
            raise OptionError(message)
    return tuple(known[name] for name in listed)


def _loader(
    data: TensorDataset, fault: Fault, recipe: Recipe, seed: int
) -> DataLoader[tuple[Tensor, ...]]:
    draws = torch.Generator()
    draws.manual_seed(Purpose.DP_SGD_LOADER.derived(seed))
    how: dict[str, Any] = {
        "examples": recipe.examples,
        "rate": recipe.sampling_rate,
        "steps": recipe.steps,
        "generator": draws,
    }
    batches = (
        PoissonBatches(**how)
        if fault.batches == "poisson"
        else ShuffledBatches(**how, sizes="fixed" if fault.batches == "fixed" else "poisson")
    )
    return DataLoader(data, batch_sampler=batches)


def _loop(
    network: nn.Module,
    optimizer: DPOptimizer,
    loader: DataLoader[tuple[Tensor, ...]],
    fault: Fault,
    recipe: Recipe,
) -> None:
    if not fault.virtual:
        _epoch(network, optimizer, loader)
        return
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=recipe.virtual_batch, optimizer=optimizer
    ) as parts:
        _epoch(network, optimizer, parts)


def _epoch(
    network: nn.Module, optimizer: DPOptimizer, loader: DataLoader[tuple[Tensor, ...]]
) -> None:
    for inputs, targets in loader:
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(network(inputs), targets))
        optimizer.step()


@lru_cache(maxsize=64)
def _attained(rate: float, steps: int, noise_multiplier: float) -> float:
    family = SubsampledGaussianDP(sampling_rate=rate, steps=steps)
    return float(family.attained(noise_multiplier, "both").epsilon(DELTA))


def _digits(examples: int, seed: int) -> tuple[TensorDataset, TensorDataset]:
    images, labels = load_digits(return_X_y=True)
    order = Purpose.DP_SGD_DATA.rng(seed).permutation(len(labels))
    x = torch.tensor(images[order] / 16 - 0.3, dtype=torch.float32)
    y = torch.tensor(labels[order])
    return (
        TensorDataset(x[:examples], y[:examples]),
        TensorDataset(x[examples:], y[examples:]),
    )


def _accuracy(network: nn.Module, data: TensorDataset) -> float:
    inputs, targets = data.tensors
    with torch.no_grad():
        return float((network(inputs).argmax(1) == targets).double().mean())
