"""A second look: a threshold within blocks of ranks, chosen by labels that are seen and not tested.

`OutsideIn` takes the outermost guesses for the surest. Where they are noise, as of saturated
probabilities, it walks into it. Here each end of the ranking is cut into blocks, and a pilot sample
of each block tells which blocks are worth a guess, wherever they are.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.checks import real
from leakbound._base.records import encode
from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonValue, Sides
from leakbound.cuts.games import Game, Ties
from leakbound.cuts.outside_in import LadderPolicy, one_number
from leakbound.cuts.policy import ORDERS, PATH_NAMES, Best, Policy, Proof, chance_explains, untested
from leakbound.errors import OptionError

CAUTION = 3.0
"""Standard errors by which accuracy is expected to be worse than was seen."""
PILOT_GUESSES = "guesses at ranks chosen with a pilot sample"
"""What guesses are called that are not the most confident ones."""
PartName: TypeAlias = Literal["outside-in", "planned", "look", "scan"]
_TESTED: dict[PartName, str] = {
    "outside-in": "a number of the most confident guesses",
    "planned": "the most confident guesses, as many as planned",
    "look": "guesses at ranks chosen with a pilot sample",
    "scan": "every threshold",
}


@dataclass(frozen=True, kw_only=True)
class SecondLook:
    """Several tests, each with its share of the probability of error; the largest bound counts.

    `OutsideIn` has most of it, or `KLScan` under pure DP where the sides are fixed. A pilot sample
    has the share `look`: labels of a quarter of the examples at all ranks are seen, and choose
    blocks of ranks; the other examples of these blocks are tested. Under pure DP with sides="auto"
    `KLScan` has the share `scan`.

    Parameters
    ----------
    look : float
        Share of the threshold that a pilot sample chose, in (0, 1).
    scan : float
        Share of `KLScan` under pure DP with sides="auto", in (0, 1); nobody else has it.

    Notes
    -----
    `OutsideIn` proves least where the outermost scores are noise: saturated probabilities,
    overconfident networks, texts from templates. The pilot sample finds guesses further in. Where
    nothing is wrong it costs about one per cent of the bound on average, and at most 2 % in the 8
    shapes of leak that `docs/theory/outside-in.md` lists beside the proof.
    """

    ties: ClassVar[Ties] = "broken"
    look: float = 0.05
    scan: float = 0.05

    def __post_init__(self) -> None:
        for name in ("look", "scan"):
            object.__setattr__(self, name, real(getattr(self, name), name, above=0, below=1))
        if self.look + self.scan >= 1:
            raise OptionError(
                f"look={self.look:g} and scan={self.scan:g} leave nothing to the first test: their "
                "sum must be below 1"
            )


class Part(NamedTuple):
    """A policy and its share of the level; `name` is how options call it."""

    name: PartName
    policy: Policy
    share: float

    def of(self, level: float) -> float:
        """Return what this part has of a level that is shared."""
        return self.share * shares.PARTS.of(level)


@dataclass(frozen=True, kw_only=True, eq=False)
class JoinedProof(Proof):
    """The proof of several parts: of the one that proves most, with the path of the first.

    `other_tests` is a sentence about the others, which had a part of the level.
    """

    winner: Proof
    drawn_by: Proof
    other_tests: str

    @property
    def drawn(self) -> Proof:
        """See `Proof.drawn`."""
        return self.drawn_by

    @property
    def guessed(self) -> str:
        """See `Proof.guessed`."""
        return self.winner.guessed

    @property
    def searched(self) -> str:
        """See `Proof.searched`: by the part that proves most, and what else had a share."""
        return f"{self.winner.searched} {self.other_tests}"


@dataclass(frozen=True, kw_only=True)
class Parts(Policy):
    """Several policies, each at its share of the level: one of them is wrong that often at most.

    The first is the one whose ranking the curve shows.
    """

    base: SecondLook
    parts: tuple[Part, ...]

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        stated_shares = ", ".join(f"{part.name} ({100 * part.share:g} %)" for part in self.parts)
        number_of_tests = {2: "two", 3: "three"}[len(self.parts)]
        methods = " ".join(f"{part.name.capitalize()}: {part.policy.method}" for part in self.parts)
        return (
            f"The largest bound of {number_of_tests} tests counts, each with its share of the "
            f"error probability: {stated_shares}. {methods}"
        )

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`: the largest bound counts, and on equality the first."""
        proofs: list[Proof] = []
        most = 0.0
        for part in self.parts:
            proof = part.policy.above(most).audit(game, part.of(level))
            most = max(most, proof.bound)
            proofs.append(proof)
        return self.joined(game, proofs, level)

    def joined(self, game: Game, proofs: list[Proof], level: float) -> JoinedProof:
        """Return the proof of all parts: of the one that proves most, on equality the first."""
        stated_parts: list[JsonValue] = [
            {
                "name": part.name,
                "level": part.of(level),
                "guesses": proof.best.cut,
                "correct": proof.best.successes,
                "bound": proof.bound,
            }
            for part, proof in zip(self.parts, proofs, strict=True)
        ]
        main = proofs[0]
        winner = max(proofs, key=lambda proof: proof.bound)
        # A perfect attack leaves no noise to leave out: a look proves less of it than the others.
        without_look = [proof for proof in proofs if not isinstance(proof.policy, Look)]
        return JoinedProof(
            policy=self,
            game=game,
            ranking=main.ranking,
            scored=main.scored,
            notes=main.notes,
            order=winner.order,
            best=winner.best,
            level=winner.level,
            reason=winner.reason,
            shift=winner.shift,
            other_tests=self.other_tests(proofs.index(winner)),
            winner=winner,
            drawn_by=main,
            options={**winner.options, "cuts": encode(self.base), "parts": stated_parts},
            perfect=lambda: max(proof.perfect() for proof in without_look),
            points=main.points,
        )

    def searched(
        self, examples: int, sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`: of the first test, where none of them is known to have won."""
        first_test = self.parts[0].policy.searched(examples, sides, units=units, recall=recall)
        return f"{first_test} {self.other_tests(0)}"

    def other_tests(self, place: int) -> str:
        """Return a sentence about all tests but the one at a place."""
        others = [*self.parts[:place], *self.parts[place + 1 :]]
        if len(others) > 1:
            return _two_other_tests(others)
        (other,) = others
        share = f"{100 * other.share:g} % of the error probability"
        return f"A second test, of {_TESTED[other.name]}, uses {share}."

    def remarks(self, proof: Proof) -> tuple[str, ...]:
        """See `Policy.remarks`: what the first policy remarks on the whole."""
        return self.parts[0].policy.remarks(proof)


def _two_other_tests(parts: list[Part]) -> str:
    """Return a sentence about two tests beside the one that counts."""
    tests = " and ".join(f"of {_TESTED[part.name]} ({100 * part.share:g} %)" for part in parts)
    return f"Two other tests use parts of the error probability: {tests}."


@dataclass(frozen=True, kw_only=True)
class Look(Policy):
    """A threshold within blocks of ranks, chosen by labels that are seen and not tested.

    `ladder` is the policy for the claim, whose numbers of guesses and whose test are taken.

    Notes
    -----
    Which labels are seen depends on ranks only. So do the blocks, and which of them are tested
    depends on labels seen besides: another label of a tested example would change neither the
    examples tested nor their number. The number is one of a list that the number of examples,
    level, claim and sides fix, and has the test of all these numbers together; under pure DP, where
    each guess is right with a probability bounded given all others, any number will do.
    """

    ties: ClassVar[Ties] = "broken"
    ladder: LadderPolicy

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return (
            "Labels of a quarter of the examples at all ranks choose blocks of ranks, and how many "
            "guesses within them; the other examples of these blocks are tested, and their labels "
            "had no part in the choice."
        )

    def searched(
        self, _examples: int, sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`."""
        del recall  # one number of guesses, however many there are
        seen = f"a quarter of the {units}, which are not guessed about"
        return one_number(seen, sides, "the ranks of the guesses")

    def guessed(self, _proof: Proof, /) -> str:
        """See `Policy.guessed`."""
        return PILOT_GUESSES

    def above(self, least: float) -> Self:
        """See `Policy.above`."""
        return replace(self, ladder=self.ladder.above(least))

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`."""
        # 1. Ranks, and so blocks and the labels that are seen, are free of labels.
        scored, ranking, notes = game.ranking(self.ties)
        sides = game.sides
        orders = ORDERS[sides][-1:]
        if sides == "auto":
            orders = ("member_half", "nonmember_half")
        paths = [*self.ladder.paths(ranking, orders).values()]
        # 2. Labels seen choose blocks and a number of guesses, which the others are tested at.
        plan = None
        if not self.ladder.free:
            plan = self.ladder.rule(game.examples, level, sides)
        pilot = _core.Pilot(paths)
        guesses = self._promising_guesses(pilot, plan, level, game.k)
        tested_blocks = pilot.tested(guesses)
        best = Best(0.0, 0, 0)
        if guesses:
            correct = pilot.correct(guesses)
            limit = self.ladder.limit(plan, guesses, correct, level)
            if self.ladder.of_odds:
                limit += math.log(game.k - 1)
            best = Best(limit, guesses, correct)
        blocks: list[JsonValue] = [
            [PATH_NAMES[orders[end]], first_rank, last_rank]
            for end, first_rank, last_rank in tested_blocks
        ]
        # 3. Nothing of the blocks is a cut of a path: figures show the path of another policy.
        return Proof(
            policy=self,
            game=game,
            ranking=ranking,
            scored=scored,
            order="ends" if sides == "auto" else orders[0],
            best=best,
            level=level,
            reason="" if best.logit > 0 else chance_explains(best.cut, best.successes),
            options={
                "paths": [PATH_NAMES[order] for order in orders],
                "level": level,
                "blocks": blocks,
            },
            notes=notes,
            perfect=lambda: 0.0,
            points=lambda most: untested(paths[0], most),
        )

    def _promising_guesses(
        self, pilot: _core.Pilot, plan: _core.OutsideIn | None, level: float, k: int
    ) -> int:
        """Return how many guesses to test: those expected to prove most, 0 if none do."""
        candidates = available = pilot.numbers
        if plan is not None:
            candidates = plan.levels
        numbers = np.array(candidates)
        numbers = numbers[(numbers > 0) & (numbers <= max(available, default=0))]
        accuracy = np.array(pilot.accuracy(numbers.tolist(), CAUTION))
        best = most_promising(
            self.ladder, plan, numbers, accuracy, accuracy > 1 / k, level=level, k=k
        )
        if best is None:
            return 0
        return int(numbers[best])


def most_promising(
    ladder: LadderPolicy,
    plan: _core.OutsideIn | None,
    numbers: IntArray,
    accuracy: FloatArray,
    able: BoolArray,
    *,
    level: float,
    k: int = 2,
) -> int | None:
    """Return the place of the number of guesses that is expected to prove most; None if none does.

    Numbers that are `able` to are compared, at the accuracies that are expected of them.
    """
    if not able.any():
        return None
    expected_bounds = ladder.expected(plan, numbers[able], accuracy[able], level)
    if ladder.of_odds:
        expected_bounds += math.log(k - 1)
    best = expected_bounds.argmax()
    if not expected_bounds[best] > 0:
        return None
    return int(np.flatnonzero(able)[best])
