//! A capture's bytes, through a buffer that moves along, with the place reached.

use std::io::{self, Read};

use ssdlab_workload::{Archive, Compression};

use super::{CaptureError, Place};

/// The buffer. No word and no line of a capture is longer.
const BUFFER: usize = 1 << 20;

/// Reads until the buffer is full or the data end; what was read before an error counts.
pub(super) fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> (usize, io::Result<()>) {
    let mut got = 0;
    while got < buffer.len() {
        match reader.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (got, Err(error)),
        }
    }
    (got, Ok(()))
}

/// The bytes of a text capture.
pub(super) struct Input {
    name: String,
    reader: Box<dyn Read + Send>,
    packed: Option<Compression>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    /// Reading failed behind what is in the buffer.
    failed: Option<io::Error>,
    /// Of the file, the byte at `buffer[0]`.
    base: u64,
    /// Line ends before `buffer[start]`.
    lines: u64,
    /// Where the word last given begins.
    word_at: Place,
}

impl Input {
    pub(super) fn new(name: String, packed: Option<Compression>, reader: Box<dyn Read + Send>) -> Input {
        Input {
            name,
            reader,
            packed,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            ended: false,
            failed: None,
            base: 0,
            lines: 0,
            word_at: Place::Whole,
        }
    }

    pub(super) fn whole(&self, what: impl Into<String>) -> CaptureError {
        self.in_place(Place::Whole, what)
    }

    pub(super) fn in_place(&self, place: Place, what: impl Into<String>) -> CaptureError {
        CaptureError { name: self.name.clone(), place, what: what.into() }
    }

    /// An error `ahead` bytes after the place reached.
    pub(super) fn at(&self, ahead: usize, what: impl Into<String>) -> CaptureError {
        let (line, byte) = self.line_and_byte(ahead);
        self.in_place(Place::Text { line, byte, packed: self.packed.is_some() }, what)
    }

    /// The line, from 1, and the byte, from 0, `ahead` bytes after the place reached.
    pub(super) fn line_and_byte(&self, ahead: usize) -> (u64, u64) {
        let line = 1 + self.lines + line_ends(&self.bytes()[..ahead]);
        (line, self.base + (self.start + ahead) as u64)
    }

    /// What has been read and not been taken.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether nothing comes behind [`Input::bytes`].
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    pub(super) fn take(&mut self, count: usize) {
        let to = (self.start + count).min(self.end);
        self.lines += line_ends(&self.buffer[self.start..to]);
        self.start = to;
    }

    /// Reads more behind what is there; false when there is no more, or no room.
    pub(super) fn fill(&mut self) -> Result<bool, CaptureError> {
        if self.ended {
            return Ok(false);
        }
        if let Some(error) = self.failed.take() {
            return Err(self.damaged(&error));
        }
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER];
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            return Ok(false);
        }
        let (got, end) = read_full(&mut self.reader, &mut self.buffer[self.end..]);
        self.end += got;
        match end {
            Ok(()) => self.ended = self.end < self.buffer.len(),
            // What could be read is looked at first.
            Err(error) if got > 0 => self.failed = Some(error),
            Err(error) => return Err(self.damaged(&error)),
        }
        Ok(got > 0)
    }

    /// Reading failed behind everything that could be read.
    fn damaged(&self, error: &io::Error) -> CaptureError {
        let packing = self.packed.map_or("", Compression::name);
        let what = match (packing, error.kind()) {
            ("", _) => format!("reading failed: {error}"),
            (_, io::ErrorKind::UnexpectedEof) => {
                format!("the {packing} data end early: the file was cut off, and what comes behind this is missing")
            }
            _ => format!("the {packing} data are damaged behind this: {error}"),
        };
        self.at(self.bytes().len(), what)
    }

    /// It is an archive, with captures in it perhaps: how to unpack one.
    pub(super) fn is_archive(&self, archive: Archive) -> CaptureError {
        let within = self.packed.map_or(String::new(), |packed| format!(" in {}", packed.name()));
        self.whole(format!(
            "this is a {} archive{within}; expected a capture: unpack it, as in `{} > CAPTURE`; if there are several files in \
             it, name the one that is meant behind the archive's name",
            archive.name(),
            archive.unpack(self.packed, Some(&self.name))
        ))
    }

    /// The first bytes.
    pub(super) fn peek(&mut self) -> Result<&[u8], CaptureError> {
        if self.bytes().is_empty() {
            self.fill()?;
        }
        Ok(self.bytes())
    }

    /// The first bytes behind a byte order mark and white space, which are taken.
    pub(super) fn peek_text(&mut self) -> Result<&[u8], CaptureError> {
        self.peek()?;
        if self.bytes().starts_with(b"\xef\xbb\xbf") {
            self.take(3);
        }
        let blank = self.bytes().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.take(blank);
        if self.bytes().is_empty() {
            self.fill()?;
        }
        Ok(self.bytes())
    }

    /// The next word, or nothing at the end.
    pub(super) fn word(&mut self) -> Result<Option<Vec<u8>>, CaptureError> {
        loop {
            let blank = self.bytes().iter().take_while(|&&byte| byte <= b' ').count();
            self.take(blank);
            let word = self.bytes().iter().position(|&byte| byte <= b' ');
            if let Some(length) = word.or_else(|| self.ended.then(|| self.bytes().len())) {
                if length == 0 {
                    return Ok(None);
                }
                let word = self.bytes()[..length].to_vec();
                self.word_at = self.at(0, "").place;
                self.take(length);
                return Ok(Some(word));
            }
            if !self.fill()? && !self.ended {
                return Err(self.at(0, format!("a word is longer than {BUFFER} bytes; expected a capture")));
            }
        }
    }

    /// Where the word last given begins.
    pub(super) fn word_place(&self) -> Place {
        self.word_at.clone()
    }

    /// The length of the next line with its end, or nothing at the end of the data: look at it with [`Input::line`], then
    /// take it.
    pub(super) fn next_line(&mut self) -> Result<Option<usize>, CaptureError> {
        loop {
            if let Some(found) = memchr::memchr(b'\n', self.bytes()) {
                return Ok(Some(found + 1));
            }
            if self.ended {
                let left = self.bytes().len();
                return Ok((left > 0).then_some(left));
            }
            if !self.fill()? && !self.ended {
                return Err(self.at(0, format!("the line is longer than {BUFFER} bytes; expected a capture")));
            }
        }
    }

    /// The first `length` bytes without a line end.
    pub(super) fn line(&self, length: usize) -> &[u8] {
        let line = &self.bytes()[..length];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Whether the line of this length has no end, as the last one of a file that was cut off.
    pub(super) fn unfinished(&self, length: usize) -> bool {
        !self.bytes()[..length].ends_with(b"\n")
    }

    /// What is wrong with the last word or line, which has no end.
    pub(super) fn cut_off(&self, error: CaptureError) -> CaptureError {
        let what = format!(
            "the file ends in the middle of this line: it was cut off, and the rest is missing ({})",
            error.what
        );
        CaptureError { what, ..error }
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
