//! What a format's decoder makes of one line or binary record, before time and addresses are arranged.

use ssdlab_base::{Op, Opcode};

use super::arrange::SPAN_EXPECTED;
use super::number::stamp;
use super::options::Options;

/// One request as the trace has it: absolute time, its own device, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Stamp in nanoseconds since the format's own origin.
    pub(crate) at_ns: u64,
    pub(crate) op: Op,
    pub(crate) fua: bool,
    /// The format's own number of the device, disk, volume or LUN.
    pub(crate) device: u64,
    /// Bytes; zero for a flush.
    pub(crate) offset: u64,
    /// Bytes; zero for a flush.
    pub(crate) length: u64,
}

impl Record {
    pub(super) const fn flush(at_ns: u64, device: u64) -> Record {
        Record { at_ns, op: Op::Flush, fua: false, device, offset: 0, length: 0 }
    }
}

/// What one line or record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// A header, a comment, an event of another kind: nothing to send, and rightly so.
    Nothing,
    /// A request of a kind that no drive model can take (a passthrough command, a zone operation): left out, counted.
    Ignored,
    /// A request.
    One(Record),
    /// A request that counts as two: a flush and the write behind it.
    Two(Record, Record),
    /// A command of a set.
    Command(Box<CommandRecord>),
}

/// A command of a set, as a trace has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandRecord {
    /// Its time, range and whether it is forced; the operation is what carries it.
    pub(crate) record: Record,
    /// The set's name.
    pub(crate) set: &'static str,
    pub(crate) opcode: Opcode,
    /// Its parameters.
    pub(crate) words: Vec<u64>,
}

/// Why a line or record is refused: what is there, and what should be.
#[derive(Debug)]
pub(crate) struct Flaw {
    pub(super) found: String,
    pub(super) expected: String,
    /// It is the time that is wrong: the caller, which knows the line, says in which column.
    pub(super) of_time: bool,
}

/// The most of a malformed line that an error repeats.
const QUOTE: usize = 100;

impl Flaw {
    /// `found` is repeated in the error, shortened; `expected` is the rest of "expected ...".
    #[cold]
    pub(super) fn new(found: &[u8], expected: impl Into<String>) -> Flaw {
        Flaw { found: quote(found), expected: expected.into(), of_time: false }
    }

    /// A flaw told in words rather than by repeating the input.
    #[cold]
    pub(super) fn in_words(found: impl Into<String>, expected: impl Into<String>) -> Flaw {
        Flaw { found: found.into(), expected: expected.into(), of_time: false }
    }

    /// The request's time is one that no run can reach.
    #[cold]
    pub(super) fn of_time(found: impl Into<String>, expected: impl Into<String>) -> Flaw {
        Flaw { of_time: true, ..Flaw::in_words(found, expected) }
    }
}

/// Bytes as they may stand in an error message.
pub(super) fn quote(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(QUOTE)];
    let text: String =
        String::from_utf8_lossy(shown).chars().map(|c| if c.is_control() { '\u{b7}' } else { c }).collect();
    let more = if bytes.len() > QUOTE { "..." } else { "" };
    if bytes.is_empty() { "nothing".into() } else { format!("`{text}{more}`") }
}

/// Where a line has the time of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeColumn {
    /// The column, from 1.
    pub(super) column: usize,
    /// Columns end at commas, otherwise at blanks.
    pub(super) commas: bool,
    /// Nanoseconds in one, where `time=` does not say.
    pub(super) unit_ns: u64,
}

impl TimeColumn {
    /// The time as the line has it.
    pub(super) fn of(self, line: &[u8]) -> Option<&[u8]> {
        let mut columns = if self.commas { Columns::commas(line) } else { Columns::blanks(line) };
        columns.nth(self.column - 1)
    }

    /// The flaw of a line that no decoder takes, if that is for a time whose nanoseconds do not fit 64 bits.
    #[cold]
    pub(super) fn overflow(self, line: &[u8], unit_ns: Option<u64>) -> Option<Flaw> {
        let time = self.of(line)?;
        let whole = time.split(|&byte| byte == b'.').next()?;
        let is_number = !whole.is_empty() && whole.iter().all(u8::is_ascii_digit);
        let fits = stamp(whole, unit_ns.unwrap_or(self.unit_ns)).is_some();
        (is_number && !fits).then(|| Flaw::of_time("nanoseconds that do not fit 64 bits", SPAN_EXPECTED))
    }
}

/// How a format cuts its file into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Lines of text.
    Line,
    /// Binary records of this many bytes, perhaps with a tail that [`Decoder::tail`] tells.
    Record(usize),
}

/// One trace format: turns a piece of a file into requests.
///
/// A decoder sees the pieces in file order, keeps only constant state, and must not panic on any bytes.
pub(crate) trait Decoder: Send {
    /// How the file is cut.
    fn frame(&self) -> Frame {
        Frame::Line
    }

    /// The piece's meaning. Blank lines are never handed in; line ends are already cut off.
    fn decode(&mut self, piece: &[u8]) -> Result<Decoded, Flaw>;

    /// Bytes behind the binary record just decoded that belong to it.
    fn tail(&self) -> usize {
        0
    }

    /// What the trace calls device `device`.
    fn device_name(&self, device: u64) -> String {
        device.to_string()
    }
}

/// Builds a decoder from the options a trace was opened with.
pub(crate) type Build = fn(&Options) -> Box<dyn Decoder>;

/// The columns of a line, cut at commas (blanks around a column dropped) or at runs of blanks.
pub(super) struct Columns<'a> {
    rest: Option<&'a [u8]>,
    comma: bool,
}

impl<'a> Columns<'a> {
    #[inline]
    pub(super) fn commas(line: &'a [u8]) -> Columns<'a> {
        Columns { rest: Some(line), comma: true }
    }

    #[inline]
    pub(super) fn blanks(line: &'a [u8]) -> Columns<'a> {
        Columns { rest: Some(line), comma: false }
    }

    /// Everything not yet taken, leading blanks dropped.
    pub(super) fn remainder(&self) -> &'a [u8] {
        self.rest.unwrap_or_default().trim_ascii_start()
    }

    /// The next column, or a flaw naming the columns that a line should have.
    #[inline]
    pub(super) fn need(&mut self, line: &[u8], expected: &'static str) -> Result<&'a [u8], Flaw> {
        match self.next() {
            Some(column) => Ok(column),
            None => Err(Flaw::new(line, expected)),
        }
    }

    /// Exactly `N` columns, or a flaw.
    #[inline]
    pub(super) fn exactly<const N: usize>(
        mut self,
        line: &[u8],
        expected: &'static str,
    ) -> Result<[&'a [u8]; N], Flaw> {
        let mut columns = [&[] as &[u8]; N];
        for column in &mut columns {
            *column = self.need(line, expected)?;
        }
        match self.next() {
            None => Ok(columns),
            Some(_) => Err(Flaw::new(line, expected)),
        }
    }
}

impl<'a> Iterator for Columns<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        if self.comma {
            match rest.iter().position(|&byte| byte == b',') {
                Some(at) => {
                    self.rest = Some(&rest[at + 1..]);
                    Some(rest[..at].trim_ascii())
                }
                None => {
                    self.rest = None;
                    Some(rest.trim_ascii())
                }
            }
        } else {
            let rest = rest.trim_ascii_start();
            if rest.is_empty() {
                self.rest = None;
                return None;
            }
            let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            self.rest = Some(&rest[end..]);
            Some(&rest[..end])
        }
    }
}
