"""The report: complete, self-contained, honest about what its number is, readable by machines."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

import leakbound as lb
from leakbound import report
from leakbound.report.description import Overview
from pages import words_of

Result = lb.AuditResult | lb.PanoramiaResult

VOID = {"meta", "path", "use", "rect"}


def audit(shift: float, *, examples: int = 300, cuts: Any = None) -> lb.AuditResult:
    rng = np.random.default_rng(5)
    member = rng.random(examples) < 0.5
    scores = rng.normal(size=examples) + shift * member
    return lb.audit(scores, lb.Coins(member), cuts=cuts)


def generated() -> lb.PanoramiaResult:
    rng = np.random.default_rng(6)
    member = rng.random(600) < 0.5
    baseline, attack = rng.normal(size=(2, 600)) + np.outer([0.5, 2.0], member)
    return lb.audit(attack, lb.Panoramia(member, baseline=baseline))


RESULTS: dict[str, Result] = {
    "leaks": audit(2.0),
    "nothing": audit(0.0, examples=40),
    "estimate": generated(),
}


def elements(page: str, *tags: str) -> list[dict[str, str]]:
    """Return the attributes of every element of some kinds, or of all."""
    found = re.findall(r"<([a-zA-Z][\w:]*)([^>]*)>", page)
    return [
        dict(re.findall(r'([\w-]+)="([^"]*)"', attributes))
        for tag, attributes in found
        if not tags or tag in tags
    ]


@pytest.fixture(scope="module", params=RESULTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def html(name: str) -> str:
    return report.render(RESULTS[name])


def test_the_document_is_well_formed(html: str) -> None:
    inside: list[str] = []
    text = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    for closing, tag, closed in re.findall(r"<(/?)([a-zA-Z][\w:]*)[^>]*?(/?)>", text):
        if closing:
            assert inside.pop() == tag
        elif not closed and tag not in VOID:
            inside.append(tag)
    assert inside == []
    ids = [attributes["id"] for attributes in elements(html) if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert elements(html, "html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in elements(html, "meta")


def test_every_reference_within_the_page_has_a_target(html: str) -> None:
    ids = {attributes["id"] for attributes in elements(html) if "id" in attributes}
    targets = re.findall(r'(?:href="|url\()#([^")]+)', html)
    assert targets
    assert set(targets) <= ids


def test_nothing_is_fetched_from_anywhere(html: str) -> None:
    fetching = ("script", "link", "img", "iframe", "object", "embed", "base", "image")
    assert elements(html, *fetching) == []
    assert all("src" not in attributes for attributes in elements(html))
    assert "@import" not in html
    assert re.findall(r"url\((?!#)", html) == []
    links = [a["href"] for a in elements(html, "a")]
    outside = re.compile(r"https://(arxiv\.org/abs|doi\.org)/")
    assert all(link.startswith("#") or outside.match(link) for link in links)
    assert html.count("http") == sum(not link.startswith("#") for link in links)


def test_all_figures_are_inside_and_described(name: str, html: str) -> None:
    figures = [one for one in elements(html, "svg") if "role" in one]
    assert len(figures) == len(RESULTS[name].summary().figures)
    assert all(one["role"] == "img" and len(one["aria-label"]) > 40 for one in figures)
    for title in ("Precision and recall", "ROC", "Scores"):
        assert title in words_of(html)


def test_figures_take_their_colours_and_type_from_the_page(html: str) -> None:
    inside = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL))
    assert "var(--member)" in inside
    assert "font-family" not in inside
    assert re.findall(r"(?:fill|stroke): #", inside) == []


def test_light_dark_and_paper_are_all_provided_for(html: str) -> None:
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    used = set(re.findall(r"var\((--[a-z-]+)\)", html))
    defined = set(re.findall(r"^ +(--[a-z-]+):", html, flags=re.MULTILINE))
    assert used <= defined


def luminance(colour: str) -> float:
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_all_words_have_contrast_in_light_in_dark_and_on_paper() -> None:
    html = report.render(RESULTS["leaks"])
    themes = re.findall(r":root \{(.*?)\}", html, flags=re.DOTALL)
    assert len(themes) == 3
    for theme in themes:
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", theme))
        for behind in ("paper", "soft"):
            for words in ("ink", "muted", "member", "other", "alert"):
                low, high = sorted(luminance(colours[name]) for name in (behind, words))
                assert (high + 0.05) / (low + 0.05) >= 4.5, f"{words} on {behind}"


def test_a_refuted_propensity_model_is_named() -> None:
    rng = np.random.default_rng(4)
    member = rng.random(400) < 0.5
    x = rng.normal(size=400) + member - 0.5
    found = lb.audit(x + 3 * member, lb.Panoramia(member, baseline=x, features=x[:, None]))
    assert found.conditional is not None
    learnt = found.conditional.learnt
    assert learnt is not None
    products, *others = learnt.tests
    tests = (replace(products, p_value=2e-5, refuted=True), *others)
    learnt = replace(learnt, tests=tests)
    withheld = replace(found.conditional, bound=0.0, withheld=True, learnt=learnt)
    words = replace(found, conditional=withheld).summary().paragraphs[-1]
    assert "gives no bound" in words
    assert "the data contradict its propensities" in words
    assert "; p = 2e-05)" in words


def test_a_tiny_bound_is_stated_and_not_called_a_leak() -> None:
    tiny = replace(RESULTS["leaks"], bound=0.00123)
    assert tiny.verdict == "at least 0.001"
    said = "Almost nothing could be shown: ε is at least 0.001 (95 % confidence)"
    assert tiny.summary().headline.startswith(said)
    words = words_of(report.render(tiny))
    assert "leaks" not in words
    assert "ε is at least 0.001" in words


def test_what_users_write_is_escaped() -> None:
    html = report.render(RESULTS["leaks"], title="<script>x</script>", summary="a < b & c")
    assert "<script>" not in html
    assert "a < b & c" in words_of(html)


def test_the_same_result_gives_the_same_bytes() -> None:
    stored = lb.AuditResult.from_json(RESULTS["leaks"].to_json())
    assert report.render(stored) == report.render(RESULTS["leaks"])


def test_no_figure_and_no_setting_is_left_behind() -> None:
    before, figures = dict(mpl.rcParams), plt.get_fignums()
    report.render(RESULTS["leaks"])
    assert plt.get_fignums() == figures
    assert dict(mpl.rcParams) == before


def test_a_report_names_title_model_auditor_and_date(tmp_path: Path) -> None:
    path, result = tmp_path / "report.html", RESULTS["leaks"].with_check(epsilon=1.0)

    def facts() -> dict[str, str]:
        (listed,) = re.findall(r'<dl class="about">(.*?)</dl>', path.read_text("utf-8"), re.DOTALL)
        return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", listed))

    given: Any = {"title": "Audit <March>", "model": "ResNet <9>", "auditor": "A & B"}
    result.report(path, **given, date=date(2025, 3, 1), about={"Signal <b>": "<i>loss"})
    page = path.read_text("utf-8")
    assert page.count("Audit &lt;March&gt;") == 2
    assert not re.search("<(March|9|b|i)>", page)
    escaped = {"Model": "ResNet &lt;9&gt;", "Auditor": "A &amp; B", "Date": "2025-03-01"}
    assert escaped.items() <= facts().items()
    assert facts()["Signal &lt;b&gt;"] == "&lt;i&gt;loss"
    assert facts()["Design"] == "independent coin for each example"
    assert result.summary().answer.split(" (")[0].replace(" = ", "\u00a0=\u00a0") in page
    before = date.today().isoformat()
    result.report(path)
    assert before <= facts()["Date"] <= date.today().isoformat()
    assert facts()["Model"] == facts()["Auditor"] == "not stated"


def test_other_audits_stand_beside_in_a_table() -> None:
    first = ("5 epochs", "nothing refuted", "0.00")
    table = [("Model", "Verdict", "ε̂"), first, ("<b>", "leaks", "2")]
    overview = Overview("All models", table, "Each bound holds by itself.")
    words = words_of(report.render(RESULTS["leaks"], overview=overview))
    for text in (
        "All models Model Verdict ε̂ 5 epochs",
        "<b> leaks 2",
        "Each bound holds by itself.",
    ):
        assert text in words


def test_a_phone_needs_no_scrolling_sideways() -> None:
    """Long words break, and numbers that are wider than half of a page have a line of their own."""
    css = Path(report.__file__).with_name("templates").joinpath("report.css").read_text("utf-8")
    (main,) = re.findall(r"^main \{([^}]*)\}", css, re.MULTILINE)
    assert "overflow-wrap: break-word" in main
    narrow = css.partition("@media (max-width: 40rem)")[2].partition("@media")[0]
    (facts,) = re.findall(r"\.facts \{([^}]*)\}", narrow)
    assert "flex-wrap: wrap" in facts
    assert "grid-template-columns" not in facts
    colours = re.findall(r":root \{([^}]*)\}", css)
    palettes = [dict(re.findall(r"--(\w+): (#\w{6})", one)) for one in colours]
    assert len(palettes) == 3  # light, dark and printed
    for palette in palettes:
        for name in ("ink", "muted", "member", "other", "alert"):
            for ground in ("paper", "soft"):
                assert contrast(palette[name], palette[ground]) >= 4.5  # of WCAG 2, level AA


def contrast(one: str, other: str) -> float:
    """Return how much lighter one colour is than another, as WCAG 2 defines it."""
    light = []
    for colour in (one, other):
        parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        light.append(float(linear @ [0.2126, 0.7152, 0.0722]))
    return (max(light) + 0.05) / (min(light) + 0.05)
