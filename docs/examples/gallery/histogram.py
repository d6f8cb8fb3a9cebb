"""
Scores of members and non-members
=================================

What the attack sees. Here 5 % of the examples leak and all others look alike. Averages show little;
the bound comes from the tail.
"""

import leakbound as lb

game = lb.simulate.randomized_response(2_000, epsilon=4.0, fraction=0.05, seed=0)
result = lb.audit(game.scores, lb.Coins(game.member))
print(result.summary().headline)
_ = result.plot("histogram")
