"""Membership scores from PyTorch models: one number per example, higher for likelier members."""

from leakbound.errors import MissingExtraError

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    message = (
        "leakbound.torch needs PyTorch, which is not installed: pip install 'leakbound[torch]'"
    )
    raise MissingExtraError(message) from error

from leakbound._base.scores import Scores
from leakbound.torch.scoring import score, token_losses
from leakbound.torch.signals import Signal

__all__ = ["Scores", "Signal", "score", "token_losses"]
