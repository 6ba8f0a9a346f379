//! Standard error: notes, warnings and errors, with nothing in them that a terminal would obey.

use std::fmt::Display;
use std::io::Write as _;

use ssdlab_lab::text::printable_lines;

/// Says one or more lines. Who has closed standard error is not told.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{}", printable_lines(&text.to_string()));
}

/// What a person should know.
pub(crate) fn note(sentence: impl Display) {
    say(format_args!("note: {sentence}"));
}
