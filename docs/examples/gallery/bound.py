"""
The bound at each threshold
===========================

The bound at each number of guesses, most confident first. The dot marks the reported bound, which
is corrected for having tried all thresholds.
"""

import leakbound as lb

game = lb.simulate.gaussian(2_000, mu=1.5, seed=0)
result = lb.audit(game.scores, lb.Coins(game.member), cuts=lb.KLScan())
_ = result.plot("bound")
