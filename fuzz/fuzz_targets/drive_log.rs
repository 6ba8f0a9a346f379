//! Two drive logs of any text, cut where a line says `--`: read, and compared in both orders.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdlab_measure::drive_log::{Snapshot, compare};

fuzz_target!(|text: &str| {
    let (one, two) = text.split_once("\n--\n").unwrap_or((text, text));
    let read = |text| Snapshot::parse("fuzz", text);
    if let (Ok(one), Ok(two)) = (read(one), read(two)) {
        let _ = one.lifetime_amplification();
        let _ = compare(&one, &two);
        let _ = compare(&two, &one);
        let same = compare(&one, &one).expect("a drive and itself");
        assert!(same.host.is_none_or(|host| host.bytes == 0));
    }
});
