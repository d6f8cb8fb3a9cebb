"""What a guarantee for adding or removing one example says of replacing one."""

import math

from leakbound._base.checks import real


def replacing(epsilon: float, delta: float = 0.0) -> tuple[float, float]:
    """Return the guarantee for replacing one example that follows from one for adding it.

    To replace an example is to remove one and add another. If training is (ε, δ)-DP for both, it is
    (2ε, (1 + e^ε) δ)-DP for the replacement, and for no smaller values in general.

    Parameters
    ----------
    epsilon : float
        ε of adding or removing one example, at least 0, in nats.
    delta : float
        δ of the same guarantee, in [0, 1).

    Returns
    -------
    tuple of float
        ε and δ of replacing one; δ may exceed 1, where nothing is guaranteed.

    Raises
    ------
    OptionError, InputTypeError
        If an argument is outside its range or of the wrong type.

    Notes
    -----
    Halving an ε at the same δ is no way back: μ-Gaussian DP with μ = 1 has ε(10⁻⁵) = 4.38, and
    replacing one example, 2μ, has 10.0.

    Examples
    --------
    >>> replacing(1.0)
    (2.0, 0.0)
    >>> round(replacing(1.0, 1e-5)[1] * 1e5, 3)
    3.718
    """
    loss = real(epsilon, "epsilon", least=0, below=math.inf)
    failure = real(delta, "delta", least=0, below=1)
    return 2 * loss, (1 + math.exp(min(loss, 700.0))) * failure
