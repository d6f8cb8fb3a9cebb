"""What a user reads, as whole texts: results, plans, refusals, a page, the command line.

python tests/support/snapshots.py    writes tests/golden/text; `git diff` shows what changed
"""

import html
import json
import os
import pydoc
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import flat
import leakbound as lb
from command_line import csv_text, leakbound
from games import game
from leakbound import report
from leakbound.errors import LeakboundError
from oracle_calls import coins, dp_sgd, panoramia, power, split, stream, synthetic, zero_run
from public import signatures

__all__ = ["FOLDER", "SNAPSHOTS", "text_of"]

FOLDER = Path(__file__).parents[1] / "golden" / "text"
_OF_THIS_MACHINE = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"(?<![\d.])\d+\.\d+\.\d+(?![\d.])"), "VERSION"),
)
"""Colours, digests of inputs, versions: what differs from machine to machine."""
_LONG = re.compile(r"\d+\.\d{7,}(?:e-?\d+)?")
"""Numbers to more digits than any machine agrees on."""
_FIRST = (
    *("audit", "audit_model", "audit_synthetic", "Coins", "RandomSplit", "Choices", "ZeroRun"),
    *("InclusionPlan", "watch_dp_sgd", "probe_dp_step"),
)


def said(found: Any, **claimed: Any) -> str:
    """Return a result's description, what it answers to a claim, and the keys of its JSON."""
    sentences = re.sub(r"(?<=\.) (?=\S)", "\n", str(found))
    answered = []
    if claimed:
        answered = [f"Claimed {claimed}: {found.with_check(**claimed).summary().answer}"]
    warnings = [f"Warning: {one}" for one in found.warnings]
    grounds = [f"{one.name}: {one.status}" for one in getattr(found, "assumptions", ())]
    stored = _keys(json.loads(found.to_json()))
    return "\n".join([sentences, *answered, *warnings, "", *grounds, "", *stored])


def _keys(stored: dict[str, Any]) -> list[str]:
    """Return the keys of a JSON object, those of objects in it beside."""
    inner = {key: value if isinstance(value, dict) else {} for key, value in stored.items()}
    return [f"{key}{': ' * bool(inner[key])}{', '.join(inner[key])}" for key in inner]


def page() -> str:
    """Return all words of a report."""
    shown = report.render(coins("leaks").with_check(epsilon=1.0))
    shown = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", shown, flags=re.DOTALL)
    lines = html.unescape(re.sub(r"<[^>]+>", "\n", shown)).splitlines()
    return "\n".join(line.strip() for line in lines if line.strip())


def ran(*commands: str) -> str:
    """Return what commands print and write, on a file of scores."""
    data, told = game(240, leak=2.5, shift=0.75), []
    with tempfile.TemporaryDirectory() as name, patch.dict(os.environ, {"COLUMNS": "100"}):
        folder = Path(name)
        columns = {"score": data.scores, "baseline_score": data.baseline, "x": data.features[:, 0]}
        (folder / "FILE.csv").write_text(csv_text(**columns, member=data.member.astype(int)))
        paths = {"FILE": folder / "FILE.csv", "DIR": folder / "DIR"}
        for command in commands:
            answer = leakbound(*(paths.get(word, word) for word in command.split()))
            told += [f"$ leakbound {command}", answer.out, answer.err, f"exit code {answer.code}"]
        told += sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
    return "\n".join(told).replace(str(folder), "FOLDER")


def refused() -> str:
    """Return refusals of the package."""
    data = game()
    calls: dict[str, Callable[[], Any]] = {
        "a score that is NaN": lambda: flat.coins(np.full(400, np.nan), data.member),
        "lengths that differ": lambda: flat.coins(data.scores[:-1], data.member),
        "scores that are all equal": lambda: flat.coins(np.zeros(400), data.member),
        "membership that is no membership": lambda: flat.coins(data.scores, data.scores),
        "more guesses than examples": lambda: coins("few", cuts="fixed"),
        "a policy without a form for the claim": lambda: coins("leaks", "gaussian", "kl"),
        "confidence of 1": lambda: coins("leaks", confidence=1.0),
        "a δ of 2": lambda: lb.ApproxDP(delta=2.0),
        "propensities of 0 and 1": lambda: zero_run("pure", given="certain"),
        "coins that are not fair": lambda: flat.coins(data.scores, np.arange(400) < 320),
    }
    return "\n".join(f"{name}:\n  {_refusal(call)}" for name, call in calls.items())


def _refusal(call: Callable[[], Any]) -> str:
    try:
        return f"not refused: {call()}"
    except LeakboundError as refusal:
        return f"{type(refusal).__name__}: {refusal}"


def first_names() -> str:
    """Return what `help` shows first of the ten names that people meet first."""
    shown = [pydoc.plain(pydoc.render_doc(getattr(lb, name))) for name in _FIRST]
    return "\n\n".join(one.split("\n |  Methods defined here")[0] for one in shown)


SNAPSHOTS: dict[str, Callable[[], str]] = {
    "coins": lambda: said(coins("leaks"), epsilon=1.0),
    "coins-gaussian": lambda: said(coins("leaks", "gaussian"), epsilon=1.0, delta=1e-5),
    "inconclusive": lambda: said(coins("few"), epsilon=8.0),
    "split": lambda: said(
        split("uneven", "pure", "default", "strata"), epsilon=9.0, relation="replace"
    ),
    "panoramia": lambda: said(panoramia(leak=3.0, shift=1.0, features=True), epsilon=1.0, c=0.5),
    "zero-run": lambda: said(zero_run("gaussian"), epsilon=0.5, delta=1e-5),
    "zero-run-withheld": lambda: said(zero_run("pure", given="half", features=True), epsilon=1.0),
    "zero-run-set": lambda: said(zero_run("pure", given="labels", features=True), epsilon=1.0),
    "zero-run-exploratory": lambda: said(zero_run("pure", given="replicates"), epsilon=1.0),
    "stream": lambda: said(stream("both"), epsilon=1.0),
    "synthetic": lambda: said(
        synthetic("copies", "pure", challenge=False), epsilon=1.0, relation="replace"
    ),
    "dp-sgd": lambda: said(dp_sgd("gaussian", noise=0.4, stated=0.8, steps=20, step_canaries=400)),
    "plan": lambda: str(power("pure", "default", "both")),
    "page": page,
    "refusals": refused,
    "commands": lambda: ran(
        "coins FILE --claim eps=1 --seed 20 --out DIR",
        "coins FILE --attacks nobody",
        "coins FILE --claim eps=-1",
        "coins FILE --sides all",
        "zero-run FILE --features x --seed 20",
        "panoramia FILE --seed 20",
        "plan --truth 3 -m 200 --seed 20",
    ),
    "first-names": first_names,
    "help": lambda: ran("--help", "coins --help"),
    "signatures": signatures,
}
"""Every text by its name."""


def text_of(name: str) -> str:
    """Return a text without what differs from machine to machine."""
    text = SNAPSHOTS[name]()
    for pattern, word in _OF_THIS_MACHINE:
        text = pattern.sub(word, text)
    text = _LONG.sub(lambda found: f"{float(found[0]):.6g}", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def main() -> None:
    """Write every text, and nothing else into the folder."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        path.unlink()
    for name in SNAPSHOTS:
        (FOLDER / f"{name}.txt").write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    main()
