"""Rows of DP-SGD: sizes of Poisson batches, limits of a misstated rate, squares of noise."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.stats import chi2

from leakbound.audits.dp_sgd.audit import audit_noise
from leakbound.audits.dp_sgd.canaries import CanaryDesign, Observed, Recorder
from leakbound.audits.dp_sgd.sampling import audit_batch_sizes, possible_examples
from validity.lengths import COSTLY, FUTILE
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR

__all__ = ["NoisySteps", "PoissonBatches", "dp_sgd_cases"]

Steps: TypeAlias = Literal["fresh", "stopped", "contaminated", "loud", "stopped, fixed number"]


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
            squares=np.ones(steps),
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


@dataclass(frozen=True)
class NoisySteps:
    """Whether squares of released noise bound it below the truth: exactly σ, or no less.

    Runs are stopped when the noise seen so far is small. Gradients of examples along canaries
    follow coins and released noise. Loud steps have a common shift on top, in steps that follow
    a quiet one. The test of a fixed number of squares does not know that a run was stopped.
    """

    kind: Steps
    noise: float = 0.8
    steps: int = 60

    def __call__(self, seed: int) -> bool:
        """Train for some steps and bound the noise."""
        design = CanaryDesign(
            canaries=20, step_canaries=20, sampling_rate=0.2, max_steps=self.steps, seed=seed
        )
        recorder, rng = Recorder(design, self.noise), stream("noisy-steps", seed)
        size, last, total = design.size, np.zeros(design.size), 0.0
        for step in range(self.steps):
            inside = np.isin(np.arange(size), recorder.included())
            fresh = self.noise * rng.normal(size=size)
            mean = inside.astype(float)
            if self.kind == "contaminated":
                mean -= 0.5 * last + 0.1 * inside
            quiet = step > 0 and float(last @ last) < size * self.noise**2
            if self.kind == "loud" and quiet:
                fresh += 0.2 * rng.normal()
            recorder.record(mean + fresh, self.noise, 1)
            last, total = fresh, total + float(fresh @ fresh)
            count = (step + 1) * size
            low = self.noise**2 * (1 - 1.65 * math.sqrt(2 / count))
            if self.kind.startswith("stopped") and step >= 5 and total / count < low:
                break
        if self.kind == "stopped, fixed number":
            return math.sqrt(total / float(chi2.ppf(ERROR, count))) < self.noise
        return audit_noise(recorder.observed(), ERROR).bound < self.noise


def dp_sgd_cases() -> Iterator[Case]:
    """Yield the rows of rates, stated as they are and twofold, and of noise that is as stated."""
    kinds: tuple[Steps, ...] = ("fresh", "stopped", "contaminated", "loud", "stopped, fixed number")
    for kind in kinds:
        valid = kind != "stopped, fixed number"
        yield Case(
            audit="dp-sgd",
            claim="noise of steps",
            cuts="squares" if valid else "squares, fixed number",
            sides="both",
            truth=kind.replace(", fixed number", ""),
            error=ERROR,
            valid=valid,
            trial=NoisySteps(kind),
            quick=200,
            long=COSTLY if valid else FUTILE,
        )
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
            quick=0,
            long=COSTLY,
        )
