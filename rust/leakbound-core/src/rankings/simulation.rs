//! Rankings drawn from the worst law.

use std::sync::atomic::{AtomicU64, Ordering};

use leakbound_math::stream::{Purpose, Stream};
use leakbound_math::variates::{binomial, gamma};
use rayon::prelude::*;

use crate::error::AuditError;
use crate::interrupt::Interrupt;
use crate::rankings::cells::Cells;
use crate::rankings::law::PooledLaw;
use crate::rankings::reference::Reached;

/// Rankings of one stream.
const CHUNK: u64 = 100;

/// Members in the cells of rankings, row after row: the law that is simulated, for tests.
///
/// # Errors
/// An interrupt.
pub fn draw(
    cells: &Cells,
    law: &PooledLaw,
    rankings: u64,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Vec<u64>, AuditError> {
    let chunks: Result<Vec<Vec<u64>>, AuditError> = (0..rankings.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            interrupt.check()?;
            let mut rows = Vec::new();
            let mut simulated = Simulated::new(cells, law, seed, chunk);
            for _ in 0..CHUNK.min(rankings - chunk * CHUNK) {
                rows.extend_from_slice(simulated.next());
            }
            Ok(rows)
        })
        .collect();
    Ok(chunks?.concat())
}

/// How many of `rankings` drawn from a law reach as far as any of `reached`, or are perfect; what is
/// more than `most` is not counted, and `most` + 1 stands for it.
///
/// Chunk k of the rankings has stream k of the seed. Where more than `most` are far the others are
/// not drawn, which changes nothing: the result has the same bits on any number of threads.
///
/// # Errors
/// An interrupt.
pub fn reaching(
    cells: &Cells,
    law: &PooledLaw,
    reached: &[Reached<'_>],
    rankings: u64,
    most: u64,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<u64, AuditError> {
    let found = AtomicU64::new(0);
    let played: Result<(), AuditError> = (0..rankings.div_ceil(CHUNK))
        .into_par_iter()
        .try_for_each(|chunk| {
            interrupt.check()?;
            let mut simulated = Simulated::new(cells, law, seed, chunk);
            let (mut ratios, mut above) = (Vec::new(), Vec::new());
            for _ in 0..CHUNK.min(rankings - chunk * CHUNK) {
                if found.load(Ordering::Relaxed) > most {
                    break;
                }
                let members = simulated.next();
                let far = reached
                    .iter()
                    .any(|one| one.by(members, &mut ratios, &mut above))
                    || cells.perfect(members);
                found.fetch_add(u64::from(far), Ordering::Relaxed);
            }
            Ok(())
        });
    played?;
    Ok(found.into_inner().min(most.saturating_add(1)))
}

/// The rankings of one chunk, one after another.
struct Simulated<'a> {
    cells: &'a Cells,
    law: &'a PooledLaw,
    stream: Stream,
    /// Sums of exponential numbers up to the last trial of each cell, and one more after the last.
    sums: Vec<f64>,
    members: Vec<u64>,
}

impl<'a> Simulated<'a> {
    fn new(cells: &'a Cells, law: &'a PooledLaw, seed: u64, chunk: u64) -> Self {
        Self {
            cells,
            law,
            stream: Stream::new(Purpose::Rankings, seed, chunk),
            sums: Vec::with_capacity(cells.sizes().len()),
            members: Vec::with_capacity(cells.sizes().len()),
        }
    }

    /// The members in each cell of the next ranking.
    fn next(&mut self) -> &[u64] {
        // 1. Of both laws together, the shares above the last trials of cells; after the last is 1.
        self.sums.clear();
        let (mut sum, last) = (0.0, self.cells.sizes().len() - 1);
        for (cell, &size) in self.cells.sizes().iter().enumerate() {
            sum += gamma(&mut self.stream, size + u64::from(cell == last));
            self.sums.push(sum);
        }
        // 2. Those trials are members by the slope of A there, the others by its mean in the cell.
        self.members.clear();
        let (mut before, mut held_before) = (0.0, 0.0);
        for (cell, &size) in self.cells.sizes().iter().enumerate() {
            let share = self.sums[cell] / sum;
            let (held, slope) = self.law.at(share);
            let wide = share - before;
            let chance = if wide > 0.0 {
                ((held - held_before) / wide).clamp(0.0, 1.0)
            } else {
                slope
            };
            let ends = cell == last;
            let inside = binomial(&mut self.stream, size - u64::from(!ends), chance);
            let there = !ends && self.stream.uniform() < slope;
            self.members.push(inside + u64::from(there));
            (before, held_before) = (share, held);
        }
        &self.members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rankings::reference::Reference;

    fn game(trials: u64) -> (Cells, PooledLaw) {
        let law = PooledLaw::new(&[0.0, 0.1, 0.4, 1.0], &[0.95, 0.6, 0.2, 0.0]).unwrap();
        (Cells::new(trials).unwrap(), law)
    }

    #[test]
    fn members_in_cells_have_their_means() {
        let (cells, law) = game(10);
        let rankings = 40_000;
        let rows = draw(&cells, &law, rankings, 1, &Interrupt::default()).unwrap();
        let width = cells.sizes().len();
        assert_eq!(rows.len(), width * rankings as usize);
        // By the midpoint rule: the k-th of 10 uniform order statistics has a beta law.
        for (cell, rank) in (0..width).zip(1_i32..) {
            let density = |u: f64| {
                let ways: f64 = (1..rank)
                    .map(|i| f64::from(10 - i) / f64::from(i))
                    .product();
                10.0 * ways * u.powi(rank - 1) * (1.0 - u).powi(10 - rank)
            };
            let expected: f64 = (0..4_000)
                .map(|i| (f64::from(i) + 0.5) / 4e3)
                .map(|u| density(u) * law.at(u).1 / 4e3)
                .sum();
            let seen: u64 = rows.iter().skip(cell).step_by(width).sum();
            let mean = seen as f64 / rankings as f64;
            let spread = (expected * (1.0 - expected) / rankings as f64).sqrt();
            assert!(
                (mean - expected).abs() < 4.5 * spread + 1e-4,
                "{rank}: {mean} {expected}"
            );
        }
    }

    #[test]
    fn counts_are_the_same_on_any_number_of_threads() {
        let (cells, law) = game(200);
        let reference = Reference::new(cells.clone(), &law);
        let reached = [Reached {
            reference: &reference,
            threshold: 0.5,
        }];
        let count = |threads: usize, most: u64, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let never = Interrupt::default();
            let run = || reaching(&cells, &law, &reached, 1_950, most, seed, &never).unwrap();
            pool.build().unwrap().install(run)
        };
        let alone = count(1, u64::MAX, 7);
        assert!(alone > 100 && alone < 1_800, "{alone}");
        assert_eq!(count(5, u64::MAX, 7), alone);
        assert_eq!(count(5, alone, 7), alone);
        assert_eq!(count(5, alone - 1, 7), alone);
        assert_eq!(count(3, 10, 7), 11);
        assert_ne!(count(1, u64::MAX, 8), alone);
        // What is counted is what is drawn.
        let rows = draw(&cells, &law, 1_950, 7, &Interrupt::default()).unwrap();
        let far = rows.chunks(cells.sizes().len()).filter(|members| {
            let ratios = reference.ratios(members).unwrap();
            ratios.iter().map(|x| x.exp()).sum::<f64>().ln() >= 0.5 || cells.perfect(members)
        });
        assert_eq!(far.count() as u64, alone);
    }

    #[test]
    fn an_interrupt_stops_a_simulation() {
        let (cells, law) = game(10);
        let stop = Interrupt::default();
        stop.request();
        let stopped = reaching(&cells, &law, &[], 10, 1, 0, &stop);
        assert!(matches!(stopped, Err(AuditError::Interrupted)));
        assert!(draw(&cells, &law, 10, 0, &stop).is_err());
    }
}
