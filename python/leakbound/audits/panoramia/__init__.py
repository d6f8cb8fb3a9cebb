"""PANORAMIA: members against generated non-members, with a baseline."""
