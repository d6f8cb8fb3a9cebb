"""
The ROC curve
=============

True against false positives, with the region that the refuted guarantee would not have allowed.
"""

import leakbound as lb

game = lb.simulate.gaussian(2_000, mu=1.5, seed=0)
result = lb.audit(game.scores, lb.Coins(game.member))
_ = result.plot("roc")
