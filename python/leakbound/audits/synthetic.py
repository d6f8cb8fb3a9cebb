"""Audits of a generator by the synthetic table that it made of a random part of the records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, cast

import numpy as np

from leakbound._base import shares
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_length, check_scores, complement, flag, seed_of, shown
from leakbound._base.labels import by_first_row
from leakbound._base.messages import OF_CLAIMS, hinted
from leakbound._base.streams import Purpose
from leakbound._base.tables import TableInput, Writing
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, IntArray, JsonValue
from leakbound.attacks.synthetic import ATTACKS, Tables, similarity
from leakbound.attacks.synthetic.risks import isolated
from leakbound.attacks.synthetic.scores import DEFAULT, RISKS
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.random_split import RandomSplit, SplitWords
from leakbound.audits.road import Request
from leakbound.audits.synthetic_tables import (
    ColumnRole,
    Inputs,
    Roles,
    missing_marks,
    notes_on_tables,
)
from leakbound.claims import Claim, PureDP
from leakbound.cuts import CutPolicy
from leakbound.errors import InputTypeError, OptionError
from leakbound.results import Assumption, AuditResult, Exposed
from leakbound.results.one_run import RATE, converted
from leakbound.results.synthetic import Risk, Risks, SyntheticResult
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


_PURE_DP = PureDP()
# Pairs of records on which classifiers bet from records alone, unless told otherwise.
_MOST_BETS = 10_000

_WORDS = SplitWords(unit="record", output="synthetic table")
_LABEL_FREE = Assumption(
    "scores without membership",
    "All audited records were put together, sorted by content, and scored by attacks that see "
    "them, the synthetic table and the reference; equal records have equal scores. Which records "
    "the generator was trained on was not used.",
    "checked",
)
_REFERENCE = Assumption(
    "reference chosen without membership",
    "The reference table has records that were chosen without knowing which of the audited "
    "records the generator was trained on: a third set, not the part that was held out.",
    "declared",
)
_INDEPENDENT = Assumption(
    "others drawn independently",
    "The upper limits of the shares of others, and nothing else, are for a population of which the "
    "held-out records, or groups, are independent draws.",
    "declared",
)
_ONE_TABLE = Assumption(
    "generator trained on members only",
    "The synthetic table was made from the members, public knowledge and fresh randomness. "
    "Held-out records were not used to make it, or to choose among tables or generators.",
    "declared",
)


@hinted(
    **OF_CLAIMS,
    **dict.fromkeys(("train", "real"), "write members=…, the training records"),
    **dict.fromkeys(("test", "holdout"), "write nonmembers=…, the held-out records"),
    **dict.fromkeys(("generated", "fake"), "write synthetic=…"),
    groups="say it of the column: columns={'person': 'group'}",
    strata="say it of the column: columns={'site': 'stratum'}",
    categorical="say it of the column: columns={'code': 'codes'}",
    secrets="say it of the column: columns={'income': 'secret'}",
)
def audit_synthetic(
    members: TableInput,
    nonmembers: TableInput,
    synthetic: TableInput,
    *,
    reference: TableInput | None = None,
    claim: Claim = _PURE_DP,
    attacks: str | Sequence[str] | Mapping[str, ArrayInput] = "default",
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    columns: Mapping[str, ColumnRole] | None = None,
    missing: Sequence[str] = (),
    challenge: bool | None = None,
    seed: int | None = None,
) -> SyntheticResult:
    """Bound the privacy loss of a generator from below, from the synthetic table that it made.

    The records were split at random: the generator learnt from the members, and the non-members
    were held out. Attacks that do not know membership guess which record of a random pair is the
    member, given the synthetic table. The bound is on replacing one training record by another,
    and holds for the generator, not for one table.

    Parameters
    ----------
    members, nonmembers : table
        What the generator was trained on, and the rest of the same random split: data frames of any
        library, mappings from names to columns, or arrays of shape (records, columns) such as
        embeddings of texts or images. Numbers, dates, words and booleans; None, NaN and NaT are
        missing. Text is read as numbers, booleans or dates (ISO 8601) if all words of a column are.
        Words such as "NA", "." and "-" are missing values there, which a warning counts.
    synthetic : table
        What the generator made, any number of rows of the same columns.
    reference : table, optional
        Further records of the population that attacks compare with, chosen without membership: a
        third set. The non-members are refused.
    claim, confidence, cuts, seed : optional
        As for `audit`; the claim is about replacing one record, and attacks draw from the seed too.
    attacks : str, sequence of str, or mapping of str to array-like
        Names from `leakbound.attacks.synthetic.ATTACKS`, which share the probability of error;
        "default" stands for seven of them. A mapping has scores of your own, each computed without
        membership: members first, then non-members, or joined by their pandas index
        with those of both tables.
    columns : mapping of str to str, optional
        What columns are, besides values, "stratum", "group", "secret", "codes", "stratum of codes"
        or "secret of codes"; those of an array are named "0", "1", …. The split was
        stratified by a "stratum". Values of a "group" were split as one, such as an id of the
        person: all rows of a group are on one side. It is not compared, and the synthetic table
        need not have it. "codes" are numbers or dates that are categories. A "secret" is what an
        intruder wants to infer from all other columns, named before the first result; without one,
        every column in turn.
    missing : sequence of str, optional
        Further words or numbers that mark missing values in any column, such as "<0.5" or "-9", and
        those that need no warning.
    challenge : bool, optional
        Whether the records alone, without the synthetic table, challenge the split, as `features`
        of `RandomSplit` do. If a random split would hardly show what they show (p < 0.001), the
        split was not random, and the bound is withheld. If None, classifiers bet on 10,000 pairs of
        records at most; if True, on all.

    Returns
    -------
    SyntheticResult
        An `AuditResult` whose bound is on replacing one record, with the attack that won, the
        usual similarity metrics and, if these attacks were made, what is certified of singling out,
        linkability and inference: `risks`. LeakboundError is raised if tables cannot be read or
        differ in columns, members and non-members are the same table, the reference was chosen by
        membership, or a group is on both sides.

    Notes
    -----
    `docs/theory/synthetic.md` says what is random and what is fixed, and proves validity.
    The attacks name their sources.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> records = rng.normal(size=(400, 4))
    >>> order = rng.permutation(400)
    >>> members, nonmembers = records[order[:200]], records[order[200:]]
    >>> copies = members + rng.normal(0, 0.1, members.shape)
    >>> result = audit_synthetic(members, nonmembers, copies, seed=1)
    >>> result.bound > 3, result.check(epsilon=1.0, relation="replace")
    (True, 'refuted')
    """
    seed = seed_of(seed)
    if challenge is not None:
        flag(challenge, "challenge")
    has_own_scores = isinstance(attacks, Mapping)
    names: tuple[str, ...] = ()
    if not has_own_scores:
        names = _checked_attack_names(attacks)
    roles = Roles.of(columns)
    if roles.secrets and "inference" not in names:
        raise OptionError(
            f"{roles.secrets[0]!r} is a secret, which the attack inference is about: name it among "
            "attacks, or leave the secret out"
        )
    # 1. All tables, read alike.
    writing = Writing(missing=missing_marks(missing))
    inputs = Inputs.read(
        members=members,
        nonmembers=nonmembers,
        synthetic=synthetic,
        reference=reference,
        roles=roles,
        writing=writing,
        seed=seed,
    )
    # 2. Scores that no membership has a part in.
    attack_scores = {name: ATTACKS[name](inputs.tables).values for name in names}
    scores = {
        name: _scores_or_noise(values, inputs.tables) for name, values in attack_scores.items()
    }
    if has_own_scores:
        rows = ExampleOrder.of_tables([members, nonmembers], "the index of members and non-members")
        scores = _scores_of_own_attacks(cast("Any", attacks), rows, size=inputs.records.member.size)
    # 3. The audit of the random split.
    request = Request(claim=claim, confidence=confidence, cuts=cuts, seed=seed)
    result = _audit_of_split(inputs, scores, request, challenge=challenge)
    # 4. In the words of a generator, with the three questions and the usual metrics beside it.
    scores_of_risks = {name: attack_scores[name] for name in RISKS if name in attack_scores}
    risks = risks_of(inputs, scores_of_risks, result)
    metrics = similarity(inputs.tables, inputs.records.member)
    notes = notes_on_tables(inputs.tables, inputs.records, metrics.copies_of_members)
    result = replace(
        result,
        assumptions=_assumptions_of_generator(
            result, risks, named=bool(names), reference=reference is not None
        ),
        options=result.options | _options_of_tables(inputs, reference=reference is not None),
        warnings=(*result.warnings, *notes),
    )
    values_of_fields = {field.name: getattr(result, field.name) for field in fields(AuditResult)}
    return SyntheticResult(**values_of_fields, similarity=metrics, risks=risks)


def _options_of_tables(inputs: Inputs, *, reference: bool) -> dict[str, JsonValue]:
    """Return what results record of the tables, and of secrets if some were named."""
    options: dict[str, JsonValue] = {
        "reference": reference,
        "synthetic": len(inputs.tables.synthetic),
    }
    if inputs.roles.secrets:
        options["secret_columns"] = list(inputs.roles.secrets)
    return options


def _audit_of_split(
    inputs: Inputs, scores: Mapping[str, FloatArray], request: Request, *, challenge: bool | None
) -> AuditResult:
    """Audit the random split, whose records are in the order of their content."""
    records = inputs.records
    order = inputs.order
    design = RandomSplit(records.member[order])
    if records.strata is not None:
        design = replace(design, strata=records.strata[order])
    if records.groups is not None:
        design = replace(design, groups=records.groups[order])
    words = _WORDS
    if challenge is not False:
        coordinates = inputs.coordinates_of_records()
        design = replace(design, features=coordinates.rows[order])
        words = replace(_WORDS, columns=coordinates.sources)
    most_bets = None
    if not challenge:
        most_bets = _MOST_BETS
    ordered_scores = {name: values[order] for name, values in scores.items()}
    return design.audit(ordered_scores, request, words, most_bets=most_bets)


def _scores_of_own_attacks(
    attacks: Mapping[str, ArrayInput], rows: ExampleOrder, size: int
) -> dict[str, FloatArray]:
    """Read scores of one's own, of members first."""
    scores = {}
    for name, values in attacks.items():
        label = f"scores of {name!r}"
        scores[name] = check_scores(rows.placed(values, label), label)
        check_length(scores[name], size, f"{label}, members first,")
    return scores


def _assumptions_of_generator(
    result: AuditResult, risks: Risks | None, *, named: bool, reference: bool
) -> tuple[Assumption, ...]:
    """Return the assumptions in the words of a generator."""
    replacements = {"audited records did not choose the model": _ONE_TABLE}
    if named:
        replacements["scores without membership"] = _LABEL_FREE
    assumptions = [
        replacements.get(assumption.name, assumption) for assumption in result.assumptions
    ]
    if risks is not None and any(risk.control_rate_upper is not None for _, risk in risks):
        assumptions.append(_INDEPENDENT)
    if reference:
        assumptions.append(_REFERENCE)
    return tuple(assumptions)


def _checked_attack_names(attacks: object) -> tuple[str, ...]:
    """Return the names of attacks that were asked for."""
    names = attacks
    if isinstance(attacks, str):  # an array compares with nothing
        names = (attacks,)
        if attacks == "default":
            names = DEFAULT
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputTypeError(
            f"attacks must be names, or a mapping to scores, got {type(attacks).__name__}"
        )
    if not names or not set(names) <= set(ATTACKS) or len(set(names)) < len(names):
        raise OptionError(
            f"attacks must be different names among {', '.join(ATTACKS)}, or default; got "
            f"{shown(attacks)}",
            option="attacks",
        )
    return tuple(names)


def _scores_or_noise(values: FloatArray, tables: Tables) -> FloatArray:
    """Return scores; where an attack says the same of all records, it guesses at random."""
    if values.min() < values.max():
        return values
    noise = Purpose.SYNTHETIC_NOISE.rng(tables.seed).permutation(len(tables.points))
    return tables.at_records(noise.astype(np.float64))
