"""The probe of a step: contributions, the noise, limits of μ, and tests of what they assume."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import choice, complement, integer, real, seed_of
from leakbound._base.imports import needs
from leakbound._base.messages import hinted
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, Relation, Status
from leakbound.audits.dp_sgd.step import assumptions
from leakbound.audits.dp_sgd.step.contrasts import (
    MuLimits,
    Noise,
    choose_tested_positions,
    direction_deviation_limit,
    measured_noise,
)
from leakbound.audits.dp_sgd.step.contributions import (
    Contribution,
    TwoSeedRuns,
    compare_neighbours,
    noiseless_values,
)
from leakbound.audits.dp_sgd.step.neighbours import Pair, checked_pairs
from leakbound.audits.dp_sgd.step.runs import (
    Released,
    Step,
    StepRunner,
    as_floats,
    check_finite,
    check_repeats,
)
from leakbound.report.parts import Assumption, Provenance
from leakbound.results.dp_step import (
    NEAR,
    SENSITIVITY,
    DPStepAudit,
    PairResult,
    TensorResult,
    Tested,
    contradicted,
)

# Seeds that must all give the same value where a value is said to have no noise
_NOISELESS_RUNS = 6
# Pairs in which noise on one side only is looked for, at most
_MOST_ONE_SIDED_SEARCHES = 3
# Bits of the seeds that a step is given
_SEED_BITS = 31
_MOST_RUNS = 10_000
# Relative precision of released numbers above which rounding is worth a warning
_COARSE_PRECISION = 1e-6


@hinted()
def probe_dp_step(
    step: Step,
    pairs: Iterable[Pair | tuple[Sequence[object], Sequence[object]]],
    *,
    noise_multiplier: float,
    relation: Relation = "add_remove",
    runs: int = 32,
    steps: int = 6,
    confidence: float = 0.999,
    seed: int | None = None,
) -> DPStepAudit:
    """Run one step of DP-SGD on neighbouring batches, and bound its noise multiplier from above.

    Any implementation can be probed. Nothing is trained: the step must leave weights and all other
    state as they were.

    Parameters
    ----------
    step : callable
        The step, ``step(examples, seed)``. It returns what the optimizer is given, the noisy
        gradient, as a mapping from names of tensors to arrays, on any scale. With an integer,
        the result depends on examples and seed only: it seeds the noise, and all other randomness,
        such as dropout, is fixed. With None the step continues its own generator, as in training.
    pairs : iterable of Pair or of (D, D')
        Neighbouring batches, each a list of examples as the step takes them; D may be empty.
        `leakbound.dp_sgd.neighbouring_batches` makes them.
    noise_multiplier : float
        The claim: standard deviation of the noise in clipping norms, above 0.
    relation : {"add_remove", "replace"}
        How neighbours differ: D' has one example more, or one replaced. Under the first one example
        moves the sum by one clipping norm, under the second by two.
    runs : int
        Runs with other seeds that measure the noise, at least 4. More give a sharper bound.
    steps : int
        Steps in a row without a seed, which test whether each has fresh noise; 0 or 1
        skips the test.
    confidence : float
        Probability that a step as claimed is not refuted and its bound is right, in (0, 1). A
        right step attains its claim, so that at 95 % up to one in twenty would be refuted.
    seed : int, optional
        Seed of all choices, and of the seeds that the step is given; a new one if None.

    Returns
    -------
    DPStepAudit
        A lower bound on μ of one step given its batch, and what contradicts the claim.

    Raises
    ------
    OptionError
        If one seed gives two results.
    InputError
        If pairs are not neighbours, the step fails on an empty batch, returns other tensors for
        other batches, or NaN.

    Notes
    -----
    The probe costs two to four runs for each pair, and `runs` + `steps` + 9. It needs the extra
    ``ml``, for SciPy. Tests of normal, independent and fresh noise make at most 100,000 draws of
    many numbers: above a confidence of 0.9999 some may not refute, which a warning says.
    docs/theory/dp-sgd.md states what is tested, and proves it.

    Examples
    --------
    A step that clips each example at 1, adds noise with multiplier 1 and divides by 4:

    >>> import numpy as np
    >>> import leakbound as lb
    >>> def step(examples, seed):
    ...     gradient = sum((x / max(1.0, np.linalg.norm(x)) for x in examples), np.zeros(500))
    ...     return {"w": (gradient + np.random.default_rng(seed).normal(size=500)) / 4}
    >>> rows = list(np.random.default_rng(0).normal(size=(5, 500)))
    >>> audit = lb.probe_dp_step(step, [(rows[:4], rows)], noise_multiplier=1.0, seed=0)
    >>> audit.check(), round(audit.noise_multiplier, 2)
    ('not refuted', 1.02)
    """
    choice(relation, name="relation", allowed=Relation)
    options = _Options(
        noise_multiplier=real(noise_multiplier, name="noise_multiplier", above=0),
        relation=relation,
        runs=integer(runs, name="runs", least=4, most=_MOST_RUNS),
        steps=integer(steps, name="steps", least=0, most=_MOST_RUNS),
        level=complement(confidence),
        confidence=float(confidence),
        seed=seed_of(seed),
    )
    with needs("ml", "probe_dp_step"):
        import scipy.stats  # noqa: F401 (limits and tests use it)
    probe = _StepProbe(StepRunner(step), checked_pairs(pairs, relation), options)
    probe.run_pairs()
    probe.measure_noise()
    probe.test_noise()
    return probe.audit()


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of a probe, checked."""

    noise_multiplier: float
    relation: Relation
    runs: int
    steps: int
    level: float
    confidence: float
    seed: int

    @property
    def claimed_mu(self) -> float:
        """The μ that is claimed."""
        return SENSITIVITY[self.relation] / self.noise_multiplier


class _StepProbe:
    """Runs of a step, in the order in which they are made."""

    noise: Noise
    mu_limits: MuLimits
    noiseless: dict[str, BoolArray]
    """Where the base batch has no noise."""
    tested_positions: dict[str, NDArray[np.intp]]

    def __init__(self, runner: StepRunner, pairs: list[Pair], options: _Options) -> None:
        self.runner = runner
        self.pairs = pairs
        self.options = options
        self._seed_rng = Purpose.DP_STEP_SEEDS.rng(options.seed)
        self._test_rng = Purpose.DP_STEP_TESTS.rng(options.seed)
        # The batch on which noise is measured: D of the first pair where it is not empty
        base_pair = next((pair for pair in pairs if len(pair.without)), pairs[0])
        self.base_batch = base_pair.without
        self.base_name = f"D of {base_pair.name!r}"
        self.coupling_seeds = (self._new_seed(), self._new_seed())
        self.contributions: list[Contribution] = []
        self.longest: Contribution | None = None
        self.longest_direction: Released = {}
        self.p_values: dict[Tested, float] = {}
        self.tests_without_power: list[Tested] = []

    def _new_seed(self) -> int:
        return int(self._seed_rng.integers(1 << _SEED_BITS))

    def _run_base_batch(self, seed: int | None) -> Released:
        return self.runner(self.base_batch, seed, where=self.base_name)

    def _run_with_coupling_seeds(self, batch: Sequence[object], where: str) -> TwoSeedRuns:
        """Run a batch with the two seeds of the coupling."""
        first_seed, second_seed = self.coupling_seeds
        return TwoSeedRuns(
            first=self.runner(batch, first_seed, where=where),
            second=self.runner(batch, second_seed, where=where),
            precision=self.runner.precision,
            smallest_numbers=self.runner.smallest_numbers,
        )

    def run_pairs(self) -> None:
        """Run all pairs at the two seeds of the coupling."""
        first_seed, _ = self.coupling_seeds
        # 1. The base batch: one seed twice, and other seeds for where there is any noise
        base_runs = self._run_with_coupling_seeds(self.base_batch, self.base_name)
        check_finite(base_runs.first, self.base_name)
        check_repeats(base_runs.first, self._run_base_batch(first_seed), self.base_name)
        self.noiseless = self._find_noiseless_values(
            self.base_batch, self.base_name, known_runs=[base_runs.first, base_runs.second]
        )
        # 2. Pairs, those of one batch D one after the other: its runs are kept in the meantime.
        positions_by_batch: dict[int, list[int]] = {}
        for position, pair in enumerate(self.pairs):
            positions_by_batch.setdefault(id(pair.without), []).append(position)
        contributions: dict[int, Contribution] = {}
        one_sided_searches = 0
        for positions in positions_by_batch.values():
            first_pair = self.pairs[positions[0]]
            runs_without = base_runs
            if first_pair.without is not self.base_batch:
                where = f"D of {first_pair.name!r}"
                runs_without = self._run_with_coupling_seeds(first_pair.without, where)
            for position in positions:
                pair = self.pairs[position]
                contribution = self._run_neighbour(pair, runs_without, base_runs)
                contributions[position] = contribution
                depends_on_batch = not contribution.coupled or contribution.noise_factor is None
                is_searched = contribution.finite and depends_on_batch
                if is_searched and one_sided_searches < _MOST_ONE_SIDED_SEARCHES:
                    one_sided_searches += 1
                    self._search_one_sided_noise(contribution, pair)
        self.contributions = [contributions[position] for position in range(len(self.pairs))]
        # 3. Whether what was run in between has left something behind
        check_repeats(
            base_runs.first,
            self._run_base_batch(first_seed),
            f"{self.base_name}, first and after other batches,",
        )

    def _run_neighbour(
        self, pair: Pair, runs_without: TwoSeedRuns, base_runs: TwoSeedRuns
    ) -> Contribution:
        """Run D' of a pair, and return what the pair shows."""
        where = f"D' of {pair.name!r}"
        runs_with = self._run_with_coupling_seeds(pair.with_, where)
        is_finite_without = runs_without.are_finite
        is_finite_with = runs_with.are_finite
        if not is_finite_without and not is_finite_with:
            check_finite(runs_with.first, where)
            check_finite(runs_with.second, where)
        if not is_finite_without or not is_finite_with:
            no_lengths = dict.fromkeys(self.runner.sizes, 0.0)
            return Contribution(pair.name, lengths=no_lengths, finite=False)
        contribution, delta = compare_neighbours(
            pair.name, runs_without, runs_with, reference=base_runs, noiseless=self.noiseless
        )
        # Chosen by length alone, without looking at the noise that is measured later.
        if self.longest is None or contribution.length > self.longest.length:
            self.longest = contribution
            self.longest_direction = delta
        return contribution

    def _find_noiseless_values(
        self, batch: Sequence[object], where: str, known_runs: Sequence[Released] = ()
    ) -> dict[str, BoolArray]:
        """Return where a batch has no noise at all, by several seeds."""
        runs = list(known_runs)
        while len(runs) < _NOISELESS_RUNS:
            runs.append(self.runner(batch, self._new_seed(), where=where))
        return noiseless_values(runs)

    def _search_one_sided_noise(self, contribution: Contribution, pair: Pair) -> None:
        """Find out whether noise that is not that of the base batch is missing somewhere."""
        noiseless_without = self._find_noiseless_values(pair.without, f"D of {pair.name!r}")
        noiseless_with = self._find_noiseless_values(pair.with_, f"D' of {pair.name!r}")
        for tensor_name, without_noise in noiseless_without.items():
            if (without_noise != noiseless_with[tensor_name]).any():
                contribution.one_sided = True
            # a tensor without noise on both batches, and what the example adds to it
            if without_noise.all():
                contribution.noiseless_length = max(
                    contribution.noiseless_length, contribution.lengths[tensor_name]
                )

    def measure_noise(self) -> None:
        """Measure the noise on one batch, with seeds that were not used before."""
        self.tested_positions = choose_tested_positions(self.noiseless, self._test_rng)
        if not self.longest_direction:
            self.longest_direction = {
                tensor_name: np.zeros(size, np.float32)
                for tensor_name, size in self.runner.sizes.items()
            }

        def run_with_fresh_seed() -> Released:
            released = self._run_base_batch(self._new_seed())
            check_finite(released, self.base_name)
            return released

        self.noise = measured_noise(
            run_with_fresh_seed,
            runs=self.options.runs,
            noiseless=self.noiseless,
            tested_positions=self.tested_positions,
            direction=self.longest_direction,
        )
        self.mu_limits = MuLimits(self.noise, self.options.level)

    def test_noise(self) -> None:
        """Test what the limits of μ assume of the noise."""
        level = self.options.level
        rng = self._test_rng
        tests: dict[Tested, assumptions.PValue] = {
            "normal": assumptions.normality_p_value(self.noise, level, rng),
            "independent": assumptions.independence_p_value(self.noise, level, rng),
        }
        if self.options.steps >= 2:
            consecutive_steps = self._run_consecutive_steps()
            tests["steps"] = assumptions.freshness_p_value(
                self.noise, consecutive_steps, level, rng
            )
        smallest_possible: dict[Tested, float] = {}
        for test, p_value in tests.items():
            self.p_values[test] = float(p_value.value)
            smallest_possible[test] = p_value.smallest_possible
        tests_with_power = assumptions.refuting_tests(smallest_possible, level)
        self.tests_without_power = [test for test in tests if test not in tests_with_power]

    def _run_consecutive_steps(self) -> dict[str, FloatArray]:
        """Run steps in a row without a seed; return the values tested, a row for each step."""
        rows: dict[str, list[FloatArray]] = {
            tensor_name: [] for tensor_name in self.tested_positions
        }
        for _ in range(self.options.steps):
            where = f"{self.base_name}, without a seed"
            released = self.runner(self.base_batch, None, where=where)
            check_finite(released, self.base_name)
            for tensor_name, tensor_values in released.items():
                tested_values = tensor_values[self.tested_positions[tensor_name]]
                rows[tensor_name].append(as_floats(tested_values))
        return {
            tensor_name: np.stack(rows_of_tensor) for tensor_name, rows_of_tensor in rows.items()
        }

    def _mu_along_longest(self) -> float:
        """Return the lower limit of μ from the noise along the longest difference."""
        longest = self.longest
        if longest is None or not longest.length or not longest.noise_factor:
            return 0.0
        contrasts = self.noise.contrasts_along_direction
        if not contrasts.any():
            return math.inf
        squared_length = 0.0
        for values in self.longest_direction.values():
            direction = as_floats(values)
            squared_length += float(direction @ direction)
        # Δ is as long as this at least, along w: μ ≥ ⟨w, Δ⟩ / (wᵀΣw)^½ by Cauchy and Schwarz
        inner_product = math.sqrt(squared_length) * longest.length
        return inner_product / direction_deviation_limit(contrasts, self.options.level)

    def audit(self) -> DPStepAudit:
        """Return the audit of all runs."""
        options = self.options
        along = self._mu_along_longest()
        bounds = [self.mu_limits.lower_limit(contribution) for contribution in self.contributions]
        bound = max(along, *bounds)
        worst = self.contributions[int(np.argmax(bounds))]
        if along > max(bounds) and self.longest is not None:
            worst = self.longest
        pairs = self._pair_results(bounds)
        refuted_by = (
            *contradicted(pairs, bound, options.claimed_mu),
            *assumptions.refuting_tests(self.p_values, options.level),
        )
        return DPStepAudit(
            bound=bound,
            ceiling=max(bound, self._bound_at_claim()),
            stated_noise_multiplier=options.noise_multiplier,
            relation=options.relation,
            worst=worst.pair_name,
            along=along,
            pairs=pairs,
            tensors=self._tensor_results(worst),
            p_values=dict(self.p_values.items()),
            refuted_by=refuted_by,
            runs=self.runner.runs,
            confidence=options.confidence,
            options={
                "noise_multiplier": options.noise_multiplier,
                "relation": options.relation,
                "runs": options.runs,
                "steps": options.steps,
                "seed": options.seed,
            },
            warnings=tuple(self._warnings_of_probe(pairs)),
            without_power=tuple(self.tests_without_power),
            assumptions=self._assumptions_of_probe(refuted_by),
            provenance=Provenance.of(options.seed),
        )

    def _pair_results(self, bounds: list[float]) -> tuple[PairResult, ...]:
        """Return the results of all pairs, of which `bounds` are the lower limits of μ."""
        results = []
        for pair, contribution, bound in zip(self.pairs, self.contributions, bounds, strict=True):
            # Where examples are replaced, noise may follow the size of a batch
            same_size = len(pair.without) == len(self.base_batch)
            result = PairResult(
                name=contribution.pair_name,
                bound=bound,
                length=max(self._length_in_deviations(contribution), bound),
                coupled=contribution.coupled,
                scale=contribution.noise_scale,
                factor=contribution.noise_factor,
                comparable=self.options.relation == "add_remove" or same_size,
                finite=contribution.finite,
            )
            results.append(result)
        return tuple(results)

    def _tensor_results(self, worst: Contribution) -> tuple[TensorResult, ...]:
        """Return the results of all tensors that hold values."""
        results = []
        for tensor_name, size in self.runner.sizes.items():
            if not size:
                continue
            result = TensorResult(
                name=tensor_name,
                size=size,
                deviation=self.noise.deviation(tensor_name),
                upper_deviation=self.mu_limits.upper_deviations[tensor_name],
                length=worst.lengths[tensor_name],
            )
            results.append(result)
        return tuple(results)

    def _length_in_deviations(self, contribution: Contribution) -> float:
        """Return the length of a difference in units of the noise; without noise infinite, or 0."""
        noise_factor = contribution.noise_factor or math.inf
        squared_length = 0.0
        for tensor_name, length in contribution.lengths.items():
            if not length:
                continue
            deviation = self.noise.deviation(tensor_name)
            if deviation:
                deviation *= noise_factor
            if not deviation:
                return math.inf
            squared_length += (length / deviation) ** 2
        return math.sqrt(squared_length)

    def _bound_at_claim(self) -> float:
        """Return the bound that the longest pair would have given at the length of the claim."""
        longest = self.longest
        if longest is None or not longest.length:
            return 0.0
        bound = self.mu_limits.lower_limit(longest)
        length = self._length_in_deviations(longest)
        if not bound or math.isinf(bound) or math.isinf(length):
            return 0.0
        return bound * self.options.claimed_mu / length

    def _warnings_of_probe(self, pairs: tuple[PairResult, ...]) -> list[str]:
        """Say what was not tested."""
        warnings = []
        if all(pair.length < NEAR * self.options.claimed_mu for pair in pairs):
            warnings.append(
                "no pair came near the claim: candidates may not reach the clipping norm. Give "
                "examples with longer gradients, such as wrong labels or larger loss factors"
            )
        if "steps" not in self.p_values:
            warnings.append(
                "steps in a row were not run: noise that repeats from step to step is not tested "
                "(steps=6)"
            )
        if self.tests_without_power:
            names = ", ".join(self.tests_without_power)
            warnings.append(
                f"tests by draws cannot refute at this confidence: {names}. Set a lower confidence"
            )
        coarsest = max(self.runner.precision.values())
        if coarsest > _COARSE_PRECISION:
            warnings.append(
                f"numbers are released with a relative precision of {coarsest:.2g}: possible "
                "rounding error is subtracted from each difference, which lowers the bound"
            )
        return warnings

    def _assumptions_of_probe(self, refuted_by: Sequence[str]) -> tuple[Assumption, ...]:
        """Return what the bound assumes, and whether the data contradict it."""
        tested: list[tuple[str, str, str]] = [
            ("normal", "normal noise", "In each tensor the noise of a step is Gaussian."),
            (
                "independent",
                "independent noise",
                "Values of the noise are independent, with one standard deviation in each tensor.",
            ),
            (
                "coupling",
                "noise apart from data",
                "With one seed the noise is the same on every batch.",
            ),
            (
                "steps",
                "fresh noise",
                "Steps in a row draw new noise of the same scale, without a seed too.",
            ),
        ]
        repeatable = Assumption(
            name="function of batch and seed",
            statement="With one seed a step gives one result, bit for bit, and leaves no state "
            "behind.",
            status="checked",
        )
        assumed = [repeatable]
        for part, name, statement in tested:
            status: Status = "unverifiable"
            if part in self.p_values or part == "coupling":
                status = "checked"
            if part in refuted_by:
                status = "contradicted"
            assumed.append(Assumption(name=name, statement=statement, status=status))
        return tuple(assumed)
