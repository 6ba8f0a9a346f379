//! The description of a host: which rooms stand on a drive, from the top down.

use std::path::Path;

use ssdlab_base::SECTOR_BYTES;
use ssdlab_device::Drive;
use ssdlab_device::description::{Default, DescriptionError, Family, Field, Key, Kind, Section, Tree};

use crate::Device;
use crate::scheduler::{self, Scheduler, SchedulerConfig};

/// Every host room: name and summary.
pub const ROOMS: &[(&str, &str)] =
    &[(scheduler::KIND, "the block layer's simplest I/O scheduler: first come, first served, neighbours merged")];

/// What stands above a drive.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Host {
    rooms: Vec<Room>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Room {
    Scheduler(SchedulerConfig),
}

const EXPECTED: &str = "a [[room]] for each room, at least one";

/// Every key of a host's description.
pub const KEYS: &[Key] = &[Key::new(
    "room",
    Kind::Tables(ROOM, Some(&KINDS)),
    Default::Required(EXPECTED),
    "A table for each room, the topmost first.",
)];

const ROOM: &[Key] = &[Key::new("kind", Kind::Word(kinds), Default::Required("one of them"), "Which room it is.")];

static KINDS: Family = Family { key: "kind", members: || vec![(scheduler::KIND, scheduler::KEYS)], expands_all: false };

fn kinds() -> Vec<&'static str> {
    ROOMS.iter().map(|(name, _)| *name).collect()
}

impl Host {
    /// Reads a description: TOML with a `[[room]]` for each room, the topmost first.
    ///
    /// # Errors
    /// A sentence with file, line and what was expected.
    pub fn load(path: &Path) -> Result<Host, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Host::parse(&text, &path.display().to_string())
    }

    /// The same, of a text; `file` is what errors call it.
    ///
    /// # Errors
    /// A sentence with file, line, column and key, what was found and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<Host, String> {
        Tree::parse(text, file).and_then(|tree| read(&tree)).map_err(|error| error.to_string())
    }

    /// Puts the rooms above a drive.
    pub fn above(&self, drive: Drive) -> Box<dyn Device> {
        let mut device: Box<dyn Device> = Box::new(drive);
        for room in self.rooms.iter().rev() {
            let Room::Scheduler(config) = room;
            device = Box::new(Scheduler::new(device, *config));
        }
        device
    }
}

fn read(tree: &Tree) -> Result<Host, DescriptionError> {
    let list = Section::root(tree, KEYS)?.require("room")?;
    let rooms = list.list(EXPECTED)?;
    if rooms.is_empty() {
        return Err(list.expected(EXPECTED));
    }
    Ok(Host { rooms: rooms.iter().map(room).collect::<Result<_, _>>()? })
}

/// A room: its kind says which keys it has.
fn room(field: &Field<'_>) -> Result<Room, DescriptionError> {
    let kind = match field.entry("kind") {
        Some(kind) => kind.name(&kinds())?,
        None => return Err(field.section()?.missing("kind", &kinds().join(", "))),
    };
    let keys = field.section_of(ROOM.iter().chain(KINDS.keys_of(kind)).collect())?;
    let depth = keys.count("depth")?;
    let merge_bytes = match keys.get("merge_size") {
        None => keys.number("merge_size")?,
        Some(size) => match size.size()? {
            bytes if bytes.is_multiple_of(SECTOR_BYTES) => bytes,
            _ => return Err(size.expected("whole sectors of 512 bytes, or 0 to merge nothing")),
        },
    };
    Ok(Room::Scheduler(SchedulerConfig { depth, merge_bytes }))
}

#[cfg(test)]
mod tests {
    use super::Host;

    #[test]
    fn a_description_is_read_or_refused_with_its_line() {
        assert!(Host::parse("[[room]]\nkind = \"scheduler\"\ndepth = 4\n", "h.toml").is_ok());
        let refused = |text: &str| Host::parse(text, "h.toml").expect_err("it is wrong");
        for (text, expected) in [
            ("", "h.toml: room: missing, expected a [[room]] for each room"),
            ("room = []\n", "h.toml:1:8: room: found a list of 0, expected a [[room]]"),
            ("[room]\nkind = \"scheduler\"\n", "h.toml:1:1: room: found a table, expected a [[room]]"),
            ("[[room]]\nkind = \"schedular\"\n", "h.toml:2:8: room[0].kind: found \"schedular\", expected scheduler"),
            ("[[room]]\nkind = 3\n", "h.toml:2:8: room[0].kind: found 3, expected scheduler"),
            ("[[room]]\ndepth = 3\n", "room[0].kind: missing, expected scheduler"),
            (
                "[[room]]\nkind = \"scheduler\"\n[[room]]\nkind = \"scheduler\"\ndepht = 4\n",
                "h.toml:5:1: room[1].depht: found an unknown key, expected one of kind, depth or merge_size; did you mean 'depth'?",
            ),
            (
                "[[room]]\nkind = \"scheduler\"\ndepth = -1\n",
                "h.toml:3:9: room[0].depth: found -1, expected a whole number",
            ),
            (
                "[[room]]\nkind = \"scheduler\"\nmerge_size = \"100\"\n",
                "h.toml:3:14: room[0].merge_size: found \"100\"",
            ),
            ("nonsense\n", "h.toml:1:"),
        ] {
            let found = refused(text);
            assert!(found.contains(expected), "{text:?}: {found}");
        }
    }
}
