//! A capture's bytes, through a buffer that moves along, with the place reached.

use std::io::{self, Read};

use super::{CaptureError, Place};

/// The buffer. No word and no line of a capture is longer.
const BUFFER: usize = 1 << 20;

/// Reads until the buffer is full or the data end.
pub(super) fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match reader.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// The bytes of a text capture.
pub(super) struct Input {
    name: String,
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    /// Of the file, the byte at `buffer[0]`.
    base: u64,
    lines: u64,
}

impl Input {
    pub(super) fn new(name: String, reader: Box<dyn Read + Send>) -> Input {
        Input { name, reader, buffer: Vec::new(), start: 0, end: 0, ended: false, base: 0, lines: 0 }
    }

    pub(super) fn whole(&self, what: impl Into<String>) -> CaptureError {
        CaptureError { name: self.name.clone(), place: Place::Whole, what: what.into() }
    }

    /// An error `ahead` bytes after the place reached.
    pub(super) fn at(&self, ahead: usize, what: impl Into<String>) -> CaptureError {
        let place = Place::Byte(self.base + (self.start + ahead) as u64);
        CaptureError { name: self.name.clone(), place, what: what.into() }
    }

    /// An error in the line last taken.
    pub(super) fn in_line(&self, what: impl Into<String>) -> CaptureError {
        CaptureError { name: self.name.clone(), place: Place::Line(self.lines), what: what.into() }
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
        self.start = (self.start + count).min(self.end);
    }

    /// Reads more behind what is there; false when there is no more, or no room.
    pub(super) fn fill(&mut self) -> Result<bool, CaptureError> {
        if self.ended {
            return Ok(false);
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
        match read_full(&mut self.reader, &mut self.buffer[self.end..]) {
            Ok(got) => {
                self.ended = self.end + got < self.buffer.len();
                self.end += got;
                Ok(got > 0)
            }
            Err(error) => Err(self.at(self.end - self.start, format!("reading failed: {error}"))),
        }
    }

    /// The first bytes behind a byte order mark and white space, which are taken.
    pub(super) fn peek_text(&mut self) -> Result<&[u8], CaptureError> {
        self.fill()?;
        if self.bytes().starts_with(b"\xef\xbb\xbf") {
            self.take(3);
        }
        let blank = self.bytes().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.lines += self.bytes()[..blank].iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.take(blank);
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
                self.take(length);
                return Ok(Some(word));
            }
            if !self.fill()? && !self.ended {
                return Err(self.at(0, format!("a word is longer than {BUFFER} bytes; expected a capture")));
            }
        }
    }

    /// The length of the next line with its end, or nothing at the end of the data: take it with
    /// [`Input::line`].
    pub(super) fn next_line(&mut self) -> Result<Option<usize>, CaptureError> {
        loop {
            if let Some(found) = memchr::memchr(b'\n', self.bytes()) {
                self.lines += 1;
                return Ok(Some(found + 1));
            }
            if self.ended {
                let left = self.bytes().len();
                self.lines += u64::from(left > 0);
                return Ok((left > 0).then_some(left));
            }
            if !self.fill()? && !self.ended {
                self.lines += 1;
                return Err(self.in_line(format!("the line is longer than {BUFFER} bytes; expected a capture")));
            }
        }
    }

    /// The first `length` bytes without a line end.
    pub(super) fn line(&self, length: usize) -> &[u8] {
        let line = &self.bytes()[..length];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    }
}
