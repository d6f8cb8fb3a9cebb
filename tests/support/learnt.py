"""Games with log-odds that are linear in features, and attacks that know them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """Rows of D', rows audited, features, and the standard deviation of the log-odds."""

    reference: int
    audited: int
    features: int
    spread: float

    def __str__(self) -> str:
        return f"n={self.reference}, m={self.audited}, d={self.features}, sd={self.spread}"


@dataclass(frozen=True)
class People:
    """Audited examples and D', with the log-odds of membership of the former."""

    features: Floats
    member: NDArray[np.bool_]
    log_odds: Floats
    reference: tuple[Floats, NDArray[np.bool_]]
    theta: Floats


def people(
    setting: Setting, rng: np.random.Generator, *, kind: str = "normal", intercept: float = 0.0
) -> People:
    """Draw them; features are "normal", "binary" or "heavy" (Student's t with three degrees)."""
    n, d = setting.reference, setting.features
    rows = n + setting.audited
    theta = rng.normal(size=d)
    theta *= setting.spread / np.linalg.norm(theta)
    if kind == "binary":
        features = (rng.random((rows, d)) < 0.3).astype(np.float64)
        theta /= np.sqrt(0.21)
    elif kind == "heavy":
        features = rng.standard_t(3, size=(rows, d)) / np.sqrt(3)
    else:
        features = rng.normal(size=(rows, d))
    log_odds = features @ theta
    log_odds += intercept - (log_odds.mean() if kind == "binary" else 0.0)
    member = rng.random(rows) < 1 / (1 + np.exp(-log_odds))
    return People(
        features[n:],
        member[n:],
        log_odds[n:],
        (features[:n], member[:n]),
        np.concatenate([[log_odds[0] - features[0] @ theta], theta]),
    )


def knowing(
    game: People, rng: np.random.Generator, what: str, estimate: Floats | None = None
) -> Floats:
    """Scores that saw no label, but know the log-odds: as they are, noisy, bent, or their error."""
    odds = game.log_odds
    if what == "noisy":
        return odds + rng.normal(size=odds.size)
    if what == "bent":
        return np.sign(odds) * odds**2 + np.sin(2 * odds)
    if what == "error" and estimate is not None:
        return odds - estimate
    return odds.copy()


def response(game: People, epsilon: float, rng: np.random.Generator) -> Floats:
    """Randomised response of ε, with all that features say of membership added."""
    told = rng.random(game.member.size) < 1 / (1 + np.exp(-epsilon))
    return np.where(game.member == told, epsilon, -epsilon) + game.log_odds


def gaussian(game: People, mu: float, rng: np.random.Generator) -> Floats:
    """The Gaussian mechanism of μ, with all that features say of membership added."""
    seen = mu * game.member + rng.normal(size=game.member.size)
    scores: Floats = mu * (seen - mu / 2) + game.log_odds
    return scores
