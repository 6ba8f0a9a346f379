//! A file system in memory, written apart from the one under test: names in maps, files as bytes.

use std::collections::{BTreeMap, BTreeSet};

use ssdlab_fs::call::{MOST_BYTES, MOST_FILE_BYTES};
use ssdlab_fs::{Answer, Call, Content, Errno, FileId, FileKind, ROOT, Reply};

/// A file: the blocks that were written, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) size: u64,
    blocks: BTreeMap<u64, Box<[u8; 4096]>>,
}

impl Bytes {
    pub(crate) fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        let end = self.size.min(offset + length).max(offset);
        let mut bytes = vec![0; (end - offset) as usize];
        let mut at = offset;
        while at < end {
            let next = (at / 4096 + 1) * 4096;
            if let Some(block) = self.blocks.get(&(at / 4096)) {
                let (from, to) = ((at % 4096) as usize, (next.min(end) - at) as usize);
                bytes[(at - offset) as usize..][..to].copy_from_slice(&block[from..from + to]);
            }
            at = next;
        }
        bytes
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let place = offset + at as u64;
            let from = (place % 4096) as usize;
            let to = (4096 - from).min(bytes.len() - at);
            let block = self.blocks.entry(place / 4096).or_insert_with(|| Box::new([0; 4096]));
            block[from..from + to].copy_from_slice(&bytes[at..at + to]);
            at += to;
        }
        self.size = self.size.max(offset + bytes.len() as u64);
    }

    /// Blocks that were written.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.keys().copied()
    }

    fn truncate(&mut self, size: u64) {
        if size < self.size {
            self.blocks.split_off(&size.div_ceil(4096));
            if let Some(block) = self.blocks.get_mut(&(size / 4096)) {
                block[(size % 4096) as usize..].fill(0);
            }
        }
        self.size = size;
    }
}

#[derive(Clone, Debug)]
enum Node {
    File(Bytes),
    Directory { names: BTreeMap<Vec<u8>, FileId>, parent: Option<FileId> },
}

#[derive(Clone, Debug, Default)]
struct Held {
    opens: u32,
    is_unlinked: bool,
}

/// A directory that was found: its parent and names.
pub(crate) type FoundDirectory = (FileId, Option<FileId>, BTreeMap<Vec<u8>, FileId>);

/// A file that was found: its size, and parts of it by offset.
pub(crate) type FoundFile = (FileId, u64, Vec<(u64, Vec<u8>)>);

/// The model.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    nodes: BTreeMap<FileId, Node>,
    held: BTreeMap<FileId, Held>,
    /// Numbers and generations that were given out.
    given: BTreeSet<FileId>,
}

type Result<T> = std::result::Result<T, Errno>;

fn check(name: &[u8]) -> Result<()> {
    match name {
        name if name.len() > 255 => Err(Errno::NameTooLong),
        b"" | b"." | b".." => Err(Errno::Invalid),
        name if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(Errno::Invalid),
        _ => Ok(()),
    }
}

impl Model {
    pub(crate) fn new() -> Model {
        let root = Node::Directory { names: BTreeMap::new(), parent: None };
        Model { nodes: [(ROOT, root)].into(), held: BTreeMap::new(), given: [ROOT].into() }
    }

    fn names(&self, directory: FileId) -> Result<&BTreeMap<Vec<u8>, FileId>> {
        match self.nodes.get(&directory).ok_or(Errno::Stale)? {
            Node::Directory { names, .. } => Ok(names),
            Node::File(_) => Err(Errno::NotDirectory),
        }
    }

    fn names_mut(&mut self, directory: FileId) -> &mut BTreeMap<Vec<u8>, FileId> {
        match self.nodes.get_mut(&directory) {
            Some(Node::Directory { names, .. }) => names,
            _ => panic!("a directory"),
        }
    }

    fn file(&self, file: FileId) -> Result<&Bytes> {
        match self.nodes.get(&file).ok_or(Errno::Stale)? {
            Node::File(bytes) => Ok(bytes),
            Node::Directory { .. } => Err(Errno::IsDirectory),
        }
    }

    fn file_mut(&mut self, file: FileId) -> &mut Bytes {
        match self.nodes.get_mut(&file) {
            Some(Node::File(bytes)) => bytes,
            _ => panic!("a file"),
        }
    }

    fn is_directory(&self, file: FileId) -> bool {
        matches!(self.nodes.get(&file), Some(Node::Directory { .. }))
    }

    fn is_unlinked(&self, file: FileId) -> bool {
        self.held.get(&file).is_some_and(|held| held.is_unlinked)
    }

    fn unlink(&mut self, file: FileId) {
        let held = self.held.entry(file).or_default();
        held.is_unlinked = true;
        if held.opens == 0 {
            self.held.remove(&file);
            self.nodes.remove(&file);
        }
    }

    /// Size, and whether it is a directory, and links, of what there is.
    fn shape(&self, file: FileId) -> Result<(Option<u64>, u32)> {
        let is_unlinked = self.is_unlinked(file);
        match self.nodes.get(&file).ok_or(Errno::Stale)? {
            Node::File(bytes) => Ok((Some(bytes.size), u32::from(!is_unlinked))),
            Node::Directory { names, .. } => {
                let inner = names.values().filter(|inner| self.is_directory(**inner)).count() as u32;
                Ok((None, if is_unlinked { 0 } else { 2 + inner }))
            }
        }
    }

    /// Repeats a call, and compares. An answer that depends on the drive is taken as it is.
    pub(crate) fn repeat(&mut self, call: &Call, answer: &Answer) {
        if matches!(answer.result, Err(Errno::NoSpace | Errno::ReadOnly | Errno::Io)) {
            let mut other = self.clone();
            let expected = other.expect(call, answer);
            assert!(expected.is_ok(), "{call:?}: {answer:?}, expected {expected:?}");
            return;
        }
        let expected = self.expect(call, answer);
        match (&expected, &answer.result) {
            (Err(expected), Err(found)) if expected == found => {}
            (Ok(()), Ok(_)) => {}
            _ => panic!("{call:?}: {answer:?}, expected {expected:?}"),
        }
    }

    fn expect(&mut self, call: &Call, answer: &Answer) -> Result<()> {
        let reply = answer.result.as_ref().ok();
        match call {
            Call::Lookup { directory, name } => {
                check(name)?;
                let file = *self.names(*directory)?.get(name).ok_or(Errno::NotFound)?;
                self.same(file, reply)
            }
            Call::Create { directory, name } | Call::Mkdir { directory, name } => {
                check(name)?;
                let names = self.names(*directory)?;
                if self.is_unlinked(*directory) {
                    return Err(Errno::NotFound);
                }
                if names.contains_key(name) {
                    return Err(Errno::Exists);
                }
                let Some(Reply::Found(made)) = reply else { return Ok(()) };
                assert!(self.given.insert(made.file), "{} is given once", made.file);
                assert!(
                    !self.nodes.keys().any(|file| file.number == made.file.number),
                    "number {} is in use",
                    made.file.number
                );
                let is_file = matches!(call, Call::Create { .. });
                let node = match is_file {
                    true => Node::File(Bytes::default()),
                    false => Node::Directory { names: BTreeMap::new(), parent: Some(*directory) },
                };
                assert_eq!(made.kind == FileKind::File, is_file);
                self.nodes.insert(made.file, node);
                self.names_mut(*directory).insert(name.clone(), made.file);
                Ok(())
            }
            Call::Unlink { directory, name } => {
                check(name)?;
                let file = *self.names(*directory)?.get(name).ok_or(Errno::NotFound)?;
                if self.is_directory(file) {
                    return Err(Errno::IsDirectory);
                }
                self.names_mut(*directory).remove(name);
                self.unlink(file);
                Ok(())
            }
            Call::Rmdir { directory, name } => {
                check(name)?;
                let file = *self.names(*directory)?.get(name).ok_or(Errno::NotFound)?;
                if !self.is_directory(file) {
                    return Err(Errno::NotDirectory);
                }
                if !self.names(file)?.is_empty() {
                    return Err(Errno::NotEmpty);
                }
                self.names_mut(*directory).remove(name);
                self.unlink(file);
                Ok(())
            }
            Call::Rename { from_directory, from, to_directory, to, no_replace } => {
                check(from)?;
                check(to)?;
                for directory in [from_directory, to_directory] {
                    if !self.nodes.contains_key(directory) {
                        return Err(Errno::Stale);
                    }
                }
                let moved = self.names(*from_directory)?;
                let targets = self.names(*to_directory)?;
                let moved = *moved.get(from).ok_or(Errno::NotFound)?;
                if self.is_unlinked(*to_directory) {
                    return Err(Errno::NotFound);
                }
                let replaced = targets.get(to).copied();
                if replaced.is_some() && *no_replace {
                    return Err(Errno::Exists);
                }
                if replaced == Some(moved) {
                    return Ok(());
                }
                if self.is_directory(moved) {
                    let mut above = Some(*to_directory);
                    while let Some(directory) = above {
                        if directory == moved {
                            return Err(Errno::Invalid);
                        }
                        above = match &self.nodes[&directory] {
                            Node::Directory { parent, .. } => *parent,
                            Node::File(_) => None,
                        };
                    }
                }
                if let Some(replaced) = replaced {
                    match (self.is_directory(moved), self.is_directory(replaced)) {
                        (false, true) => return Err(Errno::IsDirectory),
                        (true, false) => return Err(Errno::NotDirectory),
                        (true, true) if !self.names(replaced)?.is_empty() => return Err(Errno::NotEmpty),
                        _ => {}
                    }
                    self.unlink(replaced);
                }
                self.names_mut(*from_directory).remove(from);
                self.names_mut(*to_directory).insert(to.clone(), moved);
                if let Some(Node::Directory { parent, .. }) = self.nodes.get_mut(&moved) {
                    *parent = Some(*to_directory);
                }
                Ok(())
            }
            Call::List { directory, position, most } => {
                if *most == 0 {
                    return Err(Errno::Invalid);
                }
                let names = self.names(*directory)?;
                let Some(Reply::Listed { entries, is_end }) = reply else { return Ok(()) };
                for entry in entries {
                    let file = names.get(&entry.name).expect("a name that is there");
                    assert_eq!(file.number, entry.number);
                    assert_eq!(self.is_directory(*file), entry.kind == FileKind::Directory);
                }
                assert!(entries.len() <= *most as usize);
                let distinct: BTreeSet<&Vec<u8>> = entries.iter().map(|entry| &entry.name).collect();
                assert_eq!(distinct.len(), entries.len());
                if *position == 0 && *is_end {
                    assert_eq!(entries.len(), names.len(), "all names are listed");
                }
                Ok(())
            }
            Call::Open { file } => {
                self.shape(*file)?;
                self.held.entry(*file).or_default().opens += 1;
                Ok(())
            }
            Call::Close { file } => {
                self.shape(*file)?;
                let held = self.held.get_mut(file).filter(|held| held.opens > 0).ok_or(Errno::Invalid)?;
                held.opens -= 1;
                if held.opens == 0 && held.is_unlinked {
                    self.nodes.remove(file);
                }
                if held.opens == 0 {
                    self.held.remove(file);
                }
                Ok(())
            }
            Call::Read { file, offset, length, is_direct } => {
                let is_whole = offset % 4096 == 0 && length % 4096 == 0;
                if *length > MOST_BYTES || (*is_direct && !is_whole) {
                    return Err(Errno::Invalid);
                }
                let expected = self.file(*file)?.read(*offset, u64::from(*length));
                let Some(Reply::Read { length, data }) = reply else { return Ok(()) };
                assert_eq!(*length as usize, expected.len(), "{call:?}");
                if let Some(at) = data.iter().zip(&expected).position(|(found, expected)| found != expected) {
                    panic!("{call:?}: byte {at} is {}, expected {}", data[at], expected[at]);
                }
                assert_eq!(data.len(), expected.len());
                Ok(())
            }
            Call::Write { file, offset, length, content, mode } => {
                let Content::Bytes(bytes) = content else { panic!("the model keeps bytes") };
                let is_whole = offset % 4096 == 0 && length % 4096 == 0;
                if *length > MOST_BYTES || bytes.len() != *length as usize || (mode.is_direct && !is_whole) {
                    return Err(Errno::Invalid);
                }
                self.file(*file)?;
                if offset + u64::from(*length) > MOST_FILE_BYTES {
                    return Err(Errno::TooLarge);
                }
                if !bytes.is_empty() {
                    self.file_mut(*file).write(*offset, bytes);
                }
                Ok(())
            }
            Call::Append { file, length, content, mode } => {
                let Content::Bytes(bytes) = content else { panic!("the model keeps bytes") };
                if *length > MOST_BYTES || bytes.len() != *length as usize {
                    return Err(Errno::Invalid);
                }
                let size = self.file(*file)?.size;
                if mode.is_direct && !(size % 4096 == 0 && length % 4096 == 0) {
                    return Err(Errno::Invalid);
                }
                if size + u64::from(*length) > MOST_FILE_BYTES {
                    return Err(Errno::TooLarge);
                }
                if !bytes.is_empty() {
                    self.file_mut(*file).write(size, bytes);
                }
                if let Some(Reply::Appended { offset }) = reply {
                    assert_eq!(*offset, size);
                }
                Ok(())
            }
            Call::Truncate { file, size } => {
                self.file(*file)?;
                if *size > MOST_FILE_BYTES {
                    return Err(Errno::TooLarge);
                }
                self.file_mut(*file).truncate(*size);
                Ok(())
            }
            Call::Stat { file } => {
                self.shape(*file)?;
                self.same(*file, reply)
            }
            Call::Fsync { file } | Call::Fdatasync { file } => self.shape(*file).map(|_| ()),
            Call::StatFs | Call::Sync => Ok(()),
        }
    }

    fn same(&self, file: FileId, reply: Option<&Reply>) -> Result<()> {
        let (size, links) = self.shape(file)?;
        if let Some(Reply::Found(found)) = reply {
            assert_eq!((found.file, found.links), (file, links), "{found:?}");
            assert_eq!(found.kind == FileKind::Directory, size.is_none());
            if let Some(size) = size {
                assert_eq!(found.size, size, "{found:?}");
            }
        }
        Ok(())
    }

    /// A tree that was found on a drive.
    pub(crate) fn of(directories: &[FoundDirectory], files: Vec<FoundFile>) -> Model {
        let mut model = Model::new();
        for (directory, parent, names) in directories {
            model.nodes.insert(*directory, Node::Directory { names: names.clone(), parent: *parent });
        }
        for (file, size, parts) in files {
            let mut bytes = Bytes::default();
            for (offset, part) in parts {
                bytes.write(offset, &part);
            }
            bytes.size = size;
            model.nodes.insert(file, Node::File(bytes));
        }
        model.given = model.nodes.keys().copied().collect();
        model
    }

    /// The file that a call changes.
    pub(crate) fn changed(call: &Call) -> Option<FileId> {
        match call {
            Call::Write { length: 0, .. } | Call::Append { length: 0, .. } => None,
            Call::Write { file, .. } | Call::Append { file, .. } | Call::Truncate { file, .. } => Some(*file),
            _ => None,
        }
    }

    /// A file that is there.
    pub(crate) fn look(&self, file: FileId) -> Option<&Bytes> {
        self.file(file).ok()
    }

    /// Everything that is open is closed: the host has ended.
    pub(crate) fn host_ends(&mut self) {
        for (file, held) in std::mem::take(&mut self.held) {
            if held.is_unlinked {
                self.nodes.remove(&file);
            }
        }
    }

    /// Directories, and files with their bytes.
    pub(crate) fn directories(&self) -> Vec<(FileId, BTreeMap<Vec<u8>, FileId>)> {
        let of = |(file, node): (&FileId, &Node)| match node {
            Node::Directory { names, .. } => Some((*file, names.clone())),
            Node::File(_) => None,
        };
        self.nodes.iter().filter_map(of).collect()
    }

    pub(crate) fn files(&self) -> Vec<(FileId, &Bytes)> {
        let of = |(file, node): (&FileId, &'_ Node)| match node {
            Node::File(_) => Some(*file),
            Node::Directory { .. } => None,
        };
        let files: Vec<FileId> = self.nodes.iter().filter_map(of).collect();
        files.into_iter().map(|file| (file, self.file(file).expect("a file"))).collect()
    }
}
