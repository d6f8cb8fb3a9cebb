"""What one attack proves of one claim, by the form that the claim has of the cut policy."""

from dataclasses import replace
from functools import singledispatch
from typing import TypeAlias

from leakbound._base.types import ApproxBound, FdpTest, FloatArray, JsonValue
from leakbound.audits.engine.ranking import audit_scores
from leakbound.audits.multiplicity import Proof
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.audits.policies.approximate_dp import approx_policy
from leakbound.audits.policies.biased_coins import prior_policy
from leakbound.audits.policies.f_dp import FamilyPolicy, family_policy
from leakbound.audits.policies.joint import joint_policy
from leakbound.claims import AnyFamily, ApproxDP, PureDP
from leakbound.cuts import CutPolicy, Game, OutsideIn, Policy
from leakbound.cuts.policies import default_scan

__all__ = ["one_run_proof"]

ApproximateChoice: TypeAlias = tuple[Policy, Policy, dict[str, JsonValue]]
FamilyChoice: TypeAlias = tuple[Policy, FamilyPolicy, dict[str, JsonValue]]


def one_run_proof(
    request: OneRunRequest, game: Game, chances: FloatArray | None, level: float
) -> Proof:
    """Audit the scores of one attack; `chances` are those of the coins, None if all are fair."""
    if chances is not None:
        ranks, member = game.labelled()
        biased = prior_policy(request.cuts, ranks, member, chances, sides=game.sides)
        return _proof(biased, replace(game, break_ties=True), level, {})
    claim = request.claim
    if isinstance(claim, PureDP):
        request.check_bound()
        cuts = default_scan(game.sides, level) if request.cuts is None else request.cuts
        return _proof(cuts, game, level, {})
    game = replace(game, break_ties=True)
    if isinstance(claim, ApproxDP):
        return _of_approximate_dp(claim, request, game, level)
    policy, test, options = _family_choice(request.cuts, claim, request.test, game, level)
    audit = audit_scores(policy, game, level)
    return Proof(audit, test.kind, test.method, options, test)


def _proof(policy: Policy, game: Game, level: float, options: dict[str, JsonValue]) -> Proof:
    return Proof(audit_scores(policy, game, level), policy.kind, policy.method, options)


def _of_approximate_dp(claim: ApproxDP, request: OneRunRequest, game: Game, level: float) -> Proof:
    policy, pure, options = _approximate_choice(request.cuts, claim, request.bound, game, level)
    options["bound_at_delta_0"] = audit_scores(pure, game, level).bound
    return _proof(policy, game, level, options)


@singledispatch
def _approximate_choice(
    cuts: CutPolicy | None, claim: ApproxDP, bound: ApproxBound, game: Game, level: float
) -> ApproximateChoice:
    """Return the policy of an audit, that of the same cuts for δ = 0, and options."""
    policy, options = approx_policy(
        cuts, claim.delta, bound, examples=game.examples, sides=game.sides, beta=level
    )
    return policy, policy.base, options


@singledispatch
def _family_choice(
    cuts: CutPolicy | None, claim: AnyFamily, test: FdpTest, game: Game, level: float
) -> FamilyChoice:
    """Return the policy of an audit, the test of its cuts, and what options say of the choice."""
    if cuts is None and test == "tight":
        return _family_choice(OutsideIn(), claim, test, game, level)
    policy, options = family_policy(
        cuts, claim, test, examples=game.examples, sides=game.sides, beta=level
    )
    return policy, policy, options


@_family_choice.register
def _(cuts: OutsideIn, claim: AnyFamily, test: FdpTest, game: Game, level: float) -> FamilyChoice:
    policy = joint_policy(cuts, claim, test, examples=game.examples, sides=game.sides, beta=level)
    return policy, policy, {"test": test}
