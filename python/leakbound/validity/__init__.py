"""How often audits claim more than the truth: simulated, and judged by exact binomial tests.

A case is an audit with its claim, cut policy and sides, on games whose truth is known. An audit at
confidence 1 - β may claim more than the truth in a share β of games, and an audit that is offered
for comparison only should be seen to do so more often. `run` plays the games, with the audits of
this package or with an attack of yours.

Examples
--------
>>> report = run(cases("one-run both noise"), repetitions=50)
>>> report.ok
True
"""

from leakbound.validity.defaults import attack_cases, cases
from leakbound.validity.suite import Case, Rate, ValidityReport, most_errors, run

__all__ = ["Case", "Rate", "ValidityReport", "attack_cases", "cases", "most_errors", "run"]
