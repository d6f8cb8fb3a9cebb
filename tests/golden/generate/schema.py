"""Write docs/results.schema.json: what JSON of every result must be.

Usage: python tests/golden/generate/schema.py
"""

import json
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

import leakbound as lb
from leakbound import planning, propensity
from leakbound._base.records import SCHEMA, Record, adapter

FILE = Path(__file__).parents[3] / "docs" / "results.schema.json"
KINDS: tuple[type[Record], ...] = (
    lb.AuditResult,
    lb.SyntheticResult,
    lb.PanoramiaResult,
    lb.ZeroRunResult,
    lb.panoramia.PanoramiaReport,
    lb.DPSGDAudit,
    lb.DPStepAudit,
    lb.dp_sgd.BatchesAudit,
    lb.TradeOff,
    planning.Power,
    planning.CanariesNeeded,
    propensity.Falsification,
    propensity.FormTest,
    propensity.Overlap,
)


class _Untitled(GenerateJsonSchema):
    """Schemas without titles of fields, which would repeat their names."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False


def text() -> str:
    """Return the content of the file."""
    forms, content = TypeAdapter.json_schemas(
        [(kind.__name__, "validation", adapter(cast("Any", kind))) for kind in KINDS],
        schema_generator=_Untitled,
    )
    for kind in KINDS:
        content["$defs"][kind.__name__]["properties"]["schema"] = {"const": SCHEMA}
    schema = {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": f"Results of leakbound, schema {SCHEMA}",
        "required": ["schema"],
        "oneOf": list(forms.values()),
        **content,
    }
    return json.dumps(schema, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
