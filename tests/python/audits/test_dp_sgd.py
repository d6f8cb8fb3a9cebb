"""Audits of what a watched run with DP-SGD showed: scores, bounds, refusals."""

import itertools
import math
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import errors
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from leakbound.audits.dp_sgd.canaries import CanaryDesign, Observed, Recorder
from leakbound.audits.dp_sgd.sampling import audit_batch_sizes, possible_examples
from leakbound.results import Accounted, DPSGDAudit
from leakbound.testing import assert_not_refuted
from noisy_steps import EXAMPLES, play
from validity.suite import most_errors

KNOWN = (EXAMPLES, EXAMPLES)
ACCOUNTED = (4.7, 1e-5)
"""A little above what tests attain of 40 steps at rate 0.1 and noise multiplier 1."""
quick = partial(audit_dp_sgd, claim=lb.GaussianDP(), examples=KNOWN)


@cache
def correct() -> DPSGDAudit:
    return audit_dp_sgd(play(1), accounted=ACCOUNTED, examples=KNOWN)


def test_the_score_of_membership_is_the_log_likelihood_ratio() -> None:
    """Against densities of the two laws, multiplied step by step."""
    rate, values = 0.3, np.random.default_rng(0).normal(size=(4, 60))
    design = CanaryDesign.create(
        canaries=50, step_canaries=10, sampling_rate=rate, max_steps=4, seed=0
    )
    recorder, noise = Recorder(design, 0.7), [0.7, 0.7, 1.3, 2.0]
    for row, sigma in zip(values, noise, strict=True):
        recorder.included()
        recorder.record(row, sigma, 1)

    def density(x: Any, mean: float, sigma: float) -> Any:
        return np.exp(-0.5 * ((x - mean) / sigma) ** 2)

    ratio = np.ones(50)
    for row, sigma in zip(values[:, :50], noise, strict=True):
        within = (1 - rate) * density(row, 0, sigma) + rate * density(row, 1, sigma)
        ratio *= within / density(row, 0, sigma)
    np.testing.assert_allclose(recorder.observed().log_odds, np.log(ratio), rtol=1e-12)


def test_far_values_neither_overflow_nor_tie() -> None:
    design = CanaryDesign.create(
        canaries=3, step_canaries=2, sampling_rate=0.01, max_steps=1, seed=0
    )
    recorder = Recorder(design, 0.1)
    recorder.included()
    recorder.record(np.array([-1e6, 1e6, 2e6, 1e6, 0.0]), 0.1, 1)
    log_odds = recorder.observed().log_odds
    assert np.isfinite(log_odds).all()
    assert log_odds[0] == pytest.approx(np.log1p(-0.01))
    assert log_odds[1] < log_odds[2]


def test_no_draw_of_a_batch_depends_on_a_coin() -> None:
    """The sampling of members is the same whatever other coins say: they have own streams."""
    few, many = (
        CanaryDesign.create(canaries=40, step_canaries=size, sampling_rate=0.5, max_steps=6, seed=3)
        for size in (2, 90)
    )
    first, second = Recorder(few, 1.0), Recorder(many, 1.0)
    for _ in range(6):
        rows, others = first.included(), second.included()
        assert rows[rows < 40].tolist() == others[others < 40].tolist()
        first.record(np.zeros(few.size), 1.0, 1)
        second.record(np.zeros(many.size), 1.0, 1)


def test_a_correct_run_is_not_refuted_and_proves_part_of_what_is_accounted() -> None:
    audit = correct()
    assert audit.refuted_by == ()
    assert audit.verdict == "not refuted"
    assert audit.attainable is not None
    assert 0.5 < audit.epsilon() < audit.attainable < ACCOUNTED[0]
    assert 1.0 < audit.steps.bound < 2.0
    assert 0.2 < audit.steps.epsilon(1e-5) < audit.attainable
    assert audit.steps.rate_source == "lower limit"
    assert 0.08 < audit.steps.sampling_rate < 0.1


@pytest.mark.parametrize(
    ("run", "part"),
    [
        ({"noise": 0.3}, "steps"),
        ({"signal": 3.0}, "steps"),
        ({"repeated": True}, "steps"),
        ({"batch": lambda _: 20}, "sampling"),
        ({"batch": lambda rng: rng.binomial(EXAMPLES, 0.13)}, "sampling"),
        ({"batch": lambda rng: EXAMPLES + 1 if rng.random() < 0.1 else 20}, "sampling"),
    ],
)
def test_faults_are_refuted_by_the_audit_that_can_see_them(run: dict[str, Any], part: str) -> None:
    audit = quick(play(2, **run))
    assert part in audit.refuted_by
    assert audit.summary().headline.startswith("Refuted by the test")
    assert audit.verdict == "refuted"


def test_membership_alone_refutes_a_run_that_leaks_in_it_alone() -> None:
    """Canaries sampled in every step, though q is stated: steps and sizes are as they should be."""
    seen = play(3, canaries=2_000, noise=2.0, stated=2.0, steps=60)
    members = seen.design.member()
    more = np.random.default_rng(0).normal(size=2_000) + 6.0 * members
    assert quick(replace(seen, log_odds=more)).refuted_by == ("membership",)


def test_what_is_planned_is_planned_from_the_noise_before_training() -> None:
    """The noise of the first step may have been set by code that had seen its batch."""
    seen = play(3, noise=2.0, stated=2.0, steps=60)
    changed = seen.noise_multipliers.copy()
    changed[0] = 9.0
    first, second = (quick(one).steps for one in (seen, replace(seen, noise_multipliers=changed)))
    assert first.betting == second.betting
    assert first.game.guesses == second.game.guesses
    assert first.noise == second.noise


def test_half_of_the_noise_is_refuted_by_noise_and_by_coins() -> None:
    """As when noise is not multiplied by a clipping norm of 2."""
    for seed in range(2):
        audit = quick(play(seed, noise=0.4, stated=0.8, steps=100, step_canaries=400))
        assert "steps" in audit.refuted_by
        assert audit.steps.test == "noise"
        assert audit.steps.by_coins < 0.8


def test_the_epsilon_of_the_steps_is_that_of_its_noise_and_rate() -> None:
    steps = correct().steps
    family = lb.SubsampledGaussianDP(sampling_rate=steps.sampling_rate, steps=40)
    assert steps.epsilon(1e-5) == family.attained(1 / steps.bound, "both").epsilon(1e-5)


def test_bounds_of_steps_count_the_probability_of_error_once() -> None:
    """Shares of all tests and of the rate add up to what is stated."""
    audit = correct()
    tests = (audit.steps.game, audit.steps.betting, audit.steps.noise)
    spent = audit.options["rate_level"] + sum(1 - test.confidence for test in tests)
    assert spent == pytest.approx(0.05, rel=1e-9)
    assert audit.options["joint_level"] == pytest.approx(0.05 / 3)


def test_the_verdict_takes_a_third_of_the_probability_of_error() -> None:
    """What one audit refutes at 5 %, and not at 5/3 %, is no verdict on the run."""
    sets = (play(seed, canaries=60, step_canaries=30, steps=20) for seed in range(200))
    tested = ((seen, audit_batch_sizes(seen, KNOWN, 0.95)) for seen in sets)
    seen, sampling = next(pair for pair in tested if 0.05 / 3 < pair[1].p_value <= 0.05)
    audit = quick(seen)
    assert sampling.refutes
    assert audit.sampling == sampling
    assert audit.refuted_by == ()


def test_noise_that_varies_bounds_its_smallest_value_and_no_epsilon() -> None:
    audit = audit_dp_sgd(play(7, stated=lambda step: 1.0 if step < 20 else 2.0), examples=KNOWN)
    assert audit.steps.varies
    assert isinstance(audit.membership.claim, lb.ApproxDP)
    assert audit.steps.noise_multiplier == 1.0
    assert audit.refuted_by == ()
    assert audit.attainable is None
    with pytest.raises(errors.OptionError, match="no ε of the whole training"):
        audit.steps.epsilon(1e-5)


def test_coins_that_were_not_reached_are_in_the_game_and_not_guessed() -> None:
    short = play(8, stop=lambda _values, step: step == 19)
    assert short.steps == 20
    audit = quick(short)
    assert audit.steps.game.m == 40 * 100
    assert audit.steps.steps == 20
    assert audit.membership.m == 200
    assert "ended after 20 of the 40 steps" in audit.warnings[0]
    # Scores of coins not reached are 0: half of the reached ones are above, half below.
    assert audit.steps.game.guesses < 20 * 100 / 2
    # The family is that of the steps declared.
    declared = audit_dp_sgd(short, examples=KNOWN).membership.claim
    assert declared == lb.SubsampledGaussianDP(sampling_rate=0.1, steps=40)


def test_data_of_unknown_size_gives_the_size_that_suits_best() -> None:
    seen = play(0)
    exact = audit_batch_sizes(seen, KNOWN, 0.95)
    loose = audit_batch_sizes(seen, (EXAMPLES - 20, EXAMPLES + 20), 0.95)
    assert loose.p_mean >= exact.p_mean
    assert loose.p_variance >= exact.p_variance - 0.1  # of 1,999 draws each
    assert not loose.refutes


@pytest.mark.parametrize("examples", [KNOWN, possible_examples(EXAMPLES, 1.0)])
def test_batches_of_all_examples_never_vary(examples: tuple[int, int]) -> None:
    """Were there one example more, which ⌊N q⌋ all but leaves possible, they would."""
    seen = play(0, rate=1.0, steps=20, batch=lambda _: EXAMPLES)
    found = audit_batch_sizes(seen, examples, 0.95)
    assert found.p_value == 1.0
    assert found.variance == found.expected_variance == 0.0


def test_low_variances_are_judged_at_the_least_number_of_examples() -> None:
    """Sizes that vary as those of 20 examples at rate 0.9 are too much alike for 22."""
    tight = _resized(play(0, rate=0.9), np.random.default_rng(1).binomial(20, 0.9, 40).tolist())
    at = {n: audit_batch_sizes(tight, n, 0.95).p_variance for n in ((20, 20), (22, 22), (20, 22))}
    assert at[22, 22] < 0.05 < at[20, 22] == at[20, 20]
    wide = _resized(tight, [12, 22] * 20)
    assert audit_batch_sizes(wide, (20, 22), 0.95).p_variance == 2 / 2000


def test_a_rate_that_is_stated_twofold_has_no_limit_unless_the_examples_are_known() -> None:
    """A number of examples that is inferred from the rate says nothing of it."""
    run = partial(play, rate=0.1, batch=lambda rng: rng.binomial(EXAMPLES, 0.05))
    inferred = possible_examples(EXAMPLES * 0.05, 0.1)
    audit = quick(run(0), examples=inferred)
    assert audit.steps.rate_source == "stated"
    assert audit.steps.sampling_rate == 0.1
    assert "lower_rate" not in audit.to_json()
    assert audit.sampling.limits == ""
    for seed in range(4):
        assert audit_batch_sizes(run(seed), KNOWN, 0.95).p_value <= 0.05 / 3


def test_sizes_are_not_tested_without_the_number_of_examples() -> None:
    audit = audit_dp_sgd(play(0), claim=lb.GaussianDP())
    assert "number of training examples is not known" in audit.sampling.reason
    assert (audit.sampling.p_mean, audit.sampling.p_variance) == (1.0, 1.0)
    assert audit.steps.rate_source == "stated"
    assert audit.steps.sampling_rate == 0.1


def _accumulated(seen: Observed, passes: Any) -> Observed:
    """Return what was seen, with these rows of backward passes, one row for each step."""
    sizes = np.array(passes, dtype=np.int64)
    return replace(seen, batch_sizes=sizes.sum(axis=1), pass_sizes=sizes)


def _shuffled(examples: int, size: int, passes: int, steps: int) -> list[list[int]]:
    """Sizes of shuffled batches, the last of each epoch smaller, so many of them in a step."""
    full, rest = divmod(examples, size)
    epoch = [size] * full + [rest] * (rest > 0)
    every = itertools.islice(itertools.cycle(epoch), passes * steps)
    return np.reshape(list(every), (steps, passes)).tolist()


SHUFFLED = {
    # the stated rate, and rows of the passes of each step; there are 200 examples
    "at the rate of a step": (0.2, _shuffled(200, 10, 4, 25)),
    "at the rate of a batch": (0.05, _shuffled(200, 10, 4, 25)),
    "far from the rate": (0.001, _shuffled(200, 40, 5, 20)),
    "the last of an epoch is smaller": (0.24, _shuffled(200, 12, 4, 25)),
    "as many generated ones": (0.1, [[20, 20]] * 25),
    "as many generated ones, rate of both": (0.2, [[20, 20]] * 25),
    "passes vary, and steps do not": (0.1, [[20 - n % 9, n % 9] for n in range(40)]),
    "steps vary too much": (0.2, [[10 + 15 * (n % 2)] * 2 for n in range(40)]),
}


@pytest.mark.parametrize("how", SHUFFLED)
def test_accumulated_batches_that_are_no_poisson_sample_are_refuted(how: str) -> None:
    """Whether N is known, or inferred from the batch of one pass that an optimizer expects."""
    rate, passes = SHUFFLED[how]
    seen = _accumulated(play(0, rate=rate, steps=len(passes)), passes)
    for examples in (KNOWN, possible_examples(passes[0][0], rate)):
        found = audit_batch_sizes(seen, examples, 0.95)
        assert found.p_value <= 0.05 / 3


def test_accumulated_batches_of_a_fixed_size_lead_the_page_and_pass_no_gate() -> None:
    rate, passes = SHUFFLED["at the rate of a step"]
    audit = quick(_accumulated(play(0, rate=rate, steps=len(passes)), passes))
    assert audit.refuted_by == ("sampling",)
    assert audit.warnings[0].startswith("batches are not Poisson samples")
    assert str(audit.summary()).startswith("Refuted by the test of sampling")
    with pytest.raises(AssertionError, match="Refuted by the test of sampling"):
        assert_not_refuted(audit, strict=True)


def test_batches_of_a_fixed_size_are_refuted_though_their_variance_is_right() -> None:
    """Sizes vary as those of Poisson samples do, as the last of each epoch is far smaller."""
    seen = _resized(play(0, rate=0.1, steps=66), ([22] * 10 + [8]) * 6)
    found = audit_batch_sizes(seen, KNOWN, 0.95)
    assert min(found.p_variance, found.p_mean) > 0.05
    assert found.refutes
    assert found.refuted("distinct")
    assert "too few sizes are distinct" in quick(seen).summary().paragraphs[2]


def test_a_poisson_sample_that_is_split_over_passes_is_one() -> None:
    seen = play(0)
    half = seen.batch_sizes // 2
    audit = quick(_accumulated(seen, np.stack([half, seen.batch_sizes - half], axis=1)))
    assert audit.sampling == quick(seen).sampling
    assert audit.warnings == ()
    assert audit.steps.rate_source == "lower limit"


@pytest.mark.parametrize("others", ["as many", "twenty"])
def test_a_poisson_sample_in_one_of_two_passes_is_not_refuted_and_named(others: str) -> None:
    """The rows of the other pass may be generated, as in a GAN, or the same examples once more."""
    seen = play(0)
    generated = seen.batch_sizes if others == "as many" else np.full(seen.steps, 20)
    audit = quick(_accumulated(seen, np.stack([generated, seen.batch_sizes], axis=1)))
    assert audit.refuted_by == ()
    assert (audit.sampling.p_value, audit.steps.rate_source) == (1.0, "stated")
    assert "batch sizes were not tested: a step accumulates up to 2 backward" in audit.warnings[0]
    with pytest.raises(AssertionError, match="But strict=True found: batch sizes were not tested"):
        assert_not_refuted(audit, strict=True)


def split_by_hand(sizes: Any, rng: np.random.Generator) -> Any:
    first = rng.binomial(sizes, 0.5)
    return np.stack([first, sizes - first], axis=1)


def beside_generated(sizes: Any, _: np.random.Generator) -> Any:
    return np.stack([sizes, sizes, np.full(sizes.size, 12)], axis=1)


INFERRED = possible_examples(20, 0.1)


@pytest.mark.parametrize(
    ("passes", "examples"),
    [
        (None, KNOWN),
        (split_by_hand, KNOWN),
        (beside_generated, KNOWN),
        (None, INFERRED),
        pytest.param(split_by_hand, INFERRED, marks=pytest.mark.validity),
        pytest.param(beside_generated, INFERRED, marks=pytest.mark.validity),
    ],
)
def test_poisson_samples_are_refuted_no_more_often_than_stated(
    passes: Any, examples: tuple[int, int]
) -> None:
    """At 80 %, 80 games of each of six."""
    seen, rng, level = play(0, steps=20), np.random.default_rng(5), 0.2

    def refuted(seed: int) -> bool:
        sizes = rng.binomial(EXAMPLES, 0.1, size=20)
        drawn = replace(
            seen, design=replace(seen.design, seed=seed), batch_sizes=sizes.astype(np.int64)
        )
        if passes is not None:
            drawn = _accumulated(drawn, passes(sizes, rng))
        return audit_batch_sizes(drawn, examples, 1 - level).refutes

    assert sum(refuted(seed) for seed in range(80)) <= most_errors(80, level, 6)


def _resized(seen: Observed, sizes: list[int]) -> Observed:
    return replace(seen, batch_sizes=np.array(sizes, dtype=np.int64))


def test_an_accountant_below_what_tests_attain_is_wrong() -> None:
    low = audit_dp_sgd(play(1), accounted=(1.0, 1e-5), claim=lb.GaussianDP(), examples=KNOWN)
    assert low.refuted_by == ("accounting",)
    assert low.attainable is not None
    assert low.attainable > 1.5
    assert "a test of the stated mechanism attains" in low.summary().paragraphs[-1]


def test_an_accountant_told_of_another_run_is_named() -> None:
    accounted = Accounted(
        epsilon=9.0, delta=1e-5, sampling_rate=0.05, steps=41, noise_multiplier=1.5
    )
    said = " ".join(quick(play(1), accounted=accounted).warnings)
    assert "accountant's sampling rate is 0.05, and watched at 0.1" in said
    assert "accountant's number of steps is 41, and taken were 40" in said
    assert "accountant's noise multiplier is 1.5, and the optimizer had 1" in said
    agreeing = Accounted(epsilon=9.0, delta=1e-5, sampling_rate=0.1, steps=40, noise_multiplier=1.0)
    assert quick(play(1), accounted=agreeing).warnings == ()


def test_a_claim_about_another_delta_than_the_accountants_is_refused() -> None:
    with pytest.raises(errors.OptionError, match=r"δ = 0.001, .* δ = 1e-05"):
        audit_dp_sgd(play(1), accounted=(3.0, 1e-5), claim=lb.ApproxDP(delta=1e-3))
    same = audit_dp_sgd(play(1), accounted=ACCOUNTED, claim=lb.ApproxDP(delta=1e-5))
    assert same.delta == 1e-5


def test_a_pure_claim_is_about_the_run_and_steps_are_said_at_a_delta() -> None:
    result = audit_dp_sgd(play(1), claim=lb.PureDP())
    said = str(result.summary())
    assert result.epsilon() == result.membership.bound > 0
    assert result.delta == 0
    assert "at δ = 0" in said
    metrics = {one.name for one in result.summary().metrics}
    assert {"ε from membership at δ = 0", "ε from steps at δ = 1e-05"} <= metrics
    with pytest.raises(errors.OptionError, match="the accountant's ε about δ = 1e-05"):
        audit_dp_sgd(play(1), claim=lb.PureDP(), accounted=ACCOUNTED)


@pytest.mark.parametrize(
    ("accounted", "error"),
    [
        (8.0, errors.InputTypeError),
        ((8.0, 0.0), errors.OptionError),
        ((math.nan, 1e-5), errors.OptionError),
        (("8", 1e-5), errors.InputTypeError),
    ],
)
def test_what_is_accounted_is_an_epsilon_and_a_delta(
    accounted: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        quick(play(1), accounted=accounted)


@pytest.mark.parametrize("rate", [0.0, 20.0, math.nan])
def test_the_accountants_rate_is_a_probability(rate: float) -> None:
    with pytest.raises(errors.OptionError, match=r"at most 1, got .* divide the mean size"):
        Accounted(epsilon=1.0, delta=1e-5, sampling_rate=rate)


def test_a_run_without_steps_has_no_audit() -> None:
    nothing = Recorder(play(1).design, 1.0).observed()
    with pytest.raises(errors.AbstentionError, match="no step was watched"):
        quick(nothing)
