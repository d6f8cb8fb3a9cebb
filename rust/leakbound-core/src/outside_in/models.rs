//! What scores may tell: shares of guesses that are right, by rank.

use std::f64::consts::{PI, SQRT_2};
use std::rc::Rc;
use std::sync::OnceLock;

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
/// Randomised response: ε, for a share of examples, and how often all of these are believed.
const RESPONSES: [f64; 6] = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0];
const RESPONDING: [f64; 4] = [1.0, 0.7, 0.4, 0.2];
const RESPONSE_WEIGHT: f64 = 0.1;
/// At an end, of all examples; believed at one end, at the other and at both, together.
const END_TAILS: (f64, f64) = (0.001, 0.2);
const END_TAIL_COUNT: usize = 25;
const END_TAIL_WEIGHT: f64 = 1.2;
/// Tails at both ends are so many steps of the shares apart, at most.
const APART: usize = 3;
/// Shares of members, of others, or of both, that stand out by so many deviations, and how often the
/// former two are believed, all together; the last is believed less.
const STANDING_OUT: [f64; 5] = [0.02, 0.05, 0.1, 0.2, 0.4];
const BY: [f64; 3] = [2.5, 4.0, 6.0];
const STANDING_WEIGHT: f64 = 0.6;
/// Thresholds at which a curve is read; where the margins of several scores are, how far apart.
const THRESHOLDS: usize = 1500;
const STEP: f64 = 0.05;
/// Beyond so many deviations scores are left out.
const REACH: f64 = 9.0;

/// Shares at which the curves of both ends are kept: 0, and so many from the least to a half.
const PLACES: usize = 400;
const LEAST_PLACE: f64 = 1e-7;
/// Thresholds at which they are read.
const END_THRESHOLDS: usize = 500;
/// A score that no other reaches.
const SURE: f64 = 40.0;

/// The share of all examples guessed right, by the share guessed.
pub(super) enum Model {
    /// Scores N(μ/2, 1) and N(−μ/2, 1).
    Gaussian(Table),
    /// A share identified exactly, and the others as in a table.
    Tail(f64, Rc<Table>),
    /// Randomised response, guessed of both roles, or of members only.
    Response(Response),
    ResponseOfMembers(Response),
}

/// A share of examples is guessed with one chance to be right, the others at random.
#[derive(Clone, Copy)]
pub(super) struct Response {
    share: f64,
    right: f64,
    chance: f64,
}

impl Response {
    fn all(arms: u32) -> impl Iterator<Item = Self> {
        let others = f64::from(arms) - 1.0;
        RESPONDING.into_iter().flat_map(move |share| {
            RESPONSES.into_iter().map(move |epsilon| Self {
                share,
                right: epsilon.exp() / (epsilon.exp() + others),
                chance: 1.0 / (1.0 + others),
            })
        })
    }

    fn at(&self, guessed: f64) -> f64 {
        let known = guessed.min(self.share);
        self.right * known + self.chance * (guessed - known)
    }

    /// The same at one end of the ranking: "member" of so many, up to all.
    fn at_end(&self, guessed: f64) -> f64 {
        let (half, beyond) = (
            0.5 * self.share,
            (guessed - 1.0 + 0.5 * self.share).max(0.0),
        );
        let known = guessed.min(half);
        self.right * known + 0.5 * (guessed - known - beyond) + (1.0 - self.right) * beyond
    }
}

/// Shares guessed, increasing, and shares guessed right.
pub(super) struct Table {
    guessed: Vec<f64>,
    right: Vec<f64>,
}

impl Table {
    fn gaussian(mu: f64, arms: u32, one_sided: bool) -> Self {
        if arms > 2 {
            return Self::margins(mu, arms);
        }
        let half = 0.5 * mu;
        let (scale, low, high) = if one_sided {
            (0.5, -8.0 - half, 8.0 + half)
        } else {
            (1.0, 0.0, REACH + half)
        };
        Self::of((0..=THRESHOLDS).map(|i| {
            let threshold = high + (low - high) * i as f64 / THRESHOLDS as f64;
            let hit = scale * normal::sf(threshold - half);
            (hit, hit + scale * normal::sf(threshold + half))
        }))
    }

    /// Values μ apart, of scores N(μ/√2, 1) of the right one and N(0, 1) of the others, guessed by
    /// the margin of the largest over the second.
    fn margins(mu: f64, arms: u32) -> Self {
        let (shift, others) = (mu / SQRT_2, f64::from(arms) - 1.0);
        let nodes = ((2.0 * REACH + shift) / STEP) as usize;
        let at = |node: usize| node as f64 * STEP - REACH;
        let density = |x: f64| STEP * (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
        // How likely all but the right value are below, and all but one of the wrong ones.
        let below = (0..=nodes).map(|node| {
            let one = normal::sf(-at(node));
            let most = one.powf(others - 1.0);
            (one * most, others * most * normal::sf(shift - at(node)))
        });
        let below: Vec<(f64, f64)> = below.collect();
        Self::of((0..=nodes).rev().map(|margin| {
            let each = (margin..=nodes).map(|node| {
                let (right, wrong) = below[node - margin];
                let hit = density(at(node) - shift) * right;
                (hit, hit + density(at(node)) * wrong)
            });
            each.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        }))
    }

    /// From shares guessed right and guessed, as a threshold falls.
    fn of(shares: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut guessed, mut right) = (vec![0.0], vec![0.0]);
        for (hit, all) in shares {
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
        self.right_in(share, 0.0)
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
            Self::Gaussian(table) => table.at(share),
            Self::Response(response) => response.at(share),
            Self::ResponseOfMembers(response) => response.at_end(share),
        }
    }

    /// The one that planning starts from: scores a deviation apart.
    pub(super) fn reference(arms: u32, one_sided: bool) -> Self {
        Self::Gaussian(Table::gaussian(1.0, arms, one_sided))
    }

    /// All of them, with the logarithm of how much each is believed.
    pub(super) fn all(arms: u32, one_sided: bool) -> Vec<(Self, f64)> {
        let (kept, count, weight) = if one_sided {
            (0.5, TAIL_COUNT_ONE_SIDED, TAIL_WEIGHT_ONE_SIDED)
        } else {
            (1.0, TAIL_COUNT, TAIL_WEIGHT)
        };
        let mut found = Vec::with_capacity(DISTANCES.len() + BEYOND.len() * count);
        for (mu, belief) in DISTANCES {
            let model = Self::Gaussian(Table::gaussian(mu, arms, one_sided));
            found.push((model, (DISTANCE_WEIGHT * belief).ln()));
        }
        let (least, largest) = TAILS;
        let each = (weight / (count * BEYOND.len()) as f64).ln();
        for mu in BEYOND {
            let table = Rc::new(Table::gaussian(mu, arms, one_sided));
            for i in 0..count {
                let share = least * (largest / least).powf(i as f64 / (count - 1) as f64);
                found.push((Self::Tail(kept * share, Rc::clone(&table)), each));
            }
        }
        let each = (RESPONSE_WEIGHT / (RESPONSES.len() * RESPONDING.len()) as f64).ln();
        for response in Response::all(arms) {
            let model = if one_sided {
                Self::ResponseOfMembers(response)
            } else {
                Self::Response(response)
            };
            found.push((model, each));
        }
        found
    }
}

/// The share of all examples that are guessed right at each end, by the share guessed there.
#[derive(Debug, Clone)]
struct Ends([Vec<f64>; 2]);

/// Where a share is among those kept: how many are before it, and what part beyond.
pub(super) type Place = (usize, f64);

/// Models of both ends, laid out as they are read: all of them at one place.
#[derive(Debug)]
pub(super) struct EndModels {
    /// How much each is believed.
    pub(super) beliefs: Vec<f64>,
    /// At an end, 0 for the top: place by place, what each model guesses right.
    right: [Vec<f64>; 2],
}

impl EndModels {
    /// All models, made once.
    pub(super) fn all() -> &'static Self {
        static MODELS: OnceLock<EndModels> = OnceLock::new();
        MODELS.get_or_init(|| {
            let (models, beliefs): (Vec<Ends>, Vec<f64>) = Ends::all().into_iter().unzip();
            let places = 0..=PLACES;
            let right = [0, 1].map(|end| {
                let each = places
                    .clone()
                    .flat_map(|i| models.iter().map(move |one| one.0[end][i]));
                each.collect()
            });
            Self { beliefs, right }
        })
    }

    /// Where a share is.
    pub(super) fn place(share: f64) -> Place {
        if share <= LEAST_PLACE {
            return (0, share.max(0.0) / LEAST_PLACE);
        }
        let at = (share / LEAST_PLACE).ln() / (0.5 / LEAST_PLACE).ln() * (PLACES - 1) as f64;
        let low = (at as usize).min(PLACES - 2);
        (low + 1, (at - low as f64).min(1.0))
    }

    /// What each model guesses right at an end, of a share guessed there.
    pub(super) fn right(&self, end: usize, (low, part): Place) -> impl Fn(usize) -> f64 {
        let models = self.beliefs.len();
        let at = |place: usize| &self.right[end][place * models..][..models];
        let (inner, outer) = (at(low), at(low + 1));
        move |model| inner[model] + part * (outer[model] - inner[model])
    }
}

impl Ends {
    /// All models, and how much each is believed.
    fn all() -> Vec<(Self, f64)> {
        let mut found: Vec<(Self, f64)> = DISTANCES
            .iter()
            .map(|&(mu, belief)| (Self::tails(0.0, 0.0, mu), DISTANCE_WEIGHT * belief))
            .collect();
        let (least, largest) = END_TAILS;
        let shares: Vec<f64> = (0..END_TAIL_COUNT)
            .map(|i| least * (largest / least).powf(i as f64 / (END_TAIL_COUNT - 1) as f64))
            .collect();
        let pairs = (0..END_TAIL_COUNT).flat_map(|i| (0..END_TAIL_COUNT).map(move |j| (i, j)));
        let both: Vec<_> = pairs.filter(|&(i, j)| i.abs_diff(j) <= APART).collect();
        let third = END_TAIL_WEIGHT / (3 * BEYOND.len()) as f64;
        for mu in BEYOND {
            for &share in &shares {
                let model = Self::tails(share, 0.0, mu);
                let each = third / shares.len() as f64;
                found.extend([(model.mirrored(), each), (model, each)]);
            }
            let each = third / both.len() as f64;
            found.extend(
                both.iter()
                    .map(|&(i, j)| (Self::tails(shares[i], shares[j], mu), each)),
            );
        }
        let each = STANDING_WEIGHT / (2 * STANDING_OUT.len() * BY.len()) as f64;
        for share in STANDING_OUT {
            for by in BY {
                let one = Self::standing_out(share, 0.0, by);
                let both = Self::standing_out(share, share, by);
                found.extend([(one.mirrored(), each), (one, each), (both, each / 4.0)]);
            }
        }
        let each = RESPONSE_WEIGHT / (RESPONSES.len() * RESPONDING.len()) as f64;
        found.extend(Response::all(2).map(|response| (Self::response(response), each)));
        found
    }

    /// Shares of members by their scores' means, and of others; deviations are 1.
    fn of(members: &[(f64, f64)], others: &[(f64, f64)]) -> Self {
        let above = |scores: &[(f64, f64)], threshold: f64, sign: f64| -> f64 {
            let each = scores.iter();
            each.map(|&(share, mean)| share * normal::sf(threshold - sign * mean))
                .sum()
        };
        let curve = |right: &[(f64, f64)], wrong: &[(f64, f64)], sign: f64| -> Vec<f64> {
            let table = Table::of((0..=END_THRESHOLDS).map(|i| {
                let threshold = 15.0 - 24.0 * i as f64 / END_THRESHOLDS as f64;
                let hit = above(right, threshold, sign);
                (hit, hit + above(wrong, threshold, sign))
            }));
            Self::kept(|share| table.at(share))
        };
        Self([curve(members, others, 1.0), curve(others, members, -1.0)])
    }

    /// A curve at the shares that are kept.
    fn kept(right: impl Fn(f64) -> f64) -> Vec<f64> {
        let share =
            |i: usize| LEAST_PLACE * (0.5 / LEAST_PLACE).powf(i as f64 / (PLACES - 1) as f64);
        let mut found = vec![0.0];
        found.extend((0..PLACES).map(|i| right(share(i))));
        found
    }

    fn response(response: Response) -> Self {
        let curve = Self::kept(|share| response.at_end(share));
        Self([curve.clone(), curve])
    }

    /// Shares of all examples known exactly at both ends; the others N(μ/2, 1) and N(−μ/2, 1).
    fn tails(top: f64, bottom: f64, mu: f64) -> Self {
        let (members, others) = (0.5 - top, 0.5 - bottom);
        Self::of(
            &[(members, 0.5 * mu), (top, SURE)],
            &[(others, -0.5 * mu), (bottom, -SURE)],
        )
    }

    /// A share of members whose scores are larger by a shift, and of others smaller by it.
    fn standing_out(members: f64, others: f64, by: f64) -> Self {
        Self::of(
            &[(0.5 - 0.5 * members, 0.0), (0.5 * members, by)],
            &[(0.5 - 0.5 * others, 0.0), (0.5 * others, -by)],
        )
    }

    /// Non-members at the bottom as members were at the top.
    fn mirrored(&self) -> Self {
        let [top, bottom] = &self.0;
        Self([bottom.clone(), top.clone()])
    }
}
