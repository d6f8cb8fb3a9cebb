"""How well membership is told without the model; public in `leakbound.results`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leakbound._base.formatting import share


@dataclass(frozen=True)
class BlindBaseline:
    """How often features alone, without the model, tell the member of a pair.

    A classifier learns membership from features of earlier pairs, and guesses about later ones
    where it is surest. On a random split it is right half of the time: an attack that is no better
    than a blind baseline which is right more often shows the split, and not the model.
    """

    classifier: str
    """The better of two classifiers."""
    right: int
    guesses: int
    p: float
    """Upper bound on the probability of so many right guesses in a random split, corrected for
    other views of the features."""

    @property
    def accuracy(self) -> float:
        """Right guesses as a share of those made; one half if none was made."""
        if not self.guesses:
            return 0.5
        return self.right / self.guesses

    def __str__(self) -> str:
        """Return the numbers in words."""
        return (
            f"{self.right:,} of {self.guesses:,} pairs are told by {self.classifier} from features "
            f"alone ({share(self.accuracy)}; a random split gives 50 %), p = {self.p:.2g}"
        )


def blind_baseline(options: Mapping[str, Any]) -> BlindBaseline | None:
    """Return the blind baseline that an audit stored; None if it had no features to bet with."""
    challenge = options.get("challenge")
    stored = None
    if isinstance(challenge, dict):
        stored = challenge.get("blind_baseline")
    if not isinstance(stored, dict):
        return None
    counts = stored.get("right"), stored.get("of")
    p = stored.get("p_value")
    right, guesses = counts
    if not (isinstance(right, int) and isinstance(guesses, int) and isinstance(p, float)):
        return None
    return BlindBaseline(str(stored.get("classifier")), right, guesses, p)
