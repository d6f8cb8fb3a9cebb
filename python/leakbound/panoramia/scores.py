"""What was audited: coins and scores of each game, to be audited again, and given examples."""

import csv
import io
import os
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base.files import Arrays, write_text
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits.designs import audit_of
from leakbound.audits.panoramia.conditional import PairCorrection, Shown, columns
from leakbound.audits.zero_run.learning import Learning
from leakbound.errors import OptionError
from leakbound.propensity import LogisticPropensity
from leakbound.results import AuditResult, PanoramiaResult, ZeroRunResult

NonMembers: TypeAlias = Literal["generated", "real"]
Conditional: TypeAlias = Literal["Zero-Run, match", "Zero-Run, Poisson-binomial"]

# Rows of the table, and how each takes out what examples give away by themselves.
CORRECTIONS: dict[Conditional, PairCorrection] = {
    "Zero-Run, match": "match",
    "Zero-Run, Poisson-binomial": "poisson_binomial",
}

_OTHER_SEED = (
    "the propensity model was refuted with another seed, and all seeds have models of one kind of "
    "one generator, so every bound is withheld"
)


@dataclass(frozen=True, eq=False, repr=False)
class GameScores:
    """The test part of one seed: what the coins show, and how baseline and attacks scored it.

    Parameters
    ----------
    seed, nonmembers : int, and "generated" or "real"
        Seed of splits, training and coins, and whom the members were compared with.
    member : ndarray of bool, shape (m,)
        The coins: True where the member of a pair is shown. Read-only, as are all scores.
    baseline, attacks : ndarray of float64, shape (m,), and dict of str to such
        Scores of the baseline, and of the attack on each target.
    losses : dict of str to ndarray of float64, shape (m,)
        For real non-members the scores of O(1): how far the loss fell in training, or how small it
        is; else empty.

    Notes
    -----
    A bound is valid if its options were chosen without a look at the coins. Several audits of the
    same scores each hold at their own confidence; the best of them does not.
    """

    seed: int
    nonmembers: NonMembers
    member: BoolArray
    baseline: FloatArray
    attacks: dict[str, FloatArray]
    losses: dict[str, FloatArray]

    def __post_init__(self) -> None:
        for array in (self.member, self.baseline, *self.attacks.values(), *self.losses.values()):
            array.flags.writeable = False

    def __len__(self) -> int:
        return self.member.size

    def __repr__(self) -> str:
        targets = ", ".join(self.attacks)
        return f"GameScores(seed={self.seed}, {self.nonmembers}, m={len(self)}, targets: {targets})"

    def audit(self, target: str, **options: Any) -> PanoramiaResult:
        """Audit one target's scores, with any options of `leakbound.audit`.

        Seed and `real_nonmembers` are known here.
        """
        known: dict[str, Any] = {
            "member": self.member,
            "baseline": self.baseline,
            "real_nonmembers": self.nonmembers == "real",
            "seed": self.seed,
        }
        result: PanoramiaResult = audit_of(
            "panoramia", _of(self.attacks, target), **(known | options)
        )
        return result

    def audit_losses(self, target: str, **options: Any) -> AuditResult:
        """Audit one target by its losses alone: O(1), against real non-members.

        Options are those of `leakbound.audit` and `Coins`; the seed is known here.
        """
        if self.nonmembers != "real":
            message = 'losses prove nothing against generated non-members: take games("real")'
            raise OptionError(message)
        scores = _of(self.losses, target)
        given: dict[str, Any] = {"seed": self.seed, "member": self.member}
        result: AuditResult = audit_of("coins", scores, **(given | options))
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

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write coins and scores as a table that ``leakbound panoramia`` reads.

        Its columns are ``member``, ``baseline_pred`` and ``mia_TARGET_pred`` for each target.
        """
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["member", "baseline_pred", *(f"mia_{name}_pred" for name in self.attacks)])
        columns = (self.member.astype(np.int64), self.baseline, *self.attacks.values())
        table.writerows(zip(*(column.tolist() for column in columns), strict=True))
        write_text(path, text.getvalue())


def _of(scores: dict[str, FloatArray], target: str) -> FloatArray:
    if target not in scores:
        message = f"there is no target {target!r}; targets: {', '.join(map(repr, scores))}"
        raise OptionError(message)
    return scores[target]


def withheld_together(results: tuple[ZeroRunResult, ...]) -> tuple[ZeroRunResult, ...]:
    """Withhold the bounds of all seeds if the propensities of any were refuted."""
    if not any(result.withheld for result in results):
        return results
    return tuple(
        one if one.withheld else replace(one, bound=0.0, reason=_OTHER_SEED, withheld=True)
        for one in results
    )


def shown_of(game: Arrays, features: FloatArray, *, seed: int) -> Shown:
    """Say what is known of the test part of a game without a target.

    The baseline has learnt from the features, with more examples than the validation part has, so
    its score stands for them: the bound holds if that score says all that an example says of its
    coin. The validation part is D'; a sceptic may use all features.
    """
    known, baseline = game["baseline-validation"], game["baseline"]
    coins = np.repeat([True, False], known.size // 2)
    others, table = columns(known), columns(baseline, known)
    guide = LogisticPropensity(calibration=None).fit(others, coins, seed=seed)
    return Shown(
        learning=Learning(
            features=table,
            seen=np.column_stack([table, features]),
            reference=(others, coins),
            guide=guide.log_odds(table),
        ),
        model="logistic regression on the baseline's score",
        learnt_from="the validation part and the coins of the test part",
    )
