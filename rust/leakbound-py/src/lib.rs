//! The extension module `leakbound._core`: thin wrappers, no arithmetic.
//!
//! Every call that computes passes through `enter`: it borrows the arrays, detaches from the
//! interpreter, runs on a thread pool of its own, answers Ctrl-C and converts errors, panics
//! included. What ends at once passes through `at_once`, which stays on the calling thread. Only
//! getters of stored numbers are called as they are.

// Python hands arguments over by value.
#![allow(clippy::needless_pass_by_value)]

mod approx;
mod audits;
mod confidence;
mod convert;
mod enter;
mod errors;
mod fdp;
mod games;
mod outside_in;
mod panics;
mod poisson_binomial;
mod propensity;
mod rankings;
mod tails;
mod tally;
mod unions;
mod zero_run;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::approx::{approx_epsilon, approx_p_value};
    #[pymodule_export]
    use crate::audits::{
        LowerBound, OffsetBound, Path, Ranking, kl_curve, kl_scan, kl_scan_offsets,
        ville_bound_of_moments,
    };
    #[pymodule_export]
    use crate::confidence::{LogOddsSet, balanced_scores};
    #[pymodule_export]
    use crate::enter::{_panic, set_threads, simd, threads};
    #[pymodule_export]
    use crate::fdp::{Curve, fdp_critical_laplace, fdp_critical_mu, fdp_p_value, fdp_rejects};
    #[pymodule_export]
    use crate::games::play;
    #[pymodule_export]
    use crate::outside_in::{
        Allowed, Joint, Plan, Sample, approx_joint_epsilon, approx_joint_largest,
        fdp_least_rejected,
    };
    #[pymodule_export]
    use crate::poisson_binomial::{
        poisson_binomial_epsilon, poisson_binomial_tail, replicated_epsilon, weighted_epsilon,
    };
    #[pymodule_export]
    use crate::propensity::{LogisticModel, PropensityRows, linear_log_odds};
    #[pymodule_export]
    use crate::rankings::{Cells, PooledLaw, Reference, convex_hull};
    #[pymodule_export]
    use crate::tails::{
        binomial_tail, clopper_pearson, log_normal_cdf, normal_cdf, normal_quantile,
    };
    #[pymodule_export]
    use crate::tally::{KeyCounts, hashed_ids};
    #[pymodule_export]
    use crate::unions::{union_bound, union_curve};
    #[pymodule_export]
    use crate::zero_run::{kl_scan_offset_rows, kl_scan_offset_rows_lowest, matched_counts};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::panics::install_hook();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
