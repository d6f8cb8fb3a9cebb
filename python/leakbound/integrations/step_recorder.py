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
        _check_recordable_optimizer(optimizer)
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
        self._state_before_recording: _StateBeforeRecording | None = None
        self._known_example_of_batches: object = None
        self._randomness_of_rows: _RandomnessOfRows | None = None
        self._recorded_gradients: dict[str, Tensor] | None = None
        # States of random generators: after a step without a seed, and after part of one with it
        self._states_without_seed = global_random.generator_states()
        self._states_with_seed = self._states_without_seed

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Take the update out of the optimizer in a block, and put everything back after it."""
        self._state_before_recording = _StateBeforeRecording(self.model, self.optimizer)
        self._states_without_seed = global_random.generator_states()
        self.optimizer.original_optimizer.step = self._record_gradients
        self._state_before_recording.begin()
        try:
            yield
        finally:
            self._state_before_recording.put_back()
            self._state_before_recording = None

    def __call__(self, examples: Sequence[object], seed: int | None) -> Mapping[str, Tensor]:
        """Run the step; without a seed the optimizer continues its own generator."""
        own_examples = list(examples)
        if own_examples and self._known_example_of_batches is None:
            self._known_example_of_batches = own_examples[0]
        loss_factor = float(getattr(examples, "loss_factor", 1.0))
        if self._processes > 1:
            self._check_same_run_of_processes((len(own_examples), loss_factor, seed))
            own_examples = own_examples[self._rank :: self._processes]
        if not self._run_parts_of_batch(own_examples, loss_factor, seed):
            # Something random in the forward pass was seen for the first time: again, with streams
            self._randomness_of_rows = _RandomnessOfRows(self._device)
            self._run_parts_of_batch(own_examples, loss_factor, seed)
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

    def _check_same_run_of_processes(self, requested_run: tuple[int, float, int | None]) -> None:
        """Check that all processes run the same: else they would wait for each other forever."""
        requests_of_processes: list[Any] = [None] * self._processes
        distributed.all_gather_object(requests_of_processes, requested_run)
        if any(request != requested_run for request in requests_of_processes):
            raise OptionError(
                "the processes of distributed training were asked for different runs: probe on all "
                "of them, with the same pairs and the same seed, probe_dp_step(..., seed=0)"
            )

    def _run_parts_of_batch(
        self, examples: list[object], loss_factor: float, seed: int | None
    ) -> bool:
        """Run the step; False if random numbers were drawn that were not fixed for each example."""
        if self._state_before_recording is None:
            raise OptionError("the block of opacus_step has been left: probe within it")
        optimizer = self.optimizer
        self._state_before_recording.reset(seeded=seed is not None)
        self._recorded_gradients = None
        part_size = self._physical_batch_size or max(1, len(examples))
        part_starts = range(0, max(1, len(examples)), part_size)
        for part_number, part_start in enumerate(part_starts):
            part_of_batch = examples[part_start : part_start + part_size]
            if len(part_starts) > 1:
                optimizer.signal_skip_step(do_skip=part_number < len(part_starts) - 1)
            optimizer.zero_grad()
            global_random.seed_all(part_number * _SEED_STEP_OF_PARTS)
            if self._randomness_of_rows is None:
                states_before = global_random.generator_states()
                self._run_backward_pass(part_of_batch, loss_factor)
                states_after = global_random.generator_states()
                if not global_random.same_torch_states(states_before, states_after):
                    return False
            else:
                with self._randomness_of_rows.run(part_number, len(part_of_batch)):
                    self._run_backward_pass(part_of_batch, loss_factor)
            self._take_optimizer_step(seed, part_number)
        return True

    def _run_backward_pass(self, examples: list[object], loss_factor: float) -> None:
        """Run forward and backward pass on some examples, their losses times a factor."""
        loss_of_batch = self._loss(self.model, self._collate_examples(examples))
        if getattr(loss_of_batch, "clipbound_learning_rate", 0.0):
            raise OptionError(
                f"{type(loss_of_batch).__name__} adapts its clipping norm inside the backward "
                "pass, by a noisy count that is not among what the step releases: probe it with "
                "clipbound_learning_rate=0"
            )
        if loss_factor != 1 and hasattr(loss_of_batch, "loss_per_sample"):
            loss_of_batch.loss_per_sample = (
                loss_of_batch.loss_per_sample * loss_factor
            )  # of ghost clipping
        elif loss_factor != 1:
            loss_of_batch = loss_of_batch * loss_factor
        loss_of_batch.backward()

    def _take_optimizer_step(self, seed: int | None, part_number: int) -> None:
        """Take the optimizer's step, its random numbers from the seed, or going on."""
        if seed is None:
            global_random.restore_generators(self._states_without_seed)
        elif part_number:
            global_random.restore_generators(self._states_with_seed)
        else:
            process_seed = seed + _SEED_STEP_OF_PROCESSES * self._rank
            global_random.seed_all(process_seed)
            generator_of_optimizer = self.optimizer.generator
            if generator_of_optimizer is not None:
                self.optimizer.generator = global_random.generator_on(
                    generator_of_optimizer.device, generator_seed=process_seed
                )
        self.optimizer.step()
        # Where parts of a batch have a step each, noise goes on from one to the next
        states_after_step = global_random.generator_states()
        if seed is None:
            self._states_without_seed = states_after_step
        else:
            self._states_with_seed = states_after_step

    def _collate_examples(self, examples: list[object]) -> object:
        """Return a batch; an empty one is cut from that of an example."""
        if examples:
            return self._collate(examples)
        if self._known_example_of_batches is None:
            raise OptionError(
                "the first batch is empty, and what batches look like is not known: probe a pair "
                "first whose batches have examples"
            )
        return _batch_without_examples(self._collate([self._known_example_of_batches]))

    def _record_gradients(self, *_: object, **__: object) -> None:
        """Keep what the underlying optimizer is given, in place of its step."""
        if self._recorded_gradients is not None:
            raise OptionError(
                f"{type(self.optimizer).__name__}.step() took two steps of the underlying optimizer"
            )
        gradients_by_name: dict[str, Tensor] = {}
        for parameter_group in self.optimizer.original_optimizer.param_groups:
            for parameter in parameter_group["params"]:
                if not parameter.requires_grad:
                    continue
                default_name = f"outside the model, {len(gradients_by_name)}"
                parameter_name = self._parameter_names.get(id(parameter), default_name)
                parameter_gradient = parameter.grad
                if parameter_gradient is None:
                    # the optimizer leaves out what has no gradient, as if it were zero
                    parameter_gradient = torch.zeros_like(parameter)
                gradients_by_name[parameter_name] = (
                    parameter_gradient.detach().to_dense().cpu().clone()
                )
        self._recorded_gradients = gradients_by_name


def _check_recordable_optimizer(optimizer: object) -> None:
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


def _batch_without_examples(collated_batch: object) -> object:
    """Return a collated batch without its examples."""
    if torch.is_tensor(collated_batch):
        return collated_batch[:0]
    if isinstance(collated_batch, Mapping):
        return {
            part_name: _batch_without_examples(batch_part)
            for part_name, batch_part in collated_batch.items()
        }
    if isinstance(collated_batch, tuple | list):
        parts_without_examples = list(map(_batch_without_examples, collated_batch))
        batch_type: Callable[..., object] = type(collated_batch)
        if hasattr(collated_batch, "_fields"):  # a named tuple
            return batch_type(*parts_without_examples)
        return batch_type(parts_without_examples)
    return collated_batch


class _RandomnessOfRows(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Random numbers of a forward pass, a stream for each call that draws some.

    Rows are drawn in order, so that one more example leaves the numbers of all others as they are,
    where the first dimension is that of examples.
    """

    _ROWS: ClassVar[tuple[int, ...]] = (2, 3, 5)
    _COLUMNS: ClassVar[tuple[int, ...]] = (1, 7, 64, 1000)

    def __init__(self, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device
        self._part_number = 0
        self._shapes_of_draws: list[tuple[int, ...]] = []
        self._shapes_by_batch_size: dict[int, list[tuple[int, ...]]] = {}
        self._check_that_rows_are_drawn_in_order()

    def _check_that_rows_are_drawn_in_order(self) -> None:
        """Check that fewer rows of random numbers are the first ones of more."""
        for column_count in self._COLUMNS:
            draws_of_row_counts = []
            for row_count in self._ROWS:
                global_random.seed_torch(1)
                ones = torch.ones(row_count, column_count, device=self._device)
                draws_of_row_counts.append(nn.functional.dropout(ones, p=0.5))
            *smaller_draws, largest_draw = draws_of_row_counts
            for smaller_draw in smaller_draws:
                if not torch.equal(smaller_draw, largest_draw[: len(smaller_draw)]):
                    reason = f"they depend on the batch on {self._device}"
                    raise OptionError(_RANDOM_NUMBERS_NOT_FIXED.format(reason))

    @contextmanager
    def run(self, part_number: int, batch_size: int) -> Iterator[None]:
        """Give streams to one forward and backward pass, and compare it with others."""
        self._part_number = part_number
        self._shapes_of_draws = []
        with self:
            yield
        for earlier_batch_size, earlier_shapes in self._shapes_by_batch_size.items():
            self._check_same_random_draws(
                earlier_shapes, smaller_batch_size=min(earlier_batch_size, batch_size)
            )
        self._shapes_by_batch_size.setdefault(batch_size, self._shapes_of_draws)

    def _check_same_random_draws(
        self, earlier_shapes: list[tuple[int, ...]], smaller_batch_size: int
    ) -> None:
        """Check that batches of two sizes draw the same, but for the number of rows."""
        row_shapes_now = [shape[1:] for shape in self._shapes_of_draws]
        row_shapes_before = [shape[1:] for shape in earlier_shapes]
        if smaller_batch_size and row_shapes_now != row_shapes_before:
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
        keyword_arguments = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or keyword_arguments.get("generator"):
            return func(*args, **keyword_arguments)
        draw_number = len(self._shapes_of_draws) + 1
        global_random.seed_torch(
            self._part_number * _SEED_STEP_OF_PARTS + draw_number * _SEED_STEP_OF_CALLS
        )
        drawn_result = func(*args, **keyword_arguments)
        drawn_tensor = drawn_result
        if isinstance(drawn_result, tuple | list):
            drawn_tensor = drawn_result[0]
        self._shapes_of_draws.append(tuple(drawn_tensor.shape))
        return drawn_result


class _StateOfParameter:
    """A parameter as it was: its value, gradient and attributes."""

    def __init__(self, parameter: nn.Parameter) -> None:
        self.parameter = parameter
        self._original_value = parameter.detach().clone()
        self._original_gradient = parameter.grad
        self._requires_grad = parameter.requires_grad
        self._attributes = dict(vars(parameter))

    def put_back(self) -> None:
        """Put everything back."""
        parameter = self.parameter
        parameter.data.copy_(self._original_value)
        parameter.grad = self._original_gradient
        parameter.requires_grad_(self._requires_grad)
        vars(parameter).clear()
        vars(parameter).update(self._attributes)


class _StateBeforeRecording:
    """All that runs of a step may change, as it was."""

    def __init__(self, model: nn.Module, optimizer: DPOptimizer) -> None:
        self._optimizer = optimizer
        self._generator_states = global_random.generator_states()
        self._optimizer_generator = optimizer.generator
        self._generator_state = None
        if self._optimizer_generator is not None:
            self._generator_state = self._optimizer_generator.get_state()
        self._inner_optimizer_fields = dict(vars(optimizer.original_optimizer))
        self._optimizer_fields = _copies_of_fields(vars(optimizer))
        parameters_by_identity = {
            id(parameter): parameter for parameter in [*model.parameters(), *optimizer.params]
        }
        self._parameter_states = [
            _StateOfParameter(parameter) for parameter in parameters_by_identity.values()
        ]
        self._buffer_values = [
            (buffer_of_model, buffer_of_model.detach().clone())
            for buffer_of_model in model.buffers()
        ]
        self._module_attributes = []
        for module_of_model in model.modules():
            self._module_attributes.append(
                (module_of_model, _copies_of_fields(_attributes_of_module(module_of_model)))
            )
        self._fields_at_start: dict[str, object] = {}

    def begin(self) -> None:
        """Let no accountant count, and no watcher of the run see, the steps that follow."""
        recorded_optimizer = self._optimizer
        recorded_optimizer.step_hook = None
        pre_step_hook = vars(recorded_optimizer).get("pre_step")
        if isinstance(getattr(pre_step_hook, "__self__", None), WatchedOptimizer):
            del recorded_optimizer.pre_step
        self._fields_at_start = _copies_of_fields(vars(recorded_optimizer))

    def reset(self, *, seeded: bool) -> None:
        """Begin a run where all runs begin; without a seed, the optimizer's own state goes on."""
        recorded_optimizer = self._optimizer
        if seeded:
            vars(recorded_optimizer).clear()
        for field_name, value_at_start in self._fields_at_start.items():
            if seeded or field_name in _ADAPTIVE_FIELDS:
                vars(recorded_optimizer)[field_name] = _copy_of_mutable_field(value_at_start)
        vars(recorded_optimizer).update(_is_last_step_skipped=False, _step_skip_queue=[])
        for parameter_state in self._parameter_states:
            parameter = parameter_state.parameter
            parameter.grad = None
            for field_name in _PER_EXAMPLE_ATTRIBUTES:
                if field_name in vars(parameter):
                    vars(parameter)[field_name] = None
        for buffer_of_model, value_at_start in self._buffer_values:
            buffer_of_model.data.copy_(value_at_start)
        for module_of_model, module_attributes in self._module_attributes:
            for field_name, value_at_start in module_attributes.items():
                if isinstance(value_at_start, _COUNTING_TYPES):
                    vars(module_of_model)[field_name] = value_at_start

    def put_back(self) -> None:
        """Put everything back."""
        inner_optimizer: object = self._optimizer.original_optimizer
        vars(inner_optimizer).clear()
        vars(inner_optimizer).update(self._inner_optimizer_fields)
        for parameter_state in self._parameter_states:
            parameter_state.put_back()
        for buffer_of_model, buffer_value in self._buffer_values:
            buffer_of_model.data.copy_(buffer_value)
        for module_of_model, module_attributes in self._module_attributes:
            for attribute_name in (
                _attributes_of_module(module_of_model).keys() - module_attributes.keys()
            ):
                del vars(module_of_model)[attribute_name]
            vars(module_of_model).update(module_attributes)
        vars(self._optimizer).clear()
        vars(self._optimizer).update(self._optimizer_fields)
        if self._optimizer_generator is not None:
            self._optimizer_generator.set_state(self._generator_state)
        global_random.restore_generators(self._generator_states)


def _attributes_of_module(module: nn.Module) -> dict[str, object]:
    """Return the attributes of a module but for parameters, buffers and submodules."""
    named_attributes = vars(module).items()
    return {
        attribute_name: attribute
        for attribute_name, attribute in named_attributes
        if attribute_name not in _STRUCTURE_OF_MODULES
    }


def _copies_of_fields(fields: Mapping[str, object]) -> dict[str, object]:
    return {
        field_name: _copy_of_mutable_field(field_value)
        for field_name, field_value in fields.items()
    }


def _copy_of_mutable_field(field_value: object) -> object:
    """Return a copy of what code may change in place."""
    if torch.is_tensor(field_value) and not isinstance(field_value, nn.Parameter):
        return field_value.clone()
    if type(field_value) is list or type(field_value) is dict:
        return field_value.copy()
    return field_value
