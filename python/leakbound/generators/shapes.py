"""What flat vectors of floats must become to look like members."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound.generators.labels import FittedLabeler
from leakbound.generators.protocol import Samples


@dataclass(frozen=True)
class Shape:
    """Shape, dtype and range of the members."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: float
    high: float

    @classmethod
    def of(cls, members: NDArray[Any]) -> "Shape":
        """Describe members."""
        return cls(members.shape[1:], members.dtype, float(members.min()), float(members.max()))

    def samples(self, flat: NDArray[Any], labeler: FittedLabeler | None, seed: int) -> Samples:
        """Return rows as samples: within the range, whole where members are, and labelled."""
        rows = np.clip(flat, self.low, self.high)
        if self.dtype.kind != "f":
            rows = np.round(rows)
        values = rows.astype(self.dtype).reshape(-1, *self.shape)
        return Samples(values, None if labeler is None else labeler.sample(values, seed=seed))
