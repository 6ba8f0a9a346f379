//! A file system in memory, written apart from the one under test: names in maps, files as blocks of bytes. It has no paths, no
//! directories in blocks, no cache and no time.
//!
//! It repeats calls in the order in which they took effect. [`Model::repeat`] first judges what a call must come to, and then changes
//! what the call changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ssdlab_fs::call::{MOST_BYTES, MOST_FILE_BYTES};
use ssdlab_fs::{Answer, Call, Content, Errno, FileId, FileKind, ROOT, Reply};

/// Bytes of a block.
pub const BLOCK: u64 = 4096;

/// A block's bytes, shared with who remembers them.
pub type Block = Arc<[u8; BLOCK as usize]>;

/// Names of a directory, and what they lead to.
pub type Names = BTreeMap<Vec<u8>, FileId>;

/// A file: its blocks that were written, by number.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    size: u64,
    blocks: BTreeMap<u64, Block>,
    /// Blocks whose contents cannot be told since media lost them.
    unknown: BTreeSet<u64>,
}

impl Bytes {
    /// Blocks whose contents no read has told.
    pub(super) const fn unknown(&self) -> &BTreeSet<u64> {
        &self.unknown
    }

    /// A file of a size with blocks that were found, and others that could not be read.
    pub fn of(size: u64, blocks: BTreeMap<u64, Block>, unknown: BTreeSet<u64>) -> Bytes {
        Bytes { size, blocks, unknown }
    }

    /// Its size.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Numbers of the blocks that were written.
    pub fn blocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.keys().copied()
    }

    /// A block that was written.
    pub fn block(&self, number: u64) -> Option<&Block> {
        self.blocks.get(&number)
    }

    /// Its bytes in a range, up to its end.
    pub fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        let end = self.size.min(offset.saturating_add(length)).max(offset);
        let mut bytes = vec![0; (end - offset) as usize];
        for (number, block) in self.blocks.range(offset / BLOCK..end.div_ceil(BLOCK)) {
            let start = number * BLOCK;
            let (from, to) = (offset.max(start), end.min(start + BLOCK));
            let within = (from - start) as usize..(to - start) as usize;
            bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(&block[within]);
        }
        bytes
    }

    /// The first byte from `offset` on in which what was read differs from what is known.
    pub fn differs(&self, offset: u64, found: &[u8]) -> Option<u64> {
        let expected = self.read(offset, found.len() as u64);
        let same = |at: &u64| {
            let within = (at - offset) as usize;
            self.unknown.contains(&(at / BLOCK)) || expected.get(within) == found.get(within)
        };
        if expected == found {
            return None;
        }
        (offset..offset + found.len() as u64).find(|at| !same(at))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let place = offset + at as u64;
            let from = (place % BLOCK) as usize;
            let to = (BLOCK as usize - from).min(bytes.len() - at);
            let block = self.blocks.entry(place / BLOCK).or_insert_with(|| Arc::new([0; BLOCK as usize]));
            Arc::make_mut(block)[from..from + to].copy_from_slice(&bytes[at..at + to]);
            if to == BLOCK as usize {
                self.unknown.remove(&(place / BLOCK));
            }
            at += to;
        }
        self.size = self.size.max(offset + bytes.len() as u64);
    }

    fn truncate(&mut self, size: u64) {
        if size < self.size {
            self.blocks.split_off(&size.div_ceil(BLOCK));
            self.unknown.split_off(&size.div_ceil(BLOCK));
            if let Some(block) = self.blocks.get_mut(&(size / BLOCK)) {
                Arc::make_mut(block)[(size % BLOCK) as usize..].fill(0);
            }
        }
        self.size = size;
    }
}

#[derive(Clone, Debug)]
enum Node {
    File(Bytes),
    Directory { names: Names, parent: Option<FileId> },
}

/// What keeps a file or directory beside its name.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    opens: u32,
    is_unlinked: bool,
}

/// A listing in parts.
#[derive(Clone, Debug, Default)]
struct Listing {
    /// Where it continues.
    next: u64,
    /// Names that were there at its beginning, and still are.
    stayed: BTreeSet<Vec<u8>>,
    seen: BTreeSet<Vec<u8>>,
}

/// The blocks of a file that a call changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The file.
    pub file: FileId,
    /// From this block on.
    pub from: u64,
    /// Before this one.
    pub end: u64,
}

/// What a call changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Names, in whatever directory.
    pub names: bool,
    /// A file's size or bytes.
    pub bytes: Option<Touched>,
    /// Files and directories that an fsync must make durable for this call to be.
    pub of: Vec<FileId>,
}

/// What a call does, when it succeeds.
enum Effect {
    Nothing,
    Made { directory: FileId, name: Vec<u8>, file: FileId, kind: FileKind },
    Unlinked { directory: FileId, name: Vec<u8>, file: FileId },
    Renamed { from: (FileId, Vec<u8>), to: (FileId, Vec<u8>), moved: FileId, replaced: Option<FileId> },
    Listed { directory: FileId, position: u64, names: Vec<Vec<u8>>, next: u64, is_end: bool },
    Opened(FileId),
    Closed(FileId),
    Written { file: FileId, offset: u64 },
    Truncated { file: FileId, size: u64 },
}

/// The model.
#[derive(Clone, Debug)]
pub struct Model {
    nodes: BTreeMap<FileId, Node>,
    held: BTreeMap<FileId, Held>,
    listings: BTreeMap<FileId, Listing>,
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

impl Default for Model {
    fn default() -> Model {
        Model::new()
    }
}

impl Model {
    /// A root directory without names.
    pub fn new() -> Model {
        let root = Node::Directory { names: Names::new(), parent: None };
        Model { nodes: [(ROOT, root)].into(), held: BTreeMap::new(), listings: BTreeMap::new(), given: [ROOT].into() }
    }

    /// A tree that was found: directories with their parents and names, and files. What was `given` out before is so still.
    pub fn of(
        directories: Vec<(FileId, Option<FileId>, Names)>,
        files: Vec<(FileId, Bytes)>,
        given: BTreeSet<FileId>,
    ) -> Model {
        let mut model = Model { given, ..Model::new() };
        for (directory, parent, names) in directories {
            model.nodes.insert(directory, Node::Directory { names, parent });
        }
        model.nodes.extend(files.into_iter().map(|(file, bytes)| (file, Node::File(bytes))));
        model.given.extend(model.nodes.keys());
        model
    }

    /// Every number and generation that was given out.
    pub const fn given(&self) -> &BTreeSet<FileId> {
        &self.given
    }

    /// The names of a directory.
    pub fn names(&self, directory: FileId) -> Result<&Names> {
        match self.nodes.get(&directory).ok_or(Errno::Stale)? {
            Node::Directory { names, .. } => Ok(names),
            Node::File(_) => Err(Errno::NotDirectory),
        }
    }

    fn names_mut(&mut self, directory: FileId) -> &mut Names {
        match self.nodes.get_mut(&directory) {
            Some(Node::Directory { names, .. }) => names,
            _ => panic!("{directory} was judged to be a directory"),
        }
    }

    /// The bytes of a file.
    pub fn file(&self, file: FileId) -> Result<&Bytes> {
        match self.nodes.get(&file).ok_or(Errno::Stale)? {
            Node::File(bytes) => Ok(bytes),
            Node::Directory { .. } => Err(Errno::IsDirectory),
        }
    }

    fn file_mut(&mut self, file: FileId) -> &mut Bytes {
        match self.nodes.get_mut(&file) {
            Some(Node::File(bytes)) => bytes,
            _ => panic!("{file} was judged to be a file"),
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

    fn take_name(&mut self, directory: FileId, name: &[u8]) {
        self.names_mut(directory).remove(name);
        if let Some(listing) = self.listings.get_mut(&directory) {
            listing.stayed.remove(name);
        }
    }

    /// Size of a file, and links.
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

    /// Repeats a call, and compares; gives what it changed. A failure that depends on the drive is taken as it is, unless another error
    /// comes before it.
    ///
    /// # Panics
    /// The call must come to something else.
    pub fn repeat(&mut self, call: &Call, answer: &Answer) -> Changed {
        let of_drive = match answer.result {
            Err(Errno::NoSpace) => takes_space(call),
            Err(Errno::ReadOnly | Errno::Io) => true,
            _ => false,
        };
        let reply = answer.result.as_ref().ok();
        match (self.judge(call, reply), &answer.result) {
            (Ok(effect), Ok(_)) => self.take_effect(call, effect),
            (Ok(effect), Err(_)) if of_drive && answer.took_effect => self.take_effect(call, effect),
            (Ok(_), Err(_)) if of_drive => Changed::default(),
            (Err(expected), Err(found)) if expected == *found => Changed::default(),
            // What cannot be read hides whether another error would be found.
            (Err(_), Err(Errno::Io)) => Changed::default(),
            (Ok(_), found) => panic!("{}: {found:?}, expected success", describe(call)),
            (Err(expected), found) => panic!("{}: {found:?}, expected {expected:?}", describe(call)),
        }
    }

    fn judge(&self, call: &Call, reply: Option<&Reply>) -> Result<Effect> {
        match call {
            Call::Lookup { directory, name } => {
                check(name)?;
                let file = *self.names(*directory)?.get(name).ok_or(Errno::NotFound)?;
                self.compare_attributes(file, reply)
            }
            Call::Create { directory, name } => self.judge_make(*directory, name, FileKind::File, reply),
            Call::Mkdir { directory, name } => self.judge_make(*directory, name, FileKind::Directory, reply),
            Call::Unlink { directory, name } => {
                check(name)?;
                let file = *self.names(*directory)?.get(name).ok_or(Errno::NotFound)?;
                if self.is_directory(file) {
                    return Err(Errno::IsDirectory);
                }
                Ok(Effect::Unlinked { directory: *directory, name: name.clone(), file })
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
                Ok(Effect::Unlinked { directory: *directory, name: name.clone(), file })
            }
            Call::Rename { from_directory, from, to_directory, to, no_replace } => {
                self.judge_rename((*from_directory, from), (*to_directory, to), *no_replace)
            }
            Call::List { directory, position, most } => self.judge_list(*directory, *position, *most, reply),
            Call::Open { file } => self.shape(*file).map(|_| Effect::Opened(*file)),
            Call::Close { file } => {
                self.shape(*file)?;
                let is_open = self.held.get(file).is_some_and(|held| held.opens > 0);
                if is_open { Ok(Effect::Closed(*file)) } else { Err(Errno::Invalid) }
            }
            Call::Read { file, offset, length, is_direct } => {
                let is_whole = offset % BLOCK == 0 && u64::from(*length) % BLOCK == 0;
                if *length > MOST_BYTES || (*is_direct && !is_whole) {
                    return Err(Errno::Invalid);
                }
                let bytes = self.file(*file)?;
                let expected = bytes.size.saturating_sub(*offset).min(u64::from(*length));
                let Some(Reply::Read { length, data }) = reply else { return Ok(Effect::Nothing) };
                assert_eq!(u64::from(*length), expected, "{} of a file of {} bytes", describe(call), bytes.size);
                assert_eq!(data.len() as u64, expected, "{}: bytes that came", describe(call));
                if let Some(at) = bytes.differs(*offset, data) {
                    let (found, known) = (data[(at - offset) as usize], bytes.read(at, 1));
                    panic!("{}: byte {at} is {found}, expected {known:?}", describe(call));
                }
                Ok(Effect::Nothing)
            }
            Call::Write { file, offset, length, content, mode } => {
                let is_whole = offset % BLOCK == 0 && u64::from(*length) % BLOCK == 0;
                if !is_content(content, *length) || (mode.is_direct && !is_whole) {
                    return Err(Errno::Invalid);
                }
                self.file(*file)?;
                if offset.saturating_add(u64::from(*length)) > MOST_FILE_BYTES {
                    return Err(Errno::TooLarge);
                }
                Ok(Effect::Written { file: *file, offset: *offset })
            }
            Call::Append { file, length, content, mode } => {
                if !is_content(content, *length) {
                    return Err(Errno::Invalid);
                }
                let size = self.file(*file)?.size;
                if mode.is_direct && !(size % BLOCK == 0 && u64::from(*length) % BLOCK == 0) {
                    return Err(Errno::Invalid);
                }
                if size + u64::from(*length) > MOST_FILE_BYTES {
                    return Err(Errno::TooLarge);
                }
                if let Some(Reply::Appended { offset }) = reply {
                    assert_eq!(*offset, size, "{}: where it went", describe(call));
                }
                Ok(Effect::Written { file: *file, offset: size })
            }
            Call::Truncate { file, size } => {
                self.file(*file)?;
                if *size > MOST_FILE_BYTES {
                    return Err(Errno::TooLarge);
                }
                Ok(Effect::Truncated { file: *file, size: *size })
            }
            Call::Stat { file } => {
                self.shape(*file)?;
                self.compare_attributes(*file, reply)
            }
            Call::Fsync { file } | Call::Fdatasync { file } => self.shape(*file).map(|_| Effect::Nothing),
            Call::StatFs | Call::Sync => Ok(Effect::Nothing),
        }
    }

    fn judge_make(&self, directory: FileId, name: &[u8], kind: FileKind, reply: Option<&Reply>) -> Result<Effect> {
        check(name)?;
        let names = self.names(directory)?;
        if self.is_unlinked(directory) {
            return Err(Errno::NotFound);
        }
        if names.contains_key(name) {
            return Err(Errno::Exists);
        }
        let Some(Reply::Found(made)) = reply else { return Ok(Effect::Nothing) };
        assert!(!self.given.contains(&made.file), "{} is given out twice", made.file);
        let of_number = FileId { generation: 0, ..made.file }..=FileId { generation: u32::MAX, ..made.file };
        let other = self.nodes.range(of_number).next();
        assert!(other.is_none(), "{} is given out while {:?} is there", made.file, other.map(|(file, _)| *file));
        assert_eq!(made.kind, kind, "the kind of {}", made.file);
        Ok(Effect::Made { directory, name: name.to_vec(), file: made.file, kind })
    }

    fn judge_rename(&self, from: (FileId, &[u8]), to: (FileId, &[u8]), no_replace: bool) -> Result<Effect> {
        check(from.1)?;
        check(to.1)?;
        if !self.nodes.contains_key(&from.0) || !self.nodes.contains_key(&to.0) {
            return Err(Errno::Stale);
        }
        let (sources, targets) = (self.names(from.0)?, self.names(to.0)?);
        let moved = *sources.get(from.1).ok_or(Errno::NotFound)?;
        if self.is_unlinked(to.0) {
            return Err(Errno::NotFound);
        }
        let replaced = targets.get(to.1).copied();
        if replaced.is_some() && no_replace {
            return Err(Errno::Exists);
        }
        if replaced == Some(moved) {
            return Ok(Effect::Nothing);
        }
        if self.is_directory(moved) {
            let mut above = Some(to.0);
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
        }
        Ok(Effect::Renamed { from: (from.0, from.1.to_vec()), to: (to.0, to.1.to_vec()), moved, replaced })
    }

    fn judge_list(&self, directory: FileId, position: u64, most: u32, reply: Option<&Reply>) -> Result<Effect> {
        if most == 0 {
            return Err(Errno::Invalid);
        }
        let names = self.names(directory)?;
        let Some(Reply::Listed { entries, is_end }) = reply else { return Ok(Effect::Nothing) };
        assert!(entries.len() <= most as usize, "{} names of at most {most}", entries.len());
        for entry in entries {
            let name = String::from_utf8_lossy(&entry.name);
            let Some(file) = names.get(&entry.name) else { panic!("{directory} lists '{name}', which is not there") };
            assert_eq!(file.number, entry.number, "what '{name}' in {directory} leads to");
            assert_eq!(self.is_directory(*file), entry.kind == FileKind::Directory, "the kind of '{name}'");
        }
        let next = entries.last().map_or(position, |entry| entry.next);
        let listed: Vec<Vec<u8>> = entries.iter().map(|entry| entry.name.clone()).collect();
        let distinct: BTreeSet<&Vec<u8>> = listed.iter().collect();
        assert_eq!(distinct.len(), listed.len(), "{directory} lists a name twice");
        if position == 0 && *is_end {
            assert_eq!(listed.len(), names.len(), "{directory} lists all of its names");
        }
        Ok(Effect::Listed { directory, position, names: listed, next, is_end: *is_end })
    }

    fn compare_attributes(&self, file: FileId, reply: Option<&Reply>) -> Result<Effect> {
        let (size, links) = self.shape(file)?;
        if let Some(Reply::Found(found)) = reply {
            assert_eq!((found.file, found.links), (file, links), "file and links of {found:?}");
            assert_eq!(found.kind == FileKind::Directory, size.is_none(), "the kind of {found:?}");
            if let Some(size) = size {
                assert_eq!(found.size, size, "the size of {found:?}");
            }
        }
        Ok(Effect::Nothing)
    }

    fn take_effect(&mut self, call: &Call, effect: Effect) -> Changed {
        match effect {
            Effect::Nothing => Changed::default(),
            Effect::Made { directory, name, file, kind } => {
                let node = match kind {
                    FileKind::File => Node::File(Bytes::default()),
                    FileKind::Directory => Node::Directory { names: Names::new(), parent: Some(directory) },
                };
                self.given.insert(file);
                self.nodes.insert(file, node);
                self.names_mut(directory).insert(name, file);
                let bytes = (kind == FileKind::File).then_some(Touched { file, from: 0, end: 0 });
                Changed { names: true, bytes, of: vec![directory, file] }
            }
            Effect::Unlinked { directory, name, file } => {
                self.take_name(directory, &name);
                self.unlink(file);
                Changed { names: true, bytes: None, of: vec![directory] }
            }
            Effect::Renamed { from, to, moved, replaced } => {
                if let Some(replaced) = replaced {
                    self.unlink(replaced);
                }
                self.take_name(from.0, &from.1);
                // A name that leads to something else from now on stays where it is.
                self.names_mut(to.0).insert(to.1, moved);
                if let Some(Node::Directory { parent, .. }) = self.nodes.get_mut(&moved) {
                    *parent = Some(to.0);
                }
                Changed { names: true, bytes: None, of: vec![from.0, to.0, moved] }
            }
            Effect::Listed { directory, position, names, next, is_end } => {
                self.listed(directory, position, names, next, is_end);
                Changed::default()
            }
            Effect::Opened(file) => {
                self.held.entry(file).or_default().opens += 1;
                Changed::default()
            }
            Effect::Closed(file) => {
                let held = self.held.entry(file).or_default();
                held.opens -= 1;
                if held.opens == 0 {
                    if held.is_unlinked {
                        self.nodes.remove(&file);
                    }
                    self.held.remove(&file);
                }
                Changed::default()
            }
            Effect::Written { file, offset } => {
                let (Call::Write { content, .. } | Call::Append { content, .. }) = call else {
                    return Changed::default();
                };
                let Content::Bytes(written) = content else { panic!("the model keeps bytes") };
                if written.is_empty() {
                    return Changed::default();
                }
                self.file_mut(file).write(offset, written);
                let (from, end) = (offset / BLOCK, (offset + written.len() as u64).div_ceil(BLOCK));
                Changed { names: false, bytes: Some(Touched { file, from, end }), of: vec![file] }
            }
            Effect::Truncated { file, size } => {
                let bytes = self.file_mut(file);
                let end = bytes.size.div_ceil(BLOCK);
                bytes.truncate(size);
                let touched = Touched { file, from: size / BLOCK, end: end.max(size / BLOCK) };
                Changed { names: false, bytes: Some(touched), of: vec![file] }
            }
        }
    }

    /// A name that is there during a whole listing in parts is given once.
    fn listed(&mut self, directory: FileId, position: u64, names: Vec<Vec<u8>>, next: u64, is_end: bool) {
        if position == 0 {
            let stayed = self.names(directory).map(|names| names.keys().cloned().collect()).unwrap_or_default();
            self.listings.insert(directory, Listing { next: 0, stayed, seen: BTreeSet::new() });
        }
        let Some(listing) = self.listings.get_mut(&directory).filter(|listing| listing.next == position) else {
            return;
        };
        for name in names {
            let is_again = listing.stayed.contains(&name) && listing.seen.contains(&name);
            assert!(!is_again, "a listing of {directory} gives '{}' again", String::from_utf8_lossy(&name));
            listing.seen.insert(name);
        }
        listing.next = next;
        if is_end {
            let missed = listing.stayed.difference(&listing.seen).next();
            let missed = missed.map(|name| String::from_utf8_lossy(name).into_owned());
            assert_eq!(missed, None, "a listing of {directory} leaves out a name that was there all the time");
            self.listings.remove(&directory);
        }
    }

    /// Everything that is open is closed: the host has ended.
    pub fn host_ends(&mut self) {
        self.listings.clear();
        for (file, held) in std::mem::take(&mut self.held) {
            if held.is_unlinked {
                self.nodes.remove(&file);
            }
        }
    }

    /// Directories that have a name, and the root, with their names.
    pub fn directories(&self) -> impl Iterator<Item = (FileId, &Names)> {
        self.nodes.iter().filter_map(|(file, node)| match node {
            Node::Directory { names, .. } if !self.is_unlinked(*file) => Some((*file, names)),
            _ => None,
        })
    }

    /// Files that are there, those without a name that are open among them.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &Bytes)> {
        self.nodes.iter().filter_map(|(file, node)| match node {
            Node::File(bytes) => Some((*file, bytes)),
            Node::Directory { .. } => None,
        })
    }

    /// What a path leads to.
    pub fn walk<'a>(&self, names: impl IntoIterator<Item = &'a [u8]>) -> Option<FileId> {
        names.into_iter().try_fold(ROOT, |directory, name| self.names(directory).ok()?.get(name).copied())
    }
}

/// Whether a call may need space. A full file system removes names and shortens files.
fn takes_space(call: &Call) -> bool {
    matches!(
        call,
        Call::Create { .. }
            | Call::Mkdir { .. }
            | Call::Rename { .. }
            | Call::Write { .. }
            | Call::Append { .. }
            | Call::Truncate { .. }
    )
}

fn is_content(content: &Content, length: u32) -> bool {
    length <= MOST_BYTES && matches!(content, Content::Bytes(bytes) if bytes.len() == length as usize)
}

/// A call without its bytes, for messages.
pub fn describe(call: &Call) -> String {
    match call {
        Call::Write { file, offset, length, mode, .. } => {
            format!("write of {length} bytes at {offset} of {file}, {mode:?}")
        }
        Call::Append { file, length, mode, .. } => format!("append of {length} bytes to {file}, {mode:?}"),
        other => format!("{other:?}"),
    }
}
