//! Simulated games with a known leak, for planning audits.

use std::ops::Range;

use leakbound_math::memory::room;
use leakbound_math::stream::{Purpose, Stream};
use rayon::prelude::*;

use crate::error::{AuditError, out_of_range};
use crate::guesses::ranking::Ranking;
use crate::interrupt::Interrupt;

/// Examples drawn between two looks for interrupts.
const AT_ONCE: usize = 1 << 18;

/// How much a score tells about membership.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Leak {
    /// Members' scores are N(μ/2, 1), others' N(−μ/2, 1), all independent: a μ-GDP mechanism.
    Gaussian {
        /// The distance of the two means, at least 0.
        mu: f64,
    },
    /// The sign of a score is right with probability e^ε/(1 + e^ε) for a share of the examples
    /// drawn by lot, and a coin toss for the others, whose scores are smaller: an ε-DP mechanism.
    Response {
        /// ε, at least 0.
        epsilon: f64,
        /// Probability that an example is among that share, in (0, 1].
        fraction: f64,
    },
}

/// Play games number `games.start` to `games.end − 1` of a seed and rank the scores of each.
///
/// Membership is by independent fair coins. Game `i` of a seed depends on nothing but the two, and
/// so not on the number of threads, nor on which other games are played with it.
///
/// Numbers come from a [`Stream`] for each game.
///
/// # Errors
/// No examples or more than `u32::MAX`, a parameter outside its range, or an interrupt.
pub fn play(
    leak: Leak,
    examples: usize,
    seed: u64,
    games: Range<u64>,
    interrupt: &Interrupt,
) -> Result<Vec<Ranking>, AuditError> {
    leak.check()?;
    games
        .into_par_iter()
        .map(|game| {
            let mut stream = Stream::new(Purpose::Games, seed, game);
            let mut scores = room(examples)?;
            let mut member = room(examples)?;
            while scores.len() < examples {
                interrupt.check()?;
                for _ in 0..AT_ONCE.min(examples - scores.len()) {
                    let is_member = stream.coin();
                    scores.push(leak.score(is_member, &mut stream));
                    member.push(is_member);
                }
            }
            Ranking::new(&scores, &member, interrupt)
        })
        .collect()
}

impl Leak {
    fn check(self) -> Result<(), AuditError> {
        let (name, value, within, range) = match self {
            Self::Gaussian { mu } => ("mu", mu, mu >= 0.0, "finite, at least 0"),
            Self::Response { epsilon, fraction } if fraction > 0.0 && fraction <= 1.0 => {
                ("epsilon", epsilon, epsilon >= 0.0, "finite, at least 0")
            }
            Self::Response { fraction, .. } => ("fraction", fraction, false, "above 0, at most 1"),
        };
        if within && value.is_finite() {
            return Ok(());
        }
        out_of_range(name, value, range)
    }

    fn score(self, member: bool, stream: &mut Stream) -> f64 {
        match self {
            Self::Gaussian { mu } => {
                let centre = if member { mu / 2.0 } else { -mu / 2.0 };
                centre + stream.normal()
            }
            Self::Response { epsilon, fraction } => {
                let answered = stream.uniform() < fraction;
                let honest = stream.uniform() * (1.0 + (-epsilon).exp()) < 1.0;
                let said = if answered {
                    member == honest
                } else {
                    stream.coin()
                };
                let size = stream.uniform() + if answered { 1.0 } else { 0.0 };
                if said { size } else { -size }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaks_out_of_range_are_refused() {
        let never = Interrupt::default();
        let bad = [
            Leak::Gaussian { mu: -1.0 },
            Leak::Gaussian { mu: f64::NAN },
            Leak::Response {
                epsilon: f64::INFINITY,
                fraction: 1.0,
            },
            Leak::Response {
                epsilon: 1.0,
                fraction: 0.0,
            },
        ];
        for leak in bad {
            let error = play(leak, 10, 0, 0..1, &never);
            assert!(matches!(error, Err(AuditError::ParameterOutOfRange { .. })));
        }
    }

    #[test]
    fn an_interrupt_stops_the_games() {
        let stop = Interrupt::default();
        stop.request();
        let games = play(Leak::Gaussian { mu: 1.0 }, 10, 0, 0..4, &stop);
        assert!(matches!(games, Err(AuditError::Interrupted)));
    }
}
