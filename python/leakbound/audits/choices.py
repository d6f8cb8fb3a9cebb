"""One training run that saw, of each secret, one of k candidates that was drawn for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leakbound._base.alignment import ExampleOrder, row_numbers
from leakbound._base.brief import brief
from leakbound._base.checks import MOST_K, check_ids, check_length, integer, numbers, vector
from leakbound._base.drawn import copies_of
from leakbound._base.messages import OF_AUDITS, Message, hinted
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray, GenericArray, IntArray
from leakbound.audits import grouping, premises, road
from leakbound.audits.member_count import MemberCount
from leakbound.claims import Claim
from leakbound.claims.base import GuessWords
from leakbound.cuts.games import ChoiceGame
from leakbound.errors import AbstentionError, InputError, OptionError
from leakbound.report.parts import Assumptions
from leakbound.results import Assumption, AuditResult
from leakbound.results.wording import Wording, of_choices

_UNITS = "average the scores of each secret, and audit one row for it"


@hinted(**OF_AUDITS)
@dataclass(frozen=True, eq=False)
class Choices(road.Design[road.Listed, AuditResult]):
    """One of k candidates was drawn for each of m secrets; the bound is on replacing one of them.

    Parameters
    ----------
    chosen : array-like of shape (m,), or ChoicePlan
        The column of the candidate that was trained on: integers in [0, k). A plan, or a pandas
        Series, is joined with scores that have ids.
    k : int, optional
        Candidates of each secret, at least 2; a plan knows it.
    copies : int, optional
        How often each chosen candidate was inserted, as for `Coins`; a plan knows it.

    Notes
    -----
    Scores have shape (m, k), higher for likelier candidates; several attacks go by name. The guess
    about a secret is its candidate of the largest score, ties broken by the seed; guesses are
    ranked by the margin over the second. ``docs/theory/choices.md`` has theorem and proof.

    References
    ----------
    S. Mahloujifar, L. Melis and K. Chaudhuri, "Auditing f-differential privacy in one run", 2025
    (arXiv 2410.22235), Algorithm 2.

    Examples
    --------
    Each of 200 sentences was trained on with one of ten numbers in it:

    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> chosen = rng.integers(10, size=200)
    >>> scores = rng.normal(size=(200, 10)) + 4 * np.eye(10)[chosen]
    >>> result = lb.audit(scores, lb.Choices(chosen, k=10))
    >>> result.options["secrets"], result.options["relation"], result.bound > 3
    (200, 'replace', True)
    """

    name = "choices"
    chosen: ArrayInput
    k: int = 0
    copies: int | None = field(default=None, kw_only=True)

    __repr__ = brief

    def __post_init__(self) -> None:
        object.__setattr__(self, "copies", copies_of(self.chosen, self.copies))
        k_of_plan = getattr(self.chosen, "k", 0)  # of the plan of coins 0, too
        given_k = integer(self.k, name="k", least=0, most=MOST_K)
        if not (given_k or k_of_plan):
            message = "k is missing: give {Choices(chosen, k)} the number of candidates, or a plan"
            raise OptionError(Message(message))
        k = integer(given_k or k_of_plan, name="k", least=2, most=MOST_K)
        if k_of_plan not in {0, k}:
            raise OptionError(
                f"k is {k}, and the plan drew one of {k_of_plan} candidates: leave k out"
            )
        object.__setattr__(self, "k", k)

    @property
    def wording(self) -> Wording:
        """See `Design.wording`."""
        return of_choices(self.k)

    def audit(self, scores: road.Listed, request: road.Request, /) -> AuditResult:
        """See `Design.audit`."""
        request = request.about_replacing()
        # 1. Scores of all candidates and the chosen ones, in one order.
        order = ExampleOrder(request.ids)
        named: Any = scores
        if not isinstance(scores, Mapping):
            named = {"": scores}
        attacks = road.Attacks.named(
            named, order, lambda raw, name: _scores_of_candidates(raw, name=name, k=self.k)
        )
        attacks = attacks.taken(order.follow(self.chosen, "chosen"))
        secrets = attacks.examples
        placed = vector(order.placed(self.chosen, "chosen"), name="chosen")
        check_length(placed, examples=secrets, name="chosen")
        chosen = _numbers_as_data(placed, "chosen", least=0, most=self.k - 1, whole=True).astype(
            np.int64
        )
        if request.ids is not None:
            check_ids(request.ids, np.ones(secrets, dtype=np.bool_))
        premises.refuse_repeated(chosen, what="the choice", cure=_UNITS)
        # 2. Could uniform draws have given these? Candidates listed by the truth cannot.
        member_count = MemberCount.of_choices(chosen, self.k)
        claim = request.claim
        words = GuessWords(
            given="the trained model and all other draws",
            others="all other draws",
            among=f" among {self.k} candidates",
            chance=f"e^ε / (e^ε + {self.k} - 1)",
            replacing=" replacing one candidate",
            source="",
        )
        return road.Examples(
            attacks=attacks,
            game=lambda values: game_of(values, chosen=chosen, seed=request.seed),
            count=member_count,
            copies=self.copies or 1,
            theorem=claim.theorem(words),
            assumptions=_assumptions_of_choices(
                claim, attacks=attacks, k=self.k, copies=self.copies or 1
            ),
            options={"k": self.k, "secrets": secrets, "relation": "replace", "unit": "candidate"},
            warnings=(*member_count.warnings(), *premises.delta_warnings(claim.delta, secrets)),
            filled=premises.filled_choices(attacks.scores, chosen=chosen, k=self.k),
            inputs={**attacks.digested, "chosen": chosen},
        ).audit(request, self)


def game_of(scores: FloatArray, chosen: IntArray, seed: int) -> ChoiceGame:
    """Guess the candidate of the largest score of each secret; ties are broken by the seed."""
    if scores.min() == scores.max():
        raise AbstentionError(
            f"all {scores.size} scores are equal: use a score that differs between candidates"
        )
    _, k = scores.shape
    # 1. The guess: among several best ones a draw that knows neither the truth nor the order.
    guessed_candidates = scores.argmax(axis=1)
    best_scores = scores.max(axis=1)
    is_best = scores == best_scores[:, None]
    tied_secrets = np.flatnonzero(is_best.sum(axis=1) > 1)
    draws = Purpose.CHOICE_TIES.rng(seed).random((tied_secrets.size, k))
    draws_of_best = np.where(is_best[tied_secrets], draws, -1.0)
    guessed_candidates[tied_secrets] = draws_of_best.argmax(axis=1)
    # 2. Its margin over the second; equal infinities are a tie, as equal numbers are.
    second_scores = np.partition(scores, k - 2, axis=1)[:, k - 2]
    with np.errstate(invalid="ignore", over="ignore"):
        are_equal = best_scores == second_scores
        margins = np.where(are_equal, 0.0, best_scores - second_scores)
    rows = row_numbers(scores.size)
    is_other = (np.arange(k) != chosen[:, None]).ravel()
    return ChoiceGame(
        scores=margins,
        member=guessed_candidates == chosen,
        given=scores.ravel(),
        members=rows[~is_other],
        others=rows[is_other],
        seed=seed,
        k=k,
    )


def _numbers_as_data(values: Any, name: str, **limits: Any) -> GenericArray:
    """Read numbers within limits, which are data and no options."""
    try:
        return numbers(values, name=name, **limits)
    except OptionError as error:
        raise InputError(str(error)) from error


def _scores_of_candidates(scores: object, name: str, k: int) -> FloatArray:
    """Read scores of k candidates of each secret."""
    table = _numbers_as_data(scores, name)
    if table.ndim != 2 or table.shape[1] != k or not table.size:
        raise InputError(
            f"{name} must have shape (m, k), a row for each secret and a column for each of its "
            f"k = {k} candidates (several attacks go by name), got shape {table.shape}"
        )
    return table.astype(np.float64)


def _assumptions_of_choices(
    claim: Claim, attacks: road.Attacks, k: int, copies: int
) -> Assumptions:
    about_copies = grouping.sentences_on_copies_and_delta(copies, "candidate", claim.delta)
    return (
        Assumption(
            name="independent uniform draws",
            statement=f"For each secret one of its {k} candidates was drawn uniformly and "
            "independently, and the model was trained on it instead of the others. The "
            "random parts are the draws, training and the audit.",
            status="declared",
        ),
        Assumption(
            name="replace one candidate",
            statement=f"{claim.subject} refers to replacing the candidate of one secret by another "
            "candidate of that secret. Training that is ε-DP under adding or removing one example "
            f"may reach 2ε here.{about_copies}",
            status="declared",
        ),
        *premises.assumptions_on_scores(
            claim,
            attacks.others,
            "trained model",
            "candidates",
            "Each guess is the candidate with the largest score, and the seed breaks ties. "
            "Thresholds and the order of guesses depend on margins only.",
        ),
    )
