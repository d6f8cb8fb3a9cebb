from leakbound.integrations.probing import opacus_step as opacus_step
from leakbound.integrations.watch import DPSGDWatch as DPSGDWatch
from leakbound.integrations.watch import accounted_by as accounted_by
from leakbound.integrations.watch import watch_dp_sgd as watch_dp_sgd
