"""What one attack proves of one claim, by the form that the claim has of the cut policy."""

from dataclasses import replace

from leakbound._base.types import FloatArray, JsonValue
from leakbound.audits.attacks import Proof
from leakbound.audits.evidence import audit_scores
from leakbound.audits.policies.approximate_dp import approx_policy
from leakbound.audits.policies.biased_coins import prior_policy
from leakbound.audits.policies.f_dp import FamilyPolicy, family_policy
from leakbound.audits.policies.joint import joint_policy
from leakbound.claims import AnyFamily, ApproxDP, Claim, PureDP
from leakbound.cuts import CutPolicy, Game, OutsideIn, Policy
from leakbound.cuts.policies import default_scan


def prove(
    claim: Claim, cuts: CutPolicy | None, game: Game, prior: FloatArray | None, level: float
) -> Proof:
    """Audit the scores of one attack; `prior` are the chances of the coins, None if all are fair."""
    if prior is not None:
        ranks, member = game.labelled()
        biased = prior_policy(cuts, ranks, member, prior, sides=game.sides)
        return _proof(biased, replace(game, break_ties=True), level, {})
    if isinstance(claim, PureDP):
        return _proof(cuts or default_scan(game.sides, level), game, level, {})
    game = replace(game, break_ties=True)
    if isinstance(claim, ApproxDP):
        policy, options = approx_policy(cuts, claim.delta, examples=game.examples, sides=game.sides)
        options["bound_at_delta_0"] = audit_scores(policy.base, game, level).bound
        return _proof(policy, game, level, options)
    test = _family_policy(cuts, claim, game, level)
    return Proof(audit_scores(test, game, level), test.kind, test.method, {}, test)


def _family_policy(
    cuts: CutPolicy | None, claim: AnyFamily, game: Game, level: float
) -> FamilyPolicy:
    """Return the policy of an audit of a family: by default the number of guesses is chosen."""
    if cuts is None or isinstance(cuts, OutsideIn):
        chosen = cuts or OutsideIn()
        return joint_policy(chosen, claim, examples=game.examples, sides=game.sides, beta=level)
    return family_policy(cuts, claim, examples=game.examples, sides=game.sides)


def _proof(policy: Policy, game: Game, level: float, options: dict[str, JsonValue]) -> Proof:
    return Proof(audit_scores(policy, game, level), policy.kind, policy.method, options)
