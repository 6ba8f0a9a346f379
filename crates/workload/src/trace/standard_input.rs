//! A trace from standard input: kept in a file without a name, because a trace is read more than once.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, OnceLock};

use rustix::fs::statvfs;

use crate::WorkloadError;

/// What standard input is called in a trace's specification, and in messages.
pub(crate) const DASH: &str = "-";
pub(super) const NAME: &str = "standard input";

/// Bytes that are looked at before anything is kept.
const HEAD_BYTES: u64 = 64 << 10;

/// Standard input from its start, packed or not: all who read it read the same.
///
/// # Errors
/// A terminal, an input that cannot be read or begins with zeroes, a folder for temporary files (`TMPDIR`) that cannot
/// take it, or of whose free space it would take more than half.
pub fn standard_input() -> Result<impl Read + Send + 'static, WorkloadError> {
    static SPOOL: OnceLock<Result<Arc<File>, String>> = OnceLock::new();
    let spool = SPOOL.get_or_init(|| spool().map(Arc::new));
    let file = spool.clone().map_err(|why| WorkloadError(format!("{NAME}: {why}")))?;
    Ok(FromStart { file, at: 0 })
}

fn spool() -> Result<File, String> {
    let mut input = io::stdin().lock();
    if input.is_terminal() {
        return Err(
            "it is a terminal; expected a trace in a pipe or a file, as in `zcat trace.gz | ssdlab ... -`".into()
        );
    }
    let folder = std::env::temp_dir();
    let path = folder.join(format!("ssdlab-input-{}", std::process::id()));
    let failed = |error: io::Error| format!("it cannot be kept in {}: {error}", folder.display());
    let mut head = Vec::new();
    input.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(failed)?;
    if head.len() as u64 == HEAD_BYTES && head.iter().all(|byte| *byte == 0) {
        return Err(format!("found {HEAD_BYTES} bytes of zero at its start, expected a trace"));
    }
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).map_err(failed)?;
    // Whatever happens, nothing is left behind.
    remove_file(&path).map_err(failed)?;
    file.write_all(&head).map_err(failed)?;
    // An input without an end must not fill the disk.
    let free = statvfs(&folder).map_err(|error| failed(error.into()))?;
    let most = free.f_bavail.saturating_mul(free.f_frsize) / 2;
    if io::copy(&mut input.take(most), &mut file).map_err(failed)? == most {
        return Err(format!(
            "it has more than {most} bytes, half of what is free in {}: name a file that holds the trace, or another \
             folder by TMPDIR",
            folder.display()
        ));
    }
    Ok(file)
}

/// A reader with a place of its own.
struct FromStart {
    file: Arc<File>,
    at: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(buffer, self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}
