//! Standard output, which may end before we do: `ssdlab trace head FILE | head -1` is no error.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes to standard output. A reader who has gone ends the writing in silence; a full disk is an error.
pub(crate) fn print(fill: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>) -> Result<(), Failure> {
    let mut to = BufWriter::new(io::stdout().lock());
    let done = fill(&mut to).and_then(|()| to.flush());
    // Whatever could not be written must not be tried again when the buffer goes.
    let _ = to.into_parts();
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::work(format!("standard output could not be written: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Prints a value as indented JSON and a newline.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(|to| {
        serde_json::to_writer_pretty(&mut *to, value)?;
        to.write_all(b"\n")
    })
}

/// Lines whose columns stand below each other; the last column runs free.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn columns_stand_below_each_other_and_lines_end_without_spaces() {
        let rows = [vec!["a".into(), "1".into(), "x".into()], vec!["längst".into(), "22".into(), String::new()]];
        assert_eq!(aligned(&rows), "a       1   x\nlängst  22\n");
    }
}
