"""Bundles of other versions may differ in the last places, and in nothing else."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from bundles import NOTES, change, resealed, tampered, why
from command_line import PROGRAM, leakbound
from commitments import scored
from leakbound.errors import FormatError
from leakbound.evidence import manifest, verify_bundle
from leakbound.evidence.recipe import Recipe, difference_of_rerun


def by_other(bundle: Path, what: str = "instructions") -> None:
    """Say that another version made a bundle, wherever it says so."""
    if what != "instructions":
        tampered(bundle, "result.json", change(f"provenance/{what}", "0.0.9"))
    tampered(bundle, "manifest.json", change(f"{NOTES}/{what}", "0.0.9"))


@pytest.mark.parametrize("name", ["leakbound", "numpy"])
def test_versions_are_those_of_the_manifest(name: str, bundle: Path) -> None:
    tampered(bundle, "result.json", change(f"provenance/{name}", "0.0.9"))
    assert why(bundle).endswith(f"these files, this result and this plan: {name}")
    certified = "0.1.0, certified by nobody"
    tampered(bundle, "result.json", change(f"provenance/{name}", certified))
    tampered(bundle, "manifest.json", change(f"{NOTES}/{name}", certified))
    assert why(bundle) == f"manifest: {certified!r} is not a version of {name}"


def test_a_result_of_another_version_is_audited_again_before_it_is_bundled(tmp_path: Path) -> None:
    plan, scores = scored()
    data: Any = lb.audit(scores, lb.Coins(plan)).to_dict()
    data["provenance"]["numpy"] = "0.0.9"
    with pytest.raises(
        FormatError, match=r"would not verify: manifest: .* result and this plan: numpy"
    ):
        lb.AuditResult.from_dict(data).bundle(tmp_path / "bundle", scores=scores, plan=plan)
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize(
    ("share", "here", "elsewhere"),
    [(0.0, "", ""), (1e-13, "audit: ", ""), (1e-7, "audit: ", "audit: "), (-1e-7, "audit: ", "")],
)
def test_numbers_of_another_version_may_differ_in_the_last_places(
    share: float, here: str, elsewhere: str, bundle: Path
) -> None:
    def moved(content: Any) -> None:
        content["bound"] *= 1 - share

    tampered(bundle, "result.json", moved)
    assert why(bundle)[:7] == here
    by_other(bundle)
    assert why(bundle)[:7] == (elsewhere if share >= 0 else "audit: ")


@pytest.mark.parametrize("version", ["numpy", "instructions"])
@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("warnings", ["put in other words"]),
        ("warnings", []),
        ("theorem", "certified by nobody"),
        ("assumptions/0/statement", "all is well"),
        ("guesses", 62),
        ("options/seed", 1),
        ("provenance/sha256/scores of loss", "0" * 64),
    ],
)
def test_a_forger_gains_nothing_by_naming_another_version(
    version: str, place: str, value: Any, bundle: Path
) -> None:
    """Whatever a version is said to be, what this one computes is what counts."""
    if place == "warnings" and not value:
        _warned(bundle)
    by_other(bundle, version)
    tampered(bundle, "result.json", change(place, value))
    assert re.match("assumptions: |audit: |result: |manifest: ", why(bundle)), why(bundle)


def _warned(folder: Path) -> None:
    """Put a bundle whose result has a warning in the place of another."""
    plan, scores = scored()
    shutil.rmtree(folder)
    result = lb.audit(scores.round(), lb.Coins(plan))
    assert result.warnings
    result.bundle(folder, scores=scores.round(), plan=plan)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"confidence": 1 - 9e-10}, {"confidence": 1 - 1e-15}),  # stated, and so exact
        ({"claim": {"delta": 1e-14}}, {"claim": {"delta": 9e-13}}),
        ({"bound": 1e-15}, {"bound": 1e-13}),  # last places are a share of a number
        ({"bound": 0.0}, {"bound": 1e-15}),
        ({"bound": 0.0}, {"bound": -0.0}),
        ({"assumptions": [{"status": "declared"}]}, {"assumptions": [{"status": "checked"}]}),
    ],
)
def test_what_has_no_last_places_is_told_apart_whatever_the_version(one: Any, other: Any) -> None:
    plan, scores = scored()
    result = lb.audit(scores, lb.Coins(plan), claim=lb.ApproxDP(delta=1e-5))
    first, second = (
        lb.AuditResult.from_dict(overlaid(result.to_dict(), own)) for own in (one, other)
    )
    for exact in (True, False):
        assert next(iter(one)) in difference_of_rerun(first, second, exact=exact)


def overlaid(content: Any, change: Any) -> Any:
    """Return JSON data with some values replaced, at any depth."""
    if isinstance(change, dict):
        return content | {key: overlaid(content[key], one) for key, one in change.items()}
    if isinstance(change, list):
        return [overlaid(content[0], change[0]), *content[1:]]
    return change


def test_a_verdict_within_the_last_places_is_that_of_this_version() -> None:
    """A bound moved by less than a share of 1e-9 can turn a verdict, and may not."""
    plan, scores = scored()
    result = lb.audit(scores, lb.Coins(plan))
    claimed = result.bound * (1 - 1e-10)
    data: Any = result.with_check(epsilon=claimed).to_dict()
    assert data["checked"]["verdict"] == "refuted"
    data |= {"bound": claimed, "checked": data["checked"] | {"verdict": "not refuted"}}
    forged = lb.AuditResult.from_dict(data)
    with pytest.raises(FormatError, match="checked is 'not refuted'"):
        difference_of_rerun(result, forged, exact=False)


def test_coins_of_another_version_are_those_of_their_seed(bundle: Path) -> None:
    plan, _ = scored()
    lb.InclusionPlan(~plan.member, seed=5).save(bundle / "plan.npz")
    resealed(bundle)
    by_other(bundle, "leakbound")
    assert "do not follow from its seed, 5; if leakbound 0.0.9 made it" in why(bundle)


def test_a_page_that_this_version_does_not_draw_may_be_left_unread(bundle: Path) -> None:
    page = (bundle / "report.html").read_text(encoding="utf-8")
    by_other(bundle)
    forged = page.replace("</body>", "<script>1</script></body>")
    assert forged != page
    (bundle / "report.html").write_text(forged, encoding="utf-8")
    resealed(bundle)
    assert why(bundle)[:8] == "report: "
    found = {one.name: one for one in verify_bundle(bundle, page=False).checks}
    assert found["report"].passed is None
    assert "do not rely on it" in found["report"].words
    assert leakbound("verify", bundle).code == 1
    assert leakbound("verify", bundle, "--no-page").code == 0


def test_a_layout_of_another_version_is_named(bundle: Path) -> None:
    def renumbered(statement: Any) -> None:
        statement["predicate"]["configuration"][0]["annotations"]["layout"] = 2

    tampered(bundle, "manifest.json", renumbered)
    assert why(bundle) == "manifest: layout 2: this version of leakbound reads 1"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, lb.ZeroRunResult]:
    """A bundle of an audit that fits a model of membership to 20 features."""
    rng = np.random.default_rng(820)
    features = rng.normal(size=(800, 20))
    member = rng.random(800) < 1 / (1 + np.exp(-features[:, 0]))
    scores = rng.normal(size=800) + 1.5 * member
    result = lb.audit(scores, lb.ZeroRun(member, features=features), seed=1)
    place = tmp_path_factory.mktemp("fitted") / "bundle"
    result.bundle(place, scores=scores, plan=member, features=features)
    return place, result


@pytest.mark.parametrize(
    "kernel",
    [
        "Prescott",
        *(pytest.param(one, marks=pytest.mark.validity) for one in ("Nehalem", "Haswell")),
    ],
)
def test_a_fitted_audit_verifies_under_another_kernel_of_linear_algebra(
    kernel: str, fitted: tuple[Path, lb.ZeroRunResult]
) -> None:
    run = subprocess.run(
        [*PROGRAM, "verify", str(fitted[0]), "--no-page"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_CORETYPE": kernel},
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("by", [1e-12, 1e-8])
def test_numbers_of_a_fitted_audit_agree_to_a_billionth(
    by: float,
    fitted: tuple[Path, lb.ZeroRunResult],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place, result = fitted
    kernels = manifest.environment()[manifest.KERNELS]
    again = lb.ZeroRunResult.from_dict(overlaid(result.to_dict(), {"auc": result.auc * (1 + by)}))
    monkeypatch.setattr(Recipe, "run", lambda _: again)
    said = why(place, page=False)
    assert (said == "") == (by < 1e-9)
    if said:
        assert "auc is " in said
        assert ", but recomputed it is " in said
        assert said.endswith(f"linear algebra was by {kernels!r} there, and is by {kernels!r} here")


def test_the_kernel_of_linear_algebra_is_stored_and_changes_no_verdict(bundle: Path) -> None:
    kernels = manifest.environment()[manifest.KERNELS]
    notes = json.loads((bundle / manifest.MANIFEST).read_bytes())
    stored = notes["predicate"]["configuration"][0]["annotations"]
    assert stored[manifest.KERNELS] == kernels
    assert "openblas" in kernels
    tampered(bundle, manifest.MANIFEST, change(f"{NOTES}/{manifest.KERNELS}", "another"))
    assert why(bundle) == ""
    last = float(np.nextafter(lb.AuditResult.from_json(bundle / "result.json").auc, 0.0))
    tampered(bundle, "result.json", change("auc", last))
    assert "auc is " in why(bundle)  # nothing was fitted: bit for bit all the same
    # a bundle that names none, as of another writer
    del stored[manifest.KERNELS]
    (bundle / manifest.MANIFEST).write_bytes(
        (json.dumps(notes, indent=1, ensure_ascii=False) + "\n").encode()
    )
    resealed(bundle)
    assert why(bundle).startswith("audit: ")


def test_an_audit_that_fits_nothing_agrees_bit_for_bit(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Recipe.run

    def other(recipe: Recipe) -> Any:
        result: Any = run(recipe)
        return type(result).from_dict(
            overlaid(result.to_dict(), {"auc": float(np.nextafter(result.auc, 0.0))})
        )

    monkeypatch.setattr(Recipe, "run", other)
    assert "auc is " in why(bundle)
