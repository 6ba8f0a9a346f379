//! What is written can be read again, by us and by fio.

use std::process::Command;

use proptest::prelude::*;
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_workload::trace::{Target, Trace, TraceWriter, convert};

use crate::shared::shared;

fn fio(file: &str) -> Target {
    Target::FioV3 { file: file.to_string() }
}

fn read_all(trace: &mut Trace) -> Vec<Request> {
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while trace.read(&mut batch).expect("sound") > 0 {
        all.extend_from_slice(&batch);
    }
    all
}

fn from_bytes(bytes: Vec<u8>) -> Trace {
    Trace::from_bytes("t", "", bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn any_request() -> impl Strategy<Value = Request> {
    let op = prop_oneof![
        Just((Op::Read, false)),
        Just((Op::Write, false)),
        Just((Op::Write, true)),
        Just((Op::Trim, false)),
        Just((Op::Flush, false)),
        Just((Op::WriteZeroes, false)),
    ];
    (op, 0..1_u64 << 40, 1..1_u64 << 20, 0..5_000_u64).prop_map(|((op, fua), sector, sectors, gap)| {
        let (sector, sectors) = if op == Op::Flush { (0, 0) } else { (sector, sectors) };
        Request { at: Nanos(gap), fua, ..Request::new(op, sector, sectors) }
    })
}

proptest! {
    #[test]
    fn our_csv_holds_every_request_and_its_bytes_are_stable(gaps in prop::collection::vec(any_request(), 1..50)) {
        let mut at = 0;
        let mut requests = gaps;
        for (index, request) in requests.iter_mut().enumerate() {
            at += if index == 0 { 0 } else { request.at.0 };
            request.at = Nanos(at);
        }
        let mut writer = TraceWriter::new(Target::Csv, Vec::new()).expect("a header");
        for request in &requests {
            writer.write(request).expect("memory");
        }
        let (converted, first) = writer.finish().expect("memory");
        prop_assert_eq!(converted.requests, requests.len() as u64);
        let mut trace = from_bytes(first.clone());
        prop_assert_eq!(&read_all(&mut trace), &requests);
        let mut second = Vec::new();
        convert(&mut trace, &Target::Csv, &mut second).expect("memory");
        prop_assert_eq!(String::from_utf8(first), String::from_utf8(second));

        // An iolog holds the order, the addresses and whole microseconds.
        let mut iolog = Vec::new();
        let converted = convert(&mut trace, &fio("/dev/x"), &mut iolog).expect("memory");
        let lost = |op: fn(&Request) -> bool| requests.iter().filter(|request| op(request)).count();
        let fua = lost(|request| request.fua);
        prop_assert_eq!(fua > 0, converted.notes.iter().any(|note| note.starts_with(&format!("{fua} FUA request"))));
        let mut trace = from_bytes(iolog);
        prop_assert_eq!(trace.format().name(), "fio-v3");
        let back = read_all(&mut trace);
        prop_assert_eq!(back.len(), requests.len());
        for (ours, theirs) in requests.iter().zip(&back) {
            let op = if ours.op == Op::WriteZeroes { Op::Trim } else { ours.op };
            prop_assert_eq!((op, ours.sector, ours.sectors), (theirs.op, theirs.sector, theirs.sectors));
            prop_assert_eq!(ours.at.0 / 1_000 * 1_000, theirs.at.0);
        }
    }
}

#[test]
fn a_recording_converted_to_csv_is_the_recording_byte_for_byte() {
    let Some(path) = shared("recordings/rocksdb_fillrandom_overwrite_ext4.csv.zst") else { return };
    let original = zstd::decode_all(std::fs::File::open(&path).expect("opens")).expect("unpacks");
    let mut trace = Trace::open(path.to_str().expect("a plain path")).expect("opens");
    let mut written = Vec::new();
    let converted = convert(&mut trace, &Target::Csv, &mut written).expect("memory");
    assert_eq!(converted.requests, 216_703);
    assert!(converted.notes.is_empty(), "{:?}", converted.notes);
    assert!(written == original, "the bytes differ");
}

#[test]
fn a_name_that_an_iolog_cannot_hold_is_refused() {
    for bad in ["", "a b", "a\nb", &"x".repeat(256)] {
        let error = TraceWriter::new(fio(bad), Vec::new()).map(|_| ()).expect_err(bad).to_string();
        assert!(error.contains("file name"), "{error}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut trace = from_bytes(b"0,W,0,512\n".to_vec());
    let error = convert(&mut trace, &Target::Csv, Full).expect_err("full").to_string();
    assert!(error.contains("writing the converted trace failed"), "{error}");
}

#[test]
fn fio_replays_our_iolog() {
    let there = Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("skipped: fio is not installed");
        return;
    }
    let folder = std::env::temp_dir().join(format!("ssdlab-iolog-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let log = folder.join("ours.log");
    // 60 writes and 40 reads over 0.2 s, a flush after every tenth.
    let mut text = String::new();
    for n in 0..100 {
        let op = if n % 5 < 3 { "W" } else { "R" };
        text += &format!("{},{op},{},4096\n", n * 2_000, n * 8_192);
        if n % 10 == 9 {
            text += &format!("{},F,0,0\n", n * 2_000 + 5);
        }
    }
    let mut trace = from_bytes(text.into_bytes());
    let file = std::fs::File::create(&log).expect("a file");
    convert(&mut trace, &fio("/dev/null"), file).expect("written");
    let output = Command::new("fio")
        .args(["--name=replay", "--ioengine=null", "--size=1g", "--output-format=json"])
        .arg(format!("--read_iolog={}", log.display()))
        .current_dir(&folder)
        .output()
        .expect("fio runs");
    std::fs::remove_dir_all(&folder).expect("removed");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_str(&stdout[stdout.find('{').expect("JSON")..]).expect("JSON");
    let job = &json["jobs"][0];
    assert_eq!(job["error"], 0);
    assert_eq!(job["write"]["total_ios"], 60, "{job}");
    assert_eq!(job["read"]["total_ios"], 40, "{job}");
    assert_eq!(job["sync"]["total_ios"], 10, "{job}");
    // Were the stamps milliseconds, it would take three minutes; were they ignored, no time at all.
    let runtime = job["job_runtime"].as_u64().expect("a number");
    assert!((100..10_000).contains(&runtime), "{runtime} ms");
}
