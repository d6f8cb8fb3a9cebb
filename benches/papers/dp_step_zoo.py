"""Right steps of DP-SGD, and steps with one fault each: how many of them a probe refutes.

Usage: python benches/papers/dp_step_zoo.py [WORD ...] [--first 1] [--seeds 10]

Prints a line for each step whose name has one of the words, and the totals: the seeds refuted, the
range of bounds on μ, what refuted how often, and the processor time of the longest probe.
"""

import argparse
import time
from collections import Counter

from dp_step_faults import STEP_FAULTS
from dp_step_models import NOISE, RIGHT, Case, probed

__all__ = ["main"]


def play(name: str, case: Case, seeds: range) -> int:
    """Probe a step with some seeds, print what was found, and return how many were refuted."""
    bounds: list[float] = []
    refutations_by_part: Counter[str] = Counter()
    refuted_seeds = 0
    longest_seconds = 0.0
    for seed in seeds:
        start = time.process_time()
        audit = probed(case, seed)
        seconds = time.process_time() - start
        longest_seconds = max(longest_seconds, seconds)
        bounds.append(audit.bound)
        refutations_by_part.update(audit.refuted_by)
        refuted_seeds += audit.check() == "refuted"
    counts = [f"{part} {times}" for part, times in refutations_by_part.items()]
    refuted_by = ", ".join(counts) or "nothing"
    print(
        f"{name}: {refuted_seeds} of {len(seeds)} refuted, "
        f"μ ≥ {min(bounds):.4g} to {max(bounds):.4g}, by {refuted_by}; {longest_seconds:.1f} s",
        flush=True,
    )
    return refuted_seeds


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
        refuted = 0
        probes = 0
        for name, case in cases.items():
            if is_chosen(name, given.words):
                refuted += play(name, case, seeds)
                probes += len(seeds)
        print(f"{kind}: {refuted} of {probes} refuted, claim μ = {1 / NOISE:.4g}")


def is_chosen(step: str, words: list[str]) -> bool:
    """Return whether the name of a step has one of the words; all are chosen if there are none."""
    return not words or any(word in step for word in words)


if __name__ == "__main__":
    main()
