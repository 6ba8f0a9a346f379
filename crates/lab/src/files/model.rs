//! What every read of a run must give, and what the tree must be at its end: an independent model of names, sizes and stamps.
//!
//! Each write brings a stamp of its own for the sectors that it touches. The model repeats the calls in the order in which the file
//! system says that they took effect ([`Answer::order`]), one by one, and compares each answer. It shares no code with the file
//! system: a directory is a map of names, and a file a list of stamps.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use ssdlab_fs::call::MOST_BYTES;
use ssdlab_fs::{Answer, Call, Content, Errno, FileId, FileKind, FileSystem, ROOT, Reply};

use super::error::FilesError;
use super::runner::wait;
use crate::result::Check;
use crate::text::counted;

/// The check's stable key.
const NAME: &str = "files_are_what_calls_made_them";

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Names that one call lists.
const LISTED: u32 = 1000;

/// A file: its size, and the stamp of each sector.
#[derive(Debug, Default)]
struct File {
    size: u64,
    stamps: Vec<u64>,
}

/// A file or a directory.
#[derive(Debug)]
enum Node {
    File(File),
    Directory(BTreeMap<Vec<u8>, FileId>),
}

/// Everything that a file system should have.
#[derive(Debug)]
pub(super) struct Model {
    nodes: FxHashMap<FileId, Node>,
    /// What any file or directory has been called.
    given: FxHashSet<FileId>,
    /// Calls without an answer, by tag.
    sent: FxHashMap<u32, Call>,
    /// Answered, by their place in the order; those before have not all been answered.
    ended: BTreeMap<u64, (Call, Answer)>,
    next: u64,
    stamp: u64,
    compared_calls: u64,
    compared_sectors: u64,
    wrong: u64,
    first: Option<String>,
}

const fn sectors(offset: u64, length: u64) -> std::ops::Range<usize> {
    if length == 0 {
        return 0..0;
    }
    (offset / SECTOR) as usize..(offset + length).div_ceil(SECTOR) as usize
}

impl File {
    fn write(&mut self, offset: u64, length: u64, stamp: u64) {
        let range = sectors(offset, length);
        if self.stamps.len() < range.end {
            self.stamps.resize(range.end, 0);
        }
        self.stamps[range].fill(stamp);
        self.size = self.size.max(offset + length);
    }

    /// The first of the sectors from `offset` on whose stamp is not what `data` has.
    fn differs(&self, offset: u64, length: u64, data: &[u8]) -> Option<String> {
        let range = sectors(offset, length);
        if data.len() != range.len() * 8 {
            return Some(format!("{} bytes of stamps, expected {}", data.len(), range.len() * 8));
        }
        range.clone().zip(data.chunks_exact(8)).find_map(|(sector, found)| {
            let found = found.try_into().map_or(0, u64::from_le_bytes);
            let expected = self.stamps.get(sector).copied().unwrap_or(0);
            let write = |stamp: u64| if stamp == 0 { "nothing".to_string() } else { format!("write {stamp}") };
            (found != expected).then(|| format!("sector {sector} has {}, expected {}", write(found), write(expected)))
        })
    }
}

impl Model {
    /// A file system that is new, and whose next call is number `next` in the order.
    pub(super) fn new() -> Model {
        Model {
            nodes: FxHashMap::from_iter([(ROOT, Node::Directory(BTreeMap::new()))]),
            given: FxHashSet::from_iter([ROOT]),
            sent: FxHashMap::default(),
            ended: BTreeMap::new(),
            next: 0,
            stamp: 0,
            compared_calls: 0,
            compared_sectors: 0,
            wrong: 0,
            first: None,
        }
    }

    /// A stamp that no write has brought.
    pub(super) const fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// A call is made; its answer has this tag.
    pub(super) fn sent(&mut self, tag: u32, call: &Call) {
        self.sent.insert(tag, call.clone());
    }

    /// A call is answered. It is compared when all before it in the order have been answered.
    pub(super) fn answered(&mut self, answer: &Answer) {
        let Some(call) = self.sent.remove(&answer.tag) else { return };
        self.ended.insert(answer.order, (call, answer.clone()));
        while let Some((call, answer)) = self.ended.remove(&self.next) {
            self.next += 1;
            self.repeat(&call, &answer);
        }
    }

    fn wrong(&mut self, what: String) {
        self.wrong += 1;
        self.first.get_or_insert(what);
    }

    /// Repeats a call that took effect, and compares its answer.
    fn repeat(&mut self, call: &Call, answer: &Answer) {
        self.compared_calls += 1;
        let expected = match &answer.result {
            // What depends on the drive is the drive's.
            Err(Errno::NoSpace | Errno::ReadOnly | Errno::Io) => return,
            Err(errno) => Err(*errno),
            Ok(reply) => Ok(reply),
        };
        if let Err(what) = self.compare(call, expected) {
            self.wrong(format!("call {} ({call:?}): {what}", answer.order));
        }
    }

    fn compare(&mut self, call: &Call, result: Result<&Reply, Errno>) -> Result<(), String> {
        let known = match call {
            Call::Lookup { directory, name }
            | Call::Unlink { directory, name }
            | Call::Create { directory, name }
            | Call::Mkdir { directory, name } => match self.nodes.get(directory) {
                Some(Node::Directory(names)) => names.get(name).copied(),
                _ => return Err(format!("{directory} is no directory")),
            },
            _ => None,
        };
        let same = |expected: Result<&str, Errno>| match (expected, result) {
            (Err(expected), Err(found)) if expected == found => Ok(()),
            (Ok(_), Ok(_)) => Ok(()),
            (expected, found) => Err(format!("found {}, expected {expected:?}", shown(found))),
        };
        match (call, known) {
            (Call::Lookup { .. } | Call::Unlink { .. }, None) => same(Err(Errno::NotFound)),
            (Call::Create { .. } | Call::Mkdir { .. }, Some(_)) => same(Err(Errno::Exists)),
            (Call::Lookup { .. }, Some(file)) => {
                same(Ok("a file"))?;
                self.has_attributes(file, result)
            }
            (Call::Unlink { directory, name }, Some(file)) => {
                same(Ok("done"))?;
                if let Some(Node::Directory(names)) = self.nodes.get_mut(directory) {
                    names.remove(name);
                }
                self.nodes.remove(&file);
                Ok(())
            }
            (Call::Create { directory, name } | Call::Mkdir { directory, name }, None) => {
                let Ok(Reply::Found(made)) = result else { return same(Ok("a new file")) };
                let is_file = matches!(call, Call::Create { .. });
                let node = if is_file { Node::File(File::default()) } else { Node::Directory(BTreeMap::new()) };
                self.nodes.insert(made.file, node);
                if !self.given.insert(made.file) {
                    return Err(format!("it is called {}, as another is or was", made.file));
                }
                if let Some(Node::Directory(names)) = self.nodes.get_mut(directory) {
                    names.insert(name.clone(), made.file);
                }
                Ok(())
            }
            (Call::Read { file, offset, length, .. }, _) => self.read(*file, *offset, *length, result),
            (Call::Write { file, offset, length, content, .. }, _) => {
                same(Ok("done"))?;
                self.write(*file, *offset, *length, content)
            }
            (Call::Append { file, length, content, .. }, _) => {
                let Ok(Reply::Appended { offset }) = result else { return same(Ok("appended")) };
                let size = self.file(*file)?.size;
                if *offset != size {
                    return Err(format!("found the offset {offset}, expected {size}"));
                }
                self.write(*file, *offset, *length, content)
            }
            (Call::Truncate { file, size }, _) => {
                same(Ok("done"))?;
                let file = self.file(*file)?;
                file.stamps.truncate(size.div_ceil(SECTOR) as usize);
                file.size = *size;
                Ok(())
            }
            (Call::Stat { file }, _) => self.has_attributes(*file, result),
            _ => same(Ok("done")),
        }
    }

    fn file(&mut self, file: FileId) -> Result<&mut File, String> {
        match self.nodes.get_mut(&file) {
            Some(Node::File(file)) => Ok(file),
            _ => Err(format!("there is no file {file}")),
        }
    }

    fn write(&mut self, file: FileId, offset: u64, length: u32, content: &Content) -> Result<(), String> {
        let stamp = if let Content::Stamp(stamp) = content { *stamp } else { 0 };
        self.file(file)?.write(offset, length.into(), stamp);
        Ok(())
    }

    fn read(&mut self, file: FileId, offset: u64, asked: u32, result: Result<&Reply, Errno>) -> Result<(), String> {
        let Ok(Reply::Read { length, data }) = result else {
            return Err(format!("found {}, expected bytes", shown(result)));
        };
        let file = self.file(file)?;
        let expected = file.size.saturating_sub(offset).min(asked.into());
        if u64::from(*length) != expected {
            return Err(format!("found {length} bytes, expected {expected}"));
        }
        let (count, differs) = (sectors(offset, expected).len(), file.differs(offset, expected, data));
        self.compared_sectors += count as u64;
        differs.map_or(Ok(()), Err)
    }

    fn has_attributes(&self, file: FileId, result: Result<&Reply, Errno>) -> Result<(), String> {
        let Ok(Reply::Found(found)) = result else {
            return Err(format!("found {}, expected attributes", shown(result)));
        };
        let fits = match self.nodes.get(&file) {
            Some(Node::File(own)) => found.kind == FileKind::File && found.size == own.size,
            Some(Node::Directory(_)) => found.kind == FileKind::Directory,
            None => false,
        };
        let is_right = fits && found.file == file;
        let expected = match self.nodes.get(&file) {
            Some(Node::File(own)) => format!("the file {file} of {} bytes", own.size),
            Some(Node::Directory(_)) => format!("the directory {file}"),
            None => "nothing".to_string(),
        };
        if is_right { Ok(()) } else { Err(format!("found {found:?}, expected {expected}")) }
    }

    /// Compares the whole tree of a file system: names, sizes and every sector.
    pub(super) fn compare_tree(&mut self, fs: &mut FileSystem) -> Result<(), FilesError> {
        let mut directories: Vec<(FileId, String)> = vec![(ROOT, String::new())];
        while let Some((directory, path)) = directories.pop() {
            let mut expected = match self.nodes.get(&directory) {
                Some(Node::Directory(names)) => names.clone(),
                _ => BTreeMap::new(),
            };
            let mut position = 0;
            loop {
                let call = Call::List { directory, position, most: LISTED };
                let (entries, is_end) = match wait(fs, call)?.result {
                    Ok(Reply::Listed { entries, is_end }) => (entries, is_end),
                    other => {
                        let found = shown(other.as_ref().map_err(|errno| *errno));
                        self.wrong(format!("the directory /{path} cannot be listed: found {found}"));
                        break;
                    }
                };
                for entry in entries {
                    position = entry.next;
                    let path = format!("{path}{}", String::from_utf8_lossy(&entry.name));
                    match expected.remove(&entry.name).filter(|file| file.number == entry.number) {
                        None => self.wrong(format!("/{path} is there at the end, and no call left it there")),
                        Some(file) if entry.kind == FileKind::Directory => directories.push((file, format!("{path}/"))),
                        Some(file) => self.compare_file(fs, file, &path)?,
                    }
                }
                if is_end {
                    break;
                }
            }
            for name in expected.keys() {
                self.wrong(format!("/{path}{} is missing at the end", String::from_utf8_lossy(name)));
            }
        }
        Ok(())
    }

    fn compare_file(&mut self, fs: &mut FileSystem, file: FileId, path: &str) -> Result<(), FilesError> {
        let stat = Call::Stat { file };
        let answer = wait(fs, stat)?.result;
        let attributes = answer.as_ref().map_err(|errno| *errno);
        if let Err(what) = self.has_attributes(file, attributes) {
            self.wrong(format!("/{path} at the end: {what}"));
            return Ok(());
        }
        let Ok(Reply::Found(found)) = answer else { return Ok(()) };
        for offset in (0..found.size).step_by(MOST_BYTES as usize) {
            let answer = wait(fs, Call::Read { file, offset, length: MOST_BYTES, is_direct: true })?.result;
            let read = answer.as_ref().map_err(|errno| *errno);
            if let Err(what) = self.read(file, offset, MOST_BYTES, read) {
                self.wrong(format!("/{path} at the end, from byte {offset}: {what}"));
                return Ok(());
            }
        }
        Ok(())
    }

    /// What came of all comparisons.
    pub(super) fn check(&self) -> Check {
        let waiting = self.sent.len() + self.ended.len();
        let what = self.first.as_ref().map_or(String::new(), |first| format!("; the first that differed: {first}"));
        let left = if waiting > 0 { format!("; {waiting} were not answered") } else { String::new() };
        let calls = counted(self.compared_calls, "answer was", "answers were");
        Check {
            name: NAME.to_string(),
            passed: self.wrong == 0,
            detail: format!(
                "{calls} compared with a model in the order of effect, and {} sectors; {} differed{what}{left}",
                self.compared_sectors, self.wrong
            ),
        }
    }
}

/// The result of a call, for messages.
fn shown(result: Result<&Reply, Errno>) -> String {
    match result {
        Ok(reply) => format!("{reply:?}"),
        Err(errno) => format!("that {errno}"),
    }
}
