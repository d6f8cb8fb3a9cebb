"""
The bound of every cut
======================

For each number of guesses, most confident first, the bound that a scan of all cuts would give at
this one, and the one that is reported after paying for the search.
"""

import leakbound as lb

game = lb.simulate.gaussian(2_000, mu=1.5, seed=0)
result = lb.audit(game.scores, lb.Coins(game.member), cuts=lb.KLScan())
_ = result.plot("bound")
