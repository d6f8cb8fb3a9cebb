"""An opacus optimizer as a step that releases gradients and changes nothing.

Loading this module loads PyTorch and opacus.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import torch
from opacus.optimizers import DPOptimizer
from opacus.optimizers.ddp_perlayeroptimizer import DistributedPerLayerOptimizer
from torch import Tensor, distributed, nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import default_collate

from leakbound._base.checks import shown
from leakbound.errors import InputTypeError, OptionError
from leakbound.integrations import global_random
from leakbound.integrations.opacus import WatchedOptimizer, is_within_logical_batch

# What nn.Module keeps parameters, buffers and submodules in
_STRUCTURE_OF_MODULES = frozenset({"_parameters", "_buffers", "_modules"})
# Attributes of a module that a forward pass may count with, put back before each run
_COUNTING_TYPES = (bool, int, float, str, type(None))
# What parameters have of the examples of a step
_PER_EXAMPLE_ATTRIBUTES = ("grad_sample", "summed_grad", "_norm_sample")
# Norms that follow the data are put back in steps without a seed too, and nothing else is
_ADAPTIVE_FIELDS = ("max_grad_norm", "unclipped_num", "sample_size")
# Distance of seeds of two calls, of two parts of a batch, and of two processes
_SEED_STEP_OF_CALLS = 7919
_SEED_STEP_OF_PARTS = 1_000_003
_SEED_STEP_OF_PROCESSES = 15_485_863
_RANDOM_NUMBERS_NOT_FIXED = (
    "random numbers of the forward pass cannot be fixed for each example: {}. One more example "
    "would change those of all others, so that contributions could not be told from them. Switch "
    "dropout and the like off for the probe (p = 0)"
)


class Loss(Protocol):
    """The loss of a batch: a tensor, or what stands for one with ghost clipping."""

    def __mul__(self, factor: float, /) -> "Loss":
        """Return the loss times a factor."""

    def backward(self) -> object:
        """Run the backward pass."""


class OpacusStep:
    """The step of an opacus optimizer: `leakbound.integrations.opacus_step`."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: DPOptimizer,
        loss: Callable[[nn.Module, Any], Loss],
        *,
        collate: Callable[[list[Any]], object] | None,
        physical_batch_size: int | None,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise InputTypeError(f"model must be a torch.nn.Module, got {shown(model)}")
        _check_optimizer(optimizer)
        if not callable(loss):
            raise InputTypeError(
                f"loss must be a function of (model, batch), got {shown(loss)}: forward pass and "
                "criterion together"
            )
        self.model = model
        self.optimizer = optimizer
        self._loss = loss
        self._collate = collate or default_collate
        self._physical_batch_size = physical_batch_size
        self._parameter_names = {
            id(parameter): name.removeprefix("_module.")
            for name, parameter in model.named_parameters()
        }
        self._original_state: _OriginalState | None = None
        self._known_example: object = None
        self._randomness: _RowwiseRandomness | None = None
        self._recorded_gradients: dict[str, Tensor] | None = None
        # States of random generators: after a step without a seed, and after part of one with it
        self._states_without_seed = global_random.generator_states()
        self._states_with_seed = self._states_without_seed

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Take the update out of the optimizer in a block, and put everything back after it."""
        self._original_state = _OriginalState(self.model, self.optimizer)
        self._states_without_seed = global_random.generator_states()
        self.optimizer.original_optimizer.step = self._record_gradients
        self._original_state.begin()
        try:
            yield
        finally:
            self._original_state.put_back()
            self._original_state = None

    def __call__(self, examples: Sequence[object], seed: int | None) -> Mapping[str, Tensor]:
        """Run the step; without a seed the optimizer continues its own generator."""
        own_examples = list(examples)
        if own_examples and self._known_example is None:
            self._known_example = own_examples[0]
        loss_factor = float(getattr(examples, "loss_factor", 1.0))
        if self._processes > 1:
            self._check_same_run((len(own_examples), loss_factor, seed))
            own_examples = own_examples[self._rank :: self._processes]
        if not self._run_parts(own_examples, loss_factor, seed):
            # Something random in the forward pass was seen for the first time: again, with streams
            self._randomness = _RowwiseRandomness(self._device)
            self._run_parts(own_examples, loss_factor, seed)
        gradients = self._recorded_gradients
        if gradients is None:
            raise OptionError(
                f"{type(self.optimizer).__name__}.step() took no step of the underlying optimizer: "
                "finish the logical batch before the probe, and let no closure skip steps"
            )
        return gradients

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def _processes(self) -> int:
        """Processes whose gradients the optimizer adds up."""
        return int(getattr(self.optimizer, "world_size", 1))

    @property
    def _rank(self) -> int:
        """The number of this process; that of the optimizer may be part of a fault."""
        if self._processes == 1:
            return 0
        return int(distributed.get_rank())

    def _check_same_run(self, requested_run: tuple[int, float, int | None]) -> None:
        """Check that all processes run the same: else they would wait for each other forever."""
        requests_of_processes: list[Any] = [None] * self._processes
        distributed.all_gather_object(requests_of_processes, requested_run)
        if any(request != requested_run for request in requests_of_processes):
            raise OptionError(
                "the processes of distributed training were asked for different runs: probe on all "
                "of them, with the same pairs and the same seed, probe_dp_step(..., seed=0)"
            )

    def _run_parts(self, examples: list[object], loss_factor: float, seed: int | None) -> bool:
        """Run the step; False if random numbers were drawn that were not fixed for each example."""
        if self._original_state is None:
            raise OptionError("the block of opacus_step has been left: probe within it")
        optimizer = self.optimizer
        self._original_state.reset(seeded=seed is not None)
        self._recorded_gradients = None
        part_size = self._physical_batch_size or max(1, len(examples))
        starts = range(0, max(1, len(examples)), part_size)
        for number, start in enumerate(starts):
            part = examples[start : start + part_size]
            if len(starts) > 1:
                optimizer.signal_skip_step(do_skip=number < len(starts) - 1)
            optimizer.zero_grad()
            global_random.seed_all(number * _SEED_STEP_OF_PARTS)
            if self._randomness is None:
                states_before = global_random.generator_states()
                self._backward(part, loss_factor)
                states_after = global_random.generator_states()
                if not global_random.same_torch_states(states_before, states_after):
                    return False
            else:
                with self._randomness.run(number, len(part)):
                    self._backward(part, loss_factor)
            self._take_step(seed, number)
        return True

    def _backward(self, examples: list[object], loss_factor: float) -> None:
        """Run forward and backward pass on some examples, their losses times a factor."""
        loss = self._loss(self.model, self._collate_examples(examples))
        if getattr(loss, "clipbound_learning_rate", 0.0):
            raise OptionError(
                f"{type(loss).__name__} adapts its clipping norm inside the backward pass, by a "
                "noisy count that is not among what the step releases: probe it with "
                "clipbound_learning_rate=0"
            )
        if loss_factor != 1 and hasattr(loss, "loss_per_sample"):
            loss.loss_per_sample = loss.loss_per_sample * loss_factor  # of ghost clipping
        elif loss_factor != 1:
            loss = loss * loss_factor
        loss.backward()

    def _take_step(self, seed: int | None, part: int) -> None:
        """Take the optimizer's step, its random numbers from the seed, or going on."""
        if seed is None:
            global_random.restore_generators(self._states_without_seed)
        elif part:
            global_random.restore_generators(self._states_with_seed)
        else:
            process_seed = seed + _SEED_STEP_OF_PROCESSES * self._rank
            global_random.seed_all(process_seed)
            generator = self.optimizer.generator
            if generator is not None:
                device = generator.device
                self.optimizer.generator = global_random.generator_on(device, process_seed)
        self.optimizer.step()
        # Where parts of a batch have a step each, noise goes on from one to the next
        states_after = global_random.generator_states()
        if seed is None:
            self._states_without_seed = states_after
        else:
            self._states_with_seed = states_after

    def _collate_examples(self, examples: list[object]) -> object:
        """Return a batch; an empty one is cut from that of an example."""
        if examples:
            return self._collate(examples)
        if self._known_example is None:
            raise OptionError(
                "the first batch is empty, and what batches look like is not known: probe a pair "
                "first whose batches have examples"
            )
        return _without_examples(self._collate([self._known_example]))

    def _record_gradients(self, *_: object, **__: object) -> None:
        """Keep what the underlying optimizer is given, in place of its step."""
        if self._recorded_gradients is not None:
            raise OptionError(
                f"{type(self.optimizer).__name__}.step() took two steps of the underlying optimizer"
            )
        gradients: dict[str, Tensor] = {}
        for group in self.optimizer.original_optimizer.param_groups:
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    continue
                default_name = f"outside the model, {len(gradients)}"
                name = self._parameter_names.get(id(parameter), default_name)
                gradient = parameter.grad
                if gradient is None:
                    # the optimizer leaves out what has no gradient, as if it were zero
                    gradient = torch.zeros_like(parameter)
                gradients[name] = gradient.detach().to_dense().cpu().clone()
        self._recorded_gradients = gradients


def _check_optimizer(optimizer: object) -> None:
    """Raise unless the step of an optimizer can be recorded now."""
    if not isinstance(optimizer, DPOptimizer):
        raise InputTypeError(f"optimizer must be an opacus DPOptimizer, got {shown(optimizer)}")
    if not optimizer.params:
        raise OptionError("the optimizer has no parameter that takes gradients")
    if isinstance(optimizer, DistributedPerLayerOptimizer):
        raise OptionError(
            f"{type(optimizer).__name__} adds noise inside the backward pass, where no seed is its "
            "alone: probe the step on one process, or wrap the model in opacus's "
            "DifferentiallyPrivateDistributedDataParallel"
        )
    if any(hasattr(parameter, "full_tensor") for parameter in optimizer.params):
        raise OptionError(
            f"{type(optimizer).__name__} has parameters in shards, and each process sees its own "
            "alone: probe the step on one process, without FSDP"
        )
    if is_within_logical_batch(optimizer):
        raise OptionError("the optimizer is within a logical batch: probe between two steps")


def _without_examples(batch: object) -> object:
    """Return a collated batch without its examples."""
    if torch.is_tensor(batch):
        return batch[:0]
    if isinstance(batch, Mapping):
        return {key: _without_examples(part) for key, part in batch.items()}
    if isinstance(batch, tuple | list):
        parts = list(map(_without_examples, batch))
        make: Callable[..., object] = type(batch)
        if hasattr(batch, "_fields"):  # a named tuple
            return make(*parts)
        return make(parts)
    return batch


class _RowwiseRandomness(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Random numbers of a forward pass, a stream for each call that draws some.

    Rows are drawn in order, so that one more example leaves the numbers of all others as they are,
    where the first dimension is that of examples.
    """

    _ROWS: ClassVar[tuple[int, ...]] = (2, 3, 5)
    _COLUMNS: ClassVar[tuple[int, ...]] = (1, 7, 64, 1000)

    def __init__(self, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device
        self._part = 0
        self._drawn_shapes: list[tuple[int, ...]] = []
        self._shapes_by_examples: dict[int, list[tuple[int, ...]]] = {}
        self._check_rows()

    def _check_rows(self) -> None:
        """Check that fewer rows of random numbers are the first ones of more."""
        for columns in self._COLUMNS:
            dropped = []
            for rows in self._ROWS:
                global_random.seed_torch(1)
                ones = torch.ones(rows, columns, device=self._device)
                dropped.append(nn.functional.dropout(ones, p=0.5))
            *fewer_rows, most_rows = dropped
            for numbers in fewer_rows:
                if not torch.equal(numbers, most_rows[: len(numbers)]):
                    reason = f"they depend on the batch on {self._device}"
                    raise OptionError(_RANDOM_NUMBERS_NOT_FIXED.format(reason))

    @contextmanager
    def run(self, part: int, examples: int) -> Iterator[None]:
        """Give streams to one forward and backward pass, and compare it with others."""
        self._part = part
        self._drawn_shapes = []
        with self:
            yield
        for number, shapes in self._shapes_by_examples.items():
            self._check_same_draws(shapes, fewer=min(number, examples))
        self._shapes_by_examples.setdefault(examples, self._drawn_shapes)

    def _check_same_draws(self, shapes: list[tuple[int, ...]], fewer: int) -> None:
        """Check that batches of two sizes draw the same, but for the number of rows."""
        drawn_rows = [shape[1:] for shape in self._drawn_shapes]
        known_rows = [shape[1:] for shape in shapes]
        if fewer and drawn_rows != known_rows:
            raise OptionError(
                _RANDOM_NUMBERS_NOT_FIXED.format(
                    "the number of examples changes other dimensions of them than the first, or "
                    "how often they are drawn"
                )
            )

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        options = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or options.get("generator"):
            return func(*args, **options)
        call = len(self._drawn_shapes) + 1
        global_random.seed_torch(self._part * _SEED_STEP_OF_PARTS + call * _SEED_STEP_OF_CALLS)
        result = func(*args, **options)
        tensor = result
        if isinstance(result, tuple | list):
            tensor = result[0]
        self._drawn_shapes.append(tuple(tensor.shape))
        return result


class _ParameterState:
    """A parameter as it was: its value, gradient and attributes."""

    def __init__(self, parameter: nn.Parameter) -> None:
        self.parameter = parameter
        self._value = parameter.detach().clone()
        self._gradient = parameter.grad
        self._requires_grad = parameter.requires_grad
        self._attributes = dict(vars(parameter))

    def put_back(self) -> None:
        """Put everything back."""
        parameter = self.parameter
        parameter.data.copy_(self._value)
        parameter.grad = self._gradient
        parameter.requires_grad_(self._requires_grad)
        vars(parameter).clear()
        vars(parameter).update(self._attributes)


class _OriginalState:
    """All that runs of a step may change, as it was."""

    def __init__(self, model: nn.Module, optimizer: DPOptimizer) -> None:
        self._optimizer = optimizer
        self._states = global_random.generator_states()
        self._generator = optimizer.generator
        self._generator_state = None
        if self._generator is not None:
            self._generator_state = self._generator.get_state()
        self._inner_optimizer_fields = dict(vars(optimizer.original_optimizer))
        self._optimizer_fields = _copy_of_fields(vars(optimizer))
        parameters = {id(one): one for one in [*model.parameters(), *optimizer.params]}
        self._parameters = [_ParameterState(parameter) for parameter in parameters.values()]
        self._buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
        self._modules = []
        for module in model.modules():
            self._modules.append((module, _copy_of_fields(_plain_attributes(module))))
        self._fields_at_start: dict[str, object] = {}

    def begin(self) -> None:
        """Let no accountant count, and no watcher of the run see, the steps that follow."""
        optimizer = self._optimizer
        optimizer.step_hook = None
        pre_step = vars(optimizer).get("pre_step")
        if isinstance(getattr(pre_step, "__self__", None), WatchedOptimizer):
            del optimizer.pre_step
        self._fields_at_start = _copy_of_fields(vars(optimizer))

    def reset(self, *, seeded: bool) -> None:
        """Begin a run where all runs begin; without a seed, the optimizer's own state goes on."""
        optimizer = self._optimizer
        if seeded:
            vars(optimizer).clear()
        for name, value in self._fields_at_start.items():
            if seeded or name in _ADAPTIVE_FIELDS:
                vars(optimizer)[name] = _copy_of_mutable(value)
        vars(optimizer).update(_is_last_step_skipped=False, _step_skip_queue=[])
        for state in self._parameters:
            parameter = state.parameter
            parameter.grad = None
            for name in _PER_EXAMPLE_ATTRIBUTES:
                if name in vars(parameter):
                    vars(parameter)[name] = None
        for buffer, value in self._buffers:
            buffer.data.copy_(value)
        for module, attributes in self._modules:
            for name, value in attributes.items():
                if isinstance(value, _COUNTING_TYPES):
                    vars(module)[name] = value

    def put_back(self) -> None:
        """Put everything back."""
        inner_optimizer: object = self._optimizer.original_optimizer
        vars(inner_optimizer).clear()
        vars(inner_optimizer).update(self._inner_optimizer_fields)
        for state in self._parameters:
            state.put_back()
        for buffer, value in self._buffers:
            buffer.data.copy_(value)
        for module, attributes in self._modules:
            for name in _plain_attributes(module).keys() - attributes.keys():
                del vars(module)[name]
            vars(module).update(attributes)
        vars(self._optimizer).clear()
        vars(self._optimizer).update(self._optimizer_fields)
        if self._generator is not None:
            self._generator.set_state(self._generator_state)
        global_random.restore_generators(self._states)


def _plain_attributes(module: nn.Module) -> dict[str, object]:
    """Return the attributes of a module but for parameters, buffers and submodules."""
    attributes = vars(module).items()
    return {name: value for name, value in attributes if name not in _STRUCTURE_OF_MODULES}


def _copy_of_fields(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: _copy_of_mutable(value) for name, value in fields.items()}


def _copy_of_mutable(value: object) -> object:
    """Return a copy of what code may change in place."""
    if torch.is_tensor(value) and not isinstance(value, nn.Parameter):
        return value.clone()
    if type(value) is list or type(value) is dict:
        return value.copy()
    return value
