"""Training with DP-SGD without a network: noisy sums of canaries, and sizes of batches."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound.audits.dp_sgd.canaries import CanaryDesign, Observed, Recorder

__all__ = ["EXAMPLES", "play"]

EXAMPLES = 200
"""Examples of the user's own."""


def play(
    seed: int,
    *,
    noise: float = 1.0,
    stated: Callable[[int], float] | float = 1.0,
    rate: float = 0.1,
    steps: int = 40,
    canaries: int = 200,
    step_canaries: int = 100,
    batch: Callable[[np.random.Generator], int] | None = None,
    stop: Callable[[NDArray[np.float64], int], bool] = lambda _values, _step: False,
    repeated: bool = False,
    signal: float = 1.0,
    **batches: Any,
) -> Observed:
    """Release what a run with this noise releases, until the end or a rule that sees it all.

    `batches` has how they are made, and what neighbours are.
    """
    design = CanaryDesign.create(
        canaries=canaries,
        step_canaries=step_canaries,
        sampling_rate=rate,
        max_steps=steps,
        seed=seed,
        **batches,
    )
    planned = stated(0) if callable(stated) else stated
    recorder, rng = Recorder(design, planned), np.random.default_rng([seed, 77])
    same = rng.normal(size=design.size)
    for step in range(steps):
        values = noise * (same if repeated else rng.normal(size=design.size))
        rows = recorder.included()
        values[rows] += signal * recorder.contributions[rows]
        size = rng.binomial(EXAMPLES, rate) if batch is None else batch(rng)
        recorder.record(values, stated(step) if callable(stated) else stated, int(size))
        if stop(values, step):
            break
    return recorder.observed()
