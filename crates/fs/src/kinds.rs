//! The kinds of file systems that there are: a line of [`KINDS`] each (docs/adding-a-design.md, "A file system").

use ssdlab_base::CommandSet;
use ssdlab_base::command_sets::segments::SEGMENTS;
use ssdlab_device::description::{DescriptionError, Errors, Key, Section, Tree};

use crate::config::{self, MakeOptions, Options};

/// Every kind of file system.
pub const KINDS: &[FileSystemKind] = &[FileSystemKind {
    name: "alfs",
    summary: "AMF's log-structured file system on append-only segments (Lee et al., FAST 2016)",
    keys: config::KEYS,
    command_set: Some(&SEGMENTS),
}];

/// What the registry knows of a kind of file system.
#[derive(Debug)]
pub struct FileSystemKind {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// The command set that the drive must have; `None` for block I/O.
    pub command_set: Option<&'static CommandSet>,
}

impl FileSystemKind {
    /// The kind of a name.
    ///
    /// # Errors
    /// There is none: what was found and what was expected.
    pub fn of_name(name: &str) -> Result<&'static FileSystemKind, UnknownKind> {
        KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| UnknownKind {
            found: name.to_string(),
            expected: KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(" or "),
        })
    }

    /// Reads its keys from TOML, one `key = value` a line; `file` is what errors call the text.
    ///
    /// # Errors
    /// Everything that is wrong: key, what was found and what was expected.
    pub fn read(&self, text: &str, file: &str) -> Result<(MakeOptions, Options), DescriptionError> {
        self.read_tree(&Tree::parse(text, file)?)
    }

    /// Reads its keys from overrides `key=value` that the option `option` gave.
    ///
    /// # Errors
    /// Everything that is wrong: override, what was found and what was expected.
    pub fn read_overrides(
        &self,
        overrides: &[String],
        option: &'static str,
    ) -> Result<(MakeOptions, Options), DescriptionError> {
        self.read_tree(&Tree::of_overrides(overrides, option, self.keys)?)
    }

    fn read_tree(&self, tree: &Tree) -> Result<(MakeOptions, Options), DescriptionError> {
        let mut errors = Errors::default();
        let section = Section::root(tree, self.keys);
        section.check(&mut errors);
        let read = errors.keep(config::read(&section));
        errors.into_result(tree)?;
        Ok(read.unwrap_or_default())
    }
}

/// A name that is that of no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found the file system '{found}', expected {expected}")]
pub struct UnknownKind {
    /// The name.
    pub found: String,
    /// The names that there are.
    pub expected: String,
}
