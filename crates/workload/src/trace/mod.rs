//! Block traces in any of the formats researchers pass around, read as requests for one drive.
//!
//! ```text
//! file -> Source (unpack, lines or records) -> Decoder (one format) -> Arrange (order, time, devices, sectors) -> Request
//! ```
//!
//! A trace is recognised by its content, or forced by `format=NAME:PATH`; see `docs/traces.md` for the formats, the
//! options and what is done about bad clocks and several devices. Reading needs constant memory at any file size.
//!
//! Promises: the first request is at time zero and times never decrease; every request has at least one sector, unless
//! it is a flush; a malformed line is an error with its place, what was found and what was expected; a trace without a
//! single request is an error. Never: a panic on any bytes, a guess that is not in [`Trace::notes`].

mod arrange;
mod commands;
mod convert;
mod format;
mod number;
mod options;
mod recognise;
mod record;
mod reorder;
mod source;
mod standard_input;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ssdlab_base::{Request, format_size};

pub use arrange::{TraceCounts, TraceDevice};
pub use convert::{Converted, Target, TraceWriter, convert};
pub use format::{CSV_HEADER, TraceFormat};
pub(crate) use standard_input::DASH;
pub use standard_input::standard_input;

use arrange::{Arrange, Chooser, Extent, Layout, Packed};
use commands::Commands;
use options::{Event, Options};
use record::{Decoded, Decoder, Flaw, Frame, quote};
use source::{Origin, Source};

use crate::{Archive, WorkloadError};

/// Requests in a batch.
const BATCH: usize = 4_096;

/// A trace that is open for reading.
///
/// ```
/// use ssdlab_workload::trace::Trace;
///
/// let text = b"time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n2.5,R,0,512\n".to_vec();
/// let mut trace = Trace::from_bytes("example", "", text)?;
/// let mut requests = Vec::new();
/// assert_eq!(trace.read(&mut requests)?, 2);
/// assert_eq!(requests[1].at, ssdlab_base::Nanos(2_500));
/// assert_eq!(trace.read(&mut requests)?, 0);
/// # Ok::<(), ssdlab_workload::WorkloadError>(())
/// ```
pub struct Trace {
    origin: Origin,
    format: TraceFormat,
    options: Options,
    /// What was noticed on opening.
    notes: Vec<String>,
    devices: Vec<TraceDevice>,
    survey: BTreeMap<u64, Extent>,
    run: Run,
}

/// One pass over the file.
struct Run {
    source: Source,
    format: TraceFormat,
    decoder: Box<dyn Decoder>,
    arrange: Arrange,
    commands: Commands,
    ended: bool,
}

impl Trace {
    /// Opens the trace `spec` names: a path, or `key=value,..:path` with the options of `docs/traces.md`; the path `-` is
    /// standard input.
    ///
    /// A format that can hold several devices is read once to its end here, to lay them out, unless `device=` chose
    /// one.
    pub fn open(spec: &str) -> Result<Trace, WorkloadError> {
        let (options, path) = Options::split(spec)?;
        if path.is_empty() {
            return Err(WorkloadError("the trace's path is empty".into()));
        }
        if path == spec
            && !Path::new(path).exists()
            && let Some(meant) = Options::meant(spec)
        {
            return Err(WorkloadError(format!("'{spec}' is no file: {meant}")));
        }
        let origin = match path {
            standard_input::DASH => Origin::StandardInput,
            path => Origin::File(Path::new(path).to_path_buf()),
        };
        Trace::start(origin, options)
    }

    /// The path in a spec as [`Trace::open`] takes it; `None` where that is standard input, or the options are wrong.
    pub(crate) fn path_in(spec: &str) -> Option<&Path> {
        let (_, path) = Options::split(spec).ok()?;
        (path != standard_input::DASH).then(|| Path::new(path))
    }

    /// Whether it is read from standard input.
    pub fn is_standard_input(&self) -> bool {
        matches!(self.origin, Origin::StandardInput)
    }

    /// A trace from bytes in memory, named `name` in errors; `options` as before a path, such as `format=msr`, or empty.
    pub fn from_bytes(name: &str, options: &str, bytes: impl Into<Arc<[u8]>>) -> Result<Trace, WorkloadError> {
        Trace::start(Origin::Bytes(name.to_string(), bytes.into()), Options::parse(options)?)
    }

    /// A trace whose text `make` makes, in a format that is recognised or in our CSV; named `name`.
    pub(crate) fn generated(name: &str, make: source::Make) -> Result<Trace, WorkloadError> {
        Trace::start(Origin::Made(name.to_string(), make), Options::default())
    }

    fn start(origin: Origin, mut options: Options) -> Result<Trace, WorkloadError> {
        let mut source = origin.open()?;
        if let Some(archive) = Archive::of(source.peek(Archive::HEAD_BYTES)?) {
            return Err(origin.is_archive(archive, source.packed()));
        }
        let (format, mut notes) = match options.format {
            Some(format) => (format, Vec::new()),
            None => recognise::recognise(&mut source, &origin.name())?,
        };
        // A unit that was given settles what a note on it would ask for.
        if options.time_unit.is_some() {
            notes.retain(|note| !note.contains("`time="));
        }
        format.check(&options)?;
        if format.spec().events && options.event.is_none() {
            let event = choose_event(&origin, format, &options)?;
            if let Some(event) = event {
                let name = origin.name();
                if event != Event::Queue && format.spec().only_event.is_none() {
                    notes.push(format!("{name} has no Q events; its {} events count as requests", event.letter()));
                }
                options.event = Some(event);
            }
        }
        let mut trace = Trace {
            run: Run::new(source, format, &options, Layout::Flat),
            origin,
            format,
            options,
            notes,
            devices: Vec::new(),
            survey: BTreeMap::new(),
        };
        if format.spec().devices && trace.options.device.is_none() {
            trace.survey()?;
        } else if trace.options.device.is_some() {
            trace.rewind()?;
        }
        Ok(trace)
    }

    /// Learns which devices there are, and lays them out.
    fn survey(&mut self) -> Result<(), WorkloadError> {
        self.run.arrange.layout = Layout::Survey(BTreeMap::new());
        self.run.read_through(&self.options)?;
        let Layout::Survey(survey) = std::mem::replace(&mut self.run.arrange.layout, Layout::Flat) else {
            return Ok(());
        };
        let name = self.origin.name();
        if survey.is_empty() {
            return Err(self.run.nothing(self.format, &self.options));
        }
        let Some((_, bases)) = Packed::new(&survey) else {
            return Err(WorkloadError(format!(
                "{name}: the trace's {} devices together are larger than 2^60 bytes (1 EiB); choose one with `device=`",
                survey.len()
            )));
        };
        self.devices = survey
            .iter()
            .zip(bases)
            .map(|((&device, extent), base_bytes)| TraceDevice {
                name: self.run.decoder.device_name(device),
                requests: extent.requests,
                base_bytes,
                end_bytes: extent.end_bytes,
            })
            .collect();
        self.survey = survey;
        if self.devices.len() > 1 {
            self.notes.push(describe(&self.devices));
        }
        self.rewind()
    }

    /// The format the trace is read in.
    pub fn format(&self) -> TraceFormat {
        self.format
    }

    /// The trace's name, as errors give it.
    pub fn name(&self) -> String {
        self.origin.name()
    }

    /// The name of the compression, empty for plain data.
    pub fn compression(&self) -> &'static str {
        self.run.source.packing()
    }

    /// The devices of the trace and where they lie; empty where the format has one or one was chosen.
    pub fn devices(&self) -> &[TraceDevice] {
        &self.devices
    }

    /// What was noticed in what has been read since the start.
    pub fn counts(&self) -> TraceCounts {
        self.run.arrange.counts
    }

    /// Everything a user should know of how this trace was read so far: choices, and what had to be changed.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        let counts = self.counts();
        let mut count = |number: u64, one: &str, many: &str| {
            if number > 0 {
                let what = if number == 1 { one } else { many };
                notes.push(format!("{}: {number} {what}", self.name()));
            }
        };
        count(
            counts.clamped,
            "request was stamped earlier than the one before it and was given its time",
            "requests were stamped earlier than the ones before them and were given their times",
        );
        count(
            counts.wild_clocks,
            "request with a wild clock (off by more than a day) was left out",
            "requests with a wild clock (off by more than a day) were left out",
        );
        count(
            counts.rounded,
            "request began or ended inside a 512-byte sector and was rounded outward",
            "requests began or ended inside a 512-byte sector and were rounded outward",
        );
        count(
            counts.ignored,
            "command that is no read, write, trim or flush was left out",
            "commands that are no reads, writes, trims or flushes were left out",
        );
        count(counts.bad, "malformed line was left out", "malformed lines were left out");
        notes
    }

    /// The longest pause in what has been read since the start, where it is so long that it may be a slip of the clock: for
    /// those who replay the trace by its times.
    pub fn gap(&self) -> Option<String> {
        let gap = self.run.arrange.gap?;
        let name = self.name();
        let place = match gap.line {
            Some(line) if self.run.decoder.frame() == Frame::Line => format!("{name}:{line}"),
            Some(record) => format!("{name}: record {record}"),
            None => name,
        };
        Some(format!(
            "{place}: the time of this request is {} after the one before it, in which nothing is sent; perhaps the time is \
             wrong, or its unit is another one (`time=`)",
            gap.length()
        ))
    }

    /// Refills `out` with the next requests, up to a few thousand; 0 at the end.
    ///
    /// Times never decrease. Queues and streams are 0, and so are tags of block I/O; the tag of a command of a set is the key
    /// of its words ([`Trace::words`]).
    pub fn read(&mut self, out: &mut Vec<Request>) -> Result<usize, WorkloadError> {
        out.clear();
        self.run.commands.forget_words();
        self.run.fill(out, &self.options)?;
        if out.is_empty() && self.run.arrange.counts.requests == 0 {
            return Err(self.run.nothing(self.format, &self.options));
        }
        Ok(out.len())
    }

    /// The words of a request that the last [`Trace::read`] gave.
    pub fn words(&self, request: &Request) -> &[u64] {
        if request.opcode.is_block() { &[] } else { self.run.commands.words(request.tag) }
    }

    /// The command set of the commands read so far that are not block I/O.
    pub fn command_set(&self) -> Option<&'static str> {
        self.run.commands.set()
    }

    /// Starts again from the first request.
    pub fn rewind(&mut self) -> Result<(), WorkloadError> {
        let layout = match &self.options.device {
            Some(device) => Layout::Choose(Chooser::new(device)),
            None if self.survey.is_empty() => Layout::Flat,
            None => Packed::new(&self.survey).map_or(Layout::Flat, |(packed, _)| Layout::Packed(packed)),
        };
        self.run = Run::new(self.origin.open()?, self.format, &self.options, layout);
        Ok(())
    }
}

/// The devices in one sentence, the first few by name.
fn describe(devices: &[TraceDevice]) -> String {
    const SHOWN: usize = 6;
    let list: Vec<String> = devices
        .iter()
        .take(SHOWN)
        .map(|device| {
            format!("{} ({} at {})", device.name, format_size(device.end_bytes), format_size(device.base_bytes))
        })
        .collect();
    let more = match devices.len().saturating_sub(SHOWN) {
        0 => String::new(),
        left => format!(" and {left} more"),
    };
    format!(
        "the trace has {} devices, laid behind one another: {}{more}; `device=NAME` before the path takes one alone",
        devices.len(),
        list.join(", ")
    )
}

/// The event that counts as a request: the first of Q, D, I, G, C that the trace has.
fn choose_event(origin: &Origin, format: TraceFormat, options: &Options) -> Result<Option<Event>, WorkloadError> {
    if let Some(event) = format.spec().only_event {
        return Ok(Some(event));
    }
    for event in Event::ALL {
        let options = Options { event: Some(event), ..options.clone() };
        let mut run = Run::new(origin.open()?, format, &options, Layout::Survey(BTreeMap::new()));
        if run.any(&options)? {
            return Ok(Some(event));
        }
    }
    Ok(None)
}

impl Run {
    fn new(source: Source, format: TraceFormat, options: &Options, layout: Layout) -> Run {
        let spec = format.spec();
        Run {
            source,
            format,
            decoder: format.decoder(options),
            arrange: Arrange::new(
                options.order.unwrap_or(spec.order),
                spec.wild_clock,
                layout,
                options.reorder,
                options.shift,
            ),
            commands: Commands::default(),
            ended: false,
        }
    }

    /// One line or record; nothing at the end.
    #[inline]
    fn decode(&mut self) -> Result<Option<Result<Decoded, Flaw>>, WorkloadError> {
        match self.decoder.frame() {
            Frame::Line => {
                let Some(line) = self.source.line()? else { return Ok(None) };
                if line.is_empty() || (line[0] <= b' ' && line.trim_ascii().is_empty()) {
                    return Ok(Some(Ok(Decoded::Nothing)));
                }
                Ok(Some(self.decoder.decode(line)))
            }
            Frame::Record(size) => {
                let Some(record) = self.source.record(size)? else { return Ok(None) };
                let decoded = self.decoder.decode(record);
                self.source.skip(self.decoder.tail())?;
                Ok(Some(decoded))
            }
        }
    }

    fn fill(&mut self, out: &mut Vec<Request>, options: &Options) -> Result<(), WorkloadError> {
        while out.len() < BATCH && !self.ended {
            match self.decode()? {
                Some(decoded) => {
                    let arranged = match decoded {
                        Ok(decoded) => self.arrange(decoded, out),
                        Err(flaw) => Err(flaw),
                    };
                    if let Err(flaw) = arranged {
                        self.bad(&flaw, options)?;
                    }
                }
                None => match self.arrange.drain(BATCH, out) {
                    Ok(empty) => self.ended = empty,
                    Err(flaw) => self.bad(&flaw, options)?,
                },
            }
        }
        Ok(())
    }

    #[inline]
    fn arrange(&mut self, decoded: Decoded, out: &mut Vec<Request>) -> Result<(), Flaw> {
        let decoder = &self.decoder;
        let name = |device| decoder.device_name(device);
        let line = self.source.pieces();
        match decoded {
            Decoded::One(record) => self.arrange.push(record, line, &name, out),
            Decoded::Nothing => Ok(()),
            Decoded::Ignored => {
                self.arrange.counts.ignored += 1;
                Ok(())
            }
            Decoded::Two(first, second) => {
                self.arrange.push(first, line, &name, out)?;
                self.arrange.push(second, line, &name, out)
            }
            Decoded::Command(command) => self.commands.take(&command, line, &mut self.arrange, out),
        }
    }

    #[cold]
    fn bad(&mut self, flaw: &Flaw, options: &Options) -> Result<(), WorkloadError> {
        // Binary records have no line ends to find the next one by.
        let line = self.decoder.frame() == Frame::Line;
        let time = self.format.spec().time.filter(|_| line);
        let overflow = time.and_then(|time| time.overflow(self.source.last_line(), options.time_unit));
        let flaw = overflow.as_ref().unwrap_or(flaw);
        if options.skip_bad && line {
            self.arrange.counts.bad += 1;
            return Ok(());
        }
        let hint = if line { " (`skip_bad=yes` before the path leaves such lines out)" } else { "" };
        let place = self.source.place(line);
        let found = match time.filter(|_| flaw.of_time).and_then(|time| Some((time, time.of(self.source.last_line())?)))
        {
            Some((time, text)) => format!("the time {} in column {}: {}", quote(text), time.column, flaw.found),
            None => flaw.found.clone(),
        };
        Err(WorkloadError(format!("{place}: found {found}, expected {}{hint}", flaw.expected)))
    }

    /// Reads everything without keeping it.
    fn read_through(&mut self, options: &Options) -> Result<(), WorkloadError> {
        let mut out = Vec::new();
        while !self.ended {
            out.clear();
            self.fill(&mut out, options)?;
        }
        Ok(())
    }

    /// Whether there is a single request.
    fn any(&mut self, options: &Options) -> Result<bool, WorkloadError> {
        while let Some(decoded) = self.decode()? {
            match decoded {
                Ok(Decoded::One(_) | Decoded::Two(..) | Decoded::Command(_)) => return Ok(true),
                Ok(_) => {}
                Err(flaw) => self.bad(&flaw, options)?,
            }
        }
        Ok(false)
    }

    /// The error of a trace in which no request was found.
    #[cold]
    fn nothing(&self, format: TraceFormat, options: &Options) -> WorkloadError {
        let place = self.source.name();
        let pieces = self.source.pieces();
        if let (Some(device), Layout::Choose(chooser)) = (&options.device, &self.arrange.layout) {
            let decoder = &self.decoder;
            let mut met = chooser.met(&|device| decoder.device_name(device));
            let more = if met.len() > 20 { ", ..." } else { "" };
            met.truncate(20);
            if !met.is_empty() {
                return WorkloadError(format!(
                    "{place}: no request is for device `{device}`; the devices in it are {}{more}",
                    met.join(", ")
                ));
            }
        }
        let unit = match (self.decoder.frame() == Frame::Line, pieces) {
            (true, 1) => "line",
            (true, _) => "lines",
            (false, 1) => "record",
            (false, _) => "records",
        };
        let event = match options.event {
            Some(event) if format.spec().events => format!(" for event {}", event.letter()),
            _ => String::new(),
        };
        WorkloadError(format!(
            "{place}: no request found in {pieces} {unit} read as {format} ({}){event}; expected at least one",
            format.title()
        ))
    }
}
