//! Draws without replacement.

use crate::binomial::Binomial;
use crate::probability::Probability;
use crate::stream::Stream;

/// Terms below this are no longer looked at: all of them together are below 1e-15.
const NEGLIGIBLE: f64 = 1e-19;

/// How many of `drawn` items are marked, drawn at random without replacement from `items` of which
/// `marked` are.
///
/// Domain: `drawn` and `marked` at most `items`; more count as all. One uniform number of the
/// stream is inverted, outward from the mode, where the law is a ratio of binomial ones. Accuracy:
/// the law is hypergeometric to 1e-12 in total variation. Cost: about as many steps as the standard
/// deviation, √`drawn`/2 at most.
pub fn draw(stream: &mut Stream, items: u64, marked: u64, drawn: u64) -> u64 {
    let (marked, drawn) = (marked.min(items), drawn.min(items));
    // Counted from here on, unmarked items that are not drawn are as many as the count above it.
    let least = (drawn + marked).saturating_sub(items);
    let most = drawn.min(marked);
    if least >= most {
        return most;
    }
    let mode = (u128::from(drawn + 1) * u128::from(marked + 1) / u128::from(items + 2)) as u64;
    let mode = mode.clamp(least, most);
    let top = pmf(items, marked, drawn, mode);
    let mut left = stream.uniform() - top;
    let (mut above, mut below) = (mode, mode);
    let (mut p_above, mut p_below) = (top, top);
    while left > 0.0 && p_above.max(p_below) > NEGLIGIBLE {
        if above < most {
            let spared = (items + above + 1) - marked - drawn;
            p_above *= (marked - above) as f64 / (above + 1) as f64;
            p_above *= (drawn - above) as f64 / spared as f64;
            above += 1;
            left -= p_above;
            if left <= 0.0 {
                return above;
            }
        } else {
            p_above = 0.0;
        }
        if below > least {
            let spared = (items + below) - marked - drawn;
            p_below *= below as f64 / (marked - below + 1) as f64;
            p_below *= spared as f64 / (drawn - below + 1) as f64;
            below -= 1;
            left -= p_below;
            if left <= 0.0 {
                return below;
            }
        } else {
            p_below = 0.0;
        }
    }
    mode
}

/// P(`count` of the drawn items are marked): of Bernoulli draws, given how many items are drawn.
fn pmf(items: u64, marked: u64, drawn: u64, count: u64) -> f64 {
    let share = drawn as f64 / items as f64;
    let Ok(share) = Probability::new(share) else {
        return 0.0;
    };
    let ln = |trials: u64, successes: u64| Binomial::new(trials, share).ln_pmf(successes);
    (ln(marked, count) + ln(items - marked, drawn - count) - ln(items, drawn)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Purpose;

    fn choose(n: u64, k: u64) -> f64 {
        (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
    }

    #[test]
    fn the_law_is_hypergeometric() {
        for (items, marked, drawn) in [(10, 4, 5), (30, 29, 12), (7, 3, 1), (60, 30, 30)] {
            let mut seen = vec![0_u32; drawn as usize + 1];
            let mut stream = Stream::new(Purpose::TiedBlocks, items, marked);
            for _ in 0..100_000 {
                seen[draw(&mut stream, items, marked, drawn) as usize] += 1;
            }
            for (count, &times) in (0..).zip(&seen) {
                let possible = count <= marked && drawn - count <= items - marked;
                let p = if possible {
                    choose(marked, count) * choose(items - marked, drawn - count)
                        / choose(items, drawn)
                } else {
                    0.0
                };
                // Six standard deviations; what is expected less than once may be seen thrice.
                let spread = 6.0 * (1e5 * p * (1.0 - p)).sqrt();
                let room = if p > 0.0 { spread.max(3.0) } else { 0.0 };
                assert!(
                    (f64::from(times) - 1e5 * p).abs() <= room,
                    "{count}: {times}"
                );
            }
        }
    }

    #[test]
    fn large_populations_have_their_mean_and_variance() {
        let (items, marked, drawn) = (4_000_000_000, 1_500_000_000, 2_000_000_000_u64);
        let share = marked as f64 / items as f64;
        let mean = drawn as f64 * share;
        let variance = mean * (1.0 - share) * (items - drawn) as f64 / (items - 1) as f64;
        let mut stream = Stream::new(Purpose::TiedBlocks, 0, 1);
        let scaled: Vec<f64> = (0..2_000)
            .map(|_| (draw(&mut stream, items, marked, drawn) as f64 - mean) / variance.sqrt())
            .collect();
        let average = scaled.iter().sum::<f64>() / 2e3;
        let square = scaled.iter().map(|x| x * x).sum::<f64>() / 2e3;
        assert!(average.abs() < 0.12, "{average}");
        assert!((square - 1.0).abs() < 0.17, "{square}");
    }

    #[test]
    fn counts_that_cannot_be_are_never_drawn() {
        let mut stream = Stream::new(Purpose::TiedBlocks, 0, 2);
        assert_eq!(draw(&mut stream, 5, 0, 3), 0);
        assert_eq!(draw(&mut stream, 5, 3, 0), 0);
        assert_eq!(draw(&mut stream, 5, 3, 5), 3);
        assert_eq!(draw(&mut stream, 5, 9, 2), 2);
        assert_eq!(draw(&mut stream, 0, 0, 0), 0);
    }
}
