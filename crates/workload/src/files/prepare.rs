//! Making the files of a personality before it runs, and removing them behind it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ssdlab_base::format_size;

use super::file_set::FileSets;
use super::file_system::{Access, FileSystem, FsError, FsErrorKind};
use super::parameters::Parameters;
use super::result::Phase;
use super::run::{Buffers, Watch};

/// What a file takes beyond its bytes, at least: the rest of its last block.
const FILE_OVERHEAD_BYTES: u64 = 4096;
/// How often progress is told.
const TICK: Duration = Duration::from_millis(5);

/// What was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prepared {
    /// Directories.
    pub directories: u64,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long it took, all of it durable.
    pub seconds: f64,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Removed {
    /// Files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Directories that hold what is not ours, and stay.
    pub left: u64,
    /// How long it took.
    pub seconds: f64,
}

/// Why files could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// They cannot fit.
    #[error(
        "the files need {} and the file system has {} free: take fewer or smaller files",
        format_size(*needed_bytes), format_size(*free_bytes)
    )]
    TooSmall {
        /// What is needed, blocks counted whole.
        needed_bytes: u64,
        /// What is free.
        free_bytes: u64,
    },
    /// A call failed.
    #[error(transparent)]
    Call(#[from] FsError),
    /// It was told to stop.
    #[error("interrupted while the files were made")]
    Interrupted,
}

/// Makes all directories, and then the files that exist at the start, `workers` at a time; then everything is made
/// durable. What was made when it fails is for [`remove`].
///
/// # Errors
/// Files that cannot fit, calls that fail, and the flag.
pub fn prepare<F: FileSystem>(
    fs: &F,
    files: &FileSets,
    parameters: &Parameters,
    workers: usize,
    stop: &AtomicBool,
    watch: &dyn Watch,
) -> Result<Prepared, PrepareError> {
    let start = Instant::now();
    let planned = files.planned();
    let needed_bytes = planned.bytes.saturating_add(planned.files * FILE_OVERHEAD_BYTES);
    if let Some(free_bytes) = fs.free_bytes()?
        && free_bytes < needed_bytes
    {
        return Err(PrepareError::TooSmall { needed_bytes, free_bytes });
    }
    watch.begin(Phase::Preparing);
    for directory in files.directories() {
        if stop.load(Ordering::Relaxed) {
            return Err(PrepareError::Interrupted);
        }
        fs.make_directory(directory)?;
    }
    let list: Vec<(String, u64)> = files.existing().collect();
    let access = Access { append: false, direct: parameters.direct, dsync: false };
    let (next, bytes, failed) = (AtomicUsize::new(0), AtomicU64::new(0), Mutex::new(None));
    let chunk = parameters.iosize.max(1 << 20).next_multiple_of(FILE_OVERHEAD_BYTES);
    let source = Buffers::source(chunk);
    let ended = AtomicUsize::new(0);
    let workers = workers.clamp(1, list.len().max(1));
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let Some((path, size)) = list.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            if let Err(error) = fill(fs, path, *size, access, source.data(chunk), stop, &bytes) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                next.store(list.len(), Ordering::Relaxed);
                break;
            }
        }
        ended.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
        while ended.load(Ordering::Relaxed) < workers {
            std::thread::park_timeout(TICK);
            watch.advance(bytes.load(Ordering::Relaxed), Some(planned.bytes));
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(PrepareError::Call(error));
    }
    if stop.load(Ordering::Relaxed) {
        return Err(PrepareError::Interrupted);
    }
    fs.sync()?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(Prepared { directories: planned.directories, files: planned.files, bytes: planned.bytes, seconds })
}

/// Makes one file.
fn fill<F: FileSystem>(
    fs: &F,
    path: &str,
    size: u64,
    access: Access,
    data: &[u8],
    stop: &AtomicBool,
    written: &AtomicU64,
) -> Result<(), FsError> {
    let mut file = fs.create(path, access)?;
    let mut offset = 0;
    while offset < size && !stop.load(Ordering::Relaxed) {
        let bytes = (size - offset).min(data.len() as u64);
        fs.write(&mut file, offset, &data[..bytes as usize])?;
        offset += bytes;
        written.fetch_add(bytes, Ordering::Relaxed);
    }
    fs.close(file)
}

/// Removes every file that the table says may exist, and the directories, the deepest first. What is not in the table
/// stays, and so do the directories around it.
///
/// # Errors
/// The first call that failed for another reason than that there was nothing to remove; the rest is tried first.
pub fn remove<F: FileSystem>(fs: &F, files: &FileSets, watch: &dyn Watch) -> Result<Removed, FsError> {
    let start = Instant::now();
    watch.begin(Phase::Removing);
    let mut removed = Removed::default();
    let mut failed = None;
    let list: Vec<String> = files.perhaps_existing().collect();
    for path in &list {
        match fs.unlink(path) {
            Ok(()) => removed.files += 1,
            Err(error) if error.kind == FsErrorKind::NotFound => {}
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
        watch.advance(removed.files, Some(list.len() as u64));
    }
    let directories: Vec<&str> = files.directories().collect();
    for directory in directories.into_iter().rev() {
        match fs.remove_directory(directory) {
            Ok(()) => removed.directories += 1,
            Err(error) if error.kind == FsErrorKind::NotFound => {}
            Err(error) if error.kind == FsErrorKind::NotEmpty => removed.left += 1,
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    removed.seconds = start.elapsed().as_secs_f64();
    failed.map_or(Ok(removed), Err)
}
