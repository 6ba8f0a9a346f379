//! The numbers in a paper's pages (`papers/PAPER/*.md`): they stand between markers and are written by the command.
//!
//! ```text
//! <!-- ssdlab figure08 -->
//! lines that the command replaces
//! <!-- /ssdlab -->
//! ```
//!
//! A name is a figure's, `summary` (every published value with ours) or `inputs`. What stands around the markers is a
//! person's and is never touched.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::ReproduceError;
use super::grid::Grid;
use super::output::{FigureReport, Report};
use super::text;
use ssdlab_lab::output::{OutputError, Staging};

/// How a marker begins and ends.
const BEGIN: &str = "<!-- ssdlab ";
const CLOSE: &str = " -->";
const END: &str = "<!-- /ssdlab -->";

/// Why the pages could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum DocsError {
    /// A page is wrong.
    #[error(transparent)]
    Page(#[from] ReproduceError),
    /// A page cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// The names between the markers of a page, in order.
///
/// # Errors
/// A marker without its end, with file and line.
pub fn markers(file: &str, page: &str) -> Result<Vec<String>, ReproduceError> {
    let mut names = Vec::new();
    replaced(file, page, |name| {
        names.push(name.to_string());
        None
    })?;
    Ok(names)
}

/// Rewrites the numbers in every page of `folder` that has markers for what `report` shows; gives back the pages changed.
///
/// # Errors
/// A page whose markers are wrong, and files that cannot be read or written. No page is left half.
pub fn update(report: &Report, folder: &Path) -> Result<Vec<PathBuf>, DocsError> {
    let unreadable = |path: &Path, error: std::io::Error| ReproduceError::new(format!("{}: {error}", path.display()));
    let mut pages: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    let mut staging = Staging::new(folder)?;
    let mut changed = Vec::new();
    for path in pages {
        let page = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        let new = replaced(&path.display().to_string(), &page, |name| block(report, name))?;
        if new != page {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            staging.write(&name, |to| to.write_all(new.as_bytes()))?;
            changed.push(path);
        }
    }
    staging.commit()?;
    Ok(changed)
}

/// The page with each block replaced for which `block` has something.
fn replaced(file: &str, page: &str, mut block: impl FnMut(&str) -> Option<String>) -> Result<String, ReproduceError> {
    let mut text = String::with_capacity(page.len());
    let mut lines = page.split_inclusive('\n').enumerate();
    while let Some((index, line)) = lines.next() {
        text.push_str(line);
        let bare = line.trim_end();
        if bare == END {
            return Err(ReproduceError::new(format!(
                "{file}, line {}: found '{END}' without its beginning",
                index + 1
            )));
        }
        let Some(name) = bare.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(CLOSE)) else { continue };
        let mut old = String::new();
        loop {
            let Some((_, line)) = lines.next() else {
                let sentence = format!("{file}, line {}: '{bare}' is not followed by '{END}'", index + 1);
                return Err(ReproduceError::new(sentence));
            };
            if line.trim_end() == END {
                match block(name) {
                    Some(new) => text.push_str(&format!("\n{}\n", new.trim_end())),
                    None => text.push_str(old.trim_end_matches('\n')),
                }
                if !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(line);
                break;
            }
            old.push_str(line);
        }
    }
    Ok(text)
}

fn block(report: &Report, name: &str) -> Option<String> {
    match name {
        // What is said of some figures would lose the others.
        "summary" => report.whole.then(|| summary(report)),
        "inputs" => report.whole.then(|| text::inputs(report).markdown()),
        name => report.figures.iter().find(|figure| figure.id == name).map(one),
    }
}

/// Every published value with ours.
fn summary(report: &Report) -> String {
    let mut all = Grid::default();
    for figure in &report.figures {
        let mut grid = text::compared(&figure.compared, figure.drives_are);
        for row in &mut grid.rows {
            let name = text::heading(figure.id);
            row.insert(0, format!("[{name}]({}.md)", figure.id));
        }
        grid.heads.insert(0, String::new());
        all.heads = grid.heads;
        all.labels = grid.labels + 1;
        all.rows.extend(grid.rows);
    }
    all.markdown()
}

fn one(figure: &FigureReport) -> String {
    let mut text = figure.grid.markdown();
    for picture in &figure.pictures {
        text.push_str(&format!("\n{}:\n\n```text\n{}```\n", picture.title, picture.plain()));
    }
    let compared = text::compared(&figure.compared, figure.drives_are);
    if !compared.rows.is_empty() {
        text.push('\n');
        text.push_str(&compared.markdown());
    }
    if !figure.remarks.is_empty() {
        text.push('\n');
        for remark in &figure.remarks {
            text.push_str(&format!("- {remark}\n"));
        }
    }
    if let [first, rest @ ..] = figure.commands.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(", one of {}", rest.len() + 1) };
        text.push_str(&format!("\nA run alone{more}:\n\n```\n{first}\n```\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n<!-- ssdlab a -->\nold\n<!-- /ssdlab -->\nwords\n<!-- ssdlab b -->\n<!-- /ssdlab -->\n";

    #[test]
    fn only_what_stands_between_the_markers_changes_and_a_second_time_changes_nothing() {
        let new = |page: &str| {
            replaced("p.md", page, |name| (name == "a").then(|| "| new |\n".to_string())).expect("a right page")
        };
        let once = new(PAGE);
        assert_eq!(
            once,
            "# A\n<!-- ssdlab a -->\n\n| new |\n<!-- /ssdlab -->\nwords\n<!-- ssdlab b -->\n<!-- /ssdlab -->\n"
        );
        assert_eq!(new(&once), once);
        assert_eq!(markers("p.md", PAGE).expect("a right page"), ["a", "b"]);
    }

    #[test]
    fn a_marker_without_its_other_half_is_an_error_with_its_line() {
        let error = |page: &str| markers("p.md", page).expect_err("a wrong page").to_string();
        assert!(error("x\n<!-- ssdlab a -->\nold\n").starts_with("p.md, line 2: '<!-- ssdlab a -->' is not followed"));
        assert!(error("<!-- /ssdlab -->\n").starts_with("p.md, line 1: found '<!-- /ssdlab -->' without"));
    }
}
