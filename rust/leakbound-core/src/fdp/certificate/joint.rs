//! One proof for several numbers of guesses: which of them is tested may depend on scores, and on
//! labels revealed from the outside in.
//!
//! Before labels are seen, levels c'_1 < c'_2 < … are fixed; they name nested sets
//! G_1 ⊂ G_2 ⊂ … of guesses, |G_l| ≤ c'_l, by scores alone. The level L that is tested may depend on
//! the mechanism's output and on the labels of examples outside G_L, provided that whether L is l
//! or smaller never depends on a label inside G_l. W counts the correct guesses in G_L. Let
//! p_{l,j} = P(L = l, W = j), and an edge be a pair (l, s) with 0 ≤ s < c'_l.
//!
//! **Theorem 3.1 for pairs.** For every set S of edges, f̄ bounds
//! a = Σ_S (s+1) p_{l,s+1}/m by f̄(b), b = Σ_S (c'_l−s) p_{l,s}/((k−1) m).
//! *Proof.* For an example i, fix the labels of the others. On the event i ∈ G_L every decision used
//! labels outside sets that contain i. So L is a function of the output there, and so is R, how many
//! of the others in G_L are guessed right; for each value v, "i is in G_L, the guess about it is v,
//! and (L, R) is in S" is an event of the output. With v the true value it means a correct guess
//! with (L, W−1) in S, else a wrong one with (L, W) in S; f-DP bounds the probability of the one by f̄
//! of the probability of the other. Average over v, the others' labels and i, with f̄ concave, as in
//! the original; a set with fewer guesses than c'_l only makes b larger than it is. ∎
//!
//! **Joint certificate.** Take λ(A) ≥ 0 with integral Ψ, A_{l,s} ≥ 0 and κ ≥ 0, λ and κ common to all
//! levels, with, for all l and j,
//!
//! (j/m) A_{l,j−1} − ((c'_l−j)/(m (k−1))) Ψ(A_{l,j}) ≥ 1{j ≥ v_l} − κ.
//!
//! Then P(W ≥ v_L) ≤ κ + ∫ D(λ(A)) dA, A up to the largest A_{l,s}. *Proof.* That of one level, for
//! the sets {(l, s) : A_{l,s} > A}: multiply by p_{l,j} and sum over l and j, Σ p_{l,j} = 1. ∎
//! It is the dual of the linear programme over all laws p that obey Theorem 3.1 for pairs: with the
//! best λ and κ nothing is lost.
//!
//! **A bound on a parameter.** Let curves f_θ allow more the larger θ, and v(t) be counts that never
//! fall with t. From (L, W) find the largest t with W ≥ v_L(t), and report the largest θ at which a
//! joint certificate of the vector v(t) proves at most β. It is above the truth θ₀ with probability
//! at most β. *Proof.* What is reported is a function of t. Let t₀ be the least t of those that can
//! occur whose report is above θ₀. If the report is above θ₀ then t ≥ t₀, so W ≥ v_L(t) ≥ v_L(t₀),
//! of which the certificate of v(t₀) says that its probability is at most β at a θ ≥ θ₀, and so at
//! θ₀. ∎ Whatever v is, this is valid; a vector whose levels are equally unlikely proves most.

use super::descent::{Found, common_proof, common_proof_from};
use crate::error::AuditError;
use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;
use crate::interrupt::Interrupt;

/// A proof of an upper bound on the probability that W ≥ v_L, whatever the level L chosen.
#[derive(Debug, Clone)]
pub struct JointCertificate {
    levels: Vec<Counts>,
    found: Option<Found>,
}

impl JointCertificate {
    /// A certificate for levels with `guesses()` guesses and v_l = `correct()`, made at a curve. A
    /// level whose v_l is above c'_l has no place among them: it never rejects.
    pub fn new(
        levels: &[Counts],
        curve: &dyn TradeOff,
        interrupt: &Interrupt,
    ) -> Result<Self, AuditError> {
        // A count of 0 is always reached, and nothing is proved of it.
        let possible = !levels.is_empty() && levels.iter().all(|level| level.correct() > 0);
        let found = if possible {
            common_proof(levels, curve, interrupt)?
        } else {
            None
        };
        let levels = levels.to_vec();
        Ok(Self { levels, found })
    }

    /// A certificate of the same levels made at another curve: quicker if that is not far.
    pub fn made_at(&self, curve: &dyn TradeOff, interrupt: &Interrupt) -> Result<Self, AuditError> {
        let Some(found) = &self.found else {
            return Self::new(&self.levels, curve, interrupt);
        };
        let found = common_proof_from(found, &self.levels, curve, interrupt)?;
        let levels = self.levels.clone();
        Ok(Self { levels, found })
    }

    /// What its slopes prove for a curve, rounded up; 1 if no proof was found.
    pub fn bound_for(&self, curve: &dyn TradeOff) -> f64 {
        let found = self.found.as_ref();
        found.map_or(1.0, |found| found.proof.bound(curve).min(1.0))
    }
}
