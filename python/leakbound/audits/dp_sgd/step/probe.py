"""The probe of a step: contributions, the noise, limits of μ, and tests of what they assume."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from leakbound._base.checks import choice, complement, integer, real, seed_of
from leakbound._base.hints import hinted
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, Relation, Status
from leakbound.audits.dp_sgd.step import assumptions
from leakbound.audits.dp_sgd.step.contrasts import (
    Limits,
    Noise,
    along_limit,
    measured,
    places_tested,
)
from leakbound.audits.dp_sgd.step.contributions import (
    Contribution,
    TwoSeeds,
    compared,
    noiseless,
)
from leakbound.audits.dp_sgd.step.pairs import Pair, checked_pairs
from leakbound.audits.dp_sgd.step.runs import (
    Released,
    Runner,
    Step,
    as_floats,
    check_finite,
    check_repeats,
    finite,
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
_QUIET = 6
# Pairs in which noise on one side only is looked for, at most
_MOST_ONE_SIDED = 3
# Bits of the seeds that a step is given
_BITS = 31
_MOST_RUNS = 10_000


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
        Steps in a row without a seed, which test whether each has fresh noise; 0 leaves the test
        out, and 1 is too few.
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
    probe = _Probe(Runner(step), checked_pairs(pairs, relation), options)
    probe.contributions()
    probe.measure()
    return probe.result()


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options, checked."""

    noise_multiplier: float
    relation: Relation
    runs: int
    steps: int
    level: float
    confidence: float
    seed: int

    @property
    def claimed(self) -> float:
        """The μ that is claimed."""
        return SENSITIVITY[self.relation] / self.noise_multiplier


class _Probe:
    """Runs of a step, in the order in which they are made."""

    def __init__(self, run: Runner, pairs: list[Pair], options: _Options) -> None:
        self.run = run
        self.pairs = pairs
        self.options = options
        self._seeds = Purpose.DP_STEP_SEEDS.rng(options.seed)
        self._rng = Purpose.DP_STEP_TESTS.rng(options.seed)
        first = next((pair for pair in pairs if len(pair.without)), pairs[0])
        self.base = first.without
        self.where = f"D of {first.name!r}"
        self.two = [self._seed(), self._seed()]
        self.found: list[Contribution] = []
        self.longest: Contribution | None = None
        self.direction: Released = {}

    def _seed(self) -> int:
        return int(self._seeds.integers(1 << _BITS))

    def _both(self, examples: Sequence[object], where: str) -> TwoSeeds:
        """Run a batch with the two seeds of the coupling."""
        first, second = (self.run(examples, seed, where=where) for seed in self.two)
        return TwoSeeds(first, second, self.run.precision, self.run.smallest)

    def contributions(self) -> None:
        """Run all pairs at two seeds."""
        # 1. The batch on which noise is measured: one seed twice, and others for where there is any
        base = self._both(self.base, self.where)
        check_finite(base.first, self.where)
        check_repeats(base.first, self.run(self.base, self.two[0], where=self.where), self.where)
        self.still = self._quiet(self.base, self.where, base)
        # 2. Pairs, those of one batch D one after the other: its runs are kept in the meantime.
        by_batch: dict[int, list[int]] = {}
        for place, pair in enumerate(self.pairs):
            by_batch.setdefault(id(pair.without), []).append(place)
        found: dict[int, Contribution] = {}
        one_sided = _MOST_ONE_SIDED
        for places in by_batch.values():
            without = base
            if self.pairs[places[0]].without is not self.base:
                pair = self.pairs[places[0]]
                without = self._both(pair.without, f"D of {pair.name!r}")
            for place in places:
                one = found[place] = self._compare(self.pairs[place], without, base)
                unlike = not one.coupled or one.factor is None
                if one.finite and unlike and one_sided:
                    one_sided -= 1
                    self._look_for_silence(one, self.pairs[place])
        self.found = [found[place] for place in range(len(self.pairs))]
        # 3. Whether what was run in between has left something behind
        again = self.run(self.base, self.two[0], where=self.where)
        check_repeats(base.first, again, f"{self.where}, first and after other batches,")

    def _compare(self, pair: Pair, without: TwoSeeds, base: TwoSeeds) -> Contribution:
        """Return what one pair shows."""
        where = f"D' of {pair.name!r}"
        with_ = self._both(pair.with_, where)
        numbers = [finite(one.first) and finite(one.second) for one in (without, with_)]
        if not any(numbers):
            check_finite(with_.first, where)
            check_finite(with_.second, where)
        if not all(numbers):
            nothing = dict.fromkeys(self.run.sizes, 0.0)
            return Contribution(pair.name, lengths=nothing, finite=False)
        found, delta = compared(pair.name, without, with_, base=base, still=self.still)
        # Chosen by length alone, without looking at the noise that is measured later.
        if self.longest is None or found.length > self.longest.length:
            self.longest, self.direction = found, delta
        return found

    def _quiet(
        self, examples: Sequence[object], where: str, known: TwoSeeds | None = None
    ) -> dict[str, BoolArray]:
        """Return where a batch has no noise at all, by several seeds."""
        runs = [] if known is None else [known.first, known.second]
        while len(runs) < _QUIET:
            runs.append(self.run(examples, self._seed(), where=where))
        return noiseless(runs)

    def _look_for_silence(self, one: Contribution, pair: Pair) -> None:
        """Find out whether noise that is not that of the base batch is missing somewhere."""
        without, with_ = (
            self._quiet(batch, f"{word} of {pair.name!r}")
            for word, batch in (("D", pair.without), ("D'", pair.with_))
        )
        one.one_sided = any(bool((without[name] != with_[name]).any()) for name in without)
        # a tensor without noise on both batches, and what the example adds to it
        lengths = [one.lengths[name] for name, quiet in without.items() if quiet.all()]
        one.silent = max([one.silent, *lengths])

    def measure(self) -> None:
        """Measure the noise on one batch, with seeds that were not used before."""
        options = self.options
        places = places_tested(self.still, self._rng)
        if not self.direction:
            self.direction = {name: np.zeros(n, np.float32) for name, n in self.run.sizes.items()}

        def fresh() -> Released:
            released = self.run(self.base, self._seed(), where=self.where)
            check_finite(released, self.where)
            return released

        self.noise: Noise = measured(fresh, options.runs, self.still, places, self.direction)
        self.limits = Limits(self.noise, options.level)
        level, rng = options.level, self._rng
        found: dict[Tested, assumptions.PValue] = {
            "normal": assumptions.normality(self.noise, level, rng),
            "independent": assumptions.independence(self.noise, level, rng),
        }
        if options.steps >= 2:
            rows: dict[str, list[FloatArray]] = {name: [] for name in places}
            for _ in range(options.steps):
                released = self.run(self.base, None, where=f"{self.where}, without a seed")
                check_finite(released, self.where)
                for name, values in released.items():
                    rows[name].append(as_floats(values[places[name]]))
            stacked = {name: np.stack(one) for name, one in rows.items()}
            found["steps"] = assumptions.freshness(self.noise, stacked, level, rng)
        self.p_values: dict[Tested, float] = {name: one.value for name, one in found.items()}
        could = assumptions.refuting({name: one.least for name, one in found.items()}, level)
        self.out_of_reach = [name for name in found if name not in could]

    def _along(self) -> float:
        """Return the limit of μ from the noise along the longest difference."""
        longest = self.longest
        if longest is None or not longest.length or not longest.factor:
            return 0.0
        if not self.noise.along.any():
            return math.inf
        moved = math.sqrt(sum(float(as_floats(w) @ as_floats(w)) for w in self.direction.values()))
        # Δ is as long as this at least, along w: μ ≥ ⟨w, Δ⟩ / (wᵀΣw)^½ by Cauchy and Schwarz
        return moved * longest.length / along_limit(self.noise.along, self.options.level)

    def result(self) -> DPStepAudit:
        """Return the audit."""
        options = self.options
        along = self._along()
        bounds = [self.limits.mu(one) for one in self.found]
        sizes = [len(pair.without) for pair in self.pairs]
        known = options.relation == "add_remove"
        pairs = tuple(
            self._of_pair(one, limit, comparable=known or size == len(self.base))
            for one, limit, size in zip(self.found, bounds, sizes, strict=True)
        )
        bound = max(along, *bounds)
        worst = self.found[int(np.argmax(bounds))]
        if along > max(bounds) and self.longest is not None:
            worst = self.longest
        claimed = options.claimed
        refuted = (
            *contradicted(pairs, bound, claimed),
            *assumptions.refuting(self.p_values, options.level),
        )
        return DPStepAudit(
            bound=bound,
            ceiling=max(bound, self._attained()),
            stated_noise_multiplier=options.noise_multiplier,
            relation=options.relation,
            worst=worst.name,
            along=along,
            pairs=pairs,
            tensors=tuple(
                TensorResult(
                    name=name,
                    size=size,
                    deviation=self.noise.deviation(name),
                    upper_deviation=self.limits.upper[name],
                    length=worst.lengths[name],
                )
                for name, size in self.run.sizes.items()
                if size
            ),
            p_values={name: float(p) for name, p in self.p_values.items()},
            refuted_by=refuted,
            runs=self.run.runs,
            confidence=options.confidence,
            options={
                "noise_multiplier": options.noise_multiplier,
                "relation": options.relation,
                "runs": options.runs,
                "steps": options.steps,
                "seed": options.seed,
            },
            warnings=tuple(self._warnings(pairs)),
            without_power=tuple(self.out_of_reach),
            assumptions=self._assumed(refuted),
            provenance=Provenance.of(options.seed),
        )

    def _length(self, one: Contribution) -> float:
        """Return the length of a difference in units of the noise; without noise infinite, or 0."""
        total = 0.0
        for name, length in one.lengths.items():
            deviation = self.noise.deviation(name) * (one.factor or math.inf)
            if length:
                total += (length / deviation) ** 2 if deviation else math.inf
        return math.sqrt(total)

    def _of_pair(self, one: Contribution, bound: float, *, comparable: bool) -> PairResult:
        """Return what is told of a pair."""
        return PairResult(
            name=one.name,
            bound=bound,
            length=max(self._length(one), bound),
            coupled=one.coupled,
            scale=one.scale,
            factor=one.factor,
            comparable=comparable,
            finite=one.finite,
        )

    def _attained(self) -> float:
        """Return the bound that the longest pair would have given at the length of the claim."""
        longest = self.longest
        if longest is None or not longest.length:
            return 0.0
        bound = self.limits.mu(longest)
        length = self._length(longest)
        if not bound or math.isinf(bound) or math.isinf(length):
            return 0.0
        return bound * self.options.claimed / length

    def _warnings(self, pairs: tuple[PairResult, ...]) -> list[str]:
        """Say what was not tested."""
        said = []
        if all(one.length < NEAR * self.options.claimed for one in pairs):
            said.append(
                "no pair came near the claim: candidates may not reach the clipping norm. Give "
                "examples with longer gradients, such as wrong labels or larger loss factors"
            )
        if "steps" not in self.p_values:
            said.append(
                "steps in a row were not run: noise that repeats from step to step is not tested "
                "(steps=6)"
            )
        if self.out_of_reach:
            said.append(
                f"tests by draws cannot refute at this confidence: {', '.join(self.out_of_reach)}. "
                "Set a lower confidence"
            )
        coarse = max(self.run.precision.values())
        if coarse > 1e-6:
            said.append(
                f"numbers are released with a relative precision of {coarse:.2g}: possible "
                "rounding error is subtracted from each difference, which lowers the bound"
            )
        return said

    def _assumed(self, refuted: Sequence[str]) -> tuple[Assumption, ...]:
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
        assumed = [
            Assumption(
                name="function of batch and seed",
                statement="With one seed a step gives one result, bit for bit, and leaves no state "
                "behind.",
                status="checked",
            )
        ]
        for key, name, statement in tested:
            status: Status = "unverifiable"
            if key in self.p_values or key == "coupling":
                status = "checked"
            if key in refuted:
                status = "contradicted"
            assumed.append(Assumption(name=name, statement=statement, status=status))
        return tuple(assumed)
