//! What scores may tell: shares of guesses that are right, by rank.

use std::rc::Rc;

use leakbound_math::normal;

/// Distances of members from others, in deviations, and how much each is believed.
const DISTANCES: [(f64, f64); 12] = [
    (0.0, 0.5),
    (0.25, 0.7),
    (0.5, 1.0),
    (0.75, 1.3),
    (1.0, 1.5),
    (1.35, 1.3),
    (1.75, 1.0),
    (2.25, 0.8),
    (3.0, 0.6),
    (4.0, 0.5),
    (6.0, 0.3),
    (10.0, 0.5),
];
/// All distances together are believed so often as this times the sum above, tails this often.
const DISTANCE_WEIGHT: f64 = 0.08;
const TAIL_WEIGHT: f64 = 0.2;
/// Shares of examples that scores identify for sure: the least and the largest, and how many.
const TAILS: (f64, f64) = (0.002, 0.4);
const TAIL_COUNT: usize = 18;
/// Where only members are guessed, a tail holds half as many, and a level that is a little larger
/// proves nothing: shares are told apart more finely, and believed more.
const TAIL_WEIGHT_ONE_SIDED: f64 = 1.2;
const TAIL_COUNT_ONE_SIDED: usize = 60;
/// What they tell about the others.
const BEYOND: [f64; 2] = [0.0, 0.75];
/// Thresholds at which a curve is read.
const THRESHOLDS: usize = 1500;

/// The share of all examples guessed right, by the share guessed.
pub(super) enum Model {
    /// Scores N(μ/2, 1) and N(−μ/2, 1).
    Gaussian(Table),
    /// A share identified exactly, and the others as in a table.
    Tail(f64, Rc<Table>),
}

/// Shares guessed, increasing, and shares guessed right.
pub(super) struct Table {
    guessed: Vec<f64>,
    right: Vec<f64>,
}

impl Table {
    fn gaussian(mu: f64, one_sided: bool) -> Self {
        let half = 0.5 * mu;
        let (scale, low, high) = if one_sided {
            (0.5, -8.0 - half, 8.0 + half)
        } else {
            (1.0, 0.0, 9.0 + half)
        };
        let (mut guessed, mut right) = (vec![0.0], vec![0.0]);
        for i in 0..=THRESHOLDS {
            let threshold = high + (low - high) * i as f64 / THRESHOLDS as f64;
            let hit = scale * normal::sf(threshold - half);
            let all = hit + scale * normal::sf(threshold + half);
            if guessed.last().is_some_and(|&last| all > last) {
                guessed.push(all);
                right.push(hit);
            }
        }
        Self { guessed, right }
    }

    fn at(&self, share: f64) -> f64 {
        let after = self.guessed.partition_point(|&known| known < share);
        if after == 0 {
            return 0.0;
        }
        if after == self.guessed.len() {
            return self.right[after - 1];
        }
        let (x, y) = (self.guessed[after - 1], self.right[after - 1]);
        let slope = (self.right[after] - y) / (self.guessed[after] - x);
        y + slope * (share - x)
    }
}

impl Model {
    /// The share of examples guessed right when a share is guessed.
    pub(super) fn right(&self, share: f64) -> f64 {
        match self {
            Self::Gaussian(table) => table.at(share),
            Self::Tail(known, _) if share <= *known => share,
            Self::Tail(known, table) => {
                known + (1.0 - known) * table.at((share - known) / (1.0 - known))
            }
        }
    }

    /// The same if a tail holds so many deviations more than it should, the deviation of a share
    /// being its root times that of one.
    pub(super) fn right_in(&self, share: f64, deviations: f64) -> f64 {
        match self {
            Self::Tail(known, table) => {
                let drawn = (known - deviations * known.sqrt()).clamp(0.0, 1.0 - 1e-9);
                if share <= drawn {
                    share
                } else {
                    drawn + (1.0 - drawn) * table.at((share - drawn) / (1.0 - drawn))
                }
            }
            Self::Gaussian(_) => self.right(share),
        }
    }

    /// The one that planning starts from: scores a deviation apart.
    pub(super) fn reference(one_sided: bool) -> Self {
        Self::Gaussian(Table::gaussian(1.0, one_sided))
    }

    /// All of them, with the logarithm of how much each is believed.
    pub(super) fn all(one_sided: bool) -> Vec<(Self, f64)> {
        let (kept, count, weight) = if one_sided {
            (0.5, TAIL_COUNT_ONE_SIDED, TAIL_WEIGHT_ONE_SIDED)
        } else {
            (1.0, TAIL_COUNT, TAIL_WEIGHT)
        };
        let mut found = Vec::with_capacity(DISTANCES.len() + BEYOND.len() * count);
        for (mu, belief) in DISTANCES {
            let model = Self::Gaussian(Table::gaussian(mu, one_sided));
            found.push((model, (DISTANCE_WEIGHT * belief).ln()));
        }
        let (least, largest) = TAILS;
        let each = (weight / (count * BEYOND.len()) as f64).ln();
        for mu in BEYOND {
            let table = Rc::new(Table::gaussian(mu, one_sided));
            for i in 0..count {
                let share = least * (largest / least).powf(i as f64 / (count - 1) as f64);
                found.push((Self::Tail(kept * share, Rc::clone(&table)), each));
            }
        }
        found
    }
}
