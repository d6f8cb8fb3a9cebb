"""What a random split certifies of singling out, linkability and inference."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import complement
from leakbound._base.codes import by_first_row
from leakbound._base.types import BoolArray, FloatArray
from leakbound.attacks.synthetic.rates import isolated
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.synthetic_tables import Inputs
from leakbound.results import AuditResult, Exposed
from leakbound.results.one_run import RATE, converted
from leakbound.results.risks import Risk, Risks
from leakbound.stats import clopper_pearson
from leakbound.stats.exposure import PairGuesses, surely_seen_from


def risks_of(read: Inputs, scores: Mapping[str, FloatArray], result: AuditResult) -> Risks | None:
    """Return the risks whose attacks were made, by the pairs of the audit.

    Parameters
    ----------
    read, result : Inputs and AuditResult
        The tables, and the audit of the random split.
    scores : mapping of str to ndarray of shape (N,)
        Scores of members and of others, by the names of attacks; 0 where an attack failed.
    """
    if not scores:
        return None
    split = _Split.of(read)
    level = complement(result.confidence)
    found = {
        name: _risk(name, values, split, result, level, len(scores))
        for name, values in scores.items()
    }
    return Risks(
        singling_out=found.get("singling_out"),
        linkability=found.get("linkability"),
        inference=found.get("inference"),
    )


@dataclass(frozen=True, eq=False)
class _Split:
    """Units of the split and their pairs, as the audit drew them."""

    read: Inputs
    units: Units
    pairs: Pairs

    @classmethod
    def of(cls, read: Inputs) -> Self:
        """Draw the pairs of the audit again: they follow from the units and the seed."""
        records, order = read.records, read.order
        strata = None if records.strata is None else by_first_row(records.strata[order])[2]
        groups = None if records.groups is None else records.groups[order]
        units = Units.of(records.member[order], strata=strata, groups=groups, aggregate="max")
        return cls(read, units, Pairs.drawn(units, read.tables.seed))

    def succeeded(self, name: str, scores: FloatArray) -> BoolArray:
        """Return on which units an attack succeeded: on any of their records."""
        hit = scores > 0
        if name == "singling_out":
            hit = isolated(self.read.tables, self.read.records.member)
        return self.units.scores(hit[self.read.order].astype(np.float64)) > 0

    def guesses(self, scores: FloatArray) -> PairGuesses:
        """Guess which of each pair is the member."""
        values = self.units.scores(scores[self.read.order])
        return PairGuesses.of(values[self.pairs.members] - values[self.pairs.others])

    def listed(self, guesses: PairGuesses) -> Exposed:
        """List members at a false discovery rate; groups by the first of their rows, with ids."""
        units = self.pairs.members[guesses.listed(RATE)]
        groups = self.read.records.groups
        order = self.read.order
        if groups is None:
            return Exposed(rate=RATE, rows=order[units], ids=())
        names, _, _ = by_first_row(groups[order])
        labels, rows = np.unique(groups, return_index=True)
        places = np.searchsorted(labels, names[units])
        return Exposed(rate=RATE, rows=rows[places], ids=tuple(map(str, names[units])))


def _risk(
    name: str,
    scores: FloatArray,
    split: _Split,
    result: AuditResult,
    level: float,
    risks: int,
) -> Risk:
    """Return what is certified of one risk, of so many that were looked at."""
    share = shares.RISK_COUNTS.of(level, risks)
    least = surely_seen_from(share)
    succeeded = split.succeeded(name, scores)
    member = split.units.member
    pairs = split.pairs.count
    limit = None
    if split.read.records.strata is None:
        limit = _upper_limit(succeeded[~member], shares.RISK_LIMITS.of(level, risks))
    guesses = split.guesses(scores)
    certified = guesses.certified(share)
    found = Risk(
        rate=float(succeeded[member].mean()),
        control_rate=float(succeeded[~member].mean()),
        control_rate_upper=limit,
        certified=certified,
        pairs=pairs,
        excess=certified / pairs,
        epsilon=converted(result, float(result.options["attacks"][name])),
        p=guesses.p_value,
        surely_seen_from=least,
        ceiling=max(0, pairs - least + 1),
        attack=name,
        exposed=split.listed(guesses),
    )
    if result.is_withheld:
        return replace(found, certified=None, excess=None, epsilon=None, p=None, exposed=None)
    return found


def _upper_limit(succeeded: BoolArray, level: float) -> float:
    """Return Clopper and Pearson's upper limit of a chance, rounded up."""
    failures = int((~succeeded).sum())
    return 1.0 - float(clopper_pearson(failures, succeeded.size, beta=level))
