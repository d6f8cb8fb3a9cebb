"""Results say what they are, survive JSON, and write files whole or not at all."""

import dataclasses
import json
import math
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flat
import leakbound as lb
from leakbound import errors
from leakbound._base import files, records
from leakbound._base.formatting import down

Game = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def result(game: Game) -> lb.AuditResult:
    return flat.coins(*game)


@pytest.fixture
def panoramia(game: Game) -> lb.PanoramiaResult:
    scores, member = game
    noise = np.random.default_rng(1).normal(size=600)
    return lb.audit(scores, lb.Panoramia(member, baseline=noise + 0.5 * member))


def test_repr_never_calls_an_estimate_a_bound(panoramia: lb.PanoramiaResult) -> None:
    assert "epsilon() ~ " in repr(panoramia)
    assert "estimate, not a lower bound" in repr(panoramia)
    assert "estimate, not a lower bound" in panoramia._repr_html_()


@given(st.floats(0, 50))
def test_what_is_printed_is_at_most_what_was_proved(bound: float) -> None:
    assert bound - 0.01 < float(down(bound)) <= bound


def test_check_is_strict_and_knows_its_ceiling(result: lb.AuditResult) -> None:
    assert result.check(epsilon=0) == "refuted"
    assert result.check(epsilon=np.nextafter(result.bound, 0)) == "refuted"
    assert result.check(epsilon=result.bound) == "not refuted"
    assert result.check(epsilon=np.nextafter(result.ceiling, 0)) == "not refuted"
    assert result.check(epsilon=result.ceiling) == "inconclusive"
    assert result.check(epsilon=math.inf) == "inconclusive"


def test_pure_dp_speaks_of_delta_zero_only(
    result: lb.AuditResult, panoramia: lb.PanoramiaResult
) -> None:
    assert result.epsilon() == result.epsilon(delta=0) == result.bound
    for one in (result, panoramia):
        with pytest.raises(errors.OptionError, match=r"nothing about delta = 1e-05"):
            one.epsilon(delta=1e-5)
        with pytest.raises(errors.OptionError, match="only delta = 0"):
            one.check(epsilon=1, delta=0.1)
        with pytest.raises(errors.OptionError, match="delta must be at least 0 and below 1"):
            one.epsilon(delta=1)


def test_arrays_keep_their_types_in_json(result: lb.AuditResult) -> None:
    back = lb.AuditResult.from_json(result.to_json())
    assert (back, hash(back), repr(back)) == (result, hash(result), repr(result))
    assert (back.ceiling, back.to_json()) == (result.ceiling, result.to_json())
    for part in ("curve", "roc", "histogram"):
        stored = vars(getattr(back, part))
        for name, live in vars(getattr(result, part)).items():
            assert live.dtype == stored[name].dtype
            np.testing.assert_array_equal(live, stored[name])


def test_infinities_and_values_that_do_not_exist(result: lb.AuditResult) -> None:
    curve = dataclasses.replace(result.curve, bound=np.full(result.curve.guesses.size, np.nan))
    edges = result.histogram.edges.copy()
    edges[[0, -1]] = -math.inf, math.inf
    bins = dataclasses.replace(result.histogram, edges=edges)
    strange = dataclasses.replace(
        result, _curve=records.Lazy(lambda: curve), _histogram=records.Lazy(lambda: bins)
    )
    data = json.loads(strange.to_json())
    assert [data["histogram"]["edges"][i] for i in (0, -1)] == ["-inf", "inf"]
    assert set(data["curve"]["bound"]) == {None}
    back = lb.AuditResult.from_dict(data)
    np.testing.assert_array_equal(back.histogram.edges, edges)
    assert np.isnan(back.curve.bound).all()
    assert back == strange


def test_provenance_names_versions_seed_and_inputs(game: Game) -> None:
    scores, member = game
    first = lb.audit(scores, lb.Coins(member), seed=7).provenance
    assert (first.leakbound, first.numpy, first.seed) == (lb.__version__, np.__version__, 7)
    assert first.sha256.keys() == {"scores", "member"}
    swapped = lb.audit(scores.astype(">f8"), lb.Coins(member), seed=7).provenance
    assert swapped.sha256 == first.sha256
    scores[0] += 1
    other = lb.audit(scores, lb.Coins(member), seed=7).provenance.sha256
    assert other["scores"] != first.sha256["scores"]
    assert other["member"] == first.sha256["member"]


def test_curve_has_few_label_free_cuts_and_its_maximum_is_the_bound() -> None:
    rng = np.random.default_rng(3)
    member = rng.random(9_000) < 0.5
    scores = rng.normal(size=9_000) + member
    for cuts in (lb.KLScan(), lb.UnionBound(grid="geometric"), lb.Fixed(999)):
        result = lb.audit(scores, lb.Coins(member), cuts=cuts)
        curve = result.curve
        assert curve.guesses.size <= 2000
        assert np.nanmax(curve.bound) == result.bound
        assert (np.diff(curve.guesses) > 0).all()
        assert result.guesses in curve.guesses
        np.testing.assert_array_equal(curve.precision, curve.correct / curve.guesses)
        assert np.nanmin(curve.bound) >= 0
        again = lb.audit(scores, lb.Coins(rng.random(9_000) < 0.5), cuts=cuts)
        if again.path == result.path:
            free = {result.guesses, again.guesses}
            assert set(curve.guesses) - free <= set(again.curve.guesses)


def test_roc_ends_at_one_and_has_the_audits_auc(game: Game) -> None:
    result = flat.coins(*game)
    roc = result.roc
    assert (roc.false_positive_rate[-1], roc.true_positive_rate[-1]) == (1, 1)
    x, y = np.r_[0, roc.false_positive_rate], np.r_[0, roc.true_positive_rate]
    assert np.trapezoid(y, x) == pytest.approx(result.auc, abs=1e-12)


def test_histogram_counts_everyone_and_ends_at_the_quantiles(game: Game) -> None:
    scores, member = game
    scores[:3] = [np.inf, -np.inf, 1e9]
    histogram = lb.audit(scores, lb.Coins(member)).histogram
    finite = scores[np.isfinite(scores)]
    assert histogram.edges.shape == (61,)
    np.testing.assert_allclose(histogram.edges[[0, -1]], np.quantile(finite, [0.001, 0.999]))
    assert histogram.members.sum() == member.sum()
    assert histogram.non_members.sum() == (~member).sum()
    inside = (scores > histogram.edges[1]) & (scores < histogram.edges[-2])
    reference, _ = np.histogram(scores[inside & member], histogram.edges)
    np.testing.assert_array_equal(histogram.members[1:-1], reference[1:-1])


def test_histogram_of_scores_without_a_range() -> None:
    scores = [math.inf, -math.inf, math.inf, -math.inf]
    histogram = lb.audit(scores, lb.Coins([1, 0, 1, 0])).histogram
    assert (histogram.members[-1], histogram.non_members[0]) == (2, 2)
    huge = lb.audit([-1e308, 1e308, -1e308, 1e308], lb.Coins([0, 1, 0, 1])).histogram
    assert np.isfinite(huge.edges).all()
    assert (huge.members[-1], huge.non_members[0]) == (2, 2)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    files.write_text(path, "old")

    def write_half() -> None:
        with files.replacing(path) as file:
            file.write(b"ne")
            msg = "disk full"
            raise OSError(msg)

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_bytes_reach_the_disk_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "note.txt", []

    def fsync(descriptor: int) -> None:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        synced.append(("file" if is_file else "folder", path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    files.write_text(path, "text")
    assert synced == [("file", False), ("folder", True)]


def test_a_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.write_text("")
    files.write_text(ours, "")
    assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
