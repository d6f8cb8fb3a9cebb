"""The GitHub Action: its steps run here as a runner would run them, code for code."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from command_line import MEMBER, SCORE, csv_text

ROOT = Path(__file__).parents[3]
ACTION: Any = yaml.safe_load((ROOT / ".github/actions/audit/action.yml").read_text("utf-8"))
WORKFLOW: Any = yaml.safe_load((ROOT / "docs/audit.yml").read_text("utf-8"))
STEP = ACTION["runs"]["steps"][1]


def test_the_action_is_composite_and_its_inputs_reach_scripts_as_variables_alone() -> None:
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]  # which would paste an input into the script
        for value in step["env"].values():
            name = value.removeprefix("${{ inputs.").removesuffix(" }}")
            assert name in ACTION["inputs"]


def test_the_workflow_gives_the_action_what_it_takes() -> None:
    steps = WORKFLOW["jobs"]["audit"]["steps"]
    used = next(step for step in steps if "/actions/audit@" in step.get("uses", ""))
    assert used["with"].keys() <= ACTION["inputs"].keys()
    needed = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert needed <= used["with"].keys()


def perform(folder: Path, program: str, **inputs: str) -> tuple[int, dict[str, str], str]:
    """Run the step of the audit; return its exit code, its outputs and what it printed."""
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    names = {
        variable: value.removeprefix("${{ inputs.").removesuffix(" }}")
        for variable, value in STEP["env"].items()
    }
    (folder / "leakbound").write_text(f"#!/bin/bash\n{program}\n", encoding="utf-8")
    (folder / "leakbound").chmod(0o755)
    output = folder / "output"
    output.write_text("")
    environment = os.environ | {variable: given[name] for variable, name in names.items()}
    environment |= {
        "GITHUB_OUTPUT": str(output),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP["run"]],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    pairs = [line.split("=", 1) for line in output.read_text().splitlines()]
    return done.returncode, {one[0]: one[1] for one in pairs}, done.stdout


REAL = f'exec {sys.executable} -m leakbound "$@"'


@pytest.mark.parametrize(
    ("inputs", "ended", "code", "verdict", "words"),
    [
        ({"claim": "eps=1"}, 0, 0, "not refuted", ""),
        ({"claim": "eps=1"}, 1, 1, "refuted", "::error title=Privacy audit::The claim eps=1 is"),
        ({"claim": "eps=1"}, 3, 3, "inconclusive", "::warning"),
        ({"claim": "eps=1", "inconclusive": "pass"}, 3, 0, "inconclusive", "::warning"),
        ({"claim": "eps=1", "inconclusive": "pass"}, 1, 1, "refuted", "::error"),
        ({}, 0, 0, "none", ""),
        ({"claim": "eps=1"}, 2, 2, None, "ended with 2: nothing was judged"),
        ({"claim": "eps=1"}, 137, 137, None, "ended with 137: nothing was judged"),
        ({"claim": "eps=1", "lenient": "True"}, 0, 2, None, "lenient is true or false, not True"),
        ({"inconclusive": "ok"}, 3, 2, None, "inconclusive is fail or pass, not ok"),
    ],
)
def test_each_exit_code_has_its_verdict(
    inputs: dict[str, str], ended: int, code: int, verdict: str | None, words: str, tmp_path: Path
) -> None:
    program = f"mkdir leakbound-audit; echo {{}} > leakbound-audit/result.json; exit {ended}"
    found, outputs, said = perform(tmp_path, program, scores="scores.csv", **inputs)
    assert found == code
    assert outputs.get("verdict") == verdict
    assert words in said


@pytest.mark.parametrize("stale", [False, True])
def test_what_wrote_no_result_judged_nothing(*, stale: bool, tmp_path: Path) -> None:
    """Help ends with 0 too; nor does the result of an earlier run stand in."""
    if stale:
        (tmp_path / "leakbound-audit").mkdir()
        (tmp_path / "leakbound-audit" / "result.json").write_text("{}", encoding="utf-8")
    found, outputs, said = perform(tmp_path, REAL, scores="x.csv", audit="--version")
    assert found == 70
    assert "verdict" not in outputs
    assert "ended with 0, and leakbound-audit/result.json was not written" in said


def test_words_reach_the_program_whole(tmp_path: Path) -> None:
    perform(
        tmp_path,
        r"""printf '[%s]\n' "$@" > words""",
        scores="my scores.csv",
        claim="eps=1; touch x $(touch y)",
        lenient="true",
        options="--cuts\nfixed:40\n\n--seed\n3",
    )
    assert (tmp_path / "words").read_text().splitlines() == [
        "[coins]", "[my scores.csv]", "[--json]", "[--out]", "[leakbound-audit]", "[--bundle]",
        "[leakbound-audit/bundle]", "[--claim]", "[eps=1; touch x $(touch y)]", "[--lenient]",
        "[--cuts]", "[fixed:40]", "[--seed]", "[3]",
    ]  # fmt: skip
    assert not {"x", "y"} & {file.name for file in tmp_path.iterdir()}


def test_the_program_itself(tmp_path: Path) -> None:
    table = csv_text(score=np.asarray(SCORE), member=MEMBER)
    (tmp_path / "scores.csv").write_text(table, encoding="utf-8")
    found, outputs, _ = perform(tmp_path, REAL, scores="scores.csv", claim="eps=1")
    assert (found, outputs["verdict"]) == (1, "refuted")
    assert (tmp_path / outputs["result"]).is_file()
    assert (tmp_path / "leakbound-audit" / "bundle" / "manifest.json").is_file()
