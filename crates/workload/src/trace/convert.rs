//! Requests written down again: our own CSV, and fio's iolog version 3.
//!
//! The CSV holds everything a request has but its queue, stream and tag; times have three decimals of a microsecond,
//! so reading it back gives the same requests and writing them again the same bytes. An iolog holds less: whole
//! microseconds, no FUA, no write zeroes. What was lost is counted and told in [`Converted::notes`].

use std::io::{self, Write};

use ssdlab_base::{COMMAND_SETS, CommandSet, Op, Opcode, Request, SECTOR_BYTES};

use super::Trace;
use super::format::CSV_HEADER;
use crate::WorkloadError;

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// ssdlab's CSV.
    Csv,
    /// fio iolog version 3, for the file or device of this name.
    FioV3 {
        /// The name in every line; fio's `replay_redirect` can replace it when the log is replayed.
        file: String,
    },
}

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Requests written.
    pub requests: u64,
    /// What the target could not hold, as sentences.
    pub notes: Vec<String>,
}

/// Writes requests in one of the formats, in order.
pub struct TraceWriter<W: Write> {
    target: Target,
    out: W,
    buffer: Vec<u8>,
    /// Files of an iolog besides the current one.
    others: Vec<String>,
    requests: u64,
    last_us: u64,
    cut: u64,
    fua: u64,
    zeroes: u64,
}

/// Bytes gathered before they are written.
const BUFFER: usize = 64 << 10;

impl<W: Write> TraceWriter<W> {
    /// Begins a file on `out`, with its header.
    pub fn new(target: Target, out: W) -> Result<TraceWriter<W>, WorkloadError> {
        let mut buffer = Vec::with_capacity(BUFFER + 512);
        match &target {
            Target::Csv => {
                buffer.extend_from_slice(CSV_HEADER.as_bytes());
                buffer.push(b'\n');
            }
            Target::FioV3 { file } => {
                check_file(file)?;
                buffer.extend_from_slice(format!("fio version 3 iolog\n0 {file} add\n0 {file} open\n").as_bytes());
            }
        }
        Ok(TraceWriter { target, out, buffer, others: Vec::new(), requests: 0, last_us: 0, cut: 0, fua: 0, zeroes: 0 })
    }

    /// In an iolog, the requests from here on are of this file. A CSV names none.
    pub fn of_file(&mut self, name: &str) -> Result<(), WorkloadError> {
        let Target::FioV3 { file } = &mut self.target else { return Ok(()) };
        if file == name {
            return Ok(());
        }
        check_file(name)?;
        let before = std::mem::replace(file, name.to_string());
        match self.others.iter_mut().find(|other| *other == name) {
            Some(other) => *other = before,
            None => {
                self.others.push(before);
                let at = self.last_us;
                self.buffer.extend_from_slice(format!("{at} {name} add\n{at} {name} open\n").as_bytes());
            }
        }
        Ok(())
    }

    /// Writes a command of `set` with its words; [`TraceWriter::write`] where it is block I/O.
    ///
    /// # Errors
    /// The target cannot hold it, or the set has no such command.
    pub fn write_command(&mut self, request: &Request, set: &CommandSet, words: &[u64]) -> Result<(), WorkloadError> {
        if request.opcode.is_block() {
            return self.write(request);
        }
        let Some(command) = set.command(request.opcode) else {
            let Opcode(number) = request.opcode;
            return Err(WorkloadError(format!("the command set '{}' has no command {number}", set.name)));
        };
        if self.target != Target::Csv {
            return Err(WorkloadError(format!(
                "a fio iolog cannot hold '{}' of the command set '{}'; write ssdlab's CSV",
                command.name, set.name
            )));
        }
        self.requests += 1;
        let ns = request.at.0;
        let forced = if request.fua { "!" } else { "" };
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
        let (offset, length) = (bytes(request.sector), bytes(request.sectors));
        let words: Vec<String> = words.iter().map(u64::to_string).collect();
        let line = format!(
            "{}.{:03},{}:{}{forced},{offset},{length},{}\n",
            ns / 1_000,
            ns % 1_000,
            set.name,
            command.name,
            words.join(" ")
        );
        self.buffer.extend_from_slice(line.as_bytes());
        Ok(())
    }

    /// Writes one request of block I/O.
    pub fn write(&mut self, request: &Request) -> Result<(), WorkloadError> {
        let ns = request.at.0;
        let (offset, length) = if request.op == Op::Flush {
            (0, 0)
        } else {
            (request.sector.saturating_mul(SECTOR_BYTES), request.sectors.saturating_mul(SECTOR_BYTES))
        };
        let buffer = &mut self.buffer;
        self.requests += 1;
        match &self.target {
            Target::Csv => {
                digits(buffer, ns / 1_000);
                let below = ns % 1_000;
                buffer.push(b'.');
                buffer.extend([below / 100, below / 10 % 10, below % 10].map(|digit| b'0' + digit as u8));
                buffer.extend_from_slice(match request.op {
                    Op::Read => b",R,",
                    Op::Write if request.fua => b",WF,",
                    Op::Write => b",W,",
                    Op::Trim if request.fua => b",TF,",
                    Op::Trim => b",T,",
                    Op::Flush => b",F,",
                    Op::WriteZeroes if request.fua => b",ZF,",
                    Op::WriteZeroes => b",Z,",
                });
                digits(buffer, offset);
                buffer.push(b',');
                digits(buffer, length);
            }
            Target::FioV3 { file } => {
                self.last_us = ns / 1_000;
                self.cut += u64::from(!ns.is_multiple_of(1_000));
                self.fua += u64::from(request.fua);
                self.zeroes += u64::from(request.op == Op::WriteZeroes);
                digits(buffer, ns / 1_000);
                buffer.push(b' ');
                buffer.extend_from_slice(file.as_bytes());
                buffer.extend_from_slice(match request.op {
                    Op::Read => b" read ",
                    Op::Write => b" write ",
                    Op::Trim | Op::WriteZeroes => b" trim ",
                    Op::Flush => b" sync ",
                });
                digits(buffer, offset);
                buffer.push(b' ');
                digits(buffer, length);
            }
        }
        buffer.push(b'\n');
        if buffer.len() >= BUFFER {
            self.out.write_all(buffer).map_err(|error| failed(&error))?;
            buffer.clear();
        }
        Ok(())
    }

    /// Hands what is gathered to the writer below, and flushes that.
    pub fn flush(&mut self) -> Result<(), WorkloadError> {
        self.out.write_all(&self.buffer).and_then(|()| self.out.flush()).map_err(|error| failed(&error))?;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the file and gives the writer back, flushed.
    pub fn finish(mut self) -> Result<(Converted, W), WorkloadError> {
        if let Target::FioV3 { file } = &self.target {
            for file in self.others.iter().chain([file]) {
                self.buffer.extend_from_slice(format!("{} {file} close\n", self.last_us).as_bytes());
            }
        }
        self.out.write_all(&self.buffer).map_err(|error| failed(&error))?;
        self.out.flush().map_err(|error| failed(&error))?;
        let mut notes = Vec::new();
        let mut lost = |count: u64, one: &str, many: &str, why: &str| match count {
            0 => {}
            1 => notes.push(format!("1 {one}, {why}")),
            _ => notes.push(format!("{count} {many}, {why}")),
        };
        let (cut, why) = ("cut to whole microseconds", "which is all a fio iolog holds");
        lost(self.cut, &format!("time was {cut}"), &format!("times were {cut}"), why);
        let why = "since a fio iolog has no FUA";
        lost(self.fua, "FUA request became a plain one", "FUA requests became plain ones", why);
        let why = "since a fio iolog has no write zeroes";
        lost(self.zeroes, "write of zeroes became a trim", "writes of zeroes became trims", why);
        let converted = Converted { requests: self.requests, notes };
        Ok((converted, self.out))
    }
}

fn check_file(file: &str) -> Result<(), WorkloadError> {
    if file.is_empty() || file.len() > 255 || file.bytes().any(|b| b.is_ascii_whitespace() || b < b' ') {
        return Err(WorkloadError(format!(
            "`{file}` cannot stand in a fio iolog; expected a file name of 1 to 255 bytes without blanks"
        )));
    }
    Ok(())
}

#[cold]
fn failed(error: &io::Error) -> WorkloadError {
    WorkloadError(format!("writing the converted trace failed: {error}"))
}

fn digits(buffer: &mut Vec<u8>, mut value: u64) {
    let mut text = [0_u8; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    buffer.extend_from_slice(&text[at..]);
}

/// Writes all of `trace`, from its start, to `out`.
pub fn convert(trace: &mut Trace, target: &Target, out: impl Write) -> Result<Converted, WorkloadError> {
    trace.rewind()?;
    let mut writer = TraceWriter::new(target.clone(), out)?;
    let mut batch = Vec::new();
    while trace.read(&mut batch)? > 0 {
        let set = trace.command_set();
        let set = COMMAND_SETS.iter().find(|other| Some(other.name) == set);
        for request in &batch {
            match set {
                Some(set) => writer.write_command(request, set, trace.words(request))?,
                None => writer.write(request)?,
            }
        }
    }
    Ok(writer.finish()?.0)
}
