//! A panic is our bug, never the asker's: it says so in two lines, and ends with status 1.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

use crate::stderr;

/// From here on a panic prints a short message instead of Rust's. The status is [`crate::main`]'s business.
pub(crate) fn install_hook() {
    std::panic::set_hook(Box::new(report));
}

/// From here on a panic in any thread ends the process: a drive that broke inside must serve no client, and for its
/// image the end of the process is a power cut.
pub(crate) fn end_the_process() {
    std::panic::set_hook(Box::new(|info| {
        report(info);
        std::process::exit(1);
    }));
}

fn report(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let message =
        payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = message.unwrap_or("no message");
    let place = info.location().map_or_else(String::new, |location| format!(" at {location}"));
    stderr::say(format_args!(
        "error: this is a bug in ssdlab {}, not in your input: {message}{place}",
        env!("CARGO_PKG_VERSION")
    ));
    stderr::say(
        "  hint: please report it with the command line and, if you can, the input; RUST_BACKTRACE=1 says more",
    );
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        stderr::say(trace);
    }
}
