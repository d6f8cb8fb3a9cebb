"""Bundles whose parts were replaced at random, seals put back on: none that differs is valid."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from bundles import resealed, summed, why, write
from commitments import scored
from leakbound.evidence import verify_bundle
from mutations import mutants, replaced

QUICK, LONG = 120, 10_000
M = 60
TEXTS = (
    *("audit.json", "protocol.json", "opening.json", "commitment.json", "assumptions.json"),
    *("result.json", "manifest.json"),
)
PURE = {"type": "PureDP"}
OPTIONS: list[Any] = [
    *(None, "x", "inf", 10**400, -1, True, [], 5, {}, [PURE, PURE], ["loss"], [[[]]], PURE),
    {"type": "Fixed", "guesses": 10**9},
    {"type": "OutsideIn", "levels": [5, "x"]},
    {"type": "KLScan", "kappa": "x"},
    {"type": "UnionBound", "grid": "array"},
    {"type": "ApproxDP", "delta": "inf"},
    {"type": "ApproxDP", "delta": 1e-5},
    {"type": "SubsampledGaussianDP", "steps": 10**9},
    {"type": "LogisticPropensity"},
    {"type": ["PureDP"]},
]
DATA: list[Any] = [
    *(None, "array", "plan", "lower and upper limits", [], ["a"], ["loss", "b"], [["a"]], [1], {}),
]
NAMES = (
    *("claim", "cuts", "design", "prior", "seed", "scores", "member", "features", "strata"),
    *("groups", "aggregate", "ids", "bound", "test", "sides", "confidence", "assume", "x"),
)


@pytest.fixture(scope="module", params=["sealed by a protocol", "without one"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "bundle"
    if request.param == "without one":
        plan, scores = scored(M)
        lb.audit(scores, lb.Coins(plan)).bundle(folder, scores=scores, plan=plan)
    else:
        write(folder, M)
    return folder


def assaulted(content: Any, name: str, drawn: np.random.Generator) -> Any:
    """Return the JSON of a file with one or two of its parts replaced."""
    if name == "audit.json" and drawn.random() < 0.7:
        argument = NAMES[drawn.integers(len(NAMES))]
        part, values = [("options", OPTIONS), ("data", DATA)][drawn.integers(2)]
        content[part][argument] = values[drawn.integers(len(values))]
        return content
    for _ in range(drawn.integers(1, 3)):
        content = replaced(content, drawn)
    return content


def cases(bundle: Path, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield names of files, and what is to stand in them."""
    drawn = np.random.default_rng(count)
    there = [name for name in TEXTS if (bundle / name).exists()]
    for _ in range(count):
        name = there[drawn.integers(len(there))]
        kept = (bundle / name).read_bytes()
        kind = drawn.integers(8)
        if kind == 0:
            yield name, next(mutants([kept], 1, int(drawn.integers(2**32))))
        elif kind == 1:
            archive = ("inputs.npz", "plan.npz")[drawn.integers(2)]
            if (bundle / archive).exists():
                content = (bundle / archive).read_bytes()
                yield archive, next(mutants([content], 1, int(drawn.integers(2**32))))
        else:
            content = assaulted(json.loads(kept), name, drawn)
            text = json.dumps(content, indent=None if name == "result.json" else 1)
            yield name, f"{text}\n".encode()


def claims(bundle: Path) -> Any:
    """Return what a bundle says that anybody could rely on."""
    names = ("result.json", "protocol.json", "opening.json", "commitment.json")
    found = {name: _read(bundle / name) for name in names}
    stated = _read(bundle / "assumptions.json")
    return found, [{**one, "vouched for by": ""} for one in stated]


def _read(path: Path) -> Any:
    """Return the JSON of a file, numbers but for last places, which another version may have."""

    def rounded(text: str) -> str:
        return text if text.isdigit() and len(text) > 9 else f"{float(text):.9g}"

    content = path.read_bytes() if path.exists() else b"null"
    return json.loads(content, parse_float=rounded, parse_int=rounded)


@pytest.mark.parametrize(
    "count", [QUICK, pytest.param(LONG, marks=pytest.mark.validity)], ids=["quick", "long"]
)
def test_what_was_tampered_with_is_invalid_or_says_the_same(bundle: Path, count: int) -> None:
    """Whatever is read back ends in a verdict, and a valid one changes nothing that is claimed."""
    kept = {file.name: file.read_bytes() for file in bundle.iterdir()}
    before, valid = claims(bundle), 0
    for name, content in cases(bundle, count):
        (bundle / name).write_bytes(content)
        try:
            (summed if name == "manifest.json" else resealed)(bundle)
            found = verify_bundle(bundle)
            assert all(one.words.isprintable() for one in found.checks)
            assert not re.match(r"\w+: \w+Error: ", found.why), found.why  # of another's making
            if found.valid:
                valid += 1
                assert claims(bundle) == before
        except BaseException as error:
            error.add_note(f"{name}: {content!r:.3000}")
            raise
        finally:
            for one, text in kept.items():
                (bundle / one).write_bytes(text)
    assert why(bundle) == ""
    assert valid < count // 4
