//! Captures of Ready/Busy lines: a logic analyser's, or a run's own.
//!
//! A file is recognised by its content, gzip is unpacked on the way, and it is decoded in constant memory: edges are
//! handed out some thousands at a time. A level is a die's: low is busy, as the pin is; `Select::invert` turns that
//! around. What a line was before its first value is not known, so that value makes no edge.

mod csv;
mod input;
mod sigrok;
mod vcd;

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use ssdlab_base::{Nanos, closest};
use ssdlab_workload::{Archive, Compression};

use crate::Edge;
use input::Input;

/// Edges handed out at once, at most.
const BATCH: usize = 8192;
/// More lines than this are no Ready/Busy lines.
const LINES_MAX: usize = 1 << 16;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Value change dump (IEEE 1364).
    Vcd,
    /// sigrok session (`.sr`).
    Sigrok,
    /// Saleae's CSV, a row for each change, or for each sample.
    SaleaeCsv,
    /// sigrok's CSV, which PulseView and DSView write, too.
    SigrokCsv,
}

impl Format {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Vcd => "VCD",
            Format::Sigrok => "sigrok session",
            Format::SaleaeCsv => "Saleae CSV",
            Format::SigrokCsv => "sigrok CSV",
        }
    }
}

/// What of a capture is wanted.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// Lines by name, in the order of the dies they become; none: all of one bit, in the order of the file.
    pub lines: Vec<String>,
    /// The capture is upside down: high is busy.
    pub invert: bool,
    /// Samples a second, for a CSV that counts samples instead of time and does not say how many a second there are.
    pub sample_rate: Option<u64>,
}

/// Where in a capture something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// In this line of a text, from 1, at this byte of the file, from 0.
    Text {
        /// The line.
        line: u64,
        /// The byte, of the unpacked data if the file is packed.
        byte: u64,
        /// The file is packed.
        packed: bool,
    },
    /// In this member of a zip archive, at this byte of it.
    Member(String, u64),
}

/// Why a capture cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureError {
    /// The file.
    pub name: String,
    /// Where.
    pub place: Place,
    /// What was found, and what was expected.
    pub what: String,
}

impl std::error::Error for CaptureError {}

impl std::fmt::Display for CaptureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CaptureError { name, place, what } = self;
        match place {
            Place::Whole => write!(f, "{name}: {what}"),
            Place::Text { line, byte, packed: false } => write!(f, "{name}:{line}: byte {byte}: {what}"),
            Place::Text { line, byte, packed: true } => {
                write!(f, "{name}:{line}: byte {byte} of the unpacked data: {what}")
            }
            Place::Member(member, byte) => write!(f, "{name}: byte {byte} of its member {member}: {what}"),
        }
    }
}

/// Why a line of a capture cannot be chosen by its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Several lines have this last name.
    #[error("several lines are called '{wanted}': give the whole name")]
    Several {
        /// The name that was given.
        wanted: String,
    },
    /// No line has it.
    #[error(
        "there is no line '{wanted}' in it{}; its lines are {lines}",
        meant.as_ref().map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
    )]
    Missing {
        /// The name that was given.
        wanted: String,
        /// The line that was probably meant.
        meant: Option<String>,
        /// The names of the lines, cut where they are many.
        lines: String,
    },
    /// The name is given twice.
    #[error("the line '{wanted}' is named twice")]
    Twice {
        /// The name that was given.
        wanted: String,
    },
}

/// What a decoded capture was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The first time in it.
    pub start: Nanos,
    /// The last.
    pub end: Nanos,
    /// Edges of the wanted lines.
    pub edges: u64,
    /// Values of wanted lines that were neither low nor high (`x`, and VHDL's `U`, `W`, `-`): taken as no change.
    pub unknown: u64,
    /// The last line of a text has no end: its number, and the bytes up to there. The file may have been cut off in it.
    pub unfinished: Option<(u64, u64)>,
}

/// A capture whose head has been read.
pub struct Capture {
    format: Format,
    lines: Vec<String>,
    resolution: Option<Nanos>,
    notes: Vec<String>,
    body: Body,
}

enum Body {
    Vcd(vcd::Body),
    Sigrok(sigrok::Body),
    Csv(csv::Body),
}

/// What the decoders hand edges to.
type Sink<'s> = &'s mut dyn FnMut(&[Edge]);

trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

impl Capture {
    /// Opens a file, recognises its format and finds the wanted lines.
    ///
    /// # Errors
    /// It cannot be opened, is in no known format, or has no such lines.
    pub fn open(path: &Path, select: &Select) -> Result<Capture, CaptureError> {
        let name = path.display().to_string();
        let fail = |what: String| CaptureError { name: name.clone(), place: Place::Whole, what };
        let file = File::open(path).map_err(|error| fail(format!("the capture cannot be opened: {error}")))?;
        let kind = file.metadata().map_err(|error| fail(format!("the capture cannot be opened: {error}")))?;
        if !kind.is_file() {
            return Err(fail("this is not a regular file; expected a capture".to_string()));
        }
        Capture::from_source(name, Box::new(file), select)
    }

    /// Takes a capture from bytes in memory, recognises its format and finds the wanted lines; `name` is for errors.
    ///
    /// # Errors
    /// The bytes cannot be read, are in no known format, or have no such lines.
    pub fn from_bytes(name: &str, bytes: Vec<u8>, select: &Select) -> Result<Capture, CaptureError> {
        Capture::from_source(name.to_string(), Box::new(Cursor::new(bytes)), select)
    }

    fn from_source(name: String, mut source: Box<dyn ReadSeek>, select: &Select) -> Result<Capture, CaptureError> {
        let fail = |what: String| CaptureError { name: name.clone(), place: Place::Whole, what };
        let mut head = [0; 6];
        let (got, read) = input::read_full(&mut source, &mut head);
        read.and_then(|()| source.seek(SeekFrom::Start(0)))
            .map_err(|error| fail(format!("reading failed: {error}")))?;
        if got == 0 {
            return Err(fail("the file is empty; expected a capture".to_string()));
        }
        if head.starts_with(b"PK\x03\x04") {
            return sigrok::open(name, source, select);
        }
        let packed = Compression::of(&head);
        let source: Box<dyn Read + Send> = match packed {
            None => Box::new(source),
            Some(Compression::Gzip) => {
                Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, source)))
            }
            Some(other) => {
                return Err(fail(format!(
                    "the file is compressed with {}; expected a capture, plain or gzip: unpack it, as in \
                     `{} > CAPTURE`",
                    other.name(),
                    other.unpack(&name)
                )));
            }
        };
        let mut input = Input::new(name, packed, source);
        if let Some(archive) = Archive::of(input.peek()?) {
            return Err(input.is_archive(archive));
        }
        // sigrok-cli puts what it read of the input before the VCD: `META samplerate: 1000000`.
        while input.peek_text()?.starts_with(b"META ") {
            let Some(length) = input.next_line()? else { break };
            input.take(length);
        }
        let first = input.bytes();
        match first {
            [b'$', ..] => vcd::open(input, select),
            [b'0'..=b'9' | b'-' | b'A'..=b'Z' | b'a'..=b'z' | b'"', ..] => csv::open(input, select),
            _ if csv::is_commented(first) => csv::open(input, select),
            _ => {
                let shown: Vec<String> = first.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                let found = if shown.is_empty() { "nothing".to_string() } else { format!("bytes {}", shown.join(" ")) };
                Err(input.whole(format!(
                    "it begins with {found}; expected a VCD (`$...`), a sigrok session (.sr, a zip archive), or a CSV of \
                     Saleae Logic (`Time [s],Channel 0,...`) or sigrok (`; CSV generated by ...`)"
                )))
            }
        }
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The names of the lines that are decoded; a line's place is the die number of its edges.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The place among [`Capture::lines`] of one that is called so, or whose name ends so.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn line(&self, name: &str) -> Result<usize, LineError> {
        Ok(choose(&self.lines, &[name.to_string()])?[0])
    }

    /// The time between two samples, or the time unit, where the file says it.
    pub fn resolution(&self) -> Option<Nanos> {
        self.resolution
    }

    /// What a person should know about how the file was understood.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Decodes it to its end: `sink` is given all edges, in order of time, some thousands at a time.
    ///
    /// # Errors
    /// The file is damaged; edges before the damage have been handed out.
    pub fn decode(self, mut sink: impl FnMut(&[Edge])) -> Result<Decoded, CaptureError> {
        match self.body {
            Body::Vcd(body) => body.decode(&mut sink),
            Body::Sigrok(body) => body.decode(&mut sink),
            Body::Csv(body) => body.decode(&mut sink),
        }
    }
}

/// Which of the lines in a file are wanted: places in `names`.
fn choose(names: &[String], wanted: &[String]) -> Result<Vec<usize>, LineError> {
    let mut chosen = Vec::with_capacity(wanted.len());
    for want in wanted {
        let mut exact = names.iter().enumerate().filter(|(_, name)| *name == want);
        let last = |name: &str| name.rsplit('.').next().is_some_and(|last| last == want);
        let mut by_last = names.iter().enumerate().filter(|(_, name)| last(name));
        let found = match (exact.next(), by_last.next(), by_last.next()) {
            (Some((place, _)), _, _) | (None, Some((place, _)), None) => place,
            (None, Some(_), Some(_)) => return Err(LineError::Several { wanted: want.clone() }),
            (None, None, _) => {
                let meant = closest(want, names.iter().map(String::as_str)).map(str::to_string);
                return Err(LineError::Missing { wanted: want.clone(), meant, lines: list(names) });
            }
        };
        if chosen.contains(&found) {
            return Err(LineError::Twice { wanted: want.clone() });
        }
        chosen.push(found);
    }
    Ok(chosen)
}

/// Names for a sentence, not more than a person reads.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 16;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(|name| shorten(name)).collect();
    let rest = names.len().saturating_sub(SHOWN);
    if rest > 0 { format!("{} and {rest} more", shown.join(", ")) } else { shown.join(", ") }
}

/// The first characters of a text that a file made up.
fn shorten(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

/// Bytes of a file as they are shown in an error.
fn quote(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes).chars().take(40).collect();
    format!("'{}'", text.escape_debug())
}
