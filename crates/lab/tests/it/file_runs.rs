//! File runs in virtual time: results that repeat, invariants, verification, depth, host time, and what is refused.

use std::sync::atomic::AtomicBool;

use ssdlab_base::Nanos;
use ssdlab_device::Description;
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::seeded::{FsBug, seed as seed_bug};
use ssdlab_fs::{MakeOptions, Options};
use ssdlab_lab::files::{DeviceFilesResult, FilesError, FilesRun, FilesWork, HostTime, run_files};
use ssdlab_lab::{Control, DeviceUnderTest, NoProgress};
use ssdlab_workload::files::Personality;
use ssdlab_workload::fio::FioJob;

/// A drive of so many segments of 1 MB, on 4 channels and 2 ways.
fn drive(segments: u32, design: &str) -> DeviceUnderTest {
    drive_of(segments, 32, design)
}

/// A drive of so many segments of 8 blocks with so many pages of 4 KB.
fn drive_of(segments: u32, pages: u32, design: &str) -> DeviceUnderTest {
    let text = format!(
        r#"
name = "small"
[flash]
channels = 4
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = {}
pages_per_block = {pages}
page_size = "4k"
timing = {{ read = "75us", program = "478us", erase = "3.8ms", transfer = "33.3us" }}
[capacity]
user = "{}k"
[interface]
kind = "nvme"
queues = 1
queue_depth = 64
[ftl]
design = "{design}"
allocation = "dynamic"
{}
"#,
        segments + 12,
        segments * pages * 32,
        if design == "aftl" { "segment_levels = \"ways\"" } else { "" }
    );
    let config = Description::parse(&text, "small").and_then(|text| text.resolve()).expect("a description");
    DeviceUnderTest { label: config.name.clone(), config }
}

fn personality(name: &str, settings: &[&str]) -> Personality {
    let mut personality = Personality::open(name).expect(name);
    settings.iter().for_each(|setting| personality.set(setting).expect(setting));
    personality.check().expect(name);
    personality
}

fn with<'a>(dut: &'a DeviceUnderTest, work: FilesWork<'a>, operations: u64) -> FilesRun<'a> {
    let host_time = HostTime::read(&[], "--host-time").expect("defaults");
    FilesRun {
        dut,
        host: None,
        kind: FileSystemKind::of_name("alfs").expect("it is one"),
        make: MakeOptions::default(),
        options: Options { cache: 4 << 20, ..Options::default() },
        host_time,
        work,
        until: None,
        operations: (operations > 0).then_some(operations),
        seed: 1,
        is_cold: false,
        verify: false,
        check: true,
        command: Vec::new(),
    }
}

fn tried(run: &FilesRun<'_>) -> Result<DeviceFilesResult, FilesError> {
    run_files(run, &Control::new(&AtomicBool::new(false), &NoProgress))
}

fn ran(run: &FilesRun<'_>) -> DeviceFilesResult {
    let result = tried(run).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result.run.error, None);
    let of_drives = result.drives.iter().flat_map(|drive| &drive.checks);
    let broken: Vec<_> = result.checks.iter().chain(of_drives).filter(|check| !check.passed).collect();
    assert!(broken.is_empty(), "{broken:?}");
    result
}

/// The result as text, without what depends on the clock on the wall.
fn describe(result: &DeviceFilesResult) -> String {
    fn clean(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(map) => {
                map.retain(|key, _| !key.starts_with("wall_"));
                map.values_mut().for_each(clean);
            }
            serde_json::Value::Array(list) => list.iter_mut().for_each(clean),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(result).expect("JSON");
    clean(&mut value);
    value.to_string()
}

fn small(name: &str) -> Personality {
    match name {
        "postmark" => {
            personality(name, &["files=200", "size_low=4k", "size_high=200k", "transactions=600", "subdirectories=3"])
        }
        _ => personality(name, &["files=300", "mean_size=60k", "threads=6"]),
    }
}

#[test]
fn every_personality_repeats_to_the_nanosecond_and_keeps_every_invariant() {
    let dut = drive(128, "aftl");
    for name in ["fileserver", "varmail", "webserver", "webproxy", "postmark"] {
        let personality = small(name);
        let run = with(&dut, FilesWork::Personality(&personality), 2000);
        let (one, again) = (ran(&run), ran(&run));
        assert_eq!(describe(&one), describe(&again), "{name}");
        assert!(one.run.operations > 1000 && one.run.seconds > 0.0, "{name}: {:?}", one.run);
        let other = ran(&FilesRun { seed: 2, ..run });
        assert_ne!(describe(&one), describe(&other), "{name}");
    }
}

/// What the drive keeps of its contents changes no request and no time.
#[test]
fn a_verified_run_sends_the_same_requests_in_the_same_time() {
    let dut = drive(128, "aftl");
    for name in ["fileserver", "varmail"] {
        let personality = small(name);
        let run = with(&dut, FilesWork::Personality(&personality), 1500);
        let plain = ran(&run);
        let verified = ran(&FilesRun { verify: true, ..run });
        let requests = |result: &DeviceFilesResult| {
            (result.run.seconds.to_bits(), result.drives[0].requests_digest.clone(), result.file_system.clone())
        };
        assert_eq!(requests(&plain), requests(&verified), "{name}");
        let check = verified.checks.iter().find(|check| check.name == "files_are_what_calls_made_them");
        assert!(check.is_some_and(|check| check.passed), "{check:?}");
    }
}

/// Seeded bugs that lose what calls wrote are found by the comparison.
#[test]
fn what_a_file_system_loses_is_found() {
    let dut = drive(128, "aftl");
    let personality = small("fileserver");
    let run = FilesRun { verify: true, check: false, ..with(&dut, FilesWork::Personality(&personality), 1500) };
    for bug in [FsBug::OldWriteOverNewer, FsBug::TableBlockLeftOut, FsBug::GenerationKept] {
        seed_bug(Some(bug));
        let result = tried(&run);
        seed_bug(None);
        let is_found = match &result {
            Ok(result) => result.run.error.is_some() || !result.checks_held(),
            Err(_) => true,
        };
        assert!(is_found, "{bug:?} is not found: {:?}", result.map(|result| result.checks));
    }
}

fn jobs(text: &str) -> FioJob {
    FioJob::parse_text(text, "jobs.fio").expect("jobs")
}

/// One call in flight for each job, and as many as the depth says where nothing waits: so rates differ.
#[test]
fn jobs_and_depth_make_a_difference() {
    let dut = drive(128, "aftl");
    let rate = |words: &str| {
        let jobs = jobs(&format!("[a]\nrw=randread\nsize=32m\nio_size=4m\nbs=4k\nfilename=f\n{words}\n"));
        let run = FilesRun { is_cold: true, ..with(&dut, FilesWork::Jobs(&jobs, "jobs.fio"), 0) };
        let result = ran(&run);
        result.run.operations_per_second
    };
    let one = rate("ioengine=libaio");
    let eight = rate("ioengine=libaio\nnumjobs=8\nio_size=512k");
    assert!(eight > 4.0 * one, "{one} with one job, {eight} with eight");
    let deep = rate("ioengine=libaio\ndirect=1\niodepth=32");
    assert!(deep > 4.0 * one, "{one} at depth 1, {deep} at depth 32");
}

#[test]
fn the_hosts_time_bounds_what_is_cached() {
    let dut = drive(128, "aftl");
    let jobs = jobs("[a]\nrw=randread\nsize=1m\nio_size=4m\nbs=4k\nfilename=f\n");
    let run = with(&dut, FilesWork::Jobs(&jobs, "jobs.fio"), 0);
    let slow = HostTime { call: Nanos(2000), copy: Nanos(500) };
    let result = ran(&FilesRun { host_time: slow, ..run });
    // 1,024 cached reads of 4 KB, one after the other.
    assert_eq!(result.run.seconds, 1024.0 * 2500.0 / 1e9, "{:?}", result.file_system.cache);
    assert_eq!(result.file_system.host_time.call_ns, 2000);
}

#[test]
fn what_cannot_be_run_is_refused() {
    let personality = small("varmail");
    let (blocks, tiny, dut) = (drive(128, "page"), drive(24, "aftl"), drive(128, "aftl"));
    let large = self::personality("varmail", &["files=4000", "mean_size=60k"]);
    let endless = HostTime { call: Nanos(0), copy: Nanos(0) };
    for (run, words) in [
        (with(&blocks, FilesWork::Personality(&personality), 10), "expected a drive of the command set segments"),
        (with(&tiny, FilesWork::Personality(&personality), 10), "expected at least"),
        (with(&dut, FilesWork::Personality(&large), 10), "the files need"),
        (
            FilesRun {
                until: Some(Nanos(1_000_000)),
                host_time: endless,
                ..with(&dut, FilesWork::Personality(&personality), 0)
            },
            "expected a time above 0",
        ),
    ] {
        let error = tried(&run).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// A file system that fills up ends the run with a sentence, and stays whole.
#[test]
fn a_full_file_system_ends_the_run_and_stays_whole() {
    let dut = drive(64, "aftl");
    let personality = self::personality("fileserver", &["files=600", "mean_size=40k", "append_size=1m", "threads=2"]);
    let run = FilesRun { verify: true, ..with(&dut, FilesWork::Personality(&personality), 20_000) };
    let result = tried(&run).expect("it begins");
    let error = result.run.error.clone().unwrap_or_default();
    assert!(error.contains("no space is left"), "{error}");
    assert!(!result.run.complete);
    assert!(result.checks_held(), "{:?}", result.checks);
}

/// Tables of keys in the documentation are those that the command reads.
#[test]
fn the_tables_of_keys_in_the_documentation_are_right() {
    use ssdlab_device::description::with_tables;
    let keys_of = |name| FileSystemKind::of_name(name).expect("it is one").keys;
    let pages = [
        ("files.md", vec![ssdlab_lab::files::HOST_TIME_KEYS]),
        ("file-systems.md", vec![keys_of("alfs"), keys_of("lfs"), keys_of("journaling")]),
    ];
    for (page, tables) in pages {
        let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect(page);
        // Each table ends a part of the page; the last part has none.
        let mut parts: Vec<&str> = text.split_inclusive("<!-- end -->\n").collect();
        let rest = parts.split_off(tables.len().min(parts.len())).concat();
        assert_eq!(parts.len(), tables.len(), "tables of keys in docs/{page}");
        let right = |(part, keys): (&str, &'static [ssdlab_device::description::Key])| {
            with_tables(part, keys).unwrap_or_else(|error| panic!("docs/{page}: {error}"))
        };
        let right = parts.into_iter().zip(tables).map(right).collect::<String>() + &rest;
        if std::env::var_os("SSDLAB_WRITE_DOCS").is_some() {
            std::fs::write(&path, right).expect(page);
            continue;
        }
        assert!(
            text == right,
            "docs/{page} does not show the keys as they are; write its table with: SSDLAB_WRITE_DOCS=1 cargo test -p ssdlab-lab \
             --test it file_runs::the_tables"
        );
    }
}

/// Every key of `file_system` stands in docs/results.md.
#[test]
fn every_key_of_a_file_run_is_documented() {
    let dut = drive(128, "aftl");
    let personality = small("varmail");
    let result = ran(&FilesRun { verify: true, ..with(&dut, FilesWork::Personality(&personality), 200) });
    let value = serde_json::to_value(&result).expect("JSON");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md")).expect("a page");
    let begin = page.find("## files.json").expect("the section");
    let section = &page[begin..page[begin..].find("\n## s").map_or(page.len(), |end| begin + end)];
    let mut missing = Vec::new();
    let mut look = |value: &serde_json::Value, at: &str| {
        for (key, _) in value.as_object().into_iter().flatten() {
            let is_named = [format!("`{key}`"), format!("`{at}.{key}`"), format!(".{key}`"), format!("`{key}.")];
            if at != "file_system.keys" && !is_named.iter().any(|name| section.contains(name.as_str())) {
                missing.push(format!("{at}.{key}"));
            }
        }
    };
    let fs = &value["file_system"];
    look(fs, "file_system");
    for (key, inner) in fs.as_object().expect("a table").iter().filter(|(key, _)| *key != "keys") {
        look(inner, key);
    }
    for check in value["checks"].as_array().expect("a list") {
        let name = check["name"].as_str().expect("a name");
        if !section.contains(&format!("`{name}`")) {
            missing.push(name.to_string());
        }
    }
    assert!(missing.is_empty(), "docs/results.md does not say what these are: {missing:?}");
}

/// A segment whose summary has several blocks may empty while it is being cleaned: it was trimmed, its cleaning went on, and the
/// file system became read-only. What was kept of the summary of a segment that is written again was taken for the new one.
#[test]
fn segments_that_empty_while_they_are_cleaned_are_left() {
    let dut = drive_of(96, 256, "aftl");
    let postmark = ["files=1500", "size_low=5k", "size_high=512k", "transactions=3000"];
    let personality = personality("postmark", &postmark);
    let run = FilesRun {
        options: Options { cache: 8 << 20, ..Options::default() },
        ..with(&dut, FilesWork::Personality(&personality), 0)
    };
    let result = ran(&run);
    let cleaning = &result.file_system.cleaning;
    assert!(cleaning.segments > 20, "{cleaning:?}");
    // Check-points are made where they free segments.
    assert!(result.file_system.checkpoints.count < 3 * cleaning.segments, "{:?}", result.file_system.checkpoints);
}

/// What was kept of the summary of a segment that is written again was taken for the new one: its valid blocks were not found, and it
/// was chosen and cleaned in vain. A segment that is cleaned leaves; a few are chosen again while what they had is being written.
#[test]
fn a_segment_that_is_cleaned_leaves() {
    let dut = drive(80, "aftl");
    let jobs = jobs("[a]\nrw=randwrite\noverwrite=1\nbs=4k\nsize=40m\nio_size=100m\nfilename=f\n");
    let options = Options { cache: 32 << 20, ..Options::default() };
    let cleaning = ran(&FilesRun { options, ..with(&dut, FilesWork::Jobs(&jobs, "jobs.fio"), 0) }).file_system.cleaning;
    assert!(cleaning.segments > 50, "{cleaning:?}");
    assert!(cleaning.segments * 4 < cleaning.trimmed_segments * 5, "{cleaning:?}");
}
