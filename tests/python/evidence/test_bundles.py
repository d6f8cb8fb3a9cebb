"""Bundles of every kind of audit verify, and those that would not are not written."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dp_accounting as dp
import numpy as np
import pandas as pd
import pytest

import flat
import leakbound as lb
from bundles import MODEL, change, tampered, why, write
from command_line import csv_text, leakbound
from commitments import PROTOCOL, protocol_toml, scored
from leakbound.claims import ZeroConcentratedDP, from_event
from leakbound.cuts import SecondLook
from leakbound.errors import FormatError, LeakboundError, OptionError
from leakbound.evidence import verify_bundle
from leakbound.evidence.recipe import Recipe, recipe_of
from leakbound.propensity import LogisticPropensity

PLAN, SCORES = scored()
M = len(PLAN)
rng = np.random.default_rng(1)
FEATURES = rng.normal(size=(M, 2))
CHANCES = np.where(rng.random(M) < 0.5, 0.45, 0.55)
one_run: Any = flat.coins
EVENT = from_event(dp.LaplaceDpEvent(1.0), relation="add_remove")

Audit = tuple[Callable[[], Any], dict[str, Any]]
GIVEN: dict[str, Any] = {"scores": SCORES}
NAMED = {"loss": SCORES}
AUDITS: dict[str, Audit] = {
    "policy": (lambda: one_run(SCORES, PLAN, cuts=lb.UnionBound(grid="geometric")), GIVEN),
    "member": (lambda: one_run(SCORES, PLAN, sides="member", confidence=0.9), GIVEN),
    "both": (lambda: one_run(SCORES, PLAN, sides="both"), GIVEN),
    "approximate": (lambda: one_run(SCORES, PLAN, claim=lb.ApproxDP(delta=1e-5)), GIVEN),
    "adaptive": (
        lambda: one_run(SCORES, PLAN, claim=lb.GaussianDP(), cuts=lb.OutsideIn([30, 60])),
        GIVEN,
    ),
    "zCDP": (lambda: one_run(SCORES, PLAN, claim=ZeroConcentratedDP()), GIVEN),
    "event": (lambda: one_run(SCORES, PLAN, claim=EVENT), GIVEN),
    "second look": (lambda: one_run(SCORES, PLAN, cuts=SecondLook(look=0.1), sides="auto"), GIVEN),
    # The default before it had a second look
    "one test": (lambda: one_run(SCORES, PLAN, cuts=lb.OutsideIn(), sides="auto"), GIVEN),
    "attacks": (
        lambda: one_run({"loss": SCORES, "../x": -SCORES}, PLAN),
        {"scores": {"loss": SCORES, "../x": -SCORES}},
    ),
    "prior": (lambda: one_run(SCORES, PLAN, prior=CHANCES), GIVEN | {"prior": CHANCES}),
    "random split": (lambda: flat.split(SCORES, PLAN), GIVEN),
    "panoramia": (
        lambda: lb.audit(
            SCORES, lb.Panoramia(PLAN, baseline=SCORES[::-1], c_upper=0.5, gamma=0.01)
        ),
        {"scores": SCORES, "baseline": SCORES[::-1]},
    ),
    "real non-members": (
        lambda: lb.audit(SCORES, lb.Panoramia(PLAN, baseline=SCORES[::-1], real_nonmembers=True)),
        {"scores": SCORES, "baseline": SCORES[::-1]},
    ),
    "zero run": (
        lambda: lb.audit(SCORES, lb.ZeroRun(PLAN, CHANCES)),
        GIVEN | {"propensity": CHANCES},
    ),
    "limits": (
        lambda: lb.audit(
            SCORES, lb.ZeroRun(PLAN, (CHANCES - 0.1, CHANCES + 0.1)), claim=lb.PureDP()
        ),
        GIVEN | {"propensity": (CHANCES - 0.1, CHANCES + 0.1)},
    ),
    "skipped": (
        lambda: lb.audit(
            SCORES,
            lb.ZeroRun(PLAN, CHANCES, correction="tamper", adversary="raw", max_log_odds=0.5),
        ),
        GIVEN | {"propensity": CHANCES},
    ),
}


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("name", AUDITS)
def test_a_result_is_recomputed_from_its_own_options(name: str) -> None:
    audit, given = AUDITS[name]
    result = audit()
    data = dict(given)
    scores: Any = data.pop("scores")
    recipe_of(result, {"scores": scores, "member": PLAN, **data}, {})
    wrong = {key: -one for key, one in scores.items()} if isinstance(scores, dict) else -scores
    with pytest.raises(FormatError, match="gives another result"):
        recipe_of(result, {"scores": wrong, "member": PLAN, **data}, {})


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("both", None),
        ("policy", ["cuts"]),
        ("zero run", None),
        ("skipped", ["correction", "adversary"]),
        ("panoramia", None),
    ],
)
def test_a_result_stores_what_was_asked_and_runs_again_once(
    name: str, asked: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit, given = AUDITS[name]
    result = audit()
    assert result.options.get("asked") == asked
    runs: list[Recipe] = []
    run = Recipe.run

    def counted(recipe: Recipe) -> Any:
        runs.append(recipe)
        return run(recipe)

    monkeypatch.setattr(Recipe, "run", counted)
    recipe = recipe_of(result, {"member": PLAN, **given}, {})
    assert runs == [recipe]
    filled_in = {"cuts", "correction", "adversary", "uncertainty"}
    assert recipe.arguments.keys() & filled_in == {*(asked or ())}


def test_a_result_that_does_not_say_what_was_asked_needs_it() -> None:
    """As older versions stored it; their bundles verify all the same."""
    audit, given = AUDITS["policy"]
    result = audit()
    older = {name: value for name, value in result.options.items() if name != "asked"}
    stored = type(result).from_dict(result.to_dict() | {"options": older})
    data = {"member": PLAN, **given}
    with pytest.raises(FormatError, match=r"options=\{…\}"):
        recipe_of(stored, data, {})
    recipe_of(stored, data, {"cuts": lb.UnionBound(grid="geometric")})


@pytest.mark.parametrize(
    "name", ["approximate", "second look", "one test", "attacks", "panoramia", "limits"]
)
def test_a_bundle_verifies(name: str, tmp_path: Path) -> None:
    audit, given = AUDITS[name]
    audit().bundle(tmp_path / "bundle", plan=PLAN, **given)
    assert why(tmp_path / "bundle") == ""


def test_a_plan_of_users_has_a_bundle(tmp_path: Path) -> None:
    plan = lb.InclusionPlan.create(200, unit="user", seed=3)
    scores = rng.normal(size=200) + 2.0 * plan.member
    lb.audit(scores, lb.Coins(plan), seed=0).bundle(tmp_path / "bundle", scores=scores, plan=plan)
    assert why(tmp_path / "bundle") == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scores": SCORES}, "missing .*'plan'"),
        ({"plan": PLAN, "score": SCORES}, "missing .*'scores'"),
    ],
)
def test_a_bundle_without_its_data_says_what_is_missing(
    given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match=f"bundle: {said}.*evidence.write_bundle"):
        one_run(SCORES, PLAN).bundle(tmp_path / "bundle", **given)


def test_parts_of_a_result_are_compared(tmp_path: Path) -> None:
    audit, given = AUDITS["approximate"]
    audit().bundle(tmp_path / "bundle", plan=PLAN, **given)
    tampered(tmp_path / "bundle", "result.json", change("options/parts/1/bound", 9.0))
    assert why(tmp_path / "bundle").startswith("audit: ")


def test_a_bundle_of_another_default_is_refused_by_its_name(tmp_path: Path) -> None:
    """As an audit by default stored it before it had a second look."""
    audit, given = AUDITS["one test"]
    audit().bundle(tmp_path / "bundle", plan=PLAN, **given)
    tampered(
        tmp_path / "bundle", "audit.json", lambda content: content["options"].pop("cuts") and None
    )
    found = why(tmp_path / "bundle")
    assert "options.cuts.type is 'OutsideIn', but recomputed it is 'SecondLook'" in found
    assert "verify it by that version" in found


def test_log_odds_that_are_learnt(tmp_path: Path) -> None:
    model = LogisticPropensity()
    result = lb.audit(
        SCORES[:80], lb.ZeroRun(PLAN.member[:80], model, features=FEATURES[:80]), claim=lb.PureDP()
    )
    result.bundle(
        tmp_path / "bundle",
        scores=SCORES[:80],
        plan=PLAN.member[:80],
        propensity=model,
        features=FEATURES[:80],
    )
    found = verify_bundle(tmp_path / "bundle")
    assert found.valid
    assert {one.name: one.passed for one in found.checks}["plan"] is None


@pytest.mark.parametrize(
    ("options", "protocol", "given"),
    [
        ({"prior": CHANCES}, {"prior": "the column chance"}, {"prior": CHANCES}),
        (
            {"design": "random_split", "strata": np.arange(M) % 2, "groups": np.arange(M)},
            {"design": "random_split", "strata": "the label", "groups": "the author"},
            {"strata": np.arange(M) % 2, "groups": np.arange(M)},
        ),
    ],
    ids=["prior", "strata"],
)
def test_protocols_of_every_kind_of_option(
    options: dict[str, Any], protocol: dict[str, Any], given: dict[str, Any], tmp_path: Path
) -> None:
    result = one_run(NAMED, PLAN, **options)
    opening = PLAN.commit(PROTOCOL | protocol)
    result.bundle(tmp_path / "bundle", scores=NAMED, plan=opening, **given)
    assert why(tmp_path / "bundle", commitment=opening.commitment) == ""


def test_rows_in_another_order_are_joined_by_ids(tmp_path: Path) -> None:
    names = np.array([f"digit {i}" for i in range(M)])
    plan = lb.InclusionPlan(PLAN.member, ids=names)
    order = np.random.default_rng(2).permutation(M)
    result = lb.audit(SCORES[order], lb.Coins(plan), ids=names[order])
    result.bundle(tmp_path / "bundle", scores=SCORES[order], plan=plan, ids=names[order])
    assert why(tmp_path / "bundle") == ""
    with pytest.raises(FormatError, match="gives another result"):
        result.bundle(tmp_path / "other", scores=SCORES[order], plan=plan)
    assert not (tmp_path / "other").exists()


def test_what_the_manifest_says(tmp_path: Path) -> None:
    result, opening = write(tmp_path / "bundle")
    statement = json.loads((tmp_path / "bundle" / "manifest.json").read_bytes())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert statement["subject"][0] == {"name": "model", "digest": {"sha256": MODEL}}
    there = {file.name for file in (tmp_path / "bundle").iterdir()}
    listed = {one["name"]: one for one in statement["subject"][1:]}
    assert listed.keys() == there - {"manifest.json", "SHA256SUMS"}
    for name, one in listed.items():
        content = (tmp_path / "bundle" / name).read_bytes()
        assert one["digest"]["sha256"] == hashlib.sha256(content).hexdigest()
    predicate = statement["predicate"]
    assert predicate["result"] == "FAILED"
    assert predicate["failedTests"] == ["epsilon <= 1.0"]
    notes = predicate["configuration"][0]["annotations"]
    assert notes["leakbound"] == lb.__version__
    assert notes["seeds"] == {"audit": 0, "plan": "5"}
    vouched = json.loads((tmp_path / "bundle" / "assumptions.json").read_bytes())
    assert [one["name"] for one in vouched] == [one.name for one in result.assumptions]
    assert vouched[0]["vouched for by"] == "A. Auditor"
    stored = lb.AuditResult.from_json(tmp_path / "bundle" / "result.json")
    assert stored == result
    sums = subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path / "bundle", check=False
    )
    assert sums.returncode == 0
    assert why(tmp_path / "bundle", commitment=opening.commitment) == ""


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"scores": {"loss": SCORES + np.arange(M)}}, FormatError, "gives another result"),
        ({"model": "sha256:ab"}, OptionError, "64 hexadecimal"),
        ({"vouchers": {"fair weather": "me"}}, OptionError, "fair weather"),
        ({"vouchers": {"independent fair coins": ""}}, OptionError, "give a name"),
        ({"vouchers": {"independent fair coins": "\ud800"}}, OptionError, "UTF-8 cannot"),
        (
            {"plan": lb.InclusionPlan(PLAN.member, seed=6)},
            FormatError,
            "do not follow from its seed",
        ),
        ({"protocol": {"unit": "one"}}, OptionError, "the protocol must also set"),
        ({"protocol": PROTOCOL | {"confidence": 0.99}}, FormatError, "has 0.99, the audit 0.95"),
        ({"protocol": PROTOCOL | {"attacks": ["a", "b"]}}, FormatError, r"\['loss'\] were audited"),
        ({"protocol": PROTOCOL | {"features": "age"}}, FormatError, "features: .* none was given"),
        ({"protocol": PROTOCOL | {"checked": {"epsilon": 2}}}, FormatError, "nothing was checked"),
        (
            {"plan": PLAN.commit(PROTOCOL), "protocol": PROTOCOL | {"notes": "another"}},
            FormatError,
            "does not match the commitment",
        ),
        ({"tail": "exact"}, FormatError, "takes no tail"),
        ({"options": {"seed": 4}}, FormatError, "gives another result"),
    ],
)
def test_what_would_not_verify_is_not_written(
    change: dict[str, Any], error: type[LeakboundError], words: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"scores": NAMED, "plan": PLAN}
    with pytest.raises(error, match=words):
        one_run(NAMED, PLAN).bundle(tmp_path / "bundle", **given | change)
    assert list(tmp_path.iterdir()) == []


def test_scores_without_a_name_keep_no_protocol(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"\['loss'\], but scores have no name"):
        one_run(SCORES, PLAN).bundle(tmp_path / "b", scores=SCORES, plan=PLAN, protocol=PROTOCOL)
    panoramia = lb.audit(SCORES, lb.Panoramia(PLAN, baseline=SCORES[::-1]))
    with pytest.raises(FormatError, match="a protocol can be for coins"):
        panoramia.bundle(
            tmp_path / "b", scores=SCORES, baseline=SCORES[::-1], plan=PLAN, protocol=PROTOCOL
        )


def test_what_would_be_read_back_otherwise_is_not_written(tmp_path: Path) -> None:
    """Names that are no text, text that no file holds, and order that only an index tells."""
    member = pd.Series(PLAN.member, index=np.arange(M) + 5)
    cases: tuple[tuple[Any, Any, str], ...] = (
        ({1: SCORES, 2: -SCORES}, PLAN, "options.attack is 1, but recomputed it is '1'"),
        ({"\ud800": SCORES, "b": -SCORES}, PLAN, "text that UTF-8 cannot"),
        (pd.Series(SCORES, index=member.index), member[::-1], "gives another result"),
    )
    for scores, plan, words in cases:
        with pytest.raises(FormatError, match=words):
            one_run(scores, plan).bundle(tmp_path / "b", scores=scores, plan=plan)
    result, long = one_run(SCORES, PLAN), {"independent fair coins": "y" * (5 << 20)}
    with pytest.raises(FormatError, match=r"would not verify: files: assumptions.json has 5,24"):
        result.bundle(tmp_path / "b", scores=SCORES, plan=PLAN, vouchers=long)
    assert list(tmp_path.iterdir()) == []


def test_functions_and_fitted_models_are_refused(tmp_path: Path) -> None:
    family = lb.TradeOffFamily(parameter="mu", tradeoff=lb.TradeOff.gaussian, bracket=(0.1, 9.0))
    with pytest.raises(FormatError, match="which a bundle cannot store"):
        one_run(SCORES, PLAN, claim=family).bundle(tmp_path / "b", scores=SCORES, plan=PLAN)
    fit = LogisticPropensity().fit(FEATURES, PLAN.member)
    result = lb.audit(
        SCORES[200:],
        lb.ZeroRun(PLAN.member[200:], fit, features=FEATURES[200:], uncertainty="none"),
    )
    with pytest.raises(FormatError, match="propensity is a PropensityFit"):
        result.bundle(
            tmp_path / "b",
            scores=SCORES[200:],
            plan=PLAN.member[200:],
            propensity=fit,
            features=FEATURES[200:],
        )


# --- interrupted writes ---------------------------------------------------------------------------


def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    result = one_run(SCORES, PLAN)
    (tmp_path / "thesis.tex").write_text("dear reader", encoding="utf-8")
    with pytest.raises(OptionError, match=r"contains 'thesis\.tex', which would be lost"):
        result.bundle(tmp_path, scores=SCORES, plan=PLAN)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
    result.bundle(folder, scores=SCORES, plan=PLAN)
    (folder / "thesis.txt").write_text("all of it", encoding="utf-8")
    with pytest.raises(OptionError, match=r"contains 'thesis\.txt', which would be lost"):
        result.bundle(folder, scores=SCORES, plan=PLAN)
    assert (folder / "thesis.txt").read_text(encoding="utf-8") == "all of it"


def test_a_full_disk_leaves_the_old_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, opening = write(tmp_path / "bundle")
    before = {file.name: file.read_bytes() for file in (tmp_path / "bundle").iterdir()}
    sync, rename = os.fsync, Path.rename
    for failing in range(1, 24):
        left = iter(range(failing, -1, -1))

        def full(call: Callable[..., Any], *arguments: Any, left: Any = left) -> Any:
            if next(left, 0) == 1:
                raise OSError(28, "No space left on device")
            return call(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda descriptor, full=full: full(sync, descriptor))
            patch.setattr(Path, "rename", lambda path, to, full=full: full(rename, path, to))
            with pytest.raises(OSError, match="No space left"):
                write(tmp_path / "bundle")
        here = {file.name: file.read_bytes() for file in (tmp_path / "bundle").iterdir()}
        assert here == before or failing >= 13  # in place, and only its folder's sync failed
        assert why(tmp_path / "bundle") == ""
        if here != before:
            break
    else:
        pytest.fail("the disk was never full before the bundle was in place")
    assert [one.name for one in tmp_path.iterdir()] == ["bundle"]
    assert opening.commitment is not None


# --- the command line -----------------------------------------------------------------------------


def test_from_commitment_to_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = protocol_toml(checked="{ epsilon = 1.0 }")
    Path("protocol.toml").write_text(text, encoding="utf-8")
    PLAN.save("plan.npz")
    assert leakbound("commit", "protocol.toml", "--plan", "plan.npz").code == 0
    order = np.random.default_rng(2).permutation(M)
    table = csv_text(id=order, loss=SCORES[order])  # the plan says who was a member
    Path("scores.csv").write_text(table, encoding="utf-8")
    arguments: tuple[str, ...] = (
        "coins",
        "scores.csv",
        "--opening",
        "secret",
        "--bundle",
        "bundle",
    )
    assert "no column 'score'" in leakbound(*arguments).refusal
    arguments = (*arguments, "--attacks", "loss")
    assert "nothing was checked" in leakbound(*arguments).refusal
    answer = leakbound(*arguments, "--claim", "eps=1")
    assert (answer.code, answer.err) == (1, "Bundle: bundle\n")
    found = leakbound("verify", "bundle", "--commitment", "public/commitment.json")
    assert found.code == 0
    assert found.out.splitlines()[-1] == "VALID"
    assert "as published" in found.out

    assert json.loads(Path("bundle/result.json").read_bytes())["options"]["attack"] == "loss"
    renamed = csv_text(id=order, margin=SCORES[order])
    Path("scores.csv").write_text(renamed, encoding="utf-8")
    other = (*arguments[:-1], "margin", "--claim", "eps=1")
    assert "['loss'], but ['margin'] were audited" in leakbound(*other).refusal
    swapped = csv_text(loss=SCORES[order], member=PLAN.member[order].astype(int))
    Path("scores.csv").write_text(swapped, encoding="utf-8")
    assert "column member differs from the plan" in leakbound(*arguments).refusal


def test_bundles_of_the_other_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = csv_text(
        score=SCORES,
        baseline_score=SCORES[::-1],
        member=PLAN.member,
        propensity=CHANCES,
        age=FEATURES[:, 0],
        id=[f"n{i}" for i in range(M)],
    )
    Path("scores.csv").write_text(table, encoding="utf-8")
    for command in (
        ("panoramia", "scores.csv", "--features", "age"),
        ("zero-run", "scores.csv"),
        ("coins", "scores.csv", "--prior", "propensity"),
    ):
        answer = leakbound(*command, "--bundle", "bundle", "--json")
        assert answer.code == 0, answer.err
        assert leakbound("verify", "bundle").code == 0


def test_what_is_no_bundle_is_bad_input(tmp_path: Path) -> None:
    assert "is not a folder" in leakbound("verify", tmp_path / "nowhere").refusal
    write(tmp_path / "bundle")
    (tmp_path / "c.json").write_text("{}", encoding="utf-8")
    answer = leakbound("verify", tmp_path / "bundle", "--commitment", tmp_path / "c.json")
    assert "not a commitment" in answer.refusal
    other = PLAN.commit(PROTOCOL).commitment
    other.to_json(tmp_path / "c.json")
    answer = leakbound("verify", tmp_path / "bundle", "--commitment", tmp_path / "c.json")
    assert answer.code == 1
    assert answer.out.splitlines()[-1].startswith(
        "INVALID: commitment: the commitment has the digest"
    )
