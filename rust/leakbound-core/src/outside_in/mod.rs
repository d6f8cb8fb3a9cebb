//! The number of guesses, chosen by the data from the outside in.
//!
//! Levels c'_1 < … < c'_K are fixed before labels are seen. From the largest down: decide from the
//! scores and the labels of guesses *beyond* the level whether to stop there; otherwise look at the
//! labels down to the next level, and go on. No label within the level that is tested is seen
//! before it is chosen, so one joint certificate bounds the error, whatever the rule:
//! [`JointCertificate`](crate::fdp::certificate::JointCertificate) has theorem and proof for
//! trade-off functions, [`JointTail`] that for (ε, δ)-DP. Under pure DP the choice is free: given
//! all that was seen, each correct guess within has odds of at most e^ε. So it is for independent
//! trials under (ε, δ)-DP, by [`Allowance`].

mod allowance;
mod ends;
mod form;
mod joint_tail;
mod models;
mod pilot;
mod plan;

pub use allowance::Allowance;
pub use form::Form;
pub use joint_tail::JointTail;
pub use pilot::Pilot;
pub use plan::{OutsideIn, Roles};
