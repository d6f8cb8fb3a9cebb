"""`leakbound split`: what it reads, declares, converts and refuses."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import flat
import leakbound as lb
from command_line import leakbound

pytestmark = pytest.mark.usefixtures("few_trees")

RNG = np.random.default_rng(0)
USER = RNG.integers(150, size=600)
INSIDE = RNG.permutation(150) < 110
MEMBER = INSIDE[USER]
SCORE = RNG.normal(size=600) + 1.5 * MEMBER
SITE = np.array(["north", "south", "west"])[USER % 3]
SPLIT = ("--untouched",)


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    rows = zip(SCORE.tolist(), MEMBER.astype(int), SITE, USER, strict=True)
    lines = [f"{score!r},{member},{site},u{user}" for score, member, site, user in rows]
    path.write_text("\n".join(["score,member,site,user", *lines]) + "\n", encoding="utf-8")
    return path


def expected(**options: Any) -> lb.AuditResult:
    result: lb.AuditResult = flat.split(SCORE, MEMBER, **options)
    return result


def test_strata_and_groups_are_columns(scores: Path, tmp_path: Path) -> None:
    named = ("--strata", "site", "--groups", "user", "--aggregate", "max")
    answer = leakbound("split", scores, *SPLIT, *named, "--json-full")
    users = np.array([f"u{one}" for one in USER])
    result = expected(strata=SITE, groups=users, aggregate="max")
    assert lb.AuditResult.from_json(answer.out) == result
    archive = tmp_path / "scores.npz"
    np.savez(archive, score=SCORE, member=MEMBER, site=SITE, user=users)
    answer = leakbound("split", archive, *SPLIT, *named, "--json-full")
    assert lb.AuditResult.from_json(answer.out) == result


@pytest.mark.parametrize(("relation", "factor"), [("add_remove", 0.5), ("replace", 1.0)])
def test_claims_are_converted_and_the_bound_is_not(
    scores: Path, relation: str, factor: float
) -> None:
    bound = expected().bound
    for side, code in ((0.99, 1), (1.01, 0)):
        claim = f"eps={factor * bound * side}"
        answer = leakbound("split", scores, *SPLIT, "--claim", claim, "--relation", relation)
        assert answer.code == code
    mu = expected(claim=lb.GaussianDP()).bound * factor * 0.99
    for claim, code in (("eps=40", 3), (f"mu={mu}", 1)):
        asked = ("--claim", claim, "--relation", relation)
        assert leakbound("split", scores, *SPLIT, *asked).code == code


REFUSED = [
    ((), "confirm this with --untouched"),
    ((*SPLIT, "--claim", "eps=1"), "add --relation replace if"),
    ((*SPLIT, "--groups", "site"), "is in both parts of the split"),
    ((*SPLIT, "--strata", "score"), "only one role"),
    ((*SPLIT, "--strata", "town"), "has no column 'town'"),
    ((*SPLIT, "--prior", "0.7"), "No such option: --prior"),
    ((*SPLIT, "--sides", "member"), "No such option: --sides"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED, ids=lambda one: str(one)[:50])
def test_what_is_refused(scores: Path, options: tuple[str, ...], words: str) -> None:
    answer = leakbound("split", scores, *options)
    assert answer.code == 2
    assert words in " ".join(answer.err.split())


def test_coins_have_no_options_of_a_split_and_name_it(scores: Path) -> None:
    for option in ("--strata", "--features", "--relation", "--design"):
        answer = leakbound("coins", scores, option, "max")
        assert (answer.code, f"No such option: {option}" in answer.err) == (2, True)
    assert "leakbound split" in leakbound("coins", scores).refusal  # 440 of 600 are no coins


def test_a_withheld_bound_tests_no_claim(tmp_path: Path) -> None:
    time = np.arange(400.0)
    rows = zip(RNG.normal(size=400) - time / 100, time < 280, time, strict=True)
    path = tmp_path / "scores.csv"
    lines = [f"{score:.17g},{int(member)},{when:g}" for score, member, when in rows]
    path.write_text("\n".join(["score,member,time", *lines]) + "\n", encoding="utf-8")
    asked = ("--claim", "eps=1", "--relation", "replace")
    answer = leakbound("split", path, *SPLIT, "--features", "time", *asked)
    assert answer.code == 3
    assert answer.out.startswith("Withheld: the records alone, without a score, contradict")
    assert "cannot be tested, because the bound is withheld" in " ".join(answer.out.split())
    assert leakbound("split", path, *SPLIT, *asked).code == 1  # what it is withheld from
    # without a claim, nothing was tested either
    alone = leakbound("split", path, *SPLIT, "--features", "time")
    assert alone.code == 3
    assert "leakbound: inconclusive (use --lenient to accept): contradicted:" in alone.err
    assert leakbound("split", path, *SPLIT, "--features", "time", "--lenient").code == 0


def test_tallies_of_pairs_are_added_and_audited(scores: Path, tmp_path: Path) -> None:
    pairing = lb.Pairing(seed=1, centre=0.5, spread=1.2, buckets=2)
    ids = np.arange(SCORE.size)
    whole = lb.PairTally.of(SCORE, MEMBER, ids, pairing=pairing)
    hashed = pairing.bucketed(pa.table({"id": ids, "score": SCORE, "member": MEMBER}))
    for one in range(2):
        rows = hashed.filter(pa.array(hashed["bucket"].to_numpy() == one))
        part = lb.PairTally.from_arrow(pairing.batch(rows), pairing=pairing)
        part.to_parquet(tmp_path / f"part-{one}.parquet")
    parts = [tmp_path / f"part-{one}.parquet" for one in range(2)]
    answer = leakbound("split", *parts, *SPLIT, "--json-full")
    assert lb.AuditResult.from_json(answer.out).bound == lb.audit(whole, lb.RandomSplit()).bound
    whole.to_parquet(tmp_path / "whole.parquet")
    claim = ("--claim", "eps=0.1", "--relation", "replace")
    assert leakbound("split", tmp_path / "whole.parquet", *SPLIT, *claim).code == 1
    lb.Tally.of(SCORE, MEMBER).to_parquet(tmp_path / "coins.parquet")
    for files, said in (
        ([parts[0], parts[0]], "bucket 0 was counted more than once"),
        ([tmp_path / "coins.parquet"], "coins.parquet: these are the counts of a Tally"),
        ([scores, parts[0]], "is a tally and"),
        ([parts[0], "--strata", "site"], "tallies of pairs only have counts"),
    ):
        assert said in leakbound("split", *files, *SPLIT).refusal
    for command in (("coins",), ("tally", "--out", tmp_path / "out.parquet")):
        assert "for leakbound split" in leakbound(*command, parts[0]).refusal


def with_lengths(folder: Path, lengths: list[Any]) -> dict[str, Path]:
    """Write scores with a column n_tokens: in one file, and in one of each part."""
    rows = list(zip(SCORE.tolist(), MEMBER.astype(int).tolist(), lengths, strict=True))
    paths = {}
    for name, parts in {"all": (0, 1), "members": (1,), "others": (0,)}.items():
        lines = [",".join(map(str, row)) for row in rows if row[1] in parts]
        paths[name] = folder / f"{name}.csv"
        paths[name].write_text("\n".join(["score,member,n_tokens", *lines]) + "\n")
    return paths


def test_numbers_of_tokens_challenge_the_split_by_themselves(tmp_path: Path) -> None:
    """Training texts were cut to 128 tokens, and held-out ones were not."""
    lengths = RNG.integers(40, 400, 600)
    cut = np.where(MEMBER, np.minimum(lengths, 128), lengths)

    def told(lengths: list[Any], *given: str) -> list[lb.AuditResult]:
        paths = with_lengths(tmp_path, lengths)
        parts = ("--members", paths["members"], "--nonmembers", paths["others"])
        answers = [
            leakbound("split", *files, *SPLIT, *given, "--json-full")
            for files in ((paths["all"],), parts)
        ]
        return [lb.AuditResult.from_json(answer.out) for answer in answers]

    for result in (*told(cut.tolist()), *told(cut.tolist(), "--features", "n_tokens")):
        assert result.is_withheld
        assert "was something removed, added or made in one part" in result.warnings[0]
    # Cut alike they say nothing, and what is no number is no number of tokens.
    alike = np.minimum(lengths, 128)
    assert told(alike.tolist())[0] == expected(features=alike[:, None])
    assert told(["many"] * 600)[0] == expected()
    for wrong in ("nan", "inf", ""):
        assert told([wrong, *alike.tolist()[1:]])[0] == expected()
        paths = with_lengths(tmp_path, [wrong, *alike.tolist()[1:]])
        assert "no challenge reads it" in leakbound("split", paths["all"], *SPLIT).err


USERS = np.array([f"u{one}" for one in USER])
COIN = RNG.random(150) < 0.5
NAMED = ("--groups", "reader", "--aggregate", "sum", "--seed", "0")


@pytest.fixture
def readers(tmp_path: Path) -> Path:
    """Rows of readers, for each of whom a coin decided."""
    path = tmp_path / "coins.csv"
    rows = zip(SCORE.tolist(), COIN[USER].astype(int), USERS, strict=True)
    lines = [f"{score!r},{included},{user}" for score, included, user in rows]
    path.write_text("\n".join(["score,member,reader", *lines]) + "\n", encoding="utf-8")
    return path


def test_users_of_coins_are_a_column(readers: Path, tmp_path: Path) -> None:
    bundle = ("--unit", "reader", "--bundle", tmp_path / "bundle")
    answer = leakbound("coins", readers, *NAMED, *bundle, "--json-full")
    design = lb.Coins(COIN[USER], groups=USERS, unit="reader", aggregate="sum")
    assert lb.AuditResult.from_json(answer.out) == lb.audit(SCORE, design, seed=0)
    assert lb.evidence.verify_bundle(tmp_path / "bundle").valid
    said = leakbound("split", readers, *SPLIT, *NAMED, "--unit", "reader").out
    assert "for replacing one reader" in said
    refusal = leakbound("split", readers, *SPLIT, *NAMED, "--claim", "eps=1").refusal
    assert "the bound is for replacing one user" in refusal


def test_a_plan_of_users_is_joined_with_their_column(readers: Path, tmp_path: Path) -> None:
    shown = [*dict.fromkeys(USERS.tolist())]
    coins = [COIN[int(user[1:])] for user in shown]
    plan = tmp_path / "plan.npz"
    lb.InclusionPlan(coins, ids=shown, unit="reader").save(plan)
    answer = leakbound("coins", readers, *NAMED, "--plan", plan, "--json-full")
    assert lb.AuditResult.from_json(answer.out).wording.unit == "reader"
    lb.InclusionPlan(np.roll(coins, 1), ids=shown).save(plan)
    refusal = leakbound("coins", readers, *NAMED, "--plan", plan).refusal
    assert "column member differs from the plan, first at row" in refusal


def test_shards_have_no_groups(readers: Path) -> None:
    answer = leakbound("coins", readers, readers, "--groups", "reader")
    assert "use one file with all examples for several" in answer.refusal


ROOT = Path(__file__).parents[3]
SHOWN = sorted(
    {
        line
        for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
        for line in re.findall(
            r"^\$ leakbound ((?:split|choices) .*)$", page.read_text(encoding="utf-8"), re.M
        )
    }
)
"""Commands on pages that audit random splits and choices."""


@pytest.mark.parametrize("line", SHOWN)
def test_commands_on_pages_run(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim about replacing one record must say so."""
    monkeypatch.chdir(tmp_path)
    split = pa.table({"score": SCORE, "member": MEMBER})
    csv.write_csv(split, "scores.csv")
    for name in ("scores.npz", "parts.npz"):
        np.savez(name, score=SCORE, member=MEMBER)
    chosen = RNG.integers(10, size=150)
    columns = dict(zip([f"score_{k}" for k in range(10)], np.eye(10)[chosen].T, strict=True))
    parquet.write_table(pa.table({**columns, "chosen": chosen}), "scores.parquet")
    answer = leakbound(*shlex.split(line, comments=True))
    assert answer.code in {0, 1}, answer.err


def test_some_commands_are_shown() -> None:
    assert any("--claim" in line for line in SHOWN)
