"""Benchmarks: rows hold what they say, games have the law and the guarantee that they state."""

import json
import math
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot as plt
from pyarrow import parquet
from scipy import stats as scipy_stats

import leakbound as lb
import mechanisms
import untidy
from command_line import leakbound
from leakbound import benchmark, simulate
from leakbound.benchmark.running import game_label, name_and_options
from leakbound.benchmark.table import KEY
from leakbound.errors import FormatError, InputTypeError, OptionError
from tightness import Scores

UNTIDY: dict[str, Any] = {type(game).__name__: type(game) for game in untidy.GAMES}
EVERY: dict[str, Any] = {name: getattr(mechanisms, name) for name in mechanisms.__all__} | UNTIDY
PURE, APPROXIMATE, GAUSSIAN = lb.PureDP(), lb.ApproxDP(delta=1e-5), lb.GaussianDP()


def half(scores: np.ndarray, member: np.ndarray, claim: Any, level: float) -> float:
    """A bound of a user's: the upper half are members, and their number is fixed."""
    right = int(((scores > np.median(scores)) == member).sum())
    return float(claim.lower_bound(right, member.size, member.size, level))


def sometimes(m: int, *, seed: int) -> simulate.Game:
    """A game of a user's that raises with one of its seeds, and is cut short with another."""
    if seed == 7:
        raise RuntimeError("the seventh\nfails")
    return simulate.null(m - (seed == 8), seed=seed)


@dataclass(frozen=True)
class Response:
    """A stranger's game, of reports that are right with odds e^ε."""

    epsilon: float = 1.0

    def __call__(self, m: int, *, seed: int) -> simulate.Game:
        game = simulate.randomized_response(m, self.epsilon, seed=seed)
        return replace(game, scores=np.sign(game.scores))


def rows(found: benchmark.Table, *without: str) -> list[dict[str, Any]]:
    dropped = [*without, "seconds"]
    return list(found.to_arrow().drop_columns(dropped).to_pylist())


def test_a_row_for_each_game_size_seed_claim_and_bound() -> None:
    games: list[Any] = [mechanisms.Gaussian(mu=2), Response()]
    bounds = [lb.KLScan(), half, benchmark.Audit(lb.OutsideIn(), sides="member")]
    found = benchmark.run(games, bounds, [PURE, APPROXIMATE], [40, 100], range(3))
    assert len(rows(found)) == 2 * 2 * 3 * 2 * 3
    first, by_hand = rows(found)[:2]
    game = simulate.gaussian(40, 2.0, seed=0)
    result = lb.audit(game.scores, lb.Coins(game.member), seed=0, cuts=lb.KLScan())
    key = ("Gaussian(mu=2)", 40, 0, "pure DP", "KLScan", "", 0.95)
    assert first.items() >= dict(zip(KEY, key, strict=True)).items()
    assert (first["bound"], first["truth"], first["false_claim"]) == (result.bound, math.inf, False)
    assert (first["error"], first["version"].split("+")[0]) == ("", lb.__version__)
    assert first["bound"] <= first["oracle"]
    assert {row["options"] for row in rows(found)} == {"", "sides='member'"}
    told = [row for row in rows(found) if row["game"] == "Response(epsilon=1.0)"]
    assert {row["truth"] for row in told if row["claim"] == "pure DP"} == {1.0}
    assert by_hand["bound"] == half(game.scores, game.member, PURE, 0.05)


def test_processes_change_nothing_but_seconds() -> None:
    games: list[Any] = [mechanisms.Gaussian(mu=1), mechanisms.Rankings(), mechanisms.Shifted()]
    play = partial(benchmark.run, games, [None, lb.KLScan()], m=[60], seeds=range(3))
    assert rows(play()) == rows(play(processes=2))


def test_what_raises_or_is_no_bound_is_a_row_with_its_error() -> None:
    def no_number(*_: Any) -> float:
        return math.nan

    bounds = [lb.KLScan(), no_number, lambda *_: -1.0]
    found = benchmark.run([sometimes], bounds, m=[50], seeds=range(6, 10))
    errors = [row["error"] for row in rows(found)]
    assert errors[0] == errors[9] == ""
    assert "no_number returned nan: a bound must be a number of at least 0" in errors[1]
    assert "<lambda> returned -1.0" in errors[2]
    assert errors[3:6] == ["RuntimeError: the seventh fails"] * 3
    assert "a game of m=50 must have as many scores" in errors[6]
    assert [row["false_claim"] for row in rows(found)[3:6]] == [None] * 3
    line = found.summary().lines[0]
    assert (line["games"], line["errors"], line["judged"]) == (4, 2, 2)
    assert line["error"] == "RuntimeError: the seventh fails"
    assert math.isnan(found.summary().lines[1]["bound"])
    assert "| no_number | 50  | -     | -        | -         | - " in str(found.summary())


def test_rows_are_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    table = benchmark.run([mechanisms.Noise()], [half], m=[50], seeds=[0])
    table.to_parquet(file)
    assert rows(benchmark.Table.read(file)) == rows(table)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(FormatError, match="is not a complete parquet file"):
        benchmark.Table.read(file)
    parquet.write_table(pa.table({"score": [1.0]}), file)
    with pytest.raises(FormatError, match="has no rows of a benchmark"):
        benchmark.Table.read(file)


def test_games_and_bounds_are_named_with_their_options() -> None:
    assert game_label(partial(simulate.gaussian, mu=1)) == "gaussian(mu=1)"
    assert name_and_options(partial(half, level=0.1)) == ("half", "level=0.1")


def test_false_claims_have_exact_limits() -> None:
    bounds: list[Any] = [lambda *_: 0.1, lb.KLScan()]
    summary = benchmark.run([mechanisms.Noise()], bounds, m=[60], seeds=range(30)).summary()
    assert summary.false == summary.lines[:1]
    for line, count in zip(summary.lines, (30, 1), strict=True):
        assert line["false_claims"] == count
        limits = scipy_stats.binomtest(count, 30).proportion_ci(0.95, "exact")
        assert (line["low"], line["high"]) == (
            pytest.approx(limits.low),
            pytest.approx(limits.high),
        )
        assert line["p_value"] == pytest.approx(scipy_stats.binom.sf(count - 1, 30, 0.05))
    assert "30 of 30 (88.4 to 100.0 %) | FALSE |" in str(summary)


@pytest.mark.parametrize("claim", [PURE, APPROXIMATE, GAUSSIAN])
def test_the_oracle_is_the_best_fixed_cut(claim: Any) -> None:
    games: list[Any] = [mechanisms.Gaussian(), mechanisms.OneSidedTail(), mechanisms.Shifted()]
    found = benchmark.run(games, [lb.Fixed(20), lb.Fixed(150)], [claim], m=[300], seeds=[0])
    assert all(row["bound"] <= 1.05 * row["oracle"] for row in rows(found))


def test_pictures() -> None:
    games: list[Any] = [mechanisms.Noise(), mechanisms.RandomizedResponse(epsilon=1)]
    found = benchmark.run(games, [lb.KLScan(), half], m=[50, 100], seeds=range(3))
    titles = [ax.get_title(loc="left") for ax in benchmark.draw_bounds(found, "pure DP").axes]
    assert titles == ["Noise()", "RandomizedResponse(epsilon=1,\nfraction=1.0, delta=0.0)"]
    drawn = benchmark.draw_false_claims(found, "pure DP")
    assert [one.get_text() for one in drawn.axes[0].get_yticklabels()][-1] == "KLScan, m = 50"
    plt.close("all")
    with pytest.raises(OptionError, match="those of the table \\('pure DP'\\)"):
        benchmark.draw_bounds(found, "DP")


def test_bad_options() -> None:
    noise: Any = [mechanisms.Noise()]
    bad: list[tuple[Any, dict[str, Any], str]] = [
        (([], [half]), {}, "nothing to do"),
        ((noise, [half, half]), {}, "have one name"),
        ((noise, ["kl"]), {}, "a bound must be a cut policy or callable"),
        ((noise, [half], ["pure"]), {}, "claims must be"),
        ((noise, [lambda *_: 0.0]), {"m": [9], "processes": 2}, "not lambdas"),
        ((noise, [half]), {"m": [0]}, "m must be at least 1"),
    ]
    for arguments, options, said in bad:
        with pytest.raises((OptionError, InputTypeError), match=said):
            benchmark.run(*arguments, **options)


ATTACK = """
import numpy as np
def honest(member, seed):
    return np.random.default_rng(seed).normal(size=member.size)
def cheat(member, seed):
    return honest(member, seed) + member
def broken(member, seed):
    return np.full(member.size, np.nan)
def sure(scores, member, claim, level):
    return 0.5
"""


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_attack.py").write_text(ATTACK, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    mine = ["benchmark", "-m", "200", "--bound", "kl", "--attack"]
    honest = leakbound(*mine, "my_attack:honest", "--store", "rows.parquet")
    assert honest.code == 0, honest.out
    assert "0 of 1 bounds are false more often" in honest.out
    cheat = leakbound(*mine, "my_attack:cheat")
    assert cheat.code == 1
    assert "20 of 20 (83.2 to 100.0 %)" in cheat.out
    words = ["benchmark", "null", "gaussian", "-m", "60", "--seeds", "9", "--json"]
    table = leakbound(*words, "--bound", "my_attack:sure", "--bound", "fixed:20")
    assert table.code == 1, table.out
    assert [line["false_claims"] for line in json.loads(table.out)[::2]] == [9, 0]
    absent = ("nothing-like-it", "--attack my_attack:none", "null --bound nowhere:x")
    for bad in (*absent, "--bound kll"):
        refused = leakbound("benchmark", *bad.split())
        assert (refused.code, refused.err[:11]) == (2, "leakbound: "), bad
    assert leakbound(*mine, "my_attack:broken").code == 2


@pytest.mark.parametrize("kind", EVERY.values())
def test_a_seed_plays_one_game(kind: Any) -> None:
    play = kind()
    one, again, other = play(500, seed=1), play(500, seed=1), play(500, seed=2)
    assert np.array_equal(one.scores, again.scores)
    assert np.array_equal(one.member, again.member)
    assert not np.array_equal(one.scores, other.scores)
    assert one.scores.shape == one.member.shape == (500,)
    assert 200 < one.member.sum() < 300
    tied = kind in (
        mechanisms.Ties,
        mechanisms.LossesNearZero,
        untidy.RoundedLaplace,
        untidy.LearntRatios,
    )
    assert (np.unique(one.scores).size < 450) == tied


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(("share", "shift"), [(0.05, 4.0), (0.6, 1.0)])
def test_the_profile_of_tails_is_an_integral(epsilon: float, share: float, shift: float) -> None:
    x, law = np.linspace(-15, 15, 300_001), scipy_stats.norm.pdf
    for kind, other in ((mechanisms.OneSidedTail, 0.0), (mechanisms.TwoSidedTail, -shift)):
        game = kind(share, shift)(2, seed=0)
        p, q = ((1 - share) * law(x) + share * law(x - mean) for mean in (shift, other))
        gaps = (one - math.exp(epsilon) * two for one, two in ((p, q), (q, p)))
        expected = max(np.maximum(0, gap).sum() * (x[1] - x[0]) for gap in gaps)
        assert game.delta(epsilon) == pytest.approx(expected, rel=1e-3, abs=1e-9)
        assert game.least(lb.PureDP()) == math.inf


@pytest.mark.parametrize("name", ["OneSidedTail", "TwoSidedTail", "Laplace", "DPSGD", "Ties"])
def test_scores_leak_what_the_profile_says(name: str) -> None:
    """The share of members above the best threshold, less e^ε that of others, is δ(ε)."""
    game = EVERY[name]()(400_000, seed=3)
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


@pytest.mark.parametrize("name", [name for name in UNTIDY if name != "Cauchy"])
def test_untidy_scores_leak_what_the_profile_says(name: str) -> None:
    """Members and others in each of 200 bins of rank differ by δ(ε), whatever their order."""
    game = UNTIDY[name]()(400_000, seed=3)
    _, place = np.unique(game.scores, return_inverse=True)
    if place.max() > 200:
        place = scipy_stats.rankdata(game.scores, method="ordinal").astype(int) * 200 // 400_001
    bins = int(place.max()) + 1
    members = np.bincount(place[game.member], minlength=bins) / game.member.sum()
    others = np.bincount(place[~game.member], minlength=bins) / (~game.member).sum()
    for epsilon in (0.0, 0.5, 1.0):
        factor = math.exp(epsilon)
        gaps = members - factor * others, others - factor * members
        leak = max(float(np.maximum(0, gap).sum()) for gap in gaps)
        assert leak == pytest.approx(game.delta(epsilon), abs=0.015)


def test_untidy_games_of_members_that_differ_are_one_game_whatever_is_known() -> None:
    games = {
        way: untidy.Shifted(game=untidy.Saturated(), way=way)(20_000, seed=1)
        for way in ("known", "learnt", "set")
    }
    known: Any = games["known"].design
    member, chance = known.args
    for low in (0.1, 0.3, 0.5, 0.7):
        near = (chance > low) & (chance < low + 0.2)
        assert member[near].mean() == pytest.approx(chance[near].mean(), abs=0.02)
    for way, game in games.items():
        assert np.array_equal(game.scores, games["known"].scores)
        assert game.design is not None
        assert (game.design().features is None) == (way == "known")


def test_the_epsilon_of_cauchy_noise_is_its_largest_ratio() -> None:
    x = np.linspace(-50, 50, 1_000_001)
    ratios = scipy_stats.cauchy.logpdf(x, 4) - scipy_stats.cauchy.logpdf(x)
    assert untidy.Cauchy(4.0)(2, seed=0).truth == pytest.approx(ratios.max(), rel=1e-6)


def test_the_least_parameter_of_a_family_that_is_true() -> None:
    gaussian = lb.GaussianDP()
    response = simulate.randomized_response(2, 1.0, seed=0)
    right = scipy_stats.norm.ppf(1 / (1 + math.exp(-1.0)))
    assert response.least(gaussian) == pytest.approx(2 * right, rel=1e-5)
    assert simulate.gaussian(2, 1.5, seed=0).least(gaussian) == 1.5
    laplace = mechanisms.Laplace(0.7)(2, seed=0)
    assert laplace.least(lb.LaplaceDP()) == pytest.approx(0.7, rel=1e-5)
    nothing = simulate.null(2, seed=0)
    assert nothing.least(gaussian) == nothing.least(lb.LaplaceDP()) == 0.0
    family = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=50)
    assert mechanisms.DPSGD()(2, seed=0).least(family) == pytest.approx(1.0, rel=1e-4)
    tail = mechanisms.OneSidedTail()(2, seed=0).least(gaussian)
    assert 3.4 < tail < 4.0  # 4 as ε grows without end


def test_games_of_other_designs_are_what_they_say() -> None:
    game: Any = mechanisms.Shifted(shift=1.5)(40_000, seed=1)
    member, chance = game.design.args
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        near = (chance > low) & (chance < low + 0.2)
        assert member[near].mean() == pytest.approx(chance[near].mean(), abs=0.02)
    told = game.scores - np.log(chance / (1 - chance))
    assert told[member].mean() - told[~member].mean() == pytest.approx(1.0, abs=0.05)
    game = mechanisms.Rankings(0.6, 0.8)(40_000, seed=2)
    baseline = game.design.keywords["baseline"]
    assert ((baseline > 0) == game.member).mean() == pytest.approx(0.6, abs=0.01)
    assert ((game.scores > 0) == game.member).mean() == pytest.approx(0.8, abs=0.01)
    assert game.truth == pytest.approx(math.log(4) - math.log(1.5))


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
    assert Scores("fashion-mnist", "small")(12_000, seed=0).member.size == 12_000
    bad: list[tuple[Any, int, str]] = [
        (benchmark.Scores(file), 301, "m=301 is too large"),
        (benchmark.Scores(file, "loss"), 5, "has no column 'loss'; its columns are score, member"),
        (benchmark.Scores("none"), 5, "none is not a complete parquet file"),
    ]
    for play, m, said in bad:
        with pytest.raises((FormatError, OptionError), match=said):
            play(m, seed=0)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(FormatError, match=r"mine.parquet is not a complete parquet file"):
        benchmark.Scores(str(file))(5, seed=1)
