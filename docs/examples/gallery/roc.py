"""
The ROC curve
=============

True positives against false positives. The shaded region is not possible under the refuted
guarantee.
"""

import leakbound as lb

game = lb.simulate.gaussian(2_000, mu=1.5, seed=0)
result = lb.audit(game.scores, lb.Coins(game.member))
_ = result.plot("roc")
