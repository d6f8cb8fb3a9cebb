"""Coins and scores of every game, and all audits of them: the rows of the table."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leakbound._base.files import Arrays
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits import Coins, Panoramia
from leakbound.audits.designs import audit_of
from leakbound.audits.panoramia.conditional import (
    WIDE,
    PairCorrection,
    bounds_of_pairs,
    with_model_words,
)
from leakbound.audits.road import Request
from leakbound.audits.zero_run.game import drawn_in
from leakbound.audits.zero_run.learning import Learning
from leakbound.cuts import CutPolicy, KLScan, UnionBound
from leakbound.errors import OptionError
from leakbound.panoramia.options import Options
from leakbound.panoramia.table import (
    Audit,
    Conditional,
    NonMembers,
    PanoramiaRow,
    Result,
    Saturation,
)
from leakbound.propensity import LogisticPropensity
from leakbound.results import AuditResult, PanoramiaResult, ZeroRunResult

# Rows of the table, and the correction of each for what examples alone reveal.
CORRECTIONS: dict[Conditional, PairCorrection] = {
    "Zero-Run, match": "match",
    "Zero-Run, Poisson-binomial": "poisson_binomial",
}

_OTHER_SEED = (
    "the data contradict the propensity model with another seed, and all seeds have models of one "
    "kind of one generator, so every bound is withheld"
)


@dataclass(frozen=True, eq=False, repr=False)
class GameScores:
    """The test part of one seed: what the coins show, and how baseline and attacks scored it."""

    seed: int
    """Of splits, training and coins."""
    nonmembers: NonMembers
    """Whom the members were compared with."""
    member: BoolArray
    """The coins, shape (m,): True where the member of a pair is shown. Read-only, as all scores."""
    baseline: FloatArray
    """Scores of the baseline, shape (m,)."""
    attacks: dict[str, FloatArray]
    """Scores of the attack on each target."""
    losses: dict[str, FloatArray]
    """For real non-members how far the loss fell in training, or how small it is; else empty."""

    def __post_init__(self) -> None:
        for array in (self.member, self.baseline, *self.attacks.values(), *self.losses.values()):
            array.flags.writeable = False

    @classmethod
    def of(
        cls, seed: int, nonmembers: NonMembers, game: Arrays, targets: Collection[str]
    ) -> "GameScores":
        """Read coins and scores from the outcome of a game."""
        losses: Collection[str] = ()
        if nonmembers == "real":
            losses = targets
        return cls(
            seed=seed,
            nonmembers=nonmembers,
            member=game["coins"],
            baseline=game["baseline"],
            attacks={target: game[f"attack-{target}"] for target in targets},
            losses={target: game[f"losses-{target}"] for target in losses},
        )

    def __len__(self) -> int:
        return self.member.size

    def __repr__(self) -> str:
        targets = ", ".join(self.attacks)
        return f"GameScores(seed={self.seed}, {self.nonmembers}, m={len(self)}, targets: {targets})"

    def audit(self, target: str, **options: object) -> PanoramiaResult:
        """Audit one target's scores, with options of `leakbound.audit` chosen without the coins."""
        scores_of_attack = _scores_on_target(self.attacks, target)
        known_options: dict[str, object] = {
            "member": self.member,
            "baseline": self.baseline,
            "real_nonmembers": self.nonmembers == "real",
            "seed": self.seed,
        }
        result: PanoramiaResult = audit_of(
            Panoramia.name, scores_of_attack, **(known_options | options)
        )
        return result

    def audit_losses(self, target: str, **options: object) -> AuditResult:
        """Audit one target by its losses alone: O(1), against real non-members."""
        if self.nonmembers != "real":
            raise OptionError(
                'losses prove nothing against generated non-members: use games("real")'
            )
        loss_decreases = _scores_on_target(self.losses, target)
        known_options: dict[str, object] = {"member": self.member, "seed": self.seed}
        result: AuditResult = audit_of(Coins.name, loss_decreases, **(known_options | options))
        return result

    def take(self, rows: IntArray | slice) -> "GameScores":
        """Return the scores of some of the pairs, as if only these had been tested.

        They must be chosen without a look at coins and scores.
        """
        return replace(
            self,
            member=self.member[rows],
            baseline=self.baseline[rows],
            attacks={name: values[rows] for name, values in self.attacks.items()},
            losses={name: values[rows] for name, values in self.losses.items()},
        )


def _scores_on_target(scores: dict[str, FloatArray], target: str) -> FloatArray:
    if target not in scores:
        known_targets = ", ".join(map(repr, scores))
        raise OptionError(f"there is no target {target!r}; targets: {known_targets}")
    return scores[target]


def audit_all(
    scores: Sequence[GameScores], learnings: Sequence[Learning], options: Options
) -> tuple[PanoramiaRow, ...]:
    """Audit every target in every way, from the scores of all seeds."""
    generated = [game for game in scores if game.nonmembers == "generated"]
    real = [game for game in scores if game.nonmembers == "real"]
    confidence = options.confidence
    cuts: CutPolicy | None = options.cuts
    if cuts == KLScan():
        cuts = None  # the default, which whoever audits these scores again need not name
    rows = list[PanoramiaRow]()

    def add(target: str, audit: Audit, results: Iterable[Result]) -> None:
        rows.append(PanoramiaRow(target=target, audit=audit, results=tuple(results)))

    for target in generated[0].attacks:
        # 1. Members against generated non-members, by the policy and by the paper's union bound.
        estimates = [game.audit(target, confidence=confidence, cuts=cuts) for game in generated]
        add(target, "PANORAMIA", estimates)
        if options.union:
            add(
                target,
                "PANORAMIA, union",
                [
                    game.audit(target, confidence=confidence, cuts=UnionBound())
                    for game in generated
                ],
            )
        # 2. Zero-Run, twice on the same confidence set.
        if learnings:
            bounds_of_seeds = [
                bounds_of_pairs(
                    game.attacks[target],
                    member=game.member,
                    learning=learning,
                    request=Request(confidence=confidence, seed=game.seed),
                    corrections=CORRECTIONS.values(),
                )
                for game, learning in zip(generated, learnings, strict=True)
            ]
            for audit, results in zip(CORRECTIONS, zip(*bounds_of_seeds, strict=True), strict=True):
                add(target, audit, withheld_together(results))
        # 3. Members against real non-members: with the attack, and with the losses alone.
        if real:
            add(
                target,
                "RM;RN",
                [game.audit(target, confidence=confidence, cuts=options.cuts) for game in real],
            )
            add(target, "O(1)", [game.audit_losses(target, confidence=confidence) for game in real])
    return tuple(rows)


def saturation_of(games: Sequence[Arrays], sizes: Sequence[int], options: Options) -> Saturation:
    """Audit the further baselines, of so many training pairs, as the baseline is."""
    bounds = []
    for seed, game in zip(options.seeds, games, strict=True):
        known = {"member": game["coins"], "confidence": options.confidence, "cuts": options.cuts}
        # The last size is the whole training part.
        rankings = [*(game[f"baseline-{size}"] for size in sizes[:-1]), game["baseline"]]
        results = [audit_of(Panoramia.name, x, baseline=x, seed=seed, **known) for x in rankings]
        bounds.append(np.array([result.c_lb for result in results]))
    return Saturation(examples=2 * np.array(sizes, dtype=np.int64), c_lb=tuple(bounds))


def withheld_together(results: tuple[ZeroRunResult, ...]) -> tuple[ZeroRunResult, ...]:
    """Withhold the bounds of all seeds if the propensities of any were refuted."""
    if not any(result.withheld for result in results):
        return results
    withheld = []
    for result in results:
        if result.withheld:
            withheld.append(result)
        else:
            withheld.append(replace(result, bound=0.0, reason=_OTHER_SEED, withheld=True))
    return tuple(withheld)


def shown_of(game: Arrays, features: FloatArray, *, seed: int) -> Learning:
    """Return what is known about the test part of a game without a target.

    The baseline is trained on the features, with more examples than the validation part has, so its
    score replaces them: the bound holds if membership depends on an example only through that
    score. The validation part is D'; a sceptic may use all features.
    """
    validation_scores = game["baseline-validation"][:, None]
    validation_member = np.repeat([True, False], len(validation_scores) // 2)
    validation_column = in_deviations(validation_scores, validation_scores)
    audited_column = in_deviations(game["baseline"][:, None], validation_scores)
    propensity = LogisticPropensity(calibration=None)
    fitted = propensity.fit(validation_column, validation_member, seed=seed)
    learning = Learning(
        features=audited_column,
        names=("baseline",),
        seen=np.column_stack([audited_column, features]),
        reference=(validation_column, validation_member),
        guide=fitted.log_odds(audited_column),
    )
    return with_model_words(
        learning,
        model="logistic regression on the baseline's score",
        learnt_from="the validation part and the coins of the test part",
    )


def in_deviations(scores: FloatArray, validation_scores: FloatArray) -> FloatArray:
    """Return scores in standard deviations of the validation part, far ones drawn in."""
    smallest = np.finfo(np.float64).tiny
    standard_deviation = np.maximum(validation_scores.std(axis=0), smallest)
    z_scores = (scores - validation_scores.mean(axis=0)) / standard_deviation
    return drawn_in(z_scores, WIDE)
