//! Room for as many values as an input has, or an error where a machine has none: a vector that grows
//! without asking ends the process.

use crate::error::MathError;

/// An empty vector with room for so many values.
///
/// ```
/// use leakbound_math::{MathError, memory::room};
/// assert!(room::<u64>(3)?.capacity() >= 3);
/// assert!(matches!(room::<u64>(1 << 60), Err(MathError::OutOfMemory { .. })));
/// # Ok::<(), MathError>(())
/// ```
///
/// # Errors
/// [`MathError::OutOfMemory`], here and below.
pub fn room<T>(values: usize) -> Result<Vec<T>, MathError> {
    let mut list = Vec::new();
    list.try_reserve_exact(values)
        .map_err(|_| lacking::<T>(values))?;
    Ok(list)
}

/// So many copies of a value.
pub fn filled<T: Clone>(values: usize, value: T) -> Result<Vec<T>, MathError> {
    let mut list = room(values)?;
    list.resize(values, value);
    Ok(list)
}

/// The values of an iterator that has `most` at most.
pub fn listed<T>(most: usize, values: impl Iterator<Item = T>) -> Result<Vec<T>, MathError> {
    let mut list = room(most)?;
    list.extend(values.take(most));
    Ok(list)
}

/// Make sure that so many values could be held now, for work whose vectors come and go.
///
/// ```
/// use leakbound_math::{MathError, memory::spare};
/// assert!(spare::<u64>(3).is_ok());
/// assert!(matches!(spare::<u64>(1 << 60), Err(MathError::OutOfMemory { .. })));
/// ```
pub fn spare<T>(values: usize) -> Result<(), MathError> {
    // A compiler may leave out room that nobody looks at.
    std::hint::black_box(room::<T>(values)?);
    Ok(())
}

/// Make room for some values more in a vector that grows.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), MathError> {
    list.try_reserve(more)
        .map_err(|_| lacking::<T>(list.len().saturating_add(more)))
}

fn lacking<T>(values: usize) -> MathError {
    MathError::OutOfMemory {
        bytes: values.saturating_mul(size_of::<T>()),
    }
}
