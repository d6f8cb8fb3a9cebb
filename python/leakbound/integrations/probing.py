"""The step of an opacus optimizer, to be probed: the user's own code, without the update."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from leakbound._base.checks import integer
from leakbound._base.imports import needs

if TYPE_CHECKING:
    from opacus.optimizers import DPOptimizer
    from torch import Tensor, nn

    from leakbound.integrations.step_recorder import Loss


class RecordedStep(Protocol):
    """A step as `leakbound.probe_dp_step` takes it."""

    def __call__(self, examples: Sequence[object], seed: int | None) -> Mapping[str, "Tensor"]:
        """Run the step on examples, and return what the underlying optimizer would be given."""


@contextmanager
def opacus_step(
    model: "nn.Module",
    optimizer: "DPOptimizer",
    loss: "Callable[[nn.Module, Any], Loss]",
    *,
    collate: Callable[[list[Any]], object] | None = None,
    physical_batch_size: int | None = None,
) -> Iterator[RecordedStep]:
    """Run the training step of an opacus optimizer in a block, without its update.

    The step is the user's own: the loss, its ``backward()`` and ``optimizer.step()``, with the step
    of the underlying optimizer replaced by one that records the gradients it is given. After the
    block everything is as it was, bit for bit: weights, buffers, gradients, norms, queues, states
    of random generators, and the accountant, which counts no step.

    In distributed training all processes run the step together, so that all of them must probe it,
    with the same pairs and the same seed. Each takes its part of the examples, and draws noise from
    a seed of its own.

    Parameters
    ----------
    model : torch.nn.Module
        What `PrivacyEngine.make_private` returned, in training mode.
    optimizer : opacus.optimizers.DPOptimizer
        The optimizer that it returned, with flat, per-layer, adaptive (AdaClip) or ghost clipping.
    loss : callable
        ``loss(model, batch)``: forward pass and criterion on a collated batch, as in training.
    collate : callable, optional
        Makes a batch of a list of examples; by default that of PyTorch's loaders.
    physical_batch_size : int, optional
        Examples in one backward pass, as with `BatchMemoryManager`; by default all.

    Yields
    ------
    callable
        ``step(examples, seed)`` for `leakbound.probe_dp_step`. The seed is that of the noise.
        Dropout and other random numbers of the forward pass are the same in all runs, and one more
        example leaves those of the others as they are. A `leakbound.dp_sgd.Batch` has a factor on
        the loss.

    Raises
    ------
    InputTypeError
        If the optimizer is not one of opacus.
    OptionError
        If the clipping norm adapts, or noise is added, inside the backward pass, if random numbers
        of the forward pass cannot be fixed for each example, within a logical batch, if parameters
        are in shards, or if processes were asked for different runs.

    Examples
    --------
    >>> import torch
    >>> import leakbound as lb
    >>> from opacus import PrivacyEngine
    >>> from torch.utils.data import DataLoader
    >>> _ = torch.manual_seed(0)
    >>> data = [(torch.randn(20), torch.tensor(i % 2)) for i in range(40)]
    >>> net = torch.nn.Linear(20, 2)
    >>> model, optimizer, loader = PrivacyEngine().make_private(
    ...     module=net,
    ...     optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
    ...     data_loader=DataLoader(data, batch_size=8),
    ...     noise_multiplier=1.0,
    ...     max_grad_norm=1.0,
    ... )
    >>> def loss(model, batch):
    ...     return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
    >>> pairs = lb.dp_sgd.neighbouring_batches([data[:8]], data[8:10], sweep=False)
    >>> with opacus_step(model, optimizer, loss) as step:
    ...     audit = lb.probe_dp_step(step, pairs, noise_multiplier=1.0, seed=0)
    >>> audit.check()
    'not refuted'
    """
    size = None
    if physical_batch_size is not None:
        size = integer(physical_batch_size, name="physical_batch_size", least=1)
    with needs("dp", "opacus_step"):
        from leakbound.integrations.step_recorder import OpacusStep
    step = OpacusStep(model, optimizer, loss, collate=collate, physical_batch_size=size)
    with step.recording():
        yield step
