"""PANORAMIA on images: what a network leaks of digits drawn in five fonts.

A network is trained on 9,600 images of 8 × 8 pixels, ever longer; 15 % of labels are drawn anew, so
that it can only learn them by heart. Another is trained with DP-SGD. Generators of images are
further from their members than those of tables: c is near 2, and what the baseline proves without
the model is what the attack has to exceed. A weak generator leaves no room for that.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from leakbound._base.validation import choice, integer
from leakbound.errors import MissingExtraError
from leakbound.generators import Generator, PCAMixture

try:
    from torch import nn

    from leakbound.experiments.demos.panoramia import SyntheticReport, audit_targets, drawing
    from leakbound.experiments.demos.recipe import Recipe
except ImportError as error:
    message = (
        f"the glyphs demo needs {error.name}, which is not installed: pip install 'leakbound[demo]'"
    )
    raise MissingExtraError(message) from error

from leakbound.experiments.demos.glyphs_data import Glyphs
from leakbound.experiments.demos.training import Progress
from leakbound.panoramia import Helper, Panoramia, StackedAttack

__all__ = ["GeneratorName", "run"]

GeneratorName: TypeAlias = Literal["mixture", "oracle"]

MIXTURE = PCAMixture(components=20)
"""Of 64 principal components, so that c is about what Kazmi et al. report of images."""
RECIPE = Recipe(
    lambda: nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    ),
    batch_size=128,
    learning_rate=2e-3,
)


def run(
    *,
    seed: int = 0,
    generator: GeneratorName = "mixture",
    epochs: Sequence[int] = (3, 15, 30, 60),
    epsilons: Sequence[float] = (8.0,),
    private_epochs: int = 15,
    members: int = 9600,
    seeds: int = 3,
    conditional: bool = True,
    progress: Progress | None = None,
) -> SyntheticReport:
    """Train the models and audit all of them, in about three minutes on one core.

    References
    ----------
    M. Kazmi et al., "PANORAMIA: Privacy Auditing of Machine Learning Models without Retraining",
    2024, arXiv:2402.09477.
    """
    choice(generator, "generator", GeneratorName)
    audit = Panoramia(
        _generator(generator),
        attack=StackedAttack("image"),
        helper=(Helper("generated", epochs=15), Helper("members", epochs=15)),
        seeds=tuple(range(integer(seeds, "seeds", least=1))),
        union=True,
        conditional=conditional,
    )
    return audit_targets(
        audit,
        drawing(Glyphs(), None),
        RECIPE,
        generator=generator,
        seed=seed,
        members=members,
        epochs=epochs,
        epsilons=epsilons,
        private_epochs=private_epochs,
        progress=progress,
    )


def _generator(name: GeneratorName) -> Generator:
    return Glyphs() if name == "oracle" else MIXTURE
