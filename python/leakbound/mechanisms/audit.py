"""Run a mechanism on one of two inputs, again and again, until a claim about it is refuted."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, integer, real, shown
from leakbound._base.console import bar, one_line
from leakbound._base.files import digest, file_alone
from leakbound._base.imports import needs
from leakbound._base.messages import hinted
from leakbound._base.numerics import logit
from leakbound._base.streams import SCHEME, Purpose
from leakbound._base.types import AnyArray, ArrayInput, BoolArray, FloatArray, IntArray, PathInput
from leakbound.audits import Stream
from leakbound.audits.trials import INDEPENDENT, NEIGHBOURS, Trials
from leakbound.claims import CLAIMS, Claim
from leakbound.claims.families import refuse_claim
from leakbound.errors import InputError, InputTypeError, LeakboundError
from leakbound.mechanisms.case import CaseRun
from leakbound.mechanisms.outputs import features_of
from leakbound.mechanisms.runs import Engine, FunctionEngine, Runs, identity
from leakbound.mechanisms.worker import Output, outputs_together
from leakbound.results import Assumption, AuditResult
from leakbound.results.wording import TRIALS

# Runs that a classifier learns from at most, its trees, and runs in a leaf at least
_MOST_TRAINING_RUNS = 10_000
_TREES = 60
_LEAST_RUNS_IN_LEAF = 3
# Knots of a feature's part of the log-odds, and the inverse penalty on its coefficients
_SPLINE_KNOTS = 5
_INVERSE_PENALTY = 0.3
# Pseudo-counts: runs on each input that every leaf is given beside its own. They say nothing, and
# outweigh the few runs of a rare output, which would come first otherwise
_PSEUDO_RUNS = 20
_NOT_REPEATABLE = (
    "The mechanism draws noise of its own: a seed repeats the coins, and no outputs, so that "
    "another audit of the same seed has another result."
)


@hinted(
    epsilon="claim lb.PureDP() and parameter=ε",
    delta="δ is part of the claim, claim=lb.ApproxDP(delta=…)",
    mu="claim lb.GaussianDP() and parameter=μ",
    rho="claim lb.claims.ZeroConcentratedDP() and parameter=rho",
    parameter="write the claimed value, such as parameter=ε",
    claim="write what is claimed, such as lb.PureDP()",
)
def audit_mechanism(
    run: Callable[[Any, np.random.Generator], object],
    d0: object,
    d1: object,
    claim: Claim,
    *,
    parameter: float,
    score: Callable[[Any], ArrayInput] | None = None,
    confidence: float = 0.95,
    most_runs: int = 5000,
    seed: int | None = None,
    path: PathInput | None = None,
) -> AuditResult:
    """Run a mechanism on two neighbouring inputs until a claim about it is refuted.

    A fair coin decides which input a run gets, and outputs are scored before the coins of their
    batch are used. The bound holds whenever the audit stops.

    Parameters
    ----------
    run : callable
        The mechanism: takes an input and a `numpy.random.Generator`, and returns numbers, text,
        bytes, None, dates, or lists, dictionaries, sets, arrays and frames of these. What it
        raises is an output, too. Or the `run` of a case: see `load_case`.
    d0, d1 : object
        Two inputs that the claim regards as neighbours. Each run gets a copy if it is an array;
        others must not be changed by a run.
    claim : PureDP, ApproxDP, GaussianDP, LaplaceDP, SubsampledGaussianDP or TradeOffFamily
        What the mechanism is said to satisfy.
    parameter : float
        The claimed value of the claim's parameter, such as ε or μ. The audit stops once its bound
        is larger.
    score : callable, optional
        Takes outputs, one for each run, and returns a number for each, higher where `d1` is
        likelier: best the log-likelihood ratio. It gets an array where all outputs of a batch are
        numbers of one shape and kind, else a list, with a `Failure` for each exception. By default
        a classifier learns it from all earlier batches, which needs the extra ``ml``; the first
        batch only trains it.
    confidence : float
        Probability that the bound is never above the truth, in (0, 1).
    most_runs : int
        Runs at most, between 10 and 10^8.
    seed : int, optional
        Seed of coins and of the runs' generators; random by default, or that of the file.
    path : str or os.PathLike, optional
        An ``.npz`` file that keeps outputs. It is written after each batch, and when a run fails or
        is interrupted; a call with the same arguments goes on from there. A second process that
        would write it is refused. If runs take their noise
        from `rng` only, the first run on each input is repeated, to see that nothing has changed.

    Returns
    -------
    AuditResult
        The result of `Stream`, with the promise as its `checked`: "refuted", "not refuted", or
        "inconclusive" if so few runs could not refute it. It counts all runs but for those that
        only trained the classifier; its options have the number of all `runs` and the `seed`.
        Warnings name equal outputs.

    Examples
    --------
    >>> import leakbound as lb
    >>> from leakbound.mechanisms import LaplaceNoise, audit_mechanism
    >>> wrong = LaplaceNoise(epsilon=1.0, fault="half_noise")
    >>> result = audit_mechanism(wrong.run, 0, 1, lb.PureDP(), parameter=1.0, seed=0)
    >>> result.summary().answer
    'The claimed ε = 1 is refuted (95 % confidence).'
    """
    if type(claim) not in CLAIMS:
        refuse_claim(claim, name="claim")
    _check_callable("run", run)
    claimed_parameter = real(parameter, name="parameter", least=0, below=math.inf)
    most_runs = integer(most_runs, name="most_runs", least=10, most=MOST_EXAMPLES)
    stream = Stream(claim=claim, confidence=confidence)
    score_source = "learnt"
    if score is not None:
        _check_callable("score", score)
        score_source = "given"
    trade_off_curve = claim.curve(claimed_parameter, "both")
    arguments: dict[str, object] = {
        "claim": [claim.name, digest(trade_off_curve.delta(np.linspace(0, 5, 11)))],
        "parameter": claimed_parameter,
        "confidence": float(confidence),
        "pair of inputs": [identity(d0), identity(d1)],
        "score": score_source,
        "random streams": SCHEME,
    }

    def engine_of_seed(runs_seed: int) -> Engine:
        if isinstance(run, CaseRun):
            return run.engine((d0, d1), runs_seed)
        return FunctionEngine(run, (d0, d1), runs_seed)

    runs = Runs(engine_of_seed, path=path, arguments=arguments)
    with file_alone(path), bar("running the mechanism", total=most_runs) as move_bar:
        runs.open(seed, most_runs)
        while stream.bound <= claimed_parameter and runs.scored < most_runs:
            _audit_next_batch(runs, stream, score, move_bar)
    stream_result = stream.result()
    return _result_of_runs(stream_result, runs).with_check(parameter=claimed_parameter)


def _scores_by_given_function(score: Callable[[Any], Any], outputs: Sequence[Output]) -> Any:
    """Score outputs by the function that a caller passed, and say where an error is from."""
    try:
        return score(outputs_together(outputs))
    except (LeakboundError, MemoryError):
        raise
    except Exception as error:  # of whatever the caller wrote
        exception_in_words = type(error).__name__
        message = one_line(error)
        if message:
            exception_in_words = f"{exception_in_words}: {message}"
        raise InputError(
            f"score raised {exception_in_words}. It is called with the outputs of a batch, "
            f"{len(outputs)} here, and returns a number for each"
        ) from error


def _audit_next_batch(
    runs: Runs,
    stream: Stream,
    score: Callable[[Any], ArrayInput] | None,
    move_bar: Callable[..., None],
) -> None:
    """Run a batch, and guess which input each of its outputs is from."""
    batch_start = runs.scored
    batch_stop = runs.next_batch_end()
    outputs = runs.outputs_until(batch_stop, move_bar)
    batch_coins = runs.member[batch_start:batch_stop]
    if score is not None:
        batch_scores = _scores_by_given_function(score, outputs[batch_start:])
        stream.update(batch_scores, batch_coins)
    elif batch_start:
        learnt_log_odds = _learnt_log_odds(
            outputs, member=runs.member[:batch_start], seed=runs.seed
        )
        stream.update(learnt_log_odds, batch_coins)
    # Kept at once: who goes on later must not divide runs otherwise whose coins were used
    runs.batch_ends.append(batch_stop)
    runs.save()


def _result_of_runs(stream_result: AuditResult, runs: Runs) -> AuditResult:
    """Return the result of a stream in terms of runs."""
    options_of_runs = {"runs": runs.scored, "seed": runs.seed, "design": Trials.name}
    assumption_name, assumption_statement = INDEPENDENT
    if not runs.repeatable:
        options_of_runs["repeatable"] = False
        assumption_statement = f"{assumption_statement} {_NOT_REPEATABLE}"
    # Of pure DP, the first two are about coins and examples of one training run
    independent_runs = Assumption(assumption_name, assumption_statement, status="declared")
    return replace(
        stream_result,
        options=stream_result.options | options_of_runs,
        wording=TRIALS,
        assumptions=(independent_runs, NEIGHBOURS, *stream_result.assumptions[2:]),
        warnings=(*stream_result.warnings, *runs.warnings()),
    )


def _check_callable(name: str, function: object) -> None:
    """Refuse an argument that cannot be called."""
    if not callable(function):
        raise InputTypeError(f"{name} must be a function, got {shown(function)}")


def _learnt_log_odds(outputs: Sequence[Output], member: BoolArray, seed: int) -> FloatArray:
    """Return log-odds of `d1` for the outputs after those whose coins are known.

    They are the sum of what two classifiers say: one adds up a function of each feature, the other
    finds what features say together. Of outputs that few runs had, both say little. The coins that
    are known, `member`, are those of the first outputs.
    """
    with needs("ml", "audit_mechanism without score"):
        from sklearn.ensemble import ExtraTreesClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import SplineTransformer

    known_runs = member.size
    training_runs = slice(max(0, known_runs - _MOST_TRAINING_RUNS), known_runs)
    training_coins = member[training_runs]
    if training_coins.all() or not training_coins.any():
        return np.zeros(len(outputs) - known_runs)
    # Ranks, as outputs may be infinite, or of any scale
    feature_columns = features_of(outputs)
    feature_ranks = np.empty((len(outputs), len(feature_columns)))
    for feature_number, feature in enumerate(feature_columns):
        feature_ranks[:, feature_number] = _mid_ranks(feature, np.sort(feature[training_runs]))
    training_ranks = feature_ranks[training_runs]
    asked_ranks = feature_ranks[known_runs:]
    spline_basis = SplineTransformer(n_knots=_SPLINE_KNOTS, degree=1)
    additive_model = make_pipeline(spline_basis, LogisticRegression(C=_INVERSE_PENALTY))
    additive_model.fit(training_ranks, training_coins)
    tree_model = ExtraTreesClassifier(
        n_estimators=_TREES,
        min_samples_leaf=_LEAST_RUNS_IN_LEAF,
        random_state=Purpose.MECHANISM_TREES.derived(seed, known_runs, bits=32),
    )
    tree_model.fit(training_ranks, training_coins)
    tree_probabilities = _tree_probabilities(
        tree_model.apply(training_ranks),
        member=training_coins,
        asked_leaves=tree_model.apply(asked_ranks),
    )
    additive_log_odds = additive_model.decision_function(asked_ranks)
    return np.asarray(additive_log_odds + logit(tree_probabilities))


def _mid_ranks(feature_values: AnyArray, training_values: AnyArray) -> FloatArray:
    """Return ranks of values among increasing ones, ties in the middle, as shares of their number.

    This is the mid-distribution function of the training values.
    """
    values_below = np.searchsorted(training_values, feature_values, side="left")
    values_up_to = np.searchsorted(training_values, feature_values, side="right")
    mid_ranks: FloatArray = np.mean([values_below, values_up_to], axis=0) / training_values.size
    return mid_ranks


def _tree_probabilities(
    training_leaves: IntArray, member: BoolArray, asked_leaves: IntArray
) -> FloatArray:
    """Return the mean over trees of the share of `d1` in leaves, shrunk towards one half.

    Leaves are those of runs, with a column for each tree.
    """
    sum_of_shares = np.zeros(len(asked_leaves))
    for training_leaves_of_tree, asked_leaves_of_tree in zip(
        training_leaves.T, asked_leaves.T, strict=True
    ):
        leaf_count = 1 + max(int(training_leaves_of_tree.max()), int(asked_leaves_of_tree.max()))
        runs_in_leaf = np.bincount(training_leaves_of_tree, minlength=leaf_count)
        members_in_leaf = np.bincount(training_leaves_of_tree[member], minlength=leaf_count)
        shrunk_runs = runs_in_leaf + 2 * _PSEUDO_RUNS
        shrunk_shares = (members_in_leaf + _PSEUDO_RUNS) / shrunk_runs
        sum_of_shares += shrunk_shares[asked_leaves_of_tree]
    mean_shares: FloatArray = sum_of_shares / training_leaves.shape[1]
    return mean_shares
