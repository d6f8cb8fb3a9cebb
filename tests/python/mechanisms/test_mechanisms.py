"""Audits of mechanisms: what is refuted, what is not, what resumes, and what bad input says."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import torch
from scipy.stats import binom

import leakbound as lb
from command_line import printed_by_each
from leakbound import errors, mechanisms, report
from leakbound.claims import Claim
from leakbound.mechanisms import FloatLaplace, LaplaceNoise, NoisyMax, SparseVector, audit_mechanism
from leakbound.mechanisms.audit import _learnt_log_odds
from leakbound.mechanisms.runs import identity
from leakbound.results import Checked
from pages import words_of

Run = Callable[[Any, np.random.Generator], Any]
ZOO = (
    *(mechanisms.LaplaceNoise, mechanisms.GaussianNoise, mechanisms.FloatLaplace),
    *(mechanisms.SparseVector, mechanisms.NoisyMax),
)


CLIPPED = partial(np.clip, a_min=0, a_max=1)
"""The order of likelihood ratios under Laplace noise."""


def audited(mechanism: Any, **options: Any) -> lb.AuditResult:
    how = {"parameter": mechanism.parameter, "most_runs": 2000, "seed": 0, **options}
    inputs = mechanism.d0, mechanism.d1
    return audit_mechanism(mechanism.run, *inputs, how.pop("claim", mechanism.claim), **how)


def audit_of(run: Run, **options: Any) -> lb.AuditResult:
    how: dict[str, Any] = {"parameter": 50.0, "most_runs": 100, "seed": 1, **options}
    return audit_mechanism(run, 0, 1, lb.PureDP(), **how)


def noisy(data: float, rng: np.random.Generator) -> float:
    return data + rng.normal()


# A seed's runs may be unlucky: of 50 seeds, medians are in docs/audits/mechanisms.md.
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (LaplaceNoise(fault="half_noise"), {}),
        (LaplaceNoise(fault="half_noise"), {"claim": lb.ApproxDP(delta=1e-5)}),
        (mechanisms.GaussianNoise(fault="half_noise"), {}),
        (NoisyMax(fault="half_noise"), {}),
        (NoisyMax(fault="released_value"), {}),
        (SparseVector(fault="no_query_noise"), {}),
        (SparseVector(fault="no_cut_off"), {}),
        (SparseVector(fault="quarter_noise"), {}),
        (SparseVector(fault="no_threshold_noise", above=1), {}),
        (FloatLaplace(fault="inversion"), {"score": FloatLaplace(fault="inversion").score}),
    ],
)
def test_faults_are_refuted(mechanism: Any, options: dict[str, Any]) -> None:
    result = audited(mechanism, **options)
    assert result.check(parameter=mechanism.parameter) == "refuted"
    runs = result.m + (0 if "score" in options else 50)
    assert result.options["runs"] == runs <= 2000
    assert not result.warnings


@pytest.mark.parametrize("kind", ZOO)
def test_right_mechanisms_are_not_refuted(kind: Any) -> None:
    assert audited(kind(), most_runs=500).check(parameter=1.0) == "not refuted"


@pytest.mark.parametrize(
    ("mechanism", "claim", "score"),
    [
        (LaplaceNoise(), lb.PureDP(), CLIPPED),
        (mechanisms.GaussianNoise(), lb.GaussianDP(), np.asarray),
        (FloatLaplace(), lb.PureDP(), CLIPPED),
        pytest.param(LaplaceNoise(), lb.LaplaceDP(), CLIPPED, marks=pytest.mark.validity),
        pytest.param(LaplaceNoise(), lb.ApproxDP(delta=0.02), CLIPPED, marks=pytest.mark.validity),
    ],
)
def test_optional_stopping_refutes_no_true_claim_too_often(
    mechanism: Any, claim: Any, score: Any
) -> None:
    """Audits stop at the first bound above the truth; twice the nominal rate would fail."""
    games, level = 60, 0.25
    most = binom.ppf(0.999, games, level)
    assert binom.cdf(most, games, 2 * level) < 0.2
    how = {"claim": claim, "score": score, "confidence": 1 - level, "most_runs": 200}
    assert sum(audited(mechanism, **how, seed=seed).bound > 1 for seed in range(games)) <= most


@pytest.mark.parametrize("kind", ZOO)
def test_every_fault_runs_and_repeats_itself(kind: Any) -> None:
    for fault in get_args(get_type_hints(kind)["fault"]):
        mechanism = kind(fault=fault)
        for data in (mechanism.d0, mechanism.d1):
            one, two = (mechanism.run(data, np.random.default_rng(3)) for _ in range(2))
            assert np.array_equal(one, two)
    with pytest.raises(errors.OptionError, match="fault must be one of"):
        kind(fault="none")
    with pytest.raises(errors.OptionError, match="epsilon must be above 0"):
        kind(epsilon=0)


@pytest.mark.parametrize("above", [1, 2])
def test_a_right_sparse_vector_is_within_its_epsilon(above: int) -> None:
    """Frequent outputs differ by a factor of e^ε at most, for queries of which two change."""
    right, rng = SparseVector(above=above, epsilon=2.0), np.random.default_rng(0)
    seen = []
    for data in (right.d0[9:11], right.d1[9:11]):
        codes = [right.run(data, rng) @ [3, 1] + 4 for _ in range(20_000)]
        seen.append(np.bincount(codes, minlength=9))
    frequent = seen[0] > 400
    assert frequent.sum() > 2
    assert np.abs(np.log(seen[0][frequent] / seen[1][frequent])).max() < 2


def test_an_output_of_inversion_is_reached_from_its_input() -> None:
    wrong = FloatLaplace(fault="inversion")
    for data in (0, 1):
        outputs = np.array([wrong.run(data, np.random.default_rng([5, i])) for i in range(2000)])
        assert wrong._can_give_outputs(outputs, data).all()
        assert wrong._can_give_outputs(outputs, 1 - data).mean() < 0.6


def test_runs_before_an_interrupt_are_kept(tmp_path: Path) -> None:
    calls = count()

    def interrupted(data: float, rng: np.random.Generator) -> float:
        if next(calls) == 70:
            raise KeyboardInterrupt
        return noisy(data, rng)

    path = tmp_path / "runs.npz"
    with pytest.raises(KeyboardInterrupt):
        audit_of(interrupted, path=path)
    assert np.load(path)["outputs"].shape == (70,)
    resumed = audit_of(interrupted, path=path)
    assert next(calls) == 103  # 70 kept, one interrupted, two repeated, 30 more
    whole = audit_of(noisy, path=tmp_path / "other.npz")
    assert resumed.to_json() == whole.to_json() == audit_of(noisy).to_json()
    assert path.read_bytes() == (tmp_path / "other.npz").read_bytes()


@pytest.mark.parametrize("score", [lambda: None, lambda outputs: outputs.missing])
def test_an_error_of_the_score_says_where_it_is_from(score: Any) -> None:
    with pytest.raises(errors.InputError, match=r"score raised (Type|Attribute)Error: .* batch, "):
        audit_mechanism(
            LaplaceNoise(epsilon=1.0).run,
            0.0,
            1.0,
            claim=lb.PureDP(),
            parameter=3.0,
            score=score,
            most_runs=60,
            seed=3,
        )


def test_an_exception_is_an_output(tmp_path: Path) -> None:
    """It raises for the input with the record, as a check of the range would."""

    def fails(data: float, rng: np.random.Generator) -> float:
        if rng.random() < 0.05 + 0.55 * data:
            raise ZeroDivisionError("no records")
        return float(rng.normal())

    path = tmp_path / "runs.npz"
    found = audit_of(fails, parameter=0.5, most_runs=400, path=path)
    assert found.checked.verdict == "refuted"  # type: ignore[union-attr]
    told = "runs returned nothing, and count as outputs: the first raised (ZeroDivisionError: 'no"
    assert told in found.warnings[0]
    again = audit_of(fails, parameter=0.5, most_runs=400, path=path)
    assert again.to_json() == found.to_json()

    def broken(_data: float, _rng: np.random.Generator) -> float:
        raise TypeError("run() is missing an argument")

    with pytest.raises(errors.InputError, match=r"none of the first 50 .* is missing an argument"):
        audit_of(broken)


HELD = """
import sys
from leakbound._base.files import file_alone
with file_alone(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""
"""A process that writes a file until its input ends."""


def test_a_file_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "runs.npz"
    before = audit_of(noisy, path=path)
    kept = path.read_bytes()
    with subprocess.Popen(
        [sys.executable, "-c", HELD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        for _ in range(2):
            with pytest.raises(errors.FormatError, match=f"being written by process {process.pid}"):
                audit_of(noisy, path=path, most_runs=200)
        assert path.read_bytes() == kept
        # after a kill the same call goes on
        process.kill()
        process.wait()
        assert audit_of(noisy, path=path).to_json() == before.to_json()
    assert [one.name for one in tmp_path.iterdir()] == ["runs.npz"]


def test_a_run_cannot_write_the_file_of_the_audit_it_is_part_of(tmp_path: Path) -> None:
    path = tmp_path / "runs.npz"

    def nested(data: float, rng: np.random.Generator) -> float:
        audit_of(noisy, path=path)
        return noisy(data, rng)

    with pytest.raises(errors.InputError, match="being written by process"):
        audit_of(nested, path=path)


def test_a_file_of_noise_from_elsewhere_goes_on(tmp_path: Path) -> None:
    """Of one bit, two equal outputs are no sign that the mechanism has changed."""
    random = np.random.default_rng(0)
    for seed in range(10):
        how: dict[str, Any] = {"seed": seed, "path": tmp_path / f"{seed}.npz"}
        for _ in range(2):
            audit_of(lambda data, _rng: bool(data) != (random.random() < 0.25), **how)


def test_a_file_of_floats_of_several_widths_goes_on(tmp_path: Path) -> None:
    def run(data: float, rng: np.random.Generator) -> Any:
        value = noisy(data, rng)
        if rng.random() < 0.5:
            return np.float32(value)
        return value

    first = audit_of(run, path=tmp_path / "runs.npz")
    assert audit_of(run, path=tmp_path / "runs.npz").to_json() == first.to_json()


def test_a_file_of_other_arguments_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.npz"
    first = audit_of(noisy, path=path, seed=None)
    assert audit_of(noisy, path=path, seed=None).bound == first.bound  # the seed of the file
    with pytest.raises(errors.OptionError, match="another seed"):
        audit_of(noisy, path=path, seed=7)
    others: dict[str, dict[str, Any]] = {
        "parameter": {"parameter": 2.0},
        "confidence": {"confidence": 0.9},
        "score": {"score": np.asarray},
        "100 runs": {"most_runs": 60},
    }
    for name, options in others.items():
        with pytest.raises(errors.OptionError, match=name):
            audit_of(noisy, path=path, seed=None, **options)
    with pytest.raises(errors.OptionError, match="another claim and another pair of inputs"):
        audit_mechanism(noisy, 0, 2, lb.GaussianDP(), parameter=50.0, most_runs=100, path=path)
    with pytest.raises(errors.OptionError, match="the mechanism or its inputs have changed"):
        audit_of(lambda data, rng: noisy(data, rng) + 1, path=path, seed=None)
    how: dict[str, Any] = {"parameter": 2.0, "most_runs": 60, "seed": 0}
    for _ in range(2):  # the same claim, wherever its function is in memory
        curve = partial(lb.TradeOff.gaussian, delta=0.0)
        claim = lb.TradeOffFamily(parameter="a", tradeoff=curve, bracket=(0.0, 9.0))
        audit_mechanism(noisy, 0, 1, claim, path=tmp_path / "family.npz", **how)

    def of_table(data: Any, rng: np.random.Generator) -> Any:
        return data["x"] + rng.normal()

    where = {**how, "path": tmp_path / "table.npz"}
    audit_mechanism(of_table, {"x": 0}, {"x": 5}, lb.GaussianDP(), **where)
    with pytest.raises(errors.OptionError, match="another pair of inputs"):
        audit_mechanism(of_table, {"x": 0}, {"x": 0}, lb.GaussianDP(), **where)
    path.write_bytes(b"no archive")
    with pytest.raises(errors.FormatError, match="does not hold runs of audit_mechanism"):
        audit_of(noisy, path=path)


@pytest.mark.parametrize("claim", [lb.PureDP(), lb.ApproxDP(delta=1e-3), lb.GaussianDP()])
@pytest.mark.parametrize(("sd", "verdict"), [(1.0, "not refuted"), (0.3, "refuted")])
def test_the_promise_is_the_check(claim: Claim, sd: float, verdict: str) -> None:
    """Every mechanism leaks something: what counts is whether it keeps its promise."""
    promise = 1.0 if isinstance(claim, lb.GaussianDP) else 2.0
    runs = 500

    def run(data: float, rng: np.random.Generator) -> float:
        noise = rng.normal() if isinstance(claim, lb.GaussianDP) else rng.laplace(scale=0.5)
        return data + sd * float(noise)

    result = audit_mechanism(
        run, 0.0, 1.0, claim, parameter=promise, score=CLIPPED, most_runs=runs, seed=0
    )
    assert result.bound > 0
    assert result.checked == Checked(claim.parameter, promise, None, verdict)  # type: ignore[arg-type]
    assert result.verdict == verdict
    said = result.summary()
    name = "μ" if isinstance(claim, lb.GaussianDP) else "ε"
    assert said.headline == said.answer
    assert said.headline.startswith(f"The claimed {name} = {promise:g}")
    assert f"is {verdict}" in said.headline
    assert ("with δ = 0.001" in said.headline) == isinstance(claim, lb.ApproxDP)
    assert "ε is at least" in said.paragraphs[0]
    # On the page, in text and in a stored result as well: once, and without "leaks".
    for text in (str(said), words_of(report.render(result))):
        assert text.count(said.headline) == 1
        assert "This mechanism leaks" not in text
    assert lb.AuditResult.from_json(result.to_json()) == result


def test_a_promise_out_of_reach_is_inconclusive() -> None:
    result = audit_of(noisy, parameter=5.0, most_runs=50)
    assert result.verdict == "inconclusive"
    assert result.summary().headline.startswith("Inconclusive: the claimed ε = 5 is out of reach")
    next_steps = " ".join(result.summary().next_steps)
    assert "To be able to refute the claimed ε = 5, audit about" in next_steps


def test_trials_leak_only_where_nothing_was_promised() -> None:
    member = np.random.default_rng(0).random(400) < 0.5
    scores = np.random.default_rng(1).normal(size=400) + 2 * member
    result = lb.audit(scores, lb.Trials(member), claim=lb.GaussianDP())
    assert result.summary().headline.startswith("This mechanism leaks: ")
    for claimed, verdict in (
        ({"parameter": 1.0}, "refuted"),
        ({"epsilon": 1.0, "delta": 1e-5}, "refuted"),
        ({"parameter": 2.5}, "not refuted"),
        ({"epsilon": 1000.0, "delta": 1e-5}, "inconclusive"),
    ):
        checked = result.with_check(**claimed)
        said = checked.summary()
        assert (checked.verdict, said.headline) == (verdict, said.answer)
        assert not said.leaks
        assert "leaks" not in str(said)
    harder = " ".join(result.with_check(parameter=2.5).summary().next_steps)
    assert "To test the claimed μ = 2.5 harder" in harder


def test_more_runs_may_be_allowed_later(tmp_path: Path) -> None:
    path = tmp_path / "runs.npz"
    audit_of(noisy, path=path)
    assert audit_of(noisy, path=path, most_runs=300).m == 250
    with pytest.raises(errors.OptionError, match="300 runs, more than most_runs allows, 250"):
        audit_of(noisy, path=path, most_runs=250)


def test_batches_whose_coins_were_used_are_not_divided_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "runs.npz"
    audit_of(noisy, path=path, most_runs=120)
    assert np.load(path)["ends"].tolist() == [50, 100, 120]
    audit_of(noisy, path=path, most_runs=200)
    assert np.load(path)["ends"].tolist() == [50, 100, 120, 170, 200]


def test_outputs_that_would_fill_the_memory_are_refused_at_once() -> None:
    with pytest.raises(errors.InputError, match="more than 20,000 numbers or words to learn from"):
        audit_of(lambda _data, rng: np.full(10**7, rng.normal()))
    with pytest.raises(errors.OptionError, match="set most_runs to at most 53"):
        audit_of(lambda _data, rng: np.full(10**7, rng.normal()), score=np.asarray)


def test_outputs_that_repeat_are_counted() -> None:
    shared = audit_of(lambda data, rng: data + np.random.default_rng(rng.integers(5)).normal())
    assert "90 of 100 outputs repeat an earlier one of the same input" in shared.warnings[-1]
    equal = audit_of(lambda _data, _rng: 0.25)
    assert "all 100 outputs are equal" in equal.warnings[-1]
    assert not equal.bound
    assert not audit_of(lambda data, rng: data + rng.integers(3)).warnings


def test_one_output_for_each_input_is_a_seed_that_may_be_fixed() -> None:
    """A generator that every run creates from one seed: any claim would be refuted."""
    said = "every run on the same input gave the same output"
    for fixed in (
        lambda data, _rng: data + np.random.default_rng(0).normal(),
        lambda data, _rng: data,
    ):
        found = audit_of(fixed, parameter=0.5)
        assert found.check(parameter=0.5) == "refuted"
        assert said in found.warnings[-1]
    # Few values, and one input that always gives the same, are no fixed seed.
    for drawn in (
        lambda data, rng: bool(data) ^ bool(rng.random() < 0.2),
        lambda data, rng: data * rng.integers(3),
    ):
        assert said not in str(audit_of(drawn).warnings)


def test_fractions_that_never_vary_are_no_repeated_noise() -> None:
    """Edges of a histogram beside whole counts."""

    def run(data: int, rng: np.random.Generator) -> Any:
        return [data + int(rng.integers(3)), 0.1, 0.2]

    assert not audit_of(run).warnings
    assert not audit_of(lambda data, rng: {"n": run(data, rng)[0], "edges": (0.1, 0.2)}).warnings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"most_runs": 9}, "most_runs must be at least 10"),
        ({"parameter": -1.0}, "parameter must be at least 0"),
        ({"confidence": 1.0}, "confidence must be above 0 and below 1"),
        ({"score": 3}, "score must be a function"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.LeakboundError, match=message):
        audit_of(noisy, **options)


def test_outputs_may_be_infinite_booleans_or_arrays() -> None:
    run = lambda data, rng: np.exp(800 * (data + rng.normal()))  # noqa: E731
    with np.errstate(over="ignore"):
        assert audit_of(run, most_runs=400).bound > 0
    assert audit_of(lambda data, rng: bool(data) != (rng.random() < 0.1), most_runs=400).bound > 1
    assert audit_of(lambda data, rng: data + rng.normal(size=(2, 3)), most_runs=400).bound > 1


def test_a_mechanism_may_write_to_what_it_returned() -> None:
    buffer = np.zeros(1)

    def run(data: float, rng: np.random.Generator) -> Any:
        buffer[0] = data + 0.1 * rng.normal()
        return buffer

    assert audit_of(run, most_runs=400).bound > 1


def test_a_mechanism_may_change_its_input_in_place() -> None:
    def run(data: Any, rng: np.random.Generator) -> Any:
        data += rng.laplace(size=1)
        return data

    inputs = np.zeros(1), np.ones(1)
    result = audit_mechanism(run, *inputs, lb.PureDP(), parameter=1.0, most_runs=400, seed=0)
    assert result.bound < 1
    assert [one.item() for one in inputs] == [0, 1]


def test_results_name_what_was_assumed_of_runs_and_inputs(tmp_path: Path) -> None:
    def unready(_: Any) -> Any:
        raise ZeroDivisionError

    path = tmp_path / "runs.npz"
    with pytest.raises(errors.InputError, match=r"^score raised ZeroDivisionError\. It is called"):
        audit_of(noisy, score=unready, path=path)
    assert np.load(path)["outputs"].shape == (50,)  # they are kept
    result = audit_of(noisy, score=np.asarray, path=path)
    names = [one.name for one in result.assumptions]
    assert names[:2] == ["independent trials with fair coins", "neighbouring inputs"]
    assert result.options["design"] == "trials"


def test_rare_outputs_do_not_lead_the_learnt_ranking() -> None:
    """The surest guesses about integer Laplace noise of unequal steps are nearly the best ones.

    The best are right with odds of e^.51. Rare outputs that few earlier runs had looked surer,
    and came first.
    """
    steps = np.cumsum(np.array([0.34, 0.16, 0.51])[np.arange(60) % 3])
    law = np.exp(-np.concatenate([steps[::-1], [0.0], steps]))
    law /= law.sum()
    likely = np.append(0.0, law) / (np.append(0.0, law) + np.append(law, 0.0))
    right = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        member = rng.random(5000) < 0.5
        outputs = rng.choice(121, 5000, p=law) + member
        scores = _learnt_log_odds([*map(np.asarray, outputs)], member[:2000], seed)
        chances = np.where(scores > 0, likely[outputs[2000:]], 1 - likely[outputs[2000:]])
        first = np.argsort(-np.abs(scores), kind="stable")[:60]
        right.append(chances[first].mean())
    best = 1 / (1 + np.exp(-0.51))
    assert np.mean(right) > best - 0.01


IDENTITIES = """
import numpy as np, pandas as pd
from dataclasses import dataclass
from leakbound.mechanisms.runs import identity
@dataclass
class Held:
    words: set
class Slots:
    __slots__ = ("words",)
words = {"a", "b", "an", "ill", "omen", "\\ud800"}
frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
inputs = [words, frozenset(words), {"w": words, "v": [words, (1, None)]}, Held(words), frame,
          np.array([{"a", "b", "c"}, "x"], dtype=object), np.arange(3.0), Slots()]
print([identity(one) for one in inputs])
"""


def test_an_input_has_one_identity_in_every_process() -> None:
    """A set of words is stored in another order by each."""
    said = printed_by_each(IDENTITIES)
    assert len(said) == 1
    assert said.pop().count("'Slots'") == 1


def test_inputs_of_other_values_have_other_identities() -> None:
    looped: list[object] = []
    looped.append(looped)
    inputs: list[object] = [
        *(1, 1.0, True, "1", b"1", None, [1], (1,), {1}, {1: 2}, {2: 1}, [1, 2], [2, 1]),
        *(np.array([1]), np.array([1.0]), np.array([[1]]), np.array([1, "a"], dtype=object)),
        *([], {}, set(), [[], []], [[[]]]),
    ]
    assert len({identity(one) for one in inputs}) == len(inputs)
    assert identity({"a": 1, "b": 2}) == identity({"b": 2, "a": 1})
    assert identity(torch.ones(3)) == identity(torch.ones(3)) != identity(torch.zeros(3))
    assert identity(looped) == "list"
