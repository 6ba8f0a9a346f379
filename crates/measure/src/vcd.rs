//! VCD, written: the Ready/Busy lines of a run, for GTKWave, PulseView and [`crate::capture`].
//!
//! A wire for each die, named `ch0.chip0.die0`, low while the die is busy; the time unit is 1 ns. The file
//! holds no date, so the same run gives the same file.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use ssdlab_base::Nanos;
use ssdlab_flash::{DieId, Observer};

use crate::{Edge, Levels};

/// A file being written. Edges come in order of time; `to` should be buffered.
pub struct VcdWriter<W> {
    to: W,
    codes: Vec<String>,
    now: Nanos,
    edges: u64,
}

impl<W: Write> VcdWriter<W> {
    /// Begins a file with all lines high. `about` is a comment of one line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(mut to: W, levels: &Levels, about: &str) -> io::Result<VcdWriter<W>> {
        let about: String = about.chars().map(|c| if c.is_control() || c == '$' { ' ' } else { c }).collect();
        writeln!(to, "$comment {about} $end\n$version ssdlab {} $end", env!("CARGO_PKG_VERSION"))?;
        writeln!(to, "$timescale 1 ns $end")?;
        let codes: Vec<String> = (0..levels.dies()).map(code).collect();
        // Whole names without scopes: libsigrok up to 0.5.2 leaves scopes out, and all dies would have one name.
        for (die, code) in (0..).zip(&codes) {
            writeln!(to, "$var wire 1 {code} {} $end", levels.line_name(die))?;
        }
        writeln!(to, "$enddefinitions $end\n#0\n$dumpvars")?;
        codes.iter().try_for_each(|code| writeln!(to, "1{code}"))?;
        writeln!(to, "$end")?;
        Ok(VcdWriter { to, codes, now: Nanos::ZERO, edges: 0 })
    }

    /// Writes an edge.
    ///
    /// # Errors
    /// It cannot be written, it is before the one above it, or its die is none of the drive's.
    pub fn edge(&mut self, edge: Edge) -> io::Result<()> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
        if edge.at < self.now {
            return Err(invalid(format!("an edge at {} comes after one at {}", edge.at, self.now)));
        }
        let Some(code) = self.codes.get(edge.die as usize) else {
            return Err(invalid(format!("die {} is none of the drive's {}", edge.die, self.codes.len())));
        };
        if edge.at > self.now {
            self.now = edge.at;
            writeln!(self.to, "#{}", edge.at.0)?;
        }
        self.edges += 1;
        writeln!(self.to, "{}{code}", u8::from(!edge.busy))
    }

    /// Edges written.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// Ends the file at `end` (or at the last edge, if that is later) and gives the writer back.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self, end: Nanos) -> io::Result<W> {
        if end > self.now {
            writeln!(self.to, "#{}", end.0)?;
        }
        self.to.flush()?;
        Ok(self.to)
    }
}

/// The identifier code of a line: digits to the base 94, printable, lowest first.
fn code(line: u64) -> String {
    let mut code = String::new();
    let mut rest = line;
    loop {
        code.push(char::from(b'!' + (rest % 94) as u8));
        rest /= 94;
        if rest == 0 {
            return code;
        }
        rest -= 1;
    }
}

/// Edges as the flash reports them: in order for each die, but a die's falling edge is told when its data has been given
/// a place on the channel, before it happens. Held back until no earlier one can come.
struct InOrder<W> {
    writer: Option<VcdWriter<W>>,
    /// Edges told and not written, by time and by the order in which they were told; at most a few for each die.
    ahead: std::collections::BTreeMap<(Nanos, u64), Edge>,
    told: u64,
    error: Option<io::Error>,
}

impl<W: Write> InOrder<W> {
    fn tell(&mut self, edge: Edge) {
        self.ahead.insert((edge.at, self.told), edge);
        self.told += 1;
        // A rising edge is told when it happens: nothing earlier comes after it.
        if !edge.busy {
            self.write_before(edge.at);
        }
    }

    fn write_before(&mut self, until: Nanos) {
        while let Some(entry) = self.ahead.first_entry() {
            if entry.key().0 >= until {
                break;
            }
            let edge = entry.remove();
            if let (Some(writer), None) = (&mut self.writer, &self.error) {
                self.error = writer.edge(edge).err();
            }
        }
    }
}

/// A file that a drive's observer writes, and what ends it.
pub struct VcdRecording<W>(Arc<Mutex<InOrder<W>>>);

impl<W: Write + Send + 'static> VcdRecording<W> {
    /// Records into `writer`.
    pub fn new(writer: VcdWriter<W>) -> VcdRecording<W> {
        VcdRecording(Arc::new(Mutex::new(InOrder {
            writer: Some(writer),
            ahead: std::collections::BTreeMap::new(),
            told: 0,
            error: None,
        })))
    }

    /// What the drive is to be observed by.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(Probe(Arc::clone(&self.0)))
    }

    /// Ends the file at `end`, and gives the writer back with the number of edges; the first error that occurred comes
    /// out here.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(self, end: Nanos) -> io::Result<(W, u64)> {
        let mut order = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        order.write_before(Nanos::MAX);
        if let Some(error) = order.error.take() {
            return Err(error);
        }
        let writer = order.writer.take().ok_or_else(|| io::Error::other("the recording was ended before"))?;
        let edges = writer.edges();
        Ok((writer.finish(end)?, edges))
    }
}

struct Probe<W>(Arc<Mutex<InOrder<W>>>);

impl<W: Write + Send> Observer for Probe<W> {
    fn ready_busy(&mut self, die: DieId, at: Nanos, busy: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tell(Edge { at, die: die.0, busy });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_printable_short_and_all_different() {
        let codes: Vec<String> = (0..20_000).map(code).collect();
        let different: std::collections::BTreeSet<&String> = codes.iter().collect();
        assert_eq!(different.len(), codes.len());
        assert!(codes.iter().all(|code| code.bytes().all(|byte| (b'!'..=b'~').contains(&byte))));
        assert_eq!((codes[93].len(), codes[94].len(), codes[94 + 94 * 94 - 1].len()), (1, 2, 2));
    }
}
