"""What has to be trained anew: helpers, baselines from more data, DP-SGD, larger models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import torch
from torch import nn
from torch.utils.data import TensorDataset

from glyphs import Glyphs
from leakbound.demo.training import Recipe, Ticks
from leakbound.panoramia import Helper, Options, PanoramiaReport, StackedAttack, run
from leakbound.torch.placement import reproducible
from outcomes import Cell, Line, Outcome, Reproduction
from panoramia_run import (
    MIXTURE,
    OTHERS,
    PAPER,
    audit_census,
    census_run,
    lines_of,
    mean_of,
)
from streams import derived
from targets import IMAGE_CLASSIFIER, Audited, Process, table_classifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakbound.generators import Generator
    from leakbound.panoramia.options import Inputs

__all__ = ["MODELS"]

_BOUNDS = ("c at least", "c + ε at least", "ε̃", "O(1): ε at least")
HelperName: TypeAlias = Literal["generated", "real", "none", "generated, other architecture"]
HELPERS: tuple[HelperName, ...] = get_args(HelperName)
SHARE = 0.2
"""Share of the members that trains baseline and attack, where it is not what varies."""
SHARES = (0.05, 0.1, SHARE, 0.4)
SATURATION = (0.125, 0.25, 0.5)
WIDTHS = (32, 128, 512)
QUICK: dict[str, Any] = {"epochs": (40,), "members": 6000, "seeds": 2}
FULL: dict[str, Any] = {"epochs": (80,)}
"""Options of the demo on a table, for models of all widths."""
ROUNDS = 15
"""Epochs of target and helper."""

_TABLE_2: tuple[tuple[Cell, ...], ...] = (
    ("CIFAR-10, generated (printed)", 2.44, 0.19, None, None),
    ("CIFAR-10, real (printed)", 2.21, 0.17, None, None),
    ("CIFAR-10, real, other architecture (printed)", 2.01, 0.15, None, None),
    ("CIFAR-10, trained for another task (printed)", 1.12, 0.19, None, None),
    ("CIFAR-10, none (printed)", 1.25, 0.24, None, None),
    ("CelebA, generated (printed)", 2.05, 0.21, None, None),
    ("CelebA, real (printed)", 1.97, 0.22, None, None),
    ("CelebA, none (printed)", 0.947, 0.25, None, None),
    ("WikiText, generated (printed)", 3.31, 0.15, None, None),
    ("WikiText, real (printed)", 3.26, 0.14, None, None),
    ("WikiText, none (printed)", 3.11, 0.15, None, None),
)
"""c and its half-width, as printed in Tables 2 and 5."""
_TABLE_7: tuple[tuple[Cell, ...], ...] = (
    ("ResNet18, ε = ∞ (printed)", 2.44, 3.87, 1.43, 1.471, None, None, None),
    ("ResNet18, ε = 20 (printed)", 2.44, 3.6331, 1.19, 1.34, None, None, None),
    ("ResNet18, ε = 15 (printed)", 2.44, 3.57, 1.13, 1.22, None, None, None),
    ("ResNet18, ε = 10 (printed)", 2.44, 2.70, 0.26, 0.28, None, None, None),
    ("ResNet18, ε = 6 (printed)", 2.44, 2.478, 0.038, 0.049, None, None, None),
    ("ResNet18, ε = 4 (printed)", 2.44, 1.99, 0.0, 0.0, None, None, None),
    ("ResNet18, ε = 2 (printed)", 2.44, 1.709, 0.0, 0.05, None, None, None),
    ("ResNet18, ε = 1 (printed)", 2.44, 1.412, 0.0, 0.0, None, None, None),
    ("WRN-16-4, ε = ∞ (printed)", 2.44, 3.02, 0.58, 0.6408, None, None, None),
    ("WRN-16-4, ε = 10 (printed)", 2.44, 2.783, 0.343, 0.171, None, None, None),
    ("WRN-16-4, ε = 1 (printed)", 2.44, 1.84, 0.0, 0.0, None, None, None),
    ("GPT-2 small, ε = ∞ (printed)", None, None, 0.22, 2.82, None, None, None),
    ("GPT-2 small, ε = 10 (printed)", None, None, 0.0, 0.0, None, None, None),
    ("ResNet18, ε = 20, one (printed)", 2.508, 3.63, 1.06, 1.22, 0.7182, 0.6712, 0.047),
    ("ResNet18, ε = 20, another (printed)", 2.508, 2.28, 0.0, 0.09, 0.7178, 0.6808, 0.037),
    ("ResNet18, ε = 15, one (printed)", 2.508, 3.63, 1.13, 1.34, 0.6901, 0.657, 0.0331),
    ("ResNet18, ε = 15, another (printed)", 2.508, 1.61, 0.0, 0.08, 0.6668, 0.693, 0.0262),
)
"""c, c + ε, ε̃, O(1), accuracies and their difference, as printed in Tables 7 to 10."""

_IMAGES = (
    "A network on digits in five fonts, and images from a mixture of normals on principal "
    "components, where the paper has CIFAR-10 and StyleGAN2: shapes compare, figures do not."
)
_HELPERS = (
    "Every helper learns from half as many examples as there are members, “real” from non-members. "
    "A weaker baseline proves a smaller c, which ε̃ is then charged with: that is why the baseline "
    "needs a helper."
)
_SATURATION = (
    "Baselines learn from a part of the training data and are audited on the same test data. The "
    "paper's line marks the size of its main run, here the last."
)
_SHARES = (
    "What trains is not tested: with more training data the rankings get better and fewer pairs "
    "are left to prove it with. Figure 11 of the paper is of the attack, with test data fixed."
)
_PRIVATE = (
    "Accuracies are shares of members and of fresh examples. The last four printed rows are those "
    "of Table 10, without correction for several cuts; in the last, test accuracy exceeds training "
    "accuracy, and the difference is printed without its sign."
)
_WIDTHS = (
    "Networks with two hidden layers of so many units, each trained for as many epochs. The paper "
    "has three architectures of 4 to 44.5 million parameters, and prints only curves."
)


@dataclass(frozen=True)
class Setting:
    """A task on which helpers and sizes are compared."""

    process: Process
    recipe: Recipe
    generator: Generator
    attack: StackedAttack
    inputs: Inputs | None
    other: Callable[[], nn.Module]
    """Another architecture for the helper."""
    members: int
    seeds: tuple[int, ...]


def setting(*, full: bool) -> Setting:
    """Return images, more of them for the whole."""

    def convolutions() -> nn.Module:
        return nn.Sequential(
            nn.Unflatten(1, (1, 8)),
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(512, 10),
        )

    return Setting(
        Glyphs(),
        IMAGE_CLASSIFIER,
        MIXTURE,
        StackedAttack("image"),
        None,
        convolutions,
        9600 if full else 6000,
        tuple(range(5 if full else 2)),
    )


@dataclass(frozen=True)
class Trained:
    """A target of the setting, its members and real non-members."""

    setting: Setting
    network: nn.Module
    members: tuple[Any, Any]
    nonmembers: tuple[Any, Any]

    def helper(self, name: HelperName) -> Helper | None:
        """Return the helper of that name."""
        usual = Helper(epochs=ROUNDS)
        others = {
            "none": None,
            "real": replace(usual, trained_on="real"),
            "generated, other architecture": replace(usual, network=self.setting.other),
        }
        return others.get(name, usual)

    def audit(self, name: HelperName, share: float) -> PanoramiaReport:
        """Audit the target with that helper, and that share of the members for training."""
        one = self.setting
        usual = (name, share) == ("generated", SHARE)
        options = Options(
            attack=one.attack,
            helper=self.helper(name),
            inputs=one.inputs,
            helper_examples=one.members // 2,
            shares=(0.3, share, 0.08),
            saturation=SATURATION if usual else (),
            seeds=one.seeds,
        )
        return run(
            self.network,
            self.members,
            one.generator,
            nonmembers=self.nonmembers if name == "real" else None,
            options=options,
        )


@cache
def trained(*, full: bool) -> Trained:
    """Train the target once for all that is shown of it."""
    one = setting(full=full)
    (x, y), others = (
        (drawn.values, drawn.labels)
        for drawn in (
            one.process.sample(one.members, seed=derived("reproduce/loss-target", 0, side, bits=32))
            for side in (0, 1)
        )
    )
    with reproducible():
        inputs = torch.tensor(x if one.inputs is None else one.inputs(x), dtype=torch.float32)
        data = TensorDataset(inputs, torch.tensor(y))
        (model,) = one.recipe.overfit(data, [ROUNDS], 0, Ticks(None, ROUNDS))
    return Trained(one, model.network, (x, y), others)


@cache
def audit(name: HelperName, share: float, *, full: bool) -> PanoramiaReport:
    """Audit the target once with each helper and share."""
    return trained(full=full).audit(name, share)


def _table_2(*, full: bool) -> Outcome:
    """Return c of baselines with other helpers."""
    rows: list[tuple[Cell, ...]] = []
    for name in HELPERS:
        row = audit(name, SHARE, full=full).row("target")
        half = None if row.c_lb is None else row.c_lb.half_width
        bounds = (row.c_plus_epsilon_lb, row.epsilon_tilde)
        rows.append((name, mean_of(row.c_lb), half, *map(mean_of, bounds)))
    return Outcome(
        columns=("helper learnt from", "c at least", "±", "c + ε at least", "ε̃"),
        rows=(*rows, *_TABLE_2),
        notes=(_IMAGES, _HELPERS, _means(full=full)),
    )


def _figure_2(*, full: bool) -> Outcome:
    """Return c against the baseline's training data, tested on the same."""
    saturation = audit("generated", SHARE, full=full).saturation
    spreads = saturation.spreads
    sizes = saturation.examples.tolist()
    return Outcome(
        columns=("training examples", "c at least", "±"),
        rows=tuple(
            (size, spread.mean, spread.half_width)
            for size, spread in zip(sizes, spreads, strict=True)
        ),
        notes=(_IMAGES, _SATURATION, _means(full=full)),
        lines=(
            *(
                Line("baseline", f"seed {seed}", tuple(map(float, sizes)), tuple(c.tolist()))
                for seed, c in enumerate(saturation.c_lb)
            ),
            Line(
                "baseline",
                "mean",
                tuple(map(float, sizes)),
                tuple(spread.mean for spread in spreads),
            ),
        ),
        axes=("training examples", "c at least"),
    )


def _figure_9(*, full: bool) -> Outcome:
    """Return bounds where what trains is not tested."""
    found = {share: audit("generated", share, full=full) for share in SHARES}
    rows: list[tuple[Cell, ...]] = []
    for report in found.values():
        row = report.row("target")
        bounds = (row.c_lb, row.c_plus_epsilon_lb, row.epsilon_tilde)
        rows.append((2 * report.sizes["train"], row.m, *map(mean_of, bounds)))
    names = ("c at least", "c + ε at least", "ε̃")
    return Outcome(
        columns=("training examples", "m", *names),
        rows=tuple(rows),
        notes=(_IMAGES, _SHARES, _means(full=full)),
        lines=lines_of(rows, "training and test data", names, across=0, first=2),
        axes=("training examples", "bound, or ε̃"),
    )


def _means(*, full: bool) -> str:
    few = "" if full else " Two seeds say little: --full takes five, as the paper does."
    return f"Means over seeds; ± is half of the 95 % t-interval.{few}"


def _table_7(*, full: bool) -> Outcome:
    """Return bounds on targets trained with DP-SGD, beside the longest trained without."""
    made = census_run(full=full)
    plain = [target for target in made.targets if target.epsilon is None]
    private = [target for target in made.targets if target.epsilon is not None]
    rows: list[tuple[Cell, ...]] = []
    for target in (*private, plain[-1]):
        accuracies = (target.train, target.test)
        gap = target.train - target.test
        rows.append((target.name, *_found(made, target.name), *accuracies, gap))
    return Outcome(
        columns=("target", *_BOUNDS, "training accuracy", "test accuracy", "difference"),
        rows=(*rows, *_TABLE_7),
        notes=(OTHERS, _PRIVATE),
    )


def _figure_15(*, full: bool) -> Outcome:
    """Return bounds on models of several sizes."""
    rows: list[tuple[Cell, ...]] = []
    for width in WIDTHS:
        made = audit_census(
            width=width, epsilons=(), conditional=False, **(FULL if full else QUICK)
        )
        (target,) = made.targets
        weights = sum(part.numel() for part in table_classifier(width).new(0).parameters())
        bounds = _found(made, target.name)
        rows.append((width, weights, *bounds, target.train, target.test))
    return Outcome(
        columns=("units", "parameters", *_BOUNDS, "training accuracy", "test accuracy"),
        rows=tuple(rows),
        notes=(OTHERS, _WIDTHS),
        lines=lines_of(rows, "size of the model", _BOUNDS, across=1, first=2),
        axes=("log parameters", "bound, or ε̃"),
    )


def _found(made: Audited, target: str) -> tuple[Cell, ...]:
    """Return what PANORAMIA and O(1) find, in the mean over seeds."""
    row = made.found.row(target)
    by_loss = made.found.row(target, "O(1)").epsilon
    return tuple(map(mean_of, (row.c_lb, row.c_plus_epsilon_lb, row.epsilon_tilde, by_loss)))


MODELS: dict[str, Reproduction] = {
    "panoramia-table2": Reproduction(
        "Bounds on c by what the baseline's helper learnt from",
        f"{PAPER}, Tables 2 and 5",
        _table_2,
    ),
    "panoramia-figure2": Reproduction(
        "Bounds on c against training data of the baseline",
        f"{PAPER}, Figures 2 and 9(a)",
        _figure_2,
    ),
    "panoramia-figure9": Reproduction(
        "Bounds where what trains is not tested", f"{PAPER}, Figures 9(b) and 11", _figure_9
    ),
    "panoramia-table7": Reproduction(
        "Targets trained with DP-SGD", f"{PAPER}, Tables 7 to 10", _table_7
    ),
    "panoramia-figure15": Reproduction("Models by size", f"{PAPER}, Figure 15", _figure_15),
}
"""What can be reproduced by training, by name."""
