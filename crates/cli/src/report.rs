//! `ssdlab report`: the page again, from results that lie in a folder.

use std::io::{self, Write as _};

use ssdlab_lab::output::{Staging, read_results};

use crate::args::Report;
use crate::failure::Failure;
use crate::stdout;

/// Reads `result.json` and writes `report.html` beside it.
pub(crate) fn report(report: &Report) -> Result<(), Failure> {
    let run = read_results(&report.folder).map_err(|error| {
        let missing = error.source.kind() == io::ErrorKind::NotFound;
        let failure = Failure::input(error);
        if missing {
            failure.hint("`ssdlab run --out DIR` writes the results that a report is made of")
        } else {
            failure
        }
    })?;
    let mut staging = Staging::new(&report.folder).map_err(Failure::work)?;
    let page = ssdlab_lab::report::render(&run);
    staging.write("report.html", |to| to.write_all(page.as_bytes())).map_err(Failure::work)?;
    staging.commit().map_err(Failure::work)?;
    let path = report.folder.join("report.html");
    stdout::print(|to| writeln!(to, "{}", path.display()))
}
