"""Zero-Run corrections as pure functions: reference values, and that matching makes fair coins."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

import leakbound as lb
from leakbound import errors, stats
from leakbound.stats.distribution_shift import surviving_guesses

DATASETS = ["dataset_A_tiny", "dataset_B_mid", "dataset_D_iid"]


@pytest.fixture
def cases(golden: Path) -> dict[str, Any]:
    stored = json.loads((golden / "zero_run.json").read_text(encoding="utf-8"))
    return {case["name"]: case for case in stored["cases"]}


class Data:
    """The arrays of a stored case, drawn again from its formula."""

    def __init__(self, case: dict[str, Any]) -> None:
        given, self.expected = case["input"], case["output"]
        self.r, self.p, m = given["r"], given["p"], given["m"]
        rng = np.random.default_rng(given["seed"])
        self.S = np.where(rng.random(m) < 0.5, 1, -1)
        x = self.S * given["D"] / 2 + rng.standard_normal(m)
        self.odds = given["D"] * x
        self.Y = (self.S + 1) / 2 + rng.standard_normal(m) / given["mu"]
        self.U, self.V = rng.random(m), rng.random(m)
        assert self.U.sum() == pytest.approx(given["checksum"]["sumU"], rel=1e-12)
        assert self.odds.sum() == pytest.approx(given["checksum"]["sum_lam"], rel=1e-12, abs=1e-12)
        self.T = top(self.Y, self.r)

    def counts(self, made: np.ndarray) -> int:
        return int((made == self.S).sum())


def tamper(made: Any, odds: Any, uniforms: Any, **options: Any) -> np.ndarray:
    """Drop guesses that shift makes likely."""
    stands = uniforms < stats.tamper_probability(made, odds, **options)
    return np.where(stands, made, 0)


def top(scores: np.ndarray, r: int) -> np.ndarray:
    order = np.argsort(-scores, kind="stable")
    guesses = np.zeros(scores.size, dtype=int)
    guesses[order[: (r + 1) // 2]] = 1
    guesses[order[scores.size - r // 2 :]] = -1
    return guesses


@pytest.fixture(params=DATASETS)
def data(request: pytest.FixtureRequest, cases: dict[str, Any]) -> Data:
    return Data(cases[request.param])


def test_the_guesses_are_those_of_the_file(data: Data) -> None:
    listed = data.expected["T_nonzero_index"]
    chosen = np.flatnonzero(data.T)[: len(listed)]
    assert chosen.tolist() == listed
    assert data.T[chosen].tolist() == data.expected["T_values"]
    assert data.counts(data.T) == data.expected["c_raw"]


@pytest.mark.parametrize(("variant", "name"), [("paper", "paper"), ("directional", "dir")])
def test_tampered_counts(data: Data, variant: Any, name: str) -> None:
    left = tamper(data.T, data.odds, data.U, variant=variant)
    assert data.counts(left) == data.expected["c_tampered"][name]
    kept = stats.tamper_probability(data.T, data.odds, variant=variant)
    right = kept[(data.T == data.S)].sum()
    assert right == pytest.approx(data.expected["b_sums_over_correct"][name], rel=1e-12)


def test_tampering_at_epsilon_zero_refutes_a_propensity_model(data: Data) -> None:
    left = tamper(data.T, data.odds, data.U, variant="paper", epsilon=0.0)
    p = stats.binomial_tail(data.counts(left), data.r, 0.5)
    assert p == pytest.approx(data.expected["falsify_p"]["tampered_eps0"], rel=1e-9)


@pytest.mark.parametrize(
    ("variant", "name"),
    [("paper", "C1_tampered_sym_coupled"), ("directional", "C1_tampered_dir_coupled")],
)
def test_the_least_epsilon_that_tampered_counts_do_not_refute(
    data: Data, variant: Any, name: str
) -> None:
    def refuted(epsilon: float) -> float:
        left = tamper(data.T, data.odds, data.U, variant=variant, epsilon=epsilon)
        p = stats.clopper_pearson(data.counts(left), data.r, beta=data.p)
        return max(0.0, math.log(p / (1 - p)) if p > 0 else 0.0)

    epsilon = 0.0
    while (further := refuted(epsilon)) > epsilon:
        epsilon = further
    assert epsilon == pytest.approx(data.expected["eps_lb"][name], rel=1e-9)


def test_residual_scores(data: Data) -> None:
    found = stats.residual_scores(data.Y, data.odds)
    assert found[:5] == pytest.approx(data.expected["resid_llr_first5"], rel=1e-9)
    # two scores a unit of e apart differ by 1/s² once their common line is taken out
    shifted = stats.residual_scores(7 * data.odds - 3 + data.Y, data.odds)
    assert shifted == pytest.approx(found, rel=1e-6, abs=1e-6)


def test_matching(data: Data) -> None:
    kept = stats.match(data.S, data.odds, data.V)
    assert kept.sum() == data.expected["match"]["kept"]
    assert np.flatnonzero(kept).sum() == data.expected["match"]["kept_index_sum"]
    right = (top(data.Y[kept], data.r) == data.S[kept]).sum()
    assert right == data.expected["match"]["c"]


odds = st.floats(-8, 8)


@given(odds)
def test_a_kept_example_is_a_fair_coin(value: float) -> None:
    """π times the share of members kept is 1 - π times that of non-members, to the last bit."""
    u = (np.arange(4000) + 0.5) / 4000
    member = stats.match(np.ones(4000), np.full(4000, value), u).mean()
    other = stats.match(np.zeros(4000), np.full(4000, value), u).mean()
    share = 1 / (1 + math.exp(-value))
    assert share * member == pytest.approx((1 - share) * other, abs=1 / 4000)


@given(odds, st.sampled_from([-1, 1]), st.floats(0, 5))
def test_a_tampered_guess_is_right_no_more_often_than_the_claim_allows(
    value: float, guess: int, epsilon: float
) -> None:
    likely = 1 / (1 + math.exp(-epsilon - guess * value))
    for variant in ("directional", "paper"):
        b = stats.tamper_probability([guess], [value], variant=variant, epsilon=epsilon)[0]
        assert 0 <= b <= 1
        assert b * likely <= 1 / (1 + math.exp(-epsilon)) + 1e-12
    share = 1 / (1 + math.exp(-guess * value))
    b = stats.tamper_probability([guess], [value])[0]
    assert b == pytest.approx(min(1.0, 1 / (2 * share)), rel=1e-12)


def test_infinite_scores_stay_infinite() -> None:
    found = stats.residual_scores([math.inf, 0.0, 1.0, 2.5, -math.inf], [0.0, -1.0, 0.0, 1.0, 0.5])
    assert found[0] == math.inf
    assert found[4] == -math.inf
    assert np.isfinite(found[1:4]).all()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: stats.match([1, 0], [0.0], [0.1]), errors.InputError, "member has 2"),
        (lambda: stats.match([1, 2], [0.0] * 2, [0.1] * 2), errors.InputError, "row 1"),
        (lambda: stats.match([1], [math.nan], [0.1]), errors.OptionError, "log_odds .* index 0"),
        (lambda: stats.match([1], [0.0], [1.5]), errors.OptionError, "uniforms .* index 0"),
        (lambda: stats.tamper_probability([2], [0.0]), errors.OptionError, "guesses .* index 0"),
        (lambda: tamper([1], [0.0], 0.1, variant="other"), errors.OptionError, "variant"),
        (lambda: tamper([1], [0.0], 0.1, epsilon=-1.0), errors.OptionError, "epsilon"),
        (lambda: stats.residual_scores([1.0], [math.inf]), errors.OptionError, "log_odds"),
        (lambda: stats.residual_scores([math.inf], [1.0]), errors.AbstentionError, "finite"),
        (lambda: stats.residual_scores([1.0], [1.0], prior=1.0), errors.OptionError, "prior"),
    ],
)
def test_bad_input_is_named(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_surviving_guesses(data: Data) -> None:
    right = stats.tamper_probability(data.T, data.odds)[data.T == data.S]
    found = surviving_guesses(right, 0.5)
    assert found == data.expected["derandomised_count_alpha_.5_.9_dir"][0]
    tail = stats.poisson_binomial_tail(np.arange(right.size + 1), right)
    assert found == np.flatnonzero(tail >= 0.5).max()
    assert surviving_guesses(right, 0.01) == np.flatnonzero(tail >= 0.01).max()
    assert surviving_guesses(np.empty(0), 0.5) == 0


def test_gaussian_bounds(data: Data) -> None:
    gaussian, m = lb.GaussianDP(), data.Y.size
    expected = data.expected["gdp_lb"]
    variants = {"paper": "paper", "dir": "directional"}
    counts = {
        name: data.counts(tamper(data.T, data.odds, data.U, variant=variant))
        for name, variant in variants.items()
    }
    for name, c in {"one_run": data.counts(data.T), **counts}.items():
        found = stats.fdp_lower_bound(c, data.r, m, claim=gaussian, tau=data.p, test="recursion")
        assert found == pytest.approx(expected[name], rel=1e-8, abs=1e-9)
    matched = data.expected["match"]
    found = stats.fdp_lower_bound(
        matched["c"], matched["r"], matched["kept"], claim=gaussian, tau=data.p, test="recursion"
    )
    assert found == pytest.approx(matched["mu_lb"], rel=1e-8)


def test_composition(data: Data) -> None:
    expected, c = data.expected["composition"], data.expected["c_raw"]
    worst, m = float(np.abs(data.odds).max()), data.Y.size
    assert worst == pytest.approx(expected["eps_ds_sup"], rel=1e-12, abs=1e-12)
    assert stats.shift_mu(worst) == pytest.approx(expected["mu_ds"], rel=1e-9, abs=1e-12)

    def composed(claim: Any, **shift: Any) -> float:
        return stats.composition_bound(c, data.r, m, claim=claim, tau=data.p, **shift)

    gaussian = lb.GaussianDP()
    assert composed(lb.PureDP(), epsilon_ds=worst) == pytest.approx(expected["eps_lb"], rel=1e-9)
    assert composed(gaussian, epsilon_ds=worst) == pytest.approx(expected["mu_lb"], rel=1e-8)
    assert composed(gaussian, mu_ds=0.2) == pytest.approx(
        expected["mu_lb_with_mu_ds_0.2"], rel=1e-8
    )


def test_poisson_binomial_bounds(data: Data) -> None:
    made = data.T != 0
    correct = data.expected["c_raw"]
    signed, absolute = (data.T * data.odds)[made], np.abs(data.odds[made])
    for name, offsets in {"dir": signed, "sym": absolute}.items():
        epsilon = stats.poisson_binomial_epsilon(correct, offsets, beta=data.p)
        assert epsilon == pytest.approx(data.expected["eps_lb"][f"D1_poibin_{name}"], rel=1e-8)
        p = stats.poisson_binomial_tail_offsets(correct, offsets, 0.0)
        assert p == pytest.approx(data.expected["poibin_tail_at_c_eps0"][name], rel=1e-9)


def test_algorithm_8_as_printed_would_claim_leakage_of_nothing(cases: dict[str, Any]) -> None:
    """A trivial model, and features that give each example away with probability δ_DS.

    Among m examples that is nearly always enough for r correct guesses, and Proposition 6 allows
    for an error of p + δ_DS.
    """
    given, expected = (
        cases["prop6_counterexample"]["input"],
        cases["prop6_counterexample"]["output"],
    )
    c, r, m = given["c"], given["r"], given["m"]
    enough = scipy_stats.binom.sf(r - 1, m, given["delta_ds"])
    assert enough > 0.99999 > given["p"] + given["delta_ds"]
    printed = stats.fdp_lower_bound(
        c, r, m, claim=lb.GaussianDP(), tau=given["p"], test="recursion"
    )
    assert printed == pytest.approx(expected["alg8_as_printed_mu_lb"], rel=1e-8)
    valid = stats.composition_bound(
        c, r, m, claim=lb.GaussianDP(), mu_ds=0.0, delta_ds=given["delta_ds"], tau=given["p"]
    )
    assert valid == expected["alg7_mu_lb"] == 0.0


def test_the_options_of_composition() -> None:
    with pytest.raises(errors.OptionError, match="either epsilon_ds or mu_ds"):
        stats.composition_bound(5, 9, 9, claim=lb.PureDP())
    with pytest.raises(errors.OptionError, match="mu_ds is for Gaussian"):
        stats.composition_bound(5, 9, 9, claim=lb.PureDP(), mu_ds=1.0)
    for delta in (0.0, 1e-5):
        claim = lb.ApproxDP(delta=delta) if delta else lb.PureDP()
        found = stats.composition_bound(95, 100, 1000, claim=claim, epsilon_ds=0.5, delta_ds=1e-4)
        exact = stats.one_run_epsilon(95, 100, 1000, delta=1 - (1 - delta) * (1 - 1e-4), beta=0.05)
        assert found == pytest.approx(exact - 0.5)


def test_certain_examples_are_matched_away_or_kept() -> None:
    assert stats.match([1, 0], [math.inf, math.inf], [0.5, 0.5]).tolist() == [False, True]
    assert stats.tamper_probability([1, 0, -1], [math.inf] * 3).tolist() == [0.5, 1.0, 1.0]
