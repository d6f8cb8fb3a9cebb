"""Tables and figures of the papers, computed anew: ours beside the printed, and why they differ.

Examples
--------
>>> outcome = REPRODUCTIONS["fdp-confidence"].compute(full=False)
>>> outcome.columns[:2]
('confidence', 'delta')
"""

from leakbound.experiments.papers.fdp import FDP
from leakbound.experiments.papers.panoramia import PANORAMIA
from leakbound.experiments.papers.protocol import Cell, Line, Outcome, Reproduction
from leakbound.experiments.papers.zero_run import ZERO_RUN
from leakbound.experiments.papers.zero_run_images import ZERO_RUN_IMAGES

__all__ = ["REPRODUCTIONS", "Cell", "Line", "Outcome", "Reproduction"]

REPRODUCTIONS: dict[str, Reproduction] = {**FDP, **PANORAMIA, **ZERO_RUN, **ZERO_RUN_IMAGES}
"""All that can be reproduced, by name."""
