//! Aged drives, kept between runs.
//!
//! Preconditioning a drive takes longer than most runs, and the same drive is preconditioned the same way again and again. After preconditioning,
//! the drive's state is written to a cache directory under a name that is the hash of everything that led to it; the
//! next run that needs the same state reads it. A run from a snapshot gives the same result, bit for bit.
//!
//! ```text
//! magic (20 bytes) | key (32) | record (JSON, behind its length) | drive state | BLAKE3 of all (32)
//! ```
//!
//! Beside them are checkpoints (`.checkpoint`) of drives whose preconditioning is not at its end, at most one for each
//! identity; they have the same layout, with the position of the preconditioning as their record, and go when the
//! preconditioned drive is kept.
//!
//! The directory is `$SSDLAB_CACHE`, else `$XDG_CACHE_HOME/ssdlab`, else `~/.cache/ssdlab`. Files appear by renaming,
//! so a reader never sees half of one; a damaged or foreign file is reported and made again, never believed. The
//! least recently used files are removed when all together exceed a limit.

#[cfg(test)]
mod sources;

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use ssdlab_base::{Saved, damaged, load, load_magic};
use ssdlab_device::{Drive, DriveConfig, Options, registered};

use crate::precondition::Position;
use crate::result::{Precondition, VERSION};

/// Name and version of the file's format.
const MAGIC: &[u8; 20] = b"ssdlab snapshot v2\r\n";

/// The digest at the end of the file.
const DIGEST_LEN: u64 = 32;

/// What all snapshots together may take on the disk, unless told otherwise: 16 GiB.
const LIMIT_BYTES: u64 = 16 << 30;

/// Ageing that took less than this is not worth a file.
const WORTH_KEEPING: Duration = Duration::from_millis(500);

/// Preconditioning that takes longer leaves a checkpoint so often.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// Unfinished files older than this were left by a run that was killed; sooner where its process is known to be gone.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);
const ABANDONED_WITHOUT_PROCESS_AFTER: Duration = Duration::from_secs(600);

/// Everything that an aged drive's state depends on.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The drive.
    pub config: &'a DriveConfig,
    /// Its seed and contents.
    pub options: Options,
    /// How it was aged, in full: the age's name and, where a workload had a part, what identifies that workload.
    pub age: &'a str,
}

impl Identity<'_> {
    /// The hash that names the snapshot.
    fn key(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let mut field = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        field(std::str::from_utf8(MAGIC).unwrap_or_default());
        field(VERSION);
        field(&sources(&DIGESTS, self.config).unwrap_or_else(build));
        field(&format!("{:?}", self.config));
        field(&format!("{:?}", self.options));
        field(self.age);
        *hasher.finalize().as_bytes()
    }
}

/// What `build.rs` found of the sources: the digest of what counts for every drive, unless the sources were not there, and
/// for each design or policy that stands alone the key that chooses it, its names and its digest.
struct SourceDigests {
    shared: Option<&'static str>,
    own: &'static [(&'static str, &'static [&'static str], &'static str)],
}

const DIGESTS: SourceDigests = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// What identifies the sources that decide the state of such a drive; `None` where they are not known.
fn sources(digests: &SourceDigests, config: &DriveConfig) -> Option<String> {
    let registered = registered();
    let chosen = [
        ("ftl.design", &config.ftl.design),
        ("gc.victim", &config.gc.victim),
        ("buffer.policy", &config.buffer.policy),
        ("placement.policy", &config.placement.policy),
    ];
    let mut found = digests.shared?.to_string();
    for (key, names, digest) in digests.own {
        // A module without a registered name counts for every drive.
        let is_registered = registered.iter().any(|entry| entry.kind == *key && names.contains(&entry.name));
        if !is_registered || chosen.iter().any(|(of, name)| of == key && names.contains(&name.as_str())) {
            found += " ";
            found += digest;
        }
    }
    if config.has_added_policy() {
        // Its sources are the program's.
        found += " ";
        found += &build();
    }
    Some(found)
}

/// What tells this build of the program from another of the same version: a kept state or result of another build is not taken for
/// one of this.
pub fn build() -> String {
    let program = std::env::current_exe().and_then(fs::metadata);
    match program {
        Ok(program) => format!("{} {:?}", program.len(), program.modified().ok()),
        Err(_) => String::new(),
    }
}

/// Why the checkpoint of a drive that was being preconditioned is not used.
#[derive(Debug, thiserror::Error)]
#[error("checkpoint {} cannot be used and preconditioning started again: {source}", path.display())]
pub(crate) struct CheckpointError {
    path: PathBuf,
    source: io::Error,
}

/// A directory of snapshots.
#[derive(Clone, Debug)]
pub struct SnapshotCache {
    directory: PathBuf,
    limit_bytes: u64,
    worth_keeping: Duration,
    checkpoint_every: Duration,
}

/// What was found for an identity.
#[expect(clippy::large_enum_variant, reason = "one of them is made for a drive, and taken apart at once")]
pub enum Found {
    /// The aged drive, and the record of how it was aged.
    Drive(Drive, Precondition),
    /// Nothing.
    Nothing,
    /// Something that cannot be used, and why, as a sentence.
    Damaged(String),
}

impl SnapshotCache {
    /// The user's cache; `None` when the environment names no place for it.
    pub fn of_user() -> Option<SnapshotCache> {
        let named = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let directory = named("SSDLAB_CACHE")
            .or_else(|| named("XDG_CACHE_HOME").map(|cache| cache.join("ssdlab")))
            .or_else(|| named("HOME").map(|home| home.join(".cache").join("ssdlab")))?;
        Some(SnapshotCache::at(directory))
    }

    /// A cache in `directory`, which is made when the first snapshot is kept.
    pub fn at(directory: impl Into<PathBuf>) -> SnapshotCache {
        SnapshotCache {
            directory: directory.into(),
            limit_bytes: LIMIT_BYTES,
            worth_keeping: WORTH_KEEPING,
            checkpoint_every: CHECKPOINT_EVERY,
        }
    }

    /// Sets the limit for all files of the cache together, in bytes.
    #[must_use]
    pub fn limit_bytes(self, limit_bytes: u64) -> SnapshotCache {
        SnapshotCache { limit_bytes, ..self }
    }

    /// Keeps snapshots only of drives whose preconditioning took at least this long.
    #[must_use]
    pub fn worth_keeping(self, worth_keeping: Duration) -> SnapshotCache {
        SnapshotCache { worth_keeping, ..self }
    }

    /// Sets how often the cache gets a checkpoint of a drive that is being preconditioned.
    #[must_use]
    pub fn checkpoint_every(self, checkpoint_every: Duration) -> SnapshotCache {
        SnapshotCache { checkpoint_every, ..self }
    }

    pub(crate) const fn checkpoint_interval(&self) -> Duration {
        self.checkpoint_every
    }

    /// Whether preconditioning that took this long is worth a snapshot.
    pub fn is_worth(&self, took: Duration) -> bool {
        took >= self.worth_keeping
    }

    fn path(&self, key: &[u8; 32]) -> PathBuf {
        self.directory.join(format!("{}.snapshot", blake3::Hash::from_bytes(*key).to_hex()))
    }

    fn checkpoint_path(&self, key: &[u8; 32]) -> PathBuf {
        self.path(key).with_extension("checkpoint")
    }

    /// Looks for an aged drive.
    pub fn find(&self, identity: &Identity<'_>) -> Found {
        let key = identity.key();
        let path = self.path(&key);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return Found::Damaged(format!("snapshot {} cannot be opened: {error}", path.display())),
        };
        let restore = |from: &mut dyn Read| Drive::restore(identity.config, identity.options, from);
        match read(file, &key, restore) {
            Ok((drive, record)) => {
                // The time of last use decides what goes when the cache is full; a read-only cache just does not learn.
                let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
                Found::Drive(drive, record)
            }
            Err(error) => Found::Damaged(format!(
                "snapshot {} cannot be used and the drive was preconditioned again: {error}",
                path.display()
            )),
        }
    }

    /// Looks for a drive that was being preconditioned.
    ///
    /// # Errors
    /// There is a checkpoint, and it cannot be used.
    pub(crate) fn find_checkpoint(
        &self,
        identity: &Identity<'_>,
    ) -> Result<Option<(Drive, Position)>, CheckpointError> {
        let key = identity.key();
        let path = self.checkpoint_path(&key);
        let found = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => Err(error),
            Ok(file) => read(file, &key, |from| Drive::resume(identity.config, identity.options, from)),
        };
        found.map(Some).map_err(|source| CheckpointError { path, source })
    }

    /// Keeps a preconditioned drive, and no checkpoint of it any more. An error leaves nothing behind but what was there.
    pub fn keep(&self, identity: &Identity<'_>, drive: &mut Drive, record: &Precondition) -> io::Result<()> {
        let key = identity.key();
        self.place(&self.path(&key), &key, record, |to| drive.save(to))?;
        let _ = fs::remove_file(self.checkpoint_path(&key));
        self.tidy()
    }

    /// Keeps a drive that is being preconditioned, in the place of its checkpoint before.
    pub(crate) fn keep_checkpoint(
        &self,
        identity: &Identity<'_>,
        drive: &Drive,
        position: &Position,
    ) -> io::Result<()> {
        let bytes = drive.checkpoint_bytes();
        if bytes > self.limit_bytes {
            let what = format!("a checkpoint of {bytes} bytes is more than the cache's limit of {}", self.limit_bytes);
            return Err(io::Error::other(what));
        }
        let key = identity.key();
        self.place(&self.checkpoint_path(&key), &key, position, |to| drive.checkpoint(to))?;
        self.tidy()
    }

    /// A checkpoint that led to nothing, or to the end.
    pub(crate) fn forget_checkpoint(&self, identity: &Identity<'_>) {
        let _ = fs::remove_file(self.checkpoint_path(&identity.key()));
    }

    /// Writes a file under another name first, and renames it when it is whole.
    fn place(
        &self,
        path: &Path,
        key: &[u8; 32],
        record: &impl serde::Serialize,
        state: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(&self.directory)?;
        let unfinished = self.directory.join(format!(
            "{}.{}.{}.part",
            &blake3::Hash::from_bytes(*key).to_hex()[..16],
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        ));
        let written = File::create(&unfinished).and_then(|file| write(file, key, record, state));
        if let Err(error) = written.and_then(|()| fs::rename(&unfinished, path)) {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        Ok(())
    }

    /// Removes the least recently used files beyond the limit, and what killed runs left.
    fn tidy(&self) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            // Another process may tidy at the same time: what is gone is gone.
            let Ok(metadata) = entry.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let path = entry.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("snapshot" | "checkpoint") => kept.push((used, metadata.len(), path)),
                Some("part") if used.elapsed().is_ok_and(|age| age > abandoned_after(&path)) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        kept.sort();
        let mut total: u64 = kept.iter().map(|(_, length, _)| length).sum();
        for (_, length, path) in kept {
            if total <= self.limit_bytes {
                break;
            }
            let _ = fs::remove_file(path);
            total -= length;
        }
        Ok(())
    }
}

/// When an unfinished file, KEY.PID.NUMBER.part, counts as left behind. Another machine may share the folder, so a
/// process that is not here is no proof by itself.
fn abandoned_after(path: &Path) -> Duration {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let process = name.split('.').nth(1).map(|pid| Path::new("/proc").join(pid));
    let gone = Path::new("/proc/self").exists() && process.is_some_and(|process| !process.exists());
    if gone { ABANDONED_WITHOUT_PROCESS_AFTER } else { ABANDONED_AFTER }
}

/// Hashes what passes on its way to the file.
struct Hashing<W> {
    inner: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn write(
    file: File,
    key: &[u8; 32],
    record: &impl serde::Serialize,
    state: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 20, Hashing { inner: file, hasher: blake3::Hasher::new() });
    to.write_all(MAGIC)?;
    key.save_to(&mut to)?;
    serde_json::to_vec(record)?.save_to(&mut to)?;
    state(&mut to)?;
    let mut hashing = to.into_inner().map_err(io::IntoInnerError::into_error)?;
    let digest = hashing.hasher.finalize();
    hashing.inner.write_all(digest.as_bytes())?;
    hashing.inner.flush()
}

fn read<R: serde::de::DeserializeOwned>(
    mut file: File,
    key: &[u8; 32],
    restore: impl FnOnce(&mut dyn Read) -> io::Result<Drive>,
) -> io::Result<(Drive, R)> {
    let length = file.metadata()?.len();
    let body = length.checked_sub(DIGEST_LEN).ok_or_else(|| damaged("it is too short"))?;

    // All of it is verified before any of it is believed.
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; 1 << 20];
    let mut left = body;
    while left > 0 {
        let take = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
        file.read_exact(&mut chunk[..take])?;
        hasher.update(&chunk[..take]);
        left -= take as u64;
    }
    let mut digest = [0; DIGEST_LEN as usize];
    file.read_exact(&mut digest)?;
    if hasher.finalize() != blake3::Hash::from_bytes(digest) {
        return Err(damaged("its digest does not fit its contents"));
    }

    io::Seek::rewind(&mut file)?;
    let mut from = BufReader::with_capacity(1 << 20, file.take(body));
    let otherwise = "it is not the snapshot its name says";
    load_magic(MAGIC, &mut from, otherwise)?;
    load_magic(key, &mut from, otherwise)?;
    let record = serde_json::from_slice(&load::<Vec<u8>>(&mut from)?)?;
    let drive = restore(&mut from)?;
    if from.read(&mut [0])? != 0 {
        return Err(damaged("it has more than the drive's state"));
    }
    Ok((drive, record))
}

/// What identifies a file as a workload: its path, length and time of change.
///
/// ```
/// let gone = ssdlab_lab::snapshot::file_identity(std::path::Path::new("/no/such/trace"));
/// assert!(gone.is_err());
/// ```
pub fn file_identity(path: &Path) -> io::Result<String> {
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    Ok(format!("{} {} {:?}", path.display(), metadata.len(), metadata.modified()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_digests_of_what_the_drive_uses() {
        let digests = SourceDigests {
            shared: Some("all"),
            own: &[
                ("gc.victim", &["greedy"], "g"),
                ("gc.victim", &["fifo"], "f"),
                ("buffer.policy", &["fifo"], "b"),
                ("ftl.design", &["bast", "fast", "log-blocks"], "l"),
                ("ftl.design", &["of-no-design"], "n"),
            ],
        };
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices/demo-tlc.toml");
        let mut config = ssdlab_device::Description::load(&shipped).and_then(|text| text.resolve()).expect("it ships");
        assert_eq!(sources(&digests, &config).as_deref(), Some("all g n"));
        config.buffer.policy = "fifo".to_string();
        config.ftl.design = "fast".to_string();
        assert_eq!(sources(&digests, &config).as_deref(), Some("all g b l n"));
        assert_eq!(sources(&SourceDigests { shared: None, own: &[] }, &config), None);
        assert!(sources(&DIGESTS, &config).is_some_and(|text| text.len() > 64));
    }
}
