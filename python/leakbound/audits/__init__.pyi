from leakbound.audits.choices import Choices as Choices
from leakbound.audits.coins import Coins as Coins
from leakbound.audits.panoramia.audit import Panoramia as Panoramia
from leakbound.audits.random_split import RandomSplit as RandomSplit
from leakbound.audits.road import audit as audit
from leakbound.audits.stream import Stream as Stream
from leakbound.audits.synthetic import audit_synthetic as audit_synthetic
from leakbound.audits.zero_run.audit import ZeroRun as ZeroRun
