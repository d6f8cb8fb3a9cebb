"""Tables and figures of Kazmi et al. (2024): their layout and shapes, on targets trained here."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from outcomes import Cell, Compute, Line, Outcome, Reproduction
from panoramia_models import MODELS
from panoramia_run import (
    OTHERS,
    PAPER,
    census_run,
    glyphs_run,
    mean_of,
    oracle_run,
    text_run,
)
from panoramia_scores import SCORES

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakbound._base.types import FloatArray
    from leakbound.results import PanoramiaResult, ScoreAudit
    from targets import Audited

__all__ = ["PANORAMIA"]

_TABLE_3 = (
    ("ResNet101_E20", 2.44, 2.76, 0.33, 0.421, 0.450),
    ("ResNet101_E50", 2.44, 3.11, 0.67, 0.71, 0.79),
    ("ResNet101_E100", 2.44, 3.60, 1.16, 1.22, 1.41),
)
"""As printed for one architecture trained ever longer: c, c + ε, ε̃, RM;RN and O(1)."""

_ONE = "The printed rows are those of one of the paper's architectures."
_CUTS = (
    "Bounds are those of the KL scan; the paper's union bound over all cuts, on the same scores, "
    "is beside it. ε̃ is an estimate, not a lower bound on ε."
)
_LOSSES = (
    "The helper saw no member: its losses of members and of real non-members agree, and those of "
    "generated examples are as far off as the generator is, under targets too."
)
_IMAGES = (
    "Networks on small digits in five fonts, 15 % of labels drawn anew; the generator is "
    "a mixture of normals on principal components."
)
_TEXT = (
    "A GPT of 0.14 million parameters on chunks of 64 bytes of Python's own documentation; 40 % of "
    "them train another, which writes more."
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


def _modality(run: Callable[..., Audited], words: str) -> Compute:
    """Return what lays out another run as Table 3 is."""

    def compute(*, full: bool) -> Outcome:
        made = run(full=full)
        notes = (words, _CUTS, *made.found.warnings)
        return Outcome(columns=_BOUNDS, rows=tuple(_bounds(made)), notes=notes)

    return compute


def _table_3(*, full: bool) -> Outcome:
    made = census_run(full=full)
    printed: list[tuple[Cell, ...]] = []
    for name, c, both, estimate, real, by_loss in _TABLE_3:
        printed += [
            (f"{name} (printed)", "PANORAMIA", 10_000, c, both, estimate, None),
            (f"{name} (printed)", "RM;RN", 10_000, None, real, None, real),
            (f"{name} (printed)", "O(1)", 10_000, None, None, None, by_loss),
        ]
    return Outcome(
        columns=_BOUNDS,
        rows=(*_bounds(made), *printed),
        notes=(f"{OTHERS} {_ONE}", _CUTS, *made.found.warnings),
    )


def _figure_10(*, full: bool) -> Outcome:
    return _curves("correct", full=full)


def _figure_14(*, full: bool) -> Outcome:
    """Losses of members, generated and real non-members under every model."""
    found = census_run(full=full).found
    return Outcome(
        columns=("model", "examples", "number", "median loss"),
        rows=tuple(
            (one.model, side, int(counts.sum()), one.medians[side])
            for one in found.losses
            for side, counts in one.sides.items()
        ),
        notes=(OTHERS, _LOSSES),
        lines=tuple(
            Line(
                one.model,
                side,
                tuple(np.sqrt(one.edges[1:] * one.edges[:-1]).tolist()),
                tuple((counts / counts.sum()).tolist()),
            )
            for one in found.losses
            for side, counts in one.sides.items()
        ),
        axes=("log loss, nats", "share of examples per bin"),
    )


def _figure_3(*, full: bool) -> Outcome:
    return _curves("precision", full=full)


def _figure_4(*, full: bool) -> Outcome:
    return _curves("bound", full=full)


def _curves(what: str, *, full: bool) -> Outcome:
    """Draw precision, or the bound of each cut, against recall; or correct guesses against all."""
    made = census_run(full=full)
    results = {
        row.target: cast("PanoramiaResult", row.results[0])
        for row in made.found.rows
        if row.audit == "PANORAMIA"
    }
    first = next(iter(results.values()))
    audits = {"baseline": first.baseline, **{name: one.attack for name, one in results.items()}}
    return Outcome(
        columns=("ranking", "guesses", "right", "recall", "precision", "bound"),
        rows=tuple((name, *_chosen(audit)) for name, audit in audits.items()),
        notes=(OTHERS, _FIRST),
        lines=tuple(_line(what, name, audit) for name, audit in audits.items()),
        axes=_AXES[what],
    )


def _line(what: str, name: str, audit: ScoreAudit) -> Line:
    curve = audit.curve
    values: FloatArray = getattr(curve, what)
    tested = curve.bound == curve.bound if what == "bound" else curve.recall >= 0
    across = curve.guesses if what == "correct" else curve.recall
    return Line("PANORAMIA", name, tuple(across[tested].tolist()), tuple(values[tested].tolist()))


def _chosen(audit: ScoreAudit) -> tuple[Cell, ...]:
    """Return the cut that the bound comes from."""
    recall, precision = audit.correct / audit.members, audit.correct / max(1, audit.guesses)
    return audit.guesses, audit.correct, recall, precision, audit.bound


PANORAMIA: dict[str, Reproduction] = {
    "panoramia-table3": Reproduction(
        "Bounds and ε̃ of each target, beside RM;RN and O(1)", f"{PAPER}, Table 3", _table_3
    ),
    "panoramia-figure3": Reproduction(
        "Precision against recall, baseline and attacks", f"{PAPER}, Figure 3", _figure_3
    ),
    "panoramia-figure4": Reproduction(
        "Bounds on c and c + ε against recall", f"{PAPER}, Figure 4", _figure_4
    ),
    "panoramia-figure10": Reproduction(
        "True positives against predictions", f"{PAPER}, Figure 10", _figure_10
    ),
    "panoramia-figure14": Reproduction(
        "Losses of members, generated and real non-members",
        f"{PAPER}, Figures 13 and 14",
        _figure_14,
    ),
    "panoramia-oracle": Reproduction(
        "The same where generated people are real ones", "As Table 3", _modality(oracle_run, OTHERS)
    ),
    "panoramia-images": Reproduction(
        "The same on images", "As Table 3", _modality(glyphs_run, _IMAGES)
    ),
    "panoramia-text": Reproduction("The same on text", "As Table 3", _modality(text_run, _TEXT)),
    **SCORES,
    **MODELS,
}
"""What can be reproduced of the paper, by name."""
