"""Counts outlive an interruption, and only those of the same code and seed count."""

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import leakbound
from leakbound import validity
from leakbound.cli.commands import app
from leakbound.errors import FormatError, OptionError
from leakbound.validity.suite import source_digest


@dataclass
class Coin:
    """A trial that claims too much by chance, and is interrupted at one of its games."""

    stop: int = -1
    played: list[int] = field(default_factory=list, repr=False)

    def __call__(self, seed: int) -> bool:
        if len(self.played) == self.stop:
            raise KeyboardInterrupt
        self.played.append(seed)
        return bool(np.random.default_rng(seed).random() < 0.1)

    def __repr__(self) -> str:
        return "Coin()"


def case(trial: Coin, audit: str = "coin") -> validity.Case:
    return validity.Case(
        audit=audit, claim="none", cuts="none", sides="both", truth="none", error=0.1, trial=trial
    )


def test_an_interruption_loses_at_most_one_chunk(tmp_path: Path) -> None:
    whole = validity.run([case(Coin())], repetitions=1100, seed=1)
    with pytest.raises(KeyboardInterrupt):
        validity.run([case(Coin(stop=620))], repetitions=1100, seed=1, checkpoint=tmp_path)
    again = Coin()
    assert validity.run([case(again)], repetitions=1100, seed=1, checkpoint=tmp_path) == whole
    assert len(again.played) == 600  # 500 games were kept, and 120 of a chunk were lost
    none = Coin()
    assert validity.run([case(none)], repetitions=1100, seed=1, checkpoint=tmp_path) == whole
    assert none.played == []


def test_more_games_and_more_cases_play_what_is_new(tmp_path: Path) -> None:
    validity.run([case(Coin())], repetitions=500, checkpoint=tmp_path)
    first, second = Coin(), Coin()
    both = [case(first), case(second, "other")]
    longer = validity.run(both, repetitions=600, checkpoint=tmp_path)
    assert (len(first.played), len(second.played)) == (100, 600)
    assert longer == validity.run([case(Coin()), case(Coin(), "other")], repetitions=600)


def test_counts_of_another_seed_or_source_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    validity.run([case(Coin())], repetitions=10, seed=1, checkpoint=tmp_path)
    with pytest.raises(FormatError, match="are of another seed; name another folder"):
        validity.run([case(Coin())], repetitions=10, seed=2, checkpoint=tmp_path)
    monkeypatch.setattr("leakbound.validity.suite.source_digest", lambda: "0" * 64)
    with pytest.raises(FormatError, match="of another source"):
        validity.run([case(Coin())], repetitions=10, seed=1, checkpoint=tmp_path)


def test_damaged_counts_are_refused(tmp_path: Path) -> None:
    played = case(Coin())
    validity.run([played, case(Coin(), "other")], repetitions=250, checkpoint=tmp_path)
    first, second = sorted(tmp_path.glob("*.npz"))
    whole = first.read_bytes()
    renamed = whole.replace(b"counts", b"caunts")
    for damaged in (b"", b"[]", whole[:-1], renamed, second.read_bytes()):
        first.write_bytes(damaged)
        with pytest.raises(FormatError, match="remove it to redo its work"):
            validity.run([played, case(Coin(), "other")], repetitions=250, checkpoint=tmp_path)
    first.unlink()
    assert validity.run([played], repetitions=250, checkpoint=tmp_path).rates[0].repetitions == 250


def test_cases_alike_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="same name and trial"):
        validity.run([case(Coin()), case(Coin())], repetitions=10, checkpoint=tmp_path / "new")


def test_a_digest_tells_every_change_of_the_code(tmp_path: Path) -> None:
    digests = set()
    for name, text in [("a.py", ""), ("a.py", "x = 1"), ("deep/b.py", ""), ("core.so", "0")]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        digests.add(source_digest.__wrapped__(tmp_path))
    assert len(digests) == 4
    (tmp_path / "page.html").write_text("no code", encoding="utf-8")
    assert source_digest.__wrapped__(tmp_path) in digests


ATTACK = """
def cheat(member, seed):
    return member + 0.0
"""


def test_the_command_writes_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    shell = CliRunner()
    words = ["validate", "pure", "both", "--repetitions", "250", "--table", "table.md"]
    result = shell.invoke(app, words)
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()
    cases = validity.cases("pure both")
    assert f"leakbound {leakbound.__version__}, seed 0:" in lines
    games = f"{250 * len(cases):,} games of {len(cases)} cases."
    assert any(line.startswith(games) for line in lines)
    rows = [line for line in lines if line.startswith("| pure DP |")]
    assert len(rows) == len(cases)
    assert sum(row.endswith("| holds | holds |") for row in rows) == sum(c.valid for c in cases)
    assert sum(row.endswith("| fails | fails |") for row in rows) == sum(not c.valid for c in cases)
    (tmp_path / "mine.py").write_text(ATTACK, encoding="utf-8")
    refused = shell.invoke(app, ["validate", "--attack", "mine:cheat", "--checkpoint", "folder"])
    assert refused.exit_code == 2
    assert "--checkpoint keeps no counts of an --attack" in refused.stderr


def test_tables_show_what_is_not_as_expected() -> None:
    wrong = replace(case(Coin()), truth="a|b", trial=lambda seed: seed % 2 == 0)
    report = validity.run([wrong], repetitions=200)
    assert "0 of 1 valid audits hold" in report.summary()
    assert "| a\\|b | 200 | 100 | 50.00 % | 10 % |" in report.to_markdown()
    assert report.to_markdown().rstrip().endswith("| holds | **fails** |")
