"""Audits of synthetic data: power, validity, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine

import leakbound as lb
from leakbound import errors
from leakbound.attacks.synthetic import ATTACKS

pytestmark = pytest.mark.usefixtures("few_trees")


def halves(table: np.ndarray[Any, Any], seed: int) -> tuple[np.ndarray[Any, Any], ...]:
    order = np.random.default_rng(seed).permutation(len(table))
    return table[order[: len(table) // 2]], table[order[len(table) // 2 :]]


EVEN, ODD = np.arange(120) % 2 == 0, np.arange(120) % 2 == 1


def audit(members: Any, nonmembers: Any, synthetic: Any, **options: Any) -> lb.SyntheticResult:
    how = {"challenge": False, **options}
    return lb.audit_synthetic(members, nonmembers, synthetic, **how)


def test_noisy_copies_are_found_and_a_gaussian_fit_is_not() -> None:
    table = load_diabetes(return_X_y=True)[0]
    members, others = halves(table, 0)
    rng = np.random.default_rng(1)
    copies = members + 0.02 * members.std(axis=0) * rng.normal(size=members.shape)
    found = audit(members, others, copies)
    assert found.bound > 1.5
    assert found.check(epsilon=1.0, relation="replace") == "refuted"
    assert found.similarity.copies_of_members == 0
    fit = rng.multivariate_normal(members.mean(axis=0), np.cov(members.T), len(members))
    innocent = audit(members, others, fit)
    assert innocent.bound < 0.8
    assert set(innocent.options["attacks"]) < set(ATTACKS)
    assert innocent.options["attacks_level"] == pytest.approx(0.05 / 7)


def test_scores_are_the_same_whoever_is_a_member() -> None:
    """The digests of all scores, as audited, for splits of the same records at random."""
    table = load_wine(return_X_y=True)[0][:80, :5].round(1)
    made = table[:40] + 0.01
    digests = set()
    for seed in range(4):
        members, others = halves(table, seed)
        source = audit(members, others, made, attacks=list(ATTACKS)).provenance.sha256
        digests.add(tuple(source[f"scores of {name}"] for name in ATTACKS))
    assert len(digests) == 1


def test_the_order_of_rows_changes_nothing() -> None:
    members, others = halves(load_wine(return_X_y=True)[0], 5)
    made = members[:60] + 0.1
    first = audit(members, others, made, attacks=["attribution", "density_ratio"])
    again = audit(members[::-1], others[::-1], made, attacks=["attribution", "density_ratio"])
    assert first == again


def test_the_winner_and_the_others_are_told() -> None:
    members, others = halves(load_wine(return_X_y=True)[0], 6)
    result = audit(members, others, members, attacks=["density_ratio", "attribution"])
    assert result.attack == "attribution"
    assert result.options["relation"] == "replace"
    assert result.similarity.copies_of_members == 1
    assert {one.name for one in result.assumptions} > {"generator trained on members only"}


def copied(result: lb.SyntheticResult) -> list[str]:
    return [one for one in result.warnings if "copy of training data" in one]


def test_a_copy_is_said_to_be_one_only_where_members_are_copied_more() -> None:
    rng = np.random.default_rng(16)
    few: dict[str, np.ndarray] = {
        "town": rng.choice(["Bonn", "Nice"], 400),
        "age": rng.integers(3, size=400),
    }
    parts = [
        {name: one[start : start + 100] for name, one in few.items()}
        for start in range(0, 400, 100)
    ]
    members, others, made, *_ = parts
    honest = audit(members, others, made, attacks="attribution")  # each record occurs in each table
    assert honest.similarity.copies_of_members == honest.similarity.copies_of_nonmembers == 1
    assert not copied(honest)
    for i, part in enumerate(parts):
        part["pay"] = np.arange(100) + 100 * i
        part["none"] = np.repeat("none", 100)
    (said,) = copied(audit(members, others, members, attacks="attribution"))
    assert "in the columns compared ('town', 'age', 'pay')" in said
    assert "the table has 100 of 100 members but 0 of 100 non-members" in said
    persons = [part | {"person": np.arange(100) // 2 + 50 * i} for i, part in enumerate(parts)]
    how: dict[str, Any] = {"columns": {"person": "group"}, "attacks": "attribution"}
    (said,) = copied(audit(persons[0], persons[1], members, **how))
    assert "records of 50 of 50 groups of members but records of 0 of 50 groups of non" in said


def test_many_words_are_not_equal_by_chance() -> None:
    """Words have random vectors, of which two in 256 are the same."""
    rng = np.random.default_rng(17)
    name = np.array([f"name {i}" for i in rng.permutation(3000)])
    members, others, made = ({"name": name[start : start + 1000]} for start in (0, 1000, 2000))
    made["name"] = np.append(made["name"], members["name"][:1])
    result = audit(members, others, made, attacks="attribution")
    assert result.similarity.copies_of_members == 1 / 1001
    assert result.similarity.copies_of_nonmembers == 0


def test_groups_are_split_as_one_and_not_compared() -> None:
    rng = np.random.default_rng(9)
    person = np.repeat(np.arange(120), 3)
    values = rng.normal(size=(360, 3))
    inside = rng.permutation(120)[:60]
    side = np.isin(person, inside)

    def table(rows: Any) -> dict[str, Any]:
        return {"a": values[rows, 0], "b": values[rows, 1], "person": person[rows]}

    made = {"a": values[side, 0] + 0.01, "b": values[side, 1]}
    how: dict[str, Any] = {"columns": {"person": "group"}, "attacks": "attribution"}
    result = audit(table(side), table(~side), made, **how)
    assert result.options["unit"] == "user"
    assert result.options["pairs"] == 60
    assert result.bound > 1
    torn = np.arange(360) < 181
    words = r"1 of 120 groups are not whole: 60\S* is .* \(row 180 of them\) .* \(row 0 of them\)"
    with pytest.raises(errors.InputError, match=words):
        audit(table(torn), table(~torn), made, **how)


def test_an_index_column_is_named_and_to_be_dropped() -> None:
    """The frames of a split that is random, with their row numbers written into them after it."""
    rng = np.random.default_rng(14)
    table = {"age": rng.normal(size=400), "city": rng.choice(["Bonn", "Nice", "Turku"], 400)}
    numbered = table | {"row": np.arange(400)}

    def side(columns: dict[str, Any], rows: slice) -> dict[str, Any]:
        return {name: values[rows] for name, values in columns.items()}

    def audited(columns: dict[str, Any]) -> Any:
        members = side(columns, slice(200))
        made = members | {"age": members["age"] + 0.001}
        others = side(columns, slice(200, 400))
        return audit(members, others, made, attacks="attribution", challenge=True)

    withheld = audited(numbered)
    assert withheld.is_withheld
    assert withheld.ceiling > 1
    said = withheld.warnings[0]
    assert "the most telling column is 'row'" in said
    assert "drop it and audit again" in said
    assert audited(table).bound > 1


def test_no_synthetic_table_has_a_part_in_the_challenge() -> None:
    """A generator knows the members: what it chooses must not decide whether it is believed."""
    rng = np.random.default_rng(15)
    table: dict[str, np.ndarray] = {
        "street": rng.choice([f"street {i}" for i in range(30)], 120),
        "town": rng.choice(["Bonn", "Nice", "Turku"], 120),
        "age": rng.integers(20, 60, 120),
        "since": np.datetime64("2020-01-01") + rng.integers(0, 900, 120),
    }
    members, others = ({name: one[rows] for name, one in table.items()} for rows in (EVEN, ODD))
    words = np.repeat("elsewhere", 60)
    made: list[dict[str, Any]] = [
        members,
        others,
        members | {"street": words},
        members | {"street": words, "town": words, "age": words},
        members | {"age": words, "since": words},
        members | {"age": np.where(rng.random(60) < 0.5, np.nan, members["age"])},
        {name: [None, *one[:3]] for name, one in members.items()},
        {name: one[:1] for name, one in members.items()},
    ]
    found = set()
    for synthetic in made:
        how: dict[str, Any] = {"attacks": {"own": table["age"]}, "seed": 2, "challenge": True}
        result = audit(members, others, synthetic, **how)
        numbers = result.options["challenge"]
        found.add((str(numbers), result.options["pairs"], result.correct, result.m))
    assert len(found) == 1


def test_no_synthetic_table_has_a_part_in_what_is_said_of_a_reference() -> None:
    """Whether a column of words is compared with the synthetic table is no matter here."""
    table = load_wine(return_X_y=True)[0][:, :2].round()
    street = np.array([f"street {i}" for i in range(len(table))])
    columns = {"x": table[:, 0], "y": table[:, 1], "street": street}
    members, others = ({name: one[i::2] for name, one in columns.items()} for i in range(2))
    third = others | {"street": np.char.replace(others["street"], "street", "road")}
    for words in (members["street"], np.repeat("elsewhere", len(members["x"]))):
        made = members | {"street": words}
        audit(members, others, made, reference=third, attacks="attribution")
        with pytest.raises(errors.DesignError, match="chosen by membership"):
            audit(members, others, made, reference=others, attacks="attribution")


def test_a_reference_chosen_by_membership_is_refused() -> None:
    members, others = halves(load_wine(return_X_y=True)[0], 10)
    for reference in (others, members, others[:50]):
        with pytest.raises(errors.DesignError, match="chosen by membership"):
            audit(members, others, members[:20], reference=reference)
    third = load_wine(return_X_y=True)[0][:20] + 1
    result = audit(members, others, members[:50], reference=third, attacks="attribution")
    assert result.assumptions[-1].name == "reference chosen without membership"


def test_an_honest_reference_may_resemble_one_stratum_or_the_records_of_few_groups() -> None:
    """It is told from a dishonest one by what the split moved, in each stratum by its own share.

    Record by record, and at one share, both references held too many members for chance.
    """
    rng = np.random.default_rng(2)
    stratum = np.repeat(["north", "south"], 200)
    member = np.concatenate([rng.permutation(200) < 160, rng.permutation(200) < 40])
    value = np.where(stratum == "north", rng.integers(0, 30, 400), 100 + rng.normal(size=400))
    third = {"value": rng.integers(0, 30, 100), "stratum": np.repeat("north", 100)}

    def part(rows: np.ndarray) -> dict[str, np.ndarray]:
        return {"value": value[rows], "stratum": stratum[rows]}

    made = {"value": value + rng.normal(size=400), "stratum": stratum}
    how = {"reference": third, "attacks": "nearest_synthetic", "challenge": False}
    result = audit(part(member), part(~member), made, columns={"stratum": "stratum"}, **how)
    assert result.assumptions[-1].name == "reference chosen without membership"

    person = np.repeat(np.arange(60), 40)
    profile, inside = rng.integers(0, 60, 60), rng.permutation(60) < 30
    seen = np.flatnonzero(inside)[:9]  # of one side, as 9 of 9 people may be

    def people(side: np.ndarray) -> dict[str, np.ndarray]:
        rows = side[person]
        return {"profile": profile[person][rows], "person": person[rows]}

    profile[seen] = 1000 + np.arange(9)
    how |= {"reference": {"profile": profile[seen]}, "columns": {"person": "group"}}
    audit(people(inside), people(~inside), {"profile": profile[:40]}, **how)
    how["reference"] = {"profile": np.unique(profile[inside])}
    profile[~inside] = -np.arange(1, 31)
    words = "holds records of 30 of 30 groups of members and records of 0 of 30 groups of non-m"
    with pytest.raises(errors.DesignError, match=words):
        audit(people(inside), people(~inside), {"profile": profile[:40]}, **how)


def test_numbers_that_went_through_a_coarser_type_do_not_tell_their_side() -> None:
    """0.1 here and 0.10000000149 there, both of them doubles: as scores of a noise generator."""
    rng = np.random.default_rng(0)
    records, made = np.round(rng.normal(size=(2, 200, 3)), 1)
    members, others = records[:100], records[100:]
    through = others.astype(np.float16)
    assert (through.astype(float) != others).any()
    declared = audit(members, through, made, seed=1)
    for first, second in ((members, through.astype(float)), (members, through)):
        silent = audit(first, second, made, seed=1)
        assert (silent.bound, silent.correct) == (declared.bound, declared.correct)
    whole = audit(np.round(members), others, made, attacks="attribution")  # few, by chance or not
    assert whole.m == 200


def test_one_table_as_members_and_as_non_members_is_refused() -> None:
    table = load_wine(return_X_y=True)[0]
    shuffled = np.random.default_rng(0).permutation(table)
    own = {"own": np.arange(2.0 * len(table))}
    words = "members and non-members are the same table: .* both have the same 178 records"
    for others in (table, shuffled, table.astype(str)):
        for attacks in ("attribution", own):
            with pytest.raises(errors.InputError, match=words):
                audit(table, others, table + 0.1, attacks=attacks)
    nearly = table.copy()
    nearly[0, 0] += 1
    assert audit(table, nearly, table + 0.1, attacks="attribution").bound == 0


def test_two_parts_that_may_be_equal_by_chance_are_audited() -> None:
    """In one of six splits of 100 records of two kinds, both parts have as many of each."""
    coarse = {"value": np.repeat(["a", "b"], 25)}
    assert audit(coarse, coarse, coarse, attacks="attribution").bound == 0
    # If all records of a stratum are equal, every split within strata has two equal parts.
    stratified = {"value": np.arange(1000) // 50, "site": np.arange(1000) // 50}
    how: Any = {"attacks": "attribution", "columns": {"site": "stratum"}}
    assert audit(stratified, stratified, stratified, **how).bound == 0
    with pytest.raises(errors.InputError, match="the same table"):
        audit(stratified, stratified, stratified, attacks="attribution")


WINE = load_wine(return_X_y=True)[0][:40, :3]
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"nonmembers": WINE[:0]}, errors.InputError, "non-members must be a table with at least one"),
    ({"synthetic": "made.csv"}, errors.InputError, "got a path: read the file first"),
    ({"nonmembers": WINE[:, :2]}, errors.InputError, "the non-members have no column '2'"),
    ({"synthetic": WINE[:, :2]}, errors.InputError, "the synthetic table has no column '2'"),
    ({"reference": WINE[:, :2]}, errors.InputError, "the reference has no column '2'"),
    (
        {"nonmembers": np.full(WINE.shape, "many")},
        errors.InputError,
        "numbers for members and words",
    ),
    ({"attacks": "magic"}, errors.OptionError, "among attribution"),
    ({"attacks": []}, errors.OptionError, "different names"),
    ({"attacks": 3}, errors.InputTypeError, "names, or a mapping"),
    ({"attacks": {"own": np.zeros(3)}}, errors.InputError, "members first"),
    ({"columns": {"9": "stratum"}}, errors.OptionError, "the stratum is '9'"),
    ({"columns": {"0": "group", "1": "group"}}, errors.OptionError, "one column at most"),
    ({"columns": {"0": "strata"}}, errors.OptionError, "must be one of 'stratum'"),
    ({"columns": ["0"]}, errors.InputTypeError, "columns must be a mapping"),
    ({"seed": -1}, errors.OptionError, "seed"),
    ({"confidence": 1.0}, errors.OptionError, "confidence"),
]


@pytest.mark.parametrize(("change", "error", "words"), REFUSED)
def test_bad_input(change: dict[str, Any], error: type[Exception], words: str) -> None:
    tables = {"members": WINE[:20], "nonmembers": WINE[20:], "synthetic": WINE[:10] + 0.1}
    with pytest.raises(error, match=words):
        lb.audit_synthetic(**{"attacks": "attribution", **tables, **change})
