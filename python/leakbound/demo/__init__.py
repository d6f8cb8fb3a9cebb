"""The demonstration: a real target trained on the spot and audited, without any download."""
