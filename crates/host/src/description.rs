//! The description of a host: which rooms stand on a drive, from the top down.

use std::path::Path;

use serde::Deserialize;
use ssdlab_base::parse_size;
use ssdlab_device::Drive;

use crate::BlockDevice;
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    room: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Table {
    #[serde(rename = "scheduler")]
    Scheduler(SchedulerTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchedulerTable {
    #[serde(default = "default_depth")]
    depth: u32,
    #[serde(default = "default_merge")]
    merge_size: String,
}

const fn default_depth() -> u32 {
    32
}

fn default_merge() -> String {
    "512k".to_string()
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
    /// A sentence with file, line and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<Host, String> {
        let parsed: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            format!("{file}:{line}: {}", error.message())
        })?;
        let mut rooms = Vec::new();
        for (index, table) in parsed.room.into_iter().enumerate() {
            let Table::Scheduler(table) = table;
            let at = format!("{file}: room {}", index + 1);
            if !(1..=65536).contains(&table.depth) {
                return Err(format!("{at}: depth is {}, expected 1 to 65536", table.depth));
            }
            let merge_bytes = parse_size(&table.merge_size).map_err(|error| format!("{at}: merge_size: {error}"))?;
            rooms.push(Room::Scheduler(SchedulerConfig { depth: table.depth, merge_bytes }));
        }
        if rooms.is_empty() {
            let names: Vec<&str> = ROOMS.iter().map(|(name, _)| *name).collect();
            return Err(format!("{file}: no [[room]] in it; expected at least one, of kind {}", names.join(", ")));
        }
        Ok(Host { rooms })
    }

    /// Puts the rooms above a drive.
    pub fn above(&self, drive: Drive) -> Box<dyn BlockDevice> {
        let mut device: Box<dyn BlockDevice> = Box::new(drive);
        for room in self.rooms.iter().rev() {
            let Room::Scheduler(config) = room;
            device = Box::new(Scheduler::new(device, *config));
        }
        device
    }
}

#[cfg(test)]
mod tests {
    use super::Host;

    #[test]
    fn a_description_is_read_or_refused_with_its_line() {
        assert!(Host::parse("[[room]]\nkind = \"scheduler\"\ndepth = 4\n", "h.toml").is_ok());
        let refused = |text: &str| Host::parse(text, "h.toml").expect_err("it is wrong");
        assert!(refused("").contains("no [[room]]"));
        assert!(
            refused("[[room]]\nkind = \"elevator\"\n").starts_with("h.toml:"),
            "{}",
            refused("[[room]]\nkind = \"elevator\"\n")
        );
        assert!(refused("[[room]]\nkind = \"scheduler\"\ndepth = 0\n").contains("depth is 0, expected 1"));
        assert!(refused("[[room]]\nkind = \"scheduler\"\nmerge_size = \"x\"\n").contains("merge_size"));
        assert!(refused("[[room]]\nkind = \"scheduler\"\nqd = 3\n").contains("qd"));
    }
}
