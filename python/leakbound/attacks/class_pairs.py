"""Decision functions of one-vs-one classifiers: a value for each pair of classes."""

import numpy as np

from leakbound._base.types import FloatArray


def one_vs_one_votes(values: FloatArray, class_count: int) -> FloatArray:
    """Return how many comparisons each class wins, and by how much, from values of pairs.

    The first class of a pair wins where the value is above 0. Sums of values break ties of wins,
    scaled to less than a third, as scikit-learn does for `decision_function_shape="ovr"`.
    """
    wins, sums_of_values = np.zeros((2, len(values), class_count))
    for pair_values, first, second in zip(values.T, *np.triu_indices(class_count, 1), strict=True):
        first_wins = pair_values >= 0
        wins[:, first] += first_wins
        wins[:, second] += ~first_wins
        sums_of_values[:, first] += pair_values
        sums_of_values[:, second] -= pair_values
    scaled: FloatArray = wins + sums_of_values / (3 * (np.abs(sums_of_values) + 1))
    return scaled


def answers_class_pairs(model: object) -> bool:
    """Return whether a model, or the one that it wraps, has the option of one-vs-one values."""
    visited: list[object] = []
    to_visit = [model]
    while to_visit:
        estimator = to_visit.pop()
        if any(estimator is visited_estimator for visited_estimator in visited):
            continue
        visited.append(estimator)
        if getattr(estimator, "decision_function_shape", None) == "ovo":
            return True
        wrapped_names = ("best_estimator_", "estimator_", "final_estimator_")
        to_visit += [
            getattr(estimator, wrapped_name)
            for wrapped_name in wrapped_names
            if hasattr(estimator, wrapped_name)
        ]
        pipeline_steps = list(getattr(estimator, "steps", ()))
        to_visit += [step for _, step in pipeline_steps[-1:]]
    return False
