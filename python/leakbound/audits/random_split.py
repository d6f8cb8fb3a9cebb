"""A model that was trained on a random part of the examples."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from leakbound._base.brief import brief
from leakbound._base.checks import check_length, choice
from leakbound._base.drawn import check_unit
from leakbound._base.labels import check_codes
from leakbound._base.messages import OF_AUDITS, Message, hinted_of_one_array
from leakbound._base.types import ArrayInput, GenericArray, MemberInput, Named, Strings
from leakbound._tally.tally import AnyTally, by_attack, recorded
from leakbound.audits import model_inputs, premises, road
from leakbound.audits.pair_tally import PairTally
from leakbound.audits.pairs import Aggregate, Pairs, Units, UnitScores
from leakbound.audits.split_challenge import challenge, challenged
from leakbound.audits.subgroups import audit_each, membership_of_single_examples
from leakbound.claims import Claim
from leakbound.claims.base import GuessWords
from leakbound.cuts.games import PairTallyGame
from leakbound.errors import OptionError
from leakbound.results import Assumption, AuditResult
from leakbound.results.wording import SPLIT, of_unit


@dataclass(frozen=True, kw_only=True)
class SplitWords:
    """What the split moved one by one, unless `unit` or groups are told, and what was scored.

    `columns` has the names of features, if they have any.
    """

    unit: str = "example"
    output: str = "trained model"
    columns: Strings = ()


_MODEL = SplitWords()
UNCHANGED = "Nothing was removed, added or changed in one part only after the split."
"""What every random split assumes of its parts."""
_UNITS = Message("pass {groups=}, the unit of each row")


@hinted_of_one_array(**OF_AUDITS)
@dataclass(frozen=True, eq=False)
class RandomSplit(road.Design[road.Listed | PairTally | Mapping[str, PairTally], AuditResult]):
    """The members are a random subset of the examples, as of a split into training and test set.

    The bound is on replacing one example by another.

    Parameters
    ----------
    member : array-like of shape (m,), or InclusionPlan
        Which examples were trained on, left out with a `PairTally`: booleans, {0, 1} or {-1, +1}.
    strata : array-like, shape (m,), optional
        The stratum of each example if the split was made within strata: numbers or text that
        do not depend on training.
    groups : array-like, shape (m,), optional
        The group of each example if whole groups were split, such as all rows of a user. The bound
        is then on replacing one of these.
    aggregate : {"mean", "max", "log_mean_exp", "sum"}
        The score of a group, from those of its rows.
    unit : str, optional
        One word for what the split moved, in sentences of the result: "hospital", "document". By
        default "user" with groups, and "example" without.
    features : array-like or data frame, shape (m, d), optional
        Features of the examples, words, dates and missing values included, to test whether the
        split looks random: two classifiers guess which of each pair is the member, and other
        tests count how often similar rows, or unusual rows, are in the same part. If a random split
        would show this with a probability below 0.001, over all tests together, the bound is
        withheld. For texts pass at least the number of tokens: both parts must have gone through
        the same code, never packed and in the same template.
    labels : array-like, shape (m,), optional
        With `features`, the label of each example, a class or a number: rows with surprising labels
        should not be in one part too often. If None, its stratum if there are strata.

    Notes
    -----
    Members and non-members are matched at random within strata, as many as possible. The seed
    decides the pairs. Which one of a pair is the member is then a fair coin, whatever the sizes of
    the parts. A guess is the sign of the difference of the two scores, and its size is the
    confidence, on a scale that does not depend on membership (z (1 + |z| / 4) of robust standard
    scores z). A difference of 0 is no guess for pure DP, and the toss of a coin for other claims.
    Guesses are tested from the largest difference on. `docs/theory/random-splits.md` has the proof.

    Examples
    --------
    Of 1,000 examples, 800 were drawn to train on:

    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.permutation(1000) < 800
    >>> scores = rng.normal(size=1000) + 2 * member
    >>> result = lb.audit(scores, lb.RandomSplit(member))
    >>> result.options["pairs"], result.options["relation"], result.bound > 1
    (200, 'replace', True)
    """

    name = "random_split"
    wording = SPLIT
    member: MemberInput | None = None
    strata: ArrayInput | None = field(default=None, kw_only=True)
    groups: ArrayInput | None = field(default=None, kw_only=True)
    aggregate: Aggregate = field(default="mean", kw_only=True)
    unit: str | None = field(default=None, kw_only=True)
    features: ArrayInput | None = field(default=None, kw_only=True)
    labels: ArrayInput | None = field(default=None, kw_only=True)

    __repr__ = brief

    def __post_init__(self) -> None:
        choice(self.aggregate, name="aggregate", allowed=Aggregate)
        if self.unit is not None:
            check_unit(self.unit)
        if self.labels is not None and self.features is None:
            raise OptionError(
                "labels are compared with what features predict: pass features too, or leave "
                "labels out"
            )

    def audit(
        self,
        scores: road.Listed | PairTally | Mapping[str, PairTally],
        request: road.Request,
        /,
        words: SplitWords = _MODEL,
        most_bets: int | None = None,
    ) -> AuditResult:
        """See `Design.audit`; `words` say what was split.

        Classifiers that challenge the split bet on `most_bets` pairs at most, if that is a number.
        """
        request = request.about_replacing()
        if isinstance(scores, Mapping | AnyTally):
            tallies = by_attack(scores, PairTally)
            if tallies is not None:
                return self._counted_pairs(tallies, request).audit(request, self)
        if self.member is None:
            message = (
                "member is missing: give {RandomSplit(member)}, or audit a PairTally, which has "
                "counted members"
            )
            raise OptionError(Message(message))
        if self.unit is not None or self.groups is not None:
            words = replace(words, unit=self.unit or "user")
        # 1. Scores, membership and what was split as one, in one order.
        aligned = road.read(scores, self.member, request.ids)
        member = aligned.member
        if self.groups is None:
            premises.refuse_repeated(member, what="membership", cure=_UNITS)
        codes = self._codes_of_rows(aligned)
        strata = codes.get("strata")
        units = Units.of(member, strata, groups=codes.get("groups"), aggregate=self.aggregate)
        scored = {
            name: UnitScores.of(units.scores(values))
            for name, values in aligned.attacks.scores.items()
        }
        # 2. Pairs of a member and a non-member: which is which was a fair coin.
        pairs = Pairs.drawn(units, request.seed)
        outcome = None
        if self.features is not None:
            features = self._features_in_order(aligned, request)
            label = "stratum"
            if self.labels is not None:
                label = "label"
            outcome = challenge(
                pairs,
                units,
                features.rows,
                request.seed,
                labels=codes.get("labels", strata),
                label=label,
                names=words.columns or features.names,
                most_bets=most_bets,
            )
        # 3. What the pairs prove, withheld where features show a split that was not random.
        examples = self._paired_examples(aligned, scored, units, pairs, words, request)
        result = examples.audit(request, self)
        if outcome is None:
            return result
        return challenged(result, replace(outcome, notes=features.notes))

    def audit_by(
        self,
        scores: road.Listed | PairTally | Mapping[str, PairTally],
        request: road.Request,
        by: ArrayInput,
        /,
    ) -> dict[Any, AuditResult]:
        """See `Design.audit_by`: pairs are within subgroups."""
        member = membership_of_single_examples(self.member, scores, PairTally)
        aligned = road.read(scores, member, request.ids)
        rowwise: Named = {**self._codes_of_rows(aligned)}
        if self.features is not None:
            rowwise["features"] = self._features_in_order(aligned, request)
        return audit_each(self, aligned, request, by, rowwise)

    def _codes_of_rows(self, aligned: road.AlignedScores) -> dict[str, GenericArray]:
        """Return strata, groups and labels, those that were given, in the order of the examples."""
        options = {"strata": self.strata, "groups": self.groups, "labels": self.labels}
        examples = aligned.member.size
        return {
            name: check_codes(aligned.order.placed(values, name), examples, name=name)
            for name, values in options.items()
            if values is not None
        }

    def _features_in_order(
        self, aligned: road.AlignedScores, request: road.Request
    ) -> model_inputs.Features:
        """Return features in the order of the examples."""
        assert self.features is not None
        features = model_inputs.features_in_order(self.features, aligned.order, request.seed)
        check_length(features.rows[:, 0], examples=aligned.member.size, name="features")
        return features

    def _paired_examples(
        self,
        aligned: road.AlignedScores,
        scored: dict[str, UnitScores],
        units: Units,
        pairs: Pairs,
        words: SplitWords,
        request: road.Request,
    ) -> road.Examples[UnitScores]:
        """Return the game of pairs, and what is said of the split."""
        attacks = aligned.attacks
        grounds = _grounds_of_split(
            request.claim,
            attacks=attacks,
            words=words,
            pairs=pairs.count,
            left_over=units.count - 2 * pairs.count,
            stratified=self.strata is not None,
            whole=self.groups is not None,
        )
        inputs: dict[str, GenericArray] = {**attacks.digested, "member": aligned.member}
        if self.strata is not None:
            grounds["options"]["strata"] = int(np.unique(units.stratum).size)
            inputs["strata"] = units.strata_of_rows
        if units.unit is not None:
            grounds["options"] |= {"groups": units.count, "aggregate": self.aggregate}
            inputs["groups"] = units.unit
        named = ""
        if words.unit not in {_MODEL.unit, "record"}:
            named = "pairs"
        filled: Mapping[str, str] = {}
        if words.output == _MODEL.output:
            filled = premises.filled(attacks.scores, aligned.member)
        return road.Examples(
            attacks=road.AnyAttacks(scored),
            game=lambda one: pairs.game(one.scores, request.seed, named, one.stretch),
            **grounds,
            filled=filled,
            inputs=inputs,
        )

    def _counted_pairs(
        self, tallies: dict[str, PairTally], request: road.Request
    ) -> road.Examples[PairTallyGame]:
        """Read pairs that are counted."""
        options_of_examples = {"ids": request.ids}
        for option in fields(self):
            options_of_examples[option.name] = getattr(self, option.name)
        for name, value in options_of_examples.items():
            if value is not None and name != "aggregate":
                raise OptionError(f"a PairTally has counts, not single examples: leave out {name}")
        games = {name: tally.game(request.seed) for name, tally in tallies.items()}
        scores = {name: tally.scores for name, tally in tallies.items()}
        attacks = road.AnyAttacks(games)
        options, inputs = recorded(tallies)
        first_tally = next(iter(tallies.values()))
        pairing = first_tally.pairing
        words = replace(_MODEL, unit=pairing.unit)
        grounds = _grounds_of_split(
            request.claim,
            attacks=attacks,
            words=words,
            pairs=first_tally.pairs,
            left_over=first_tally.left_over,
            stratified=pairing.stratum is not None,
            whole=pairing.unit != "example",
            seed="the hash",
        )
        grounds["options"] |= options
        grounds["assumptions"] += (Assumption(*first_tally.assumed, "declared"),)
        uncounted_buckets = pairing.buckets - first_tally.counted_buckets
        if uncounted_buckets:
            warning = (
                f"{uncounted_buckets:,} of {pairing.buckets:,} buckets were not counted: no "
                f"{pairing.unit} is in them, or a part was not added"
            )
            grounds["warnings"] += (warning,)
        return road.Examples(
            attacks=attacks,
            game=lambda game: game,
            **grounds,
            filled=premises.filled_tallies(scores),
            inputs=inputs,
        )


def _grounds_of_split(
    claim: Claim,
    attacks: road.AnyAttacks[Any],
    words: SplitWords,
    *,
    pairs: int,
    left_over: int,
    stratified: bool,
    whole: bool,
    seed: str = "the seed",
) -> Named:
    """Return what is said of a split, of strata or of whole users: of so many pairs."""
    unit = words.unit
    wording = of_unit(SPLIT, unit)
    units = wording.units
    within = ""
    if stratified:
        within = ", within each stratum"
    at_delta = ""
    if claim.delta:
        at_delta = f" δ is {claim.delta:g}."
    moved = ""
    if whole:
        moved = f", with all rows of a {unit} in one part"
    assumptions = (
        Assumption(
            name="random split",
            statement=f"The {units} that were trained on are a uniformly random subset, of a fixed "
            f"size, of these {units}{within}{moved}. The {units} are fixed. The random parts are "
            f"the split, the pairing (by {seed}) and training. {UNCHANGED}",
            status="declared",
        ),
        Assumption(
            name=f"audited {units} did not choose the model",
            statement=f"Training did not use the held-out {units}: not for early stopping, to "
            "select a checkpoint, or to tune an option. Validation data is another part of the "
            "data.",
            status="declared",
        ),
        Assumption(
            name=f"replace one {unit}",
            statement=f"{claim.subject} refers to replacing one {unit} by another, including "
            f"audited ones{within}. Training that is ε-DP under adding or removing one {unit} may "
            f"reach 2ε here.{at_delta}",
            status="declared",
        ),
        *premises.assumptions_on_scores(
            claim,
            attacks.others,
            words.output,
            units,
            f"Pairs were matched at random, by {seed}. Which pairs are guessed first depends only "
            "on score differences.",
        ),
    )
    return {
        "theorem": claim.theorem(words_of_guesses(unit, words.output)),
        "assumptions": assumptions,
        "options": {
            "relation": "replace",
            "unit": unit,
            "pairs": pairs,
            "left_over": left_over,
            "transform": "stretched",
        },
        "wording": wording,
        "warnings": premises.delta_warnings(claim.delta, pairs, unit),
    }


def words_of_guesses(unit: str, output: str) -> GuessWords:
    """Return the words of a theorem for guesses about pairs of such units."""
    return GuessWords(
        given=f"the {output} and the coins of earlier guesses",
        others="the coins of the other pairs",
        replacing=f" replacing one {unit}",
        source=" (as Steinke, Nasr and Jagielski 2023, Proposition 5.1, with pairs in place of "
        "examples)",
        adapted=", with pairs in place of examples",
        before="Members and non-members of a random split are matched at random. Given the pairs "
        f"and the rest, a separate fair coin decides which {unit} of each pair was trained on. "
        f"Turning this coin over replaces one training {unit} by another. ",
    )
