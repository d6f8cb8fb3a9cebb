"""An audit that may be looked at, and stopped, at any time: examples arrive in batches."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

import leakbound._core as _core
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import (
    check_ids,
    check_membership,
    check_scores,
    choice,
    complement,
    instance,
    real,
    shown,
)
from leakbound._base.files import Archive, open_archive, replacing
from leakbound._base.formatting import down
from leakbound._base.records import Lazy
from leakbound._base.types import (
    ArrayInput,
    BoolArray,
    FloatArray,
    HasMember,
    IntArray,
    PathOrder,
    SidesChoice,
)
from leakbound.audits.figures import POINTS, histogram, roc
from leakbound.audits.member_count import MemberCount
from leakbound.audits.road import provenance
from leakbound.claims import CLAIMS, Claim, PureDP
from leakbound.cuts import ORDERS
from leakbound.cuts.policy import PATH_NAMES, chance_explains
from leakbound.errors import FormatError, InputError, InputTypeError, LeakboundError, OptionError
from leakbound.results import Assumption, AuditResult, Curve

Cuts: TypeAlias = tuple[IntArray, IntArray]
"""Guesses and correct guesses at some cuts."""
Walk: TypeAlias = tuple[IntArray, IntArray]
"""Blocks visited of the first and of the second half of a ranking, after each block."""

_PURE_DP = PureDP()
_SHARES = (1.0, 0.25, 0.0625)
_MOST_SHARES = 100
"""Shares at most: each is a sequence of its own on each side, looked at after every block."""
_MOMENTS = 2**22
"""Counts held at a time: those of all sequences after some blocks."""
_SCHEMA = 2
"""Number of the file layout, raised whenever an array or the bound of a stream changes meaning."""

_THEOREM = (
    "Given the trained model, the labels of earlier batches and the coins of the guesses before, "
    "each guess is right with probability at most e^ε / (1 + e^ε) if training is ε-DP (Steinke, "
    "Nasr and Jagielski 2023, Proposition 5.1). On each sequence of guesses the likelihood ratio "
    "averaged over all larger probabilities is then a supermartingale, and so is the mean over all "
    "sequences, which one order of visiting serves. It ever reaches the inverse of the level with "
    "no more than that probability (Ville 1939): the bound holds at every moment together, "
    "whenever one stops."
)


@dataclass(frozen=True)
class _Sequence:
    """A sequence of guesses through all batches: a role, and a share of each batch."""

    order: PathOrder
    share: float

    def within(self, paths: dict[PathOrder, Cuts], walk: Walk) -> Cuts:
        """Return guesses and correct guesses after each block of a batch, visited in one order."""
        guesses, correct = paths[self.order]
        least = math.ceil(self.share * int(guesses[-1]))
        stop = int(np.searchsorted(guesses, least)) + 1
        made = np.append(0, guesses[:stop])
        right = np.append(0, correct[:stop])
        blocks = {"member_half": walk[0], "nonmember_half": walk[1]}
        visited = np.minimum(blocks.get(self.order, walk[0] + walk[1]), stop)
        return made[visited], right[visited]


def _walk(paths: dict[PathOrder, Cuts]) -> Walk:
    """Return the one order of visiting that serves all paths: block by block, as "interleaved"."""
    if "member" in paths:
        blocks = np.arange(1, paths["member"][0].size + 1)
        return blocks, np.zeros_like(blocks)
    first, second = paths["member_half"][0], paths["nonmember_half"][0]
    # the half with fewer guesses so far goes on, the first on equality
    begins = np.concatenate([[0], first[:-1], [0], second[:-1]])[: first.size + second.size]
    half = np.repeat([0, 1], [first.size, second.size])
    turn = half[np.lexsort((half, begins))]
    return np.cumsum(turn == 0), np.cumsum(turn == 1)


@dataclass(frozen=True)
class _Moment:
    """A moment of a stream: the bound there, and guesses and correct guesses of all sequences."""

    logit: float
    counts: IntArray

    def strongest(self, bound: float) -> int:
        """Return the sequence with the largest likelihood ratio against a bound: it says most."""
        guesses, correct = self.counts
        p = 1 / (1 + math.exp(-bound))
        share = correct / np.maximum(guesses, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = correct * np.log(share / p) + (guesses - correct) * np.log(
                (1 - share) / (1 - p)
            )
        exact = np.where(correct == guesses, -correct * math.log(p), ratio)
        return int(np.argmax(np.where(share > p, exact, -1.0)))


def _bound(moments: IntArray, level: float) -> tuple[int, float] | None:
    """Return the index and the logit of the best moment, by the mean over sequences."""
    guesses, correct = (np.ascontiguousarray(moments[:, i]).ravel() for i in (0, 1))
    sequences = moments.shape[2]
    return _core.ville_bound_of_moments(guesses, correct, sequences=sequences, beta=level)


class Stream:
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
        Up to 100 parts of each batch, in (0, 1], that are guessed: the most confident ones. Each
        share, with each side, is a sequence of guesses of its own, and the mean over all of them
        counts. A large share is for weak and broad signals, a small one for few sure guesses.

    Raises
    ------
    OptionError
        If the claim is another one.
    OptionError, InputTypeError
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
    >>> stream = Stream(confidence=0.95)
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
        sides: SidesChoice = "both",
        shares: Sequence[float] = _SHARES,
    ) -> None:
        instance(claim, "claim", CLAIMS)
        if not isinstance(claim, PureDP):
            message = (
                f"Stream is for PureDP(): under {claim.name} single guesses are not bounded "
                "one after the other; collect the batches and audit them together"
            )
            raise OptionError(message)
        choice(sides, "sides", SidesChoice)
        self._level = complement(confidence)
        self._claim, self._confidence, self._sides = claim, float(confidence), sides
        self._shares = _checked(shares)
        self._sequences = [
            _Sequence(order, share) for order in ORDERS[sides] for share in self._shares
        ]
        nothing = np.zeros((2, len(self._sequences)), dtype=np.int64)
        self._best = _Moment(-math.inf, nothing)
        self._ends = [nothing]
        self._scores: list[FloatArray] = []
        self._member: list[BoolArray] = []
        self._ids: list[Any] = []
        self._seen: set[Any] = set()
        self._abstained = 0
        self._members = 0
        self._refused: MemberCount | None = None

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
            One id for each score, in their order; checked for repetition, in all batches together,
            and joined with those of `member`. By default those that scores or `member` carry,
            unless they only number the rows of a batch: 0, 1, …, n - 1.

        Returns
        -------
        Self
            The same stream. It is left as it was if the batch is refused.

        Raises
        ------
        InputTypeError, InputError, InputError
            If scores cannot be read, or ids are text where those of earlier batches are numbers.
        InputError, InputError
            If membership is not one allowed value for each score.
        InputError, InputError, InputError
            If an id is repeated, or scores and membership have ids that are not the same.
        DesignError
            If with this batch the number of members is one that fair coins give with a probability
            below 1e-6. The batch counts all the same: from then on there is no bound.
        """
        order = ExampleOrder(ids)
        values = check_scores(order.scores(scores, "scores"))
        included = order.member(member, values.size)
        self._check_ids(order.ids, included)
        self._take(values, included)
        self._refuse()
        return self

    def _take(self, values: FloatArray, included: BoolArray) -> None:
        ranking = _core.Ranking(values, included)
        if ranking.blocks == 1 and (self._sides == "both" or values.size > 1):
            self._abstained += values.size
        else:
            self._extend(ranking)
        self._scores.append(values)
        self._member.append(included)
        self._members += int(included.sum())
        if self._count.impossible and self._refused is None:
            self._refused = self._count

    def _refuse(self) -> None:
        """Raise if the number of members was impossible after any of the batches."""
        if self._refused is not None:
            self._refused.refuse()

    @property
    def _count(self) -> MemberCount:
        return MemberCount.of_coins(self._members, self.m)

    @property
    def bound(self) -> float:
        """The lower bound on ε, at least 0; it never falls, and all its values hold together.

        Raises
        ------
        DesignError
            If `update` raised it: fair coins did not give these members.
        """
        self._refuse()
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
            As of `audit`. AUC, ROC and histogram are of ranks within batches, from 0 to 1,
            since scores of different batches need not be on one scale.

        Raises
        ------
        OptionError
            If there was no batch yet.
        DesignError
            If `update` raised it: fair coins did not give these members.
        """
        if not self._scores:
            message = "there is no result before the first batch: call update(scores, member)"
            raise OptionError(message)
        best, bound = self._best, self.bound
        member = np.concatenate(self._member)
        ranks = np.concatenate([_ranks(values) for values in self._scores])
        ranking = _core.Ranking(ranks, member)
        index = best.strongest(bound)
        guesses, correct = (int(count) for count in best.counts[:, index])
        ends, sequence = list(self._ends[1:]), self._sequences[index]
        return AuditResult(
            bound=bound,
            reason="" if bound else chance_explains(guesses, correct),
            m=member.size,
            members=ranking.members,
            guesses=guesses,
            correct=correct,
            path=PATH_NAMES[sequence.order],
            auc=ranking.auc,
            options={
                "cuts": {"type": "Ville"},
                "paths": [PATH_NAMES[order] for order in ORDERS[self._sides]],
                "shares": list(self._shares),
                "share": sequence.share,
                "level": self._level,
                "sides": self._sides,
                "batches": self.batches,
            },
            warnings=self._count.warnings() + self._notes(),
            kind="lower_bound",
            claim=self._claim,
            confidence=self._confidence,
            theorem=_THEOREM,
            assumptions=_assumptions(self._count),
            _ceiling=Lazy(lambda: max(bound, self._perfect(member.size))),
            _curve=Lazy(lambda: _curve([*ends, best.counts], index, bound, self._level, ranking)),
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
        Stream
            The stream as it was saved.

        Raises
        ------
        FormatError
            If the file is something else, is damaged, or comes from another version.
        OSError
            If the file cannot be read.
        """
        try:
            with open_archive(path) as archive:
                return cls._from_archive(archive)
        except (LeakboundError, ValueError) as error:
            message = f"{path} is not a saved Stream: {error}"
            raise FormatError(message) from error

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        version = int(archive.typed("one_run_stream", np.int64, axes=0))
        if version != _SCHEMA:
            message = f"its layout is number {version}, and this is {_SCHEMA}"
            if version < _SCHEMA:
                message += ": its bound was another one; feed its batches to a new stream"
            raise FormatError(message)
        stream = cls(
            confidence=float(archive.typed("confidence", np.float64, axes=0)),
            sides=str(archive.typed("sides", np.str_, axes=0)),  # type: ignore[arg-type] # checked there
            shares=archive.typed("shares", np.float64).tolist(),
        )
        sizes = archive.typed("sizes", np.int64).tolist()
        scores = archive.typed("scores", np.float64)
        member = archive.typed("member", np.bool_)
        # summed as integers of Python, which do not wrap around
        if min(sizes, default=1) < 1 or not sum(sizes) == scores.size == member.size:
            message = f"its batches do not add up to {scores.size} scores, {member.size} members"
            raise FormatError(message)
        ids = archive["ids"]
        listed = ids.tolist() if ids.ndim == 1 and ids.dtype.kind in "biufSU" else [None, None]
        if len(listed) > scores.size or len(set(listed)) < len(listed):
            message = "its ids are not a different one for each example that has one"
            raise FormatError(message)
        for size, stop in zip(sizes, np.cumsum(sizes), strict=True):
            part = slice(stop - size, stop)
            stream._take(check_scores(scores[part]), check_membership(member[part], size))
        stream._ids, stream._seen = listed, set(listed)
        return stream

    def __repr__(self) -> str:
        bound = "no bound" if self._refused else f"epsilon >= {down(self.bound)}"
        return (
            f"Stream({bound} @ {100 * self._confidence:.10g}%, "
            f"{self._claim.name}, m={self.m}, batches={self.batches})"
        )

    def _extend(self, ranking: _core.Ranking) -> None:
        """Visit a batch, and look at every block on the way."""
        paths: dict[PathOrder, Cuts] = {}
        for order in ORDERS[self._sides]:
            path = ranking.path("member" if order == "pairs" else order)
            guesses, correct = path.sample(path.guesses)
            paths[order] = guesses, correct
        walk = _walk(paths)
        before, step = self._ends[-1], max(1, _MOMENTS // len(self._sequences))
        for start in range(0, walk[0].size, step):
            part = walk[0][start : start + step], walk[1][start : start + step]
            stood = [sequence.within(paths, part) for sequence in self._sequences]
            # moments, guesses or correct guesses, sequences
            moments = before + np.stack(stood).transpose(2, 1, 0)
            found = _bound(moments, self._level)
            if found is not None and found[1] > self._best.logit:
                self._best = _Moment(found[1], moments[found[0]])
        self._ends.append(moments[-1])

    def _perfect(self, examples: int) -> float:
        half = max(1, examples // 2)
        longest = [half if one.order != "interleaved" else examples for one in self._sequences]
        made = [math.ceil(one.share * n) for one, n in zip(self._sequences, longest, strict=True)]
        found = _bound(np.array([[made, made]], dtype=np.int64), self._level)
        return -math.inf if found is None else found[1]

    def _check_ids(self, ids: NDArray[Any] | None, included: BoolArray) -> None:
        """Check the ids of a batch and remember them."""
        if ids is None:
            return
        check_ids(ids, included)
        new = ids.tolist()
        kinds = {type(one) for one in (*self._ids[:1], new[0])}
        if len(kinds) > 1 and kinds & {str, bytes}:
            message = (
                f"ids are like {shown(new[0])} in this batch and like {shown(self._ids[0])} in an "
                "earlier one, so that repetition cannot be seen: give both ids of one type"
            )
            raise InputTypeError(message)
        again = self._seen.intersection(new)
        if again:
            message = (
                f"{len(again)} ids of this batch were in an earlier one, such as "
                f"{min(again, key=str)!s}: its membership is known, so it proves nothing more"
            )
            raise InputError(message)
        self._seen.update(new)
        self._ids.extend(new)

    def _notes(self) -> tuple[str, ...]:
        if not self._abstained:
            return ()
        return (f"{self._abstained} examples abstained, in batches whose scores are all equal",)


def _assumptions(count: MemberCount) -> tuple[Assumption, ...]:
    return (
        Assumption(
            "independent fair coins",
            count.statement(
                "Each example was in the training set if its own fair coin said so; the bound is "
                "over these coins and whatever training draws, given everything else."
            ),
            count.status("declared"),
        ),
        *_DECLARED,
    )


_DECLARED = (
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
    try:
        listed = tuple(shares)
    except TypeError:
        message = f"shares must be a sequence of numbers in (0, 1], got {shown(shares)}"
        raise InputTypeError(message) from None
    values = tuple(real(share, "shares", above=0, below=math.inf) for share in listed)
    if not values or max(values) > 1 or len(set(values)) < len(values):
        message = f"shares must be different numbers in (0, 1], at least one; got {shown(shares)}"
        raise OptionError(message)
    if len(values) > _MOST_SHARES:
        message = (
            f"shares must be at most {_MOST_SHARES}, got {len(values)}: the bound is that of their "
            "mean, so that a few far apart say as much"
        )
        raise OptionError(message)
    return values


def _ranks(values: FloatArray) -> FloatArray:
    """Return the ranks of a batch from 0 to 1, ties in the middle of their block."""
    _, block, count = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    ranks: FloatArray = middle[block] / values.size
    return ranks


def _curve(
    moments: list[IntArray], index: int, bound: float, level: float, ranking: _core.Ranking
) -> Curve:
    """Return the sequence that says most at the ends of batches, and last where the bound is."""
    step = max(1, math.ceil(len(moments) / (POINTS - 2)))
    kept = [*moments[:-1][::step], *moments[-2:]]
    found = [_bound(moment[None], level) for moment in kept]
    limits = [-math.inf if one is None else one[1] for one in found]
    counts = np.array([moment[:, index] for moment in kept])
    _, rows = np.unique(counts[::-1, 0], return_index=True)
    rows = len(kept) - 1 - rows
    rows = rows[counts[rows, 0] > 0]
    guesses, correct = counts[rows].T
    return Curve(
        guesses=guesses,
        correct=correct,
        precision=correct / guesses,
        recall=correct / max(1, ranking.examples),
        bound=np.clip(np.array(limits)[rows], 0.0, bound),
    )
