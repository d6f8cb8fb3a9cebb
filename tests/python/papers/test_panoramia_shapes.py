"""What the paper's tables and figures show, at the sizes that the command takes."""

from typing import Any

import pytest

from panoramia_tables import PANORAMIA

pytestmark = pytest.mark.validity


def rows(name: str) -> list[list[Any]]:
    """Our rows of a table, without what is printed."""
    outcome = PANORAMIA[f"panoramia-{name}"].compute(full=False)
    return [list(row) for row in outcome.rows if "printed" not in str(row[0])]


def column(name: str, key: str, place: int) -> list[float]:
    """One column of the rows of one target."""
    return [row[place] for row in rows(name) if row[0] == key]


def test_a_helper_from_generated_images_makes_the_baseline_strong() -> None:
    c = {row[0]: row[1] for row in rows("table2")}
    assert c["generated"] > c["none"] + 0.1
    assert c["generated"] > c["real"] - 0.1
    by_training = [row[1] for row in rows("figure2")]
    assert by_training[-1] > by_training[0] + 0.3
    shared = [row[2] for row in rows("figure9")]
    assert shared[2] > shared[0] + 0.2


def test_more_examples_prove_more() -> None:
    estimates = column("figure6", "80 epochs", 4)
    assert estimates[-1] > estimates[0] + 0.4
    assert column("figure6", "80 epochs", 6)[-1] > 2
    for target in ("DP-SGD, ε = 1", "DP-SGD, ε = 8"):
        assert max(column("figure6", target, 4)) < 0.1


def test_dp_sgd_leaves_nothing() -> None:
    estimates = {row[0]: row[3] for row in rows("table7")}
    assert estimates.pop("80 epochs") > 0.5
    assert max(estimates.values()) < 0.1
    medians = {(row[0], row[1]): row[3] for row in rows("figure14")}
    learnt = medians["80 epochs", "members"]
    assert learnt < 0.5 * medians["80 epochs", "real non-members"]
    private = medians["DP-SGD, ε = 8", "members"]
    assert private == pytest.approx(medians["DP-SGD, ε = 8", "real non-members"], rel=0.25)


def test_larger_models_learn_more_by_heart() -> None:
    estimates = [row[4] for row in rows("figure15")]
    assert estimates == sorted(estimates)
    assert estimates[-1] > estimates[0] + 0.3
