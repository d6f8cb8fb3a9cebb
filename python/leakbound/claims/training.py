"""A training run with DP-SGD as it is stated: how batches are made, and what neighbours are."""

import math
from dataclasses import dataclass

from leakbound._base.checks import choice
from leakbound._base.types import Batches, Neighbours, Relation, Sides
from leakbound.claims.families import GaussianDP, SubsampledGaussianDP, checked_rate
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import OptionError

# Relative difference of 1/q from a whole number that is put down to rounding
_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True)
class StatedRun:
    """How batches of a run are made, and what its two neighbours are: `docs/theory/dp-sgd.md`."""

    sampling: Batches
    relation: Neighbours
    sampling_rate: float
    """q: the share of all examples in a batch."""

    @classmethod
    def checked(
        cls, sampling: Batches, relation: Neighbours | None, sampling_rate: float
    ) -> "StatedRun":
        """Check that there is a claim for these batches and neighbours."""
        choice(sampling, name="sampling", allowed=Batches)
        if relation is not None:
            choice(relation, name="relation", allowed=Neighbours)
        rate = checked_rate(sampling_rate)
        if sampling == "epochs":
            _check_epochs(relation, rate)
        allowed = _RELATIONS[sampling]
        relation = relation or allowed[0]
        if relation not in allowed:
            raise OptionError(_REFUSED[sampling, relation])
        return cls(sampling=sampling, relation=relation, sampling_rate=rate)

    @property
    def epoch(self) -> int:
        """Steps of an epoch, where batches are made of epochs."""
        return round(1 / self.sampling_rate)

    @property
    def is_replaced(self) -> bool:
        """Whether one example is in the place of another in one of both runs."""
        return self.relation == "replace"

    @property
    def compares(self) -> Relation:
        """The relation in terms of guarantees: to zero out is to remove and leave the place."""
        if self.relation == "replace":
            return "replace"
        return "add_remove"

    def family(self, steps: int) -> GaussianDP | SubsampledGaussianDP:
        """Return the family of so many steps."""
        if self.sampling == "epochs":
            return GaussianDP()
        return SubsampledGaussianDP(
            sampling_rate=self.sampling_rate,
            steps=steps,
            relation=self.compares,
            sampling=self.sampling,
        )

    def parameter(self, noise_multiplier: float, steps: int) -> float:
        """Return the family's parameter of so many steps with this noise."""
        if self.sampling == "epochs":
            # One step of each epoch sees the example, at a distance of 1, or 2 where it is replaced
            distance = 1 + self.is_replaced
            return distance * math.sqrt(math.ceil(steps / self.epoch)) / noise_multiplier
        return 1 / noise_multiplier

    def allowed(self, noise_multiplier: float, steps: int) -> TradeOff:
        """Return a curve that so many steps obey."""
        return self.family(steps).curve(self.parameter(noise_multiplier, steps), "both")

    def attained(self, noise_multiplier: float, steps: int, sides: Sides = "both") -> TradeOff:
        """Return a curve that tests of so many steps attain."""
        return self.family(steps).attained(self.parameter(noise_multiplier, steps), sides)


_RELATIONS: dict[Batches, tuple[Neighbours, ...]] = {
    "poisson": ("add_remove", "replace"),
    "fixed_size": ("replace",),
    "epochs": ("zero_out", "replace"),
}
"""Neighbours that there is a claim for, the default first."""
_REFUSED: dict[tuple[Batches, Neighbours], str] = {
    ("poisson", "zero_out"): 'in Poisson samples no place is left empty: relation="add_remove"',
    ("fixed_size", "add_remove"): (
        "in batches of fixed size one example more changes the rate B/N of all others, for which "
        'there is no claim here: relation="replace"'
    ),
    ("fixed_size", "zero_out"): (
        "of batches of fixed size there is no claim for an example whose place stays empty: "
        'relation="replace"'
    ),
    ("epochs", "add_remove"): (
        "in epochs one example more moves the borders of all later batches, which no claim here "
        'covers: relation="zero_out" if the places of examples, the number of steps and the '
        'divisor stay the same, or relation="replace"'
    ),
}


def _check_epochs(relation: Neighbours | None, rate: float) -> None:
    """Check that neighbours of epochs are named, and that an epoch has whole batches."""
    if relation is None:
        raise OptionError(
            'sampling="epochs" needs a relation, on which the guarantee depends: "zero_out" if the '
            "place of an example stays empty, and number of steps and divisor are the same, or "
            '"replace"'
        )
    if abs(1 / rate - round(1 / rate)) > _ROUNDING / rate:
        raise OptionError(
            f"sampling_rate is {rate:g}, and an epoch would have {1 / rate:g} batches: pass "
            "1 / len(loader), one over the number of batches of an epoch"
        )
