//! The tables of docs/torture.md that tests find.

/// Holds the table below `header` against `rows`, or writes it where `SSDLAB_WRITE_DOCS` is set.
///
/// # Panics
/// The page has no such table, or another one.
pub(crate) fn hold(header: &str, rows: &[String]) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/torture.md");
    let page = std::fs::read_to_string(path).expect("docs/torture.md ships");
    let (before, table) = page.split_once(header).unwrap_or_else(|| panic!("docs/torture.md has no table '{header}'"));
    let after = table.split_once("\n\n").map_or("", |(_, after)| after);
    let rule = " --- |".repeat(header.matches(" | ").count() + 1);
    let right = format!("{before}{header}\n|{rule}\n{}\n\n{after}", rows.join("\n"));
    if std::env::var_os("SSDLAB_WRITE_DOCS").is_some() {
        return std::fs::write(path, right).expect("docs/torture.md can be written");
    }
    let differs = page.lines().zip(right.lines()).find(|(page, right)| page != right);
    assert!(
        page == right,
        "docs/torture.md does not show what this test finds, first here:\n{differs:?}\n\
         write the table with SSDLAB_WRITE_DOCS=1 before the command of this test"
    );
}
