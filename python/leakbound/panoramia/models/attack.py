"""Baseline and attack: a model of the example, and of what other models say of it, stacked."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from leakbound._base.checks import choice, instance, integer, real
from leakbound.cuts import CUT_POLICIES, CutPolicy, KLScan
from leakbound.errors import InputError
from leakbound.panoramia.examples import Sample
from leakbound.panoramia.models import stacking
from leakbound.panoramia.models.stacking import FittedAttack, choose

Modality: TypeAlias = Literal["tabular", "image", "text"]


@dataclass(frozen=True)
class StackedAttack:
    """A classifier of members against non-members.

    It sees the example and what models say of it: the helper alone makes it a baseline, helper and
    target the attack. Both are the same kind of model, so that they differ by the target only.

    Parameters
    ----------
    modality : {"tabular", "image", "text"}
        "tabular": boosted trees on columns, label and signals over a small grid, stacked by a
        logistic regression with trees on the signals alone. "image": a convolutional network, a
        dense one and boosted trees on image and label, stacked with a network on the signals.
        "text": a transformer on tokens, trained together with a network on the losses of every
        token, stacked with the transformer alone and mean losses.

    Notes
    -----
    Hyper-parameters and the moment to stop are those that prove most on validation data: the bound
    on c for a baseline, on c + ε for an attack (Kazmi et al. 2024, appendix C). Audit them on
    examples that are in neither part.
    """

    modality: Modality = "tabular"

    def __post_init__(self) -> None:
        choice(self.modality, "modality", Modality)

    def fit(
        self,
        train: Sample,
        validation: Sample,
        *,
        seed: int = 0,
        level: float = 0.025,
        cuts: CutPolicy | None = None,
        prepared: Any = None,
    ) -> FittedAttack:
        """Train all candidates, and keep the one that proves most on validation data.

        `level` is the probability of error of the bound that is maximised under `cuts`, and
        `prepared` what `prepare` returned for the same examples and seed.
        """
        seed = integer(seed, "seed", least=0)
        level = real(level, "level", above=0, below=1)
        policy = KLScan() if cuts is None else cuts
        instance(policy, "cuts", CUT_POLICIES)
        for name, part in (("train", train), ("validation", validation)):
            _check(part, name, train)
        models = self._models
        ready = models.prepare(train, validation, seed) if prepared is None else prepared
        candidates = models.candidates(train, validation, seed, ready)
        return choose(candidates, validation.member, level=level, cuts=policy)

    def prepare(self, train: Sample, validation: Sample, *, seed: int = 0) -> Any:
        """Train what sees no signal, and so serves all attacks on the same examples."""
        return self._models.prepare(train, validation, seed)

    @property
    def _models(self) -> Any:
        """What is trained; networks need torch."""
        if self.modality == "tabular":
            return stacking
        if self.modality == "image":
            from leakbound.panoramia.models import images

            return images
        from leakbound.panoramia.models import text

        return text


def _check(part: Sample, name: str, like: Sample) -> None:
    if not len(part.examples) == len(part.signals) == len(part):
        message = f"signals and membership of {name} must describe the same examples"
        raise InputError(message)
    if part.signals.shape[1:] != like.signals.shape[1:]:
        shapes = f"{part.signals.shape[1:]} and {like.signals.shape[1:]}"
        message = f"{name} and training data have signals of shape {shapes}: pass the same models"
        raise InputError(message)
    if not 0 < int(part.member.sum()) < len(part):
        message = f"{name} must hold members and non-members, got {int(part.member.sum())} members"
        raise InputError(message)
