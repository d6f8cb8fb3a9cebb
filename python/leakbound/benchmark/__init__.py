"""Compare bounds: how much they prove, and how often they are false.

`run` plays games with a known truth, or stored scores of trained models. Every bound audits every
game, and each audit gives a row with the bound, the truth, and the bound of the best fixed
threshold with labels known. A game is a function of `leakbound.simulate` or any callable
``game(m, seed=seed)``. A bound is a cut policy or your own function,
``bound(scores, member, claim, level)``.

Examples
--------
>>> from functools import partial
>>> import leakbound as lb
>>> from leakbound import simulate
>>> def half(scores, member, claim, level):
...     right = int(((scores > 0) == member).sum())
...     return claim.lower_bound(right, member.size, member.size, level)
>>> games = [partial(simulate.gaussian, mu=1), simulate.null]
>>> table = run(games, [lb.KLScan(), half], m=[200], seeds=range(9))
>>> [(line["method"], line["false_claims"]) for line in table.summary().lines]
[('KLScan', 0), ('half', 0), ('KLScan', 0), ('half', 0)]
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
