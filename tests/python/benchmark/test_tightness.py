"""No commit proves less than the stored baseline unseen; published forms are what they say."""

from pathlib import Path
from typing import Any

import pytest
from pyarrow import compute

import forms
import leakbound as lb
import mechanisms
import tightness
from leakbound import benchmark
from leakbound.errors import OptionError

PURE, APPROXIMATE, GAUSSIAN = lb.PureDP(), lb.ApproxDP(delta=1e-5), lb.GaussianDP()
NOISE, RESPONSE = mechanisms.Noise(), mechanisms.RandomizedResponse(epsilon=1.0)
CORRELATED, INDEPENDENT = mechanisms.Mixture(mu=1.0), mechanisms.Gaussian(mu=1.0)


def stored(m: int) -> benchmark.Table:
    rows = benchmark.Table.read(tightness.BASELINE).to_arrow()
    return benchmark.Table(rows.filter(compute.field("m") == m))


@pytest.mark.parametrize("m", [10**3, pytest.param(10**4, marks=pytest.mark.validity)])
def test_this_commit_proves_as_much_as_the_baseline(m: int) -> None:
    losses = tightness.lost(stored(m), tightness.baseline([m]))
    assert not losses, "\n".join([*losses, "if that is meant: tightness.py --baseline"])


def test_a_loss_is_named() -> None:
    before = stored(10**4)
    rows = before.to_arrow().to_pylist()
    of_kl = {"game": "Gaussian(mu=1.0)", "claim": "pure DP", "method": "KLScan", "options": ""}
    for row in rows:
        row["bound"] -= 0.01 * (of_kl.items() <= row.items())
    (loss,) = tightness.lost(before, benchmark.Table.of(rows))
    assert loss == "lost 0.01 at m = 10,000 on Gaussian(mu=1.0), pure DP, by KLScan"
    others = [row for row in rows if row["method"] != "KLScan"]
    assert tightness.lost(before, benchmark.Table.of(others))[0].startswith("no more rows at m")


def test_the_page_has_what_the_stored_rows_say() -> None:
    page = Path(__file__).parents[3] / "docs" / "theory" / "benchmark.md"
    text, rows = page.read_text(encoding="utf-8"), benchmark.Table.read(tightness.PAGE)
    assert tightness.matrix(rows, 1000, APPROXIMATE.name) in text
    assert tightness.false_claims(rows) in text


VALID = [
    (forms.steinke_theorem_5_2, APPROXIMATE),
    (forms.zero_run_theorem_5_1, APPROXIMATE),
    (forms.panoramia_union, PURE),
    (forms.panoramia_union, APPROXIMATE),
    (forms.panoramia_hoeffding, PURE),
    (forms.clopper_pearson_bonferroni, APPROXIMATE),
    (forms.clopper_pearson_bonferroni, GAUSSIAN),
    (forms.product_channel, GAUSSIAN),
]
WRONG = [
    (forms.uncorrected_sweep, NOISE, PURE),
    (forms.product_channel, CORRELATED, GAUSSIAN),
    (forms.clopper_pearson_bonferroni, CORRELATED, GAUSSIAN),
]


@pytest.mark.parametrize(("form", "claim"), VALID)
def test_forms_hold_where_examples_are_independent(form: Any, claim: Any) -> None:
    games: list[Any] = [NOISE, INDEPENDENT if claim is GAUSSIAN else RESPONSE]
    found = benchmark.run(games, [form], [claim], m=[200], seeds=range(60), reference=False)
    assert not found.summary().false
    assert found.summary().lines[1]["bound"] > 0 or form is forms.panoramia_union


@pytest.mark.parametrize(("form", "game", "claim"), WRONG)
def test_forms_that_are_not_valid_are_caught(form: Any, game: Any, claim: Any) -> None:
    found = benchmark.run([game], [form], [claim], m=[1000], seeds=range(60), reference=False)
    assert found.summary().false


def test_algorithm_3_is_the_recursion() -> None:
    game = mechanisms.Gaussian(mu=2.0)(400, seed=0)
    bound = forms.mahloujifar_algorithm_3(game.scores, game.member, GAUSSIAN, 0.05)
    correct_of_both_sides, _ = forms.correct_guesses(game.scores, game.member)
    correct = int(correct_of_both_sides[99])
    assert bound == GAUSSIAN.lower_bound(correct, 100, 400, 0.05, test="recursion")
    for form in forms.NOT_GAUSSIAN:
        with pytest.raises(OptionError, match="DP alone"):
            form(game.scores, game.member, GAUSSIAN, 0.05)


def test_other_packages_are_skipped_by_name() -> None:
    game = mechanisms.Gaussian(mu=1.0)(200, seed=0)
    for name in tightness.installed():
        assert tightness.Peer(name).audit(game, APPROXIMATE, 0.05, 0) >= 0
    if not tightness.installed():
        pytest.skip("neither jax-privacy nor opake-auditing is installed")
