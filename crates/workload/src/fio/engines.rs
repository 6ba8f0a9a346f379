//! The I/O engines of fio 3.33, and what becomes of a job that names one.

use ssdlab_base::closest;

/// What an engine makes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Block requests, up to `iodepth` in flight.
    Queued,
    /// As `Queued`, and a flush is one more request in the queue.
    QueuedFlush,
    /// Block requests one at a time: fio caps the depth at 1.
    Synchronous,
    /// No block requests; the text says what it does instead.
    NoBlocks(&'static str),
}

use Engine::{NoBlocks, Queued, QueuedFlush, Synchronous};

/// Name and kind of each: those of `fio --enghelp`, and those that are built for other systems or with other libraries.
const ENGINES: &[(&str, Engine)] = &[
    ("libaio", Queued),
    ("linuxaio", Queued),
    ("aio", Queued),
    ("io_uring", QueuedFlush),
    ("io_uring_cmd", QueuedFlush),
    ("posixaio", QueuedFlush),
    ("solarisaio", Queued),
    ("windowsaio", Queued),
    ("guasi", Queued),
    ("nbd", Queued),
    ("rbd", Queued),
    ("gfapi_async", Queued),
    ("nfs", Queued),
    ("xnvme", Queued),
    ("ime_aio", Queued),
    ("null", Queued),
    ("sync", Synchronous),
    ("psync", Synchronous),
    ("vsync", Synchronous),
    ("pvsync", Synchronous),
    ("pvsync2", Synchronous),
    ("mmap", Synchronous),
    ("splice", Synchronous),
    ("sg", Synchronous),
    ("gfapi", Synchronous),
    ("libiscsi", Synchronous),
    ("libzbc", Synchronous),
    ("libcufile", Synchronous),
    ("ime_psync", Synchronous),
    ("ime_psyncv", Synchronous),
    ("cpuio", NoBlocks("uses processor time")),
    ("exec", NoBlocks("runs a program")),
    ("net", NoBlocks("sends over a network")),
    ("netsplice", NoBlocks("sends over a network")),
    ("rdma", NoBlocks("sends over a network")),
    ("filecreate", NoBlocks("creates files")),
    ("filestat", NoBlocks("looks up files")),
    ("filedelete", NoBlocks("deletes files")),
    ("ftruncate", NoBlocks("truncates files")),
    ("falloc", NoBlocks("allocates space of files")),
    ("e4defrag", NoBlocks("exchanges extents of files")),
    ("mtd", NoBlocks("reads, programs and erases flash chips without a drive")),
    ("rados", NoBlocks("reads and writes objects")),
    ("http", NoBlocks("reads and writes objects")),
    ("dfs", NoBlocks("reads and writes objects")),
    ("libhdfs", NoBlocks("reads and writes files of a cluster")),
    ("pmemblk", NoBlocks("loads and stores in persistent memory")),
    ("dev-dax", NoBlocks("loads and stores in persistent memory")),
    ("libpmem", NoBlocks("loads and stores in persistent memory")),
    ("librpma_apm_client", NoBlocks("writes to remote persistent memory")),
    ("librpma_apm_server", NoBlocks("writes to remote persistent memory")),
    ("librpma_gpspm_client", NoBlocks("writes to remote persistent memory")),
    ("librpma_gpspm_server", NoBlocks("writes to remote persistent memory")),
];

/// Names of all engines.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().map(|(name, _)| *name)
}

/// Why a name is of no engine that sends block requests, as the end of a sentence that says what was expected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// It does something else.
    #[error("an engine that sends block requests: '{name}' {does}")]
    NoBlocks { name: &'static str, does: &'static str },
    /// It is a shared object of its user's.
    #[error("an engine of fio's own: what an external one sends is not known")]
    External,
    /// fio 3.33 has none of this name.
    #[error("an engine of fio 3.33 such as libaio, io_uring or psync{}", hint(.near))]
    Unknown { near: Option<&'static str> },
}

fn hint(near: &Option<&'static str>) -> String {
    near.map_or(String::new(), |near| format!("; did you mean '{near}'?"))
}

/// The engine of a name.
///
/// # Errors
/// Why there is none that sends block requests.
pub(crate) fn find(name: &str) -> Result<Engine, EngineError> {
    match ENGINES.iter().find(|(known, _)| *known == name) {
        Some((name, NoBlocks(does))) => Err(EngineError::NoBlocks { name, does }),
        Some((_, engine)) => Ok(*engine),
        None if name.starts_with("external:") => Err(EngineError::External),
        None => Err(EngineError::Unknown { near: closest(name, names()) }),
    }
}
