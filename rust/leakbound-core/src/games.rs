//! Simulated games with a known leak, for planning audits.

use std::ops::Range;

use leakbound_math::{Probability, normal};
use rayon::prelude::*;

use crate::{AuditError, Interrupt, Ranking};

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
/// Numbers come from SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014), one stream for each game, and normal ones from the inverse of their cdf.
///
/// # Errors
/// No examples or more than `u32::MAX`, a parameter outside its range, or an interrupt.
///
/// ```
/// use leakbound_core::{Interrupt, Leak, play};
/// let never = Interrupt::default();
/// let games = play(Leak::Gaussian { mu: 6.0 }, 1000, 7, 0..3, &never)?;
/// assert!(games.iter().all(|game| game.auc() > 0.99));
/// assert_eq!(play(Leak::Gaussian { mu: 6.0 }, 1000, 7, 2..3, &never)?[0].auc(), games[2].auc());
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
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
            interrupt.check()?;
            let mut stream = Stream::new(seed, game);
            let (scores, member): (Vec<f64>, Vec<bool>) = (0..examples)
                .map(|_| {
                    let member = stream.coin();
                    (leak.score(member, &mut stream), member)
                })
                .unzip();
            Ranking::new(&scores, &member)
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
        Err(AuditError::ParameterOutOfRange { name, value, range })
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

/// SplitMix64: a counter whose values are mixed.
struct Stream(u64);

/// 2⁶⁴ over the golden ratio, made odd.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Stream {
    fn new(seed: u64, game: u64) -> Self {
        Self(mix(mix(seed.wrapping_add(STEP)) ^ game.wrapping_mul(STEP)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }

    /// A multiple of 2⁻⁵³ moved by half a step: never 0 or 1.
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    fn normal(&mut self) -> f64 {
        Probability::new(self.uniform()).map_or(0.0, normal::quantile)
    }
}

fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the published generator started at 0.
    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut stream = Stream(0);
        assert_eq!(stream.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(stream.next(), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(stream.next(), 0x06C4_5D18_8009_454F);
    }

    #[test]
    fn uniforms_and_normals_have_their_moments() {
        let mut stream = Stream::new(1, 2);
        let draws: Vec<f64> = (0..200_000).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 2e5;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / 2e5;
        let fourth = draws.iter().map(|x| x.powi(4)).sum::<f64>() / 2e5;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((square - 1.0).abs() < 0.02, "{square}");
        assert!((fourth - 3.0).abs() < 0.15, "{fourth}");
        let least = (0..1000).map(|_| stream.uniform()).fold(1.0, f64::min);
        assert!(least > 0.0 && least < 0.02);
    }

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
