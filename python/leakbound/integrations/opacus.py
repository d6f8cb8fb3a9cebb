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
from torch import nn
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
_FAR = 1e3
# The last bit of a canary's number that is read, which is never set.
_BITS = 62
# Attribute of an optimizer that is being watched: it cannot be watched twice at a time.
_MARK = "_leakbound_watched"


def check_optimizer(optimizer: object, probe: DPStepAudit | None = None) -> None:
    """Raise unless canaries can be put in an optimizer: clips rows of `grad_sample` itself.

    Ghost clipping does not: it needs a probe of the step that shows no fault.
    """
    if not isinstance(optimizer, DPOptimizer):
        raise InputTypeError(f"optimizer must be an opacus DPOptimizer, got {shown(optimizer)}")
    kinds = (AdaClipDPOptimizer, DistributedPerLayerOptimizer)
    ghost = is_ghost(optimizer)
    if isinstance(optimizer, kinds) or (ghost and probe is None):
        other = ""
        if ghost:
            other = (
                ", or probe the step first and pass its result, "
                "probe=leakbound.probe_dp_step(step, …)"
            )
        raise InputTypeError(
            f"{type(optimizer).__name__} cannot be watched: it clips inside the backward pass, or "
            "at a norm that follows the data; use grad_sample_mode='hooks' and flat or per-layer "
            f"clipping{other}"
        )
    if probe is not None:
        _check_probe(optimizer, probe)
    wrong = ""
    if hasattr(optimizer, _MARK):
        wrong = "is already being watched: exit the first watch before you start another"
    elif not optimizer.params:
        wrong = "has no parameter that takes gradients"
    elif not optimizer.noise_multiplier > 0:
        wrong = "adds no noise, so it claims no privacy"
    elif getattr(optimizer, "_is_last_step_skipped", False) and any(
        getattr(p, "summed_grad", None) is not None for p in optimizer.params
    ):
        wrong = "is within a logical batch: start watching between two steps"
    if wrong:
        raise OptionError(f"the optimizer {wrong}")


def is_ghost(optimizer: object) -> bool:
    """Return whether an optimizer is given sums that were clipped inside the backward pass."""
    return isinstance(optimizer, DPOptimizerFastGradientClipping)


def _check_probe(optimizer: DPOptimizer, probe: object) -> None:
    """Raise unless a probe of the step shows no fault at the optimizer's noise multiplier."""
    if not isinstance(probe, DPStepAudit):
        raise InputTypeError(f"probe must be a DPStepAudit, got {shown(probe)}")
    noise = float(optimizer.noise_multiplier)
    found = "inconclusive"
    if noise > 0:
        found = probe.check(noise_multiplier=noise)
    if found != "not refuted":
        raise OptionError(
            f"the probe of the step is {found} at the optimizer's noise multiplier, {noise:g}, so "
            "that it does not vouch for the clipping"
        )


def number_of_examples(examples: object, optimizer: DPOptimizer) -> int:
    """Return how many examples there are, or a loader has; raise if batches are expected larger."""
    if isinstance(examples, DataLoader):
        if not hasattr(examples.dataset, "__len__"):
            name = type(examples.dataset).__name__
            raise InputTypeError(
                f"the loader's {name} has no length: pass the number of training examples"
            )
        examples = len(examples.dataset)
    total = integer(examples, "examples", least=1)
    size = (optimizer.expected_batch_size or 0) * getattr(optimizer, "world_size", 1)
    if total < size:
        raise OptionError(
            f"examples is {total:,}, and the optimizer expects batches of {size:g}: pass the "
            "number of all, len(dataset)"
        )
    return total


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
        like = optimizer.params[0]
        self.optimizer = optimizer
        self.recorder = Recorder(design, float(optimizer.noise_multiplier))
        # Canaries ride on the first process of distributed training.
        self.leads = getattr(optimizer, "rank", 0) == 0
        self._waiting: IntArray | None = None
        self._batches = 0
        self._rows = list[int]()
        self._clipped = False
        exact = like.dtype in {torch.float32, torch.float64}
        dtype = torch.float32
        if exact:
            dtype = like.dtype
        self._own = [
            nn.Parameter(torch.zeros(design.size, dtype=dtype, device=like.device))
            for _ in range(PARAMETERS)
        ]
        # Signs that sum to zero: noise that repeats from parameter to parameter cancels.
        signs = np.where(np.arange(PARAMETERS) % 2 == 0, 1.0, -1.0)
        self._direction = signs / math.sqrt(PARAMETERS)
        self._attach()

    @property
    def _model(self) -> list[Any]:
        """The parameters that are trained now: layers may be frozen or added in between."""
        own = {id(parameter) for parameter in self._own}
        return [one for one in self.optimizer.params if id(one) not in own]

    @property
    def ranks(self) -> int:
        """Processes that train together."""
        return int(getattr(self.optimizer, "world_size", 1))

    @property
    def examples(self) -> tuple[int, int] | None:
        """The least and the most training examples N that give the expected batch size ⌊N q⌋."""
        size = self.optimizer.expected_batch_size
        rate = self.recorder.design.sampling_rate
        if size:
            return possible_examples(size, rate)
        return None

    def _attach(self) -> None:
        """Watch the two moments that matter: before clipping, and before the step."""
        optimizer = self.optimizer
        for parameter in self._own:
            parameter.grad_sample = None  # type: ignore[attr-defined]
            parameter.summed_grad = None  # type: ignore[attr-defined]
        self._clip = optimizer.pre_step
        optimizer.pre_step = self._pre_step
        setattr(optimizer, _MARK, True)
        self._attached = True
        self._joined = False
        self._hook = optimizer.original_optimizer.register_step_pre_hook(self._released)

    def detach(self) -> None:
        """Leave the optimizer as it was."""
        optimizer = self.optimizer
        self._attached = False
        self._hook.remove()
        self._leave()
        if vars(optimizer).get("pre_step") == self._pre_step:
            del optimizer.pre_step
        delattr(optimizer, _MARK)

    def _join(self) -> None:
        """Add the parameters to the last group, whatever schedules the groups' options have."""
        self._leave()  # where the last step was not taken
        optimizer = self.optimizer
        # What zero_grad has done to the parameters of the model, it has not done to these.
        if all(getattr(one, "summed_grad", None) is None for one in self._model):
            for parameter in self._own:
                parameter.summed_grad = None  # type: ignore[attr-defined]
        group = optimizer.param_groups[-1]
        group["params"] = [*group["params"], *self._own]
        self._norms = getattr(optimizer, "max_grad_norms", None)
        if self._norms is not None:
            total = math.hypot(*(float(norm) for norm in self._norms))
            share = total / math.sqrt(PARAMETERS)
            optimizer.max_grad_norms = [*self._norms, *[share] * PARAMETERS]
        self._joined = True

    def _leave(self) -> None:
        """Take the parameters out of whichever group has them."""
        if not self._joined:
            return
        optimizer = self.optimizer
        own = {id(parameter) for parameter in self._own}
        for group in optimizer.param_groups:
            group["params"] = [one for one in group["params"] if id(one) not in own]
        for parameter in self._own:
            parameter.grad_sample = None  # type: ignore[attr-defined]
        if self._norms is not None:
            optimizer.max_grad_norms = self._norms
        self._joined = False

    def _pre_step(self, closure: object = None) -> Any:
        """Add the canaries' rows to a physical batch, then clip and noise as the optimizer does."""
        if not self._attached:  # somebody kept the method
            return self._clip(closure)
        if not self._is_ready():
            return self._clip(closure)  # which says what is wrong
        self._join()
        released = False
        try:
            self._add_canaries()
            released = self._clip(closure)
        finally:
            if not released:  # nothing to read: a part of a batch, or an error
                self._leave()
        return released

    def _is_ready(self) -> bool:
        """Whether there are new gradients of examples to add canaries to."""
        grads = [p.grad_sample for p in self._model if getattr(p, "grad_sample", None) is not None]
        used = any(hasattr(_of_batches(one)[-1], "_processed") for one in grads)
        return bool(grads) and not used

    def _add_canaries(self) -> None:
        """Add the rows of those canaries that are in this physical batch."""
        if self._waiting is None:
            self._waiting = self.recorder.included()
            if not self.leads:
                self._waiting = self._waiting[:0]
        # Half of those left are in this physical batch, and in the last one all. The half goes by
        # bits of the canary's number, so that it depends on no coin.
        ends = not self.optimizer._check_skip_next_step(pop_next=False)  # noqa: SLF001 (no other way)
        waiting = self._waiting
        now = np.full(waiting.size, ends) | (waiting >> min(self._batches, _BITS) & 1 == 0)
        self._waiting = waiting[~now]
        self._batches += 1
        # Of a split batch, rows of the same backward pass are put together.
        parts = zip_longest(self._rows, self._append(waiting[now]), fillvalue=0)
        self._rows = [before + added for before, added in parts]
        self._clipped = True

    def _append(self, due: IntArray) -> list[int]:
        """Append rows of canaries to the last batch accumulated; return the rows of each before."""
        sizes = list[int]()
        several = False
        for parameter in self._model:
            gradients = getattr(parameter, "grad_sample", None)
            if gradients is None:
                continue  # opacus refuses it
            several = isinstance(gradients, list)
            *others, rows = _of_batches(gradients)
            sizes = [len(batch) for batch in (*others, rows)]
            if due.size:  # rows of zeros: canaries leave the model alone
                zeros = rows.new_zeros((due.size, *rows.shape[1:]))
                rows = torch.cat([rows, zeros])
                parameter.grad_sample = rows
                if several:
                    parameter.grad_sample = [*others, rows]
        # In each parameter of the watcher, zeros for the user's examples and one coordinate of its
        # own for each canary.
        far = _FAR * float(self.optimizer.max_grad_norm)
        columns = torch.as_tensor(due, device=self._own[0].device)
        signs = torch.as_tensor(self.recorder.contributions[due]).to(self._own[0])
        for parameter, share in zip(self._own, self._direction, strict=True):
            own = [parameter.new_zeros((size, parameter.numel())) for size in sizes]
            added = parameter.new_zeros((due.size, parameter.numel()))
            added[torch.arange(due.size, device=added.device), columns] = share * far * signs
            own[-1] = torch.cat([own[-1], added])
            gradients = own
            if not several:
                (gradients,) = own
            parameter.grad_sample = gradients  # type: ignore[attr-defined]
        return sizes

    def _released(self, *_: object) -> None:
        """Read the noisy gradient as the underlying optimizer gets it, and leave its groups."""
        try:
            self._read()
        finally:
            self._leave()

    def _read(self) -> None:
        """Record what is released of the canaries of a logical batch."""
        if not self._clipped:
            raise OptionError(
                f"{type(self.optimizer).__name__} took a step without pre_step(), so that no "
                "canary was in its batch"
            )
        if self.leads:
            noise = float(self.optimizer.noise_multiplier)
            self.recorder.record(self._values(), noise, self._rows)
        for parameter in self._own:
            if parameter.grad is not None:
                parameter.grad.zero_()
        self._waiting = None
        self._batches = 0
        self._rows = []
        self._clipped = False

    def _values(self) -> FloatArray:
        """Return the released gradient along each canary's own, in units of the clipping norm."""
        grads = [p.grad for p in self._own]
        if any(one is None for one in grads):
            raise OptionError("the optimizer released no gradient of the watcher's parameters")
        released = np.stack([np.asarray(one.detach().cpu(), dtype=np.float64) for one in grads])  # type: ignore[union-attr]
        optimizer = self.optimizer
        divisor = 1.0
        if optimizer.loss_reduction == "mean":  # the optimizer divides sums, by this number
            divisor = float(
                optimizer.expected_batch_size * optimizer.accumulated_iterations * self.ranks
            )
        return divisor / float(optimizer.max_grad_norm) * (self._direction @ released)


class WatchedGhost(WatchedOptimizer):
    """An optimizer whose gradients were clipped inside the backward pass, with canaries.

    Nothing can be added before clipping. A canary is added to the clipped sum of each parameter of
    the watcher, at the clipping norm, as a step adds it that clips as a probe has shown. The
    optimizer's own code adds the noise and divides.
    """

    _norms_seen: Any = None

    def _is_ready(self) -> bool:
        """See `WatchedOptimizer._is_ready`."""
        return any(one.grad is not None for one in self._model)

    def _append(self, due: IntArray) -> list[int]:
        """Add canaries to the clipped sums; return the examples of the backward pass."""
        norm = float(self.optimizer.max_grad_norm)
        columns = torch.as_tensor(due, device=self._own[0].device)
        signs = torch.as_tensor(self.recorder.contributions[due]).to(self._own[0])
        for parameter, share in zip(self._own, self._direction, strict=True):
            added = torch.zeros_like(parameter)
            added[columns] = share * norm * signs
            parameter.grad = added
        norms = [getattr(one, "_norm_sample", None) for one in self._model]
        known = next((one for one in norms if one is not None), None)
        if known is None or known is self._norms_seen:
            return [0]  # of an empty batch no norms are kept
        self._norms_seen = known
        return [len(known)]


def _of_batches(gradients: object) -> list[Any]:
    """Return what opacus has kept of one backward pass, or of several, as a list."""
    if isinstance(gradients, list):
        return gradients
    return [gradients]
