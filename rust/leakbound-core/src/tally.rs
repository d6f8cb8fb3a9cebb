//! Scores counted by key: what a tally holds.

use leakbound_math::memory::{filled, reserve};
use rayon::prelude::*;

use crate::error::AuditError;
use crate::interrupt::Interrupt;

const SIGN: u32 = 1 << 31;
/// Most bits of a key for a table with a place for each.
const DENSE: u32 = 22;
/// Rows between looks for an interrupt, and places that are sorted at once.
const PIECE: usize = 1 << 22;
/// Rows whose places are computed before they are counted.
const BLOCK: usize = 512;

/// A number that has a float32 next to it.
pub trait Score: Copy {
    /// The nearest float32, where -0 is +0.
    fn single(self) -> f32;
}

impl Score for f32 {
    fn single(self) -> f32 {
        self + 0.0
    }
}

impl Score for f64 {
    fn single(self) -> f32 {
        self as f32 + 0.0
    }
}

/// A key, its examples, and members among them.
pub type KeyCount = (u32, u64, u64);

/// Examples and members at each key: the first bits of scores as float32, in their order.
///
/// Rows are counted in a table with a place for each key and side; few rows, and keys with too many
/// bits for a table, are sorted.
#[derive(Debug)]
pub struct KeyCounts {
    bits: u32,
    /// Places of rows that were not counted yet: twice the key, and one for a member.
    places: Vec<u64>,
    /// Counts by key of rows that are neither there nor in the table.
    sorted: Vec<KeyCount>,
    /// Non-members and members of each key; empty before there are many rows.
    table: Vec<u32>,
    /// Most rows that the table may still take: its counts have 32 bits.
    room: usize,
}

impl KeyCounts {
    /// Counts of no rows, with keys of 1 to 32 bits.
    pub fn new(bits: u32) -> Self {
        Self {
            bits: bits.clamp(1, 32),
            places: Vec::new(),
            sorted: Vec::new(),
            table: Vec::new(),
            room: u32::MAX as usize,
        }
    }

    /// Count rows: members are those whose byte is not 0.
    ///
    /// Returns the first row that is NaN, if there is one; the counts are of no use then.
    pub fn add<S: Score>(
        &mut self,
        scores: &[S],
        member: &[u8],
        interrupt: &Interrupt,
    ) -> Result<Option<usize>, AuditError> {
        if scores.len() != member.len() {
            return Err(AuditError::LengthMismatch {
                scores: scores.len(),
                members: member.len(),
            });
        }
        let rows = self.places.len().saturating_add(scores.len());
        if self.bits <= DENSE && self.table.is_empty() && rows >= 1 << self.bits >> 2 {
            self.table = filled(2 << self.bits, 0)?;
        }
        for (piece, (scores, member)) in (0..).zip(scores.chunks(PIECE).zip(member.chunks(PIECE))) {
            interrupt.check()?;
            let numbers = if self.table.is_empty() {
                self.list(scores, member)?
            } else {
                if self.room < PIECE {
                    self.clear_table()?;
                }
                self.room -= scores.len();
                tabulate(scores, member, self.bits, &mut self.table)
            };
            if !numbers {
                let row = scores.iter().position(|score| score.single().is_nan());
                return Ok(row.map(|row| piece * PIECE + row));
            }
        }
        Ok(None)
    }

    /// The counts, by key.
    ///
    /// # Errors
    /// No memory for the counts.
    pub fn counts(&mut self) -> Result<&[KeyCount], AuditError> {
        self.clear_table()?;
        self.sort()?;
        Ok(&self.sorted)
    }

    /// Keep the places of rows, and sort when they are many; whether all are numbers.
    fn list<S: Score>(&mut self, scores: &[S], member: &[u8]) -> Result<bool, AuditError> {
        let mut numbers = true;
        reserve(&mut self.places, scores.len())?;
        let rows = scores.iter().zip(member);
        self.places.extend(rows.map(|(&score, &member)| {
            let score = score.single();
            numbers &= !score.is_nan();
            u64::from(key(score, self.bits)) << 1 | u64::from(member != 0)
        }));
        if self.places.len() >= PIECE {
            self.sort()?;
        }
        Ok(numbers)
    }

    /// Add places to the sorted counts.
    fn sort(&mut self) -> Result<(), AuditError> {
        self.places.par_sort_unstable();
        let places = std::mem::take(&mut self.places);
        self.merge(
            places
                .iter()
                .map(|place| ((place >> 1) as u32, 1, place & 1)),
        )
    }

    /// Add the table to the sorted counts.
    fn clear_table(&mut self) -> Result<(), AuditError> {
        let mut table = std::mem::take(&mut self.table);
        let keys = table.chunks_exact(2).zip(0..);
        self.merge(
            keys.filter(|(pair, _)| pair[0] | pair[1] != 0)
                .map(|(pair, key)| {
                    let [others, members] = [pair[0], pair[1]].map(u64::from);
                    (key, others + members, members)
                }),
        )?;
        table.fill(0);
        (self.table, self.room) = (table, u32::MAX as usize);
        Ok(())
    }

    /// Add counts whose keys do not decrease to the sorted ones.
    fn merge(&mut self, counts: impl Iterator<Item = KeyCount>) -> Result<(), AuditError> {
        let mut merged: Vec<KeyCount> = Vec::new();
        let mut before = std::mem::take(&mut self.sorted).into_iter().peekable();
        for (key, examples, members) in counts {
            while let Some(count) = before.next_if(|count| count.0 <= key) {
                reserve(&mut merged, 2)?;
                merged.push(count);
            }
            reserve(&mut merged, 1)?;
            match merged.last_mut() {
                Some(last) if last.0 == key => {
                    last.1 += examples;
                    last.2 += members;
                }
                _ => merged.push((key, examples, members)),
            }
        }
        reserve(&mut merged, before.len())?;
        merged.extend(before);
        self.sorted = merged;
        Ok(())
    }
}

/// The first bits of a score, in the order of scores.
fn key(score: f32, bits: u32) -> u32 {
    let word = score.to_bits();
    // All bits of a negative number turn, so that larger ones come first; else the sign alone.
    let ordered = word ^ ((word.cast_signed() >> 31).cast_unsigned() | SIGN);
    ordered >> (32 - bits)
}

/// Count rows in a table; whether all are numbers.
fn tabulate<S: Score>(scores: &[S], member: &[u8], bits: u32, table: &mut [u32]) -> bool {
    let mut places = [0; BLOCK];
    let mut numbers = true;
    for (scores, member) in scores.chunks(BLOCK).zip(member.chunks(BLOCK)) {
        for ((place, &score), &member) in places.iter_mut().zip(scores).zip(member) {
            let score = score.single();
            numbers &= !score.is_nan();
            *place = key(score, bits) << 1 | u32::from(member != 0);
        }
        for &place in &places[..scores.len()] {
            table[place as usize] += 1;
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// One score after another, in the order that floats have.
    fn plainly(scores: &[f32], member: &[u8], bits: u32) -> Vec<KeyCount> {
        let mut counts = BTreeMap::new();
        for (&score, &member) in scores.iter().zip(member) {
            let word = if score == 0.0 { 0 } else { score.to_bits() };
            let ordered = if word < SIGN { word + SIGN } else { !word };
            let count = counts.entry(ordered >> (32 - bits)).or_insert((0, 0));
            count.0 += 1;
            count.1 += u64::from(member != 0);
        }
        let counts = counts.into_iter();
        counts
            .map(|(key, (examples, members))| (key, examples, members))
            .collect()
    }

    fn counted<S: Score>(scores: &[S], member: &[u8], bits: u32, split: usize) -> Vec<KeyCount> {
        let (mut counts, go_on) = (KeyCounts::new(bits), Interrupt::default());
        for (scores, member) in scores.chunks(split).zip(member.chunks(split)) {
            assert_eq!(counts.add(scores, member, &go_on).unwrap(), None);
        }
        counts.counts().unwrap().to_vec()
    }

    proptest! {
        #[test]
        fn every_word_is_counted_at_its_key(
            rows in prop::collection::vec((any::<u32>(), 0_u8..3), 1..400),
            bits in 1_u32..=32,
            split in 1_usize..500,
        ) {
            let rows = rows.into_iter().map(|(word, member)| (f32::from_bits(word), member));
            let (mut scores, mut member): (Vec<f32>, Vec<u8>) =
                rows.filter(|(score, _)| !score.is_nan()).unzip();
            scores.extend([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-45, -1e-45]);
            member.extend([0, 1, 0, 1, 0, 255]);
            let expected = plainly(&scores, &member, bits);
            prop_assert_eq!(&counted(&scores, &member, bits, split), &expected);
            let wide: Vec<f64> = scores.iter().map(|&score| score.into()).collect();
            prop_assert_eq!(&counted(&wide, &member, bits, split), &expected);
        }
    }

    #[test]
    fn a_full_table_starts_again() {
        let (mut counts, go_on) = (KeyCounts::new(8), Interrupt::default());
        for _ in 0..3 {
            counts.room = counts.room.min(PIECE);
            assert_eq!(
                counts.add(&vec![1.0; PIECE - 1], &vec![1; PIECE - 1], &go_on),
                Ok(None)
            );
        }
        assert_eq!(counts.add(&[-1.0; 70], &[0; 70], &go_on), Ok(None));
        let rows = 3 * (PIECE as u64 - 1);
        assert_eq!(counts.counts().unwrap(), [(64, 70, 0), (191, rows, rows)]);
    }

    #[test]
    fn many_rows_are_sorted_piece_by_piece() {
        let scores: Vec<f32> = (0..PIECE + 9).map(|row| (row % 1000) as f32).collect();
        let member: Vec<u8> = (0..PIECE + 9).map(|row| (row % 3 == 0).into()).collect();
        let expected = plainly(&scores, &member, 32);
        for split in [PIECE / 3, PIECE + 9] {
            assert_eq!(counted(&scores, &member, 32, split), expected);
        }
    }

    #[test]
    fn the_first_nan_is_told_and_an_interrupt_stops() {
        for bits in [8, 32] {
            let mut scores = vec![-f64::INFINITY; PIECE + 9];
            scores[PIECE + 3] = f64::NAN.copysign(-1.0);
            let (mut counts, stop) = (KeyCounts::new(bits), Interrupt::default());
            let found = counts.add(&scores, &vec![0; PIECE + 9], &stop).unwrap();
            assert_eq!(found, Some(PIECE + 3));
            assert!(counts.add(&scores, &[0], &stop).is_err());
            stop.request();
            assert!(counts.add(&scores, &vec![0; PIECE + 9], &stop).is_err());
        }
    }
}
