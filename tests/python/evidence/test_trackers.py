"""Numbers of results are what trackers take: flat, finite, and said on the page."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

import trackers
from oracle_calls import coins, split
from page_examples import EXAMPLE

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "comparing.md"


def test_the_page_logs_the_numbers_of_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    with trackers.at_hand() as kept:
        names: dict[str, Any] = {}
        for block in EXAMPLE.finditer(text):
            exec(block[2], names)
    numbers = names["result"].summary().numbers
    logged = dict(kept)
    assert logged["mlflow"] == logged["wandb"] == numbers
    assert logged["params"]["kind"] == logged["config"]["kind"] == "lower_bound"
    assert logged["artifact"] > 1000


def test_numbers_are_flat_and_finite_and_their_delta_is_that_of_epsilon() -> None:
    said = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
    gaussian = coins("leaks", "gaussian")
    results = (coins("leaks").with_check(epsilon=1.0), gaussian, split("leaks"), coins("noise"))
    for result in results:
        numbers = result.summary().numbers
        assert all(type(value) is float and math.isfinite(value) for value in numbers.values())
        assert numbers["epsilon"] == result.epsilon(numbers["delta"])
        assert numbers.keys() - {"delta"} <= said
    assert gaussian.summary().numbers["delta"] == 1e-5
