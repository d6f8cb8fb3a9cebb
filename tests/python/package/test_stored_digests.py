"""Whatever a user sees of a fixed set of audits is what it was: results, words, pages, refusals.

Digests rely on the versions in `constraints.txt`: figures on matplotlib, propensities and what
refutes them on scikit-learn. What a machine changes is put aside by `stored_text`, which names it.
A digest that differs says that a text changed. To see which words, write all texts before and after
with `python tests/golden/generate/results.py --write DIR`, and compare the two folders; if the
change is meant, run the script without options.
"""

import json
from pathlib import Path

import pytest

from fixed_audits import CASES, Case
from stored_text import canonical, digest

STORED: dict[str, dict[str, str]] = json.loads(
    Path(__file__).parents[2].joinpath("golden", "results.json").read_text(encoding="utf-8")
)
WHAT_TO_DO = (
    "this is not what is stored in tests/golden/results.json: compare the folders that `python "
    "tests/golden/generate/results.py --write DIR` writes before and after the change; if it is "
    "meant, run the script without options"
)


def test_the_stored_set_is_the_set() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert list(STORED) == names


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_user_sees_is_what_is_stored(case: Case) -> None:
    seen = {name: digest(name, text) for name, text in case.texts().items()}
    assert seen == STORED[case.name], WHAT_TO_DO


def test_last_bits_and_versions_are_put_aside_and_nothing_else() -> None:
    source = '{"numpy": "1", "seed": 0, "sha256": {"log_odds": "a"}}'
    text = f'{{"bound": 0.1, "n": 3, "provenance": {source}}}'
    other = text.replace("0.1", "0.10000000000000002").replace('"1"', '"2"').replace('"a"', '"b"')
    assert canonical("result.json", text) == canonical("result.json", other)
    for old, new in (("0.1", "0.10000001"), ("3", "4"), ('"seed": 0', '"seed": 1'), ("n", "N")):
        assert canonical("result.json", text) != canonical("result.json", text.replace(old, new, 1))
    curve = f"[{', '.join(['0.11111'] * 1000)}, 0.2]"
    assert canonical("result.json", curve) == canonical("result.json", curve.replace("11]", "12]"))
    for old, new in (("0.2", "0.2001"), (", 0.2", "")):
        assert canonical("result.json", curve) != canonical("result.json", curve.replace(old, new))
    page = (
        "<p>ε of 1.50 in 0.1</p><dt>NumPy</dt><dd>1</dd><dt>seed</dt><dd>0</dd>"
        '<svg><path id="p1" d="M 1.000001 2"/><use href="#p1"/><g id="q1"/></svg>'
    )
    other = page.replace("in 0.1", "in 0.10000000000000001").replace("<dd>1<", "<dd>2<")
    other = other.replace("p1", "p2").replace("1.000001", "0.999999")
    assert canonical("report.html", page) == canonical("report.html", other)
    for old, new in (
        ("1.50", "1.5"),
        ("<dd>0", "<dd>1"),
        ("M 1.0", "M 1.1"),
        ('#p1"', '#q1"'),
        ("<g", "<a"),
    ):
        assert canonical("report.html", page) != canonical("report.html", page.replace(old, new))
