//! Random parts of counted examples.

use leakbound_math::hypergeometric;
use leakbound_math::stream::{Purpose, Stream};

use crate::error::AuditError;
use crate::guesses::counts::Counts;

/// Examples and members at each score of a random part of `size` examples, the highest score first.
///
/// Every part of that size is equally likely: how many examples of a block it has, given what it
/// took from the blocks above, is hypergeometric, and so is how many of these are members. Cost: two
/// draws for each block.
///
/// ```
/// use leakbound_core::draw_part;
/// let (examples, members) = draw_part(&[1, 4, 5], &[1, 4, 0], 6, 0)?;
/// assert_eq!(examples.iter().sum::<i64>(), 6);
/// assert_eq!(members[1], examples[1]);
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
///
/// # Errors
/// Counts that cannot be, or more examples than there are.
pub fn draw_part(
    examples: &[i64],
    members: &[i64],
    size: u32,
    seed: u64,
) -> Result<(Vec<i64>, Vec<i64>), AuditError> {
    let counts = Counts::of_blocks(examples, members)?;
    let (mut left, mut wanted) = (u64::from(counts.examples()), u64::from(size));
    if wanted > left {
        return Err(AuditError::ParameterOutOfRange {
            name: "size",
            value: f64::from(size),
            range: "at most the number of examples",
        });
    }
    let drawn = examples.iter().zip(members).zip(0..);
    Ok(drawn
        .map(|((&size, &members), index)| {
            let (size, members) = (size as u64, members as u64);
            let mut stream = Stream::new(Purpose::Parts, seed, index);
            let taken = hypergeometric::draw(&mut stream, left, size, wanted);
            let inside = hypergeometric::draw(&mut stream, size, members, taken);
            left -= size;
            wanted -= taken;
            (taken.cast_signed(), inside.cast_signed())
        })
        .unzip())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_equally_likely() {
        // Of 6 examples 3 are taken; the only member is in it half of the time.
        let (mut with_member, mut from_first) = (0_i64, 0_i64);
        for seed in 0..40_000 {
            let (examples, members) = draw_part(&[2, 3, 1], &[0, 1, 0], 3, seed).unwrap();
            assert_eq!(examples.iter().sum::<i64>(), 3);
            with_member += members[1];
            from_first += i64::from(examples[0] == 2);
        }
        // Bin(40,000, 1/2) and Bin(40,000, 4/20): standard deviations 100 and 80.
        assert!((with_member - 20_000).abs() < 550, "{with_member}");
        assert!((from_first - 8_000).abs() < 440, "{from_first}");
    }

    #[test]
    fn more_than_there_are_cannot_be_drawn() {
        assert!(draw_part(&[2, 3], &[1, 1], 6, 0).is_err());
        assert!(draw_part(&[2, 3], &[3, 1], 1, 0).is_err());
        assert!(draw_part(&[-2, 3], &[0, 1], 1, 0).is_err());
        assert_eq!(
            draw_part(&[2, 3], &[2, 1], 5, 0).unwrap(),
            (vec![2, 3], vec![2, 1])
        );
    }
}
