"""Pages that are handed over: words follow the kind, numbers add up, nothing can be drawn."""

from decimal import Decimal
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import leakbound as lb
from games import game
from leakbound import report
from leakbound._base.formatting import number
from leakbound.report.description import Drawing, Series
from leakbound.report.figures import PLOTS
from leakbound.report.page import environment
from leakbound.report.parts import Curve, Histogram, Roc
from leakbound.report.style import MEMBER, house_style
from pages import undrawn, words_of  # noqa: F401 # pages are read here

GAME = game()


def test_numbers_stay_with_their_signs_and_powers_of_ten_are_set() -> None:
    glue = environment().filters["glue"]
    assert glue("ε at δ = 1e-05") == "ε at δ\u00a0=\u00a010⁻⁵"
    assert glue("p = 2.5e-12, 1e+06") == "p\u00a0=\u00a02.5·10⁻¹², 1e+06"
    assert glue("c + ε ≥ 1.2 ± 0.1") == "c\u00a0+\u00a0ε\u00a0≥\u00a01.2\u00a0±\u00a00.1"
    assert glue("no ε-DP guarantee") == "no ε-\u2060DP guarantee"


def test_zero_run_says_where_shift_is_and_what_is_withheld_nothing_of_the_model() -> None:
    data = game(240, leak=2.5, shift=0.75)
    known = lb.audit(data.scores, lb.ZeroRun(data.member, data.propensity))
    flat = np.full(240, 0.5)
    withheld = lb.audit(data.scores, lb.ZeroRun(data.member, flat, features=data.features))
    assert withheld.withheld
    assert not known.withheld
    for result in (known, withheld):
        captions = {figure.name: figure.caption for figure in result.summary().figures}
        assert "not corrected for distribution shift" in captions["roc"]
    says, not_said = withheld.summary().meaning.says, withheld.summary().meaning.does_not_say
    assert says[0].startswith("Nothing about this model. The data contradict an assumption")
    assert not_said == ("That the model is private, or that it leaks.",)
    assert "could be refuted, however small" not in words_of(report.render(withheld))
    coins = lb.audit(GAME.scores, lb.Coins(GAME.member)).summary()
    assert all("shift" not in figure.caption for figure in coins.figures)


# --- PANORAMIA ------------------------------------------------------------------------------------


def test_c_and_its_sum_add_up_or_say_why_not() -> None:
    seen = set()
    for leak, seed in product((0.0, 2.0), range(4)):
        data = game(200, leak=leak, seed=seed)
        result = lb.audit(data.scores, lb.Panoramia(data.member, baseline=data.baseline))
        most, c, found = (
            Decimal(number(x)) for x in (result.c_plus_epsilon_lb, result.c_lb, result.bound)
        )
        note = result.summary().metrics[0].note
        seen.add(note.split("; ")[1])
        assert note.startswith("estimate, not a lower bound; ")
        if note.endswith("on c + ε minus that on c"):
            assert most - c == found
        elif note.endswith(", before rounding"):
            assert most - c != found
        else:
            assert found == 0
    assert len(seen) == 3


# --- figures of next to nothing -------------------------------------------------------------------


def curve(cuts: int) -> Curve:
    """Return a curve that recalls nothing and bounds nothing at any cut."""
    made = np.arange(1, cuts + 1)
    nothing = np.zeros(cuts)
    return Curve(made, np.zeros(cuts, dtype=int), nothing, nothing, np.full(cuts, np.nan))


@pytest.mark.parametrize("cuts", [0, 3])
@pytest.mark.parametrize("plot", [one.draw for one in PLOTS.values()], ids=PLOTS)
def test_curves_of_nothing_can_be_drawn(plot: Any, cuts: int) -> None:
    empty = {"curve": curve(cuts), "roc": Roc(*(np.zeros(0, t) for t in (int, int, float, float)))}
    bins = Histogram(np.linspace(0, 1, 61), *(np.zeros(60, dtype=int) for _ in "mn"))
    ranking: Any = SimpleNamespace(
        bound=1.0, ceiling=2.0, guesses=1, correct=1, histogram=bins, **empty
    )
    drawing = Drawing("lower_bound", (Series("this model", "ε", "", MEMBER, "1.00", ranking),))
    with house_style():
        axes = plt.figure().add_subplot()
    assert isinstance(plot(drawing, axes), Axes)
    plt.close("all")
