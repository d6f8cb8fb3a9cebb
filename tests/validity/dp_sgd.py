"""Rows of DP-SGD: sizes of Poisson batches, and the limit of a rate that is stated wrongly."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from leakbound.audits.dp_sgd.canaries import CanaryDesign, Observed
from leakbound.audits.dp_sgd.sampling import audit_batch_sizes, possible_examples
from validity.lengths import COSTLY
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR

__all__ = ["PoissonBatches", "dp_sgd_cases"]


@dataclass(frozen=True)
class PoissonBatches:
    """Whether sizes of Poisson batches are refuted; of a wrong rate, whether a limit is above it.

    Examples, rate and batches are the truth; `stated` is the rate that the watch is told. N is
    known, or inferred from an expected batch size of ⌊N q⌋ and the rate that is stated.
    """

    examples: int
    rate: float
    batches: int
    known: bool
    stated: float

    def __call__(self, seed: int) -> bool:
        """Draw batches of a seed and audit their sizes."""
        size, steps = self.examples, self.batches
        design = CanaryDesign(
            canaries=2, step_canaries=2, sampling_rate=self.stated, max_steps=steps, seed=seed
        )
        observed = Observed(
            design=design,
            log_odds=np.zeros(2),
            released=np.zeros((steps, 2), dtype=np.float32),
            noise_multipliers=np.ones(steps),
            planned_noise=1.0,
            batch_sizes=stream("poisson-batches", seed).binomial(size, self.rate, size=steps),
        )
        inferred = possible_examples(int(size * self.rate), self.stated)
        examples = (size, size) if self.known else inferred
        found = audit_batch_sizes(observed, examples, 1 - ERROR)
        if self.stated == self.rate:
            return found.refutes
        return found.lower_rate is not None and found.lower_rate > self.rate


def dp_sgd_cases() -> Iterator[Case]:
    """Yield the rows of rates that are stated as they are, and of one that is stated twofold."""
    for cuts, known, trial in (
        ("sizes", "known", PoissonBatches(1_000, 0.05, 60, known=True, stated=0.05)),
        ("sizes", "inferred", PoissonBatches(100, 1.0, 20, known=False, stated=1.0)),
        ("sizes", "inferred", PoissonBatches(20, 0.9, 40, known=False, stated=0.9)),
        ("limit", "known", PoissonBatches(1_000, 0.05, 60, known=True, stated=0.1)),
        ("limit", "inferred", PoissonBatches(1_000, 0.05, 60, known=False, stated=0.1)),
    ):
        yield Case(
            audit="dp-sgd",
            claim="Poisson batches",
            cuts=cuts,
            sides="both",
            truth=f"N={trial.examples},q={trial.rate:g},T={trial.batches},{known}",
            error=ERROR,
            trial=trial,
            long=COSTLY,
        )
