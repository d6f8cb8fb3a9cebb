"""What the rankings of a game of PANORAMIA prove: against generated points, or real non-members.

Against generated points all guesses are "member", and each ranking has half of the probability of
error. Where non-members are real, and exchangeable with the members, the examples shown are a
random split: given which are shown, and how many members these are, the members are a random part
of them, and hidden examples stay where they are. Then pairs of shown examples are audited, as those
of any split; and as c is known to be 0, each ranking has the whole probability of error.
"""

from dataclasses import dataclass, replace
from typing import Self

from leakbound._base.checks import choice, complement, real
from leakbound._base.types import BoolArray, FloatArray, JsonValue, Kind, Relaxation, Tail
from leakbound.audits.engine.evidence import audit_scores
from leakbound.audits.engine.pairs import Pairs, Units
from leakbound.audits.multiplicity import Proof
from leakbound.audits.one_run.proofs import one_run_proof
from leakbound.audits.one_run.random_split import split_theorem
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.audits.policies.approximate_dp import ApproxPolicy, relaxed_policy
from leakbound.claims import ApproxDP, PureDP
from leakbound.cuts import (
    CutPolicy,
    Fixed,
    KLScan,
    OutsideIn,
    Policy,
    ScoreGame,
    UnionBound,
    Weighted,
)
from leakbound.errors import IncompatibleOptionsError, OptionError
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
    delta: float
    how: Relaxation

    @classmethod
    def read(cls, gamma: float, delta: float, relaxation: Relaxation) -> "Relaxed":
        """Check the options."""
        choice(relaxation, "relaxation", Relaxation)
        relaxed = cls(
            real(gamma, "gamma", least=0, below=1),
            real(delta, "delta", least=0, below=1),
            relaxation,
        )
        if relaxation == "published" and not relaxed.together:
            message = 'relaxation="published" is for gamma or delta above 0: leave it out'
            raise IncompatibleOptionsError(message)
        return relaxed

    @property
    def claim(self) -> PureDP | ApproxDP:
        """The guarantee of the model."""
        return ApproxDP(delta=self.delta) if self.delta else PureDP()

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
class Asked:
    """The options that say how rankings are audited."""

    cuts: CutPolicy | None
    tail: Tail
    relaxed: Relaxed
    max_recall: float
    confidence: float
    seed: int


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

    @classmethod
    def of_coins(
        cls, baseline: FloatArray, attack: FloatArray, member: BoolArray, asked: Asked
    ) -> Self:
        """Guess members, where a coin decided between a member and a generated point."""
        cuts, tail, relaxed, examples = asked.cuts, asked.tail, asked.relaxed, member.size
        recall, level = _recall(asked.max_recall, cuts, examples), complement(asked.confidence) / 2

        def prove(values: FloatArray, name: str, failures: float) -> ScoreAudit:
            game = ScoreGame(
                scores=values,
                member=member,
                sides="member",
                seed=asked.seed,
                name=name,
                break_ties=failures > 0,
                recall=recall,
            )
            return audit_scores(_policy(cuts, tail, failures, relaxed.how, examples), game, level)

        first = prove(baseline, "baseline scores", relaxed.gamma)
        second = prove(attack, "scores", relaxed.together)
        policy = _policy(cuts, tail, relaxed.together, relaxed.how, examples)
        return cls(
            baseline=first,
            attack=second,
            kind=policy.kind,
            theorem=_THEOREM + relaxed.theorem(policy) + policy.method,
            level=level,
            recall=recall,
            guesses=examples,
        )

    @classmethod
    def of_split(
        cls, baseline: FloatArray, attack: FloatArray, member: BoolArray, asked: Asked
    ) -> Self:
        """Guess which of two examples shown is the member, where non-members are real."""
        if asked.relaxed.how == "published":
            message = (
                'relaxation="published" is for generated non-members: real ones are audited as a '
                "random split, so leave it out"
            )
            raise IncompatibleOptionsError(message)
        cuts = _with_tail(asked.cuts, asked.tail, asked.relaxed.delta)
        pairs = Pairs.drawn(Units.of(member, None, None, "mean"), asked.seed)
        recall = _recall(asked.max_recall, cuts, pairs.count)
        level = complement(asked.confidence)

        def prove(values: FloatArray, name: str, claim: PureDP | ApproxDP) -> Proof:
            request = OneRunRequest(
                claim=claim,
                confidence=asked.confidence,
                cuts=cuts,
                design="random_split",
                seed=asked.seed,
            )
            game = replace(pairs.game(values, asked.seed), name=name, recall=recall)
            return one_run_proof(request, game, None, level)

        # The baseline saw nothing of the model, whatever δ is.
        first = prove(baseline, "baseline scores", PureDP())
        claim = asked.relaxed.claim
        second = prove(attack, "scores", claim)
        return cls(
            baseline=first.audit,
            attack=second.audit,
            kind=second.kind,
            theorem=_REAL + split_theorem(claim) + second.method,
            level=level,
            recall=recall,
            guesses=pairs.count,
        )


def _with_tail(cuts: CutPolicy | None, tail: Tail, failures: float) -> CutPolicy | None:
    """Return the policy with the limits asked for."""
    if tail == "exact":
        return cuts
    if not isinstance(cuts, UnionBound) or failures:
        name = "KLScan" if cuts is None else type(cuts).__name__
        reason = f"{name} has no such limits" if not failures else "gamma and delta need exact"
        message = f'tail="{tail}" is for cuts=UnionBound(): {reason}'
        raise IncompatibleOptionsError(message)
    return replace(cuts, tail=tail)


def _policy(
    cuts: CutPolicy | None, tail: Tail, failures: float, relaxation: Relaxation, examples: int
) -> Policy:
    """Return the policy with the limits asked for, and with failures where there may be some."""
    cuts = _with_tail(cuts, tail, failures)
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
        raise IncompatibleOptionsError(message)
    return recall
