//! A trace from standard input: kept in a file without a name, because a trace is read more than once.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, OnceLock};

use crate::WorkloadError;

/// What standard input is called in a trace's specification, and in messages.
pub(crate) const DASH: &str = "-";
pub(super) const NAME: &str = "standard input";

/// Standard input from its start, packed or not: all who read it read the same.
///
/// # Errors
/// A terminal, an input that cannot be read, a folder for temporary files (`TMPDIR`) that cannot take it.
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
    let path = std::env::temp_dir().join(format!("ssdlab-input-{}", std::process::id()));
    let failed = |error: io::Error| format!("it cannot be kept in {}: {error}", std::env::temp_dir().display());
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).map_err(failed)?;
    // Whatever happens, nothing is left behind.
    remove_file(&path).map_err(failed)?;
    io::copy(&mut input, &mut file).map_err(failed)?;
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
