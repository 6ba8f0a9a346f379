//! The job-file parser and the generator behind it: any text either is refused or gives requests inside the drive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdlab_base::Nanos;
use ssdlab_workload::fio::FioJob;
use ssdlab_workload::{Next, Workload};

const CAPACITY: u64 = 64 << 20;

fn drive(job: &FioJob) {
    let Ok(mut workload) = job.generator(CAPACITY, 1) else { return };
    let mut now = Nanos::ZERO;
    let mut in_flight = Vec::new();
    for _ in 0..500 {
        match workload.next(now) {
            Ok(Next::Request(request)) => {
                assert!(request.end() * 512 <= CAPACITY);
                in_flight.push(request.tag);
            }
            Ok(Next::WaitUntil(time)) => {
                assert!(time > now);
                if time >= Nanos::HORIZON {
                    // A run refuses it.
                    return;
                }
                now = time;
            }
            Ok(Next::WaitForCompletion) => {
                let tag = in_flight.pop().expect("waits for a completion with nothing in flight");
                workload.completed(now, tag);
            }
            Ok(Next::Done) => {
                assert!(in_flight.is_empty());
                return;
            }
            Err(_) => return,
        }
    }
}

fuzz_target!(|text: &str| {
    // A large depth is legal and only slow to set up.
    if text.contains("numjobs") && text.len() > 200 {
        return;
    }
    for job in [FioJob::parse_text(text, "fuzz.fio"), FioJob::parse_line(text)].into_iter().flatten() {
        drive(&job);
    }
});
