"""The numbers of audits, of every design with every claim, policy and correction.

A case is named for its call: a function of `oracle_calls`, and what it is called with.

python tests/support/oracle.py                         compares with tests/golden/oracle.json
python tests/support/oracle.py --update REASON         writes what changed, and the reason
python tests/support/oracle.py --update REASON CASE…   adds cases
"""

import argparse
import ast
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import oracle_calls
from oracle_calls import Values

__all__ = ["Values", "differences", "numbers", "read"]

FILE = Path(__file__).parents[1] / "golden" / "oracle.json"
RELATIVE = 1e-9
"""What machines may differ by in last bits, of exponentials and of sums, with room to spare."""
_HEX = re.compile(r"-?(0x|inf)")


def numbers(name: str) -> Values:
    """Call what a name says, as `coins/leaks/pure/confidence=0.8`, and return what is compared."""
    design, *words = name.split("/")
    given = [_argument(word) for word in words if "=" not in word]
    named = (word.split("=") for word in words if "=" in word)
    options = {key: _argument(value) for key, value in named}
    call = getattr(oracle_calls, design.replace("-", "_"))
    return oracle_calls.values(call(*given, **options))


def _argument(word: str) -> Any:
    """Return a number, a tuple or a boolean as one, and a word as it is."""
    try:
        return ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word


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
    both = isinstance(old, float | int) and isinstance(new, float | int)
    return f" (ratio {new / old:.12g})" if both and old else ""


def _read(value: Any) -> Any:
    return float.fromhex(value) if isinstance(value, str) and _HEX.match(value) else value


def main() -> None:
    """Compare with what is stored, and where there is a reason to, write what changed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--update", metavar="REASON", help="write what changed, and why")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="cases to add")
    options = parser.parse_args()
    old = read()
    new = {name: numbers(name) for name in [*old, *options.cases]}
    changed = {name: differences(name, old.get(name, {}), new[name]) for name in new}
    found = [line for lines in changed.values() for line in lines]
    if found and options.update:
        reasons = [*json.loads(FILE.read_text(encoding="utf-8"))["reasons"], options.update]
        kept = {name: new[name] if changed[name] else old[name] for name in new}
        FILE.write_text(_stored(reasons, kept), encoding="utf-8")
    sys.stdout.write("\n".join([*found, f"{len(found)} changes in {len(new)} cases", ""]))
    sys.exit(bool(found) and not options.update)


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
