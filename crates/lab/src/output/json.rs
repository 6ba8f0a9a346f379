//! The layout of `result.json`: objects indented a key to a line, lists on one line.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// Indents objects and keeps lists of scalars on one line.
#[derive(Debug, Default)]
pub(super) struct Layout {
    depth: usize,
    empty: bool,
}

impl Layout {
    fn line(&self, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        to.write_all(b"\n")?;
        for _ in 0..self.depth {
            to.write_all(b"  ")?;
        }
        Ok(())
    }
}

impl Formatter for Layout {
    fn begin_array_value<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.empty = true;
        to.write_all(b"{")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if !first {
            to.write_all(b",")?;
        }
        self.empty = false;
        self.line(to)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }

    fn end_object<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if !self.empty {
            self.line(to)?;
        }
        self.empty = false;
        to.write_all(b"}")
    }
}
