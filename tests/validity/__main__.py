"""`python -m validity`: the whole grid, or the rows of `make test` with and without a fault."""

import argparse
import hashlib
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from leakbound._base.workers import end_with_parent
from validity.catalogue import cases
from validity.doubled import judge, power
from validity.suite import run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m validity", description=__doc__)
    parser.add_argument("words", nargs="*", help="words that a row must have")
    parser.add_argument("--long", action="store_true", help="thousands of games of every row")
    parser.add_argument("--repetitions", type=int, help="games of each row, instead")
    parser.add_argument("--doubled", action="store_true", help="rows near nominal, and faulty")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--table", type=Path, help="write the counts as Markdown here")
    return parser


def _rows_as_they_are() -> str:
    """Return a digest of this folder: counts of rows that were written otherwise are left alone."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _print_doubled(words: str) -> bool:
    """Print each row near its nominal rate, and what becomes of it at twice the level."""
    tests, seen = sum(case.quick > 0 for case in cases()), True
    for case in cases(words):
        if not case.quick:
            continue
        rate, faulty = judge(case, tests)
        if faulty is None:
            continue
        seen &= faulty.verdict == "fails"
        print(  # noqa: T201 (what the command prints)
            f"{rate.rate / case.error:4.2f} of nominal, faulty {faulty.rate / case.error:4.2f}: "
            f"{faulty.verdict}; {rate.repetitions:,} games, power "
            f"{power(case.error, tests, rate.repetitions):.3f}; {case.name}",
            flush=True,
        )
    return seen


def main() -> int:
    """Play rows, print or write the counts, and say whether all came out as expected."""
    asked = _parser().parse_args()
    words = " ".join(asked.words)
    if asked.doubled:
        return 0 if _print_doubled(words) else 1
    with ExitStack() as stack:
        executor = None
        if asked.workers > 1:
            context = multiprocessing.get_context("spawn")
            pool = ProcessPoolExecutor(asked.workers, context, initializer=end_with_parent)
            executor = stack.enter_context(pool)
        report = run(
            cases(words),
            repetitions=asked.repetitions or ("long" if asked.long else "quick"),
            seed=asked.seed,
            executor=executor,
            checkpoint=asked.checkpoint and asked.checkpoint / _rows_as_they_are(),
            progress=True,
        )
    if asked.table:
        asked.table.parent.mkdir(parents=True, exist_ok=True)
        asked.table.write_text(report.to_markdown(), encoding="utf-8")
    print(report.summary() if asked.table else report.to_markdown())  # noqa: T201
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
