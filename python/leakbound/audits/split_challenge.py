"""A challenge of a random split: what tells members from non-members without scores.

Each view of the records has its part of the p-value: two classifiers that bet on which of each pair
is the member, pairs of records that resemble each other, how usual a record is, and how surprising
its label is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from leakbound._base import shares
from leakbound._base.imports import needs
from leakbound._base.messages import Message
from leakbound._base.records import Lazy
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, GenericArray, Named, Strings
from leakbound.audits.pairs import Pairs, Units
from leakbound.propensity import falsification, likeness, surprise, views
from leakbound.results import AuditResult
from leakbound.stats import poisson_binomial_tail_offsets

CONTRADICTED_BELOW = 1e-3
"""p-value below which a split counts as not random: a false alarm withholds an honest bound."""
_PARTS = 5
# Classifiers that bet: as many as there are default sceptics.
_CHALLENGERS = 2
_ASKED = "was something removed, added or made in one part after the split?"
_CLEANED = "clean first, then split, train and audit again"
_GROUPED = "; if the split kept rows together, such as those of one person, pass their groups"
_WRITTEN = Message(
    "if the most telling column was written after the split, such as an index or a position in "
    "a file, drop it and audit again; if members differ from non-members, use {ZeroRun}"
)


@dataclass(frozen=True)
class Finding:
    """What one view saw: its p-value, corrected for the other views, and the telling numbers.

    `seen` is how many of `of` were counted, where a random split gives `expected` on average.
    """

    view: str
    p_value: float
    seen: int
    of: int
    expected: float
    words: str
    advice: str = ""
    bets: bool = False
    """Whether classifiers bet on membership: the blind baseline."""

    @property
    def contradicts(self) -> bool:
        """Whether a random split would hardly have shown this."""
        return self.p_value < CONTRADICTED_BELOW


@dataclass(frozen=True)
class Challenge:
    """What all views of a split came to."""

    findings: tuple[Finding, ...]
    notes: Strings = ()
    """What a reader should know of how features were read."""

    @property
    def most_telling(self) -> Finding:
        """The view with the smallest p-value."""
        return min(self.findings, key=lambda one: one.p_value)

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
        found = dict[str, Finding]()
        for one in sorted(self.findings, key=lambda one: one.p_value):
            if one.contradicts:
                found.setdefault(one.advice, one)
        return tuple(found.values())

    @property
    def options(self) -> Named:
        """The numbers, as results keep them."""
        best = self.most_telling
        numbers = {name: getattr(best, name) for name in ("p_value", "view", "seen", "of")}
        p_values = {one.view: one.p_value for one in self.findings}
        blind = [
            {"classifier": one.view, "right": one.seen, "of": one.of, "p_value": one.p_value}
            for one in self.findings
            if one.bets
        ]
        found = {**numbers, "expected": best.expected, "p_values": p_values}
        if blind:
            found["blind_baseline"] = blind[0]
        if self.notes:
            found["notes"] = list(self.notes)
        return found


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
    split = views.Split.of(units.member, units.stratum, rng)
    points = likeness.ranked(features)
    rows = "groups of rows"
    advice = _CLEANED
    if units.unit is None:
        rows = "rows"
        advice += _GROUPED
    usual = _of_units(units, likeness.usual(features, names))
    findings = [
        _close_pairs(units.features(points), split, rng, rows),
        _usual_rows(usual, split, rng, rows),
    ]
    surprises = None
    if labels is not None:
        surprises = surprise.surprising(features, labels, rng)
    if surprises is not None:
        findings.append(_labels(_of_units(units, surprises), split, rng, f"{rows} whose {label}"))
    findings = [replace(one, advice=advice) for one in findings]
    if _can_contradict(len(range(pairs.count)[:most_bets])):
        findings.append(bets(pairs, units.features(features), seed, names, most_bets))
    return Challenge(tuple(findings))


def _of_units(units: Units, values: FloatArray) -> FloatArray:
    """Return the means of the rows of each unit, NaN where a row has no value."""
    if units.unit is None:
        return values
    unknown = np.isnan(values)
    column = np.where(unknown, 0.0, values)[:, None]
    means = units.features(column)[:, 0]
    lacking = np.bincount(units.unit, unknown) > 0
    return np.where(lacking, np.nan, means)


def _close_pairs(
    points: FloatArray, split: views.Split, rng: np.random.Generator, rows: str
) -> Finding:
    """See whether records that resemble each other lie in one part."""
    count = views.across(likeness.closest(points, split, rng), split, rng)
    p_value = _corrected(shares.CLOSE_PAIRS, count)
    words = (
        f"{rows} that resemble each other lie in one part more often than a random split allows: "
        f"{_ASKED} Of the {count.of:,} closest pairs, {count.seen:,} have one in each part, "
        f"where {_about(count.expected)} are expected (p = {p_value:.2g})"
    )
    return Finding("closest pairs", p_value, count.seen, count.of, count.expected, words)


def _usual_rows(
    values: FloatArray, split: views.Split, rng: np.random.Generator, rows: str
) -> Finding:
    """See whether the most or the least usual records lie in one part."""
    count = views.at_ends(likeness.in_order(values, rng), split, rng)
    p_value = _corrected(shares.USUAL_ROWS, count)
    return _at_end("usual rows", p_value, count, f"{count.end} usual {rows}")


def _labels(
    values: FloatArray, split: views.Split, rng: np.random.Generator, labelled: str
) -> Finding:
    """See whether records whose labels are surprising, or not at all, lie in one part."""
    asked = np.flatnonzero(~np.isnan(values))
    count = views.at_ends(asked[likeness.in_order(values[asked], rng)], split, rng)
    p_value = _corrected(shares.LABELS, count)
    rows = f"{labelled} is {count.end} surprising"
    return _at_end("surprising labels", p_value, count, rows)


def _corrected(share: shares.Share, count: views.Count) -> float:
    """Return the p-value of a view, corrected for the other views."""
    return min(1.0, share.price() * count.p_value)


def _at_end(view: str, p_value: float, count: views.Count, rows: str) -> Finding:
    """Return what was counted at an end of an order."""
    often = "less"
    if count.seen > count.expected:
        often = "more"
    words = (
        f"the {rows} are in the training set {often} often than a random split allows: {_ASKED} "
        f"Of these {count.of:,}, {count.seen:,} are in the training set, where "
        f"{_about(count.expected)} are expected (p = {p_value:.2g})"
    )
    return Finding(view, p_value, count.seen, count.of, count.expected, words)


def _about(expected: float) -> str:
    """Return an expected number in words, with all digits of a large one."""
    if expected >= 100:
        return f"{expected:,.0f}"
    return f"{expected:.3g}"


def _can_contradict(count: int) -> bool:
    """Return whether bets on so many pairs, all of them won, would contradict a split."""
    parts = np.array_split(np.arange(count), _PARTS)[1:]
    p_value = falsification.fisher([-part.size * np.log(2) for part in parts])
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
    count = order.size
    table = np.concatenate([features[pairs.members[order]], features[pairs.others[order]]])
    labels = np.arange(2 * count) < count
    first_is_member = pairs.first[order]
    # 2. Each classifier bets on a part by what it learnt of the parts before.
    with threadpool_limits(1):  # so few rows keep other threads waiting
        results = {
            name: _won(model, table, labels, first_is_member, seed)
            for name, model in falsification.default_sceptics().items()
        }
    # 3. The best counts, at a price for having had several (Bonferroni).
    best = min(results, key=lambda name: results[name][0])
    p_value, correct, guesses = results[best]
    p_value = min(1.0, shares.CHALLENGERS.price(len(results)) * p_value)
    words = (
        "the split does not look random: without the model, the member is identified in "
        f"{correct:,} of {guesses:,} pairs, by {best} (p = {p_value:.2g}); the most telling column "
        f"is {_best_column(table, labels, names)}"
    )
    return Finding(best, p_value, correct, guesses, guesses / 2, words, _WRITTEN, bets=True)


def _won(
    model: object, table: FloatArray, labels: BoolArray, first_is_member: BoolArray, seed: int
) -> tuple[float, int, int]:
    """Return the p-value of the bets of a classifier, how many it won, and how many it made.

    It learns from earlier pairs only. Guesses that later pairs have a part in, as out of bag or
    across folds, depend on each other: p-values below 0.001 are six times as frequent then.
    """
    count = first_is_member.size
    parts = np.array_split(np.arange(count), _PARTS)
    tails = list[float]()
    correct = 0
    guesses = 0
    for k in range(1, _PARTS):
        past = np.concatenate(parts[:k])
        tested = parts[k]
        learnt_from = np.concatenate([past, past + count])
        rows = np.concatenate([tested, tested + count])
        belief = falsification.beliefs(model, table, labels, learnt_from, rows, seed, k)
        if belief is None:
            continue
        apart = belief[: tested.size] - belief[tested.size :]
        first = first_is_member[tested]
        surest, guess = falsification.bets(np.zeros(tested.size), np.where(first, apart, -apart))
        right = int(((guess > 0) == first[surest]).sum())
        if surest.size:
            fair = np.zeros(surest.size)
            tails.append(float(poisson_binomial_tail_offsets(right, fair, 0.0, log=True)))
        correct += right
        guesses += surest.size
    p_value = 1.0
    if tails:
        p_value = falsification.fisher(tails)
    return p_value, correct, guesses


def _best_column(table: FloatArray, labels: BoolArray, names: Sequence[str]) -> str:
    """Return the most telling column, by the largest advantage of any threshold."""
    advantages = []
    for column in table.T:
        order = np.argsort(column, kind="stable")
        ends = np.flatnonzero(np.diff(column[order], append=np.inf))  # of blocks of equal values
        gaps = np.cumsum(np.where(labels[order], 1, -1))[ends]
        widest = float(np.abs(gaps).max())
        advantages.append(2 * widest / labels.size)
    best = int(np.argmax(advantages))
    name = f"number {best} of the features, counted from 0"
    if names and names[best].strip():
        name = repr(names[best])
    elif names:
        name = f"number {best}, counted from 0, which has no name"
    return f"{name} (advantage {advantages[best]:.2f})"


def challenged(result: AuditResult, found: Challenge) -> AuditResult:
    """Return a result that says what a challenge came to, its bound withheld if it contradicts.

    What is withheld has no other warnings: they are about the size of the bound.
    """
    result = replace(result, options=result.options | {"challenge": found.options})
    split, *rest = result.assumptions
    if not found.contradicted:
        text = f"{split.statement} Features alone do not contradict it (p = {found.p_value:.2g})."
        if found.notes:
            text += f" Of the features, {'; '.join(found.notes)}."
        return replace(result, assumptions=(replace(split, statement=text), *rest))
    curve = result._curve  # noqa: SLF001 (drawn when asked for)
    words = "; ".join(one.words for one in found.contradictions)
    advice = Message.joined(dict.fromkeys(one.advice for one in found.contradictions))
    split = replace(split, statement=f"{split.statement} But {words}.", status="contradicted")
    said = "{words}: the split was not random, and the bound is withheld; {advice}"
    warning = Message(said, words=words, advice=advice)
    return replace(
        result,
        bound=0.0,
        reason="it is withheld: the records contradict a random split",
        rejected=None,
        warnings=(warning,),
        assumptions=(split, *rest),
        _curve=Lazy(lambda: replace(curve.value, bound=np.zeros(curve.value.bound.size))),
    )
