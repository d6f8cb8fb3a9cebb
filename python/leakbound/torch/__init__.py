"""Membership scores from PyTorch models: one number per example, higher for likelier members."""

from leakbound._base.imports import needs

with needs("torch", "leakbound.torch"):
    import torch as _torch  # noqa: F401

from leakbound._base.scores import Scores
from leakbound.torch.arrow_scorer import Scorer
from leakbound.torch.scoring import score, token_losses
from leakbound.torch.signals import Signal

__all__ = ["Scorer", "Scores", "Signal", "score", "token_losses"]
