//! A drive of the set `cache` under test: its commands without time, and its counters.

use std::collections::BTreeMap;

use ssdlab_base::command_sets::cache::CACHE;
use ssdlab_base::{Answer, Opcode, Request};
use ssdlab_device::{Data, Drive, Payload, Status};

/// Runs a command on blocks of 4 KB.
pub(crate) fn of_set(drive: &mut Drive, opcode: Opcode, first: u64, blocks: u64) -> (Status, Answer) {
    let spec = CACHE.command(opcode).expect("of the set");
    let request = Request::of_set(spec, first * 8, blocks * 8);
    drive.submit_command(&request, Payload { data: Data::Nothing, words: &[] });
    let status = drive.completions().pop().expect("without time it ends at once").status;
    (status, drive.answers().pop().unwrap_or_default())
}

/// The design's counters, of a drive all of whose checks pass.
pub(crate) fn metrics(drive: &Drive) -> BTreeMap<String, f64> {
    for check in drive.check() {
        assert!(check.passed, "{}: {}", check.name, check.detail);
    }
    drive.design().into_iter().collect()
}
