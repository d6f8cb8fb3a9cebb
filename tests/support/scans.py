"""Cut policies on paths of right and wrong guesses."""

from typing import Any

import numpy as np

from leakbound import _core
from leakbound.cuts import KLScan, UnionBound

__all__ = ["kl_scan", "union_bound"]


def kl_scan(
    successes: Any, *, beta: float, delta: float = 0.0, one_sided: bool = True, **policy: Any
) -> Any:
    """Bound the odds of success by a scan; failures are those of a guess about each example."""
    path, sides = _path(successes), 1 if one_sided else 2
    scan = KLScan(**{"grid": "all"} | policy)
    return scan.bound(path, "member", beta, sides * path.guesses * delta / 2)


def union_bound(successes: Any, *, beta: float, **policy: Any) -> Any:
    """Bound the odds of success by a union over cuts."""
    return UnionBound(**policy).bound(_path(successes), "member", beta)


def _path(successes: Any) -> _core.Path:
    return _core.Path.from_successes(np.asarray(successes, dtype=np.bool_))
