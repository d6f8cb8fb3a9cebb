"""What the library says with options, cut policies and commands in place of names of Python."""

from __future__ import annotations

import re

_WORDS = {
    "audit_one_run": "leakbound one-run",
    "audit_panoramia": "leakbound panoramia",
    "audit_zero_run": "leakbound zero-run",
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
}
_OPTIONS = (
    "c_upper|confidence|correction|cuts|delta|design|features|fraction|gamma|max_recall|most|prior|"
    "probability|real_nonmembers|relaxation|relation|seed|sides|simulations|tail|target|uncertainty"
)
"""Arguments that are options of the same name."""


def _option(found: re.Match[str]) -> str:
    value = (found[2] or "").strip('"')
    return f"--{found[1].replace('_', '-')}{f' {value}' if value not in {'', 'True'} else ''}"


def in_its_words(text: str) -> str:
    """Return a message in the words of the command line.

    Examples
    --------
    >>> in_its_words('cuts=Weighted is not for Laplace DP: take OutsideIn, Fixed or UnionBound')
    '--cuts weighted is not for Laplace DP: take outside-in, fixed:R or union'
    """
    text = re.sub(r": InclusionPlan\(plan\.member\[kept\].*", "", text)
    text = re.sub(r"\bFixed\(guesses=(\d+)\)", r"fixed:\1", text)
    text = re.sub(r"\bset (\w+)=False\b", r"leave out \1=True", text)
    text = re.sub(rf"\b({'|'.join(_WORDS)})\b(?:\([^()]*\))?", lambda found: _WORDS[found[1]], text)
    text = re.sub(rf'(?<!,)\b({_OPTIONS})=(?!…)("?[\w.+:-]*"?)', _option, text)
    return re.sub(rf"^({_OPTIONS})()(?= must\b)", _option, text)
