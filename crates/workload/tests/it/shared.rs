//! The folder with traces and recordings beside the repository, where there is one.

use std::path::PathBuf;

/// A file or folder under `shared`, or nothing with a printed reason.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let full = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")).join(path);
    if full.exists() {
        Some(full)
    } else {
        eprintln!("skipped: {} is not there", full.display());
        None
    }
}
