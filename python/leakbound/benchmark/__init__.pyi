from leakbound.benchmark.figures import draw_bounds as draw_bounds
from leakbound.benchmark.figures import draw_false_claims as draw_false_claims
from leakbound.benchmark.games import Attack as Attack
from leakbound.benchmark.games import Scores as Scores
from leakbound.benchmark.running import Audit as Audit
from leakbound.benchmark.running import run as run
from leakbound.benchmark.table import Summary as Summary
from leakbound.benchmark.table import Table as Table
