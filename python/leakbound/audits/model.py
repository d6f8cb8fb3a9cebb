"""A trained model and its data in, a lower bound out."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from leakbound import attacks
from leakbound._base.alignment import ExampleOrder, gathered, row_names, size_of
from leakbound._base.checks import flag, seed_of
from leakbound._base.console import one_line
from leakbound._base.labels import labels_of, row_codes, targets_of
from leakbound._base.messages import OF_CLAIMS, hinted
from leakbound._base.reading import array_of, refuse_masked
from leakbound._base.scores import Scores
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    AnyArray,
    ArrayInput,
    BoolArray,
    Data,
    HasMember,
    IntArray,
    Strings,
)
from leakbound.attacks.predictions import score_samples_of
from leakbound.audits.coins import Coins
from leakbound.audits.model_inputs import (
    MOST_BETS,
    Features,
    features_of_batches,
    features_of_inputs,
    tokens_of,
)
from leakbound.audits.random_split import RandomSplit, SplitWords
from leakbound.audits.road import Request, audit
from leakbound.claims import Claim
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError
from leakbound.results import Assumption, AuditResult

_UNREAD = (
    "examples of different classes were compared, as {why}: the bound holds only if the split was "
    "not stratified by class; otherwise score the examples and pass strata= to RandomSplit"
)

_OF_NUMBERS = ("residual", "normality")
"""Signals whose targets are no classes, but numbers or nothing."""
_MEASURED = {
    "residual": "A score is minus the absolute difference of prediction and target; of several "
    "targets these are added up as they are.",
    "normality": "A score is the model's score_samples: higher where an example resembles what the "
    "model was fitted to.",
    "summed_losses": "A score is minus the sum of the losses of all labels of an example.",
    "cross_entropy": "A score is minus the loss of an example, of a text the mean over its tokens.",
    "right_class": "A score is how many classes are predicted right: the model tells no more.",
}
"""What a score is, by its signal, where it is not the log-odds of a class."""
# Examples from which on a split is challenged: fewer could not contradict it.
_CHALLENGED = 32
_BY_SCORES = "score first: lb.audit(lb.attacks.score(model, X, y), lb.RandomSplit(member, …), …)"


@overload
def audit_model(
    model: Data,
    *,
    train: Data,
    test: Data,
    signal: str | Callable[[Data, Data], ArrayInput] = ...,
    claim: Claim | None = ...,
    confidence: float = ...,
    challenge: bool = ...,
    tokenizer: Callable[..., Data] | None = ...,
    seed: int | None = ...,
) -> AuditResult: ...
@overload
def audit_model(
    model: Data,
    *,
    canaries: Data,
    coins: HasMember,
    signal: str | Callable[[Data, Data], ArrayInput] = ...,
    claim: Claim | None = ...,
    confidence: float = ...,
    tokenizer: Callable[..., Data] | None = ...,
    seed: int | None = ...,
) -> AuditResult: ...
@hinted(
    positional="name both parts: lb.audit_model(model, train=(X, y), test=(X_test, y_test))",
    **OF_CLAIMS,
    **dict.fromkeys(("X_train", "y_train", "members"), "write train=(X_train, y_train)"),
    **dict.fromkeys(("X_test", "y_test", "holdout", "nonmembers"), "write test=(X_test, y_test)"),
    **dict.fromkeys(("groups", "strata", "features", "by", "cuts"), _BY_SCORES),
)
def audit_model(
    model: Data,
    *,
    train: Data = None,
    test: Data = None,
    canaries: Data = None,
    coins: HasMember | None = None,
    signal: str | Callable[[Data, Data], ArrayInput] = "auto",
    claim: Claim | None = None,
    confidence: float = 0.95,
    challenge: bool = True,
    tokenizer: Callable[..., Data] | None = None,
    seed: int | None = None,
) -> AuditResult:
    """Score a model's examples, and audit the random split or the coins that chose its members.

    With `train` and `test` this is short for scoring both sets in one pass, in random order, then
    ``audit(scores, RandomSplit(member, strata=classes))``; with `canaries` and `coins`, for
    ``audit(scores, Coins(coins))``. Call `audit` yourself for groups, several attacks or another
    design.

    Parameters
    ----------
    model : estimator, callable or torch.nn.Module
        What `leakbound.attacks.score` takes, or a network, as for `leakbound.torch.score`: models
        of transformers are networks.
    train : tuple of inputs and targets; for a network also a Dataset, DataLoader or tokens
        The examples that the model was trained on, all of them or a random part. Inputs are what
        the model takes, with rows: an array, a tensor, a sparse matrix, a list, or a frame of
        pandas, polars (not lazy) or Arrow. Detectors of outliers take inputs alone. For a
        loader that shuffles, pass its dataset. For models of transformers also lists of tokens, of
        mappings with `input_ids`, or of texts with their `tokenizer`, and pairs of a list and
        labels: both sets are padded to one length.
    test : as `train`
        The examples that the split left out: training must not have used them for anything, such
        as early stopping. It may be of any size.
    canaries : as `train`
        All canaries, in the order of the plan. A pandas index is joined with ids of the plan.
    coins : InclusionPlan
        The plan that chose the canaries that the model was trained on.
    signal : str or callable
        How each example is scored: see `leakbound.attacks.score`, where "auto" is the
        log-odds of the class of classifiers, minus the absolute residual of regressors, minus the
        summed losses of several labels, and `score_samples` of detectors of outliers; the result
        says which. For a network those signals of `leakbound.torch.score` that need no reference;
        "auto" is the log-odds, or for a model that generates text minus the mean loss of tokens.
    claim, confidence, seed : optional
        As for `audit`.
    tokenizer : callable, optional
        What makes tokens of texts, such as one of transformers.
    challenge : bool
        Whether inputs and targets are used to test the split, as `features` and `labels` of
        `RandomSplit` are: rows of a table, or the lengths of texts. If a random split would hardly
        ever look like this, for example after one part was cleaned or resampled, the bound is
        withheld. Needs scikit-learn; without it there is no test.

    Returns
    -------
    AuditResult
        With `train` and `test` the bound for replacing one training example by another, with
        `coins` for adding or removing one.

    Raises
    ------
    InputError
        If a set is empty or cannot be scored, or if a row is in both sets: by the index of pandas
        objects, or by the indices of `torch.utils.data.Subset`. Arrays and frames with a default
        index have no row ids, so that overlap between the sets cannot be detected.

    Notes
    -----
    The split must have been random, and nothing was removed, added or changed in one part only
    after it. It may have been stratified by class or not: examples are compared within their class,
    which is valid for both. Classes are read from the targets, whatever holds them: flat, as one
    column or as lists, of a Dataset or of a loader's batches. For several labels, examples with
    equal labels are compared. Targets of a callable `signal` are classes if at most half of them
    are different; others are numbers to predict. Tokens have no classes. Where targets cannot be
    read as classes a warning says so, and the split must not have been stratified.

    An answer of the model may depend on its whole batch, as with batch statistics in evaluation
    mode: the rows of both sets are scored together, in an order drawn from `seed`, so that batches
    carry no information about membership. So both sets must be of one type, with rows of one
    shape, and loaders need a dataset with a length; that of `train` says how to make batches. Both
    sets must be prepared alike: augmentation of one of them gives it away.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(400, 2)), np.ones(400, dtype=int)
    >>> train, test = (x[:200], y[:200]), (x[200:], y[200:])
    >>> def memorises(rows):
    ...     return [[0.1, 0.9] if row in train[0] else [0.5, 0.5] for row in rows]
    >>> lb.audit_model(memorises, train=train, test=test).bound > 3
    True
    """
    flag(challenge, "challenge")
    train, test, canaries = _prepared_data_sets(model, (train, test, canaries), tokenizer)
    audit_options: Data = {"claim": claim, "confidence": confidence, "seed": seed_of(seed)}
    options_given = [option is not None for option in (train, test, canaries, coins)]
    if options_given == [False, False, True, True]:
        with _errors_about("canaries"):
            # The order of the plan is older than its coins.
            scores = _scores_of_model(model, _canaries_in_order_of_plan(canaries, coins), signal)
        return _with_described_signal(
            audit(scores.values, Coins(coins), **audit_options), scores.signal
        )
    if options_given != [True, True, False, False]:
        advice = ""
        if options_given == [False, False, True, False]:
            advice = ": add coins=canaries.plan, the plan that chose them"
        raise OptionError(f"give either train and test, or canaries and coins{advice}")
    _check_sets_share_no_row(train, test)
    scores, member, targets, features = _scores_of_both_sets(
        model, train=train, test=test, signal=signal, seed=audit_options["seed"]
    )
    # Stratified or not: given the classes' numbers of members, the split is random within classes.
    has_classes = isinstance(signal, str) and scores.signal not in _OF_NUMBERS
    strata, warnings = targets.strata(named=has_classes)
    split_design = RandomSplit(member, strata=strata)
    split_words = SplitWords()
    # Rows of tables and lengths of texts challenge the split, and classes or numbers to predict.
    if challenge and features is not None and member.size >= _CHALLENGED:
        split_design = replace(split_design, features=features.rows)
        if strata is None:
            split_design = replace(split_design, labels=targets.numbers_to_predict())
        split_words = SplitWords(columns=features.names)
    if claim is None:
        audit_options["claim"] = split_design.claim
    request = Request(**audit_options)
    result = split_design.audit(scores.values, request, split_words, most_bets=MOST_BETS)
    result = replace(result, warnings=(*result.warnings, *warnings))
    return _with_described_signal(result, scores.signal)


def _scores_of_both_sets(
    model: Data, train: Data, test: Data, signal: Data, seed: int
) -> tuple[Scores, BoolArray, "_TargetsOfExamples", Features | None]:
    """Score both sets in one pass; return scores, membership, targets and features, train first.

    The order of rows in the pass is drawn. Given all rows, it does not depend on membership, and
    neither does any answer, though it may depend on the other rows of its batch.
    """
    data_sets = list[Data]()
    row_ids = list[str]()
    is_member = list[bool]()
    for name, data in (("train", train), ("test", test)):
        with _errors_about(name):
            readable_set = _readable_data_set(model, data, signal)
            rows_of_set = _checked_number_of_rows(model, readable_set)
            _check_same_dimensions(model, [*data_sets, readable_set])
        data_sets.append(readable_set)
        row_ids += [f"{name}[{row}]" for row in range(rows_of_set)]
        is_member += [name == "train"] * rows_of_set
    scoring_order = Purpose.SCORING_ORDER.rng(seed).permutation(len(row_ids))
    train_first = np.argsort(scoring_order)
    shuffled_ids = np.array(row_ids)[scoring_order]
    input_batches = list[Data]()
    target_batches = list[Data]()
    with _errors_about("cannot score this model on train and test"):
        if _is_network(model):
            from leakbound.torch.data import joined, noting

            batches = noting(joined(data_sets, scoring_order), target_batches, input_batches)
            scores = _scores_of_model(model, batches, signal, ids=shuffled_ids)
        else:
            inputs, targets = _inputs_and_targets_in_order(data_sets, scoring_order)
            if targets is not None:
                target_batches.append(targets)
            scores = _scores_of_model(model, (inputs, targets), signal, ids=shuffled_ids)
    features_of_rows = features_of_batches(input_batches, seed)
    if not _is_network(model):
        features_of_rows = features_of_inputs(inputs, seed)
    if features_of_rows is not None:
        features_of_rows = features_of_rows.taken(train_first)
    scores = replace(scores, values=scores.values[train_first], ids=scores.ids[train_first])
    return (
        scores,
        np.array(is_member),
        _TargetsOfExamples(target_batches, rows=train_first),
        features_of_rows,
    )


def _prepared_data_sets(
    model: Data, data_sets: tuple[Data, Data, Data], tokenizer: Callable[..., Data] | None
) -> list[Data]:
    """Return sets as they are read later: texts as tokens, and pairs where targets are needless."""
    if not _is_network(model):
        if tokenizer is not None:
            raise OptionError("tokenizer is for networks: leave it out")
        return [_paired_with_targets(model, data_set) for data_set in data_sets]
    given_sets = [data_set for data_set in data_sets if data_set is not None]
    tokenised_sets = iter(tokens_of(given_sets, tokenizer))
    return [data_set if data_set is None else next(tokenised_sets) for data_set in data_sets]


def _paired_with_targets(model: Data, data_set: Data) -> Data:
    """Return inputs of a model that needs no targets as a pair without any."""
    is_pair = isinstance(data_set, tuple) and len(data_set) == 2
    if data_set is None or is_pair or score_samples_of(model) is None:
        return data_set
    return data_set, None


def _with_described_signal(result: AuditResult, signal: str) -> AuditResult:
    """Return a result that says what was measured, where this is not the log-odds of a class."""
    sentence = _MEASURED.get(signal)
    if sentence is None:
        return result
    assumptions = list[Assumption]()
    for assumption in result.assumptions:
        statement = assumption.statement
        if assumption.name == "scores without membership":
            statement = f"{sentence} {statement}"
        assumptions.append(replace(assumption, statement=statement))
    options = result.options | {"signal": signal}
    return replace(result, options=options, assumptions=tuple(assumptions))


def _inputs_and_targets_in_order(data_sets: list[Data], order: IntArray) -> tuple[Data, Data]:
    """Return inputs and targets of both sets in one order; no targets if a set has none."""
    inputs_of_sets, targets_of_sets = zip(*data_sets, strict=True)
    targets = None
    if all(targets_of_set is not None for targets_of_set in targets_of_sets):
        targets = gathered(targets_of_sets, order)
    return gathered(inputs_of_sets, order), targets


def _check_same_dimensions(model: Data, data_sets: list[Data]) -> None:
    """Refuse several labels for each example of a set if another one has one."""
    if _is_network(model):
        return
    try:
        dimensions = [np.ndim(targets) for _, targets in data_sets]
    except ValueError:  # rows of different lengths, which a signal of one's own may take
        return
    if dimensions[-1] > dimensions[0]:
        labels_of(data_sets[-1][1], "y")


@dataclass(frozen=True)
class _TargetsOfExamples:
    """Targets of examples in the batches that were scored, and which row of them each example is.

    There are no batches where all targets are tokens.
    """

    batches: list[Data]
    rows: IntArray

    def strata(self, *, named: bool) -> tuple[IntArray | None, Strings]:
        """Return the class of each example, and a warning where there may be classes unread.

        Every named signal is of classes; targets of one's own signal, of most of which there is
        only one, are numbers to predict. Rows of several labels are compared with equal rows: a
        split that was stratified by any of the labels is random within equal rows.
        """
        if not self.batches:
            return None, ()
        try:
            target_arrays = [targets_of(batch, "y") for batch in self.batches]
        except LeakboundError as error:
            return None, (_UNREAD.format(why=f"y could not be read ({error})"),)
        row_shape = target_arrays[0].shape[1:]
        reason_unread = f"y has shape {('m', *row_shape)}, and most of its rows are different"
        unread_warnings = (_UNREAD.format(why=reason_unread),)
        if any(targets.shape[1:] != row_shape for targets in target_arrays):
            return None, unread_warnings
        targets = np.concatenate(target_arrays)
        codes_of_targets = row_codes(targets)
        if codes_of_targets is not None:
            are_classes = named and targets.ndim == 1 and targets.dtype.kind != "f"
            mostly_repeated = 2 * np.unique(codes_of_targets).size <= codes_of_targets.size
            if are_classes or mostly_repeated:
                return codes_of_targets[self.rows], ()
        if named:
            return None, unread_warnings
        return None, ()

    def numbers_to_predict(self) -> AnyArray | None:
        """Return numbers to predict, one for each example, if targets are."""
        try:
            target_arrays = [targets_of(batch, "y") for batch in self.batches]
        except LeakboundError:
            return None
        if not target_arrays:
            return None
        if any(array.ndim != 1 or array.dtype.kind not in "iuf" for array in target_arrays):
            return None
        targets = np.concatenate(target_arrays)[self.rows]
        if np.isfinite(targets).all():
            return targets
        return None


def _readable_data_set(model: Data, data_set: Data, signal: Data) -> Data:
    """Read data of forms that nothing later reads: classes of estimators, and lists for networks.

    What a model is given stays what it was.
    """
    if not _is_network(model):
        _checked_number_of_pairs(data_set)
        inputs, targets = data_set
        if isinstance(signal, str) and targets is not None:
            target_array = targets_of(targets, "y")
            targets = target_array
            if target_array.ndim == 1:
                targets = labels_of(target_array, "y")
        return inputs, targets
    if isinstance(data_set, tuple) and len(data_set) == 2:
        inputs, targets = data_set
        return _tensor_or_array(inputs, "inputs"), _tensor_or_array(targets, "targets")
    if isinstance(data_set, Mapping):
        return {
            name: _tensor_or_array(values, name)
            for name, values in data_set.items()
            if values is not None
        }
    return data_set


def _tensor_or_array(values: Data, name: str) -> Data:
    """Return a tensor as it is, and anything else as an array."""
    refuse_masked(values, name)
    if hasattr(values, "shape") and hasattr(values, "detach"):
        return values
    return array_of(values, name)


def _canaries_in_order_of_plan(canaries: Data, plan: Data) -> Data:
    """Return canaries in the order of their plan, by ids if both have some."""
    if not isinstance(canaries, tuple) or not canaries:
        return canaries
    canary_names = row_names(canaries[0])
    plan_ids = np.asarray(getattr(plan, "ids", ()))
    # Ids of a plan that was given none number its rows.
    are_row_numbers = np.array_equal(plan_ids, np.arange(plan_ids.size))
    if canary_names is None:
        return canaries
    if are_row_numbers and not np.isin(canary_names, plan_ids).all():
        return canaries
    order = ExampleOrder()
    order.scores(canaries[0], "canaries")
    rows_of_plan = order.follow(plan, "coins")
    if rows_of_plan is None:
        return canaries
    return tuple(gathered([part], rows_of_plan) for part in canaries)


def _is_network(model: Data) -> bool:
    torch = sys.modules.get("torch")  # a network exists only where torch was imported
    return torch is not None and isinstance(model, torch.nn.Module)


def _checked_number_of_rows(model: Data, data_set: Data) -> int:
    """Return the number of rows, and refuse what has none that can be put in another order."""
    if not _is_network(model):
        return _checked_number_of_pairs(data_set)
    from leakbound.torch.data import read

    examples = read(data_set).examples
    if examples is None:
        raise InputError(
            "rows are scored in random order: pass a Dataset with a length, not a stream or "
            "batches that are made already"
        )
    return examples


def _checked_number_of_pairs(data_set: Data) -> int:
    """Return the number of rows of inputs and of their targets."""
    if not isinstance(data_set, tuple) or len(data_set) != 2:
        raise InputTypeError(
            f"it must be a tuple of inputs and classes, got {type(data_set).__name__}"
        )
    inputs, targets = data_set
    input_rows = size_of(inputs)
    target_rows = input_rows
    with _errors_about("y"):
        if targets is not None:
            target_rows = size_of(targets)
    if input_rows != target_rows:
        raise InputError(
            f"it must have one target for each input, got {input_rows} inputs, {target_rows} "
            "targets"
        )
    if not input_rows:
        raise InputError("it is empty: there is nothing to score")
    return input_rows


def _scores_of_model(model: Data, data_set: Data, signal: Data, ids: Data = None) -> Scores:
    if not _is_network(model):
        _checked_number_of_pairs(data_set)
        return attacks.score(model, *data_set, signal=signal, ids=ids)
    from leakbound.torch import score

    if signal == "auto":
        signal = "logit_margin"
        if _is_language_model(model):
            signal = "cross_entropy"
    return score(model, data_set, signal=signal, ids=ids)


def _is_language_model(model: Data) -> bool:
    """Return whether a model of transformers generates text: it has tokens, and no classes."""
    generates = getattr(model, "can_generate", None)
    return callable(generates) and generates() is True


@contextmanager
def _errors_about(name: str) -> Iterator[None]:
    """Begin the messages of errors with what they are about."""
    try:
        yield
    except LeakboundError as error:
        raise type(error)(f"{name}: {error}") from error
    except MemoryError:
        raise
    except Exception as error:  # of the model's code, or of the data's
        raise InputError(
            f"{name}: scoring raised {type(error).__name__}: {one_line(error)}; pass inputs of the "
            "type that the fitted model takes"
        ) from error


def _check_sets_share_no_row(train: Data, test: Data) -> None:
    """Refuse sets that share a row, where rows have names."""
    train_inputs = _inputs_of_data_set(train)
    test_inputs = _inputs_of_data_set(test)
    train_names = row_names(train_inputs)
    test_names = row_names(test_inputs)
    train_source, train_rows = _source_dataset_and_rows(train_inputs)
    test_source, test_rows = _source_dataset_and_rows(test_inputs)
    is_any_subset = train_source is not train_inputs or test_source is not test_inputs
    if train_source is test_source and is_any_subset and hasattr(train_source, "__len__"):
        row_numbers = np.arange(len(train_source))
        train_names = row_numbers[train_rows]
        test_names = row_numbers[test_rows]
    if train_names is None or test_names is None:
        return
    shared_names = np.intersect1d(train_names, test_names)
    if shared_names.size:
        raise InputError(
            f"{shared_names.size:,} rows are in both train and test, such as row "
            f"{shared_names[0]}: leave them out of test, if the model was trained on them"
        )


def _inputs_of_data_set(data_set: Data) -> Data:
    """Return the inputs of a pair, and anything else as it is."""
    if isinstance(data_set, tuple) and data_set:
        return data_set[0]
    return data_set


def _source_dataset_and_rows(data_set: Data) -> tuple[Data, Data]:
    """Return the dataset that a loader, or subsets of subsets, take rows from, and which."""
    rows_of_source: Data = slice(None)
    while hasattr(data_set, "dataset"):
        is_subset = hasattr(data_set, "indices")
        is_loader = hasattr(data_set, "batch_sampler")
        if not is_subset and not is_loader:
            break
        if is_subset:
            rows_of_source = np.asarray(data_set.indices, dtype=np.intp)[rows_of_source]
        data_set = data_set.dataset
    return data_set, rows_of_source
