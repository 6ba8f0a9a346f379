#![no_main]
//! Every trace parser, chosen by the first byte, and what stands behind it: statistics and both writers.

use libfuzzer_sys::fuzz_target;
use ssdlab_workload::stats::TraceStats;
use ssdlab_workload::trace::{Target, Trace, TraceFormat, convert};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let formats: Vec<TraceFormat> = TraceFormat::all().collect();
    let format = formats[usize::from(choice) % formats.len()];
    for extra in ["", ",skip_bad=yes"] {
        let options = format!("format={format}{extra}");
        let Ok(mut trace) = Trace::from_bytes("fuzz", &options, bytes) else { continue };
        let Ok(stats) = TraceStats::of(&mut trace) else { continue };
        let mut csv = Vec::new();
        let written = convert(&mut trace, &Target::Csv, &mut csv).expect("it was read a moment ago");
        assert_eq!(written.requests, stats.requests);
        let file = "x".to_string();
        convert(&mut trace, &Target::FioV3 { file }, &mut Vec::new()).expect("it was read a moment ago");
        let mut again = Trace::from_bytes("again", "format=csv", csv).expect("our own CSV");
        assert_eq!(TraceStats::of(&mut again).expect("our own CSV"), stats);
    }
});
