"""Right steps of DP-SGD, and steps with one fault each: how many of them a probe refutes.

Usage: python benches/papers/dp_step_zoo.py [WORD ...] [--first 1] [--seeds 10]

Prints a line for each step whose name has one of the words, and the totals: the seeds refuted, the
range of bounds on μ, what refuted how often, and the processor time of the longest probe.
"""

import argparse
import sys
import time
from collections import Counter

from dp_step_faults import STEP_FAULTS
from dp_step_models import NOISE, RIGHT, Case, probed

__all__ = ["main"]


def play(name: str, case: Case, seeds: range) -> int:
    """Probe a step with some seeds, print what was found, and return how many were refuted."""
    bounds: list[float] = []
    by: Counter[str] = Counter()
    refuted = 0
    longest = 0.0
    for seed in seeds:
        start = time.process_time()
        audit = probed(case, seed)
        longest = max(longest, time.process_time() - start)
        bounds.append(audit.bound)
        by.update(audit.refuted_by)
        refuted += audit.check() == "refuted"
    told = ", ".join(f"{part} {times}" for part, times in by.items()) or "nothing"
    write(
        f"{name}: {refuted} of {len(seeds)} refuted, μ ≥ {min(bounds):.4g} to {max(bounds):.4g}, "
        f"by {told}; {longest:.1f} s"
    )
    return refuted


def main(arguments: list[str] | None = None) -> None:
    """Play the steps that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", metavar="WORD", nargs="*", help="in names of steps; all if none")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    given = parser.parse_args(arguments)
    seeds = range(given.first, given.first + given.seeds)
    for kind, cases in (("faults", STEP_FAULTS), ("right steps", RIGHT)):
        chosen = {
            name: case
            for name, case in cases.items()
            if not given.words or any(word in name for word in given.words)
        }
        refuted = sum(play(name, case, seeds) for name, case in chosen.items())
        write(f"{kind}: {refuted} of {len(chosen) * len(seeds)} refuted, claim μ = {1 / NOISE:.4g}")


def write(line: str) -> None:
    """Print a line at once: the next may take seconds."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
