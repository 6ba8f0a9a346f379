//! One text, three kinds of workload.

use ssdlab_base::{Nanos, Op};
use ssdlab_workload::replay::{Discipline, Fit};
use ssdlab_workload::{Next, OpenOptions, WorkloadKind, open};

const OPTIONS: OpenOptions = OpenOptions { capacity_bytes: 1 << 20, seed: 1, replay: None, fit: Fit::Exact };

/// A file with this name ending and text, removed when dropped.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("ssdlab-open-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("the temporary folder is writable");
        File(path)
    }

    fn name(&self) -> &str {
        self.0.to_str().expect("the temporary folder's name is text")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn first(text: &str) -> (Op, u64) {
    let mut workload = open(text, &OPTIONS).unwrap_or_else(|error| panic!("{error}"));
    match workload.next(Nanos::ZERO) {
        Ok(Next::Request(request)) => (request.op, request.sectors),
        other => panic!("{text}: found {other:?}, expected a request"),
    }
}

#[test]
fn a_line_a_job_file_and_a_trace_are_told_apart() {
    assert_eq!(first("rw=trim,bs=8k"), (Op::Trim, 16));
    let job = File::new("job.fio", "[a]\nrw=write\nbs=16k\n");
    assert_eq!(WorkloadKind::of(job.name()), WorkloadKind::JobFile);
    assert_eq!(first(job.name()), (Op::Write, 32));
    let trace = File::new("trace.csv", "time_us,op,offset_bytes,length_bytes\n0,R,0,4096\n5,W,4096,512\n");
    assert_eq!(WorkloadKind::of(trace.name()), WorkloadKind::Trace);
    assert_eq!(first(trace.name()), (Op::Read, 8));
}

#[test]
fn what_is_for_traces_is_refused_for_jobs() {
    let replayed = OpenOptions { replay: Some(Discipline::default()), ..OPTIONS };
    let error = open("rw=write", &replayed).err().expect("jobs are not replayed").to_string();
    assert!(error.contains("is for traces"), "{error}");
    let wrapped = OpenOptions { fit: Fit::Wrap, ..OPTIONS };
    let error = open("rw=write", &wrapped).err().expect("jobs are not wrapped").to_string();
    assert!(error.contains("sized by the drive"), "{error}");
}

#[test]
fn what_cannot_be_opened_is_an_error() {
    assert!(open("no/such/file.fio", &OPTIONS).is_err());
    assert!(open("no/such/trace.csv", &OPTIONS).is_err());
    assert!(open("rw=write,size=2m", &OPTIONS).is_err());
}

#[test]
fn what_was_meant_for_fio_is_told_how_to_write_it() {
    let message = |text: &str| open(text, &OPTIONS).err().expect("it is no trace").to_string();
    let options = message("bs=4k,iodepth=32");
    assert!(options.contains("rw=randwrite,bs=4k,iodepth=32"), "{options}");
    let direction = message("randread");
    assert!(direction.contains("write rw=randread"), "{direction}");
    let job = File::new("job.txt", "; a job\n\n[global]\nbs=4k\n[a]\nrw=randwrite\n");
    let named = message(job.name());
    assert!(named.contains("fio job file") && named.contains("job.fio"), "{named}");
    // What is neither is told as before.
    let neither = message("no/such/trace.csv");
    assert!(neither.contains("cannot be opened"), "{neither}");
}
