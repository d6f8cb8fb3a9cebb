"""Ways to get DP-SGD wrong: optimizers and loops with one fault each, and the right ones.

A fault is in the code or in what is told; the optimizer states the same noise multiplier and
clipping norm in all of them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import torch
from opacus.optimizers import DPOptimizer
from torch import Tensor
from torch.utils.data import Sampler

from leakbound.results.dp_sgd import Part
from streams import derived

__all__ = ["FAULTS", "Batches", "Fault", "PoissonBatches", "ShuffledBatches"]

Batches: TypeAlias = Literal["poisson", "fixed", "rotating"]


def _noise(optimizer: DPOptimizer, like: Tensor, std: float) -> Tensor:
    return torch.normal(0.0, std, like.shape, generator=optimizer.generator, device=like.device)


class _Noise(DPOptimizer):  # type: ignore[misc]
    """Noise of another scale than it should have."""

    @property
    def std(self) -> float:
        """What it should be."""
        return float(self.noise_multiplier * self.max_grad_norm)

    def add_noise(self) -> None:
        """Add noise of this scale to sums of clipped gradients."""
        for p in self.params:
            p.grad = p.summed_grad + _noise(self, like=p.summed_grad, std=self.std)


class NoNoise(_Noise):
    """Noise forgotten."""

    std = 0.0


class NoiseWithoutNorm(_Noise):
    """σ in place of σ C."""

    @property
    def std(self) -> float:
        """The multiplier alone."""
        return float(self.noise_multiplier)


class NoiseDividedTwice(_Noise):
    """σ C / B, added to a sum that is divided by B afterwards."""

    @property
    def std(self) -> float:
        """Divided once too often."""
        return float(self.noise_multiplier * self.max_grad_norm / self.expected_batch_size)


class NoiseOfPart(_Noise):
    """Noise scaled to the share that one virtual batch has in the logical one."""

    parts = 4

    @property
    def std(self) -> float:
        """A share of what it should be."""
        return float(self.noise_multiplier * self.max_grad_norm / self.parts)


class RepeatedNoise(DPOptimizer):  # type: ignore[misc]
    """The generator reseeded before every step."""

    def add_noise(self) -> None:
        """Add the same noise as in the step before."""
        self.generator = torch.Generator()
        self.generator.manual_seed(derived("demos/dp-sgd-repeated", 0))
        super().add_noise()


class CorrelatedNoise(DPOptimizer):  # type: ignore[misc]
    """Half of the noise of a step, by variance, is that of the step before."""

    def add_noise(self) -> None:
        """Add the scaled sum of new noise and of what was new in the step before."""
        std = self.noise_multiplier * self.max_grad_norm
        new = [_noise(self, like=p.summed_grad, std=std) for p in self.params]
        old = getattr(self, "old", new)
        self.old = new
        for p, one, other in zip(self.params, new, old, strict=True):
            p.grad = p.summed_grad + (one + other) / math.sqrt(2)


class NoiseMissingInLayer(DPOptimizer):  # type: ignore[misc]
    """The first layer of the model gets no noise."""

    def add_noise(self) -> None:
        """Add noise to all parameters but one."""
        super().add_noise()
        first = self.params[0]
        first.grad = first.summed_grad.clone()


class _Clipping(DPOptimizer):  # type: ignore[misc]
    """Gradients scaled by other factors than they should be."""

    def factors(self, rows: list[Tensor]) -> list[Tensor]:
        """Return the factor of every example, parameter by parameter."""
        norms = torch.stack([one.flatten(1).norm(dim=1) for one in rows], dim=1).norm(dim=1)
        return [(self.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)] * len(rows)

    def clip_and_accumulate(self) -> None:
        """Scale and sum."""
        rows = self.grad_samples
        for p, factor, row in zip(self.params, self.factors(rows), rows, strict=True):
            total = torch.einsum("i,i...", factor, row)
            p.summed_grad = total if p.summed_grad is None else p.summed_grad + total


class NoClipping(_Clipping):
    """Gradients as they are."""

    def factors(self, rows: list[Tensor]) -> list[Tensor]:
        """Change nothing."""
        return [torch.ones(len(one)) for one in rows]


class EachLayerAtC(_Clipping):
    """Every layer clipped at C by itself, with the noise of flat clipping at C."""

    def factors(self, rows: list[Tensor]) -> list[Tensor]:
        """Clip each parameter's part alone."""
        norms = [one.flatten(1).norm(dim=1) for one in rows]
        return [(self.max_grad_norm / (norm + 1e-6)).clamp(max=1.0) for norm in norms]


class LayerNotClipped(_Clipping):
    """The first layer of the model left out of clipping and of the norm."""

    def factors(self, rows: list[Tensor]) -> list[Tensor]:
        """Clip all parameters but one."""
        return [torch.ones(len(rows[0])), *super().factors(rows[1:])]


class ClippedMean(DPOptimizer):  # type: ignore[misc]
    """The mean gradient clipped at C in place of every example's, with noise σ C / B."""

    def clip_and_accumulate(self) -> None:
        """Sum gradients as they are, and count them."""
        for p, rows in zip(self.params, self.grad_samples, strict=True):
            p.summed_grad = rows.sum(dim=0) / max(1, len(rows))

    def add_noise(self) -> None:
        """Clip the mean, and add noise."""
        means = [p.summed_grad for p in self.params]
        norm = torch.stack([one.norm() for one in means]).norm()
        factor = (self.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
        std = self.noise_multiplier * self.max_grad_norm / self.expected_batch_size
        for p, mean in zip(self.params, means, strict=True):
            p.grad = factor * mean + _noise(self, like=mean, std=std)

    def scale_grad(self) -> None:
        """Do nothing: it is a mean already."""


class ClippedSum(DPOptimizer):  # type: ignore[misc]
    """The sum of gradients clipped at C in place of every example's, with noise σ C."""

    def clip_and_accumulate(self) -> None:
        """Sum gradients as they are, and clip the sum."""
        sums = [rows.sum(dim=0) for rows in self.grad_samples]
        norm = torch.stack([one.norm() for one in sums]).norm()
        for p, total in zip(self.params, sums, strict=True):
            p.summed_grad = total * (self.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)


class DivisorOfBatch(DPOptimizer):  # type: ignore[misc]
    """Noisy sums divided by the size of the batch, not by its expectation."""

    def scale_grad(self) -> None:
        """Divide by the number of examples, which canaries, of no gradient here, are not among."""
        size = int(self.params[0].grad_sample.flatten(1).any(dim=1).sum())
        for p in self.params:
            p.grad /= max(1, size)


@dataclass(frozen=True, kw_only=True)
class PoissonBatches(Sampler[list[int]]):
    """Every example in every batch with probability q, by itself."""

    examples: int
    rate: float
    steps: int
    generator: torch.Generator = field(repr=False)

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self.steps):
            drawn = torch.rand(self.examples, generator=self.generator) < self.rate
            yield drawn.nonzero().flatten().tolist()

    def __len__(self) -> int:
        return self.steps


@dataclass(frozen=True, kw_only=True)
class ShuffledBatches(PoissonBatches):
    """Batches of fixed size from shuffled epochs, or sizes of Poisson sampling in a fixed order."""

    sizes: Literal["fixed", "poisson"]

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.randperm(self.examples, generator=self.generator)
        place = 0
        for _ in range(self.steps):
            size = round(self.examples * self.rate)
            if self.sizes == "poisson":
                drawn = torch.rand(self.examples, generator=self.generator) < self.rate
                size = int(drawn.sum())
            yield order[torch.arange(place, place + size) % self.examples].tolist()
            place += size

    def __len__(self) -> int:
        return self.steps


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way to get DP-SGD wrong, or right; and why watching cannot see it, if it cannot."""

    name: str
    optimizer: Any = DPOptimizer
    batches: Batches = "poisson"
    accountant_rate: float = 1.0
    """Factor on the sampling rate that the accountant is told."""
    watch_rate: float = 1.0
    """Factor on the sampling rate that the watch is told."""
    virtual: bool = False
    """Whether batches are split into virtual ones."""
    correct: bool = False
    by: Part | None = None
    """The audit that refutes it, whatever the others say; None of what none does."""
    unseen: str = ""
    """Why watching cannot detect it, and a probe has to; empty if it can."""


FAULTS = (
    Fault(name="correct", correct=True),
    Fault(name="correct, virtual batches", virtual=True, correct=True),
    Fault(name="no noise", optimizer=NoNoise, by="steps"),
    Fault(name="noise not multiplied by the clipping norm", optimizer=NoiseWithoutNorm, by="steps"),
    Fault(name="noise divided by the batch size twice", optimizer=NoiseDividedTwice, by="steps"),
    Fault(name="noise of one virtual batch only", optimizer=NoiseOfPart, virtual=True, by="steps"),
    Fault(name="same noise in every step", optimizer=RepeatedNoise, by="steps"),
    Fault(name="half of the noise of the step before", optimizer=CorrelatedNoise, by="steps"),
    Fault(name="clipping after averaging", optimizer=ClippedMean, by="steps"),
    Fault(name="each layer clipped at C", optimizer=EachLayerAtC, by="steps"),
    Fault(name="no clipping", optimizer=NoClipping, by="steps"),
    Fault(name="half the rate in the accountant", accountant_rate=0.5, by="accounting"),
    Fault(
        name="half the rate in accountant and watch",
        accountant_rate=0.5,
        watch_rate=0.5,
        by="sampling",
    ),
    Fault(name="batches of fixed size", batches="fixed", by="sampling"),
    Fault(
        name="examples in a fixed order, sizes as of Poisson sampling",
        batches="rotating",
        unseen="sizes of batches do not tell which examples are in them",
    ),
    Fault(
        name="clipping of the sum",
        optimizer=ClippedSum,
        unseen="all canaries of a batch share the length that one by itself would have",
    ),
    Fault(
        name="a divisor that follows the batch",
        optimizer=DivisorOfBatch,
        unseen="canaries and noise shrink together as a batch grows",
    ),
    Fault(
        name="a layer of the model not clipped",
        optimizer=LayerNotClipped,
        unseen="canaries have no gradient in the model's own parameters",
    ),
    Fault(
        name="a layer of the model without noise",
        optimizer=NoiseMissingInLayer,
        unseen="canaries are read from the watcher's own parameters",
    ),
)
"""The correct runs first, then faults that watching sees, then those that it does not."""
