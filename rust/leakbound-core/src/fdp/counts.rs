//! What an audit of f-DP observes.

use crate::error::{AuditError, out_of_range};

/// c' guesses among m examples with one of k values each, c of them correct.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    examples: f64,
    guesses: u64,
    correct: u64,
    arms: u32,
}

impl Counts {
    /// `correct` of `guesses` guesses were correct, about `examples` examples with `arms` equally
    /// likely values each: two for inclusion.
    ///
    /// `one_sided` if no guess but "member" is ever made. Then each example's inequality is
    /// ½ f̄(2 ·), and half as many examples stand for it: with u the inclusion and v the guess,
    /// P(E, u=1, v=1) = ½ P(E, v=1 | u=1) ≤ ½ f̄(P(E, v=1 | u=0)) = ½ f̄(2 P(E, u=0, v=1)), and f̄
    /// is concave, so the mean over examples obeys it too.
    ///
    /// # Errors
    /// `examples` not a positive number, more correct guesses than guesses, no guess, fewer than
    /// two `arms`, or more than two with one-sided guesses.
    ///
    /// ```
    /// use leakbound_core::fdp::Counts;
    /// assert_eq!(Counts::new(100.0, 50, 40, 2, true)?.examples(), 50.0);
    /// assert!(Counts::new(100.0, 50, 51, 2, false).is_err());
    /// # Ok::<(), leakbound_core::AuditError>(())
    /// ```
    pub fn new(
        examples: f64,
        guesses: u64,
        correct: u64,
        arms: u32,
        one_sided: bool,
    ) -> Result<Self, AuditError> {
        if !(examples >= f64::MIN_POSITIVE && examples.is_finite()) {
            return out_of_range("m", examples, "a positive number");
        }
        if guesses == 0 {
            return out_of_range("guesses", 0.0, "at least 1");
        }
        if correct > guesses {
            return out_of_range("correct", correct as f64, "at most the number of guesses");
        }
        if arms < 2 {
            return out_of_range("k", arms.into(), "at least 2");
        }
        if arms > 2 && one_sided {
            return out_of_range("k", arms.into(), "2 for one-sided guesses");
        }
        Ok(Self {
            // Half of the smallest number allowed is still above 0.
            examples: if one_sided { 0.5 * examples } else { examples },
            guesses,
            correct,
            arms,
        })
    }

    /// The same with so many correct guesses, at most c'.
    pub(super) fn with_correct(&self, correct: u64) -> Self {
        Self { correct, ..*self }
    }

    /// m, or m/2 for one-sided guesses.
    pub fn examples(&self) -> f64 {
        self.examples
    }

    /// c', the guesses made.
    pub fn guesses(&self) -> u64 {
        self.guesses
    }

    /// c, the correct ones.
    pub fn correct(&self) -> u64 {
        self.correct
    }

    /// k − 1, the wrong values of an example.
    pub fn others(&self) -> f64 {
        f64::from(self.arms) - 1.0
    }
}
