from leakbound.simulate.games import Game as Game
from leakbound.simulate.games import gaussian as gaussian
from leakbound.simulate.games import mixture as mixture
from leakbound.simulate.games import null as null
from leakbound.simulate.games import randomized_response as randomized_response
