"""Zero-Run without dropping anything: every guess has odds of its own to be right."""

import math
from dataclasses import replace
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.formatting import percent
from leakbound._base.messages import Message, Option
from leakbound._base.odds import expit
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound._base.types import Correction as CorrectionName
from leakbound.audits.policies.second_look import DEFAULT, second_look
from leakbound.audits.zero_run.correction import (
    Correction,
    Tested,
    joined_over_set,
    least_fixed,
)
from leakbound.audits.zero_run.game import Guesses, ObservedGame
from leakbound.audits.zero_run.log_odds import Odds, OddsBox, OddsSet, kept_chance
from leakbound.audits.zero_run.pilot import guide_of, pilot_of, places_of
from leakbound.claims import ApproxDP, Claim, PureDP
from leakbound.cuts import CutPolicy, Fixed, KLScan, Proof, SecondLook
from leakbound.cuts.look import CAUTION, PILOT_GUESSES, Look, Part, Parts, most_promising
from leakbound.cuts.policy import PATH_NAMES, Best
from leakbound.cuts.shift import Shift
from leakbound.errors import OptionError
from leakbound.stats import poisson_binomial_epsilon

Cuts: TypeAlias = Fixed | KLScan
# Shares of the largest number of guesses at which pure DP is tested over a set.
_CUTS = (1.0, 0.2)
# ε that guesses over a set are balanced for.
_PLANNED_EPSILON = 0.5
# What the least ε found over a set is lowered by: ascents may have left this much.
_LEFT = 5e-4
# Log-odds beyond which a guess counts as certain.
_CERTAIN = 250.0

_THEOREM = (
    "Given the trained model and the coins of earlier guesses, a guess T is right with log-odds "
    "of at most ε + Tλ if training is ε-DP (Cebere, Even, Bleistein and Bellet, Theorem D.1, "
    "before its last relaxation). "
)
_FIXED = "One threshold, fixed in advance: the exact Poisson-binomial tail."
_APPROX = (
    "Given features and guesses, correct guesses exceed a sum of coins with log-odds ε + |λ| by u "
    "or more with probability at most w = √(m(1 + e^-ε)δ/u), but for guesses that have "
    "probability w themselves (Cebere, Even, Bleistein and Bellet, Theorem D.2, with u in place of "
    "v under the root). Half of the error probability is spent on 2w. "
)
_BOTH = "Two numbers of guesses, fixed in advance, were tested; the confidence allows for both."
_LARGER = "The larger bound of two tests counts, with {first} and {look} of the error probability. "
_LOOKED_AT = "Those tested have their exact Poisson-binomial tail."
_AT_A_MEMBER = "Two numbers of guesses, fixed in advance, share the level of its exact tail."


class PoissonBinomial(Correction):
    """Guesses whose odds to be right by shift alone are reckoned with, one by one."""

    name: ClassVar[CorrectionName] = "poisson_binomial"

    def at_known(self, odds: OddsBox, game: ObservedGame, level: float) -> Proof:
        """See `Correction.at_known`."""
        cuts = self._checked(odds, game)
        if isinstance(self.claim, ApproxDP):
            return self._with_failures(odds, game, level, self.claim.delta)
        if not isinstance(cuts, SecondLook):
            return self._scanned(odds, game, level, cuts)
        parts = second_look(cuts, self.claim, examples=game.examples, sides=game.sides, level=level)
        scan, look = parts.parts
        order = self._paths(odds, game, KLScan())[0]
        toward = self._offsets(odds, order)
        places = _worth_a_look(game, order, toward, look, level)
        guesses = order.taken(places)
        correct = int(game.right(guesses).sum())
        epsilon = 0.0
        if places.size:
            epsilon = epsilon_of(correct, toward[places], look.of(level))
        best = Best(epsilon, places.size, correct)
        looked = self._looked(game, guesses, best, self.shift(game), look, level)
        scanned = self._scanned(odds, game, scan.of(level), KLScan())
        return _joined(parts, game, [scanned, looked], level, KLScan.method)

    def _looked(
        self,
        game: ObservedGame,
        guesses: Guesses,
        best: Best,
        shift: Shift,
        part: Part,
        level: float,
    ) -> Proof:
        """Return what guesses at ranks prove that a pilot sample chose."""
        tested = Tested(
            guesses=guesses,
            theorem=_THEOREM,
            thresholds=part.policy.searched(game.examples, game.sides),
            guessed=PILOT_GUESSES,
        )
        return self.proof(game, best, shift, tested, level=part.of(level))

    def _scanned(self, odds: OddsBox, game: ObservedGame, level: float, cuts: Cuts) -> Proof:
        """Test a fixed number of guesses, or all numbers from either end and from both in turn."""
        paths = self._paths(odds, game, cuts)
        share = shares.OFFSET_PATHS.of(level, len(paths))
        best = Best(-math.inf, 0, 0)
        chosen = paths[0]
        for path in paths:
            found = _largest(
                game.right(path), self._offsets(odds, path), cuts, share, floor=best.logit
            )
            if path is paths[0] or found.logit > best.logit:
                best = found
                chosen = path

        def bounds(draws: FloatArray) -> FloatArray:
            largest = np.zeros(len(draws))
            for path in paths:
                proved = self._replicated(game, path, cuts, share, draws, largest)
                largest = np.maximum(largest, proved)
            return largest

        def perfect() -> float:
            """Return the bound of an attack that is right about the most telling examples first."""
            rows = game.guessable
            easiest = np.sort(self._offsets(odds, Guesses("member", rows, game.signs[rows])))
            if isinstance(cuts, Fixed):
                easiest = easiest[: cuts.guesses]
            if not easiest.size:
                return 0.0
            return _largest(np.ones(easiest.size, dtype=np.bool_), easiest, cuts, share).logit

        method = _FIXED if isinstance(cuts, Fixed) else KLScan.method
        tested = Tested(
            guesses=chosen,
            theorem=_THEOREM + method,
            thresholds=cuts.searched(game.examples, game.sides),
            scanned=isinstance(cuts, KLScan),
            options={
                "cuts": cuts.described(share),
                "paths": [PATH_NAMES[path.order] for path in paths],
            },
        )
        shift = replace(self.shift(game), bounds=bounds)
        if isinstance(cuts, KLScan):
            shift = replace(shift, lowest=partial(self._lowest, game, paths, cuts, share))
        return self.proof(game, best, shift, tested, level=level, perfect=perfect)

    def over_set(self, odds: OddsSet, game: ObservedGame, level: float) -> Proof:
        """See `Correction.over_set`: the exact tail at two cuts, and of a second look."""
        cuts = self._checked(odds, game)
        if isinstance(cuts, Fixed):
            return self._at_numbers(odds, game, level, (cuts.guesses,))
        numbers = tuple(max(1, round(share * _most(game))) for share in _CUTS)
        assert isinstance(cuts, SecondLook)  # a scan has no form over a set
        parts = second_look(cuts, self.claim, examples=game.examples, sides=game.sides, level=level)
        scan, look = parts.parts
        planned = Part("planned", scan.policy, scan.share)
        parts = replace(parts, parts=(planned, look))
        proofs = [
            self._at_numbers(odds, game, planned.of(level), numbers),
            self._looked_over_set(odds, game, look, level),
        ]
        return _joined(parts, game, proofs, level, _AT_A_MEMBER)

    def _looked_over_set(
        self, odds: OddsSet, game: ObservedGame, part: Part, level: float
    ) -> Proof:
        """Return the least that guesses at ranks prove that a pilot sample chose, at any member."""
        order = _most_telling(odds, game, _most(game))
        toward = guide_of(odds, order) * order.signs
        guesses = order.taken(_worth_a_look(game, order, toward, part, level))
        best = Best(0.0, 0, 0)
        shift = self.shift(game)
        if guesses.rows.size:
            best, shift = self._least(odds, game, guesses, part.of(level))
        return self._looked(game, guesses, best, shift, part, level)

    def _at_numbers(
        self, odds: OddsSet, game: ObservedGame, level: float, numbers: tuple[int, ...]
    ) -> Proof:
        """Return the most of what some numbers of guesses prove, each at an equal share."""
        share = shares.SET_NUMBERS.of(level, len(numbers))
        tried = [_most_telling(odds, game, number) for number in numbers]
        found = [(guesses, *self._least(odds, game, guesses, share)) for guesses in tried]
        guesses, best, shift = max(found, key=lambda one: one[1].logit)
        tested = Tested(
            guesses=guesses,
            theorem=_THEOREM + _AT_A_MEMBER,
            thresholds=_BOTH if len(numbers) > 1 else "",
            options={"numbers_of_guesses": [*numbers]},
        )
        return self.proof(game, best, shift, tested, level=level)

    def _least(
        self, odds: OddsSet, game: ObservedGame, guesses: Guesses, level: float
    ) -> tuple[Best, Shift]:
        """Return the least that guesses prove at any member of a set, and which member that is."""
        epsilon, coefficients, _ = odds.found.core.least_epsilon(
            guesses.rows, guesses.signs, level=level
        )
        correct = int(game.right(guesses).sum())
        toward = odds.likeliest[guesses.rows] * guesses.signs
        at_estimate = epsilon_of(correct, np.clip(toward, -_CERTAIN, _CERTAIN), level)
        shift = replace(
            self.shift(game),
            coefficients=coefficients,
            at_estimate=max(0.0, at_estimate),
        )
        return Best(max(0.0, epsilon - _LEFT), guesses.rows.size, correct), shift

    def _checked(self, odds: Odds, game: ObservedGame) -> Cuts | SecondLook:
        """Return the cuts, if claim and cuts have a form for guesses of unlike odds."""
        if not isinstance(self.claim, PureDP) and self.variant != "untampered":
            raise OptionError(_for_pure(self.claim, odds))
        replicated = isinstance(odds, OddsBox) and odds.draws is not None
        if self.cuts is not None:
            return _given(self.cuts, game.examples, replicated=replicated)
        # of replicates, which prove nothing, all have the scan alone
        if replicated or self.claim.delta:
            return KLScan()
        return DEFAULT

    def _offsets(self, odds: OddsBox, guesses: Guesses) -> FloatArray:
        """Return what shift adds to the log-odds of each guess: Tλ, or |λ| in other variants."""
        if self.variant != "directional":
            return odds.largest[guesses.rows]
        return odds.toward(guesses)

    def _paths(self, odds: OddsBox, game: ObservedGame, cuts: Cuts) -> list[Guesses]:
        """Return the top, the bottom and both in turn, where the number of guesses is not fixed."""
        number = cuts.guesses if isinstance(cuts, Fixed) else game.examples
        whole = game.guessed(self.ranked_by(odds, game), number)
        if isinstance(cuts, Fixed) or game.one_sided:
            return [whole]
        top = Guesses("member_half", whole.rows[::2], whole.signs[::2])
        if number == 1:
            return [top]
        bottom = Guesses("nonmember_half", whole.rows[1::2], whole.signs[1::2])
        return [whole, top, bottom]

    def _replicated(
        self,
        game: ObservedGame,
        path: Guesses,
        cuts: Cuts,
        level: float,
        draws: FloatArray,
        floors: FloatArray,
    ) -> FloatArray:
        """Return the largest ε refuted under each replicate, or less if that is below a floor."""
        offsets = self._offset_rows(path, draws)
        right = game.right(path)
        if isinstance(cuts, Fixed):
            correct = np.full(len(offsets), right.sum())
            found: FloatArray = poisson_binomial_epsilon(correct, offsets, beta=level)
            return found
        least = cuts.min_guesses or 1
        if right.size < least:
            return np.zeros(len(offsets))
        return _core.kl_scan_offset_rows(
            _core.Path.from_successes(right),
            offsets.ravel(),
            beta=level,
            kappa=cuts.kappa,
            min_guesses=least,
            floors=floors,
        )

    def _offset_rows(self, path: Guesses, draws: FloatArray) -> FloatArray:
        """Return what shift adds to the log-odds of each guess, under each replicate."""
        here = np.take(draws, path.rows, axis=1)
        if self.variant == "directional":
            here *= path.signs
            return here
        return np.abs(here)

    def _lowest(
        self,
        game: ObservedGame,
        paths: list[Guesses],
        cuts: KLScan,
        level: float,
        draws: FloatArray,
        rank: int,
    ) -> float:
        """Return the bound of a rank, from 1 upwards, over replicates."""
        whole = paths[0]
        return _core.kl_scan_offset_rows_lowest(
            game.right(whole),
            self._offset_rows(whole, draws).ravel(),
            halves=len(paths) > 1,
            beta=level,
            kappa=cuts.kappa,
            min_guesses=cuts.min_guesses or 1,
            rank=rank,
        )

    def _with_failures(
        self, odds: OddsBox, game: ObservedGame, level: float, delta: float
    ) -> Proof:
        """Audit a fixed number of guesses, of which a few may be right by failures of (ε, δ)."""
        number = self.planned(game, game.examples, level)
        guesses = game.guessed(self.ranked_by(odds, game), number)
        correct = int(game.right(guesses).sum())
        count_level = shares.COUNT.of(level)

        def bound(sizes: FloatArray, right: int) -> float:
            """Return inf{ε : not refuted}, for guesses with these |λ|.

            The number u of guesses set aside for failures falls as ε rises. So all that is refuted
            with the u of one ε, from there up, is refuted with u of its own.
            """

            def refuted(epsilon: float) -> float:
                failures = game.examples * (1 + math.exp(-epsilon)) * delta
                # 2√(failures / u) is at most their part of the level
                aside = math.ceil(4 / shares.FAILURES.part**2 * failures / level**2)
                if aside >= right:
                    return epsilon
                return epsilon_of(right - aside, sizes, count_level)

            return least_fixed(refuted)

        def perfect() -> float:
            easiest = np.sort(odds.largest[game.guessable])[:number]
            return bound(easiest, easiest.size)

        def bounds(draws: FloatArray) -> FloatArray:
            sizes = np.abs(draws[:, guesses.rows])
            return np.array([bound(row, correct) for row in sizes])

        best = Best(bound(odds.largest[guesses.rows], correct), number, correct)
        tested = Tested(guesses=guesses, theorem=_APPROX + _FIXED)
        shift = replace(self.shift(game), bounds=bounds)
        return self.proof(game, best, shift, tested, level=level, perfect=perfect)


def _given(cuts: CutPolicy, examples: int, *, replicated: bool) -> Cuts | SecondLook:
    """Return cuts that were asked for, or refuse those that have no form for unlike odds."""
    if replicated and isinstance(cuts, SecondLook):
        message = (
            "{cuts} is not for replicates of propensities, which all have one test: use "
            "{KLScan()} or {Fixed(…)}"
        )
        raise OptionError(Message(message, cuts=Option("cuts", cuts)))
    if isinstance(cuts, SecondLook):
        return cuts
    if not isinstance(cuts, Fixed | KLScan):
        message = "{cuts} is not for guesses with different odds: use {KLScan()} or {Fixed(…)}"
        raise OptionError(Message(message, cuts=Option("cuts", cuts)))
    cuts.check(examples)
    return cuts


def _for_pure(claim: Claim, odds: Odds) -> Message:
    """Say that this correction is for pure DP."""
    message = (
        '{correction="poisson_binomial"} is for pure DP, got {claim}: take "match", '
        '"tamper" or "composition"'
    )
    # A confidence set has no form of the variant.
    if isinstance(odds, OddsBox):
        message += ', or {variant="untampered"} for approximate DP'
    return Message(message, claim=claim.name)


def _largest(
    right: BoolArray,
    offsets: FloatArray,
    cuts: Cuts,
    level: float,
    *,
    floor: float = -math.inf,
) -> Best:
    """Return the largest ε refuted, or less where that is below a floor, and guesses there."""
    if isinstance(cuts, Fixed):
        correct = int(right.sum())
        epsilon = epsilon_of(correct, offsets, level)
        return Best(epsilon, cuts.guesses, correct)
    least = cuts.min_guesses or 1
    if right.size < least:
        return Best(0.0, 0, 0)  # one of both sides alone has too few
    bound = _core.kl_scan_offsets(
        _core.Path.from_successes(right),
        offsets,
        beta=level,
        kappa=cuts.kappa,
        min_guesses=least,
        floor=floor,
    )
    return Best(bound.epsilon, bound.cut, bound.successes)


def epsilon_of(correct: int, offsets: FloatArray, level: float) -> float:
    """Return the largest ε at which so many guesses of unlike odds are right that seldom."""
    right = np.array([correct], dtype=np.int64)
    terms = np.ascontiguousarray(offsets)
    return float(_core.poisson_binomial_epsilon(terms, right, beta=level, counts=None)[0])


def _most(game: ObservedGame) -> int:
    """Return the most guesses over a set: members only are half of the examples."""
    if game.one_sided:
        return game.examples // 2
    return game.examples


def _most_telling(odds: OddsSet, game: ObservedGame, number: int) -> Guesses:
    """Return balanced guesses about the examples that scores tell most of, at a fixed number."""
    if game.one_sided:
        return _most_telling_members(odds, game, number)
    as_member = _variance(odds.guide)
    as_other = _variance(-odds.guide)
    odd = (as_member - as_other) / 2
    values = odds.balanced(game, (as_member + as_other) / 2, number, odd=odd)
    rows = np.lexsort((odds.ties(game), -np.abs(values)))[:number]
    return Guesses("interleaved", rows, np.where(values[rows] < 0, -1, 1))


def _most_telling_members(odds: OddsSet, game: ObservedGame, number: int) -> Guesses:
    """Return the same guesses, all of them "member"."""
    strength = odds.balanced(game, _variance(odds.guide), number)
    rows = np.lexsort((odds.ties(game), -strength))[:number]
    return Guesses("member", rows, np.ones(rows.size, dtype=np.int64))


def _variance(toward: FloatArray) -> FloatArray:
    """Return P(1 - P), P the chance that a guess with Tλ is right at the planned ε."""
    right = expit(_PLANNED_EPSILON + toward)
    variance: FloatArray = right * (1 - right)
    return variance


def _worth_a_look(
    game: ObservedGame, order: Guesses, toward: FloatArray, part: Part, level: float
) -> IntArray:
    """Return the places of the best blocks that are expected to prove most of pure DP, if any.

    `toward` is Tλ of all guesses, and says how many fair coins the guesses are worth.
    """
    pilot = pilot_of(toward, game.right(order))
    places = places_of(pilot)
    ends = np.array(pilot.numbers, dtype=np.int64)
    accuracy = np.array(pilot.accuracy(ends.tolist(), CAUTION))
    kept = np.append(0.0, np.cumsum(kept_chance(toward)[places]))[ends]
    numbers = np.floor(kept).astype(np.int64)
    able = (numbers > 0) & (accuracy > 0.5)
    look = part.policy
    assert isinstance(look, Look)
    best = most_promising(look.ladder, None, numbers, accuracy, able, level=part.of(level))
    if best is None:
        return places[:0]
    return places[: ends[best]]


def _joined(
    parts: Parts, game: ObservedGame, proofs: list[Proof], level: float, method: str
) -> Proof:
    """Return the larger bound of a first test, which is valid by a method, and of a look."""
    first, look = parts.parts
    shared = _LARGER.format(first=percent(first.share), look=percent(look.share))
    theorem = f"{_THEOREM}{shared}{method} {look.policy.method} {_LOOKED_AT}"
    return joined_over_set(parts, game, proofs, level, theorem)
