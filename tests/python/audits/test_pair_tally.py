"""Tallies of pairs: a hash matches members with non-members, and counts are audited as scores."""

import itertools
import pickle
from collections import Counter
from hashlib import md5
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import leakbound as lb
from leakbound import errors
from leakbound._base.types import FloatArray
from leakbound.audits.pairing import matched_by_hash
from leakbound.audits.pairs import Pairs, Stretch

M = 2000
RNG = np.random.default_rng(0)
MEMBER = RNG.permutation(M) < 1300
SCORES = RNG.normal(size=M) + MEMBER
IDS = RNG.permutation(10 * M)[:M]
STRATA = RNG.choice(["a", "b", "c"], M)
PAIRING = lb.Pairing(seed=7, centre=0.5, spread=1.25)


def order_of(seed: int, name: object) -> str:
    return md5(f"{seed}:{name}".encode()).hexdigest()


def plain(ids: Any, member: Any, strata: Any, seed: int, digits: int) -> set[tuple[int, int]]:
    """The slow and obvious way: which member meets which non-member, cell by cell."""
    cells: dict[Any, tuple[list[tuple[str, int]], list[tuple[str, int]]]] = {}
    for row, name in enumerate(ids.tolist()):
        word = order_of(seed, name)
        cell = cells.setdefault((strata[row], word[:digits]), ([], []))
        cell[int(member[row])].append((word, row))
    return {
        (inside[1], outside[1])
        for others, members in cells.values()
        for inside, outside in zip(sorted(members), sorted(others), strict=False)
    }


@pytest.mark.parametrize("digits", [0, 1, 2])
@pytest.mark.parametrize("named", ["numbers", "text"])
def test_pairs_are_those_of_one_hash_after_another(digits: int, named: str) -> None:
    ids = IDS if named == "numbers" else np.array([f"ü{one}" for one in IDS])
    pairing = lb.Pairing(seed=7, centre=0.5, spread=1.25, buckets=16**digits, stratum="stratum")
    pairs = sorted(plain(ids, MEMBER, STRATA, 7, digits))
    tally = lb.PairTally.of(SCORES, MEMBER, ids, strata=STRATA, pairing=pairing)
    assert (tally.pairs, tally.left_over) == (len(pairs), M - 2 * len(pairs))
    z = (SCORES - 0.5) / 1.25
    even = z * (1 + np.abs(z) / 4)
    apart = np.array([even[one] - even[other] for one, other in pairs])
    assert tally.differences == lb.Tally.of(np.abs(apart), apart > 0)
    rows = np.array(pairs).T.ravel()
    assert tally.scores == lb.Tally.of(SCORES[rows], MEMBER[rows])
    assert tally.counted_buckets == 16**digits


def test_equal_hashes_are_ordered_by_all_of_the_digest() -> None:
    hashed = np.zeros(6, dtype=np.int64)
    ids, member = np.arange(6), np.array([1, 1, 1, 0, 0, 0], dtype=np.bool_)
    inside = sorted(range(3), key=lambda name: order_of(7, name))
    outside = sorted(range(3, 6), key=lambda name: order_of(7, name))
    members, others, _ = matched_by_hash(PAIRING, ids, hashed, member)
    assert (members.tolist(), others.tolist()) == (inside, outside)


@pytest.mark.parametrize(
    ("buckets", "sizes"),
    [
        *itertools.product((1, 2), [(1, 1), (2, 2), (3, 1)]),
        (1, (2, 3)),
        pytest.param(2, (2, 3), marks=pytest.mark.validity),
    ],
)
def test_given_the_pairs_orientations_are_fair_coins(sizes: tuple[int, int], buckets: int) -> None:
    """All splits and all orders of hashes, with every way of being in buckets, counted."""
    members, size = sizes[0], sum(sizes)
    pairing = lb.Pairing(seed=7, centre=0, spread=1, buckets=buckets)
    ids, seen = np.arange(size), dict[Any, Counter[Any]]()
    for order in itertools.permutations(range(size)):
        for high in itertools.product(range(buckets), repeat=size):
            hashed = np.array(order) - np.where(high, 0, 1 << 62) * (buckets - 1)
            for chosen in itertools.combinations(range(size), members):
                member = np.isin(ids, chosen)
                inside, outside, left = matched_by_hash(pairing, ids, hashed, member)
                pairs = list(zip(inside.tolist(), outside.tolist(), strict=True))
                rest = tuple(sorted((row, bool(member[row])) for row in left.tolist()))
                given = (tuple(sorted(map(tuple, map(sorted, pairs)))), rest)
                seen.setdefault(given, Counter())[tuple(sorted(pairs))] += 1
    for (pairs, _), orientations in seen.items():
        assert len(orientations) == 2 ** len(pairs)
        assert len(set(orientations.values())) == 1


def same(one: lb.AuditResult, other: lb.AuditResult) -> None:
    for name in ("bound", "m", "members", "guesses", "correct", "path", "ceiling"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.auc == pytest.approx(other.auc, abs=1e-15)
    for name in ("guesses", "correct", "bound"):
        np.testing.assert_array_equal(getattr(one.curve, name), getattr(other.curve, name))
    np.testing.assert_array_equal(one.roc.members, other.roc.members)


@pytest.mark.parametrize("cuts", [None, lb.Fixed(100), lb.OutsideIn()], ids=repr)
@pytest.mark.parametrize(
    "claim", [lb.PureDP(), lb.ApproxDP(delta=1e-5), lb.GaussianDP(), lb.LaplaceDP()], ids=repr
)
def test_audits_are_those_of_the_same_pairs(
    cuts: Any, claim: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory, matched by the same hash and on the same scale, where no two keys are equal."""
    scores = np.argsort(np.argsort(SCORES)) / 97.3
    pairing = lb.Pairing(seed=7, centre=9.8, spread=5.1, bits=32)
    tally = lb.PairTally.of(scores, MEMBER, IDS, pairing=pairing)
    assert len(tally.differences) == tally.pairs
    pairs = sorted(plain(IDS, MEMBER, np.zeros(M), 7, 0))
    inside, outside = np.array(pairs).T
    listed = Pairs(inside, outside, np.arange(len(pairs)) % 2 == 0)
    monkeypatch.setattr(Pairs, "drawn", lambda *_: listed)
    monkeypatch.setattr(Stretch, "of", lambda _: pairing.even)
    how: dict[str, Any] = {"claim": claim, "cuts": cuts, "seed": 0}
    counted = lb.audit(tally, lb.RandomSplit(), **how)
    same(counted, lb.audit(scores, lb.RandomSplit(MEMBER), **how))


def test_equal_scores_are_no_guess_or_a_toss() -> None:
    scores, infinite = np.round(SCORES), SCORES > 2
    scores[infinite] = np.inf
    tally = lb.PairTally.of(scores, MEMBER, IDS, pairing=PAIRING)
    differences = tally.differences
    equal = int(differences.examples_at[0])
    assert differences.values[0] == differences.members_at[0] == 0 < equal
    assert lb.audit(tally, lb.RandomSplit(), seed=0).curve.guesses[-1] == tally.pairs - equal
    every = lb.Fixed(tally.pairs)
    right = [
        lb.audit(tally, lb.RandomSplit(), claim=lb.GaussianDP(), cuts=every, seed=seed).correct
        for seed in (*range(40), *range(5))
    ]
    assert right[:5] == right[40:]
    tossed = np.array(right[:40]) - int(differences.members_at.sum())
    assert abs(tossed.mean() - equal / 2) < 4 * np.sqrt(equal / 4 / 40)
    assert 0.5 < tossed.var() / (equal / 4) < 1.7
    with pytest.raises(errors.AbstentionError, match="both scores are equal in all"):
        lb.audit(lb.PairTally.of(np.ones(M), MEMBER, IDS), lb.RandomSplit())


@pytest.mark.parametrize("leak", ["all", "few"])
def test_twenty_bits_cost_next_to_nothing(leak: str) -> None:
    """The same pairs at 20 bits and at 32, of Gaussian scores or of a few that stand out."""
    apart = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        member = rng.permutation(4000) < 2000
        shift = 6 * (rng.random(4000) < 0.02) if leak == "few" else 1
        scores = rng.normal(size=4000) + shift * member
        bounds = []
        for bits in (20, 32):
            pairing = lb.Pairing.of(lb.Tally.of(scores, member, bits=bits), seed=seed)
            tally = lb.PairTally.of(scores, member, np.arange(4000), pairing=pairing)
            bounds.append(lb.audit(tally, lb.RandomSplit(), seed=0).bound)
        apart.append(bounds[0] - bounds[1])
    assert abs(np.mean(apart)) < 0.01


def shares(games: int, epsilon: float, how: str) -> tuple[FloatArray, FloatArray]:
    """Bounds in memory and by tallies, in games of randomised response at its boundary."""
    found = np.empty((games, 2))
    for game in range(games):
        rng = np.random.default_rng([game, 5])
        member = rng.permutation(400) < 200
        honest = rng.random(400) * (1 + np.exp(-epsilon / 2)) < 1
        scores = np.where(member == honest, 1.0, -1.0) + (0.1 * rng.random(400) if how else 0.0)
        found[game, 0] = lb.audit(scores, lb.RandomSplit(member), seed=game).bound
        pairing = lb.Pairing.of(lb.Tally.of(scores, member), seed=game)
        tally = lb.PairTally.of(scores, member, np.arange(400), pairing=pairing)
        found[game, 1] = lb.audit(tally, lb.RandomSplit(), seed=game).bound
    return found[:, 0], found[:, 1]


@pytest.mark.parametrize(
    "games", [pytest.param(5000, marks=pytest.mark.validity), 300], ids=["long", "short"]
)
@pytest.mark.parametrize("how", ["", "distinct"])
def test_tallies_and_memory_agree_in_law(games: int, how: str) -> None:
    """Rates of rejection differ by what two binomials differ by, at three ε; so do mean bounds."""
    memory, counted = shares(games, 1.5, how)
    for epsilon in (1.5, 1.1, 0.7):
        rates = [(bounds > epsilon).mean() for bounds in (memory, counted)]
        spread = np.sqrt(max(1 / games, 2 * np.mean(rates) * (1 - np.mean(rates)) / games))
        assert abs(rates[0] - rates[1]) < 4 * spread
    apart = memory - counted
    assert abs(apart.mean()) < (0.01 if games > 1000 else 4 * apart.std() / np.sqrt(games))


def table(**columns: Any) -> pa.Table:
    return pa.table({"id": IDS, "score": SCORES, "member": MEMBER, **columns})


def counted(pairing: lb.Pairing, rows: pa.Table) -> list[pa.Table]:
    """What an engine does: hash every batch, shuffle by bucket, count each bucket."""
    hashed = pickle.loads(pickle.dumps(pairing.bucketed))
    parts = pa.Table.from_batches([hashed(one) for one in rows.to_batches(max_chunksize=300)])
    bucket = parts["bucket"].to_numpy()
    count = pickle.loads(pickle.dumps(pairing.batch))
    return [count(parts.filter(pa.array(bucket == one))) for one in np.unique(bucket)]


def test_buckets_add_up_wherever_they_are_counted(tmp_path: Path) -> None:
    pairing = lb.Pairing(seed=7, centre=0.5, spread=1.25, buckets=8, stratum="group")
    whole = lb.PairTally.of(SCORES, MEMBER, IDS, strata=STRATA, pairing=pairing)
    batches = counted(pairing, table(group=STRATA))
    assert lb.PairTally.from_arrow(pa.concat_tables(batches), pairing=pairing) == whole
    parts = [lb.PairTally.from_arrow(batch, pairing=pairing) for batch in batches]
    assert lb.PairTally.sum(parts[:3]) + lb.PairTally.sum(parts[3:]) == whole
    whole.to_parquet(tmp_path / "pairs.parquet")
    again = lb.PairTally.from_parquet(tmp_path / "pairs.parquet")
    assert (again, again.pairing, hash(again)) == (whole, pairing, hash(whole))
    # Hashes are computed where an engine did not keep them; options may be NumPy's.
    once = lb.Pairing(seed=np.int64(7), centre=0.5, spread=np.float32(1.25))  # type: ignore[arg-type]
    assert once == PAIRING
    assert lb.PairTally.from_arrow(once.batch(table()), pairing=once) == lb.PairTally.of(
        SCORES, MEMBER, IDS, pairing=once
    )


def test_parts_that_do_not_add_up_are_refused() -> None:
    pairing = lb.Pairing(seed=7, centre=0.5, spread=1.25, buckets=4)
    batches = counted(pairing, table())
    first = lb.PairTally.from_arrow(batches[0], pairing=pairing)
    with pytest.raises(errors.InputError, match="bucket 0 was counted more than once"):
        first + first
    torn = [pairing.batch(table()[start::2]) for start in (0, 1)]
    with pytest.raises(errors.InputError, match=r"bucket \d was counted more than once"):
        lb.PairTally.from_arrow(pa.concat_tables(torn), pairing=pairing)
    for name, value in {"seed": 8, "centre": 0.0, "bits": 21, "buckets": 8, "unit": "user"}.items():
        other = lb.Pairing(**{**vars(pairing), name: value})
        with pytest.raises(errors.InputError, match=f"pairs were made with {name}="):
            first + lb.PairTally.from_arrow(counted(other, table())[1], pairing=other)
        with pytest.raises(errors.InputError, match=f"pairs were made with {name}="):
            lb.PairTally.from_arrow(first.to_arrow(), pairing=other)
    with pytest.raises(errors.InputError, match="at least one"):
        lb.PairTally.sum([])
    coins = lb.Tally.of(SCORES, MEMBER)
    with pytest.raises(errors.InputTypeError, match="each of the tallies"):
        lb.PairTally.sum([first, coins])  # type: ignore[list-item]
    with pytest.raises(errors.InputError, match=r"a Tally, .*, and not of a PairTally"):
        lb.PairTally.from_arrow(coins.to_arrow())
    with pytest.raises(errors.InputError, match=r"a PairTally, .*, and not of a Tally"):
        lb.Tally.from_arrow(first.to_arrow())
    with pytest.raises(errors.InputTypeError, match="one column 'examples'"):
        lb.Tally.from_arrow(batches[0])
    with pytest.raises(errors.InputError, match="pass pairing="):
        lb.PairTally.from_arrow(batches[0])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(-2, 1, 1)], "more than once"),
        ([(-3, 1, 0)], "must name the buckets"),
        ([(-1, 3, 2)], "must name the buckets"),
        ([(-2, 1, 0), (-1, 3, 4)], "counts contradict"),
        ([(-2, 1, 0), (2**19, 1, 0)], "counts contradict"),
        ([(-2, 1, 0), (2**19 - 9, 1, 0), (2**20 + 2**19, 2, 1)], "counts contradict"),
        ([(-2, 1, 0), (2**19 + 9, 1, 2), (2**20 + 2**19, 2, 1)], "more members than examples"),
        ([(-2, 1, 0), (2**20 - 1, 1, 0), (2**20 + 2**19, 2, 1)], "not the key of a number"),
    ],
)
def test_counts_that_contradict_are_refused(rows: Any, message: str) -> None:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    with pytest.raises(errors.InputError, match=message):
        lb.PairTally(columns[0], columns[1], columns[2], PAIRING)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"score": np.where(IDS[9] == IDS, np.nan, SCORES)}, "Input", f"that of id {IDS[9]} is"),
        ({"id": np.where(IDS[9] == IDS, IDS[0], IDS)}, "Input", f"id {IDS[0]} "),
        ({"id": IDS * 1.0}, "InputType", "all whole numbers, or all text, got .* of float64"),
        ({"id": IDS.astype("M8[ns]")}, "InputType", "all whole numbers, or all text"),
        ({"id": pa.array([b"a"] * M)}, "InputType", "all whole numbers, or all text"),
        ({"id": pa.array([None, *IDS[1:].tolist()])}, "InputType", "null at row 0"),
        ({"member": ["true"] * M}, "InputType", "got string"),
        ({"member": np.full(M, 2)}, "Input", "column 'member'"),
        ({"hash": np.arange(M)}, "Input", "not made with the seed 7"),
    ],
)
def test_bad_rows_are_refused(columns: dict[str, Any], error: str, message: str) -> None:
    with pytest.raises(getattr(errors, f"{error}Error"), match=message):
        PAIRING.batch(table(**columns))


def test_ids_count_once_and_on_one_side() -> None:
    ids = np.array(["a", "b", "b", "c"])
    for member, said in (([1, 1, 0, 0], "on both sides of the split"), ([1, 0, 0, 1], "twice")):
        with pytest.raises(errors.InputError, match=f"id b .*{said}"):
            lb.PairTally.of(np.arange(4.0), member, ids)


def test_options_that_make_no_pairs_are_refused() -> None:
    for options in ({"seed": -1}, {"spread": 0.0}, {"buckets": 3}, {"bits": 7}, {"unit": "row!"}):
        with pytest.raises(errors.OptionError):
            lb.Pairing(**{**vars(PAIRING), **options})
    with pytest.raises(errors.OptionError, match="strata="):
        lb.PairTally.of(SCORES, MEMBER, IDS, strata=STRATA, pairing=PAIRING)
    with pytest.raises(errors.DesignError, match="no stratum and bucket has both"):
        lb.audit(lb.PairTally.of(SCORES, MEMBER | True, IDS), lb.RandomSplit())


def test_scales_are_those_of_scores_in_memory() -> None:
    pairing = lb.Pairing.of(lb.Tally.of(SCORES, MEMBER, bits=32), seed=0)
    centre = np.median(SCORES)
    assert pairing.centre == pytest.approx(centre, abs=0.01)
    assert pairing.spread == pytest.approx(1.4826 * np.median(np.abs(SCORES - centre)), abs=0.01)
    few = np.where(np.arange(M) < 100, 4.0, 1.0)
    assert lb.Pairing.of(lb.Tally.of(few, MEMBER)).spread == pytest.approx(0.15)
    assert lb.Pairing.of(lb.Tally.of(np.full(M, np.inf), MEMBER)).spread == 1


def refused(message: str, tally: Any, design: Any, error: Any = errors.OptionError) -> None:
    with pytest.raises(error, match=message):
        lb.audit(tally, design)


def test_designs_take_only_their_own_tallies() -> None:
    """Type checkers refuse them too: the last lines would not need to be ignored otherwise."""
    seven = lb.PairTally.of(SCORES, MEMBER, IDS, pairing=PAIRING)
    pairs, coins = lb.PairTally.of(SCORES, MEMBER, IDS), lb.Tally.of(SCORES, MEMBER)
    refused(r"a PairTally is not .* RandomSplit\(\)", pairs, lb.Coins(MEMBER))
    refused(r"a Tally is not .* Coins\(\)", coins, lb.RandomSplit(MEMBER))
    refused("a Tally is not", {"a": pairs, "b": coins}, lb.RandomSplit())
    both: dict[str, Any] = {"a": seven, "b": pairs}
    refused("seed is 7 in the tally of 'a'", both, lb.RandomSplit(), errors.InputError)
    for design in (lb.Choices(MEMBER, 2), lb.ZeroRun(MEMBER)):
        refused("a PairTally is not for this audit", pairs, design, errors.InputTypeError)
    for given in ({"member": MEMBER}, {"strata": STRATA}, {"groups": IDS}):
        refused(f"leave out {next(iter(given))}", pairs, lb.RandomSplit(**given))
    refused("member is missing", SCORES, lb.RandomSplit())
    with pytest.raises(errors.OptionError):
        lb.audit(pairs, lb.Coins())  # type: ignore[misc]
    with pytest.raises(errors.OptionError):
        lb.audit(coins, lb.RandomSplit())  # type: ignore[misc]


def test_results_say_how_pairs_were_counted() -> None:
    pairing = lb.Pairing(seed=7, centre=0, spread=1, buckets=2, stratum="group", unit="city")
    tally = lb.PairTally.from_arrow(counted(pairing, table(group=STRATA))[0], pairing=pairing)
    result = lb.audit(tally, lb.RandomSplit())
    told: Any = result.options["tally"]
    assert (told["seed"], told["buckets"], told["counted_buckets"]) == (7, 2, 1)
    assert (result.options["unit"], result.options["left_over"]) == ("city", tally.left_over)
    said = " ".join(one.statement for one in result.assumptions)
    assert "MD5 of the seed 7 and an id orders cities as independent" in said
    assert "within each stratum, with all rows of a city in one part" in said
    assert any("1 of 2 buckets were not counted" in one for one in result.warnings)
    assert set(result.provenance.sha256) == {"tally keys", "tally pairs", "tally wins"}


def test_a_stratum_that_is_no_name_of_a_column_is_refused() -> None:
    with pytest.raises(errors.InputTypeError, match="stratum must be the name of a column"):
        lb.Pairing(seed=0, centre=0.0, spread=1.0, stratum=np.array(["a", "b"]))  # type: ignore[arg-type]
