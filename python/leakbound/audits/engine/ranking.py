"""From scores and membership to what a ranking proves: the middle of every audit."""

from leakbound._base.records import Lazy
from leakbound.audits.engine.evidence import curve, histogram_of, roc
from leakbound.cuts import Game, Policy
from leakbound.cuts.base import PATH_NAMES
from leakbound.results import ScoreAudit


def audit_scores(policy: Policy, game: Game, level: float) -> ScoreAudit:
    """Bound the log-odds of a correct guess from below, wrong with probability `level`."""
    found = policy.audit(game, level)
    ranking, best = found.game.rated(found.ranking), found.best
    bound = max(0.0, best.logit)
    return ScoreAudit(
        bound=bound,
        reason="" if bound else found.reason,
        m=ranking.examples,
        members=ranking.members,
        guesses=best.cut,
        correct=best.successes,
        path=PATH_NAMES[found.order],
        auc=ranking.auc,
        options=found.options,
        warnings=found.warnings,
        _ceiling=found.ceiling,
        _curve=Lazy(lambda: curve(found)),
        _roc=Lazy(lambda: roc(ranking)),
        _histogram=Lazy(lambda: histogram_of(found.game.shown())),
    )
