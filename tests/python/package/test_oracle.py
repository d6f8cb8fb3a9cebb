"""What audits return is what is stored in tests/golden/oracle.json.

Where a number is meant to change: python tests/support/oracle.py --update "the reason"
"""

import pytest

from oracle import Values, differences, numbers, read

STORED = read()


@pytest.mark.parametrize("name", STORED)
def test_numbers_are_what_they_were(name: str) -> None:
    found = differences(name, STORED[name], numbers(name))
    assert not found, "\n".join(found)


def test_every_kind_of_audit_is_among_the_cases() -> None:
    designs = {name.split("/")[0] for name in STORED}
    assert {"coins", "prior", "split", "tally", "stream", "synthetic", "dp-sgd"} <= designs
    assert {"panoramia", "zero-run", "power", "canaries", "ceiling", "tails"} <= designs
    assert len(STORED) >= 300


def test_a_change_is_named_with_its_ratio() -> None:
    old: Values = {"bound": 1.0, "guesses": 4, "kind": "a"}
    new: Values = {"bound": 1 + 1e-12, "guesses": 4}
    assert differences("one", old, new | {"kind": "a"}) == []
    assert differences("one", old, new | {"bound": 1.1, "kind": "b"}) == [
        "one, bound: 1.0 became 1.1 (ratio 1.1)",
        "one, kind: 'a' became 'b'",
    ]
    assert differences("one", old, new) == ["one, kind: 'a' became 'nothing'"]
    assert differences("one", {"guesses": 4}, {"guesses": 4.0}) != []
