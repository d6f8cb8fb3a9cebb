"""Probabilities and log-odds: one place, exact at the ends."""

import math

import numpy as np
import pytest

from leakbound._base.numerics import expit, logit


def test_probabilities_of_log_odds_keep_their_ends() -> None:
    odds = np.array([-math.inf, -1000.0, -3.0, 0.0, 3.0, 1000.0, math.inf])
    p = expit(odds)
    assert p[[0, 1, 3, 5, 6]].tolist() == [0, 0, 0.5, 1, 1]
    assert p[2] == pytest.approx(0.04742587317756678, rel=1e-15)
    np.testing.assert_allclose(p + expit(-odds), 1, rtol=1e-15)


def test_log_odds_of_probabilities_keep_their_ends() -> None:
    assert logit(np.array([0, 1])).tolist() == [-math.inf, math.inf]
    assert logit(np.array([0.5], dtype=np.float32)).tolist() == [0]
    p = np.array([1e-300, 1e-9, 0.3, 0.999])
    np.testing.assert_allclose(expit(logit(p)), p, rtol=1e-12)
    assert logit(0.999) == pytest.approx(logit(p)[3], rel=1e-15)
