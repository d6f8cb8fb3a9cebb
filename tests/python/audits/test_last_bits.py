"""Last bits of a profile move no bound of DP-SGD: machines round Fourier transforms differently."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
import leakbound._core as _core
from games import Floats
from leakbound.claims import dp_sgd
from oracle_calls import CLAIMS, SEED, scored
from programmes import best_joint_law

SIZE = 1e-16
LEVEL = 0.05
Pattern = Callable[[Floats, np.random.Generator], Any]
PATTERNS: dict[str, Pattern] = {
    "normal": lambda delta, rng: SIZE * rng.normal(size=delta.size),
    "uniform": lambda delta, rng: SIZE * rng.uniform(-1, 1, size=delta.size),
    "always more": lambda delta, _: np.full(delta.size, SIZE),
    "up and down": lambda delta, _: SIZE * (-1.0) ** np.arange(delta.size),
    "one point": lambda delta, _: np.where(np.arange(delta.size) == delta.size // 2, SIZE, 0.0),
    "relative": lambda delta, rng: SIZE * delta * rng.normal(size=delta.size),
    "coarse": lambda delta, _: np.round(delta * 2**52) / 2**52 - delta,
    "a transform's": lambda delta, rng: 100 * SIZE * rng.normal(size=delta.size),
}


def audited(claim: str, steps: int = 0, cuts: Any = None, data: str = "few") -> Any:
    """Audit a small game under DP-SGD, or under the claim at rate 1 and so many steps."""
    asked = lb.SubsampledGaussianDP(sampling_rate=1.0, steps=steps) if steps else CLAIMS[claim]
    scores, member = scored(data)
    return flat.coins(scores, member, claim=asked, cuts=cuts, sides="both", seed=SEED)


def planted(pattern: Pattern, seed: int) -> Callable[..., lb.TradeOff]:
    """Return what computes curves with noise in the last bits, other noise at every call."""
    exact, rng = dp_sgd.subsampled_gaussian, np.random.default_rng(seed)

    def noisy(noise: float, **given: Any) -> lb.TradeOff:
        known = exact(noise, **given).parameters
        epsilon = known["epsilon"]
        delta = known["delta"] + pattern(known["delta"], rng)
        possible = np.clip(delta, np.maximum(0.0, -np.expm1(epsilon)), 1.0)
        return lb.TradeOff.profile(epsilon, possible)

    return noisy


@pytest.mark.parametrize(
    ("claim", "cuts"),
    [
        ("dp-sgd", None),
        ("dp-sgd-whole", lb.Fixed(8)),
        ("dp-sgd-whole", lb.UnionBound(grid=[4, 8])),
        pytest.param("dp-sgd-whole", None, marks=pytest.mark.validity),
        pytest.param("dp-sgd", lb.Fixed(8), marks=pytest.mark.validity),
        pytest.param("dp-sgd", lb.UnionBound(grid=[4, 8]), marks=pytest.mark.validity),
    ],
    ids=repr,
)
def test_noise_in_last_bits_moves_no_bound(
    claim: str, cuts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches for certificates went where last bits led them: σ was 3.8906, or 3.9017."""
    exact = audited(claim, cuts=cuts).bound
    found: dict[str, float] = {}
    for name, pattern in PATTERNS.items():
        for seed in range(2 if "rng" in pattern.__code__.co_varnames else 1):
            with monkeypatch.context() as patch:
                patch.setattr(dp_sgd, "subsampled_gaussian", planted(pattern, seed))
                found[f"{name} {seed}"] = audited(claim, cuts=cuts).bound
    assert found == dict.fromkeys(found, exact)


@pytest.mark.parametrize(
    "steps", [5, *(pytest.param(steps, marks=pytest.mark.validity) for steps in (1, 2))]
)
def test_without_sampling_the_bound_is_the_best_of_a_linear_programme(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T steps at rate 1 are √T/σ-Gaussian DP: its closed form is put to all laws of the counts.

    At the bound no law reaches the count with a probability above the level, and at hardly more
    noise one does.
    """
    tested: list[Any] = []
    made = _core.JointCertificate

    def recorded(levels: Any, curve: Any) -> Any:
        tested.append(levels)
        return made(levels, curve)

    monkeypatch.setattr(_core, "JointCertificate", recorded)
    result = audited("", steps=steps, cuts=lb.OutsideIn())
    levels = [(one["guesses"], one["correct"]) for one in tested[0]]
    slopes = np.linspace(-1.5, 3.0, 61)

    def most(inverse_noise: float) -> float:
        exact = lb.TradeOff.gaussian(np.sqrt(steps) * inverse_noise)
        return best_joint_law(levels, slopes, 12 * np.asarray(exact.delta(slopes)))

    assert result.bound > 0
    assert most(result.bound) <= LEVEL < most(1.005 * result.bound)


def test_without_sampling_the_bound_is_that_of_gaussian_dp() -> None:
    scores, member = scored("perfect")
    exact = flat.coins(scores, member, claim=lb.GaussianDP(), sides="both", seed=SEED)
    found = audited("", steps=3, data="perfect")
    assert found.bound * np.sqrt(3) == pytest.approx(exact.bound, rel=2e-3)
