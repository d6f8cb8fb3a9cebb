//! Input makers shared by the benchmarks.
