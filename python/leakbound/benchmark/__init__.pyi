from leakbound.benchmark.running import Audit as Audit
from leakbound.benchmark.running import run as run
from leakbound.benchmark.table import Attack as Attack
from leakbound.benchmark.table import Scores as Scores
from leakbound.benchmark.table import Summary as Summary
from leakbound.benchmark.table import Table as Table
from leakbound.benchmark.table import draw_bounds as draw_bounds
from leakbound.benchmark.table import draw_false_claims as draw_false_claims
