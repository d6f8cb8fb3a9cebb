//! Levels fixed in advance, and the rule that stops at one of them.

use super::ends::EndsRule;
use super::form::{Form, SPREAD, interpolated};
use super::models::Model;
use crate::error::{AuditError, out_of_range};
use crate::fdp::counts::Counts;
use crate::guesses::path::Path;
use crate::interrupt::Interrupt;

/// Each level is so many times the one before; of independent trials, where any number of guesses
/// may be tested, so that more levels cost nothing, twice as many are there.
const RATIO: f64 = 1.25;
const RATIO_OF_TRIALS: f64 = 1.12;
/// The smallest level, as a share of the number of guesses planned, and at least. Where only
/// members are guessed a tail holds half as many.
const SMALLEST_SHARE: f64 = 0.25;
const SMALLEST_SHARE_ONE_SIDED: f64 = 0.125;
const SMALLEST_SHARE_EITHER: f64 = 1.0 / 12.0;
const FEWEST: f64 = 8.0;
/// A level of another size than planned has less of β: its ratio to the number planned to the minus
/// this, if it is larger, or the plus that, if it is smaller. About this share of β goes to a level
/// before a joint proof.
const LARGER: f64 = 0.4;
const SMALLER: f64 = 0.2;
const JOINT_SHARE: f64 = 1.0 / 1.7;
/// The largest level, as a share of the guesses that could all be right.
const LARGEST_SHARE: f64 = 0.95;
/// So many deviations fewer members than half of the examples may be there.
const MEMBERS_MISSING: f64 = 2.5;
/// How much is believed of what lies beyond the largest level where only members are guessed: it
/// says more about how many members there are than about scores.
const OUTER_BELIEF: f64 = 0.1;
/// Numbers of guesses that planning compares.
const CANDIDATES: usize = 48;
/// Wrong guesses of a level, as shares of those of chance, at which its bound is computed; others
/// are interpolated. Among more than two values many may be wrong, and something be proved.
const WRONG: [f64; 7] = [0.0, 0.008, 0.021, 0.0552, 0.145, 0.38, 1.0];
const AMONG_MORE: [f64; 9] = [0.0, 0.01, 0.03, 0.1, 0.25, 0.45, 0.65, 0.85, 1.0];
/// Accuracies of a shell stay within; unless guesses are one-sided, chance is the least.
const LEAST_ACCURACY_ONE_SIDED: f64 = 0.02;
const MOST_ACCURACY: f64 = 0.998;
/// Pieces of what lies beyond the largest level.
const OUTER_PIECES: u32 = 2;

/// Whom guesses call members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roles {
    /// As many guesses of "member" as of "non-member", or of each value.
    Both,
    /// Only members are guessed.
    Members,
    /// Labels choose how many guesses are of each role: [`OutsideIn::choose_ends`].
    Either,
}

/// Levels, and the rule that chooses one of them from labels revealed from the outside in.
///
/// The rule is a posterior over models of how often guesses are right by rank, updated by the labels
/// revealed. It stops at a level whose expected bound is at least that of every smaller one. Ranks
/// and labels are all that it reads; nothing is drawn. Levels depend on m, the level of confidence,
/// the claim's form and sides alone.
///
/// ```
/// use leakbound_core::{Form, Interrupt, OutsideIn, Path, Roles};
/// let run = Interrupt::default();
/// let plan = OutsideIn::new(1000, 0.05, 2, Roles::Both, Form::Family, None, &run)?;
/// let all_right = Path::from_successes(&vec![true; 1000]);
/// let level = plan.choose(&all_right)?;
/// assert_eq!(level, plan.levels().len() - 1);
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct OutsideIn {
    pub(super) levels: Vec<u32>,
    shares: Vec<f64>,
    /// For each level, ln of wrong guesses and what they prove at its share of β.
    bounds: Vec<Vec<(f64, f64)>>,
    rule: Rule,
}

/// What is known before labels are seen.
#[derive(Debug, Clone, PartialEq)]
enum Rule {
    /// Of guesses in one order.
    Path(PathRule),
    /// Of guesses from either end.
    Ends(EndsRule),
}

#[derive(Debug, Clone, PartialEq)]
struct PathRule {
    /// Ends of shells, from 0 on; levels are among them.
    edges: Vec<u32>,
    /// Logarithms of how much models are believed.
    beliefs: Vec<f64>,
    /// For each model and shell, how much a right guess adds to its belief, and a wrong one.
    chances: Vec<Vec<(f64, f64)>>,
    /// For each model and level, the bound expected.
    worth: Vec<Vec<f64>>,
}

impl OutsideIn {
    /// Plan for `examples` examples of `arms` values at level β; `levels` of one's own, increasing,
    /// or those planned.
    ///
    /// # Errors
    /// No example, β outside (0, 1), levels not increasing within the path, or an interruption.
    pub fn new(
        examples: u32,
        level: f64,
        arms: u32,
        roles: Roles,
        form: Form,
        levels: Option<&[u32]>,
        interrupt: &Interrupt,
    ) -> Result<Self, AuditError> {
        if examples == 0 {
            return Err(AuditError::Empty);
        }
        let game = Planning {
            examples,
            level,
            arms,
            one_sided: roles == Roles::Members,
            smallest: match roles {
                Roles::Both => SMALLEST_SHARE,
                Roles::Members => SMALLEST_SHARE_ONE_SIDED,
                Roles::Either => SMALLEST_SHARE_EITHER,
            },
            form,
        };
        let planned = game.planned(interrupt)?;
        let levels = match levels {
            Some(given) => checked(given, examples)?,
            None => game.ladder(planned),
        };
        let shares = levels.iter().map(|&n| share(n, planned)).collect();
        let each = levels.iter().zip(&shares);
        let bounds = each.map(|(&n, &share)| game.bounds(n, share, interrupt));
        let bounds = bounds.collect::<Result<Vec<_>, _>>()?;
        let rule = if roles == Roles::Either {
            Rule::Ends(EndsRule::new(examples, &levels, &bounds))
        } else {
            Rule::Path(PathRule::new(&game, &levels, &bounds))
        };
        Ok(Self {
            levels,
            shares,
            bounds,
            rule,
        })
    }

    /// The levels, increasing.
    pub fn levels(&self) -> &[u32] {
        &self.levels
    }

    /// The share of β at which each level is weighed against the others.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// About what correct guesses at a level prove at its share of β: for choices, not for claims.
    /// It is interpolated between a few counts, all computed before labels are seen.
    pub fn worth(&self, index: usize, correct: f64) -> Option<f64> {
        let (&made, bounds) = self.levels.get(index).zip(self.bounds.get(index))?;
        let wrong = (f64::from(made) - correct).max(0.0);
        Some(interpolated(bounds, (wrong + 0.5).ln()))
    }

    /// The index of the level to test. Whether it is that of a level or a smaller one depends on
    /// the guesses beyond that level only; a path that is shorter than the edges is looked at as far
    /// as it goes.
    ///
    /// # Errors
    /// The plan is for guesses from either end.
    pub fn choose(&self, path: &Path) -> Result<usize, AuditError> {
        match &self.rule {
            Rule::Path(rule) => Ok(rule.choose(&self.levels, path)),
            Rule::Ends(_) => Err(AuditError::OtherGuesses {
                planned: "either end",
            }),
        }
    }

    /// The index of the level to test, and how many of its guesses are of "member", from the top.
    ///
    /// `top` guesses members of the upper half, from above, `bottom` others of the lower half.
    ///
    /// # Errors
    /// The plan is for guesses in one order.
    pub fn choose_ends(&self, top: &Path, bottom: &Path) -> Result<(usize, u32), AuditError> {
        match &self.rule {
            Rule::Path(_) => Err(AuditError::OtherGuesses {
                planned: "one order",
            }),
            Rule::Ends(rule) => Ok(rule.choose(top, bottom)),
        }
    }
}

impl PathRule {
    fn new(game: &Planning, levels: &[u32], bounds: &[Vec<(f64, f64)>]) -> Self {
        let last = levels.last().copied().unwrap_or(game.examples);
        let mut edges = vec![0];
        edges.extend(levels);
        for piece in 1..=OUTER_PIECES {
            let beyond =
                u64::from(game.examples - last) * u64::from(piece) / u64::from(OUTER_PIECES);
            edges.push(last + beyond as u32);
        }
        edges.dedup();
        let mut rule = Self {
            edges,
            beliefs: Vec::new(),
            chances: Vec::new(),
            worth: Vec::new(),
        };
        for (model, belief) in Model::all(game.arms, game.one_sided) {
            rule.beliefs.push(belief);
            rule.chances.push(rule.chances_of(&model, game, last));
            let each = levels.iter().zip(bounds);
            let worth = each.map(|(&n, bounds)| game.expected(&model, n, bounds));
            rule.worth.push(worth.collect());
        }
        rule
    }

    fn chances_of(&self, model: &Model, game: &Planning, last: u32) -> Vec<(f64, f64)> {
        let m = f64::from(game.examples);
        let least = if game.one_sided {
            LEAST_ACCURACY_ONE_SIDED
        } else {
            f64::from(game.arms).recip()
        };
        let shells = self.edges.windows(2);
        shells
            .map(|shell| {
                let (from, to) = (f64::from(shell[0]) / m, f64::from(shell[1]) / m);
                let right = (model.right(to) - model.right(from)) / (to - from);
                let right = right.clamp(least, MOST_ACCURACY);
                let outer = game.one_sided && shell[0] >= last;
                let belief = if outer { OUTER_BELIEF } else { 1.0 };
                (belief * right.ln(), belief * (-right).ln_1p())
            })
            .collect()
    }

    fn choose(&self, levels: &[u32], path: &Path) -> usize {
        let mut beliefs = self.beliefs.clone();
        let mut shell = self.edges.len() - 1;
        for index in (0..levels.len()).rev() {
            while shell > 0 && self.edges[shell - 1] >= levels[index] {
                shell -= 1;
                let (made, right) = path.between(self.edges[shell], self.edges[shell + 1]);
                let (made, right) = (f64::from(made), f64::from(right));
                for (belief, chances) in beliefs.iter_mut().zip(&self.chances) {
                    let (hit, missed) = chances[shell];
                    *belief += hit * right + missed * (made - right);
                }
            }
            let most = beliefs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let expected = |level: usize| -> f64 {
                let each = beliefs.iter().zip(&self.worth);
                each.map(|(belief, worth)| (belief - most).exp() * worth[level])
                    .sum()
            };
            if levels[index] > path.guesses() {
                continue;
            }
            let here = expected(index);
            if (0..index).all(|smaller| here >= expected(smaller)) {
                return index;
            }
        }
        0
    }
}

fn checked(levels: &[u32], examples: u32) -> Result<Vec<u32>, AuditError> {
    let increasing = levels.windows(2).all(|pair| pair[0] < pair[1]);
    match (levels.first(), levels.last()) {
        (Some(&first), Some(&last)) if first > 0 && last <= examples && increasing => {
            Ok(levels.to_vec())
        }
        _ => {
            let range = "increasing numbers of guesses, from 1 to the number of examples";
            out_of_range(
                "levels",
                levels.last().map_or(0.0, |&last| f64::from(last)),
                range,
            )
        }
    }
}

/// The share of β of a level, at most 1/1.7.
fn share(guesses: u32, planned: u32) -> f64 {
    let ratio = f64::from(guesses) / f64::from(planned);
    let slope = if ratio > 1.0 { -LARGER } else { SMALLER };
    JOINT_SHARE * ratio.powf(slope)
}

/// What plans are made for.
struct Planning {
    examples: u32,
    level: f64,
    arms: u32,
    one_sided: bool,
    /// The smallest level, as a share of the number of guesses planned.
    smallest: f64,
    form: Form,
}

impl Planning {
    fn bound(
        &self,
        guesses: u32,
        correct: f64,
        share: f64,
        interrupt: &Interrupt,
    ) -> Result<f64, AuditError> {
        let correct = correct.round().clamp(0.0, f64::from(guesses)) as u64;
        let (m, made) = (self.examples.into(), guesses.into());
        let counts = Counts::new(m, made, correct, self.arms, self.one_sided)?;
        self.form.bound(&counts, self.level, share, interrupt)
    }

    /// How many guesses could all be right.
    fn longest(&self) -> f64 {
        let kept = if self.one_sided { 0.5 } else { 1.0 };
        kept * f64::from(self.examples)
    }

    /// The number of guesses that proves most of scores a deviation apart.
    fn planned(&self, interrupt: &Interrupt) -> Result<u32, AuditError> {
        let model = Model::reference(self.arms, self.one_sided);
        let m = f64::from(self.examples);
        let mut best = (0.0, self.examples.min(FEWEST as u32));
        for i in 1..=CANDIDATES {
            let guesses = m.powf(i as f64 / CANDIDATES as f64).round();
            let accuracy = (model.right(guesses / m) * m / guesses).min(1.0);
            let deviation = (guesses * accuracy * (1.0 - accuracy)).sqrt();
            let mut proved = 0.0;
            for score in SPREAD {
                let correct = guesses * accuracy + score * deviation;
                proved += self.bound(guesses as u32, correct, JOINT_SHARE, interrupt)?;
            }
            if proved > best.0 {
                best = (proved, guesses as u32);
            }
        }
        Ok(best.1)
    }

    /// Levels in proportion, from below the number planned.
    fn ladder(&self, planned: u32) -> Vec<u32> {
        let planned = f64::from(planned);
        let mut top = LARGEST_SHARE * self.longest();
        if self.one_sided {
            // How many members there are is random.
            let deviation = 0.5 * f64::from(self.examples).sqrt();
            top = top.min(self.longest() - MEMBERS_MISSING * deviation);
        }
        let top = top.floor().max(1.0);
        let bottom = (self.smallest * planned).max(FEWEST).min(top);
        let ratio = match self.form {
            Form::Trials(_) => RATIO_OF_TRIALS,
            _ => RATIO,
        };
        let steps = ((top / bottom).ln() / ratio.ln()).round().max(1.0) as i32;
        let ratio = (top / bottom).powf(f64::from(steps).recip());
        let mut levels: Vec<u32> = (0..=steps)
            .map(|step| (bottom * ratio.powi(step)).round().min(top) as u32)
            .collect();
        levels.dedup();
        levels
    }

    /// ln of wrong guesses, and bounds, at a few counts of a level, from all right on.
    fn bounds(
        &self,
        guesses: u32,
        share: f64,
        interrupt: &Interrupt,
    ) -> Result<Vec<(f64, f64)>, AuditError> {
        let parts = [&WRONG[..], &AMONG_MORE[..]][usize::from(self.arms > 2)];
        let mut found = Vec::<(f64, f64)>::new();
        let chance = f64::from(guesses) * (1.0 - f64::from(self.arms).recip());
        for &part in parts {
            let wrong = (part * chance).round();
            let at = (wrong + 0.5).ln();
            if found.last().is_none_or(|last| last.0 < at) {
                let correct = f64::from(guesses) - wrong;
                found.push((at, self.bound(guesses, correct, share, interrupt)?));
            }
        }
        Ok(found)
    }

    /// The bound that a model leads to on average, about: over how many examples a tail holds, and
    /// how many other guesses are right.
    fn expected(&self, model: &Model, guesses: u32, bounds: &[(f64, f64)]) -> f64 {
        let (m, n) = (f64::from(self.examples), f64::from(guesses));
        let each = SPREAD.iter().map(|score| {
            let right = model.right_in(n / m, score / m.sqrt()) * m;
            let accuracy = (right / n).min(1.0);
            let deviation = (n * accuracy * (1.0 - accuracy)).sqrt();
            let wrong = (n * (1.0 - accuracy) + score * deviation).clamp(0.0, n);
            interpolated(bounds, (wrong + 0.5).ln())
        });
        each.sum::<f64>() / SPREAD.len() as f64
    }
}
