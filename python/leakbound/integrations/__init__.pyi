from leakbound.integrations.watch import DPSGDWatch as DPSGDWatch
from leakbound.integrations.watch import accounted_by as accounted_by
from leakbound.integrations.watch import watch_dp_sgd as watch_dp_sgd
