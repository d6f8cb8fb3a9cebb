"""Streams of independent trials: bets pay at most their fee, and optional stopping breaks none."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import leakbound as lb
from leakbound import claims, errors
from leakbound._base.types import PathOrder
from leakbound.audits.policies.trials import pooled
from leakbound.audits.sequences import GuessSequence
from leakbound.audits.trials import Bets, terms_of_bets
from leakbound.claims.tradeoff import TradeOff

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def told(share: float) -> TradeOff:
    """The curve of a mechanism that tells of a share of members, and of no others."""
    return TradeOff.table([0, 1], [1 - share, 0])


def others_told(share: float) -> TradeOff:
    """The mirror image: of a share of others, and of no members."""
    return TradeOff.table([0, 1 - share, 1], [1, 0, 0]) if share else TradeOff.gaussian(0)


TOLD = claims.TradeOffFamily(parameter="share", tradeoff=told, bracket=(0.0, 0.9))
OTHERS = claims.TradeOffFamily(parameter="share", tradeoff=others_told, bracket=(0.0, 0.9))
CLAIMS: dict[str, tuple[claims.Claim, float]] = {
    "gaussian": (lb.GaussianDP(), 1.0),
    "laplace": (lb.LaplaceDP(), 2.0),
    "approximate": (lb.ApproxDP(delta=0.02), 1.0),
    "told": (TOLD, 0.3),
    "others told": (OTHERS, 0.3),
    "failures": (lb.ApproxDP(delta=0.02), 0.0),
}


@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("order", ["interleaved", "member"])
def test_no_guess_about_a_worst_trial_wins_more_than_its_fee(name: str, order: PathOrder) -> None:
    """A trial is a member's with probability p, and whoever guesses knows p."""
    claim, theta = CLAIMS[name]
    shares = (0.7, 0.5, 0.2, 0.05)
    bets = Bets(claim, tuple(GuessSequence(order, share) for share in shares), 0.05)
    law = pooled(claim.curve(theta, "member"))
    share = law.share
    p = (np.diff(law.mass) / np.diff(share))[:, None, None]
    for place in (0, bets.interval_of(theta), bets.interval_of(theta) + 20):
        terms = terms_of_bets(bets, place)
        right, wrong = np.exp(terms.log_payoff_correct), np.exp(terms.log_payoff_wrong)
        best = np.maximum(1, right * p + wrong * (1 - p))
        if order == "interleaved":
            best = np.maximum(best, right * (1 - p) + wrong * p)
        wins = np.log(np.tensordot(np.diff(share), best, 1))
        # Where nothing was guessed, bets have lost their fees; curves are rounded to lines here
        fees = -bets.log_wealth(theta, 1, np.zeros((2, len(shares)), dtype=np.int64), place)
        assert (fees >= wins - 2e-5).all()
        if "told" not in name:  # curves that are their own mirror images: and no more than that
            assert fees == pytest.approx(wins, abs=1e-3)


def gaussian(rng: np.random.Generator, member: np.ndarray) -> np.ndarray:
    scores: np.ndarray = rng.normal(size=member.size) + member
    return scores


def failures(rng: np.random.Generator, member: np.ndarray) -> np.ndarray:
    """All is told with probability 0.02, and nothing else: most batches are tied."""
    scores: np.ndarray = np.where(rng.random(member.size) < 0.02, 2 * member - 1, 0)
    return scores


def coarse(rng: np.random.Generator, member: np.ndarray) -> np.ndarray:
    scores: np.ndarray = np.round(gaussian(rng, member))
    return scores


def laplace(rng: np.random.Generator, member: np.ndarray) -> np.ndarray:
    scores: np.ndarray = np.clip(rng.laplace(scale=0.5, size=member.size) + member, 0, 1)
    return scores


def failing(rng: np.random.Generator, member: np.ndarray) -> np.ndarray:
    """Randomised response at ε = 1, which tells all with probability δ = 0.02."""
    sign, fails = np.where(member, 1, -1), rng.random(member.size) < 0.02
    right = rng.random(member.size) < 1 / (1 + np.exp(-1))
    scores: np.ndarray = np.where(fails, 2 * sign, np.where(right, sign, -sign))
    return scores


def few(rng: np.random.Generator, member: np.ndarray) -> np.ndarray:
    scores: np.ndarray = member & (rng.random(member.size) < 0.3)
    return scores


def none(rng: np.random.Generator, member: np.ndarray) -> np.ndarray:
    """What is told of non-members."""
    scores: np.ndarray = -1.0 * (~member & (rng.random(member.size) < 0.3))
    return scores


SHORT = {"gaussian, tied", "approximate", "others told, batches of seven"}
"""Games of `make test`: ties, failures, and batches of one side."""
GAMES: dict[str, tuple[str, Draw, int]] = {
    "gaussian": ("gaussian", gaussian, 50),
    "gaussian, tied": ("gaussian", coarse, 50),
    "gaussian, small batches": ("gaussian", gaussian, 10),
    "laplace": ("laplace", laplace, 50),
    "approximate": ("approximate", failing, 50),
    "told": ("told", few, 50),
    "told, batches of three": ("told", few, 3),
    "others told, batches of seven": ("others told", none, 7),
    "failures, pairs": ("failures", failures, 2),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in SHORT else [pytest.mark.validity]) for name in GAMES],
)
def test_streams_of_trials_that_stop_at_will_are_wrong_at_most_as_often_as_stated(
    name: str,
) -> None:
    """Each is stopped at its worst moment; twice the rate would show nine times in ten."""
    of, draw, size = GAMES[name]
    claim, theta = CLAIMS[of]
    games, level, false = 70, 0.25, 0
    assert binom.sf(binom.isf(1e-3, games, level), games, 2 * level) > 0.9
    for seed in range(games):
        rng, stream = np.random.default_rng(seed), lb.Stream(claim=claim, confidence=1 - level)
        for _ in range(max(10, 100 // size)):
            member = rng.random(size) < 0.5
            if stream.update(draw(rng, member), member).bound > theta:
                false += 1
                break
    assert binom.sf(false - 1, games, level) > 1e-3


def leaking(claim: claims.Claim, batches: int = 12, **options: object) -> lb.Stream:
    rng, stream = np.random.default_rng(0), lb.Stream(claim=claim, **options)  # type: ignore[arg-type]
    for _ in range(batches):
        member = rng.random(50) < 0.5
        stream.update(rng.normal(size=50) + 3 * member, member)
    return stream


@pytest.mark.parametrize("name", [*CLAIMS, "member"])
def test_a_leak_is_found_and_the_result_says_what_was_assumed(name: str) -> None:
    claim, theta = CLAIMS.get(name, CLAIMS["gaussian"])
    stream = leaking(claim, sides="member" if name == "member" else "both")
    result = stream.result()
    assert theta < result.bound == stream.bound < result.ceiling
    assert "the mechanism satisfied a smaller" in str(result)
    assert result.check(parameter=theta) == "refuted"
    assert result.assumptions[0].name == "independent trials with fair coins"
    assert (result.curve.bound[-1], result.claim) == (result.bound, claim)
    assert (np.diff(result.curve.bound) >= 0).all()
    assert (result.rejected is not None) == isinstance(claim, claims.FAMILIES)


def test_the_bound_is_where_bets_have_just_won_enough() -> None:
    """And all smaller parameters are refuted, whichever terms are for them."""
    stream = leaking(lb.GaussianDP())
    bets, counts, trials = stream._bets, stream._ends[-1], stream.m
    bound = bets.bound(trials, counts)
    assert 1 < bound <= stream.bound
    for theta in [*np.linspace(0, bound, 97).tolist(), bound * 1.01]:
        refuted = bets.is_refuted_by_bets(theta, trials, counts, bets.interval_of(theta))
        assert refuted == (theta <= bound)


@pytest.mark.parametrize("name", CLAIMS)
def test_places_are_between_edges(name: str) -> None:
    bets = Bets(CLAIMS[name][0], (GuessSequence("interleaved", 1.0),), 0.05)
    for place in range(30):
        low, high = bets.lower_edge(place), bets.lower_edge(place + 1)
        for theta in (low, 0.5 * (low + high)):
            assert low == high or bets.interval_of(theta) == place


def test_a_stream_of_trials_goes_on_from_its_pickle() -> None:
    claim = lb.ApproxDP(delta=1e-3)
    stream = pickle.loads(pickle.dumps(leaking(claim, 6)))
    rng, member = np.random.default_rng(1), np.arange(50) < 25
    scores = rng.normal(size=50) + 3 * member
    assert stream.update(scores, member).bound == leaking(claim, 6).update(scores, member).bound
    assert "approximate DP with delta = 0.001, m=350" in repr(stream)


@pytest.mark.parametrize("claim", [TOLD, lb.GaussianDP(), lb.ApproxDP(delta=1e-5)])
def test_a_batch_that_abstains_pays_its_fees(claim: claims.Claim) -> None:
    """Which batches are tied depends on outputs: if they were free, ties would be a choice."""
    rng, stream = np.random.default_rng(0), lb.Stream(claim=claim)
    before = leaking(claim, 4)
    for _ in range(20):
        before.update(np.zeros(50), rng.random(50) < 0.5)
    assert before.m == 1200
    counts = before._ends[-1]
    assert (leaking(claim, 4)._ends[-1] == counts).all()
    assert stream._bets.bound(1200, counts) <= stream._bets.bound(200, counts)
    member = rng.random(50) < 0.5
    before.update(rng.normal(size=50), member)
    assert before._bets.bound(1250, before._ends[-1]) <= before.bound


def test_a_search_that_begins_above_0_has_a_result_where_nothing_is_refuted() -> None:
    steep = claims.TradeOffFamily(parameter="a", tradeoff=TradeOff.gaussian, bracket=(0.5, 10.0))
    for claim in (steep, lb.SubsampledGaussianDP(sampling_rate=0.1, steps=2)):
        stream, rng = lb.Stream(claim=claim), np.random.default_rng(0)
        result = stream.update(rng.normal(size=50), rng.random(50) < 0.5).result()
        assert (result.bound, result.rejected) == (0.0, None)
        assert result.reason


def test_a_batch_that_could_not_be_read_may_be_fed_again() -> None:
    def broken(_: float) -> TradeOff:
        raise ZeroDivisionError

    claim = claims.TradeOffFamily(parameter="a", tradeoff=broken, bracket=(0.5, 10.0))
    stream, scores, member = lb.Stream(claim=claim), np.arange(4.0), np.arange(4) > 1
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            stream.update(scores, member, ids=np.arange(4))
    assert stream.m == 0


def test_trials_without_any_difference_prove_nothing_and_abstain() -> None:
    stream = lb.Stream(claim=lb.GaussianDP()).update(np.zeros(50), np.arange(50) < 25)
    result = stream.result()
    assert (result.bound, result.guesses) == (0.0, 0)
    assert result.reason
    with pytest.raises(errors.InputTypeError, match="claim"):
        lb.Stream(claim=1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("sides", ["member", "both"])
@pytest.mark.parametrize("confidence", [0.95, 1e-16])
def test_members_only_contradict_the_coins_at_once(sides: Any, confidence: float) -> None:
    """No parameter explains them: a search for one would have no end."""
    stream = lb.Stream(claim=lb.GaussianDP(), sides=sides, confidence=confidence)
    with pytest.raises(errors.DesignError):
        stream.update(np.arange(25.0), np.ones(25, dtype=bool))
    assert (stream.m, stream.batches) == (25, 1)
    for use in (lambda: stream.bound, lambda: stream.update([1.0, 2.0], [True, False])):
        with pytest.raises(errors.DesignError):
            use()


@pytest.mark.parametrize("claim", [lb.GaussianDP(), lb.LaplaceDP(), lb.ApproxDP(delta=1e-5)])
def test_what_no_parameter_explains_ends_at_the_last(
    claim: claims.Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[float]()

    def always(_: object, theta: float, **_counts: object) -> bool:
        asked.append(theta)
        return True

    monkeypatch.setattr(Bets, "is_refuted_by_bets", always)
    bets = Bets(claim, (GuessSequence("member", 0.5),), 0.05)
    beyond = bets.bound(100, np.array([[50], [50]]))
    assert 1e20 < beyond < 1e22
    assert len(asked) < 2100
    assert bets.bound(100, np.array([[50], [50]]), least=beyond) >= beyond


def test_a_family_without_end_is_searched_to_an_end() -> None:
    assert lb.GaussianDP().least_private(lambda _: True) == 1e12
    assert lb.LaplaceDP().least_private(lambda theta: theta < 1e9) == pytest.approx(1e9)


@pytest.mark.parametrize("confidence", [1e-17, 5e-324])
def test_an_error_probability_of_one_is_refused(confidence: float) -> None:
    with pytest.raises(errors.OptionError, match="confidence must be at least 1e-16"):
        lb.Stream(claim=lb.GaussianDP(), confidence=confidence)
    with pytest.raises(errors.OptionError, match="confidence must be at least 1e-16"):
        lb.audit([1.0, 2.0], lb.Coins([True, False]), confidence=confidence)
