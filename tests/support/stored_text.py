"""What a user sees, as text that can be hashed: the same on every machine that the tests run on.

Five things differ from one machine to another although nothing a user sees has changed. They are
put aside here by name, before a text is hashed and nowhere else:

- versions and digests of computed inputs, in a result's provenance (`PLACEHOLDERS`);
- the last bits of numbers, which depend on the vector path of the core (AVX-512, AVX2, portable),
  of NumPy and of the system's exponentials: numbers keep `DIGITS` significant digits, and what is
  below `NOTHING` is 0;
- coordinates of figures and the names matplotlib makes of them: `PLACES` decimals, and names
  numbered in the order in which they appear;
- the curves of a family, which are `LONG` numbers or more: of so many, some lie where the last bit
  decides how they are rounded, and they keep `FEW` digits;
- addresses in memory, which Python prints of a function.

What is left is text, counts, and numbers to more digits than any report prints. Figures need the
matplotlib of `constraints.txt`, which brings its own typeface and its own FreeType.
"""

import hashlib
import json
import re
from typing import Any

__all__ = ["DIGITS", "FEW", "LONG", "NOTHING", "PLACEHOLDERS", "PLACES", "canonical", "digest"]

DIGITS = 9
"""Significant digits that are compared."""
LONG, FEW = 1000, 4
"""Numbers of a long list, and the significant digits of it that are compared."""
NOTHING = 1e-12
"""What is smaller is a rounding error, or as good as 0."""
PLACES = 2
"""Decimals of coordinates, which are points (1/72 inch)."""
PLACEHOLDERS = {
    "leakbound": "version",
    "python": "version",
    "numpy": "version",
    "log_odds": "digest of computed numbers",
    "features": "digest of numbers that may be computed",
}
"""Entries of a provenance that say what machine and libraries there were."""

_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:[eE][-+]?\d+)?(?![\w.])")
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")
_DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_NAME = re.compile(r'(?:\bid="|="#|url\(#)([^")]+)')
_HTML_NAMES = {"leakbound": "leakbound", "Python": "python", "NumPy": "numpy"} | {
    f"SHA-256 of {name}": name for name in ("log_odds", "features")
}
_FACT = re.compile(rf"<dt>({'|'.join(_HTML_NAMES)})</dt><dd>[^<]*</dd>")


def digest(name: str, text: str) -> str:
    """Return the SHA-256 of a text in its canonical form."""
    return hashlib.sha256(canonical(name, text).encode()).hexdigest()


def canonical(name: str, text: str) -> str:
    """Return a text as it is hashed; `name` ends with .json, .html, .svg or .txt."""
    if name.endswith(".json"):
        return json.dumps(_plain(json.loads(text)), ensure_ascii=False, indent=1)
    if name.endswith(".svg"):
        return _drawing(text)
    parts, end = [], 0
    for found in _DRAWING.finditer(text):
        parts += [_words(text[end : found.start()]), _drawing(found[0])]
        end = found.end()
    return "".join([*parts, _words(text[end:])])


def _plain(value: Any, key: str = "") -> Any:
    """Return parsed JSON with rounded numbers and without versions."""
    if isinstance(value, float):
        return _rounded(value)
    if isinstance(value, list):
        if len(value) >= LONG:
            value = [_rounded(one, FEW) if isinstance(one, float) else one for one in value]
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        fixed: dict[str, str] = PLACEHOLDERS if key in {"provenance", "sha256"} else {}
        return {
            name: fixed[name] if name in fixed else _plain(one, name) for name, one in value.items()
        }
    return value


def _words(text: str) -> str:
    """Return a text outside of figures with rounded numbers and without versions."""
    named = _FACT.sub(
        lambda fact: f"<dt>{fact[1]}</dt><dd>{PLACEHOLDERS[_HTML_NAMES[fact[1]]]}</dd>", text
    )
    return _NUMBER.sub(_shortened, _ADDRESS.sub("at ADDRESS", named))


def _drawing(text: str) -> str:
    """Return a figure with coarse coordinates and numbered names."""
    order = {name: f"n{i}" for i, name in enumerate(dict.fromkeys(_NAME.findall(text)))}
    named = _NAME.sub(lambda found: found[0][: -len(found[1])] + order[found[1]], text)
    return _NUMBER.sub(_coarse, named)


def _shortened(number: re.Match[str]) -> str:
    """Return a number as it is printed, or rounded if it has more digits than are compared."""
    digits = sum(letter.isdigit() for letter in number[0])
    return number[0] if digits <= DIGITS else repr(_rounded(float(number[0])))


def _coarse(number: re.Match[str]) -> str:
    """Return a coordinate; there is no -0."""
    return f"{round(float(number[0]), PLACES) + 0.0:.{PLACES}f}"


def _rounded(value: float, digits: int = DIGITS) -> float:
    return 0.0 if abs(value) < NOTHING else float(f"{value:.{digits}g}")
