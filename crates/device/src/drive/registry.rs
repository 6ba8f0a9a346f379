//! The policies and designs that a description can name, and how a name becomes one.

use ssdlab_base::COMMAND_SETS;

use super::DriveError;
use crate::DriveConfig;
use crate::buffer::{POLICIES as BUFFERS, WriteBuffer};
use crate::ftl::page::full_mask;
use crate::ftl::{DESIGNS, Ftl};
use crate::gc::victim::POLICIES as VICTIMS;
use crate::media::Media;

/// An empty write buffer, if the drive has one.
pub(super) fn make_buffer(
    config: &DriveConfig,
    media: &Media,
    ftl: &dyn Ftl,
) -> Result<Option<WriteBuffer>, DriveError> {
    let policy = pick("buffer.policy", &config.buffer.policy, BUFFERS)?;
    let full = full_mask(config.ftl.mapping_unit);
    let cell_bytes = media.flash.store.cell_bytes();
    Ok(policy.map(|policy| WriteBuffer::new(policy(config), config.buffer.bytes, cell_bytes, full, ftl.compacts())))
}

/// Finds a registered name, or says which there are.
pub(super) fn pick<T: Copy>(key: &str, name: &str, known: &[(&'static str, &'static str, T)]) -> Result<T, DriveError> {
    known.iter().find(|(known, ..)| *known == name).map(|(.., make)| *make).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(known, ..)| *known).collect();
        DriveError { key: key.to_string(), reason: format!("'{name}' is not known; there are {}", names.join(", ")) }
    })
}

/// A policy or design that a description can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The kind: `ftl.design`, `gc.victim`, `gc.pacing`, `buffer.policy`, `flash.scheduler`, `command set`.
    pub kind: &'static str,
    /// The name.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
}

/// All policies and designs, in a stable order.
pub fn registered() -> Vec<Registered> {
    fn rows<T>(
        kind: &'static str,
        known: &'static [(&'static str, &'static str, T)],
    ) -> impl Iterator<Item = Registered> {
        known.iter().map(move |(name, summary, _)| Registered { kind, name, summary })
    }
    const SCHEDULERS: &[(&str, &str, ())] = &[
        ("fifo", "operations of a die in order of arrival", ()),
        ("reads-first", "reads before programs and erases", ()),
        ("host-first", "the host's operations before GC's, with a starvation bound", ()),
    ];
    const PACINGS: &[(&str, &str, ())] = &[
        ("off", "collection from the moment a plane is short of free blocks until it is not", ()),
        ("proportional", "collection all the time, in proportion to what the host writes", ()),
    ];
    rows("ftl.design", DESIGNS)
        .chain(rows("gc.victim", VICTIMS))
        .chain(rows("gc.pacing", PACINGS))
        .chain(rows("buffer.policy", BUFFERS))
        .chain(rows("flash.scheduler", SCHEDULERS))
        .chain(COMMAND_SETS.iter().map(|set| Registered { kind: "command set", name: set.name, summary: set.summary }))
        .collect()
}
