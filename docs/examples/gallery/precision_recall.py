"""
Precision and recall
====================

The share of "member" guesses that are right, against the share of members that are found.
"""

import leakbound as lb

game = lb.simulate.gaussian(2_000, mu=1.5, seed=0)
result = lb.audit(game.scores, lb.Coins(game.member))
_ = result.plot("precision_recall")
