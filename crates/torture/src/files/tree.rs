//! The tree that is on a file system, as its own calls show it.

use std::collections::BTreeSet;

use ssdlab_base::Nanos;
use ssdlab_fs::{Answer, Call, Errno, FileId, FileKind, FileSystem, ROOT, Reply};

use super::model::Names;

/// Attempts to read what cannot be read: a read that failed may succeed the next time.
const READS: u32 = 5;

/// Names of one part of a listing.
const LISTED: u32 = 100;

/// Most directories and files of a tree.
const MOST: usize = 100_000;

/// What names lead to.
pub(super) struct Tree {
    /// Directories, each with the one that it is in, and its names.
    pub(super) directories: Vec<(FileId, Option<FileId>, Names)>,
    /// Files with their sizes.
    pub(super) files: Vec<(FileId, u64)>,
}

/// Runs one call to its end.
pub(super) fn ask(fs: &mut FileSystem, call: Call) -> Answer {
    let text = super::model::describe(&call);
    assert!(fs.answers().is_empty(), "answers are taken before {text}");
    fs.submit(call, u32::MAX);
    // A day: timers of the file system's own go on for ever.
    let until = Nanos(fs.now().0.saturating_add(86_400_000_000_000));
    let is_there = fs.run_to_completion(until);
    assert!(is_there, "{text} never ends; read-only: {:?}", fs.read_only_reason());
    fs.answers().pop().expect("an answer is there")
}

/// Reads bytes; what cannot be read is tried again.
pub(super) fn read(fs: &mut FileSystem, file: FileId, offset: u64, length: u32) -> Result<Vec<u8>, Errno> {
    for attempt in 1..=READS {
        match ask(fs, Call::Read { file, offset, length, is_direct: false }).result {
            Ok(Reply::Read { data, .. }) => return Ok(data),
            Err(Errno::Io) if attempt < READS => {}
            Err(errno) => return Err(errno),
            Ok(other) => panic!("a read is answered with {other:?}"),
        }
    }
    Err(Errno::Io)
}

impl Tree {
    /// Reads all directories, and the size of each file.
    ///
    /// # Errors
    /// A directory or inode cannot be read.
    pub(super) fn read(fs: &mut FileSystem) -> Result<Tree, Errno> {
        let mut tree = Tree { directories: Vec::new(), files: Vec::new() };
        let (mut waiting, mut seen) = (vec![(ROOT, None)], BTreeSet::new());
        while let Some((directory, parent)) = waiting.pop() {
            assert!(seen.insert(directory), "directory {directory} has two names");
            let mut names = Names::new();
            let mut position = 0;
            loop {
                let (entries, is_end) = match ask(fs, Call::List { directory, position, most: LISTED }).result? {
                    Reply::Listed { entries, is_end } => (entries, is_end),
                    other => panic!("a listing is answered with {other:?}"),
                };
                for entry in entries {
                    let lookup = Call::Lookup { directory, name: entry.name.clone() };
                    let found = match ask(fs, lookup).result? {
                        Reply::Found(found) => found,
                        other => panic!("a lookup is answered with {other:?}"),
                    };
                    let is_same = found.kind == entry.kind && found.file.number == entry.number;
                    assert!(is_same, "a listing of {directory} says {entry:?}, a lookup {found:?}");
                    match found.kind {
                        FileKind::Directory => waiting.push((found.file, Some(directory))),
                        FileKind::File => {
                            assert!(seen.insert(found.file), "file {} has two names", found.file);
                            tree.files.push((found.file, found.size));
                        }
                    }
                    assert!(seen.len() < MOST, "a tree of {MOST} files and directories");
                    position = entry.next;
                    names.insert(entry.name, found.file);
                }
                if is_end {
                    break;
                }
            }
            tree.directories.push((directory, parent, names));
        }
        Ok(tree)
    }
}
