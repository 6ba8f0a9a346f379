//! A file system beside the replay of the block requests that it made, on the same drive: what the file system itself costs.

use std::sync::{Arc, Mutex};

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Drive, DriveConfig, Options as DriveOptions, Payload};
use ssdlab_flash::Contents;
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::{Call, Content, FileId, FileSystem, MakeOptions, Options, ROOT, Reply};
use ssdlab_host::{Between, Device, Member, Through};

use crate::{Figure, config, cpu_seconds, resident_bytes};

/// Bytes of a block.
const BLOCK: u64 = 4096;
/// Calls in flight.
const DEPTH: usize = 32;
/// Overwrites before those that are measured, and these.
const OVERWRITES: [u64; 2] = [1_500_000, 1_000_000];
/// Share of the file system that the file takes, in percent.
const FULL: u64 = 85;
/// Files that are made and removed, and how many a directory has.
const FILES: u32 = 200_000;
const IN_DIRECTORY: u32 = 1_000;

/// Postmark(H) of "Application-Managed Flash" (section 5.3): files, transactions, and bytes of a file.
const POSTMARK_FILES: u64 = 30_000;
const TRANSACTIONS: u64 = 60_000;
const POSTMARK_BYTES: std::ops::RangeInclusive<u64> = 5 << 10..=512 << 10;

/// Pages of a file in the cache.
const CACHED: u64 = 1 << 20;

/// Files that are there when a file system is mounted.
const MANY: u32 = 1_000_000;

/// Block I/O that was sent to a device, with its times.
#[derive(Clone, Default)]
struct Recording(Arc<Mutex<Vec<Request>>>);

impl Recording {
    fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.0.lock().expect("no thread has panicked with it"))
    }
}

impl Recording {
    fn record(&self, device: &dyn Device, request: &Request) {
        self.0.lock().expect("no thread has panicked with it").push(Request { at: device.now(), ..*request });
    }
}

impl Between for Recording {
    fn submit(&mut self, device: &mut dyn Device, request: &Request, data: Data<'_>) {
        self.record(device, request);
        device.submit(request, data);
    }

    fn submit_command(&mut self, device: &mut dyn Device, request: &Request, payload: Payload<'_>) {
        self.record(device, request);
        device.submit_command(request, payload);
    }
}

/// A file system at work, and a second drive to which what it sends goes as well.
struct Pair {
    fs: FileSystem,
    recording: Recording,
    drive: Drive,
    tag: u32,
}

impl Pair {
    fn new(System { config, make }: &System) -> Pair {
        let options = DriveOptions { seed: 1, contents: Contents::Nothing };
        let drive = || Drive::new(config, options).expect("an accepted drive");
        let recording = Recording::default();
        let device = Box::new(Through::new(Member::alone(drive(), options), recording.clone()));
        let fs = FileSystem::make(device, make, &Options::default()).expect("a file system");
        let mut pair = Pair { fs, recording, drive: drive(), tag: 0 };
        // The second drive gets what a mounted file system sends, and before that what making one has written.
        if pair.drive.segments().is_some() {
            pair.recording.take();
            pair.repeat_making();
        } else {
            pair.replay(false);
        }
        pair
    }

    /// Writes as much into each segment of the second drive as making the file system has.
    fn repeat_making(&mut self) {
        let shape = self.drive.segments().expect("a drive of segments");
        let parts = self.fs.device().drives();
        let written = |segment| parts[0].device.segment(segment).map_or(0, |segment| segment.written);
        let writes: Vec<(u64, u64)> = (0..shape.count).map(|segment| (segment, written(segment))).collect();
        for (segment, sectors) in writes.into_iter().filter(|(_, sectors)| *sectors > 0) {
            let write = Request::new(Op::Write, segment * shape.sectors, sectors);
            self.drive.submit(&Request { at: self.drive.now(), ..write });
            run_out(&mut self.drive);
        }
    }

    fn submit(&mut self, call: Call) {
        self.tag += 1;
        self.fs.submit(call, self.tag);
    }

    /// Waits until at most so many calls are without an answer.
    fn wait(&mut self, left: usize) {
        while self.fs.outstanding() > left && self.fs.run_to_completion(Nanos::MAX) {
            self.fs.answers().clear();
        }
        self.fs.answers().clear();
    }

    /// Makes a call that needs nothing of those in flight, once there is room for it.
    fn go_on(&mut self, call: Call) {
        self.submit(call);
        self.wait(DEPTH - 1);
    }

    /// The file that a call has made or found.
    fn found(&mut self, call: Call) -> FileId {
        self.wait(0);
        self.submit(call);
        while !self.fs.run_to_completion(Nanos::MAX) {}
        match self.fs.answers().pop().map(|answer| answer.result) {
            Some(Ok(Reply::Found(found))) => found.file,
            other => panic!("found {other:?} for a file"),
        }
    }

    fn write(file: FileId, offset: u64, length: u32) -> Call {
        Call::Write { file, offset, length, content: Content::Nothing, mode: Default::default() }
    }

    fn sync(&mut self) {
        self.submit(Call::Sync);
        self.wait(0);
    }

    /// Sends to the second drive what the file system has sent; CPU seconds.
    fn replay(&mut self, timed: bool) -> f64 {
        let requests = self.recording.take();
        let Some(first) = requests.first().map(|request| request.at) else { return 0.0 };
        self.drive.set_timed(timed);
        let begin = self.drive.now();
        let start = cpu_seconds();
        for request in &requests {
            let at = Nanos(begin.0 + request.at.0.saturating_sub(first.0));
            self.drive.run_until(at.max(self.drive.now()));
            self.drive.completions().clear();
            self.drive.submit(&Request { at: self.drive.now(), ..*request });
        }
        run_out(&mut self.drive);
        cpu_seconds() - start
    }

    /// The figure of so many calls: calls a second, and what the replay takes.
    fn figures(&mut self, names: [&'static str; 2], calls: u64, seconds: f64) -> [Figure; 2] {
        let metrics = self.fs.metrics();
        let replay = self.replay(true);
        assert!(replay > 0.0, "the file system sent nothing that was recorded");
        let written = metrics.data_blocks + metrics.moved_blocks;
        let detail = format!(
            "{written} blocks of data, {} of them moved, {} of nodes, {} check-points",
            metrics.moved_blocks, metrics.node_blocks, metrics.checkpoints
        );
        [
            Figure { name: names[0], value: calls as f64 / seconds, unit: "calls/s", detail },
            Figure {
                name: names[1],
                value: seconds / replay,
                unit: "times",
                detail: format!("{replay:.3} s of CPU time"),
            },
        ]
    }
}

fn run_out(drive: &mut Drive) {
    while drive.outstanding() > 0 && drive.run_to_completion(Nanos::MAX) {
        drive.completions().clear();
    }
    drive.completions().clear();
}

/// What figures of each kind are called: overwrites, small files and Postmark(H), and each beside its replay.
const ALFS_NAMES: [[&str; 2]; 3] = [
    ["files: 4k overwrites, alfs", "files: 4k overwrites, alfs beside their replay"],
    ["files: small files made and removed, alfs", "files: small files, alfs beside their replay"],
    ["files: Postmark(H), alfs", "files: Postmark(H), alfs beside its replay"],
];
const LFS_NAMES: [[&str; 2]; 3] = [
    ["files: 4k overwrites, lfs", "files: 4k overwrites, lfs beside their replay"],
    ["files: small files made and removed, lfs", "files: small files, lfs beside their replay"],
    ["files: Postmark(H), lfs", "files: Postmark(H), lfs beside its replay"],
];
const JOURNALING_NAMES: [[&str; 2]; 3] = [
    ["files: 4k overwrites, journaling", "files: 4k overwrites, journaling beside their replay"],
    ["files: small files made and removed, journaling", "files: small files, journaling beside their replay"],
    ["files: Postmark(H), journaling", "files: Postmark(H), journaling beside its replay"],
];

/// What the host's share of a call of Postmark(H) is called, of each kind (Figure 15 of AMF).
const HOST_NAMES: [&str; 3] = [
    "files: Postmark(H), host time a call, alfs",
    "files: Postmark(H), host time a call, lfs",
    "files: Postmark(H), host time a call, journaling",
];

/// A kind of file system, and the drive that it is on.
struct System {
    config: DriveConfig,
    make: MakeOptions,
}

/// ALFS, LFS and the journaling file system, each on the drive of AMF's measurements.
fn systems() -> [System; 3] {
    [("alfs", "amf-16g-aftl"), ("lfs", "amf-16g"), ("journaling", "amf-16g")].map(|(kind, drive)| {
        let kind = FileSystemKind::of_name(kind).expect("a kind of file system");
        System { config: config(drive, &[]), make: MakeOptions { kind, ..MakeOptions::default() } }
    })
}

/// CPU time of the host a call, above a drive that answers at once (Figure 15 of AMF).
pub(crate) fn host_figures() -> Vec<Figure> {
    systems().iter().zip(HOST_NAMES).map(|(system, name)| host_time(system, name)).collect()
}

/// 4 KiB overwrites of a file with cleaning; making and removing files of 4 KiB; Postmark(H); sizes.
pub(crate) fn file_figures() -> Vec<Figure> {
    let [alfs, lfs, journaling] = systems();
    let mut figures = Vec::new();
    for (system, [over, small, post]) in [(&alfs, ALFS_NAMES), (&lfs, LFS_NAMES), (&journaling, JOURNALING_NAMES)] {
        figures.extend(overwrites(system, over));
        figures.extend(small_files(system, small));
        figures.extend(postmark(system, post));
    }
    figures.extend([mount_of_many(&alfs.config), memory_of_cached_pages(&alfs.config)]);
    figures
}

/// Virtual time of a mount, after a crash of the host, with 1,000,000 files.
fn mount_of_many(config: &DriveConfig) -> Figure {
    let options = DriveOptions { seed: 1, contents: Contents::Nothing };
    let device = Member::alone(Drive::new(config, options).expect("an accepted drive"), options);
    let mut fs = FileSystem::make(device, &MakeOptions::default(), &Options::default()).expect("a file system");
    let mut call = |call: Call| {
        fs.submit(call, 0);
        fs.run_to_completion(Nanos::MAX);
        fs.answers().pop().map(|answer| answer.result)
    };
    let mut directory = ROOT;
    for number in 0..MANY {
        if number.is_multiple_of(IN_DIRECTORY) {
            let name = format!("d{number}").into_bytes();
            let Some(Ok(Reply::Found(found))) = call(Call::Mkdir { directory: ROOT, name }) else {
                panic!("a directory")
            };
            directory = found.file;
        }
        let name = format!("file {number}").into_bytes();
        assert!(matches!(call(Call::Create { directory, name }), Some(Ok(_))), "file {number} is made");
    }
    assert_eq!(call(Call::Sync), Some(Ok(Reply::Done)));
    let device = fs.into_device();
    let (start, read) = (device.now(), device.taken().bytes[0]);
    let fs = FileSystem::mount(device, &Options::default()).expect("a mount");
    let read = fs.device().taken().bytes[0] - read;
    let value = (fs.now() - start).0 as f64 / 1e6;
    Figure {
        name: "files: mount with 1,000,000 files",
        value,
        unit: "ms",
        detail: format!("{} blocks read", read / BLOCK),
    }
}

/// Memory of a page of a file in the cache, beside its contents: the drive keeps none, so a page has none.
fn memory_of_cached_pages(config: &DriveConfig) -> Figure {
    let options = DriveOptions { seed: 1, contents: Contents::Nothing };
    let device = Member::alone(Drive::new(config, options).expect("an accepted drive"), options);
    let mut fs = FileSystem::make(device, &MakeOptions::default(), &Options::default()).expect("a file system");
    let megabyte = 256 * BLOCK;
    let call = |fs: &mut FileSystem, call: Call| {
        fs.submit(call, 0);
        while !fs.run_to_completion(Nanos::MAX) {}
        fs.answers().pop().expect("an answer").result.expect("a call that does what it says")
    };
    let name = b"file".to_vec();
    let Reply::Found(found) = call(&mut fs, Call::Create { directory: ROOT, name: name.clone() }) else {
        panic!("a file")
    };
    for at in 0..CACHED / 256 {
        call(&mut fs, Pair::write(found.file, at * megabyte, megabyte as u32));
    }
    call(&mut fs, Call::Sync);
    let device = fs.into_device();
    let options = Options { cache: 2 * CACHED * BLOCK, ..Options::default() };
    let mut fs = FileSystem::mount(device, &options).expect("a mount");
    let Reply::Found(found) = call(&mut fs, Call::Lookup { directory: ROOT, name }) else { panic!("the file") };
    call(&mut fs, Call::Open { file: found.file });
    let before = resident_bytes();
    for at in 0..CACHED / 256 {
        call(
            &mut fs,
            Call::Read { file: found.file, offset: at * megabyte, length: megabyte as u32, is_direct: false },
        );
    }
    let value = (resident_bytes() - before) as f64 / CACHED as f64;
    Figure {
        name: "files: memory of a cached page",
        value,
        unit: "bytes",
        detail: format!("{CACHED} pages, index blocks among them"),
    }
}

fn overwrites(system: &System, names: [&'static str; 2]) -> [Figure; 2] {
    let mut pair = Pair::new(system);
    pair.fs.set_timed(false);
    let file = pair.found(Call::Create { directory: ROOT, name: b"file".to_vec() });
    let blocks = pair.fs.shape().user_blocks * FULL / 100;
    let megabyte = 256 * BLOCK;
    (0..blocks / 256).for_each(|at| pair.go_on(Pair::write(file, at * megabyte, megabyte as u32)));
    pair.sync();
    let mut rng = rng(1, "files");
    let mut seconds = 0.0;
    for (calls, timed) in OVERWRITES.into_iter().zip([false, true]) {
        pair.replay(false);
        pair.fs.set_timed(timed);
        pair.fs.reset_metrics();
        let start = cpu_seconds();
        for _ in 0..calls {
            let block = rng.random_range(0..blocks / 256 * 256);
            pair.go_on(Pair::write(file, block * BLOCK, BLOCK as u32));
        }
        pair.sync();
        seconds = cpu_seconds() - start;
    }
    pair.figures(names, OVERWRITES[1], seconds)
}

fn small_files(system: &System, names: [&'static str; 2]) -> [Figure; 2] {
    let mut pair = Pair::new(system);
    let directories: Vec<FileId> = (0..FILES / IN_DIRECTORY)
        .map(|number| pair.found(Call::Mkdir { directory: ROOT, name: format!("d{number}").into_bytes() }))
        .collect();
    pair.sync();
    pair.replay(false);
    pair.fs.reset_metrics();
    let name = |number: u32| format!("file {number}").into_bytes();
    let of = |number: u32| directories[(number / IN_DIRECTORY) as usize];
    let start = cpu_seconds();
    for number in 0..FILES {
        let file = pair.found(Call::Create { directory: of(number), name: name(number) });
        pair.go_on(Pair::write(file, 0, BLOCK as u32));
    }
    pair.sync();
    (0..FILES).for_each(|number| pair.go_on(Call::Unlink { directory: of(number), name: name(number) }));
    pair.sync();
    let seconds = cpu_seconds() - start;
    pair.figures(names, u64::from(FILES) * 3, seconds)
}

/// Postmark as one process: a file is looked up, opened, used in pieces of 4 KiB and closed, one call after the other.
struct Postmark {
    pair: Pair,
    /// Numbers of the files, and their bytes.
    files: Vec<(u64, u64)>,
    made: u64,
    rng: ssdlab_base::Rng,
    calls: u64,
}

impl Postmark {
    fn name(number: u64) -> Vec<u8> {
        format!("{number}").into_bytes()
    }

    fn call(&mut self, call: Call) {
        self.calls += 1;
        self.pair.submit(call);
        self.pair.wait(0);
    }

    fn found(&mut self, call: Call) -> FileId {
        self.calls += 1;
        self.pair.found(call)
    }

    fn pieces(&mut self, offsets: std::ops::Range<u64>, call: impl Fn(u64, u32) -> Call) {
        let mut at = offsets.start;
        while at < offsets.end {
            let length = (offsets.end - at).min(BLOCK - at % BLOCK);
            self.call(call(at, length as u32));
            at += length;
        }
    }

    fn create(&mut self) {
        let (number, bytes) = (self.made, self.rng.random_range(POSTMARK_BYTES));
        self.made += 1;
        let file = self.found(Call::Create { directory: ROOT, name: Postmark::name(number) });
        self.call(Call::Open { file });
        self.pieces(0..bytes, |offset, length| Pair::write(file, offset, length));
        self.call(Call::Close { file });
        self.files.push((number, bytes));
    }

    /// Reads a file, or appends to it; then makes a file or removes one.
    fn transaction(&mut self) {
        let at = self.rng.random_range(0..self.files.len());
        let (number, bytes) = self.files[at];
        let most = *POSTMARK_BYTES.end();
        let end =
            if self.rng.random_bool(0.5) || bytes == most { bytes } else { self.rng.random_range(bytes + 1..=most) };
        let file = self.found(Call::Lookup { directory: ROOT, name: Postmark::name(number) });
        self.call(Call::Open { file });
        if end == bytes {
            self.pieces(0..bytes, |offset, length| Call::Read { file, offset, length, is_direct: false });
        } else {
            self.pieces(bytes..end, |offset, length| Pair::write(file, offset, length));
            self.files[at].1 = end;
        }
        self.call(Call::Close { file });
        if self.rng.random_bool(0.5) {
            self.create();
        } else {
            let at = self.rng.random_range(0..self.files.len());
            let (number, _) = self.files.swap_remove(at);
            self.call(Call::Unlink { directory: ROOT, name: Postmark::name(number) });
        }
    }
}

/// Postmark(H) after its files are made: calls, and their CPU seconds.
fn transactions(system: &System, timed: bool) -> (Pair, u64, f64) {
    let files = Vec::new();
    let mut postmark = Postmark { pair: Pair::new(system), files, made: 0, rng: rng(1, "postmark"), calls: 0 };
    postmark.pair.fs.set_timed(false);
    (0..POSTMARK_FILES).for_each(|_| postmark.create());
    postmark.pair.sync();
    postmark.pair.replay(false);
    postmark.pair.fs.set_timed(timed);
    postmark.pair.fs.reset_metrics();
    postmark.calls = 0;
    let start = cpu_seconds();
    (0..TRANSACTIONS).for_each(|_| postmark.transaction());
    postmark.pair.sync();
    let seconds = cpu_seconds() - start;
    (postmark.pair, postmark.calls, seconds)
}

fn postmark(system: &System, names: [&'static str; 2]) -> [Figure; 2] {
    let (mut pair, calls, seconds) = transactions(system, true);
    pair.figures(names, calls, seconds)
}

/// What a call of Postmark(H) takes of the host above a drive that answers at once: all CPU time less the drive's own.
fn host_time(system: &System, name: &'static str) -> Figure {
    let (mut pair, calls, seconds) = transactions(system, false);
    let drive = pair.replay(false);
    let each = |seconds: f64| seconds * 1e9 / calls as f64;
    let detail = format!("{:.0} ns with the drive, {calls} calls", each(seconds));
    Figure { name, value: each(seconds - drive), unit: "ns", detail }
}
