"""What an audit of a synthetic table certifies of singling out, linkability and inference."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import leakbound as lb
from leakbound import errors
from leakbound.attacks.synthetic import Tables
from leakbound.attacks.synthetic.risks import isolated
from leakbound.attacks.synthetic.scores import RISKS
from leakbound.audits.pairs import Pairs
from leakbound.results import Risk
from leakbound.stats.exposure import surely_seen_from


def people(rng: np.random.Generator, n: int, columns: int = 4) -> dict[str, np.ndarray]:
    return {f"c{i}": rng.normal(size=n).round(3) for i in range(columns)}


def part(table: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {name: values[rows] for name, values in table.items()}


def leaking(rng: np.random.Generator, members: dict[str, Any], copies: int, n: int) -> Any:
    """Return fresh people, and so many members nearly as they are."""
    made = people(rng, n, len(members))
    for name, values in members.items():
        made[name][:copies] = values[:copies] + rng.normal(0, 0.01, copies).round(3)
    return made


def audited(members: Any, others: Any, made: Any, **options: Any) -> lb.SyntheticResult:
    how = {"attacks": list(RISKS), "challenge": False, "seed": 0, **options}
    return lb.audit_synthetic(members, others, made, **how)


def risks_of(result: lb.SyntheticResult) -> dict[str, Risk]:
    assert result.risks is not None
    return dict(result.risks)


def test_copies_are_certified_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    members, others = people(rng, 200), people(rng, 200)
    result = audited(members, others, leaking(rng, members, 40, 200))
    found = risks_of(result)
    assert list(found) == list(RISKS)
    for name, risk in found.items():
        assert 20 <= int(risk.certified or 0) <= 40
        assert risk.excess == risk.certified / 200  # type: ignore[operator]
        assert risk.rate > 0.15 > risk.control_rate
        assert risk.control_rate < float(risk.control_rate_upper or 0) < 0.2
        assert risk.epsilon == result.options["attacks"][name] > 1
        assert 0 < float(risk.p or 0) < 1e-4
        assert risk.surely_seen_from == surely_seen_from(0.05 / 6)
        assert risk.ceiling == 200 - risk.surely_seen_from + 1
        assert risk.exposed is not None
        assert np.mean(risk.exposed.rows < 40) > 0.8
    honest = risks_of(audited(members, others, people(rng, 200)))
    assert [risk.certified for risk in honest.values()] == [0, 0, 0]
    assert {risk.p for risk in honest.values()} > {0} or min(
        r.p or 0 for r in honest.values()
    ) > 0.01


def test_the_pairs_are_those_of_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    real = Pairs.drawn

    def remembered(*arguments: Any) -> Pairs:
        drawn.append(real(*arguments))
        return drawn[-1]

    monkeypatch.setattr(Pairs, "drawn", remembered)
    rng = np.random.default_rng(1)
    table = people(rng, 120) | {"ward": rng.integers(0, 3, 120)}
    person = np.repeat(np.arange(60), 2)
    for columns in ({}, {"ward": "stratum"}, {"person": "group"}):
        records = table | {"person": person}
        audited(part(records, slice(60)), part(records, slice(60, 120)), records, columns=columns)
        first, again = drawn
        assert np.array_equal(first.members, again.members)
        assert np.array_equal(first.others, again.others)
        drawn.clear()


def test_risks_are_stored_and_read() -> None:
    rng = np.random.default_rng(2)
    members, others = people(rng, 100), people(rng, 100)
    result = audited(members, others, leaking(rng, members, 30, 100))
    again = lb.SyntheticResult.from_json(result.to_json())
    assert again == result
    assert str(again.risks) == str(result.risks)
    for name, value in (("certified", 101), ("excess", 0.9), ("p", 0.0), ("rate", 1.5)):
        stored: Any = result.to_dict()
        stored["risks"]["linkability"][name] = value
        with pytest.raises(errors.FormatError, match="risk"):
            lb.SyntheticResult.from_dict(stored)
    older: Any = result.to_dict()
    del older["risks"]
    assert lb.SyntheticResult.from_dict(older).risks is None


def test_only_attacks_that_were_made_have_a_risk() -> None:
    rng = np.random.default_rng(3)
    members, others = people(rng, 60), people(rng, 60)
    made = leaking(rng, members, 30, 60)
    one = audited(members, others, made, attacks=["linkability", "attribution"])
    assert list(risks_of(one)) == ["linkability"]
    assert risks_of(one)["linkability"].surely_seen_from == surely_seen_from(0.05 / 2)
    assert audited(members, others, made, attacks="attribution").risks is None
    assert audited(members, others, made, attacks={"own": np.arange(120.0)}).risks is None
    everything = lb.audit_synthetic(members, others, made, challenge=False, seed=0)
    assert list(risks_of(everything)) == list(RISKS)
    assert everything.options["attacks_level"] == pytest.approx(0.05 / 7)


def test_the_words_of_a_count_are_defined_where_it_is_stated() -> None:
    rng = np.random.default_rng(4)
    members, others = people(rng, 150), people(rng, 150)
    result = audited(members, others, leaking(rng, members, 40, 150))
    count = risks_of(result)["singling_out"].certified
    said = " ".join(result.summary().paragraphs)
    short = "of these hits depend on whose data was used"
    long = (
        f"At least {count} {short}: with the data of the other person of the pair instead, this "
        "table would have been less likely, for at least one way to choose the members of the "
        "other pairs"
    )
    assert long in said
    assert said.index(long) < said.index(f"{short}.")
    lines = str(result.risks).splitlines()
    assert lines[0].startswith("singling out: ")
    assert f"at least {count} hits in 150 pairs depend on whose data was used" in lines[0]
    assert "a perfect attack is sure to certify a hit once 9 people are exposed" in lines[0]
    assert "depend on whose data was used" in lines[-1]
    overview = result.summary().overview
    assert overview is not None
    assert overview.title == "Three questions"
    assert len(overview.table) == 4
    names = [label.get_text() for label in result.plot("risks").get_yticklabels()]
    assert names == ["Singling out", "Linkability", "Inference"]
    assert result.plot().get_xlabel() == "guesses made"
    honest = audited(members, others, people(rng, 150))
    assert "depend on whose" not in str(honest.summary())
    assert "none of 150 is certified" in str(honest.risks)


def test_a_contradicted_split_withholds_counts_and_not_rates() -> None:
    rng = np.random.default_rng(5)
    members = people(rng, 300)
    others = {name: values + 2 for name, values in people(rng, 300).items()}
    result = audited(members, others, members, challenge=True)
    assert result.is_withheld
    for risk in risks_of(result).values():
        withheld = (risk.certified, risk.excess, risk.epsilon, risk.p, risk.exposed)
        assert withheld == (None,) * 5
        assert risk.rate > 0.5
        assert "withheld" in str(risk)
    assert lb.SyntheticResult.from_json(result.to_json()) == result
    assert "depend on whose" not in str(result.summary())


def test_groups_are_counted_once_and_strata_have_no_limit() -> None:
    """Ten equal rows of each of 30 people: by rows the limit would be that of 300."""
    rng = np.random.default_rng(6)
    rows = np.repeat(np.arange(60), 10)
    table = part(people(rng, 60), rows) | {"person": rows}
    members, others = part(table, rows < 30), part(table, rows >= 30)
    made = {name: values[:50] + 0.001 for name, values in members.items()}
    grouped = risks_of(audited(members, others, made, columns={"person": "group"}))
    risk = grouped["linkability"]
    assert risk.pairs == 30
    assert risk.rate * 30 == pytest.approx(round(risk.rate * 30))
    hits = round(30 * risk.control_rate)
    limit = float(stats.beta.isf(0.05 / 6, hits + 1, 30 - hits))
    assert risk.control_rate_upper == pytest.approx(limit)
    assert risk.exposed is not None
    assert risk.exposed.ids == tuple(str(row // 10) for row in risk.exposed.rows.tolist())
    ward = np.arange(120) % 3
    records = people(rng, 120) | {"ward": ward}
    strata = audited(
        part(records, slice(60)),
        part(records, slice(60, 120)),
        records,
        columns={"ward": "stratum"},
    )
    assert [one.control_rate_upper for one in risks_of(strata).values()] == [None] * 3
    names = {one.name for one in strata.assumptions}
    assert "others drawn independently" not in names


def test_a_named_secret_is_an_option_and_is_found() -> None:
    rng = np.random.default_rng(7)
    members, others = people(rng, 200, 5), people(rng, 200, 5)
    made = people(rng, 200, 5)
    for name in ("c0", "c1", "c2", "c3"):
        made[name][:60] = members[name][:60] + rng.normal(0, 0.05, 60)
    made["c4"][:60] = members["c4"][:60]
    result = audited(members, others, made, columns={"c4": "secret"}, attacks="inference")
    assert result.options["secret_columns"] == ["c4"]
    assert int(risks_of(result)["inference"].certified or 0) > 20
    coded, other_codes = (
        {name: values.round() for name, values in part.items()} for part in (members, others)
    )
    audited(coded, other_codes, coded, columns={"c4": "secret of codes"})
    for columns, attacks, words in (
        ({"c9": "secret"}, "inference", "a secret is 'c9'"),
        ({"c4": "secret"}, "linkability", "the attack inference"),
        ({"c4": "secrets"}, "inference", "must be one of"),
    ):
        with pytest.raises(errors.OptionError, match=words):
            audited(members, others, made, columns=columns, attacks=attacks)
    alone = {"c0": members["c0"]}
    with pytest.raises(errors.OptionError, match="only column"):
        audited(alone, {"c0": others["c0"]}, alone, columns={"c0": "secret"}, attacks="inference")


def obviously_isolated(tables: Tables, records: Any, made: Any, member: Any) -> list[bool]:
    """Return who is singled out among the members, or beside them, one after the other."""
    points = tables.points[tables.place]
    values = [np.unique(column, return_counts=True)[1] for column in records[member].T]
    telling = [(one == 1).sum() >= 0.99 * member.sum() for one in values]
    found = []
    for place in range(len(points)):
        data = [row for row in np.flatnonzero(member) if row != place]
        gaps = np.linalg.norm(tables.synthetic[:, None] - points[data], axis=2).min(axis=1)
        own = np.linalg.norm(tables.synthetic - points[place], axis=1)
        near = np.log(np.maximum(gaps, 1e-3)) - np.log(np.maximum(own, 1e-3)) >= np.log(2)
        alone = ~(records[data] == records[place]).any(axis=0)
        there = (made == records[place]).any(axis=0)
        found.append(bool(near.any() or (telling & alone & there).any()))
    return found


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_others_are_singled_out_beside_the_data_alone(share: float) -> None:
    """By the definition, and whoever else was held out."""
    rng = np.random.default_rng(8)
    records, made = rng.normal(size=(150, 2)).round(1), rng.normal(size=(60, 2)).round(1)
    member = np.arange(150) < 150 * share
    tables = Tables.of(records, made, seed=0)
    flags = isolated(tables, member)
    assert flags.tolist() == obviously_isolated(tables, records, made, member)
    assert 0 < flags[~member].sum() < (~member).sum()
    fewer = member | (np.arange(150) % 3 == 0)
    again = isolated(Tables.of(records[fewer], made, seed=0), member[fewer])
    assert again.tolist() == flags[fewer].tolist()


def test_sides_of_any_size_are_compared() -> None:
    rng = np.random.default_rng(9)
    members, others = people(rng, 200), people(rng, 50)
    for inside, outside in ((members, others), (others, members)):
        made = leaking(rng, inside, 45, 100)
        found = risks_of(audited(inside, outside, made))
        assert {risk.pairs for risk in found.values()} == {50}
        assert found["singling_out"].rate > 0.15


def certified(rng: np.random.Generator, copies: int, seed: int) -> tuple[bool, bool]:
    """Return whether something is certified, and whether some ε is, at a confidence of one half."""
    pool = people(rng, 80, 3)
    members, others = part(pool, slice(40)), part(pool, slice(40, 80))
    made = leaking(rng, members, copies, 40)
    rows = rng.choice(80, 15)  # some are of the pool, whoever is a member
    for name, values in pool.items():
        made[name][20:35] = values[rows]
    found = risks_of(audited(members, others, made, confidence=0.5, seed=seed)).values()
    return any(risk.certified for risk in found), any(risk.epsilon for risk in found)


def test_nothing_is_certified_too_often_of_a_table_of_other_people() -> None:
    """At a level of one half, of which counts have one half; and 12 copies are noticed."""
    rng, games = np.random.default_rng(10), 70
    assert stats.binom.sf(stats.binom.isf(1e-3, games, 0.25), games, 0.5) > 0.9
    null = np.array([certified(rng, 0, seed) for seed in range(games)]).sum(axis=0)
    assert null[0] <= stats.binom.isf(1e-3, games, 0.25)
    assert null[1] <= stats.binom.isf(1e-3, games, 0.5)
    noticed = np.array([certified(rng, 12, seed) for seed in range(240)]).sum(axis=0)
    assert noticed[0] > stats.binom.isf(1e-3, 240, 0.25)
