"""A challenge: played by two processes that share one folder, and by those who cheat."""

import contextlib
import csv
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import Answer, csv_text, leakbound
from commitments import PROTOCOL, protocol_toml
from leakbound.errors import FormatError, InputError, OptionError
from leakbound.evidence import judge_challenge, new_challenge, opened_challenge, verify_bundle
from leakbound.planning import Commitment, InclusionPlan
from pages import words_of

M = 200
WORDS = [f'secret {i}, "of" canary' for i in range(M)]

TRAINER = """
import csv, hashlib, json, random, sys
from pathlib import Path
step, public = sys.argv[1], Path(sys.argv[2])
if step == "train":
    with (public / "for-the-trainer.csv").open(newline="") as file:
        known = [row["text"] for row in csv.DictReader(file)]
    Path("model.json").write_text(json.dumps(known))
    digest = hashlib.sha256(Path("model.json").read_bytes()).hexdigest()
    (public / "model.sha256").write_text(digest)
else:
    known = set(json.loads(Path("model.json").read_text()))
    draw = random.Random(1)
    with (public / "canaries.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    scores = [draw.gauss(3.0 * (row["text"] in known), 1) for row in rows]
    order = draw.sample(range(len(rows)), len(rows))
    lines = [f"{i},{scores[i]!r}" for i in order]
    (public / "scores.csv").write_text("\\n".join(["id,score", *lines]) + "\\n")
"""


def canaries(folder: Path, suffix: str = ".csv") -> Path:
    path = folder / f"canaries{suffix}"
    if suffix == ".npy":
        np.save(path, np.arange(2 * M).reshape(M, 2))
    elif suffix == ".csv":
        quoted = [f'"{word.replace(chr(34), chr(34) * 2)}",{i % 3}' for i, word in enumerate(WORDS)]
        path.write_text("\n".join(["text,label", *quoted, ""]), encoding="utf-8")
    else:
        lines = [json.dumps({"text": word}) for word in WORDS] if suffix == ".jsonl" else WORDS
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_two_processes_that_share_the_public_folder_alone(tmp_path: Path) -> None:
    public, auditor, trainer = (tmp_path / name for name in ("public", "auditor", "trainer"))
    for folder in (public, auditor, trainer):
        folder.mkdir()
    canaries(auditor)

    def audits(*arguments: object, folder: Path = auditor) -> Answer:
        with contextlib.chdir(folder):
            return leakbound(*arguments)

    def trains(step: str) -> None:
        command = [sys.executable, "-I", "-c", TRAINER, step, str(public)]
        subprocess.run(command, cwd=trainer, check=True)

    assert audits("challenge", "new", "canaries.csv", "--out", "challenge").code == 0
    shutil.copy(auditor / "challenge/public/commitment.json", public)
    shutil.copy(auditor / "challenge/for-the-trainer/canaries.csv", public / "for-the-trainer.csv")
    trains("train")
    shutil.copy(auditor / "challenge/secret/canaries.csv", public / "canaries.csv")
    trains("score")
    digest = (public / "model.sha256").read_text()
    judged = audits(
        "challenge", "judge", "challenge", "--scores", public / "scores.csv",
        "--model-sha256", digest, "--json", "--out", "page", "--auditor", "Ada",
    )  # fmt: skip
    assert judged.code == 0, judged.err
    assert "Auditor Ada" in words_of((auditor / "page/report.html").read_text(encoding="utf-8"))
    assert json.loads(judged.out)["bound"] > 1
    shutil.copytree(auditor / "challenge/bundle", public / "bundle")
    shutil.rmtree(auditor)  # whatever anybody needs is public now
    found = audits("verify", "bundle", "--commitment", "commitment.json", folder=public)
    assert found.code == 0, found.out
    assert f"about the model {digest[:16]}" in found.out
    assert found.out.splitlines()[-1] == "VALID"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".txt", ".npy"])
def test_the_trainer_gets_what_is_included_and_nothing_else(suffix: str, tmp_path: Path) -> None:
    source = canaries(tmp_path, suffix)
    commitment = new_challenge(source, tmp_path / "c")
    opening = opened_challenge(tmp_path / "c")
    assert commitment == Commitment.from_json(tmp_path / "c/public/commitment.json")
    commitment.check(opening)
    handed = tmp_path / "c" / "for-the-trainer"
    assert [file.name for file in handed.iterdir()] == [f"canaries{suffix}"]
    assert [file.name for file in (tmp_path / "c/public").iterdir()] == ["commitment.json"]
    assert (tmp_path / "c/secret").stat().st_mode & 0o077 == 0
    file = handed / f"canaries{suffix}"
    if suffix == ".npy":
        np.testing.assert_array_equal(
            np.load(file), opening.plan.member.nonzero()[0][:, None] * 2 + [[0, 1]]
        )
    else:
        text = file.read_text(encoding="utf-8")
        listed = [f"secret {i}," in text for i in range(M)]
        assert listed == opening.plan.member.tolist()
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert opening.protocol["canaries_sha256"] == digest
    coins = InclusionPlan.load(tmp_path / "c/secret/plan.npz")
    assert coins.seed is not None
    assert coins.seed > 2**60  # from the system's entropy


def played(folder: Path, protocol: dict[str, Any] | None = None) -> tuple[Path, Any]:
    """Lay out a challenge, and score as a model that remembers does."""
    new_challenge(canaries(folder), folder / "c", protocol=protocol)
    member = opened_challenge(folder / "c").plan.member
    return folder / "c", np.random.default_rng(0).normal(size=M) + 3 * member


def test_the_protocol_is_what_is_done(tmp_path: Path) -> None:
    agreed = PROTOCOL | {
        "claim": {"type": "GaussianDP", "delta": 0.0},
        "cuts": {"type": "Fixed", "guesses": 40},
        "confidence": 0.9,
        "seed": 3,
        "checked": {"mu": 0.5},
    }
    folder, scores = played(tmp_path, agreed)
    result = judge_challenge(folder, scores, ids=np.arange(M))
    assert (result.claim.name, result.confidence, result.guesses) == ("Gaussian DP", 0.9, 40)
    assert result.checked is not None
    assert (result.checked.parameter, result.checked.verdict) == ("mu", "refuted")
    protocol = json.loads((folder / "bundle" / "protocol.json").read_bytes())
    assert protocol == dict(opened_challenge(folder).protocol)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"claim": {"type": "Popen"}}, "claim is .* does not know"),
        ({"attacks": []}, r"attacks is \[\]"),
        ({"cuts": {"type": "Fixed"}}, "cuts: Fixed: missing a required argument"),
        ({"cuts": {"type": "Fixed", "guesses": M + 1}}, f"its audit of these {M} examples is"),
        ({"prior": 0.4}, "the coins of a challenge are fair"),
        ({"design": "random_split", "groups": "the author"}, "a challenge has only scores"),
        ({"canaries_sha256": "ab" * 32}, "differs from the digest of .*canaries.csv, "),
        ({"checked": {"mu": 1.0}}, "give epsilon"),
    ],
)
def test_protocols_that_cannot_be_judged_make_no_challenge(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match=words):
        new_challenge(canaries(tmp_path), tmp_path / "c", protocol=PROTOCOL | changes)
    assert [one.name for one in tmp_path.iterdir()] == ["canaries.csv"]
    (tmp_path / "p.json").write_text(json.dumps(PROTOCOL | changes), encoding="utf-8")
    file, out = tmp_path / "canaries.csv", tmp_path / "c"
    answer = leakbound("challenge", "new", file, "--out", out, "--protocol", tmp_path / "p.json")
    assert answer.code == 2
    assert not out.exists()


@pytest.mark.parametrize("suffix", [".txt", ".jsonl"])
@pytest.mark.parametrize("separator", ["\x0b", "\x1e", "\x85", "\u2028", "\r"])
def test_lines_end_in_line_feeds_alone(separator: str, suffix: str, tmp_path: Path) -> None:
    words = [f"canary {i}{separator}of two parts" for i in range(8)]
    if suffix == ".jsonl":
        words = [json.dumps({"text": word}, ensure_ascii=False) for word in words]
    file = tmp_path / f"canaries{suffix}"
    for end in ("\n", "\r\n"):
        file.write_bytes("".join(f"{word}{end}" for word in words).encode())
        place = tmp_path / f"c{len(end)}"
        assert new_challenge(file, place).examples == 8
        included = opened_challenge(place).plan.member
        handed = (place / "for-the-trainer" / file.name).read_bytes().decode()
        assert handed == "".join(
            f"{word}\n" for word, drawn in zip(words, included, strict=True) if drawn
        )


def test_a_carriage_return_in_a_field_is_handed_over_as_it_was(tmp_path: Path) -> None:
    rows = [["text", "label"], *([f"a\rb {i}", "1"] for i in range(8))]
    file = tmp_path / "canaries.csv"
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened, quoting=csv.QUOTE_ALL).writerows(rows)
    place = tmp_path / "challenge"
    assert new_challenge(file, place).examples == 8
    included = opened_challenge(place).plan.member
    with (place / "for-the-trainer" / file.name).open(newline="", encoding="utf-8") as handed:
        texts = [row[-2] for row in csv.reader(handed)][1:]
    assert texts == [f"a\rb {i}" for i in np.flatnonzero(included)]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("c.txt", "a\nb\r\r\nc\n", "line 2 ends in CR CR LF"),
        ("c.jsonl", '"a"\r\r\n"b"\n', "line 1 ends in CR CR LF"),
        ("c.txt", "a\n\nb\n", "line 2 is blank"),
        ("c.csv", "text\na\n\nb\n", "line 3 is blank"),
        ("c.csv", "\ntext\na\nb\n", "line 1 is blank"),
    ],
)
def test_lines_that_would_move_the_numbers_of_canaries_are_refused(
    name: str, content: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content.encode())
    with pytest.raises(FormatError, match=words):
        new_challenge(tmp_path / name, tmp_path / "challenge")
    assert not (tmp_path / "challenge").exists()


def test_what_is_no_regular_file_holds_no_canaries(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="not a regular file"):
        new_challenge("/dev/zero", tmp_path / "challenge")


def test_canaries_are_those_whose_digest_was_agreed_on(tmp_path: Path) -> None:
    folder, scores = played(tmp_path)
    judge_challenge(folder, scores, ids=np.arange(M))
    found = {one.name: one for one in verify_bundle(folder / "bundle").checks}
    digest = hashlib.sha256((tmp_path / "canaries.csv").read_bytes()).hexdigest()
    assert found["protocol"].words.endswith(f"on canaries of SHA-256 {digest}")


def test_an_auditor_who_changes_coins_or_canaries_is_found_out(tmp_path: Path) -> None:
    folder, scores = played(tmp_path)
    kept = (folder / "secret/canaries.csv").read_bytes()
    (folder / "secret/canaries.csv").write_bytes(kept.replace(b"secret 7,", b"secret 8,"))
    with pytest.raises(FormatError, match="do not match the commitment"):
        judge_challenge(folder, scores, ids=np.arange(M))
    (folder / "secret/canaries.csv").write_bytes(kept)
    InclusionPlan(scores > 1).save(folder / "secret/plan.npz")
    with pytest.raises(FormatError, match="was changed"):
        judge_challenge(folder, scores, ids=np.arange(M))


def test_a_trainer_who_leaves_canaries_out_is_refused(tmp_path: Path) -> None:
    folder, scores = played(tmp_path)
    file = tmp_path / "scores.csv"
    for ids, words in (
        (np.arange(1, M), "are not in ids"),
        (np.arange(M) + 1, "are not in"),
        (np.minimum(np.arange(M), M - 2), "occurs twice|repeat|are not in"),
    ):
        file.write_text(csv_text(id=ids, score=scores[: ids.size]), encoding="utf-8")
        answer = leakbound("challenge", "judge", folder, "--scores", file)
        assert answer.code == 2
        assert "ids" in answer.err or "id " in answer.err, (words, answer.err)
        assert "kept" not in answer.err  # which is advice in Python
    with pytest.raises(InputError):
        judge_challenge(folder, scores[1:], ids=np.arange(1, M))


def test_what_is_no_challenge(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="canaries must be in a"):
        new_challenge(tmp_path / __file__, tmp_path / "c")
    for name, content, words in (
        ("a.csv", b"text\n", "0 canaries"),
        ("a.csv", b'text\n"open', "cannot be read as canaries"),
        ("a.csv", b"\xff\xfe", "cannot be read as canaries"),
        ("a.csv", b'text\n"one\ntwo"\nthree\n', "a row spans several lines"),
        ("a.csv", b'text\n"one"\none\n', r"canaries 0 and 1 \(from 0\) are the same"),
        ("a.txt", b"one\nboth\none\n", r"canaries 0 and 2 \(from 0\) are the same"),
        ("a.jsonl", b'{"a": 1}\n{\n', "cannot be read as canaries"),
        ("a.npy", b"\x93NUMPY", "cannot be read as canaries"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match=words):
            new_challenge(tmp_path / name, tmp_path / "c")
        assert not (tmp_path / "c").exists()
    with pytest.raises(OptionError, match="not empty"):
        new_challenge(canaries(tmp_path), tmp_path)
    (tmp_path / "protocol.toml").write_text(protocol_toml(), encoding="utf-8")
    answer = leakbound(
        "challenge", "new", canaries(tmp_path), "--out", tmp_path / "c",
        "--protocol", tmp_path / "protocol.toml",
    )  # fmt: skip
    assert answer.code == 0
    assert "Once the model is final" in answer.out
    assert opened_challenge(tmp_path / "c").protocol["unit"] == "one digit"
