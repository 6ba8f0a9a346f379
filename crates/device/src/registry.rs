//! The policies and designs that a description can name.
//!
//! Each is an [`Entry`] in its own file and one line in the table of its kind.

use ssdlab_base::COMMAND_SETS;

use crate::DriveError;
use crate::buffer::POLICIES as BUFFERS;
use crate::description::Key;
use crate::ftl::DESIGNS;
use crate::gc::victim::POLICIES as VICTIMS;

/// A policy or design of one kind, as its own file declares it.
pub(crate) struct Entry<T: 'static> {
    /// The name a description uses.
    pub(crate) name: &'static str,
    /// What it does, in one line.
    pub(crate) summary: &'static str,
    /// Keys of its section that are read only where it is chosen.
    pub(crate) keys: &'static [Key],
    /// How it is made.
    pub(crate) make: T,
}

/// Finds a registered name, or says which there are.
pub(crate) fn pick<T>(key: &str, name: &str, known: &'static [Entry<T>]) -> Result<&'static T, DriveError> {
    known.iter().find(|entry| entry.name == name).map(|entry| &entry.make).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|entry| entry.name).collect();
        DriveError { key: key.to_string(), reason: format!("'{name}' is not known; there are {}", names.join(", ")) }
    })
}

/// The names of one kind, each with the keys that are its own.
pub(crate) fn keys<T>(known: &'static [Entry<T>]) -> Vec<(&'static str, &'static [Key])> {
    known.iter().map(|entry| (entry.name, entry.keys)).collect()
}

/// The names registered for a kind.
pub(crate) fn names(kind: &str) -> Vec<&'static str> {
    registered().into_iter().filter(|entry| entry.kind == kind).map(|entry| entry.name).collect()
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
    fn rows<T>(kind: &'static str, known: &'static [Entry<T>]) -> impl Iterator<Item = Registered> {
        known.iter().map(move |entry| Registered { kind, name: entry.name, summary: entry.summary })
    }
    let built_in = |kind| move |(name, summary): (&'static str, &'static str)| Registered { kind, name, summary };
    const SCHEDULERS: [(&str, &str); 4] = [
        ("fifo", "operations of a die in order of arrival"),
        ("reads-first", "reads before programs and erases"),
        ("host-first", "the host's operations before GC's, with a starvation bound"),
        ("single-fifo", "operations of the whole drive in order of arrival, each sent after all earlier ones (AMF)"),
    ];
    const PACINGS: [(&str, &str); 2] = [
        ("off", "collection from the moment a plane is short of free blocks until it is not"),
        ("proportional", "collection all the time, in proportion to what the host writes"),
    ];
    rows("ftl.design", DESIGNS)
        .chain(rows("gc.victim", VICTIMS))
        .chain(PACINGS.into_iter().map(built_in("gc.pacing")))
        .chain(rows("buffer.policy", BUFFERS))
        .chain(SCHEDULERS.into_iter().map(built_in("flash.scheduler")))
        .chain(COMMAND_SETS.iter().map(|set| Registered { kind: "command set", name: set.name, summary: set.summary }))
        .collect()
}
