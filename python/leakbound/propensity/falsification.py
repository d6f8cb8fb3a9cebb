"""Tests of propensities that do not use scores: bets against them, and tests of the model."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_scores, seed_of, vector
from leakbound._base.console import track
from leakbound._base.features import FeatureTable, placed_features
from leakbound._base.imports import needs
from leakbound._base.numerics import expit
from leakbound._base.records import Record
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    AnyArray,
    ArrayInput,
    BoolArray,
    FloatArray,
    HasMember,
    IntArray,
)
from leakbound.errors import InputError, InputTypeError
from leakbound.propensity.confidence import ConfidenceSet
from leakbound.propensity.likeness import standardised
from leakbound.stats.binomial import poisson_binomial_tail_offsets

_TREES = "gradient-boosted trees"
# The three tests of an audit then withhold a correct model in 3 of 100 audits.
REFUTED_BELOW = 0.01
"""p-value below which propensities count as refuted."""
Term: TypeAlias = tuple[int, ...]
"""The features of a product, by number."""
# Parts of the examples: a sceptic bets on each but the first.
_PARTS = 5
# Absolute log-odds beyond which nothing is guessed: their odds overflow.
_LARGEST_LOG_ODDS = 300.0
# Standard deviations at which features are clipped, so that no few rows decide a product.
_CLIPPED_AT = 3.0
# Share of a product's variance below which the model's columns explain it.
_EXPLAINED_BELOW = 1e-3
# Newton's steps towards a saddle point.
_NEWTON_STEPS = 100
# The squared Newton decrement at which they end.
_CONVERGED_BELOW = 1e-9


@dataclass(frozen=True, eq=False)
class Falsification(Record):
    """The result of a test of propensities.

    `refuted` is whether the p-value is below 0.01.
    """

    p_value: float
    """Upper bound on the probability of as many correct guesses if the propensities are correct."""
    refuted: bool
    guesses: int
    """How often the sceptic bet against the propensities, and below, was right."""
    correct: int
    expected: float
    """Expected number of correct guesses if the propensities are correct."""
    sceptic: str
    """Description of the model that bet; of two the one with the smaller p-value."""
    seed: int
    """Of the sceptic and of the order of the examples."""

    def _flaw(self) -> str:
        if not 0 <= self.p_value <= 1 or not 0 <= self.correct <= self.guesses:
            return f"p_value is {self.p_value:g}, correct {self.correct} of {self.guesses}"
        if self.refuted != (self.p_value < REFUTED_BELOW):
            return f"refuted does not follow from {self.p_value:g}"
        return ""


@dataclass(frozen=True, eq=False)
class FormTest(Record):
    """The result of a test of the form of a logistic model.

    `refuted` is whether the p-value is below 0.01.
    """

    p_value: float
    """Upper bound on the probability of the observation if log-odds are linear in the features."""
    refuted: bool
    test: str
    """Description of the test."""
    terms: int
    """Number of products or bets."""
    worst: Term = ()
    """The features of the product that the model lacks most; one for a slope of D'; else none."""


def falsify(
    log_odds: ArrayInput, X: ArrayInput, member: ArrayInput | HasMember, *, seed: int | None = None
) -> Falsification:
    """Test whether P(member | x) are the given propensities, by betting against them.

    The examples are put in random order and cut into five parts. From the second on, two sceptics,
    a logistic regression and gradient-boosted trees, are trained on the *earlier* parts, with the
    claimed log-odds as one more feature. Each guesses "member" if it considers membership likelier
    than claimed, "non-member" if less likely, and bets on the examples that maximise its expected
    evidence. If the propensities are correct, then given all earlier labels the guesses of a part
    are correct independently of one another, with probabilities σ(Tλ) (Theorem C.1 of the
    Zero-Run paper at ε = 0). Their Poisson-binomial tail P_k is then at least as large as a uniform
    variable, given the past; so -Σ ln P_k is at most a Gamma(4) variable in distribution (Fisher's
    combination, 1932). The p-value is twice the smaller one of the two.

    Estimated propensities always have some sampling error, which this test refutes if there are
    many examples. This is not a false alarm: scores that correlate with the error would be taken
    for leakage. Mild misspecification, and shift along features not in `X`, are not detected.

    Parameters
    ----------
    log_odds : array-like, shape (m,)
        Claimed log-odds of membership, from data other than these. Examples beyond ±300 are left
        out, and rows of a table of which a model predicts NaN.
    X, member : array-like, shapes (m, d) and (m,)
        Features and membership.
    seed : int, optional
        Seed of the sceptic and of the order of the examples; by default a new one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(2000, 1))
    >>> member = rng.random(2000) < 1 / (1 + np.exp(-2 * features[:, 0]))
    >>> falsify(np.zeros(2000), features, member).refuted
    True
    """
    order = ExampleOrder()
    feature_table = placed_features(order, X, "X")
    placed_log_odds = order.placed(log_odds, "log_odds")
    claimed_log_odds = _claimed_log_odds(placed_log_odds, feature_table)
    feature_rows = len(feature_table.rows)
    if feature_rows != claimed_log_odds.size:
        raise InputError(
            f"X has {feature_rows} rows and there are {claimed_log_odds.size} log-odds"
        )
    labels = order.member(member, claimed_log_odds.size)
    seed = seed_of(seed)
    testable_rows = np.flatnonzero(np.abs(claimed_log_odds) <= _LARGEST_LOG_ODDS)
    shuffled_rows = Purpose.SCEPTIC_PARTS.rng(seed).permutation(testable_rows)
    features_and_claims = np.column_stack([feature_table.rows, claimed_log_odds])
    tests_of_sceptics = list[Falsification]()
    for name, sceptic in default_sceptics().items():
        guesses_of_parts = _guesses_of_parts(
            sceptic,
            predictors=features_and_claims,
            claimed_log_odds=claimed_log_odds,
            labels=labels,
            shuffled_rows=shuffled_rows,
            seed=seed,
        )
        test_of_sceptic = _test_of_one_sceptic(
            name,
            guesses_of_parts,
            claimed_log_odds=claimed_log_odds,
            labels=labels,
            seed=seed,
        )
        tests_of_sceptics.append(test_of_sceptic)
    strongest_test = min(tests_of_sceptics, key=lambda test: test.p_value)
    # Bonferroni: the smallest of several p-values times their number.
    p_value = min(1.0, shares.SCEPTICS.price(len(tests_of_sceptics)) * strongest_test.p_value)
    return replace(strongest_test, p_value=p_value, refuted=p_value < REFUTED_BELOW)


def _claimed_log_odds(log_odds: ArrayInput, table: FeatureTable) -> FloatArray:
    """Read claimed log-odds; those of which a model of a table says nothing are infinite."""
    values: AnyArray = vector(log_odds, "log_odds")
    if table.encoding is not None and values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.inf, values)
    return check_scores(values, "log_odds")


def _test_of_one_sceptic(
    name: str,
    guesses_of_parts: Iterable[tuple[IntArray, FloatArray]],
    claimed_log_odds: FloatArray,
    labels: BoolArray,
    seed: int,
) -> Falsification:
    """Test claimed log-odds by the guesses of one sceptic, as if there were no other."""
    log_tails_of_parts = list[float]()
    guesses_made = 0
    correct_guesses = 0
    expected_correct = 0.0
    for rows, signs in guesses_of_parts:
        correct_in_part = int((labels[rows] == (signs > 0)).sum())
        # Log-odds of a correct guess: those claimed if it is "member", else minus them.
        log_odds_of_correct = signs * claimed_log_odds[rows]
        log_tail = 0.0
        if rows.size:
            log_tail = poisson_binomial_tail_offsets(
                correct_in_part, log_odds_of_correct, epsilon=0.0, log=True
            )
        log_tails_of_parts.append(log_tail)
        guesses_made += rows.size
        correct_guesses += correct_in_part
        expected_correct += float(expit(log_odds_of_correct).sum())
    p_value = fisher(log_tails_of_parts)
    return Falsification(
        p_value=p_value,
        refuted=p_value < REFUTED_BELOW,
        guesses=guesses_made,
        correct=correct_guesses,
        expected=expected_correct,
        sceptic=name,
        seed=seed,
    )


def bet_against_set(
    confidence_set: ConfidenceSet, *, features: FloatArray | None = None, seed: int | None = None
) -> FormTest:
    """Let gradient-boosted trees bet against all members of a confidence set, as in `falsify`.

    The p-value holds whichever member of the set is true, plus the chance that none is: each tail
    is that at the member that makes so many correct guesses likeliest.

    Parameters
    ----------
    confidence_set : ConfidenceSet
        The trees bet on its audited rows.
    features : ndarray of float64, shape (m, k), optional
        Features of these that the trees use; those of the set if None.
    seed : int, optional
        Seed of the trees and of the order of the examples; by default a new one.
    """
    seed = seed_of(seed)
    trees = default_sceptics()[_TREES]
    estimated_log_odds = confidence_set.log_odds()
    if features is None:
        features = confidence_set.features
    features_and_log_odds = np.column_stack([features, estimated_log_odds])
    shuffled_rows = Purpose.SET_PARTS.rng(seed).permutation(estimated_log_odds.size)
    guesses_of_parts = _guesses_of_parts(
        trees,
        predictors=features_and_log_odds,
        claimed_log_odds=estimated_log_odds,
        labels=confidence_set.member,
        shuffled_rows=shuffled_rows,
        seed=seed,
    )
    log_tails_of_parts = list[float]()
    bets_made = 0
    for rows, signs in guesses_of_parts:
        log_tail = confidence_set.core.largest_log_tail(rows, signs.astype(np.int64))
        log_tails_of_parts.append(log_tail)
        bets_made += rows.size
    p_value = min(1.0, fisher(log_tails_of_parts) + confidence_set.level)
    return FormTest(
        p_value=p_value,
        refuted=p_value - confidence_set.level < REFUTED_BELOW,
        test=in_a_line(trees),
        terms=bets_made,
    )


def products_missing(
    confidence_set: ConfidenceSet, *, features: FloatArray | None = None
) -> FormTest:
    """Test whether the model lacks a product of features, or D' follows another one.

    One score test for each square and each product, and where there is D', for each slope and an
    intercept of its own. Returned is the smallest p-value times the number of terms.

    Parameters
    ----------
    confidence_set : ConfidenceSet
        Its rows, those of D' included, and its estimate are tested.
    features : ndarray of float64, shape (m, k), optional
        Features of the audited examples that the model may lack, each tested for a slope.

    Notes
    -----
    For a term z the statistic is s = Σ zᵢ(yᵢ - πᵢ), less what the columns of the model explain of
    z: Rao's score test (1948). Its size is s over its standard deviation or, where that is less,
    √(2 sup (ts - K(t))), K the cumulant function of s: the leading part of the saddle-point formula
    (Daniels 1987). Where few rows decide, s is far from normal.
    """
    rows_of_model, _, _ = confidence_set.residuals()
    standardised_features = standardised(rows_of_model, _CLIPPED_AT)
    reference_rows = confidence_set.reference
    test = "score tests of squares and products of features"
    if reference_rows:
        test += ", of other coefficients in D'"
    if features is not None:
        test += ", of features left out"
    candidate_terms = _candidate_terms(standardised_features, reference_rows, features)
    return _largest_score_test(confidence_set, candidate_terms, test)


def link_bent(confidence_set: ConfidenceSet) -> FormTest:
    """Test whether membership depends on the log-odds by another curve than the logistic one.

    Stukel's terms (JASA 83, 1988) of the log-odds λ are λ² where λ > 0 and λ² where λ < 0. Their
    difference bends both tails alike, as Cauchy's link does, and their sum one against the other:
    each is tested as in `products_missing`.

    Parameters
    ----------
    confidence_set : ConfidenceSet
        Its rows and its estimate are tested.
    """
    _, _, log_odds = confidence_set.residuals()
    difference_of_terms = log_odds * np.abs(log_odds)
    sum_of_terms = log_odds**2
    columns_of_link = np.column_stack([difference_of_terms, sum_of_terms])
    terms_without_features: list[Term] = [(), ()]
    return _largest_score_test(
        confidence_set,
        [(columns_of_link, terms_without_features)],
        test="score tests of the logistic link",
    )


def _guesses_of_parts(
    sceptic: object,
    predictors: FloatArray,
    claimed_log_odds: FloatArray,
    labels: BoolArray,
    shuffled_rows: IntArray,
    seed: int,
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield rows bet on and guesses (1 and -1) of each part but the first.

    The model of a part has learnt from the parts before it.
    """
    rows_of_parts = np.array_split(shuffled_rows, _PARTS)
    part_numbers = track(range(1, _PARTS), "Testing the propensities", total=_PARTS - 1)
    for part_number in part_numbers:
        earlier_rows = np.concatenate(rows_of_parts[:part_number])
        rows_of_part = rows_of_parts[part_number]
        believed_log_odds = beliefs(
            sceptic, predictors, labels, earlier_rows, rows_of_part, seed, part_number
        )
        if believed_log_odds is not None:
            bet_rows, guesses = bets(claimed_log_odds[rows_of_part], believed_log_odds)
            yield rows_of_part[bet_rows], guesses


def beliefs(
    model: object,
    predictors: FloatArray,
    labels: BoolArray,
    earlier_rows: IntArray,
    rows: IntArray,
    *seed_numbers: int,
) -> FloatArray | None:
    """Return a sceptic's log-odds of membership of some rows, fitted on earlier ones.

    None where there is nothing to predict, or no model as the earlier rows have one class.
    """
    earlier_labels = labels[earlier_rows]
    if rows.size == 0 or np.unique(earlier_labels).size < 2:
        return None
    from sklearn.base import clone

    unfitted_sceptic = seeded(clone(model), Purpose.SCEPTIC, *seed_numbers)
    fitted_sceptic = unfitted_sceptic.fit(predictors[earlier_rows], earlier_labels)
    return probability_log_odds(fitted_sceptic, predictors[rows])


def bets(claimed: FloatArray, believed: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the bets of a sceptic: rows where claim and belief differ most, and guesses.

    Parameters
    ----------
    claimed, believed : ndarray, shape (m,)
        Log-odds of membership, as claimed and as the sceptic believes.

    Returns
    -------
    tuple of ndarray
        Rows, the one with most evidence first, and for each 1 (a member) or -1 (a non-member).
    """
    excess_probability = expit(believed) - expit(claimed)
    excess_probability[believed == claimed] = 0.0
    # The larger of two variances: a claim near 0 or 1 does not make the sceptic certain.
    larger_variance = np.maximum(_bernoulli_variance(claimed), _bernoulli_variance(believed))
    positive_variance = np.maximum(larger_variance, 1e-300)
    evidence_of_rows = np.abs(excess_probability) / positive_variance
    rows_by_evidence = np.argsort(-evidence_of_rows, kind="stable")
    rows_by_evidence = rows_by_evidence[: np.count_nonzero(excess_probability)]
    if rows_by_evidence.size == 0:
        return rows_by_evidence, np.empty(0)
    excess_by_evidence = excess_probability[rows_by_evidence]
    # Of the first k rows: correct guesses expected beyond the claim, in standard deviations.
    expected_excess = np.cumsum(np.abs(excess_by_evidence))
    standard_deviation = np.sqrt(np.cumsum(positive_variance[rows_by_evidence]))
    last_bet = int(np.argmax(expected_excess / standard_deviation))
    guesses_by_evidence = np.sign(excess_by_evidence)
    return rows_by_evidence[: last_bet + 1], guesses_by_evidence[: last_bet + 1]


def _bernoulli_variance(log_odds: FloatArray) -> FloatArray:
    """Return π(1 - π) for each logit π."""
    return expit(log_odds) * expit(-log_odds)


def fisher(log_tails: list[float]) -> float:
    """Return Fisher's combination of p-values (1932), from their logarithms.

    P(Gamma(k) ≥ x) = e^(-x) Σ_{j < k} x^j / j! at x = −Σ ln P, rounded up by 1e-9 of itself and
    never 0.
    """
    statistic = -sum(log_tails)
    poisson_series = 0.0
    for j in range(len(log_tails)):
        poisson_series += statistic**j / math.factorial(j)
    upper_tail = math.exp(-statistic) * poisson_series * (1 + 1e-9)
    return max(upper_tail, math.ulp(0.0))


@cache
def ensembles() -> Any:
    """Return scikit-learn's gradient-boosted trees, imported once."""
    with needs("ml", "testing propensities"):
        from sklearn import ensemble
    return ensemble


def default_sceptics() -> dict[str, object]:
    """Return the default sceptics by name."""
    trees = ensembles().HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, learning_rate=0.1, early_stopping=False
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return {"logistic regression": linear, _TREES: trees}


def in_a_line(classifier: object) -> str:
    """Return the description of a scikit-learn classifier, which must predict probabilities."""
    methods = ("fit", "predict_proba", "get_params")
    if not all(hasattr(classifier, method) for method in methods):
        raise InputTypeError(
            f"pass a scikit-learn classifier with predict_proba, got {classifier!r}"
        )
    return " ".join(repr(classifier).split())


def seeded(estimator: Any, purpose: Purpose, *numbers: int) -> Any:
    """Set every unset `random_state` of an estimator, nested ones too, from numbers."""
    parameters = estimator.get_params(deep=True)
    random_states = dict[str, int]()
    for name in sorted(parameters):
        _, _, name_in_nested_estimator = name.rpartition("__")
        if name_in_nested_estimator == "random_state" and parameters[name] is None:
            random_states[name] = purpose.derived(*numbers, len(random_states), bits=32)
    return estimator.set_params(**random_states)


def probability_log_odds(model: Any, features: FloatArray) -> FloatArray:
    """Return the log-odds of membership by `predict_proba`; ±inf at 0 and 1."""
    class_probabilities = np.asarray(model.predict_proba(features), dtype=np.float64)
    with np.errstate(divide="ignore"):
        log_probabilities = np.log(class_probabilities)
    (member_column,) = np.flatnonzero(model.classes_)
    log_odds: FloatArray = (
        log_probabilities[:, member_column] - log_probabilities[:, 1 - member_column]
    )
    return log_odds


def _largest_score_test(
    confidence_set: ConfidenceSet, blocks: Iterable[tuple[FloatArray, list[Term]]], test: str
) -> FormTest:
    """Return Rao's score test of the term that a logistic model lacks most.

    Candidates come in blocks of columns with the features of each.
    """
    _, design, log_odds = confidence_set.residuals()
    label_residuals = confidence_set.labels - expit(log_odds)
    label_deviations = np.sqrt(_bernoulli_variance(log_odds))[:, None]
    weighted_basis, triangle = np.linalg.qr(design * label_deviations)
    largest_statistic = 0.0
    tested_terms = 0
    worst_term: Term = ()
    for columns, terms in blocks:
        # 1. Variances of the scores, less what the columns of the model explain.
        weighted_columns = columns * label_deviations
        loadings_on_model = weighted_basis.T @ weighted_columns
        total_variances = (weighted_columns**2).sum(axis=0)
        unexplained_variances = total_variances - (loadings_on_model**2).sum(axis=0)
        is_testable = unexplained_variances > _EXPLAINED_BELOW * total_variances
        tested_terms += int(is_testable.sum())

        # 2. The normal statistics bound the others from above: the largest come first.
        scores_of_terms = columns.T @ label_residuals
        variances_or_inf = np.where(is_testable, unexplained_variances, np.inf)
        normal_statistics = np.abs(scores_of_terms) / np.sqrt(variances_or_inf)
        for column in np.argsort(-normal_statistics):
            normal_statistic = float(normal_statistics[column])
            if normal_statistic <= largest_statistic:
                break
            coefficients_of_term = np.linalg.solve(triangle, loadings_on_model[:, column])
            unexplained_term = columns[:, column] - design @ coefficients_of_term
            signed_root = _signed_root_of_score(unexplained_term, log_odds, label_residuals)
            smaller_statistic = min(normal_statistic, signed_root)
            if smaller_statistic > largest_statistic:
                largest_statistic = smaller_statistic
                worst_term = terms[column]
    p_value = _corrected_normal_p_value(largest_statistic, tested_terms)
    return FormTest(
        p_value=p_value,
        refuted=p_value < REFUTED_BELOW,
        test=test,
        terms=tested_terms,
        worst=worst_term,
    )


def _corrected_normal_p_value(largest_statistic: float, tested_terms: int) -> float:
    """Return the two-sided p-value of the largest of several statistics (Bonferroni)."""
    if not tested_terms:
        return 1.0
    (log_tail,) = _core.log_normal_cdf(np.array([-largest_statistic]))
    one_sided = float(np.exp(log_tail))
    bonferroni_factor = shares.SIGNS.price(2) * shares.TERMS.price(tested_terms)
    return min(1.0, bonferroni_factor * one_sided)


def _signed_root_of_score(term: FloatArray, log_odds: FloatArray, residuals: FloatArray) -> float:
    """Return √(2 sup (ts - K(t))) of a sum s = Σ zᵢ(yᵢ - πᵢ), or a little less.

    z is the term, π are the propensities, and y - π the residuals. The tilt t is found by Newton's
    steps; tilted by it, example i is a member with log-odds λᵢ + t zᵢ.
    """
    score_of_term = float(term @ residuals)
    propensities = expit(log_odds)
    largest_entry = float(np.abs(term).max())
    tilt = 0.0
    for _ in range(_NEWTON_STEPS):
        tilted_log_odds = log_odds + tilt * term
        mean_of_tilted_score = float(term @ (expit(tilted_log_odds) - propensities))
        slope = score_of_term - mean_of_tilted_score
        curvature = max(1e-200, float(term**2 @ _bernoulli_variance(tilted_log_odds)))
        if slope**2 <= _CONVERGED_BELOW * curvature:
            break
        # K'' grows by e^(max|z| |t|) at most, so that a step of this length never overshoots.
        newton_step = abs(slope / curvature)
        damped_step = np.log1p(largest_entry * newton_step) / largest_entry
        tilt += np.copysign(damped_step, slope)
    tilted_log_odds = log_odds + tilt * term
    # K(t) = Σ ln(1 + e^(λᵢ + t zᵢ)) - ln(1 + e^λᵢ) - t zᵢ πᵢ.
    log_normalizers = np.logaddexp(0, tilted_log_odds) - np.logaddexp(0, log_odds)
    cumulants_of_entries = log_normalizers - tilt * term * propensities
    log_likelihood_ratio = tilt * score_of_term - cumulants_of_entries.sum()
    # The signed root of the likelihood ratio.
    return math.sqrt(max(0.0, 2 * log_likelihood_ratio))


def _candidate_terms(
    standardised_features: FloatArray, reference_rows: int, left_out: FloatArray | None
) -> Iterator[tuple[FloatArray, list[Term]]]:
    """Yield squares and products, other coefficients in D', and features that the model may lack.

    They come block by block, since all of them together would fill the memory. The rows of D' are
    the first ones; features left out are those of the others.
    """
    number_of_rows, number_of_features = standardised_features.shape
    for first_feature in range(number_of_features):
        first_factor = standardised_features[:, first_feature, None]
        products_with_first = first_factor * standardised_features[:, first_feature:]
        second_features = range(first_feature, number_of_features)
        yield products_with_first, [(first_feature, second) for second in second_features]
    if reference_rows:
        intercept = np.ones(number_of_rows)
        columns_of_reference = np.column_stack([intercept, standardised_features])
        columns_of_reference[reference_rows:] = 0.0
        slope_terms = [(feature,) for feature in range(number_of_features)]
        yield columns_of_reference, [(), *slope_terms]
    if left_out is not None:
        columns_left_out = np.zeros((number_of_rows, left_out.shape[1]))
        columns_left_out[reference_rows:] = standardised(left_out, _CLIPPED_AT)
        yield columns_left_out, [()] * left_out.shape[1]
