"""To name the worst of several models is a claim about all of them, at the level it states."""

import re
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

import flat
import leakbound as lb
from leakbound import report
from leakbound._base import formatting
from leakbound.errors import OptionError
from leakbound.report import joint_confidence
from pages import words_of

MODELS, REPORTS, BETA = 20, 100, 0.05


def audit(
    shift: float, *, seed: int = 5, confidence: float = 0.95, m: int = 300, **how: Any
) -> lb.AuditResult:
    rng = np.random.default_rng(seed)
    member = rng.random(m) < 0.5
    return flat.coins(rng.normal(size=m) + shift * member, member, confidence=confidence, **how)


def innocents(number: int, confidence: float) -> dict[str, lb.AuditResult]:
    """Audits of models that memorised nothing, of which one in twenty may be accused."""
    first = MODELS * number
    return {
        f"{i}": audit(0.0, seed=first + i, confidence=confidence, m=100, cuts=lb.Fixed(100))
        for i in range(MODELS)
    }


def headline_of_many(results: dict[str, lb.AuditResult]) -> str:
    return report.headline_of_many({name: one.summary() for name, one in results.items()})


def test_the_headline_on_innocent_models_accuses_at_its_level() -> None:
    """Each of the 20 bounds may be too large in 5 % of its audits: in some of them in 60 %."""
    together, singly, joined = 0, 0, 0
    for number in range(REPORTS):
        apart = innocents(number, 1 - BETA)
        together += headline_of_many(innocents(number, 1 - BETA / MODELS))[:7] != "Nothing"
        joined += headline_of_many(apart)[:7] != "Nothing"
        singly += any(one.summary().headline[:7] != "Nothing" for one in apart.values())
    assert joined == 0  # 20 bounds at 95 % leave no confidence for all of them
    assert scipy_stats.binom.sf(together - 1, REPORTS, BETA) > 1e-3
    # any of 20 bounds at 95 % is above 0 in 1 - 0.956^20 = 59 % of the reports
    assert scipy_stats.binom.cdf(singly, REPORTS, 0.45) > 1 - 1e-3


def test_the_headline_states_what_is_left_for_all_models() -> None:
    shares = re.compile(r"\(([\d.]+) % confidence, simultaneously over the (\d+) models\)")
    for models, confidence, joint in ((2, 0.95, "90"), (7, 1 - 0.05 / 7, "95"), (19, 0.95, "5")):
        words = headline_of_many({str(i): audit(3.0, confidence=confidence) for i in range(models)})
        assert shares.findall(words) == [(joint, str(models))]
        assert words.startswith(f"All {models} models leak. The worst is “0”: no ε-DP guarantee")
    none = headline_of_many({str(i): audit(3.0) for i in range(20)})
    assert none.startswith("Nothing is claimed of the 20 models together")
    assert "Audit each at a confidence of 1 - 0.05/20" in none


def test_an_estimate_takes_no_share_of_the_confidence() -> None:
    rng = np.random.default_rng(1)
    member = rng.random(500) < 0.5
    scores = rng.normal(size=(2, 500)) + member
    estimate = lb.audit(scores[1], lb.Panoramia(member, baseline=scores[0]))
    assert joint_confidence(x.summary() for x in [audit(3.0), estimate, estimate]) == pytest.approx(
        0.95
    )


def test_a_page_speaks_of_simultaneous_bounds_where_it_has_them() -> None:
    shifts = {"much": 3.0, "little": 0.45, "nothing": 0.0}
    apart = {name: audit(shift) for name, shift in shifts.items()}
    together = {name: audit(shift, confidence=1 - BETA / 3) for name, shift in shifts.items()}
    assert apart["little"].bound > 0.1 > together["little"].bound
    page = words_of(report.render(apart, simultaneous=together))
    most = formatting.number(max(one.bound for one in together.values()))
    assert f"no guarantee of ε-differential privacy with ε < {most} holds" in page
    assert headline_of_many(together) in page
    assert "1 of 3 models leak." in page
    assert "pure DP, 95 % confidence over the 3 models" in page
    assert formatting.number(apart["much"].bound) in page
    alone = words_of(report.render(apart))
    assert "2 of 3 models leak." in alone
    assert "pure DP, 85 % confidence over the 3 models" in alone
    with pytest.raises(OptionError, match="one result for each model"):
        report.render(apart, simultaneous={"much": together["much"]})
