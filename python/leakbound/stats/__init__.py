"""The numbers behind the audits, one by one: tails, limits and bounds over all cuts of a path.

Functions of numbers broadcast their arguments; scalars give a Python float. Lower limits are
rounded down and upper tails up, by less than 1e-12 relative.
"""

from leakbound.stats.approximate_dp import one_run_epsilon, one_run_p_value
from leakbound.stats.binomial import (
    binomial_tail,
    clopper_pearson,
    log_normal_cdf,
    normal_cdf,
    normal_quantile,
)
from leakbound.stats.composition import composition_bound, shift_delta, shift_mu
from leakbound.stats.distribution_shift import (
    bootstrap_quantile,
    match,
    residual_scores,
    tamper_probability,
)
from leakbound.stats.f_dp import fdp_lower_bound, fdp_p_value, fdp_rejects
from leakbound.stats.poisson_binomial import (
    poisson_binomial_epsilon,
    poisson_binomial_tail,
    poisson_binomial_tail_offsets,
)
from leakbound.stats.scans import kl_scan, kl_scan_offsets, union_bound

__all__ = [
    "binomial_tail",
    "bootstrap_quantile",
    "clopper_pearson",
    "composition_bound",
    "fdp_lower_bound",
    "fdp_p_value",
    "fdp_rejects",
    "kl_scan",
    "kl_scan_offsets",
    "log_normal_cdf",
    "match",
    "normal_cdf",
    "normal_quantile",
    "one_run_epsilon",
    "one_run_p_value",
    "poisson_binomial_epsilon",
    "poisson_binomial_tail",
    "poisson_binomial_tail_offsets",
    "residual_scores",
    "shift_delta",
    "shift_mu",
    "tamper_probability",
    "union_bound",
]
