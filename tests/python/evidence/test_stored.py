"""Any stored result is read back; of other files, the message says what they are."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from command_line import csv_text, leakbound
from commitments import PROTOCOL
from games import game
from leakbound import planning
from leakbound.dp_sgd import audit_batches
from leakbound.errors import FormatError
from leakbound.evidence.stored import _TYPES
from leakbound.mechanisms import LaplaceNoise, audit_mechanism
from leakbound.planning import ChoicePlan
from oracle_calls import coins, panoramia, split, stream, synthetic, trials, zero_run
from toy_steps import Toy, probed

ROOT = Path(__file__).parents[3]


def choices() -> Any:
    chosen = np.arange(60) % 3
    scores = np.eye(3)[chosen] + np.random.default_rng(0).normal(size=(60, 3)) / 4
    return lb.audit(scores, lb.Choices(chosen, 3), seed=0)


def batches() -> Any:
    rng = np.random.default_rng(0)
    drawn = [np.flatnonzero(rng.random(200) < 0.1) for _ in range(60)]
    return audit_batches(drawn, examples=200, seed=0)


def mechanism() -> Any:
    noise = LaplaceNoise()
    data = (noise.d0, noise.d1)
    how: dict[str, Any] = {"parameter": noise.parameter, "most_runs": 1000, "seed": 0}
    return audit_mechanism(noise.run, *data, noise.claim, **how)


RESULTS: dict[str, Callable[[], Any]] = {
    "coins": lambda: coins("leaks").with_check(epsilon=1.0),
    "a family": lambda: coins("leaks", "gaussian"),
    "split": lambda: split("leaks"),
    "choices": choices,
    "trials": lambda: trials("leaks", "pure"),
    "mechanism": mechanism,
    "stream": lambda: stream("both"),
    "zero-run": lambda: zero_run("pure"),
    "panoramia": lambda: panoramia(leak=3.0),
    "synthetic": lambda: synthetic("copies", "pure", challenge=False),
    "a probed step": lambda: probed(Toy()),
    "batches": batches,
    "a forecast": lambda: planning.power(60, 3.0, simulations=20),
    "canaries needed": lambda: planning.canaries_needed(1.0, 3.0, simulations=20),
    "a curve": lambda: lb.TradeOff.gaussian(1.0),
}
"""Each is read here; those of DP-SGD and of PANORAMIA's runs where the protocol is tested."""


@pytest.mark.parametrize("name", RESULTS)
def test_stored_results_are_read_back(name: str, tmp_path: Path) -> None:
    result = RESULTS[name]()
    path = tmp_path / "any name.json"
    path.write_text(result.to_json(), encoding="utf-8")
    for source in (path, str(path), result.to_json()):
        loaded = lb.load(source)
        assert type(loaded) is type(result)
        assert loaded == result


def test_every_type_that_has_a_schema_is_read() -> None:
    made = runpy.run_path(str(ROOT / "tests" / "golden" / "generate" / "schema.py"))
    read = {name for names in _TYPES.values() for name in names}
    assert read == {kind.__name__ for kind in made["KINDS"]}


def test_what_a_command_writes_is_read(tmp_path: Path) -> None:
    data = game(240, leak=2.5)
    path = tmp_path / "scores.csv"
    path.write_text(csv_text(score=data.scores, member=data.member.astype(int)))
    out = tmp_path / "audit"
    assert leakbound("coins", path, "--claim", "eps=0.5", "--out", out).code == 1
    assert lb.load(out / "result.json").check(epsilon=0.5) == "refuted"
    with pytest.raises(FormatError, match=r"audit is a folder, .* load .*result\.json$"):
        lb.load(out)
    with pytest.raises(FormatError, match=r"report\.html is a report for people"):
        lb.load(out / "report.html")


def others(folder: Path) -> dict[str, tuple[Path, str]]:
    """Return files that are no results, and what is said of each."""
    plan = lb.InclusionPlan.create(40, seed=1)
    plan.save(folder / "plan.npz")
    ChoicePlan.create(40, k=3, seed=1).save(folder / "choices.npz")
    np.savez(folder / "scores.npz", score=np.arange(3.0))
    opening = plan.commit(PROTOCOL)
    opening.save(folder / "secret")
    opening.commitment.to_json(folder / "commitment.json")
    scores = plan.member + np.arange(40) / 100
    bundled = lb.audit(scores, lb.Coins(plan), seed=0)
    bundled.bundle(folder / "bundle", scores=scores, plan=plan)
    texts = {
        "list.json": "[]",
        "empty.json": "",
        "other.json": '{"a": 1}',
        "part.json": '{"schema": 1, "type": "Curve"}',
        "newer.json": '{"schema": 9, "type": "AuditResult"}',
        "table.csv": "score,member\n1,1\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "short.npz").write_bytes((folder / "plan.npz").read_bytes()[:50])
    said = {
        "plan.npz": r"is a plan, not a result: read it by leakbound\.InclusionPlan\.load",
        "choices.npz": "is a plan, not a result",
        "scores.npz": "is a zip archive",
        "short.npz": "ends too early",
        "secret": "is a folder, not a stored result",
        "secret/opening.json": "it is the opening of a commitment",
        "commitment.json": "it is a commitment: read it by",
        "bundle": r"is the folder of a bundle \(leakbound verify checks it\).*load .*result\.json$",
        "bundle/manifest.json": "it is the manifest of a bundle",
        "list.json": "it holds a list",
        "empty.json": "ends too early",
        "other.json": "it has no type and schema",
        "part.json": "its type 'Curve' is not stored by itself, as these are: AuditResult, ",
        "newer.json": r"it has layout \(schema\) 9, .* a later version wrote it",
        "table.csv": "not JSON of this package",
    }
    return {name: (folder / name, words) for name, words in said.items()}


def test_of_other_files_the_message_says_what_they_are(tmp_path: Path) -> None:
    for path, words in others(tmp_path).values():
        with pytest.raises(FormatError, match=words) as refused:
            lb.load(path)
        assert str(path) in str(refused.value)


def test_a_file_that_ends_early_is_said_to(tmp_path: Path) -> None:
    text = coins("leaks").to_json()
    path = tmp_path / "result.json"
    for size in range(1, len(text), 997):
        path.write_text(text[:size], encoding="utf-8")
        with pytest.raises(FormatError, match="ends too early"):
            lb.load(path)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        lb.load(tmp_path / "nowhere.json")


def test_a_changed_number_is_refused() -> None:
    data = json.loads(coins("leaks").to_json())
    data["bound"] = data["ceiling"] + 1
    with pytest.raises(FormatError, match=r"^the text is not a stored result: .*ceiling"):
        lb.load(json.dumps(data))


def test_the_reader_of_one_type_names_the_reader_of_all() -> None:
    stored = trials("leaks", "pure").to_json()
    with pytest.raises(FormatError, match="type is AuditResult, not ZeroRunResult"):
        lb.ZeroRunResult.from_json(stored)
