"""A probe finds faults of a step, does not refute right ones, and refuses what it cannot judge."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import leakbound as lb
from leakbound.dp_sgd import Batch, Pair, neighbouring_batches
from leakbound.errors import FormatError, InputError, InputTypeError, OptionError
from toy_steps import FAULTS, SIGMA, P, Toy, examples, pairs_of, probed

RIGHT = {
    "double precision": Toy(),
    "single precision": Toy(single=True),
    "another scale": Toy(divisor=lambda _size: 1e-3),
}


@pytest.mark.parametrize("way", RIGHT)
def test_a_right_step_attains_its_claim_and_is_not_refuted(way: str) -> None:
    audit = probed(RIGHT[way])
    assert audit.refuted_by == ()
    assert audit.check() == "not refuted"
    # the noise of the smallest of four tensors is known to a few percent only
    assert 0.93 / SIGMA < audit.bound < 1 / SIGMA
    assert audit.noise_multiplier == 1 / audit.bound
    assert audit.warnings == ()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_what_it_breaks(fault: str) -> None:
    make, part = FAULTS[fault]
    audit = probed(make())
    assert part in audit.refuted_by
    assert audit.check() == "refuted"


def test_replacing_one_moves_the_sum_by_two_norms_and_is_no_fault() -> None:
    audit = probed(Toy(), relation="replace")
    assert audit.refuted_by == ()
    assert 1.86 / SIGMA < audit.bound < 2 / SIGMA
    assert audit.noise_multiplier == pytest.approx(2 / audit.bound)
    # the size of a batch stays, so that a divisor by it is right there
    assert probed(Toy(divisor=lambda size: float(size or 1)), relation="replace").refuted_by == ()


def test_noise_on_one_side_only_is_an_infinite_bound() -> None:
    audit = probed(FAULTS["noise where the sum is not zero"][0]())
    assert math.isinf(audit.bound)
    assert audit.noise_multiplier == 0
    assert math.isinf(audit.epsilon(1e-5))


def test_noise_of_another_stream_is_no_infinite_bound() -> None:
    """It depends on the batch, but nowhere is there none."""

    def noise(rng: np.random.Generator, size: int, _total: Any) -> Any:
        rng.normal(size=size)
        return SIGMA * rng.normal(size=P)

    audit = probed(Toy(noise=noise))
    assert audit.refuted_by == ("coupling",)
    assert audit.bound == 0
    assert all(one.scale is None for one in audit.pairs)
    assert "anything else but the noise follows the seed" in str(audit)
    assert "follows the seed" not in str(probed(FAULTS["a divisor that follows the batch"][0]()))


def test_a_tensor_without_noise_gives_no_nan_where_noise_is_of_another_law() -> None:
    """In large batches noise is of another stream; one of both tensors never has noise."""

    def step(batch: Any, seed: int | None) -> Any:
        rng = np.random.default_rng(seed)
        total = np.sum([np.zeros(400), *batch], axis=0)
        streams = rng.normal(size=(2, 400))
        return {"noisy": total + streams[int(len(batch) >= 3)], "quiet": total[:50]}

    rows = list(np.random.default_rng(0).normal(size=(5, 400)) / 20)
    audit = lb.probe_dp_step(
        step, [(rows[:1], rows[:2]), (rows[:3], rows[:4])], noise_multiplier=1.0, steps=0, seed=0
    )
    assert [one.factor for one in audit.pairs] == [1.0, None]
    assert [one.length for one in audit.pairs] == [math.inf, math.inf]
    assert lb.DPStepAudit.from_json(audit.to_json()) == audit


def test_the_scale_of_noise_tells_batches_apart() -> None:
    """N(0, I) against N(0, a² I), whose squared lengths are χ²: by simulation."""
    audit = probed(FAULTS["noise that follows the batch"][0]())
    ratio = next(one.scale for one in audit.pairs if "in batch 0" in one.name)
    assert ratio == pytest.approx(1.09 / 1.08)
    rng = np.random.default_rng(0)
    from leakbound.results.dp_step import epsilon_of_scale

    for a in (1.3, 1 / 1.3):
        squares = a**2 * rng.chisquare(20, size=400_000)
        loss = squares / 2 * (1 - a**-2) - 20 * math.log(a)
        delta = np.maximum(0, 1 - np.exp(1.0 - loss)).mean()
        assert epsilon_of_scale(a, 20, 0.02) == epsilon_of_scale(1 / a, 20, 0.02)
        if a > 1:
            assert epsilon_of_scale(a, 20, float(delta)) == pytest.approx(1.0, rel=0.02)
    assert epsilon_of_scale(21 / 20, 10_000, 1e-5) == pytest.approx(55, rel=0.02)


def test_normal_noise_is_part_of_the_claim() -> None:
    audit = probed(FAULTS["uniform noise"][0]())
    assert audit.refuted_by == ("normal",)
    assert not audit.is_normal
    assert "not a bound on leakage" in str(audit)


def test_a_level_that_draws_do_not_reach_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """No p-value of 1,000 draws refutes at a tenth of 0.1 %; at a tenth of 2 % it does."""
    from leakbound.audits.dp_sgd.step import assumptions

    monkeypatch.setattr(assumptions, "_MOST_DRAWS", 1_000)
    monkeypatch.setattr(assumptions, "_MOST_DRAWN_NUMBERS", 1)
    uniform = FAULTS["uniform noise"][0]
    audit = probed(uniform(), steps=0)
    assert audit.p_values["normal"] == 1 / 1001
    assert audit.refuted_by == ()
    said = [one for one in audit.warnings if "cannot refute at this confidence" in one]
    assert "normal, independent" in said[0]
    assert audit.check() == "not refuted"
    assert audit.without_power == ("normal", "independent")
    assert audit.summary().headline.endswith("at this confidence: normal, independent.")
    assert lb.dp_sgd.DPStepAudit.from_json(audit.to_json()) == audit
    audit = probed(uniform(), steps=0, confidence=0.98)
    assert audit.refuted_by == ("normal",)
    assert audit.without_power == ()
    assert not [one for one in audit.warnings if "cannot refute at this confidence" in one]


@pytest.mark.parametrize("numbers", [1, 100, 8192])
def test_draws_are_limited_at_any_level(numbers: int) -> None:
    from leakbound.audits.dp_sgd.step.assumptions import simulated_p_value

    drawn = 0

    def draw(games: int) -> NDArray[np.float64]:
        nonlocal drawn
        drawn += games
        return np.zeros(games)

    p = simulated_p_value(1.0, draw, numbers_per_draw=numbers, level=1e-12)
    assert drawn == max(100_000, 50_000_000 // numbers)
    assert p == (1 / (1 + drawn), 1 / (1 + drawn))


def test_steps_that_are_left_out_are_warned_of() -> None:
    audit = probed(FAULTS["half of the noise of the step before"][0](), steps=0)
    assert audit.refuted_by == ()
    assert [one for one in audit.warnings if "steps in a row were not run" in one]


def test_short_gradients_are_warned_of_and_prove_nothing() -> None:
    rows = [0.1 * one for one in examples()]
    audit = probed(Toy(), pairs=[(rows[:8], rows[:9])])
    assert audit.check() == "inconclusive"
    assert [one for one in audit.warnings if "no pair came near the claim" in one]
    assert audit.check(noise_multiplier=20.0) == "refuted"


class Half(Toy):
    """Releases half precision, held in single precision."""

    def __call__(self, batch: Any, seed: int | None) -> Any:
        released = super().__call__(batch, seed)
        return {name: one.astype(np.float16).astype(np.float32) for name, one in released.items()}


def test_half_precision_is_seen_and_takes_its_toll() -> None:
    audit = probed(Half())
    assert audit.refuted_by == ()
    assert [one for one in audit.warnings if "relative precision of 0.00098" in one]


def test_a_fault_of_scale_is_found_in_half_precision() -> None:
    audit = probed(Half(divisor=lambda size: float(max(1, size))))
    assert "coupling" in audit.refuted_by


def _as_bfloat16(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Round to bfloat16, held in single precision."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded: NDArray[np.uint32] = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


COARSE: dict[str, tuple[float, Callable[[NDArray[np.float64]], Any]]] = {
    "bfloat16": (1.0, _as_bfloat16),
    "half": (1.0, lambda values: values.astype(np.float16)),
    "half, subnormal": (1e-6, lambda values: values.astype(np.float16)),
    "half in single, subnormal": (1e-6, lambda v: v.astype(np.float16).astype(np.float32)),
    "half, nearly lost": (1e-7, lambda values: values.astype(np.float16)),
}


@pytest.mark.parametrize("size", [32, 64])
@pytest.mark.parametrize("way", COARSE)
def test_rounding_is_no_other_scale_of_noise(way: str, size: int) -> None:
    """Examples share a direction, so that the sum is far above the noise there."""
    factor, cast = COARSE[way]
    mean = np.zeros(50)
    mean[0] = 3.0
    rows = list(mean + 0.3 * np.random.default_rng(0).normal(size=(size + 2, 50)))
    own = np.random.default_rng(1)

    def step(batch: Any, seed: int | None) -> Any:
        rng = own if seed is None else np.random.default_rng(seed)
        total = sum((x / max(1.0, np.linalg.norm(x)) for x in batch), np.zeros(50))
        return {"w": cast(factor * (total + rng.normal(size=50)) / (size if factor == 1 else 1))}

    pairs = neighbouring_batches([rows[:size]], rows[size:], sweep=False)
    audit = lb.probe_dp_step(step, pairs, noise_multiplier=1.0, runs=8, seed=0)
    assert not [one.name for one in audit.pairs if one.depends]


@pytest.mark.parametrize("beside", [False, True])
def test_noise_that_rounding_leaves_nothing_of_refutes_nothing(*, beside: bool) -> None:
    """Of the values looked at all are zero, although the tensor has some noise elsewhere."""
    from leakbound.audits.dp_sgd.step.assumptions import independence_p_value, normality_p_value
    from leakbound.audits.dp_sgd.step.contrasts import Noise

    lost = {"lost": np.zeros((15, 40))}
    right = {"right": np.random.default_rng(0).normal(size=(15, 40))} if beside else {}
    tensors = lost | right
    noise = Noise(
        sums_of_squares=dict.fromkeys(tensors, 1.0),
        degrees_of_freedom=dict.fromkeys(tensors, 600),
        contrasts=tensors,
        contrasts_along_direction=np.ones(15),
    )
    rng = np.random.default_rng(1)
    assert normality_p_value(noise, 1e-3, rng).value > 0.01
    assert independence_p_value(noise, 1e-3, rng).value > 0.01


def test_a_reused_buffer_is_copied() -> None:
    buffer = {name: one.copy() for name, one in Toy()([], 0).items()}

    def step(batch: Any, seed: int | None) -> Any:
        for name, one in Toy()(batch, seed).items():
            buffer[name][:] = one
        return buffer

    assert probed(step, steps=0).refuted_by == ()


ROWS = examples()


class Momentum:
    """Adds half of what it released before."""

    def __init__(self) -> None:
        self.before: Any = 0.0

    def __call__(self, batch: Any, seed: int | None) -> Any:
        self.before = Toy()(batch, seed)["matrix"] + 0.5 * self.before
        return {"matrix": self.before}


class Late:
    """Keeps a state that only other batches change."""

    def __init__(self) -> None:
        self.seen = 8

    def __call__(self, batch: Any, seed: int | None) -> Any:
        self.seen = max(self.seen, len(batch))
        return {"matrix": Toy()(batch, seed)["matrix"] * self.seen}


def no_empty(batch: Any, seed: int | None) -> Any:
    if not batch:
        raise RuntimeError("cannot reshape")
    return Toy()(batch, seed)


def other_tensors(batch: Any, seed: int | None) -> Any:
    return {"matrix": Toy()(batch, seed)["matrix"][: 100 + len(batch)]}


def missing(batch: Any, seed: int | None) -> Any:
    return dict(list(Toy()(batch, seed).items())[: 4 if len(batch) < 9 else 3])


def nans(_batch: Any, _seed: int | None) -> Any:
    return {"matrix": np.array([1.0, np.nan])}


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "momentum": (Momentum(), OptionError, r"not a function of \(examples, seed\).*momentum"),
    "state of other batches": (Late(), OptionError, "first and after other batches"),
    "unseeded": (
        lambda batch, _seed: Toy()(batch, int(np.random.default_rng().integers(1 << 30))),
        OptionError,
        "gave two results with one seed",
    ),
    "empty batches": (no_empty, InputError, r"fails on an empty batch.*empty=False"),
    "other shapes": (other_tensors, InputError, r"other tensors for other batches.*\(109,\)"),
    "a tensor missing": (missing, InputError, "'last' is missing in D'.*zeros where"),
    "NaN": (nans, InputError, "'matrix' has 1 NaN or infinite values.*smaller inputs"),
    "no mapping": (lambda *_: np.zeros(3), InputTypeError, "must return a mapping"),
    "nothing": (lambda *_: {}, InputError, "returned no number"),
    "words": (lambda *_: {"w": ["a"]}, InputTypeError, "'w' must hold real numbers"),
    "no function": (3, InputTypeError, "step must be a function"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_probed_is_refused(kind: str) -> None:
    step, error, words = BAD[kind]
    with pytest.raises(error, match=words):
        probed(step)


def test_a_number_that_one_example_breaks_refutes() -> None:
    """The batch without it has finite numbers."""

    def step(batch: Any, seed: int | None) -> Any:
        released = dict(Toy()(batch, seed))
        if len(batch) == 9:
            released["head"] = released["head"] * np.inf
        return released

    audit = probed(step)
    assert "finite" in audit.refuted_by
    assert math.isinf(audit.bound)


NO_PAIRS: dict[str, tuple[Any, type[Exception], str]] = {
    "none": ([], InputError, "pairs is empty"),
    "two more": ([(ROWS[:2], ROWS[:4])], InputError, "not neighbours .* they have 4 and 2"),
    "other order": ([(ROWS[:3], [ROWS[1], ROWS[0], *ROWS[2:4]])], InputError, "same order"),
    "no pair": ([ROWS[:2]], InputError, r"differ in|not neighbours|must be"),
    "two factors": (
        [(Batch(ROWS[:2]), Batch(ROWS[:3], loss_factor=2.0))],
        InputError,
        "two loss factors",
    ),
    "a word": ("pairs", InputTypeError, "must be a list of pairs"),
    "three": ([(1, 2, 3)], InputTypeError, r"pair 0 must be \(D, D'\)"),
    "numbers": ([(1, 2)], InputTypeError, "two lists of examples"),
}


@pytest.mark.parametrize("kind", NO_PAIRS)
def test_pairs_that_are_none_are_refused(kind: str) -> None:
    pairs, error, words = NO_PAIRS[kind]
    with pytest.raises(error, match=words):
        probed(Toy(), pairs=pairs)


def test_neighbours_under_replacing_have_one_size() -> None:
    with pytest.raises(InputError, match="as many examples as D"):
        probed(Toy(), relation="replace", pairs=[(ROWS[:3], ROWS[:4])])
    probed(Toy(), relation="replace", pairs=[(ROWS[:3], [ROWS[0], ROWS[5], ROWS[2]])], steps=0)


@pytest.mark.parametrize("place", [0, 2, 4])
def test_the_example_may_be_added_anywhere(place: int) -> None:
    more = [*ROWS[:place], ROWS[9], *ROWS[place:4]]
    assert probed(Toy(), pairs=[(ROWS[:4], more)]).bound > 0.8 / SIGMA


def test_copies_of_examples_are_the_same_by_value() -> None:
    pairs = [([one.copy() for one in ROWS[:3]], [one.copy() for one in ROWS[:4]])]
    assert probed(Toy(), pairs=pairs).bound > 0.8 / SIGMA


def kept(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    data = dict(probed(Toy(), steps=0, runs=8).to_dict())
    change(data)
    return data


def test_a_result_is_stored_and_read_back() -> None:
    for make in (Toy, FAULTS["no noise"][0], FAULTS["a divisor that follows the batch"][0]):
        audit = probed(make(), runs=8).with_check(noise_multiplier=2.0)
        again = lb.DPStepAudit.from_json(audit.to_json())
        assert again == audit
        assert str(again) == str(audit)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(bound=3.0, ceiling=3.0),
        lambda data: data.update(refuted_by=["coupling", "coupling"]),
        lambda data: data.update(worst="none"),
        lambda data: data.update(stated_noise_multiplier=-1.0),
        lambda data: data["pairs"][0].update(coupled=False),
    ],
)
def test_a_stored_result_that_contradicts_itself_is_refused(change: Any) -> None:
    with pytest.raises(FormatError, match="contradict each other"):
        lb.DPStepAudit.from_dict(kept(change))


def test_there_is_no_bundle() -> None:
    with pytest.raises(FormatError, match="the step has to be run again"):
        probed(Toy(), steps=0, runs=8).bundle("folder")


def test_a_run_is_as_private_as_an_accountant_says_that_is_told_the_noise() -> None:
    audit = probed(Toy())
    family = lb.SubsampledGaussianDP(sampling_rate=0.05, steps=100)
    expected = float(family.attained(audit.bound, "both").epsilon(1e-5))
    assert audit.epsilon(1e-5, sampling_rate=0.05, steps=100) == pytest.approx(expected)
    one = float(lb.GaussianDP().tradeoff(audit.bound).epsilon(1e-5))
    assert audit.epsilon(1e-5) == pytest.approx(one, rel=1e-6)


def test_claims_are_checked() -> None:
    audit = probed(Toy())
    assert audit.check(noise_multiplier=1.5) == "refuted"
    assert audit.check(parameter=audit.bound / 1.01) == "refuted"
    assert audit.check(parameter=1.1 * audit.bound) == "not refuted"
    assert "μ = 0.5 of a step is refuted" in str(audit.with_check(parameter=0.5))
    with pytest.raises(OptionError, match="not both"):
        audit.check(parameter=1.0, noise_multiplier=1.0)


def test_candidates_bring_out_what_few_pairs_do_not() -> None:
    """Rows that are centred, then clipped: others move only where they are just clipped."""

    def clip(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        lengths = np.linalg.norm(rows, axis=1)
        scale = lengths.mean() if len(rows) else 1.0
        kept: NDArray[np.float64] = (rows / max(1.0, 0.5 * scale)).sum(0)
        total = np.linalg.norm(kept)
        return kept if total < 1 else kept / total * min(total, len(rows))

    swept = neighbouring_batches([ROWS[:8]], [ROWS[8], -ROWS[8]])
    assert probed(Toy(clip=clip), pairs=swept, runs=8, steps=0).check() == "refuted"
    assert probed(Toy(), pairs=swept, runs=8, steps=0).refuted_by == ()


def test_pairs_are_of_the_relation_and_named_once() -> None:
    for relation in ("add_remove", "replace"):
        pairs = pairs_of(relation)
        names = [one.name for one in pairs]
        assert len(set(names)) == len(names)
        sizes = {len(one.with_) - len(one.without) for one in pairs}
        assert sizes == {int(relation == "add_remove")}
    assert not [one for one in neighbouring_batches([[1.0]], [2.0], empty=False) if not one.without]


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ((np.ones(2), 1), (np.full(2, 3.0), 1)),
        ({"ids": np.arange(2), "x": 1.5}, {"ids": np.arange(2), "x": 4.5}),
        ([np.arange(3), 7], None),
        ("text", None),
        (np.full(2, 3e4, np.float16), None),
        ({"x": np.full(2, 3e4, np.float16), "weight": 1.5}, None),
        (1e308, None),
    ],
)
def test_inputs_are_scaled_where_they_are_floats(example: Any, expected: Any) -> None:
    from leakbound.audits.dp_sgd.step.neighbours import with_scaled_inputs

    np.testing.assert_equal(with_scaled_inputs(example, 3.0), expected)
    assert expected is None or type(with_scaled_inputs(example, 3.0)) is type(example)


def test_a_right_step_on_inputs_in_half_precision_is_not_refuted() -> None:
    """Inputs near 100 times 1000 are above the largest number, 65,504."""
    rows = [(100 * one).astype(np.float16) for one in np.random.default_rng(0).normal(size=(9, P))]
    pairs = neighbouring_batches([rows[:8]], [rows[8], -rows[8]], sweep=False)
    assert not [one.name for one in pairs if not np.isfinite(np.array(one.with_)).all()]
    step = Toy()
    audit = probed(lambda batch, seed: step(_in_double(batch), seed), pairs=pairs, runs=8)
    assert audit.refuted_by == ()
    assert all(one.finite for one in audit.pairs)


def _in_double(batch: Any) -> Batch:
    return Batch([one.astype(float) for one in batch], loss_factor=batch.loss_factor)


def test_tensors_are_scaled_where_their_type_holds_the_numbers() -> None:
    torch = pytest.importorskip("torch")
    from leakbound.audits.dp_sgd.step.neighbours import with_scaled_inputs

    values = torch.full((2,), 100.0, dtype=torch.float16)
    assert with_scaled_inputs((values, 1), 1e3) is None
    assert with_scaled_inputs((values, 1), 10.0)[0].tolist() == [1000.0, 1000.0]
    assert with_scaled_inputs(values.to(torch.bfloat16), 1e3) is not None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([], [1.0]), "batches is empty"),
        (([[]], [1.0]), "batch 0 has no example"),
        (([[1.0]], []), "candidates has no example"),
        (([[1.0]], "ab"), "candidates must be a list"),
    ],
)
def test_batches_without_examples_are_refused(given: Any, words: str) -> None:
    with pytest.raises((InputError, InputTypeError), match=words):
        neighbouring_batches(*given)


def test_a_page_and_a_figure_are_made(tmp_path: Any) -> None:
    for make in (Toy, FAULTS["no noise"][0]):
        audit = probed(make(), runs=8)
        audit.report(tmp_path / "page.html")
        assert "Probe of a step of DP-SGD" in (tmp_path / "page.html").read_text(encoding="utf-8")
        assert audit.plot().get_xlabel() == "lower bound on μ"


def test_a_pair_may_have_a_name() -> None:
    audit = probed(Toy(), pairs=Pair("mine", ROWS[:8], ROWS[:9]), steps=0, runs=8)
    assert audit.worst == "mine"
