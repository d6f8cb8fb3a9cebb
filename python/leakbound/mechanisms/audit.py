"""Run a mechanism on one of two inputs, again and again, until a claim about it is refuted."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, instance, integer, real, shown
from leakbound._base.console import bar, one_line
from leakbound._base.files import digest, file_alone
from leakbound._base.hints import hinted
from leakbound._base.imports import needs
from leakbound._base.odds import logit
from leakbound._base.streams import SCHEME, Purpose
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, IntArray, PathInput
from leakbound.audits import Stream
from leakbound.audits.trials import INDEPENDENT, NEIGHBOURS
from leakbound.claims import CLAIMS, Claim
from leakbound.errors import InputError, InputTypeError, LeakboundError
from leakbound.mechanisms.case import CaseRun
from leakbound.mechanisms.outputs import features_of
from leakbound.mechanisms.runs import Engine, Here, Runs, identity
from leakbound.mechanisms.worker import Output, together
from leakbound.results import Assumption, AuditResult
from leakbound.results.wording import TRIALS

# Runs that a classifier learns from at most, its trees, and runs in a leaf at least
_LESSONS = 10_000
_TREES = 60
_LEAF = 3
# Knots of a feature's part of the log-odds, and the inverse penalty on its coefficients
_KNOTS = 5
_PENALTY = 0.3
# Runs on each input that every leaf is given beside its own: they say nothing, and outweigh the
# few runs of a rare output, which would come first otherwise
_UNSEEN = 20
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
    instance(claim, name="claim", types=CLAIMS)
    _check_function("run", run)
    theta = real(parameter, name="parameter", least=0, below=math.inf)
    most = integer(most_runs, name="most_runs", least=10, most=MOST_EXAMPLES)
    stream = Stream(claim=claim, confidence=confidence)
    scored = "learnt"
    if score is not None:
        _check_function("score", score)
        scored = "given"
    curve = claim.curve(theta, "both").delta(np.linspace(0, 5, 11))
    made_of = {
        "claim": [claim.name, digest(curve)],
        "parameter": theta,
        "confidence": float(confidence),
        "pair of inputs": [identity(d0), identity(d1)],
        "score": scored,
        "random streams": SCHEME,
    }

    def engine(of_runs: int) -> Engine:
        if isinstance(run, CaseRun):
            return run.engine((d0, d1), of_runs)
        return Here(run, (d0, d1), of_runs)

    runs = Runs(engine, path=path, made_of=made_of)
    with file_alone(path), bar("running the mechanism", total=most) as move:
        runs.open(seed, most)
        while stream.bound <= theta and runs.scored < most:
            _next_batch(runs, stream, score, move)
    return _finished(stream.result(), runs).with_check(parameter=theta)


def _scored(score: Callable[[Any], Any], outputs: Sequence[Output]) -> Any:
    """Score outputs by what a caller passed, and say where an error is from."""
    try:
        return score(together(outputs))
    except (LeakboundError, MemoryError):
        raise
    except Exception as error:  # of whatever the caller wrote
        told = filter(None, [type(error).__name__, one_line(error)])
        raise InputError(
            f"score raised {': '.join(told)}. It is called with the outputs of a batch, "
            f"{len(outputs)} here, and returns a number for each"
        ) from error


def _next_batch(
    runs: Runs,
    stream: Stream,
    score: Callable[[Any], ArrayInput] | None,
    move: Callable[..., None],
) -> None:
    """Run a batch, and guess which input each of its outputs is from."""
    start = runs.scored
    stop = runs.next_end()
    outputs = runs.until(stop, move)
    member = runs.member[start:stop]
    if score is not None:
        stream.update(_scored(score, outputs[start:]), member)
    elif start:
        scores = _learnt(outputs, member=runs.member[:start], seed=runs.seed)
        stream.update(scores, member)
    # Kept at once: who goes on later must not divide runs otherwise whose coins were used
    runs.ends.append(stop)
    runs.save()


def _finished(result: AuditResult, runs: Runs) -> AuditResult:
    """Return the result of a stream in terms of runs."""
    made = {"runs": runs.scored, "seed": runs.seed, "design": "trials"}
    name, statement = INDEPENDENT
    if not runs.repeatable:
        made["repeatable"] = False
        statement = f"{statement} {_NOT_REPEATABLE}"
    # Of pure DP, the first two are about coins and examples of one training run
    independent = Assumption(name, statement, "declared")
    return replace(
        result,
        options=result.options | made,
        wording=TRIALS,
        assumptions=(independent, NEIGHBOURS, *result.assumptions[2:]),
        warnings=(*result.warnings, *runs.warnings()),
    )


def _check_function(name: str, function: object) -> None:
    if not callable(function):
        raise InputTypeError(f"{name} must be a function, got {shown(function)}")


def _learnt(outputs: Sequence[Output], member: BoolArray, seed: int) -> FloatArray:
    """Return log-odds of `d1` for the outputs after those whose coins are known.

    They are the sum of what two classifiers say: one adds up a function of each feature, the other
    finds what features say together. Of outputs that few runs had, both say little.
    """
    with needs("ml", "audit_mechanism without score"):
        from sklearn.ensemble import ExtraTreesClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import SplineTransformer

    known = member.size
    lessons = slice(max(0, known - _LESSONS), known)
    coins = member[lessons]
    if coins.all() or not coins.any():
        return np.zeros(len(outputs) - known)
    features = features_of(outputs)
    # Ranks among earlier outputs, ties in the middle: outputs may be infinite, or of any scale
    ranks = np.empty((len(outputs), len(features)))
    for column, values in enumerate(features):
        known_values = np.sort(values[lessons])
        places = [np.searchsorted(known_values, values, side) for side in ("left", "right")]
        ranks[:, column] = np.mean(places, axis=0) / known_values.size
    trees = ExtraTreesClassifier(
        n_estimators=_TREES,
        min_samples_leaf=_LEAF,
        random_state=Purpose.MECHANISM_TREES.derived(seed, known, bits=32),
    )
    spline = SplineTransformer(n_knots=_KNOTS, degree=1)
    added = make_pipeline(spline, LogisticRegression(C=_PENALTY))
    earlier = ranks[lessons]
    asked = ranks[known:]
    added.fit(earlier, coins)
    trees.fit(earlier, coins)
    said = _likely(trees.apply(earlier), member=coins, asked=trees.apply(asked))
    return np.asarray(added.decision_function(asked) + logit(said))


def _likely(learnt: IntArray, member: BoolArray, asked: IntArray) -> FloatArray:
    """Return the mean over trees of the share of `d1` in leaves, shrunk towards one half.

    `learnt` and `asked` have the leaves of runs, with a column for each tree.
    """
    total = np.zeros(len(asked))
    for leaves, found in zip(learnt.T, asked.T, strict=True):
        size = 1 + max(int(leaves.max()), int(found.max()))
        runs = np.bincount(leaves, minlength=size)
        ones = np.bincount(leaves[member], minlength=size)
        total += ((ones + _UNSEEN) / (runs + 2 * _UNSEEN))[found]
    mean: FloatArray = total / learnt.shape[1]
    return mean
