//! Bounds from the best of many cuts.

pub(crate) mod best_cut;
pub(crate) mod calibration;
pub(crate) mod curve;
pub(crate) mod deviation;
pub(crate) mod mixture;
pub(crate) mod offsets;
pub(crate) mod replicates;
pub(crate) mod statistic;
