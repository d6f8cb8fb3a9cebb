//! One proof for several numbers of guesses: their choice may depend on scores.
//!
//! Before labels are seen, levels c'_1 < c'_2 < … are fixed. The level L at which an audit guesses
//! may be any function of the mechanism's output, such as how many scores stand out. Let
//! p_{l,j} = P(L = l, W = j), and an edge be a pair (l, s) with 0 ≤ s < c'_l.
//!
//! **Theorem 3.1 for pairs.** For every set S of edges, f̄ bounds
//! a = Σ_S (s+1) p_{l,s+1}/m by f̄(b), b = Σ_S (c'_l−s) p_{l,s}/((k−1) m).
//! *Proof.* For an example i, fix the values of the others. Let R be how many of the others are
//! guessed right. For each value v, "the guess about i is v and (L, R) in S" is an event of the
//! output. With v the true value it means a correct guess with (L, W−1) in S, else a wrong one with
//! (L, W) in S; f-DP bounds the probability of the one by f̄ of the probability of the other. Average
//! over v, the others' values and i, with f̄ concave, as in the original. ∎
//!
//! **Joint certificate.** Take λ(A) ≥ 0 with integral Ψ, A_{l,s} ≥ 0 and κ ≥ 0, λ and κ common to all
//! levels, with, for all l and j,
//!
//! (j/m) A_{l,j−1} − ((c'_l−j)/(m (k−1))) Ψ(A_{l,j}) ≥ 1{j ≥ c_l} − κ.
//!
//! Then P(W ≥ c_L) ≤ κ + ∫ D(λ(A)) dA, A up to the largest A_{l,s}. *Proof.* That of one level, for
//! the sets {(l, s) : A_{l,s} > A}: multiply by p_{l,j} and sum over l and j, Σ p_{l,j} = 1. ∎
//!
//! With y = (c'_l/m) A these are the inequalities of one level each, all with one λ. The sum of the
//! levels' own bounds is valid too (at each, {L = l, W ≥ c_l} lies in what an audit that always
//! guesses at l rejects), and stands where it is smaller.

use super::bound::Certificate;
use crate::error::{AuditError, check_level};
use crate::fdp::counts::Counts;
use crate::fdp::recursion;
use crate::fdp::tradeoff::function::TradeOff;
use crate::interrupt::Interrupt;

/// Shares of τ that each level has on its own, tried in turn; a joint proof costs little.
const SHARES: [f64; 10] = [1.0, 0.98, 0.95, 0.92, 0.88, 0.82, 0.75, 0.65, 0.5, 0.35];

/// For each of several numbers of guesses the least count of correct ones at which an f-DP
/// mechanism is rejected, at level τ whichever number the scores choose; c' + 1 where no count
/// suffices.
///
/// A function of the arguments alone, so that labels have no part in it. It holds for one curve at
/// a time: nothing is promised about the order of counts for different curves or levels.
///
/// # Errors
/// Those of [`Counts::new`], τ outside (0, 1), or an interruption.
///
/// ```
/// use leakbound_core::Interrupt;
/// use leakbound_core::fdp::{certificate, tradeoff::Gaussian};
/// let curve = Gaussian::new(1.0, 0.0)?;
/// let run = Interrupt::default();
/// let one = certificate::least_correct(1000.0, &[100], 2, false, &curve, 0.05, &run)?;
/// let two = certificate::least_correct(1000.0, &[50, 100], 2, false, &curve, 0.05, &run)?;
/// assert!(two[1] >= one[0] && two[1] <= one[0] + 1);
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
pub fn least_correct(
    m: f64,
    levels: &[u64],
    arms: u32,
    one_sided: bool,
    curve: &dyn TradeOff,
    tau: f64,
    interrupt: &Interrupt,
) -> Result<Vec<u64>, AuditError> {
    let tau = check_level("tau", tau)?;
    let levels = levels.iter();
    let counts = levels.map(|&guesses| Counts::new(m, guesses, 0, arms, one_sided));
    let mut ladders = Vec::new();
    for counts in counts {
        ladders.push(Ladder::new(&counts?, curve, tau, interrupt)?);
    }
    let smallest = 1.0 / ladders.len() as f64;
    for share in SHARES.into_iter().filter(|&share| share > smallest) {
        let mut chosen = rungs(&mut ladders, curve, share * tau, interrupt)?;
        if joint_bound(&ladders, &chosen, curve, tau) <= tau {
            lower(&ladders, &mut chosen, curve, tau);
            return Ok(counts_of(&ladders, &chosen));
        }
    }
    // Every level at its equal share: the bounds add up to τ.
    let mut chosen = rungs(
        &mut ladders,
        curve,
        smallest * tau * (1.0 - 1e-12),
        interrupt,
    )?;
    lower(&ladders, &mut chosen, curve, tau);
    Ok(counts_of(&ladders, &chosen))
}

/// Certificates for growing counts at one number of guesses, from the least one that is rejected at
/// τ on its own.
struct Ladder {
    rungs: Vec<Certificate>,
    first: Counts,
}

impl Ladder {
    fn new(
        counts: &Counts,
        curve: &dyn TradeOff,
        tau: f64,
        interrupt: &Interrupt,
    ) -> Result<Self, AuditError> {
        let mut first = first_by_recursion(counts, curve, tau, interrupt)?;
        while first > 1 {
            let below = counts.with_correct(first - 1);
            if Certificate::new(&below, curve, interrupt)?.bound() > tau {
                break;
            }
            first -= 1;
        }
        Ok(Self {
            rungs: Vec::new(),
            first: counts.with_correct(first.min(counts.guesses())),
        })
    }

    /// The index of the first certificate of a bound of at most τ, or one beyond the last count.
    fn climb(
        &mut self,
        curve: &dyn TradeOff,
        tau: f64,
        interrupt: &Interrupt,
    ) -> Result<usize, AuditError> {
        let mut at = 0;
        loop {
            let correct = self.first.correct() + at as u64;
            if correct > self.first.guesses() {
                return Ok(at);
            }
            if at == self.rungs.len() {
                let counts = self.first.with_correct(correct);
                self.rungs
                    .push(Certificate::new(&counts, curve, interrupt)?);
            }
            if self.rungs[at].bound() <= tau {
                return Ok(at);
            }
            at += 1;
        }
    }
}

/// The least count that Algorithm 3 rejects, or c' + 1.
fn first_by_recursion(
    counts: &Counts,
    curve: &dyn TradeOff,
    tau: f64,
    interrupt: &Interrupt,
) -> Result<u64, AuditError> {
    let (mut kept, mut rejected) = (0, counts.guesses() + 1);
    while rejected - kept > 1 {
        let middle = kept + (rejected - kept) / 2;
        let decision = recursion::decide(&counts.with_correct(middle), curve, tau, interrupt)?;
        if decision.rejected() {
            rejected = middle;
        } else {
            kept = middle;
        }
    }
    Ok(rejected)
}

/// For each level, where its own bound is at most τ.
fn rungs(
    ladders: &mut [Ladder],
    curve: &dyn TradeOff,
    tau: f64,
    interrupt: &Interrupt,
) -> Result<Vec<usize>, AuditError> {
    let climb = |ladder: &mut Ladder| ladder.climb(curve, tau, interrupt);
    ladders.iter_mut().map(climb).collect()
}

/// Take single counts less while the joint bound allows it, the level of fewest guesses first.
fn lower(ladders: &[Ladder], chosen: &mut [usize], curve: &dyn TradeOff, tau: f64) {
    for level in 0..chosen.len() {
        while chosen[level] > 0 {
            chosen[level] -= 1;
            if joint_bound(ladders, chosen, curve, tau) > tau {
                chosen[level] += 1;
                break;
            }
        }
    }
}

/// The least bound found for all levels together: by the slopes of each, or the sum of their own.
fn joint_bound(ladders: &[Ladder], chosen: &[usize], curve: &dyn TradeOff, most: f64) -> f64 {
    // A level that rejects nothing has all A = 0.
    let own = ladders.iter().zip(chosen);
    let own: Vec<&Certificate> = own
        .filter_map(|(ladder, &at)| ladder.rungs.get(at))
        .collect();
    let levels: Vec<Counts> = own.iter().map(|certificate| certificate.counts).collect();
    let sum: f64 = own.iter().map(|certificate| certificate.bound()).sum();
    let proofs = own.iter().filter_map(|certificate| {
        let proof = certificate.proof.as_ref()?;
        proof.joint(&certificate.counts, &levels, curve, most)
    });
    proofs.fold(sum * (1.0 + 1e-12), f64::min)
}

fn counts_of(ladders: &[Ladder], chosen: &[usize]) -> Vec<u64> {
    let pairs = ladders.iter().zip(chosen);
    pairs
        .map(|(ladder, &at)| ladder.first.correct() + at as u64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fdp::tradeoff::gaussian::Gaussian;

    const TAU: f64 = 0.05;

    /// Levels at which an audit of 1000 examples guesses, and what a joint bound may cost.
    const CASES: [(&[u64], f64); 3] = [
        (&[100, 200], 1.04),
        (&[100, 200, 400], 1.10),
        (&[50, 100, 200, 400, 800], 1.6),
    ];

    fn least(levels: &[u64], curve: &Gaussian, tau: f64) -> Vec<u64> {
        let run = Interrupt::default();
        least_correct(1000.0, levels, 2, false, curve, tau, &run).unwrap()
    }

    #[test]
    fn one_level_is_the_tight_test() {
        let run = Interrupt::default();
        for mu in [0.0, 0.4, 0.8] {
            let curve = Gaussian::new(mu, 0.0).unwrap();
            let found = least(&[150], &curve, TAU)[0];
            let bound = |correct| {
                let counts = Counts::new(1000.0, 150, correct, 2, false).unwrap();
                Certificate::new(&counts, &curve, &run).unwrap().bound()
            };
            assert!(bound(found) <= TAU && bound(found - 1) > TAU);
        }
    }

    #[test]
    fn several_levels_cost_little() {
        let run = Interrupt::default();
        for (levels, most) in CASES {
            let curve = Gaussian::new(0.3, 0.0).unwrap();
            let mut ladders: Vec<Ladder> = levels
                .iter()
                .map(|&guesses| {
                    let counts = Counts::new(1000.0, guesses, 0, 2, false).unwrap();
                    Ladder::new(&counts, &curve, TAU, &run).unwrap()
                })
                .collect();
            let chosen = rungs(&mut ladders, &curve, TAU, &run).unwrap();
            let own = ladders
                .iter()
                .zip(&chosen)
                .map(|(l, &at)| l.rungs[at].bound());
            let largest = own.fold(0.0, f64::max);
            let joint = joint_bound(&ladders, &chosen, &curve, 0.5);
            assert!(joint > 0.999 * largest, "{levels:?} {joint} {largest}");
            assert!(joint < most * largest, "{levels:?} {joint} {largest}");
        }
    }

    #[test]
    fn counts_lie_between_those_of_one_level_and_of_equal_shares() {
        for (levels, _) in CASES {
            for mu in [0.0, 0.3, 1.0] {
                let curve = Gaussian::new(mu, 0.0).unwrap();
                let share = TAU * (1.0 - 1e-9) / levels.len() as f64;
                for (&level, found) in levels.iter().zip(least(levels, &curve, TAU)) {
                    assert!(found >= least(&[level], &curve, TAU)[0]);
                    assert!(found <= least(&[level], &curve, share)[0]);
                }
            }
        }
    }

    #[test]
    fn nothing_is_rejected_where_all_right_is_likely() {
        let curve = Gaussian::new(9.0, 0.0).unwrap();
        assert_eq!(least(&[5, 10], &curve, TAU), [6, 11]);
    }
}
