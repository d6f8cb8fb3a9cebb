"""Messages of the library with options and commands instead of Python names."""

from __future__ import annotations

import re
from contextvars import ContextVar

OPTIONS: ContextVar[tuple[str, ...]] = ContextVar("OPTIONS", default=())
"""Arguments in Python that are options of the current command."""
_WORDS = {
    "Choices": "leakbound choices",
    "Coins": "leakbound coins",
    "Panoramia": "leakbound panoramia",
    "RandomSplit": "leakbound split",
    "ZeroRun": "leakbound zero-run",
    "ApproxDP": "(ε, δ)-DP",
    "GaussianDP": "Gaussian DP",
    "LaplaceDP": "Laplace DP",
    "PureDP": "pure DP",
    "SubsampledGaussianDP": "DP-SGD",
    "Fixed": "fixed:R",
    "KLScan": "kl",
    "OutsideIn": "outside-in",
    "UnionBound": "union",
    "Weighted": "weighted",
    "ids=": "the column id",
}


def in_its_words(text: str) -> str:
    """Return a message in terms of the command line.

    Examples
    --------
    >>> in_its_words('Weighted is not for Laplace DP: take OutsideIn, Fixed or UnionBound')
    'weighted is not for Laplace DP: take outside-in, fixed:R or union'
    >>> in_its_words('audit again with claim=ApproxDP(delta=1e-05)')
    'audit again with --claim eps=E,delta=1e-05'
    """
    text = text.replace(" (.to_numpy() of a pandas object is read by position)", "")
    text = re.sub(r"\bFixed\(guesses=(\d+)\)", r"fixed:\1", text)
    text = re.sub(r"\bclaim=ApproxDP\(delta=([\w.-]+)\)", r"--claim eps=E,delta=\1", text)
    text = re.sub(r"\bset (\w+)=False\b", r"leave out \1=True", text)
    words = "|".join(map(re.escape, _WORDS))
    text = re.sub(rf"\b({words})(?!\w)(?:\([^()]*\))?", lambda match: _WORDS[match[1]], text)
    names = "|".join(OPTIONS.get()) or "(?!)"
    # A single word may be ordinary English, except before a value and at the start.
    snakes = "|".join(name for name in OPTIONS.get() if "_" in name) or "(?!)"
    text = re.sub(rf'(?<![,\w-])({names})=(?![…\'])("?(?:[\w.+-]+(?::\w+)?)?"?)()', _flag, text)
    return re.sub(rf"\b({snakes})()\b|^({names})()(?= must\b)", _flag, text)


def _flag(match: re.Match[str]) -> str:
    name, value = match[1] or match[3], (match[2] or "").strip('"')
    flag = f"--{name.replace('_', '-')}"
    return flag if value in {"", "True"} else f"{flag} {value}"
