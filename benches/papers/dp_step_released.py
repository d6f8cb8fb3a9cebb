"""Faults of released packages with a public report, as a probe of the step sees them.

Each release is installed in a folder of its own, without what it needs, and comes first on the path
of a process. `python benches/papers/dp_step_released.py NAME` is that process.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader

import leakbound as lb
from dp_step_models import NOISE, mlp, vectors
from leakbound.errors import MissingExtraError
from leakbound.integrations import opacus_step
from leakbound.results.dp_step import epsilon_of_scale
from leakbound.torch.placement import reproducible
from outcomes import Cell, Outcome, Reproduction
from training import DELTA, quiet_opacus

__all__ = ["RELEASED", "REPORTED", "SIZES", "divisor_of_data", "seen_in"]

PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps")

# Examples in the smaller one of two data sets, and in a batch
SIZES = range(38, 44)
BATCH = 8


def _step(examples: Any, seed: int | None) -> Any:
    """Make the training of a data set private, and take a step on its first ten examples."""
    data = list(examples)
    network = mlp()
    model, optimizer, _ = PrivacyEngine(accountant="rdp").make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=BATCH),  # type: ignore[arg-type]
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
    )

    def loss(m: nn.Module, batch: Any) -> Any:
        return nn.functional.cross_entropy(m(batch[0]), batch[1])

    with opacus_step(model, optimizer, loss) as step:
        return step(data[:10], seed)


def divisor_of_data() -> lb.DPStepAudit:
    """Probe steps of data sets that differ in one example, on a batch that both may draw."""
    data = vectors(60)
    pairs = [
        lb.dp_sgd.Pair(f"{size} and {size + 1} examples", data[:size], data[: size + 1])
        for size in SIZES
    ]
    with reproducible(), quiet_opacus():
        return lb.probe_dp_step(_step, pairs, noise_multiplier=NOISE, runs=16, steps=0, seed=0)


def _accounted() -> tuple[float, float]:
    """Return ε of the Gaussian mechanism on replacing one example, by RDP and by losses."""
    from dp_accounting import NeighboringRelation, dp_event
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    relation = NeighboringRelation.REPLACE_ONE
    event = dp_event.GaussianDpEvent(1.0)
    orders = [1 + x / 10 for x in range(1, 1000)]
    by_rdp = RdpAccountant(orders=orders, neighboring_relation=relation).compose(event)
    by_losses = PLDAccountant(neighboring_relation=relation).compose(event)
    return float(by_rdp.get_epsilon(DELTA)), float(by_losses.get_epsilon(DELTA))


def _of_opacus() -> str:
    """Return what a probe sees of the divisor in the release of opacus that is imported."""
    audit = divisor_of_data()
    found = {one.name: one.scale for one in audit.pairs if one.scale not in {None, 1.0}}
    if not found:
        return "right"
    epsilons = {
        name: epsilon_of_scale(scale or 0.0, audit.values, DELTA) for name, scale in found.items()
    }
    worst = max(epsilons, key=epsilons.__getitem__)
    return (
        f"{len(found)} of {len(audit.pairs)} sizes: of {worst} noise times {found[worst]:.4f}, "
        f"ε ≥ {epsilons[worst]:.1f} by one step of {audit.values} values"
    )


def _of_accounting() -> str:
    """Return what the release of dp-accounting that is imported states of Gaussian noise."""
    by_rdp, by_losses = _accounted()
    exact = float(lb.GaussianDP().attained(2.0, "both").epsilon(DELTA))
    if by_rdp >= exact:
        return "right"
    return f"ε = {by_rdp:.2f} by RDP, {by_losses:.2f} by privacy losses; tests attain {exact:.2f}"


@dataclass(frozen=True)
class Reported:
    """A fault of a package with a public report, and the releases that are looked at."""

    package: str
    report: str
    releases: tuple[str, ...]
    see: Callable[[], str]


REPORTED: dict[str, Reported] = {
    "divisor": Reported(
        "opacus",
        "issue 819: the divisor follows the size of the data",
        ("1.5.2", "1.5.3", "1.5.4", "1.6.0"),
        _of_opacus,
    ),
    "replacing": Reported(
        "dp-accounting",
        "issue 378: RDP of replacing one example",
        ("0.5.0", "0.5.1", "0.6.0"),
        _of_accounting,
    ),
}
"""Faults, by name."""


def seen_in(name: str, release: str, folder: Path) -> str:
    """Return what is seen in a release, in a process that has it in place of the one installed."""
    package = REPORTED[name].package
    place = folder / f"{package}-{release}"
    if version(package) != release and not place.is_dir():
        asked = [*PIP, "--target", str(place), f"{package}=={release}"]
        if subprocess.run(asked, check=False).returncode:
            message = f"{package} {release} cannot be installed: {' '.join(asked)} failed"
            raise MissingExtraError(message)
    paths = os.pathsep.join([str(place), *sys.path])
    program = [sys.executable, __file__, name]
    told = subprocess.run(
        program, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}
    )
    used, seen = json.loads(told.stdout.splitlines()[-1])
    if used != release:
        message = f"{package} {used} was imported in place of {release}"
        raise MissingExtraError(message)
    return str(seen)


_WHY = (
    "In opacus the scale of the noise tells the two data sets apart: the expected batch size is "
    "⌊N q⌋ with q = 1/⌈N/B⌉, so that one example more may change the divisor. Data sets of 38 to "
    "43 examples are compared with those of one more, at batches of 8."
)


def _released(*, full: bool) -> Outcome:
    """Return what each release of each package does: so which one mends it."""
    del full  # there is one size
    rows: list[tuple[Cell, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, one in REPORTED.items():
            for release in one.releases:
                seen = seen_in(name, release, Path(folder))
                rows.append((f"{one.package} {release}", one.report, seen))
    mended = ", ".join(str(release) for release, _, seen in rows if seen == "right") or "none"
    return Outcome(
        columns=("release", "report", "seen"),
        rows=tuple(rows),
        notes=(f"ε is at δ = {DELTA:g}. {_WHY}", f"Releases that mend their fault: {mended}."),
    )


RELEASED: dict[str, Reproduction] = {
    "dp-step-released": Reproduction(
        title="Released packages", source="docs/theory/dp-sgd.md", compute=_released
    ),
}
"""Reproductions by name."""


if __name__ == "__main__":
    reported = REPORTED[sys.argv[1]]
    sys.stdout.write(json.dumps([version(reported.package), reported.see()]) + "\n")
