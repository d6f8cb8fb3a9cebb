"""Unary encoding: in 1.1 a bit of the user's own value is one too often (pure-ldp #11)."""

from pure_ldp.frequency_oracles import UEClient

claim, parameter = "pure", 0.5
d0, d1 = 1, 2
client = UEClient(epsilon=parameter, d=4)


def run(data, rng):
    return client.privatise(data)
