//! The one doorway from Python into computations, long ones and short ones.

use std::num::NonZeroUsize;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leakbound_core::{AuditError, Interrupt};
use leakbound_math::poisson_binomial::Level;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::to_python;
use crate::panics::caught;

/// How often the calling thread looks for signals while it waits.
const SIGNAL_POLL: Duration = Duration::from_millis(50);

/// How many values are handled in place.
const BRIEF: usize = 4096;

/// The pool, and the process that made it: threads do not survive a fork.
struct Pool {
    process: u32,
    threads: Option<NonZeroUsize>,
    current: Option<Arc<ThreadPool>>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    process: 0,
    threads: None,
    current: None,
});

/// Run `work` on the pool, detached from the interpreter, until it ends or Python is interrupted.
///
/// A panic, on whatever thread of the pool, raises `InternalError`.
pub(crate) fn enter<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Interrupt) -> Result<T, AuditError> + Send,
) -> PyResult<T> {
    let pool = pool()?;
    let interrupt = Interrupt::default();
    let outcome = py.detach(|| {
        pool.in_place_scope(|scope| {
            let (sender, receiver) = channel();
            let interrupt = &interrupt;
            // A send fails only after the receiver left, which it does not before this ends.
            scope.spawn(move |_| drop(sender.send(caught(|| work(interrupt)))));
            loop {
                match receiver.recv_timeout(SIGNAL_POLL) {
                    Ok(result) => return Ok(result),
                    Err(RecvTimeoutError::Timeout) => {
                        // Signals reach the main thread alone; elsewhere this finds nothing.
                        if let Err(signal) = Python::attach(|py: Python<'_>| py.check_signals()) {
                            interrupt.request();
                            return Err(signal);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(PyRuntimeError::new_err(
                            "the computation ended unexpectedly",
                        ));
                    }
                }
            }
        })
    });
    outcome?
        .map_err(|panicked| panicked.to_python(py))?
        .map_err(|error| to_python(py, &error))
}

/// Run `work` on at most some thousand values in place, since to wake a thread may take longer than
/// all of it; on more as `enter` does.
///
/// Such work is sequential: a parallel loop would run outside the pool.
pub(crate) fn enter_for<T: Send>(
    py: Python<'_>,
    values: usize,
    work: impl FnOnce(&Interrupt) -> Result<T, AuditError> + Send,
) -> PyResult<T> {
    if values > BRIEF {
        return enter(py, work);
    }
    at_once(py, || work(&Interrupt::default()))?.map_err(|error| to_python(py, &error))
}

/// Run `work` in place, detached from the interpreter: for what ends long before a look for signals.
///
/// A panic raises `InternalError`.
pub(crate) fn at_once<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| caught(work))
        .map_err(|panicked| panicked.to_python(py))
}

/// Panic on purpose, for the test that a panic becomes an exception: on the calling thread, on a
/// thread of the pool, or in a task of a parallel loop.
#[pyfunction]
#[expect(clippy::panic, reason = "the test needs one")]
pub(crate) fn _panic(py: Python<'_>, place: &str) -> PyResult<()> {
    let panic = || panic!("a panic on purpose");
    match place {
        "in place" => at_once(py, panic),
        "on the pool" => enter(py, |_| {
            panic();
            Ok(())
        }),
        _ => enter(py, |_| {
            (0..1000).into_par_iter().for_each(|task| {
                if task == 617 {
                    panic();
                }
            });
            Ok(())
        }),
    }
}

/// The number of threads that audits run on.
#[pyfunction]
pub(crate) fn threads() -> PyResult<usize> {
    Ok(pool()?.current_num_threads())
}

/// Run audits on `count` threads; results are the same for every count.
#[pyfunction]
pub(crate) fn set_threads(count: NonZeroUsize) {
    let mut state = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    state.threads = Some(count);
    state.current = None;
}

/// The vector instructions that kernels run on.
#[pyfunction]
pub(crate) fn simd() -> &'static str {
    Level::best().name()
}

fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut state = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if state.process != process {
        // The parent's threads are not here to be joined: leave its pool alone.
        std::mem::forget(state.current.take());
        state.process = process;
    }
    if let Some(pool) = &state.current {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(state.threads.map_or(0, NonZeroUsize::get))
        .thread_name(|index| format!("leakbound-{index}"))
        .build()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok(Arc::clone(state.current.insert(Arc::new(pool))))
}
