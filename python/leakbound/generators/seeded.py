"""What fitted generators share: the check of what is asked for, and its documentation."""

from abc import ABC, abstractmethod

from leakbound._base.validation import MOST_EXAMPLES, integer
from leakbound.generators.protocol import Samples


class SeededSampler(ABC):
    """A fitted generator whose samples depend on their number and the seed alone."""

    def sample(self, n: int, *, seed: int) -> Samples:
        """Draw new examples: see `Sampler.sample`."""
        n = integer(n, "n", least=1, most=MOST_EXAMPLES)
        return self._draw(n, integer(seed, "seed", least=0))

    @abstractmethod
    def _draw(self, n: int, seed: int) -> Samples:
        """Return n samples; both numbers are checked."""
