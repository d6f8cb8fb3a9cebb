//! Resamples with replacement, as counts.

use leakbound_math::stream::Stream;

use crate::error::PropensityError;

/// Resamples drawn before the classes are declared too rare. If a resample lacks a class with
/// probability ½ (the chance is below e⁻¹ for each class that has a row), all do with 2⁻¹⁰⁰⁰.
const PATIENCE: u64 = 1000;

/// Fills `counts` with how often each of its rows occurs in a resample of as many rows, redrawn
/// until `complete` accepts the counts.
pub(crate) fn draw(
    stream: &mut Stream,
    counts: &mut [u32],
    mut complete: impl FnMut(&[u32]) -> bool,
) -> Result<(), PropensityError> {
    let rows = counts.len() as u32;
    for _ in 0..PATIENCE {
        counts.fill(0);
        for _ in 0..rows {
            counts[stream.below(rows) as usize] += 1;
        }
        if complete(counts) {
            return Ok(());
        }
    }
    Err(PropensityError::ClassTooRare { tried: PATIENCE })
}

#[cfg(test)]
mod tests {
    use leakbound_math::stream::{Purpose, Stream};

    use super::draw;

    #[test]
    fn a_resample_has_as_many_rows_as_the_data() {
        let mut counts = vec![0; 50];
        draw(
            &mut Stream::new(Purpose::Resamples, 3, 1),
            &mut counts,
            |_| true,
        )
        .unwrap();
        assert_eq!(counts.iter().sum::<u32>(), 50);
        let refused = draw(
            &mut Stream::new(Purpose::Resamples, 3, 1),
            &mut counts,
            |_| false,
        );
        assert!(refused.is_err());
    }
}
