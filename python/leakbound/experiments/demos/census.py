"""PANORAMIA on a table: what a network leaks of people from a made-up census.

A network is trained on 9,600 people, ever longer; 15 % of labels are turned round, so that it can
only learn them by heart. Another is trained with DP-SGD. Then a generator learns from 30 % of the
people, and audits compare the others with people that it makes up. Real people whom no network saw
are there for comparison: the table is laid out as in the paper, with the rows of an audit against
real non-members and of one by the loss alone.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from leakbound._base.validation import choice, integer
from leakbound.errors import MissingExtraError
from leakbound.generators import ChowLiuTree, GaussianCopula, Generator, SequentialCART

try:
    from torch import nn

    from leakbound.experiments.demos.panoramia import SyntheticReport, audit_targets, drawing
    from leakbound.experiments.demos.recipe import Recipe
except ImportError as error:
    message = (
        f"the census demo needs {error.name}, which is not installed: pip install 'leakbound[demo]'"
    )
    raise MissingExtraError(message) from error

from leakbound.experiments.demos.census_data import CATEGORICAL, Census, features
from leakbound.experiments.demos.training import Progress
from leakbound.panoramia import Helper, Panoramia

__all__ = ["GeneratorName", "HelperName", "run"]

GeneratorName: TypeAlias = Literal["copula", "cart", "chow-liu", "oracle"]
HelperName: TypeAlias = Literal["generated", "real", "none"]


def recipe(width: int) -> Recipe:
    """Return how a network with two hidden layers is trained."""
    return Recipe(
        lambda: nn.Sequential(
            nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)
        ),
        batch_size=128,
        learning_rate=2e-3,
    )


def run(
    *,
    seed: int = 0,
    generator: GeneratorName = "copula",
    helper: HelperName = "generated",
    heavy_tails: bool = False,
    epochs: Sequence[int] = (5, 40, 80, 160),
    epsilons: Sequence[float] = (8.0,),
    private_epochs: int = 15,
    width: int = 256,
    members: int = 9600,
    seeds: int = 3,
    conditional: bool = True,
    progress: Progress | None = None,
) -> SyntheticReport:
    """Train the models and audit all of them, in about two minutes on one core.

    References
    ----------
    M. Kazmi et al., "PANORAMIA: Privacy Auditing of Machine Learning Models without Retraining",
    2024, arXiv:2402.09477.
    """
    choice(generator, "generator", GeneratorName)
    choice(helper, "helper", HelperName)
    source = Census(heavy_tails=heavy_tails)
    audit = Panoramia(
        _generator(generator, source),
        inputs=features,
        helper=None if helper == "none" else Helper(trained_on=helper, epochs=10),
        seeds=tuple(range(integer(seeds, "seeds", least=1))),
        union=True,
        conditional=conditional,
    )
    return audit_targets(
        audit,
        drawing(source, features),
        recipe(integer(width, "width", least=1)),
        generator=generator,
        seed=seed,
        members=members,
        epochs=epochs,
        epsilons=epsilons,
        private_epochs=private_epochs,
        progress=progress,
    )


def _generator(name: GeneratorName, source: Census) -> Generator:
    if name == "oracle":
        return source
    if name == "copula":
        return GaussianCopula(categorical=CATEGORICAL)
    return (
        SequentialCART(categorical=CATEGORICAL)
        if name == "cart"
        else ChowLiuTree(categorical=CATEGORICAL)
    )
