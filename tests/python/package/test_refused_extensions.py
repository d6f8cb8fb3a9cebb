"""Designs, claims and families from outside that are refused, and what to write in their place."""

import ast
from pathlib import Path

import numpy as np
import pytest

import leakbound as lb
from leakbound import results
from leakbound.audits import road
from leakbound.audits.designs import DESIGNS
from leakbound.errors import InputTypeError, OptionError
from leakbound.results.wording import Wording

RNG = np.random.default_rng(0)
FIRST = RNG.random(400) < 0.5
SCORES = RNG.normal(size=400) + 3 * FIRST


def noise(scale: float) -> lb.TradeOff:
    """Tell two outputs of Laplace noise apart."""
    return lb.TradeOff.laplace(scale)


class OwnNoise(lb.LaplaceDP):
    """A claim that no file could be read back with."""


def test_claims_derived_from_those_of_the_package_are_refused() -> None:
    said = r"is a OwnNoise, derived from LaplaceDP, .*TradeOffFamily\("
    with pytest.raises(OptionError, match=said):
        lb.audit(SCORES, lb.Coins(FIRST), claim=OwnNoise(), seed=0)
    with pytest.raises(OptionError, match=said):
        lb.Stream(claim=OwnNoise())
    with pytest.raises(InputTypeError, match="claim must be one of PureDP"):
        lb.Stream(claim=object())  # type: ignore[arg-type]


def test_classes_of_the_package_that_are_no_options_cannot_be_named() -> None:
    from leakbound.evidence.recipe import Recipe

    for inner in ("PathPolicy", "Look", "OutsideInFamily", "AnyTime", "Policy"):
        content = {"audit": "coins", "options": {"cuts": {"type": inner}}, "data": {}}
        with pytest.raises(OptionError, match="does not know"):
            Recipe.decoded(content, {}, None)


def test_designs_are_named_in_their_own_files() -> None:
    """Elsewhere an audit and the option `design` take the attribute of the class."""
    named: list[str] = []
    for path in Path(str(lb.__file__)).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            values: list[ast.expr] = []
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("audit_of"):
                values = node.args[:1]
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                values = [value for key, value in pairs if key and ast.unparse(key) == "'design'"]
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("['design']"):
                values = [node.value]
            texts = [one.value for one in values if isinstance(one, ast.Constant)]
            named += [f"{path}: {text}" for text in texts if text in DESIGNS]
    assert named == []


def untouched(_design: object, _scores: road.Listed, _request: road.Request, /) -> lb.AuditResult:
    pytest.fail("the design was asked before its words were checked")


class Uncalled(road.Design[road.Listed, results.AuditResult]):
    """A design whose name and words are set by tests."""

    name = "uncalled"
    wording = lb.Coins.wording
    audit = untouched


@pytest.mark.parametrize("name", [None, "", 3, property(lambda _design: "late")])
def test_a_design_without_a_name_is_refused_at_once(name: object) -> None:
    unnamed = type("Unnamed", (Uncalled,), {"name": name})
    with pytest.raises(OptionError, match=r"^Unnamed\.name must be .* write name: ClassVar\[str\]"):
        lb.audit(SCORES, unnamed(), seed=0)


def test_a_design_that_declares_no_name_is_refused_at_once() -> None:
    class Nameless(road.Design[road.Listed, results.AuditResult]):
        wording = lb.Coins.wording
        audit = untouched

    with pytest.raises(OptionError, match=r"^Nameless\.name must be a text.*got None: write name"):
        lb.audit(SCORES, Nameless(), seed=0)


@pytest.mark.parametrize("wording", ["a coin", None, {"drawn": "a coin"}, Wording, lambda _: "x"])
def test_a_design_of_other_words_is_refused_at_once(wording: object) -> None:
    worded = type("Worded", (Uncalled,), {"wording": wording})
    with pytest.raises(OptionError, match=r"^Worded\.wording must be a Wording.*write wording: "):
        lb.audit(SCORES, worded(), seed=0)


@pytest.mark.parametrize(
    ("bracket", "refused"),
    [(None, InputTypeError), ([0.01, 100.0], InputTypeError), ((), OptionError)],
)
def test_a_family_says_what_its_bracket_is(bracket: object, refused: type[Exception]) -> None:
    expected = r"bracket=\(least, most\), the smallest and the largest value of the parameter"
    with pytest.raises(refused, match=rf"^bracket must be a pair of numbers, got .*{expected}"):
        lb.TradeOffFamily(parameter="x", tradeoff=noise, bracket=bracket)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=rf"missing .*'bracket': write {expected}"):
        lb.TradeOffFamily(parameter="x", tradeoff=noise)  # type: ignore[call-arg]


def test_a_family_without_arguments_says_what_to_write() -> None:
    family = r'write lb\.TradeOffFamily\(parameter="…", tradeoff=…, bracket=\(least, most\)\)$'
    with pytest.raises(TypeError, match=family):
        lb.TradeOffFamily()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=family):
        lb.TradeOffFamily(noise)  # type: ignore[call-arg, arg-type]
