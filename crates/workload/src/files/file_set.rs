//! Which files there are, which exist, and who gets the next one.
//!
//! Files are taken in rotation, as Filebench does: the next that exists, or the next that does not, behind the one that
//! was taken last by anyone. A file that a thread has open is not deleted; Filebench leaves out the operation, here the
//! next file is taken instead, so that the mix stays the published one. Postmark takes any file that exists, uniformly.

use std::collections::BTreeSet;

use ssdlab_base::{Rng, rng};

use super::flowop::SetName;
use super::parameters::Parameters;
use super::personality::{Personality, Script};
use super::size::SizeDistribution;
use super::tree::{self, Tree};
use crate::draw::{below, unit};

/// A file of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) set: SetName,
    pub(super) index: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    /// Being made or removed: it may exist.
    Changing,
    Present,
}

#[derive(Clone, Debug)]
struct Entry {
    directory: u32,
    name: u32,
    /// The size that was drawn for it.
    planned: u64,
    /// Its size as far as threads have asked for it.
    length: u64,
    state: State,
    /// Threads that have it open, or are asking for it.
    pins: u32,
}

/// Files with their directories.
#[derive(Clone, Debug)]
struct FileSet {
    directories: Vec<String>,
    entries: Vec<Entry>,
    present: BTreeSet<u32>,
    absent: BTreeSet<u32>,
    present_rotor: u32,
    absent_rotor: u32,
    /// The last name that was given, where files get new ones.
    names: u32,
}

/// What a preparation will make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Directories.
    pub directories: u64,
    /// Files that exist at the start.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// All files of a personality.
#[derive(Clone, Debug)]
pub struct FileSets {
    files: FileSet,
    log: FileSet,
}

impl FileSet {
    fn new(tree: Tree, sizes: SizeDistribution, parameters: &Parameters, rng: &mut Rng) -> FileSet {
        let mut set = FileSet {
            directories: tree.directories,
            entries: Vec::with_capacity(tree.homes.len()),
            present: BTreeSet::new(),
            absent: BTreeSet::new(),
            present_rotor: 0,
            absent_rotor: 0,
            names: 0,
        };
        for directory in tree.homes {
            let planned = parameters.aligned(sizes.draw(rng));
            let index = set.entries.len() as u32;
            set.absent.insert(index);
            let name = index + 1;
            set.entries.push(Entry { directory, name, planned, length: 0, state: State::Absent, pins: 0 });
        }
        set
    }

    /// Makes each file exist with this chance, in percent.
    fn preallocate(&mut self, percent: f64, rng: &mut Rng) {
        for index in 0..self.entries.len() as u32 {
            if unit(rng) * 100.0 < percent {
                self.exists(index);
            }
        }
    }

    fn exists(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.state = State::Present;
        entry.length = entry.planned;
        self.absent.remove(&index);
        self.present.insert(index);
    }

    fn next(set: &BTreeSet<u32>, rotor: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
        set.range(rotor..).chain(set.range(..rotor)).copied().find(|&index| fits(index))
    }

    fn take_present(&mut self, fits: impl Fn(&Entry) -> bool) -> Option<u32> {
        let found = FileSet::next(&self.present, self.present_rotor, |index| fits(&self.entries[index as usize]))?;
        self.present_rotor = found + 1;
        Some(found)
    }

    fn path(&self, index: u32) -> String {
        let entry = &self.entries[index as usize];
        let directory = &self.directories[entry.directory as usize];
        if directory.is_empty() { format!("{:08}", entry.name) } else { format!("{directory}/{:08}", entry.name) }
    }
}

impl FileSets {
    /// Draws the files of a personality.
    pub fn new(personality: &Personality, seed: u64) -> FileSets {
        let parameters = &personality.parameters;
        let mut rng = rng(seed, "files plan");
        let none =
            || FileSet::new(Tree::default(), SizeDistribution::Fixed(0), parameters, &mut ssdlab_base::rng(0, ""));
        if personality.script == Script::Postmark {
            let files = FileSets::postmark(parameters, &mut rng);
            return FileSets { files, log: none() };
        }
        let sizes = match parameters.size_gamma {
            0.0 => SizeDistribution::Fixed(parameters.mean_size),
            shape => SizeDistribution::Gamma { mean: parameters.mean_size, shape },
        };
        let tree = tree::draw("files", parameters.files, parameters.directory_width, &mut rng);
        let mut files = FileSet::new(tree, sizes, parameters, &mut rng);
        files.preallocate(parameters.prealloc_percent, &mut rng);
        let mut log = none();
        if parameters.log_files > 0 {
            let tree = tree::draw("log", parameters.log_files, parameters.directory_width, &mut rng);
            log = FileSet::new(tree, sizes, parameters, &mut rng);
            log.preallocate(100.0, &mut rng);
        }
        FileSets { files, log }
    }

    /// Postmark's table: places for twice the files, of which the first half is filled.
    fn postmark(parameters: &Parameters, rng: &mut Rng) -> FileSet {
        // As Postmark has it, a single subdirectory is none.
        let subdirectories = if parameters.subdirectories > 1 { parameters.subdirectories } else { 0 };
        let directories = if subdirectories == 0 {
            vec![String::new()]
        } else {
            (0..subdirectories).map(|number| format!("s{number}")).collect()
        };
        let places = parameters.files * 2;
        let tree = Tree { directories, homes: vec![0; places as usize] };
        let mut set = FileSet::new(tree, SizeDistribution::Fixed(0), parameters, rng);
        for index in 0..parameters.files as u32 {
            set.rename(index, parameters, rng);
            set.exists(index);
        }
        set.absent_rotor = parameters.files as u32;
        set
    }

    /// What a preparation will make.
    pub fn planned(&self) -> Planned {
        let files = || [&self.files, &self.log].into_iter().flat_map(|set| &set.entries);
        let present = || files().filter(|entry| entry.state == State::Present);
        Planned {
            directories: self.directories().count() as u64,
            files: present().count() as u64,
            bytes: present().fold(0, |sum: u64, entry| sum.saturating_add(entry.length)),
        }
    }

    /// All directories, parents before their children.
    pub fn directories(&self) -> impl DoubleEndedIterator<Item = &str> {
        let all = self.files.directories.iter().chain(&self.log.directories);
        all.map(String::as_str).filter(|path| !path.is_empty())
    }

    /// Path and size of every file that exists.
    pub fn existing(&self) -> impl Iterator<Item = (String, u64)> {
        [&self.files, &self.log]
            .into_iter()
            .flat_map(|set| set.present.iter().map(|&index| (set.path(index), set.entries[index as usize].length)))
    }

    /// Paths of every file that exists or that may exist because a run broke off while it was made or removed.
    pub fn perhaps_existing(&self) -> impl Iterator<Item = String> {
        [&self.files, &self.log].into_iter().flat_map(|set| {
            let entries = set.entries.iter().enumerate();
            entries.filter(|(_, entry)| entry.state != State::Absent).map(|(index, _)| set.path(index as u32))
        })
    }

    fn set(&mut self, name: SetName) -> &mut FileSet {
        match name {
            SetName::Files => &mut self.files,
            SetName::Log => &mut self.log,
        }
    }

    fn entry(&mut self, id: FileId) -> &mut Entry {
        &mut self.set(id.set).entries[id.index as usize]
    }

    /// The path of a file.
    pub(super) fn path(&mut self, id: FileId) -> String {
        self.set(id.set).path(id.index)
    }

    /// The size that was drawn for a file.
    pub(super) fn size_planned(&mut self, id: FileId) -> u64 {
        self.entry(id).planned
    }

    /// The size of a file, as far as threads have asked for it.
    pub(super) fn length(&mut self, id: FileId) -> u64 {
        self.entry(id).length
    }

    /// So many bytes are going to be appended.
    pub(super) fn grow(&mut self, id: FileId, bytes: u64) {
        self.entry(id).length += bytes;
    }

    /// The next file that exists, pinned.
    pub(super) fn take_existing(&mut self, name: SetName) -> Option<FileId> {
        let set = self.set(name);
        let index = set.take_present(|_| true)?;
        set.entries[index as usize].pins += 1;
        Some(FileId { set: name, index })
    }

    /// The next file that does not exist: from now on no other thread gets it.
    pub(super) fn take_absent(&mut self, name: SetName) -> Option<FileId> {
        let set = self.set(name);
        let index = FileSet::next(&set.absent, set.absent_rotor, |_| true)?;
        set.absent_rotor = index + 1;
        set.absent.remove(&index);
        set.entries[index as usize].state = State::Changing;
        Some(FileId { set: name, index })
    }

    /// The next file that exists and is not pinned: from now on no other thread gets it.
    pub(super) fn take_to_delete(&mut self, name: SetName) -> Option<FileId> {
        let set = self.set(name);
        let index = set.take_present(|entry| entry.pins == 0)?;
        Some(set.doom(name, index))
    }

    /// Any file that exists and `fits`, uniformly; pinned.
    pub(super) fn take_any(&mut self, name: SetName, rng: &mut Rng) -> Option<FileId> {
        let set = self.set(name);
        let index = set.any(rng, |_| true)?;
        set.entries[index as usize].pins += 1;
        Some(FileId { set: name, index })
    }

    /// Any file that exists and is not pinned, uniformly: from now on no other thread gets it.
    pub(super) fn take_any_to_delete(&mut self, name: SetName, rng: &mut Rng) -> Option<FileId> {
        let set = self.set(name);
        let index = set.any(rng, |entry| entry.pins == 0)?;
        Some(set.doom(name, index))
    }

    /// Gives a file that is going to be made a new name, directory and size.
    pub(super) fn renew(&mut self, id: FileId, parameters: &Parameters, rng: &mut Rng) {
        self.set(id.set).rename(id.index, parameters, rng);
    }

    /// The front of a file is going to be written.
    pub(super) fn cover(&mut self, id: FileId, bytes: u64) {
        let entry = self.entry(id);
        entry.length = entry.length.max(bytes);
    }

    /// A file was made, `length` bytes long; it is pinned by the thread that made it.
    pub(super) fn created(&mut self, id: FileId, length: u64) {
        let set = self.set(id.set);
        let entry = &mut set.entries[id.index as usize];
        assert!(entry.state == State::Changing, "a file was made that nobody had taken");
        entry.state = State::Present;
        entry.pins += 1;
        entry.length = length;
        set.present.insert(id.index);
    }

    /// A file was removed.
    pub(super) fn deleted(&mut self, id: FileId) {
        let set = self.set(id.set);
        let entry = &mut set.entries[id.index as usize];
        assert!(entry.state == State::Changing, "a file was removed that nobody had taken");
        assert!(entry.pins == 0, "a file was removed that is open");
        entry.state = State::Absent;
        set.absent.insert(id.index);
    }

    /// A file is not needed any more.
    pub(super) fn unpin(&mut self, id: FileId) {
        let entry = self.entry(id);
        assert!(entry.pins > 0, "a file was let go that nobody held");
        entry.pins -= 1;
    }
}

impl FileSet {
    fn doom(&mut self, set: SetName, index: u32) -> FileId {
        self.present.remove(&index);
        self.entries[index as usize].state = State::Changing;
        FileId { set, index }
    }

    fn any(&self, rng: &mut Rng, fits: impl Fn(&Entry) -> bool) -> Option<u32> {
        /// So many draws find one of a few among many; then the next one will do.
        const DRAWS: u32 = 200;
        let places = self.entries.len() as u64;
        let there = |index: u32| self.present.contains(&index) && fits(&self.entries[index as usize]);
        if self.present.is_empty() {
            return None;
        }
        for _ in 0..DRAWS {
            let index = below(rng, places) as u32;
            if there(index) {
                return Some(index);
            }
        }
        FileSet::next(&self.present, below(rng, places) as u32, there)
    }

    fn rename(&mut self, index: u32, parameters: &Parameters, rng: &mut Rng) {
        let sizes = SizeDistribution::Uniform { low: parameters.size_low, high: parameters.size_high };
        self.names += 1;
        let directory = below(rng, self.directories.len() as u64) as u32;
        let planned = parameters.aligned(sizes.draw(rng));
        let entry = &mut self.entries[index as usize];
        (entry.name, entry.directory, entry.planned) = (self.names, directory, planned);
    }
}
