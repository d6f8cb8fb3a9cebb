"""Commitments: they open to what was committed to and to nothing else, and have one spelling."""

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from command_line import leakbound
from commitments import PROTOCOL, protocol_toml
from leakbound._base.records import plain
from leakbound.errors import FormatError, InputTypeError, LeakboundError, OptionError
from leakbound.planning import Commitment, Opening, load_opening, read_protocol

PLAN = lb.InclusionPlan([1, 0, 0, 1, 1], ids=["a", "b", "c", "d", "é"])
NONCE = "00" * 31 + "ff"


def text(**changes: Any) -> str:
    """A commitment in JSON, with some of its fields changed."""
    return json.dumps(json.loads(Commitment(NONCE, 5).to_json()) | changes)


def test_the_digest_is_what_the_format_says_for_ever() -> None:
    """By the words of docs/theory/evidence.md alone: whoever changes this must raise the scheme."""
    opening = Opening(PLAN, PROTOCOL | {"sides": "both"}, NONCE)
    spelling = (
        '{"coins":"10011","ids":["a","b","c","d","\\u00e9"],"nonce":"' + NONCE + '","protocol":'
        '{"attacks":["loss"],"canaries":"300 mislabelled digits of seed 0, as listed in '
        'canaries.csv","claim":{"type":"PureDP"},"confidence":0.95,"cuts":"auto","seed":0,'
        '"sides":"both","unit":"one digit"},"scheme":"leakbound commitment 1"}'
    )
    assert opening.commitment.sha256 == hashlib.sha256(spelling.encode("ascii")).hexdigest()
    assert opening.commitment == Commitment(
        "7fee2a6cbf67c2538c4cabf4bb9ba5f96d9cbc4466e34e40f3557020a2f176d2", 5
    )


def test_a_commitment_opens_after_a_round_trip(tmp_path: Path) -> None:
    opening = PLAN.commit(PROTOCOL)
    opening.save(tmp_path / "secret")
    opening.commitment.to_json(tmp_path / "commitment.json")
    found = load_opening(tmp_path / "secret")
    assert found.plan == PLAN
    assert found.protocol == PROTOCOL
    Commitment.from_json(tmp_path / "commitment.json").check(found)
    assert Commitment.from_json(opening.commitment.to_json()) == opening.commitment
    assert PLAN.commit(PROTOCOL).commitment != opening.commitment  # of another nonce


def test_a_seed_that_nobody_named_is_drawn(tmp_path: Path) -> None:
    """Where scores are tied, whoever chooses the seed after scoring finds a false claim."""
    protocol = {name: said for name, said in PROTOCOL.items() if name != "seed"}
    plan = lb.InclusionPlan.create(200, seed=0)
    opening, other = plan.commit(protocol), plan.commit(protocol)
    assert opening.protocol["seed"] != other.protocol["seed"]
    scores = {"loss": np.arange(200) % 4}
    result = opening.audit(scores)
    assert result == lb.audit(scores, lb.Coins(plan), seed=opening.agreed.options["seed"])
    with pytest.raises(FormatError, match="seed: the protocol has"):
        other.audit(scores).bundle(tmp_path / "bundle", scores=scores, plan=opening)
    with pytest.raises(OptionError, match="fixes the seed"):
        Opening(plan, protocol, NONCE)


@pytest.mark.parametrize(
    "other",
    [
        Opening(lb.InclusionPlan([1, 0, 0, 1, 0], ids=PLAN.ids), PROTOCOL, NONCE),
        Opening(lb.InclusionPlan(PLAN.member, ids=["b", "a", "c", "d", "é"]), PROTOCOL, NONCE),
        Opening(lb.InclusionPlan(PLAN.member), PROTOCOL, NONCE),
        Opening(PLAN, PROTOCOL | {"confidence": 0.949}, NONCE),
        Opening(PLAN, PROTOCOL | {"notes": None}, NONCE),
        Opening(PLAN, PROTOCOL, "01" + NONCE[2:]),
    ],
    ids=["coin", "order of ids", "no ids", "confidence", "notes", "nonce"],
)
def test_nothing_else_opens_it(other: Opening) -> None:
    with pytest.raises(FormatError, match="was changed"):
        Opening(PLAN, PROTOCOL, NONCE).commitment.check(other)


@pytest.mark.parametrize("nonce", ["", "00" * 31, "00" * 33, "0" * 63, "zz" * 32, "AA" * 32, 5])
def test_nonces_of_the_wrong_length_are_refused(nonce: Any) -> None:
    with pytest.raises(FormatError, match="256 random bits"):
        Opening(PLAN, PROTOCOL, nonce)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not a commitment"),
        ("[]", "not a commitment"),
        ('{"scheme": "leakbound commitment 1"}', "exactly"),
        (text(scheme="leakbound commitment 2"), "scheme"),
        (text(sha256="ab"), "64 hexadecimal"),
        (text(examples=True), "64 hexadecimal"),
        (text(sha256=[NONCE]), "64 hexadecimal"),
        ('{"scheme": NaN, "sha256": "ab", "examples": 5}', "NaN is not JSON"),
    ],
)
def test_what_is_no_commitment_is_refused(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "commitment.json").write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=words):
        Commitment.from_json(tmp_path / "commitment.json")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"confidence": float("nan")}, OptionError, "protocol.confidence is nan"),
        ({"cuts": {"kappa": float("inf")}}, OptionError, "protocol.cuts.kappa is inf"),
        ({"seed": 2**128}, OptionError, "129 bits"),
        ({"unit": "\ud800"}, OptionError, "UTF-8 cannot"),
        ({"unit": b"x"}, InputTypeError, "of type bytes"),
        (
            {"attacks": [np.float64(1.0)]},
            InputTypeError,
            r"protocol.attacks\[0\] is of type float64",
        ),
        ({"unit": {1: 2}}, InputTypeError, "not text"),
        ({"notes": {"\ud800": 2}}, OptionError, "protocol.notes has text that UTF-8 cannot"),
        ({"notes": {"x" * 90: {1, 2}}}, InputTypeError, r"protocol\.notes\.x{60} is of type set"),
    ],
)
def test_protocols_without_one_spelling_are_refused(
    change: dict[str, Any], error: type[LeakboundError], words: str
) -> None:
    with pytest.raises(error, match=words):
        PLAN.commit(PROTOCOL | change)


def test_what_a_protocol_has_to_say(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="must also set claim, cuts"):
        PLAN.commit({name: PROTOCOL[name] for name in PROTOCOL if name not in {"claim", "cuts"}})
    for name, text in (("p.toml", protocol_toml()), ("p.json", json.dumps(PROTOCOL))):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert read_protocol(tmp_path / name) == PROTOCOL
    for name, text in (
        ("p.toml", "= 1"),
        ("p.json", '{"a": 1, "a": 2}'),
        ("q.toml", "\ufffe"),
        ("day.toml", protocol_toml(unit="2026-01-01")),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises((OptionError, InputTypeError)):
            read_protocol(tmp_path / name)


@pytest.mark.parametrize("line", [".".join("a" * 300) + " = 1", f"x = {{ {'a . ' * 300}a = 1 }}"])
def test_a_name_of_many_parts_is_refused_unread(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TOML's parser takes time by the square of the parts of one name: 4 s for 16,000."""
    tomllib.loads(line)  # or the test tests nothing
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("it was parsed"))
    (tmp_path / "p.toml").write_text(f"a = 1\n{line}", encoding="utf-8")
    with pytest.raises(OptionError, match="a line of more than 200 dots"):
        read_protocol(tmp_path / "p.toml")


def test_lines_of_text_may_have_dots(tmp_path: Path) -> None:
    text = '"""' + "A sentence. … One more.\n" * 200 + '"""'
    (tmp_path / "p.toml").write_text(protocol_toml(notes=text), encoding="utf-8")
    assert read_protocol(tmp_path / "p.toml")["notes"] == tomllib.loads(f"n = {text}")["n"]


def test_long_names_are_spelt_out_in_errors_alone() -> None:
    """A name of 400 kB with 60,000 parts below it would be 24 GB of names."""
    content = {"x" * 400_000: [1] * 60_000}
    assert plain(content, "notes") == content


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("protocol.toml").write_text(protocol_toml(), encoding="utf-8")
    assert "give either --examples M" in leakbound("commit", "protocol.toml").refusal
    answer = leakbound("commit", "protocol.toml", "-m", 40)
    assert answer.code == 0
    opening = load_opening("secret")
    assert len(opening.plan) == 40
    commitment = Commitment.from_json(Path("public/commitment.json"))
    commitment.check(opening)
    assert answer.out.startswith(commitment.sha256)
    assert [file.name for file in Path("public").iterdir()] == ["commitment.json"]
    assert Path("secret").stat().st_mode & 0o077 == 0

    before = Path("public/commitment.json").read_bytes()
    assert "would be overwritten" in leakbound("commit", "protocol.toml", "-m", 40).refusal
    assert Path("public/commitment.json").read_bytes() == before

    kept = leakbound(
        "commit", "protocol.toml", "--plan", "secret/plan.npz", "--out", "p2", "--secret", "s2"
    )
    assert kept.code == 0
    assert load_opening("s2").plan == opening.plan
    Path("lacking.toml").write_text('unit = "x"', encoding="utf-8")
    refused = leakbound("commit", "lacking.toml", "-m", 4, "--out", "p3", "--secret", "s3")
    assert "the protocol must also set attacks" in refused.refusal
    assert not Path("p3").exists()
