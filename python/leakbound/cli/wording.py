"""What the library says, in the words of the command line.

Its messages name arguments and classes of Python, as whoever calls it from there wrote them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["in_its_words"]

_POLICIES = {
    "Fixed": "fixed:R",
    "KLScan": "kl",
    "OutsideIn": "outside-in",
    "UnionBound": "union",
    "Weighted": "weighted",
}
_CLAIMS = {
    "ApproxDP": "(ε, δ)-DP",
    "GaussianDP": "Gaussian DP",
    "LaplaceDP": "Laplace DP",
    "PureDP": "pure DP",
    "SubsampledGaussianDP": "DP-SGD",
}
_AUDITS = {
    "audit_one_run": "leakbound one-run",
    "audit_panoramia": "leakbound panoramia",
    "audit_zero_run": "leakbound zero-run",
}
_ARGUMENTS = (
    "c_upper|claim|confidence|correction|cuts|delta|design|features|gamma|max_recall|prior|"
    "real_nonmembers|relation|relaxation|seed|sides|tail|uncertainty"
)
"""Arguments of audits that are options of the same name."""
_CALL = r"(?:\((?:[^()]|\([^()]*\))*\))?"
"""The arguments that a class is named with, if any."""


def _policy(found: re.Match[str]) -> str:
    guesses = re.search(r"guesses=(\d+)", found[0])
    word = f"fixed:{guesses[1]}" if guesses else _POLICIES[found[2]]
    word = "geometric" if word == "union" and "geometric" in found[0] else word
    levels = re.search(r"levels=[(\[]([\d, ]+)", found[0])
    word = word.partition(":")[0] if levels else word
    word += f":{levels[1].replace(' ', '').strip(',')}" if levels else ""
    return f"--cuts {word}" if found[1] else word


def _option(found: re.Match[str]) -> str:
    value = found[2].strip('"')
    flag = f"--{found[1].replace('_', '-')}"
    return flag if value in {"", "True"} else f"{flag} {value}"


def _confidence(found: re.Match[str]) -> str:
    """Name the option, and the value that a number of percent was meant to be."""
    value = float(found[2])
    meant = f": {value:g} % is --confidence {value / 100:g}" if 50 <= value < 100 else ""
    return f"--{found[1]}{meant}"


_RULES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"; convert it first, for example with numpy\.\w+\(.*?\)", "; save it as numbers"),
    (r"; give their ranks, numpy\.unique\(.*?\)\[1\]", "; save their ranks in place of them"),
    (r" \((?:audit_\w+)\)", ""),
    (r', or variant="untampered" for approximate DP', ""),
    (rf"\b({'|'.join(_AUDITS)})\b", lambda found: _AUDITS[found[1]]),
    (rf"(\bcuts=)?\b({'|'.join(_POLICIES)})\b{_CALL}", _policy),
    (rf"(?:\bclaim=)?\b({'|'.join(_CLAIMS)})\b{_CALL}", lambda found: _CLAIMS[found[1]]),
    (r": InclusionPlan\(plan\.member\[kept\].*?\bids\)", ""),
    (r"\bpass the InclusionPlan that has their seed\b", "give their plan by --plan"),
    (r"\bids=", "the column id"),
    (r"\bor None for\b", "or auto for"),
    (r"\b(?:or )?set (\w+)=False\b", lambda found: f"or leave out --{found[1].replace('_', '-')}"),
    (rf'(?<!,)\b({_ARGUMENTS})=(?!…)("?[\w.+-]*"?)', _option),
    (r"^(confidence must be above 0 and below 1, got ([\d.]+))$", _confidence),
    (
        r"^(confidence|delta|fraction|most|prior|probability|simulations|target) must\b",
        r"--\1 must",
    ),
    (r"\ballow repeats\b", "count them by leakbound tally --allow-repeats"),
    (r"^m must\b", "-m must"),
    (r"\bbe above 0 and below inf\b", "be above 0 and finite"),
    (r"\b(c_upper|max_recall|real_nonmembers)\b", lambda found: f"--{found[1].replace('_', '-')}"),
)


def in_its_words(text: str) -> str:
    """Return a message with options and commands in place of arguments, classes and functions.

    Examples
    --------
    >>> in_its_words('cuts=Weighted is not for Laplace DP: take OutsideIn, Fixed or UnionBound')
    '--cuts weighted is not for Laplace DP: take outside-in, fixed:R or union'
    """
    for pattern, words in _RULES:
        text = re.sub(pattern, words, text)
    return text
