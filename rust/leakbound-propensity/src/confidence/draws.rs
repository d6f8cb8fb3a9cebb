//! What all draws of what matching keeps reach, worked out.

/// Probabilities that are left out, always to the side that proves less.
const TINY: f64 = 1e-13;

/// No less than the probability that more are kept, by Chernoff's bound.
pub(super) fn more_than(chances: &[f64], kept: f64, tilt: f64) -> f64 {
    if !tilt.is_finite() {
        return 0.0;
    }
    let cumulant = chances.iter().map(|p| (p * tilt.exp_m1()).ln_1p());
    (cumulant.sum::<f64>() - tilt * kept).exp()
}

/// P(V = v) for v from 0 to `made`, V how many are correct of the first `made` guesses kept, from below
/// as regards large V.
///
/// V ≥ v if and only if v correct ones are kept before `made` − v + 1 wrong ones are. What is kept of
/// the correct guesses is independent of what is kept of the wrong ones, so that with N correct
/// and M wrong ones kept among the first l, and W the wrong ones, the probability is
///
/// ```text
/// Σ_{l ∈ W} P(M_{l−1} = made − v) kₗ P(N_l ≥ v) + P(M ≤ made − v) P(N ≥ v).
/// ```
pub(super) fn count_law(correct: &[bool], chances: &[f64], made: usize) -> Vec<f64> {
    if made == 0 {
        return vec![1.0];
    }
    // P(V ≥ v), P(N ≥ v) and P(M = j). Outside of their windows tails are 1 and 0 and M has no mass.
    let mut reached = vec![0.0; made + 2];
    let (mut tail, mut mass) = (vec![0.0; made + 2], vec![0.0; made + 2]);
    (tail[0], mass[0]) = (1.0, 1.0);
    let (mut sure, mut most) = (0, 0);
    let (mut fewest, mut widest) = (0, 0);
    for (&correct, &chance) in correct.iter().zip(chances) {
        if sure + fewest >= made {
            break;
        }
        if correct {
            for v in (sure + 1..=(most + 1).min(made)).rev() {
                tail[v] += chance * (tail[v - 1] - tail[v]);
            }
            if most < made && tail[most + 1] > TINY {
                most += 1;
            }
            while sure < most && tail[sure + 1] > 1.0 - TINY {
                sure += 1;
            }
        } else {
            let known = mass.iter().enumerate().take(made.min(widest + 1));
            for (j, mass) in known.skip(fewest) {
                reached[made - j] += mass * chance * tail[made - j];
            }
            for j in (fewest + 1..=(widest + 1).min(made)).rev() {
                mass[j] += chance * (mass[j - 1] - mass[j]);
            }
            mass[fewest] *= 1.0 - chance;
            if widest < made && mass[widest + 1] > TINY {
                widest += 1;
            }
            while fewest < widest && mass[fewest] < TINY {
                fewest += 1;
            }
        }
    }
    let mut at_most = 0.0;
    let mut law = vec![0.0; made + 1];
    for j in fewest..=made {
        at_most += mass[j];
        reached[made - j] += at_most * tail[made - j];
    }
    reached[0] = 1.0;
    for v in 0..=made {
        law[v] = (reached[v] - reached[v + 1]).max(0.0);
    }
    law
}

/// The largest v with P(V ≥ v) ≥ `share`, V the sum of two independent numbers, and the part of the way
/// to v + 1 on which the probability falls to that.
pub(super) fn reached(laws: &[Vec<f64>; 2], share: f64) -> f64 {
    let [first, second] = laws.each_ref().map(|law| {
        let low = law.iter().position(|&p| p > TINY).unwrap_or(0);
        let high = law
            .iter()
            .rposition(|&p| p > TINY)
            .map_or(low, |last| last + 1);
        (low, &law[low..high.min(law.len())])
    });
    let mut sums = vec![0.0; first.1.len() + second.1.len()];
    for (i, p) in first.1.iter().enumerate() {
        for (j, q) in second.1.iter().enumerate() {
            sums[i + j] += p * q;
        }
    }
    let mut tail = 0.0;
    for (index, mass) in sums.iter().enumerate().rev() {
        if tail + mass >= share {
            let part = (tail + mass - share) / mass;
            return (first.0 + second.0 + index) as f64 + part.min(1.0 - f64::EPSILON);
        }
        tail += mass;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORRECT: [bool; 9] = [true, false, true, true, false, true, false, true, true];
    const CHANCES: [f64; 9] = [0.9, 0.2, 1.0, 0.4, 0.7, 0.1, 1.0, 0.6, 0.3];

    /// Each way to keep some of the guesses, with its probability.
    fn ways() -> impl Iterator<Item = (Vec<bool>, f64)> {
        (0..1 << CHANCES.len()).map(|way: usize| {
            let kept: Vec<bool> = (0..CHANCES.len()).map(|i| way >> i & 1 == 1).collect();
            let chances = kept.iter().zip(CHANCES);
            let chance: f64 = chances
                .map(|(&is, p)| if is { p } else { 1.0 - p })
                .product();
            (kept, chance)
        })
    }

    fn law(made: usize) -> Vec<f64> {
        let mut law = vec![0.0; made + 1];
        for (kept, chance) in ways() {
            let correct = CORRECT.iter().zip(kept).filter(|(_, kept)| *kept);
            law[correct.take(made).filter(|(correct, _)| **correct).count()] += chance;
        }
        law
    }

    #[test]
    fn the_law_of_correct_guesses_is_that_of_all_ways_to_keep_some() {
        for made in 0..=CHANCES.len() {
            let found = count_law(&CORRECT, &CHANCES, made);
            assert_eq!(found.len(), made + 1);
            for (found, expected) in found.iter().zip(law(made)) {
                assert!(
                    (found - expected).abs() < 1e-11,
                    "{made}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn two_sides_reach_what_all_ways_reach() {
        let laws = [
            count_law(&CORRECT, &CHANCES, 3),
            count_law(&CORRECT, &CHANCES, 4),
        ];
        let (first, second) = (law(3), law(4));
        for share in [0.001, 0.2, 0.5, 0.9, 0.999] {
            let found = reached(&laws, share);
            let tail = |least: usize| -> f64 {
                let pairs = (0..first.len()).flat_map(|i| (0..second.len()).map(move |j| (i, j)));
                let here = pairs.filter(|(i, j)| i + j >= least);
                here.map(|(i, j)| first[i] * second[j]).sum()
            };
            let whole = found as usize;
            assert!(
                tail(whole) >= share - 1e-9 && tail(whole + 1) < share,
                "{share}: {found}"
            );
        }
        assert_eq!(reached(&laws, 1.5), 0.0);
    }

    #[test]
    fn more_are_kept_no_more_often_than_is_reckoned_with() {
        let often = |most: f64| -> f64 {
            let more =
                ways().filter(|(kept, _)| kept.iter().filter(|&&is| is).count() as f64 > most);
            more.map(|(_, chance)| chance).sum()
        };
        for (most, tilt) in [(4.0, 0.1), (5.2, 0.5), (6.5, 1.0), (8.5, 2.0)] {
            assert!(often(most) <= more_than(&CHANCES, most, tilt));
        }
        assert!(more_than(&CHANCES, 8.5, 2.0) < 0.1);
        assert_eq!(more_than(&[1.0, 1.0], 2.0, f64::INFINITY), 0.0);
    }
}
