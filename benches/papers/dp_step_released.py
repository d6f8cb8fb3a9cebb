"""Faults of released packages with a public report, as a probe of the step sees them."""

from importlib.metadata import version
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader

import leakbound as lb
from dp_step_models import NOISE, mlp, vectors
from leakbound.integrations import opacus_step
from leakbound.results.dp_step import epsilon_of_scale
from leakbound.torch.placement import reproducible
from outcomes import Cell, Outcome, Reproduction
from training import DELTA, quiet_opacus

__all__ = ["RELEASED", "SIZES", "divisor_of_data"]

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


_WHY = (
    "In opacus the scale of the noise tells the two data sets apart: the expected batch size is "
    "⌊N q⌋ with q = 1/⌈N/B⌉, so that one example more may change the divisor."
)
_MENDED = (
    "A release is mended where all of its rows say “right”, or, of the accountant, where RDP is at "
    "least what tests attain. Neither was when these rows were stored."
)


def _released(*, full: bool) -> Outcome:
    """Return what each released package does, and whether this version is mended."""
    del full  # there is one size
    audit = divisor_of_data()
    rows: list[tuple[Cell, ...]] = []
    opacus = f"opacus {version('opacus')}, issue 819"
    for one in audit.pairs:
        seen = "right"
        if one.scale is not None and one.scale != 1:
            ratio = epsilon_of_scale(one.scale, audit.values, DELTA)
            seen = f"noise times {one.scale:.4f}: ε ≥ {ratio:.1f}"
        rows.append((opacus, one.name, seen))
    by_rdp, by_losses = _accounted()
    exact = float(lb.GaussianDP().attained(2.0, "both").epsilon(DELTA))
    seen = "right" if by_rdp >= exact else f"ε = {by_rdp:.2f}, but tests attain {exact:.2f}"
    accounting = f"dp-accounting {version('dp-accounting')}, issue 378"
    rows.append((accounting, "RDP of the Gaussian mechanism, replacing one", seen))
    rows.append((accounting, "the same by privacy losses", f"ε = {by_losses:.2f}"))
    return Outcome(
        columns=("release", "case", "seen"),
        rows=tuple(rows),
        notes=(f"ε is at δ = {DELTA:g}, of one step of {audit.values} values. {_WHY}", _MENDED),
    )


RELEASED: dict[str, Reproduction] = {
    "dp-step-released": Reproduction(
        title="Released packages", source="docs/theory/dp-sgd.md", compute=_released
    ),
}
"""Reproductions by name."""
