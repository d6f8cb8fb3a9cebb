"""What the rankings of a game of PANORAMIA prove: against generated points, or real non-members.

Against generated points all guesses are "member", and each ranking has half of the probability of
error. Where non-members are real, and exchangeable with the members, the examples shown are a
random split: given which are shown, and how many members these are, the members are a random part
of them, and hidden examples stay where they are. Then pairs of shown examples are audited, as those
of any split; and as c is known to be 0, each ranking has the whole probability of error.
"""

from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias, cast

from leakbound import cuts as policies
from leakbound._base import shares
from leakbound._base.checks import choice, real
from leakbound._base.messages import Message, Option
from leakbound._base.types import TailBound
from leakbound.audits.policies.approximate_dp import ApproxPolicy, approx_policy
from leakbound.audits.policies.second_look import first_cuts
from leakbound.audits.random_split import words_of_guesses
from leakbound.audits.road import Request, parts, prove
from leakbound.claims import ApproxDP, PureDP
from leakbound.cuts.policies import DEFAULT_SCAN
from leakbound.cuts.policy import Procedure
from leakbound.errors import OptionError
from leakbound.results import ScoreAudit

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
_DEFAULTS: dict[Relaxation, policies.Policy] = {
    "knapsack": DEFAULT_SCAN,
    "published": policies.UnionBound(),
}
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
        jointly = isinstance(policy, ApproxPolicy) and isinstance(policy.base, policies.OutsideIn)
        if jointly:
            return _RELAXED_JOINTLY
        return _RELAXED


@dataclass(frozen=True, kw_only=True)
class Rankings:
    """What both rankings prove, each at `level`, of so many guesses at most."""

    baseline: ScoreAudit
    attack: ScoreAudit
    theorem: str
    parted: bool
    """Whether ties are broken."""
    level: float
    recall: float
    guesses: int

    @classmethod
    def of(
        cls,
        games: tuple[policies.Game, policies.Game],
        request: Request,
        relaxed: Relaxed,
        *,
        paired: bool,
        max_recall: float,
    ) -> Self:
        """Test the games of the baseline and of the attack: of pairs where non-members are real."""
        if paired or request.cuts is not None:
            _check(request.cuts, relaxed, paired=paired)
        # Where c is known, each ranking has the whole level.
        level = request.level
        if not paired:
            level = shares.RANKINGS.of(request.level, len(games))
        guesses = games[0].examples
        recall = _recall(max_recall, cuts=request.cuts, examples=guesses)
        # The baseline saw nothing of the model, whatever δ is.
        baseline = replace(games[0], name="baseline scores", recall=recall, symbol="c")
        together = "c + ε"
        if paired:
            together = "ε"
        attack = replace(games[1], name="scores", recall=recall, symbol=together)
        of_baseline = replace(request, claim=PureDP())
        first = _proof(of_baseline, baseline, level, how=relaxed.how, failures=relaxed.gamma)
        second = _proof(request, attack, level, how=relaxed.how, failures=relaxed.together)
        theorem = _THEOREM
        if relaxed.together:
            theorem += relaxed.theorem(second.policy)
        if paired:
            theorem = _REAL + relaxed.claim.theorem(words_of_guesses("example", "trained model"))
        return cls(
            baseline=_score_audit(first),
            attack=_score_audit(second),
            theorem=theorem + second.policy.method,
            parted=second.policy.ties == "broken",
            level=level,
            recall=recall,
            guesses=guesses,
        )


def _check(cuts: policies.CutPolicy | None, relaxed: Relaxed, *, paired: bool) -> None:
    """Refuse cuts, and a relaxation of pairs, that have no form here."""
    if isinstance(cuts, policies.SecondLook):
        message = "{cuts=SecondLook} is not for PANORAMIA: use {KLScan} or {OutsideIn}"
        raise OptionError(Message(message))
    if paired and relaxed.how == "published":
        raise OptionError(
            'relaxation="published" is for generated non-members: real ones are audited as a '
            "random split, so leave it out"
        )


def _score_audit(proof: policies.Proof) -> ScoreAudit:
    """Return what one ranking proves as a record of its own."""
    return ScoreAudit(**parts(proof), options=proof.options, warnings=proof.warnings)


def _proof(
    request: Request, game: policies.Game, level: float, *, how: Relaxation, failures: float
) -> policies.Proof:
    """Return what guesses of members prove, with failures where there may be some."""
    if game.sides == "pairs":
        return _of_pairs(request, game, level)
    if failures:
        forms = _FORMS[how]
        return approx_policy(
            request.cuts, failures, examples=game.examples, sides="member", forms=forms
        ).audit(game, level)
    policy = cast("policies.Policy", request.cuts or _DEFAULTS[how])  # all others were refused
    return policy.audit(game, level)


def _of_pairs(request: Request, game: policies.Game, level: float) -> policies.Proof:
    """Return what guesses about pairs prove, as those of any random split."""
    cuts = request.cuts or first_cuts(request.claim, sides=game.sides, level=level)
    return prove(replace(request, cuts=cuts), game, level)


def _recall(max_recall: float, cuts: policies.CutPolicy | None, examples: int) -> float:
    """Check the largest share of the examples that a cut may guess."""
    recall = real(max_recall, name="max_recall", above=0, most=1)
    if recall < 1:
        _check_recall(recall, cuts, examples)
    return recall


def _check_recall(recall: float, cuts: policies.CutPolicy | None, examples: int) -> None:
    """Refuse cuts that guess more than that share, or weigh all."""
    fixed = isinstance(cuts, policies.Fixed) and cuts.guesses > recall * examples
    if fixed or isinstance(cuts, policies.Weighted):
        message = "{max_recall} does not go with {cuts}: leave it out"
        limit = Option("max_recall", recall)
        raise OptionError(Message(message, max_recall=limit, cuts=Option("cuts", cuts)))
