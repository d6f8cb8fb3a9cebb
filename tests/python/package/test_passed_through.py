"""Arguments that are only passed on are checked where they come in: what is raised has a name."""

import html
import io
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import leakbound as lb
from leakbound import generators, stats
from leakbound import torch as of_torch
from leakbound._base.formatting import down, number, up
from leakbound.claims import TradeOffFamily
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import FormatError, InputError, InputTypeError, OptionError
from leakbound.mechanisms import audit_mechanism
from leakbound.planning import ChoicePlan
from leakbound.planning.inclusion import SCHEMA, Plan

# --- curves ---------------------------------------------------------------------------------------


def test_a_curve_of_lists_is_that_of_arrays() -> None:
    made: Any = TradeOff
    assert made("gaussian", {"mu": [1.0], "delta": [0]}) == TradeOff.gaussian(1.0)
    table = made("table", {"alpha": [0, 0.5, 1], "f": np.array([1, 0, 0])})
    assert table == TradeOff.table([0, 0.5, 1], [1, 0, 0])
    assert TradeOff.from_json(table.to_json()) == table


@pytest.mark.parametrize(
    "parameters",
    [
        None,
        [1.0],
        {"mu": 1.0, "delta": 0.0},
        {"mu": "one", "delta": [0.0]},
        {"mu": [1.0, 2.0], "delta": [0.0]},
        {"mu": np.ones((2, 2)), "delta": [0.0]},
        {"mu": [1.0]},
        {1: [1.0]},
    ],
)
def test_a_curve_of_anything_else_is_refused(parameters: Any) -> None:
    with pytest.raises((InputError, InputTypeError)):
        TradeOff("gaussian", parameters)


# --- shapes ---------------------------------------------------------------------------------------

TWO, THREE = [1, 2], [3, 3, 3]
SHAPES: dict[str, Callable[[], object]] = {
    "binomial_tail": lambda: stats.binomial_tail(TWO, THREE, 0.5),
    "clopper_pearson": lambda: stats.clopper_pearson(TWO, THREE, beta=0.05),
    "its level": lambda: stats.clopper_pearson(TWO, [3, 3], beta=[0.1, 0.1, 0.1]),
    "offsets": lambda: stats.poisson_binomial_tail_offsets(TWO, [0.1], epsilon=[1, 2, 3]),
}


@pytest.mark.parametrize("call", SHAPES.values(), ids=SHAPES)
def test_shapes_that_do_not_go_together(call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=r"shapes \(2,\), \(3,\).*do not go together|\(2,\), \(2,"):
        call()


# --- plans and tallies ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "items", [[1, 2, 3, 4], np.arange(4), torch.ones(4), [None] * 4, np.array(3.0), 3, {1, 2}]
)
def test_candidates_that_are_single_values(items: Any) -> None:
    plan = ChoicePlan.create(4, k=3, seed=1)
    with pytest.raises(InputTypeError, match="items must have"):
        plan.included(items)


@pytest.mark.parametrize("items", [np.array(3.0), torch.tensor(3.0)])
def test_one_number_has_no_members(items: Any) -> None:
    plan = lb.InclusionPlan.create(4, seed=1)
    for part in (plan.included, plan.excluded):
        with pytest.raises(InputTypeError, match="items must have a length"):
            part(items)


@pytest.mark.parametrize("name", ["inclusion_plan", "k", "seed", "copies"])
@pytest.mark.parametrize("value", [math.inf, math.nan, [1, 2], "x", "9" * 6000])
def test_plans_with_numbers_that_are_none(name: str, value: Any) -> None:
    stored: dict[str, Any] = {"drawn": [True, False], "k": 0, "ids": [0, 1], "seed": ""}
    stored["inclusion_plan"] = SCHEMA + 1 if name == "copies" else SCHEMA
    file = io.BytesIO()
    np.savez(file, **stored | {name: np.array(value)})
    file.seek(0)
    with pytest.raises(FormatError, match="is not an InclusionPlan or ChoicePlan"):
        Plan.load(file)


def test_tensors_with_a_gradient_are_counted() -> None:
    scores = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    tally = lb.Tally.of(scores, [True, False, True])
    again = [torch.tensor(one) for one in (tally.keys, tally.examples_at, tally.members_at)]
    assert lb.Tally(*again) == tally  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="keys must be one-dimensional and of whole numbers"):
        lb.Tally(scores, *again[1:])  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ['{"a":' * 50_000 + "1" + "}" * 50_000, "[" * 99_999])
def test_deep_json_is_no_tally(text: str) -> None:
    records = lb.Tally.of([1.0, 2.0], [True, False]).to_arrow()
    (name,) = records.schema.metadata
    deep = records.replace_schema_metadata({name: text})
    with pytest.raises(InputError, match="metadata of the tally cannot be read"):
        lb.Tally.from_arrow(deep)
    with pytest.raises(FormatError, match="not JSON of this package"):
        TradeOff.from_json('{"schema": ' + text)


def noisy(data: float, rng: np.random.Generator) -> float:
    return float(rng.normal() + data)


@pytest.mark.parametrize("text", ["[" * 99_999, json.dumps({"copies": "1e999"}), '{"a": 1e999}'])
def test_a_checkpoint_of_runs_whose_record_is_none(text: str, tmp_path: Any) -> None:
    file = tmp_path / "runs.npz"
    np.savez(file, outputs=np.zeros(4), ends=np.array([2, 4]), made_of=np.array(text))
    with pytest.raises(FormatError, match=r"runs\.npz"):
        audit_mechanism(noisy, 0.0, 1.0, lb.GaussianDP(), parameter=1.0, path=file)


# --- words of a page ------------------------------------------------------------------------------


def test_numbers_with_more_digits_than_a_double() -> None:
    assert [number(x) for x in (1e14, 1e15, 1.79e308)] == [
        "100000000000000.00",
        "1.00e+15",
        "1.79e+308",
    ]
    assert (down(1.2345e30), up(1.2345e30), down(-1.2345e30)) == (
        "1.23e+30",
        "1.24e+30",
        "-1.24e+30",
    )


@pytest.mark.parametrize("name", ["$", "a $b$ c", "$\\frac{$", "100 $ or \\$5"])
def test_a_page_of_any_parameter(name: str, tmp_path: Any) -> None:
    """A ceiling near the largest double, and names that matplotlib would read as formulas."""
    member = np.arange(200) % 2 == 0
    family = TradeOffFamily(
        parameter=name, tradeoff=lambda x: TradeOff.gaussian(min(x, 30.0)), bracket=(0.1, 1.7e308)
    )
    result = lb.audit(member * 1.0 + np.arange(200) / 1e4, lb.Coins(member), claim=family, seed=0)
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 3
    assert name in html.unescape(page)


# --- what only a fuzzer passes --------------------------------------------------------------------


@pytest.mark.parametrize("k", [np.array([1.0, 2.0]), np.zeros(0), [3], "3", None])
def test_numbers_of_candidates_that_are_none(k: Any) -> None:
    with pytest.raises(InputTypeError, match="k must be an integer"):
        lb.Choices([0, 1, 2], k)


@pytest.mark.parametrize("shares", [0.5, (0.5, 0.5), "audit", np.ones(2)])
def test_shares_without_names(shares: Any) -> None:
    with pytest.raises(InputTypeError, match="shares must be a mapping"):
        generators.split_members(10, shares=shares)
    with pytest.raises(OptionError, match="shares is empty"):
        generators.split_members(10, shares={})


def test_single_numbers_are_no_samples() -> None:
    with pytest.raises(InputError, match="both need at least one row"):
        generators.check_duplicates([1.0, 2.0], np.array(3.0))


@pytest.mark.parametrize("device", [np.array(["a", "b"]), [], 1.5, "gpu"])
def test_devices_that_are_none(device: Any) -> None:
    data = (torch.zeros(3, 2), torch.zeros(3, dtype=torch.long))
    with pytest.raises(OptionError, match="cannot be used"):
        lb.torch.score(torch.nn.Linear(2, 2), data, device=device)


@pytest.mark.parametrize("huge", [2**63, 10**9])
def test_absurd_numbers_for_generators(huge: int) -> None:
    with pytest.raises(OptionError, match="leaf must be at least 1 and at most"):
        generators.SequentialCART(leaf=huge)
    for option in ("length", "most"):
        sizes: dict[str, Any] = {"length": 4, "most": 2, option: huge}
        with pytest.raises(OptionError, match=f"{option} must be"):
            generators.chunk_texts(["to be or not"], **sizes)
    with pytest.raises(InputTypeError, match="texts must be a list of strings"):
        generators.chunk_texts(np.array(3), length=4, most=2)  # type: ignore[arg-type]


# --- models and tables ----------------------------------------------------------------------------

ROWS = {"a": np.arange(40) % 5, "b": np.random.default_rng(0).normal(size=40)}
SCORER: Any = of_torch.Scorer
LOSSES: Any = of_torch.token_losses
SYNTHETIC: Any = lb.audit_synthetic
MODELS: dict[str, Callable[[], object]] = {
    "a device beyond all": lambda: LOSSES(
        torch.nn.Embedding(9, 9), torch.ones(2, 4).long(), device=2**130, progress=False
    ),
    "columns of numbers": lambda: SCORER("torch.nn:Identity", label=1e-17),
    "inputs of numbers": lambda: SCORER("torch.nn:Identity", inputs=("a", 3)),
    "columns to keep": lambda: SCORER("torch.nn:Identity", keep=(b"a",)),
    "a device of a number": lambda: SCORER("torch.nn:Identity", device=2),
    "an array of attacks": lambda: SYNTHETIC(
        ROWS, ROWS, ROWS, attacks=np.array([1, "x"], dtype=object)
    ),
}


@pytest.mark.parametrize("call", MODELS.values(), ids=MODELS)
def test_what_models_are_asked_with_is_checked(call: Callable[[], object]) -> None:
    with pytest.raises((InputTypeError, OptionError)):
        call()


@pytest.mark.parametrize("step", [lambda: None, lambda _: {}, len, 3])
def test_steps_that_do_not_take_examples_and_a_seed(step: Any) -> None:
    pairs = [([1.0, 2.0], [1.0])]
    with pytest.raises(InputTypeError, match="step must "):
        lb.probe_dp_step(step, pairs, noise_multiplier=1.0)


def test_names_of_columns_that_utf_8_does_not_have() -> None:
    records = pa.table({"id": [1, 2], "score": [0.1, 0.2], "member": [True, False]})
    pairing = lb.Pairing(seed=1, centre=0.0, spread=1.0)
    calls: list[Callable[[], object]] = [
        lambda: pairing.batch(records, score="\ud800"),
        lambda: SCORER("torch.nn:Identity", inputs=("\ud800",), device="cpu")(records),
    ]
    for call in calls:
        with pytest.raises(InputTypeError, match=r"exactly one column '\\ud800'; the columns are"):
            call()
