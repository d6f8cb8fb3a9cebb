//! Bounds from the best of many cuts.
//!
//! - `statistic`: what makes a cut stand out.
//! - `bound`: what a test over cuts returns.
//! - `best_cut`: the cut at which a statistic is largest.
//! - `calibration`: the level of that maximum, exact by a boundary-crossing probability.
//! - `offsets`: the same where every guess has odds of its own.
//! - `mixture`: likelihood ratios that need no calibration.
//! - `curve`: bounds cut by cut, for plots.

pub(crate) mod best_cut;
pub(crate) mod bound;
pub(crate) mod calibration;
pub(crate) mod curve;
pub(crate) mod mixture;
pub(crate) mod offsets;
pub(crate) mod statistic;
