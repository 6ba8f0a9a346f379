//! The bytes of a trace: a file or a buffer, unpacked on the way, cut into lines or records in constant memory.
//!
//! Compression is told by the first bytes, never by the name. Several gzip members, zstd frames, xz streams or bzip2
//! streams behind one another are one file. Compressed input that ends early or is damaged is an error naming the file.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::standard_input::{self, standard_input};
use crate::{Archive, Compression, WorkloadError};

/// The buffer a file is read through.
const BUFFER: usize = 256 << 10;
/// A longer line is no trace.
const LINE_MAX: usize = 1 << 20;
/// An xz file that needs more memory than this to unpack is refused.
const XZ_MEMORY_KIB: u32 = 1 << 20;

/// Where a trace's bytes are, so that it can be read again from the start.
#[derive(Clone)]
pub(super) enum Origin {
    File(PathBuf),
    StandardInput,
    Bytes(String, Arc<[u8]>),
    /// Text that is made as it is read, the same each time.
    Made(String, Make),
}

/// Begins to make the text of a trace.
pub(crate) type Make = Arc<dyn Fn() -> Box<dyn Read + Send> + Send + Sync>;

impl Origin {
    /// The name that errors begin with.
    pub(super) fn name(&self) -> String {
        match self {
            Origin::File(path) => path.display().to_string(),
            Origin::StandardInput => standard_input::NAME.to_string(),
            Origin::Bytes(name, _) | Origin::Made(name, _) => name.clone(),
        }
    }

    /// It is an archive, with traces in it perhaps: how to unpack one.
    #[cold]
    pub(super) fn is_archive(&self, archive: Archive, packed: Option<Compression>) -> WorkloadError {
        let (name, kind) = (self.name(), archive.name());
        let within = packed.map_or(String::new(), |packed| format!(" in {}", packed.name()));
        let command = match self {
            Origin::StandardInput => archive.unpack(packed, None),
            _ => archive.unpack(packed, Some(&name)),
        };
        let first = if matches!(self, Origin::StandardInput) && archive == Archive::Tar { "... | " } else { "" };
        WorkloadError(format!(
            "{name} is a {kind} archive{within}, expected a trace: unpack it, as in `{first}{command} | ssdlab trace stats -` \
             (`-w -` of a run); if there are several files in it, name the one that is meant behind the archive's name"
        ))
    }

    pub(super) fn open(&self) -> Result<Source, WorkloadError> {
        let name = self.name();
        let fail = |what: &str, error: io::Error| WorkloadError(format!("{name}: {what}: {error}"));
        match self {
            Origin::File(path) => {
                // Looked at before it is opened: opening a named pipe waits for a process that writes to it.
                let kind = std::fs::metadata(path).map_err(|error| fail("the trace cannot be opened", error))?;
                if kind.is_dir() {
                    return Err(WorkloadError(format!("{name} is a folder; expected a trace, which is a file")));
                }
                if !kind.is_file() {
                    return Err(WorkloadError(format!(
                        "{name} is not a regular file; a trace is read more than once, so it has to be one (`-` reads \
                         standard input and keeps a copy: `ssdlab ... -w - < {name}`)"
                    )));
                }
                let mut file = File::open(path).map_err(|error| fail("the trace cannot be opened", error))?;
                let mut head = [0; 6];
                let got = read_full(&mut file, &mut head).map_err(|error| fail("reading", error))?;
                file.seek(SeekFrom::Start(0)).map_err(|error| fail("reading", error))?;
                Source::new(name, &head[..got], file, room(kind.len()))
            }
            Origin::StandardInput => {
                let mut head = [0; 6];
                let got = read_full(&mut standard_input()?, &mut head).map_err(|error| fail("reading", error))?;
                Source::new(name, &head[..got], standard_input()?, BUFFER)
            }
            Origin::Bytes(_, bytes) => Source::new(name, bytes, Cursor::new(bytes.clone()), room(bytes.len() as u64)),
            Origin::Made(_, make) => Source::new(name, &[], make(), BUFFER),
        }
    }
}

/// The buffer for so many bytes: a short trace that is sent a million times over does not pay for a long one's each time.
fn room(bytes: u64) -> usize {
    bytes.saturating_add(1).next_power_of_two().clamp(1 << 10, BUFFER as u64) as usize
}

fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
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

/// A trace's bytes, unpacked, with the place reached.
pub(super) struct Source {
    name: String,
    packed: Option<Compression>,
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    /// Lines, or records, handed out.
    pieces: u64,
    /// Unpacked bytes handed out.
    bytes: u64,
    /// Bytes at which the piece last handed out begins.
    piece_at: u64,
    /// Where the line last handed out is in the buffer, until more is read.
    last_line: Range<usize>,
}

impl Source {
    fn new(name: String, head: &[u8], raw: impl Read + Send + 'static, room: usize) -> Result<Source, WorkloadError> {
        let buffered = io::BufReader::with_capacity(room / 2, raw);
        let packed = Compression::of(head);
        let reader: Box<dyn Read + Send> = match packed {
            Some(Compression::Gzip) => Box::new(flate2::bufread::MultiGzDecoder::new(buffered)),
            Some(Compression::Zstd) => {
                let decoder = zstd::Decoder::with_buffer(buffered)
                    .map_err(|error| WorkloadError(format!("{name}: the zstd data cannot be unpacked: {error}")))?;
                Box::new(decoder)
            }
            Some(Compression::Xz) => Box::new(lzma_rust2::XzReader::new_mem_limit(buffered, true, XZ_MEMORY_KIB)),
            Some(Compression::Bzip2) => Box::new(bzip2::bufread::MultiBzDecoder::new(buffered)),
            None => Box::new(buffered),
        };
        Ok(Source {
            name,
            packed,
            reader,
            buffer: vec![0; room],
            start: 0,
            end: 0,
            ended: false,
            pieces: 0,
            bytes: 0,
            piece_at: 0,
            last_line: 0..0,
        })
    }

    /// The name of the compression, empty for plain data.
    pub(super) fn packing(&self) -> &'static str {
        self.packed.map_or("", Compression::name)
    }

    /// How the file is compressed.
    pub(super) fn packed(&self) -> Option<Compression> {
        self.packed
    }

    /// The trace's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The place of the piece last handed out, for errors: `file:line`, or the record and its byte.
    pub(super) fn place(&self, line: bool) -> String {
        if line {
            format!("{}:{}", self.name, self.pieces)
        } else {
            format!("{}: record {} (byte {})", self.name, self.pieces, self.piece_at)
        }
    }

    /// Lines or records handed out so far.
    pub(super) fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Reads more into the buffer; false at the end of the data.
    fn fill(&mut self) -> Result<bool, WorkloadError> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(got) => {
                    self.end += got;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.damaged(&error)),
            }
        }
    }

    fn damaged(&self, error: &io::Error) -> WorkloadError {
        let (name, packing) = (&self.name, self.packing());
        let at = self.bytes + (self.end - self.start) as u64;
        WorkloadError(match (packing, error.kind()) {
            ("", _) => format!("{name}: reading failed at byte {at}: {error}"),
            (_, io::ErrorKind::UnexpectedEof) => {
                format!("{name}: the {packing} data end early, after {at} unpacked bytes: the file is truncated")
            }
            _ => format!("{name}: the {packing} data are damaged, after {at} unpacked bytes: {error}"),
        })
    }

    /// Up to `wanted` bytes from the place reached, without moving on.
    pub(super) fn peek(&mut self, wanted: usize) -> Result<&[u8], WorkloadError> {
        while self.end - self.start < wanted && self.fill()? {}
        Ok(&self.buffer[self.start..self.end.min(self.start + wanted)])
    }

    /// Whether everything is in what [`Source::peek`] has shown.
    pub(super) fn peeked_all(&self, shown: usize) -> bool {
        self.ended && self.end - self.start <= shown
    }

    /// The next line without its end, or nothing at the end. A last line need not have a line end.
    #[inline]
    pub(super) fn line(&mut self) -> Result<Option<&[u8]>, WorkloadError> {
        let mut searched = 0;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                let length = searched + found;
                return Ok(Some(self.take_line(length, length + 1)));
            }
            searched = self.end - self.start;
            if searched > LINE_MAX {
                self.pieces += 1;
                return Err(WorkloadError(format!(
                    "{}: the line is longer than {LINE_MAX} bytes; expected a text trace with one request a line",
                    self.place(true)
                )));
            }
            if !self.fill()? {
                if searched == 0 {
                    return Ok(None);
                }
                return Ok(Some(self.take_line(searched, searched)));
            }
        }
    }

    #[inline]
    fn take_line(&mut self, length: usize, taken: usize) -> &[u8] {
        let mut from = self.start;
        let mut to = self.start + length;
        self.start += taken;
        self.piece_at = self.bytes;
        if self.bytes == 0 && self.buffer[from..to].starts_with(b"\xef\xbb\xbf") {
            from += 3;
        }
        self.bytes += taken as u64;
        self.pieces += 1;
        if to > from && self.buffer[to - 1] == b'\r' {
            to -= 1;
        }
        self.last_line = from..to;
        &self.buffer[from..to]
    }

    /// The line last handed out.
    pub(super) fn last_line(&self) -> &[u8] {
        &self.buffer[self.last_line.clone()]
    }

    /// The next `size` bytes, or nothing at the end.
    pub(super) fn record(&mut self, size: usize) -> Result<Option<&[u8]>, WorkloadError> {
        while self.end - self.start < size {
            if !self.fill()? {
                let left = self.end - self.start;
                if left == 0 {
                    return Ok(None);
                }
                return Err(WorkloadError(format!(
                    "{}: the file ends in the middle of record {}: {left} bytes are left, expected {size}",
                    self.name,
                    self.pieces + 1
                )));
            }
        }
        let from = self.start;
        self.start += size;
        self.piece_at = self.bytes;
        self.bytes += size as u64;
        self.pieces += 1;
        Ok(Some(&self.buffer[from..from + size]))
    }

    /// Leaves out `count` bytes that belong to the record just taken.
    pub(super) fn skip(&mut self, mut count: usize) -> Result<(), WorkloadError> {
        while count > 0 {
            if self.start == self.end && !self.fill()? {
                return Err(WorkloadError(format!(
                    "{}: the file ends inside the record's data: {count} more bytes expected",
                    self.place(false)
                )));
            }
            let step = count.min(self.end - self.start);
            self.start += step;
            self.bytes += step as u64;
            count -= step;
        }
        Ok(())
    }
}
