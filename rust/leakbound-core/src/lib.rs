//! Lower bounds on the privacy leakage of a trained model, from membership scores.
//!
//! An audit ranks examples by score, reads off which guesses of membership were correct, and asks
//! how private a mechanism may be and still let an attacker guess this well. This crate holds the
//! part between scores and the bound on the probability of a correct guess:
//!
//! ```text
//! scores ─► Ranking ─► Path ─► best cut of a statistic ─► union bound
//!                        │                             └► scan, calibrated by Boundary
//!                        └► one cut fixed in advance ─► Clopper–Pearson
//! ```
//!
//! # Glossary
//!
//! | symbol | meaning |
//! |---|---|
//! | `m` | examples of the audit |
//! | `r` | guesses made, the length of a prefix of the path (a *cut*) |
//! | `w` | correct guesses among the first `r` |
//! | `p` | probability that a guess is correct, at most σ(ε) under ε-DP |
//! | `q` | its complement, 1 − p |
//! | `β` | error probability of a bound |
//!
//! # What every bound assumes
//!
//! Conditional on the scores, and on which earlier guesses were correct, each guess is correct with
//! probability at most `p` (*sequential domination*). Coupling with independent Bernoulli(`p`)
//! variables then bounds every increasing event of the path, whatever the order of visiting, as
//! long as order and cuts depend on scores alone. [`Path`] makes the second condition hold: cuts
//! lie only at the ends of tied blocks, so labels never decide an order.

mod approx;
mod crossing;
mod error;
pub mod fdp;
mod games;
mod guesses;
mod halving;
mod interrupt;
mod md5;
mod outside_in;
pub mod rankings;
mod scan;
mod sum;
mod tally;

pub use approx::limit::ApproxLimit;
pub use approx::tail::{ApproxForm, ApproxTail};
pub use crossing::boundary::Boundary;
pub use error::AuditError;
pub use games::{Leak, play};
pub use guesses::grid::Grid;
pub use guesses::matching::{Guessing, MatchedCounts, Observed, matched_counts};
pub use guesses::path::{Cut, Order, Path};
pub use guesses::ranking::{Ranking, Ties};
pub use interrupt::Interrupt;
pub use md5::hashed;
pub use outside_in::{Allowance, Form, JointTail, OutsideIn, Pilot, Roles};
pub use scan::best_cut::{CutBound, best_cut};
pub use scan::calibration::Scan;
pub use scan::curve::{CurvePoint, pointwise_curve, scan_curve};
pub use scan::mixture::MeanMixture;
pub use scan::offsets::{OffsetBound, scan_offset_rows, scan_offsets};
pub use scan::replicates::Replicated;
pub use scan::statistic::{CutStatistic, EqualLevel, Hoeffding, KlDivergence};
pub use tally::{KeyCount, KeyCounts, Score};
