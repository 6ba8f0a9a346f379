//! Crashes of the host and power cuts at any moment: what survives is what a file system promises.
//!
//! Names and kinds are as after some call, not before the last that a completed fsync or sync covered. The size of a file is as after
//! some call since its last fsync; each of its blocks holds what that fsync left, or what a later call brought.

use std::collections::BTreeMap;

use rand::RngExt;
use ssdlab_base::{Nanos, rng};
use ssdlab_flash::Contents;
use ssdlab_fs::check::check;
use ssdlab_fs::{Answer, Call, FileId, FileKind, FileSystem, MakeOptions, Options, ROOT, Reply};

use crate::drive::{cache, call, drive, read};
use crate::model::Model;
use crate::random::Draw;

type Names = BTreeMap<FileId, BTreeMap<Vec<u8>, FileId>>;

/// What was true of a file since a call.
#[derive(Default)]
struct History {
    sizes: Vec<(u64, u64)>,
    blocks: BTreeMap<u64, Vec<(u64, Vec<u8>)>>,
    /// The last fsync that covers it.
    floor: u64,
}

fn shown(names: Option<&BTreeMap<Vec<u8>, FileId>>) -> BTreeMap<String, FileId> {
    let short = |name: &Vec<u8>| format!("{}.{}", String::from_utf8_lossy(&name[..name.len().min(12)]), name.len());
    names.into_iter().flatten().map(|(name, file)| (short(name), *file)).collect()
}

fn since<T>(list: &[(u64, T)], floor: u64) -> impl Iterator<Item = &T> {
    let first = list.iter().rposition(|(order, _)| *order <= floor).unwrap_or(0);
    list[first..].iter().map(|(_, value)| value)
}

struct Oracle {
    model: Model,
    /// Names after calls that changed them.
    names: Vec<(u64, Names)>,
    floor: u64,
    files: BTreeMap<FileId, History>,
    /// The last call that changed a file or directory, or its name.
    changes: BTreeMap<FileId, u64>,
}

impl Oracle {
    fn new(model: Model) -> Oracle {
        let mut oracle =
            Oracle { model, names: Vec::new(), floor: 0, files: BTreeMap::new(), changes: BTreeMap::new() };
        oracle.note_names(0);
        let files: Vec<FileId> = oracle.model.files().iter().map(|(file, _)| *file).collect();
        files.into_iter().for_each(|file| oracle.note_file(0, file));
        oracle
    }

    fn note_names(&mut self, order: u64) {
        let names: Names = self.model.directories().into_iter().collect();
        if self.names.last().is_none_or(|(_, last)| *last != names) {
            self.names.push((order, names));
        }
    }

    fn note_file(&mut self, order: u64, file: FileId) {
        let Some(bytes) = self.model.look(file) else { return };
        let history = self.files.entry(file).or_default();
        history.sizes.push((order, bytes.size));
        let known: Vec<u64> = history.blocks.keys().copied().chain(bytes.blocks()).collect();
        for block in known {
            let mut now = bytes.read(block * 4096, 4096);
            now.resize(4096, 0);
            let versions = history.blocks.entry(block).or_insert_with(|| vec![(0, vec![0; 4096])]);
            if versions.last().is_none_or(|(_, last)| *last != now) {
                versions.push((order, now));
            }
        }
    }

    /// Orders count from 1: 0 is what was there before.
    fn repeat(&mut self, call: &Call, answer: &Answer) {
        let order = answer.order + 1;
        let mut changed: Vec<FileId> = Model::changed(call).into_iter().collect();
        match call {
            Call::Create { directory, .. }
            | Call::Mkdir { directory, .. }
            | Call::Unlink { directory, .. }
            | Call::Rmdir { directory, .. } => changed.push(*directory),
            Call::Rename { from_directory, from, to_directory, to, .. } => {
                let names: Names = self.model.directories().into_iter().collect();
                let moved = names.get(from_directory).and_then(|names| names.get(from)).copied();
                // To its own name it changes nothing.
                if (from_directory, from) != (to_directory, to) {
                    changed.extend([*from_directory, *to_directory].into_iter().chain(moved));
                }
            }
            _ => {}
        }
        if let Ok(Reply::Found(found)) = &answer.result
            && matches!(call, Call::Create { .. } | Call::Mkdir { .. })
        {
            changed.push(found.file);
        }
        self.model.repeat(call, answer);
        if answer.result.is_err() {
            return;
        }
        self.changes.extend(changed.into_iter().map(|file| (file, order)));
        match call {
            Call::Fsync { file } | Call::Fdatasync { file } => {
                // Of one that has not changed, nothing is to be written.
                self.floor = self.floor.max(self.changes.get(file).copied().unwrap_or(0));
                let history = self.files.entry(*file).or_default();
                history.floor = history.floor.max(order);
            }
            Call::Sync => {
                self.floor = self.floor.max(order);
                self.files.values_mut().for_each(|history| history.floor = history.floor.max(order));
            }
            Call::Create { .. }
            | Call::Mkdir { .. }
            | Call::Unlink { .. }
            | Call::Rmdir { .. }
            | Call::Rename { .. } => {
                if let (Call::Create { .. }, Ok(Reply::Found(found))) = (call, &answer.result) {
                    self.note_file(order, found.file);
                }
                self.note_names(order);
            }
            call => {
                if let Some(file) = Model::changed(call) {
                    self.note_file(order, file);
                }
            }
        }
    }

    /// Compares with what is there, which is the model from now on.
    fn compare(&self, fs: &mut FileSystem) -> Model {
        let (mut names, mut parents) = (Names::new(), vec![(ROOT, None)]);
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        while let Some((directory, parent)) = parents.pop() {
            let Ok(Reply::Listed { entries, is_end: true }) =
                call(fs, Call::List { directory, position: 0, most: 10_000 })
            else {
                panic!("{directory} cannot be listed");
            };
            let mut inside = BTreeMap::new();
            for entry in entries {
                let Ok(Reply::Found(found)) = call(fs, Call::Lookup { directory, name: entry.name.clone() }) else {
                    panic!("a listed name is not found");
                };
                match found.kind {
                    FileKind::Directory => parents.push((found.file, Some(directory))),
                    FileKind::File => files.push((found.file, found.size)),
                }
                inside.insert(entry.name, found.file);
            }
            directories.push((directory, parent, inside.clone()));
            names.insert(directory, inside);
        }
        let first = self.names.iter().rposition(|(order, _)| *order <= self.floor).unwrap_or(0);
        // Directories without a name, that were open, are gone.
        let differing = |after: &Names| -> Vec<FileId> {
            names
                .iter()
                .filter(|(directory, inside)| after.get(directory) != Some(inside))
                .map(|(one, _)| *one)
                .collect()
        };
        let nearest = self.names[first..].iter().min_by_key(|(_, after)| differing(after).len()).expect("one");
        if let Some(directory) = differing(&nearest.1).first().copied() {
            let found: BTreeMap<String, FileId> = shown(names.get(&directory));
            let expected = shown(nearest.1.get(&directory));
            panic!("{directory} is as after no call since {}: {found:?}, after {} {expected:?}", self.floor, nearest.0);
        }
        let mut contents = Vec::new();
        let none = History::default();
        for (file, size) in files {
            let history = self.files.get(&file).unwrap_or(&none);
            let sizes: Vec<u64> = since(&history.sizes, history.floor).copied().collect();
            assert!(sizes.contains(&size), "{file} has {size} bytes, expected one of {sizes:?}");
            let mut parts = Vec::new();
            for (block, versions) in &history.blocks {
                if block * 4096 >= size {
                    continue;
                }
                let found = read(fs, file, block * 4096, 4096).expect("it is read");
                assert!(
                    since(versions, history.floor).any(|version| version[..found.len()] == found[..]),
                    "block {block} of {file}, {size} bytes: what is there was not written since its fsync {}",
                    history.floor
                );
                parts.push((block * 4096, found));
            }
            // What was never written shows nothing.
            let mut at = 0;
            while at < size.min(3_000_000) {
                let found = read(fs, file, at, 1 << 20).expect("it is read");
                for (index, block) in (at / 4096..).zip(found.chunks(4096)) {
                    let is_known = history.blocks.contains_key(&index);
                    assert!(
                        is_known || block.iter().all(|byte| *byte == 0),
                        "block {index} of {file} was never written"
                    );
                }
                at += 1 << 20;
            }
            contents.push((file, size, parts));
        }
        Model::of(&directories, contents)
    }
}

pub(crate) fn play(seed: u64, calls: u32) {
    let mut rng = rng(seed, "crash");
    let blocks = [40, 200, 4000][rng.random_range(0..3)];
    let periods = Nanos([0, 20_000_000][rng.random_range(0..2)]);
    let options = Options {
        checkpoint_period: periods,
        dirty_expiry: Nanos(5_000_000),
        dirty_period: Nanos(3_000_000),
        ..cache(blocks)
    };
    let make = MakeOptions { logs: [2, 4, 6][rng.random_range(0..3)], ..MakeOptions::default() };
    let mut fs = FileSystem::make(drive(64, Contents::Bytes), &make, &options).expect("a file system");
    let mut draw = Draw::new(seed);
    draw.is_plain = true;
    let mut model = Model::new();
    for cycle in 0..4 {
        let depth = [1, 4, 32][rng.random_range(0..3)];
        let mut oracle = Oracle::new(model);
        let (mut flying, mut answered) = (BTreeMap::new(), BTreeMap::new());
        for tag in 0..rng.random_range(1..calls) {
            let call = draw.call();
            flying.insert(tag, call.clone());
            fs.submit(call, tag);
            while flying.len() >= depth {
                let until = Nanos(fs.now().0 + 3_600_000_000_000);
                if fs.answers().is_empty() {
                    assert!(fs.run_to_completion(until), "{flying:?} never end: {:?}", fs.read_only_reason());
                }
                for answer in std::mem::take(fs.answers()) {
                    draw.learn(&answer);
                    let call = flying.remove(&answer.tag).expect("in flight");
                    answered.insert(answer.order, (call, answer));
                }
            }
        }
        // Some more happens, and then nothing any more.
        let until = Nanos(fs.now().0 + rng.random_range(0..6_000_000));
        fs.run_until(until);
        for answer in std::mem::take(fs.answers()) {
            draw.learn(&answer);
            let call = flying.remove(&answer.tag).expect("in flight");
            answered.insert(answer.order, (call, answer));
        }
        for (call, answer) in answered.values() {
            oracle.repeat(call, answer);
        }
        assert_eq!(fs.read_only_reason(), None, "cycle {cycle}");
        let mut device = fs.into_device();
        if rng.random_bool(0.7) {
            device.cut(0, &mut |_| None);
        }
        let (device, found) = check(device);
        assert_eq!(found.expect("a file system").problems, [], "cycle {cycle}");
        fs = FileSystem::mount(device, &options).expect("a mount");
        fs.reset_metrics();
        model = oracle.compare(&mut fs);
        // Orders begin anew with the next mount.
        fs = FileSystem::mount(fs.unmount().map_err(|(reason, _)| reason).expect("an unmount"), &options)
            .expect("a mount");
    }
}

#[test]
fn what_an_fsync_covers_survives_crashes_and_power_cuts() {
    let only = std::env::var("FS_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in only.map_or(0..300, |seed: u64| seed..seed + 1) {
        println!("FS_SEED={seed} cargo test -p ssdlab-fs --test it crash");
        play(seed, 250);
    }
}
