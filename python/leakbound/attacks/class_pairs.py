"""Decision functions of one-vs-one classifiers: a value for each pair of classes."""

import numpy as np

from leakbound._base.types import FloatArray


def one_vs_one_votes(values: FloatArray, class_count: int) -> FloatArray:
    """Return how many comparisons each class wins, and by how much, from values of pairs.

    The first class of a pair wins where the value is above 0. Sums of values break ties of wins,
    scaled to less than a third, as scikit-learn does for `decision_function_shape="ovr"`.
    """
    wins_of_classes, sums_of_values = np.zeros((2, len(values), class_count))
    first_classes, second_classes = np.triu_indices(class_count, 1)
    for pair_values, first_class, second_class in zip(
        values.T, first_classes, second_classes, strict=True
    ):
        first_class_wins = pair_values >= 0
        wins_of_classes[:, first_class] += first_class_wins
        wins_of_classes[:, second_class] += ~first_class_wins
        sums_of_values[:, first_class] += pair_values
        sums_of_values[:, second_class] -= pair_values
    scaled_sums = sums_of_values / (3 * (np.abs(sums_of_values) + 1))
    votes: FloatArray = wins_of_classes + scaled_sums
    return votes


def answers_class_pairs(model: object) -> bool:
    """Return whether a model, or the one that it wraps, has the option of one-vs-one values."""
    visited_estimators: list[object] = []
    estimators_to_visit = [model]
    while estimators_to_visit:
        estimator = estimators_to_visit.pop()
        if any(estimator is visited_estimator for visited_estimator in visited_estimators):
            continue
        visited_estimators.append(estimator)
        if getattr(estimator, "decision_function_shape", None) == "ovo":
            return True
        wrapped_names = ("best_estimator_", "estimator_", "final_estimator_")
        estimators_to_visit += [
            getattr(estimator, wrapped_name)
            for wrapped_name in wrapped_names
            if hasattr(estimator, wrapped_name)
        ]
        pipeline_steps = list(getattr(estimator, "steps", ()))
        estimators_to_visit += [last_step for _, last_step in pipeline_steps[-1:]]
    return False
