"""Tallies: keys in the order of scores, counts that add up, and what is refused."""

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import leakbound as lb
from leakbound import errors
from leakbound._tally.tally import METADATA
from leakbound.attacks import Scores

RNG = np.random.default_rng(0)
M = 5000
MEMBER = RNG.random(M) < 0.5
SCORES = RNG.normal(size=M) + MEMBER


def plain(scores: NDArray[Any], member: NDArray[Any], bits: int) -> dict[int, list[int]]:
    """The slow and obvious way: one score after another."""
    found: dict[int, list[int]] = {}
    for score, is_member in zip(scores.tolist(), member.tolist(), strict=True):
        word = int(np.float32(score + 0.0).view(np.uint32))
        ordered = (~word & 0xFFFFFFFF) if word >> 31 else word | 1 << 31
        counts = found.setdefault(ordered >> (32 - bits), [0, 0])
        counts[0] += 1
        counts[1] += is_member
    return dict(sorted(found.items()))


@pytest.mark.parametrize("bits", [8, 12, 20, 32])
@pytest.mark.parametrize("rows", [1, 60, 5000])
def test_counts_are_those_of_one_score_after_another(bits: int, rows: int) -> None:
    scores = np.concatenate([SCORES[: rows - 1], [-0.0]])
    tally = lb.Tally.of(scores, MEMBER[:rows], bits=bits)
    expected = plain(scores, MEMBER[:rows], bits)
    assert tally.keys.tolist() == list(expected)
    listed = list(zip(tally.examples_at.tolist(), tally.members_at.tolist(), strict=True))
    assert listed == [tuple(counts) for counts in expected.values()]
    assert (tally.m, tally.members) == (rows, MEMBER[:rows].sum())


@pytest.mark.parametrize("bits", [8, 9, 12, 20, 32])
def test_keys_keep_the_order_of_scores(bits: int) -> None:
    extremes = [-np.inf, -3e38, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1e-3, 1.0, 3e38, 1e300, np.inf]
    scores = np.sort(np.concatenate([extremes, SCORES * 10.0 ** (RNG.integers(-30, 30, M))]))
    each = [lb.Tally.of([score], [True], bits=bits) for score in scores[::40]]
    keys = np.array([int(one.keys[0]) for one in each])
    values = np.array([one.values[0] for one in each])
    assert (np.diff(keys) >= 0).all()
    assert (values <= np.maximum(scores[::40].astype(np.float32), values[0])).all()
    again = [lb.Tally.of([value], [True], bits=bits).keys[0] for value in values]
    assert again == keys.tolist()


@pytest.mark.parametrize("bits", [8, 9, 10, 16])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_many_rows_are_counted_as_few_are(bits: int, kind: Any) -> None:
    """Keys of many rows have a place each in a table of counts; those of few are sorted."""
    rng = np.random.default_rng(bits)
    extremes = np.array([-np.inf, -3e38, -1e-45, -0.0, 0.0, 1e-45, 3e38, np.inf])
    scores = np.concatenate([rng.normal(size=40_000), extremes]).astype(kind)
    member = rng.random(scores.size) < 0.4
    tally = lb.Tally.of(scores, member, bits=bits)
    expected = plain(scores, member, bits)
    assert tally.keys.tolist() == list(expected)
    assert np.c_[tally.examples_at, tally.members_at].tolist() == list(expected.values())


@pytest.mark.parametrize("bits", [8, 9, 10, 16])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nan_among_many_rows_is_told_with_its_row(bits: int, sign: float) -> None:
    scores = np.random.default_rng(0).normal(size=40_000)
    scores[:2] = np.inf, -np.inf
    member = scores > 0
    assert lb.Tally.of(scores, member, bits=bits).m == scores.size
    scores[37_777] = np.copysign(np.nan, sign)
    with pytest.raises(errors.InputError, match="row 37777 "):
        lb.Tally.of(scores, member, bits=bits)


def test_shards_add_up_to_the_whole_in_any_order() -> None:
    whole = lb.Tally.of(SCORES, MEMBER)
    cuts = [slice(0, 10), slice(10, 3000), slice(3000, M)]
    parts = [lb.Tally.of(SCORES[rows], MEMBER[rows]) for rows in cuts]
    a, b, c = parts
    assert (a + b) + c == c + (a + b) == lb.Tally.sum(parts) == whole
    assert hash(a + b) == hash(b + a)
    assert len((a + b + c).shards) == 3
    assert whole.shards == {whole.digest}
    assert whole != a


def test_a_shard_is_not_added_twice() -> None:
    a, b = lb.Tally.of(SCORES[:50], MEMBER[:50]), lb.Tally.of(SCORES[50:], MEMBER[50:])
    for doubled in ([a, a], [a + b, a], [b, a + b]):
        with pytest.raises(errors.InputError, match="added before"):
            lb.Tally.sum(doubled)


def test_tallies_that_do_not_add_up_are_refused() -> None:
    fine, coarse = lb.Tally.of(SCORES, MEMBER), lb.Tally.of(SCORES, MEMBER, bits=12)
    with pytest.raises(errors.InputError, match="20 and 12 bits"):
        fine + coarse
    with pytest.raises(errors.InputError, match="at least one"):
        lb.Tally.sum([])
    with pytest.raises(errors.InputTypeError, match="got 3"):
        lb.Tally.sum([fine, 3])  # type: ignore[list-item]
    huge = lb.Tally([2**19], [2**61], [0])  # type: ignore[arg-type]
    more = lb.Tally([2**19], [2**61 + 2**60], [0])  # type: ignore[arg-type]
    with pytest.raises(errors.InputError, match="64 bits"):
        huge + more


@pytest.mark.parametrize(
    ("keys", "examples", "members", "message"),
    [
        (
            [2**19, 2**19],
            [1, 1],
            [0, 0],
            "must be increasing, each with an example",
        ),
        ([2**19], [-1], [0], "negative number of examples"),
        ([2**19], [1], [-1], "negative number of members"),
        ([2**19], [1], [2], "more members than examples"),
        ([2**19], [0], [0], "must be increasing, each with an example"),
        ([2**20], [1], [0], "not the key of a number"),
        ([2**20 - 1], [1], [0], "not the key of a number"),  # a NaN
        ([-1], [1], [0], "not the key of a number"),
    ],
)
def test_counts_that_cannot_be_are_refused(
    keys: list[int], examples: list[int], members: list[int], message: str
) -> None:
    columns = [np.array(column) for column in (keys, examples, members)]
    with pytest.raises(errors.InputError, match=message):
        lb.Tally(columns[0], columns[1], columns[2])
    if "increasing" not in message:
        table = pa.table(dict(zip(("key", "examples", "members"), columns, strict=True)))
        with pytest.raises(errors.InputError, match=message):
            lb.Tally.from_arrow(table)


def test_bad_scores_are_refused_with_their_rows() -> None:
    scores = np.concatenate([SCORES, [np.nan]])
    with pytest.raises(errors.InputError, match="row 5000"):
        lb.Tally.of(scores, np.append(MEMBER, True))
    with pytest.raises(errors.InputError):
        lb.Tally.of(SCORES, np.full(M, 2))
    with pytest.raises(errors.InputError):
        lb.Tally.of(SCORES, MEMBER[1:])
    for bits in (7, 33):
        with pytest.raises(errors.OptionError, match="bits"):
            lb.Tally.of(SCORES, MEMBER, bits=bits)
    with pytest.raises(errors.InputTypeError, match="whole numbers"):
        lb.Tally(np.array([0.5]), np.array([1]), np.array([1]))
    sums = pa.table({"key": [2**19], "examples": [2.0], "members": [1]})
    with pytest.raises(errors.InputTypeError, match=r"examples must .* got float64: cast it"):
        lb.Tally.from_arrow(sums)
    ids = np.append(np.arange(1, M), 7)
    with pytest.raises(errors.InputError, match="1 ids are both members and non-members"):
        lb.Tally.of(Scores(SCORES, ids, "any"), np.arange(M) != 6)


def test_arrow_and_parquet_keep_everything(tmp_path: Path) -> None:
    both = lb.Tally.of(SCORES[:99], MEMBER[:99], bits=24)
    both += lb.Tally.of(SCORES[99:], MEMBER[99:], bits=24)
    batch = both.to_arrow()
    assert batch.schema.names == ["key", "examples", "members"]
    both.to_parquet(tmp_path / "tally.parquet")
    for data in (batch, pa.Table.from_batches([batch])):
        again = lb.Tally.from_arrow(data)
        assert again == both
        assert (again.bits, again.shards) == (24, both.shards)
    again = lb.Tally.from_parquet(tmp_path / "tally.parquet")
    assert again == both
    assert again.shards == both.shards
    with pytest.raises(errors.InputError, match="added before"):
        again + both
    with pytest.raises(errors.InputError, match="bits=20 was given"):
        lb.Tally.from_arrow(batch, bits=20)


def test_other_versions_and_files_are_refused(tmp_path: Path) -> None:
    batch = lb.Tally.of(SCORES, MEMBER).to_arrow()
    later = batch.replace_schema_metadata({METADATA: b'{"version": 2, "bits": 20}'})
    with pytest.raises(errors.InputError, match="schema version 2"):
        lb.Tally.from_arrow(later)
    damaged = batch.replace_schema_metadata({METADATA: b'{"version": 1'})
    with pytest.raises(errors.InputError, match="cannot be read"):
        lb.Tally.from_arrow(damaged)
    bare = pa.Table.from_batches([batch.replace_schema_metadata(None)])
    parquet.write_table(bare, tmp_path / "bare.parquet")
    with pytest.raises(errors.InputError, match="metadata do not say so"):
        lb.Tally.from_parquet(tmp_path / "bare.parquet")
    (tmp_path / "text.parquet").write_text("score,member\n")
    with pytest.raises(errors.InputError, match="not a tally"):
        lb.Tally.from_parquet(tmp_path / "text.parquet")


def rows(**columns: Any) -> pa.RecordBatch:
    default = {"score": SCORES, "member": MEMBER}
    return pa.RecordBatch.from_pydict({**default, **columns})


def test_batches_add_up_to_the_tally() -> None:
    count = pickle.loads(pickle.dumps(partial(lb.Tally.batch, score="loss", member="member")))
    batches = [rows(loss=SCORES).slice(at, 700) for at in range(0, M, 700)]
    counted = [count(batch) for batch in batches]
    assert all(batch.schema.types == [pa.int64()] * 3 for batch in counted)
    assert lb.Tally.from_arrow(pa.Table.from_batches(counted)) == lb.Tally.of(SCORES, MEMBER)
    assert count(rows(loss=SCORES).slice(0, 0)).num_rows == 0
    single = lb.Tally.batch(
        rows(score=SCORES.astype(np.float32), member=2 * MEMBER.astype(int) - 1)
    )
    assert lb.Tally.from_arrow(single) == lb.Tally.of(SCORES, MEMBER)
    with pytest.raises(errors.OptionError, match="bits must be at least 8"):
        lb.Tally.from_arrow(single, bits=0)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"score": np.where(np.arange(M) == 77, np.nan, SCORES)}, errors.InputError, "row 77"),
        ({"score": pa.array([None, *SCORES[1:]])}, errors.InputTypeError, "null at row 0"),
        ({"score": ["a"] * M}, errors.InputTypeError, "must hold numbers, got string"),
        ({"member": ["true"] * M}, errors.InputTypeError, "got string"),
        ({"member": pa.array(["in"] * M).dictionary_encode()}, errors.InputTypeError, "dictionary"),
        ({"member": MEMBER.astype(int) + 1}, errors.InputError, "throughout, got 2 at row"),
        ({"member": np.full(M, 2)}, errors.InputError, "column 'member': "),
    ],
)
def test_bad_batches_are_refused(
    columns: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lb.Tally.batch(rows(**columns))


def test_a_plan_is_joined_by_ids() -> None:
    order = RNG.permutation(M)
    plan = lb.InclusionPlan(MEMBER, ids=np.arange(M) + 7)
    scores = Scores(SCORES[order], np.arange(M)[order] + 7, "any")
    assert lb.Tally.of(scores, plan) == lb.Tally.of(SCORES, MEMBER)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(errors.InputTypeError, match="one column 'loss'"):
        lb.Tally.batch(rows(), score="loss")
    with pytest.raises(errors.InputTypeError, match=r"pyarrow\.RecordBatch"):
        lb.Tally.batch(SCORES)
