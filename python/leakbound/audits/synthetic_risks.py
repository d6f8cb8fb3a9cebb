"""What a random split certifies of singling out, linkability and inference."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import complement
from leakbound._base.codes import by_first_row
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.attacks.synthetic.rates import isolated
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.synthetic_tables import Inputs
from leakbound.results import AuditResult, Exposed
from leakbound.results.one_run import RATE, converted
from leakbound.results.risks import Risk, Risks
from leakbound.stats import clopper_pearson
from leakbound.stats.exposure import PairGuesses, surely_seen_from


def risks_of(inputs: Inputs, scores: Mapping[str, FloatArray], result: AuditResult) -> Risks | None:
    """Return the risks whose attacks were made, by the pairs of the audit.

    Parameters
    ----------
    inputs, result : Inputs and AuditResult
        The tables, and the audit of the random split.
    scores : mapping of str to ndarray of shape (N,)
        Scores of members and of others, by the names of attacks; 0 where an attack failed.
    """
    if not scores:
        return None
    split = _SplitOfTables.of(inputs)
    level = complement(result.confidence)
    risks = dict[str, Risk]()
    for name, values in scores.items():
        risks[name] = _risk_of_attack(
            name, values, split, result, level, number_of_risks=len(scores)
        )
    return Risks(
        singling_out=risks.get("singling_out"),
        linkability=risks.get("linkability"),
        inference=risks.get("inference"),
    )


@dataclass(frozen=True, eq=False)
class _SplitOfTables:
    """Units of the split and their pairs, as the audit drew them."""

    inputs: Inputs
    units: Units
    pairs: Pairs

    @classmethod
    def of(cls, inputs: Inputs) -> Self:
        """Draw the pairs of the audit again: they follow from the units and the seed."""
        records = inputs.records
        order = inputs.order
        stratum_of_record: IntArray | None = None
        if records.strata is not None:
            _, _, stratum_of_record = by_first_row(records.strata[order])
        group_of_record = None
        if records.groups is not None:
            group_of_record = records.groups[order]
        units = Units.of(
            records.member[order], strata=stratum_of_record, groups=group_of_record, aggregate="max"
        )
        return cls(inputs, units, Pairs.drawn(units, inputs.tables.seed))

    def successes(self, name: str, scores: FloatArray) -> BoolArray:
        """Return on which units an attack succeeded: on any of their records."""
        is_success = scores > 0
        if name == "singling_out":
            is_success = isolated(self.inputs.tables, self.inputs.records.member)
        ordered_successes = is_success[self.inputs.order].astype(np.float64)
        return self.units.scores(ordered_successes) > 0

    def guesses(self, scores: FloatArray) -> PairGuesses:
        """Guess which of each pair is the member."""
        scores_of_units = self.units.scores(scores[self.inputs.order])
        scores_of_members = scores_of_units[self.pairs.members]
        scores_of_others = scores_of_units[self.pairs.others]
        return PairGuesses.of(scores_of_members - scores_of_others)

    def exposed_members(self, guesses: PairGuesses) -> Exposed:
        """List members at a false discovery rate; groups by the first of their rows, with ids."""
        exposed_units = self.pairs.members[guesses.listed(RATE)]
        groups = self.inputs.records.groups
        order = self.inputs.order
        if groups is None:
            return Exposed(rate=RATE, rows=order[exposed_units], ids=())
        names_of_units, _, _ = by_first_row(groups[order])
        exposed_names = names_of_units[exposed_units]
        sorted_names, first_rows = np.unique(groups, return_index=True)
        positions_of_groups = np.searchsorted(sorted_names, exposed_names)
        return Exposed(
            rate=RATE,
            rows=first_rows[positions_of_groups],
            ids=tuple(map(str, exposed_names)),
        )


def _risk_of_attack(
    name: str,
    scores: FloatArray,
    split: _SplitOfTables,
    result: AuditResult,
    level: float,
    number_of_risks: int,
) -> Risk:
    """Return what is certified of one risk, of so many that were looked at."""
    level_of_count = shares.RISK_COUNTS.of(level, number_of_risks)
    least_certified = surely_seen_from(level_of_count)
    successes = split.successes(name, scores)
    is_member = split.units.member
    pairs = split.pairs.count
    control_rate_upper = None
    if split.inputs.records.strata is None:
        limit_level = shares.RISK_LIMITS.of(level, number_of_risks)
        control_rate_upper = _upper_limit_of_rate(successes[~is_member], limit_level)
    guesses = split.guesses(scores)
    certified = guesses.certified(level_of_count)
    bound_of_attack = float(result.options["attacks"][name])
    risk = Risk(
        rate=float(successes[is_member].mean()),
        control_rate=float(successes[~is_member].mean()),
        control_rate_upper=control_rate_upper,
        certified=certified,
        pairs=pairs,
        excess=certified / pairs,
        epsilon=converted(result, bound_of_attack),
        p=guesses.p_value,
        surely_seen_from=least_certified,
        ceiling=max(0, pairs - least_certified + 1),
        attack=name,
        exposed=split.exposed_members(guesses),
    )
    if result.is_withheld:
        return replace(risk, certified=None, excess=None, epsilon=None, p=None, exposed=None)
    return risk


def _upper_limit_of_rate(successes: BoolArray, level: float) -> float:
    """Return Clopper and Pearson's upper limit of a chance, rounded up."""
    failures = int((~successes).sum())
    return 1.0 - float(clopper_pearson(failures, successes.size, beta=level))
