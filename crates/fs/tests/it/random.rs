//! Random calls, many in flight, against the model: every result in the order of applies, and the whole tree after each mount.

use std::collections::BTreeMap;

use rand::RngExt;
use ssdlab_base::{Nanos, Rng, rng};
use ssdlab_flash::Contents;
use ssdlab_fs::call::{Sync, WriteMode};
use ssdlab_fs::check::check;
use ssdlab_fs::{Answer, Call, Content, FileId, FileKind, FileSystem, MakeOptions, Options, ROOT, Reply};

use crate::drive::{cache, drive, names, read};
use crate::model::Model;

/// What is drawn from.
pub(crate) struct Draw {
    pub(crate) rng: Rng,
    /// Files and directories that were made, some of them gone.
    files: Vec<FileId>,
    directories: Vec<FileId>,
    /// Weights of the kinds of calls in this run.
    weights: Vec<u32>,
    largest: u64,
    /// No call has stages but fsync and sync, which change nothing.
    pub(crate) is_plain: bool,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        let mut rng = rng(seed, "calls");
        // Whole kinds of calls are absent in some runs.
        let weights = (0..18).map(|_| if rng.random_bool(0.15) { 0 } else { rng.random_range(1..20) }).collect();
        let largest = [20_000, 300_000, 3_000_000][rng.random_range(0..3)];
        Draw { rng, files: Vec::new(), directories: vec![ROOT], weights, largest, is_plain: false }
    }

    fn any<T: Copy>(rng: &mut Rng, of: &[T]) -> Option<T> {
        if of.is_empty() { None } else { Some(of[rng.random_range(0..of.len())]) }
    }

    fn name(&mut self) -> Vec<u8> {
        let rng = &mut self.rng;
        match rng.random_range(0..100) {
            0 => b"a/b".to_vec(),
            1 => b"..".to_vec(),
            2 => vec![b'x'; 256],
            3..10 => format!("{}{}", "long-".repeat(rng.random_range(4..50)), rng.random_range(0..4)).into_bytes(),
            _ => format!("n{}", rng.random_range(0..12)).into_bytes(),
        }
    }

    fn directory(&mut self) -> FileId {
        if self.rng.random_bool(0.03)
            && let Some(file) = Draw::any(&mut self.rng, &self.files)
        {
            return file;
        }
        Draw::any(&mut self.rng, &self.directories).unwrap_or(ROOT)
    }

    fn file(&mut self) -> FileId {
        if self.rng.random_bool(0.02) {
            return self.directory();
        }
        // Mostly the newest ones, which are there.
        let newest = self.files.len().saturating_sub(20);
        Draw::any(&mut self.rng, &self.files[newest..]).unwrap_or(ROOT)
    }

    fn mode(&mut self) -> WriteMode {
        if self.is_plain {
            return WriteMode::default();
        }
        let sync = match self.rng.random_range(0..40) {
            0 => Sync::Data,
            1 => Sync::All,
            _ => Sync::No,
        };
        WriteMode { is_direct: self.rng.random_bool(0.05), sync }
    }

    fn offset(&mut self) -> u64 {
        match self.rng.random_range(0..20) {
            0 => self.rng.random_range(0..5_000_000_000),
            1..6 => self.rng.random_range(0..self.largest) / 4096 * 4096,
            _ => self.rng.random_range(0..self.largest),
        }
    }

    fn length(&mut self) -> u32 {
        match self.rng.random_range(0..10) {
            0 => self.rng.random_range(0..100_000),
            1..4 => self.rng.random_range(0..8) * 4096,
            _ => self.rng.random_range(0..6_000),
        }
    }

    fn bytes(&mut self, length: u32) -> Content {
        let first: u8 = self.rng.random();
        Content::Bytes((0..length).map(|at| first.wrapping_add((at / 7) as u8) | 1).collect())
    }

    pub(crate) fn call(&mut self) -> Call {
        let all: u32 = self.weights.iter().sum();
        let mut pick = self.rng.random_range(0..all.max(1));
        let kind = self.weights.iter().position(|weight| {
            let hit = pick < *weight;
            pick = pick.wrapping_sub(if hit { 0 } else { *weight });
            hit
        });
        let directory = self.directory();
        match kind.unwrap_or(0) {
            0 | 1 => Call::Create { directory, name: self.name() },
            2 => Call::Mkdir { directory, name: self.name() },
            3 => Call::Unlink { directory, name: self.name() },
            4 => Call::Rmdir { directory, name: self.name() },
            5 => Call::Rename {
                from_directory: directory,
                from: self.name(),
                to_directory: self.directory(),
                to: self.name(),
                no_replace: self.rng.random_bool(0.3),
            },
            6 => Call::List { directory, position: 0, most: self.rng.random_range(1..40) },
            7 => Call::Open { file: self.file() },
            8 => Call::Close { file: self.file() },
            9 | 10 => {
                let is_direct = self.rng.random_bool(0.1);
                Call::Read { file: self.file(), offset: self.offset(), length: self.length(), is_direct }
            }
            11 | 12 => {
                let length = self.length();
                let (file, offset) = (self.file(), self.offset());
                Call::Write { file, offset, length, content: self.bytes(length), mode: self.mode() }
            }
            13 => {
                let length = self.length();
                Call::Append { file: self.file(), length, content: self.bytes(length), mode: self.mode() }
            }
            14 => Call::Truncate { file: self.file(), size: if self.rng.random_bool(0.3) { 0 } else { self.offset() } },
            15 => Call::Stat { file: self.file() },
            16 => match self.rng.random_range(0..10) {
                0 => Call::Sync,
                1 | 2 => Call::Fdatasync { file: self.file() },
                3 => Call::StatFs,
                _ => Call::Fsync { file: self.file() },
            },
            _ => Call::Lookup { directory, name: self.name() },
        }
    }

    pub(crate) fn learn(&mut self, answer: &Answer) {
        if let Ok(Reply::Found(found)) = &answer.result {
            let known = if found.kind == FileKind::File { &mut self.files } else { &mut self.directories };
            if !known.contains(&found.file) {
                known.push(found.file);
            }
            if self.directories.len() > 12 {
                let gone = self.rng.random_range(1..self.directories.len());
                self.directories.remove(gone);
            }
        }
    }
}

/// A file system, the model beside it, and calls between them.
struct Pair {
    fs: FileSystem,
    model: Model,
    draw: Draw,
    flying: BTreeMap<u32, Call>,
    answered: BTreeMap<u64, (Call, Answer)>,
    next: u64,
    tag: u32,
}

impl Pair {
    fn collect(&mut self) {
        for answer in std::mem::take(self.fs.answers()) {
            let call = self.flying.remove(&answer.tag).expect("a call in flight");
            self.draw.learn(&answer);
            assert!(self.answered.insert(answer.order, (call, answer)).is_none(), "each apply has its number");
        }
        while let Some((call, answer)) = self.answered.remove(&self.next) {
            self.model.repeat(&call, &answer);
            self.next += 1;
        }
    }

    fn wait_for_fewer_than(&mut self, count: usize) {
        while self.flying.len() >= count {
            let until = Nanos(self.fs.now().0 + 3_600_000_000_000);
            let any = self.fs.run_to_completion(until);
            self.collect();
            assert!(any, "{:?} never end; {:?}", self.flying, self.fs.read_only_reason());
        }
    }

    fn run(&mut self, calls: u32, depth: usize) {
        for _ in 0..calls {
            self.wait_for_fewer_than(depth);
            let call = self.draw.call();
            self.tag += 1;
            self.flying.insert(self.tag, call.clone());
            self.fs.submit(call, self.tag);
            self.collect();
        }
        self.wait_for_fewer_than(1);
        assert!(self.answered.is_empty(), "orders have no gap");
    }

    /// The whole tree is as the model has it.
    fn compare(&mut self) {
        for (directory, expected) in self.model.directories() {
            let mut found = names(&mut self.fs, directory, 17);
            found.sort();
            let expected: Vec<(String, u32)> =
                expected.iter().map(|(name, file)| (String::from_utf8_lossy(name).into_owned(), file.number)).collect();
            assert_eq!(found, expected, "names in {directory}");
        }
        let files: Vec<(FileId, u64)> = self.model.files().iter().map(|(file, bytes)| (*file, bytes.size)).collect();
        for (file, size) in files {
            let mut parts = vec![(0, size.min(4_000_000))];
            if size > 4_000_000 {
                parts.push((size - 4096, 4096));
            }
            for (first, length) in parts {
                let mut at = first;
                while at < first + length {
                    let part = (first + length - at).min(1 << 20) as u32;
                    let found = read(&mut self.fs, file, at, part).expect("a file that is there");
                    let expected = self
                        .model
                        .files()
                        .iter()
                        .find(|(one, _)| *one == file)
                        .map(|(_, bytes)| bytes.read(at, part.into()));
                    let expected = expected.expect("it is in the model");
                    let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
                    assert!(
                        differs.is_none() && found.len() == expected.len(),
                        "{file} from {at}: {} bytes of {}, byte {differs:?} is {:?} for {:?}",
                        found.len(),
                        expected.len(),
                        differs.map(|at| found[at]),
                        differs.map(|at| expected[at])
                    );
                    at += u64::from(part);
                }
            }
        }
        self.next = self.fs_order();
    }

    /// The number of the next apply: calls of a comparison have some.
    fn fs_order(&mut self) -> u64 {
        crate::drive::answer(&mut self.fs, Call::StatFs).order + 1
    }
}

pub(crate) fn play(seed: u64, calls: u32) {
    let mut rng = rng(seed, "run");
    let depth = [1, 2, 8, 64][rng.random_range(0..4)];
    let blocks = [16, 24, 60, 400, 4000][rng.random_range(0..5)];
    let options = Options { read_ahead: [0, 16 << 10, 128 << 10][rng.random_range(0..3)], ..cache(blocks) };
    let logs = [2, 4, 6][rng.random_range(0..3)];
    let make = MakeOptions { logs, ..MakeOptions::default() };
    let fs = FileSystem::make(drive(72, Contents::Bytes), &make, &options).expect("a file system");
    let (flying, answered) = (BTreeMap::new(), BTreeMap::new());
    let mut pair = Pair { fs, model: Model::new(), draw: Draw::new(seed), flying, answered, next: 0, tag: 0 };
    for round in 0..3 {
        pair.run(calls, depth);
        pair.compare();
        let device = pair.fs.unmount().map_err(|(reason, _)| reason).expect("an unmount");
        let (device, found) = check(device);
        assert_eq!(found.expect("a file system").problems, [], "round {round}");
        pair.fs = FileSystem::mount(device, &options).expect("a mount");
        pair.model.host_ends();
        pair.next = 0;
        assert_eq!(pair.fs.read_only_reason(), None, "round {round}");
        pair.compare();
    }
}

fn over(seeds: std::ops::Range<u64>, calls: u32) {
    let only = std::env::var("FS_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in only.map_or(seeds, |seed: u64| seed..seed + 1) {
        println!("FS_SEED={seed} cargo test -p ssdlab-fs --test it random");
        play(seed, calls);
    }
}

#[test]
fn random_calls_have_the_results_of_the_model() {
    over(0..100, 300);
}
