//! The Bernoulli terms of a sum, held as odds.

use leakbound_simd::{Level, odds_from_logits, odds_from_probabilities};

use crate::error::{MathError, check_length, check_probabilities};

/// Positive probabilities below this are raised to it.
const SMALLEST_PROBABILITY: f64 = 1e-250;
/// Offsets may differ by twice this much, so that no odds overflow under any tilt.
pub(super) const OFFSET_REACH: f64 = 300.0;
/// Tails with a logarithm below this may owe to raised probabilities: 2⁵³ of them make 10⁻²³⁴.
pub(super) const RAISED_MATTERS: f64 = -500.0;
/// Trials are counted in doubles.
const MOST_TRIALS: u64 = 1 << 53;

/// Independent Bernoulli terms Xᵢ with P(Xᵢ = 1) = pᵢ, ready for repeated tails and inverses.
///
/// They are kept as odds Eᵢ = pᵢ/(1−pᵢ), computed once, each with the residual rᵢ that its rounding
/// left: the odds proper are Eᵢ(1+rᵢ). Without the residuals, ten million equal probabilities would
/// move ln P by 2·10⁻¹³. Terms with pᵢ exactly 0 or 1 are counted and set aside.
///
/// # Accuracy
/// Probabilities between 0 and 10⁻²⁵⁰ are raised to 10⁻²⁵⁰; tails so small that it could matter
/// report an infinite relative error (the value is then an upper bound).
#[derive(Clone, Debug)]
pub struct Terms {
    pub(super) level: Level,
    pub(super) odds: Vec<f64>,
    pub(super) residuals: Vec<f32>,
    pub(super) counts: Option<Vec<f64>>,
    /// Trials with 0 < p < 1.
    pub(super) trials: u64,
    /// Trials with p = 1.
    pub(super) certain: u64,
    /// The odds are those of offsets − shift.
    pub(super) shift: f64,
    /// Some probability was raised to [`SMALLEST_PROBABILITY`].
    pub(super) raised: bool,
}

impl Terms {
    /// Terms with the probabilities `p`, each once.
    ///
    /// # Errors
    /// [`MathError::NotAProbabilityAt`] names the first entry outside \[0, 1\] or NaN.
    pub fn from_probabilities(p: &[f64]) -> Result<Self, MathError> {
        Self::from_grouped_probabilities(p, None)
    }

    /// Terms with the probabilities `p`, the i-th occurring `counts[i]` times.
    pub fn from_grouped_probabilities(
        p: &[f64],
        counts: Option<&[u64]>,
    ) -> Result<Self, MathError> {
        let ordinary = |&p: &f64| (SMALLEST_PROBABILITY..1.0).contains(&p);
        if counts.is_none() && p.iter().all(ordinary) {
            let mut terms = Self::open(p.len(), None);
            odds_from_probabilities(terms.level, p, &mut terms.odds, &mut terms.residuals);
            return Ok(terms);
        }
        check_probabilities("p", p)?;
        let (kept, mut terms) = Self::sort_out(p, counts, "p", |&p| match p {
            0.0 => Fate::Never,
            1.0 => Fate::Always,
            _ => Fate::Open,
        })?;
        let raised: Vec<f64>;
        let mut kept: &[f64] = kept.as_deref().unwrap_or(p);
        if kept.iter().any(|&p| p < SMALLEST_PROBABILITY) {
            terms.raised = true;
            raised = kept.iter().map(|p| p.max(SMALLEST_PROBABILITY)).collect();
            kept = &raised;
        }
        odds_from_probabilities(terms.level, kept, &mut terms.odds, &mut terms.residuals);
        Ok(terms)
    }

    /// Terms with pᵢ = σ(ε + `offsets[i]`) for an ε named later; ±∞ stand for p = 1 and p = 0.
    ///
    /// # Errors
    /// [`MathError::NotANumberAt`] names the first NaN; [`MathError::OffsetTooFar`] the first finite
    /// offset further than 300 from the middle of their range.
    pub fn from_offsets(offsets: &[f64]) -> Result<Self, MathError> {
        Self::from_grouped_offsets(offsets, None)
    }

    /// As [`Self::from_offsets`], the i-th term occurring `counts[i]` times.
    pub fn from_grouped_offsets(
        offsets: &[f64],
        counts: Option<&[u64]>,
    ) -> Result<Self, MathError> {
        if counts.is_none() && offsets.iter().all(|a| a.abs() <= OFFSET_REACH) {
            let mut terms = Self::open(offsets.len(), None);
            odds_from_logits(
                terms.level,
                offsets,
                0.0,
                &mut terms.odds,
                &mut terms.residuals,
            );
            return Ok(terms);
        }
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (index, &value) in offsets.iter().enumerate() {
            if value.is_nan() {
                return Err(MathError::NotANumberAt {
                    name: "offsets",
                    index,
                });
            }
            if value.is_finite() {
                low = low.min(value);
                high = high.max(value);
            }
        }
        let (kept, mut terms) = Self::sort_out(offsets, counts, "offsets", |&a| {
            match (a.is_finite(), a > 0.0) {
                (true, _) => Fate::Open,
                (false, false) => Fate::Never,
                (false, true) => Fate::Always,
            }
        })?;
        if low < -OFFSET_REACH || high > OFFSET_REACH {
            terms.shift = 0.5 * low + 0.5 * high;
            let far = |a: &f64| a.is_finite() && (a - terms.shift).abs() > OFFSET_REACH;
            if let Some(index) = offsets.iter().position(far) {
                let (value, middle) = (offsets[index], terms.shift);
                return Err(MathError::OffsetTooFar {
                    index,
                    value,
                    middle,
                });
            }
        }
        let kept = kept.as_deref().unwrap_or(offsets);
        odds_from_logits(
            terms.level,
            kept,
            terms.shift,
            &mut terms.odds,
            &mut terms.residuals,
        );
        Ok(terms)
    }

    /// The same terms with every kernel run at `level`; for tests and benchmarks.
    #[must_use]
    pub fn at_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// The number of trials n, those with p = 1 included and those with p = 0 left out.
    pub fn possible(&self) -> u64 {
        self.trials + self.certain
    }

    /// Room for `length` open terms.
    fn open(length: usize, counts: Option<Vec<f64>>) -> Self {
        Self {
            level: Level::best(),
            odds: vec![0.0; length],
            residuals: vec![0.0; length],
            counts,
            trials: length as u64,
            certain: 0,
            shift: 0.0,
            raised: false,
        }
    }

    /// Counts the certain terms; lists the open ones where some are not.
    fn sort_out(
        entries: &[f64],
        counts: Option<&[u64]>,
        name: &'static str,
        fate: impl Fn(&f64) -> Fate,
    ) -> Result<(Option<Vec<f64>>, Self), MathError> {
        if let Some(counts) = counts {
            check_length("counts", counts.len(), name, entries.len())?;
        }
        let (mut certain, mut trials) = (0_u64, 0_u64);
        let mut all_open = true;
        for (index, entry) in entries.iter().enumerate() {
            let count = counts.map_or(1, |counts| counts[index]);
            match fate(entry) {
                Fate::Always => certain = certain.saturating_add(count),
                Fate::Open => trials = trials.saturating_add(count),
                Fate::Never => {}
            }
            all_open &= count > 0 && matches!(fate(entry), Fate::Open);
        }
        if trials.saturating_add(certain) > MOST_TRIALS {
            return Err(MathError::TooManyTrials { most: MOST_TRIALS });
        }
        let open = |index: &usize| {
            counts.is_none_or(|counts| counts[*index] > 0)
                && matches!(fate(&entries[*index]), Fate::Open)
        };
        let mut kept = None;
        let mut kept_counts = counts.map(|counts| counts.iter().map(|&c| c as f64).collect());
        if !all_open {
            let indices: Vec<usize> = (0..entries.len()).filter(open).collect();
            kept_counts = counts.map(|counts| indices.iter().map(|&i| counts[i] as f64).collect());
            kept = Some(
                indices
                    .into_iter()
                    .map(|i| entries[i])
                    .collect::<Vec<f64>>(),
            );
        }
        let length = kept.as_ref().map_or(entries.len(), Vec::len);
        let terms = Self {
            trials,
            certain,
            ..Self::open(length, kept_counts)
        };
        Ok((kept, terms))
    }

    /// The mean of ln E over at most 32 entries spread over the terms.
    pub(super) fn typical_log_odds(&self) -> f64 {
        let sampled = self.odds.len().min(32);
        let total: f64 = (0..sampled)
            .map(|k| self.odds[k * self.odds.len() / sampled].ln())
            .sum();
        total / sampled as f64
    }

    /// Each open trial once: odds repeated by their counts. For few trials.
    pub(super) fn repeated_odds(&self) -> Vec<f64> {
        match &self.counts {
            None => self.odds.clone(),
            Some(counts) => (self.odds.iter().zip(counts))
                .flat_map(|(&e, &count)| std::iter::repeat_n(e, count as usize))
                .collect(),
        }
    }
}

/// What is known of a term before any arithmetic.
enum Fate {
    Never,
    Always,
    Open,
}
