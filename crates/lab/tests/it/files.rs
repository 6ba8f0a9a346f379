//! The files that a run leaves, and those that it must not leave.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor as _;
use ssdlab_base::Nanos;
use ssdlab_flash::DieId;
use ssdlab_lab::output::{self, Staging};
use ssdlab_lab::perfetto::TraceWindow;
use ssdlab_lab::{Breakdown, Control, Experiment, NoProgress, Preconditioning, Recording, RunResult, run_into};

use crate::common::{Random, drive, duts, experiment, run};

fn result() -> RunResult {
    let mut buffered = drive("with, a comma");
    buffered.buffer.policy = "lru".to_string();
    buffered.buffer.bytes = 1 << 20;
    let drives = duts(&[drive("plain"), buffered]);
    let recording = Some(Recording { die: DieId(0) });
    let breakdown = Some(Breakdown { slowest: 3 });
    run(&Experiment { recording, breakdown, ..experiment(&drives, &Random::mixed(60_000), Preconditioning::Fill) })
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_result_read_back_is_the_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = result();
    output::write_results(Staging::new(&folder.path().join("deep/out")).expect("made"), &result).expect("written");
    let out = folder.path().join("deep/out");
    let expected = [
        "drive-plain.toml",
        "drive-with, a comma.toml",
        "latency.csv",
        "report.html",
        "result.json",
        "smart",
        "summary.csv",
        "summary.parquet",
        "timeline.parquet",
    ];
    assert_eq!(names(&out), expected.map(String::from).into());
    let logs = ["after-plain.json", "after-with, a comma.json", "before-plain.json", "before-with, a comma.json"];
    assert_eq!(names(&out.join("smart")), logs.map(String::from).into());
    assert_eq!(output::read_results(&out).expect("read"), result);
    // Version 0.1.0 had the logs beside the results.
    for log in logs {
        fs::rename(out.join("smart").join(log), out.join(format!("smart-{log}"))).expect("renamed");
    }
    assert_eq!(output::read_results(&out).expect("read"), result);
    // Every line of figures is short enough to read, but for lists.
    let text = fs::read_to_string(out.join("result.json")).expect("text");
    assert!(text.lines().filter(|line| !line.contains('[')).all(|line| line.len() < 300));
}

/// A name of 100 characters can be 400 bytes, and a file's can not.
#[test]
fn names_of_any_length_and_letters_give_files_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut result = result();
    let long = "\u{1F4BE}".repeat(99);
    for (device, end) in result.devices.iter_mut().zip(["a", "b"]) {
        device.name = format!("{long}{end}");
    }
    output::write_results(Staging::new(folder.path()).expect("made"), &result).expect("written");
    assert_eq!(names(folder.path()).into_iter().filter(|name| name.ends_with(".toml")).count(), 2);
    assert_eq!(output::read_results(folder.path()).expect("read"), result);
}

/// A run of one drive and then one of its variants into the same folder left the log of the first, and the recipe of
/// docs/lifetime.md told of a drive that the results do not have.
#[test]
fn files_of_drives_that_only_the_earlier_run_had_are_removed_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let (several, mut one) = (result(), result());
    one.devices.truncate(1);
    one.devices[0].name = "alone".to_string();
    let write = |result| output::write_results(Staging::new(folder.path()).expect("made"), result).expect("written");
    let own = ["drive-mine.toml", "smart/before-mine.json"];
    fs::create_dir(folder.path().join("smart")).expect("made");
    own.iter().for_each(|name| fs::write(folder.path().join(name), "mine").expect("written"));
    for result in [&one, &several, &one] {
        write(result);
        let drives: Vec<&str> = result.devices.iter().map(|device| device.name.as_str()).collect();
        let described = names(folder.path()).into_iter().filter(|name| name.starts_with("drive-"));
        let expected = drives.iter().chain(&["mine"]).map(|name| format!("drive-{name}.toml"));
        assert_eq!(described.collect::<BTreeSet<_>>(), expected.collect());
        let logs: BTreeSet<String> = match drives.as_slice() {
            [_] => ["after.json", "before.json"].map(String::from).into(),
            all => all.iter().flat_map(|name| [format!("after-{name}.json"), format!("before-{name}.json")]).collect(),
        };
        let mine = BTreeSet::from(["before-mine.json".to_string()]);
        assert_eq!(names(&folder.path().join("smart")), logs.union(&mine).cloned().collect());
        assert_eq!(&output::read_results(folder.path()).expect("read"), result);
    }
}

#[test]
fn every_key_of_a_result_is_documented() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
    let docs = fs::read_to_string(docs).expect("docs/results.md");
    // These hold names that are given elsewhere: a description's keys, a design's figures, names of memory, the
    // parts of docs/latency.md.
    let foreign = ["configuration", "design", "memory", "parts_ns"];
    let value = serde_json::to_value(result()).expect("JSON");
    let mut missing = BTreeSet::new();
    let mut walk = vec![value];
    while let Some(value) = walk.pop() {
        match value {
            serde_json::Value::Object(map) => {
                for (key, value) in map {
                    if !docs.contains(&format!("`{key}`")) {
                        missing.insert(key.clone());
                    }
                    if !foreign.contains(&key.as_str()) {
                        walk.push(value);
                    }
                }
            }
            serde_json::Value::Array(values) => walk.extend(values.into_iter().take(3)),
            _ => {}
        }
    }
    assert!(missing.is_empty(), "docs/results.md does not say what these keys mean: {missing:?}");
    for check in &result().devices[0].checks {
        println!("check {}: {}", check.name, check.detail);
    }
}

#[test]
fn the_latency_table_ends_at_one_for_every_drive_and_kind() {
    let mut text = Vec::new();
    output::write_latency_csv(&result(), &mut text).expect("written");
    let text = String::from_utf8(text).expect("text");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("device,op,latency_ns,fraction"));
    let mut last: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    for line in lines {
        let mut fields = line.rsplitn(3, ',');
        let fraction: f64 = fields.next().expect("a fraction").parse().expect("a number");
        let latency: u64 = fields.next().expect("a latency").parse().expect("a number");
        let series = fields.next().expect("a device and a kind").to_string();
        let (before, below) = last.insert(series, (latency, fraction)).unwrap_or_default();
        assert!(latency >= before && fraction > below, "{line}");
    }
    assert_eq!(last.len(), 2 * 5, "all, read, write, trim and flush of two drives: {:?}", last.keys());
    assert!(last.values().all(|&(_, fraction)| fraction == 1.0), "{last:?}");
    assert!(last.contains_key("\"with, a comma\",flush"));
}

#[test]
fn the_timeline_as_a_table_is_the_timeline() {
    let result = result();
    let mut file = tempfile::tempfile().expect("a file");
    output::write_timeline(&result, &mut file).expect("written");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    assert_eq!(reader.metadata().num_row_groups(), 2);
    let columns: Vec<String> =
        reader.metadata().file_metadata().schema_descr().columns().iter().map(|column| column.name().into()).collect();
    let at = |name: &str| columns.iter().position(|column| column == name).expect(name);
    let (device, time, requests) = (at("device"), at("time_ns"), at("requests"));
    let (p99, programs) = (at("latency_p99_ns"), at("programs_host"));
    let mut rows = reader.get_row_iter(None).expect("rows");
    for drive in &result.devices {
        for (index, &end) in drive.timeline.time_ns.iter().enumerate() {
            let row = rows.next().expect("a row for each interval").expect("readable");
            assert_eq!(row.get_string(device).expect("text"), &drive.name);
            assert_eq!(row.get_long(time).expect("a count") as u64, end);
            assert_eq!(row.get_long(requests).expect("a count") as u64, drive.timeline.requests[index]);
            assert_eq!(row.get_long(p99).ok().map(|ns| ns as u64), drive.timeline.latency_p99_ns[index]);
            assert_eq!(row.get_long(programs).expect("a count") as u64, drive.timeline.programs["host"][index]);
        }
    }
    assert!(rows.next().is_none());
}

/// What a user reads into a table has the types of what it is, and the numbers of the text beside it.
#[test]
fn the_summary_as_a_table_is_the_summary_with_types() {
    let mut result = result();
    result.seed = u64::MAX;
    for (device, (victim, choices)) in result.devices.iter_mut().zip([("greedy", "3"), ("d-choices, \"x\"", "16")]) {
        device.overrides.insert("gc.victim".to_string(), victim.to_string());
        device.overrides.insert("gc.choices".to_string(), choices.to_string());
    }
    result.devices[1].overrides.insert("buffer.size".to_string(), "1m".to_string());
    let mut csv = Vec::new();
    output::write_summary_csv(&result, &mut csv).expect("written");
    let csv = String::from_utf8(csv).expect("text");
    let heads: Vec<&str> = csv.lines().next().expect("heads").split(',').collect();
    let mut file = tempfile::tempfile().expect("a file");
    output::write_summary_parquet(&result, &mut file).expect("written");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
    assert_eq!(columns, heads);
    let at = |name: &str| columns.iter().position(|column| *column == name).expect(name);
    let rows: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("readable")).collect();
    assert_eq!(rows.len(), 2);
    for (row, device) in rows.iter().zip(&result.devices) {
        assert_eq!(row.get_string(at("device")).expect("text"), &device.name);
        assert_eq!(row.get_string(at("variant")).expect("text"), &device.name);
        assert_eq!(row.get_long(at("repetition")).expect("a count"), 1);
        assert_eq!(row.get_ulong(at("seed")).expect("a seed"), u64::MAX);
        assert_eq!(row.get_string(at("gc.victim")).expect("text"), &device.overrides["gc.victim"]);
        assert_eq!(row.get_long(at("gc.choices")).expect("a count").to_string(), device.overrides["gc.choices"]);
        assert_eq!(row.get_string(at("buffer.size")).ok(), device.overrides.get("buffer.size"));
        assert_eq!(row.get_double(at("iops")).expect("a rate"), device.throughput.iops);
        let amplification = device.write_amplification.as_ref().expect("it wrote");
        assert_eq!(row.get_double(at("write_amplification")).expect("a ratio"), amplification.total);
        assert_eq!(row.get_double(at("write_amplification_gc")).expect("a ratio"), amplification.by_cause["gc"]);
        assert_eq!(row.get_long(at("virtual_time_ns")).expect("a time") as u64, device.virtual_time_ns);
        assert!(row.get_bool(at("invariants_hold")).expect("a truth"));
        assert_eq!(row.get_long(at("warnings")).expect("a count") as usize, device.warnings.len());
    }
}

/// A disk with room for so many bytes.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn every_writer_reports_a_disk_that_fills_up_at_any_point() {
    let result = result();
    let mut sizes = [0; 4];
    let writers: [fn(&RunResult, &mut Disk) -> io::Result<()>; 4] = [
        |run, to| output::write_json(run, to),
        |run, to| output::write_latency_csv(run, to),
        |run, to| output::write_timeline(run, to),
        |run, to| output::write_summary_parquet(run, to),
    ];
    for (writer, size) in writers.iter().zip(&mut sizes) {
        let mut disk = Disk(usize::MAX);
        writer(&result, &mut disk).expect("room enough");
        *size = usize::MAX - disk.0;
        assert!(*size > 1_000);
        for room in [0, 1, 4, *size / 3, *size - 9, *size - 1] {
            assert!(writer(&result, &mut Disk(room)).is_err(), "{room} of {size} bytes were taken for all");
        }
        writer(&result, &mut Disk(*size)).expect("just enough");
    }
    // The system's own full disk.
    if let Ok(full) = File::options().write(true).open("/dev/full") {
        let error = output::write_timeline(&result, full).expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn files_that_could_not_be_written_whole_leave_the_folder_as_it_was() {
    const EARLIER: &str = "{\"format\": 1}";
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("result.json"), EARLIER).expect("written");
    let mut staging = Staging::new(folder.path()).expect("made");
    staging.write("latency.csv", |to| to.write_all(b"whole")).expect("written");
    let error = staging.write("result.json", |to| {
        to.write_all(&[b' '; 1 << 20])?;
        Err(io::ErrorKind::StorageFull.into())
    });
    let error = error.expect_err("full").to_string();
    assert!(error.contains("result.json could not be written"), "{error}");
    drop(staging);
    assert_eq!(names(folder.path()), ["result.json".to_string()].into());
    // A run that is given up leaves no folder of logs either.
    let mut staging = Staging::new(folder.path()).expect("made");
    staging.try_out().expect("it can be written");
    staging.write("smart/before.json", |to| to.write_all(b"{}")).expect("written");
    drop(staging);
    assert_eq!(names(folder.path()), ["result.json".to_string()].into());
    assert_eq!(fs::read_to_string(folder.path().join("result.json")).expect("text"), EARLIER);
}

#[test]
fn a_folder_that_cannot_be_written_costs_no_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "in the way").expect("written");
    let drives = duts(&[drive("one")]);
    let workload = Random::writes(1 << 40);
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &NoProgress);
    for window in [None, Some(TraceWindow { from: Nanos(0), to: Nanos(1) })] {
        let error = run_into(&experiment(&drives, &workload, Preconditioning::None), &file, window, &control);
        assert!(error.expect_err("a file is no folder").to_string().contains("could not be written"));
    }
    // Nor does a file in the place of the folder of logs.
    fs::write(folder.path().join("smart"), "in the way").expect("written");
    let error = run_into(&experiment(&drives, &workload, Preconditioning::None), folder.path(), None, &control);
    assert!(error.expect_err("a file is no folder").to_string().contains("smart/before.json could not be written"));
}

#[test]
fn a_result_of_another_format_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |text: &str| {
        fs::write(folder.path().join("result.json"), text).expect("written");
        output::read_results(folder.path()).expect_err(text).to_string()
    };
    assert!(read(r#"{"format": 99}"#).contains("format is 99"));
    assert!(read("{").contains("result.json could not be read"));
    assert!(read(r#"{"format": 2}"#).contains("missing field"));
    fs::remove_file(folder.path().join("result.json")).expect("removed");
    assert!(output::read_results(folder.path()).expect_err("nothing").to_string().contains("could not be read"));
}

#[test]
fn a_trace_of_channels_and_dies_shows_one_operation_at_a_time_on_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let drives = duts(&[drive("one"), drive("two")]);
    let workload = Random::mixed(40_000);
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &NoProgress);
    let window: TraceWindow = "100ms..200ms".parse().expect("a window");
    let outcome =
        run_into(&experiment(&drives, &workload, Preconditioning::Fill), folder.path(), Some(window), &control);
    outcome.expect("sound").written.expect("written");
    assert_eq!(names(folder.path()).len(), 10);
    let text = fs::read_to_string(folder.path().join("trace.json")).expect("text");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    // Slices by process and track, from and to, in nanoseconds.
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for event in json["traceEvents"].as_array().expect("a list") {
        if event["ph"] != "X" {
            continue;
        }
        let nanos = |key: &str| (event[key].as_f64().expect("a time") * 1_000.0).round() as u64;
        let track = (event["pid"].as_u64().expect("a process"), event["tid"].as_u64().expect("a track"));
        tracks.entry(track).or_default().push((nanos("ts"), nanos("ts") + nanos("dur")));
    }
    assert_eq!(tracks.len(), 2 * (2 + 4), "two channels and four dies of two drives");
    for (track, mut slices) in tracks {
        slices.sort_unstable();
        assert!(slices.len() > 50, "{track:?} has {} slices", slices.len());
        assert!(slices.iter().all(|&(from, to)| from < window.to.0 && to > window.from.0));
        for pair in slices.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{track:?}: {pair:?} overlap");
        }
    }
}
