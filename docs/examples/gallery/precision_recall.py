"""
Precision and recall
====================

How many guesses of "member" are right, against how many members are found.
"""

import leakbound as lb

game = lb.simulate.gaussian(2_000, mu=1.5, seed=0)
result = lb.audit(game.scores, lb.Coins(game.member))
_ = result.plot("precision_recall")
