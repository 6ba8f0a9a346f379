//! Results of single runs, kept under `OUT/runs`, so that an interrupted reproduction goes on where it stopped.
//!
//! A file is a run's `result.json` under the run's key; what cannot be read or is not complete is made again.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use ssdlab_lab::output::{OutputError, Staging, write_json};
use ssdlab_lab::result::FORMAT;

/// The folder of runs.
#[derive(Clone, Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    /// Beneath a reproduction's folder.
    pub(super) fn at(out: &Path) -> Store {
        Store { folder: out.join("runs") }
    }

    /// A run's result, if it was kept whole.
    pub(super) fn find(&self, key: &str) -> Option<Value> {
        let text = fs::read_to_string(self.folder.join(format!("{key}.json"))).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        let whole = value.get("format")?.as_u64()? == u64::from(FORMAT) && value.get("complete")?.as_bool()?;
        whole.then_some(value)
    }

    /// Keeps a run's result; it appears whole or not at all.
    pub(super) fn keep(&self, key: &str, result: &impl Serialize) -> Result<(), OutputError> {
        let mut staging = Staging::new(&self.folder)?;
        staging.write(&format!("{key}.json"), |to| write_json(result, to))?;
        staging.commit()
    }
}
