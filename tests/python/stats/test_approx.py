"""(ε, δ) at one number of guesses: printed values, linear programmes, rounding and options."""

import itertools
import math
from typing import Any, Literal

import numpy as np
import pytest
from scipy import stats as scipy_stats

from leakbound import errors, stats
from programmes import best_count_law, best_mechanism

Bound = Literal["exact", "steinke", "coupling"]
BOUNDS: tuple[Bound, ...] = ("exact", "steinke", "coupling")
SIDES: tuple[Literal["both", "member"], ...] = ("both", "member")
PRINTED: list[tuple[int, int, int, float, float, float, float]] = [
    (50, 20, 17, 1.0, 1e-3, 0.176583, 0.191056),
    (100, 60, 45, 0.5, 1e-4, 0.026410, 0.027482),
    (1000, 80, 75, 1.5, 1e-5, 0.0020230, 0.003175),
    (200, 40, 40, 2.0, 1e-4, 0.0067347, 0.011573),
]


def test_printed_values() -> None:
    for m, guesses, correct, epsilon, delta, exact, published in PRINTED:
        for bound, printed in (("exact", exact), ("steinke", published)):
            how: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "bound": bound}
            value = stats.one_run_p_value(correct, guesses, m, **how)
            assert value == pytest.approx(printed, abs=6e-7)
    value = stats.one_run_p_value(12, 20, 60, epsilon=1, delta=1e-3, k=3)
    assert value == pytest.approx(0.515814, abs=6e-7)


CONFIGURATIONS = np.random.default_rng(20240229).integers(0, 2**31, size=50)


@pytest.mark.parametrize("seed", CONFIGURATIONS)
def test_the_closed_form_solves_the_programme_of_count_laws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, k = int(rng.integers(2, 60)), int(rng.integers(2, 5))
    guesses = int(rng.integers(1, min(m, 25) + 1))
    epsilon, delta = rng.uniform(0, 2.5), 10 ** rng.uniform(-5, -1.5)
    mean = guesses / (1 + (k - 1) * math.exp(-epsilon))
    correct = int(rng.integers(max(1, math.floor(mean)), guesses + 1))
    best, _ = best_count_law(guesses, correct, [epsilon], [m * delta], k=k)
    ours = stats.one_run_p_value(correct, guesses, m, epsilon=epsilon, delta=delta, k=k)
    assert ours == pytest.approx(best, abs=1e-7)


def most_probable(
    m: int, guesses: int, epsilon: float, delta: float, *, one_sided: bool
) -> list[float]:
    """Maximise P(W ≥ v), for v = 1 … r, over all (ε, δ)-DP mechanisms that output the guesses."""
    inputs = list(itertools.product((0, 1), repeat=m))
    outputs = [
        dict(zip(chosen, guess, strict=True))
        for chosen in itertools.combinations(range(m), guesses)
        for guess in itertools.product((1,) if one_sided else (0, 1), repeat=guesses)
    ]
    right = np.array([[sum(u[i] == g for i, g in out.items()) for out in outputs] for u in inputs])
    return [
        best_mechanism(inputs, (right >= correct) / len(inputs), [(epsilon, delta)])
        for correct in range(1, guesses + 1)
    ]


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.005), (0.0, 0.1), (2.0, 0.03), (0.5, 1e-4)])
@pytest.mark.parametrize(("m", "guesses"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
def test_no_mechanism_exceeds_the_bounds(
    m: int, guesses: int, epsilon: float, delta: float, sides: str
) -> None:
    one_sided = sides == "member"
    best = most_probable(m, guesses, epsilon, delta, one_sided=one_sided)
    for bound in BOUNDS:
        ours = [
            stats.one_run_p_value(
                v, guesses, m, epsilon=epsilon, delta=delta, bound=bound, one_sided=one_sided
            )
            for v in range(1, guesses + 1)
        ]
        assert all(a >= b - 1e-9 for a, b in zip(ours, best, strict=True)), bound


def test_the_published_theorem_would_be_false_above_one_half() -> None:
    """Its formula gives .98113 here, and a mechanism attains .98235; so it counts as 1."""
    assert most_probable(3, 3, 1.0, 0.005, one_sided=False)[0] > 0.98234
    assert stats.one_run_p_value(1, 3, 3, epsilon=1, delta=0.005, bound="steinke") == 1
    assert stats.one_run_epsilon(1, 3, 3, delta=0.005, beta=0.985, bound="steinke") == 0


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("counts", [(75, 80), (40, 40), (300, 400), (990, 1000)])
def test_bounds_on_epsilon_are_tight_and_verified(
    bound: Bound, sides: str, counts: tuple[int, int]
) -> None:
    one_sided = sides == "member"

    def p_value(epsilon: float) -> float:
        return stats.one_run_p_value(
            *counts, 1000, epsilon=epsilon, delta=1e-6, bound=bound, one_sided=one_sided
        )

    epsilon = stats.one_run_epsilon(
        *counts, 1000, delta=1e-6, beta=0.05, bound=bound, one_sided=one_sided
    )
    assert epsilon > 0
    assert p_value(epsilon) <= 0.05 < p_value(epsilon + 1e-9)


def test_without_failures_it_is_clopper_and_pearson() -> None:
    for correct, guesses in [(75, 80), (5, 5), (620, 1000)]:
        limit = stats.clopper_pearson(correct, guesses, beta=0.05)
        epsilon = stats.one_run_epsilon(correct, guesses, 10**4, delta=0, beta=0.05)
        assert epsilon == pytest.approx(math.log(limit / (1 - limit)), abs=1e-9)
        value = stats.one_run_p_value(correct, guesses, 10**4, epsilon=0.3, delta=0)
        tail = scipy_stats.binom.sf(correct - 1, guesses, 1 / (1 + math.exp(-0.3)))
        assert value == pytest.approx(tail, rel=1e-10)


def test_options_are_checked() -> None:
    good: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
    for arguments, options in [
        ((5, 4, 10), good),
        ((1, 0, 10), good),
        ((1, 2, 0), good),
        ((1, 2, 10), good | {"delta": 1.0}),
        ((1, 2, 10), good | {"epsilon": -1.0}),
        ((1, 2, 10), good | {"k": 1}),
        ((1, 2, 10), good | {"bound": "best"}),
    ]:
        with pytest.raises(errors.OptionError):
            stats.one_run_p_value(*arguments, **options)
    more: dict[str, Any]
    for more in ({"one_sided": True}, {"bound": "steinke"}, {"bound": "coupling"}):
        with pytest.raises(errors.OptionError, match="k=2"):
            stats.one_run_p_value(1, 2, 10, **good, k=3, **more)
    with pytest.raises(errors.InputTypeError, match="correct"):
        stats.one_run_p_value(1.5, 2, 10, **good)  # type: ignore[arg-type]


def test_forms_for_tampered_guesses() -> None:
    """Theorem 5.1 (1) of the Zero-Run paper, added up by hand, and the lower closed form."""
    p = 1 / (1 + np.exp(-0.5))
    pmf = scipy_stats.binom.pmf(np.arange(61), 60, p)
    below = pmf[44::-1]  # P(W' = v - 1), P(W' = v - 2), …
    i = np.arange(1, 46)
    how: Any = {"delta": 1e-4, "bound": "zero_run"}
    found = stats.one_run_p_value(45, 60, 100, epsilon=0.5, **how)
    expected = pmf[45:].sum() + 100 * 1e-4 / p * (below / i).sum()
    assert found == pytest.approx(expected, rel=1e-9)
    epsilon = stats.one_run_epsilon(45, 60, 100, beta=found, **how)
    assert epsilon == pytest.approx(0.5, abs=1e-8)
    assert stats.one_run_p_value(45, 60, 100, epsilon=0.5, delta=1e-4) < found


def test_large_games_neither_overflow_nor_vanish() -> None:
    assert stats.one_run_p_value(0, 10, 20, epsilon=1, delta=0.1) == 1
    assert stats.one_run_p_value(1, 10**6, 10**7, epsilon=5, delta=1e-9) == 1
    assert 0 < stats.one_run_p_value(10**6, 10**6, 10**7, epsilon=1, delta=0) < 1e-300
    # one failure in a hundred million mechanisms outweighs a million lucky guesses
    value = stats.one_run_p_value(10**6, 10**6, 10**7, epsilon=1, delta=1e-9)
    assert value == pytest.approx(1e-8, rel=1e-11)
    assert stats.one_run_epsilon(5 * 10**5, 10**6, 10**7, delta=1e-9, beta=0.05) == 0
