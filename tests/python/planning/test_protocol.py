"""Protocols: understood whole when they are committed to, or refused with what is wrong."""

from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from command_line import leakbound
from commitments import PROTOCOL, protocol_toml
from leakbound.errors import LeakboundError, OptionError
from leakbound.planning.protocol import Agreement, checked_protocol
from mutations import QUICK, assaulted, replaced

PLAN = lb.InclusionPlan.create(60, seed=1)
GAUSSIAN = {"claim": {"type": "GaussianDP", "delta": 0.0}}
APPROXIMATE = {"claim": {"type": "ApproxDP", "delta": 1e-5}}
SPLIT = {"design": "random_split"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"notes": [0] * 300_000}, "the protocol is too long"),
        ({"attacks": []}, r"attacks is \[\]: list the names"),
        ({"attacks": ["loss", "loss"]}, "list each name once"),
        ({"attacks": ["loss", 5]}, "attacks has 5, which cannot be the name"),
        ({"attacks": ["lo\nss"]}, "which cannot be the name"),
        ({"attacks": ["loss,margin"]}, "a word without a comma"),
        ({"attacks": ["id"]}, "other than id, member, split"),
        ({"claim": "PureDP"}, "claim is 'PureDP', which this version does not know: use a table"),
        ({"claim": {"type": "PurDP"}}, "its type one of PureDP"),
        ({"claim": {"type": "TradeOffFamily"}}, "does not know"),
        ({"claim": {"type": "ApproxDP"}}, "claim: ApproxDP: missing a required .*'delta'"),
        ({"claim": {"type": "ApproxDP", "delta": 2.0}}, "claim: delta must be"),
        ({"claim": {"type": "PureDP", "delt": 1e-5}}, "PureDP: got an unexpected .*'delt'"),
        ({"cuts": {"type": "Fixed", "guesses": "x"}}, "cuts: guesses must be an integer"),
        ({"cuts": {"type": "Fixed", "guesses": 61}}, "its audit of these 60 examples is"),
        (
            {"sides": ["both"]},
            r"the protocol's sides must be one of 'both', 'member', 'auto', got \['both",
        ),
        ({"confidence": 95}, "the protocol's confidence must be"),
        ({"design": "coin"}, "design must be one of"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"prior": 0}, "prior must be above 0"),
        ({"prior": 0.3, **GAUSSIAN}, "cannot be kept: .*prior"),
        ({"prior": [0.5]}, "prior must be a real number"),
        ({"strata": 5}, "strata is 5: give text"),
        ({"strata": "the label"}, r"cannot be kept: .*strata= does not apply to Coins"),
        ({"sides": "member", **SPLIT}, "not apply to RandomSplit"),
        ({"side": "both"}, r"has 'side', .* \(did you mean 'sides'\?\); put remarks for readers"),
        ({"correction": "match"}, "not an option of this audit"),
        ({"unit": ""}, "unit is '': give text"),
        ({"canaries_sha256": "abc"}, "canaries_sha256 is 'abc'; it must have 64"),
        ({"checked": 2}, "checked is 2: give epsilon and delta, and relation"),
        ({"checked": {"epsilon": 1.0, "dleta": 0.1}}, "give epsilon and delta, and relation"),
        ({"checked": {"epsilon": -1}}, "checked: epsilon must be at least 0"),
        ({"checked": {"epsilon": 1, "delta": 0.1}}, "cannot be kept: .*says nothing about delta"),
        ({"checked": {"mu": 1, "delta": 0.1}, **GAUSSIAN}, "or mu alone"),
        ({"checked": {"mu": 1, "epsilon": 0.1}, **GAUSSIAN}, "or mu alone"),
        ({"checked": {"epsilon": 1}, **SPLIT}, "cannot be kept: .*say what the claim is about"),
        ({"checked": {"epsilon": 1, "relation": "replace"}}, "cannot be kept: .*audit a random"),
        ({"checked": {"epsilon": 1, "relation": "swap"}}, "relation must be one of"),
    ],
)
def test_what_no_audit_could_keep_is_not_committed_to(change: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        PLAN.commit(PROTOCOL | change)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 3, "prior": 0.5, "aggregate": "mean", "notes": {"by": ["A"]}},
        {"checked": {"mu": 1}, **GAUSSIAN},
        {"checked": {"epsilon": 1, "delta": 1e-6}, **GAUSSIAN},
        {"cuts": {"type": "OutsideIn", "levels": [20, 40]}, **GAUSSIAN},
        {"checked": {"epsilon": 1, "relation": "add_remove"}, **SPLIT},
        {"strata": "the label", "groups": "the author", "features": "age", **SPLIT},
        {"prior": "the column chance", "cuts": {"type": "KLScan"}},
        {"canaries_sha256": "ab" * 32, "attacks": ["loss", "margin of the best"]},
    ],
    ids=str,
)
def test_what_can_be_kept_is(change: dict[str, Any]) -> None:
    opening = PLAN.commit(PROTOCOL | change)
    assert opening.protocol == PROTOCOL | change
    opening.commitment.check(opening)


def test_coins_that_no_audit_takes_are_not_committed_to() -> None:
    with pytest.raises(OptionError, match="members"):
        lb.InclusionPlan(np.ones(60)).commit(PROTOCOL)


def test_the_command_refuses_before_it_writes(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(protocol_toml(atacks='["loss"]'), encoding="utf-8")
    answer = leakbound("commit", "p.toml", "-m", 40)
    assert "did you mean 'attacks'" in answer.refusal
    (tmp_path / "p.toml").write_text("#" * (1 << 20) + "\n", encoding="utf-8")
    assert "has more than 1,048,576 bytes" in leakbound("commit", "p.toml", "-m", 40).refusal
    assert [one.name for one in tmp_path.iterdir()] == ["p.toml"]


BASES: list[dict[str, Any]] = [
    PROTOCOL | {"checked": {"epsilon": 1.0, "delta": 0.0}, "seed": 3, "prior": 0.5},
    PROTOCOL | GAUSSIAN | {"cuts": {"type": "Fixed", "guesses": 20}, "checked": {"mu": 1.0}},
    PROTOCOL | APPROXIMATE | {"canaries_sha256": "ab" * 32},
    PROTOCOL | SPLIT | {"checked": {"epsilon": 1.0, "relation": "replace"}, "notes": ["x"]},
    PROTOCOL | GAUSSIAN | {"cuts": {"type": "OutsideIn", "levels": [20, 40]}},
]
_OTHERS: list[Any] = [
    *({"type": "KLScan"}, {"type": "UnionBound", "grid": "all"}, {"type": "LaplaceDP"}),
    *({"type": "Weighted"}, {"type": "OutsideIn"}),
    *("auto", "both", "member", "coins", "random_split", 3, 0.9, {"epsilon": 0.5}),
]


@pytest.mark.parametrize(
    "count", [QUICK // 2, pytest.param(10_000, marks=pytest.mark.validity)], ids=["quick", "long"]
)
def test_protocols_that_were_tampered_with(count: int) -> None:
    """They are refused as such; what is taken can be audited, whatever the scores."""
    drawn = np.random.default_rng(count)
    scores = drawn.normal(size=len(PLAN)).round(1) + PLAN.member

    def cases() -> Any:
        for _ in range(count):
            content = checked_protocol(BASES[drawn.integers(len(BASES))])
            if drawn.random() < 0.5:
                name = list(content)[drawn.integers(len(content))]
                content[name] = _OTHERS[drawn.integers(len(_OTHERS))]
            else:
                content = replaced(content, drawn)
            yield content

    def commit(content: Any) -> Agreement:
        return PLAN.commit(content).agreed

    def judge(content: Any) -> None:
        agreed = commit(content)
        if not agreed.arrays:
            given = dict.fromkeys(agreed.attacks, scores)
            agreed.with_checked_guarantee(flat.coins(given, PLAN, **agreed.options))

    kept = refused = 0
    for content in cases():
        well, _ = assaulted(iter([content]), commit)
        if well:
            assaulted(iter([content]), judge, allowed=())
        kept, refused = kept + well, refused + 1 - well
    assert kept > count // 20
    assert refused > count // 4
    assert issubclass(OptionError, LeakboundError)
