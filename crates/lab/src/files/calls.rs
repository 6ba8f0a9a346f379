//! A call of a workload, as calls of the file system one after the other.
//!
//! ```text
//!   open a/b/c   ->  lookup a, lookup b, lookup c, open
//!   read 3 MB    ->  read 1 MB, read 1 MB, read 1 MB
//! ```
//!
//! Names are looked up each time, from the root. The file system finds them in the blocks of directories that are in its cache: so
//! names share its budget with pages and nodes, and nothing here knows more than its caller.

use ssdlab_fs::call::{MOST_BYTES, WriteMode};
use ssdlab_fs::{Call, Content, FileId, ROOT, Reply};

/// How files are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Access {
    /// Reads bypass the cache.
    pub(super) is_direct: bool,
    /// How writes go to the drive.
    pub(super) mode: WriteMode,
}

/// What is done with the last name of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A file is made and opened.
    Create,
    /// A directory is made.
    Mkdir,
    /// A file is found and opened.
    Open,
    /// A file loses its name.
    Unlink,
    /// Attributes are asked for.
    Stat,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    Write,
    Append,
}

/// A call of a workload on its way.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Finds the directories of a path, and does something with its last name.
    Named { path: Box<[u8]>, at: usize, directory: FileId, act: Named },
    /// Opens what was found or made.
    Open(FileId),
    /// Moves bytes.
    Move { file: FileId, way: Way, offset: u64, left: u64, moved: u64, access: Access },
    /// One call, whatever it is.
    One(Call),
}

/// What comes of an answer.
pub(super) enum Next {
    /// Another call follows.
    Goes(Work),
    /// It is done: bytes that it moved, and the file that it opened.
    Ends { moved: u64, opened: Option<FileId> },
}

impl Work {
    /// Something that is done with a path.
    pub(super) fn named(path: &str, act: Named) -> Work {
        Work::Named { path: path.as_bytes().into(), at: 0, directory: ROOT, act }
    }

    /// Bytes that are moved from an offset on; appends have none.
    pub(super) const fn moving(file: FileId, way: Way, offset: u64, bytes: u64, access: Access) -> Work {
        Work::Move { file, way, offset, left: bytes, moved: 0, access }
    }

    /// Bytes that the host copies before the next call: those that a write brings.
    pub(super) fn copied_before(&self) -> u64 {
        match self {
            Work::Move { way: Way::Write | Way::Append, left, access, .. } if !access.mode.is_direct => {
                (*left).min(MOST_BYTES.into())
            }
            _ => 0,
        }
    }

    /// Bytes that the host copies behind a call that moved so many: those that a read brought.
    pub(super) const fn copied_behind(&self, moved: u64) -> u64 {
        match self {
            Work::Move { way: Way::Read, access, .. } if !access.is_direct => moved,
            _ => 0,
        }
    }

    /// The next call; `stamp` is what a write brings, where the drive keeps stamps.
    pub(super) fn call(&self, stamp: Option<u64>) -> Call {
        match self {
            Work::Named { path, at, directory, act } => {
                let directory = *directory;
                let rest = &path[*at..];
                match (rest.iter().position(|byte| *byte == b'/'), act) {
                    (Some(end), _) => Call::Lookup { directory, name: rest[..end].to_vec() },
                    (None, Named::Create) => Call::Create { directory, name: rest.to_vec() },
                    (None, Named::Mkdir) => Call::Mkdir { directory, name: rest.to_vec() },
                    (None, Named::Open | Named::Stat) => Call::Lookup { directory, name: rest.to_vec() },
                    (None, Named::Unlink) => Call::Unlink { directory, name: rest.to_vec() },
                }
            }
            Work::Open(file) => Call::Open { file: *file },
            Work::Move { file, way, offset, left, access, .. } => {
                let (file, length, mode) = (*file, (*left).min(MOST_BYTES.into()) as u32, access.mode);
                let content = stamp.map_or(Content::Nothing, Content::Stamp);
                match way {
                    Way::Read => Call::Read { file, offset: *offset, length, is_direct: access.is_direct },
                    Way::Write => Call::Write { file, offset: *offset, length, content, mode },
                    Way::Append => Call::Append { file, length, content, mode },
                }
            }
            Work::One(call) => call.clone(),
        }
    }

    /// What follows a reply.
    pub(super) fn replied(self, reply: &Reply) -> Next {
        let done = |opened| Next::Ends { moved: 0, opened };
        match self {
            Work::Named { path, at, act, .. } => {
                let found = if let Reply::Found(found) = reply { Some(found.file) } else { None };
                match (path[at..].iter().position(|byte| *byte == b'/'), found, act) {
                    (Some(end), Some(directory), _) => {
                        Next::Goes(Work::Named { path, at: at + end + 1, directory, act })
                    }
                    (None, Some(file), Named::Create | Named::Open) => Next::Goes(Work::Open(file)),
                    _ => done(None),
                }
            }
            Work::Open(file) => done(Some(file)),
            Work::Move { file, way, offset, left, moved, access } => {
                let asked = left.min(MOST_BYTES.into());
                let now = if let Reply::Read { length, .. } = reply { u64::from(*length) } else { asked };
                let (left, moved) = (left - asked, moved + now);
                // A read that finds less has met the end of the file.
                if left == 0 || now < asked {
                    return Next::Ends { moved, opened: None };
                }
                Next::Goes(Work::Move { file, way, offset: offset + now, left, moved, access })
            }
            Work::One(_) => done(None),
        }
    }
}

/// A call as a verb, for errors.
pub(super) const fn verb(call: &Call) -> &'static str {
    match call {
        Call::Lookup { .. } => "look up",
        Call::Create { .. } => "create",
        Call::Mkdir { .. } => "make the directory",
        Call::Unlink { .. } => "remove",
        Call::Rmdir { .. } => "remove the directory",
        Call::Rename { .. } => "rename",
        Call::List { .. } => "list",
        Call::Open { .. } => "open",
        Call::Close { .. } => "close",
        Call::Read { .. } => "read",
        Call::Write { .. } => "write",
        Call::Append { .. } => "append to",
        Call::Truncate { .. } => "truncate",
        Call::Stat { .. } => "ask for",
        Call::StatFs => "ask for the space of",
        Call::Fsync { .. } | Call::Fdatasync { .. } | Call::Sync => "sync",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdlab_fs::FileKind;
    use ssdlab_fs::call::Attributes;

    fn found(number: u32) -> Reply {
        let file = FileId { number, generation: 1 };
        let (kind, modified, changed) = (FileKind::File, Default::default(), Default::default());
        Reply::Found(Attributes { file, kind, size: 0, blocks: 0, links: 1, modified, changed })
    }

    fn names(path: &str, act: Named, last: &Reply) -> Vec<String> {
        let (mut work, mut calls, mut number) = (Work::named(path, act), Vec::new(), 2);
        loop {
            let call = work.call(None);
            calls.push(format!("{call:?}").split(' ').next().unwrap_or_default().to_string());
            let reply =
                if matches!(call, Call::Open { .. } | Call::Unlink { .. }) { last.clone() } else { found(number) };
            number += 1;
            match work.replied(&reply) {
                Next::Goes(next) => work = next,
                Next::Ends { .. } => return calls,
            }
        }
    }

    #[test]
    fn a_path_is_looked_up_name_by_name() {
        assert_eq!(names("a/b/c", Named::Open, &Reply::Done), ["Lookup", "Lookup", "Lookup", "Open"]);
        assert_eq!(names("c", Named::Create, &Reply::Done), ["Create", "Open"]);
        assert_eq!(names("a/c", Named::Unlink, &Reply::Done), ["Lookup", "Unlink"]);
        assert_eq!(names("a/c", Named::Stat, &Reply::Done), ["Lookup", "Lookup"]);
    }

    #[test]
    fn what_is_longer_than_a_call_is_several_and_ends_with_the_file() {
        let file = FileId { number: 2, generation: 1 };
        let mut work = Work::moving(file, Way::Read, 4096, 5 << 20, Access::default());
        for length in [1 << 20, 1 << 20] {
            assert!(matches!(work.call(None), Call::Read { length: MOST_BYTES, .. }));
            let Next::Goes(next) = work.replied(&Reply::Read { length, data: Vec::new() }) else {
                panic!("it goes on")
            };
            work = next;
        }
        assert!(matches!(work.call(None), Call::Read { offset, .. } if offset == 4096 + (2 << 20)));
        let Next::Ends { moved, .. } = work.replied(&Reply::Read { length: 100, data: Vec::new() }) else {
            panic!("it ends")
        };
        assert_eq!(moved, (2 << 20) + 100);
    }
}
