"""Every audit of every target: the rows of the table, and how the baseline grew."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from leakbound._base.files import Arrays
from leakbound.audits import Panoramia, audit
from leakbound.audits.panoramia.conditional import PairAudit, Shown
from leakbound.claims import PureDP
from leakbound.cuts import UnionBound
from leakbound.panoramia.game import Side
from leakbound.panoramia.options import Options
from leakbound.panoramia.scores import CORRECTIONS, GameScores, shown_of, withheld_together
from leakbound.panoramia.table import Audit, PanoramiaRow, Result, Saturation
from leakbound.results import ZeroRunResult


def audit_all(
    targets: Iterable[str],
    games: Sequence[Mapping[str, Arrays]],
    scores: Sequence[Mapping[str, GameScores]],
    seen: Mapping[str, Side],
    options: Options,
) -> tuple[PanoramiaRow, ...]:
    """Audit every target in every way, from the games of all seeds."""
    audits: list[Audit] = ["PANORAMIA"]
    if options.union:
        audits.append("PANORAMIA, union")
    shown: list[Shown | None] = [None] * len(games)
    if options.conditional:
        audits += CORRECTIONS
        # What is known of the audited examples without a target.
        members, others = seen["members"].table, seen["generated"].table
        for place, game in enumerate(one["generated"] for one in games):
            coins = game["coins"][:, None]
            features = np.where(coins, members[game["rows"]], others[game["others"]])
            shown[place] = shown_of(game, features, seed=options.seeds[0])
    if "nonmembers" in seen:
        audits += ["RM;RN", "O(1)"]
    rows = []
    for target in targets:
        for name in audits:
            results: tuple[Result, ...] = tuple(
                _audit(name, target, game, examples, options)
                for game, examples in zip(scores, shown, strict=True)
            )
            if name in CORRECTIONS:
                results = withheld_together(
                    tuple(result for result in results if isinstance(result, ZeroRunResult))
                )
            rows.append(PanoramiaRow(target=target, audit=name, results=results))
    return tuple(rows)


def _audit(
    audit: Audit,
    target: str,
    scores: Mapping[str, GameScores],
    shown: Shown | None,
    options: Options,
) -> Result:
    confidence = options.confidence
    if audit == "O(1)":
        return scores["nonmembers"].audit_losses(target, confidence=confidence)
    game = scores["nonmembers" if audit == "RM;RN" else "generated"]
    if audit == "Zero-Run, match" or audit == "Zero-Run, Poisson-binomial":
        assert shown is not None
        pairs = PairAudit.prepare(
            game.attacks[target], game.member, shown, confidence=confidence, seed=game.seed
        )
        return pairs.bound(PureDP(), CORRECTIONS[audit])
    cuts = UnionBound() if audit == "PANORAMIA, union" else options.cuts
    return game.audit(target, confidence=confidence, cuts=cuts)


def saturation_of(
    games: Sequence[Mapping[str, Arrays]], sizes: Sequence[int], train: int, options: Options
) -> Saturation:
    """Audit the further baselines, of so many training pairs, as the baseline is."""
    keys = [*(f"baseline-{size}" for size in sizes), "baseline"]
    bounds = []
    for seed, played in zip(options.seeds, games, strict=True):
        game = played["generated"]
        results = [
            audit(
                game[key],
                Panoramia(game["coins"], baseline=game[key]),
                confidence=options.confidence,
                cuts=options.cuts,
                seed=seed,
            )
            for key in keys
        ]
        bounds.append(np.array([result.c_lb for result in results]))
    return Saturation(2 * np.array([*sizes, train], dtype=np.int64), tuple(bounds))
