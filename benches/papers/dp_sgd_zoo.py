"""Is DP-SGD what its accountant says? A correct run on handwritten digits, and a zoo of faults.

A small network is trained with DP-SGD on 1,200 of scikit-learn's digits, once as it should be and
once with each of a number of faults that training code has had. Each run is watched by canaries,
and audited beside its accountant.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from dp_sgd_faults import FAULTS, Fault, PoissonBatches, ShuffledBatches
from dp_step_models import Case, probed
from leakbound.claims import Claim, GaussianDP, SubsampledGaussianDP
from leakbound.dp_sgd import audit_batches
from leakbound.integrations import watch_dp_sgd
from leakbound.results.dp_sgd import Accounted, DPSGDAudit
from leakbound.torch.device import reproducible
from outcomes import Cell, Outcome, Reproduction
from streams import derived, generator
from training import DELTA, loss_of_labels, quiet_opacus

__all__ = ["SHORT", "ZOO", "Recipe", "probe", "train"]


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
        return _attained(
            self.sampling_rate, steps=self.steps, noise_multiplier=self.noise_multiplier
        )


SHORT = Recipe(
    examples=300,
    hidden=4,
    steps=60,
    noise_multiplier=1.5,
    canaries=100,
    step_canaries=100,
    claim=GaussianDP(),
)
"""About a second: some faults are not refuted at this size."""


def train(fault: Fault, recipe: Recipe, seed: int) -> DPSGDAudit:
    """Train and audit one network."""
    with reproducible(), quiet_opacus():
        data = _digits(recipe.examples, seed)
        torch.manual_seed(derived("demos/dp-sgd-network", seed))
        network = nn.Sequential(
            nn.Linear(64, recipe.hidden), nn.Tanh(), nn.Linear(recipe.hidden, 10)
        )
        private = GradSampleModule(network)
        noise = torch.Generator()
        noise.manual_seed(derived("demos/dp-sgd-noise", seed))
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
            _loop(
                private,
                optimizer=optimizer,
                loader=_loader(data, fault=fault, recipe=recipe, seed=seed),
                fault=fault,
                recipe=recipe,
            )
        rate = recipe.sampling_rate * fault.accountant_rate
        accounted = Accounted(
            epsilon=_attained(rate, steps=recipe.steps, noise_multiplier=recipe.noise_multiplier)
            * 1.001,
            delta=DELTA,
            source="PLD accountant",
            sampling_rate=rate,
            steps=recipe.steps,
            noise_multiplier=recipe.noise_multiplier,
        )
        return watch.audit(accounted=accounted, claim=recipe.claim)


def probe(fault: Fault, recipe: Recipe, seed: int) -> str:
    """Return what a probe of the step, or a test of the batches, contradicts; "" if nothing."""
    if fault.batches != "poisson":
        sampler: Any = _loader(
            _digits(recipe.examples, seed), fault=fault, recipe=recipe, seed=seed
        ).batch_sampler
        drawn = [*sampler]
        return ", ".join(audit_batches(drawn, examples=recipe.examples, seed=seed).refuted_by)
    step = Case(
        optimizer=fault.optimizer,
        norm=recipe.clipping_norm,
        physical=3 if fault.virtual else None,
        sweep=False,
    )
    return ", ".join(probed(step, seed).refuted_by)


def _loader(
    data: TensorDataset, fault: Fault, recipe: Recipe, seed: int
) -> DataLoader[tuple[Tensor, ...]]:
    draws = torch.Generator()
    draws.manual_seed(derived("demos/dp-sgd-loader", seed))
    how: dict[str, Any] = {
        "examples": recipe.examples,
        "rate": recipe.sampling_rate,
        "steps": recipe.steps,
        "generator": draws,
    }
    batches: PoissonBatches | ShuffledBatches
    if fault.batches == "poisson":
        batches = PoissonBatches(**how)
    elif fault.batches == "fixed":
        batches = ShuffledBatches(**how, sizes="fixed")
    else:
        batches = ShuffledBatches(**how, sizes="poisson")
    return DataLoader(data, batch_sampler=batches)


def _loop(
    network: nn.Module,
    optimizer: DPOptimizer,
    loader: DataLoader[tuple[Tensor, ...]],
    fault: Fault,
    recipe: Recipe,
) -> None:
    if not fault.virtual:
        _epoch(network, optimizer=optimizer, loader=loader)
        return
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=recipe.virtual_batch, optimizer=optimizer
    ) as parts:
        _epoch(network, optimizer=optimizer, loader=parts)


def _epoch(
    network: nn.Module, optimizer: DPOptimizer, loader: DataLoader[tuple[Tensor, ...]]
) -> None:
    for batch in loader:
        optimizer.zero_grad()
        loss = loss_of_labels(network, batch)
        torch.autograd.backward(loss)
        optimizer.step()


@lru_cache(maxsize=64)
def _attained(rate: float, steps: int, noise_multiplier: float) -> float:
    family = SubsampledGaussianDP(sampling_rate=rate, steps=steps)
    return float(family.attained(1 / noise_multiplier, "both").epsilon(DELTA))


def _digits(examples: int, seed: int) -> TensorDataset:
    images, labels = load_digits(return_X_y=True)
    order = generator("demos/dp-sgd-data", seed).permutation(len(labels))
    drawn = order[:examples]
    centred_images = torch.tensor(images[drawn] / 16 - 0.3, dtype=torch.float32)
    return TensorDataset(centred_images, torch.tensor(labels[drawn]))


_STEPS = (
    "ε is at δ = 1e-5; that of the steps holds if the noise is constant and batches are Poisson "
    "samples."
)


_PROBE = (
    "“probe” is what a probe of the same optimizer's step contradicts, at a noise multiplier of "
    "1.1, or a test of the indices in the batches where these are not Poisson samples."
)


def _zoo(*, full: bool) -> Outcome:
    """Train a network with each fault, and audit every run."""
    recipe = SHORT
    if full:
        recipe = Recipe()
    rows: list[tuple[Cell, ...]] = []
    for fault in FAULTS:
        audit = train(fault, recipe=recipe, seed=0)
        accounted = None
        if audit.accounted is not None:
            accounted = audit.accounted.epsilon
        proved = (audit.epsilon(), audit.steps.bound, audit.steps.epsilon(DELTA))
        refuted = ", ".join(audit.refuted_by) or "not refuted"
        by_probe = probe(fault, recipe=recipe, seed=0) or "not refuted"
        rows.append((fault.name, accounted, *proved, refuted, by_probe))
    return Outcome(
        columns=(
            "run",
            "ε accounted",
            "membership: ε at least",
            "steps: noise at most",
            "steps: ε at least",
            "refuted by",
            "probe",
        ),
        rows=tuple(rows),
        notes=(
            f"Every run states a noise multiplier of {recipe.noise_multiplier:g}.",
            _STEPS,
            _PROBE,
            *(
                f"Not detectable by watching: {one.name}, because {one.unseen}."
                for one in FAULTS
                if one.unseen
            ),
        ),
    )


ZOO: dict[str, Reproduction] = {
    "dp-sgd-zoo": Reproduction(
        title="Correct and faulty runs of DP-SGD", source="docs/theory/dp-sgd.md", compute=_zoo
    ),
}
"""Reproductions by name."""
