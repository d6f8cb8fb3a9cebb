"""A score that is learnt from memberships, on a half of the examples that is not audited."""

import copy
from typing import NamedTuple

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_features, check_ids, check_length, check_scores, seed_of
from leakbound._base.imports import needs
from leakbound._base.labels import by_first_row, check_codes
from leakbound._base.reading import array_of
from leakbound._base.scores import Scores
from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, ArrayInput, BoolArray, FloatArray, HasMember, IntArray
from leakbound.errors import InputError, InputTypeError

# Members and non-members from which something can be learnt
_FEWEST_OF_EACH = 2
# Trees of the default model, and examples of a leaf
_TREES = 200
_LEAST_EXAMPLES_IN_LEAF = 5


class LearntScore(NamedTuple):
    """A score that was learnt on one half, of the examples of the other half."""

    scores: Scores
    """Of the examples that may be audited, with their ids."""
    rows: IntArray
    """Which examples these are: positions in the order of `outputs`, or of the plan."""


def learnt_score(
    outputs: ArrayInput,
    member: ArrayInput | HasMember,
    *,
    model: object = None,
    seed: int | None = None,
    strata: ArrayInput | None = None,
    groups: ArrayInput | None = None,
    ids: ArrayInput | None = None,
) -> LearntScore:
    """Learn a membership score on a random half of the examples, and score the other half.

    A classifier that learns who was a member remembers the examples it was fitted to: audited on
    these, it finds leakage in every model. So one half is for learning alone, and only scores of
    the other half are returned.

    Parameters
    ----------
    outputs : array-like, shape (m,) or (m, d)
        What is known of each example from the audited model: losses, probabilities, several scores.
    member : array-like of shape (m,), or InclusionPlan
        Which examples were trained on. A plan, or a pandas object, is joined with outputs that have
        ids.
    model : estimator, optional
        A classifier with `fit` and with `predict_proba` or `decision_function`, of which a copy is
        fitted. If None, a random forest of scikit-learn, which needs the extra `ml`.
    seed : int, optional
        Seed of the halves and of the default model; by default from the system's entropy. Choose it
        before you look: the best of many halves is no random one.
    strata, groups : array-like, shape (m,), optional
        As for `RandomSplit`: each half has about half of each stratum, and groups whole.
    ids : array-like of shape (m,), optional
        A different id for each row of `outputs`.

    Returns
    -------
    LearntScore
        `scores`, with ids, and the `rows` that may be audited: audit with ``member[rows]``,
        ``plan.subset(rows)``, ``strata[rows]``, ``groups[rows]``.

    Notes
    -----
    Given the output of training and the memberships of the learning half, those of the other half
    are still independent coins, or a random subset of a fixed size: the theorems hold for it, and
    its scores are a function of what is given. They do not hold for the learning half. Out-of-fold
    scores, each learnt on all other folds, are not offered: each score then depends on the
    membership of the examples that it is compared with.

    Examples
    --------
    >>> import leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(600) < 0.5
    >>> outputs = rng.normal(size=(600, 2)) + 2 * np.outer(member, [1, -1])
    >>> scores, rows = learnt_score(outputs, member, seed=0)
    >>> len(scores), bool(lb.audit(scores, lb.Coins(member[rows]), seed=0).bound > 1)
    (300, True)
    """
    known_seed = seed_of(seed)
    # 1. Outputs and membership in one order, which is that of a plan.
    order = ExampleOrder(ids)
    output_columns = _table_of_model_outputs(order.scores(outputs, "outputs"))
    rows = None
    if isinstance(member, HasMember):
        rows = order.follow(member, "member")
    if rows is not None:
        output_columns = output_columns[rows]
    example_count = len(output_columns)
    memberships = order.member(member, example_count, copies=True)
    if ids is not None:
        check_ids(ids, memberships)
    unit_codes: dict[str, IntArray] = {}
    for name, unit_values in (("strata", strata), ("groups", groups)):
        if unit_values is not None:
            codes = check_codes(order.placed(unit_values, name), examples=example_count, name=name)
            _, _, unit_codes[name] = by_first_row(codes)
    # 2. Halves that do not depend on membership.
    unit_of_example = unit_codes.get("groups", np.arange(example_count))
    stratum_of_example = unit_codes.get("strata", np.zeros(example_count, np.int64))
    is_learning = _learning_half(unit_of_example, stratum_of_example, seed=known_seed)
    learning_memberships = memberships[is_learning]
    learning_members = int(learning_memberships.sum())
    learning_nonmembers = learning_memberships.size - learning_members
    if min(learning_members, learning_nonmembers) < _FEWEST_OF_EACH or is_learning.all():
        raise InputError(
            f"half of these {example_count} examples have {learning_members} members "
            f"and {learning_nonmembers} non-members to learn from: pass more examples, "
            "or use a score that is not learnt"
        )
    # 3. The score is learnt on one half, and returned for the other.
    audited_rows = np.flatnonzero(~is_learning)
    fitted_classifier = _fitted_membership_classifier(
        model, output_columns[is_learning], learning_memberships, seed=known_seed
    )
    example_ids = order.distinct_ids
    if example_ids is None:
        example_ids = order.told_ids
    if example_ids is None:
        example_ids = np.arange(example_count)
    learnt_scores = check_scores(
        _scores_of_membership_classifier(fitted_classifier, output_columns[audited_rows])
    )
    return LearntScore(
        scores=Scores(values=learnt_scores, ids=example_ids[audited_rows], signal="learnt"),
        rows=audited_rows,
    )


def _table_of_model_outputs(outputs: object) -> FloatArray:
    """Read outputs as a table of one column or several."""
    array = array_of(outputs, name="outputs")
    columns = array
    if array.ndim == 1:
        columns = array[:, None]
    return check_features(columns, name="outputs")


def _learning_half(unit_of_example: IntArray, stratum_of_example: IntArray, seed: int) -> BoolArray:
    """Return which examples are to learn from: about half of the units of each stratum.

    Membership has no part in this: coins of the other half stay independent.
    """
    rng = Purpose.LEARNT_HALVES.rng(seed)
    distinct_units, first_examples = np.unique(unit_of_example, return_index=True)
    random_order = rng.permutation(distinct_units.size)
    is_learning = np.zeros(distinct_units.size, dtype=np.bool_)
    stratum_of_unit = stratum_of_example[first_examples]
    for stratum in np.unique(stratum_of_unit):
        is_in_stratum = stratum_of_unit[random_order] == stratum
        units_in_stratum = random_order[is_in_stratum]
        learning_size = units_in_stratum.size // 2
        if units_in_stratum.size % 2:
            learning_size += int(rng.integers(2))
        is_learning[units_in_stratum[:learning_size]] = True
    return is_learning[unit_of_example]


def _fitted_membership_classifier(
    model: object, output_columns: FloatArray, member: BoolArray, seed: int
) -> object:
    """Fit a copy of the model, by default a forest, to tell members from non-members."""
    if model is None:
        with needs("ml", "learnt_score without a model"):
            from sklearn.ensemble import RandomForestClassifier
        model = RandomForestClassifier(
            _TREES,
            min_samples_leaf=_LEAST_EXAMPLES_IN_LEAF,
            random_state=Purpose.LEARNT_TREES.derived(seed, bits=32),
        )
    has_answers = any(hasattr(model, name) for name in ("predict_proba", "decision_function"))
    if isinstance(model, type) or not hasattr(model, "fit") or not has_answers:
        type_name = type(model).__name__
        if isinstance(model, type):
            type_name = model.__name__
        raise InputTypeError(
            "model must be a classifier with fit, and with predict_proba or decision_function, got "
            f"{type_name}"
        )
    fitted_classifier = copy.deepcopy(model)
    fitted_classifier.fit(output_columns, member.astype(np.int64))
    return fitted_classifier


def _scores_of_membership_classifier(classifier: object, output_columns: FloatArray) -> AnyArray:
    """Return the model's scores: the probability of a member, or the decision for one."""
    methods = ("predict_proba", "decision_function")
    answer_method = next(getattr(classifier, name) for name in methods if hasattr(classifier, name))
    answer = np.asarray(answer_method(output_columns))
    if answer.ndim == 2 and answer.shape[1] == 2:
        answer = answer[:, 1]
    if answer.ndim != 1:
        raise InputError(
            f"model must answer with one number or two probabilities for each example, got shape "
            f"{answer.shape}"
        )
    check_length(answer, examples=len(output_columns), name="the model's answer")
    return answer
