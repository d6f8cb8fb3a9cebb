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
from leakbound._base.numerics import expit
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound._base.types import Correction as CorrectionName
from leakbound.audits.policies.second_look import DEFAULT, second_look
from leakbound.audits.zero_run.correction import (
    Correction,
    TestedGuesses,
    larger_proof_over_set,
    smallest_epsilon_left,
)
from leakbound.audits.zero_run.game import Guesses, ObservedGame
from leakbound.audits.zero_run.levels import planning_log_odds, testable_ranks, weighted_pilot
from leakbound.audits.zero_run.log_odds import Odds, OddsBox, OddsSet, keep_probability
from leakbound.claims import ApproxDP, Claim, PureDP
from leakbound.cuts import CutPolicy, Fixed, KLScan, Proof, SecondLook
from leakbound.cuts.look import CAUTION, PILOT_GUESSES, Look, Part, Parts, most_promising
from leakbound.cuts.policy import PATH_NAMES, Best, Shift
from leakbound.errors import OptionError
from leakbound.stats import poisson_binomial_epsilon

Cuts: TypeAlias = Fixed | KLScan
# Shares of the largest number of guesses at which pure DP is tested over a set.
_GUESS_SHARES = (1.0, 0.2)
# ε that guesses over a set are balanced for.
_PLANNED_EPSILON = 0.5
# What the least ε found over a set is lowered by: ascents may have left this much.
_SEARCH_ALLOWANCE = 5e-4
# Log-odds beyond which a guess counts as certain.
_LARGEST_LOG_ODDS = 250.0

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

    def proof_at_known(self, odds: OddsBox, game: ObservedGame, level: float) -> Proof:
        """See `Correction.proof_at_known`."""
        cuts = self._offset_cuts(odds, game)
        if isinstance(self.claim, ApproxDP):
            return self._untampered_proof(odds, game, level, self.claim.delta)
        if not isinstance(cuts, SecondLook):
            return self._scan_of_offsets(odds, game, level, cuts)
        parts = second_look(cuts, self.claim, examples=game.examples, sides=game.sides, level=level)
        scan, look = parts.parts
        ranked = self._offset_paths(odds, game, KLScan())[0]
        toward_guesses = self._shift_offsets(odds, ranked)
        places = _promising_pilot_places(game, ranked, toward_guesses, look, level)
        guesses = ranked.taken(places)
        correct = int(game.right(guesses).sum())
        epsilon = 0.0
        if places.size:
            epsilon = epsilon_of_offsets(correct, toward_guesses[places], look.of(level))
        best = Best(logit=epsilon, cut=places.size, successes=correct)
        looked = self._proof_of_pilot(game, guesses, best, self.shift_of(game), look, level)
        scanned = self._scan_of_offsets(odds, game, scan.of(level), KLScan())
        return _larger_offset_proof(parts, game, [scanned, looked], level, KLScan.method)

    def _proof_of_pilot(
        self,
        game: ObservedGame,
        guesses: Guesses,
        best: Best,
        shift: Shift,
        part: Part,
        level: float,
    ) -> Proof:
        """Return what guesses at ranks prove that a pilot sample chose."""
        tested = TestedGuesses(
            guesses=guesses,
            theorem=_THEOREM,
            thresholds=part.policy.searched(game.examples, game.sides),
            guessed=PILOT_GUESSES,
        )
        return self.proof_of_guesses(game, best, shift, tested, level=part.of(level))

    def _scan_of_offsets(
        self, odds: OddsBox, game: ObservedGame, level: float, cuts: Cuts
    ) -> Proof:
        """Test a fixed number of guesses, or all numbers from either end and from both in turn."""
        paths = self._offset_paths(odds, game, cuts)
        path_level = shares.OFFSET_PATHS.of(level, len(paths))
        best = Best(logit=-math.inf, cut=0, successes=0)
        best_path = paths[0]
        for path in paths:
            correct = game.right(path)
            path_best = _largest_epsilon_refuted(
                correct, self._shift_offsets(odds, path), cuts, path_level, floor=best.logit
            )
            if path is paths[0] or path_best.logit > best.logit:
                best = path_best
                best_path = path

        def bounds(draws: FloatArray) -> FloatArray:
            largest = np.zeros(len(draws))
            for path in paths:
                path_bounds = self._epsilons_of_replicates(
                    game, path, cuts, path_level, draws, largest
                )
                largest = np.maximum(largest, path_bounds)
            return largest

        method = KLScan.method
        if isinstance(cuts, Fixed):
            method = _FIXED
        tested = TestedGuesses(
            guesses=best_path,
            theorem=_THEOREM + method,
            thresholds=cuts.searched(game.examples, game.sides),
            scanned=isinstance(cuts, KLScan),
            options={
                "cuts": cuts.described(path_level),
                "paths": [PATH_NAMES[path.order] for path in paths],
            },
        )
        shift = replace(self.shift_of(game), bounds=bounds)
        if isinstance(cuts, KLScan):
            lowest = partial(self._epsilon_of_rank, game, paths, cuts, path_level)
            shift = replace(shift, lowest=lowest)
        perfect = partial(self._perfect_bound, odds, game, cuts, path_level)
        return self.proof_of_guesses(game, best, shift, tested, level=level, perfect=perfect)

    def _perfect_bound(self, odds: OddsBox, game: ObservedGame, cuts: Cuts, level: float) -> float:
        """Return the bound of an attack that is right about the most telling examples first."""
        rows = game.guessable
        correct_guesses = Guesses(order="member", rows=rows, signs=game.signs[rows])
        smallest_offsets = np.sort(self._shift_offsets(odds, correct_guesses))
        if isinstance(cuts, Fixed):
            smallest_offsets = smallest_offsets[: cuts.guesses]
        if not smallest_offsets.size:
            return 0.0
        all_correct = np.ones(smallest_offsets.size, dtype=np.bool_)
        return _largest_epsilon_refuted(all_correct, smallest_offsets, cuts, level).logit

    def proof_over_set(self, odds: OddsSet, game: ObservedGame, level: float) -> Proof:
        """See `Correction.proof_over_set`: the exact tail at two cuts, and of a second look."""
        cuts = self._offset_cuts(odds, game)
        if isinstance(cuts, Fixed):
            return self._balanced_proof_over_set(odds, game, level, (cuts.guesses,))
        most_guesses = _most_guesses_over_set(game)
        numbers = tuple(max(1, round(share * most_guesses)) for share in _GUESS_SHARES)
        assert isinstance(cuts, SecondLook)  # a scan has no form over a set
        parts = second_look(cuts, self.claim, examples=game.examples, sides=game.sides, level=level)
        scan, look = parts.parts
        planned = Part("planned", scan.policy, scan.share)
        parts = replace(parts, parts=(planned, look))
        proofs = [
            self._balanced_proof_over_set(odds, game, planned.of(level), numbers),
            self._pilot_proof_over_set(odds, game, look, level),
        ]
        return _larger_offset_proof(parts, game, proofs, level, _AT_A_MEMBER)

    def _pilot_proof_over_set(
        self, odds: OddsSet, game: ObservedGame, part: Part, level: float
    ) -> Proof:
        """Return the least that guesses at ranks prove that a pilot sample chose, at any member."""
        ranked = _most_telling_guesses(odds, game, _most_guesses_over_set(game))
        toward_guesses = planning_log_odds(odds, ranked) * ranked.signs
        places = _promising_pilot_places(game, ranked, toward_guesses, part, level)
        guesses = ranked.taken(places)
        best = Best(logit=0.0, cut=0, successes=0)
        shift = self.shift_of(game)
        if guesses.rows.size:
            best, shift = self._least_epsilon_over_set(odds, game, guesses, part.of(level))
        return self._proof_of_pilot(game, guesses, best, shift, part, level)

    def _balanced_proof_over_set(
        self, odds: OddsSet, game: ObservedGame, level: float, numbers: tuple[int, ...]
    ) -> Proof:
        """Return the most of what some numbers of guesses prove, each at an equal share."""
        number_level = shares.SET_NUMBERS.of(level, len(numbers))
        found = list[tuple[Guesses, Best, Shift]]()
        for number in numbers:
            balanced = _most_telling_guesses(odds, game, number)
            least, at_member = self._least_epsilon_over_set(odds, game, balanced, number_level)
            found.append((balanced, least, at_member))
        guesses, best, shift = max(found, key=lambda proved: proved[1].logit)
        tested = TestedGuesses(
            guesses=guesses,
            theorem=_THEOREM + _AT_A_MEMBER,
            thresholds=_BOTH if len(numbers) > 1 else "",
            options={"numbers_of_guesses": [*numbers]},
        )
        return self.proof_of_guesses(game, best, shift, tested, level=level)

    def _least_epsilon_over_set(
        self, odds: OddsSet, game: ObservedGame, guesses: Guesses, level: float
    ) -> tuple[Best, Shift]:
        """Return the least that guesses prove at any member of a set, and which member that is."""
        core = odds.found.core
        epsilon, coefficients, _ = core.least_epsilon(guesses.rows, guesses.signs, level=level)
        correct = int(game.right(guesses).sum())
        toward_guesses = odds.likeliest_log_odds[guesses.rows] * guesses.signs
        clipped = np.clip(toward_guesses, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
        at_estimate = epsilon_of_offsets(correct, clipped, level)
        shift = replace(
            self.shift_of(game),
            coefficients=coefficients,
            at_estimate=max(0.0, at_estimate),
        )
        bound = max(0.0, epsilon - _SEARCH_ALLOWANCE)
        return Best(logit=bound, cut=guesses.rows.size, successes=correct), shift

    def _offset_cuts(self, odds: Odds, game: ObservedGame) -> Cuts | SecondLook:
        """Return the cuts, if claim and cuts have a form for guesses of unlike odds."""
        if not isinstance(self.claim, PureDP) and self.variant != "untampered":
            raise OptionError(_offsets_are_for_pure_dp(self.claim, odds))
        replicated = isinstance(odds, OddsBox) and odds.draws is not None
        if self.cuts is not None:
            return _cuts_for_unlike_odds(self.cuts, game.examples, replicated=replicated)
        # of replicates, which prove nothing, all have the scan alone
        if replicated or self.claim.delta:
            return KLScan()
        return DEFAULT

    def _shift_offsets(self, odds: OddsBox, guesses: Guesses) -> FloatArray:
        """Return what shift adds to the log-odds of each guess: Tλ, or |λ| in other variants."""
        if self.variant != "directional":
            return odds.largest_log_odds[guesses.rows]
        return odds.toward_guesses(guesses)

    def _offset_paths(self, odds: OddsBox, game: ObservedGame, cuts: Cuts) -> list[Guesses]:
        """Return the top, the bottom and both in turn, where the number of guesses is not fixed."""
        number = game.examples
        if isinstance(cuts, Fixed):
            number = cuts.guesses
        ranked = game.guesses_by_rank(self.adversary_ranks(odds, game), number)
        if isinstance(cuts, Fixed) or game.one_sided:
            return [ranked]
        rows = ranked.rows
        signs = ranked.signs
        top = Guesses(order="member_half", rows=rows[::2], signs=signs[::2])
        if number == 1:
            return [top]
        bottom = Guesses(order="nonmember_half", rows=rows[1::2], signs=signs[1::2])
        return [ranked, top, bottom]

    def _epsilons_of_replicates(
        self,
        game: ObservedGame,
        path: Guesses,
        cuts: Cuts,
        level: float,
        draws: FloatArray,
        floors: FloatArray,
    ) -> FloatArray:
        """Return the largest ε refuted under each replicate, or less if that is below a floor."""
        offsets = self._offsets_of_replicates(path, draws)
        is_correct = game.right(path)
        if isinstance(cuts, Fixed):
            correct_counts = np.full(len(offsets), is_correct.sum())
            epsilons: FloatArray = poisson_binomial_epsilon(correct_counts, offsets, beta=level)
            return epsilons
        fewest_guesses = cuts.min_guesses or 1
        if is_correct.size < fewest_guesses:
            return np.zeros(len(offsets))
        return _core.kl_scan_offset_rows(
            _core.Path.from_successes(is_correct),
            offsets.ravel(),
            beta=level,
            kappa=cuts.kappa,
            min_guesses=fewest_guesses,
            floors=floors,
        )

    def _offsets_of_replicates(self, path: Guesses, draws: FloatArray) -> FloatArray:
        """Return what shift adds to the log-odds of each guess, under each replicate."""
        log_odds = np.take(draws, path.rows, axis=1)
        if self.variant == "directional":
            log_odds *= path.signs
            return log_odds
        return np.abs(log_odds)

    def _epsilon_of_rank(
        self,
        game: ObservedGame,
        paths: list[Guesses],
        cuts: KLScan,
        level: float,
        draws: FloatArray,
        rank: int,
    ) -> float:
        """Return the bound of a rank, from 1 upwards, over replicates."""
        ranked = paths[0]
        offsets = self._offsets_of_replicates(ranked, draws)
        return _core.kl_scan_offset_rows_lowest(
            game.right(ranked),
            offsets.ravel(),
            halves=len(paths) > 1,
            beta=level,
            kappa=cuts.kappa,
            min_guesses=cuts.min_guesses or 1,
            rank=rank,
        )

    def _untampered_proof(
        self, odds: OddsBox, game: ObservedGame, level: float, delta: float
    ) -> Proof:
        """Audit a fixed number of guesses, of which a few may be right by failures of (ε, δ)."""
        number = self.planned_number(game, game.examples, level)
        guesses = game.guesses_by_rank(self.adversary_ranks(odds, game), number)
        correct = int(game.right(guesses).sum())
        count_level = shares.COUNT.of(level)

        def bound(sizes: FloatArray, correct_guesses: int) -> float:
            """Return inf{ε : not refuted}, for guesses with these |λ|.

            The number u of guesses set aside for failures falls as ε rises. So all that is refuted
            with the u of one ε, from there up, is refuted with u of its own.
            """

            def refuted(epsilon: float) -> float:
                failures = game.examples * (1 + math.exp(-epsilon)) * delta
                # 2√(failures / u) is at most their part of the level
                squared_part = shares.FAILURES.part**2
                set_aside = math.ceil(4 / squared_part * failures / level**2)
                if set_aside >= correct_guesses:
                    return epsilon
                return epsilon_of_offsets(correct_guesses - set_aside, sizes, count_level)

            return smallest_epsilon_left(refuted)

        def perfect() -> float:
            smallest_sizes = np.sort(odds.largest_log_odds[game.guessable])[:number]
            return bound(smallest_sizes, smallest_sizes.size)

        def bounds(draws: FloatArray) -> FloatArray:
            sizes_of_draws = np.abs(draws[:, guesses.rows])
            return np.array([bound(sizes, correct) for sizes in sizes_of_draws])

        epsilon = bound(odds.largest_log_odds[guesses.rows], correct)
        best = Best(logit=epsilon, cut=number, successes=correct)
        tested = TestedGuesses(guesses=guesses, theorem=_APPROX + _FIXED)
        shift = replace(self.shift_of(game), bounds=bounds)
        return self.proof_of_guesses(game, best, shift, tested, level=level, perfect=perfect)


def _cuts_for_unlike_odds(cuts: CutPolicy, examples: int, *, replicated: bool) -> Cuts | SecondLook:
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


def _offsets_are_for_pure_dp(claim: Claim, odds: Odds) -> Message:
    """Say that this correction is for pure DP."""
    message = (
        '{correction="poisson_binomial"} is for pure DP, got {claim}: take "match", '
        '"tamper" or "composition"'
    )
    # A confidence set has no form of the variant.
    if isinstance(odds, OddsBox):
        message += ', or {variant="untampered"} for approximate DP'
    return Message(message, claim=claim.name)


def _largest_epsilon_refuted(
    is_correct: BoolArray,
    offsets: FloatArray,
    cuts: Cuts,
    level: float,
    *,
    floor: float = -math.inf,
) -> Best:
    """Return the largest ε refuted, or less where that is below a floor, and guesses there."""
    if isinstance(cuts, Fixed):
        correct = int(is_correct.sum())
        epsilon = epsilon_of_offsets(correct, offsets, level)
        return Best(logit=epsilon, cut=cuts.guesses, successes=correct)
    fewest_guesses = cuts.min_guesses or 1
    if is_correct.size < fewest_guesses:
        # one of both sides alone has too few
        return Best(logit=0.0, cut=0, successes=0)
    bound = _core.kl_scan_offsets(
        _core.Path.from_successes(is_correct),
        offsets,
        beta=level,
        kappa=cuts.kappa,
        min_guesses=fewest_guesses,
        floor=floor,
    )
    return Best(logit=bound.epsilon, cut=bound.cut, successes=bound.successes)


def epsilon_of_offsets(correct: int, offsets: FloatArray, level: float) -> float:
    """Return the largest ε at which so many guesses of unlike odds are right that seldom."""
    correct_counts = np.array([correct], dtype=np.int64)
    epsilons = _core.poisson_binomial_epsilon(
        np.ascontiguousarray(offsets), correct_counts, beta=level, counts=None
    )
    return float(epsilons[0])


def _most_guesses_over_set(game: ObservedGame) -> int:
    """Return the most guesses over a set: members only are half of the examples."""
    if game.one_sided:
        return game.examples // 2
    return game.examples


def _most_telling_guesses(odds: OddsSet, game: ObservedGame, number: int) -> Guesses:
    """Return balanced guesses about the examples that scores tell most of, at a fixed number."""
    if game.one_sided:
        return _most_telling_members(odds, game, number)
    member_variance = _correctness_variance(odds.guide)
    nonmember_variance = _correctness_variance(-odds.guide)
    mean_variance = (member_variance + nonmember_variance) / 2
    half_difference = (member_variance - nonmember_variance) / 2
    balanced_scores = odds.balanced_scores(game, mean_variance, number, odd=half_difference)
    rows = np.lexsort((odds.tie_order(game), -np.abs(balanced_scores)))[:number]
    signs = np.where(balanced_scores[rows] < 0, -1, 1)
    return Guesses(order="interleaved", rows=rows, signs=signs)


def _most_telling_members(odds: OddsSet, game: ObservedGame, number: int) -> Guesses:
    """Return the same guesses, all of them "member"."""
    member_variance = _correctness_variance(odds.guide)
    balanced_scores = odds.balanced_scores(game, member_variance, number)
    rows = np.lexsort((odds.tie_order(game), -balanced_scores))[:number]
    signs = np.ones(rows.size, dtype=np.int64)
    return Guesses(order="member", rows=rows, signs=signs)


def _correctness_variance(toward_guesses: FloatArray) -> FloatArray:
    """Return P(1 - P), P the chance that a guess with Tλ is right at the planned ε."""
    correct_probabilities = expit(_PLANNED_EPSILON + toward_guesses)
    variances: FloatArray = correct_probabilities * (1 - correct_probabilities)
    return variances


def _promising_pilot_places(
    game: ObservedGame,
    ranked: Guesses,
    toward_guesses: FloatArray,
    part: Part,
    level: float,
) -> IntArray:
    """Return the places of the best blocks that are expected to prove most of pure DP, if any.

    `toward_guesses` is Tλ of all guesses, and says how many fair coins the guesses are worth.
    """
    pilot = weighted_pilot(toward_guesses, game.right(ranked))
    places = testable_ranks(pilot)
    block_ends = np.array(pilot.numbers, dtype=np.int64)
    accuracies = np.array(pilot.accuracy(block_ends.tolist(), CAUTION))
    keep_probabilities = keep_probability(toward_guesses)[places]
    expected_kept = np.append(0.0, np.cumsum(keep_probabilities))[block_ends]
    fair_guesses = np.floor(expected_kept).astype(np.int64)
    may_be_chosen = (fair_guesses > 0) & (accuracies > 0.5)
    look = part.policy
    assert isinstance(look, Look)
    best_block = most_promising(
        look.ladder, None, fair_guesses, accuracies, may_be_chosen, level=part.of(level)
    )
    if best_block is None:
        return places[:0]
    return places[: block_ends[best_block]]


def _larger_offset_proof(
    parts: Parts, game: ObservedGame, proofs: list[Proof], level: float, method: str
) -> Proof:
    """Return the larger bound of a first test, which is valid by a method, and of a look."""
    first, look = parts.parts
    level_shares = _LARGER.format(first=percent(first.share), look=percent(look.share))
    theorem = f"{_THEOREM}{level_shares}{method} {look.policy.method} {_LOOKED_AT}"
    return larger_proof_over_set(parts, game, proofs, level, theorem)
