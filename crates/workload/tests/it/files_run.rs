//! Personalities on file systems: a real directory and the one in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ssdlab_workload::files::{
    Directory, Engine, FileSets, FileSystem, FsErrorKind, Limits, MemoryFileSystem, Outcome, Personality, PrepareError,
    prepare, remove, run,
};

use crate::files_support::{self, NAMES, engine, personality, published, small};

static NEVER: AtomicBool = AtomicBool::new(false);

/// Prepares and runs; the engine knows the files afterwards.
fn prepare_and_run<F: FileSystem>(fs: &F, personality: &Personality, operations: u64) -> (Engine, Outcome) {
    let (mut engine, limits) = engine(personality, 1, operations);
    prepare(fs, &engine.files(), &personality.parameters, 3, &NEVER, &()).expect("room and rights");
    let outcome = run(fs, &mut engine, &personality.parameters, &limits, &NEVER, &());
    (engine, outcome)
}

/// All files below a path with their lengths.
fn tree<F: FileSystem>(fs: &F, path: &str, into: &mut BTreeMap<String, u64>) {
    for name in fs.list(path).expect("a directory") {
        let name = if path.is_empty() { name } else { format!("{path}/{name}") };
        let status = fs.stat(&name).expect("it was listed");
        if status.directory {
            tree(fs, &name, into);
        } else {
            into.insert(name, status.bytes);
        }
    }
}

fn whole_tree<F: FileSystem>(fs: &F) -> BTreeMap<String, u64> {
    let mut files = BTreeMap::new();
    tree(fs, "", &mut files);
    files
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).expect("a directory").next().is_none()
}

#[test]
fn every_personality_runs_on_a_directory_and_leaves_nothing_behind() {
    for name in NAMES {
        let folder = tempfile::tempdir().expect("room");
        let fs = Directory::new(folder.path());
        let personality = small(name);
        let (engine, outcome) = prepare_and_run(&fs, &personality, 800);
        assert!(outcome.error.is_none(), "{name}: {:?}", outcome.error);
        let operations = outcome.measures.operations();
        if name == "postmark" {
            assert_eq!(engine.turns(), 200, "all transactions were done");
        } else {
            assert_eq!(operations, 800, "{name}");
        }
        let known: BTreeMap<String, u64> = engine.files().existing().collect();
        // Threads append to the log side by side, and every byte is there.
        assert_eq!(known, whole_tree(&fs), "{name}: the table is what the directory holds");
        remove(&fs, &engine.files(), &()).expect("ours");
        assert!(is_empty(folder.path()), "{name}");
    }
}

#[test]
fn a_directory_and_the_model_come_to_the_same_tree() {
    for name in NAMES {
        let mut personality = small(name);
        personality.set("threads=1").expect("a key");
        let folder = tempfile::tempdir().expect("room");
        let (real, model) = (Directory::new(folder.path()), MemoryFileSystem::new(1 << 30));
        prepare_and_run(&real, &personality, 500);
        let (_, outcome) = prepare_and_run(&model, &personality, 500);
        assert!(outcome.error.is_none(), "{name}: {:?}", outcome.error);
        assert_eq!(whole_tree(&real), whole_tree(&model), "{name}");
    }
}

#[test]
fn the_mix_on_many_threads_is_the_published_one_but_for_turns_that_were_cut_short() {
    for name in ["fileserver", "webserver", "webproxy", "varmail"] {
        let personality = small(name);
        let mix = published(name);
        let turn: u64 = mix.iter().map(|(_, count)| count).sum();
        let turns = 200;
        let (engine, outcome) = prepare_and_run(&MemoryFileSystem::new(1 << 30), &personality, turns * turn);
        assert_eq!(engine.skipped(), 0, "{name}");
        for (kind, count) in mix {
            let found = outcome.measures.of(kind).count();
            let cut = u64::from(personality.parameters.threads) * count;
            assert!(found.abs_diff(turns * count) <= cut, "{name}: {} {found}, {}", kind.name(), turns * count);
        }
    }
}

#[test]
fn latencies_and_bytes_are_counted_by_kind() {
    let personality = small("varmail");
    let (_, outcome) = prepare_and_run(&MemoryFileSystem::new(1 << 30), &personality, 13 * 40);
    let mut operations = 0;
    for (kind, measure) in outcome.measures.kinds() {
        let latency = measure.latency().expect("it happened");
        assert!(latency.min <= latency.p50 && latency.p50 <= latency.p99 && latency.p99 <= latency.max);
        let moves = measure.bytes_read + measure.bytes_written > 0;
        assert_eq!(moves, ["read-whole", "append-random"].contains(&kind.name()), "{}", kind.name());
        operations += measure.count();
    }
    assert_eq!(operations, outcome.measures.operations());
}

#[test]
fn a_full_file_system_ends_the_run_with_what_was_measured() {
    let personality = small("fileserver");
    let planned = FileSets::new(&personality, 1).planned();
    let fs = MemoryFileSystem::new(planned.bytes + planned.files * 4096 + (64 << 10));
    let mut growing = personality.clone();
    growing.set("append_size=64k").expect("a key");
    let (engine, outcome) = prepare_and_run(&fs, &growing, 100_000);
    let error = outcome.error.expect("there is no room for all of this");
    assert_eq!(error.kind, FsErrorKind::Full);
    assert!(error.to_string().contains("the file system is full"), "{error}");
    assert!(outcome.measures.operations() > 0);
    remove(&fs, &engine.files(), &()).expect("what broke off is removed, too");
    assert!(whole_tree(&fs).is_empty());
}

#[test]
fn files_that_cannot_fit_are_refused_before_anything_is_made() {
    let personality = small("fileserver");
    let files = FileSets::new(&personality, 1);
    let fs = MemoryFileSystem::new(files.planned().bytes);
    let error = prepare(&fs, &files, &personality.parameters, 1, &NEVER, &()).expect_err("too small");
    assert!(matches!(error, PrepareError::TooSmall { .. }), "{error}");
    assert!(fs.list("").expect("the root").is_empty());
}

#[test]
fn an_interrupted_preparation_is_taken_back() {
    let personality = small("fileserver");
    let files = FileSets::new(&personality, 1);
    let fs = MemoryFileSystem::new(1 << 30);
    let stop = AtomicBool::new(true);
    let error = prepare(&fs, &files, &personality.parameters, 2, &stop, &()).expect_err("interrupted");
    assert!(matches!(error, PrepareError::Interrupted));
    stop.store(false, Ordering::Relaxed);
    remove(&fs, &files, &()).expect("what there is");
    assert!(fs.list("").expect("the root").is_empty());
}

#[test]
fn what_is_not_ours_stays_and_the_directories_around_it() {
    let folder = tempfile::tempdir().expect("room");
    let fs = Directory::new(folder.path());
    let (engine, _) = prepare_and_run(&fs, &small("varmail"), 50);
    std::fs::write(folder.path().join("files/mine"), "mine").expect("room");
    let removed = remove(&fs, &engine.files(), &()).expect("ours goes");
    assert_eq!(removed.left, 1);
    assert_eq!(whole_tree(&fs), BTreeMap::from([("files/mine".to_string(), 4)]));
}

#[test]
fn a_stop_ends_the_run_and_closes_what_is_open() {
    let personality = small("webserver");
    let limits = Limits::default();
    let mut engine = Engine::new(&personality, FileSets::new(&personality, 1), 1, &limits);
    let fs = MemoryFileSystem::new(1 << 30);
    prepare(&fs, &engine.files(), &personality.parameters, 1, &NEVER, &()).expect("room");
    limits.stop.store(true, Ordering::Relaxed);
    let outcome = run(&fs, &mut engine, &personality.parameters, &limits, &NEVER, &());
    assert_eq!(outcome.measures.operations(), 0);
    assert!(outcome.error.is_none());
}

#[test]
fn what_is_wrong_is_said_with_what_was_probably_meant() {
    let said = |text: &str| Personality::open(text).expect_err(text).to_string();
    assert!(said("filserver").contains("did you mean 'fileserver'?"), "{}", said("filserver"));
    assert!(said("nonsense").contains("These ship: dfsio, fileserver, postmark"));
    assert!(said("./none.toml").contains("./none.toml: cannot be read"));
    let wrong = |setting: &str| {
        let mut personality = Personality::open("fileserver").expect("it ships");
        personality.set(setting).and_then(|()| personality.check()).expect_err(setting).to_string()
    };
    for (setting, word) in [
        ("fils=3", "did you mean 'files'?"),
        ("transactions=3", "found the parameter 'transactions', expected one of"),
        ("files=0", "expected a whole number from 1"),
        ("mean_size=big", "mean_size: 'big' is not a size"),
        ("prealloc=120%", "expected a share"),
        ("threads=5000", "from 1 to 4096"),
        ("runtime=60", "is not a time with its unit"),
        ("paper=waflsh", "did you mean 'waflash'?"),
        ("files", "expected key=value"),
        ("append_size=0", "append_size is 0 or missing"),
    ] {
        assert!(wrong(setting).contains(word), "{setting}: {}", wrong(setting));
    }
    let parsed = |text: &str| Personality::parse(text, "x.toml").expect_err(text).to_string();
    let head = "name='x'\nsummary='x'\nsource='x'\nkind='loop'\n";
    for (text, word) in [
        ("name=".to_string(), "x.toml: TOML parse error at line 1"),
        (format!("{head}[parameters]\nfils=1\n[[loop]]\nop='stat'\n"), "did you mean 'files'?"),
        (format!("{head}[parameters]\n"), "[[loop]] is missing"),
        (format!("{head}[parameters]\n[[loop]]\nop='stta'\n"), "unknown variant `stta`"),
        (format!("{head}[parameters]\n[[loop]]\nop='open'\n"), "operation 1, open: file is missing"),
        (format!("{head}[parameters]\n[[loop]]\nop='open'\nfile=1\n"), "ends with file 1 open"),
        (format!("{head}[parameters]\n[[loop]]\nop='close'\nfile=1\n"), "file 1 is never opened"),
        (format!("{head}[parameters]\n[[loop]]\nop='fsync'\nfile=99\n"), "expected less than 16"),
        (format!("{head}[parameters]\n[variants.x]\nfiles=2\n[[loop]]\nop='stat'\n"), "source is missing"),
        (format!("{head}[parameters]\n[[loop]]\nop='stat'\nset='log'\n"), "log_files is 0"),
    ] {
        assert!(parsed(&text).contains(word), "{text}: {}", parsed(&text));
    }
}

#[test]
fn direct_runs_ask_for_whole_blocks_only() {
    for name in NAMES {
        let mut personality = small(name);
        personality.set("direct=true").expect("a key");
        personality.check().expect(name);
        let (mut engine, _) = engine(&personality, 5, 300);
        assert!(engine.files().existing().all(|(_, bytes)| bytes % 4096 == 0), "{name}");
        files_support::simulate(
            &mut engine,
            |_, _| 1,
            |_, call, _| {
                use ssdlab_workload::files::Call;
                let whole = match call {
                    Call::Read { offset, bytes, .. } | Call::Write { offset, bytes, .. } => {
                        offset % 4096 == 0 && bytes % 4096 == 0
                    }
                    Call::Append { bytes, .. } => bytes % 4096 == 0,
                    _ => true,
                };
                assert!(whole, "{name}: {call:?}");
            },
        );
    }
    let error = personality("fileserver", &["direct=true"]);
    let mut odd = error.clone();
    odd.set("iosize=1000").expect("a key");
    assert!(odd.check().expect_err("no whole block").to_string().contains("a multiple of 4096"));
}
