"""Tables and figures of Kazmi et al. (2024): their layout and shapes, on targets trained here."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from outcomes import Cell, Compute, Line, Outcome, Reproduction
from panoramia_models import MODELS
from panoramia_run import (
    IMAGES,
    PAPER,
    PEOPLE,
    TEXT,
    Sizes,
    images_run,
    mean_of,
    people_run,
    sized,
    text_run,
)
from panoramia_scores import SCORES

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakbound._base.types import AnyArray, FloatArray
    from leakbound.panoramia.table import Spread
    from leakbound.results import PanoramiaResult, ScoreAudit
    from targets import Audited

__all__ = ["PANORAMIA"]

_TABLE_3 = {
    "ResNet101_E20": ((2.44, 2.76, 0.33), 0.421, 0.450),
    "ResNet101_E50": ((2.44, 3.11, 0.67), 0.71, 0.79),
    "ResNet101_E100": ((2.44, 3.60, 1.16), 1.22, 1.41),
    "WRN-28-10_E150": ((2.44, 5.01, 2.57), 2.87, 2.96),
    "WRN-28-10_E300": ((2.44, 5.98, 3.54), 3.65, 3.73),
    "ViT_E35": ((2.44, 5.03, 2.59), 2.77, 2.86),
    "CNN_E50": ((2.05, 2.81, 0.76), 0.91, 1.01),
    "CNN_E100": ((2.05, 3.38, 1.33), 1.38, 1.46),
    "GPT2_E37": ((3.62, 3.85, 0.22), 1.04, 2.82),
    "GPT2_E75": ((3.62, 5.20, 1.57), 2.52, 4.71),
    "GPT2_E150": ((3.62, 6.02, 2.40), 3.60, 5.73),
    "ResNet18 ε = ∞": ((2.44, 3.87, 1.43), None, 1.471),
    "ResNet18 ε = 15": ((2.44, 3.57, 1.13), None, 1.20),
    "ResNet18 ε = 10": ((2.44, 2.70, 0.26), None, 0.28),
    "ResNet18 ε = 2": ((2.44, 1.709, 0.0), None, 0.05),
    "ResNet18 ε = 1": ((2.44, 1.412, 0.0), None, 0.0),
}
"""As printed: c, c + ε and ε̃, RM;RN, and O(1)."""
_TABLE_6: tuple[tuple[Cell, ...], ...] = (
    ("MLP_E10 (printed)", None, 0.0, 0.142, 0.655, 0.014),
    ("MLP_E100 (printed)", None, 0.062, 0.156, 0.648, 0.015),
)

_CUTS = (
    "Bounds are those of the KL scan; the paper's union bound over all cuts, on the same scores, "
    "is listed too. ε̃ is an estimate, not a lower bound on ε."
)
_LOSSES = (
    "Helpers saw no member that is audited: their losses of members and of real non-members agree, "
    "and those of generated examples are as far off as the generator is, under targets too."
)
_TABLE = (
    "The paper's MLP on Adult has an ε by O(1) that epochs do not change, ours one that grows with "
    "them: it memorises its members, and PANORAMIA sees a part of that."
)
_AXES = {
    "precision": ("recall", "share of correct guesses"),
    "bound": ("recall", "c or c + ε"),
    "correct": ("guesses", "correct guesses"),
}
_FIRST = "Curves are those of the first seed, as the paper's Figure 3 is of one run."


_BOUNDS = ("target", "audit", "m", "c at least", "c + ε at least", "ε̃", "ε at least")


def _bounds(made: Audited) -> list[tuple[Cell, ...]]:
    return [
        (row.target, row.audit, row.m, *map(mean_of, spreads))
        for row in made.found.rows
        for spreads in [(row.c_lb, row.c_plus_epsilon_lb, row.epsilon_tilde, row.epsilon)]
    ]


@sized
def _table_3(sizes: Sizes) -> Outcome:
    """Return all targets: images, people and text."""
    runs = [run(sizes) for run in (images_run, people_run, text_run)]
    printed: list[tuple[Cell, ...]] = []
    for name, (estimates, real, by_loss) in _TABLE_3.items():
        printed.append((f"{name} (printed)", "PANORAMIA", 10_000, *estimates, None))
        if real is not None:
            printed.append((f"{name} (printed)", "RM;RN", 10_000, None, real, None, real))
        printed.append((f"{name} (printed)", "O(1)", 10_000, None, None, None, by_loss))
    warnings = dict.fromkeys(warning for made in runs for warning in made.found.warnings)
    return Outcome(
        columns=_BOUNDS,
        rows=(*(row for made in runs for row in _bounds(made)), *printed),
        notes=(IMAGES, PEOPLE, TEXT, _CUTS, *warnings),
    )


@sized
def _table_6(sizes: Sizes) -> Outcome:
    """Return ε̃ and O(1) of networks on Adult."""
    made = people_run(sizes)
    rows: list[tuple[Cell, ...]] = []
    for target in made.targets:
        row = made.found.row(target.name)
        by_loss = made.found.row(target.name, "O(1)").epsilon
        rows.append(
            (target.name, mean_of(row.c_lb), *_spread(row.epsilon_tilde), *_spread(by_loss))
        )
    return Outcome(
        columns=("target", "c at least", "ε̃", "± of ε̃", "O(1): ε at least", "± of O(1)"),
        rows=(*rows, *_TABLE_6),
        notes=(PEOPLE, _TABLE, *made.found.warnings),
    )


def _spread(one: Spread | None) -> tuple[float | None, float | None]:
    """Return a mean and half of the interval around it."""
    if one is None:
        return None, None
    return one.mean, one.half_width


@sized
def _figure_14(sizes: Sizes) -> Outcome:
    """Losses of members, generated and real non-members under every model."""
    found = images_run(sizes).found
    return Outcome(
        columns=("model", "examples", "number", "median loss"),
        rows=tuple(
            (one.model, side, int(counts.sum()), one.medians[side])
            for one in found.losses
            for side, counts in one.sides.items()
        ),
        notes=(IMAGES, _LOSSES),
        lines=tuple(
            Line(
                panel=one.model,
                name=side,
                x=tuple(np.sqrt(one.edges[1:] * one.edges[:-1]).tolist()),
                y=tuple((counts / counts.sum()).tolist()),
            )
            for one in found.losses
            for side, counts in one.sides.items()
        ),
        axes=("log loss, nats", "share of examples per bin"),
    )


def _curves(run: Callable[[Sizes], Audited], words: str, *kinds: str) -> Compute:
    """Return what draws precision, bounds, or correct guesses of every cut of one run."""

    @sized
    def computed(sizes: Sizes) -> Outcome:
        made = run(sizes)
        results = {
            row.target: cast("PanoramiaResult", row.results[0])
            for row in made.found.rows
            if row.audit == "PANORAMIA"
        }
        first = next(iter(results.values()))
        attacks = {name: one.attack for name, one in results.items()}
        audits = {"baseline": first.baseline, **attacks}
        panels = ["PANORAMIA"]
        axes = _AXES[kinds[0]]
        if len(kinds) > 1:
            panels = [_AXES[kind][1] for kind in kinds]
            axes = (axes[0], "see the titles")
        return Outcome(
            columns=("ranking", "guesses", "right", "recall", "precision", "bound"),
            rows=tuple((name, *_chosen(audit)) for name, audit in audits.items()),
            notes=(words, _FIRST),
            lines=tuple(
                _line(kind, panel=panel, name=name, audit=audit)
                for kind, panel in zip(kinds, panels, strict=True)
                for name, audit in audits.items()
            ),
            axes=axes,
        )

    return computed


def _line(what: str, panel: str, name: str, audit: ScoreAudit) -> Line:
    curve = audit.curve
    values: FloatArray = getattr(curve, what)
    across: AnyArray = curve.recall
    if what == "correct":
        across = curve.guesses
    tested = curve.recall >= 0
    if what == "bound":
        tested = ~np.isnan(curve.bound)
    return Line(
        panel=panel, name=name, x=tuple(across[tested].tolist()), y=tuple(values[tested].tolist())
    )


def _chosen(audit: ScoreAudit) -> tuple[Cell, ...]:
    """Return the cut that the bound comes from."""
    recall = audit.correct / audit.members
    precision = audit.correct / max(1, audit.guesses)
    return audit.guesses, audit.correct, recall, precision, audit.bound


PANORAMIA: dict[str, Reproduction] = {
    "panoramia-table3": Reproduction(
        title="Bounds and ε̃ of each target, with RM;RN and O(1)",
        source=f"{PAPER}, Table 3",
        compute=_table_3,
    ),
    "panoramia-table6": Reproduction(
        title="Networks on Adult", source=f"{PAPER}, Table 6", compute=_table_6
    ),
    "panoramia-figure3": Reproduction(
        title="Precision against recall, baseline and attacks",
        source=f"{PAPER}, Figure 3",
        compute=_curves(images_run, IMAGES, "precision"),
    ),
    "panoramia-figure4": Reproduction(
        title="Bounds on c and c + ε against recall",
        source=f"{PAPER}, Figure 4",
        compute=_curves(images_run, IMAGES, "bound"),
    ),
    "panoramia-figure10": Reproduction(
        title="True positives against predictions",
        source=f"{PAPER}, Figure 10",
        compute=_curves(images_run, IMAGES, "correct"),
    ),
    "panoramia-figure12": Reproduction(
        title="Precision and bounds against recall, on Adult",
        source=f"{PAPER}, Figure 12",
        compute=_curves(people_run, PEOPLE, "precision", "bound"),
    ),
    "panoramia-figure14": Reproduction(
        title="Losses of members, generated and real non-members",
        source=f"{PAPER}, Figures 13 and 14",
        compute=_figure_14,
    ),
    **SCORES,
    **MODELS,
}
"""What can be reproduced of the paper, by name."""
