//! Examples sorted by score, one bit each.

use leakbound_math::memory::room;

use crate::error::AuditError;
use crate::guesses::bits::Bits;
use crate::guesses::path::Path;
use crate::interrupt::Interrupt;

/// Examples that are sorted, or looked at, between two looks for interrupts: a few tenths of a second
/// of work at most.
const AT_ONCE: usize = 1 << 22;
/// How many are not worth a second thread.
const FEW: usize = 1 << 13;

/// Examples in order of score.
#[derive(Debug, Clone)]
pub(crate) struct Sorted {
    /// Bit `i`: is the example at rank `i` a member?
    pub(crate) member: Bits,
    /// Bit `i`: does the next rank hold a different score?
    pub(crate) block_end: Bits,
    pub(crate) blocks: usize,
}

impl Sorted {
    pub(crate) fn examples(&self) -> usize {
        self.member.len()
    }

    /// Whole blocks from the top down to `top` examples and from the bottom up to `bottom`, in turn.
    pub(crate) fn visit(&self, top: usize, bottom: usize) -> Result<Path, AuditError> {
        let examples = self.examples();
        if self.blocks == examples {
            return self.visit_untied(top, bottom);
        }
        let mut successes = Bits::with_capacity(top + bottom)?;
        let mut cuts = Bits::with_capacity(top + bottom)?;
        let from_top = self.blocks_from_the_top();
        let from_bottom = self.blocks_from_the_bottom();
        in_turn(
            from_top.take_while(|&(_, end)| end <= top),
            from_bottom.take_while(|&(start, _)| start + bottom >= examples),
            |&(start, end)| end - start,
            |(start, end), is_top| {
                for rank in start..end {
                    successes.push(self.member.get(rank) == is_top);
                    cuts.push(rank + 1 == end);
                }
            },
        );
        Ok(Path::new(successes, cuts))
    }

    /// [`Self::visit`] where every block is one example.
    fn visit_untied(&self, top: usize, bottom: usize) -> Result<Path, AuditError> {
        let (last, paired) = (self.examples() - 1, top.min(bottom));
        let mut successes = Bits::with_capacity(top + bottom)?;
        let mut taken = 0;
        while paired - taken >= 32 {
            let high = self.member.chunk(taken, taken + 32) as u32;
            let end = last + 1 - taken;
            let low = !(self.member.chunk(end - 32, end) as u32).reverse_bits();
            successes.push_word(spread(high) | spread(low) << 1);
            taken += 32;
        }
        for i in taken..paired {
            successes.push(self.member.get(i));
            successes.push(!self.member.get(last - i));
        }
        (paired..top).for_each(|i| successes.push(self.member.get(i)));
        (paired..bottom).for_each(|i| successes.push(!self.member.get(last - i)));
        Ok(Path::new(successes, Bits::ones(top + bottom)?))
    }

    /// Blocks of equal score as `start..end` in ranks, from the highest score down.
    pub(crate) fn blocks_from_the_top(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let end = (start < self.examples()).then(|| self.block_end.next_set(start))?? + 1;
            Some((std::mem::replace(&mut start, end), end))
        })
    }

    /// The same blocks from the lowest score up.
    fn blocks_from_the_bottom(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut end = self.examples();
        std::iter::from_fn(move || {
            let last = end.checked_sub(1)?;
            let above = last.checked_sub(1);
            let start = above
                .and_then(|rank| self.block_end.previous_set(rank))
                .map_or(0, |end| end + 1);
            Some((start, std::mem::replace(&mut end, start)))
        })
    }
}

/// The bits of a number, a zero above each.
fn spread(bits: u32) -> u64 {
    let mut spread = u64::from(bits);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        spread = (spread | spread << shift) & mask;
    }
    spread
}

/// Visit blocks from both ends, the next always from the side with fewer guesses so far; `visit`
/// is told whether a block is from the top.
pub(crate) fn in_turn<B>(
    top: impl Iterator<Item = B>,
    mut bottom: impl Iterator<Item = B>,
    size: impl Fn(&B) -> usize,
    mut visit: impl FnMut(B, bool),
) {
    let mut top = top.peekable();
    let mut bottom_block = bottom.next();
    let (mut from_top, mut from_bottom) = (0, 0);
    loop {
        let take_top = match (top.peek(), &bottom_block) {
            (Some(_), Some(_)) => from_top <= from_bottom,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => break,
        };
        let block = if take_top {
            top.next()
        } else {
            std::mem::replace(&mut bottom_block, bottom.next())
        };
        let Some(block) = block else { break };
        let side = if take_top {
            &mut from_top
        } else {
            &mut from_bottom
        };
        *side += size(&block);
        visit(block, take_top);
    }
}

/// An integer that decreases as the score increases; −0 and +0 share one.
pub(crate) trait Key: Copy + Ord + Send {
    /// Greater than the key of every number.
    const SENTINEL: Self;

    fn of(score: f64) -> Self;
}

impl Key for u64 {
    const SENTINEL: Self = Self::MAX;

    fn of(score: f64) -> Self {
        let bits = (score + 0.0).to_bits();
        let sign = 1 << 63;
        if bits & sign == 0 {
            !(bits | sign)
        } else {
            bits
        }
    }
}

/// Of scores that are all in single precision, half as much memory.
impl Key for u32 {
    const SENTINEL: Self = Self::MAX;

    fn of(score: f64) -> Self {
        let bits = (score as f32 + 0.0).to_bits();
        let sign = 1 << 31;
        if bits & sign == 0 {
            !(bits | sign)
        } else {
            bits
        }
    }
}

/// Whether single precision has all of these scores, none of which is NaN.
pub(crate) fn are_single(mut scores: impl Iterator<Item = f64>) -> bool {
    scores.all(|score| f64::from(score as f32) == score)
}

/// Keys of members and of non-members, each increasing as scores decrease, with a sentinel last.
pub(crate) fn sorted_keys<K: Key>(
    scores: &[f64],
    member: &[bool],
    interrupt: &Interrupt,
) -> Result<(Vec<K>, Vec<K>), AuditError> {
    let members = member.iter().filter(|&&is_member| is_member).count();
    let mut keys = (room(members + 1)?, room(scores.len() - members + 1)?);
    for (scores, member) in scores.chunks(AT_ONCE).zip(member.chunks(AT_ONCE)) {
        interrupt.check()?;
        for (&score, &is_member) in scores.iter().zip(member) {
            if is_member {
                keys.0.push(K::of(score))
            } else {
                keys.1.push(K::of(score))
            }
        }
    }
    sort_both(&mut keys.0, &mut keys.1, interrupt)?;
    Ok(keys)
}

/// The same of the scores of some rows, and of some others; each row is below their number.
pub(crate) fn sorted_keys_of_rows<K: Key>(
    scores: &[f64],
    members: &[u32],
    others: &[u32],
    interrupt: &Interrupt,
) -> Result<(Vec<K>, Vec<K>), AuditError> {
    let keys_of = |rows: &[u32]| -> Result<Vec<K>, AuditError> {
        let mut keys = room(rows.len() + 1)?;
        for rows in rows.chunks(AT_ONCE) {
            interrupt.check()?;
            keys.extend(rows.iter().map(|&row| K::of(scores[row as usize])));
        }
        Ok(keys)
    };
    let mut keys = (keys_of(members)?, keys_of(others)?);
    sort_both(&mut keys.0, &mut keys.1, interrupt)?;
    Ok(keys)
}

/// Sort the keys of members and of others, and put a sentinel behind each; there is room for it.
fn sort_both<K: Key>(
    members: &mut Vec<K>,
    others: &mut Vec<K>,
    interrupt: &Interrupt,
) -> Result<(), AuditError> {
    let (one, other) = if members.len() + others.len() <= FEW {
        (sort(members, interrupt), sort(others, interrupt))
    } else {
        rayon::join(|| sort(members, interrupt), || sort(others, interrupt))
    };
    one.and(other)?;
    members.push(K::SENTINEL);
    others.push(K::SENTINEL);
    Ok(())
}

/// Sort, the larger half and the smaller half by themselves where there are many.
fn sort<K: Key>(keys: &mut [K], interrupt: &Interrupt) -> Result<(), AuditError> {
    interrupt.check()?;
    if keys.len() <= AT_ONCE {
        keys.sort_unstable();
        return Ok(());
    }
    let (low, _, high) = keys.select_nth_unstable(keys.len() / 2);
    let (low, high) = rayon::join(|| sort(low, interrupt), || sort(high, interrupt));
    low.and(high)
}

/// Merge two key lists that end in a sentinel, members first within a block; with Σ over members of
/// the non-members ranked at or after them.
pub(crate) fn merge<K: Key>(
    members: &[K],
    non_members: &[K],
    interrupt: &Interrupt,
) -> Result<(Sorted, u64), AuditError> {
    let examples = members.len() + non_members.len() - 2;
    let mut sorted = Sorted {
        member: Bits::with_capacity(examples)?,
        block_end: Bits::with_capacity(examples)?,
        blocks: 0,
    };
    let mut pairs_won_or_tied = 0;
    let (mut i, mut j) = (0, 0);
    while i + j < examples {
        interrupt.check()?;
        let end = examples.min(i + j + AT_ONCE);
        while i + j < end {
            // No branch depends on the data: either list is as likely to come next.
            let is_member = members[i] <= non_members[j];
            let current = members[i].min(non_members[j]);
            pairs_won_or_tied += u64::from(is_member) * (non_members.len() - 1 - j) as u64;
            i += usize::from(is_member);
            j += usize::from(!is_member);
            let is_end = current != members[i].min(non_members[j]);
            sorted.member.push(is_member);
            sorted.block_end.push(is_end);
            sorted.blocks += usize::from(is_end);
        }
    }
    Ok((sorted, pairs_won_or_tied))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_stops_a_ranking() {
        let stop = Interrupt::default();
        stop.request();
        let keys = sorted_keys::<u64>(&[0.0, 1.0], &[true, false], &stop);
        assert!(matches!(keys, Err(AuditError::Interrupted)));
        let stopped = sort(&mut vec![0_u64; AT_ONCE + 1], &stop);
        assert!(matches!(stopped, Err(AuditError::Interrupted)));
    }

    #[test]
    fn keys_of_single_precision_order_scores_alike() {
        let scores = [
            f64::INFINITY,
            3.5,
            1e-45_f32.into(),
            0.0,
            -0.0,
            -2.0,
            f64::NEG_INFINITY,
        ];
        assert!(are_single(scores.into_iter()));
        assert!(!are_single([0.5, 0.1].into_iter()));
        assert!(!are_single([1e300].into_iter()));
        for (one, other) in scores.iter().zip(&scores[1..]) {
            assert_eq!(u32::of(*one) < u32::of(*other), one > other);
            assert_eq!(u64::of(*one) < u64::of(*other), one > other);
        }
        assert!(u32::of(f64::NEG_INFINITY) < u32::SENTINEL);
    }

    #[test]
    fn many_keys_are_sorted_in_halves() {
        let mut keys: Vec<u64> = (0..2 * AT_ONCE as u64 + 3)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)
            .collect();
        let mut expected = keys.clone();
        expected.sort_unstable();
        sort(&mut keys, &Interrupt::default()).unwrap();
        assert_eq!(keys, expected);
    }
}
