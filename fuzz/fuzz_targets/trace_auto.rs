#![no_main]
//! A trace of any bytes, recognised by its content, with and without options.

use libfuzzer_sys::fuzz_target;
use ssdlab_workload::trace::Trace;

fuzz_target!(|data: &[u8]| {
    for options in ["", "skip_bad=yes", "device=#1,skip_bad=yes"] {
        let Ok(mut trace) = Trace::from_bytes("fuzz", options, data) else { continue };
        let mut batch = Vec::new();
        let mut last = ssdlab_base::Nanos::ZERO;
        while let Ok(1..) = trace.read(&mut batch) {
            for request in &batch {
                assert!(request.at >= last);
                assert!(request.at < ssdlab_base::Nanos::HORIZON);
                assert!((request.sectors > 0) == (request.op != ssdlab_base::Op::Flush));
                last = request.at;
            }
        }
        let _ = trace.notes();
    }
});
