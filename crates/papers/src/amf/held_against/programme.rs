//! The programmes behind the recordings, as calls on a file system of ssdlab.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::{Data, Drive, DriveConfig, Options as DriveOptions, Payload};
use ssdlab_flash::Contents;
use ssdlab_fs::call::{MOST_BYTES, WriteMode};
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::{Call, Content, FileId, FileSystem, Metrics, ROOT, Reply};
use ssdlab_host::{Between, Device, Member, Through};
use ssdlab_workload::files::{Call as Wanted, Descriptor, Engine, FileSets, Limits, Next as Step, Personality};
use ssdlab_workload::fio::FioJob;
use ssdlab_workload::{Next, Workload};

use super::stream::{Phase, Stream};

/// What the host sends, in its order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Request>>>);

impl Log {
    fn push(&self, request: &Request) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(*request);
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Between for Log {
    fn submit(&mut self, device: &mut dyn Device, request: &Request, data: Data<'_>) {
        self.push(request);
        device.submit(request, data);
    }

    fn submit_command(&mut self, device: &mut dyn Device, request: &Request, payload: Payload<'_>) {
        self.push(request);
        device.submit_command(request, payload);
    }
}

/// The stream of a file system, and what it says of itself by phase.
pub(super) struct Ran {
    pub(super) stream: Stream,
    /// Counters of each phase.
    pub(super) metrics: Vec<Metrics>,
}

/// How large a programme is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) files: u64,
    pub(super) updates: u64,
    pub(super) writes: u64,
    pub(super) some: u64,
    pub(super) reads: u64,
}

/// What the phases of Postmark begin with.
pub(super) const POSTMARK: &str = "Postmark";

/// Bytes of a file of the programme.
const FILE_BYTES: u64 = 1408 << 10;

/// Small writes are synced so often.
const SYNCED: u64 = 64;

/// Time in which F2FS was told to collect its garbage. No call comes.
const COLLECTION: Nanos = Nanos::from_ms(30_000);

/// A programme on its way.
pub(super) struct Programme {
    fs: FileSystem,
    log: Log,
    phases: Vec<Phase>,
    metrics: Vec<Metrics>,
    /// Where the phase at hand begins.
    first: usize,
    /// Files by number.
    files: Vec<FileId>,
    file_bytes: u64,
    last: Option<FileId>,
    small: u64,
}

impl Programme {
    /// A new file system, made as the first phase.
    ///
    /// # Errors
    /// A drive or file system that cannot be, as a sentence.
    pub(super) fn new(config: &DriveConfig, kind: &'static FileSystemKind, keys: &[&str]) -> Result<Programme, String> {
        let options = DriveOptions { seed: 1, contents: Contents::Nothing };
        let drive = Drive::new(config, options).map_err(|error| error.to_string())?;
        let log = Log::default();
        let device: Box<dyn Device> = Box::new(Through::new(Member::alone(drive, options), log.clone()));
        let is_known = |key: &&&str| kind.keys.iter().any(|known| key.split('=').next() == Some(known.name));
        let keys: Vec<String> = keys.iter().filter(is_known).map(ToString::to_string).collect();
        let (make, options) = kind.read_overrides(&keys, "key").map_err(|error| error.to_string())?;
        let fs = FileSystem::make(device, &make, &options).map_err(|error| error.to_string())?;
        let mut programme = Programme {
            fs,
            log,
            phases: Vec::new(),
            metrics: Vec::new(),
            first: 0,
            files: Vec::new(),
            file_bytes: FILE_BYTES,
            last: None,
            small: 0,
        };
        programme.ended("mkfs", 0);
        Ok(programme)
    }

    /// A phase has ended, in which the program moved so many bytes.
    fn ended(&mut self, name: &str, bytes: u64) {
        let end = self.log.len();
        self.phases.push(Phase { name: name.to_string(), bytes, requests: self.first..end });
        self.metrics.push(self.fs.metrics());
        self.fs.reset_metrics();
        self.first = end;
    }

    fn call(&mut self, call: Call) -> Result<Reply, String> {
        self.fs.submit(call, 0);
        if !self.fs.run_to_completion(Nanos::MAX) {
            return Err("the file system does not answer".to_string());
        }
        let answer = self.fs.answers().pop().ok_or("the file system does not answer")?;
        answer.result.map_err(|error| error.to_string())
    }

    fn sync(&mut self) -> Result<(), String> {
        self.call(Call::Sync)?;
        self.fs.settle();
        Ok(())
    }

    fn create(&mut self, directory: FileId, name: &str) -> Result<FileId, String> {
        let file = match self.call(Call::Create { directory, name: name.into() })? {
            Reply::Found(found) => found.file,
            other => return Err(format!("a creation was answered with {other:?}")),
        };
        self.call(Call::Open { file })?;
        Ok(file)
    }

    /// A request of fio's words as a call on the file that has its bytes: files lie one behind the other.
    fn of_fio(&mut self, request: &Request, is_small: bool) -> Result<Call, String> {
        let (at, length) = (request.sector * SECTOR_BYTES, request.bytes() as u32);
        let (number, offset) = ((at / self.file_bytes) as usize, at % self.file_bytes);
        match request.op {
            Op::Read => {
                let file = self.files[number];
                Ok(Call::Read { file, offset, length, is_direct: is_small })
            }
            Op::Write => {
                if number == self.files.len() {
                    let file = self.create(ROOT, &format!("f.{number}"))?;
                    self.files.push(file);
                }
                let file = self.files[number];
                self.last = Some(file);
                self.small += u64::from(is_small);
                // sync_file_range sends each small write; fio leaves it out where an fsync follows.
                let is_direct = is_small && !self.small.is_multiple_of(SYNCED);
                let mode = WriteMode { is_direct, ..WriteMode::default() };
                Ok(Call::Write { file, offset, length, content: Content::Nothing, mode })
            }
            _ => Ok(Call::Fsync { file: self.last.ok_or("an fsync before any write")? }),
        }
    }

    /// Runs a job in fio's words. Its region is all files, one behind the other.
    fn fio(&mut self, job: &str, is_small: bool) -> Result<(), String> {
        let jobs = FioJob::parse_line(job).and_then(|jobs| jobs.on_files(1)).map_err(|error| error.to_string())?;
        let mut workload = jobs.workload;
        self.small = 0;
        let mut in_flight = 0;
        loop {
            while let Next::Request(request) = workload.next(self.fs.now()).map_err(|error| error.to_string())? {
                let call = self.of_fio(&request, is_small)?;
                self.fs.submit(call, request.tag);
                in_flight += 1;
            }
            if in_flight == 0 {
                return Ok(());
            }
            if !self.fs.run_to_completion(Nanos::MAX) {
                return Err("the file system does not answer".to_string());
            }
            for answer in std::mem::take(self.fs.answers()) {
                answer.result.map_err(|error| error.to_string())?;
                workload.completed(self.fs.now(), answer.tag);
                in_flight -= 1;
            }
        }
    }

    /// What `scripts/record-filesystems` runs, from the files to the unmount.
    ///
    /// # Errors
    /// A call that fails, as a sentence.
    pub(super) fn aged(mut self, sizes: &Sizes) -> Result<Ran, String> {
        let Sizes { files, updates, writes, some, reads } = *sizes;
        let all = files * FILE_BYTES;
        let small = |count: u64, seed: u64| {
            let io = count * 4096;
            format!("rw=randwrite,bs=4k,norandommap,size={all},io_size={io},fsync={SYNCED},randseed={seed}")
        };
        let part = some * FILE_BYTES;
        self.fio(&format!("rw=write,bs=128k,size={all}"), false)?;
        self.sync()?;
        self.ended("files", all);
        self.fio(&small(updates, 1), true)?;
        self.sync()?;
        self.ended("updates", updates * 4096);
        let until = self.fs.now() + COLLECTION;
        self.fs.run_until(until);
        self.sync()?;
        self.ended("collection", 0);
        self.fio(&small(writes, 2), true)?;
        self.sync()?;
        self.ended("random write", writes * 4096);
        self.fio(&format!("rw=write,bs=128k,size={part}"), false)?;
        self.sync()?;
        self.ended("sequential write", part);
        self.fs.drop_caches();
        self.fio(&format!("rw=read,bs=128k,size={part},offset={}", files / 2 * FILE_BYTES), false)?;
        self.sync()?;
        self.ended("sequential read", part);
        // fio drops the pages of its files before a job; direct reads would find them here.
        self.fs.drop_caches();
        let random = "rw=randread,bs=4k,norandommap,ioengine=libaio,iodepth=32,direct=1,randseed=3";
        self.fio(&format!("{random},size={all},io_size={}", reads * 4096), true)?;
        self.sync()?;
        self.ended("random read", reads * 4096);
        self.unmounted()
    }

    /// Unmounts, as the last phase.
    fn unmounted(mut self) -> Result<Ran, String> {
        self.fs.unmount().map_err(|(reason, _)| reason)?;
        let end = self.log.len();
        self.phases.push(Phase { name: "end".to_string(), bytes: 0, requests: self.first..end });
        self.metrics.push(Metrics::default());
        let stream = Stream { requests: self.log.take(), phases: self.phases };
        Ok(Ran { stream, metrics: self.metrics })
    }
}

/// Directories, and open files of a thread.
#[derive(Default)]
struct Names {
    directories: HashMap<String, FileId>,
    open: HashMap<Descriptor, FileId>,
}

impl Names {
    /// The directory of a path, and its last name.
    fn split<'a>(&self, path: &'a str) -> (FileId, &'a str) {
        match path.rsplit_once('/') {
            Some((parent, name)) => (self.directories.get(parent).copied().unwrap_or(ROOT), name),
            None => (ROOT, path),
        }
    }
}

impl Programme {
    fn found(&mut self, (directory, name): (FileId, &str)) -> Result<FileId, String> {
        match self.call(Call::Lookup { directory, name: name.into() })? {
            Reply::Found(found) => Ok(found.file),
            other => Err(format!("a name was answered with {other:?}")),
        }
    }

    /// Appends, or writes, in calls of so many bytes. Bytes written.
    fn append(&mut self, file: FileId, bytes: u64) -> Result<u64, String> {
        let (content, mode) = (Content::Nothing, WriteMode::default());
        self.call(Call::Append { file, length: bytes as u32, content, mode })?;
        Ok(bytes)
    }

    /// A call of a thread of Postmark. Bytes that it moved.
    fn of_thread(&mut self, names: &mut Names, wanted: &Wanted) -> Result<u64, String> {
        match wanted {
            Wanted::Create { descriptor, path, .. } => {
                let (directory, name) = names.split(path);
                let file = self.create(directory, name)?;
                names.open.insert(*descriptor, file);
                Ok(0)
            }
            Wanted::Open { descriptor, path, .. } => {
                let file = self.found(names.split(path))?;
                self.call(Call::Open { file })?;
                names.open.insert(*descriptor, file);
                Ok(0)
            }
            Wanted::Read { descriptor, offset, bytes } => {
                let (file, length) = (names.open[descriptor], (*bytes).min(MOST_BYTES.into()) as u32);
                match self.call(Call::Read { file, offset: *offset, length, is_direct: false })? {
                    Reply::Read { length, .. } => Ok(length.into()),
                    other => Err(format!("a read was answered with {other:?}")),
                }
            }
            Wanted::Write { descriptor, bytes, .. } | Wanted::Append { descriptor, bytes } => {
                self.append(names.open[descriptor], *bytes)
            }
            Wanted::Fsync { descriptor } => self.call(Call::Fsync { file: names.open[descriptor] }).map(|_| 0),
            Wanted::Close { descriptor } => {
                let file = names.open.remove(descriptor).ok_or("a close of what is not open")?;
                self.call(Call::Close { file }).map(|_| 0)
            }
            Wanted::Unlink { path } => {
                let (directory, name) = names.split(path);
                self.call(Call::Unlink { directory, name: name.into() }).map(|_| 0)
            }
            Wanted::Stat { path } => self.found(names.split(path)).map(|_| 0),
        }
    }

    /// Postmark with the making and the deletion of its files, then fio on one file.
    ///
    /// # Errors
    /// A call that fails, as a sentence.
    pub(super) fn postmark(mut self, personality: &Personality, file: u64, writes: u64) -> Result<Ran, String> {
        let mut names = Names::default();
        let mut moved = 0;
        let files = FileSets::new(personality, 1);
        for path in files.directories() {
            let (directory, name) = names.split(path);
            if let Reply::Found(found) = self.call(Call::Mkdir { directory, name: name.into() })? {
                names.directories.insert(path.to_string(), found.file);
            }
        }
        let block = personality.parameters.write_block;
        for (path, bytes) in files.existing() {
            let (directory, name) = names.split(&path);
            let file = self.create(directory, name)?;
            let mut left = bytes;
            while left > 0 {
                left -= self.append(file, left.min(block))?;
            }
            self.call(Call::Close { file })?;
            moved += bytes;
        }
        let mut engine = Engine::new(personality, files, 1, &Limits::default());
        while let Step::Call(wanted) = engine.threads()[0].next(self.fs.now()) {
            let wanted = wanted.clone();
            let bytes = self.of_thread(&mut names, &wanted)?;
            if matches!(wanted, Wanted::Write { .. } | Wanted::Append { .. }) {
                moved += bytes;
            }
            engine.threads()[0].completed(self.fs.now(), bytes);
        }
        for (path, _) in engine.files().existing() {
            let (directory, name) = names.split(&path);
            self.call(Call::Unlink { directory, name: name.into() })?;
        }
        self.ended(POSTMARK, moved);
        self.file_bytes = file;
        self.fio(&format!("rw=write,bs=128k,size={file}"), false)?;
        self.sync()?;
        self.ended("Postmark, lay-out", file);
        let io = writes * 4096;
        let words = "rw=randwrite,bs=4k,ioengine=libaio,iodepth=8,direct=1,norandommap";
        self.fio(&format!("{words},size={file},io_size={io},fsync={SYNCED}"), true)?;
        self.ended("Postmark, random write", io);
        self.unmounted()
    }
}
