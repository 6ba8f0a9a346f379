//! A process that serves a disk to its own kernel must not wait for that disk when memory runs short.

use rustix::mm::MlockAllFlags;
use rustix::thread::CapabilitySet;

/// What a process was given against waiting for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// What it has touched of its memory stays in memory.
    pub memory_locked: bool,
    /// To get memory for it, the kernel does not write to a file system, which might be the served one.
    pub io_flusher: bool,
}

impl Protection {
    /// What is missing, in a sentence for the user; nothing when all is there.
    pub fn note(&self) -> Option<String> {
        let mut missing = Vec::new();
        if !self.memory_locked {
            missing.push("its memory is not locked (needs CAP_IPC_LOCK)");
        }
        if !self.io_flusher {
            missing.push("it is no I/O flusher (needs CAP_SYS_RESOURCE)");
        }
        let missing = (!missing.is_empty()).then(|| missing.join(", "))?;
        Some(format!("when memory runs short this server may wait for its own drive: {missing}"))
    }
}

/// Protects the calling process as far as it may: with `CAP_IPC_LOCK` its memory is locked, with `CAP_SYS_RESOURCE` it
/// becomes an I/O flusher (`PR_SET_IO_FLUSHER`).
///
/// The second is a property of threads that new ones inherit: it is to be called before the target's threads start.
pub fn protect_process() -> Protection {
    let allowed = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    // Without the capability, a lock on future memory would make allocations fail at the limit.
    let memory_locked = allowed.contains(CapabilitySet::IPC_LOCK)
        && rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT).is_ok();
    let io_flusher = rustix::process::configure_io_flusher_behavior(true).is_ok();
    Protection { memory_locked, io_flusher }
}
