"""White-box attack: what the steps of training have in common with an example's gradient."""

import numpy as np

from leakbound._base.checks import numbers
from leakbound._base.scores import Scores
from leakbound._base.types import ArrayInput, FloatArray
from leakbound.attacks.inputs import as_scores, finite_table
from leakbound.errors import LengthMismatchError, ShapeError


def gradient_dot(
    steps: ArrayInput, gradients: ArrayInput, *, ids: ArrayInput | None = None
) -> Scores:
    r"""Score canaries by the steps of training along their gradients.

    The score is :math:`\sum_t\langle g_{i,t},\theta_{t-1}-\theta_t\rangle`: gradient descent moves
    against the sum of the gradients of its batch, so a canary in the batch adds its squared norm.
    For steps of DP-SGD the gradients are the clipped ones; canaries that are gradients themselves
    (one coordinate, or a random direction) are the strongest.

    Parameters
    ----------
    steps : array-like, shape (T, d) or (d,)
        :math:`\theta_{t-1}-\theta_t` for each step of training, or for all of it at once; finite.
    gradients : array-like, shape (m, d) or (T, m, d)
        Gradient of each canary's loss, the same at every step or one for each; finite. The scale
        of a gradient matters: give canaries the norm that training gives them.
    ids : array-like of shape (m,), optional
        A different number or string for each canary; by default 0, 1, …, m - 1.

    Returns
    -------
    Scores
        The sums of products, in float64.

    Raises
    ------
    ArrayTypeError, OptionError
        If arrays are not finite numbers.
    ShapeError, LengthMismatchError
        If shapes are not those above, or do not fit each other.
    DuplicateIdsError
        If an id occurs twice.

    Notes
    -----
    `leakbound.torch.score` with ``signal="gradient_dot"`` computes the same from two models,
    without any gradient of a single example in memory.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy Auditing with One (1) Training Run", 2023,
    arXiv:2305.08846: the white-box audit of DP-SGD. S. Maddock, A. Sablayrolles, P. Stock,
    "CANIFE: Crafting Canaries for Empirical Privacy Measurement in Federated Learning", 2023,
    arXiv:2210.02912.

    Examples
    --------
    >>> gradient_dot([[1.0, 0.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]).values.tolist()
    [3.0, 1.0]
    """
    moved = finite_table(steps, "steps")
    canaries = np.asarray(numbers(gradients, "gradients"), dtype=np.float64)
    if canaries.ndim not in (2, 3) or not canaries.size:
        message = (
            "gradients must have a row for each canary, of shape (m, d) or (T, m, d), got shape "
            f"{canaries.shape}"
        )
        raise ShapeError(message)
    if canaries.shape[-1] != moved.shape[1]:
        message = (
            f"gradients have {canaries.shape[-1]} entries and steps {moved.shape[1]}; both must "
            "list the same parameters"
        )
        raise LengthMismatchError(message)
    if canaries.ndim == 3 and len(canaries) != len(moved):
        message = f"there are gradients for {len(canaries)} steps and {len(moved)} steps in all"
        raise LengthMismatchError(message)
    same = canaries.ndim == 2
    products: FloatArray = (
        canaries @ moved.sum(0) if same else np.einsum("tmd,td->m", canaries, moved)
    )
    return as_scores(products, ids, "gradient_dot")
