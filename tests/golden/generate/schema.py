"""Write docs/results.schema.json: what JSON of every result must be.

Usage: python tests/golden/generate/schema.py
"""

import json
from pathlib import Path

import leakbound as lb
from leakbound import panoramia, planning, propensity, validity
from leakbound._base.records import SCHEMA, Record, json_schema

FILE = Path(__file__).parents[3] / "docs" / "results.schema.json"
KINDS: tuple[type[Record], ...] = (
    lb.AuditResult,
    lb.SyntheticResult,
    lb.PanoramiaResult,
    lb.ZeroRunResult,
    panoramia.PanoramiaReport,
    lb.DPSGDAudit,
    lb.TradeOff,
    planning.Power,
    planning.CanariesNeeded,
    propensity.Falsification,
    propensity.FormTest,
    propensity.Overlap,
    validity.ValidityReport,
)


def text() -> str:
    """Return the content of the file."""
    return json.dumps(json_schema(KINDS, SCHEMA), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
