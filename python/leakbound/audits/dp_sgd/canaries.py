"""The canaries of one training run: their coins, who is in which batch, and what is seen of them.

There is no training here: canaries have numbers, and a step releases one noisy value for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, integer, seed_of
from leakbound._base.streams import Purpose
from leakbound._base.types import Batches, BoolArray, FloatArray, IntArray, Neighbours
from leakbound.claims.dp_sgd import privacy_loss
from leakbound.claims.training import StatedRun
from leakbound.errors import InputError, OptionError

# Coins of steps that are tossed where nobody says how many: bets need few more.
_DEFAULT_COINS = 200_000
# Coins of short runs, which are one game: the more the better.
_FEWEST_COINS = 20_000
# Step canaries, at most, of long and short runs: half of them are rows of every batch.
_STEP_CANARIES = 200
_MOST_STEP_CANARIES = 500
# Coins of steps, at most: what is seen of each takes four bytes.
_MOST_COINS = 10**8
# The law of a longer run takes too much memory, and time.
_MOST_STEPS = 10**6
# Released values beyond are as good: sums of their squares stay finite.
LARGEST = 1e30


@dataclass(frozen=True, kw_only=True)
class CanaryDesign:
    """Coins of canaries, tossed before training, and the batches that the sampled ones are in.

    Membership canaries come first: 0, …, canaries - 1. Each is in training by its own fair coin,
    and then in every batch with probability q. Step canaries come after them: each has a fair coin
    for every step, and is in that step's batch if it shows heads.

    Where batches are made of epochs, each membership canary has a place in one batch of each epoch,
    which is empty if it is not in training. Where an example is replaced, a canary is a pair of
    opposite gradients, and its coin decides which of the two is in training.
    """

    canaries: int
    step_canaries: int
    sampling_rate: float
    """q, in (0, 1]."""
    max_steps: int
    """Steps that coins are tossed for."""
    seed: int = field(repr=False)
    """Of all coins, and secret as they are: streams of its own, which no other use of the seed has.
    """
    sampling: Batches = "poisson"
    """How batches are made."""
    relation: Neighbours = "add_remove"
    """What membership compares."""

    @classmethod
    def create(
        cls,
        *,
        canaries: int,
        step_canaries: int | None,
        sampling_rate: float,
        max_steps: int,
        seed: int | None,
        sampling: Batches = "poisson",
        relation: Neighbours | None = None,
    ) -> Self:
        """Check the options, and fill in the ones that were left out."""
        steps = integer(max_steps, name="max_steps", least=1, most=_MOST_STEPS)
        if step_canaries is None:
            canaries_of_long_runs = min(_STEP_CANARIES, -(-_DEFAULT_COINS // steps))
            step_canaries = min(
                _MOST_STEP_CANARIES, max(canaries_of_long_runs, -(-_FEWEST_COINS // steps))
            )
        stated = StatedRun.checked(sampling, relation, sampling_rate)
        design = cls(
            canaries=integer(canaries, name="canaries", least=2, most=MOST_EXAMPLES),
            step_canaries=integer(step_canaries, name="step_canaries", least=2),
            sampling_rate=stated.sampling_rate,
            max_steps=steps,
            seed=seed_of(seed, bits=128),
            sampling=stated.sampling,
            relation=stated.relation,
        )
        if design.coins > _MOST_COINS:
            raise OptionError(
                f"{design.step_canaries:,} step canaries in {steps:,} steps are {design.coins:,} "
                f"coins, more than the {_MOST_COINS:,} that fit into memory: use at most "
                f"{_MOST_COINS // steps:,} step canaries"
            )
        return design

    @property
    def coins(self) -> int:
        """Coins of step canaries."""
        return self.step_canaries * self.max_steps

    @property
    def size(self) -> int:
        """Canaries of both kinds."""
        return self.canaries + self.step_canaries

    @property
    def stated(self) -> StatedRun:
        """How batches are made, and what membership compares."""
        return StatedRun(
            sampling=self.sampling, relation=self.relation, sampling_rate=self.sampling_rate
        )

    def contributions(self) -> FloatArray:
        """Return what each canary adds to a batch it is in, in clipping norms: shape (size,)."""
        contribution_without = 0.0
        if self.stated.is_replaced:
            contribution_without = -1.0
        contributions = np.ones(self.size)
        contributions[: self.canaries] = np.where(self.member(), 1.0, contribution_without)
        return contributions

    def member(self) -> BoolArray:
        """Return which membership canaries are in training: shape (canaries,).

        Where a canary is a pair, which of the two is.
        """
        return Purpose.DP_SGD_MEMBERS.coins(self.seed, self.canaries)

    def step_coins(self) -> BoolArray:
        """Return the coin of each step canary in each step: shape (max_steps, step_canaries)."""
        coins = Purpose.DP_SGD_STEPS.coins(self.seed, self.coins)
        return coins.reshape(self.max_steps, self.step_canaries)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What a training run showed: all that an audit of it takes."""

    design: CanaryDesign
    log_odds: FloatArray
    """ln dP/dQ of all that was released about each membership canary, P with and Q without it."""
    released: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
    """What each step (rows) released about each step canary, in units of the clipping norm."""
    squares: FloatArray
    """Sum over all canaries, in each step, of the squared noise that the past did not predict."""
    noise_multipliers: FloatArray
    """The noise multiplier that the optimizer stated at each step."""
    planned_noise: float
    """The one stated before training, from which audits are planned: no coin has a part in it."""
    batch_sizes: IntArray
    """Examples of the user's own in each step: in all batches together that it accumulated."""
    steps_beyond: int = 0
    """Steps after the last one that had coins."""
    pass_sizes: IntArray | None = None
    """Of steps that accumulated several backward passes, the rows of each: shape (steps, passes),
    0 where a step had fewer. None if no step had several; parts of a split batch count as one."""

    @property
    def passes(self) -> int:
        """Backward passes of a step, at most."""
        if self.pass_sizes is None:
            return 1
        return int(self.pass_sizes.shape[1])

    @property
    def steps(self) -> int:
        """Steps that were seen."""
        return self.batch_sizes.size


class Predictor:
    """Predicts the noise of a step from that of earlier ones, which fresh noise does not allow.

    Least squares, over all steps before, on the noise of the same canary in the step before, its
    mean over all steps before, and the mean of the step's noise over canaries of smaller number.
    """

    def __init__(self, size: int, noise: float) -> None:
        self._last_noise = np.zeros(size)
        self._total_noise = np.zeros(size)
        self._steps_before = 0
        self._smaller_canaries = np.maximum(1, np.arange(size))
        # As much as one step says pulls coefficients to 0.
        self._gram_matrix = size * noise**2 * np.eye(3)
        self._cross_products = np.zeros(3)

    def squares(self, noise: FloatArray) -> float:
        """Return the sum of squares of what is left of a step's noise, and learn from it."""
        mean_noise = self._total_noise / max(1, self._steps_before)
        mean_of_smaller = (np.cumsum(noise) - noise) / self._smaller_canaries
        predictors = np.stack([self._last_noise, mean_noise, mean_of_smaller])
        residuals = (
            noise
            - np.linalg.lstsq(self._gram_matrix, self._cross_products, rcond=None)[0] @ predictors
        )
        self._gram_matrix = self._gram_matrix + predictors @ predictors.T
        self._cross_products = self._cross_products + predictors @ noise
        self._last_noise = noise
        self._total_noise = self._total_noise + noise
        self._steps_before = self._steps_before + 1
        return float(residuals @ residuals)


class Recorder:
    """Says which canaries are in a batch, and keeps what the batch's noisy gradient shows."""

    def __init__(self, design: CanaryDesign, planned_noise: float) -> None:
        self.design = design
        self.planned_noise = planned_noise
        self.contributions = design.contributions()
        """What each canary adds to a batch that it is in, in clipping norms."""
        self._may_have_row = np.ones(design.canaries, dtype=np.bool_)
        if design.relation == "add_remove":
            self._may_have_row = design.member()
        self._step_coins = design.step_coins()
        self._batch_of_epoch = np.zeros(0, dtype=np.int64)
        self._sampling_rng = Purpose.DP_SGD_SAMPLING.rng(design.seed)
        self._log_odds = np.zeros(design.canaries)
        self._released: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = []
        self._noise_multipliers: list[float] = []
        self._canaries_with_row = np.zeros(0, dtype=np.int64)
        self._is_sampled = np.zeros(design.canaries, dtype=np.bool_)
        self._predictor = Predictor(size=design.size, noise=planned_noise)
        self._squares: list[float] = []
        self._pass_sizes: list[list[int]] = []
        self.beyond = 0

    @property
    def steps(self) -> int:
        """Steps recorded."""
        return len(self._pass_sizes)

    @property
    def is_full(self) -> bool:
        """Whether all steps that have coins are over."""
        return self.steps >= self.design.max_steps

    def included(self) -> IntArray:
        """Draw which canaries have a row in the next step's batch; none once coins are used up.

        Called once a step. Uniform numbers are drawn for all canaries, so that no draw depends on
        a coin. A place that is left empty is a row too, of zeros.
        """
        if self.is_full:
            return np.zeros(0, dtype=np.int64)
        self._is_sampled = self._draw_sampled()
        has_row = self._may_have_row & self._is_sampled
        self._canaries_with_row = np.flatnonzero(np.append(has_row, self._step_coins[self.steps]))
        return self._canaries_with_row

    def _draw_sampled(self) -> BoolArray:
        """Draw which membership canaries have a place in the next step's batch."""
        design = self.design
        if design.sampling != "epochs":
            is_sampled: BoolArray = (
                self._sampling_rng.random(design.canaries) < design.sampling_rate
            )
            return is_sampled
        step_of_epoch = self.steps % design.stated.epoch
        if not step_of_epoch:
            self._batch_of_epoch = self._sampling_rng.integers(
                design.stated.epoch, size=design.canaries
            )
        is_placed: BoolArray = self._batch_of_epoch == step_of_epoch
        return is_placed

    def _log_odds_of_step(self, values: FloatArray, noise_multiplier: float) -> FloatArray:
        """Return ln dP/dQ of what a step released about each membership canary."""
        design = self.design
        if design.sampling == "epochs":
            # The batch is known: N(1, σ²) against N(0, σ²), or against N(-1, σ²)
            shift = 2 * values
            if not design.stated.is_replaced:
                shift = values - 0.5
            return self._is_sampled * shift / noise_multiplier**2

        def against_none(x: FloatArray) -> FloatArray:
            return privacy_loss(
                x, noise_multiplier=noise_multiplier, sampling_rate=design.sampling_rate
            )

        if design.stated.is_replaced:
            return against_none(values) - against_none(-values)
        return against_none(values)

    def record(
        self, values: FloatArray, noise_multiplier: float, batch_size: int | Sequence[int]
    ) -> None:
        """Keep what a step released about each canary, in units of the clipping norm.

        `batch_size` has the examples of the step, or those of each of its backward passes.
        """
        if self.is_full:
            self.beyond += 1
            return
        if not np.isfinite(values).all():
            raise InputError(
                f"the gradient released at step {self.steps + 1} is not finite for "
                f"{np.count_nonzero(~np.isfinite(values))} of {values.size} canaries: look for an "
                "example whose gradient is NaN or infinite"
            )
        membership_canaries = self.design.canaries
        self._log_odds += self._log_odds_of_step(values[:membership_canaries], noise_multiplier)
        with np.errstate(over="ignore"):
            self._released.append(values[membership_canaries:].astype(np.float32))
        noise = np.clip(values, -LARGEST, LARGEST)
        noise[self._canaries_with_row] -= self.contributions[self._canaries_with_row]
        self._squares.append(self._predictor.squares(noise))
        self._noise_multipliers.append(noise_multiplier)
        if isinstance(batch_size, Sequence):
            self._pass_sizes.append(list(batch_size))
        else:
            self._pass_sizes.append([batch_size])

    def observed(self) -> Observed:
        """Return all that was recorded."""
        most_passes = max([1, *map(len, self._pass_sizes)])
        pass_sizes_of_steps = np.zeros((self.steps, most_passes), dtype=np.int64)
        for step, sizes in enumerate(self._pass_sizes):
            pass_sizes_of_steps[step, : len(sizes)] = sizes
        pass_sizes = None
        if most_passes > 1:
            pass_sizes = pass_sizes_of_steps
        return Observed(
            design=self.design,
            log_odds=self._log_odds,
            released=np.array(self._released, dtype=np.float32).reshape(
                self.steps, self.design.step_canaries
            ),
            squares=np.array(self._squares),
            noise_multipliers=np.array(self._noise_multipliers),
            planned_noise=self.planned_noise,
            batch_sizes=pass_sizes_of_steps.sum(axis=1),
            steps_beyond=self.beyond,
            pass_sizes=pass_sizes,
        )
