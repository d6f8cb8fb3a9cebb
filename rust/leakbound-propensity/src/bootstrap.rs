//! Refits of many resamples.

use rayon::prelude::*;

use crate::{LogisticFit, PropensityError, Training};

impl LogisticFit {
    /// Intercept and slopes, calibrated, of the refits of resamples number `first`, `first` + 1, …:
    /// `count` rows of as many coefficients as [`Training::width`].
    ///
    /// # Errors
    /// As [`LogisticFit::new`] and [`Training::resample`]; [`PropensityError::Interrupted`] once
    /// `stop` says so.
    pub fn bootstrap(
        &self,
        training: &Training,
        seed: u64,
        first: u64,
        count: usize,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Vec<f64>, PropensityError> {
        let rows = (0..count as u64)
            .into_par_iter()
            .map(|offset| {
                if stop() {
                    return Err(PropensityError::Interrupted);
                }
                let counts = training.resample(seed, first + offset)?;
                let mut weights = vec![0.0; counts.len()];
                training.weigh(&counts, &mut weights);
                Ok(self.refit(training, &weights)?.coefficients(training))
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(rows.concat())
    }
}
