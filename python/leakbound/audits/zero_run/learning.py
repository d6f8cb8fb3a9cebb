"""Log-odds of membership that are learnt: a confidence set of the coefficients of a logistic model.

A bound that is right where the log-odds are known is computed at every member of the set; the least
one is above the truth only if the true log-odds are outside of the set, or the bound at them errs:
with probability p_set + p_test at most, although both use the same labels (Berger and Boos, "P
values maximized over a confidence set for the nuisance parameter", 1994).
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import check_length
from leakbound._base.features import FeatureTable
from leakbound._base.messages import Message, Option
from leakbound._base.types import BoolArray, FloatArray, IntArray, Status, Strings
from leakbound.audits.road import AlignedScores, Request
from leakbound.audits.zero_run.dependence import Columns, columns_needed, deciding_columns
from leakbound.audits.zero_run.game import beyond_features, blind_guesses, robust_scores
from leakbound.audits.zero_run.log_odds import Odds, OddsBox, OddsSet, member_share_warnings
from leakbound.audits.zero_run.options import (
    ZeroRunOptions,
    audited_rows_of,
    features_for_fit,
    features_of,
)
from leakbound.cuts import Fixed, SecondLook
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
from leakbound.propensity.confidence import LabelledRows, set_of_rows
from leakbound.results import Assumption

# The largest feature, in absolute value: the square of a larger one may be no number.
_HUGE = 1e100

Inputs: TypeAlias = dict[str, FloatArray | BoolArray]
FormTests: TypeAlias = tuple[FormTest, ...]
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
_SOURCE = (
    "The propensities do not depend on any score. They depend on the audited labels, which the "
    "confidence set allows for"
)
_SAME = "; those of the other examples follow the same log-odds, whatever their features"


@dataclass(frozen=True, kw_only=True, eq=False)
class Learning:
    """What log-odds are learnt from besides the audited labels: features, and D' if there is one.

    `seen` is what tests of the model's form and predictions of scores may use; `guide` are
    log-odds that no audited label had a part in. `names` are those of the features' columns.
    `left_out` are examples of which the features do not tell all, and which are not audited.
    `model` names the model in options, `form` says more of it, and `source` what it was learnt
    from.
    """

    features: FloatArray
    seen: FloatArray
    names: Strings
    reference: tuple[FloatArray, BoolArray] | None = None
    offset: float = 0.0
    own_intercept: bool = False
    guide: FloatArray | None = None
    warnings: tuple[str, ...] = ()
    left_out: BoolArray | None = None
    model: str = _MODEL
    form: str = ""
    source: str = _SOURCE

    @property
    def inputs(self) -> Inputs:
        """What is read, by the names of digests."""
        read: Inputs = {"features": self.features}
        if self.reference is not None:
            read["features of D'"], read["member of D'"] = self.reference
        return read

    @classmethod
    def of(
        cls,
        propensity: PropensityFit | CrossFit | LogisticPropensity,
        examples: AlignedScores,
        options: ZeroRunOptions,
    ) -> "Learning":
        """Read a logistic model: fitted to D', or to be learnt from the audited labels alone."""
        if isinstance(propensity, CrossFit):
            return cls._of_folds(propensity, examples, options)
        if isinstance(propensity, PropensityFit):
            return cls._of_fit(propensity, examples, options)
        feature_table = features_of(examples, options)
        check_length(feature_table.rows, examples.member.size, "features")
        return cls.of_table(feature_table)

    @classmethod
    def _of_fit(
        cls, fitted: PropensityFit, examples: AlignedScores, options: ZeroRunOptions
    ) -> "Learning":
        """Return what is learnt from D', to which a model was fitted, and the audited labels."""
        feature_table = features_for_fit(examples, options, fitted)
        check_length(feature_table.rows, examples.member.size, "features")
        return cls.of_table(feature_table).with_fit(fitted, examples.member)

    @classmethod
    def _of_folds(
        cls, crossed: CrossFit, examples: AlignedScores, options: ZeroRunOptions
    ) -> "Learning":
        """Return what is learnt from the features of models that are cross-fitted."""
        check_folds(crossed, examples, options)
        return cls.of_table(table_of_folds(crossed))

    def with_fit(self, fitted: PropensityFit, member: BoolArray) -> "Learning":
        """Return the same with D', to which a model was fitted."""
        # The examples share an intercept with D' where its share of members is known.
        warnings = self.warnings + _unaudited_examples(self.left_out)
        if not fitted.own_intercept:
            warnings += member_share_warnings(fitted, member)
        return replace(
            self,
            reference=(fitted.rows.features, fitted.rows.member),
            offset=fitted.offset,
            own_intercept=fitted.own_intercept,
            guide=fitted.log_odds(self.features),
            warnings=warnings,
            source=_SOURCE + _SAME,
        )

    @classmethod
    def of_table(cls, table: FeatureTable) -> "Learning":
        """Return what is learnt from features alone."""
        return cls(
            features=table.rows,
            seen=table.rows,
            names=table.names,
            form=table.form,
            warnings=table.warnings,
            left_out=table.unmarked,
        )


def learnt(
    examples: AlignedScores, learning: Learning, options: ZeroRunOptions, request: Request
) -> Odds:
    """Choose what is audited, find the set, test the model's form, and blind the scores."""
    member = examples.member
    seed = request.seed
    # 1. The set of the audited examples, and tests of the model's form.
    guide = learning.guide
    if guide is None:
        guide = np.zeros(member.size)
    largest = np.abs(guide)
    rows = audited_rows_of(examples, largest, options, request, learning.left_out)
    beyond = rows[:0]
    if options.max_log_odds is not None:
        beyond = _rows_beyond_limit(largest > options.limit, learning.left_out)
    columns = _columns_of_model(learning, np.concatenate([rows, beyond]))
    seen = learning.seen[rows]
    refusal = ""
    tests: FormTests = ()
    odds: Odds
    try:
        found = _confidence_set(member, learning, request, rows, beyond, columns.needed)
    except FitError as error:
        advice = _advice_on_separation(learning, columns, rows, member)
        refusal = Message("{error}{advice}", error=error, advice=advice)
        odds = OddsBox.of_log_odds(guide[rows])
    else:
        if options.falsify:
            tests = _tests_of_form(found, learning, seen, seed)
        odds = OddsSet(
            found=found,
            guide=guide[rows],
            draws_needed=OddsSet.draws_needed_at(seed),
            columns=columns.needed,
            tests=tests,
        )
    # 2. Scores less what features predict of them, and what is said of it.
    return replace(
        odds,
        rows=rows,
        scores=_scores_beyond_features(examples, rows, seen, options, seed),
        abstained=member.size - rows.size,
        share=shares.AT_MEMBER.of(1.0),
        kind="conditional_lower_bound",
        refuted=any(one.refuted for one in tests),
        refusal=refusal,
        theorem=_confidence_set_theorem(request.level),
        assumptions=_assumptions_of_learning(learning, tests, refusal),
        warnings=_warnings_of_learning(learning, columns, tests, refusal),
        options={
            "uncertainty": "set",
            "set_level": shares.SET.of(request.level),
            "propensity": learning.model,
            **blind_guesses(learning.features, member, seed),
        },
        inputs=learning.inputs,
    )


def _rows_beyond_limit(is_beyond: BoolArray, left_out: BoolArray | None) -> IntArray:
    """Return the rows beyond the limit of log-odds of which features tell all."""
    if left_out is not None:
        is_beyond &= ~left_out
    return np.flatnonzero(is_beyond)


def _confidence_set_theorem(level: float) -> str:
    """Return why a bound over the set is valid, and what each of its parts has of the level."""
    set_level = shares.SET.of(level)
    test_level = shares.AT_MEMBER.of(level)
    return _THEOREM.format(set=set_level, test=test_level, both=set_level + test_level)


def _advice_on_separation(
    learning: Learning, columns: Columns, rows: IntArray, member: BoolArray
) -> str:
    """Return what to do about columns that decide membership, or are combinations of others."""
    deciding = deciding_columns(learning.features[rows], learning.names, member[rows])
    if deciding:
        return f" ({deciding}: audit only kinds of records that occur in both groups)"
    if columns.nearly:
        return f" ({', '.join(columns.nearly)}: leave out one of these)"
    return ""


def _tests_of_form(
    found: ConfidenceSet, learning: Learning, seen: FloatArray, seed: int
) -> FormTests:
    """Return tests of the model's form, the bets first."""
    more = None if learning.seen is learning.features else seen
    bets = bet_against_set(found, features=seen, seed=seed)
    return products_missing(found, features=more), link_bent(found), bets


def _scores_beyond_features(
    examples: AlignedScores, rows: IntArray, seen: FloatArray, options: ZeroRunOptions, seed: int
) -> dict[str, FloatArray]:
    """Return the scores of each attack less what features predict of them."""
    blind = {}
    for name, scores in examples.attacks.scores.items():
        beyond = beyond_features(
            robust_scores(scores[rows]), seen, trees=options.falsify, seed=seed
        )
        blind[name] = robust_scores(beyond)
    return blind


def _assumptions_of_learning(
    learning: Learning, tests: FormTests, refusal: str
) -> tuple[Assumption, Assumption]:
    """Say what is known of the model, and what it was learnt from."""
    tried = "; ".join(f"{one.test}: p = {one.p_value:.2g}" for one in tests)
    text = (
        f"{_LINEAR}; not contradicted ({tried}). Missing features and mild misfit cannot be "
        "detected."
    )
    status: Status = "unverifiable"
    if not tests:
        text = _untested_form(refusal)
    elif any(one.refuted for one in tests):
        text = f"{_LINEAR}; contradicted by the data ({tried})."
        status = "contradicted"
    return (
        Assumption("propensities", text + learning.form, status),
        Assumption("propensities learnt from labels only", f"{learning.source}.", "declared"),
    )


def _untested_form(refusal: str) -> str:
    """Say that the form of the model was not tested, and why there is no confidence set, if so."""
    if refusal:
        return f"{_LINEAR}; no confidence set: {refusal}."
    return f"{_LINEAR}; the form was not tested."


def _warnings_of_learning(
    learning: Learning,
    columns: Columns,
    tests: FormTests,
    refusal: str,
) -> Strings:
    """Say what limits the audit; often nothing."""
    notes = [_refuted_form(one, columns, learning) for one in tests if one.refuted]
    if not tests and not refusal:
        notes.append("the form of the propensity model was not tested: falsify=False")
    if columns.left_out:
        notes.append(_redundant_columns(columns.left_out, learning.features.shape[1]))
    return (*learning.warnings, *notes)


def _redundant_columns(left_out: Strings, width: int) -> str:
    """Say which columns the model does not need."""
    return (
        f"{len(left_out)} of {width} features are constant or depend on those before them and "
        f"were left out, which changes no log-odds: {', '.join(left_out)}"
    )


def _refuted_form(test: FormTest, columns: Columns, learning: Learning) -> str:
    lacking = _lacking_product(test, columns, learning)
    return (
        f"the data contradict the propensity model (p = {test.p_value:.2g}, {test.test}{lacking}): "
        "log-odds are not linear in the features, which may explain correct guesses"
    )


def _lacking_product(test: FormTest, columns: Columns, learning: Learning) -> str:
    """Name the features of the product that the model lacks most, if a test found one."""
    if not test.worst:
        return ""
    names = [learning.names[columns.needed[factor]] for factor in test.worst]
    if len(names) == 2 and len(set(names)) == 1:
        return f", mainly the square of column {names[0]!r}"
    return f", mainly column {' times column '.join(map(repr, names))}"


def check_folds(crossed: CrossFit, examples: AlignedScores, options: ZeroRunOptions) -> None:
    """Check that folds are those of the audited examples."""
    if options.features is not None:
        raise OptionError("a CrossFit has the features of the audited examples: leave out features")
    check_length(crossed.fold, examples.attacks.examples, "the folds of propensity")
    other = np.flatnonzero(crossed.member != examples.member)
    if other.size:
        raise InputError(
            "propensity was cross-fitted with another membership, or with the examples in another "
            f"order than the scores ({other.size} rows differ, the first being row {other[0]}): "
            "cross-fit in the order of the scores"
        )


def table_of_folds(crossed: CrossFit) -> FeatureTable:
    """Return the features that models were cross-fitted to, and how a table was converted."""
    names = tuple(map(str, range(crossed.features.shape[1])))
    if crossed.encoding is not None:
        names = crossed.encoding.names
    return FeatureTable(
        crossed.features, names, encoding=crossed.encoding, unmarked=crossed.unmarked
    )


def check_options(options: ZeroRunOptions, request: Request, learning: Learning) -> None:
    """Refuse options that have no form over a confidence set."""
    if not isinstance(request.cuts, Fixed | SecondLook | None):
        raise _no_form_over_set("cuts", request.cuts)
    if options.adversary is not None:
        raise _no_form_over_set("adversary", options.adversary)
    if options.variant != "directional":
        raise _no_form_over_set("variant", options.variant)
    if options.max_log_odds is not None:
        _check_limit_of_log_odds(learning)


def _check_limit_of_log_odds(learning: Learning) -> None:
    """Refuse a limit of log-odds of which nothing is known without the audited labels."""
    if learning.guide is None or learning.own_intercept:
        message = (
            "{max_log_odds} leaves examples out by log-odds learnt without the audited labels: "
            "fit the model to other examples whose share of members is that of the audit, or "
            "declare both shares: with_member_share(share, of_reference=share_of_those)"
        )
        raise OptionError(Message(message))


def _no_form_over_set(name: str, value: object) -> OptionError:
    """Return the error that an option has no form over a confidence set."""
    message = (
        "{option} has no form over a confidence set of log-odds, which plans its own guesses "
        "and needs no refits: leave it out (cuts may be {Fixed}, or {SecondLook} if records "
        'are matched), or explore with {uncertainty="bootstrap"}'
    )
    return OptionError(Message(message, option=Option(name, value)))


def _columns_of_model(learning: Learning, rows: IntArray) -> Columns:
    """Return the columns that a model needs, none of them huge, and why it needs no others."""
    features = learning.features[rows]
    if learning.reference is not None:
        reference_features, _ = learning.reference
        features = _with_reference_features(features, reference_features)
    if np.abs(features).max() > _HUGE:
        raise InputError(_huge_feature(features, learning.names))
    columns = columns_needed(features, learning.names)
    if not columns.needed.size:
        raise InputError(_all_features_constant(columns.left_out))
    return columns


def _with_reference_features(features: FloatArray, reference_features: FloatArray) -> FloatArray:
    """Return features of audited examples and, below them, those of D'."""
    check_length(reference_features[0], features.shape[1], "features of D'")
    return np.vstack([features, reference_features])


def _all_features_constant(left_out: Strings) -> str:
    """Say that no feature varies."""
    return (
        f"every feature is constant: {', '.join(left_out)}. Pass features in which members and "
        "non-members may differ, or propensities, which are then all the same"
    )


def _unaudited_examples(left_out: BoolArray | None) -> Strings:
    """Say how many examples have what no number tells, where other examples settled the rules."""
    count = 0
    if left_out is not None:
        count = int(left_out.sum())
    if not count:
        return ()
    note = (
        f"{count:,} examples are not audited: they have a rare word or a gap without an indicator"
    )
    return (note,)


def _huge_feature(table: FloatArray, names: Strings) -> str:
    """Say which column has a number that is too large."""
    largest = np.abs(table).max(axis=0)
    column = int(largest.argmax())
    return (
        f"features has {largest[column]:.3g} in column {names[column]}, beyond {_HUGE:g}, whose "
        "square is not a number: give it in other units"
    )


def _confidence_set(
    member: BoolArray,
    learning: Learning,
    request: Request,
    rows: IntArray,
    beyond: IntArray,
    columns: IntArray,
) -> ConfidenceSet:
    """Find the set from the audited labels, those of D', and those beyond the limit of log-odds.

    Were the last left out, which labels of D' the set rests on would depend on labels of D'.
    `rows` are the audited ones.
    """
    features = learning.features[:, columns]
    reference = None
    if beyond.size or learning.reference is not None:
        reference = _rows_beside_audited(learning, features[beyond], member[beyond], columns)
    audited = np.ascontiguousarray(features[rows])
    return set_of_rows(
        (audited, member[rows], np.full(rows.size, learning.offset)),
        reference,
        own_intercept=learning.own_intercept,
        level=shares.SET.of(request.level),
        seed=request.seed,
    )


def _rows_beside_audited(
    learning: Learning, features: FloatArray, member: BoolArray, columns: IntArray
) -> LabelledRows:
    """Return the rows beyond the limit of log-odds, which are given, and those of D' below them."""
    offsets = np.full(member.size, learning.offset)
    if learning.reference is None:
        return features, member, offsets
    features_there, member_there = learning.reference
    return (
        np.vstack([features, features_there[:, columns]]),
        np.concatenate([member, member_there]),
        np.concatenate([offsets, np.zeros(member_there.size)]),
    )
