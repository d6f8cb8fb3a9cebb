"""The first sentence of a report: how often who has the model is right, where that is proved."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import report
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from noisy_steps import EXAMPLES, play
from oracle_calls import coins, panoramia, prior, scored, split, synthetic, trials, zero_run


def choices(k: int) -> Any:
    chosen = np.arange(60) % k
    scores = 5 * np.eye(k)[chosen] + np.random.default_rng(0).normal(size=(60, k)) / 4
    return lb.audit(scores, lb.Choices(chosen, k), seed=0)


def users() -> lb.AuditResult:
    member = np.repeat(np.arange(80) % 2, 2)
    scores = 9.0 * member + np.random.default_rng(0).normal(size=160)
    design = lb.RandomSplit(member, groups=np.arange(160) // 2, unit="user")
    return lb.audit(scores, design, seed=0)


SAID: dict[str, tuple[Callable[[], Any], str, int]] = {
    "coins": (lambda: coins("leaks"), "for some records whether they were in the training data", 2),
    "(ε, δ)": (lambda: coins("leaks", "approx"), "for some records whether they were in", 2),
    "split": (lambda: split("leaks"), "in some cases which of two records was in", 2),
    "users": (users, "in some cases which of two users was in the training data", 2),
    "secrets": (lambda: choices(4), "in some cases which of 4 candidates was in", 4),
    "two candidates": (lambda: choices(2), "in some cases which of 2 candidates was in", 2),
    "table": (
        lambda: synthetic("copies", "pure", challenge=False),
        "Someone who has the synthetic",
        2,
    ),
}
SILENT: dict[str, Callable[[], Any]] = {
    "nothing proved": lambda: coins("noise"),
    "a family": lambda: coins("leaks", "gaussian"),
    "a condition": lambda: zero_run("pure"),
    "an estimate": lambda: panoramia(leak=3.0),
    "a mechanism": lambda: trials("leaks", "pure"),
    "coins that are not even": lambda: prior("one", "kl", "both"),
    "copies": lambda: lb.audit(scored("leaks")[0], lb.Coins(scored("leaks")[1], copies=3), seed=0),
    "every step": lambda: audit_dp_sgd(
        play(1), claim=lb.ApproxDP(delta=1e-5), examples=(EXAMPLES,) * 2
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_the_first_sentence_is_the_bound_in_hundredths(name: str) -> None:
    make, words, k = SAID[name]
    result = make()
    said = result.summary()
    assert words in said.plainly
    assert "ε" not in said.plainly
    numbers = re.search(r"at least (\d+) times in 100 \(by chance: (\d+) times\)", said.plainly)
    assert numbers is not None
    most = 100 * math.exp(result.bound) / (k - 1 + math.exp(result.bound))
    assert most - 1.1 < int(numbers[1]) <= most
    assert int(numbers[2]) == math.ceil(100 / k)
    page = re.sub(r"<style>.*?</style>", "", report.render(result), flags=re.DOTALL)
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page).replace("\u00a0", " "))
    assert plain.index(said.plainly) < plain.index(said.headline[:20])
    assert str(said).startswith(said.plainly)


@pytest.mark.parametrize("name", SILENT)
def test_where_it_is_not_proved_it_is_not_said(name: str) -> None:
    result = SILENT[name]()
    assert result.summary().plainly == ""
    assert "Someone who has" not in str(result)


def test_the_plural_of_the_unit_is_that_of_the_noun() -> None:
    member = np.arange(200) % 2 == 0
    scores = member + np.arange(200) / 1e3
    for design, words in (
        (lb.Coins(member, unit="city"), "for some cities whether they were in"),
        (lb.RandomSplit(member, unit="company"), "which of two companies was in"),
        (lb.Coins(member, unit="class-box"), "for some class-boxes whether"),
    ):
        said = lb.audit(scores, design, claim=lb.PureDP(), seed=0).summary().plainly
        assert words in said


def test_a_bound_beyond_what_rates_show_is_not_rounded_to_certainty() -> None:
    member = np.arange(20_000) % 2 == 0
    result = lb.audit(member + np.arange(20_000) / 1e6, lb.Coins(member), seed=0)
    assert result.bound > 7
    assert "at least 99 times in 100" in result.summary().plainly


def test_a_report_leads_to_the_page_for_its_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    result = coins("leaks")
    assert "For regulators and assessors" in report.render(result)
    found = type("Found", (), {"get_all": lambda *_: ["Documentation, https://example.org/d/"]})
    monkeypatch.setattr("leakbound.report.page.metadata", lambda _: found())
    assert 'href="https://example.org/d/regulators.html">For regulators' in report.render(result)
