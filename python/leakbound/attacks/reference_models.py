"""Scores from what one model answers, or from what it and reference models answer."""

import numpy as np

from leakbound._base import checks
from leakbound._base.scores import Scores
from leakbound._base.types import AnyArray, ArrayInput, BoolArray, FloatArray
from leakbound.errors import InputError, OptionError


def margin_threshold(
    logits: ArrayInput, labels: ArrayInput, *, ids: ArrayInput | None = None
) -> Scores:
    r"""Score examples by the log-odds of their class: :math:`z_y-\log\sum_{j\ne y}e^{z_j}`.

    Orders examples as the loss does, and keeps those apart whose losses round to 0.

    Parameters
    ----------
    logits : array-like, shape (m, classes)
        Unnormalised log-probabilities from the audited model, at least two classes, not NaN.
    labels, ids : array-like of shape (m,)
        Class of each example, from 0 to classes - 1; ids as for `score`.

    Examples
    --------
    >>> margin_threshold([[2.0, 0.0], [0.0, 1.0]], [0, 0]).values.tolist()
    [2.0, -1.0]
    """
    logit_table = _table_of_reference_models(logits, "logits")
    if logit_table.shape[1] < 2:
        raise InputError(f"logits must have at least two columns, got {logit_table.shape[1]}")
    last_class = logit_table.shape[1] - 1
    own_labels = checks.numbers(labels, name="labels", least=0, most=last_class, whole=True).ravel()
    checks.check_length(own_labels, examples=len(logit_table), name="labels")
    rows = np.arange(len(logit_table))
    own_classes = own_labels.astype(np.intp)
    other_logits = logit_table.copy()
    other_logits[rows, own_classes] = -np.inf
    with np.errstate(invalid="ignore"):  # two infinite logits have no margin: refused as NaN
        margins = logit_table[rows, own_classes] - np.logaddexp.reduce(other_logits, axis=1)
    return scores_of_attack(margins, ids=ids, attack="margin_threshold")


def offline_lira(
    margins: ArrayInput,
    reference_margins: ArrayInput,
    *,
    trained_on: ArrayInput | None = None,
    ids: ArrayInput | None = None,
) -> Scores:
    r"""Score examples by how far their log-odds stand out from those under models without them.

    The score is :math:`(\phi_i-\mu_i)/\sigma`, with the mean of the log-odds of example i over the
    reference models that were not trained on it, and one standard deviation for all examples,
    pooled from the spread of each about its own mean, as the paper advises. The paper's
    :math:`1-\Pr[Z>\phi_i]=\Phi((\phi_i-\mu_i)/\sigma)` gives the same order, but rounds to 1
    from 8.3 standard deviations on, where the scores here stay apart.

    Parameters
    ----------
    margins : array-like, shape (m,)
        Log-odds of each example under the audited model, such as ``score(...)`` of
        `leakbound.torch`; not NaN, may be ±inf.
    reference_margins : array-like, shape (models, m)
        The same under each reference model, finite.
    trained_on : array-like of bool, shape (models, m), optional
        Which reference was trained on which example: it is left out there. By default none was.
    ids : array-like of shape (m,), optional
        A different number or string for each example; by default 0, 1, …, m - 1.

    References
    ----------
    N. Carlini et al., "Membership Inference Attacks From First Principles", 2022, arXiv:2112.03570:
    the offline attack, and the variance shared by all examples.

    Examples
    --------
    >>> offline_lira([3.0, 1.0], [[0.0, 0.0], [2.0, 2.0]]).values.round(3).tolist()
    [1.414, 0.0]
    """
    own_margins = checks.check_scores(margins, name="margins")
    reference_table = _table_of_reference_models(
        reference_margins, name="reference_margins", column_count=own_margins.size
    )
    infinite_places = np.argwhere(np.isinf(reference_table))
    if infinite_places.size:
        row, column = infinite_places[0]
        raise OptionError(
            f"reference_margins must be finite, got ±inf in row {row}, column {column}"
        )
    is_outside = _models_not_trained_on_examples(trained_on, reference_table.shape)
    # Mean and spread of each example over the models without it; the variance is pooled.
    model_counts = is_outside.sum(0)
    mean_margins = np.where(is_outside, reference_table, 0).sum(0) / model_counts
    sum_of_squares = np.where(is_outside, (reference_table - mean_margins) ** 2, 0).sum()
    degrees_of_freedom = (model_counts - 1).sum()
    if not degrees_of_freedom or not sum_of_squares:
        raise OptionError(
            "reference_margins have no spread about their means: give different models"
        )
    pooled_deviation = np.sqrt(sum_of_squares / degrees_of_freedom)
    standardized_margins = (own_margins - mean_margins) / pooled_deviation
    return scores_of_attack(standardized_margins, ids=ids, attack="offline_lira")


def rmia(
    log_probabilities: ArrayInput,
    reference_log_probabilities: ArrayInput,
    *,
    offline_scale: float = 0.3,
    trained_on: ArrayInput | None = None,
    ids: ArrayInput | None = None,
) -> Scores:
    r"""Score examples by how much their probability gains from training.

    The score is the logarithm of :math:`\Lambda(x)=p(x\mid\theta)/p(x)`, where
    :math:`p(x)=\frac12((1+a)\,\bar p(x)+1-a)` stands for the average over models with and without
    x, from the mean :math:`\bar p` over reference models without it. The paper's score, the share
    of a population's examples z with :math:`\Lambda(x)\ge\gamma\Lambda(z)`, grows with it, whatever
    population and γ are, in as many steps as there are z; this one has no such ties.

    Parameters
    ----------
    log_probabilities : array-like, shape (m,)
        Log-probability that the audited model gives the label of each example, at most 0. For
        sequences, minus the mean loss per token.
    reference_log_probabilities : array-like, shape (models, m)
        The same under each reference model.
    offline_scale : float
        The a above, in [0, 1): 1 means that training on x does not change p(x), 0 that it makes it
        certain.
    trained_on, ids : optional
        As for `offline_lira`.

    References
    ----------
    S. Zarifzadeh, P. Liu, R. Shokri, "Low-Cost High-Power Membership Inference Attacks", 2024,
    arXiv:2312.03262: the relative attack in its offline form.

    Examples
    --------
    >>> import numpy as np
    >>> rmia(np.log([0.9, 0.5]), np.log([[0.2, 0.5]])).values.round(3).tolist()
    [0.629, -0.3]
    """
    offline_scale = checks.real(offline_scale, name="offline_scale", least=0, below=1)
    own_log_probabilities = checks.check_scores(log_probabilities, name="log_probabilities")
    reference_table = _table_of_reference_models(
        reference_log_probabilities,
        name="reference_log_probabilities",
        column_count=own_log_probabilities.size,
    )
    for values, name in (
        (own_log_probabilities, "log_probabilities"),
        (reference_table, "reference_log_probabilities"),
    ):
        if values.max() > 0:
            raise OptionError(
                f"{name} must be at most 0, got {values.max():g}: logarithms, or minus losses"
            )
    is_outside = _models_not_trained_on_examples(trained_on, reference_table.shape)
    # The mean of probabilities, from their logarithms: references near 0 are never divided by.
    log_mean = np.logaddexp.reduce(np.where(is_outside, reference_table, -np.inf), axis=0)
    log_mean -= np.log(is_outside.sum(0))
    log_sum = np.logaddexp(np.log1p(offline_scale) + log_mean, np.log1p(-offline_scale))
    log_marginal = log_sum - np.log(2)
    log_likelihood_ratios = np.asarray(own_log_probabilities - log_marginal)
    return scores_of_attack(log_likelihood_ratios, ids=ids, attack="rmia")


def scores_of_attack(values: FloatArray, ids: ArrayInput | None, attack: str) -> Scores:
    """Return values with their ids and the name of the attack."""
    scores = checks.check_scores(values, name=attack)
    labels: AnyArray = np.arange(values.size)
    if ids is not None:
        labels = checks.vector(ids, name="ids", kinds="biufSUOT")
    checks.check_ids(labels, np.zeros(values.size, dtype=np.bool_))
    return Scores(values=scores, ids=labels, signal=attack)


def _table_of_reference_models(
    table_values: ArrayInput, name: str, column_count: int | None = None
) -> FloatArray:
    """Read a table with a row for each model and a column for each example."""
    number_table = np.atleast_2d(
        checks.numbers(table_values, name=name).astype(np.float64, copy=False)
    )
    if number_table.ndim != 2 or not number_table.size:
        raise InputError(f"{name} must have a row for each model, got shape {number_table.shape}")
    if column_count is not None and number_table.shape[1] != column_count:
        raise InputError(
            f"{name} has {number_table.shape[1]} columns and there are {column_count} examples"
        )
    return number_table


def _models_not_trained_on_examples(
    trained_on: ArrayInput | None, shape: tuple[int, int]
) -> BoolArray:
    """Read which models were not trained on which examples."""
    if trained_on is None:
        return np.ones(shape, dtype=np.bool_)
    trained_on_table = np.atleast_2d(
        checks.numbers(trained_on, name="trained_on", least=0, most=1, whole=True)
    )
    if trained_on_table.shape != shape:
        raise InputError(
            f"trained_on has shape {trained_on_table.shape} and the references {shape}"
        )
    never_outside = np.flatnonzero((trained_on_table != 0).all(0))
    if never_outside.size:
        raise OptionError(
            f"every reference was trained on {never_outside.size} of the examples, the first in "
            f"column {never_outside[0]}; train each reference on a random half"
        )
    return np.asarray(trained_on_table == 0)
