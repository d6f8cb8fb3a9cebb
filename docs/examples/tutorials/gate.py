"""
A privacy gate in continuous integration
========================================

A release should stop if its privacy claim is refuted, and also if the claim could not be tested. A
test of a few lines checks both. This page runs three such tests and shows what pytest prints.
"""

# %%
# The test
# --------
# `assert_not_refuted` raises if the audit refutes the claim. If even a perfect attack could not
# have refuted it, the test is *inconclusive*, a separate outcome that also fails the run. With
# ``strict=True``, warnings and contradicted assumptions make a test inconclusive too.
#
# The scores are simulated here. In your repository they come from a script that trains the model
# with canaries and writes their scores.

import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
(folder / "conftest.py").write_text('pytest_plugins = ["leakbound.testing"]\n', encoding="utf-8")
_ = (folder / "test_release.py").write_text(
    """
import numpy as np
import leakbound as lb
from leakbound.testing import assert_not_refuted


def audit(canaries, leak):
    plan = lb.InclusionPlan.create(canaries, seed=1)
    scores = np.random.default_rng(2).normal(size=canaries) + leak * plan.member
    return lb.audit(scores, lb.Coins(plan), seed=3)


def test_a_model_that_keeps_its_promise():
    assert_not_refuted(audit(1_000, leak=0.3), epsilon=2.0, strict=True)


def test_a_model_that_breaks_it():
    assert_not_refuted(audit(1_000, leak=2.0), epsilon=2.0, strict=True)


def test_with_too_few_canaries():
    assert_not_refuted(audit(15, leak=0.3), epsilon=2.0, strict=True)
""",
    encoding="utf-8",
)

# %%
# What pytest prints
# ------------------

options = ["-q", "--no-header", "-p", "no:cacheprovider", "--tb=line"]
command = [sys.executable, "-m", "pytest", *options]
ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
print(ran.stdout.replace(str(folder), "."))

# %%
# The first test passes, the second fails, and the third is inconclusive: with 15 canaries even a
# perfect attack could not refute ε = 2. `leakbound.planning.canaries_needed` says how many are
# needed.
#
# The same on the command line
# ----------------------------
# Exit codes tell a workflow what to do: 0 passes, 1 is a refuted claim, 3 is inconclusive, and 2
# and 70 are broken builds.
#
# .. code-block:: console
#
#    $ leakbound coins scores.csv --plan plan.npz --claim eps=2 --seed 0 --out audit
#
# :doc:`/guides/gate` has a workflow for GitHub Actions, and explains how often a correct release is
# stopped by chance.
