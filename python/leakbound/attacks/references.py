"""Attacks that compare the audited model with others, which were not trained on the example."""

from typing import Literal, TypeAlias

import numpy as np

from leakbound._base.checks import check_scores, choice, real
from leakbound._base.scores import Scores
from leakbound._base.types import ArrayInput, FloatArray, IntArray
from leakbound.attacks.inputs import as_scores, finite_table, outside, table
from leakbound.errors import OptionError

Variance: TypeAlias = Literal["shared", "example"]


def offline_lira(
    margins: ArrayInput,
    reference_margins: ArrayInput,
    *,
    trained_on: ArrayInput | None = None,
    variance: Variance = "shared",
    ids: ArrayInput | None = None,
) -> Scores:
    r"""Score examples by how far their log-odds stand out from those under models without them.

    The score is :math:`(\phi_i-\mu_i)/\sigma_i`, with mean and standard deviation of the log-odds
    of example i over the reference models that were not trained on it. The paper's
    :math:`1-\Pr[Z>\phi_i]=\Phi((\phi_i-\mu_i)/\sigma_i)` orders examples alike, but rounds to 1
    from 8.3 standard deviations on, where the scores here stay apart.

    Parameters
    ----------
    margins : array-like, shape (m,)
        Log-odds of each example under the audited model (``score(...)`` of `leakbound.torch` with
        its default signal), not NaN, may be ±inf.
    reference_margins : array-like, shape (models, m)
        The same under each reference model, finite.
    trained_on : array-like of bool, shape (models, m), optional
        Which reference was trained on which example: it is left out there. By default none was.
    variance : {"shared", "example"}
        One standard deviation for all examples, pooled from the spread of each about its own mean,
        or one for each. The paper advises the former with fewer than 64 models.
    ids : array-like of shape (m,), optional
        A different number or string for each example; by default 0, 1, …, m - 1.

    Returns
    -------
    Scores
        In standard deviations.

    Raises
    ------
    ArrayTypeError, ShapeError, LengthMismatchError, NaNScoresError, DuplicateIdsError
        If arrays are not numbers of these shapes.
    OptionError
        If a reference is not finite, an example has no model without it, or there are too few
        models, or too alike, for a standard deviation.

    References
    ----------
    N. Carlini et al., "Membership Inference Attacks From First Principles", 2022, arXiv:2112.03570:
    the offline attack, and the variance shared by all examples.

    Examples
    --------
    >>> offline_lira([3.0, 1.0], [[0.0, 0.0], [2.0, 2.0]]).values.round(3).tolist()
    [1.414, 0.0]
    """
    choice(variance, "variance", Variance)
    own = check_scores(margins, "margins")
    references = finite_table(reference_margins, "reference_margins", own.size)
    without = outside(trained_on, references.shape)
    counts = without.sum(0)
    means = np.where(without, references, 0).sum(0) / counts
    squares = np.where(without, (references - means) ** 2, 0).sum(0)
    spread = _pooled(squares, counts) if variance == "shared" else _each(squares, counts)
    return as_scores((own - means) / spread, ids, "offline_lira")


def rmia(
    log_probabilities: ArrayInput,
    reference_log_probabilities: ArrayInput,
    *,
    population: tuple[ArrayInput, ArrayInput] | None = None,
    gamma: float = 2.0,
    offline_scale: float = 0.3,
    trained_on: ArrayInput | None = None,
    ids: ArrayInput | None = None,
) -> Scores:
    r"""Score examples by how often they gain more from training than examples of the population.

    With :math:`\Lambda(x)=p(x\mid\theta)/p(x)` the score is the share of population examples z with
    :math:`\Lambda(x)\ge\gamma\Lambda(z)`. Here :math:`p(x)=\frac12((1+a)\,\bar p(x)+1-a)` stands
    for the average over models with and without x, from the mean :math:`\bar p` over reference
    models without it. All in logarithms, by one sort of the population.

    For any population and any γ the score grows with :math:`\Lambda(x)`, in as many steps as there
    are population examples. Without a population the score is :math:`\log\Lambda(x)` itself: the
    same order without ties, which is what an audit gets most from.

    Parameters
    ----------
    log_probabilities : array-like, shape (m,)
        Log-probability that the audited model gives the label of each example, at most 0. For
        sequences, minus the mean loss per token.
    reference_log_probabilities : array-like, shape (models, m)
        The same under each reference model.
    population : pair of array-likes, of shapes (n,) and (models, n), optional
        The same two for examples that no model was trained on.
    gamma : float
        Factor that an example must win by, above 0.
    offline_scale : float
        The a above, in [0, 1): 1 means that training on x does not change p(x), 0 that it makes it
        certain.
    trained_on : array-like of bool, shape (models, m), optional
        Which reference was trained on which example: it is left out there. By default none was.
    ids : array-like of shape (m,), optional
        A different number or string for each example; by default 0, 1, …, m - 1.

    Returns
    -------
    Scores
        Shares in [0, 1]; without a population, logarithms of ratios.

    Raises
    ------
    ArrayTypeError, ShapeError, LengthMismatchError, NaNScoresError, DuplicateIdsError
        If arrays are not numbers of these shapes.
    OptionError
        If a log-probability is above 0, an example has no model without it, or an option is
        outside its range.

    References
    ----------
    S. Zarifzadeh, P. Liu, R. Shokri, "Low-Cost High-Power Membership Inference Attacks", 2024,
    arXiv:2312.03262: the relative attack in its offline form.

    Examples
    --------
    >>> import numpy as np
    >>> seen, unseen = np.log([0.9, 0.5]), np.log([[0.2, 0.5]])
    >>> others = np.log([0.5, 0.6, 0.4]), np.log([[0.5, 0.6, 0.5]])
    >>> rmia(seen, unseen, population=others, gamma=1.0).values.round(3).tolist()
    [1.0, 0.667]
    """
    above = real(gamma, "gamma", above=0)
    scale = real(offline_scale, "offline_scale", least=0, below=1)
    own = _log_ratios(log_probabilities, reference_log_probabilities, trained_on, scale)
    if population is None:
        return as_scores(own, ids, "rmia")
    others, of_references = population
    against = np.sort(_log_ratios(others, of_references, None, scale))
    won = np.searchsorted(against, own - np.log(above), side="right")
    return as_scores(won / against.size, ids, "rmia")


def _pooled(squares: FloatArray, counts: IntArray) -> FloatArray:
    freedom = float((counts - 1).sum())
    total = float(squares.sum())
    if not freedom or not total:
        message = (
            "reference_margins have no spread about their means; give at least two different "
            "models, of which some example is in none"
        )
        raise OptionError(message)
    return np.full(squares.shape, np.sqrt(total / freedom))


def _each(squares: FloatArray, counts: IntArray) -> FloatArray:
    flat = np.flatnonzero((counts < 2) | (squares == 0))
    if flat.size:
        message = (
            f"{flat.size} examples, the first in column {flat[0]}, have no two different values "
            "in reference_margins of models without them, and so no standard deviation; use "
            "variance='shared' or more models"
        )
        raise OptionError(message)
    spread: FloatArray = np.sqrt(squares / (counts - 1))
    return spread


def _log_ratios(
    log_probabilities: ArrayInput,
    reference_log_probabilities: ArrayInput,
    trained_on: ArrayInput | None,
    scale: float,
) -> FloatArray:
    r"""Return :math:`\log\Lambda` of each example; references near 0 are never divided by."""
    own = check_scores(log_probabilities, "log_probabilities")
    references = table(reference_log_probabilities, "reference_log_probabilities", own.size)
    for values, name in ((own, "log_probabilities"), (references, "reference_log_probabilities")):
        if values.max() > 0:
            message = (
                f"{name} must be at most 0, got {values.max():g}; pass logarithms of "
                "probabilities, or minus losses"
            )
            raise OptionError(message)
    without = outside(trained_on, references.shape)
    # The mean of probabilities, from their logarithms.
    mean = np.logaddexp.reduce(np.where(without, references, -np.inf), axis=0)
    mean -= np.log(without.sum(0))
    marginal = np.logaddexp(np.log1p(scale) + mean, np.log1p(-scale)) - np.log(2)
    ratios: FloatArray = own - marginal
    return ratios
