//! What a run leaves behind: numbers, a table, files and a report.
//!
//! [`RunResult`] is the structure of `result.json` (docs/results.md describes every key); printed with `{}` it is the
//! table of `ssdlab run`. Times are in nanoseconds of virtual time, sizes in bytes, and only keys that begin with
//! `wall_` differ between two equal runs.

#[doc(inline)]
pub use ssdlab_lab::output::{OutputError, ReadError, read_results, write_into, write_json, write_summary_csv};
#[doc(inline)]
pub use ssdlab_lab::report::render as report;
#[doc(inline)]
pub use ssdlab_lab::result::*;
#[doc(inline)]
pub use ssdlab_lab::table::render as table;
