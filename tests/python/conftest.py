"""What all tests share: reproducible property tests and inputs with a known shape."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

settings.register_profile("leakbound", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("leakbound")

Game = tuple[NDArray[np.float64], NDArray[np.bool_]]


@pytest.fixture
def golden() -> Path:
    """The folder of reference values."""
    return Path(__file__).parents[1] / "golden"


@pytest.fixture
def game() -> Game:
    """Scores and membership of 600 examples that leak visibly."""
    rng = np.random.default_rng(20230515)
    member = rng.random(600) < 0.5
    return rng.normal(size=600) + 1.5 * member, member
