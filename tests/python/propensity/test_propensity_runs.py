"""Bootstraps on executors and threads, interrupted and resumed: the same draws."""

import json
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from leakbound.propensity.blocks import run_blocks
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import leakbound._core as _core
from leakbound._base.checkpoints import Checkpoints
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray
from leakbound.errors import CheckpointError, IncompatibleOptionsError
from leakbound.propensity import LogisticPropensity, PropensityFit, SklearnPropensity, cross_fit

MADE_OF = {"seed": "1"}


def shifted(m: int, d: int = 3) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(m)
    member = rng.random(m) < 0.5
    return rng.normal(size=(m, d)) + 0.4 * member[:, None], member


@pytest.fixture(scope="module")
def fit() -> PropensityFit:
    return LogisticPropensity().fit(*shifted(300))


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        yield executor


def test_processes_and_threads_draw_the_same(fit: PropensityFit, processes: Executor) -> None:
    features = shifted(40)[0]
    here = fit.bootstrap(features, K=150, seed=2)
    np.testing.assert_array_equal(fit.bootstrap(features, K=150, seed=2, executor=processes), here)
    with ThreadPoolExecutor(3) as threads:
        np.testing.assert_array_equal(
            fit.bootstrap(features, K=150, seed=2, executor=threads), here
        )
    np.testing.assert_array_equal(fit.bootstrap(features, K=70, seed=2), here[:70])


def test_a_dask_cluster_draws_the_same(fit: PropensityFit) -> None:
    from distributed import Client, LocalCluster

    features = shifted(40)[0]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        draws = fit.bootstrap(features, K=150, seed=2, executor=client.get_executor())
    np.testing.assert_array_equal(draws, fit.bootstrap(features, K=150, seed=2))


def test_the_number_of_threads_changes_no_bit(fit: PropensityFit) -> None:
    features, threads = shifted(40)[0], _core.threads()
    draws = []
    try:
        for count in (1, 3):
            _core.set_threads(count)
            draws.append(fit.bootstrap(features, K=100))
    finally:
        _core.set_threads(threads)
    np.testing.assert_array_equal(draws[0], draws[1])


def test_a_classifier_draws_the_same_in_processes(processes: Executor) -> None:
    features, member = shifted(120)
    tree = DecisionTreeClassifier(max_depth=2, max_features=1)
    fit = SklearnPropensity(tree).fit(features, member)
    draws = fit.bootstrap(features[:7], K=66, seed=1)
    np.testing.assert_array_equal(
        fit.bootstrap(features[:7], K=66, seed=1, executor=processes), draws
    )
    assert (draws[0] != draws[1]).any()


def test_classifier_replicates_are_fits_of_the_copied_rows() -> None:
    features, member = shifted(150)
    fit = SklearnPropensity(GaussianNB()).fit(features, member)
    rows = _core.PropensityRows(features, member, folds=None, l2=0.0)
    counts = rows.resamples(seed=Purpose.CLASSIFIER_RESAMPLES.derived(4), first=0, count=3)
    for draw, count in zip(fit.bootstrap(features, K=3, seed=4), counts, strict=True):
        weighted = GaussianNB().fit(features, member, sample_weight=count)
        with np.errstate(divide="ignore"):
            chance = weighted.predict_proba(features)
            np.testing.assert_allclose(draw, np.log(chance[:, 1] / chance[:, 0]), atol=1e-6)


def failing(task: Callable[[int, int], FloatArray], after: int) -> Callable[[int, int], FloatArray]:
    """Interrupt once `after` blocks are done, as Ctrl-C would."""
    done: list[int] = []

    def run(first: int, count: int) -> FloatArray:
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(first)
        return task(first, count)

    return run


def test_an_interrupted_run_carries_on_with_the_blocks_that_are_left(tmp_path: Path) -> None:
    begun: list[int] = []

    def task(first: int, count: int) -> FloatArray:
        begun.append(first)
        return np.arange(first, first + count, dtype=np.float64)[:, None]

    with pytest.raises(KeyboardInterrupt):
        run_blocks(failing(task, 2), 25, size=10, checkpoint=Checkpoints(tmp_path / "run", MADE_OF))
    assert begun == [0, 10]
    values = run_blocks(task, 25, size=10, checkpoint=Checkpoints(tmp_path / "run", MADE_OF))
    assert begun == [0, 10, 20]
    assert values.ravel().tolist() == list(range(25))


def test_a_bootstrap_resumes_from_its_checkpoint(fit: PropensityFit, tmp_path: Path) -> None:
    features, folder = shifted(40)[0], tmp_path / "boot"
    fit.bootstrap(features, K=70, seed=0, checkpoint=folder)
    kept = Checkpoints(folder, json.loads((folder / "made-of.json").read_text())["made of"])
    kept.save("00000000-64", {"block": np.zeros((64, 4))})  # stands out if it is read again
    draws = fit.bootstrap(features, K=100, seed=0, checkpoint=folder)
    assert (draws[:64] == 0).all()
    np.testing.assert_array_equal(draws[64:], fit.bootstrap(features, K=100)[64:])


def test_a_checkpoint_of_something_else_is_refused(fit: PropensityFit, tmp_path: Path) -> None:
    features, folder = shifted(40)[0], tmp_path / "boot"
    fit.bootstrap(features, K=2, seed=0, checkpoint=folder)
    others = [
        (LogisticPropensity(2.0).fit(*shifted(300)), "model"),
        (LogisticPropensity().fit(*shifted(301)), "training set or its folds"),
        (LogisticPropensity().fit(*shifted(300), seed=1), "training set or its folds"),
    ]
    for other, named in others:
        with pytest.raises(CheckpointError, match=f"are of another {named}; name another folder"):
            other.bootstrap(features, K=2, seed=0, checkpoint=folder)
    with pytest.raises(CheckpointError, match="are of another seed;"):
        fit.bootstrap(features, K=2, seed=1, checkpoint=folder)
    with pytest.raises(CheckpointError, match="holds boot without the record"):
        fit.bootstrap(features, K=2, seed=0, checkpoint=tmp_path)


def test_cross_fitted_draws_resume_fold_by_fold(tmp_path: Path) -> None:
    features, member = shifted(100)
    crossed = cross_fit(LogisticPropensity(), features, member)
    draws = crossed.bootstrap(K=30, seed=3, checkpoint=tmp_path / "boot")
    np.testing.assert_array_equal(
        crossed.bootstrap(K=30, seed=3, checkpoint=tmp_path / "boot"), draws
    )
    for rows, fit in crossed.parts():
        assert not np.isin(features[rows], fit.rows.features).any()
        np.testing.assert_array_equal(draws[:, rows], fit.bootstrap(features[rows], K=30, seed=3))


def test_a_calibration_that_splits_copies_is_refused() -> None:
    from sklearn.calibration import CalibratedClassifierCV

    with pytest.raises(IncompatibleOptionsError, match="splits the copies"):
        SklearnPropensity(CalibratedClassifierCV(GaussianNB()))
