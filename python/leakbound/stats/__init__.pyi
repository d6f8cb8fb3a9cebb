from leakbound.stats.binomial import binomial_tail as binomial_tail
from leakbound.stats.binomial import clopper_pearson as clopper_pearson
from leakbound.stats.binomial import log_normal_cdf as log_normal_cdf
from leakbound.stats.binomial import normal_cdf as normal_cdf
from leakbound.stats.binomial import normal_quantile as normal_quantile
from leakbound.stats.binomial import poisson_binomial_epsilon as poisson_binomial_epsilon
from leakbound.stats.binomial import poisson_binomial_tail as poisson_binomial_tail
from leakbound.stats.binomial import (
    poisson_binomial_tail_offsets as poisson_binomial_tail_offsets,
)
from leakbound.stats.distribution_shift import bootstrap_quantile as bootstrap_quantile
from leakbound.stats.distribution_shift import composition_bound as composition_bound
from leakbound.stats.distribution_shift import match as match
from leakbound.stats.distribution_shift import residual_scores as residual_scores
from leakbound.stats.distribution_shift import shift_delta as shift_delta
from leakbound.stats.distribution_shift import shift_mu as shift_mu
from leakbound.stats.distribution_shift import tamper_probability as tamper_probability
from leakbound.stats.guesses import fdp_lower_bound as fdp_lower_bound
from leakbound.stats.guesses import fdp_p_value as fdp_p_value
from leakbound.stats.guesses import fdp_rejects as fdp_rejects
from leakbound.stats.guesses import kl_scan_offsets as kl_scan_offsets
from leakbound.stats.guesses import one_run_epsilon as one_run_epsilon
from leakbound.stats.guesses import one_run_p_value as one_run_p_value
