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
from torch.utils.data import DataLoader

import leakbound as lb
from dp_step_models import NOISE, mlp, vectors
from leakbound.errors import MissingExtraError
from leakbound.integrations import opacus_step
from leakbound.results.dp_step import epsilon_of_scale
from leakbound.torch.device import reproducible
from outcomes import Cell, Outcome, Reproduction
from training import DELTA, loss_of_labels, quiet_opacus

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

    first_examples = data[:10]
    with opacus_step(model, optimizer, loss_of_labels) as step:
        return step(first_examples, seed)


def divisor_of_data() -> lb.DPStepAudit:
    """Probe steps of data sets that differ in one example, on a batch that both may draw."""
    data = vectors(60)
    pairs = []
    for size in SIZES:
        smaller = data[:size]
        larger = data[: size + 1]
        pairs.append(lb.dp_sgd.Pair(f"{size} and {size + 1} examples", smaller, larger))
    with reproducible(), quiet_opacus():
        return lb.probe_dp_step(_step, pairs, noise_multiplier=NOISE, runs=16, steps=0, seed=0)


def _accounted() -> tuple[float, float]:
    """Return ε of the Gaussian mechanism on replacing one example, by RDP and by losses."""
    from dp_accounting import NeighboringRelation, dp_event
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    relation = NeighboringRelation.REPLACE_ONE
    event = dp_event.GaussianDpEvent(1.0)
    orders = [1 + tenths / 10 for tenths in range(1, 1000)]
    rdp_accountant = RdpAccountant(orders=orders, neighboring_relation=relation)
    loss_accountant = PLDAccountant(neighboring_relation=relation)
    epsilon_by_rdp = rdp_accountant.compose(event).get_epsilon(DELTA)
    epsilon_by_losses = loss_accountant.compose(event).get_epsilon(DELTA)
    return float(epsilon_by_rdp), float(epsilon_by_losses)


def _of_opacus() -> str:
    """Return what a probe sees of the divisor in the release of opacus that is imported."""
    audit = divisor_of_data()
    noise_scales = {}
    epsilons = {}
    for pair in audit.pairs:
        if pair.scale not in {None, 1.0}:
            noise_scales[pair.name] = pair.scale
            epsilons[pair.name] = epsilon_of_scale(pair.scale or 0.0, audit.values, DELTA)
    if not epsilons:
        return "right"
    worst = max(epsilons, key=epsilons.__getitem__)
    return (
        f"{len(epsilons)} of {len(audit.pairs)} sizes: of {worst} noise times "
        f"{noise_scales[worst]:.4f}, ε ≥ {epsilons[worst]:.1f} by one step of {audit.values} values"
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
    release_folder = folder / f"{package}-{release}"
    if version(package) != release and not release_folder.is_dir():
        install = [*PIP, "--target", str(release_folder), f"{package}=={release}"]
        if subprocess.run(install, check=False).returncode:
            message = f"{package} {release} cannot be installed: {' '.join(install)} failed"
            raise MissingExtraError(message)
    search_path = os.pathsep.join([str(release_folder), *sys.path])
    process = subprocess.run(
        [sys.executable, __file__, name],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": search_path},
    )
    last_line = process.stdout.splitlines()[-1]
    imported_release, finding = json.loads(last_line)
    if imported_release != release:
        message = f"{package} {imported_release} was imported in place of {release}"
        raise MissingExtraError(message)
    return str(finding)


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
        for name, reported in REPORTED.items():
            for release in reported.releases:
                finding = seen_in(name, release, Path(folder))
                rows.append((f"{reported.package} {release}", reported.report, finding))
    releases_without_fault = [str(release) for release, _, finding in rows if finding == "right"]
    mended = ", ".join(releases_without_fault) or "none"
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
    print(json.dumps([version(reported.package), reported.see()]))
