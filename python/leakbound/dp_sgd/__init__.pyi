from leakbound.audits.dp_sgd.step.neighbours import neighbouring_batches as neighbouring_batches
from leakbound.audits.dp_sgd.step.pairs import Batch as Batch
from leakbound.audits.dp_sgd.step.pairs import Pair as Pair
from leakbound.audits.dp_sgd.step.probe import probe_dp_step as probe_dp_step
from leakbound.integrations.watch import watch_dp_sgd as watch_dp_sgd
from leakbound.results.dp_sgd import DPSGDAudit as DPSGDAudit
from leakbound.results.dp_step import DPStepAudit as DPStepAudit
