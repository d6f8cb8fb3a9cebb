//! Which nodes of a contour matter, for weights that leave many.

use std::f64::consts::PI;

use super::tilted_group::TiltedGroup;

/// Nodes with |ψ| below e⁻⁴⁶ = 10⁻²⁰ are dropped: however many, they do not add up to anything.
pub(super) const DROPPED: f64 = 46.0;
/// Nodes held, with a dozen numbers each, and nodes looked at.
pub(super) const MOST_NODES: usize = 1 << 19;
const MOST_LOOKS: usize = 1 << 22;

/// The k ≤ J with |ψ(πk/J)| not known to be below e⁻⁴⁶.
///
/// −ln |ψ(φ)| ≥ D(φ) = Σ 2A sin²(tφ/2) over the groups. By Cauchy–Schwarz √D has a slope of at most
/// √(ΣAt²/2), for any part of the sum, so one large D clears a whole stretch of nodes. None if these
/// are too many.
pub(super) fn kept_nodes(groups: &[TiltedGroup], half: f64) -> Option<Vec<u64>> {
    let mut damping: Vec<(f64, f64)> = groups
        .iter()
        .map(|group| (group.weight, group.sums.even[0]))
        .collect();
    damping.sort_by(|a, b| b.1.total_cmp(&a.1));
    let variance: f64 = damping.iter().map(|(t, a)| a * t * t).sum();
    let step = PI / half;
    let nodes_per_root = 1.0 / ((0.5 * variance).sqrt() * step);
    let (mut kept, mut k) = (Vec::new(), 0.0);
    for _ in 0..MOST_LOOKS {
        if k > half {
            return Some(kept);
        }
        if kept.len() >= MOST_NODES {
            return None;
        }
        let mut exponent = 0.0;
        for (weight, a) in &damping {
            let sine = (0.5 * weight * step * k).sin();
            exponent += 2.0 * a * sine * sine;
            if exponent > 6.0 * DROPPED {
                break;
            }
        }
        if exponent <= DROPPED {
            kept.push(k as u64);
            k += 1.0;
        } else {
            let clear = (exponent.sqrt() - DROPPED.sqrt()) * nodes_per_root * (1.0 - 1e-9);
            k += clear.floor().max(1.0);
        }
    }
    None
}
