"""What a result says to do next follows from its own numbers."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import planning, report
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from leakbound.results import Accounted
from leakbound.results.descriptions.next_steps import _examples_needed
from noisy_steps import EXAMPLES, play
from oracle_calls import coins, panoramia, split, zero_run
from pages import words_of

M = 1000
DOCS = Path(__file__).parents[3] / "docs"


@cache
def game() -> Any:
    rng = np.random.default_rng(3)
    return rng.random(M) < 0.5, rng.random(M) < 0.05, rng.normal(size=M)


def audited(leak: float, claim: Any = None, **checked: Any) -> Any:
    member, _, noise = game()
    found = lb.audit(noise + leak * member, lb.Coins(member), claim=claim, seed=1)
    return found.with_check(**checked) if checked else found


def tail() -> Any:
    member, leaky, noise = game()
    return lb.audit(noise + 4 * (member & leaky), lb.Coins(member), seed=1)


def at_one_end() -> Any:
    member, leaky, noise = game()
    scores = noise - 6 * (~member & leaky)
    return lb.audit(scores, lb.RandomSplit(member), cuts=lb.Fixed(guesses=30), seed=1)


def indexed() -> Any:
    member, _, noise = game()
    features = np.column_stack([member + 0.1 * noise, noise])
    return lb.audit(noise + member, lb.RandomSplit(member, features=features), seed=1)


def apart(known: str, claim: Any = None) -> Any:
    """Audit members and non-members whose features tell them apart."""
    member, _, noise = game()
    year = np.where(member, 2020.0, 2023.0) + (noise > 0)
    design: dict[str, Any] = {
        "year": lambda: lb.ZeroRun(member, features=year[:, None]),
        "known": lambda: lb.ZeroRun(member, np.where(member, 0.995, 0.005)),
        "tamper": lambda: lb.ZeroRun(member, np.where(member, 0.995, 0.005), correction="tamper"),
        "many": lambda: lb.ZeroRun(
            member, features=np.random.default_rng(0).normal(size=(M, 300)), falsify=False
        ),
    }
    return lb.audit(noise + member, design[known](), claim=claim, seed=1)


REASONS: dict[str, tuple[Any, str, str]] = {
    "year": (
        None,
        "features separate members from non-members",
        "Features separate members from non-members",
    ),
    "year, pure": (
        lb.PureDP(),
        "features separate members from non-members",
        "Features separate members from non-members",
    ),
    "known": (
        None,
        "members and non-members hardly overlap",
        "Look for non-members that resemble the members more: matching kept",
    ),
    "known, pure": (
        lb.PureDP(),
        "members and non-members hardly overlap",
        "Look for members and non-members that resemble each other",
    ),
    "tamper": (
        None,
        "members and non-members hardly overlap",
        "Look for members and non-members that resemble each other",
    ),
    "many": (
        None,
        "1000 labels for 301 coefficients",
        "1000 labels for 301 coefficients: a confidence set of their log-odds needs five for each",
    ),
}
"""Groups that cannot be compared, the claim, why nothing is proved, and the next step."""


@pytest.mark.parametrize("name", REASONS)
def test_where_groups_do_not_overlap_the_reason_comes_first_and_is_the_next_step(
    name: str,
) -> None:
    claim, reason, step = REASONS[name]
    said = apart(name.partition(",")[0], claim).summary()
    assert said.epsilon == 0
    assert said.paragraphs[0].startswith(f"The bound is 0 because {reason}")
    assert said.next_steps[0].startswith(step)
    everything = str(said) + str(said.metrics)
    for wrong in ("Audit more examples", "To be able to", "target", "Matching kept", "0 of its 0"):
        assert wrong not in everything
    assert "kept 1,000 of 1,000" not in everything


def test_a_page_does_not_suggest_a_feature_that_tells_groups_apart() -> None:
    for page in ("audits/zero-run.md", "theory/propensity.md"):
        text = (DOCS / page).read_text(encoding="utf-8")
        assert "source, date" not in text
    assert "such as the year here" in (DOCS / "audits/zero-run.md").read_text(encoding="utf-8")


def test_no_target_is_named_that_nobody_set() -> None:
    for found in (coins("few"), zero_run("pure", shift=3.0)):
        assert "target" not in str(found.summary())
    claimed = audited(2.0, epsilon=8.0).summary()
    assert "To be able to refute the claimed ε = 8, audit" in str(claimed)


def test_shift_is_not_said_to_be_a_leak() -> None:
    """Scores that know features only separate the groups."""
    found = zero_run("pure", leak=2.5, shift=2.0)
    assert found.refutes
    assert "AUC" not in " ".join(found.summary().next_steps)


def few_alike() -> Any:
    """Audit a few members and non-members of one distribution."""
    member, _, noise = game()
    design = lb.ZeroRun(member[:8], np.full(8, 0.5))
    return lb.audit(noise[:8], design, claim=lb.PureDP(), seed=1)


def run(**given: Any) -> Any:
    options = {"accounted": Accounted(epsilon=600.0, delta=1e-6), "examples": (EXAMPLES,) * 2}
    extra = {name: given.pop(name) for name in list(given) if name in options}
    return audit_dp_sgd(play(1, **given), **(options | extra))  # type: ignore[arg-type]


RULES: dict[str, tuple[Callable[[], Any], str]] = {
    "inverted scores": (lambda: audited(-2.0), "Check the sign of the score: members score lower"),
    "unlikely coins": (
        lambda: lb.audit(game()[2], lb.Coins(np.arange(M) < 560)),
        "Check “independent fair coins” before you use this result",
    ),
    "a claim out of reach": (
        lambda: audited(2.0, epsilon=8.0),
        "To be able to refute the claimed ε = 8, audit about",
    ),
    "too few examples": (lambda: coins("few"), "To be able to prove ε = 1, audit about"),
    "no signal": (lambda: audited(0.0), "choose a stronger attack, such as offline_lira or rmia"),
    "no signal, of coins": (lambda: audited(0.0), "Audit canaries that the model can only get"),
    "a weak signal": (
        lambda: audited(0.25),
        "Audit more examples, about 4,000: the scores separate members from non-members (AUC 0.5",
    ),
    "a leak in few records": (tail, "The bound is from few records. Look at the 2"),
    "a leak at one end": (
        at_one_end,
        "The bound is from few records. Look at the 30 examples with",
    ),
    "a leak of many records": (
        lambda: audited(3.0),
        "Reduce overfitting (train less",
    ),
    "all that examples allow": (lambda: coins("perfect"), "To prove more, audit more examples:"),
    "a claim that stands": (
        lambda: audited(1.0, epsilon=4.0),
        "To test the claimed ε = 4 harder, choose a stronger attack",
    ),
    "pure DP": (tail, "use claim=ApproxDP(delta=0.0001)"),
    "a split that is not random": (indexed, "drop columns that were written after the split"),
    "refuted propensities": (
        lambda: zero_run("pure", given="half", features=True),
        "Fit richer propensities, or fit them to more examples",
    ),
    "an exploratory number": (
        lambda: zero_run("pure", given="replicates"),
        'Audit with uncertainty="set"',
    ),
    "matching alone": (lambda: zero_run("gaussian"), "Check the propensities before you rely on"),
    "few matched": (
        lambda: zero_run("gaussian", shift=2.0),
        "Look for non-members that resemble the members more: matching kept",
    ),
    "composition": (
        lambda: zero_run("gaussian", "composition"),
        'Audit with correction="match": composition subtracts the most',
    ),
    "certain guesses": (
        lambda: apart("known", lb.PureDP()),
        "Look for members and non-members that resemble each other: with the odds that features",
    ),
    "too few examples of one distribution": (
        few_alike,
        "examples: with these 8, even a perfect attack reaches only ε = ",
    ),
    "little beyond features": (
        lambda: zero_run("pure", leak=0.0),
        "these scores say too little about membership beyond the features",
    ),
    "a generator that is far": (
        lambda: panoramia(leak=0.0, shift=8.0),
        "Improve the generator: its examples are so easy to distinguish",
    ),
    "an attack like the baseline": (
        lambda: panoramia(leak=0.0),
        "Use a stronger attack: with the model its AUC is",
    ),
    "an estimate without features": (
        lambda: panoramia(leak=2.0),
        "Pass features to get a conditional lower bound",
    ),
    "a conditional bound": (
        lambda: panoramia(leak=3.0, shift=1.0, features=True),
        "Report the conditional bound, ε ≥ 2.64, and its condition",
    ),
    "less noise": (lambda: run(noise=0.2), "Check how noise is scaled"),
    "batches of one size": (lambda: run(batch=lambda _: 20), "Use a loader that draws Poisson"),
    "an unknown size": (lambda: run(examples=None), "Pass examples=len(dataset)"),
    "a wrong accountant": (
        lambda: run(accounted=Accounted(epsilon=0.01, delta=1e-6)),
        "Recompute ε with another accountant",
    ),
    "a gap": (run, "To get closer to the accounted ε ("),
}


@pytest.mark.parametrize(("make", "words"), RULES.values(), ids=RULES)
def test_each_rule_is_followed_where_numbers_call_for_it(
    make: Callable[[], Any], words: str
) -> None:
    said = make().summary()
    assert any(words in step for step in said.next_steps), said.next_steps
    assert 1 <= len(said.next_steps) <= 3
    assert all(step in str(said) for step in said.next_steps)
    proves = (step.removeprefix("To be able to prove ") for step in said.next_steps)
    assert said.refutes or not any(" prove " in step for step in proves)


def test_a_withheld_bound_has_no_other_advice_and_a_perfect_attack_no_finer_scores() -> None:
    perfect = lb.audit(game()[0] + 0.0, lb.Coins(game()[0])).summary()
    assert not any("finer" in step for step in perfect.next_steps)
    for make in (indexed, lambda: zero_run("pure", given="half", features=True)):
        assert len(make().summary().next_steps) == 1


def test_a_leak_is_in_few_records_or_in_many() -> None:
    for found in (tail(), audited(3.0), audited(1.0), split("uneven", "pure", "default", "strata")):
        said = " ".join(found.summary().next_steps)
        assert ("most exposed" in said) + ("spread over many" in said) == 1


@pytest.mark.parametrize("target", [1.0, 4.0, 8.0])
def test_as_many_examples_as_are_named_are_examples_needed(target: float) -> None:
    found = coins("few")
    enough = _examples_needed(found, target)
    least = planning.ceiling(enough, cuts=lb.KLScan(), sides="both")
    assert target <= least <= target + 0.3


def test_leaks_is_said_only_of_what_the_claim_does_not_allow() -> None:
    for epsilon, leaks in ((0.5, True), (4.0, False), (9.0, False)):
        said = audited(2.0, epsilon=epsilon).summary()
        assert said.leaks == said.headline.startswith("This model leaks") == leaks
        assert ("leaks" in said.verdict) == leaks
    assert "ε is at least" in audited(2.0, epsilon=4.0).summary().headline


def test_rates_have_exact_limits_or_say_what_they_need() -> None:
    few = {one.name: one for one in audited(2.0).summary().metrics}
    assert few["TPR at 0.1 % FPR"].value == "unknown"
    assert "needs 1,000 non-members; there are 498" in few["TPR at 0.1 % FPR"].note
    member = np.arange(4000) % 2 == 0
    scores = np.where(member, 1.0, np.arange(4000) < 4) + np.arange(4000) / 1e5
    many = {one.name: one for one in lb.audit(scores, lb.Coins(member)).summary().metrics}
    assert many["TPR at 1 % FPR"].value == "100.0 %"
    assert many["TPR at 0.1 % FPR"].value == "100.0 %"
    limits = lb.stats.clopper_pearson
    shown = few["Accuracy"]
    right = round(float(shown.value.removesuffix(" %")) * 10)
    low, high = limits(right, 1000, beta=0.025), 1 - limits(1000 - right, 1000, beta=0.025)
    assert f"95 % interval {100 * low - 0.05:.1f} % to {100 * high + 0.05:.1f} %;" in shown.note


@pytest.mark.parametrize(("m", "digits"), [(2_500, 9), (30_000, 9), (30_000, 1)])
def test_rates_are_those_of_all_thresholds(m: int, digits: int) -> None:
    """A drawn curve has fewer thresholds than there are scores: the rates do not come from it."""
    rng = np.random.default_rng(m)
    member = rng.random(m) < 0.5
    scores = (rng.normal(size=m) + 2 * member).round(digits)
    roc = lb.audit(scores, lb.Coins(member), seed=0).roc
    descending = np.unique(scores)[::-1]
    others, members = (
        part.size - np.searchsorted(np.sort(part), descending)
        for part in (scores[~member], scores[member])
    )
    for rate in (0.01, 0.001):
        most = rate * (~member).sum()
        shown = roc.members[(roc.guesses - roc.members) <= most].max(initial=0)
        assert shown == members[others <= most].max(initial=0)
    halves = abs(others + members - m / 2)
    assert abs(roc.guesses - m / 2).min() == halves.min()


def test_targets_beyond_every_audit_name_no_number() -> None:
    for epsilon in (50.0, 720.0, 800.0):
        steps = audited(2.0, epsilon=epsilon).summary().next_steps
        assert any("audit more examples: " in one for one in steps)


def test_a_page_shows_what_next_and_folds_the_theory() -> None:
    found = tail()
    page = report.render(found)
    assert found.exposed is not None
    for text in (*found.summary().next_steps, f"Most exposed members {found.exposed.rows.size} at"):
        assert text in words_of(page)
    open_, folded = page.split("<details>", 1)
    assert found.theorem.split(".")[0][:40] in words_of(folded)
    assert "Why it holds" not in words_of(open_)
    assert not any(word in words_of(page) for word in ("kappa", "min_guesses"))
