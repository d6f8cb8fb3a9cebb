"""One training run in which an independent coin decided on each example."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.brief import brief
from leakbound._base.checks import check_ids, check_length, choice, numbers, real, vector
from leakbound._base.drawn import copies_of, unit_of
from leakbound._base.labels import by_first_row, check_codes
from leakbound._base.messages import OF_AUDITS, Message, hinted_of_one_array
from leakbound._base.types import (
    ArrayInput,
    BoolArray,
    FloatArray,
    GenericArray,
    HasMember,
    JsonObject,
    JsonValue,
    MemberInput,
    Named,
)
from leakbound._tally.tally import AnyTally, Tally, by_attack, recorded
from leakbound.audits import grouping, premises, road
from leakbound.audits.member_count import MemberCount
from leakbound.audits.pairs import Aggregate, Units, torn_group
from leakbound.audits.policies.biased_coins import prior_in_options
from leakbound.audits.subgroups import audit_each, membership_of_single_examples
from leakbound.claims import Claim, PureDP
from leakbound.claims.base import GuessWords
from leakbound.cuts import ScoreGame, TallyGame
from leakbound.errors import DesignError, OptionError
from leakbound.results import Assumption, AuditResult
from leakbound.results.one_run import Exposed, exposed
from leakbound.results.wording import COINS, Wording, of_unit

_HALF = 0.5
"""The probability of a fair coin."""
_UNITS = Message(
    "pass {groups=}, the unit of each row (a user; or the canary, if the rows are of several runs "
    "with the same coins), and their scores are put together"
)
_PRIOR_THEOREM = (
    "Given the trained model and the coins of earlier guesses, each guess is right with odds of "
    "at most e^ε times those of its {unit}'s coin if training is ε-DP (as Steinke, Nasr and "
    "Jagielski 2023, Proposition 5.1, for a coin that is not fair). "
)


@hinted_of_one_array(**OF_AUDITS)
@dataclass(frozen=True, eq=False)
class Coins(road.Design[road.Listed | Tally | Mapping[str, Tally], AuditResult]):
    """An independent fair coin decided for each of m examples whether the model was trained on it.

    Parameters
    ----------
    member : array-like of shape (m,), or InclusionPlan
        Results of the coins, left out with a tally: booleans, {0, 1} or {-1, +1}. A plan, or a
        pandas Series, is joined with scores that have ids; with `groups`, a plan of these by their
        names.
    prior : float or array-like, shape (m,)
        Probability of each coin to include, in (0, 1), in the order of the scores or with ids to
        join by. Values other than 1/2 need `PureDP` with `KLScan` or `Fixed`; ties are then broken
        by the seed.
    copies : int, optional
        How often each member was inserted into the training data; a plan knows it, and otherwise it
        is 1. Scores are then about all copies at once, and the bound is converted to one record by
        group privacy: for `PureDP`, `ApproxDP` and `GaussianDP` without failures. The δ of
        `ApproxDP` is that of all copies: see `leakbound.claims.grouped`.
    groups : array-like, shape (m,), optional
        The group of each row, such as its user, if one coin decided on all rows of a group: these
        have one value of `member`. The bound is then on adding or removing a group with all its
        rows, and m counts groups.
    aggregate : {"mean", "max", "log_mean_exp", "sum"}
        The score of a group, from those of its rows.
    unit : str, optional
        One word for what a coin decided on, in sentences of the result: "hospital", "document". By
        default that of a plan, otherwise "user" with groups and "example" without.

    References
    ----------
    T. Steinke, M. Nasr and M. Jagielski, "Privacy auditing with one (1) training run", 2023
    (arXiv 2305.08846); S. Mahloujifar, L. Melis and K. Chaudhuri, "Auditing f-differential privacy
    in one run", 2025 (arXiv 2410.22235).

    Examples
    --------
    Of 1,000 examples, each was included with probability 0.8:

    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(1000) < 0.8
    >>> scores = rng.normal(size=1000) + 2 * member
    >>> lb.audit(scores, lb.Coins(member, prior=0.8)).bound > 0.5
    True

    A coin for each of 200 users, who have five records each:

    >>> user = np.arange(1000) // 5
    >>> member = (rng.random(200) < 0.5)[user]
    >>> scores = rng.normal(size=1000) + 2 * member
    >>> lb.audit(scores, lb.Coins(member, groups=user)).m
    200
    """

    name = "coins"
    sides = ("auto", "both", "member")
    member: MemberInput | None = None
    _: KW_ONLY
    prior: float | ArrayInput = 0.5
    copies: int | None = None
    groups: ArrayInput | None = None
    aggregate: Aggregate = "mean"
    unit: str | None = None

    __repr__ = brief

    def __post_init__(self) -> None:
        choice(self.aggregate, name="aggregate", allowed=Aggregate)
        unit = unit_of(self.member, self.unit, grouped=self.groups is not None)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "copies", copies_of(self.member, self.copies))

    @property
    def wording(self) -> Wording:
        """See `Design.wording`."""
        return of_unit(COINS, self.unit or COINS.unit)

    def audit(
        self, scores: road.Listed | Tally | Mapping[str, Tally], request: road.Request, /
    ) -> AuditResult:
        """See `Design.audit`."""
        if isinstance(scores, Mapping | AnyTally):
            tallies = by_attack(scores, Tally)
            if tallies is not None:
                return self._counted_examples(tallies, request).audit(request, self)
        return self.listed(scores, request).audit(request, self)

    def audit_by(
        self,
        scores: road.Listed | Tally | Mapping[str, Tally],
        request: road.Request,
        by: ArrayInput,
        /,
    ) -> dict[Any, AuditResult]:
        """See `Design.audit_by`."""
        single_members = membership_of_single_examples(self.member, scores, Tally)
        order, attacks, member, groups = self._read_rows_of_coins(scores, single_members, request)
        rowwise: Named = {"groups": groups}
        if not self._has_single_prior:
            rowwise["prior"] = self._prior_of_rows(order, member.size)
        aligned_scores = road.AlignedScores(order, attacks, member)
        return audit_each(self, aligned_scores, request, by, rowwise)

    def listed(self, scores: Any, request: road.Request) -> road.Examples[FloatArray]:
        """Read scores and membership in one order."""
        if self.member is None:
            message = "member is missing: give {Coins(member)}, or audit a Tally, which has members"
            raise OptionError(Message(message))
        rows = self._read_rows_of_coins(scores, self.member, request)
        _, attacks, member, groups = rows
        units = None
        if groups is not None:
            units = Units.of(member, None, groups=groups, aggregate=self.aggregate)
            member = units.member
        premises.refuse_repeated(member, what="membership", cure=_UNITS)
        prior = None
        if not self._has_fair_coins:
            prior = self._checked_prior(rows, request.claim)
        grounds = self._grounds_of_coins(
            request,
            attacks,
            members=int(member.sum()),
            examples=member.size,
            prior=prior,
        )
        wording = self.wording

        def game_of(values: FloatArray) -> ScoreGame:
            if units is not None:
                values = units.scores(values)
            return ScoreGame(
                scores=values,
                member=member,
                named=wording.units,
                sides=request.sides,
                seed=request.seed,
            )

        inputs: dict[str, GenericArray] = {**attacks.digested, "member": rows.member}
        if units is not None and groups is not None:
            grounds["options"] |= {"groups": units.count, "aggregate": self.aggregate}
            inputs |= {"groups": groups}
        if prior is not None:
            inputs |= {"prior": prior}
        return road.Examples(
            attacks=attacks,
            game=game_of,
            **grounds,
            exposed=rows.exposed,
            filled=premises.filled(attacks.scores, rows.member),
            inputs=inputs,
        )

    def _read_rows_of_coins(
        self, scores: object, member: MemberInput, request: road.Request
    ) -> "_RowsOfCoins":
        """Read scores, membership and groups of the rows in one order."""
        if self.groups is None:
            aligned_scores = road.read(scores, member, request.ids, copies=True)
            return _RowsOfCoins(*aligned_scores, groups=None)
        return self._read_rows_with_groups(scores, member, request)

    def _read_rows_with_groups(
        self, scores: Any, member: MemberInput, request: road.Request
    ) -> "_RowsOfCoins":
        """Read the same of rows that have groups."""
        if not isinstance(member, HasMember):
            order, attacks, member_of_rows = road.read(scores, member, request.ids)
            groups = self._groups_of_rows(order, attacks.examples)
            self._check_groups_have_one_coin(groups, member_of_rows)
            return _RowsOfCoins(order, attacks, member_of_rows, groups)
        # A plan has the coins of the groups, by their names.
        order = ExampleOrder(request.ids)
        attacks = road.Attacks.read(scores, order)
        groups = self._groups_of_rows(order, attacks.examples)
        names, _, group_of_row = by_first_row(groups)
        order_of_groups = ExampleOrder(names, name="groups")
        coins_of_groups = order_of_groups.member(member, names.size, copies=True)
        coins_of_rows = coins_of_groups[group_of_row]
        if request.ids is not None:
            check_ids(request.ids, coins_of_rows)
        return _RowsOfCoins(order, attacks, coins_of_rows, groups)

    def _groups_of_rows(self, order: ExampleOrder, rows: int) -> GenericArray:
        """Read the group of each row; one group alone is refused."""
        assert self.groups is not None
        placed_groups = order.placed(self.groups, "groups")
        groups = check_codes(placed_groups, examples=rows, name="groups")
        if rows and (groups == groups[0]).all():
            raise DesignError(
                f"all {rows:,} rows are of one {self.unit}, {groups[0]!s:.60}: an audit needs the "
                f"coins of many {self.wording.units}"
            )
        return groups

    def _check_groups_have_one_coin(self, groups: GenericArray, member: BoolArray) -> None:
        """Refuse groups that have both coins."""
        torn = torn_group(groups, member)
        if torn is None:
            return
        message = Message(
            "{torn.torn:,} of {torn.of:,} {units} are members in some rows and not in others, the "
            "first being {torn.name!s:.60} (rows {torn.first} and {torn.other}). With {groups=}, "
            "one coin decides on all rows of a {unit}: correct groups or member, or leave "
            "groups out if each row had a separate coin",
            torn=torn,
            units=self.wording.units,
            unit=self.unit,
        )
        raise DesignError(message)

    def _counted_examples(
        self, tallies: dict[str, Tally], request: road.Request
    ) -> road.Examples[Tally]:
        """Read examples that are counted."""
        if self.member is not None:
            raise OptionError("a tally already has the counts of members: leave out member")
        if self.groups is not None:
            raise OptionError(
                "a tally has counts, not single rows: put together the scores of each group before "
                "they are counted, and leave out groups"
            )
        if request.ids is not None or not self._has_fair_coins:
            option = "a prior other than 1/2"
            if self._has_fair_coins:
                option = "ids="
            raise OptionError(
                f"{option} needs single examples, and a tally only has counts: pass scores"
            )
        attacks = road.AnyAttacks(tallies)
        first_tally = next(iter(tallies.values()))
        grounds = self._grounds_of_coins(
            request,
            attacks,
            members=first_tally.members,
            examples=first_tally.m,
            prior=None,
        )
        options, inputs = recorded(tallies)
        grounds["options"] |= options
        grounds["assumptions"] += (Assumption(*first_tally.assumed, "declared"),)
        return road.Examples(
            attacks=attacks,
            game=lambda tally: TallyGame(
                tally=tally,
                sides=request.sides,
                seed=request.seed,
                name="keys of the tally",
            ),
            **grounds,
            filled=premises.filled_tallies(tallies),
            inputs=inputs,
        )

    def _grounds_of_coins(
        self,
        request: road.Request,
        attacks: road.AnyAttacks[Any],
        members: int,
        examples: int,
        prior: FloatArray | None,
    ) -> Named:
        """Return what is said of coins, listed or counted."""
        claim = request.claim
        premises.refuse_replacing(claim)
        wording = self.wording
        unit = wording.unit
        copies = self.copies or 1
        member_count = MemberCount.of_coins(
            members, examples, prior, are=f"{wording.units} are members"
        )
        warnings = member_count.warnings()
        if getattr(self.member, "seed", None) is None:
            # Coins of a plan are known: by chance half of them may be members.
            warnings += member_count.halved()
        theorem = claim.theorem(GuessWords(others=f"the coins of the other {wording.units}"))
        coins = "fair coin"
        odds = "fair coins"
        stored_prior: JsonValue = _HALF
        if prior is not None:
            theorem = _PRIOR_THEOREM.format(unit=unit)
            coins = "coin, of the probability given,"
            odds = "coins of known odds"
            stored_prior = prior_in_options(prior)
        all_rows = ""
        if self.groups is not None:
            all_rows = ", with all its rows,"
        options: JsonObject = {"sides": request.sides, "prior": stored_prior}
        if wording is not COINS:
            options["unit"] = unit
        assumptions = (
            member_count.assumption(
                f"independent {odds}",
                f"Each {unit} was trained on{all_rows} if and only if its own {coins} decided so. "
                "The random parts are the coins, training and the audit.",
            ),
            Assumption(
                name=f"add or remove one {unit}",
                statement=f"{claim.subject} refers to adding or removing one training "
                f"{unit}{all_rows or ','} whether audited or not."
                + grouping.sentences_on_copies_and_delta(copies, unit, claim.delta),
                status="declared",
            ),
            *premises.assumptions_on_scores(
                claim,
                attacks.others,
                "trained model",
                wording.units,
                "Candidate thresholds and the order of guesses depend on scores only; ties "
                + _sentence_on_ties(request, prior),
            ),
        )
        return {
            "prior": prior,
            "copies": copies,
            "count": member_count,
            "theorem": theorem,
            "assumptions": assumptions,
            "options": options,
            "warnings": warnings + premises.delta_warnings(claim.delta, examples, unit),
        }

    @property
    def _has_fair_coins(self) -> bool:
        """Whether nothing was said of the coins, or that they are fair."""
        return isinstance(self.prior, float) and self.prior == _HALF

    @property
    def _has_single_prior(self) -> bool:
        """Whether all coins have one probability."""
        return isinstance(self.prior, float | int | np.floating | np.integer)

    def _prior_of_rows(self, order: ExampleOrder, examples: int) -> GenericArray:
        """Return the probability of each row's coin, in the order of the rows."""
        prior_of_rows = vector(order.placed(self.prior, "prior"), name="prior")
        check_length(prior_of_rows, examples=examples, name="prior")
        return prior_of_rows

    def _checked_prior(self, rows: "_RowsOfCoins", claim: Claim) -> FloatArray | None:
        """Read probabilities of membership, one for all or one each; None if all are ½.

        Those of all rows of a group are one.
        """
        examples = rows.member.size
        if self._has_single_prior:
            single_prior = real(self.prior, name="prior", above=0, below=1)
            prior = np.full(examples, single_prior)
        else:
            prior_of_rows = self._prior_of_rows(rows.order, examples)
            probabilities = numbers(prior_of_rows, name="prior", least=0, most=1)
            prior = probabilities.astype(np.float64)
        certain_rows = np.flatnonzero((prior <= 0) | (prior >= 1))
        if certain_rows.size:
            row = certain_rows[0]
            raise OptionError(
                f"prior must be strictly between 0 and 1, got {prior[row]:g} at row {row}: drop "
                "examples whose membership was certain",
                option="prior",
            )
        if (prior == _HALF).all():
            return None
        if not isinstance(claim, PureDP):
            message = (
                "prior other than 1/2 is for {PureDP()}: under {claim}, the bounds need fair coins"
            )
            raise OptionError(Message(message, claim=claim.name))
        groups = rows.groups
        if groups is None:
            return prior
        torn = torn_group(groups, prior)
        if torn is not None:
            raise DesignError(
                f"prior has several values for {self.unit} {torn.name!s:.60} (rows {torn.first} "
                f"and {torn.other}): one coin decided on all rows of a {self.unit}",
                option="prior",
            )
        _, first_rows, _ = by_first_row(groups)
        return prior[first_rows]


class _RowsOfCoins(NamedTuple):
    """What was read of the rows, in one order."""

    order: ExampleOrder
    attacks: road.Attacks
    member: BoolArray
    groups: GenericArray | None

    def exposed(self, game: Any, attacks: int) -> Exposed:
        """List the most exposed members of a game, by their rows of the scores as passed."""
        ids = self.order.told_ids
        rows_as_passed = self.order.rows
        if self.groups is not None:
            ids, first_rows, _ = by_first_row(self.groups)
            if rows_as_passed is not None:
                first_rows = rows_as_passed[first_rows]
            rows_as_passed = first_rows
        return exposed(
            game.scores,
            member=game.member,
            ids=ids,
            attacks=attacks,
            given=rows_as_passed,
        )


def _sentence_on_ties(request: road.Request, prior: FloatArray | None) -> str:
    """Return what is done with ties by the policy that the claim, coins and sides have."""
    are_broken = request.sides == "auto"
    if request.cuts:
        are_broken = request.cuts.ties == "broken"
    if are_broken or prior is not None or not isinstance(request.claim, PureDP):
        return "are broken by the seed."
    return "stay together."
