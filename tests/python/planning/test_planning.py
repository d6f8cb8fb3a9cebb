"""Plans agree with audits of games that are played, and with closed forms; they see no label."""

import json
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

import leakbound as lb
import leakbound._core as _core
from command_line import leakbound
from leakbound import planning, simulate, stats
from leakbound.errors import InputTypeError, OptionError
from leakbound.planning import forecast, truths

APPROX = lb.ApproxDP(delta=1e-5)
GDP = lb.GaussianDP()


def test_ceilings_are_those_of_closed_forms() -> None:
    p = 0.05 ** (1 / 40)
    assert planning.ceiling(100, 40, 0.95) == pytest.approx(math.log(p / (1 - p)))
    for one_sided, sides in ((False, "both"), (True, "member")):
        approx = planning.ceiling(1000, 40, 0.95, APPROX, sides=sides)  # type: ignore[arg-type]
        expected = stats.one_run_epsilon(40, 40, 1000, delta=1e-5, beta=0.05, one_sided=one_sided)
        assert approx == expected
    # the ceiling of Gaussian DP at m = 10,000 and p = .025, as printed in figures
    for guesses, mu in ((25, 0.49), (100, 0.92), (1000, 1.72)):
        assert planning.ceiling(10_000, guesses, 0.975, GDP) == pytest.approx(mu, abs=0.01)


@pytest.mark.parametrize(
    ("claim", "truth"),
    [
        (lb.PureDP(), planning.Response(2.0, fraction=0.3)),
        (APPROX, planning.Gaussian(1.0)),
        (GDP, planning.Gaussian(2.0)),
    ],
    ids=repr,
)
def test_power_is_that_of_audits(claim: truths.PlannedClaim, truth: truths.Truth) -> None:
    planned = planning.power(300, truth, target=1.0, claim=claim, simulations=200)

    def bound(seed: int) -> float:
        game = (
            simulate.gaussian(300, truth.mu, seed=seed)
            if isinstance(truth, planning.Gaussian)
            else simulate.randomized_response(
                300, truth.epsilon, fraction=truth.fraction, seed=seed
            )
        )
        return lb.audit(game.scores, lb.Coins(game.member), claim=claim).bound

    bounds = np.array([bound(seed) for seed in range(100)])
    spread = bounds.std() * math.sqrt(1 / 100 + 1 / 200)
    assert planned.mean == pytest.approx(bounds.mean(), abs=4 * spread + 1e-9)
    assert planned.probability == pytest.approx(np.mean(bounds >= 1.0), abs=0.16)
    assert planned.low <= planned.median <= planned.high <= planned.ceiling + 1e-12


def test_a_plan_does_not_depend_on_threads() -> None:
    threads = _core.threads()
    try:
        plans = []
        for count in (1, 3):
            _core.set_threads(count)
            plans.append(planning.power(200, 1.5, simulations=30, seed=5))
    finally:
        _core.set_threads(threads)
    assert plans[0] == plans[1]
    assert planning.power(200, 1.5, simulations=30, seed=6) != plans[0]


def test_simulated_games_have_their_law() -> None:
    gaussian = _core.play(1.2, fraction=None, examples=20_000, seed=1, first=0, count=1)[0]
    assert gaussian.auc == pytest.approx(scipy_stats.norm.cdf(1.2 / math.sqrt(2)), abs=0.015)
    assert gaussian.tied == 0
    response = _core.play(1.0, fraction=0.25, examples=20_000, seed=1, first=3, count=1)[0]
    guesses, correct = response.path("interleaved").count(5000)
    assert correct / guesses == pytest.approx(1 / (1 + math.exp(-1)), abs=0.03)
    alone = _core.play(1.0, fraction=0.25, examples=20_000, seed=1, first=2, count=2)[1]
    assert alone.auc == response.auc


def test_a_number_stands_for_the_truth_of_the_claim() -> None:
    def found(claim: truths.PlannedClaim) -> truths.Truth:
        return planning.power(20, 2.0, claim=claim, simulations=1).truth

    assert found(lb.PureDP()) == planning.Response(2.0)
    assert found(GDP) == planning.Gaussian(2.0)
    approx = found(APPROX)
    assert isinstance(approx, planning.Gaussian)
    assert simulate.gaussian(1, approx.mu, seed=0).epsilon(1e-5) == pytest.approx(2.0)


def test_canaries_needed_are_enough_and_not_many_more() -> None:
    needed = planning.canaries_needed(2.0, 3.0, simulations=150)
    assert needed.m is not None
    assert needed.power is not None
    assert needed.power.probability >= 0.8
    fewer = planning.power(int(0.8 * needed.m), 3.0, target=2.0, simulations=150)
    assert fewer.probability < 0.8
    more = planning.canaries_needed(2.0, 3.0, probability=0.95, simulations=150)
    assert more.m is not None
    assert more.m > needed.m
    assert planning.canaries_needed(0.01, 20.0, probability=0.1, simulations=20).m == 8


def test_targets_out_of_reach_are_known_without_a_simulation() -> None:
    beyond = planning.canaries_needed(2.5, 2.0, most=500)
    assert (beyond.m, beyond.power) == (None, None)
    assert "not below the assumed truth, 2" in beyond.reason
    assert planning.CanariesNeeded.from_json(beyond.to_json()) == beyond
    above = planning.canaries_needed(6.0, 8.0, most=300)
    assert (above.m, above.power) == (None, None)
    assert f"prove {planning.ceiling(300):.3f}"[:10] in above.reason
    rare = planning.canaries_needed(1.9, 2.0, most=64, simulations=20)
    assert rare.m is None
    assert rare.power is not None
    assert rare.power.m == 64
    # luck is not ruled out: a valid audit is above the truth in one run of twenty at most
    assert "truth" not in planning.canaries_needed(2.5, 2.0, probability=0.04, most=64).reason


@pytest.mark.parametrize(
    ("truth", "claim", "expected"),
    [
        (planning.Gaussian(1.5), lb.PureDP(), math.inf),
        (planning.Gaussian(1.5), GDP, 1.5),
        (planning.Gaussian(1.5), APPROX, simulate.gaussian(1, 1.5, seed=0).epsilon(1e-5)),
        (planning.Response(1.0, fraction=0.2), lb.PureDP(), 1.0),
        (planning.Response(1.0), lb.ApproxDP(delta=0.9), 0.0),
        (planning.Response(1.0), GDP, 2 * scipy_stats.norm.ppf(1 / (1 + math.exp(-1)))),
    ],
    ids=repr,
)
def test_the_truth_of_a_claim(
    truth: truths.Truth, claim: truths.PlannedClaim, expected: float
) -> None:
    def refused(target: float) -> bool:
        return bool(forecast.beyond_truth(target, truth, claim, chance=0.8, confidence=0.95))

    finite = math.isfinite(expected)
    assert refused(expected * 1.001 + 1e-6 if finite else 1e9) == finite
    assert not refused(expected * 0.999 - 1e-6 if finite else 1e9)


def test_planning_tells_what_the_default_does() -> None:
    for claim in (lb.PureDP(), APPROX, GDP):
        found = planning.power(400, 1.5, claim=claim, simulations=20)
        assert found.cuts == "OutsideIn(levels=None)"
        assert found.levels[0] <= found.guesses <= found.levels[-1]
        assert planning.ceiling(400, claim=claim) == found.ceiling
    game = simulate.gaussian(400, 1.5, seed=1)
    audited = lb.audit(game.scores, lb.Coins(game.member), claim=GDP)
    assert list(found.levels) == audited.options["outside_in"]["levels"]
    assert planning.power(400, 1.5, simulations=5, sides="both").levels == ()
    assert planning.power(400, 1.5, simulations=5, cuts=lb.Fixed(50)).levels == (50,)
    with pytest.raises(OptionError, match="give either guesses, or cuts"):
        planning.ceiling(400, 50, cuts=lb.KLScan())


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"m": 4}, OptionError, "m must be at least 8"),
        ({"truth": -1.0}, OptionError, "truth must be at least 0"),
        ({"truth": "3"}, InputTypeError, "truth must be a real number"),
        ({"target": -1.0}, OptionError, "target must be at least 0"),
        ({"claim": lb.LaplaceDP()}, InputTypeError, "claim must be one of"),
        ({"cuts": lb.KLScan(), "claim": GDP}, OptionError, "use OutsideIn, Fixed or UnionBound"),
        ({"cuts": lb.Fixed(101)}, OptionError, "101"),
    ],
)
def test_bad_options(options: dict[str, object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        planning.power(**{"m": 100, "truth": 2.0, "simulations": 1, **options})  # type: ignore[arg-type]


def test_the_command() -> None:
    few = ["--simulations", "20"]
    outside_in = ["plan", "--truth", "3", "--target", "2", "--cuts", "outside-in", *few]
    needed = leakbound(*outside_in)
    assert needed.code == 0, needed.err
    expected = planning.canaries_needed(2.0, 3.0, cuts=lb.OutsideIn(), simulations=20)
    assert needed.out.startswith(
        f"With {expected.m} canaries, an attack of strength ε = 3 proves ε ≥ 2.00, pure DP, in"
    )
    assert "leakbound coins scores.csv --claim eps=2 --cuts outside-in" in needed.out
    stored = leakbound(*outside_in, "--json").out
    assert planning.CanariesNeeded.from_json(stored) == expected
    table = leakbound("plan", "--truth", "1", "--claim", "mu=0.5", "-m", "900", *few)
    assert "With 900 canaries, an attack of strength μ = 1 proves μ ≥ 0.5" in table.out
    short = leakbound("plan", "--truth", "2", "--json", *few, "-m", "50")
    assert short.code == 3
    found = planning.CanariesNeeded.from_json(short.out)
    power = planning.power(50, 2.0, target=1.0, simulations=20)
    assert (found.m, found.power) == (None, power)
    assert (
        f"50 canaries prove 1.00 with probability only {100 * power.probability:g} %"
        in found.reason
    )
    for wrong, words in (
        (["--target", "2", "--claim", "eps=2"], "--claim already sets the target"),
        ([], "give the bound with --target or --claim"),
        (["--claim", "noise=1"], "'noise=1' must have the form eps=… or"),
    ):
        bad = leakbound("plan", *wrong)
        assert bad.code == 2
        assert words in bad.err


@pytest.mark.parametrize("asked", [["--target", "2"], ["--claim", "eps=2"]])
def test_the_command_needs_no_truth(asked: list[str]) -> None:
    """Four attacks, the perfect one first; the weaker, the more canaries."""
    few = ["--simulations", "50"]
    said = leakbound("plan", *asked, *few)
    assert said.code == 0
    assert "perfect" in said.out
    words = "an attack of strength ε = 4 (right 98.2 % of the time) proves ε ≥ 2.00, pure DP, in"
    assert words in said.out
    assert "Next: leakbound coins scores.csv --claim eps=2\n" in said.out
    listed = json.loads(leakbound("plan", *asked, *few, "--json").out)
    needed = [one["m"] for one in listed]
    assert len(needed) == 4
    assert needed == sorted(needed)
    assert planning.ceiling(needed[0]) >= 2 > planning.ceiling(20)
    short = leakbound("plan", *asked, "-m", "8", *few)
    assert short.code == 3
    assert "even a perfect attack on 8 canaries" in short.out


def test_pairs_of_a_random_split_are_planned_as_they_are_audited() -> None:
    """Within three standard errors of 30 audits of drawn splits at the same truth, and 0.05."""
    found = planning.power(150, 1.5, claim=GDP, sides="pairs", simulations=200, seed=3)
    rng, bounds = np.random.default_rng(4), []
    for seed in range(30):
        member = rng.permutation(600) < 450
        scores = rng.normal(size=600) + 1.5 / math.sqrt(2) * member
        result = lb.audit(scores, lb.RandomSplit(member), claim=GDP, seed=seed)
        bounds.append(result.bound)
    error = np.std(bounds) * math.sqrt(1 / 30 + 1 / 200)
    assert abs(np.mean(bounds) - found.mean) < 3 * error + 0.05
    assert 0.5 < found.median < found.ceiling < 2
    assert found.cuts == "OutsideIn(levels=None)"
    response = planning.power(400, planning.Response(2.0, fraction=0.5), sides="pairs")
    assert 0.5 < response.median < 2.0
    asked = ["plan", "--truth", "2", "-m", "100", "--sides", "pairs", "--simulations", "5"]
    answer = leakbound(*asked)
    assert answer.code == 0
    assert "leakbound split scores.csv" in answer.out
    assert "With 100 pairs" in answer.out


def test_the_number_of_canaries_alone_is_enough() -> None:
    """The target is then half of what a perfect attack proves."""
    few = ["--simulations", "20"]
    said = leakbound("plan", "-m", "100", *few)
    assert said.code == 0
    half = math.floor(50 * planning.ceiling(100)) / 100
    assert f"With 100 canaries, an attack of strength ε = {2 * half:g} (right" in said.out
    assert f"proves ε ≥ {half:.2f}, pure DP" in said.out
