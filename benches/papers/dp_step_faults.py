"""Steps of DP-SGD on opacus with one fault each: a probe refutes all of them."""

from dataclasses import replace
from typing import Any

import torch
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn

from dp_sgd_faults import (
    ClippedMean,
    ClippedSum,
    CorrelatedNoise,
    DivisorOfBatch,
    EachLayerAtC,
    LayerNotClipped,
    NoClipping,
    NoiseDividedTwice,
    NoiseMissingInLayer,
    NoiseWithoutNorm,
    NoNoise,
    RepeatedNoise,
)
from dp_step_models import Case, bag, mlp, summed_loss, tokens

__all__ = ["STEP_FAULTS"]


def _noise(optimizer: DPOptimizer, like: Tensor, std: float | None = None) -> Tensor:
    """Return noise in the shape of a tensor, of deviation σ C if none is given."""
    if std is None:
        std = optimizer.noise_multiplier * optimizer.max_grad_norm
    return torch.normal(0.0, float(std), like.shape, generator=optimizer.generator)


def _gradient_rows(optimizer: DPOptimizer) -> list[Tensor]:
    """Return for each parameter the gradients of examples, a row for each."""
    return [gradients.flatten(1) for gradients in optimizer.grad_samples]


def _clipping_factors(optimizer: DPOptimizer, norms: Tensor) -> Tensor:
    """Return what gradients of these norms are multiplied by."""
    factors: Tensor = (optimizer.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
    return factors


def _accumulate(parameter: Any, gradient_sum: Tensor) -> None:
    """Add a sum of gradients to that of the batches before."""
    shaped_sum = gradient_sum.view_as(parameter)
    earlier_sum = parameter.summed_grad
    if earlier_sum is not None:
        shaped_sum = earlier_sum + shaped_sum
    parameter.summed_grad = shaped_sum


class NoiseTimesRate(NoNoise):
    """Noise scaled by the learning rate."""

    @property
    def std(self) -> float:  # type: ignore[override]
        """A tenth."""
        return float(self.noise_multiplier * self.max_grad_norm * self.param_groups[0]["lr"])


class SameInEveryLayer(DPOptimizer):  # type: ignore[misc]
    """One key for the noise of all parameters."""

    def add_noise(self) -> None:
        """Add the first of the same numbers to each."""
        largest_size = max(parameter.numel() for parameter in self.params)
        noise = _noise(self, torch.zeros(largest_size))
        for parameter in self.params:
            same_noise = noise[: parameter.numel()]
            noisy_sum = parameter.summed_grad.flatten() + same_noise
            parameter.grad = noisy_sum.view_as(parameter)


class NoiseMissingInBias(DPOptimizer):  # type: ignore[misc]
    """Biases get no noise."""

    def add_noise(self) -> None:
        """Add noise to all but one."""
        super().add_noise()
        bias = self.params[1]
        bias.grad = bias.summed_grad.clone()


class OneRowOfNoise(DPOptimizer):  # type: ignore[misc]
    """Noise of one row, for all rows of a matrix."""

    def add_noise(self) -> None:
        """Add it by broadcasting."""
        for parameter in self.params:
            noise_of_one_row = _noise(self, parameter.summed_grad[:1])
            parameter.grad = parameter.summed_grad + noise_of_one_row


class NoiseOnTouchedRows(DPOptimizer):  # type: ignore[misc]
    """Rows of an embedding that no example of the batch has get no noise."""

    def add_noise(self) -> None:
        """Take the noise off again where there is no gradient."""
        super().add_noise()
        embedding = self.params[0]
        is_touched = (embedding.summed_grad != 0).any(dim=1, keepdim=True)
        embedding.grad = torch.where(is_touched, embedding.grad, embedding.summed_grad)


class ClippedByValue(DPOptimizer):  # type: ignore[misc]
    """Each number of a gradient within ±C."""

    def clip_and_accumulate(self) -> None:
        """Clamp and sum."""
        largest = self.max_grad_norm
        for parameter, rows in zip(self.params, _gradient_rows(self), strict=True):
            clamped_rows = rows.clamp(-largest, largest)
            _accumulate(parameter, clamped_rows.sum(0))


class SquaredNorm(DPOptimizer):  # type: ignore[misc]
    """The squared norm where the norm should be: too long below 1."""

    def clip_and_accumulate(self) -> None:
        """Scale by a wrong factor and sum."""
        rows_of_parameters = _gradient_rows(self)
        norms_of_parameters = [rows.norm(dim=1) for rows in rows_of_parameters]
        norms = torch.stack(norms_of_parameters).norm(dim=0)
        factors = _clipping_factors(self, norms**2)
        for parameter, rows in zip(self.params, rows_of_parameters, strict=True):
            _accumulate(parameter, factors @ rows)


class DivisorBeforeNoise(DPOptimizer):  # type: ignore[misc]
    """The mean over the batch, then noise of σ C / B."""

    def add_noise(self) -> None:
        """Divide by the size of the batch, which varies, and add noise."""
        batch_size = max(1, len(self.params[0].grad_sample))
        std = self.noise_multiplier * self.max_grad_norm / self.expected_batch_size
        for parameter in self.params:
            mean_gradient = parameter.summed_grad / batch_size
            parameter.grad = mean_gradient + _noise(self, parameter.summed_grad, std)

    def scale_grad(self) -> None:
        """Do nothing: it is a mean already."""


class _NoiseOfParts(DPOptimizer):  # type: ignore[misc]
    """A logical batch of which some parts alone have noise."""

    share = 0.5

    def add_noise(self) -> None:
        """Add a share of the noise."""
        std = self.share * self.noise_multiplier * self.max_grad_norm
        for parameter in self.params:
            noise = _noise(self, parameter.summed_grad, std)
            parameter.grad = parameter.summed_grad + noise


class NoNoiseOfParts(_NoiseOfParts):
    """Noise forgotten where batches are accumulated."""

    share = 0.0


class NormOfOneUse(DPOptimizer):  # type: ignore[misc]
    """Tied weights: the norm is that of a tenth of their gradient, the sum has all of it."""

    def clip_and_accumulate(self) -> None:
        """Scale by the norm of one use of the weights."""
        rows_of_parameters = _gradient_rows(self)
        norms_of_tied, *norms_of_others = [rows.norm(dim=1) for rows in rows_of_parameters]
        norms = torch.stack([0.1 * norms_of_tied, *norms_of_others]).norm(dim=0)
        factors = _clipping_factors(self, norms)
        for parameter, rows in zip(self.params, rows_of_parameters, strict=True):
            _accumulate(parameter, factors @ rows)


class _Centred(nn.Module):
    """A layer that mixes examples before there are gradients of each."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs - inputs.mean(0)


def _mixing() -> nn.Module:
    hidden, activation, output = mlp().children()
    return nn.Sequential(hidden, _Centred(), activation, output)


_BAG = Case(network=bag, examples=tokens)

STEP_FAULTS: dict[str, Case] = {
    "no noise": Case(optimizer=NoNoise),
    "noise not multiplied by the clipping norm": Case(optimizer=NoiseWithoutNorm, norm=2.0),
    "noise divided by the batch size twice": Case(optimizer=NoiseDividedTwice),
    "noise multiplied by the learning rate": Case(optimizer=NoiseTimesRate),
    "same noise in every step": Case(optimizer=RepeatedNoise),
    "half of the noise of the step before": Case(optimizer=CorrelatedNoise),
    "same noise in every layer": Case(optimizer=SameInEveryLayer),
    "a layer without noise": Case(optimizer=NoiseMissingInLayer),
    "biases without noise": Case(optimizer=NoiseMissingInBias),
    "one row of noise for a matrix": Case(optimizer=OneRowOfNoise),
    "noise on touched rows of an embedding": replace(_BAG, optimizer=NoiseOnTouchedRows),
    "no clipping": Case(optimizer=NoClipping),
    "each layer clipped at C": Case(optimizer=EachLayerAtC),
    "a layer not clipped": Case(optimizer=LayerNotClipped),
    "clipping by value": Case(optimizer=ClippedByValue),
    "squared norm": Case(optimizer=SquaredNorm, norm=0.1),
    "clipping of the sum": Case(optimizer=ClippedSum),
    "clipping after averaging": Case(optimizer=ClippedMean),
    "a divisor that follows the batch": Case(optimizer=DivisorOfBatch),
    "mean over the batch, then noise": Case(optimizer=DivisorBeforeNoise),
    "half of the noise where batches are split": Case(optimizer=_NoiseOfParts, physical=3),
    "no noise where batches are split": Case(optimizer=NoNoiseOfParts, physical=3),
    "sum of losses stated as a mean": Case(optimizer=DPOptimizer, loss=summed_loss),
    "mean of losses stated as a sum": Case(optimizer=DPOptimizer, reduction="sum"),
    "a layer that centres the batch": Case(optimizer=DPOptimizer, network=_mixing, empty=False),
    "norm of one use of a tied weight": replace(
        _BAG, network=lambda: bag(tied=True), optimizer=NormOfOneUse, classes=50
    ),
}
"""Faults of a step, by name."""
