//! The time that calls take on the host, beside what they wait for: the file system itself takes none in virtual time.
//!
//! Without it, a thread whose files are cached would never let virtual time pass. The defaults are measurements on tmpfs by the
//! example `host_time` of the crate `ssdlab-workload` (docs/files.md names the machine); threads are never short of processors.

use ssdlab_base::Nanos;
use ssdlab_device::description::{Default as KeyDefault, DescriptionError, Errors, Key, Kind, Section, Tree};

/// Bytes that are copied in [`HostTime::copy`].
pub const COPY_BYTES: u64 = 4096;

const SECOND: Nanos = Nanos(1_000_000_000);

/// The keys, as `--host-time` takes them.
pub const HOST_TIME_KEYS: &[Key] = &[
    Key::new(
        "call",
        Kind::Time(SECOND),
        KeyDefault::number(1400),
        "Time of the host for each call, such as open, read or fsync.",
    ),
    Key::new(
        "copy",
        Kind::Time(SECOND),
        KeyDefault::number(210),
        "Time of the host for each 4 KB that a call copies, the last part counted whole; direct I/O copies nothing.",
    ),
];

/// Host time of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTime {
    /// Of each call.
    pub call: Nanos,
    /// Of each 4 KB that it copies.
    pub copy: Nanos,
}

impl HostTime {
    /// Reads overrides `key=value` that the option `option` gave; other keys have their defaults.
    ///
    /// # Errors
    /// Everything that is wrong: override, what was found and what was expected.
    pub fn read(overrides: &[String], option: &'static str) -> Result<HostTime, DescriptionError> {
        let tree = Tree::of_overrides(overrides, option, HOST_TIME_KEYS)?;
        let keys = Section::root(&tree, HOST_TIME_KEYS);
        let mut errors = Errors::default();
        keys.check(&mut errors);
        let (call, copy) = (errors.keep(keys.number("call")), errors.keep(keys.number("copy")));
        errors.into_result(&tree)?;
        Ok(HostTime { call: Nanos(call.unwrap_or_default()), copy: Nanos(copy.unwrap_or_default()) })
    }

    /// Of copying so many bytes.
    pub(super) fn of_copy(&self, bytes: u64) -> Nanos {
        Nanos(self.copy.0.saturating_mul(bytes.div_ceil(COPY_BYTES)))
    }
}
