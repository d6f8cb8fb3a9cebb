"""What Zero-Run's default proves of untidy games, beside numbers of guesses fixed in advance."""

from typing import Any

import pytest

import leakbound as lb
import peers
import untidy
from leakbound.claims import Claim

FLOORS: dict[str, float] = {"PureDP": 0.85, "ApproxDP": 0.78, "GaussianDP": 0.65}
"""Least part of the best fixed number, at 10,000 examples; and of two games:"""
OF_GAMES = {("Saturated", None): 0.85, ("Cauchy", "GaussianDP"): 0.82}
CLAIMS: list[Claim] = [lb.ApproxDP(delta=peers.DELTA), lb.GaussianDP(), lb.PureDP()]


def floor(game: str, claim: str) -> float:
    return OF_GAMES.get((game, claim), OF_GAMES.get((game, None), FLOORS[claim]))


@pytest.mark.validity
@pytest.mark.parametrize("game", untidy.GAMES, ids=lambda game: type(game).__name__)
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
@pytest.mark.parametrize("way", ["known", "learnt", "set"])
def test_noise_at_the_ends_costs_little(way: Any, claim: Claim, game: Any) -> None:
    shifted = untidy.Shifted(game=game, way=way)
    found = untidy.beside_fixed(shifted, m=10_000, claim=claim, seeds=3)
    assert found["default"] >= floor(type(game).__name__, type(claim).__name__) * found["best"]


def test_the_default_finds_what_is_within_noise() -> None:
    """At a size that takes no time: an audit without its second look proves next to nothing."""
    shifted = untidy.Shifted(game=untidy.Saturated(mu=2.0), way="known")
    claim = lb.ApproxDP(delta=peers.DELTA)
    found = untidy.beside_fixed(shifted, m=6000, claim=claim, seeds=2)
    before = [("first", {"cuts": lb.OutsideIn()})]
    alone = untidy.means(shifted, m=6000, claim=claim, seeds=2, policies=before)
    assert found["default"] >= 0.85 * found["best"]
    assert alone["first"] < 0.5 * found["default"]
