"""Canaries in an opacus optimizer: gradients of their own, in parameters of their own.

Loading this module loads PyTorch and opacus.
"""

import math
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from opacus.optimizers import AdaClipDPOptimizer, DPOptimizer, DPOptimizerFastGradientClipping
from opacus.optimizers.ddp_perlayeroptimizer import DistributedPerLayerOptimizer
from torch import Tensor, nn
from torch.utils.data import DataLoader

from leakbound._base.checks import integer, shown
from leakbound._base.types import FloatArray, IntArray
from leakbound.audits.dp_sgd.canaries import CanaryDesign, Recorder
from leakbound.audits.dp_sgd.sampling import possible_examples
from leakbound.errors import InputTypeError, OptionError
from leakbound.results.dp_step import DPStepAudit

# Parameters that a canary's gradient is spread over: clipping each of them by itself then shows.
PARAMETERS = 4
# Norm of a canary's gradient, in clipping norms: far enough to be clipped whatever the rounding.
_CANARY_NORM = 1e3
# The last bit of a canary's number that is read, which is never set.
_HIGHEST_BIT = 62
# Attribute of an optimizer that is being watched: it cannot be watched twice at a time.
_WATCHED_ATTRIBUTE = "_leakbound_watched"


def check_watchable_optimizer(optimizer: object, probe: DPStepAudit | None = None) -> None:
    """Raise unless canaries can be put in an optimizer: clips rows of `grad_sample` itself.

    Ghost clipping does not: it needs a probe of the step that shows no fault.
    """
    if not isinstance(optimizer, DPOptimizer):
        raise InputTypeError(f"optimizer must be an opacus DPOptimizer, got {shown(optimizer)}")
    unsupported_types = (AdaClipDPOptimizer, DistributedPerLayerOptimizer)
    is_ghost_clipping = has_ghost_clipping(optimizer)
    if isinstance(optimizer, unsupported_types) or (is_ghost_clipping and probe is None):
        advice = ""
        if is_ghost_clipping:
            advice = (
                ", or probe the step first and pass its result, "
                "probe=leakbound.probe_dp_step(step, …)"
            )
        raise InputTypeError(
            f"{type(optimizer).__name__} cannot be watched: it clips inside the backward pass, or "
            "at a norm that follows the data; use grad_sample_mode='hooks' and flat or per-layer "
            f"clipping{advice}"
        )
    if probe is not None:
        _check_probe_of_step(optimizer, probe)
    flaw = ""
    if hasattr(optimizer, _WATCHED_ATTRIBUTE):
        flaw = "is already being watched: exit the first watch before you start another"
    elif not optimizer.params:
        flaw = "has no parameter that takes gradients"
    elif not optimizer.noise_multiplier > 0:
        flaw = "adds no noise, so it claims no privacy"
    elif is_within_logical_batch(optimizer):
        flaw = "is within a logical batch: start watching between two steps"
    if flaw:
        raise OptionError(f"the optimizer {flaw}")


def is_within_logical_batch(optimizer: DPOptimizer) -> bool:
    """Return whether a part of a batch has been added up, and more of it will come."""
    if not getattr(optimizer, "_is_last_step_skipped", False):
        return False
    sums = [getattr(parameter, "summed_grad", None) for parameter in optimizer.params]
    return any(summed is not None for summed in sums)


def has_ghost_clipping(optimizer: object) -> bool:
    """Return whether an optimizer is given sums that were clipped inside the backward pass."""
    return isinstance(optimizer, DPOptimizerFastGradientClipping)


def _check_probe_of_step(optimizer: DPOptimizer, probe: object) -> None:
    """Raise unless a probe of the step shows no fault at the optimizer's noise multiplier."""
    if not isinstance(probe, DPStepAudit):
        raise InputTypeError(f"probe must be a DPStepAudit, got {shown(probe)}")
    noise_multiplier = float(optimizer.noise_multiplier)
    verdict = "inconclusive"
    if noise_multiplier > 0:
        verdict = probe.check(noise_multiplier=noise_multiplier)
    if verdict != "not refuted":
        raise OptionError(
            f"the probe of the step is {verdict} at the optimizer's noise multiplier, "
            f"{noise_multiplier:g}, so that it does not vouch for the clipping"
        )


def number_of_training_examples(examples: object, optimizer: DPOptimizer) -> int:
    """Return how many examples there are, or a loader has; raise if batches are expected larger."""
    if isinstance(examples, DataLoader):
        if not hasattr(examples.dataset, "__len__"):
            dataset_type = type(examples.dataset).__name__
            raise InputTypeError(
                f"the loader's {dataset_type} has no length: pass the number of training examples"
            )
        examples = len(examples.dataset)
    example_count = integer(examples, "examples", least=1)
    processes = getattr(optimizer, "world_size", 1)
    expected_batch_size = (optimizer.expected_batch_size or 0) * processes
    if example_count < expected_batch_size:
        raise OptionError(
            f"examples is {example_count:,}, and the optimizer expects batches of "
            f"{expected_batch_size:g}: pass the number of all, len(dataset)"
        )
    return example_count


class WatchedOptimizer:
    """An opacus optimizer with canaries in its batches, until `detach`.

    From `pre_step` to the step of the underlying optimizer, the optimizer has parameters of the
    watcher that no model uses. A canary is one more row of every parameter's `grad_sample`: zeros
    in those of the model and, in each parameter of the watcher, one coordinate of its own, far
    above the clipping norm. The optimizer's own code then clips, sums, noises and scales all rows.
    The result is read where the underlying optimizer takes its step. Between two steps the
    optimizer has the parameters of the model alone, so that checkpoints and copies do, too.
    """

    def __init__(self, optimizer: DPOptimizer, design: CanaryDesign) -> None:
        first_parameter = optimizer.params[0]
        self.optimizer = optimizer
        self.recorder = Recorder(design, float(optimizer.noise_multiplier))
        # Canaries ride on the first process of distributed training.
        self.is_first_process = getattr(optimizer, "rank", 0) == 0
        self._begin_logical_batch()
        dtype = torch.float32
        if first_parameter.dtype == torch.float64:
            dtype = torch.float64
        self._watcher_parameters = [
            nn.Parameter(torch.zeros(design.size, dtype=dtype, device=first_parameter.device))
            for _ in range(PARAMETERS)
        ]
        # Signs that sum to zero: noise that repeats from parameter to parameter cancels.
        signs = np.where(np.arange(PARAMETERS) % 2 == 0, 1.0, -1.0)
        self._direction = signs / math.sqrt(PARAMETERS)
        self._attach_to_optimizer()

    def _begin_logical_batch(self) -> None:
        """Expect the first physical batch of a logical one."""
        self._canaries_left: IntArray | None = None
        self._physical_batches = 0
        self._rows_of_passes = list[int]()
        self._has_canaries = False

    @property
    def _model_parameters(self) -> list[Any]:
        """The parameters that are trained now: layers may be frozen or added in between."""
        return self._without_watcher(self.optimizer.params)

    def _without_watcher(self, parameters: list[Any]) -> list[Any]:
        """Return parameters but for those of the watcher."""
        watcher_ids = {id(parameter) for parameter in self._watcher_parameters}
        return [parameter for parameter in parameters if id(parameter) not in watcher_ids]

    @property
    def processes(self) -> int:
        """Processes that train together."""
        return int(getattr(self.optimizer, "world_size", 1))

    @property
    def examples(self) -> tuple[int, int] | None:
        """The least and the most training examples N that give the expected batch size ⌊N q⌋."""
        expected_batch_size = self.optimizer.expected_batch_size
        sampling_rate = self.recorder.design.sampling_rate
        if expected_batch_size:
            return possible_examples(expected_batch_size, sampling_rate)
        return None

    def _attach_to_optimizer(self) -> None:
        """Watch the two moments that matter: before clipping, and before the step."""
        optimizer = self.optimizer
        for parameter in self._watcher_parameters:
            parameter.grad_sample = None  # type: ignore[attr-defined]
            parameter.summed_grad = None  # type: ignore[attr-defined]
        self._original_pre_step = optimizer.pre_step
        optimizer.pre_step = self._pre_step_with_canaries
        setattr(optimizer, _WATCHED_ATTRIBUTE, True)
        self._attached = True
        self._is_in_parameter_groups = False
        inner_optimizer = optimizer.original_optimizer
        self._inner_step_hook = inner_optimizer.register_step_pre_hook(
            self._before_inner_optimizer_step
        )

    def detach(self) -> None:
        """Leave the optimizer as it was."""
        optimizer = self.optimizer
        self._attached = False
        self._inner_step_hook.remove()
        self._remove_from_parameter_groups()
        if vars(optimizer).get("pre_step") == self._pre_step_with_canaries:
            del optimizer.pre_step
        delattr(optimizer, _WATCHED_ATTRIBUTE)

    def _add_to_parameter_groups(self) -> None:
        """Add the parameters to the last group, whatever schedules the groups' options have."""
        self._remove_from_parameter_groups()  # where the last step was not taken
        optimizer = self.optimizer
        # What zero_grad has done to the parameters of the model, it has not done to these.
        summed_gradients = [
            getattr(parameter, "summed_grad", None) for parameter in self._model_parameters
        ]
        if all(summed_gradient is None for summed_gradient in summed_gradients):
            for parameter in self._watcher_parameters:
                parameter.summed_grad = None  # type: ignore[attr-defined]
        last_group = optimizer.param_groups[-1]
        last_group["params"] = [*last_group["params"], *self._watcher_parameters]
        self._max_grad_norms = getattr(optimizer, "max_grad_norms", None)
        if self._max_grad_norms is not None:
            norm_of_all = math.hypot(*(float(norm) for norm in self._max_grad_norms))
            norm_of_each = norm_of_all / math.sqrt(PARAMETERS)
            optimizer.max_grad_norms = [*self._max_grad_norms, *[norm_of_each] * PARAMETERS]
        self._is_in_parameter_groups = True

    def _remove_from_parameter_groups(self) -> None:
        """Take the parameters out of whichever group has them."""
        if not self._is_in_parameter_groups:
            return
        optimizer = self.optimizer
        for parameter_group in optimizer.param_groups:
            parameter_group["params"] = self._without_watcher(parameter_group["params"])
        for parameter in self._watcher_parameters:
            parameter.grad_sample = None  # type: ignore[attr-defined]
        if self._max_grad_norms is not None:
            optimizer.max_grad_norms = self._max_grad_norms
        self._is_in_parameter_groups = False

    def _pre_step_with_canaries(self, closure: object = None) -> Any:
        """Add the canaries' rows to a physical batch, then clip and noise as the optimizer does."""
        if not self._attached:  # somebody kept the method
            return self._original_pre_step(closure)
        if not self._has_gradients_without_canaries():
            return self._original_pre_step(closure)  # which says what is wrong
        self._add_to_parameter_groups()
        will_step = False
        try:
            self._add_canaries_to_physical_batch()
            will_step = self._original_pre_step(closure)
        finally:
            if not will_step:  # nothing to read: a part of a batch, or an error
                self._remove_from_parameter_groups()
        return will_step

    def _has_gradients_without_canaries(self) -> bool:
        """Whether there are new gradients of examples to add canaries to."""
        has_gradients = False
        for parameter in self._model_parameters:
            gradients = getattr(parameter, "grad_sample", None)
            if gradients is None:
                continue
            has_gradients = True
            *_, last_pass = _grad_samples_of_passes(gradients)
            if hasattr(last_pass, "_processed"):
                return False
        return has_gradients

    def _add_canaries_to_physical_batch(self) -> None:
        """Add the rows of those canaries that are in this physical batch."""
        if self._canaries_left is None:
            self._canaries_left = self.recorder.included()
            if not self.is_first_process:
                self._canaries_left = self._canaries_left[:0]
        # Half of those left are in this physical batch, and in the last one all. The half goes by
        # bits of the canary's number, so that it depends on no coin.
        skips_step = self.optimizer._check_skip_next_step(pop_next=False)  # noqa: SLF001 (no other way)
        canaries_left = self._canaries_left
        is_in_batch = np.ones(canaries_left.size, dtype=np.bool_)
        if skips_step:
            number_bit = min(self._physical_batches, _HIGHEST_BIT)
            is_in_batch = canaries_left >> number_bit & 1 == 0
        self._canaries_left = canaries_left[~is_in_batch]
        self._physical_batches += 1
        # Of a split batch, rows of the same backward pass are put together.
        added_rows = self._append_canary_rows(canaries_left[is_in_batch])
        rows_before_and_added = zip_longest(self._rows_of_passes, added_rows, fillvalue=0)
        self._rows_of_passes = [
            rows_of_pass_before + rows_of_pass
            for rows_of_pass_before, rows_of_pass in rows_before_and_added
        ]
        self._has_canaries = True

    def _append_canary_rows(self, canaries: IntArray) -> list[int]:
        """Append rows of canaries to the last batch accumulated; return the rows of each before."""
        rows_of_passes = list[int]()
        has_several_passes = False
        for parameter in self._model_parameters:
            gradients = getattr(parameter, "grad_sample", None)
            if gradients is None:
                continue  # opacus refuses it
            has_several_passes = isinstance(gradients, list)
            *earlier_passes, last_pass = _grad_samples_of_passes(gradients)
            rows_of_passes = [len(rows_of_pass) for rows_of_pass in (*earlier_passes, last_pass)]
            if canaries.size:  # rows of zeros: canaries leave the model alone
                zeros = last_pass.new_zeros((canaries.size, *last_pass.shape[1:]))
                last_pass = torch.cat([last_pass, zeros])
                parameter.grad_sample = last_pass
                if has_several_passes:
                    parameter.grad_sample = [*earlier_passes, last_pass]
        # In each parameter of the watcher, zeros for the user's examples and one coordinate of its
        # own for each canary.
        canary_norm = _CANARY_NORM * float(self.optimizer.max_grad_norm)
        canary_coordinates, contributions = self._canary_coordinates_and_contributions(canaries)
        directed_parameters = zip(self._watcher_parameters, self._direction, strict=True)
        for parameter, direction_component in directed_parameters:
            coordinate_count = parameter.numel()
            own_gradients = [
                parameter.new_zeros((rows_of_pass, coordinate_count))
                for rows_of_pass in rows_of_passes
            ]
            canary_rows = parameter.new_zeros((canaries.size, coordinate_count))
            row_numbers = torch.arange(canaries.size, device=canary_rows.device)
            canary_rows[row_numbers, canary_coordinates] = (
                direction_component * canary_norm * contributions
            )
            own_gradients[-1] = torch.cat([own_gradients[-1], canary_rows])
            gradients = own_gradients
            if not has_several_passes:
                (gradients,) = own_gradients
            parameter.grad_sample = gradients  # type: ignore[attr-defined]
        return rows_of_passes

    def _canary_coordinates_and_contributions(self, canaries: IntArray) -> tuple[Tensor, Tensor]:
        """Return the coordinates of canaries, and what each adds, in clipping norms."""
        first_parameter = self._watcher_parameters[0]
        canary_coordinates = torch.as_tensor(canaries, device=first_parameter.device)
        contributions = torch.as_tensor(self.recorder.contributions[canaries])
        return canary_coordinates, contributions.to(first_parameter)

    def _before_inner_optimizer_step(self, *_: object) -> None:
        """Read the noisy gradient as the underlying optimizer gets it, and leave its groups."""
        try:
            self._record_released_canaries()
        finally:
            self._remove_from_parameter_groups()

    def _record_released_canaries(self) -> None:
        """Record what is released of the canaries of a logical batch."""
        if not self._has_canaries:
            raise OptionError(
                f"{type(self.optimizer).__name__} took a step without pre_step(), so that no "
                "canary was in its batch"
            )
        if self.is_first_process:
            noise_multiplier = float(self.optimizer.noise_multiplier)
            self.recorder.record(
                self._released_gradient_along_canaries(), noise_multiplier, self._rows_of_passes
            )
        for parameter in self._watcher_parameters:
            if parameter.grad is not None:
                parameter.grad.zero_()
        self._begin_logical_batch()

    def _released_gradient_along_canaries(self) -> FloatArray:
        """Return the released gradient along each canary's own, in units of the clipping norm."""
        released_gradients = []
        for parameter in self._watcher_parameters:
            if parameter.grad is None:
                raise OptionError("the optimizer released no gradient of the watcher's parameters")
            gradient = parameter.grad.detach().cpu()
            released_gradients.append(np.asarray(gradient, dtype=np.float64))
        along_canaries = self._direction @ np.stack(released_gradients)
        optimizer = self.optimizer
        divisor = 1.0
        if optimizer.loss_reduction == "mean":  # the optimizer divides sums, by this number
            divisor = float(
                optimizer.expected_batch_size * optimizer.accumulated_iterations * self.processes
            )
        return divisor / float(optimizer.max_grad_norm) * along_canaries


class WatchedGhost(WatchedOptimizer):
    """An optimizer whose gradients were clipped inside the backward pass, with canaries.

    Nothing can be added before clipping. A canary is added to the clipped sum of each parameter of
    the watcher, at the clipping norm, as a step adds it that clips as a probe has shown. The
    optimizer's own code adds the noise and divides.
    """

    _last_norms: Any = None

    def _has_gradients_without_canaries(self) -> bool:
        """See `WatchedOptimizer._has_gradients_without_canaries`."""
        return any(parameter.grad is not None for parameter in self._model_parameters)

    def _append_canary_rows(self, canaries: IntArray) -> list[int]:
        """Add canaries to the clipped sums; return the examples of the backward pass."""
        clipping_norm = float(self.optimizer.max_grad_norm)
        canary_coordinates, contributions = self._canary_coordinates_and_contributions(canaries)
        directed_parameters = zip(self._watcher_parameters, self._direction, strict=True)
        for parameter, direction_component in directed_parameters:
            clipped_sum = torch.zeros_like(parameter)
            clipped_sum[canary_coordinates] = direction_component * clipping_norm * contributions
            parameter.grad = clipped_sum
        for parameter in self._model_parameters:
            example_norms = getattr(parameter, "_norm_sample", None)
            if example_norms is None:
                continue
            if example_norms is self._last_norms:
                break
            self._last_norms = example_norms
            return [len(example_norms)]
        return [0]  # of an empty batch no norms are kept


def _grad_samples_of_passes(gradients: object) -> list[Any]:
    """Return what opacus has kept of one backward pass, or of several, as a list."""
    if isinstance(gradients, list):
        return gradients
    return [gradients]
