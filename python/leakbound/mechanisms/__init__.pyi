from leakbound.mechanisms.local import GRR as GRR
from leakbound.mechanisms.local import OUE as OUE
from leakbound.mechanisms.local import SUE as SUE
