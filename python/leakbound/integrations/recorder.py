"""An opacus optimizer as a step that releases gradients and changes nothing.

Loading this module loads PyTorch and opacus.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
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
from leakbound.integrations.opacus import WatchedOptimizer

# What nn.Module keeps parameters, buffers and submodules in
_STRUCTURE = frozenset({"_parameters", "_buffers", "_modules"})
# Attributes of a module that a forward pass may count with, put back before each run
_PLAIN = (bool, int, float, str, type(None))
# What parameters have of the examples of a step
_OF_EXAMPLES = ("grad_sample", "summed_grad", "_norm_sample")
# Norms that follow the data are put back in steps without a seed too, and nothing else is
_ADAPTED = ("max_grad_norm", "unclipped_num", "sample_size")
# Distance of seeds of two calls, of two parts of a batch, and of two processes
_CALLS = 7919
_PARTS = 1_000_003
_RANKS = 15_485_863
_CANNOT = (
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
        physical: int | None,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise InputTypeError(f"model must be a torch.nn.Module, got {shown(model)}")
        _check(optimizer)
        if not callable(loss):
            raise InputTypeError(
                f"loss must be a function of (model, batch), got {shown(loss)}: forward pass and "
                "criterion together"
            )
        self.model = model
        self.optimizer = optimizer
        self._loss = loss
        self._collate = collate or default_collate
        self._physical = physical
        self._names = {
            id(parameter): name.removeprefix("_module.")
            for name, parameter in model.named_parameters()
        }
        self._kept: _Kept | None = None
        self._example: object = None
        self._streams: _Streams | None = None
        self._seen: dict[str, Tensor] | None = None
        # States of random generators: after a step without a seed, and after part of one with it
        self._own = global_random.states()
        self._noise = self._own

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Take the update out of the optimizer in a block, and put everything back after it."""
        self._kept = _Kept(self.model, self.optimizer)
        self._own = global_random.states()
        self.optimizer.original_optimizer.step = self._record
        self._kept.begin()
        try:
            yield
        finally:
            self._kept.put_back()
            self._kept = None

    def __call__(self, examples: Sequence[object], seed: int | None) -> Mapping[str, Tensor]:
        """Run the step; without a seed the optimizer continues its own generator."""
        items = list(examples)
        if items and self._example is None:
            self._example = items[0]
        factor = float(getattr(examples, "loss_factor", 1.0))
        if self._processes > 1:
            self._check_alike((len(items), factor, seed))
            items = items[self._rank :: self._processes]
        if not self._ran(items, factor, seed):
            # Something random in the forward pass was seen for the first time: again, with streams
            self._streams = _Streams(self._device)
            self._ran(items, factor, seed)
        seen = self._seen
        if seen is None:
            raise OptionError(
                f"{type(self.optimizer).__name__}.step() took no step of the underlying optimizer: "
                "finish the logical batch before the probe, and let no closure skip steps"
            )
        return seen

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

    def _check_alike(self, asked: tuple[int, float, int | None]) -> None:
        """Check that all processes run the same: else they would wait for each other forever."""
        of_all: list[Any] = [None] * self._processes
        distributed.all_gather_object(of_all, asked)
        if any(one != asked for one in of_all):
            raise OptionError(
                "the processes of distributed training were asked for different runs: probe on all "
                "of them, with the same pairs and the same seed, probe_dp_step(..., seed=0)"
            )

    def _ran(self, items: list[object], factor: float, seed: int | None) -> bool:
        """Run the step; False if random numbers were drawn that were not fixed for each example."""
        if self._kept is None:
            raise OptionError("the block of opacus_step has been left: probe within it")
        optimizer = self.optimizer
        self._kept.reset(seeded=seed is not None)
        self._seen = None
        size = self._physical or max(1, len(items))
        parts = [items[start : start + size] for start in range(0, len(items), size)] or [[]]
        for number, part in enumerate(parts):
            if len(parts) > 1:
                optimizer.signal_skip_step(do_skip=number < len(parts) - 1)
            optimizer.zero_grad()
            global_random.seed_all(number * _PARTS)
            before = global_random.states()
            with self._streams.run(number, len(part)) if self._streams else nullcontext():
                self._backward(part, factor)
            if self._streams is None and not global_random.alike(before, global_random.states()):
                return False
            self._step(seed, number)
        return True

    def _backward(self, items: list[object], factor: float) -> None:
        """Run forward and backward pass on some examples, their losses times a factor."""
        loss = self._loss(self.model, self._collated(items))
        if getattr(loss, "clipbound_learning_rate", 0.0):
            raise OptionError(
                f"{type(loss).__name__} adapts its clipping norm inside the backward pass, by a "
                "noisy count that is not among what the step releases: probe it with "
                "clipbound_learning_rate=0"
            )
        if factor != 1 and hasattr(loss, "loss_per_sample"):
            loss.loss_per_sample = loss.loss_per_sample * factor  # of ghost clipping
        elif factor != 1:
            loss = loss * factor
        loss.backward()

    def _step(self, seed: int | None, number: int) -> None:
        """Take the optimizer's step, its random numbers from the seed, or going on."""
        if seed is None or number:
            global_random.restore(self._own if seed is None else self._noise)
        else:
            of_process = seed + _RANKS * self._rank
            global_random.seed_all(of_process)
            generator = self.optimizer.generator
            if generator is not None:
                self.optimizer.generator = global_random.generator_on(generator.device, of_process)
        self.optimizer.step()
        # Where parts of a batch have a step each, noise goes on from one to the next
        after = global_random.states()
        if seed is None:
            self._own = after
        else:
            self._noise = after

    def _collated(self, items: list[object]) -> object:
        """Return a batch; an empty one is cut from that of an example."""
        if items:
            return self._collate(items)
        if self._example is None:
            raise OptionError(
                "the first batch is empty, and what batches look like is not known: probe a pair "
                "first whose batches have examples"
            )
        return _emptied(self._collate([self._example]))

    def _record(self, *_: object, **__: object) -> None:
        """Keep what the underlying optimizer is given, in place of its step."""
        if self._seen is not None:
            raise OptionError(
                f"{type(self.optimizer).__name__}.step() took two steps of the underlying optimizer"
            )
        seen: dict[str, Tensor] = {}
        for group in self.optimizer.original_optimizer.param_groups:
            for parameter in group["params"]:
                if not parameter.requires_grad:
                    continue
                name = self._names.get(id(parameter), f"outside the model, {len(seen)}")
                gradient = parameter.grad
                # the optimizer leaves out what has no gradient, as if it were zero
                seen[name] = torch.zeros_like(parameter) if gradient is None else gradient
        self._seen = {name: one.detach().to_dense().cpu().clone() for name, one in seen.items()}


def _check(optimizer: object) -> None:
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
    if any(hasattr(one, "full_tensor") for one in optimizer.params):
        raise OptionError(
            f"{type(optimizer).__name__} has parameters in shards, and each process sees its own "
            "alone: probe the step on one process, without FSDP"
        )
    if getattr(optimizer, "_is_last_step_skipped", False) and any(
        getattr(one, "summed_grad", None) is not None for one in optimizer.params
    ):
        raise OptionError("the optimizer is within a logical batch: probe between two steps")


def _emptied(batch: object) -> object:
    """Return a collated batch without its examples."""
    if torch.is_tensor(batch):
        return batch[:0]
    if isinstance(batch, Mapping):
        return {key: _emptied(part) for key, part in batch.items()}
    if isinstance(batch, tuple | list):
        parts = list(map(_emptied, batch))
        make: Callable[..., object] = type(batch)
        if hasattr(batch, "_fields"):  # a named tuple
            return make(*parts)
        return make(parts)
    return batch


class _Streams(TorchDispatchMode):  # type: ignore[no-untyped-call]
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
        self._shapes: list[tuple[int, ...]] = []
        self._known: dict[int, list[tuple[int, ...]]] = {}
        self._check_rows()

    def _check_rows(self) -> None:
        """Check that fewer rows of random numbers are the first ones of more."""
        for columns in self._COLUMNS:
            drawn = []
            for rows in self._ROWS:
                global_random.seed_torch(1)
                ones = torch.ones(rows, columns, device=self._device)
                drawn.append(nn.functional.dropout(ones, p=0.5))
            if any(not torch.equal(one, drawn[-1][: len(one)]) for one in drawn):
                raise OptionError(_CANNOT.format(f"they depend on the batch on {self._device}"))

    @contextmanager
    def run(self, part: int, examples: int) -> Iterator[None]:
        """Give streams to one forward and backward pass, and compare it with others."""
        self._part = part
        self._shapes = []
        with self:
            yield
        for number, shapes in self._known.items():
            self._compare(shapes, fewer=min(number, examples))
        self._known.setdefault(examples, self._shapes)

    def _compare(self, shapes: list[tuple[int, ...]], fewer: int) -> None:
        """Check that batches of two sizes draw the same, but for the number of rows."""
        now = self._shapes
        same = len(now) == len(shapes)
        rest = all(one[1:] == other[1:] for one, other in zip(now, shapes, strict=False))
        if fewer and not (same and rest):
            raise OptionError(
                _CANNOT.format(
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
        given = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or given.get("generator"):
            return func(*args, **given)
        global_random.seed_torch(self._part * _PARTS + _CALLS * (len(self._shapes) + 1))
        result = func(*args, **given)
        first = result[0] if isinstance(result, tuple | list) else result
        self._shapes.append(tuple(first.shape))
        return result


class _Kept:
    """All that runs of a step may change, as it was."""

    def __init__(self, model: nn.Module, optimizer: DPOptimizer) -> None:
        self._optimizer = optimizer
        self._states = global_random.states()
        self._generator = optimizer.generator
        self._generator_state = None
        if self._generator is not None:
            self._generator_state = self._generator.get_state()
        self._inner = dict(vars(optimizer.original_optimizer))
        self._fields = {name: _copied(value) for name, value in vars(optimizer).items()}
        parameters = {id(one): one for one in [*model.parameters(), *optimizer.params]}
        self._parameters = [
            (one, one.detach().clone(), one.grad, dict(vars(one)), one.requires_grad)
            for one in parameters.values()
        ]
        self._buffers = [(one, one.detach().clone()) for one in model.buffers()]
        self._modules = [
            (one, {name: _copied(value) for name, value in _attributes(one).items()})
            for one in model.modules()
        ]
        self._start: dict[str, object] = {}

    def begin(self) -> None:
        """Let no accountant count, and no watcher of the run see, the steps that follow."""
        optimizer = self._optimizer
        optimizer.step_hook = None
        if isinstance(getattr(vars(optimizer).get("pre_step"), "__self__", None), WatchedOptimizer):
            del optimizer.pre_step
        self._start = {name: _copied(value) for name, value in vars(optimizer).items()}

    def reset(self, *, seeded: bool) -> None:
        """Begin a run where all runs begin; without a seed, the optimizer's own state goes on."""
        optimizer = self._optimizer
        if seeded:
            vars(optimizer).clear()
        for name, value in self._start.items():
            if seeded or name in _ADAPTED:
                vars(optimizer)[name] = _copied(value)
        vars(optimizer).update(_is_last_step_skipped=False, _step_skip_queue=[])
        for parameter, *_ in self._parameters:
            parameter.grad = None
            for name in _OF_EXAMPLES:
                if name in vars(parameter):
                    vars(parameter)[name] = None
        for buffer, value in self._buffers:
            buffer.data.copy_(value)
        for module, attributes in self._modules:
            plain = {name: one for name, one in attributes.items() if isinstance(one, _PLAIN)}
            vars(module).update(plain)

    def put_back(self) -> None:
        """Put everything back."""
        inner: object = self._optimizer.original_optimizer
        vars(inner).clear()
        vars(inner).update(self._inner)
        for parameter, value, gradient, attributes, needs in self._parameters:
            parameter.data.copy_(value)
            parameter.grad = gradient
            parameter.requires_grad_(needs)
            vars(parameter).clear()
            vars(parameter).update(attributes)
        for buffer, value in self._buffers:
            buffer.data.copy_(value)
        for module, attributes in self._modules:
            for name in _attributes(module).keys() - attributes.keys():
                del vars(module)[name]
            vars(module).update(attributes)
        vars(self._optimizer).clear()
        vars(self._optimizer).update(self._fields)
        if self._generator is not None:
            self._generator.set_state(self._generator_state)
        global_random.restore(self._states)


def _attributes(module: nn.Module) -> dict[str, object]:
    """Return the attributes of a module but for parameters, buffers and submodules."""
    return {name: one for name, one in vars(module).items() if name not in _STRUCTURE}


def _copied(value: object) -> object:
    """Return a copy of what code may change in place."""
    if torch.is_tensor(value) and not isinstance(value, nn.Parameter):
        return value.clone()
    if type(value) is list or type(value) is dict:
        return value.copy()
    return value
