"""Counts outlive an interruption, and only those of the same code and seed count."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from ended_at_events import interrupted_at_every_event, killed_at_every_event
from leakbound.errors import FormatError, OptionError
from validity import suite


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


def case(trial: Coin, audit: str = "coin") -> suite.Case:
    return suite.Case(
        audit=audit, claim="none", cuts="none", sides="both", truth="none", error=0.1, trial=trial
    )


def test_an_interruption_loses_at_most_one_chunk(tmp_path: Path) -> None:
    whole = suite.run([case(Coin())], repetitions=1100, seed=1)
    with pytest.raises(KeyboardInterrupt):
        suite.run([case(Coin(stop=620))], repetitions=1100, seed=1, checkpoint=tmp_path)
    again = Coin()
    assert suite.run([case(again)], repetitions=1100, seed=1, checkpoint=tmp_path) == whole
    assert len(again.played) == 600  # 500 games were kept, and 120 of a chunk were lost
    none = Coin()
    assert suite.run([case(none)], repetitions=1100, seed=1, checkpoint=tmp_path) == whole
    assert none.played == []


@pytest.mark.parametrize("ended", [killed_at_every_event, interrupted_at_every_event])
def test_counts_outlive_an_end_at_every_event_of_their_files(
    ended: Callable[[Callable[[], str], Path], tuple[list[str], str]], tmp_path: Path
) -> None:
    cases = [case(Coin()), case(Coin(), "other")]
    whole = suite.run(cases, repetitions=300, seed=1)
    folder = tmp_path / "counts"
    events, found = ended(
        lambda: repr(suite.run(cases, repetitions=300, seed=1, checkpoint=folder)), folder
    )
    assert found == repr(whole)
    names = [f"{suite._name_of(one)}.npz" for one in cases]
    for name in ("made-of.json", *names):
        assert {f"fsync .{name}", f"os.rename .{name}", f"open {name}"} <= {*events}
    assert {one.name for one in folder.glob("[!.]*")} == {"made-of.json", *names}


def test_more_games_and_more_cases_play_what_is_new(tmp_path: Path) -> None:
    suite.run([case(Coin())], repetitions=500, checkpoint=tmp_path)
    first, second = Coin(), Coin()
    both = [case(first), case(second, "other")]
    longer = suite.run(both, repetitions=600, checkpoint=tmp_path)
    with pytest.raises(OptionError, match="same name and trial"):
        suite.run(both[:1] * 2, repetitions=600, checkpoint=tmp_path)
    assert (len(first.played), len(second.played)) == (100, 600)
    assert longer == suite.run([case(Coin()), case(Coin(), "other")], repetitions=600)


def test_counts_of_another_seed_or_source_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.run([case(Coin())], repetitions=10, seed=1, checkpoint=tmp_path)
    with pytest.raises(FormatError, match="are from another seed; choose another folder"):
        suite.run([case(Coin())], repetitions=10, seed=2, checkpoint=tmp_path)
    monkeypatch.setattr("validity.suite.source_digest", lambda: "0" * 64)
    with pytest.raises(FormatError, match="from another source"):
        suite.run([case(Coin())], repetitions=10, seed=1, checkpoint=tmp_path)


def test_damaged_counts_are_refused(tmp_path: Path) -> None:
    cases = [case(Coin()), case(Coin(), "other")]
    suite.run(cases, repetitions=250, checkpoint=tmp_path)
    first, second = sorted(tmp_path.glob("*.npz"))
    whole = first.read_bytes()
    renamed = whole.replace(b"counts", b"caunts")
    for damaged in (b"", b"[]", whole[:-1], renamed, second.read_bytes()):
        first.write_bytes(damaged)
        with pytest.raises(FormatError, match="delete it to repeat this step"):
            suite.run(cases, repetitions=250, checkpoint=tmp_path)


def test_tables_show_what_is_not_as_expected() -> None:
    wrong = replace(case(Coin()), truth="a|b", trial=lambda seed: seed % 2 == 0)
    report = suite.run([wrong], repetitions=200)
    assert "0 of 1 valid audits hold" in report.summary()
    assert "| a\\|b | 200 | 100 | 50.00 % | 10 % |" in report.to_markdown()
    assert report.to_markdown().rstrip().endswith("| holds | **fails** |")
