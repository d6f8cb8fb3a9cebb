"""Rows of a benchmark: what they hold, what errs, what is kept, who computes them."""

import json
import math
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import stats as scipy_stats
from typer.testing import CliRunner

import leakbound as lb
from leakbound import benchmark, simulate
from leakbound.benchmark import running, table
from leakbound.cli.commands import app
from leakbound.errors import FormatError, InputTypeError, OptionError


def half(scores: np.ndarray, member: np.ndarray, claim: Any, level: float) -> float:
    """A bound of a user's: the upper half are members, and their number is fixed."""
    right = int(((scores > np.median(scores)) == member).sum())
    return float(claim.lower_bound(right, member.size, member.size, level))


def sometimes(m: int, *, seed: int) -> simulate.Game:
    """A game of a user's that raises with one of its seeds."""
    if seed == 7:
        message = "the seventh\nfails"
        raise RuntimeError(message)
    return simulate.null(m, seed=seed)


@dataclass(frozen=True)
class Uniform:
    """A stranger's game: noise, uniform over a width that depends on membership."""

    epsilon: float = 1.0

    def __call__(self, m: int, *, seed: int) -> simulate.Game:
        rng = np.random.default_rng(seed)
        member = rng.random(m) < 0.5
        said = member == (rng.random(m) < 1 / (1 + math.exp(-self.epsilon)))
        return simulate.Game(
            scores=said + rng.random(m), member=member, truth=self.epsilon, parameter="epsilon"
        )


def rows(found: benchmark.Table, *without: str) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name not in without}
        for row in found.to_arrow().to_pylist()
    ]


def test_a_row_for_each_game_size_seed_claim_and_bound() -> None:
    found = benchmark.run(
        [benchmark.Gaussian(mu=2), Uniform()],
        [lb.KLScan(), half, benchmark.Audit(lb.OutsideIn(), sides="member")],
        [lb.PureDP(), lb.ApproxDP(delta=1e-5)],
        m=[40, 100],
        seeds=range(3),
    )
    assert len(rows(found)) == 2 * 2 * 3 * 2 * 3
    first = rows(found)[0]
    game = simulate.gaussian(40, 2.0, seed=0)
    result = lb.audit(game.scores, lb.Coins(game.member), seed=0, cuts=lb.KLScan())
    assert first["game"] == "gaussian(mu=2)"
    assert (first["m"], first["seed"], first["claim"]) == (40, 0, "pure DP")
    assert (first["method"], first["options"], first["error"]) == ("KLScan", "", "")
    assert first["bound"] == result.bound
    assert first["truth"] == math.inf
    assert first["false_claim"] is False
    assert first["version"] == lb.__version__
    assert first["bound"] <= first["oracle"]
    assert {row["options"] for row in rows(found)} >= {"", "sides='member'"}
    told = [row for row in rows(found) if row["game"] == "Uniform(epsilon=1.0)"]
    assert {row["truth"] for row in told if row["claim"] == "pure DP"} == {1.0}
    by_hand = rows(found)[1]
    assert by_hand["method"] == "half"
    assert by_hand["bound"] == half(game.scores, game.member, lb.PureDP(), 0.05)


def test_processes_change_nothing_but_seconds(tmp_path: Path) -> None:
    games: list[Any] = [benchmark.Gaussian(mu=1), benchmark.Rankings(), benchmark.Shifted()]
    play = partial(benchmark.run, games, [None, lb.KLScan()], m=[60], seeds=range(3))
    alone = rows(play(), "seconds")
    assert str(alone) == str(rows(play(processes=2, store=tmp_path), "seconds"))
    assert str(alone) == str(rows(play(store=tmp_path), "seconds"))


def test_what_raises_or_is_no_bound_is_a_row_with_its_error() -> None:
    def no_number(*_: Any) -> float:
        return math.nan

    found = benchmark.run(
        [sometimes], [lb.KLScan(), no_number, lambda *_: -1.0], m=[50], seeds=range(5, 10)
    )
    errors = [row["error"] for row in rows(found)]
    none, negative = errors[1:3]
    assert errors[0] == ""
    assert "no_number returned nan: a bound must be a number of at least 0" in none
    assert "<lambda> returned -1.0" in negative
    assert errors[6:9] == ["RuntimeError: the seventh fails"] * 3
    assert [row["false_claim"] for row in rows(found)[6:8]] == [None, None]
    line = found.summary().lines[0]
    assert (line["games"], line["errors"], line["error"]) == (
        5,
        1,
        "RuntimeError: the seventh fails",
    )


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_PATIENCE", -1.0)
    play = partial(benchmark.run, [benchmark.Noise()], [lb.KLScan()], m=[50], store=tmp_path)
    whole = rows(benchmark.run([benchmark.Noise()], [lb.KLScan()], m=[50]), "seconds")
    once, played = running._play, list[int]()

    def interrupted(task: Any) -> Any:
        if len(played) == 8:
            raise KeyboardInterrupt
        played.append(task.seed)
        return once(task)

    monkeypatch.setattr(running, "_play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        play()
    played.clear()

    def counted(task: Any) -> Any:
        played.append(task.seed)
        return once(task)

    monkeypatch.setattr(running, "_play", counted)
    assert str(rows(play(), "seconds")) == str(whole)
    assert played == list(range(8, 20))
    larger = play(seeds=range(22))
    assert played[-2:] == [20, 21]
    assert len(played) == 14
    assert len(rows(larger)) == 22


def test_rows_of_other_code_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play = partial(benchmark.run, [benchmark.Noise()], [half], m=[50], seeds=[0], store=tmp_path)
    before = rows(play())
    monkeypatch.setattr(table, "origin", lambda: {"version": "0", "commit": "other"})
    monkeypatch.setattr(running, "origin", lambda: {"version": "0", "commit": "other"})
    assert rows(play())[0]["commit"] == "other"
    assert len(rows(benchmark.Table.read(tmp_path))) == 2
    assert before[0]["options"].startswith("code ")


def test_damaged_stores_and_corpora_are_refused(tmp_path: Path) -> None:
    play = partial(benchmark.run, [benchmark.Noise()], [half], m=[50], seeds=[0], store=tmp_path)
    play()
    (file,) = tmp_path.glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(FormatError, match="is no whole parquet file"):
        play()
    found = benchmark.run([benchmark.Scores(file)], [half], m=[50], seeds=[0])
    assert "is no whole parquet file" in rows(found)[0]["error"]


def test_stored_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = simulate.gaussian(300, 3.0, seed=1)
    columns = {"score": game.scores, "member": game.member}
    parquet.write_table(pa.table(columns), tmp_path / "mine.parquet")
    monkeypatch.setenv("LEAKBOUND_CORPUS", str(tmp_path))
    found = benchmark.run(
        [benchmark.Scores("mine"), benchmark.Scores(tmp_path / "mine.parquet")],
        [lb.KLScan()],
        m=[300],
        seeds=[0],
    )
    one, other = rows(found, "game", "seconds")
    assert str(one) == str(other)
    assert math.isnan(one["truth"])
    assert one["false_claim"] is None
    assert one["bound"] == lb.audit(game.scores, lb.Coins(game.member), seed=0).bound
    played = benchmark.Scores("mine")(100, seed=3)
    again = benchmark.Scores("mine")(100, seed=3)
    assert np.array_equal(played.scores, again.scores)
    assert set(played.scores) <= set(game.scores)
    for wrong, said in (
        (partial(benchmark.Scores("mine"), 301), "m=301 is too many"),
        (partial(benchmark.Scores("mine", "loss"), 5), "has no column 'loss', but score, member"),
        (partial(benchmark.Scores("none"), 5), "which has mine"),
    ):
        with pytest.raises((FormatError, OptionError), match=said):
            wrong(seed=0)


def test_false_claims_have_exact_limits() -> None:
    def too_much(*_: Any) -> float:
        return 0.1

    summary = benchmark.run(
        [benchmark.Noise()], [too_much, lb.KLScan()], m=[60], seeds=range(30)
    ).summary()
    caught, holds = summary.lines
    assert summary.false == (caught,)
    assert caught["false_claims"] == 30
    assert (caught["low"], caught["high"]) == (pytest.approx(0.025 ** (1 / 30)), 1.0)
    limits = scipy_stats.binomtest(holds["false_claims"], 30).proportion_ci(0.95, "exact")
    assert (holds["low"], holds["high"]) == (pytest.approx(limits.low), pytest.approx(limits.high))
    assert holds["p_value"] == pytest.approx(
        scipy_stats.binom.sf(holds["false_claims"] - 1, 30, 0.05)
    )
    text = summary.to_markdown()
    assert "**30 of 30 (88.4 to 100.0 %)**" in text
    assert len(text.splitlines()) == 4


@pytest.mark.parametrize("claim", [lb.PureDP(), lb.ApproxDP(delta=1e-5), lb.GaussianDP()])
def test_the_oracle_is_the_best_fixed_cut(claim: Any) -> None:
    for game in (benchmark.Gaussian(mu=1), benchmark.OneSidedTail(), benchmark.Shifted()):
        found = benchmark.run([game], [lb.Fixed(20), lb.Fixed(150)], [claim], m=[300], seeds=[0])
        for row in rows(found):
            assert row["bound"] <= 1.05 * row["oracle"]


def test_pictures() -> None:
    found = benchmark.run(
        [benchmark.Noise(), benchmark.RandomizedResponse(epsilon=1)],
        [lb.KLScan(), half],
        m=[50, 100],
        seeds=range(3),
    )
    titles = [ax.get_title(loc="left") for ax in found.plot().axes if ax.get_title(loc="left")]
    assert titles == ["null", "randomized_response(epsilon=1)"]
    drawn = found.plot("false claims", claim="pure DP")
    assert [one.get_text() for one in drawn.axes[0].get_yticklabels()][-1] == "KLScan, m = 50"
    with pytest.raises(OptionError, match="what must be one of"):
        found.plot("bounds")  # type: ignore[arg-type]


def test_bad_options() -> None:
    with pytest.raises(OptionError, match="nothing to do"):
        benchmark.run([], [lb.KLScan()])
    with pytest.raises(OptionError, match="have one name"):
        benchmark.run([benchmark.Noise()], [half, half])
    with pytest.raises(InputTypeError, match="a bound must be a cut policy or callable"):
        benchmark.run([benchmark.Noise()], ["kl"])
    with pytest.raises(InputTypeError, match="claims must be"):
        benchmark.run([benchmark.Noise()], [half], ["pure"])  # type: ignore[list-item]
    with pytest.raises(OptionError, match="no lambdas"):
        benchmark.run([benchmark.Noise()], [lambda *_: 0.0], m=[9], processes=2)
    with pytest.raises(OptionError, match="m must be at least 1"):
        benchmark.run([benchmark.Noise()], [half], m=[0])


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
    shell = CliRunner()
    mine = ["benchmark", "-m", "200", "--bound", "kl", "--attack"]
    honest = shell.invoke(app, [*mine, "my_attack:honest", "--store", "rows"])
    assert honest.exit_code == 0, honest.output
    assert "No bound false more often" in honest.stdout
    cheat = shell.invoke(app, [*mine, "my_attack:cheat", "--table", "table.md"])
    assert cheat.exit_code == 1
    assert "1 of 1 bounds false more often" in cheat.stdout
    assert "**20 of 20 (" in (tmp_path / "table.md").read_text(encoding="utf-8")
    words = ["benchmark", "noise", "ties", "-m", "60", "--seeds", "9", "--bound", "my_attack:sure"]
    table = shell.invoke(app, [*words, "--bound", "fixed:20", "--plot", "bounds.svg", "--json"])
    assert table.exit_code == 1, table.output
    lines = json.loads(table.stdout)
    assert [line["false_claims"] for line in lines[::2]] == [9, 0]
    assert (tmp_path / "bounds.svg").read_text(encoding="utf-8").startswith("<?xml")
    for bad in (
        ["nothing-like-it"],
        ["--attack", "my_attack:none"],
        ["--attack", "nowhere"],
        ["noise", "--bound", "my_attack:none"],
        ["noise", "--bound", "kll"],
        [*mine[1:], "my_attack:broken"],
    ):
        refused = shell.invoke(app, ["benchmark", *bad])
        assert refused.exit_code == 2, bad
        assert refused.stderr.startswith("leakbound: ")
