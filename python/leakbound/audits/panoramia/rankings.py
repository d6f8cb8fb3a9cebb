"""What the rankings of a game of PANORAMIA prove: against generated points, or real non-members.

Against generated points all guesses are "member", and each ranking has half of the probability of
error. Where non-members are real, and exchangeable with the members, the examples shown are a
random split: given which are shown, and how many members these are, the members are a random part
of them, and hidden examples stay where they are. Then pairs of shown examples are audited, as those
of any split; and as c is known to be 0, each ranking has the whole probability of error.
"""

from dataclasses import dataclass, replace

from leakbound._base.checks import choice, real
from leakbound._base.types import BoolArray, FloatArray, JsonValue, Kind, Relaxation
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.policies.approximate_dp import ApproxPolicy, relaxed_policy
from leakbound.audits.random_split import split_theorem
from leakbound.audits.road import Request, parts, prove
from leakbound.claims import ApproxDP, Claim, PureDP
from leakbound.cuts import (
    CutPolicy,
    Fixed,
    KLScan,
    OutsideIn,
    Policy,
    Proof,
    ScoreGame,
    UnionBound,
    Weighted,
)
from leakbound.errors import OptionError
from leakbound.results import ScoreAudit

_THEOREM = (
    "If the generator is c-close, each member guess of the baseline is right with probability at "
    "most e^c / (1 + e^c), given the scores and the coins before; if the model is also ε-DP, each "
    "of the attack with probability at most e^(c+ε) / (1 + e^(c+ε)) (Kazmi et al. 2024, "
    "Propositions 1 and 2). Each bound has half of the probability of error (Corollary 1). "
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
    "plus gamma, and with the model e^(c+ε) times, plus gamma + δ - gamma δ (appendix E). These "
    "stand for e^ε and δ below. "
)
_REAL = (
    "Members and non-members are exchangeable but for training, so c = 0; and given which of them "
    "are shown, and how many members these are, the members are a random part of them. "
)


@dataclass(frozen=True)
class Relaxed:
    """How much of the guarantees may fail."""

    gamma: float
    claim: PureDP | ApproxDP
    how: Relaxation

    @classmethod
    def read(cls, gamma: float, claim: PureDP | ApproxDP, relaxation: Relaxation) -> "Relaxed":
        """Check the options."""
        choice(relaxation, "relaxation", Relaxation)
        relaxed = cls(real(gamma, "gamma", least=0, below=1), claim, relaxation)
        if relaxation == "published" and not relaxed.together:
            message = 'relaxation="published" is for gamma or delta above 0: leave it out'
            raise OptionError(message)
        return relaxed

    @property
    def delta(self) -> float:
        """δ of the model's guarantee."""
        return self.claim.delta

    @property
    def together(self) -> float:
        """γ + δ - γδ."""
        return self.gamma + self.delta - self.gamma * self.delta

    def theorem(self, policy: Policy) -> str:
        """Return what holds but for failures, as the policy uses it; "" where there are none."""
        if not self.together:
            return ""
        jointly = isinstance(policy, ApproxPolicy) and isinstance(policy.base, OutsideIn)
        return _RELAXED_JOINTLY if jointly else _RELAXED

    def options(self) -> dict[str, JsonValue]:
        """Return what the result shows."""
        return {"gamma": self.gamma, "delta": self.delta, "relaxation": self.how}


@dataclass(frozen=True, kw_only=True)
class Rankings:
    """What both rankings prove, each at `level`, of so many guesses at most."""

    baseline: ScoreAudit
    attack: ScoreAudit
    kind: Kind
    theorem: str
    level: float
    recall: float
    guesses: int


def of_coins(
    scores: tuple[FloatArray, FloatArray],
    member: BoolArray,
    request: Request,
    relaxed: Relaxed,
    max_recall: float,
) -> Rankings:
    """Guess members, where a coin decided between a member and a generated point.

    `scores` are those of the baseline and of the attack.
    """
    examples, level = member.size, request.level / 2
    recall = _recall(max_recall, request.cuts, examples)

    def proof_of(values: FloatArray, name: str, failures: float) -> Proof:
        game = ScoreGame(
            scores=values,
            member=member,
            sides="member",
            seed=request.seed,
            name=name,
            recall=recall,
        )
        return _policy(request.cuts, failures, relaxed.how, examples).audit(game, level)

    first = proof_of(scores[0], "baseline scores", relaxed.gamma)
    second = proof_of(scores[1], "scores", relaxed.together)
    return Rankings(
        baseline=_score_audit(first),
        attack=_score_audit(second),
        kind=second.policy.kind,
        theorem=_THEOREM + relaxed.theorem(second.policy) + second.policy.method,
        level=level,
        recall=recall,
        guesses=examples,
    )


def of_split(
    scores: tuple[FloatArray, FloatArray],
    member: BoolArray,
    request: Request,
    relaxed: Relaxed,
    max_recall: float,
) -> Rankings:
    """Guess which of two examples shown is the member, where non-members are real."""
    if relaxed.how == "published":
        message = (
            'relaxation="published" is for generated non-members: real ones are audited as a '
            "random split, so leave it out"
        )
        raise OptionError(message)
    pairs = Pairs.drawn(Units.of(member, None, None, "mean"), request.seed)
    recall = _recall(max_recall, request.cuts, pairs.count)

    def proof_of(values: FloatArray, name: str, claim: Claim) -> Proof:
        game = replace(pairs.game(values, request.seed), name=name, recall=recall)
        return prove(replace(request, claim=claim), game, request.level)

    # The baseline saw nothing of the model, whatever δ is.
    first = proof_of(scores[0], "baseline scores", PureDP())
    second = proof_of(scores[1], "scores", relaxed.claim)
    return Rankings(
        baseline=_score_audit(first),
        attack=_score_audit(second),
        kind=second.policy.kind,
        theorem=_REAL + split_theorem(relaxed.claim) + second.policy.method,
        level=request.level,
        recall=recall,
        guesses=pairs.count,
    )


def _score_audit(proof: Proof) -> ScoreAudit:
    """Return what one ranking proves as a record of its own."""
    return ScoreAudit(**parts(proof), options=proof.options, warnings=proof.warnings)


def _policy(
    cuts: CutPolicy | None, failures: float, relaxation: Relaxation, examples: int
) -> Policy:
    """Return the policy, with failures where there may be some."""
    if failures:
        return relaxed_policy(cuts, failures, relaxation, examples=examples)
    if cuts is None:
        return KLScan() if relaxation == "knapsack" else UnionBound()
    return cuts


def _recall(max_recall: float, cuts: CutPolicy | None, examples: int) -> float:
    """Check the largest share of the examples that a cut may guess."""
    recall = real(max_recall, "max_recall", above=0)
    if recall > 1:
        message = f"max_recall must be at most 1, got {recall:g}"
        raise OptionError(message)
    fixed = isinstance(cuts, Fixed) and cuts.guesses > recall * examples
    if recall < 1 and (fixed or isinstance(cuts, Weighted)):
        message = f"max_recall={recall:g} does not go with cuts={cuts!r}: leave it out"
        raise OptionError(message)
    return recall
