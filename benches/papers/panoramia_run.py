"""What reproductions of Kazmi et al. (2024) have in common: runs on three modalities, and words."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from census import CATEGORICAL, Census, features
from glyphs import Glyphs
from leakbound.generators import PCAMixture, SequentialCART
from leakbound.panoramia import Helper, Options, Spread, StackedAttack
from outcomes import Cell, Line
from targets import IMAGE_CLASSIFIER, Audited, audit_targets, drawn, table_classifier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "MIXTURE",
    "OTHERS",
    "PAPER",
    "audit_census",
    "audit_glyphs",
    "audited",
    "census_run",
    "glyphs_run",
    "lines_of",
    "mean_of",
    "means_of",
    "oracle_run",
    "text_run",
]

QUICK: dict[str, Any] = {
    "epochs": (5, 40, 80),
    "epsilons": (1.0, 8.0),
    "private_epochs": 5,
    "members": 6000,
    "seeds": 2,
}
FULL: dict[str, Any] = {"epsilons": (1.0, 8.0, 20.0)}
"""Options of the run on a table."""
QUICK_ORACLE: dict[str, Any] = {"epochs": (5, 40), "epsilons": (), "members": 6000, "seeds": 1}
QUICK_GLYPHS: dict[str, Any] = {"epochs": (3, 30), "epsilons": (), "members": 6000, "seeds": 1}
QUICK_TEXT: dict[str, Any] = {"epochs": (12,), "epsilons": (), "members": 1000, "seeds": 1}

MIXTURE = PCAMixture(components=20)
"""Of 64 principal components, so that c is about what Kazmi et al. report of images."""
PAPER = "Kazmi et al. 2024 (arXiv 2402.09477)"
OTHERS = (
    "Targets are networks on a made-up census, trained ever longer and with DP-SGD, where the "
    "paper's are image and language models on data that is not shipped here: layout and shapes "
    "compare, figures do not."
)


@cache
def census_run(*, full: bool) -> Audited:
    """Train and audit the targets on a table once for all that is shown of them."""
    return audit_census(**(FULL if full else QUICK))


@cache
def oracle_run(*, full: bool) -> Audited:
    """Do so where generated people are real ones, so that nothing but the target tells."""
    return audit_census(oracle=True, **({} if full else QUICK_ORACLE))


@cache
def glyphs_run(*, full: bool) -> Audited:
    """Train and audit targets on images."""
    return audit_glyphs(**({} if full else QUICK_GLYPHS))


@cache
def text_run(*, full: bool) -> Audited:
    """Train and audit targets on text."""
    from panoramia_text import audit_text

    return audit_text(**({} if full else QUICK_TEXT))


def audit_census(
    *,
    oracle: bool = False,
    epochs: Sequence[int] = (5, 40, 80, 160),
    epsilons: Sequence[float] = (8.0,),
    private_epochs: int = 15,
    width: int = 256,
    members: int = 9600,
    seeds: int = 3,
    conditional: bool = True,
) -> Audited:
    """Audit networks on a made-up census, in about two minutes on one core.

    15 % of labels are turned round, so that a network can only learn them by heart. The generator
    is a tree for each column, or the census itself.
    """
    options = Options(
        inputs=features,
        helper=Helper(epochs=10),
        seeds=tuple(range(seeds)),
        union=True,
        conditional=conditional,
    )
    return audit_targets(
        Census() if oracle else SequentialCART(categorical=CATEGORICAL),
        options,
        drawn(Census(), features, members),
        table_classifier(width),
        epochs=epochs,
        epsilons=epsilons,
        private_epochs=private_epochs,
    )


def audit_glyphs(
    *,
    epochs: Sequence[int] = (3, 15, 30, 60),
    epsilons: Sequence[float] = (8.0,),
    private_epochs: int = 15,
    members: int = 9600,
    seeds: int = 3,
) -> Audited:
    """Audit networks on digits drawn in five fonts, in about three minutes on one core.

    Generators of images are further from their members than those of tables: c is near 2, and what
    the baseline proves without the model is what the attack has to exceed.
    """
    options = Options(
        attack=StackedAttack("image"),
        helper=(Helper("generated", epochs=15), Helper("members", epochs=15)),
        seeds=tuple(range(seeds)),
        union=True,
        conditional=True,
    )
    return audit_targets(
        MIXTURE,
        options,
        drawn(Glyphs(), None, members),
        IMAGE_CLASSIFIER,
        epochs=epochs,
        epsilons=epsilons,
        private_epochs=private_epochs,
    )


def audited(made: Audited) -> list[str]:
    """Return the names of the targets."""
    return [target.name for target in made.targets]


def lines_of(
    rows: Sequence[tuple[Cell, ...]], panel: str, names: Sequence[str], *, across: int, first: int
) -> tuple[Line, ...]:
    """Return columns of a table as lines."""
    return tuple(
        Line(
            panel,
            name,
            tuple(float(row[across] or 0) for row in rows),
            tuple(float(row[column] or 0) for row in rows),
        )
        for column, name in enumerate(names, start=first)
    )


def mean_of(spread: Spread | None) -> Cell:
    """Return the mean over seeds, or nothing where an audit has no such number."""
    return None if spread is None else spread.mean


def means_of(results: Sequence[Any], *values: Callable[[Any], float]) -> tuple[float, ...]:
    """Return means of several values over results."""
    return tuple(Spread.of([value(result) for result in results]).mean for value in values)
