"""What the rankings of a game of PANORAMIA prove: against generated points, or real non-members.

Against generated points all guesses are "member", and each ranking has half of the probability of
error. Where non-members are real, and exchangeable with the members, the examples shown are a
random split: given which are shown, and how many members these are, the members are a random part
of them, and hidden examples stay where they are. Then pairs of shown examples are audited, as those
of any split; and as c is known to be 0, each ranking has the whole probability of error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeAlias, cast

from leakbound._base import shares
from leakbound._base.checks import choice, real
from leakbound._base.messages import Message, Option
from leakbound._base.types import TailBound
from leakbound.audits.policies.approximate_dp import ApproxPolicy, approx_policy
from leakbound.audits.policies.second_look import first_cuts
from leakbound.audits.random_split import words_of_guesses
from leakbound.audits.road import Request, parts, prove
from leakbound.claims import ApproxDP, PureDP
from leakbound.cuts import (
    CutPolicy,
    Fixed,
    Game,
    OutsideIn,
    Policy,
    Proof,
    SecondLook,
    UnionBound,
    Weighted,
)
from leakbound.cuts.games import Ties
from leakbound.cuts.policies import DEFAULT_SCAN
from leakbound.cuts.policy import Procedure
from leakbound.errors import OptionError
from leakbound.results import ScoreAudit

# The game of the baseline, and that of the attack.
Games: TypeAlias = tuple[Game, Game]
Relaxation: TypeAlias = Literal["knapsack", "published"]

_THEOREM = (
    "If the generator is c-close, each member guess of the baseline is right with probability at "
    "most e^c / (1 + e^c), given the scores and earlier coins; if the model is also ε-DP, each of "
    "the attack with probability at most e^(c+ε) / (1 + e^(c+ε)) (Kazmi et al. 2024, Propositions "
    "1 and 2). Each bound has half of the probability of error (Corollary 1). "
)
_RELAXED = (
    "The generator may miss real points of mass gamma and the model be (ε, δ)-DP: this then holds "
    "but for failures, whose mean is at most m / 2 times the probability of a wrong guess times "
    "gamma for the baseline, and gamma + δ - gamma δ for the attack (appendix E, by a coupling "
    "that needs no independence). "
)
_RELAXED_JOINTLY = (
    "The generator may miss real points of mass gamma and the model be (ε, δ)-DP: given all other "
    "coins, what is seen of a member is at most e^c times as likely as of the generated point, "
    "plus gamma, and with the model e^(c+ε) times, plus gamma + δ - gamma δ (appendix E). In the "
    "theorem below, these replace e^ε and δ. "
)
# How failures are allowed for, by the name of the relaxation: what is first is preferred.
_FORMS: dict[Relaxation, tuple[TailBound, ...]] = {
    "knapsack": ("coupling", "exact"),
    "published": ("panoramia",),
}
_DEFAULTS: dict[Relaxation, Policy] = {
    "knapsack": DEFAULT_SCAN,
    "published": UnionBound(),
}
# What candidate thresholds and the order of guesses depend on, by what is done about ties.
_ORDERS: dict[Ties, str] = {
    "together": "Candidate thresholds and the order of guesses depend on scores only; ties stay "
    "together.",
    "broken": "Candidate thresholds and the order of guesses depend on scores only; ties are "
    "broken by the seed.",
}
_ORDER_OF_PAIRS = (
    "Examples were matched at random, given membership and scores. Candidate thresholds and the "
    "order of guesses depend on the sizes of differences only."
)
_REAL = (
    "Members and non-members are exchangeable except for training, so c = 0. Given which of them "
    "are shown, and the number of members, the members are a random part of them. "
)


@dataclass(frozen=True)
class Relaxed:
    """How much of the guarantees may fail, and how that is allowed for."""

    gamma: float
    claim: PureDP | ApproxDP
    how: Relaxation

    @classmethod
    def read(cls, gamma: float, claim: PureDP | ApproxDP, relaxation: Relaxation) -> "Relaxed":
        """Check the options."""
        choice(relaxation, name="relaxation", allowed=Relaxation)
        relaxed = cls(
            gamma=real(gamma, name="gamma", least=0, below=1), claim=claim, how=relaxation
        )
        if relaxation == "published" and not relaxed.together:
            raise OptionError('relaxation="published" is for gamma or delta above 0: leave it out')
        return relaxed

    @property
    def together(self) -> float:
        """γ + δ - γδ."""
        return self.gamma + self.claim.delta - self.gamma * self.claim.delta

    def theorem(self, policy: Procedure) -> str:
        """Return what holds but for failures, as the policy uses it."""
        jointly = isinstance(policy, ApproxPolicy) and isinstance(policy.base, OutsideIn)
        if jointly:
            return _RELAXED_JOINTLY
        return _RELAXED

    def proof(self, cuts: CutPolicy | None, game: Game, level: float, failures: float) -> Proof:
        """Return what guesses of members prove, where a part of the guarantee may fail."""
        if failures:
            return self._proof_with_failures(cuts, game, level, failures)
        policy = cast("Policy", cuts or _DEFAULTS[self.how])  # SecondLook was refused
        return policy.audit(game, level)

    def _proof_with_failures(
        self, cuts: CutPolicy | None, game: Game, level: float, failures: float
    ) -> Proof:
        """Return the same where failures are possible."""
        policy = approx_policy(
            cuts, failures, examples=game.examples, sides="member", forms=_FORMS[self.how]
        )
        return policy.audit(game, level)


@dataclass(frozen=True, kw_only=True)
class Rankings:
    """What both rankings prove, each at `level`, of so many guesses at most."""

    baseline: ScoreAudit
    attack: ScoreAudit
    c_lb: float
    theorem: str
    order: str
    """What candidate thresholds and the order of guesses depend on."""
    level: float
    recall: float
    guesses: int
    pairs: Mapping[str, int] = field(default_factory=dict)
    """How many pairs there are, by the name of the option, where guesses are about pairs."""

    @property
    def epsilon_tilde(self) -> float:
        """What the attack proves beyond the baseline."""
        return max(0.0, self.attack.bound - self.c_lb)

    @classmethod
    def against_generated(
        cls,
        games: Games,
        request: Request,
        relaxed: Relaxed,
        recall: float,
    ) -> Self:
        """Test guesses of members by the baseline and by the attack, each at half of the level."""
        cuts = request.cuts
        refuse_second_look(cuts)
        guesses = games[0].examples
        if recall < 1:
            _check_recall(recall, cuts, guesses)
        level = shares.RANKINGS.of(request.level, len(games))
        baseline_game = replace(games[0], name="baseline scores", recall=recall, symbol="c")
        attack_game = replace(games[1], recall=recall, symbol="c + ε")
        # The baseline saw nothing of the model, whatever δ is.
        baseline = relaxed.proof(cuts, baseline_game, level, failures=relaxed.gamma)
        attack = relaxed.proof(cuts, attack_game, level, failures=relaxed.together)
        theorem = _THEOREM
        if relaxed.together:
            theorem += relaxed.theorem(attack.policy)
        return cls(
            baseline=_score_audit(baseline),
            attack=_score_audit(attack),
            c_lb=baseline.bound,
            theorem=theorem + attack.policy.method,
            order=_ORDERS[attack.policy.ties],
            level=level,
            recall=recall,
            guesses=guesses,
        )

    @classmethod
    def against_real(
        cls,
        games: Games,
        request: Request,
        relaxed: Relaxed,
        recall: float,
    ) -> Self:
        """Test guesses about pairs, each ranking at the whole level, as c is known to be 0."""
        refuse_second_look(request.cuts)
        if relaxed.how == "published":
            raise OptionError(
                'relaxation="published" is for generated non-members: real ones are audited as a '
                "random split, so leave it out"
            )
        baseline_game = replace(games[0], name="baseline scores", recall=recall, symbol="c")
        pairs = baseline_game.examples
        if recall < 1:
            _check_recall(recall, request.cuts, pairs)
        baseline = _proof_of_pairs(replace(request, claim=PureDP()), baseline_game)
        attack = _proof_of_pairs(request, replace(games[1], recall=recall))
        theorem = _REAL + relaxed.claim.theorem(words_of_guesses("example", "trained model"))
        return cls(
            baseline=_score_audit(baseline),
            attack=_score_audit(attack),
            c_lb=0.0,
            theorem=theorem + attack.policy.method,
            order=_ORDER_OF_PAIRS,
            level=request.level,
            recall=recall,
            guesses=pairs,
            pairs={"pairs": pairs},
        )


def refuse_second_look(cuts: object) -> None:
    """Refuse cuts that look at a pilot sample first, which have no form here."""
    if isinstance(cuts, SecondLook):
        message = "{cuts=SecondLook} is not for PANORAMIA: use {KLScan} or {OutsideIn}"
        raise OptionError(Message(message))


def _score_audit(proof: Proof) -> ScoreAudit:
    """Return what one ranking proves as a record of its own."""
    return ScoreAudit(**parts(proof), options=proof.options, warnings=proof.warnings)


def _proof_of_pairs(request: Request, game: Game) -> Proof:
    """Return what guesses about pairs prove, as those of any random split."""
    level = request.level
    cuts = request.cuts or first_cuts(request.claim, sides=game.sides, level=level)
    return prove(replace(request, cuts=cuts), game, level)


def _check_recall(recall: float, cuts: CutPolicy | None, examples: int) -> None:
    """Refuse cuts that guess more than that share of the examples, or weigh all."""
    fixed = isinstance(cuts, Fixed) and cuts.guesses > recall * examples
    if fixed or isinstance(cuts, Weighted):
        message = "{max_recall} does not go with {cuts}: leave it out"
        limit = Option("max_recall", recall)
        raise OptionError(Message(message, max_recall=limit, cuts=Option("cuts", cuts)))
