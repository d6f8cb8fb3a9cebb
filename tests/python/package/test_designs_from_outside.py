"""Sentences about designs from outside: they are true of what was drawn, whatever it was."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import leakbound as lb
from leakbound import cuts, results
from leakbound._base.types import ArrayInput, FloatArray, IntArray, JsonValue, Status
from leakbound.audits import road
from leakbound.cuts.games import ChoiceGame
from leakbound.results.wording import Wording

RNG = np.random.default_rng(0)
SIX = RNG.random(600) < 1 / 6
FAIR = RNG.random(600) < 1 / 2
NOISE = RNG.normal(size=600)


@dataclass(frozen=True, eq=False)
class Drawn(road.Design[road.Listed, results.AuditResult]):
    """Each record was trained on if a draw of its own said so."""

    name: ClassVar[str] = "drawn"
    wording: ClassVar[Wording] = Wording(
        drawn="draw for each record", chance="over the draws", unit="record", units="records"
    )
    member: ArrayInput
    chances: FloatArray | None = None
    status: Status = "declared"
    told: Mapping[str, JsonValue] | None = None

    def audit(self, scores: road.Listed, request: road.Request, /) -> results.AuditResult:
        _, attacks, member = road.read(scores, self.member, request.ids)
        drawn = results.Assumption("draws", "A draw decided on each record.", self.status)
        return road.Examples(
            attacks=attacks,
            game=lambda values: cuts.ScoreGame(
                scores=values, member=member, sides="both", seed=request.seed
            ),
            prior=self.chances,
            theorem="Theorem. ",
            assumptions=(drawn,),
            options=self.told or {},
            inputs={**attacks.digested, "member": member},
        ).audit(request, self)


@pytest.mark.parametrize(
    ("chances", "prior"),
    [
        (np.full(600, 1 / 6), 1 / 6),
        (np.repeat([0.1, 0.3], 300), {"least": 0.1, "most": 0.3, "mean": pytest.approx(0.2)}),
    ],
)
def test_draws_that_are_no_fair_coins_have_no_odds_of_fair_coins(
    chances: FloatArray, prior: object
) -> None:
    result = lb.audit(NOISE + 3 * SIX, Drawn(SIX, chances), seed=0)
    assert result.options["prior"] == prior
    assert result.bound > 2
    said = str(result)
    assert "This model leaks" in said
    for of_fair_coins in ("by chance: 50", "with odds of at most", "times in 100"):
        assert of_fair_coins not in said
    assert lb.AuditResult.from_json(result.to_json()) == result
    fair = lb.audit(NOISE + 3 * FAIR, Drawn(FAIR), seed=0)
    assert "prior" not in fair.options
    assert "(by chance: 50 times)" in str(fair)
    assert "each guess is right with odds of at most" in str(fair)


def test_what_a_design_says_of_its_chances_stays() -> None:
    told = Drawn(SIX, np.full(600, 1 / 6), told={"prior": "a die"})
    assert lb.audit(NOISE + 3 * SIX, told, seed=0).options["prior"] == "a die"


def test_a_doubted_draw_is_no_split_and_nothing_is_withheld() -> None:
    design = Drawn(FAIR, status="contradicted", told={"relation": "replace"})
    result = lb.audit(NOISE + 3 * FAIR, design, seed=0)
    assert result.bound > 2
    assert not result.is_withheld
    assert result.check(epsilon=1, relation="replace") == "refuted"
    text = str(result)
    for of_splits in ("Withheld", "random split", "Nothing is proved", "The bound is 0"):
        assert of_splits not in text
    assert "Check “draws” before you use this result: the data contradict it." in text
    nothing = lb.audit(NOISE, design, seed=0)
    assert nothing.bound == 0
    assert not nothing.is_withheld
    assert "random split" not in str(nothing)


def test_a_turned_sign_needs_a_new_draw_of_whatever_was_drawn() -> None:
    text = str(lb.audit(NOISE - 3 * FAIR, Drawn(FAIR), seed=0))
    assert text.count("a flipped sign needs a new draw of members") == 2
    assert "coins" not in text
    assert "split" not in text


@dataclass(frozen=True, eq=False)
class Suits(road.Design[FloatArray, results.AuditResult]):
    """One of four cards of each hand was trained on; scores are of shape (hands, 4)."""

    name: ClassVar[str] = "suits"
    wording: ClassVar[Wording] = Wording(
        drawn="one card of each hand",
        chance="over the draws",
        question="which card was trained on",
        unit="card",
        units="hands",
        each="four cards each",
    )
    drawn: IntArray

    def audit(self, scores: FloatArray, request: road.Request, /) -> results.AuditResult:
        ranked = np.sort(scores, axis=1)
        rows = np.arange(scores.size)
        is_other = (np.arange(4) != self.drawn[:, None]).ravel()
        game = ChoiceGame(
            scores=ranked[:, 3] - ranked[:, 2],
            member=scores.argmax(axis=1) == self.drawn,
            given=scores.ravel(),
            members=rows[~is_other],
            others=rows[is_other],
            seed=request.seed,
            k=4,
        )
        return road.Examples(
            attacks=road.AnyAttacks({"": scores}),
            game=lambda _scores: game,
            assumptions=(results.Assumption("draws", "Cards were drawn.", "declared"),),
            options={"relation": "replace"},
        ).audit(request, self)


def test_guesses_at_one_of_four_are_right_by_chance_in_a_quarter() -> None:
    drawn = RNG.integers(4, size=300)
    scores = RNG.normal(size=(300, 4))
    scores[np.arange(300), drawn] += 5
    result = lb.audit(scores, Suits(drawn), seed=0)
    assert result.options["k"] == 4
    assert "(by chance: 25 times)" in str(result)
    told = {one.name: (one.value, one.note) for one in result.summary().metrics}
    assert told["Hands"] == ("300", "four cards each")
    (caption,) = (one.caption for one in result.summary().figures if one.name == "histogram")
    assert caption.startswith("Scores used to rank cards. ")
