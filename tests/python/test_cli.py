"""The command line: what it reads, prints, writes and returns, and how it refuses."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from typer.testing import CliRunner

import leakbound as lb
from leakbound.cli import _input, _output, app

Run = Callable[..., "Answer"]

PROGRAM = [sys.executable, "-c", "from leakbound.cli import main; main()"]


class Answer:
    """What a command left behind: exit code, standard output, standard error."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def refusal(self) -> str:
        """The one line that bad input is answered with."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.startswith("leakbound: ")
        assert self.err.count("\n") == 1
        return self.err


def leakbound(*arguments: object) -> Answer:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        assert isinstance(result.exception, SystemExit), repr(result.exception)
    return Answer(result.exit_code, result.stdout, result.stderr)


def spawn(*arguments: object) -> Answer:
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return Answer(done.returncode, done.stdout, done.stderr)


rng = np.random.default_rng(8)
MEMBER = rng.random(300) < 0.5
SCORE = rng.normal(size=300) + 2.0 * MEMBER
BASELINE = rng.normal(size=300) + 0.2 * MEMBER
ONE_RUN = lb.audit_one_run(SCORE, MEMBER)
PANORAMIA = lb.audit_panoramia(BASELINE, SCORE, MEMBER)


def csv_text(**columns: object) -> str:
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    lines = [",".join(map(str, row)) for row in rows]
    return "\n".join([",".join(columns), *lines, ""])


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text(csv_text(score=SCORE, member=MEMBER.astype(int), baseline_score=BASELINE))
    return path


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str | bytes], Path]:
    def write(content: str | bytes, name: str = "scores.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


# --- what goes in ---------------------------------------------------------------------------------


def test_all_formats_give_the_same_result(tmp_path: Path, scores: Path) -> None:
    np.savez(tmp_path / "scores.npz", score=SCORE, member=MEMBER, other=np.zeros((2, 2)))
    parquet.write_table(
        pa.table({"score": SCORE, "member": MEMBER, "text": ["x"] * 300}),
        tmp_path / "scores.parquet",
    )
    for path in (scores, tmp_path / "scores.npz", tmp_path / "scores.parquet"):
        answer = leakbound("one-run", path, "--json")
        assert answer.code == 0
        assert lb.AuditResult.from_json(answer.out) == ONE_RUN


@pytest.mark.parametrize(
    "values",
    [("1", "0"), ("1", "-1"), ("True", "False"), ("true", "false"), ("1.0", "0.0"), ("+1", "-1.0")],
)
def test_membership_may_be_written_in_several_ways(
    values: tuple[str, str], table: Callable[[str], Path]
) -> None:
    words = [values[0] if yes else values[1] for yes in MEMBER]
    answer = leakbound("one-run", table(csv_text(score=SCORE, member=words)), "--json")
    assert lb.AuditResult.from_json(answer.out) == ONE_RUN


@pytest.mark.parametrize("reader", [_input._csv_by_arrow, _input._csv_by_line])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_other_columns_blank_lines_quotes_and_a_byte_order_mark_do_no_harm(
    reader: Callable[..., dict[str, object]], end: str, tmp_path: Path
) -> None:
    path = tmp_path / "scores.csv"
    lines = ["\ufeffnote,score,member,id", '"a, b",-1.5e-3,1,x', "", '"",inf,0,"y"']
    path.write_text(end.join(lines), encoding="utf-8", newline="")
    names = _input._csv_names(path)
    assert names == ["note", "score", "member", "id"]
    columns = reader(path, names, ["id", "member", "score"])
    assert np.asarray(columns["score"]).tolist() == [-1.5e-3, np.inf]
    assert np.asarray(columns["member"]).tolist() == [1, 0]
    assert np.asarray(columns["id"]).tolist() == ["x", "y"]


def test_spaces_after_commas_are_no_part_of_names_and_values(table: Callable[[str], Path]) -> None:
    read = _input.read(table("score, member\n0.25, 1\n-2 , 0\n"), {"scores": ("score",)})
    assert read.scores["scores"].tolist() == [0.25, -2.0]
    assert read.member.tolist() == [1, 0]


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=40))
def test_text_becomes_the_same_bits_by_both_readers(
    tmp_path_factory: pytest.TempPathFactory, values: list[float]
) -> None:
    path = tmp_path_factory.mktemp("table") / "scores.csv"
    path.write_text(csv_text(score=values, member=[0] * len(values)))
    expected = np.array(values).view(np.int64).tolist()
    for reader in (_input._csv_by_arrow, _input._csv_by_line):
        columns = reader(path, ["score", "member"], ["member", "score"])
        assert columns is not None
        assert columns["score"].view(np.int64).tolist() == expected


def test_csv_needs_no_arrow(scores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert lb.AuditResult.from_json(leakbound("one-run", scores, "--json").out) == ONE_RUN


def test_parquet_without_arrow_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refusal = leakbound("one-run", tmp_path / "scores.parquet").refusal
    assert "pip install 'leakbound[io]'" in refusal


def test_panoramia_takes_either_name_for_the_attack(
    scores: Path, table: Callable[[str], Path]
) -> None:
    assert lb.PanoramiaResult.from_json(leakbound("panoramia", scores, "--json").out) == PANORAMIA
    other = table(
        csv_text(attack_score=SCORE, score=BASELINE, baseline_score=BASELINE, member=MEMBER)
    )
    assert lb.PanoramiaResult.from_json(leakbound("panoramia", other, "--json").out) == PANORAMIA


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "policy"),
    [
        ("kl", lb.KLScan()),
        ("equal-level", lb.EqualLevelScan()),
        ("union", lb.UnionBound()),
        ("geometric", lb.UnionBound(grid="geometric")),
        ("fixed:120", lb.Fixed(guesses=120)),
        ("split", lb.Split()),
        ("ville", lb.VilleMixture()),
        ("split:0.4", lb.Split(fraction=0.4)),
        ("uncorrected", lb.Uncorrected()),
    ],
)
def test_every_policy_has_a_word(word: str, policy: object, scores: Path) -> None:
    answer = leakbound("one-run", scores, "--cuts", word, "--json", "--seed", 3)
    expected = lb.audit_one_run(SCORE, MEMBER, cuts=policy, seed=3)  # type: ignore[call-overload]
    assert lb.AuditResult.from_json(answer.out) == expected


def test_levels_that_scores_choose_among_have_a_word(scores: Path) -> None:
    cuts = ("--cuts", "adaptive:10, 20,40")
    answer = leakbound("one-run", scores, "--claim", "mu=1", *cuts, "--json", "--seed", 3)
    levels = lb.ScoreAdaptive([10, 20, 40])
    expected = lb.audit_one_run(SCORE, MEMBER, claim=lb.GaussianDP(), cuts=levels, seed=3)
    assert lb.AuditResult.from_json(answer.out) == expected
    for word in ("adaptive", "adaptive:", "adaptive:10,x"):
        assert "--cuts must be one of" in leakbound("one-run", scores, "--cuts", word).err


def test_options_reach_the_one_run_audit(scores: Path) -> None:
    options = ("--confidence", 0.9, "--sides", "member", "--design", "fixed_size", "--seed", 5)
    expected = lb.audit_one_run(
        SCORE, MEMBER, confidence=0.9, sides="member", design="fixed_size", seed=5
    )
    answer = leakbound("one-run", scores, *options, "--json")
    assert lb.AuditResult.from_json(answer.out) == expected


def test_options_reach_the_panoramia_audit(scores: Path) -> None:
    options = ("--confidence", 0.9, "--cuts", "union", "--tail", "hoeffding", "--c-upper", 0.5)
    expected = lb.audit_panoramia(
        BASELINE,
        SCORE,
        MEMBER,
        confidence=0.9,
        cuts=lb.UnionBound(),
        tail="hoeffding",
        c_upper=0.5,
    )
    answer = leakbound("panoramia", scores, *options, "--json")
    assert lb.PanoramiaResult.from_json(answer.out) == expected


# --- exit codes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "code", "words"),
    [
        ("eps=0.5", 1, "The claimed ε = 0.5 is refuted"),
        ("epsilon=0.5,delta=0", 1, "The claimed ε = 0.5 is refuted"),
        (f"eps={ONE_RUN.bound + 0.1}", 0, "is not refuted, though this audit could have"),
        ("eps=50", 3, "Inconclusive: the claimed ε = 50 is out of reach"),
    ],
)
def test_a_claim_decides_the_exit_code(claim: str, code: int, words: str, scores: Path) -> None:
    answer = leakbound("one-run", scores, "--claim", claim)
    assert answer.code == code
    assert words in answer.out
    assert answer.err == ""


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 0),
        (("--claim", "c=0,eps=0.5"), 1),
        (("--claim", "eps=0.5,c=0"), 1),
        (("--claim", f"c=1,eps={PANORAMIA.c_plus_epsilon_lb}"), 0),
        (("--claim", "c=1,eps=60"), 0),
        (("--claim", "c=60,eps=60"), 3),
        (("--claim", "eps=0.01"), 3),
        (("--claim", "eps=0.01", "--real-nonmembers"), 1),
        (("--claim", "eps=0.01", "--c-upper", "0.2"), 1),
    ],
)
def test_panoramia_refutes_only_what_it_can(
    options: tuple[str, ...], code: int, scores: Path
) -> None:
    assert leakbound("panoramia", scores, *options).code == code


def test_an_invalid_audit_refutes_nothing(scores: Path) -> None:
    answer = leakbound("one-run", scores, "--cuts", "uncorrected", "--claim", "eps=0.01")
    assert answer.code == 3
    assert answer.out.startswith("Invalid: ")
    assert "≥" not in answer.out


# --- what comes out -------------------------------------------------------------------------------


def test_people_read_verdict_numbers_and_kind(scores: Path) -> None:
    answer = leakbound("one-run", scores)
    assert answer.out.startswith("This model leaks: no ε-DP guarantee with ε < ")
    for words in ("lower bound", "ceiling", "right guesses", "AUC", "300", "95 %"):
        assert words in answer.out
    assert "\x1b" not in answer.out
    assert answer.out == "\n".join(line.rstrip() for line in answer.out.split("\n"))


def test_people_read_that_an_estimate_is_no_bound(scores: Path) -> None:
    answer = leakbound("panoramia", scores)
    assert "This is not a lower bound on ε." in answer.out
    assert "estimate, not a lower bound" in answer.out


def test_warnings_are_printed(table: Callable[[str], Path]) -> None:
    answer = leakbound("one-run", table(csv_text(score=np.round(SCORE), member=MEMBER)))
    assert "\nwarning: " in answer.out


def test_the_columns_of_the_papers_repository(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    member = rng.random(600) < 0.5
    baseline, attack = rng.normal(size=600) + 0.3 * member, rng.normal(size=600) + 2 * member
    file = tmp_path / "preds.npz"
    np.savez(file, member=member, baseline_pred=baseline, mia_resnet_pred=attack)
    expected = lb.audit_panoramia(baseline, attack, member, gamma=1e-4, delta=1e-5, max_recall=0.6)
    relaxed = ("--gamma", 1e-4, "--delta", 1e-5, "--max-recall", 0.6, "--json")
    for options in (relaxed, (*relaxed, "--model", "resnet")):
        answer = json.loads(leakbound("panoramia", file, *options).out)
        assert answer["c_plus_epsilon_lb"] == expected.c_plus_epsilon_lb
        assert answer["kind"] == "estimate"
    np.savez(file, member=member, baseline_pred=baseline, mia_a_pred=attack, mia_b_pred=attack)
    assert "choose one by --model, of a, b" in leakbound("panoramia", file).refusal
    assert json.loads(leakbound("panoramia", file, "--model", "b", "--json").out)["m"] == 600


def test_several_attacks_and_their_coins(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    member = rng.random(200) < 0.3
    columns = {"loss": member + rng.normal(size=200), "margin": rng.normal(size=200)}
    file = tmp_path / "scores.npz"
    np.savez(
        file,
        member=member,
        chance=np.full(200, 0.3),
        loss=columns["loss"],
        margin=columns["margin"],
    )
    expected = lb.audit_one_run(columns, member, prior=0.3)
    for prior in ("0.3", "chance"):
        options = ("--attacks", "margin,loss", "--prior", prior, "--json")
        answer = json.loads(leakbound("one-run", file, *options).out)
        assert answer["bound"] == expected.bound
        assert answer["options"]["attack"] == "loss"
        assert answer["options"]["prior"] == 0.3
    for bad in (("--attacks", "loss,other"), ("--prior", "other", "--attacks", "loss")):
        assert "has no column 'other'" in leakbound("one-run", file, *bad).refusal
    alone = json.loads(leakbound("one-run", file, "--attacks", "loss", "--json").out)
    assert alone["bound"] == lb.audit_one_run(columns["loss"], member).bound


def test_json_is_all_there_is_on_standard_output(scores: Path, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    answer = spawn("one-run", scores, "--json", "--out", out)
    assert answer.code == 0
    assert json.loads(answer.out)["type"] == "AuditResult"
    assert answer.out.count("\n") == 1
    assert answer.err == f"Report: {out / 'report.html'}\n"
    assert spawn("panoramia", scores, "--json").err == ""


def test_the_bundle_is_complete_and_nothing_else_is_left(scores: Path, tmp_path: Path) -> None:
    out = tmp_path / "a" / "bundle"
    for _ in range(2):  # the second run replaces the first
        answer = leakbound("one-run", scores, "--out", out, "--claim", "eps=0.5")
    assert answer.code == 1
    assert f"Report: {out / 'report.html'}" in answer.out
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    figures = {f"figures/{kind}.svg" for kind in ("bound", "precision_recall", "roc", "histogram")}
    assert files == {"result.json", "report.html"} | figures
    assert lb.AuditResult.from_json(out / "result.json") == ONE_RUN
    html = (out / "report.html").read_text(encoding="utf-8")
    assert "Privacy audit of scores.csv" in html
    assert "is refuted" in html
    assert (out / "figures/roc.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_help_teaches_and_the_version_is_that_of_the_package() -> None:
    assert leakbound("--version").out == f"leakbound {lb.__version__}\n"
    for command, words in {
        "one-run": ("score", "member", "0 claim not refuted", "--claim", "equal-level"),
        "panoramia": ("baseline_score", "attack_score", "not a lower bound"),
        "demo": ("digits",),
    }.items():
        answer = leakbound(command, "--help")
        assert answer.code == 0
        assert all(word in answer.out for word in words)


def test_help_loads_nothing_that_it_does_not_need() -> None:
    code = (
        "import sys\n"
        "from leakbound.cli import app\n"
        "try: app(['one-run', '--help'])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "matplotlib", "jinja2", "pyarrow", "scipy", "sklearn", "pandas"}
    assert heavy.isdisjoint(done.stderr.split())


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty", "score,member"]),
        ("score,member\n", ["header and no rows"]),
        ("loss,member\n1,0\n", ["no column 'score'", "'loss', 'member'", "'id' may be there"]),
        ("score;member\n1;0\n", ["no column 'score'", "'score;member'"]),
        ("score,score,member\n1,1,0\n", ["2 columns named 'score'"]),
        ("score,member\n1,0\nx,1\n", ["line 3", "score must be a number", "'x'"]),
        ("score,member\n1,0\n,1\n", ["line 3", "score must be a number", "empty"]),
        ("score,member\n1_0,0\n2,1\n", ["line 2", "'1_0'"]),
        ("score,member\n1,0\n2,yes\n", ["line 3", "member must be", "'yes'"]),
        ("score,member\n1,0\n2,\n", ["line 3", "member must be", "empty"]),
        ("score,member\n1,0\n\n2\n", ["line 4", "1 values where the header names 2"]),
        ("score,member\n1,0\n2,1,3\n", ["line 3", "3 values"]),
        (b"score,member\n\xff,1\n", ["not UTF-8", "0xff"]),
        ("score,member\n1,0\nnan,1\n", ["scores.csv: ", "NaN", "row 1", "rows count from 0"]),
        ("score,member\n1,0\n1,1\n", ["scores.csv: ", "all 2 scores are equal"]),
        ("score,member\n1,-1\n2,0\n3,1\n", ["scores.csv: ", "member must be", "row 1"]),
        ("id,score,member\na,1,0\na,2,1\n", ["both members and non-members", "a at rows 0, 1"]),
        ("id,score,member\na,1,0\na,2,0\n", ["more than once", "a at rows 0, 1"]),
    ],
)
def test_bad_csv_is_refused_in_one_line(
    content: str | bytes, words: list[str], table: Callable[[str | bytes], Path]
) -> None:
    refusal = leakbound("one-run", table(content)).refusal
    assert all(word in refusal for word in words)


def test_an_endless_quote_is_refused(table: Callable[[str], Path]) -> None:
    content = 'score,member\n1,"' + "0\n" * 200_000
    assert "not a csv file: field larger than" in leakbound("one-run", table(content)).refusal


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"score": SCORE}, "no column 'member'; its columns are 'score'"),
        ({"score": SCORE, "member": MEMBER[:5]}, "different lengths"),
        ({"score": SCORE[:, None], "member": MEMBER}, "has shape (300, 1)"),
        ({"score": SCORE.astype(str), "member": MEMBER}, "must hold real numbers"),
        ({"score": SCORE[:0], "member": MEMBER[:0]}, "no rows"),
        ({"score": np.array([{}]), "member": MEMBER}, "other than plain arrays"),
    ],
)
def test_bad_npz_is_refused(arrays: dict[str, np.ndarray], words: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
    assert words in leakbound("one-run", tmp_path / "x.npz").refusal


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"score": [1.0, None], "member": [0, 1]},
            "'score' has 1 empty values, the first at row 1",
        ),
        ({"score": ["a", "b"], "member": [0, 1]}, "must hold real numbers"),
        ({"loss": [1.0], "member": [0]}, "no column 'score'"),
        ({"score": pa.array([], pa.float64()), "member": pa.array([], pa.int8())}, "no rows"),
    ],
)
def test_bad_parquet_is_refused(columns: dict[str, object], words: str, tmp_path: Path) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    assert words in leakbound("one-run", tmp_path / "x.parquet").refusal


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.npz", "is not an .npz archive"),
        ("x.parquet", "is not a parquet file"),
        ("x.txt", "ends in '.txt': expected a .csv, .npz or .parquet file"),
        ("x", "has no suffix"),
    ],
)
def test_other_files_are_refused(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("score,member\n1,0\n")
    assert words in leakbound("one-run", tmp_path / name).refusal


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, score=SCORE, member=MEMBER)
    content = bytearray(path.read_bytes())
    content[60:200] = bytes(140)
    path.write_bytes(content)
    assert str(path) in leakbound("one-run", path).refusal


def test_files_that_cannot_be_opened_or_written(scores: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.csv"
    assert (
        leakbound("one-run", missing).refusal
        == f"leakbound: {missing}: No such file or directory\n"
    )
    assert "Not a directory" in leakbound("one-run", scores, "--out", scores / "below").refusal
    assert "File exists" in leakbound("one-run", scores, "--out", scores).refusal
    (tmp_path / "folder.csv").mkdir()
    assert "directory" in leakbound("one-run", tmp_path / "folder.csv").refusal


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cuts", "best"), "--cuts must be one of auto, kl, equal-level"),
        (("--cuts", "kl:3"), "--cuts must be one of"),
        (("--attacks", "score,score"), "must name different columns"),
        (("--prior", "1.5"), "prior must be"),
        (("--cuts", "fixed"), "--cuts must be one of"),
        (("--cuts", "fixed:0"), "guesses"),
        (("--cuts", "fixed:301"), "301"),
        (("--cuts", "split:x"), "needs a number"),
        (("--cuts", "split:2"), "fraction"),
        (("--claim", "eps"), "needs a number of at least 0"),
        (("--claim", "eps=-1"), "needs a number of at least 0"),
        (("--claim", "eps=nan"), "needs a number of at least 0"),
        (("--claim", "rho=1"), "'rho' which is not known here; give eps=…"),
        (("--claim", "c=1,eps=1"), "'c' which is not known here"),
        (("--claim", "eps=1,eps=2"), "twice"),
        (("--claim", "delta=0"), "lacks eps"),
        (("--claim", "eps=1,delta=1"), "delta"),
        (("--claim", "eps=1,delta=1e-5", "--cuts", "split"), "delta > 0"),
        (("--confidence", "1"), "confidence must be"),
    ],
)
def test_bad_options_are_refused(options: tuple[str, ...], words: str, scores: Path) -> None:
    refusal = leakbound("one-run", scores, *options).refusal
    assert words in refusal
    assert str(scores) not in refusal


def test_options_that_exclude_each_other_are_refused(scores: Path) -> None:
    both = ("--real-nonmembers", "--c-upper", "1")
    assert "c_upper" in leakbound("panoramia", scores, *both).refusal
    assert "UnionBound" in leakbound("panoramia", scores, "--tail", "hoeffding").refusal


def test_unknown_words_exit_with_2(scores: Path) -> None:
    for arguments in (("one-run", scores, "--bogus"), ("bogus",), ("one-run",)):
        answer = spawn(*arguments)
        assert answer.code == 2
        assert answer.out == ""
        assert "Traceback" not in answer.err


def test_a_report_without_matplotlib_is_refused_before_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refusal = leakbound("one-run", tmp_path / "missing.csv", "--out", tmp_path / "out").refusal
    assert "pip install 'leakbound[plot]'" in refusal


# --- interruption, pipes, terminals ---------------------------------------------------------------


def test_an_interrupt_ends_quietly_with_130(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    os.mkfifo(path)
    process = subprocess.Popen(
        [*PROGRAM, "one-run", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with path.open("w"):  # opens once the command waits for the first line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_reader_that_leaves_ends_it_quietly(scores: Path) -> None:
    gone, pipe = os.pipe()
    os.close(gone)
    process = subprocess.run(
        [*PROGRAM, "one-run", str(scores), "--json"],
        stdout=pipe,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(pipe)
    assert (process.returncode, process.stderr) == (141, b"")


def on_a_terminal(command: list[str], columns: int) -> str:
    """Run a command whose output is a terminal, and return what it shows."""
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
    process = subprocess.Popen(command, stdout=child, stderr=child, env=environment)
    os.close(child)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:  # how Linux says that the other end is closed
            piece = b""
        if not piece:
            break
        shown += piece
    os.close(parent)
    process.wait()
    return shown.decode()


def test_a_terminal_gets_bold_words_within_its_width(scores: Path) -> None:
    shown = on_a_terminal([*PROGRAM, "one-run", str(scores)], columns=60)
    assert "\x1b[1m" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert max(map(len, plain.splitlines())) <= 60
    assert "…" not in plain


class Terminal(io.StringIO):
    """A text stream that says it is a terminal, and tells when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


def test_waiting_shows_itself_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_output, "_PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    terminal, file = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    with _output.waiting("Thinking"):
        assert terminal.written.wait(60)
    assert "Thinking" in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", file)
    with _output.waiting("Thinking"):
        pass
    assert file.getvalue() == ""


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_output, "_PATIENCE", 3600.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with _output.waiting("Thinking"):
        pass
    assert "Thinking" not in terminal.getvalue()
