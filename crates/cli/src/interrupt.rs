//! Ctrl-C: the first asks the work to end with what it has, the second ends at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;
use crate::stderr;

static STOP: AtomicBool = AtomicBool::new(false);

/// The status that shells give a command that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Whether a signal has asked the work to end.
pub(crate) fn was_asked_for() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// From here on, SIGINT, SIGTERM and SIGHUP set the flag that is given back; coming again, they end the process.
pub(crate) fn listen() -> Result<&'static AtomicBool, Failure> {
    listen_saying("interrupted: finishing with the results so far; once more ends at once")
}

/// From here on, SIGINT, SIGTERM and SIGHUP set the flag that is given back, and `sentence` is said; coming again, they
/// end the process. An empty sentence is not said.
pub(crate) fn listen_saying(sentence: &'static str) -> Result<&'static AtomicBool, Failure> {
    ctrlc::set_handler(move || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
        if !sentence.is_empty() {
            stderr::say(format_args!("\n{sentence}"));
        }
    })
    .map_err(|error| Failure::work(format!("cannot listen for Ctrl-C: {error}")))?;
    Ok(&STOP)
}
