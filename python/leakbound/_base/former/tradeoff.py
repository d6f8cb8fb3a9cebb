"""The former place of :mod:`leakbound.claims.tradeoff`."""

from leakbound.claims.tradeoff import TradeOff

__all__ = ["TradeOff"]
