"""Audits: one verb, a design for each way that membership comes about, and a stream."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound.audits.choices import Choices as Choices
    from leakbound.audits.coins import Coins as Coins
    from leakbound.audits.panoramia.audit import Panoramia as Panoramia
    from leakbound.audits.random_split import RandomSplit as RandomSplit
    from leakbound.audits.road import audit as audit
    from leakbound.audits.stream import Stream as Stream
    from leakbound.audits.synthetic import audit_synthetic as audit_synthetic
    from leakbound.audits.zero_run.audit import ZeroRun as ZeroRun
else:
    from leakbound._base.imports import lazy_attributes

    __getattr__, __dir__, __all__ = lazy_attributes(
        __name__,
        {
            "leakbound.audits.road": "audit",
            "leakbound.audits.choices": "Choices",
            "leakbound.audits.coins": "Coins",
            "leakbound.audits.panoramia.audit": "Panoramia",
            "leakbound.audits.random_split": "RandomSplit",
            "leakbound.audits.stream": "Stream",
            "leakbound.audits.synthetic": "audit_synthetic",
            "leakbound.audits.zero_run.audit": "ZeroRun",
        },
    )
