"""What has to be trained for this: helpers, baselines from more data, DP-SGD, larger models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from torch import nn

from leakbound.panoramia import Helper, Options, PanoramiaReport, StackedAttack, run
from leakbound.torch.device import reproducible
from outcomes import Cell, Line, Outcome, Reproduction
from panoramia_run import (
    IMAGES,
    PAPER,
    PIXELS,
    SMALL,
    TEXT,
    Blends,
    Sizes,
    audit_images,
    lines_of,
    material_of_images,
    mean_of,
    of_images,
    private_run,
    sized,
    text_run,
)
from targets import Audited, Material, Training

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MODELS"]

_BOUNDS = ("c at least", "c + ε at least", "ε̃", "O(1): ε at least")
HelperName: TypeAlias = Literal["generated", "real", "none", "generated, other architecture"]
HELPERS: tuple[HelperName, ...] = get_args(HelperName)
SHARE = 0.2
"""Share of the members that trains baseline and attack, where it is not what varies."""
SHARES = (0.05, SHARE, 0.4)
SATURATION = (0.125, 0.25, 0.5)
WIDTHS = (32, 128, 512)
ROUNDS = 15
"""Epochs of target and helper."""
_LONG = 40
_PAUSES = 8
"""Epochs that a GPT is trained for, and how often its losses are taken."""

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
    ("ResNet18, ε = ∞ (printed)", 2.44, 3.87, 1.43, 1.471),
    ("ResNet18, ε = 20 (printed)", 2.44, 3.6331, 1.19, 1.34),
    ("ResNet18, ε = 15 (printed)", 2.44, 3.57, 1.13, 1.22),
    ("ResNet18, ε = 10 (printed)", 2.44, 2.70, 0.26, 0.28),
    ("ResNet18, ε = 6 (printed)", 2.44, 2.478, 0.038, 0.049),
    ("ResNet18, ε = 4 (printed)", 2.44, 1.99, 0.0, 0.0),
    ("ResNet18, ε = 2 (printed)", 2.44, 1.709, 0.0, 0.05),
    ("ResNet18, ε = 1 (printed)", 2.44, 1.412, 0.0, 0.0),
)
_TABLE_8: tuple[tuple[Cell, ...], ...] = (
    ("WRN-16-4, ε = ∞ (printed)", 2.44, 3.02, 0.58, 0.6408),
    ("WRN-16-4, ε = 20 (printed)", 2.44, 2.926, 0.486, 0.5961),
    ("WRN-16-4, ε = 15 (printed)", 2.44, 2.912, 0.472, 0.5774),
    ("WRN-16-4, ε = 10 (printed)", 2.44, 2.783, 0.343, 0.171),
    ("WRN-16-4, ε = 2 (printed)", 2.44, 2.36, 0.0, 0.0),
    ("WRN-16-4, ε = 1 (printed)", 2.44, 1.84, 0.0, 0.0),
)
_TABLE_9: tuple[tuple[Cell, ...], ...] = (
    ("GPT-2 small, ε = ∞ (printed)", None, None, 0.22, 2.82),
    ("GPT-2 small, ε = 10 (printed)", None, None, 0.0, 0.0),
    ("GPT-2 small, ε = 3 (printed)", None, None, 0.0, 0.0),
    ("GPT-2 small, ε = 1 (printed)", None, None, 0.0, 0.0),
)
"""c, c + ε, ε̃ and O(1), as printed."""
_TABLE_10: tuple[tuple[Cell, ...], ...] = (
    ("ResNet18, ε = 20, one (printed)", 2.508, 3.63, 1.06, 1.22, 0.7182, 0.6712, 0.047),
    ("ResNet18, ε = 20, another (printed)", 2.508, 2.28, 0.0, 0.09, 0.7178, 0.6808, 0.037),
    ("ResNet18, ε = 15, one (printed)", 2.508, 3.63, 1.13, 1.34, 0.6901, 0.657, 0.0331),
    ("ResNet18, ε = 15, another (printed)", 2.508, 1.61, 0.0, 0.08, 0.6668, 0.693, 0.0262),
)

_HELPERS = (
    "Every helper learns from half as many examples as there are members, “real” from non-members. "
    "A weaker baseline proves a smaller c, so that ε̃ is too large: this is why the baseline needs "
    "a helper."
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
    "DP-SGD clips at 1 and takes Poisson batches of 256; δ is 1e-5. Networks this small memorise "
    "little under it."
)
_SAME = (
    "Ours are one network trained for 10 epochs and for 60, with the noise that makes ε the same; "
    "the paper conjectures that outcomes follow the difference of accuracies. The printed rows are "
    "without correction for several cuts; in the last, test accuracy exceeds training accuracy, "
    "and the difference is printed without its sign."
)
_WIDTHS = (
    "Networks with two hidden layers of so many units, each trained for as many epochs. The paper "
    "has three architectures of 4 to 44.5 million parameters, and prints only curves."
)
_LOSSES = (
    "Losses per byte of members and of other chunks; in the paper the model with the least "
    "validation loss is that of epoch 37 of 200, and those of 75 and 150 epochs are audited too."
)
_PAIRS = "Table 9 prints no c. The last row of ours is the GPT without DP-SGD, trained longest."


@dataclass(frozen=True)
class Trained:
    """A target on images, its members and real non-members."""

    network: nn.Module
    material: Material
    sizes: Sizes

    def helper(self, name: HelperName) -> Helper | None:
        """Return the helper of that name."""
        usual = Helper(epochs=ROUNDS)
        others = {
            "none": None,
            "real": replace(usual, trained_on="real"),
            "generated, other architecture": replace(usual, network=convolutions),
        }
        return others.get(name, usual)

    def audit(self, name: HelperName, share: float) -> PanoramiaReport:
        """Audit the target with that helper, and that share of the members for training."""
        asked = _asked(self.sizes)
        usual = (name, share) == ("generated", SHARE)
        options = Options(
            attack=StackedAttack("image"),
            helper=self.helper(name),
            helper_examples=asked["members"] // 2,
            shares=(0.3, share, 0.08),
            saturation=SATURATION if usual else (),
            seeds=tuple(range(asked["seed"], asked["seed"] + asked["seeds"])),
        )
        return run(
            self.network,
            members=self.material.members,
            generator=Blends(),
            nonmembers=self.material.nonmembers if name == "real" else None,
            options=options,
        )


def convolutions() -> nn.Module:
    """Return a network of another architecture."""
    return nn.Sequential(
        nn.Unflatten(1, (1, PIXELS)),
        nn.Conv2d(in_channels=1, out_channels=16, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(in_channels=16, out_channels=32, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


def _asked(sizes: Sizes) -> dict[str, Any]:
    return sizes.chosen(full=(5, 9600), quick=(2, 6000))


@cache
def trained(sizes: Sizes) -> Trained:
    """Train the target once for all that is shown of it."""
    asked = _asked(sizes)
    material = material_of_images(asked["members"], asked["seed"])
    with reproducible():
        recipe = of_images(SMALL)
        data = material.training
        (model,) = recipe.overfit(data, [ROUNDS], asked["seed"])
    return Trained(network=model.network, material=material, sizes=sizes)


@cache
def audit(name: HelperName, share: float, sizes: Sizes) -> PanoramiaReport:
    """Audit the target once with each helper and share."""
    return trained(sizes).audit(name, share)


@sized
def _table_2(sizes: Sizes) -> Outcome:
    """Return c of baselines with other helpers."""
    rows: list[tuple[Cell, ...]] = []
    for name in HELPERS:
        row = audit(name, share=SHARE, sizes=sizes).row("target")
        half = None
        if row.c_lb is not None:
            half = row.c_lb.half_width
        bounds = (row.c_plus_epsilon_lb, row.epsilon_tilde)
        rows.append((name, mean_of(row.c_lb), half, *map(mean_of, bounds)))
    return Outcome(
        columns=("helper learnt from", "c at least", "±", "c + ε at least", "ε̃"),
        rows=(*rows, *_TABLE_2),
        notes=(IMAGES, _HELPERS, _means(sizes)),
    )


@sized
def _figure_2(sizes: Sizes) -> Outcome:
    """Return c against the baseline's training data, tested on the same."""
    saturation = audit("generated", share=SHARE, sizes=sizes).saturation
    spreads = saturation.spreads
    counts = saturation.examples.tolist()
    across = tuple(map(float, counts))
    return Outcome(
        columns=("training examples", "c at least", "±"),
        rows=tuple(
            (count, spread.mean, spread.half_width)
            for count, spread in zip(counts, spreads, strict=True)
        ),
        notes=(IMAGES, _SATURATION, _means(sizes)),
        lines=(
            *(
                Line(panel="baseline", name=f"seed {seed}", x=across, y=tuple(c.tolist()))
                for seed, c in enumerate(saturation.c_lb)
            ),
            Line(
                panel="baseline", name="mean", x=across, y=tuple(spread.mean for spread in spreads)
            ),
        ),
        axes=("training examples", "c at least"),
    )


@sized
def _figure_9(sizes: Sizes) -> Outcome:
    """Return bounds where what trains is not tested."""
    rows: list[tuple[Cell, ...]] = []
    for share in SHARES:
        report = audit("generated", share=share, sizes=sizes)
        row = report.row("target")
        bounds = (row.c_lb, row.c_plus_epsilon_lb, row.epsilon_tilde)
        rows.append((2 * report.sizes["train"], row.m, *map(mean_of, bounds)))
    names = ("c at least", "c + ε at least", "ε̃")
    return Outcome(
        columns=("training examples", "m", *names),
        rows=tuple(rows),
        notes=(IMAGES, _SHARES, _means(sizes)),
        lines=lines_of(rows, panel="training and test data", names=names, across=0, first=2),
        axes=("training examples", "bound, or ε̃"),
    )


def _means(sizes: Sizes) -> str:
    few = " Two seeds say little: --full takes five, as the paper does."
    if sizes.full:
        few = ""
    return f"Means over seeds; ± is half of the 95 % t-interval.{few}"


@sized
def _table_7(sizes: Sizes) -> Outcome:
    return _private(
        private_run(sizes), prefix="small, ", printed=_TABLE_7, notes=(IMAGES, _PRIVATE)
    )


@sized
def _table_8(sizes: Sizes) -> Outcome:
    return _private(
        private_run(sizes), prefix="large, ", printed=_TABLE_8, notes=(IMAGES, _PRIVATE)
    )


@sized
def _table_9(sizes: Sizes) -> Outcome:
    return _private(text_run(sizes), prefix="GPT, ", printed=_TABLE_9, notes=(TEXT, _PAIRS))


def _private(
    made: Audited, prefix: str, printed: tuple[tuple[Cell, ...], ...], notes: tuple[str, ...]
) -> Outcome:
    """Return bounds on targets trained with DP-SGD, beside the longest trained without."""
    targets = [one for one in made.targets if one.name.startswith(prefix)]
    plain = [target for target in targets if target.epsilon is None][-1:]
    private = [target for target in targets if target.epsilon is not None]
    return Outcome(
        columns=("target", *_BOUNDS),
        rows=(*((one.name, *_found(made, one.name)) for one in (*private, *plain)), *printed),
        notes=(*notes, *made.found.warnings),
    )


@sized
def _table_10(sizes: Sizes) -> Outcome:
    """Return two runs of DP-SGD with one ε, and their accuracies."""
    made = private_run(sizes)
    private = [target for target in made.targets if target.name.startswith("small")]
    most = max(target.epsilon or 0 for target in private)
    rows = tuple(
        (
            target.name,
            *_found(made, target.name),
            *(target.train, target.test, target.train - target.test),
        )
        for target in private
        if target.epsilon == most
    )
    return Outcome(
        columns=("target", *_BOUNDS, "training accuracy", "test accuracy", "difference"),
        rows=(*rows, *_TABLE_10),
        notes=(IMAGES, _SAME, _PRIVATE),
    )


@sized
def _figure_8(sizes: Sizes) -> Outcome:
    """Return losses of a GPT in the course of its training."""
    from panoramia_text import RECIPE, divided

    asked = sizes.chosen(full=(1, 3000), quick=(1, 1000))
    material = divided(asked["members"], asked["seed"])
    marks = [_LONG * (i + 1) // _PAUSES for i in range(_PAUSES)]

    def losses() -> Iterator[tuple[float, ...]]:
        with reproducible():
            for model in RECIPE.overfit(material.training, marks, asked["seed"]):
                yield float(model.epochs), *material.judge(model.network.eval())
                model.network.train()

    rows = tuple(losses())
    names = ("members", "others")
    return Outcome(
        columns=("epochs", *names),
        rows=rows,
        notes=(TEXT, _LOSSES),
        lines=lines_of(rows, panel="GPT", names=names, across=0, first=1),
        axes=("epochs", "nats per byte"),
    )


@sized
def _figure_15(sizes: Sizes) -> Outcome:
    """Return bounds on models of several sizes."""
    trainings = [
        Training(recipe=of_images(width), epochs=(40,), prefix=f"{width}: ") for width in WIDTHS
    ]
    made = audit_images(trainings, **sizes.chosen(full=(3, 9600), quick=(1, 6000)))
    rows: list[tuple[Cell, ...]] = []
    for width, target in zip(WIDTHS, made.targets, strict=True):
        weights = sum(part.numel() for part in of_images(width).new(0).parameters())
        bounds = _found(made, target.name)
        rows.append((width, weights, *bounds, target.train, target.test))
    return Outcome(
        columns=("units", "parameters", *_BOUNDS, "training accuracy", "test accuracy"),
        rows=tuple(rows),
        notes=(IMAGES, _WIDTHS),
        lines=lines_of(rows, panel="size of the model", names=_BOUNDS, across=1, first=2),
        axes=("log parameters", "bound, or ε̃"),
    )


def _found(made: Audited, target: str) -> tuple[Cell, ...]:
    """Return what PANORAMIA and O(1) find, in the mean over seeds."""
    row = made.found.row(target)
    by_loss = made.found.row(target, "O(1)").epsilon
    return tuple(map(mean_of, (row.c_lb, row.c_plus_epsilon_lb, row.epsilon_tilde, by_loss)))


MODELS: dict[str, Reproduction] = {
    "panoramia-table2": Reproduction(
        title="Bounds on c by what the baseline's helper learnt from",
        source=f"{PAPER}, Tables 2 and 5",
        compute=_table_2,
    ),
    "panoramia-figure2": Reproduction(
        title="Bounds on c against training data of the baseline",
        source=f"{PAPER}, Figures 2 and 9(a)",
        compute=_figure_2,
    ),
    "panoramia-figure9": Reproduction(
        title="Bounds where what trains is not tested",
        source=f"{PAPER}, Figures 9(b) and 11",
        compute=_figure_9,
    ),
    "panoramia-table7": Reproduction(
        title="A network trained with DP-SGD", source=f"{PAPER}, Table 7", compute=_table_7
    ),
    "panoramia-table8": Reproduction(
        title="A larger network trained with DP-SGD", source=f"{PAPER}, Table 8", compute=_table_8
    ),
    "panoramia-table9": Reproduction(
        title="A language model trained with DP-SGD", source=f"{PAPER}, Table 9", compute=_table_9
    ),
    "panoramia-table10": Reproduction(
        title="The same ε, different outcomes", source=f"{PAPER}, Table 10", compute=_table_10
    ),
    "panoramia-figure8": Reproduction(
        title="Losses of a language model trained ever longer",
        source=f"{PAPER}, Figure 8",
        compute=_figure_8,
    ),
    "panoramia-figure15": Reproduction(
        title="Models by size", source=f"{PAPER}, Figure 15", compute=_figure_15
    ),
}
"""What can be reproduced by training, by name."""
