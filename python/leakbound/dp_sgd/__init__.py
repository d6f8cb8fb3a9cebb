"""Audits of DP-SGD: a training run that is watched, and one step that is probed.

`watch_dp_sgd` asks whether a run is as private as its accountant says; `probe_dp_step` whether the
step itself clips and adds noise as claimed, whatever implements it.
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
