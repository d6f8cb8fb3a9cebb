"""The attack that needs the audited model alone."""

import numpy as np

from leakbound._base.checks import check_length, numbers
from leakbound._base.scores import Scores
from leakbound._base.types import ArrayInput
from leakbound.attacks.inputs import as_scores, table
from leakbound.errors import ShapeError


def margin_threshold(
    logits: ArrayInput, labels: ArrayInput, *, ids: ArrayInput | None = None
) -> Scores:
    r"""Score examples by the log-odds of their class: :math:`z_y-\log\sum_{j\ne y}e^{z_j}`.

    Orders examples as the loss does, and keeps those apart whose losses round to 0.

    Parameters
    ----------
    logits : array-like, shape (m, classes)
        Unnormalised log-probabilities from the audited model, at least two classes, not NaN.
    labels : array-like of int, shape (m,)
        Class of each example, from 0 to classes - 1.
    ids : array-like of shape (m,), optional
        A different number or string for each example; by default 0, 1, …, m - 1.

    Returns
    -------
    Scores
        The log-odds, right to a few units in the last place of the largest logit.

    Raises
    ------
    ArrayTypeError, OptionError
        If logits are not numbers, or a label is no class.
    ShapeError, LengthMismatchError, DuplicateIdsError
        If there are not two classes, or not one label and one id for each example.

    References
    ----------
    N. Carlini et al., "Membership Inference Attacks From First Principles", 2022, arXiv:2112.03570,
    equation 3.

    Examples
    --------
    >>> margin_threshold([[2.0, 0.0], [0.0, 1.0]], [0, 0]).values.tolist()
    [2.0, -1.0]
    """
    z = table(logits, "logits")
    if z.shape[1] < 2:
        message = f"logits must have at least two columns, one for each class, got {z.shape[1]}"
        raise ShapeError(message)
    own = numbers(labels, "labels", least=0, most=z.shape[1] - 1, whole=True).ravel()
    check_length(own, len(z), "labels")
    mine = own.astype(np.intp)[:, np.newaxis]
    others = z.copy()
    np.put_along_axis(others, mine, -np.inf, axis=1)
    with np.errstate(invalid="ignore"):  # two infinite logits have no margin: refused as NaN
        margins = np.take_along_axis(z, mine, axis=1)[:, 0] - np.logaddexp.reduce(others, axis=1)
    return as_scores(margins, ids, "margin_threshold")
