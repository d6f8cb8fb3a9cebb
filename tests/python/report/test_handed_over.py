"""Pages that are handed over: units agree, paper repeats nothing, words follow the kind."""

import html
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import leakbound as lb
from games import Game, game
from leakbound import panoramia, report
from leakbound._base.formatting import number
from leakbound.panoramia import PanoramiaRow, Saturation
from leakbound.report import figures as plots
from leakbound.report.contents import Series
from leakbound.report.figures import iso_bound_precision
from leakbound.report.page import cited, environment
from leakbound.report.parts import Curve, Histogram, Roc
from leakbound.results.panoramia import PanoramiaResult

GAME = game()


@cache
def audit(shift: float, *, confidence: float = 0.95, claim: Any = None) -> lb.AuditResult:
    rng = np.random.default_rng(5)
    member = rng.random(300) < 0.5
    scores = rng.normal(size=300) + shift * member
    return lb.audit_one_run(scores, member, claim=claim or lb.PureDP(), confidence=confidence)


def words(page: str) -> str:
    """Return all visible words of a page."""
    text = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\u2060", "")
    return re.sub(r"\s+", " ", text)


def rule(page: str, selector: str) -> str:
    """Return all declarations that a selector has by itself."""
    return " ".join(re.findall(rf"^\s*{re.escape(selector)} \{{(.*?)\}}", page, re.M | re.S))


# --- words ----------------------------------------------------------------------------------------


def test_numbers_stay_with_their_signs_and_powers_of_ten_are_set() -> None:
    glue = environment().filters["glue"]
    assert glue("ε at δ = 1e-05") == "ε at δ\u00a0=\u00a010⁻⁵"
    assert glue("p = 2.5e-12, 1e+06") == "p\u00a0=\u00a02.5·10⁻¹², 1e+06"
    assert glue("c + ε ≥ 1.2 ± 0.1") == "c\u00a0+\u00a0ε\u00a0≥\u00a01.2\u00a0±\u00a00.1"
    assert glue("no ε-DP guarantee") == "no ε-\u2060DP guarantee"


def test_every_page_names_the_design() -> None:
    found = game(240, leak=2.5, shift=0.75)
    given = lb.audit_zero_run(found.scores, found.member, found.propensity)
    split = lb.audit_one_run(GAME.scores, GAME.member, design="random_split")
    made = lb.audit_panoramia(GAME.baseline, GAME.scores, GAME.member)
    real = lb.audit_panoramia(GAME.baseline, GAME.scores, GAME.member, real_nonmembers=True)
    for result, design in (
        (audit(2.0), "independent coins for each example"),
        (split, "a random split"),
        (given, "members and non-members that differ, compared by their propensities"),
        (made, "a fair coin for each pair of a member and a generated non-member"),
        (real, "a fair coin for each pair of a member and a real non-member"),
    ):
        assert f"Design {design} " in words(report.render(result))


def test_dp_sgd_is_named_by_its_noise() -> None:
    claim = lb.SubsampledGaussianDP(sampling_rate=1.0, steps=2)
    data = game(120, leak=2.5)
    result = lb.audit_one_run(data.scores, data.member, claim=claim)
    assert result.headline() == (
        "This model leaks: if training is DP-SGD (q = 1, 2 steps), its noise multiplier was at "
        f"most {result.rounded(result.bound)}, so ε ≥ {number(result.epsilon_bound)} at "
        "δ = 1e-05 (95 % confidence)."
    )


def test_roc_and_precision_of_zero_run_say_that_shift_is_in_them() -> None:
    data = game(240, leak=2.5, shift=0.75)
    known = lb.audit_zero_run(data.scores, data.member, data.propensity)
    flat = np.full(240, 0.5)
    withheld = lb.audit_zero_run(data.scores, data.member, flat, features=data.features)
    assert withheld.withheld
    assert not known.withheld
    for result in (known, withheld):
        captions = {figure.name: figure.caption for figure in result.figures()}
        assert "shift is not corrected for in this figure" in captions["roc"]
        assert ("the bound is withheld" in captions["precision_recall"]) == result.withheld
    assert all("shift" not in figure.caption for figure in audit(2.0).figures())


def test_what_is_withheld_says_nothing_of_the_model() -> None:
    data = game(240, leak=2.5, shift=0.75)
    flat = np.full(240, 0.5)
    result = lb.audit_zero_run(data.scores, data.member, flat, features=data.features)
    assert result.withheld
    says, not_said = result.meaning().says, result.meaning().does_not_say
    assert says[0].startswith("Nothing about this model: the data contradict an assumption")
    assert "speaks for neither" in not_said[0]
    assert "could be refuted, however small" not in words(report.render(result))


def test_papers_that_the_grounds_name_are_listed() -> None:
    from leakbound.propensity import LogisticPropensity

    data = game(240, leak=2.5, shift=0.75)
    learnt = lb.audit_zero_run(
        data.scores, data.member, LogisticPropensity(), features=data.features
    )
    stream = lb.OneRunStream()
    stream.update(GAME.scores, GAME.member)
    gaussian = audit(2.0, claim=lb.GaussianDP())
    assert cited(audit(2.0).sections()) == set()
    assert cited(gaussian.sections()) == {"Mahloujifar"}
    assert cited(learnt.sections()) == {"Wasserman"}
    assert cited(stream.result().sections()) == {"Ville"}
    template = environment().get_template("references.html.j2")
    for papers in (set(), {"Mahloujifar"}, {"Wasserman", "Ville"}):
        listed = template.render(papers=papers)
        assert {name for name in ("Mahloujifar", "Wasserman", "Ville") if name in listed} == papers
    assert "Melis and Chaudhuri" in words(report.render(gaussian)).split(" References ")[1]


def test_panoramia_says_that_its_bound_is_of_replacing() -> None:
    real = lb.audit_panoramia(GAME.baseline, GAME.scores, GAME.member, real_nonmembers=True)
    assert real.kind == "lower_bound"
    bound = number(real.bound)
    assert f"no ε-DP guarantee for replacing one example with ε < {bound}" in real.headline()
    assert "ε = 1 for replacing one example is refuted" in real.answer(epsilon=1.0)
    made = lb.audit_panoramia(GAME.baseline, GAME.scores, GAME.member)
    assert "is not ε-DP for replacing one example for any ε below" in str(made)


# --- several models -------------------------------------------------------------------------------


def models(claim: object = None, *, joint: bool = False) -> dict[str, lb.AuditResult]:
    confidence = 1 - 0.05 / 3 if joint else 0.95
    return {
        name: audit(shift, confidence=confidence, claim=claim)
        for name, shift in (("weak", 0.5), ("strong", 2.5), ("private", 0.0))
    }


def test_units_agree_between_table_and_details() -> None:
    results = models(lb.GaussianDP())
    said = words(report.render(results))
    assert "ε at least at δ = 10⁻⁵ Verdict" in said
    for result in results.values():
        epsilon, mu = number(result.epsilon_bound), result.rounded(result.bound)
        assert f"ε ≥ {epsilon} at δ = 10⁻⁵ (μ ≥ {mu})" in said
    mixed = words(report.render({"one": audit(2.0), "two": audit(2.0, claim=lb.GaussianDP())}))
    assert "ε at least Verdict" in mixed
    assert f"ε ≥ {number(audit(2.0).bound)} lower bound" in mixed


@cache
def page_of_three() -> str:
    return report.render(models())


def test_the_simultaneous_bounds_stand_beside_the_single_ones() -> None:
    single, joint = models(), models(joint=True)
    page = report.render(single, simultaneous=joint)
    rows = re.findall(r"<tr class.*?</tr>", page, re.DOTALL)
    assert len(rows) == len(single)
    for row, name in zip(rows, single, strict=True):
        cells = re.findall(r"<td.*?>(.*?)</td>", row, re.DOTALL)
        assert cells[0] == number(single[name].bound)
        assert cells[2] == number(joint[name].bound)
    assert "all together" in words(page)
    assert "all together" not in words(page_of_three())


def test_what_the_number_says_names_its_model() -> None:
    assert "What the number says of “strong” At the stated confidence" in words(page_of_three())
    assert "What the number says At the" in words(report.render(audit(2.0)))
    nothing = {"one": audit(0.0), "ε = 2": audit(0.0)}
    page = report.render(nothing)
    assert "What the number says At the" in words(page)
    assert ">ε\u00a0=\u00a02</a>" in page


def test_a_narrow_screen_shows_bound_and_verdict_first() -> None:
    page = page_of_three()
    header = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page)
    assert header[:3] == ["Model", "ε at least", "Verdict"]
    narrow = page.split("@media (max-width: 40rem)")[1].split("@media print")[0]
    assert ".models .ranges { display: none; }" in narrow


def test_paper_has_the_assumptions_once() -> None:
    page = page_of_three()
    assert page.count('<table class="assumptions">') == 3
    assert page.count('<div class="on-screen">') == 2
    assert page.count("The assumptions are those of “weak”, above.") == 2
    assert ".on-screen { display: none; }" in page.split("@media print")[1]
    assert rule(page, ".on-paper").split() == ["display:", "none;", "display:", "block;"]


@pytest.mark.parametrize(("claim", "tiles"), [(lb.PureDP(), 3), (lb.GaussianDP(), 4)])
def test_no_row_of_key_numbers_is_half_empty(claim: object, tiles: int) -> None:
    result = audit(2.0, claim=claim)
    assert len(result.metrics()) == {3: 6, 4: 7}[tiles]
    assert f'<dl class="facts" style="--row: {tiles}">' in report.render(result)


def test_an_estimate_is_not_alarming() -> None:
    page = report.render(lb.audit_panoramia(GAME.baseline, GAME.scores, GAME.member))
    for selector in (
        ".verdict.estimate",
        ".range.estimate i.first",
        ".range.estimate i.second",
        ".models .estimate .bound, .models .estimate .word",
    ):
        assert "alert" not in rule(page, selector) != ""


# --- PANORAMIA ------------------------------------------------------------------------------------


def test_c_and_its_sum_add_up_or_say_why_not() -> None:
    seen = set()
    for leak, seed in product((0.0, 1.0, 2.0), range(6)):
        data = game(200, leak=leak, seed=seed)
        result = lb.audit_panoramia(data.baseline, data.scores, data.member)
        most, c, found = (
            Decimal(number(x)) for x in (result.c_plus_epsilon_lb, result.c_lb, result.bound)
        )
        note = result.metrics()[0].note
        seen.add(note.split("; ")[1])
        assert note.startswith("estimate, not a lower bound; ")
        if note.endswith("c + ε less c"):
            assert most - c == found
        elif note.endswith(", before rounding"):
            assert most - c != found
        else:
            assert found == 0
    assert len(seen) == 3


@cache
def run() -> lb.PanoramiaReport:
    """Return a run of two targets, with every audit of the first."""
    data = [game(300, leak=leak, seed=seed) for leak in (2.5, 0.5) for seed in (1, 2)]

    def against(one: Game, *, real: bool = False) -> PanoramiaResult:
        return lb.audit_panoramia(one.baseline, one.scores, one.member, real_nonmembers=real)

    much = data[:2]
    losses = tuple(lb.audit_one_run(one.weak, one.member) for one in much)
    counts = np.arange(40)
    return lb.PanoramiaReport(
        rows=(
            PanoramiaRow(target="much", audit="PANORAMIA", results=tuple(map(against, much))),
            PanoramiaRow(
                target="much",
                audit="RM;RN",
                results=tuple(against(one, real=True) for one in much),
            ),
            PanoramiaRow(target="much", audit="O(1)", results=losses),
            PanoramiaRow(target="little", audit="PANORAMIA", results=tuple(map(against, data[2:]))),
        ),
        saturation=Saturation(np.array([50, 100]), (np.array([0.1, 0.2]), np.array([0.1, 0.3]))),
        seeds=(1, 2),
        sizes={"test": 300},
        options={"confidence": 0.95},
        warnings=(),
        losses=(
            panoramia.Losses(
                model="much",
                logarithmic=False,
                edges=np.linspace(0.0, 1.0, 41),
                members=counts,
                generated=counts,
                real=None,
                medians={"members": 0.2, "generated": 0.4},
            ),
        ),
    )


def test_a_run_opens_with_a_figure_and_its_table(tmp_path: Path) -> None:
    found = run()
    given = {"model": "a GPT", "auditor": "A & B", "date": "2025-03-01", "notes": "Handed over."}
    found.report(tmp_path / "report.html", **given)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for text in ("a GPT", "A & B", "2025-03-01", "Handed over."):
        assert text in words(page)
    section = page.split("<h2>All targets</h2>")[1].split("</section>")[0]
    assert section.index("<svg") < section.index("<table")
    (table,) = re.findall(r"<tbody>(.*?)</tbody>", section, re.DOTALL)
    cells = [text.replace("\u00a0", " ") for text in re.findall(r">([^<>\n]+)</t[hd]>", table)]
    assert cells == [cell for line in found.table() for cell in line]


def test_audits_are_defined_where_their_names_stand() -> None:
    note = run().note
    for name in ("PANORAMIA", "RM;RN", "O(1)"):
        assert f" {name}: " in note or f" {name}, " in note
    alone = replace(run(), rows=tuple(row for row in run().rows if row.audit == "PANORAMIA"))
    assert "RM;RN" not in alone.note
    assert " PANORAMIA: members against generated non-members." in alone.note


def test_the_note_says_why_columns_do_not_add_up() -> None:
    found = run()
    adding = [
        Decimal(number(most.mean)) - Decimal(number(c.mean)) == Decimal(number(tilde.mean))
        for row in found.rows
        for most, c, tilde in [(row.c_plus_epsilon_lb, row.c_lb, row.epsilon_tilde)]
        if most is not None and c is not None and tilde is not None
    ]
    assert ("need not add up" in found.note) == (not all(adding))
    assert "ε̃ is c + ε less c" in found.note


def test_bounds_and_estimates_are_marked_apart() -> None:
    axes = run().plot("audits")
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["estimate", "lower bound"]
    marks = [line for line in axes.lines if line.get_marker() in {"o", ">"}]
    for line in marks:
        filled = line.get_markerfacecolor() != plots.PAPER
        assert filled == (line.get_marker() == ">")
    assert len([line for line in marks if len(np.asarray(line.get_xdata()))]) == 4
    plt.close("all")


# --- figures of next to nothing -------------------------------------------------------------------


@dataclass(frozen=True)
class Empty:
    """A ranking with a bound whose curve has no cut, or none with a bound."""

    curve: Curve
    bound: float = 1.0
    ceiling: float = 2.0
    guesses: int = 1
    correct: int = 1
    auc: float = 0.5

    @property
    def roc(self) -> Roc:
        """No threshold."""
        return Roc(*(np.zeros(0, dtype=kind) for kind in (int, int, float, float)))


def curve(cuts: int) -> Curve:
    """Return a curve that recalls nothing and bounds nothing at any cut."""
    made = np.arange(1, cuts + 1)
    nothing = np.zeros(cuts)
    return Curve(made, np.zeros(cuts, dtype=int), nothing, nothing, np.full(cuts, np.nan))


@pytest.mark.parametrize("cuts", [0, 3])
@pytest.mark.parametrize("plot", plots.PLOTS.values(), ids=plots.PLOTS)
def test_curves_of_nothing_can_be_drawn(plot: plots.Plot, cuts: int) -> None:
    ranking = Empty(curve(cuts))
    drawn = SimpleNamespace(
        kind="lower_bound",
        series=(Series("this model", "ε", "", plots.MEMBER, "1.00", ranking),),
        histogram=Histogram(np.linspace(0, 1, 61), *(np.zeros(60, dtype=int) for _ in "mn")),
        profile=None,
    )
    with plots.house_style():
        axes = plt.figure().add_subplot()
    assert isinstance(plot(drawn, axes), Axes)
    plt.close("all")


@pytest.mark.parametrize("cuts", [0, 3])
def test_no_line_of_equal_bounds_without_a_bound(cuts: int) -> None:
    assert np.isnan(iso_bound_precision(curve(cuts), 1.0)).all()
