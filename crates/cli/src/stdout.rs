//! Standard output, which may end before we do: `ssdlab trace head FILE | head -1` is no error. What names of files, jobs
//! and drives hold is escaped here, so that it reaches no terminal.

use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};

use serde::Serialize;
use ssdlab_lab::text::printable;

use crate::escaping::{Escaping, Spelling};
use crate::failure::Failure;

/// Where the text of a command goes.
pub(crate) type Text = Escaping<BufWriter<StdoutLock<'static>>>;

/// Writes text to standard output. A reader who has gone ends the writing in silence; a full disk is an error.
pub(crate) fn print(fill: impl FnOnce(&mut Text) -> io::Result<()>) -> Result<(), Failure> {
    written(Spelling::Text, fill)
}

/// Writes JSON, which stays JSON.
pub(crate) fn print_as_json(fill: impl FnOnce(&mut Text) -> io::Result<()>) -> Result<(), Failure> {
    written(Spelling::Json, fill)
}

/// Prints a value as indented JSON and a newline.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print_as_json(|to| {
        serde_json::to_writer_pretty(&mut *to, value)?;
        to.write_all(b"\n")
    })
}

/// Prints a line at once, also into a pipe.
pub(crate) fn say(line: &str) -> Result<(), Failure> {
    print(|to| {
        writeln!(to, "{line}")?;
        to.flush()
    })
}

/// Prints a line at once, as a heading where that is seen.
pub(crate) fn say_bold(line: &str) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return say(line);
    }
    let lines: Vec<String> = line.lines().map(|line| format!("\x1b[1m{}\x1b[0m\n", printable(line))).collect();
    finished(|to| {
        to.write_all(lines.concat().as_bytes())?;
        to.flush()
    })
}

fn written(spelling: Spelling, fill: impl FnOnce(&mut Text) -> io::Result<()>) -> Result<(), Failure> {
    let mut to = Escaping::new(BufWriter::new(io::stdout().lock()), spelling);
    let done = fill(&mut to).and_then(|()| to.flush());
    // Whatever could not be written must not be tried again when the buffer goes.
    let _ = to.into_inner().into_parts();
    ended(done)
}

fn finished(fill: impl FnOnce(&mut StdoutLock<'static>) -> io::Result<()>) -> Result<(), Failure> {
    ended(fill(&mut io::stdout().lock()))
}

fn ended(done: io::Result<()>) -> Result<(), Failure> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::work(format!("standard output could not be written: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Lines whose columns stand below each other; the last column runs free.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    ssdlab_lab::text::columns(rows, usize::MAX)
}
