//! Jobs on files of a file system, in place of a drive: which files there are, and how each clone of a job uses its own.
//!
//! ```text
//!   jobs --on_files--> JobFile: path, size, whether it is written before       (a job without `filename` has a file for each clone)
//!                      OnFile:  which file, direct or buffered, when a write is answered
//!                      FioWorkload: offsets in the clone's file, as requests
//! ```
//!
//! A buffered job of an engine like libaio has one call in flight, whatever its `iodepth`: io_submit waits for it.

use super::generator::FioWorkload;
use super::mode::{READ, TRIM};
use super::plan;
use super::settings::{JobSettings, ZoneMode};
use super::targets::target;
use super::value::{self, Extent};
use super::{FioJob, MAX_NAME_BYTES};
use crate::WorkloadError;

/// What direct I/O is in multiples of.
const DIRECT_BYTES: u64 = 4096;

/// A file that jobs work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// Its path, with `/` between names and none in front.
    pub path: String,
    /// How large it is before the jobs begin.
    pub bytes: u64,
    /// It is written whole before the jobs begin: one of them reads it, or has `overwrite`. Otherwise it has no data.
    pub is_written: bool,
}

/// When a write is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At once.
    #[default]
    None,
    /// When its data is durable (`O_DSYNC`).
    Data,
    /// When everything of the file is (`O_SYNC`).
    All,
}

/// How a clone of a job uses its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnFile {
    /// The file, by its place in [`JobsOnFiles::files`].
    pub file: usize,
    /// It bypasses the cache.
    pub is_direct: bool,
    /// When its writes are answered.
    pub durability: Durability,
}

/// Jobs on files.
pub struct JobsOnFiles {
    /// All files.
    pub files: Vec<JobFile>,
    /// Every clone of every job, in the order of the file: a request's queue is its number here.
    pub clones: Vec<OnFile>,
    /// Requests whose addresses are those of the clones' files.
    pub workload: FioWorkload,
    /// What a person should know, a sentence each.
    pub notes: Vec<String>,
}

impl FioJob {
    /// The jobs on files, with everything random drawn from `seed` (or from a job's own `randseed`).
    ///
    /// # Errors
    /// A word that has no meaning on files, or no size: its line, what was found and what was expected.
    pub fn on_files(&self, seed: u64) -> Result<JobsOnFiles, WorkloadError> {
        let (mut jobs, mut files, mut clones) = (Vec::new(), Vec::<JobFile>::new(), Vec::new());
        let mut notes: Vec<String> = self.variables.iter().map(ToString::to_string).collect();
        for job in &self.jobs {
            let mut job = job.clone();
            check(&job)?;
            let is_direct = is_direct(&job)?;
            if let Some(why) = one_in_flight(&job, is_direct).filter(|_| job.depth > 1) {
                notes.push(format!("job '{}': {why}, so its depth is 1 and not {}", job.name, job.depth));
            }
            if one_in_flight(&job, is_direct).is_some() {
                job.depth = 1;
            }
            let durability = match job.last("sync") {
                Some("sync" | "1") => Durability::All,
                Some("dsync") => Durability::Data,
                _ => Durability::None,
            };
            let is_written = job.mode.uses(READ) || flag(&job, "overwrite")?;
            for clone in 0..job.clones {
                let path = path(&job, clone)?;
                let bytes = end_of(&job, clone)?;
                let known = files.iter().position(|file| file.path == path);
                let file = known.unwrap_or_else(|| {
                    files.push(JobFile { path, bytes: 0, is_written: false });
                    files.len() - 1
                });
                files[file].bytes = files[file].bytes.max(bytes);
                files[file].is_written |= is_written;
                clones.push(OnFile { file, is_direct, durability });
            }
            jobs.push(job);
        }
        let idle: Vec<&str> =
            jobs.iter().flat_map(JobSettings::without_effect).filter(|key| !MEANS.contains(key)).collect();
        let mut told: Vec<&str> = Vec::new();
        idle.into_iter().for_each(|key| {
            if !told.contains(&key) {
                told.push(key)
            }
        });
        if !told.is_empty() {
            notes.push(format!("without effect on calls of a file system: {}", told.join(", ")));
        }
        let capacity = files.iter().map(|file| file.bytes).max().unwrap_or(0);
        let (plans, _) = plan::plan(&jobs, capacity, None, seed)?;
        Ok(JobsOnFiles { files, clones, workload: FioWorkload::new(plans, None, Vec::new()), notes })
    }
}

/// Keys that have no effect on a drive, and have one here.
const MEANS: [&str; 5] = ["direct", "buffered", "overwrite", "directory", "filename_format"];

fn flag(job: &JobSettings, key: &str) -> Result<bool, WorkloadError> {
    if !job.has(key) {
        return Ok(false);
    }
    value::flag(job.last(key)).ok_or_else(|| job.error(key, "expected 0 or 1, or no value for 1"))
}

/// `direct`, or `buffered`, which says the opposite: the one that was set.
fn is_direct(job: &JobSettings) -> Result<bool, WorkloadError> {
    if job.has("direct") && job.has("buffered") && flag(job, "direct")? == flag(job, "buffered")? {
        return Err(job.error("buffered", "contradicts direct, give one of the two"));
    }
    if job.has("direct") { flag(job, "direct") } else { Ok(job.has("buffered") && !flag(job, "buffered")?) }
}

/// Why a job has one call in flight; `None` where it may have more.
fn one_in_flight(job: &JobSettings, is_direct: bool) -> Option<String> {
    let engine = job.last("ioengine");
    match (engine, &job.synchronous_engine) {
        (None, _) => Some("its engine is psync, fio's default, which is synchronous".to_string()),
        (_, Some(engine)) => Some(format!("ioengine={engine} is synchronous")),
        (Some(engine), None) if !is_direct && !job.queued_flush => {
            Some(format!("it is buffered, and ioengine={engine} waits for each buffered call"))
        }
        _ => None,
    }
}

/// Refuses words that have no meaning on files.
fn check(job: &JobSettings) -> Result<(), WorkloadError> {
    if job.mode.uses(TRIM) {
        return Err(job.error("rw", "a file takes no trims, expected reads and writes"));
    }
    if job.zones.mode() != ZoneMode::None {
        let key = if job.has("zonemode") { "zonemode" } else { "zonesize" };
        return Err(job.error(key, "a file has no zones, expected a job without them"));
    }
    match job.size {
        Some(Extent::Bytes(bytes)) if bytes > 0 => {}
        _ => return Err(job.error("size", "a file has no size of its own, expected size in bytes, such as size=1g")),
    }
    for (key, extent) in [("offset", job.offset), ("offset_increment", job.offset_increment)] {
        if matches!(extent, Extent::Percent(share) if share > 0) {
            return Err(job.error(key, "a file has no size of its own, expected bytes"));
        }
    }
    if is_direct(job)? {
        let sizes = job.sizes.iter().flat_map(|sizes| [sizes.min(), sizes.max()]);
        let aligns = job.align.iter().flatten().copied();
        if sizes.chain(aligns).any(|bytes| !bytes.is_multiple_of(DIRECT_BYTES)) || job.unaligned {
            return Err(job.error("bs", "direct I/O on a file is in whole blocks, expected multiples of 4k"));
        }
        if !job.offset.of(0).is_multiple_of(DIRECT_BYTES) {
            return Err(job.error("offset", "direct I/O on a file is in whole blocks, expected a multiple of 4k"));
        }
    }
    Ok(())
}

/// The byte behind the last one that a clone may transfer.
fn end_of(job: &JobSettings, clone: u32) -> Result<u64, WorkloadError> {
    let Some(Extent::Bytes(size)) = job.size else { return Ok(0) };
    let start =
        job.offset_increment.of(0).checked_mul(clone.into()).and_then(|step| step.checked_add(job.offset.of(0)));
    let end = start.and_then(|start| start.checked_add(size));
    end.ok_or_else(|| job.error("size", "offset and size come to more bytes than a file can have"))
}

/// The path of a clone's file.
fn path(job: &JobSettings, clone: u32) -> Result<String, WorkloadError> {
    let name = target(job, clone);
    let path = name.trim_start_matches('/');
    let is_bad = |part: &str| part.is_empty() || part == "." || part == ".." || part.len() > MAX_NAME_BYTES;
    if path.split('/').any(is_bad) {
        let key = if job.has("filename") { "filename" } else { "directory" };
        return Err(job.error(key, &format!("'{name}' is no path of a file: expected names with / between them")));
    }
    Ok(path.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(text: &str) -> Result<JobsOnFiles, String> {
        FioJob::parse_text(text, "jobs.fio").and_then(|jobs| jobs.on_files(1)).map_err(|error| error.0)
    }

    #[test]
    fn clones_share_a_file_that_is_named_and_have_their_own_otherwise() {
        let one = jobs("[a]\nrw=randread\nsize=1m\nnumjobs=3\nfilename=d/x\n").expect("jobs");
        assert_eq!(one.files, [JobFile { path: "d/x".into(), bytes: 1 << 20, is_written: true }]);
        assert_eq!(one.clones.iter().map(|clone| clone.file).collect::<Vec<_>>(), [0, 0, 0]);
        let own = jobs("[a]\nrw=write\nsize=1m\nnumjobs=2\n[b]\nrw=write\nsize=2m\noverwrite=1\n").expect("jobs");
        let told: Vec<_> =
            own.files.iter().map(|file| (file.path.as_str(), file.bytes >> 20, file.is_written)).collect();
        assert_eq!(told, [("a.0.0", 1, false), ("a.1.0", 1, false), ("b.0.0", 2, true)]);
    }

    #[test]
    fn depth_is_kept_by_direct_and_by_engines_that_do_not_wait() {
        let depth = |words: &str| {
            let jobs = jobs(&format!("[a]\nrw=randread\nsize=1m\niodepth=8\n{words}\n")).expect("jobs");
            (jobs.workload.depth_max(), jobs.notes.len())
        };
        assert_eq!(depth("ioengine=libaio\ndirect=1"), (8, 0));
        assert_eq!(depth("ioengine=libaio\nbuffered=0"), (8, 0));
        assert_eq!(depth("ioengine=libaio"), (1, 1));
        assert_eq!(depth("ioengine=io_uring"), (8, 0));
        assert_eq!(depth("direct=1"), (1, 1), "the default engine is synchronous");
    }

    #[test]
    fn words_without_a_meaning_on_files_are_refused_with_their_line() {
        for (words, told) in [
            ("rw=randtrim\nsize=1m", "jobs.fio:2: job 'a': 'rw=randtrim': a file takes no trims"),
            ("rw=read", "a file has no size of its own"),
            ("rw=read\nsize=50%", "jobs.fio:3: job 'a': 'size=50%': a file has no size of its own"),
            ("rw=read\nsize=1m\ndirect=1\nbs=512", "expected multiples of 4k"),
            ("rw=write\nsize=1m\nzonemode=zbd\nzonesize=1m", "a file has no zones"),
            ("rw=read\nsize=1m\nfilename=../x", "'../x' is no path of a file"),
            ("rw=read\nsize=1m\ndirect=1\nbuffered=1", "contradicts direct"),
        ] {
            let error = jobs(&format!("[a]\n{words}\n")).err().unwrap_or_default();
            assert!(error.contains(told), "{words}: {error}");
        }
    }
}
