"""Recorded batches: Poisson samples are refuted as rarely as stated, other samplers always."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from leakbound.audits.dp_sgd import batches as recorded
from leakbound.dp_sgd import BatchesAudit, audit_batches
from leakbound.errors import FormatError, InputError, InputTypeError, OptionError
from validity.suite import most_errors

N, SIZE, EPOCHS = 120, 10, 3
STEPS = EPOCHS * N // SIZE
Batches = list[Any]


def poisson(rng: np.random.Generator) -> Batches:
    return [np.flatnonzero(rng.random(N) < SIZE / N) for _ in range(STEPS)]


def shuffled(rng: np.random.Generator) -> Batches:
    return [*np.concatenate([rng.permutation(N) for _ in range(EPOCHS)]).reshape(-1, SIZE)]


def with_replacement(rng: np.random.Generator) -> Batches:
    return [*rng.integers(N, size=(STEPS, SIZE))]


def in_order(_rng: np.random.Generator) -> Batches:
    return [*np.tile(np.arange(N), EPOCHS).reshape(-1, SIZE)]


def weighted(rng: np.random.Generator) -> Batches:
    """Half of the examples come three times as often as the others."""
    rates = np.where(np.arange(N) < N // 2, 1.5, 0.5) * SIZE / N
    return [np.flatnonzero(rng.random(N) < rates) for _ in range(STEPS)]


def one_shard(rng: np.random.Generator) -> Batches:
    """Of two processes one is recorded, which always has the same half."""
    return [*np.concatenate([2 * rng.permutation(N // 2) for _ in range(EPOCHS)]).reshape(-1, SIZE)]


def rotating(rng: np.random.Generator, *, shuffle: bool = False) -> Batches:
    """Sizes of Poisson sampling, examples in a fixed order, or one shuffled each epoch."""
    order, place, found = rng.permutation(N), 0, []
    for size in rng.binomial(N, SIZE / N, size=STEPS).tolist():
        if shuffle and place + size > N:
            order, place = rng.permutation(N), 0
        found.append(order[(place + np.arange(size)) % N])
        place += size
    return found


def fixed_batches(rng: np.random.Generator) -> Batches:
    parts = rng.permutation(N).reshape(-1, SIZE)
    return [parts[row] for _ in range(EPOCHS) for row in rng.permutation(len(parts))]


WRONG: dict[str, Callable[[np.random.Generator], Batches]] = {
    "shuffled epochs": shuffled,
    "with replacement": with_replacement,
    "in order": in_order,
    "weighted": weighted,
    "one shard": one_shard,
    "fixed order, Poisson sizes": rotating,
    "shuffled epochs, Poisson sizes": lambda rng: rotating(rng, shuffle=True),
    "fixed batches in shuffled order": fixed_batches,
}


@pytest.mark.parametrize("way", WRONG)
def test_other_samplers_are_refuted(way: str) -> None:
    for seed in range(3):
        audit = audit_batches(WRONG[way](np.random.default_rng(seed)), examples=N, seed=seed)
        assert audit.check() == "refuted"


def of_one_size(rng: np.random.Generator) -> Batches:
    return [rng.choice(N, size=SIZE, replace=False) for _ in range(STEPS)]


RIGHT: dict[str, tuple[Callable[[np.random.Generator], Batches], int]] = {
    "poisson": (poisson, 5),
    "fixed_size": (of_one_size, 6),
}
"""Batches that are as stated, by what is stated, and the stream of their draws."""


def refuted(sampling: Any, seeds: int, level: float) -> int:
    """Count sets of batches that are as stated and are refuted as such."""
    way, stream = RIGHT[sampling]
    how: Any = {"examples": N, "sampling": sampling, "confidence": 1 - level}
    count = 0
    for seed in range(seeds):
        drawn = way(np.random.default_rng([seed, stream]))
        count += bool(audit_batches(drawn, seed=seed, **how).refuted_by)
    return count


@pytest.mark.parametrize("sampling", RIGHT)
def test_batches_as_stated_are_refuted_no_more_often_than_stated(sampling: str) -> None:
    """More than `most` are once in a thousand; at twice the rate seven in eight times."""
    games, level = 40, 0.35
    most = most_errors(games, level, 1)
    assert stats.binom.sf(most, games, 2 * level) > 0.87
    assert refuted(sampling, games, level) <= most


@pytest.mark.validity
@pytest.mark.parametrize("sampling", RIGHT)
def test_batches_as_stated_are_refuted_no_more_often_in_the_long_run(sampling: str) -> None:
    most = most_errors(600, 0.05, 1)
    assert stats.binom.sf(most, 600, 0.1) > 0.95
    assert refuted(sampling, 600, 0.05) <= most


@pytest.mark.validity
@pytest.mark.parametrize("way", WRONG)
def test_other_samplers_are_refuted_with_every_seed(way: str) -> None:
    audits = (
        audit_batches(WRONG[way](np.random.default_rng([seed, 9])), examples=N, seed=seed)
        for seed in range(10)
    )
    assert [one for one in audits if one.check() != "refuted"] == []


def test_many_examples_are_tested_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is chosen without the batches is a Poisson sample too."""
    assert recorded._MOST_MEMBERSHIPS >= 200_000
    monkeypatch.setattr(recorded, "_MOST_MEMBERSHIPS", 40_000)
    rng = np.random.default_rng(0)
    many = [np.flatnonzero(rng.random(20_000) < 0.01) for _ in range(120)]
    audit = audit_batches(many, examples=20_000, seed=0)
    assert audit.refuted_by == ()
    assert audit.examples_tested == 40_000 // 120
    epochs = np.concatenate([rng.permutation(20_000) for _ in range(2)]).reshape(-1, 200)
    assert audit_batches(epochs, examples=20_000, seed=0).check() == "refuted"


@pytest.mark.parametrize("way", [in_order, shuffled, fixed_batches])
def test_epochs_are_looked_up_in_any_order(way: Callable[[np.random.Generator], Batches]) -> None:
    drawn = way(np.random.default_rng(0))
    how: Any = {"examples": N, "sampling": "epochs"}
    audit = audit_batches(drawn, batches_per_epoch=N // SIZE, **how)
    assert audit.check() == "not refuted"
    assert "are epochs that have each example once at most." in audit.summary()
    # each example once at most: some may be dropped
    assert audit_batches(drawn[:-1], batches_per_epoch=N // SIZE, **how).refuted_by == ()
    # of the last epoch, one example in place of another
    drawn[-1] = np.where(np.arange(SIZE) == 3, drawn[-2][0], drawn[-1])
    assert audit_batches(drawn, batches_per_epoch=N // SIZE, **how).refuted_by == ("epochs",)
    assert audit_batches(drawn, batches_per_epoch=N // SIZE + 1, **how).check() == "refuted"


@pytest.mark.parametrize("way", [poisson, with_replacement, weighted, of_one_size])
def test_other_batches_are_no_epochs(way: Callable[[np.random.Generator], Batches]) -> None:
    drawn = way(np.random.default_rng(0))
    audit = audit_batches(drawn, examples=N, sampling="epochs", batches_per_epoch=N // SIZE)
    assert audit.check() == "refuted"
    assert "twice in one epoch, counted from the first batch." in audit.summary()


def test_less_than_an_epoch_says_nothing_of_one() -> None:
    drawn = shuffled(np.random.default_rng(0))[: N // SIZE - 1]
    audit = audit_batches(drawn, examples=N, sampling="epochs", batches_per_epoch=N // SIZE)
    assert audit.check() == "inconclusive"
    assert f"{N // SIZE - 1} batches are recorded, and an epoch has {N // SIZE}" in audit.summary()


@pytest.mark.parametrize("way", [shuffled, with_replacement, in_order, fixed_batches, poisson])
def test_other_batches_are_no_uniform_samples_of_one_size(
    way: Callable[[np.random.Generator], Batches],
) -> None:
    for seed in range(3):
        drawn = way(np.random.default_rng(seed))
        audit = audit_batches(drawn, examples=N, sampling="fixed_size", seed=seed)
        assert audit.check() == "refuted"
        assert ("sizes" in audit.refuted_by) == (way is poisson)


def test_epochs_need_their_number_of_batches() -> None:
    drawn = shuffled(np.random.default_rng(0))
    with pytest.raises(OptionError, match=r"needs batches_per_epoch, len\(loader\)"):
        audit_batches(drawn, examples=N, sampling="epochs")
    with pytest.raises(OptionError, match='is for sampling="epochs", and sampling is'):
        audit_batches(drawn, examples=N, batches_per_epoch=N // SIZE)
    with pytest.raises(OptionError, match="sampling must be one of"):
        audit_batches(drawn, examples=N, sampling="shuffled")  # type: ignore[arg-type]


def test_too_few_batches_tell_nothing() -> None:
    audit = audit_batches(poisson(np.random.default_rng(0))[:4], examples=N, seed=0)
    assert audit.check() == "inconclusive"
    assert "give more batches" in audit.summary()


@pytest.mark.parametrize(
    ("confidence", "verdict"),
    [(0.999, "not refuted"), (0.9995, "inconclusive"), (0.99999, "inconclusive")],
)
def test_what_cannot_refute_is_inconclusive(confidence: float, verdict: str) -> None:
    rng = np.random.default_rng(0)
    drawn = [np.flatnonzero(rng.random(40) < 0.2) for _ in range(15)]
    audit = audit_batches(drawn, examples=40, seed=0, confidence=confidence)
    assert audit.check() == verdict
    said = [one for one in audit.warnings if "set a lower confidence" in one]
    assert bool(said) == (verdict == "inconclusive")


def test_a_level_out_of_reach_hides_no_repeats() -> None:
    drawn = shuffled(np.random.default_rng(0))
    audit = audit_batches(drawn, examples=N, seed=0, confidence=0.9999)
    assert audit.check() == "inconclusive"
    assert "no test but that of repeats can refute at 99.99 % confidence" in audit.summary()
    drawn[0][:2] = 3
    audit = audit_batches(drawn, examples=N, seed=0, confidence=0.9999)
    assert audit.refuted_by == ("repeats",)


def test_an_example_twice_in_a_batch_refutes() -> None:
    drawn = poisson(np.random.default_rng(1))
    drawn[3] = np.append(drawn[3], drawn[3][0])
    assert audit_batches(drawn, examples=N, seed=0).refuted_by == ("repeats",)


def test_a_result_is_stored_and_read_back() -> None:
    audit = audit_batches([*poisson(np.random.default_rng(1)), []], examples=N, seed=0)
    assert BatchesAudit.from_json(audit.to_json()) == audit
    assert "sampling" not in audit.to_dict()
    with pytest.raises(FormatError, match="contradict each other"):
        BatchesAudit.from_dict(audit.to_dict() | {"examples_tested": N + 1})
    with pytest.raises(FormatError, match="contradict each other"):
        BatchesAudit.from_dict(audit.to_dict() | {"sampling": "epochs"})
    drawn = shuffled(np.random.default_rng(1))
    audit = audit_batches(drawn, examples=N, sampling="epochs", batches_per_epoch=N // SIZE)
    assert BatchesAudit.from_json(audit.to_json()) == audit
    with pytest.raises(FormatError, match="contradict each other"):
        BatchesAudit.from_dict(audit.to_dict() | {"p_values": {"epochs": 0.5}})


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ([], InputError, "batches is empty"),
        ("ab", InputTypeError, "list of lists of indices"),
        ([[1, 2.5]], InputTypeError, "batch 0 must be a list of indices"),
        ([[1], [[2]]], InputTypeError, "batch 1 must be a list of indices"),
        ([[1, N]], InputError, f"index {N}, outside 0 to {N - 1}"),
        ([[-1]], InputError, "index -1, outside"),
        ([["a"]], InputTypeError, "batch 0 must be a list of indices"),
    ],
)
def test_what_are_no_batches_is_refused(given: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        audit_batches(given, examples=N)
