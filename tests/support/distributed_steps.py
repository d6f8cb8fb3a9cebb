"""Two processes that train together, on gloo: their step is probed, and their run watched.

python tests/support/distributed_steps.py FOLDER

Processes meet at a file of the folder, and what each found is written there as JSON. Both are forks
of one process, as importing torch and opacus takes longer than a probe.
"""

import json
import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from opacus.optimizers import DistributedDPOptimizer
from opacus.optimizers.ddp_perlayeroptimizer import DistributedPerLayerOptimizer
from torch import distributed, nn
from torch.utils.data import DataLoader, default_collate

import leakbound as lb
from dp_step_models import BATCH, NOISE, mlp, mlp_with_dropout, vectors
from leakbound.errors import LeakboundError
from leakbound.integrations import opacus_step
from training import quiet_opacus

__all__ = ["PROCESSES", "main"]

PROCESSES = 2


def _noised(optimizer: Any, std: float) -> None:
    for p in optimizer.params:
        p.grad = p.summed_grad + torch.normal(0.0, std, p.summed_grad.shape)


class NoiseNowhere(DistributedDPOptimizer):  # type: ignore[misc]
    """Noise on a process that there is not."""

    def add_noise(self) -> None:
        """Add no noise."""
        for p in self.params:
            p.grad = p.summed_grad.clone()


class NoiseShared(DistributedDPOptimizer):  # type: ignore[misc]
    """Each process adds its part of the deviation, though variances are what adds up."""

    def add_noise(self) -> None:
        """Add too little."""
        _noised(self, self.noise_multiplier * self.max_grad_norm / self.world_size)


class NoiseEverywhere(DistributedDPOptimizer):  # type: ignore[misc]
    """Each process adds all of the noise: too much."""

    def add_noise(self) -> None:
        """Add it whatever the process."""
        _noised(self, self.noise_multiplier * self.max_grad_norm)


class NoiseAveragedTwice(DistributedDPOptimizer):  # type: ignore[misc]
    """Noise is divided by the processes, and once more with the sum."""

    def add_noise(self) -> None:
        """Add on the first process."""
        std = 0.0
        if self.rank == 0:
            std = self.noise_multiplier * self.max_grad_norm / self.world_size
        _noised(self, std)


class OwnMean(DistributedDPOptimizer):  # type: ignore[misc]
    """Each process divides by the number of its own examples."""

    def scale_grad(self) -> None:
        """Divide by a number that follows the batch."""
        for p in self.params:
            p.grad /= max(1, len(p.grad_sample))


WRONG = (NoiseNowhere, NoiseShared, NoiseEverywhere, NoiseAveragedTwice, OwnMean)


def _loss(model: nn.Module, batch: Any) -> Any:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def _of_class(kind: Any, network: nn.Module | None = None, **options: Any) -> tuple[Any, Any]:
    """Return a model and an optimizer of one class."""
    model = GradSampleModule(DifferentiallyPrivateDistributedDataParallel(network or mlp()))
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    how = {"max_grad_norm": 1.0, "expected_batch_size": BATCH // PROCESSES} | options
    return model, kind(inner, noise_multiplier=NOISE, **how)


def _of_engine(**how: Any) -> tuple[Any, Any, Callable[[Any, Any], Any]]:
    """Return model, optimizer and loss as opacus makes them of a distributed model."""
    model = DifferentiallyPrivateDistributedDataParallel(mlp())
    model, optimizer, *rest, _ = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(vectors(), batch_size=BATCH),  # type: ignore[arg-type]
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
        **how,
    )
    if rest:
        return model, optimizer, lambda m, batch: rest[0](m(batch[0]), batch[1])
    return model, optimizer, _loss


def _pairs() -> list[lb.dp_sgd.Pair]:
    """Return few pairs: an example in a batch, alone, and among copies, its gradient long."""
    *rest, added = vectors()[: BATCH + 1]
    contexts = {"in a batch": rest, "alone": [], "among copies": [added] * BATCH}
    return [
        lb.dp_sgd.Pair(
            name,
            lb.dp_sgd.Batch(one, loss_factor=1e3),
            lb.dp_sgd.Batch([*one, added], loss_factor=1e3),
        )
        for name, one in contexts.items()
    ]


def _probed(model: Any, optimizer: Any, loss: Any = _loss, *, seed: int = 0) -> lb.DPStepAudit:
    torch.manual_seed(distributed.get_rank())
    with opacus_step(model, optimizer, loss) as step:
        return lb.probe_dp_step(step, _pairs(), noise_multiplier=NOISE, seed=seed)


def _told(found: lb.DPStepAudit) -> dict[str, Any]:
    return {"bound": found.bound, "refuted_by": found.refuted_by, "warnings": found.warnings}


def _watched(kind: Any) -> dict[str, Any]:
    """Return what a watch of a run says, and how the run's own step was probed."""
    model, optimizer = _of_class(kind)
    rank = distributed.get_rank()
    own = vectors()[rank::PROCESSES]
    generator = torch.Generator().manual_seed(rank)
    torch.manual_seed(rank)
    steps = 30
    with lb.watch_dp_sgd(
        optimizer, canaries=20, step_canaries=200, sampling_rate=0.2, max_steps=steps, seed=0
    ) as watch:
        for number in range(steps):
            if number in {0, steps - 1}:
                with opacus_step(model, optimizer, _loss) as step:
                    watch.probe(step, _pairs(), seed=number)
            drawn = torch.rand(len(own), generator=generator) < 0.2
            rows = [one for one, inside in zip(own, drawn.tolist(), strict=True) if inside]
            optimizer.zero_grad()
            batch = [part[: len(rows)] for part in default_collate(rows or own[:1])]
            _loss(model, batch).backward()
            optimizer.step()
    if rank:
        return {"steps": watch.observed.steps, "refused": _refused(watch.audit)}
    found = watch.audit()
    return {
        "steps": watch.observed.steps,
        "noise": found.steps.noise_multiplier,
        "refuted_by": found.refuted_by,
        "probes": [one.refuted_by for one in found.probes],
    }


def _refused(ask: Callable[[], object]) -> str:
    """Return why something is refused."""
    try:
        ask()
    except LeakboundError as error:
        return str(error)
    return ""


def _sharded() -> tuple[Any, Any]:
    """Return a model with a parameter in shards, and an optimizer of it."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    model, optimizer = _of_class(DistributedDPOptimizer)
    weight = optimizer.params[0]
    mesh = init_device_mesh("cpu", (PROCESSES,))
    sharded = nn.Parameter(distribute_tensor(weight.detach(), mesh, [Shard(0)]))
    optimizer.param_groups[0]["params"][0] = sharded
    return model, optimizer


def _found_by(rank: int, folder: Path) -> dict[str, Any]:
    """Probe and watch right runs and faulty ones."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'meet'}", rank=rank, world_size=PROCESSES
    )
    ghost = {"grad_sample_mode": "ghost", "criterion": nn.CrossEntropyLoss()}
    norms: dict[str, Any] = {"max_grad_norm": [0.5] * 4}
    found: dict[str, Any] = {
        "hooks": _told(_probed(*_of_engine())),
        "ghost": _told(_probed(*_of_engine(**ghost))),
        "dropout": _told(_probed(*_of_class(DistributedDPOptimizer, mlp_with_dropout()))),
        **{one.__name__: _told(_probed(*_of_class(one))) for one in WRONG},
        "watched": {one.__name__: _watched(one) for one in (DistributedDPOptimizer, NoiseShared)},
        "seeds": _refused(lambda: _probed(*_of_engine(), seed=rank)),
        "per layer": _refused(lambda: _probed(*_of_class(DistributedPerLayerOptimizer, **norms))),
        "shards": _refused(lambda: _probed(*_sharded())),
    }
    distributed.destroy_process_group()
    return found


def _write_found(rank: int, folder: Path) -> None:
    with quiet_opacus():
        found = _found_by(rank, folder)
    (folder / f"found-{rank}").write_text(json.dumps(found), encoding="utf-8")


def main(folder: Path) -> int:
    """Run both processes, and return how many of them failed."""
    forks = multiprocessing.get_context("fork")
    processes = [
        forks.Process(target=_write_found, args=(rank, folder)) for rank in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return sum(process.exitcode != 0 for process in processes)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
