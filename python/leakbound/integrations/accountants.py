"""What accountants of other libraries say of a training run."""

from __future__ import annotations

from typing import Any

from leakbound._base.checks import real, shown
from leakbound._base.imports import needs
from leakbound.errors import AbstentionError, OptionTypeError
from leakbound.results.dp_sgd import Accounted


def accounted_by(engine: Any, *, delta: float) -> Accounted:
    """Return what the accountant of an opacus PrivacyEngine says of the steps taken so far.

    Parameters
    ----------
    engine : opacus.PrivacyEngine
        The engine that made the run private.
    delta : float
        The δ to state ε at, in (0, 1).

    Returns
    -------
    Accounted
        ε at this δ, with sampling rate, number of steps and noise multiplier; a rate or a
        multiplier that changed is left out.

    Raises
    ------
    MissingExtraError
        If opacus is not installed.
    AbstentionError
        If the engine has counted no step.
    OptionError, OptionTypeError
        If `delta` is outside (0, 1), or `engine` is not a PrivacyEngine.

    Examples
    --------
    >>> from opacus import PrivacyEngine
    >>> engine = PrivacyEngine(accountant="prv")
    >>> for _ in range(100):
    ...     engine.accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> accounted = accounted_by(engine, delta=1e-5)
    >>> accounted.source, accounted.steps, round(accounted.epsilon, 1)
    ('opacus prv', 100, 0.7)
    """
    checked = real(delta, "delta", above=0, below=1)
    with needs("dp", "accounted_by"):
        from opacus import PrivacyEngine
    if not isinstance(engine, PrivacyEngine):
        message = f"engine must be an opacus PrivacyEngine, got {shown(engine)}"
        raise OptionTypeError(message)
    accountant = engine.accountant
    if not accountant.history:
        message = "the engine has counted no step: ask after training"
        raise AbstentionError(message)
    noise, rates, steps = zip(*accountant.history, strict=True)
    return Accounted(
        epsilon=float(engine.get_epsilon(checked)),
        delta=checked,
        source=f"opacus {accountant.mechanism()}",
        sampling_rate=_only(rates),
        steps=int(sum(steps)),
        noise_multiplier=_only(noise),
    )


def _only(values: tuple[float, ...]) -> float | None:
    return float(values[0]) if len(set(values)) == 1 else None
