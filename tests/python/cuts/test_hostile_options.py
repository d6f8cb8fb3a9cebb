"""Options of every wrong type and size end in a result that can be stored, or an error of ours."""

import inspect
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound import cuts
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError

rng = np.random.default_rng(2)
M = 40
MEMBER = rng.random(M) < 0.5
SCORE = rng.normal(size=M) + MEMBER
OTHER = rng.normal(size=M)
CHANCE = np.full(M, 0.4)

VALUES: list[Any] = [
    *(None, True, "x", "0.5", b"1", [], [0.5], (0.1, 0.2), {}, object(), 1 + 1j, float, max),
    *(-1, 0, 1, 2, 0.5, 1.0, -0.0, 5e-324, 1e-300, 1e300, math.nan, math.inf, -math.inf),
    *(10**309, -(10**309), 10**5000, 2**63, 2**64, 2**128, 1 - 2**-53),
    *(np.float64(0.5), np.float32(0.3), np.float16(0.9), np.longdouble("1e400"), np.int8(-1)),
    *(np.int64(7), np.uint64(2**64 - 1), np.array(0.5), np.array([0.5]), np.ma.masked),
    *(np.datetime64("2020"), Fraction(1, 3), Fraction(10**400), Decimal("0.9"), Decimal("NaN")),
    *(lb.PureDP, lb.PureDP(), lb.GaussianDP(), cuts.KLScan(), cuts.Fixed(3), cuts.Fixed(10**9)),
    *(slice(3), range(3), "both", "member", "auto", "exact"),
]
AUDITS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "one run": (flat.coins, (SCORE, MEMBER)),
    "PANORAMIA": (flat.panoramia, (OTHER, SCORE, MEMBER)),
    "Zero-Run": (flat.zero_run, (SCORE, MEMBER, CHANCE)),
}
DESIGNS = {"one run": lb.Coins, "PANORAMIA": lb.Panoramia, "Zero-Run": lb.ZeroRun}
POLICIES = [cuts.KLScan, cuts.UnionBound, cuts.Fixed, cuts.Weighted]
CLAIMS = [lb.ApproxDP, lb.GaussianDP, lb.LaplaceDP]


def ends_well(audit: Callable[..., Any], *given: Any, **options: Any) -> None:
    try:
        result = audit(*given, **options)
    except LeakboundError:
        return
    assert type(result).from_json(result.to_json()) == result
    assert 0 <= result.bound <= result.ceiling + 1e-12


@pytest.mark.parametrize(
    ("audit", "option"),
    [
        (audit, option.name)
        for audit, design in DESIGNS.items()
        for function in (lb.audit, design)
        for option in inspect.signature(function).parameters.values()
        if option.kind is option.KEYWORD_ONLY and option.name != "baseline"  # an input, below
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_any_option_of_an_audit(audit: str, option: str) -> None:
    function, inputs = AUDITS[audit]
    for value in VALUES:
        ends_well(function, *inputs, **{option: value})


@pytest.mark.parametrize(
    ("audit", "place"),
    [(name, i) for name, (_, given) in AUDITS.items() for i in range(len(given))],
)
def test_any_input_of_an_audit(audit: str, place: int) -> None:
    function, inputs = AUDITS[audit]
    for value in VALUES:
        ends_well(function, *inputs[:place], value, *inputs[place + 1 :])


@pytest.mark.parametrize(
    ("kind", "option"),
    [(kind, name) for kind in [*POLICIES, *CLAIMS] for name in inspect.signature(kind).parameters],
)
def test_any_option_of_a_policy_or_claim(kind: Any, option: str) -> None:
    as_ = "cuts" if kind in POLICIES else "claim"

    def audit(value: object) -> Any:
        return flat.coins(SCORE, MEMBER, **{as_: kind(**{option: value})})

    for value in VALUES:
        ends_well(audit, value)


@pytest.mark.parametrize("option", inspect.signature(lb.Stream).parameters)
def test_any_option_of_a_stream(option: str) -> None:
    def audit(value: object) -> Any:
        options: dict[str, Any] = {option: value}
        return lb.Stream(**options).update(SCORE, MEMBER).result()

    for value in VALUES:
        ends_well(audit, value)


@pytest.mark.parametrize(
    ("option", "value", "error", "words"),
    [
        ("confidence", None, InputTypeError, "confidence must be a real number, got None"),
        ("confidence", 10**309, OptionError, "confidence is too large for a float"),
        ("cuts", 1, InputTypeError, "cuts must be one of KLScan"),
        ("claim", 1, InputTypeError, "claim must be one of PureDP"),
        ("seed", -1, OptionError, "seed must be at least 0"),
        ("seed", 1.0, InputTypeError, "seed must be an integer"),
        ("seed", True, InputTypeError, "seed must be an integer"),
        ("seed", 10**5000, OptionError, "seed must have at most 128 bits"),
    ],
    ids=lambda value: "" if value == 10**5000 else None,
)
def test_messages_name_the_option_and_what_is_wrong(
    option: str, value: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        flat.coins(SCORE, MEMBER, **{option: value})


def test_a_single_example_has_nothing_to_be_compared_with() -> None:
    with pytest.raises(lb.errors.DesignError, match="no pair to compare among 1 example:"):
        lb.audit([1.0], lb.ZeroRun([True], [0.4]))


@pytest.mark.parametrize(
    "scores",
    [
        np.array([2**53, 2**53 + 1, 0, 1]),
        np.array([2**64 - 1, 2**64 - 2, 0, 1], dtype=np.uint64),
        np.array([1, 1 + np.finfo(np.longdouble).eps, 0, 2], dtype=np.longdouble),
        np.array(["1e400", "1e401", "0", "1"], dtype=np.longdouble),
        [-1, 2**63 + 1, 2**63 + 3, 0],
        [0.5, 2**53 + 1, 2**53, 1],
    ],
    ids=["int64", "uint64", "long double", "beyond double", "both signs", "mixed"],
)
def test_scores_that_float64_merges_are_refused(scores: Any) -> None:
    member = [True, False, True, False]
    with pytest.raises(InputError, match=r"become equal.* at row \d and .* at row \d; pass"):
        lb.audit(scores, lb.Coins(member))
    ranks = np.unique(np.array(scores, dtype=object), return_inverse=True)[1]
    assert lb.audit(ranks, lb.Coins(member)).m == 4


def test_large_scores_that_float64_tells_apart_are_taken() -> None:
    assert lb.audit(np.array([2**60, 2**61, 0, 1]), lb.Coins([1, 0, 1, 0])).m == 4
    assert lb.audit([2**53, 2**53, 2**60, -5], lb.Coins([1, 0, 1, 0])).m == 4
    assert lb.audit(np.array([1, 2, 3, 4], np.longdouble), lb.Coins([1, 0, 1, 0])).m == 4
