"""The numbers of audits, of every design with every claim, policy and correction.

python tests/support/oracle.py                    compares with tests/golden/oracle.json
python tests/support/oracle.py --update REASON    writes what changed, and the reason
"""

import argparse
import json
import math
import re
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from oracle_calls import (
    CLAIMS,
    CUTS,
    FUNCTIONS,
    SIDES,
    Values,
    canaries,
    ceiling,
    coins,
    dp_sgd,
    panoramia,
    power,
    prior,
    split,
    stream,
    synthetic,
    tails,
    tally,
    values,
    zero_run,
)

__all__ = ["CASES", "Values", "differences", "read"]

FILE = Path(__file__).parents[1] / "golden" / "oracle.json"
RELATIVE = 1e-9
"""What machines may differ by in last bits, of exponentials and of sums, with room to spare."""
_HEX = re.compile(r"-?(0x|inf)")
CASES: dict[str, Callable[[], Values]] = {}
"""Every case by its name, which says what it is: a design and what it is called with."""


def add(design: Callable[..., Any], *given: Any, **options: Any) -> None:
    """Add a case."""
    told = [*given, *(f"{name}={value}" for name, value in options.items())]
    name = "/".join([design.__name__.replace("_", "-"), *map(str, told)])
    if name in CASES:
        raise ValueError(name)
    CASES[name] = lambda: values(design(*given, **options))


def add_coins() -> None:
    """Add claims × policies × sides, every kind of scores, and biased coins."""
    levels, unions = ("outside-in", "outside-in-levels", "fixed"), ("union-geometric", "union-grid")
    scans = ("kl", "kl-options")
    policies: dict[str, tuple[str, ...]] = {
        "pure": (*scans, *levels, "union", *unions, "union-hoeffding"),
        "approx": (*scans, *levels),
        "approx-small": ("union", *unions),
        "gaussian": (*levels, *unions),
        "table": (*levels, *unions),
    }
    for claim, sides in product(CLAIMS, SIDES):
        if not claim.startswith("dp-sgd"):
            add(coins, "leaks", claim, "default", sides)
    for claim, chosen in policies.items():
        for cuts in chosen:
            add(coins, "leaks", claim, cuts)
    for cuts in ("kl", "outside-in", "fixed", "union"):
        add(coins, "leaks", "pure", cuts, "member")
    add(coins, "guesses", "pure", "weighted", "member")
    kinds = ("noise", "perfect", "few", "ties", "two-values", "infinite", "large")
    for data, claim in product(kinds, ("pure", "approx", "gaussian")):
        add(coins, data, claim)
    for data, sides in product(("ties", "infinite"), SIDES):
        add(coins, data, "laplace", "default", sides)
        add(coins, data, "pure", "union", sides)
    for claim, confidence in product(("pure", "gaussian"), (0.8, 0.999)):
        add(coins, "leaks", claim, confidence=confidence)
    for claim, sides in product(("pure", "gaussian"), SIDES):
        add(coins, "two-attacks", claim, "default", sides)
    for claim in ("dp-sgd", "dp-sgd-whole"):
        add(coins, "few", claim)
    add(coins, "uneven")
    for data, cuts, sides in product(("one", "each"), ("default", "kl-options", "fixed"), SIDES):
        add(prior, data, cuts, sides)


def add_other_coins() -> None:
    """Add random splits, tallies, streams, synthetic tables and DP-SGD."""
    for claim in ("pure", "approx", "gaussian", "laplace", "one-way"):
        add(split, "leaks", claim)
    for cuts in ("kl", "outside-in", "fixed", "union"):
        add(split, "leaks", "pure", cuts)
    for claim in ("pure", "gaussian"):
        add(split, "uneven", claim)
        add(split, "ties", claim)
        add(split, "leaks", claim, "default", "strata")
        add(split, "pairs", claim, "default", "groups")
    for aggregate in ("max", "log_mean_exp"):
        add(split, "pairs", "pure", "default", "groups", aggregate=aggregate)
    for data in ("noise", "two-attacks"):
        add(split, data)
    for data in ("noise", "leaks"):
        add(split, data, "pure", "default", "features")
    for claim, sides in product(("pure", "approx", "gaussian"), SIDES):
        add(tally, "leaks", claim, sides)
    add(tally, "leaks", bits=10)
    add(tally, "ties", "gaussian")
    add(tally, "large")
    for sides in SIDES:
        add(stream, sides)
    add(stream, "both", shares=(0.5,))
    add(stream, "both", confidence=0.8)
    for made, claim in (("copies", "pure"), ("copies", "gaussian"), ("others", "pure")):
        add(synthetic, made, claim, challenge=False)
    add(synthetic, "copies", "pure", challenge=True)
    add(dp_sgd, "gaussian", accounted=(4.7, 1e-5))
    add(dp_sgd, "pure")
    add(dp_sgd, "gaussian", noise=0.4, stated=0.8, steps=20, step_canaries=400)


def add_panoramia() -> None:
    """Add strict and relaxed audits by every policy, and every other option."""
    for cuts in CUTS:
        add(panoramia, cuts)
    for cuts, gamma, delta in product(("default", "fixed"), (0.0, 0.005), (0.0, 1e-3)):
        if gamma or delta:
            add(panoramia, cuts, gamma=gamma, delta=delta)
    for cuts in ("default", "union"):
        add(panoramia, cuts, max_recall=0.25)
    for most in (0.3, 5.0):
        add(panoramia, c_upper=most)
    for baseline in ("attack", "perfect"):
        add(panoramia, baseline=baseline)
    add(panoramia, baseline="noise", real_nonmembers=True)
    add(panoramia, baseline="noise", leak=0.0)
    add(panoramia, confidence=0.8)
    for delta in (0.0, 1e-3):
        add(panoramia, leak=3.0, shift=1.0, features=True, delta=delta)


def add_zero_run() -> None:
    """Add claims × corrections × adversaries, and every form of propensities."""
    two, three = ("raw", "residual"), ("raw", "residual", "paper_aware")
    claims = ("pure", "approx", "gaussian", "laplace", "table")
    for claim, adversary, sides in product(claims, two, SIDES):
        add(zero_run, claim, "match", adversary=adversary, sides=sides)
    for adversary, sides in product(three, SIDES):
        add(zero_run, "pure", "poisson_binomial", adversary=adversary, sides=sides)
    for claim, adversary in product(("pure", "approx", "gaussian"), three):
        add(zero_run, claim, "tamper", adversary=adversary)
    for claim, adversary in product(("pure", "gaussian"), three):
        add(zero_run, claim, "tamper", adversary=adversary, variant="paper")
    add(zero_run, "approx-small", "poisson_binomial", variant="untampered")
    for claim, adversary in product(("pure", "approx", "gaussian"), two):
        add(zero_run, claim, "composition", adversary=adversary, shift=0.125)
    for cuts in ("kl", "kl-options", "fixed"):
        add(zero_run, "pure", cuts=cuts)
    for cuts in ("outside-in", "fixed", "union-geometric", "union-grid"):
        add(zero_run, "gaussian", cuts=cuts)
    for cuts in ("kl", "union"):
        add(zero_run, "pure", "match", cuts=cuts)
    for claim in ("pure", "gaussian"):
        add(zero_run, claim)
        add(zero_run, claim, leak=0.0)
        add(zero_run, claim, attacks=True)
        add(zero_run, claim, max_log_odds=0.5)
        add(zero_run, claim, given="certain", max_log_odds=1.0)
        add(zero_run, claim, given="limits", adversary="residual")
        add(zero_run, claim, given="replicates")
        add(zero_run, claim, given="half", features=True)
        add(zero_run, claim, given="labels", features=True)
        add(zero_run, claim, given="crossed", falsify=False)
        for how in ("set", "bootstrap"):
            add(zero_run, claim, given="reference", uncertainty=how, features=True, falsify=False)
    add(zero_run, "pure", given="crossed", uncertainty="bootstrap", falsify=False)


def add_numbers() -> None:
    """Add forecasts and functions."""
    for claim in ("pure", "approx", "gaussian"):
        add(power, claim, "default", "both")
        add(ceiling, claim, "default")
    for cuts, sides in (("default", "member"), ("default", "pairs"), ("union", "both")):
        add(power, "pure", cuts, sides)
    for truth in ("normal", "few"):
        add(power, "pure", "default", "both", truth)
    add(ceiling, "pure", "fixed")
    add(canaries, 0.5, "pure", "two")
    add(canaries, 0.5, "gaussian", "normal")
    for name in FUNCTIONS:
        add(tails, name)


for added in (add_coins, add_other_coins, add_panoramia, add_zero_run, add_numbers):
    added()

# --- what is stored -------------------------------------------------------------------------------


def read() -> dict[str, Values]:
    """Return what is stored, by case: floats as floats."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))["cases"]
    return {
        name: {key: _read(value) for key, value in case.items()} for name, case in stored.items()
    }


def differences(name: str, old: Values, new: Values) -> list[str]:
    """Return a line for each number that is not what it was."""
    return [
        f"{name}, {key}: {was!r} became {now!r}{_ratio(was, now)}"
        for key in old | new
        if not _same(was := old.get(key, "nothing"), now := new.get(key, "nothing"))
    ]


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=RELATIVE)
    return type(old) is type(new) and bool(old == new)


def _ratio(old: Any, new: Any) -> str:
    numbers = isinstance(old, float | int) and isinstance(new, float | int)
    return f" (ratio {new / old:.12g})" if numbers and old else ""


def _read(value: Any) -> Any:
    return float.fromhex(value) if isinstance(value, str) and _HEX.match(value) else value


def main() -> None:
    """Compare with what is stored, and where there is a reason to, write what changed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--update", metavar="REASON", help="write what changed, and why")
    reason: str | None = parser.parse_args().update
    old, new = read(), {name: case() for name, case in CASES.items()}
    changed = {name: differences(name, old.get(name, {}), new.get(name, {})) for name in old | new}
    found = [line for lines in changed.values() for line in lines]
    if found and reason:
        reasons = [*json.loads(FILE.read_text(encoding="utf-8"))["reasons"], reason]
        kept = {name: new[name] if changed[name] else old[name] for name in new}
        FILE.write_text(_stored(reasons, kept), encoding="utf-8")
    sys.stdout.write("\n".join([*found, f"{len(found)} changes in {len(new)} cases", ""]))
    sys.exit(bool(found) and not reason)


def _stored(reasons: list[str], cases: dict[str, Values]) -> str:
    """Return what is written, a line for a case."""
    written = {
        name: {key: v.hex() if isinstance(v, float) else v for key, v in case.items()}
        for name, case in cases.items()
    }
    lines = (f"{json.dumps(name)}: {json.dumps(case)}" for name, case in written.items())
    return (
        f'{{"reasons": {json.dumps(reasons, indent=1)},\n"cases": {{\n'
        + ",\n".join(lines)
        + "\n}}\n"
    )


if __name__ == "__main__":
    main()
