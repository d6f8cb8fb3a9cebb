"""Files in other layouts are read as what they are, or refused with the option that says it."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

import leakbound as lb
from command_line import leakbound
from leakbound.cli.layouts import parse_layout
from leakbound.errors import IncompatibleOptionsError, OptionError

RNG = np.random.default_rng(5)
MEMBER = RNG.random(120) < 0.5
SCORE = np.round(RNG.normal(size=120) + 2 * MEMBER, 4)
BOUND = lb.audit(SCORE, lb.Coins(MEMBER)).bound


def rows(separator: str, decimal: str = ".", words: tuple[str, str] = ("1", "0")) -> str:
    lines = [separator.join(("loss", "label", "note"))]
    for score, member in zip(SCORE, MEMBER, strict=True):
        number = str(score).replace(".", decimal)
        lines.append(separator.join((number, words[0] if member else words[1], "x")))
    return "\n".join(lines) + "\n"


def objects() -> str:
    pairs = zip(SCORE.tolist(), MEMBER.tolist(), strict=True)
    return "".join(json.dumps({"loss": s, "label": m}) + "\n" for s, m in pairs)


FILES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "words": ("a.csv", rows(",", words=("in", "out")), ("--member-values", "in,out")),
    "tsv": ("a.tsv", rows("\t"), ()),
    "tabs in a csv": ("a.csv", rows("\t"), ("--sep", "tab")),
    "semicolons": ("a.csv", rows(";"), ("--sep", ";", "--decimal", ".")),
    "decimal commas": ("a.csv", rows(";", ","), ("--sep", ";", "--decimal", ",")),
    "tabs and decimal commas": ("a.tsv", rows("\t", ","), ("--decimal", ",")),
    "JSON lines": ("a.jsonl", objects(), ()),
}


@pytest.mark.parametrize("case", FILES)
def test_files_in_other_layouts(case: str, tmp_path: Path) -> None:
    name, text, options = FILES[case]
    columns = ("--score-col", "loss", "--member-col", "label")
    (tmp_path / name).write_text(text)
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (tmp_path / name, packed):
        answer = leakbound("one-run", path, *columns, *options, "--json")
        assert lb.AuditResult.from_json(answer.out).bound == BOUND
    packed.write_bytes(gzip.compress(text.encode())[:-20])
    assert "was cut off" in leakbound("one-run", packed, *columns, *options).refusal


def test_words_of_membership_in_an_archive_of_columns(tmp_path: Path) -> None:
    """Of one column each, too, as a model's outputs often are."""
    path, words = tmp_path / "a.npz", np.where(MEMBER, "in", "out")
    np.savez(path, loss=SCORE[:, None], keep=words[:, None])
    options = ("--score-col", "loss", "--member-col", "keep")
    answer = leakbound("one-run", path, *options, "--member-values", "in,out", "--json")
    assert lb.AuditResult.from_json(answer.out).bound == BOUND
    wrong = leakbound("one-run", path, *options, "--member-values", "yes,out")
    assert "keep must be 'yes' or 'out', as --member-values says; it is 'in'" in wrong.refusal


SEMICOLONS = ("--sep", ";", "--decimal")
REFUSED = {
    "two separators": ("a.csv", "score;x,member\n1;2,1\n", (), "say --sep if columns are not"),
    "semicolons": ("a.csv", "score;member\n1;1\n", (), "say --sep if columns are not"),
    "thousands": ("a.csv", "score;member\n1,234;1\n2,345;0\n", SEMICOLONS[:2], "needs --decimal"),
    "commas": ("a.tsv", "score\tmember\n1,5\t1\n", (), "'1,5' (--decimal , if that is the"),
    "both signs": ("a.csv", "score;member\n1.234,5;1\n", (*SEMICOLONS, ","), "'1.234,5'"),
    "other sign": (
        "a.csv",
        "score;member\n1.234;1\n2,5;0\n",
        (*SEMICOLONS, ","),
        "line 2: score must be a number",
    ),
    "words": ("a.csv", "score,member\n1,in\n2,out\n", (), "what --member-values IN,OUT names"),
    "one column twice": (
        "a.csv",
        "score,member\n1,1\n",
        ("--member-col", "score"),
        "in two roles: --member-col names the one",
    ),
    "another name of members": ("a.csv", "score,x\n1,1\n", (), "name another by --member-col"),
    "a sheet": ("a.xlsx", "", (), "save the sheet as .csv"),
    "JSON": ("a.json", "", (), "rename it to .jsonl"),
    "an empty object": ("a.jsonl", "\n", (), "needs a JSON object on each line"),
    "no JSON": ("a.jsonl", "{score: 1}\n", (), "line 1 is not JSON"),
    "a missing name": (
        "a.jsonl",
        '{"score": 1, "member": 1}\n{"score": 1}\n',
        (),
        "line 2 has no 'member'",
    ),
    "null": ("a.jsonl", '{"score": null, "member": 1}\n', (), "it is empty"),
    "no gzip": ("a.csv.gz", "score,member\n1,1\n", (), "is not compressed by gzip"),
    "an unknown suffix": ("a.txt", "score,member\n", (), "expected a .csv"),
    "an archive": ("a.npz.gz", "", (), "expected a .csv"),
}


@pytest.mark.parametrize(("name", "text", "options", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_open_to_doubt_is_refused(
    name: str, text: str, options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert words in leakbound("one-run", tmp_path / name, *options).refusal


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("member", "in,in", "", ""), OptionError),
        (("member", "", "|", ""), OptionError),
        (("member", "", ",", ","), IncompatibleOptionsError),
    ],
)
def test_layouts_that_make_no_sense(
    options: tuple[str, str, str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        parse_layout(*options)


def test_a_plan_is_joined_by_id(tmp_path: Path) -> None:
    plan = lb.InclusionPlan.create(300, seed=3)
    scores = RNG.normal(size=300) + 2 * plan.member
    expected = lb.audit(scores, lb.Coins(plan))
    plan.save(tmp_path / "plan.npz")
    order = RNG.permutation(300)
    lines = [f"{plan.ids[i]},{float(scores[i])!r}" for i in order]
    path = tmp_path / "scores.csv"
    path.write_text("id,score\n" + "\n".join(lines) + "\n")
    answer = leakbound("one-run", path, "--plan", tmp_path / "plan.npz", "--json")
    assert lb.AuditResult.from_json(answer.out).bound == expected.bound
    for text, words in (
        ("id,score\nx,0.5\n", "x of the column id, 0, 1, 2, … of the plan"),
        ("id,score\n0,0.5\n", "299 of the plan are not in the column id (1, 2, 3, …)"),
        ("score\n0.5\n", "1 rows without a column id, and 300 examples in the plan"),
    ):
        path.write_text(text)
        refusal = leakbound("one-run", path, "--plan", tmp_path / "plan.npz").refusal
        assert refusal.startswith(f"leakbound: {path}: ")
        assert words in refusal
        assert "--plan takes the one that decided on these examples" in refusal
        assert "numpy" not in refusal
    path.write_text("id,score,member\n" + "\n".join(f"{line},1" for line in lines) + "\n")
    differs = leakbound("one-run", path, "--plan", tmp_path / "plan.npz").refusal
    assert "is not that of the plan" in differs


PAGE = Path(__file__).parents[3] / "docs/how-to/from-a-file.md"
KEPT = re.findall(r"^\|[^|\n]*\| `(.*)` \|$", PAGE.read_text(encoding="utf-8"), re.M)
"""What the guide says to run on what other tools keep."""


@pytest.mark.parametrize("line", KEPT)
def test_what_other_tools_keep_is_a_line_away(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pandas = pytest.importorskip("pandas")
    inside, outside = SCORE[MEMBER], SCORE[~MEMBER]
    np.save("score.npy", SCORE)
    np.save("member.npy", MEMBER)
    names = {
        "np": np,
        "pd": pandas,
        "inside": inside,
        "outside": outside,
        "train": pandas.DataFrame({"separable_id": range(inside.size), "score": inside}),
        "test": pandas.DataFrame({"separable_id": range(outside.size), "score": outside}),
        "scores": SCORE,
        "keep": MEMBER,
    }
    exec(line, names)
    (written,) = tmp_path.glob("scores.*")
    answer = leakbound("one-run", written, "--json")
    assert lb.AuditResult.from_json(answer.out).bound == BOUND
