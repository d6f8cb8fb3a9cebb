"""One training run in which an independent coin decided on each example."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.brief import brief
from leakbound._base.checks import check_length, copies_of, numbers, real, vector
from leakbound._base.types import (
    ArrayInput,
    FloatArray,
    JsonValue,
    MemberInput,
    Named,
    Strings,
)
from leakbound._tally.tally import AnyTally, Tally, by_attack, recorded
from leakbound.audits import grouping, premises, road
from leakbound.audits.member_count import MemberCount
from leakbound.claims import Claim, PureDP
from leakbound.claims.base import GuessWords
from leakbound.cuts import ScoreGame, TallyGame
from leakbound.errors import OptionError
from leakbound.results import Assumption, AuditResult
from leakbound.results.one_run import Exposed, exposed
from leakbound.results.wording import COINS

_HALF = 0.5
"""The probability of a fair coin."""
_UNITS = (
    "average the scores of each unit, and audit one row for it; or audit a random split of units "
    "by RandomSplit(member, groups=…)"
)
_PRIOR_THEOREM = (
    "Given the trained model and the coins of earlier guesses, each guess is right with odds of "
    "at most e^ε times those of its example's coin if training is ε-DP (as Steinke, Nasr and "
    "Jagielski 2023, Proposition 5.1, for a coin that is not fair). "
)


@road.of_one_array
@dataclass(frozen=True, eq=False)
class Coins(road.Design[road.Listed | Tally | Mapping[str, Tally], AuditResult]):
    """An independent fair coin decided for each of m examples whether the model was trained on it.

    Parameters
    ----------
    member : array-like of shape (m,), or InclusionPlan
        What the coins said, left out with a tally: booleans, {0, 1} or {-1, +1}. A plan, or a
        pandas Series, is joined with scores that have ids.
    prior : float or array-like, shape (m,)
        Probability of each coin to include, in (0, 1), in the order of the scores or with ids to
        join by. Values other than 1/2 need `PureDP` with `KLScan` or `Fixed`; ties are then broken
        by the seed.
    copies : int, optional
        How often each member was inserted into the training data; a plan knows it, and otherwise it
        is 1. Scores are then about all copies at once, and the bound is converted to one record by
        group privacy: for `PureDP`, `ApproxDP` and `GaussianDP` without failures. The δ of
        `ApproxDP` is that of all copies: see `leakbound.claims.grouped`.

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
    """

    name = "coins"
    wording = COINS
    sides = ("auto", "both", "member")
    member: MemberInput | None = None
    _: KW_ONLY
    prior: float | ArrayInput = 0.5
    copies: int | None = None

    __repr__ = brief

    def __post_init__(self) -> None:
        object.__setattr__(self, "copies", copies_of(self.member, self.copies))

    def audit(
        self, scores: road.Listed | Tally | Mapping[str, Tally], request: road.Request, /
    ) -> AuditResult:
        """See `Design.audit`."""
        if isinstance(scores, Mapping | AnyTally):
            tallies = by_attack(scores, Tally)
            if tallies is not None:
                return self._counted(tallies, request).audit(request, self)
        examples = self.listed(scores, request)
        premises.refuse_repeated(examples.inputs["member"], what="membership", cure=_UNITS)
        return examples.audit(request, self)

    def listed(self, scores: Any, request: road.Request) -> road.Examples[FloatArray]:
        """Read scores and membership in one order."""
        if self.member is None:
            raise OptionError(
                "member is missing: give Coins(member), or audit a Tally, which has members"
            )
        order, attacks, member = road.read(scores, self.member, request.ids, copies=True)
        prior = None
        if not self._fair:
            prior = self._prior_of(member.size, claim=request.claim, order=order)
        count = MemberCount.of_coins(int(member.sum()), examples=member.size, prior=prior)
        # A plan knows its coins, so that half of them may be members by chance.
        halved: Strings = ()
        if getattr(self.member, "seed", None) is None:
            halved = count.halved()

        def list_exposed(game: Any, attacks: int) -> Exposed:
            return exposed(
                game.scores,
                member=game.member,
                ids=order.told_ids,
                attacks=attacks,
                given=order.rows,
            )

        examples = road.Examples(
            attacks=attacks,
            game=lambda values: ScoreGame(
                scores=values, member=member, sides=request.sides, seed=request.seed
            ),
            **_grounds(
                request,
                prior=prior,
                count=count,
                attacks=attacks,
                halved=halved,
                copies=self.copies or 1,
            ),
            exposed=list_exposed,
            filled=premises.filled(attacks.scores, member),
            inputs=attacks.digested | {"member": member},
        )
        if prior is None:
            return examples
        return replace(examples, exposed=None, inputs=dict(examples.inputs) | {"prior": prior})

    def _counted(self, tallies: dict[str, Tally], request: road.Request) -> road.Examples[Tally]:
        """Read examples that are counted."""
        if self.member is not None:
            raise OptionError("a tally already has the counts of members: leave out member")
        if request.ids is not None or not self._fair:
            given = "a prior other than 1/2"
            if self._fair:
                given = "ids="
            raise OptionError(
                f"{given} needs single examples, and a tally only has counts: pass scores"
            )
        attacks = road.AnyAttacks(tallies)
        tally = next(iter(tallies.values()))
        count = MemberCount.of_coins(tally.members, tally.m)
        grounds = _grounds(
            request,
            prior=None,
            count=count,
            attacks=attacks,
            halved=count.halved(),
            copies=self.copies or 1,
        )
        options, inputs = recorded(tallies)
        grounds["options"] |= options
        grounds["assumptions"] += (Assumption(*tally.assumed, "declared"),)
        return road.Examples(
            attacks=attacks,
            game=lambda tally: TallyGame(
                tally=tally, sides=request.sides, seed=request.seed, name="keys of the tally"
            ),
            **grounds,
            filled=premises.filled_tallies(tallies),
            inputs=inputs,
        )

    @property
    def _fair(self) -> bool:
        """Whether nothing was said of the coins, or that they are fair."""
        return isinstance(self.prior, float) and self.prior == _HALF

    def _prior_of(self, examples: int, claim: Claim, order: ExampleOrder) -> FloatArray | None:
        """Read probabilities of membership, one for all or one each; None if all are ½."""
        if isinstance(self.prior, float | int | np.floating | np.integer):
            values = np.full(examples, real(self.prior, name="prior", above=0, below=1))
        else:
            placed = order.placed(self.prior, "prior")
            check_length(vector(placed, name="prior"), examples=examples, name="prior")
            values = numbers(vector(placed, name="prior"), name="prior", least=0, most=1).astype(
                np.float64
            )
        certain = np.flatnonzero((values <= 0) | (values >= 1))
        if certain.size:
            row = certain[0]
            raise OptionError(
                f"prior must be strictly between 0 and 1, got {values[row]:g} at row {row}: drop "
                "examples whose membership was certain",
                option="prior",
            )
        if (values == _HALF).all():
            return None
        if not isinstance(claim, PureDP):
            raise OptionError(
                f"prior other than 1/2 is for PureDP(): under {claim.name}, the bounds need fair "
                "coins"
            )
        return values


def _grounds(
    request: road.Request,
    prior: FloatArray | None,
    count: MemberCount,
    attacks: road.AnyAttacks[Any],
    halved: Strings,
    copies: int,
) -> Named:
    """Return what is said of coins, listed or counted; `halved` warns of an exact half."""
    claim = request.claim
    road.refuse_replacing(claim)
    theorem = claim.theorem(GuessWords())
    coins = "fair coin"
    odds = "fair coins"
    if prior is not None:
        theorem = _PRIOR_THEOREM
        coins = "coin, of the probability given,"
        odds = "coins of known odds"
    broken = request.sides == "auto"
    if request.cuts:
        broken = request.cuts.ties == "broken"
    about_ties = "ties stay together."
    if broken or prior is not None or not isinstance(claim, PureDP):
        about_ties = "ties are broken by the seed."
    assumptions = (
        count.assumption(
            f"independent {odds}",
            f"Each example was trained on if and only if its own {coins} decided so. The random "
            "parts are the coins, training and the audit.",
        ),
        Assumption(
            name="add or remove one example",
            statement=f"{claim.subject} refers to adding or removing "
            "one training example, including audited ones."
            + grouping.assumed(copies, "example")
            + grouping.at_delta(claim.delta, copies),
            status="declared",
        ),
        *premises.assumed(
            claim,
            attacks.others,
            "trained model",
            "examples",
            "Candidate thresholds and the order of guesses depend on scores only; " + about_ties,
        ),
    )
    large_delta = premises.delta_warnings(claim.delta, count.examples)
    described: JsonValue = _HALF
    if prior is not None:
        described = _described(prior)
    return {
        "prior": prior,
        "copies": copies,
        "count": count,
        "theorem": theorem,
        "assumptions": assumptions,
        "options": {"sides": request.sides, "prior": described},
        "warnings": (*count.warnings(), *halved, *large_delta),
    }


def _described(prior: FloatArray) -> JsonValue:
    """Return prior probabilities as options show them: the one value, or the range and the mean."""
    low = float(prior.min())
    high = float(prior.max())
    if low == high:
        return low
    return {"least": low, "most": high, "mean": float(prior.mean())}
