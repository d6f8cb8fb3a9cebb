"""An audit that may be looked at, and stopped, at any time: examples arrive in batches."""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np

import leakbound._core as _core
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import (
    check_ids,
    check_scores,
    choice,
    complement,
    real,
    shown,
)
from leakbound._base.messages import OF_CLAIMS, hinted
from leakbound._base.types import (
    AnyArray,
    ArrayInput,
    BoolArray,
    FloatArray,
    GenericArray,
    IntArray,
    JsonObject,
    MemberInput,
    PathOrder,
    SidesChoice,
)
from leakbound.audits.member_count import MemberCount
from leakbound.audits.premises import delta_warnings, family_assumption
from leakbound.audits.road import (
    Grounds,
    Request,
    assemble,
)
from leakbound.audits.sequences import (
    GuessCounts,
    GuessSequence,
    best_moment_by_ville,
    curve_of_sequence,
    ranks_within_batch,
    sentence_on_sequences,
    strongest_sequence,
    visiting_order,
)
from leakbound.audits.trials import INDEPENDENT, NEIGHBOURS, Bets, Trials
from leakbound.claims import CLAIMS, Claim, PureDP
from leakbound.claims.families import refuse_claim
from leakbound.cuts import ORDERS, Proof, ScoreGame
from leakbound.cuts.policy import PATH_NAMES, Best, Stated, chance_explains
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError
from leakbound.results import Assumption, AuditResult
from leakbound.results.one_run import as_epsilon, in_code

# Shares of a batch that are guessed by default: weak and broad signals, and few sure guesses.
_SHARES = (1.0, 0.5, 0.2, 0.05)
# Shares at most: each is a sequence of its own on each side, looked at after every block.
_MOST_SHARES = 100
# Counts held at a time: those of all sequences after some blocks.
_MOMENTS = 2**22

_THEOREM = (
    "Given the trained model, or all outputs of the mechanism, and the coins of earlier guesses, "
    "each guess is right with probability at most e^ε / (1 + e^ε) under ε-DP (Steinke, Nasr and "
    "Jagielski 2023, Proposition 5.1). On each sequence of guesses the likelihood ratio "
    "averaged over all larger probabilities is then a supermartingale, and so is the mean over "
    "all sequences. It ever reaches the inverse of the level with at most that probability (Ville "
    "1939), so the bound holds at all times at once, whenever you stop."
)
_TRIALS = (
    "Trials are independent, and the claim makes each of them (ε, δ(ε))-DP for every ε, given all "
    "earlier batches. A bet at odds of e^ε wins on average at most its fee, which is what failures "
    "add. So what bets at several odds on several sequences of guesses have won is, on average "
    "over them, a supermartingale. It ever reaches the inverse of the level with at most that "
    "probability (Ville 1939), so the bound holds at all times at once, whenever you stop."
)


@hinted(positional="write lb.Stream(claim=…)", **OF_CLAIMS)
class Stream:
    """Bound the privacy loss of one training run, or of many trials, batch by batch, at any time.

    A fair coin decided for each example whether it was in the training set. Batches of examples
    are scored by the trained model and guessed, and then their membership is revealed; `bound`
    holds after every batch at once, so one may stop when it is large enough, or go on.

    Parameters
    ----------
    claim : PureDP, ApproxDP, GaussianDP, LaplaceDP, SubsampledGaussianDP or TradeOffFamily
        The guarantees, whose parameter is bounded. `PureDP()` takes coins of one training run. All
        others take independent trials, as in `Trials`: each score comes from a separate run with
        fresh randomness, and the coin decided whether this run had its example.
    confidence : float
        Probability that the bound is never above the truth, in (0, 1).
    sides : {"both", "member"}
        Guess members and non-members, or members only.
    shares : sequence of float
        Up to 100 parts of each batch, in (0, 1], that are guessed: the most confident ones. Each
        share, with each side, is a sequence of guesses of its own, and the mean over all of them
        counts. A large share is for weak and broad signals, a small one for few sure guesses.

    Notes
    -----
    Order and guesses within a batch come from its scores alone, before its labels are looked at.
    Scores may be made with the labels of *earlier* batches, an attack be trained on them or be
    exchanged. A batch should be large enough to rank, fifty examples or so; where all its scores
    are equal, its examples abstain, but trials pay their fees. Every batch that was scored has to
    be fed. Trials of a batch may be chosen by what earlier batches showed, their coins included.
    To go on another day, pickle the stream, or feed its batches to a new one.
    ``docs/theory/streaming.md`` has the proof.

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
        *,
        claim: Claim = PureDP(),  # noqa: B008 (frozen)
        confidence: float = 0.95,
        sides: SidesChoice = "both",
        shares: Sequence[float] = _SHARES,
    ) -> None:
        if type(claim) not in CLAIMS:
            refuse_claim(claim, name="claim")
        choice(sides, "sides", SidesChoice)
        self._claim = claim
        self._level = complement(confidence)
        self._confidence = float(confidence)
        self._sides = sides
        self._shares = _checked_shares(shares)
        self._sequences = [
            GuessSequence(order, share) for order in ORDERS[sides] for share in self._shares
        ]
        self._bets = Bets(claim, tuple(self._sequences), self._level)
        # Guesses and correct guesses of all sequences: where the bound is, and after each batch.
        self._counts = np.zeros((2, len(self._sequences)), dtype=np.int64)
        self._ends = [self._counts]
        # What is proved where it is, -inf for nothing, and the bound after each batch.
        self._proved = -math.inf
        self._bounds = [0.0]
        self._m = 0
        self._scores: list[FloatArray] = []
        self._member: list[BoolArray] = []
        self._ids: dict[object, None] = {}  # in their order
        self._abstained = 0
        self._members = 0
        self._refused: MemberCount | None = None

    def update(
        self, scores: ArrayInput, member: MemberInput, *, ids: ArrayInput | None = None
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
            The same stream, left as it was if the batch cannot be read or repeats an id. If with
            this batch the number of members is one that fair coins give with a probability below
            1e-6, DesignError is raised. The batch counts all the same: from then on there is no
            bound.
        """
        # 1. The batch is read, and its examples are new.
        order = ExampleOrder(ids)
        values = check_scores(order.scores(scores, "scores"))
        included = order.member(member, values.size)
        new = self._checked_new_ids(order.ids, included)
        # 2. Too many or too few members so far contradict the coins, for good: then no parameter
        # explains the guesses, and a search for one has no end.
        members = self._members + int(included.sum())
        member_count = MemberCount.of_coins(members, self._m + values.size)
        if member_count.impossible and self._refused is None:
            self._refused = member_count
        # 3. Its guesses go on where those of earlier batches ended.
        ranking = _core.Ranking(values, included)
        if ranking.blocks == 1 and (self._sides == "both" or values.size > 1):
            self._abstained += values.size
        elif self._refused is None:
            self._extend_by_batch(ranking)
        self._scores.append(values)
        self._member.append(included)
        self._members = members
        self._m += values.size
        self._ids |= new
        self._check_member_count()
        return self

    def _check_member_count(self) -> None:
        """Raise if the number of members was impossible after any of the batches."""
        if self._refused is not None:
            self._refused.refuse()

    @property
    def bound(self) -> float:
        """The lower bound on the claim's parameter, at least 0; it never falls.

        All its values hold together. DesignError is raised if `update` raised it: fair coins did
        not give these members.
        """
        self._check_member_count()
        return self._bounds[-1]

    @property
    def m(self) -> int:
        """Examples so far."""
        return self._m

    @property
    def batches(self) -> int:
        """Batches so far."""
        return len(self._scores)

    def result(self) -> AuditResult:
        """Return what has been proved so far.

        AUC, ROC and histogram are of ranks within batches, from 0 to 1, since scores of different
        batches need not be on one scale.
        """
        if not self._scores:
            raise OptionError(
                "there is no result before the first batch: call update(scores, member)"
            )
        bound = self.bound
        counts = self._counts
        member = np.concatenate(self._member)
        scores = np.concatenate(self._scores)  # batches may follow
        ranks = np.concatenate([ranks_within_batch(values) for values in self._scores])
        # The sequence that says most has the guesses; the bound is that of all together.
        index = self._strongest_sequence(bound)
        sequence = self._sequences[index]
        guesses, correct = counts[:, index].tolist()
        moments = [*self._ends[1:], counts]
        bounds = [*self._bounds[1:], bound]
        options: JsonObject = {
            "cuts": {"type": "Ville"},
            "paths": [PATH_NAMES[order] for order in ORDERS[self._sides]],
            "shares": list(self._shares),
            "share": sequence.share,
            "level": self._level,
            "sides": self._sides,
            "batches": self.batches,
        }
        if self._takes_trials:
            options["design"] = Trials.name
        reason = ""
        if not bound:
            reason = chance_explains(guesses, correct)
        proof = Proof(
            policy=Stated(thresholds=sentence_on_sequences(len(self._sequences))),
            game=ScoreGame(scores=ranks, member=member, sides=self._sides, seed=0),
            ranking=_core.Ranking(ranks, member),
            order=sequence.order,
            best=Best(bound, guesses, correct),
            level=self._level,
            reason=reason,
            options=options,
            perfect=lambda: self._ceiling_of_perfect_attack(member.size),
            points=lambda most: curve_of_sequence(moments, index, bounds, most),
        )
        request = Request(claim=self._claim, confidence=self._confidence, sides=self._sides, seed=0)
        grounds = self._grounds_of_stream({"scores": scores, "member": member})
        return AuditResult(**assemble(proof, grounds, request))

    def _grounds_of_stream(self, inputs: dict[str, GenericArray]) -> Grounds:
        """Return what is said of coins of one training run, or of independent trials."""
        member_count = MemberCount.of_coins(self._members, self.m)
        warnings = [*member_count.warnings(), *delta_warnings(self._claim.delta, self.m)]
        if self._abstained:
            warnings.append(
                f"{self._abstained} examples abstained: all scores of a batch are equal"
            )
        theorem = _THEOREM
        coins = _FAIR_COINS
        relation = _ADDED
        of = "training"
        if self._takes_trials:
            theorem = _TRIALS
            coins = INDEPENDENT
            relation = NEIGHBOURS
            of = "a trial"
        return Grounds(
            theorem=theorem,
            assumptions=(
                member_count.assumption(*coins),
                relation,
                *_DECLARED,
                *family_assumption(self._claim, of),
            ),
            options={},
            warnings=tuple(warnings),
            inputs=inputs,
        )

    def __repr__(self) -> str:
        bound = "no bound"
        if not self._refused:
            claim, found = self._claim, self.bound
            curve = claim.rejected(found, self._sides)
            bound = in_code(claim, found, as_epsilon(claim, found, curve))
            bound = bound.replace("epsilon(", "result().epsilon(")
        return (
            f"Stream({bound} @ {100 * self._confidence:.10g}%, "
            f"{self._claim.name}, m={self.m}, batches={self.batches})"
        )

    @property
    def _takes_trials(self) -> bool:
        """Whether each score must come from a separate run."""
        return not isinstance(self._claim, PureDP)

    def _strongest_sequence(self, bound: float) -> int:
        """Return the index of the sequence that says most."""
        if not self._takes_trials:
            return strongest_sequence(self._counts, bound)
        theta = max(bound, self._claim.search[0])
        interval = self._bets.interval_of(theta)
        log_wealth = self._bets.log_wealth(theta, self.m, self._counts, interval)
        return int(log_wealth.max(axis=0).argmax())

    def _extend_by_batch(self, ranking: _core.Ranking) -> None:
        """Visit a batch, and look at every block on the way, or of trials at the end."""
        counts_by_order: dict[PathOrder, GuessCounts] = {}
        for order in ORDERS[self._sides]:
            if order != "pairs":  # of which a stream has none
                path = ranking.path(order)
                counts_by_order[order] = path.sample(path.guesses)
        upper_visited, lower_visited = visiting_order(counts_by_order)
        counts_before = self._ends[-1]
        blocks_at_once = max(1, _MOMENTS // len(self._sequences))
        first_block = 0
        if self._takes_trials:
            first_block = upper_visited.size - 1
        largest_proved = self._proved
        counts = self._counts
        for start in range(first_block, upper_visited.size, blocks_at_once):
            blocks = slice(start, start + blocks_at_once)
            visited = upper_visited[blocks], lower_visited[blocks]
            counts_of_batch = [
                sequence.counts_after_blocks(counts_by_order, visited)
                for sequence in self._sequences
            ]
            # moments, guesses or correct guesses, sequences
            moments = counts_before + np.stack(counts_of_batch).transpose(2, 1, 0)
            best_moment, proved = self._best_moment(moments, self.m + ranking.examples)
            if proved > largest_proved or (self._takes_trials and not proved):
                largest_proved = proved
                counts = moments[best_moment]
        self._proved = largest_proved
        self._counts = counts
        self._ends.append(moments[-1])
        self._bounds.append(max(0.0, largest_proved))

    def _best_moment(self, moments: IntArray, trials: int) -> tuple[int, float]:
        """Return the index of the best moment, and what it proves."""
        if self._takes_trials:
            last_counts = moments[-1]
            return len(moments) - 1, self._bets.bound(trials, last_counts, self._bounds[-1])
        return best_moment_by_ville(moments, self._level)

    def _ceiling_of_perfect_attack(self, examples: int) -> float:
        """Return the bound of a perfect attack, whose guesses are all correct."""
        half = max(1, examples // 2)
        guesses = []
        for sequence in self._sequences:
            longest = half
            if sequence.order == "interleaved":
                longest = examples
            guesses.append(math.ceil(sequence.share * longest))
        moments = np.array([[guesses, guesses]], dtype=np.int64)
        _, ceiling = self._best_moment(moments, examples)
        return ceiling

    def _checked_new_ids(self, ids: AnyArray | None, included: BoolArray) -> dict[object, None]:
        """Check the ids of a batch, and return them."""
        if ids is None:
            return {}
        check_ids(ids, included)
        new_ids = ids.tolist()
        first_id = next(iter(self._ids), new_ids[0])
        types = {type(first_id), type(new_ids[0])}
        if len(types) > 1 and types & {str, bytes}:
            raise InputTypeError(
                f"ids are like {shown(new_ids[0])} in this batch and like {shown(first_id)} in an "
                "earlier one, so repeated examples cannot be detected: give ids of one type"
            )
        repeated_ids = self._ids.keys() & set(new_ids)
        if repeated_ids:
            raise InputError(
                f"{len(repeated_ids)} ids of this batch were in an earlier one, such as "
                f"{min(repeated_ids, key=str)!s}: its membership is known, so it proves nothing "
                "more"
            )
        return dict.fromkeys(new_ids)


_FAIR_COINS = (
    "independent fair coins",
    (
        "A separate fair coin decided for each example whether it was in the training set. The "
        "confidence is over these coins and all random draws of training, given everything else."
    ),
)
_ADDED = Assumption(
    "add or remove one example",
    "ε refers to adding or removing one training example, whether audited or not.",
    "declared",
)
_DECLARED = (
    Assumption(
        "labels after scores",
        "The scores of a batch come from the trained model or the outputs of runs, the examples "
        "and the membership of earlier batches. Membership in the batch itself was not used.",
        "declared",
    ),
    Assumption(
        "options chosen in advance",
        "All audit options were chosen before membership was known.",
        "declared",
    ),
    Assumption(
        "guesses ordered by scores only",
        "The order of guesses within a batch depends on its scores only; ties stay together.",
        "checked",
    ),
)


def _checked_shares(shares: Sequence[float]) -> tuple[float, ...]:
    try:
        values = tuple(real(one, "shares", above=0, below=math.inf) for one in tuple(shares))
    except TypeError as error:
        if isinstance(error, LeakboundError):
            raise
        raise InputTypeError(
            f"shares must be a sequence of numbers in (0, 1], got {shown(shares)}"
        ) from None
    if not 0 < len(values) <= _MOST_SHARES or max(values) > 1 or len(set(values)) < len(values):
        raise OptionError(
            f"shares must be different numbers in (0, 1], at least one and at most {_MOST_SHARES}; "
            f"got {shown(shares)}"
        )
    return values
