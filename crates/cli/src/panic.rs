//! A panic is our bug, or that of a policy which breaks its contract, never the asker's: it says so in two lines, and
//! ends with status 1.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

use ssdlab_device::BROKEN_CONTRACT;

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
    stderr::say(describe(message, &place));
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        stderr::say(trace);
    }
}

/// What is said of a panic at a place.
fn describe(message: &str, place: &str) -> String {
    let (whose, hint) = if message.contains(BROKEN_CONTRACT) {
        (String::new(), "docs/adding-a-design.md says what a policy may do")
    } else {
        let version = env!("CARGO_PKG_VERSION");
        let whose = format!("this is a bug in ssdlab {version}, not in your input: ");
        (whose, "please report it with the command line and, if you can, the input")
    };
    format!("error: {whose}{message}{place}\n  hint: {hint}; RUST_BACKTRACE=1 says more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_breaks_its_contract_is_no_bug_to_report() {
        let ours = describe("block 3 is pinned", " at pool.rs:1:2");
        assert!(ours.starts_with("error: this is a bug in ssdlab ") && ours.contains("please report it"), "{ours}");
        let message = format!("the victim policy mine {BROKEN_CONTRACT}VictimPolicy::choose: it returned block 9");
        let theirs = describe(&message, " at choice.rs:1:2");
        assert!(
            theirs.starts_with("error: the victim policy mine broke the contract of VictimPolicy::choose"),
            "{theirs}"
        );
        assert!(theirs.contains("adding-a-design.md") && !theirs.contains("report"), "{theirs}");
    }
}
