//! Inputs and ratios shared by the benchmarks.

use std::path::PathBuf;

/// The median that criterion last wrote for a benchmark, in nanoseconds; none if it did not run.
#[must_use]
pub fn median_nanoseconds(group: &str, work: &str, size: usize) -> Option<f64> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target")),
        Into::into,
    );
    let size = size.to_string();
    let file: PathBuf = [
        target,
        "criterion".into(),
        group.into(),
        work.into(),
        size.into(),
        "new".into(),
    ]
    .iter()
    .collect();
    let estimates = std::fs::read_to_string(file.join("estimates.json")).ok()?;
    let median = estimates.split("\"median\"").nth(1)?;
    let value = median.split("\"point_estimate\":").nth(1)?;
    value.split([',', '}']).next()?.trim().parse().ok()
}

/// A fixed stream of numbers uniform on [0, 1): benchmarks see the same input in every run.
#[derive(Debug, Clone)]
pub struct Uniforms(u64);

impl Uniforms {
    /// A stream for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Iterator for Uniforms {
    type Item = f64;

    /// `SplitMix64` (Steele, Lea and Flood 2014), top 53 bits.
    fn next(&mut self) -> Option<f64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// Scores and membership of `examples`: fair coins, members' scores shifted up by a little.
#[must_use]
pub fn scored_examples(examples: usize) -> (Vec<f64>, Vec<bool>) {
    let mut uniforms = Uniforms::new(1);
    let mut next = || uniforms.next().unwrap_or(0.5);
    (0..examples)
        .map(|_| {
            let member = next() < 0.5;
            let noise = next() + next() + next();
            (noise + if member { 0.1 } else { 0.0 }, member)
        })
        .unzip()
}
