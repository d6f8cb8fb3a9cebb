"""Claims: the families of privacy guarantees that an audit can refute.

A claim turns a value of its parameter into the most that a right guess may be worth.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from leakbound._validate import real

__all__ = ["PureDP"]


@dataclass(frozen=True)
class PureDP:
    """Pure ε-differential privacy: adding or removing an example changes no odds by over e^ε.

    Examples
    --------
    >>> PureDP().p(0.0)
    0.5
    >>> round(PureDP().p(1.0), 4)
    0.7311
    """

    name: ClassVar[str] = "pure DP"
    """How results and reports call the claim."""
    parameter: ClassVar[str] = "epsilon"
    """The parameter that audits bound from below."""

    def p(self, epsilon: float) -> float:
        """Return the largest probability that a guess about a fair coin is right.

        Parameters
        ----------
        epsilon : float
            At least 0, in nats.

        Returns
        -------
        float
            e^ε / (1 + e^ε), in [1/2, 1].

        Raises
        ------
        OptionTypeError
            If `epsilon` is not a real number.
        OptionError
            If `epsilon` is negative or NaN.

        Notes
        -----
        It holds for each guess given the trained model and all coins before it: Steinke, Nasr and
        Jagielski, "Privacy auditing with one (1) training run" (2023), proof of Proposition 5.1.
        """
        return 1.0 / (1.0 + math.exp(-real(epsilon, "epsilon", least=0)))
