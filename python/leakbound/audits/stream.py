"""An audit that may be looked at, and stopped, at any time: examples arrive in batches."""

import math
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from leakbound import _core
from leakbound._files import replacing
from leakbound._json import Lazy
from leakbound._typing import ArrayInput, BoolArray, FloatArray, HasMember, PathOrder, Sides
from leakbound._validate import (
    check_ids,
    check_membership,
    check_scores,
    choice,
    complement,
    instance,
    real,
    vector,
)
from leakbound.audits._details import POINTS, histogram, provenance, roc
from leakbound.audits._engine import PATH_NAMES, reason
from leakbound.audits._warnings import coin_warnings
from leakbound.claims import CLAIMS, Claim, PureDP
from leakbound.cuts import ORDERS, VilleMixture
from leakbound.errors import (
    DuplicateIdsError,
    IncompatibleOptionsError,
    OptionError,
    ResultFormatError,
)
from leakbound.results import Assumption, AuditResult, Curve

__all__ = ["OneRunStream"]

_PURE_DP = PureDP()
_SHARES = (1.0, 0.25, 0.0625)
_SCHEMA = 1
_DAMAGE = (EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error)

_THEOREM = (
    "Given the trained model, the labels of earlier batches and the coins of the guesses before, "
    "each guess is right with probability at most e^ε / (1 + e^ε) if training is ε-DP (Steinke, "
    "Nasr and Jagielski 2023, Proposition 5.1). On each sequence of guesses the likelihood ratio "
    "averaged over all larger probabilities is then a supermartingale, and ever reaches the "
    "inverse of its share of the level with no more than that probability (Ville 1939): the bound "
    "holds at every moment together, whenever one stops."
)


@dataclass
class _Sequence:
    """One sequence of guesses through all batches: its counts, and the best cut so far."""

    order: PathOrder
    share: float
    guesses: int = 0
    correct: int = 0
    logit: float = -math.inf
    cut: tuple[int, int] = (0, 0)
    ends: list[tuple[int, int]] = field(default_factory=list)

    def extend(self, path: _core.Path, level: float) -> None:
        """Visit the first guesses of a batch, and look at every cut on the way."""
        last, _ = path.count(math.ceil(self.share * path.guesses))
        guesses, correct = path.sample(path.guesses)
        within = guesses <= last
        guesses, correct = self.guesses + guesses[within], self.correct + correct[within]
        best = _core.ville_bound_of_cuts(guesses, correct, beta=level)
        if best.logit > self.logit:
            self.logit, self.cut = best.logit, (best.cut, best.successes)
        self.guesses, self.correct = int(guesses[-1]), int(correct[-1])
        self.ends.append((self.guesses, self.correct))


class OneRunStream:
    """Bound the privacy loss of one training run from below, batch by batch, at any time.

    A fair coin decided for each example whether it was in the training set. Batches of examples
    are scored by the trained model and guessed, and then their membership is revealed; `bound`
    holds after every batch at once, so one may stop when it is large enough, or go on.

    Parameters
    ----------
    claim : PureDP
        The family of guarantees; others have no bound that holds at any time here.
    confidence : float
        Probability that the bound is never above the truth, in (0, 1).
    sides : {"both", "member"}
        Guess members and non-members, or members only.
    shares : sequence of float
        Parts of each batch, in (0, 1], that are guessed: the most confident ones. Each share, with
        each side, is a sequence of guesses of its own at an equal part of the level, and the best
        one counts. A large share is for weak and broad signals, a small one for few sure guesses.

    Raises
    ------
    IncompatibleOptionsError
        If the claim is another one.
    OptionError, OptionTypeError
        If an option is outside its range or of the wrong type.

    Notes
    -----
    Order and guesses within a batch come from its scores alone, before its labels are looked at.
    Scores may be made with the labels of *earlier* batches, an attack be trained on them or be
    exchanged: given the model and all other coins, an ε-DP training leaves each coin odds of at
    most e^ε. ``docs/streaming.md`` has the proof.

    A batch should be large enough to rank, fifty examples or so; where all its scores are equal,
    its examples abstain.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> stream = OneRunStream(confidence=0.95)
    >>> while stream.bound < 0.5:
    ...     member = rng.random(100) < 0.5
    ...     stream = stream.update(rng.normal(size=100) + 3 * member, member)
    >>> stream.result().check(epsilon=0.5)
    'refuted'
    """

    def __init__(
        self,
        claim: Claim = _PURE_DP,
        confidence: float = 0.95,
        *,
        sides: Sides = "both",
        shares: Sequence[float] = _SHARES,
    ) -> None:
        instance(claim, "claim", CLAIMS)
        if not isinstance(claim, PureDP):
            message = (
                f"OneRunStream is for PureDP(): under {claim.name} single guesses are not bounded "
                "one after the other; collect the batches and use audit_one_run"
            )
            raise IncompatibleOptionsError(message)
        choice(sides, "sides", Sides)
        self._claim, self._confidence, self._sides = claim, float(confidence), sides
        self._shares = _checked(shares)
        self._sequences = [
            _Sequence(order, share) for order in ORDERS[sides] for share in self._shares
        ]
        self._level = complement(confidence) / len(self._sequences)
        self._scores: list[FloatArray] = []
        self._member: list[BoolArray] = []
        self._ids: list[Any] = []
        self._seen: set[Any] = set()
        self._abstained = 0

    def update(
        self,
        scores: ArrayInput,
        member: ArrayInput | HasMember,
        *,
        ids: ArrayInput | None = None,
    ) -> Self:
        """Guess one more batch, and reveal its membership.

        Parameters
        ----------
        scores : array-like, shape (n,)
            Real numbers, higher for likelier members; ±inf allowed. Made without a look at the
            membership of these n examples; that of earlier ones may have been used.
        member : array-like of shape (n,), or InclusionPlan
            What the coins said.
        ids : array-like, shape (n,), optional
            One id for each example; checked for repetition, in all batches together.

        Returns
        -------
        Self
            The same stream. It is left as it was if the batch is refused.

        Raises
        ------
        ArrayTypeError, ShapeError, NaNScoresError
            If scores cannot be read.
        LengthMismatchError, MembershipError
            If membership is not one allowed value for each score.
        ConflictingIdsError, DuplicateIdsError
            If an id is repeated.
        """
        values = check_scores(scores)
        included = check_membership(member, values.size, scores)
        self._check_ids(ids, included)
        ranking = _core.Ranking(values, included)
        if ranking.blocks == 1 and (self._sides == "both" or values.size > 1):
            self._abstained += values.size
        else:
            paths = {order: ranking.path(order) for order in ORDERS[self._sides]}
            for sequence in self._sequences:
                sequence.extend(paths[sequence.order], self._level)
        self._scores.append(values)
        self._member.append(included)
        return self

    @property
    def bound(self) -> float:
        """The lower bound on ε, at least 0; it never falls, and all its values hold together."""
        return max(0.0, self._best.logit)

    @property
    def m(self) -> int:
        """Examples so far."""
        return sum(values.size for values in self._scores)

    @property
    def batches(self) -> int:
        """Batches so far."""
        return len(self._scores)

    def result(self) -> AuditResult:
        """Return what has been proved so far.

        Returns
        -------
        AuditResult
            As of `audit_one_run`. AUC, ROC and histogram are of ranks within batches, from 0 to 1,
            since scores of different batches need not be on one scale.

        Raises
        ------
        OptionError
            If there was no batch yet.
        """
        if not self._scores:
            message = "there is no result before the first batch: call update(scores, member)"
            raise OptionError(message)
        best, bound = self._best, self.bound
        member = np.concatenate(self._member)
        ranks = np.concatenate([_ranks(values) for values in self._scores])
        ranking = _core.Ranking(ranks, member)
        guesses, correct = best.cut
        ends = list(best.ends)
        return AuditResult(
            bound=bound,
            reason="" if bound else reason(guesses, correct),
            m=member.size,
            members=ranking.members,
            guesses=guesses,
            correct=correct,
            path=PATH_NAMES[best.order],
            auc=ranking.auc,
            options={
                "cuts": {"type": "VilleMixture"},
                "paths": [PATH_NAMES[order] for order in ORDERS[self._sides]],
                "shares": list(self._shares),
                "share": best.share,
                "level": self._level,
                "sides": self._sides,
                "batches": self.batches,
            },
            warnings=self._notes(ranking.members, member.size),
            kind="lower_bound",
            claim=self._claim,
            confidence=self._confidence,
            theorem=_THEOREM,
            assumptions=_ASSUMPTIONS,
            _ceiling=Lazy(lambda: max(bound, self._perfect(member.size))),
            _curve=Lazy(lambda: _curve(ends, best.cut, bound, self._level, ranking)),
            _roc=Lazy(lambda: roc(ranking)),
            _histogram=Lazy(lambda: histogram(ranks, member)),
            _provenance=provenance(0, scores=np.concatenate(self._scores), member=member),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the stream as a NumPy archive, all of it or nothing.

        Parameters
        ----------
        path : str or os.PathLike
            The file to write or to replace, by custom with the suffix ``.npz``.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        with replacing(path) as file:
            np.savez_compressed(
                file,
                one_run_stream=np.int64(_SCHEMA),
                confidence=np.float64(self._confidence),
                sides=np.str_(self._sides),
                shares=np.array(self._shares),
                sizes=np.array([values.size for values in self._scores], dtype=np.int64),
                scores=np.concatenate([np.empty(0), *self._scores]),
                member=np.concatenate([np.empty(0, dtype=np.bool_), *self._member]),
                ids=np.array(self._ids),
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a stream that `save` wrote, to go on with. Nothing in the file is executed.

        Parameters
        ----------
        path : str or os.PathLike
            The file.

        Returns
        -------
        OneRunStream
            The stream as it was saved.

        Raises
        ------
        ResultFormatError
            If the file is something else, is damaged, or comes from a later version.
        OSError
            If the file cannot be read.
        """
        with Path(path).open("rb") as file:
            try:
                return cls._from_archive(file)
            except _DAMAGE as error:
                message = f"{path} is not a saved OneRunStream: {error}"
                raise ResultFormatError(message) from error

    @classmethod
    def _from_archive(cls, file: BinaryIO) -> Self:
        with np.load(file, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
        if int(content["one_run_stream"]) != _SCHEMA:
            message = f"its layout is {content['one_run_stream']}, not {_SCHEMA}"
            raise ValueError(message)
        stream = cls(
            confidence=float(content["confidence"]),
            sides=str(content["sides"]),  # type: ignore[arg-type] # checked there
            shares=content["shares"].tolist(),
        )
        stops = np.cumsum(content["sizes"])[:-1]
        if content["sizes"].size:
            parts = (np.split(content[name], stops) for name in ("scores", "member"))
            for scores, member in zip(*parts, strict=True):
                stream.update(scores, member)
        stream._ids = content["ids"].tolist()
        stream._seen = set(stream._ids)
        return stream

    def __repr__(self) -> str:
        return (
            f"OneRunStream(epsilon >= {self.bound:.2f} @ {100 * self._confidence:.10g}%, "
            f"{self._claim.name}, m={self.m}, batches={self.batches})"
        )

    @property
    def _best(self) -> _Sequence:
        return max(self._sequences, key=lambda sequence: sequence.logit)

    def _perfect(self, examples: int) -> float:
        return VilleMixture().perfect(ORDERS[self._sides][-1], examples, self._level)

    def _check_ids(self, ids: ArrayInput | None, included: BoolArray) -> None:
        """Check the ids of a batch and remember them."""
        if ids is None:
            return
        check_ids(ids, included)
        new = vector(ids, "ids", kinds="biufSUOT").tolist()
        again = self._seen.intersection(new)
        if again:
            message = (
                f"{len(again)} ids of this batch were in an earlier one, such as "
                f"{min(again, key=str)!s}: its membership is known, so it proves nothing more"
            )
            raise DuplicateIdsError(message)
        self._seen.update(new)
        self._ids.extend(new)

    def _notes(self, members: int, examples: int) -> tuple[str, ...]:
        notes = coin_warnings(members, examples)
        if not self._abstained:
            return notes
        text = f"{self._abstained} examples abstained, in batches whose scores are all equal"
        return (*notes, text)


_ASSUMPTIONS = (
    Assumption(
        "independent fair coins",
        "Each example was in the training set if its own fair coin said so; the bound is over "
        "these coins and whatever training draws, given everything else.",
        "declared",
    ),
    Assumption(
        "add or remove one example",
        "ε is that of training with and without one example, the audited ones included.",
        "declared",
    ),
    Assumption(
        "labels after scores",
        "The scores of a batch come from the trained model, the examples and the membership of "
        "earlier batches; that of the batch itself had no part in them.",
        "declared",
    ),
    Assumption(
        "options before the look",
        "Sides, shares and confidence were chosen before any membership was looked at.",
        "declared",
    ),
    Assumption(
        "order from scores alone",
        "Order and guesses within a batch depend on its scores only; ties stay together.",
        "checked",
    ),
)


def _checked(shares: Sequence[float]) -> tuple[float, ...]:
    values = tuple(real(share, "shares", above=0, below=math.inf) for share in shares)
    if not values or max(values) > 1 or len(set(values)) < len(values):
        message = f"shares must be different numbers in (0, 1], at least one; got {shares!r}"
        raise OptionError(message)
    return values


def _ranks(values: FloatArray) -> FloatArray:
    """Return the ranks of a batch from 0 to 1, ties in the middle of their block."""
    _, block, count = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    ranks: FloatArray = middle[block] / values.size
    return ranks


def _curve(
    ends: list[tuple[int, int]],
    cut: tuple[int, int],
    bound: float,
    level: float,
    ranking: _core.Ranking,
) -> Curve:
    """Return the winning sequence at the ends of batches and at the cut that won."""
    step = max(1, math.ceil(len(ends) / (POINTS - 2)))
    kept = sorted({*ends[::step], *ends[-1:], *([cut] if cut[0] else [])})
    guesses, correct = np.array(kept, dtype=np.int64).reshape(-1, 2).T
    limits = [
        _core.ville_bound_of_cuts(guesses[i : i + 1], correct[i : i + 1], beta=level).logit
        for i in range(guesses.size)
    ]
    return Curve(
        guesses=guesses,
        correct=correct,
        precision=correct / guesses,
        recall=correct / max(1, ranking.examples),
        bound=np.clip(limits, 0.0, bound),
    )
