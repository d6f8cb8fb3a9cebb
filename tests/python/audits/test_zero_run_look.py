"""The second look of Zero-Run: what it proves where outer scores are noise, and its share."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound import stats
from leakbound._base.numerics import expit
from leakbound._base.types import BoolArray, CoinSides, FloatArray, SidesChoice
from leakbound.audits.policies import f_dp
from leakbound.audits.policies.f_dp import JointTest, OutsideInFamily
from leakbound.audits.policies.second_look import second_look
from leakbound.audits.zero_run import levels
from leakbound.audits.zero_run import offsets as offsets_module
from leakbound.audits.zero_run.game import Guesses, ObservedGame
from leakbound.audits.zero_run.levels import ChosenGuesses
from leakbound.audits.zero_run.log_odds import OddsBox, OddsSet
from leakbound.audits.zero_run.offsets import PoissonBinomial
from leakbound.audits.zero_run.search import MatchingSearch
from leakbound.claims import ApproxDP, Claim, GaussianDP, LaplaceDP, PureDP
from leakbound.cuts import Fixed, KLScan, OutsideIn, SecondLook
from leakbound.cuts.look import Look
from leakbound.errors import OptionError
from leakbound.propensity import ConfidenceSet, LogisticPropensity
from set_search import OverSet, over_set

LEVEL = 0.05
CLAIMS: list[Claim] = [PureDP(), ApproxDP(delta=1e-5), GaussianDP()]


def saturated(
    m: int, seed: int, *, mu: float = 1.4, share: float = 0.05
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Scores, membership and features: a share of scores is ±inf and says nothing, others N(μ)."""
    rng = np.random.default_rng([m, seed, 5])
    features = rng.normal(size=(m, 2))
    member = rng.random(m) < expit(features[:, 0])
    scores = rng.normal(size=m) + mu * member
    ends = np.where(rng.random(m) < 0.5, np.inf, -np.inf)
    return np.where(rng.random(m) < share, ends, scores), member, features


def parts_of(result: lb.ZeroRunResult) -> Any:
    """Return what a result tells of its parts."""
    return result.options["parts"]


WAYS: list[tuple[Claim, str]] = [
    (PureDP(), "poisson_binomial"),
    (PureDP(), "match"),
    (CLAIMS[1], "match"),
    (GaussianDP(), "match"),
]


@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize(("claim", "correction"), WAYS)
def test_infinite_scores_that_say_nothing_cost_little(
    claim: Claim, correction: str, sides: CoinSides
) -> None:
    """At known odds: as much as the best number of guesses, and more than the first test."""
    found: dict[str, list[float]] = {}
    for seed in range(2):
        scores, member, features = saturated(8000, seed)
        how: dict[str, Any] = {"claim": claim, "sides": sides, "seed": seed}
        how["correction"] = correction
        given = (scores, member, expit(features[:, 0]))
        numbers = (300, 1000, 2000)
        ways: dict[str, Any] = {"default": None} | {str(n): Fixed(n) for n in numbers}
        ways["before"] = KLScan() if correction == "poisson_binomial" else OutsideIn()
        for name, cuts in ways.items():
            found.setdefault(name, []).append(flat.zero_run(*given, cuts=cuts, **how).bound)
    means = {name: float(np.mean(bounds)) for name, bounds in found.items()}
    assert means["default"] >= 0.9 * max(means.values()) > 0
    assert means["before"] < (0.9 if correction == "poisson_binomial" else 0.5) * means["default"]


@pytest.mark.parametrize("claim", [*CLAIMS, LaplaceDP()], ids=lambda claim: claim.name)
def test_parts_share_the_level_and_the_largest_counts(claim: Claim) -> None:
    scores, member, features = saturated(1500, 0)
    result = flat.zero_run(
        scores, member, expit(features[:, 0]), claim=claim, correction="match", seed=0
    )
    parts = parts_of(result)
    first = "scan" if isinstance(claim, PureDP) else "outside-in"
    assert [part["name"] for part in parts] == [first, "look"]
    assert [part["level"] for part in parts] == pytest.approx([0.95 * LEVEL, 0.05 * LEVEL])
    best = max(parts, key=lambda part: part["bound"])
    assert result.bound == best["bound"] > 0
    assert (result.guesses, result.correct) == (best["guesses"], best["correct"])
    assert result.options["cuts"] == {"type": "SecondLook", "look": 0.05, "scan": 0.05}
    assert "look (5 %)" in result.theorem


def test_shares_are_options() -> None:
    scores, member, features = saturated(1500, 0)
    given = (scores, member, expit(features[:, 0]))
    result = flat.zero_run(*given, cuts=SecondLook(look=0.9), seed=0)
    assert [part["level"] for part in parts_of(result)] == pytest.approx([0.005, 0.045])


@pytest.mark.parametrize(("claim", "correction"), [(PureDP(), "tamper"), (GaussianDP(), "tamper")])
def test_corrections_with_a_fixed_number_refuse_it_by_name(claim: Claim, correction: str) -> None:
    scores, member, features = saturated(200, 0)
    given = (scores, member, expit(features[:, 0]))
    with pytest.raises(OptionError, match="SecondLook"):
        flat.zero_run(*given, claim=claim, correction=correction, cuts=SecondLook(), seed=0)


def test_what_shift_would_have_claimed_is_what_the_default_claims_of_coins() -> None:
    """It was 0 where outer scores were noise, below the bound with the correction."""
    scores, member, features = saturated(8000, 0)
    result = flat.zero_run(scores, member, expit(features[:, 0]), claim=PureDP(), seed=0)
    coins = lb.audit(scores, lb.Coins(member), claim=PureDP(), sides="both", seed=0)
    assert result.naive == coins.bound > result.bound


# --- where guesses have odds of their own


def false_claims(m: int, epsilon: float, level: float) -> tuple[float, float]:
    """Exact probabilities that a look alone is false, and that it proves anything.

    Randomised response at ε answers, and given the answers labels are independent: all labellings.
    """
    answers = np.where(np.arange(m) >= m - m // 2, 1.0, -1.0)
    log_odds = answers * np.linspace(0.4, 1.2, m)  # guesses are likelier right by shift alone
    odds = OddsBox.of_log_odds(log_odds)
    chance = expit(answers * epsilon + log_odds)
    cuts = SecondLook(look=1 - 2e-9, scan=1e-9)
    correction = PoissonBinomial(claim=PureDP(), cuts=cuts, adversary="raw")
    false = proved = 0.0
    for labels in itertools.product((False, True), repeat=m):
        member = np.array(labels)
        scores = np.arange(m, dtype=float)
        game = ObservedGame(scores=scores, values=scores, member=member, sides="both", seed=0)
        bound = correction.proof_at_known(odds, game, level).bound
        here = float(np.where(member, chance, 1 - chance).prod())
        false += here * (bound > epsilon)
        proved += here * (bound > 0)
    return false, proved


class Eager:
    """A pilot sample that expects of guesses nearly what was seen, with no caution at all."""

    def __init__(self, toward: FloatArray, right: BoolArray) -> None:
        self.own = weighted_pilot(toward, right)
        self.numbers = self.own.numbers
        self.tested = self.own.tested

    def accuracy(self, guesses: list[int], _caution: float) -> FloatArray:
        # Of a right and a wrong guess more, less one standard error
        share = np.array(self.own.accuracy(guesses, 0.0))
        error = share - np.array(self.own.accuracy(guesses, 1.0))
        more = share * (1 - share) / error**2
        expected: FloatArray = 0.98 * (share * more - 1) / (more - 2)
        return expected


weighted_pilot = levels.weighted_pilot


@pytest.mark.parametrize("level", [0.2, 0.4])
def test_the_look_at_unlike_odds_keeps_the_whole_level(
    level: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However eager the choice is; the limit of fair coins, in place of these odds, does not."""
    monkeypatch.setattr(offsets_module, "weighted_pilot", Eager)
    false, proved = false_claims(10, 1.0, level)
    assert false <= level
    assert proved > 0

    def of_coins(correct: int, offsets: FloatArray, level: float) -> float:
        return float(stats.poisson_binomial_epsilon(correct, 0 * offsets, beta=level))

    monkeypatch.setattr(offsets_module, "epsilon_of_offsets", of_coins)
    assert false_claims(10, 1.0, level)[0] > level


# --- over a confidence set

WHERE = [True, False]
"""Whether there are labels besides those audited."""


def learnt(m: int, seed: int, *, reference: bool, **options: Any) -> tuple[FloatArray, lb.ZeroRun]:
    """Scores of which some are infinite, and a design that learns log-odds."""
    scores, member, features = saturated(2 * m, seed, **options)
    here, there = slice(m), slice(m, 2 * m)
    model: Any = LogisticPropensity()
    if reference:
        model = model.fit(features[there], member[there])
    return scores[here], lb.ZeroRun(member[here], model, features=features[here], falsify=False)


@pytest.mark.parametrize("reference", WHERE)
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_infinite_scores_cost_little_over_a_set(claim: Claim, *, reference: bool) -> None:
    """Nothing was proved at all, where the best number of guesses proves something."""
    scores, design = learnt(2000, 0, reference=reference)
    found = lb.audit(scores, design, claim=claim, seed=0)
    fixed = lb.audit(scores, design, claim=claim, cuts=Fixed(500), seed=0)
    assert found.bound >= 0.7 * fixed.bound > 0.2
    first, look = parts_of(found)
    chosen = reference and not isinstance(claim, PureDP)
    assert first["name"] == ("outside-in" if chosen else "planned")
    assert look["bound"] == found.bound
    assert sum(part["level"] for part in (first, look)) == pytest.approx(0.8 * LEVEL)
    assert "pilot sample" in found.guessed
    assert "a quarter of the examples, which are not guessed about" in found.searched
    assert "uses 95 % of the error probability" in found.searched


def over_plausible(
    claim: Claim, sides: SidesChoice, seed: int, *, reference: bool, mu: float
) -> OverSet:
    """An audit over a confidence set of log-odds."""
    m = 1000
    scores, member, features = saturated(2 * m, seed, mu=mu, share=0.08)
    here, there = slice(m), slice(m, 2 * m)
    others = (features[there], member[there]) if reference else None
    found = ConfidenceSet.fit(features[here], member[here], reference=others, level=0.01, seed=0)
    guide = None
    if others is not None:
        guide = LogisticPropensity().fit(*others, seed=0).log_odds(features[here])
    options: dict[str, Any] = {"claim": claim, "sides": sides, "correction": "match"}
    return over_set(scores[here], found, guide=guide, **options)


def turned(one: OverSet, rows: Any, rng: np.random.Generator, chance: float) -> OverSet:
    """Turn some labels at random, wherever they are read."""
    member = one.game.member.copy()
    member[rows] = rng.random(len(rows)) < chance
    found = replace(one.odds.found, member=member)
    game = replace(one.game, member=member)
    return replace(one, game=game, odds=replace(one.odds, found=found))


def look_of(one: OverSet) -> ChosenGuesses | None:
    """What the pilot sample chooses."""
    *_, last = one.matchings()
    return last.chosen if last.chosen.must_be_kept else None


def same_choice_whatever_is_not_seen(claim: Claim, sides: SidesChoice, *, reference: bool) -> int:
    """Turn labels that were not seen, kept or not; return how many choices were compared."""
    rng = np.random.default_rng(3)
    compared = 0
    for seed, mu in enumerate((2.0, 3.0, 1.4, 0.0)):
        one = over_plausible(claim, sides, seed, reference=reference, mu=mu)
        first, *_ = one.matchings()
        ranked = first.chosen.plan.ranked.rows
        seen = levels.revealed_ranks(ranked.size)
        unseen = np.delete(ranked, seen)
        look = look_of(one)
        for chance in (0.0, 0.5, 1.0):
            again = look_of(turned(one, unseen, rng, chance))
            assert (look is None) == (again is None)
            if look is None or again is None:
                continue
            assert (again.guesses, again.inside) == (look.guesses, look.inside)
            assert (again.order.rows == look.order.rows).all()
            assert not np.isin(look.order.rows[: look.inside], ranked[seen]).any()
            compared += 1
    return compared


@pytest.mark.parametrize("reference", WHERE)
@pytest.mark.parametrize(("claim", "sides"), [(GaussianDP(), "both"), (CLAIMS[1], "member")])
def test_the_choice_reads_no_label_but_those_seen(
    claim: Claim, sides: SidesChoice, *, reference: bool
) -> None:
    """So it does not read who is kept either: at any log-odds that depends on labels."""
    assert same_choice_whatever_is_not_seen(claim, sides, reference=reference) >= 6


def by_all_labels(odds: OddsSet, order: Guesses) -> FloatArray:
    """Return log-odds that all audited labels suggest, and with them who is kept."""
    found = odds.found
    fitted = LogisticPropensity(calibration=None).fit(found.features, found.member, seed=0)
    return fitted.log_odds(found.features)[order.rows]


def peeking(toward: FloatArray, right: BoolArray) -> Any:
    """Return a pilot sample of labels two ranks further out, which it may not see."""
    beside = np.roll(right, 2)
    return weighted_pilot(toward, beside)


@pytest.mark.parametrize(
    ("name", "broken"), [("planning_log_odds", by_all_labels), ("weighted_pilot", peeking)]
)
def test_a_choice_that_reads_more_is_found(
    name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conditions, broken on purpose: the test above fails."""
    monkeypatch.setattr(levels, name, broken)
    with pytest.raises(AssertionError):
        same_choice_whatever_is_not_seen(GaussianDP(), "both", reference=False)


def chosen_at(one: OverSet) -> ChosenGuesses:
    look = look_of(one)
    assert look is not None
    return look


def test_where_no_more_are_kept_than_guesses_nothing_is_claimed() -> None:
    """Never at a smaller level: that would depend on what is kept of ranks that labels chose."""
    look = chosen_at(over_plausible(GaussianDP(), "both", 0, reference=True, mu=3.0))
    made = look.guesses
    assert look.proved((made, made, made + 1)) > 0
    for kept in (made, made - 1, made // 2, 1):
        assert look.proved((kept, kept, kept)) == 0


def planned_for(examples: int, level: float, made: int) -> ChosenGuesses:
    """A look at small numbers, whose least counts have few values."""
    look = chosen_at(over_plausible(GaussianDP(), "both", 0, reference=True, mu=3.0))
    joined = second_look(SecondLook(), GaussianDP(), examples=examples, sides="both", level=level)
    policy = joined.parts[1].policy
    assert isinstance(policy, Look)
    assert isinstance(policy.ladder, OutsideInFamily)
    plan = policy.ladder.rule(examples, level, "both")
    return replace(
        look,
        plan=replace(look.plan, expected_kept=examples),
        level=level,
        guesses=made,
        levels=tuple(plan.levels),
        level_shares=tuple(policy.ladder.weights(plan).tolist()),
        index=plan.levels.index(made),
    )


def largest_rise(look: ChosenGuesses, correct: int) -> float:
    """Return by what share of itself a bound is larger for more examples kept, at most."""
    expected = look.plan.expected_kept
    kept = range(4 * expected // 5, 23 * expected // 20)
    bounds = np.array([look.proved((correct, look.guesses, number)) for number in kept])
    later = np.maximum.accumulate(bounds[::-1])[::-1]
    return float((later / bounds - 1).max())


def test_a_bound_falls_as_more_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share of draws keep fewer than the number that is tested, and must prove as much."""
    seldom, often = planned_for(140, 0.001, 27), planned_for(90, 0.019, 36)
    assert largest_rise(seldom, 24) < 0.01
    assert largest_rise(often, 32) < 1e-6
    # a test of as many guesses as are kept, and least counts of the number kept, jump with it
    assert largest_rise(replace(seldom, must_be_kept=False), 24) > 0.05
    monkeypatch.setattr(JointTest, "as_planned", lambda test: test)
    f_dp._remembered_certified_bound.cache_clear()
    assert largest_rise(often, 32) > 0.01


def test_nothing_is_roughly_proved_where_nothing_is() -> None:
    """Members at which too few are kept are the first that a search looks at."""
    look = chosen_at(over_plausible(GaussianDP(), "both", 0, reference=True, mu=3.0))
    made = look.guesses
    assert look.proved((made, made, made + 1), roughly=True) > 0
    assert look.proved((made, made, made), roughly=True) == 0


def test_a_guess_that_is_missing_counts_as_wrong() -> None:
    """Of draws of what is kept at a member, the share that is needed has so many right."""
    one = over_plausible(GaussianDP(), "both", 0, reference=True, mu=3.0)
    look = chosen_at(one)
    rng = np.random.default_rng(0)
    steep = 3.0 * one.odds.likeliest_log_odds  # fewer are kept than guesses
    matching = MatchingSearch(look)
    rows, signs = look.order.rows[: look.inside], look.order.signs[: look.inside]
    right = one.game.member[rows] == (signs > 0)
    for log_odds in (one.odds.likeliest_log_odds, steep):
        ((_, made, correct),) = matching.reached(log_odds[None])
        assert made == look.guesses
        toward = log_odds[rows] * signs
        chance = np.exp(-np.maximum(np.where(right, toward, -toward), 0.0))
        counts = []
        for _ in range(4000):
            drawn = rng.random(rows.size) < chance
            each = [right[drawn & (signs == sign)][: look.guesses // 2] for sign in (1, -1)]
            counts.append(sum(int(side.sum()) for side in each))
        reached = np.quantile(counts, 1 - one.odds.draws_needed, method="lower")
        assert abs(reached - correct) <= 2
        missing = sum(int((signs == sign)[drawn].sum()) for sign in (1, -1)) < look.guesses
        assert missing == (log_odds is steep)


def test_a_set_so_wide_that_nothing_is_kept_somewhere_proves_nothing() -> None:
    """Few labels, and many features: at some member features tell nearly all members apart."""
    rng = np.random.default_rng(0)
    member = rng.random(120) < 0.5
    features = rng.normal(size=(120, 20)) + 0.3 * member[:, None]
    scores = rng.normal(size=120) + 6 * member
    for claim in CLAIMS:
        design = lb.ZeroRun(member, features=features, correction="match", falsify=False)
        found = lb.audit(scores, design, claim=claim, seed=0)
        assert found.bound == 0 < len(found.reason)


def test_features_that_tell_members_apart_leave_nothing_to_test() -> None:
    scores, member, _ = saturated(400, 0)
    features = np.where(member, 1.0, -1.0)[:, None] + 0.1 * np.arange(400)[:, None] / 400
    for claim in CLAIMS:
        found = lb.audit(scores, lb.ZeroRun(member, features=features, falsify=False), claim=claim)
        assert found.bound == 0
        assert "separate" in found.reason


def test_equal_odds_are_those_of_coins() -> None:
    """All propensities are one half: the parts are those of an audit of coins."""
    scores, member, _ = saturated(1500, 0)
    ranks = np.argsort(np.argsort(scores, kind="stable")).astype(float)
    for claim in CLAIMS:
        found = flat.zero_run(ranks, member, np.full(1500, 0.5), claim=claim, seed=0)
        coins = lb.audit(ranks, lb.Coins(member), claim=claim, sides="both", seed=0)
        # under pure DP the look's guesses may be a few others
        rel = 0.01 if isinstance(claim, PureDP) else 1e-6
        assert found.bound == pytest.approx(coins.bound, rel=rel)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
@pytest.mark.parametrize("share", [0.5, 0.99])
def test_equal_odds_of_scores_that_tell_nothing_prove_nothing(claim: Claim, share: float) -> None:
    """Of 99 members to one other, matching keeps a few."""
    rng = np.random.default_rng(0)
    member = np.arange(1500) < 1500 * share
    scores = rng.normal(size=1500).round(1)
    odds = np.full(1500, share)
    for correction in ("match", "poisson_binomial"):
        if correction == "poisson_binomial" and not isinstance(claim, PureDP):
            continue
        found = flat.zero_run(scores, member, odds, claim=claim, correction=correction, seed=0)
        assert found.bound == 0 < len(found.reason)


def test_a_set_of_one_draw_is_refused() -> None:
    scores, member, features = saturated(600, 0)
    one = expit(features[:, 0])[None]
    for claim in CLAIMS:
        with pytest.raises(OptionError, match="at least 39 bootstrap resamples, got 1"):
            lb.audit(scores, lb.ZeroRun(member, one), claim=claim, seed=0)


def test_replicates_have_one_test_each() -> None:
    scores, member, features = saturated(600, 0, share=0.1)
    noise = np.random.default_rng(1).normal(0, 0.05, (60, 600))
    replicates = expit(features[:, 0] + noise)
    with pytest.raises(OptionError, match="not for replicates of propensities"):
        lb.audit(scores, lb.ZeroRun(member, replicates), claim=PureDP(), cuts=SecondLook())
    matched = lb.ZeroRun(member, replicates, correction="match")
    assert "parts" not in lb.audit(scores, matched, claim=PureDP(), seed=0).options


def test_parts_say_nothing_of_what_is_withheld() -> None:
    scores, member, features = saturated(1500, 0, share=0.1)
    wrong = expit(0.1 * features[:, 0])
    design = lb.ZeroRun(member, wrong, features=features)
    result = lb.audit(scores, design, claim=PureDP(), seed=0)
    assert result.withheld
    assert "parts" not in result.options
    assert "Largest of" not in str(result.summary().metrics)


def test_composition_takes_shift_off_each_part() -> None:
    scores, member, features = saturated(1500, 0, share=0.1)
    limits = lb.ZeroRun(member, expit(0.3 * features[:, 0]), correction="composition")
    result = lb.audit(scores, limits, claim=PureDP(), seed=0)
    assert result.bound == max(part["bound"] for part in parts_of(result))


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_to_look_at_are_the_ranks_that_were_guessed(claim: Claim) -> None:
    scores, member, features = saturated(1500, 0, share=0.1)
    result = lb.audit(scores, lb.ZeroRun(member, expit(features[:, 0])), claim=claim, seed=0)
    assert result.guessed.startswith("guesses at ranks chosen with a pilot sample")
    said = result.summary()
    assert "most extreme scores" not in " ".join(said.next_steps)
    assert ",." not in str(said)
    assert ").The" not in result.theorem
