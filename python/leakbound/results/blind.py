"""How well membership is told without the model; public in `leakbound.results`."""

from collections.abc import Mapping
from dataclasses import dataclass

from leakbound._base.formatting import share


@dataclass(frozen=True)
class BlindBaseline:
    """How often features alone, without the model, tell members from non-members.

    A classifier learns membership from features of earlier pairs of a member and a non-member, and
    guesses about later ones where it is surest. On a random split it is right half of the time: an
    attack that is no better than a blind baseline which is right more often shows the split, and
    not the model. In Zero-Run a difference is expected: it is what the correction takes out. In
    PANORAMIA it is the baseline, which tells members from generated examples.
    """

    classifier: str
    """What guessed; of a random split, the better of two classifiers."""
    right: int
    guesses: int
    p: float | None = None
    """Upper bound on the probability of so many right guesses in a random split, corrected for
    other views of the features; None where the groups are none."""

    @property
    def accuracy(self) -> float:
        """Right guesses as a share of those made; one half if none was made."""
        if not self.guesses:
            return 0.5
        return self.right / self.guesses

    def __str__(self) -> str:
        """Return the numbers in words."""
        if self.p is None:
            return (
                f"{self.right:,} of {self.guesses:,} guesses of {self.classifier} about who is a "
                f"member are right without the model ({share(self.accuracy)})"
            )
        return (
            f"{self.right:,} of {self.guesses:,} pairs are told by {self.classifier} from features "
            f"alone ({share(self.accuracy)}; a random split gives 50 %), p = {self.p:.2g}"
        )


def blind_baseline(options: Mapping[str, object]) -> BlindBaseline | None:
    """Return the blind baseline that an audit stored; None if it had no features to bet with."""
    stored = options.get("blind_baseline")
    challenge = options.get("challenge")
    if isinstance(challenge, dict):
        stored = challenge.get("blind_baseline")
    if isinstance(stored, dict):
        return _blind_baseline_of_record(stored)
    return None


def _blind_baseline_of_record(stored: Mapping[str, object]) -> BlindBaseline | None:
    """Return a blind baseline as it was stored; None if that is not one."""
    right = stored.get("right")
    guesses = stored.get("of")
    p = stored.get("p_value")
    if not isinstance(right, int) or not isinstance(guesses, int):
        return None
    if not isinstance(p, float | None):
        return None
    return BlindBaseline(str(stored.get("classifier")), right, guesses, p)
