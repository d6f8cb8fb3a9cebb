"""Audits of given members and non-members: shift goes, leakage stays, bad input is named."""

import math
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound import errors, stats
from leakbound._base.streams import Purpose
from leakbound.propensity import LogisticPropensity
from noisy_sums import NoisySum, noisy_sum

CLAIMS: list[Any] = [lb.PureDP(), lb.ApproxDP(delta=1e-5), lb.GaussianDP(), lb.LaplaceDP()]


@pytest.fixture(scope="module")
def game() -> NoisySum:
    """A noisy sum that leaks, and a shift that would pass for more leakage."""
    return noisy_sum(1500, mu=2.0, shift=0.6, features=3, holdout=1500, seed=7)


def audit(game: NoisySum, **options: Any) -> lb.ZeroRunResult:
    given = {"scores": game.scores, "member": game.member, "propensity": game.propensity}
    return flat.zero_run(**given | options)


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The order of the rows and the uniforms of an audit of 1,500 examples."""
    rows = Purpose.AUDITED_ORDER.rng(seed).permutation(1500)
    return rows, Purpose.MATCHING.rng(seed).random(1500)


def likeliest(game: NoisySum, rows: np.ndarray, variant: Any, guesses: int) -> np.ndarray:
    """Guess what is likeliest to be right and to stand, by Bayes' rule, one example at a time."""
    odds = game.log_odds[rows]
    told = stats.residual_scores(game.scores[rows], odds) + odds
    worth = {
        sign: stats.tamper_probability(np.full(1500, sign), odds, variant=variant)
        / (1 + np.exp(-sign * told))
        for sign in (1, -1)
    }
    best = [max((worth[sign][i], sign) for sign in worth) for i in range(1500)]
    made = np.zeros(1500, dtype=int)
    for i in sorted(range(1500), key=lambda i: best[i][0])[-guesses:]:
        made[i] = best[i][1]
    return made


class TestWhatItProves:
    def test_corrections_have_no_form_for_every_claim(self, game: NoisySum) -> None:
        refused: list[tuple[Any, Any]] = [(lb.LaplaceDP(), "composition")]
        refused += [(claim, "poisson_binomial") for claim in CLAIMS[1:]]
        for claim, correction in refused:
            with pytest.raises(errors.OptionError, match="take"):
                audit(game, claim=claim, correction=correction)

    def test_the_default_correction_is_that_of_the_claim(self, game: NoisySum) -> None:
        assert audit(game).correction == "match"
        assert audit(game, claim=lb.PureDP()).correction == "poisson_binomial"
        limits = (np.full(1500, 0.4), np.full(1500, 0.6))
        assert audit(game, propensity=limits).correction == "tamper"

    def test_no_shift_is_an_audit_of_one_run(self, game: NoisySum) -> None:
        half = np.full(1500, 0.5)
        design = lb.Coins(game.member)
        one_run = lb.audit(game.scores, design, claim=lb.PureDP(), sides="both")
        for correction in ("match", "poisson_binomial", "composition"):
            result = audit(game, propensity=half, correction=correction, claim=lb.PureDP())
            assert result.bound == pytest.approx(one_run.bound, abs=1e-9)
            assert result.kept == 1500

    def test_matching_by_hand(self, game: NoisySum) -> None:
        """The kept examples, ranked by residuals, under the test of a fixed number of guesses."""
        result = audit(game, cuts=lb.Fixed(100), adversary="raw", seed=3)
        rows, uniforms = drawn(3)
        kept = rows[stats.match(game.member[rows], game.log_odds[rows], uniforms)]
        order = kept[np.argsort(-game.scores[kept])]
        right = game.member[order[:50]].sum() + (~game.member[order[-50:]]).sum()
        bound = stats.fdp_lower_bound(int(right), 100, kept.size, claim=lb.GaussianDP(), tau=0.05)
        assert (result.kept, result.guesses, result.correct) == (kept.size, 100, right)
        assert result.bound == pytest.approx(bound, rel=1e-9)

    def test_tampering_by_hand(self, game: NoisySum) -> None:
        rows, uniforms = drawn(3)
        odds, sign = game.log_odds[rows], game.member[rows] * 2 - 1
        for variant in ("directional", "paper"):
            made = likeliest(game, rows, variant, 90)
            kept = uniforms < stats.tamper_probability(made, odds, variant=variant)
            left = np.where(kept, made, 0)
            right = int((left == sign).sum())
            m = 1500 if variant != "paper" else math.ceil((2 / (1 + np.exp(np.abs(odds)))).sum())
            bound = stats.fdp_lower_bound(right, 90, m, claim=lb.GaussianDP(), tau=0.05)
            result = audit(game, correction="tamper", variant=variant, cuts=lb.Fixed(90), seed=3)
            assert (result.guesses, result.correct, result.m_eff) == (90, right, m)
            assert result.bound == pytest.approx(bound, rel=1e-9)

    @pytest.mark.parametrize(("claim", "least"), [(lb.GaussianDP(), 0.55), (lb.PureDP(), 2.2)])
    def test_guesses_are_those_that_tampering_leaves(self, claim: Any, least: float) -> None:
        """Scores less what features say, weighted by what tampering leaves, prove .48 and 2.05."""
        bounds = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            odds = 2 * rng.normal(size=800)
            propensity = 1 / (1 + np.exp(-odds))
            member = rng.random(800) < propensity
            scores = 2 * member + odds + rng.normal(size=800)
            design = lb.ZeroRun(member, propensity, correction="tamper")
            bounds.append(lb.audit(scores, design, claim=claim, seed=seed).bound)
        assert np.mean(bounds) > least

    def test_pure_tampering_is_a_least_fixed_point(self, game: NoisySum) -> None:
        options: dict[str, Any] = {"claim": lb.PureDP(), "correction": "tamper", "seed": 3}
        result = audit(game, cuts=lb.Fixed(90), **options)
        rows, uniforms = drawn(3)
        odds, sign = game.log_odds[rows], game.member[rows] * 2 - 1
        made = likeliest(game, rows, "directional", 90)

        def refuted(epsilon: float) -> float:
            kept = uniforms < stats.tamper_probability(made, odds, epsilon=epsilon)
            left = np.where(kept, made, 0)
            p = stats.clopper_pearson(int((left == sign).sum()), 90, beta=0.05)
            return max(0.0, math.log(p / (1 - p)))

        assert refuted(result.bound) == pytest.approx(result.bound, abs=1e-12)
        below = np.linspace(0, result.bound * (1 - 1e-9), 50)
        assert all(refuted(float(epsilon)) > epsilon for epsilon in below)

    def test_untampered_guesses_by_hand(self, game: NoisySum) -> None:
        """Theorem D.2: a few correct guesses are set aside for failures, fewer at a larger ε."""
        claim, guesses = lb.ApproxDP(delta=1e-7), 60
        options: dict[str, Any] = {"claim": claim, "adversary": "raw", "cuts": lb.Fixed(guesses)}
        result = audit(game, variant="untampered", **options)
        assert result.correction == "poisson_binomial"
        rows = np.argsort(game.scores)
        rows = np.concatenate([rows[: guesses // 2], rows[-guesses // 2 :]])
        odds = np.log(game.propensity / (1 - game.propensity))

        def p_value(epsilon: float) -> float:
            failures = 1500 * (1 + math.exp(-epsilon)) * claim.delta
            aside = math.ceil(16 * failures / 0.05**2)
            tail = stats.poisson_binomial_tail_offsets(
                result.correct - aside, np.abs(odds[rows]), epsilon
            )
            return float(tail) + 2 * math.sqrt(failures / aside)

        assert result.bound > 0.3
        refuted = np.linspace(0, result.bound - 1e-6, 50)
        assert max(map(p_value, refuted)) <= 0.05 < p_value(result.bound + 1e-6) + 0.025
        assert result.bound <= result.ceiling
        assert result.bound < audit(game, claim=lb.PureDP(), variant="paper").bound
        draws = np.tile(game.propensity, (40, 1))
        again = audit(game, propensity=draws, variant="untampered", confidence=0.9, **options)
        assert again.bound == result.bound
        assert audit(game, variant="untampered", claim=lb.ApproxDP(delta=0.01)).bound == 0


class TestUncertainPropensities:
    def test_equal_replicates_change_the_level_only(self, game: NoisySum) -> None:
        draws = np.tile(game.propensity, (79, 1))
        for claim in CLAIMS[:3]:
            result = audit(game, propensity=draws, claim=claim)
            # by a scan, and of other claims than pure DP at one number of guesses
            cuts: Any = lb.KLScan()
            if not isinstance(claim, lb.PureDP):
                cuts = lb.Fixed(result.guesses)
            point = audit(game, claim=claim, confidence=0.975, cuts=cuts)
            assert result.bootstrap is not None
            assert result.bootstrap.estimate == pytest.approx(point.bound, rel=1e-9)
            assert np.ptp(result.bootstrap.bounds) == 0
            # numbers kept are rounded up between replicates, which costs a little
            assert 0.97 * point.bound <= result.bound <= point.bound + 1e-12

    @pytest.mark.parametrize("correction", ["match", "tamper", "composition"])
    def test_the_bound_is_a_low_percentile_of_replicates(
        self, game: NoisySum, correction: Any
    ) -> None:
        rng = np.random.default_rng(2)
        odds = game.log_odds + 0.2 * rng.normal(size=(79, 1))
        draws = 1 / (1 + np.exp(-odds))
        result = audit(game, propensity=draws, correction=correction)
        assert result.bootstrap is not None
        bounds = result.bootstrap.bounds
        assert result.bound == np.sort(bounds)[1]  # ⌊.025 · 80⌋ = 2
        assert np.ptp(bounds) > 0 or correction == "composition"
        for k in (0, 40):  # each replicate is an audit of its own
            how: Any = {"correction": correction, "confidence": 0.975}
            alone = audit(game, propensity=draws[k], cuts=lb.Fixed(result.guesses), **how)
            if correction == "match":
                assert bounds[k] == pytest.approx(alone.bound, rel=0.03)

    def test_a_fitted_model(self, game: NoisySum) -> None:
        fit = LogisticPropensity().fit(game.holdout_features, game.holdout_member)
        result = audit(game, propensity=fit, features=game.features, uncertainty="bootstrap")
        assert result.kind == "exploratory_lower_bound"
        assert result.check(parameter=0.0) == "inconclusive"
        assert result.bootstrap is not None
        assert result.bootstrap.bounds.size == 600
        assert result.bound == np.sort(result.bootstrap.bounds)[14]
        assert result.falsification is not None
        assert not result.withheld
        again = lb.ZeroRunResult.from_json(result.to_json())
        assert again == result
        assert again.falsification == result.falsification

    def test_refuted_propensities_withhold_the_bound(self) -> None:
        game = noisy_sum(2000, mu=3.0, shift=0.1, seed=1, bias=3.0)
        given: dict[str, Any] = {"propensity": np.full(2000, 0.5), "features": game.features}
        result = audit(game, **given)
        assert (result.bound, result.withheld, result.by_tampering) == (0.0, True, None)
        assert result.assumptions[0].status == "contradicted"
        assert "the data contradict the propensity model (p = " in str(result.summary())
        assert "refuted" not in str(result.summary())
        shown = audit(game, release_refuted=True, **given)
        assert shown.bound > 0
        assert shown.assumptions[0].status == "contradicted"
        untested = audit(game, falsify=False, **given)
        assert untested.falsification is None
        assert untested.bound == shown.bound

    def test_limits_cost_power_and_contain_the_values(self, game: NoisySum) -> None:
        """Wider limits never prove more."""
        every: list[dict[str, Any]] = [
            {"claim": lb.PureDP(), "cuts": lb.Fixed(100), "adversary": "raw"},
            {"correction": "tamper", "cuts": lb.Fixed(100), "adversary": "raw"},
            {"claim": lb.PureDP(), "correction": "tamper", "adversary": "raw"},
        ]
        for options in every:
            bounds = []
            for width in (0.0, 0.2, 0.6):
                low, high = game.log_odds - width, game.log_odds + width
                limits = (1 / (1 + np.exp(-low)), 1 / (1 + np.exp(-high)))
                bounds.append(audit(game, propensity=limits, **options).bound)
            assert bounds == sorted(bounds, reverse=True)
            assert bounds[0] == pytest.approx(audit(game, **options).bound, abs=1e-9)


class TestOptions:
    @pytest.mark.parametrize("correction", ["match", "tamper"])
    def test_infinite_scores_come_first(self, game: NoisySum, correction: Any) -> None:
        certain = np.where(game.member & (np.arange(1500) < 200), math.inf, game.scores)
        result = audit(game, scores=certain, correction=correction)
        assert result.bound >= audit(game, correction=correction).bound
        assert np.isfinite(result.histogram.edges).all()

    @pytest.mark.parametrize("correction", ["match", "tamper"])
    def test_what_looks_wrong_is_said(self, game: NoisySum, correction: Any) -> None:
        options: dict[str, Any] = {"correction": correction, "claim": lb.PureDP()}
        if correction == "tamper":
            options["cuts"] = lb.Fixed(100)
        given = game.member, game.propensity
        noise = np.random.default_rng(9).normal(size=1500)
        audited: Any = flat.zero_run
        assert not any(
            word in note
            for note in audited(noise, *given, **options).warnings
            for word in ("inverted", "share their score", "are members")
        )
        inverted = audited(noise - 2 * game.member, *given, **options)
        assert sum("inverted" in note for note in inverted.warnings) == 1
        tied = audited(np.round(noise), *given, **options)
        assert sum("share their score" in note for note in tied.warnings) == 1
        rows = game.member | (np.arange(1500) % 5 > 0)
        crowd = audited(noise[rows], game.member[rows], game.propensity[rows], **options)
        assert any("are members" in note for note in crowd.warnings)


def spoiled(game: NoisySum, value: float, row: int = 17) -> np.ndarray:
    values = game.propensity.copy()
    values[row] = value
    return values


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda g: {"propensity": spoiled(g, 1.2)}, errors.OptionError, "propensity .* index 17"),
    (lambda g: {"propensity": spoiled(g, math.nan)}, errors.OptionError, "propensity .* index 17"),
    (lambda g: {"propensity": spoiled(g, 0.0)}, errors.OptionError, "index 17.*max_log_odds"),
    (lambda g: {"propensity": g.propensity[:5]}, errors.InputError, "propensity has 5"),
    (
        lambda g: {"propensity": g.propensity[None, :5]},
        errors.InputError,
        "each row of propensity has 5",
    ),
    (lambda g: {"propensity": 1.0 * g.member}, errors.DesignError, "Proposition 3"),
    (
        lambda g: {"propensity": np.where(g.member, 0.99, 0.01), "max_log_odds": 1.0},
        errors.DesignError,
        "Proposition 3",
    ),
    (lambda _: {"variant": "untampered"}, errors.OptionError, "another variant"),
    (lambda g: {"propensity": (g.propensity,) * 3}, errors.InputError, "pair"),
    (
        lambda g: {"propensity": (g.propensity + 0.01, g.propensity - 0.01)},
        errors.OptionError,
        "lower limit",
    ),
    (
        lambda g: {"propensity": (g.propensity, g.propensity), "correction": "match"},
        errors.OptionError,
        "limits",
    ),
    (lambda _: {"adversary": "nobody"}, errors.OptionError, "adversary"),
    (lambda _: {"claim": lb.PureDP(), "cuts": lb.UnionBound()}, errors.OptionError, "KLScan"),
    (lambda _: {"cuts": lb.Weighted()}, errors.OptionError, "fixed in advance"),
    (lambda _: {"correction": "tamper", "cuts": lb.KLScan()}, errors.OptionError, "Fixed"),
    (lambda _: {"scores": np.zeros(1500)}, errors.AbstentionError, "nothing can be guessed"),
    (lambda _: {"ids": np.zeros(1500)}, errors.InputError, "ids"),
    (lambda _: {"confidence": 1.0}, errors.OptionError, "confidence"),
    (lambda g: {"propensity": np.tile(g.propensity, (30, 1))}, errors.OptionError, "resamples"),
]


@pytest.mark.parametrize(("changes", "error", "words"), ERRORS)
def test_bad_input_is_named(
    game: NoisySum, changes: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        audit(game, **changes(game))


def test_a_model_needs_features_and_other_examples(game: NoisySum) -> None:
    ids = np.arange(1500)
    fit = LogisticPropensity().fit(game.holdout_features, game.holdout_member, ids=ids + 1000)
    with pytest.raises(errors.OptionError, match="features="):
        audit(game, propensity=fit)
    with pytest.raises(errors.InputError):
        audit(game, propensity=fit, features=game.features, ids=ids)


def test_matching_that_keeps_nothing(game: NoisySum) -> None:
    certain = np.where(game.member, 1 - 1e-9, 1e-9)
    with pytest.raises(errors.DesignError, match="matching keeps"):
        audit(game, propensity=certain)
