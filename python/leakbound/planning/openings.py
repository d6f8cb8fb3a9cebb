"""Openings of commitments from the folders that hold them."""

import os
from pathlib import Path

from leakbound.planning.commitment import Opening
from leakbound.planning.inclusion import InclusionPlan

__all__ = ["load_opening"]


def load_opening(folder: str | os.PathLike[str]) -> Opening:
    """Read what `Opening.save` wrote: a plan, and nonce and protocol beside it.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder.

    Returns
    -------
    Opening
        The opening.

    Raises
    ------
    CommitmentError, PlanFormatError
        If a file is not what it should be.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> protocol = {
    ...     "claim": {"type": "PureDP"},
    ...     "confidence": 0.95,
    ...     "cuts": "auto",
    ...     "sides": "both",
    ...     "attacks": ["loss"],
    ...     "unit": "one image",
    ...     "canaries": "9 images with wrong labels",
    ... }
    >>> opening = InclusionPlan.create(9).commit(protocol)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     opening.save(folder)
    ...     load_opening(folder).commitment == opening.commitment
    True
    """
    place = Path(folder)
    return Opening.read(place / "opening.json", InclusionPlan.load(place / "plan.npz"))
