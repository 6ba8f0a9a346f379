//! Drives and disks at the bottom: how a description names them.

use ssdlab_base::SECTOR_BYTES;
use ssdlab_device::description::{Default, DescriptionError, Errors, Field, Key, Kind, Place, Section};
use ssdlab_device::{Description, DriveConfig};
use ssdlab_disk::DiskConfig;

use super::Node;
use super::reading::layer;
use crate::UnknownDrive;

/// Finds descriptions by what a host's description calls them. A function that finds drives is one that knows no disks.
pub trait Names {
    /// The description of a drive.
    ///
    /// # Errors
    /// Why there is none, as a sentence.
    fn drive(&self, name: &str) -> Result<Description, UnknownDrive>;

    /// The description of a disk, TOML, and what messages call that text.
    ///
    /// # Errors
    /// Why there is none, as a sentence.
    fn disk(&self, name: &str) -> Result<(String, String), UnknownDrive> {
        Err(UnknownDrive(format!("'{name}' is no disk that is known here")))
    }
}

impl<F: Fn(&str) -> Result<Description, UnknownDrive>> Names for F {
    fn drive(&self, name: &str) -> Result<Description, UnknownDrive> {
        self(name)
    }
}

/// What is at the bottom of a stack.
#[derive(Clone, Debug)]
pub enum MemberConfig {
    /// A drive.
    Drive(Box<DriveConfig>),
    /// A disk.
    Disk(Box<DiskConfig>),
}

impl MemberConfig {
    pub(super) fn name(&self) -> &str {
        match self {
            MemberConfig::Drive(config) => &config.name,
            MemberConfig::Disk(config) => &config.name,
        }
    }

    /// The drive, if it is one.
    pub fn drive(&self) -> Option<&DriveConfig> {
        match self {
            MemberConfig::Drive(config) => Some(config),
            MemberConfig::Disk(_) => None,
        }
    }
}

/// The keys of a drive or a disk with a description of its own.
pub(super) const MEMBER: &[Key] = &[
    Key::new("drive", Kind::Text, Default::Means("the drive of the command"), "A name or a file, as for `--device`."),
    Key::new(
        "disk",
        Kind::Text,
        Default::Means("a drive"),
        "A hard disk: the name of one that ships, or a file (docs/disk.md).",
    )
    .instead_of("drive"),
    Key::new(
        "size",
        Kind::Size { least: SECTOR_BYTES, most: 1 << 50, step: SECTOR_BYTES },
        Default::Means("all of it"),
        "How much of the disk is used, from its first sector on.",
    ),
    Key::new("set", Kind::Text, Default::Means("none"), "A list of overrides of its description, as for `--set`."),
];

/// A device below a layer.
pub(super) fn device(field: &Field<'_>, names: &dyn Names, depth: usize, errors: &mut Errors) -> Option<Node> {
    if field.entry("kind").is_some() {
        return layer(field, names, depth, errors);
    }
    let keys = errors.keep(field.section_of(MEMBER.iter().collect()))?;
    keys.check_names(errors);
    match keys.get("disk") {
        Some(name) => errors.keep(disk(&keys, &name, names)).map(|config| Node::Disk(Box::new(config))),
        None => errors.keep(drive(&keys, names)),
    }
}

/// A disk, with overrides of its description.
fn disk(keys: &Section<'_>, name: &Field<'_>, names: &dyn Names) -> Result<DiskConfig, DescriptionError> {
    if let Some(drive) = keys.get("drive") {
        return Err(drive.expected("either drive or disk, not both"));
    }
    let expected = "the name of a disk that ships, or a file";
    let (text, file) = names.disk(name.text(expected)?).map_err(|why| name.expected(&format!("{expected} ({why})")))?;
    let mut sets = Vec::new();
    if let Some(set) = keys.get("set") {
        let expected = "a list of key=value, as for --set";
        sets =
            set.list(expected)?.iter().map(|one| one.text(expected).map(str::to_string)).collect::<Result<_, _>>()?;
    }
    let parsed = DiskConfig::parse(&text, &file, &sets);
    let refused = |why: DescriptionError| blamed(keys, name, &why).expected(&format!("a valid disk ({})", said(&why)));
    let mut config = parsed.map_err(refused)?;
    if let Some(size) = keys.get("size") {
        let sectors = keys.number("size")? / SECTOR_BYTES;
        if sectors > config.sectors {
            return Err(size.expected(&format!("at most the {} bytes of the disk", config.bytes())));
        }
        config.sectors = sectors;
    }
    Ok(config)
}

/// The drive of the command, or one with a description of its own.
fn drive(keys: &Section<'_>, names: &dyn Names) -> Result<Node, DescriptionError> {
    if let Some(size) = keys.get("size") {
        return Err(size.expected("nothing: only a disk has it, and a drive has capacity.user"));
    }
    let Some(name) = keys.get("drive") else {
        return match keys.get("set") {
            None => Ok(Node::Drive(None)),
            Some(set) => Err(set.expected("set beside drive, whose description it changes")),
        };
    };
    let expected = "the name of a drive that ships, or a file";
    let mut description =
        names.drive(name.text(expected)?).map_err(|why| name.expected(&format!("{expected} ({why})")))?;
    if let Some(set) = keys.get("set") {
        let expected = "a list of key=value, as for --set";
        for assignment in set.list(expected)? {
            let changed = description.set(assignment.text(expected)?);
            changed.map_err(|why| assignment.expected(&format!("a key and a value of the drive ({})", said(&why))))?;
        }
    }
    let refused = |why: &DescriptionError| blamed(keys, &name, why).expected(&format!("a valid drive ({})", said(why)));
    let config = description.resolve().map_err(|why| refused(&why))?;
    config.validate().map_err(|why| refused(&description.place(&why)))?;
    Ok(Node::Drive(Some(Box::new(config))))
}

/// What is to blame for an error of a description: the override that it names, and else any of them, since what the description
/// says itself was right before.
fn blamed<'a>(keys: &Section<'a>, name: &Field<'a>, error: &DescriptionError) -> Field<'a> {
    let Some(set) = keys.get("set") else { return name.clone() };
    let Place::Set { text, .. } = &error.place else { return set };
    let overrides = set.list("").unwrap_or_default();
    let named = overrides.into_iter().rev().find(|one| one.text("").is_ok_and(|one| one == text));
    named.unwrap_or(set)
}

/// An error of a drive's description inside another sentence: without its place where that is an override, which the
/// sentence points at itself.
fn said(error: &DescriptionError) -> String {
    let first = DescriptionError { others: Vec::new(), ..error.clone() };
    let first = match &error.place {
        Place::Set { .. } if error.key.is_empty() => first.reason,
        Place::Set { .. } => format!("{}: {}", first.key, first.reason),
        Place::File { .. } | Place::Whole { .. } => first.to_string(),
    };
    match error.others.len() {
        0 => first,
        1 => format!("{first}; and 1 other error"),
        others => format!("{first}; and {others} other errors"),
    }
}
