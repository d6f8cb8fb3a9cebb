"""Log-odds of membership that are learnt: a confidence set of the coefficients of a logistic model.

A bound that is right where the log-odds are known is computed at every member of the set; the least
one is above the truth only if the true log-odds are outside of the set, or the bound at them errs:
with probability p_set + p_test at most, although both use the same labels (Berger and Boos, "P
values maximized over a confidence set for the nuisance parameter", 1994).
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import check_features, check_length, complement
from leakbound._base.records import Lazy
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits.zero_run.log_odds import Knowledge, OddsBox, OddsSet, other_share
from leakbound.audits.zero_run.request import Candidates, ZeroRunRequest
from leakbound.cuts import Fixed
from leakbound.errors import FitError, InputError, OptionError
from leakbound.propensity import (
    ConfidenceSet,
    CrossFit,
    FormTest,
    LogisticPropensity,
    PropensityFit,
    bet_against_set,
    link_bent,
    products_missing,
)
from leakbound.propensity.falsification import ensembles
from leakbound.propensity.fit import overlap
from leakbound.results import Assumption
from leakbound.results.zero_run import LearntLogOdds

# The largest feature, in absolute value: the square of a larger one may be no number.
_HUGE = 1e100

_FOLDS = 5
# Squares and products that a fit may use: those that scores follow most.
_PRODUCTS = 200
# Standard deviations at which features are clipped before they are multiplied.
_CLIPPED = 3.0
_PENALTIES = np.logspace(-1, 4, 11)
# Robust standard deviations beyond which a score counts by its logarithm in fits.
_TAIL = 4.0
# Scores beyond this in absolute value are scaled down first.
_VAST = 1e150
# Share of a product's mean square below which its variance is rounding.
_CONSTANT = 1e-9

_THEOREM = (
    "If log-odds of membership are linear in the features, the true coefficients are in a "
    "confidence set computed from all labels, except with probability {set:.3g}, in finite "
    "samples (cross-fitted universal inference: Wasserman, Ramdas and Balakrishnan 2020). At each "
    "of its members a bound holds with probability of error {test:.3g}; the smallest of them is "
    "above the truth with probability {both:.3g} at most, although both use the same labels "
    "(Berger and Boos 1994). At known log-odds: "
)
_MODEL = "logistic regression, linear in the features"
_LINEAR = (
    "Log-odds of membership are a linear function of the features (a logistic model), with any "
    "coefficients, and all labels are independent given the features"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Learning:
    """What log-odds are learnt from besides the audited labels: features, and D' if there is one.

    `seen` is what tests of the model's form and predictions of scores may use; `guide` are
    log-odds that no audited label had a part in.
    """

    features: FloatArray
    seen: FloatArray
    reference: tuple[FloatArray, BoolArray] | None = None
    offset: float = 0.0
    own_intercept: bool = False
    guide: FloatArray | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, propensity: PropensityFit | CrossFit | LogisticPropensity, candidates: Candidates
    ) -> "Learning":
        """Read a logistic model: fitted to D', or to be learnt from the audited labels alone."""
        member = candidates.member
        if isinstance(propensity, CrossFit):
            check_folds(propensity, candidates)
            return cls(features=propensity.features, seen=propensity.features)
        table = check_features(candidates.features_for(propensity))
        check_length(table, member.size, "features")
        if isinstance(propensity, LogisticPropensity):
            return cls(features=table, seen=table)
        return cls(
            features=table,
            seen=table,
            reference=(propensity.rows.features, propensity.rows.member),
            offset=propensity.offset,
            own_intercept=propensity.own_intercept,
            guide=propensity.log_odds(table),
            warnings=() if propensity.own_intercept else other_share(propensity, member),
        )


def learnt(candidates: Candidates, learning: Learning) -> Knowledge:
    """Choose what is audited, find the set, test the model's form, and blind the scores."""
    request, member = candidates.request, candidates.member
    _check(request, learning)
    # 1. The set of the audited examples.
    guide = np.zeros(member.size) if learning.guide is None else learning.guide
    rows = candidates.audited(np.abs(guide))
    beyond = np.flatnonzero(np.abs(guide) > request.limit)
    columns, guide, refusal = _columns(learning), guide[rows], ""
    odds: OddsSet | OddsBox
    try:
        found = _confidence_set(candidates, learning, rows, beyond, columns)
        odds, likeliest = OddsSet(found, guide), found.log_odds()
    except FitError as error:
        odds, likeliest, refusal = OddsBox.of_member(guide), guide, str(error)
    # 2. Tests of the model's form.
    tests: tuple[FormTest, ...] = ()
    seen, trees, seed = learning.seen[rows], request.falsify, request.seed
    if isinstance(odds, OddsSet) and request.falsify:
        more = None if learning.seen is learning.features else seen
        bets = bet_against_set(odds.found, features=seen, seed=seed)
        tests = (products_missing(odds.found, features=more), link_bent(odds.found), bets)
    # 3. Scores less what features predict of them.
    blind = {
        name: usable(beyond_features(usable(values[rows]), seen, trees=trees, seed=seed))
        for name, values in candidates.attacks.scores.items()
    }
    level = complement(request.confidence)
    levels = {"set": shares.SET.of(level), "test": shares.AT_MEMBER.of(level)}
    digested: dict[str, FloatArray | BoolArray] = {"features": learning.features}
    if learning.reference is not None:
        others, labels = learning.reference
        digested |= {"features of D'": others, "member of D'": labels}
    return Knowledge(
        odds=odds,
        rows=rows,
        scores=blind,
        abstained=beyond.size,
        kind="conditional_lower_bound",
        refuted=any(one.refuted for one in tests),
        assumptions=_assumptions(learning, tests, refusal),
        warnings=_warnings(learning, columns, tests, refusal),
        options={"uncertainty": "set", "set_level": levels["set"], "propensity": _MODEL},
        overlap=Lazy(lambda: overlap(likeliest, member[rows])),
        digested=digested,
        share=shares.AT_MEMBER.of(1.0),
        theorem=_THEOREM.format(**levels, both=sum(levels.values())),
        refusal=refusal,
        learnt=None
        if isinstance(odds, OddsBox)
        else LearntLogOdds(
            level=odds.found.level,
            test_level=levels["test"],
            reference=odds.found.reference,
            estimate=odds.found.coefficients,
            squared_radius=odds.found.squared_radius,
            coefficients=odds.found.coefficients,
            at_estimate=0.0,
            columns=columns,
            tests=tests,
        ),
    )


def _assumptions(
    learning: Learning, tests: tuple[FormTest, ...], refusal: str
) -> tuple[Assumption, Assumption]:
    """Say what is known of the model, and what it was learnt from."""
    refuted = any(one.refuted for one in tests)
    tried = "; ".join(f"{one.test}: p = {one.p_value:.2g}" for one in tests)
    text = f"{_LINEAR}; not refuted ({tried}). Missing features and mild misfit cannot be detected."
    if refusal:
        text = f"{_LINEAR}; no confidence set: {refusal}."
    elif not tests:
        text = f"{_LINEAR}; the form was not tested."
    elif refuted:
        text = f"{_LINEAR}: REFUTED. {tried}."
    others = "; those of the other examples follow the same log-odds, whatever their features."
    source = (
        "The propensities do not depend on any score. They depend on the audited labels, which "
        "the confidence set allows for"
    ) + ("." if learning.reference is None else others)
    return (
        Assumption("propensities", text, "contradicted" if refuted else "unverifiable"),
        Assumption("propensities learned from labels only", source, "declared"),
    )


def _warnings(
    learning: Learning, columns: IntArray, tests: tuple[FormTest, ...], refusal: str
) -> tuple[str, ...]:
    """Say what limits the audit; often nothing."""
    notes = [
        f"propensity model refuted (p = {one.p_value:.2g}, {one.test}): log-odds are not linear in "
        "the features, which may explain correct guesses"
        for one in tests
        if one.refuted
    ]
    if not tests and not refusal:
        notes.append("the form of the propensity model was not tested: falsify=False")
    width = learning.features.shape[1]
    if width > columns.size:
        notes.append(
            f"{width - columns.size} of {width} features are constant or equal to one before them "
            "and were left out, which changes no log-odds"
        )
    return (*learning.warnings, *notes)


def check_folds(crossed: CrossFit, candidates: Candidates) -> None:
    """Check that folds are those of the audited examples."""
    if candidates.request.features is not None:
        raise OptionError("a CrossFit has the features of the audited examples: leave out features")
    check_length(crossed.fold, candidates.attacks.examples, "the folds of propensity")
    other = np.flatnonzero(crossed.member != candidates.member)
    if other.size:
        raise InputError(
            "propensity was cross-fitted with another membership, or with the examples in another "
            f"order than the scores ({other.size} rows differ, the first being row {other[0]}): "
            "cross-fit in the order of the scores"
        )


def _check(request: ZeroRunRequest, learning: Learning) -> None:
    """Refuse options that have no form over a confidence set."""
    fits = {
        "cuts": request.cuts is None or isinstance(request.cuts, Fixed),
        "adversary": request.adversary is None,
        "variant": request.variant == "directional",
    }
    for name in [name for name, fit in fits.items() if not fit]:
        raise OptionError(
            f"{name}={getattr(request, name)!r} has no form over a confidence set of log-odds, "
            "which plans its own guesses and needs no refits: leave it out (cuts may be Fixed), or "
            'explore with uncertainty="bootstrap"'
        )
    if request.max_log_odds is not None and (learning.guide is None or learning.own_intercept):
        raise OptionError(
            "max_log_odds leaves examples out by log-odds that no audited label had a part in: fit "
            "the model to other examples whose share of members is that of the audit, or declare "
            "both shares: with_member_share(share, of_reference=share_of_those)"
        )


def _columns(learning: Learning) -> IntArray:
    """Return the columns that a model needs: none is huge, constant or equal to another one."""
    tables = [learning.features]
    if learning.reference is not None:
        check_length(learning.reference[0][0], learning.features.shape[1], "features of D'")
        tables.append(learning.reference[0])
    together = np.vstack(tables)
    largest = np.abs(together).max(axis=0)
    if largest.max() > _HUGE:
        column = int(largest.argmax())
        raise InputError(
            f"features has {largest[column]:.3g} in column {column}, beyond {_HUGE:g}, whose "
            "square is no number: give it in other units"
        )
    # Without the others a model is the same. Columns that nearly depend on one another stay:
    # membership may depend on what is left out of those.
    varied = np.flatnonzero(together.max(axis=0) > together.min(axis=0))
    if not varied.size:
        raise InputError(
            "every feature is constant: pass propensities, which are then all the same"
        )
    first: dict[bytes, int] = {}
    for column in varied.tolist():
        values = together[:, column] + 0.0  # -0.0 and 0.0 are equal and differ in bytes
        first.setdefault(blake2b(values.tobytes()).digest(), column)
    return np.array(sorted(first.values()), dtype=np.int64)


def _confidence_set(
    candidates: Candidates, learning: Learning, rows: IntArray, beyond: IntArray, columns: IntArray
) -> ConfidenceSet:
    """Find the set from the audited labels, those of D', and those beyond the limit of log-odds.

    Were the last left out, which labels of D' the set rests on would depend on labels of D'.
    """
    member, request, table = candidates.member, candidates.request, learning.features[:, columns]
    others, labels, offsets = table[beyond], member[beyond], np.full(beyond.size, learning.offset)
    if learning.reference is not None:
        others = np.vstack([others, learning.reference[0][:, columns]])
        labels = np.concatenate([labels, learning.reference[1]])
        offsets = np.concatenate([offsets, np.zeros(learning.reference[1].size)])
    return ConfidenceSet.fit(
        table[rows],
        member[rows],
        reference=(others, labels) if labels.size else None,
        offsets=np.full(rows.size, learning.offset),
        reference_offsets=offsets if labels.size else None,
        own_intercept=learning.own_intercept,
        level=shares.SET.of(complement(request.confidence)),
        seed=request.seed,
    )


def beyond_features(
    scores: FloatArray, features: FloatArray, *, trees: bool = False, seed: int
) -> FloatArray:
    """Return scores less their prediction from features, fold by fold from the other folds.

    Scores themselves, where nothing predicts them better than a line: guesses are balanced against
    that in any case, and a prediction of more terms than are needed is noise.
    """
    if scores.size < 2 * _FOLDS:
        return scores
    fold = Purpose.BEYOND_FEATURES.rng(seed).permutation(scores.size) % _FOLDS
    spread = features.std(axis=0)
    units = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    left: FloatArray = scores - scores.mean()
    line = _ridge(units, left, fold)
    first = fold == 0
    # of products that were chosen without the first fold: others would fit noise there too
    bent = _closer(_curve(units, left, fold, ~first)[first], line[first], left[first])
    left -= _curve(units, left, fold, fold >= 0) if bent else line
    beyond = _trees(units, left, fold, seed) if trees else np.zeros(scores.size)
    return left - beyond if bent or beyond.any() else scores


def _curve(units: FloatArray, scores: FloatArray, fold: IntArray, chosen: BoolArray) -> FloatArray:
    """Return ridge predictions from features and the products that tell most of chosen rows."""
    clipped = np.clip(units, -_CLIPPED, _CLIPPED)
    one, other = _telling(scores[chosen], units[chosen], clipped[chosen])
    columns = np.column_stack([units, clipped[:, one] * clipped[:, other]])
    return _ridge(columns - columns.mean(axis=0), scores, fold)


def _telling(
    scores: FloatArray, units: FloatArray, clipped: FloatArray
) -> tuple[IntArray, IntArray]:
    """Return the squares and products that scores, less a linear fit, follow most."""
    line = np.column_stack([np.ones(scores.size), units])
    left = scores - line @ np.linalg.lstsq(line.T @ line, line.T @ scores, rcond=None)[0]
    left -= left.mean()
    one, other = np.triu_indices(units.shape[1])
    # Of products p: Σ p·left, and their means and mean squares, none of them written down.
    strength = np.abs((clipped * left[:, None]).T @ clipped)[one, other]
    squares = clipped**2
    mean_square = (squares.T @ squares)[one, other] / scores.size
    variance = mean_square - ((clipped.T @ clipped)[one, other] / scores.size) ** 2
    varies = variance > _CONSTANT * mean_square
    strength[varies] /= np.sqrt(variance[varies])
    strength[~varies] = 0.0
    top = np.argsort(-strength, kind="stable")[:_PRODUCTS]
    return one[top], other[top]


def _ridge(columns: FloatArray, scores: FloatArray, fold: IntArray) -> FloatArray:
    """Return ridge predictions of each fold, at the penalty that predicts all folds best."""
    rows = [np.flatnonzero(fold == k) for k in range(_FOLDS)]
    tables = [columns[here] for here in rows]
    grams = [table.T @ table for table in tables]
    crosses = [table.T @ scores[here] for table, here in zip(tables, rows, strict=True)]
    gram, cross = sum(grams), sum(crosses)
    predicted = np.empty((_PENALTIES.size, scores.size))
    for k in range(_FOLDS):
        values, vectors = np.linalg.eigh(gram - grams[k])
        turned = vectors.T @ (cross - crosses[k])
        weights = turned[:, None] / (np.maximum(values, 0.0)[:, None] + _PENALTIES)
        predicted[:, rows[k]] = (tables[k] @ (vectors @ weights)).T
    errors = ((scores - predicted) ** 2).sum(axis=1)
    best: FloatArray = predicted[int(np.argmin(errors))]
    return best


def _trees(units: FloatArray, scores: FloatArray, fold: IntArray, seed: int) -> FloatArray:
    """Return what trees predict of each fold: nothing where they are of no use for the first."""
    predicted = np.zeros(scores.size)
    for k in range(_FOLDS):
        model = ensembles().HistGradientBoostingRegressor(
            max_iter=80,
            max_leaf_nodes=8,
            learning_rate=0.07,
            min_samples_leaf=30,
            early_stopping=False,
            random_state=Purpose.BEYOND_FEATURES_TREES.derived(seed, bits=32),
        )
        rows = fold == k
        model.fit(units[~rows], scores[~rows])
        predicted[rows] = model.predict(units[rows])
        if k == 0 and not _closer(predicted[rows], 0.0, scores[rows]):
            return np.zeros(scores.size)
    return predicted


def _closer(predicted: FloatArray, other: FloatArray | float, scores: FloatArray) -> bool:
    """Return whether predictions come nearer to scores than others do."""
    return float(((scores - predicted) ** 2).sum()) < float(((scores - other) ** 2).sum())


def usable(scores: FloatArray) -> FloatArray:
    """Return finite scores in robust units, in the same order, with tails that grow slowly."""
    finite = scores[np.isfinite(scores)]
    if not finite.size:
        return np.sign(scores)
    largest = float(np.abs(finite).max())
    if largest > _VAST:  # differences of such scores are no numbers
        return usable(scores / largest)
    centre = float(np.median(finite))
    spread = 1.4826 * float(np.median(np.abs(finite - centre))) or float(finite.std()) or 1.0
    low, high = finite.min() - spread, finite.max() + spread
    values = (np.clip(scores, low, high) - centre) / spread
    beyond = np.maximum(np.abs(values) - _TAIL, 0.0)
    grown: FloatArray = np.sign(values) * (np.minimum(np.abs(values), _TAIL) + np.log1p(beyond))
    return grown
