//! What a host of a file system asks, as data and as text.
//!
//! ```text
//! create /d/a                      a file; mkdir, unlink, rmdir, lookup, open, close, stat, fsync and fdatasync likewise
//! rename /d/a /b no-replace
//! list /d 5                        the first 5 names; `list /d 5 on` those behind the last that were listed
//! write /b 100+5000 direct dsync   5,000 bytes from byte 100 on; `sync` for O_SYNC
//! append /b 300                    at its end
//! read /b 0+4096
//! truncate /b 10
//! sync
//! statfs
//! drop-caches                      what the drive has leaves the cache
//! remount                          it is unmounted, checked, mounted and compared
//! write /b 0+8 depth=16            when fewer than 16 calls are in flight
//! ```
//!
//! A path has `%` and two digits for a byte that is not plain, and `NAME*LENGTH` for a name that goes on to that length. A path that leads
//! nowhere, or nowhere any more, stands for the file that it led to last.

use std::fmt;

use ssdlab_fs::call::Sync;

use crate::script::ScriptError;
use crate::step::{Command, Words};

/// Names from the root on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(pub Vec<Vec<u8>>);

impl Path {
    /// A path of plain names.
    pub fn of(names: &[&str]) -> Path {
        Path(names.iter().map(|name| name.as_bytes().to_vec()).collect())
    }

    /// Another name behind it.
    #[must_use]
    pub fn with(&self, name: &[u8]) -> Path {
        let mut names = self.0.clone();
        names.push(name.to_vec());
        Path(names)
    }

    /// The directory that it is in, and its name there; `None` of the root.
    pub fn split(&self) -> Option<(Path, &[u8])> {
        let (name, above) = self.0.split_last()?;
        Some((Path(above.to_vec()), name))
    }

    fn parse(text: &str) -> Option<Path> {
        let rest = text.strip_prefix('/')?;
        if rest.is_empty() {
            return Some(Path::default());
        }
        rest.split('/').map(parse_name).collect::<Option<Vec<Vec<u8>>>>().map(Path)
    }
}

fn parse_name(text: &str) -> Option<Vec<u8>> {
    let (base, length) = match text.split_once('*') {
        Some((base, length)) => (base, Some(length.parse::<usize>().ok().filter(|length| *length <= 1000)?)),
        None => (text, None),
    };
    let mut name = Vec::new();
    let mut bytes = base.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            name.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            name.push(byte);
        }
    }
    if let Some(length) = length {
        name.resize(length.max(name.len()), LONG);
    }
    Some(name)
}

/// What a long name goes on with.
const LONG: u8 = b'~';

impl fmt::Display for Path {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(to, "/");
        }
        for name in &self.0 {
            write!(to, "/")?;
            let end = name.iter().rposition(|byte| *byte != LONG).map_or(0, |last| last + 1);
            for byte in &name[..end] {
                let is_plain = byte.is_ascii_graphic() && !matches!(byte, b'%' | b'*' | b'/' | b'"' | b'\\');
                if is_plain { write!(to, "{}", char::from(*byte))? } else { write!(to, "%{byte:02x}")? }
            }
            if end < name.len() || name.is_empty() {
                write!(to, "*{}", name.len())?;
            }
        }
        Ok(())
    }
}

/// A call, when fewer than `depth` are in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCall {
    /// What is asked.
    pub kind: Kind,
    /// How many may be in flight, this one included.
    pub depth: u32,
}

/// Calls with one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simple {
    /// Makes a file.
    Create,
    /// Makes a directory.
    Mkdir,
    /// Removes the name of a file.
    Unlink,
    /// Removes a directory.
    Rmdir,
    /// Finds a name.
    Lookup,
    /// Opens.
    Open,
    /// Closes.
    Close,
    /// Asks for attributes.
    Stat,
    /// Makes a file or directory durable.
    Fsync,
    /// Makes the data of a file durable.
    Fdatasync,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call with one path.
    Simple(Simple, Path),
    /// Gives another name.
    Rename {
        /// The old name.
        from: Path,
        /// The new name.
        to: Path,
        /// An existing new name is refused.
        no_replace: bool,
    },
    /// Lists names.
    List {
        /// The directory.
        directory: Path,
        /// Most names.
        most: u32,
        /// Behind those that were listed last.
        goes_on: bool,
    },
    /// Reads bytes.
    Read {
        /// The file.
        file: Path,
        /// First byte.
        offset: u64,
        /// How many.
        length: u32,
        /// Past the cache.
        is_direct: bool,
    },
    /// Writes bytes; without an offset at the end.
    Write {
        /// The file.
        file: Path,
        /// First byte.
        offset: Option<u64>,
        /// How many.
        length: u32,
        /// Past the cache.
        is_direct: bool,
        /// When it is answered.
        sync: Sync,
    },
    /// Sets the size.
    Truncate {
        /// The file.
        file: Path,
        /// Its size.
        size: u64,
    },
    /// Makes everything durable.
    Sync,
    /// Asks for the space.
    StatFs,
    /// What the drive has leaves the cache.
    DropCaches,
    /// Unmounts, checks, mounts and compares.
    Remount,
}

const SIMPLE: [(&str, Simple); 10] = [
    ("create", Simple::Create),
    ("mkdir", Simple::Mkdir),
    ("unlink", Simple::Unlink),
    ("rmdir", Simple::Rmdir),
    ("lookup", Simple::Lookup),
    ("open", Simple::Open),
    ("close", Simple::Close),
    ("stat", Simple::Stat),
    ("fsync", Simple::Fsync),
    ("fdatasync", Simple::Fdatasync),
];

const PLAIN: [(&str, Kind); 4] =
    [("sync", Kind::Sync), ("statfs", Kind::StatFs), ("drop-caches", Kind::DropCaches), ("remount", Kind::Remount)];

impl FileCall {
    /// A call that waits for all before it.
    pub const fn alone(kind: Kind) -> FileCall {
        FileCall { kind, depth: 1 }
    }
}

impl fmt::Display for FileCall {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direct = |is_direct: bool| if is_direct { " direct" } else { "" };
        match &self.kind {
            Kind::Simple(simple, path) => write!(to, "{} {path}", crate::step::name_of(&SIMPLE, simple))?,
            Kind::Rename { from, to: new, no_replace } => {
                write!(to, "rename {from} {new}{}", if *no_replace { " no-replace" } else { "" })?;
            }
            Kind::List { directory, most, goes_on } => {
                write!(to, "list {directory} {most}{}", if *goes_on { " on" } else { "" })?;
            }
            Kind::Read { file, offset, length, is_direct } => {
                write!(to, "read {file} {offset}+{length}{}", direct(*is_direct))?;
            }
            Kind::Write { file, offset, length, is_direct, sync } => {
                match offset {
                    Some(offset) => write!(to, "write {file} {offset}+{length}")?,
                    None => write!(to, "append {file} {length}")?,
                }
                write!(to, "{}", direct(*is_direct))?;
                match sync {
                    Sync::No => {}
                    Sync::Data => write!(to, " dsync")?,
                    Sync::All => write!(to, " sync")?,
                }
            }
            Kind::Truncate { file, size } => write!(to, "truncate {file} {size}")?,
            plain => write!(to, "{}", crate::step::name_of(&PLAIN, plain))?,
        }
        if self.depth == 1 { Ok(()) } else { write!(to, " depth={}", self.depth) }
    }
}

fn path(words: &mut Words<'_>) -> Result<Path, ScriptError> {
    words.next().and_then(Path::parse).ok_or_else(|| words.expected("a path such as /d/a"))
}

impl Command for FileCall {
    fn parse(first: &str, words: &mut Words<'_>) -> Result<Option<FileCall>, ScriptError> {
        let mut kind = if let Some((_, simple)) = SIMPLE.iter().find(|(name, _)| *name == first) {
            Kind::Simple(*simple, path(words)?)
        } else if let Some((_, plain)) = PLAIN.iter().find(|(name, _)| *name == first) {
            plain.clone()
        } else {
            match first {
                "rename" => Kind::Rename { from: path(words)?, to: path(words)?, no_replace: false },
                "list" => Kind::List {
                    directory: path(words)?,
                    most: words.number("a number of names behind the path")?,
                    goes_on: false,
                },
                "read" => {
                    let file = path(words)?;
                    let (offset, length) = range(words)?;
                    Kind::Read { file, offset, length, is_direct: false }
                }
                "write" => {
                    let file = path(words)?;
                    let (offset, length) = range(words)?;
                    Kind::Write { file, offset: Some(offset), length, is_direct: false, sync: Sync::No }
                }
                "append" => {
                    let file = path(words)?;
                    let length = words.number("a number of bytes behind the path")?;
                    Kind::Write { file, offset: None, length, is_direct: false, sync: Sync::No }
                }
                "truncate" => Kind::Truncate { file: path(words)?, size: words.number("a size behind the path")? },
                _ => return Ok(None),
            }
        };
        let mut depth = 1;
        while let Some(word) = words.next() {
            match (word, &mut kind) {
                ("direct", Kind::Read { is_direct, .. } | Kind::Write { is_direct, .. }) => *is_direct = true,
                ("dsync", Kind::Write { sync, .. }) => *sync = Sync::Data,
                ("sync", Kind::Write { sync, .. }) => *sync = Sync::All,
                ("no-replace", Kind::Rename { no_replace, .. }) => *no_replace = true,
                ("on", Kind::List { goes_on, .. }) => *goes_on = true,
                _ => {
                    let number = word.strip_prefix("depth=").and_then(|number| number.parse().ok());
                    let expected = "depth=N (1 to 1024), or a word of the call, at the end";
                    depth =
                        number.filter(|depth| (1..=1024).contains(depth)).ok_or_else(|| words.expected(expected))?;
                }
            }
        }
        Ok(Some(FileCall { kind, depth }))
    }

    fn plainer(&self) -> Vec<FileCall> {
        let FileCall { kind, depth } = self;
        let mut forms = vec![FileCall { kind: kind.clone(), depth: 1 }];
        let mut with = |kind: Kind| forms.push(FileCall { kind, depth: *depth });
        match kind {
            Kind::Rename { from, to, no_replace: true } => {
                with(Kind::Rename { from: from.clone(), to: to.clone(), no_replace: false });
            }
            Kind::List { directory, most, goes_on: true } => {
                with(Kind::List { directory: directory.clone(), most: *most, goes_on: false });
            }
            Kind::Read { file, offset, length, is_direct } => {
                let (file, offset, length) = (file.clone(), *offset, *length);
                let read = |offset, length, is_direct| Kind::Read { file: file.clone(), offset, length, is_direct };
                with(read(offset, length, false));
                with(read(0, length, *is_direct));
                with(read(offset, length / 2, *is_direct));
            }
            Kind::Write { file, offset, length, is_direct, sync } => {
                let write = |offset, length, is_direct, sync| Kind::Write {
                    file: file.clone(),
                    offset,
                    length,
                    is_direct,
                    sync,
                };
                with(write(*offset, *length, *is_direct, Sync::No));
                with(write(*offset, *length, false, *sync));
                with(write(offset.map(|_| 0), *length, *is_direct, *sync));
                with(write(offset.map(|offset| offset / 4096 * 4096), *length, *is_direct, *sync));
                with(write(*offset, (*length).min(1), *is_direct, *sync));
                with(write(*offset, (*length).min(4096), *is_direct, *sync));
                with(write(*offset, length / 2, *is_direct, *sync));
            }
            Kind::Truncate { file, size } => {
                with(Kind::Truncate { file: file.clone(), size: 0 });
                with(Kind::Truncate { file: file.clone(), size: size / 4096 * 4096 });
            }
            Kind::Remount => with(Kind::Sync),
            Kind::Simple(Simple::Fdatasync, path) => with(Kind::Simple(Simple::Fsync, path.clone())),
            _ => {}
        }
        forms
    }
}

fn range(words: &mut Words<'_>) -> Result<(u64, u32), ScriptError> {
    let expected = "bytes such as 100+5000, at most 4294967295 of them";
    let (offset, length) = words.range(expected)?;
    Ok((offset, u32::try_from(length).map_err(|_| words.expected(expected))?))
}

/// Bytes that no other write brings, none of them zero.
pub(super) fn pattern(serial: u32, length: u32) -> Vec<u8> {
    let mut word = u64::from(serial).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = Vec::with_capacity(length as usize + 8);
    while bytes.len() < length as usize {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        bytes.extend_from_slice(&((word ^ word >> 29) | 0x0101_0101_0101_0101).to_le_bytes());
    }
    bytes.truncate(length as usize);
    bytes
}

#[cfg(test)]
mod tests {
    use crate::files::{FileScope, Files};
    use crate::step::tests::{check_files, check_text};

    #[test]
    fn steps_are_text() {
        let right = [
            "create /d/a",
            "fdatasync / depth=64",
            "mkdir /a%20b/n*255",
            "lookup /d/*0",
            "create /a%2fb",
            "rename /a /d/b no-replace depth=2",
            "list /d 5 on",
            "read /a 100+5000 direct",
            "write /a 4096+8192 direct sync depth=8",
            "append /a 300 dsync",
            "truncate /a 10",
            "sync",
            "statfs depth=4",
            "drop-caches",
            "remount",
            "run 12",
            "pass 350ns",
            "drain",
            "fail program block=4",
            "crash 40% compare",
            "cut all job=cleaning:5 40% recovery=30% mount=7 mount=0 compare",
            "cut drive=0 after=3 recovery=erase:1",
        ];
        let wrong = [
            "",
            "create",
            "create a",
            "create /a b",
            "rename /a",
            "list /a",
            "read /a",
            "read /a 5",
            "read /a 0+4294967296",
            "write /a 0+5 depth=0",
            "write /a 0+5 on",
            "append /a",
            "truncate /a x",
            "sync /a",
            "cut",
            "cut all job=cleaning",
            "cut all job=walking:5",
            "cut all mount=1 mount=2 mount=3",
            "fail read drive=1",
        ];
        check_text::<Files>(&right, &wrong);
        check_files(0..30, |_| FileScope::new("alfs", "logs = 4\n", 60).expect("a kind"), false);
    }
}
