"""Games of benchmarks have the law and the guarantee that they state."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import stats as scipy_stats

import leakbound as lb
from leakbound import benchmark, simulate
from leakbound.cli.benchmark import GAMES
from leakbound.errors import FormatError, OptionError


@pytest.mark.parametrize("kind", GAMES.values())
def test_a_seed_plays_one_game(kind: Any) -> None:
    play = kind()
    one, again, other = play(500, seed=1), play(500, seed=1), play(500, seed=2)
    assert np.array_equal(one.scores, again.scores)
    assert np.array_equal(one.member, again.member)
    assert not np.array_equal(one.scores, other.scores)
    assert one.scores.shape == one.member.shape == (500,)
    assert 200 < one.member.sum() < 300
    tied = kind in (benchmark.Ties, benchmark.LossesNearZero)
    assert (np.unique(one.scores).size < 450) == tied


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(("share", "shift"), [(0.05, 4.0), (0.6, 1.0)])
def test_the_profile_of_tails_is_an_integral(epsilon: float, share: float, shift: float) -> None:
    x, law = np.linspace(-15, 15, 300_001), scipy_stats.norm.pdf
    for kind, other in ((benchmark.OneSidedTail, 0.0), (benchmark.TwoSidedTail, -shift)):
        game = kind(share, shift)(2, seed=0)
        p, q = ((1 - share) * law(x) + share * law(x - mean) for mean in (shift, other))
        gaps = (one - math.exp(epsilon) * two for one, two in ((p, q), (q, p)))
        expected = max(np.maximum(0, gap).sum() * (x[1] - x[0]) for gap in gaps)
        assert game.delta(epsilon) == pytest.approx(expected, rel=1e-3, abs=1e-9)
        assert game.least(lb.PureDP()) == math.inf


@pytest.mark.parametrize("name", ["one-sided-tail", "two-sided-tail", "laplace", "dpsgd", "ties"])
def test_scores_leak_what_the_profile_says(name: str) -> None:
    """The share of members above the best threshold, less e^ε that of others, is δ(ε)."""
    game = GAMES[name]()(400_000, seed=3)
    order = np.argsort(-game.scores, kind="stable")
    ranked, scores = game.member[order], game.scores[order]
    ends = np.append(scores[1:] != scores[:-1], True)
    told = (np.cumsum(ranked) / ranked.sum())[ends]
    wrong = (np.cumsum(~ranked) / (~ranked).sum())[ends]
    for epsilon in (0.0, 0.5):
        inside = told - math.exp(epsilon) * wrong
        outside = 1 - wrong - math.exp(epsilon) * (1 - told)
        leak = max(0.0, inside.max(), outside.max())
        assert leak == pytest.approx(game.delta(epsilon), abs=0.006)


def test_the_least_parameter_of_a_family_that_is_true() -> None:
    gaussian = lb.GaussianDP()
    response = simulate.randomized_response(2, 1.0, seed=0)
    right = scipy_stats.norm.ppf(1 / (1 + math.exp(-1.0)))
    assert response.least(gaussian) == pytest.approx(2 * right, rel=1e-5)
    assert simulate.gaussian(2, 1.5, seed=0).least(gaussian) == 1.5
    laplace = benchmark.Laplace(0.7)(2, seed=0)
    assert laplace.least(lb.LaplaceDP()) == pytest.approx(0.7, rel=1e-5)
    assert simulate.null(2, seed=0).least(gaussian) == 0.0
    assert simulate.null(2, seed=0).least(lb.LaplaceDP()) == 0.0
    family = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=50)
    assert benchmark.DPSGD()(2, seed=0).least(family) == pytest.approx(1.0, rel=1e-4)
    tail = benchmark.OneSidedTail()(2, seed=0).least(gaussian)
    assert 3.4 < tail < 4.0  # 4 as ε grows without end


def test_games_of_other_designs_are_what_they_say() -> None:
    game: Any = benchmark.Shifted(shift=1.5)(40_000, seed=1)
    member, chance = game.design.args
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        near = (chance > low) & (chance < low + 0.2)
        assert member[near].mean() == pytest.approx(chance[near].mean(), abs=0.02)
    told = game.scores - np.log(chance / (1 - chance))
    assert told[member].mean() - told[~member].mean() == pytest.approx(1.0, abs=0.05)
    game = benchmark.Rankings(0.6, 0.8)(40_000, seed=2)
    baseline = game.design.keywords["baseline"]
    assert ((baseline > 0) == game.member).mean() == pytest.approx(0.6, abs=0.01)
    assert ((game.scores > 0) == game.member).mean() == pytest.approx(0.8, abs=0.01)
    assert game.truth == pytest.approx(math.log(4) - math.log(1.5))


def test_bad_parameters_are_refused_at_once() -> None:
    bad: list[tuple[str, dict[str, Any]]] = [
        ("gaussian", {"mu": -1.0}),
        ("one-sided-tail", {"share": 0.0}),
        ("two-sided-tail", {"shift": -1.0}),
        ("rankings", {"attack": 1.0}),
        ("dpsgd", {"sampling_rate": 2.0}),
        ("ties", {"values": 0}),
    ]
    for kind, options in bad:
        with pytest.raises(OptionError, match=f"{next(iter(options))} must be"):
            GAMES[kind](**options)


def test_stored_scores(tmp_path: Path) -> None:
    game = simulate.gaussian(300, 3.0, seed=1)
    file = tmp_path / "mine.parquet"
    parquet.write_table(pa.table({"score": game.scores, "member": game.member}), file)
    played, again = (benchmark.Scores(file)(100, seed=3) for _ in range(2))
    assert np.array_equal(played.scores, again.scores)
    assert set(played.scores) <= set(game.scores)
    with pytest.MonkeyPatch.context() as patched:  # the file is read once
        patched.setattr(parquet, "read_table", None)
        assert np.array_equal(benchmark.Scores(file)(100, seed=3).member, played.member)
    assert math.isnan(played.least(lb.PureDP()))
    assert benchmark.Scores("fashion-mnist", "small")(12_000, seed=0).member.size == 12_000
    bad: list[tuple[Any, int, str]] = [
        (benchmark.Scores(file), 301, "m=301 is too large"),
        (benchmark.Scores(file, "loss"), 5, "has no column 'loss'; its columns are score, member"),
        (benchmark.Scores("none"), 5, "none.parquet"),
    ]
    for play, m, said in bad:
        with pytest.raises((FormatError, OptionError), match=said):
            play(m, seed=0)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(FormatError, match=r"mine.parquet is not a complete parquet file"):
        benchmark.Scores(str(file))(5, seed=1)
