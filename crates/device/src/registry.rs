//! The policies and designs that a description can name.
//!
//! Each is an [`Entry`] in its own file and one line in the table of its kind. A program may add victim, buffer and placement
//! policies of its own ([`register_victim`], [`register_buffer`], [`register_placement`]). From then on they are policies like
//! any other: descriptions name them, and results, tables and reports show them.

use std::sync::{PoisonError, RwLock};

use ssdlab_base::COMMAND_SETS;

use crate::buffer::{BufferPolicy, POLICIES as BUFFERS};
use crate::description::{KEYS, Key};
use crate::ftl::DESIGNS;
use crate::gc::victim::{POLICIES as VICTIMS, VictimPolicy};
use crate::placement::{POLICIES as PLACEMENTS, PlacementPolicy};
use crate::{DriveConfig, DriveError};

/// A policy or design of one kind, as its own file declares it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<T: 'static> {
    /// The name a description uses.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Keys of its section that are read only where it is chosen.
    pub keys: &'static [Key],
    /// How it is made.
    pub make: T,
}

/// How a policy is made for a drive. Values of its own keys are in [`DriveConfig::own`].
pub type MakePolicy<P> = fn(&DriveConfig) -> Box<P>;

/// The policies of one kind: those of this crate, and those that the program added.
pub(crate) struct Registry<T: 'static> {
    /// The key of a description that names one.
    key: &'static str,
    built_in: &'static [Entry<T>],
    added: RwLock<Vec<&'static Entry<T>>>,
}

impl<T> Registry<T> {
    pub(crate) const fn new(key: &'static str, built_in: &'static [Entry<T>]) -> Registry<T> {
        Registry { key, built_in, added: RwLock::new(Vec::new()) }
    }

    /// All of them, those of this crate first.
    pub(crate) fn all(&self) -> Vec<&'static Entry<T>> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        self.built_in.iter().chain(added.iter().copied()).collect()
    }

    /// How the one that a description names is made, or which there are.
    pub(crate) fn pick(&self, name: &str) -> Result<&'static T, DriveError> {
        pick(self.key, name, self.all())
    }

    /// Whether the program added a policy of this name.
    fn was_added(&self, name: &str) -> bool {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        added.iter().any(|entry| entry.name == name)
    }

    /// Adds one that stays as long as the program runs.
    fn add(&self, entry: Entry<T>) -> Result<(), RegisterError> {
        let (kind, name) = (self.key, entry.name);
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(is_part) {
            return Err(RegisterError::Name { kind, name });
        }
        // A key means the same to all who read it, so no second policy can have it.
        let section = kind.split('.').next().unwrap_or_default();
        if let Some(taken) = entry.keys.iter().find(|key| Key::find(KEYS, &[section, key.name]).is_some()) {
            return Err(RegisterError::Key { kind, name, section, key: taken.name });
        }
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        if self.built_in.iter().chain(added.iter().copied()).any(|other| other.name == name) {
            return Err(RegisterError::Known { kind, name });
        }
        added.push(Box::leak(Box::new(entry)));
        Ok(())
    }
}

/// Why a policy cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// No description could name it.
    #[error("{kind}: found the name '{name}', expected small letters, digits and dashes")]
    Name {
        /// The key of its kind.
        kind: &'static str,
        /// Its name.
        name: &'static str,
    },
    /// There is one of this name.
    #[error("{kind}: found a second policy '{name}', expected a name that is not taken")]
    Known {
        /// The key of its kind.
        kind: &'static str,
        /// Its name.
        name: &'static str,
    },
    /// One of its keys is there.
    #[error("{kind}: the policy '{name}' has a key '{section}.{key}', expected one that is not taken")]
    Key {
        /// The key of its kind.
        kind: &'static str,
        /// Its name.
        name: &'static str,
        /// The section of the description.
        section: &'static str,
        /// The key in it.
        key: &'static str,
    },
}

/// Adds a victim policy: from now on `gc.victim` takes its name.
///
/// ```
/// use ssdlab_base::Rng;
/// use ssdlab_device::{Entry, PoolView, VictimPolicy, register_victim};
///
/// struct First;
///
/// impl VictimPolicy for First {
///     fn name(&self) -> &'static str {
///         "first"
///     }
///
///     fn choose(&mut self, pool: &PoolView<'_>, _: &mut Rng) -> Option<u32> {
///         pool.first_closed()
///     }
/// }
///
/// register_victim(Entry { name: "first", summary: "the block closed first", keys: &[], make: |_| Box::new(First) })?;
/// # Ok::<(), ssdlab_device::RegisterError>(())
/// ```
///
/// # Errors
/// Its name or one of its keys is taken, or no description could name it.
pub fn register_victim(entry: Entry<MakePolicy<dyn VictimPolicy>>) -> Result<(), RegisterError> {
    VICTIMS.add(entry)
}

/// Adds a buffer policy: from now on `buffer.policy` takes its name.
///
/// # Errors
/// Its name or one of its keys is taken, or no description could name it.
pub fn register_buffer(entry: Entry<MakePolicy<dyn BufferPolicy>>) -> Result<(), RegisterError> {
    let Entry { name, summary, keys, make } = entry;
    BUFFERS.add(Entry { name, summary, keys, make: Some(make) })
}

/// Adds a placement policy: from now on `placement.policy` takes its name.
///
/// # Errors
/// Its name or one of its keys is taken, or no description could name it.
pub fn register_placement(entry: Entry<MakePolicy<dyn PlacementPolicy>>) -> Result<(), RegisterError> {
    let Entry { name, summary, keys, make } = entry;
    PLACEMENTS.add(Entry { name, summary, keys, make: Some(make) })
}

impl DriveConfig {
    /// Whether one of its policies is none of this crate's but the program's own.
    pub fn has_added_policy(&self) -> bool {
        VICTIMS.was_added(&self.gc.victim)
            || BUFFERS.was_added(&self.buffer.policy)
            || PLACEMENTS.was_added(&self.placement.policy)
    }
}

/// Finds a registered name, or says which there are.
pub(crate) fn pick<T: 'static>(
    key: &str,
    name: &str,
    known: impl IntoIterator<Item = &'static Entry<T>>,
) -> Result<&'static T, DriveError> {
    let mut names = Vec::new();
    for entry in known {
        if entry.name == name {
            return Ok(&entry.make);
        }
        names.push(entry.name);
    }
    Err(DriveError { key: key.to_string(), reason: format!("'{name}' is not known; there are {}", names.join(", ")) })
}

/// The names of one kind, each with the keys that are its own.
pub(crate) fn keys<T: 'static>(
    known: impl IntoIterator<Item = &'static Entry<T>>,
) -> Vec<(&'static str, &'static [Key])> {
    known.into_iter().map(|entry| (entry.name, entry.keys)).collect()
}

/// The names registered for a kind.
pub(crate) fn names(kind: &str) -> Vec<&'static str> {
    registered().into_iter().filter(|entry| entry.kind == kind).map(|entry| entry.name).collect()
}

/// A policy or design that a description can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The kind: `ftl.design`, `gc.victim`, `gc.pacing`, `buffer.policy`, `placement.policy`, `flash.scheduler`, `command set`.
    pub kind: &'static str,
    /// The name.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
}

/// All policies and designs, in a stable order.
pub fn registered() -> Vec<Registered> {
    fn rows<T: 'static>(
        kind: &'static str,
        known: impl IntoIterator<Item = &'static Entry<T>>,
    ) -> impl Iterator<Item = Registered> {
        known.into_iter().map(move |entry| Registered { kind, name: entry.name, summary: entry.summary })
    }
    let built_in = |kind| move |(name, summary): (&'static str, &'static str)| Registered { kind, name, summary };
    const SCHEDULERS: [(&str, &str); 5] = [
        ("fifo", "operations of a die in order of arrival"),
        ("reads-first", "reads before programs and erases"),
        ("host-first", "the host's operations before GC's, with a starvation bound"),
        ("single-fifo", "operations of the whole drive in order of arrival, each sent after all earlier ones (AMF)"),
        (
            "in-order",
            "operations of the whole drive in order of arrival, each issued when idle dies have accepted all earlier ones",
        ),
    ];
    const PACINGS: [(&str, &str); 2] = [
        ("off", "collection from the moment a plane is short of free blocks until it is not"),
        ("proportional", "collection all the time, in proportion to what the host writes"),
    ];
    rows("ftl.design", DESIGNS)
        .chain(rows("gc.victim", VICTIMS.all()))
        .chain(PACINGS.into_iter().map(built_in("gc.pacing")))
        .chain(rows("buffer.policy", BUFFERS.all()))
        .chain(rows("placement.policy", PLACEMENTS.all()))
        .chain(SCHEDULERS.into_iter().map(built_in("flash.scheduler")))
        .chain(COMMAND_SETS.iter().map(|set| Registered { kind: "command set", name: set.name, summary: set.summary }))
        .collect()
}

#[cfg(test)]
mod tests {
    use ssdlab_base::{Op, Request};
    use ssdlab_flash::Contents;

    use super::*;
    use crate::gc::victim::BROKEN_CONTRACT;
    use crate::{Description, Drive, Options, WrittenUnit};

    // Tests that draw drives from the registries are in other programs: they would draw this one.
    /// A policy of the program, which names a stream that is not there as soon as a unit is overwritten.
    struct OneBeyond;

    impl PlacementPolicy for OneBeyond {
        fn name(&self) -> &'static str {
            "one-beyond"
        }

        fn stream(&self, unit: &WrittenUnit) -> u16 {
            unit.age.map_or(0, |_| unit.streams)
        }
    }

    #[test]
    fn a_policy_of_the_program_is_one_like_any_other_and_is_told_its_contract() {
        fn entry(name: &'static str) -> Entry<MakePolicy<dyn PlacementPolicy>> {
            Entry { name, summary: "for a test", keys: &[], make: |_| Box::new(OneBeyond) }
        }
        register_placement(entry("one-beyond")).expect("a new name");
        let known = register_placement(entry("one-beyond")).expect_err("a name that is taken");
        assert_eq!(known, RegisterError::Known { kind: "placement.policy", name: "one-beyond" });
        let error = register_placement(entry("One beyond")).expect_err("no name").to_string();
        assert_eq!(error, "placement.policy: found the name 'One beyond', expected small letters, digits and dashes");
        assert!(names("placement.policy").contains(&"one-beyond"));

        let text = "[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                    blocks_per_plane = 16\npages_per_block = 8\npage_size = \"4k\"\ntiming = \"none\"\n\
                    [capacity]\nover_provisioning = \"80%\"\n[ftl]\nstreams = 2\n\
                    [placement]\npolicy = \"one-beyond\"\n";
        let config = Description::parse(text, "added.toml").and_then(|description| description.resolve());
        let config = config.expect("a drive with the policy");
        assert!(config.has_added_policy());
        let mut drive = Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("it is accepted");
        (0..8).for_each(|unit| drive.submit(&Request::new(Op::Write, unit * 8, 8)));
        let overwrite = std::panic::AssertUnwindSafe(|| drive.submit(&Request::new(Op::Write, 5 * 8, 8)));
        let panic = std::panic::catch_unwind(overwrite).expect_err("a stream that is not there");
        let said = panic.downcast_ref::<String>().expect("a sentence");
        let expected = format!(
            "the placement policy one-beyond {BROKEN_CONTRACT}PlacementPolicy::stream: it returned stream 2 of 2 for \
             WrittenUnit {{ lpn: Lpn(5), age: Some(2), hint: 0, streams: 2 }}; allowed are those below 2"
        );
        assert_eq!(*said, expected);
    }
}
