"""A challenge of a random split: what tells members from non-members without scores.

Each view of the records has its part of the p-value: two classifiers that bet on which of each pair
is the member, pairs of records that resemble each other, how usual a record is, and how surprising
its label is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from leakbound._base import shares
from leakbound._base.imports import needs
from leakbound._base.messages import Message
from leakbound._base.records import Lazy
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, GenericArray, Named, Strings
from leakbound.audits.pairs import Pairs, Units
from leakbound.propensity import falsification, likeness, split_views
from leakbound.results import AuditResult
from leakbound.stats import poisson_binomial_tail_offsets

CONTRADICTED_BELOW = 1e-3
"""p-value below which a split counts as not random: a false alarm withholds an honest bound."""
_PARTS = 5
# Classifiers that bet: as many as there are default sceptics.
_CHALLENGERS = 2
_QUESTION = "was something removed, added or made in one part after the split?"
_ADVICE_TO_CLEAN = "clean first, then split, train and audit again"
_ADVICE_ON_GROUPS = (
    "; if the split kept rows together, such as those of one person, pass their groups"
)
_ADVICE_ON_COLUMN = Message(
    "if the most telling column was written after the split, such as an index or a position in "
    "a file, drop it and audit again; if members differ from non-members, use {ZeroRun}"
)


@dataclass(frozen=True)
class Finding:
    """What one view saw: its p-value, corrected for the other views, and the telling numbers.

    `observed` is how many of `total` were counted, where a random split gives `expected` on
    average.
    """

    view: str
    p_value: float
    observed: int
    total: int
    expected: float
    words: str
    advice: str = ""
    is_bet: bool = False
    """Whether classifiers bet on membership: the blind baseline."""

    @property
    def contradicts(self) -> bool:
        """Whether a random split would hardly have shown this."""
        return self.p_value < CONTRADICTED_BELOW


class BetsOfClassifier(NamedTuple):
    """Bets of one classifier: their p-value, how many it won, and how many it made."""

    p_value: float
    correct: int
    guesses: int


@dataclass(frozen=True)
class Challenge:
    """What all views of a split came to."""

    findings: tuple[Finding, ...]
    notes: Strings = ()
    """What a reader should know of how features were read."""

    @property
    def most_telling_first(self) -> list[Finding]:
        """What all views saw, by their p-values."""
        return sorted(self.findings, key=lambda finding: finding.p_value)

    @property
    def most_telling(self) -> Finding:
        """The view with the smallest p-value."""
        return self.most_telling_first[0]

    @property
    def p_value(self) -> float:
        """Upper bound on the probability of a p-value as small, of any view, in a random split."""
        return self.most_telling.p_value

    @property
    def contradicted(self) -> bool:
        """Whether any view contradicts the split."""
        return self.most_telling.contradicts

    @property
    def contradictions(self) -> tuple[Finding, ...]:
        """What a warning is about: of the views with the same advice the most telling one."""
        finding_by_advice = dict[str, Finding]()
        for finding in self.most_telling_first:
            if finding.contradicts:
                finding_by_advice.setdefault(finding.advice, finding)
        return tuple(finding_by_advice.values())

    @property
    def options(self) -> Named:
        """The numbers, as results keep them."""
        most_telling = self.most_telling
        options: Named = {
            "p_value": most_telling.p_value,
            "view": most_telling.view,
            "seen": most_telling.observed,
            "of": most_telling.total,
            "expected": most_telling.expected,
            "p_values": {finding.view: finding.p_value for finding in self.findings},
        }
        for finding in self.findings:
            if finding.is_bet:
                options["blind_baseline"] = {
                    "classifier": finding.view,
                    "right": finding.observed,
                    "of": finding.total,
                    "p_value": finding.p_value,
                }
        if self.notes:
            options["notes"] = list(self.notes)
        return options


def challenge(
    pairs: Pairs,
    units: Units,
    features: FloatArray,
    seed: int,
    *,
    labels: GenericArray | None = None,
    label: str = "label",
    names: Sequence[str] = (),
    most_bets: int | None = None,
) -> Challenge:
    """Look at a split from all sides, without scores.

    Parameters
    ----------
    pairs, units : Pairs and Units
        The split, and how its units were matched.
    features : ndarray, shape (rows, columns)
        Features of the rows; those of a unit are the means of its rows.
    seed : int
        Of what is drawn.
    labels : ndarray, optional
        A label for each row.
    label : str
        What a label is called.
    names : sequence of str
        Names of the columns; neighbours with one name are one column, such as of words.
    most_bets : int, optional
        Pairs that classifiers bet on, at most; which ones, chance decides.
    """
    rng = Purpose.SPLIT_VIEWS.rng(seed)
    split = split_views.Split.of(units.member, strata=units.stratum, rng=rng)
    ranked_features = likeness.ranked(features)
    rows = "groups of rows"
    advice = _ADVICE_TO_CLEAN
    if units.unit is None:
        rows = "rows"
        advice += _ADVICE_ON_GROUPS
    log_likelihoods = _means_of_units(units, likeness.usual(features, names))
    findings = [
        _closest_pairs(units.features(ranked_features), split, rng, rows),
        _usual_rows(log_likelihoods, split, rng, rows),
    ]
    surprises = None
    if labels is not None:
        surprises = likeness.surprising(features, labels, rng)
    if surprises is not None:
        surprises = _means_of_units(units, surprises)
        findings.append(_surprising_labels(surprises, split, rng, f"{rows} whose {label}"))
    findings = [replace(finding, advice=advice) for finding in findings]
    pairs_to_bet_on = len(range(pairs.count)[:most_bets])
    if _can_bets_contradict(pairs_to_bet_on):
        features_of_units = units.features(features)
        findings.append(bets(pairs, features_of_units, seed, names, most_bets))
    return Challenge(tuple(findings))


def _means_of_units(units: Units, values: FloatArray) -> FloatArray:
    """Return the means of the rows of each unit, NaN where a row has no value."""
    if units.unit is None:
        return values
    is_unknown = np.isnan(values)
    known_or_zero = np.where(is_unknown, 0.0, values)
    means = units.features(known_or_zero[:, None])[:, 0]
    unknown_rows = np.bincount(units.unit, weights=is_unknown)
    return np.where(unknown_rows > 0, np.nan, means)


def _closest_pairs(
    ranked_features: FloatArray, split: split_views.Split, rng: np.random.Generator, rows: str
) -> Finding:
    """See whether records that resemble each other lie in one part."""
    closest = likeness.closest(ranked_features, split, rng)
    count = split_views.across(closest, split, rng)
    words = (
        f"{rows} that resemble each other lie in one part more often than a random split allows: "
        f"{_QUESTION} Of the {count.of:,} closest pairs, {count.seen:,} have one in each part"
    )
    return _finding_of_count("closest pairs", shares.CLOSE_PAIRS, count, words)


def _usual_rows(
    log_likelihoods: FloatArray, split: split_views.Split, rng: np.random.Generator, rows: str
) -> Finding:
    """See whether the most or the least usual records lie in one part."""
    order = likeness.in_order(log_likelihoods, rng)
    count = split_views.at_ends(order, split, rng)
    words = _words_of_end(count, f"{count.end} usual {rows}")
    return _finding_of_count("usual rows", shares.USUAL_ROWS, count, words)


def _surprising_labels(
    surprises: FloatArray, split: split_views.Split, rng: np.random.Generator, labelled_rows: str
) -> Finding:
    """See whether records whose labels are surprising, or not at all, lie in one part."""
    rows_with_surprise = np.flatnonzero(~np.isnan(surprises))
    order = likeness.in_order(surprises[rows_with_surprise], rng)
    count = split_views.at_ends(rows_with_surprise[order], split, rng)
    words = _words_of_end(count, f"{labelled_rows} is {count.end} surprising")
    return _finding_of_count("surprising labels", shares.LABELS, count, words)


def _words_of_end(count: split_views.Count, rows: str) -> str:
    """Say how many of the rows at an end of an order are in the training set."""
    frequency = "less"
    if count.seen > count.expected:
        frequency = "more"
    return (
        f"the {rows} are in the training set {frequency} often than a random split allows: "
        f"{_QUESTION} Of these {count.of:,}, {count.seen:,} are in the training set"
    )


def _finding_of_count(
    view: str, share: shares.Share, count: split_views.Count, words: str
) -> Finding:
    """Return what a view counted, its p-value corrected for the other views."""
    p_value = min(1.0, share.price() * count.p_value)
    return Finding(
        view=view,
        p_value=p_value,
        observed=count.seen,
        total=count.of,
        expected=count.expected,
        words=f"{words}, where {_expected_in_words(count.expected)} are expected "
        f"(p = {p_value:.2g})",
    )


def _expected_in_words(expected: float) -> str:
    """Return an expected number in words, with all digits of a large one."""
    if expected >= 100:
        return f"{expected:,.0f}"
    return f"{expected:.3g}"


def _can_bets_contradict(pairs: int) -> bool:
    """Return whether bets on so many pairs, all of them won, would contradict a split."""
    parts = np.array_split(np.arange(pairs), _PARTS)
    tested_parts = parts[1:]
    log_tails = [-part.size * np.log(2) for part in tested_parts]
    p_value = falsification.fisher(log_tails)
    return bool(shares.CHALLENGERS.price(_CHALLENGERS) * p_value < CONTRADICTED_BELOW)


def bets(
    pairs: Pairs,
    features: FloatArray,
    seed: int,
    names: Sequence[str] = (),
    most: int | None = None,
) -> Finding:
    """Bet on which of each pair is the member, from features of the units.

    Pairs are put in random order and cut into five parts. From the second on, a classifier learns
    membership from the earlier parts, and guesses where it is surest. Given the pairs and all
    earlier coins, a random split makes each guess right with probability 1/2; so minus the sum of
    the logarithms of the four tails is at most a Gamma(4) variable in distribution (Fisher).
    Columns of `features` go by `names`, or by their number.
    """
    with needs("ml", "a challenge of the split"):
        from threadpoolctl import threadpool_limits
    # 1. Members first, then the others in the same order; parts of pairs in a random order.
    order = Purpose.SPLIT_PARTS.rng(seed).permutation(pairs.count)[:most]
    features_of_members = features[pairs.members[order]]
    features_of_others = features[pairs.others[order]]
    table = np.concatenate([features_of_members, features_of_others])
    is_member = np.arange(2 * order.size) < order.size
    first_is_member = pairs.first[order]
    # 2. Each classifier bets on a part by what it learnt of the parts before.
    bets_of_classifiers = dict[str, BetsOfClassifier]()
    with threadpool_limits(1):  # so few rows keep other threads waiting
        for name, classifier in falsification.default_sceptics().items():
            bets_of_classifiers[name] = _bets_of_classifier(
                classifier, table, is_member, first_is_member, seed
            )
    # 3. The best counts, at a price for having had several (Bonferroni).
    best = min(bets_of_classifiers, key=lambda name: bets_of_classifiers[name].p_value)
    p_value, correct, guesses = bets_of_classifiers[best]
    p_value = min(1.0, shares.CHALLENGERS.price(len(bets_of_classifiers)) * p_value)
    words = (
        "the split does not look random: without the model, the member is identified in "
        f"{correct:,} of {guesses:,} pairs, by {best} (p = {p_value:.2g}); the most telling column "
        f"is {_most_telling_column(table, is_member, names)}"
    )
    return Finding(
        view=best,
        p_value=p_value,
        observed=correct,
        total=guesses,
        expected=guesses / 2,
        words=words,
        advice=_ADVICE_ON_COLUMN,
        is_bet=True,
    )


def _bets_of_classifier(
    classifier: object,
    table: FloatArray,
    is_member: BoolArray,
    first_is_member: BoolArray,
    seed: int,
) -> BetsOfClassifier:
    """Return the p-value of the bets of a classifier, how many it won, and how many it made.

    It learns from earlier pairs only. Guesses that later pairs have a part in, as out of bag or
    across folds, depend on each other: p-values below 0.001 are six times as frequent then.
    """
    pairs = first_is_member.size
    parts = np.array_split(np.arange(pairs), _PARTS)
    log_tails = list[float]()
    correct = 0
    guesses = 0
    for k in range(1, _PARTS):
        earlier_pairs = np.concatenate(parts[:k])
        tested_pairs = parts[k]
        log_odds = falsification.beliefs(
            classifier,
            table,
            is_member,
            np.concatenate([earlier_pairs, earlier_pairs + pairs]),
            np.concatenate([tested_pairs, tested_pairs + pairs]),
            seed,
            k,
        )
        if log_odds is None:
            continue
        log_odds_of_members = log_odds[: tested_pairs.size]
        log_odds_of_others = log_odds[tested_pairs.size :]
        differences = log_odds_of_members - log_odds_of_others
        member_is_first = first_is_member[tested_pairs]
        first_minus_second = np.where(member_is_first, differences, -differences)
        fair_coins = np.zeros(tested_pairs.size)
        surest, guess = falsification.bets(fair_coins, first_minus_second)
        correct_in_part = int(((guess > 0) == member_is_first[surest]).sum())
        if surest.size:
            log_tail = poisson_binomial_tail_offsets(
                correct_in_part, fair_coins[surest], 0.0, log=True
            )
            log_tails.append(float(log_tail))
        correct += correct_in_part
        guesses += surest.size
    p_value = 1.0
    if log_tails:
        p_value = falsification.fisher(log_tails)
    return BetsOfClassifier(p_value, correct, guesses)


def _most_telling_column(table: FloatArray, is_member: BoolArray, names: Sequence[str]) -> str:
    """Return the most telling column, by the largest advantage of any threshold."""
    advantages = list[float]()
    for column in table.T:
        order = np.argsort(column, kind="stable")
        block_ends = np.flatnonzero(np.diff(column[order], append=np.inf))  # of equal values
        members_minus_others = np.cumsum(np.where(is_member[order], 1, -1))
        widest_gap = float(np.abs(members_minus_others[block_ends]).max())
        advantages.append(2 * widest_gap / is_member.size)
    best = int(np.argmax(advantages))
    column_name = f"number {best} of the features, counted from 0"
    if names and names[best].strip():
        column_name = repr(names[best])
    elif names:
        column_name = f"number {best}, counted from 0, which has no name"
    return f"{column_name} (advantage {advantages[best]:.2f})"


def challenged(result: AuditResult, outcome: Challenge) -> AuditResult:
    """Return a result that says what a challenge came to, its bound withheld if it contradicts.

    What is withheld has no other warnings: they are about the size of the bound.
    """
    result = replace(result, options=result.options | {"challenge": outcome.options})
    random_split, *other_assumptions = result.assumptions
    if not outcome.contradicted:
        statement = (
            f"{random_split.statement} Features alone do not contradict it "
            f"(p = {outcome.p_value:.2g})."
        )
        if outcome.notes:
            statement += f" Of the features, {'; '.join(outcome.notes)}."
        random_split = replace(random_split, statement=statement)
        return replace(result, assumptions=(random_split, *other_assumptions))
    curve = result._curve  # noqa: SLF001 (drawn when asked for)
    contradictions = outcome.contradictions
    words = "; ".join(finding.words for finding in contradictions)
    advice = Message.joined(dict.fromkeys(finding.advice for finding in contradictions))
    random_split = replace(
        random_split,
        statement=f"{random_split.statement} But {words}.",
        status="contradicted",
    )
    warning = Message(
        "{words}: the split was not random, and the bound is withheld; {advice}",
        words=words,
        advice=advice,
    )
    return replace(
        result,
        bound=0.0,
        reason="it is withheld: the records contradict a random split",
        rejected=None,
        warnings=(warning,),
        assumptions=(random_split, *other_assumptions),
        _curve=Lazy(lambda: replace(curve.value, bound=np.zeros(curve.value.bound.size))),
    )
