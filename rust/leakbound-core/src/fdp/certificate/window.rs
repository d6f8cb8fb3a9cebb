//! How many counts around the observed one matter.

use crate::fdp::counts::Counts;

/// √(c (c' − c)/c'), about how far the counts that matter reach.
fn spread(counts: &Counts) -> f64 {
    let (guesses, correct) = (counts.guesses() as f64, counts.correct() as f64);
    (correct * (guesses - correct) / guesses).sqrt()
}

/// So many edges above may matter.
pub(super) fn edges_above(counts: &Counts) -> usize {
    let wrong = (counts.guesses() - counts.correct()) as f64;
    wrong.min(8.0 * spread(counts) + 16.0) as usize
}

/// Enough lines that what they add to a bound is some 1e-4 of it.
pub(super) fn line_count(counts: &Counts) -> usize {
    ((64.0 * spread(counts).sqrt()) as usize).clamp(512, 4096)
}
