//! The trace formats, one file for each.
//!
//! To add one: a file with a [`Decoder`] and a [`FormatSpec`], and its line in [`FORMATS`].

mod alibaba;
mod blkparse;
mod blktrace;
mod csv;
mod etw;
mod fio_iolog;
mod fiu;
mod five_columns;
mod flashnet;
mod msr;
mod names;
mod spc;
mod systor17;
#[cfg(test)]
mod template;
mod tencent;
mod vscsi;
mod wiscsee;

use std::fmt;

use super::options::{Event, Options, Order};
use super::record::{Build, Decoder, TimeColumn};
use crate::WorkloadError;

pub(super) use blktrace::is_blktrace;
pub use csv::HEADER as CSV_HEADER;
pub(super) use five_columns::recognise as recognise_five_columns;
pub(super) use vscsi::version as vscsi_version;

/// Every format, in the order in which recognition prefers them.
const FORMATS: &[TraceFormat] = &[
    TraceFormat(&csv::FORMAT),
    TraceFormat(&msr::FORMAT),
    TraceFormat(&etw::FORMAT),
    TraceFormat(&spc::FORMAT),
    TraceFormat(&five_columns::SSDSIM),
    TraceFormat(&five_columns::TRACETRACKER),
    TraceFormat(&five_columns::DISKSIM),
    TraceFormat(&five_columns::DISKSIM_PAGES),
    TraceFormat(&five_columns::LINNOS),
    TraceFormat(&flashnet::FORMAT),
    TraceFormat(&fiu::FORMAT),
    TraceFormat(&blkparse::FORMAT),
    TraceFormat(&blktrace::FORMAT),
    TraceFormat(&fio_iolog::V2),
    TraceFormat(&fio_iolog::V3),
    TraceFormat(&systor17::FORMAT),
    TraceFormat(&tencent::FORMAT),
    TraceFormat(&alibaba::FORMAT),
    TraceFormat(&vscsi::FORMAT),
    TraceFormat(&vscsi::CSV),
    TraceFormat(&wiscsee::FORMAT),
    #[cfg(test)]
    TraceFormat(&template::FORMAT),
];

/// A format that traces are read in.
#[derive(Clone, Copy)]
pub struct TraceFormat(&'static FormatSpec);

/// How a trace of a format is told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// By how many of its lines the format's decoder takes.
    ByLines,
    /// By a first line that no other format has.
    ByHeader,
    /// Among the formats of five columns, by rules over many lines.
    OfManyLines,
    /// By a magic number: it is no text.
    Binary,
}

/// What the rest of the reader has to know of a format.
pub(super) struct FormatSpec {
    /// What `format=` takes.
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    /// The format in words.
    pub(super) title: &'static str,
    pub(super) build: Build,
    /// Whether one file can hold requests to several devices.
    pub(super) devices: bool,
    /// Whether an event of a request's life has to be chosen.
    pub(super) events: bool,
    /// The event that counts, where the format has no other one.
    pub(super) only_event: Option<Event>,
    /// Whether `time=` has a meaning.
    pub(super) stamps: bool,
    /// Whether stamps of a wild clock are known to occur.
    pub(super) wild_clock: bool,
    pub(super) order: Order,
    /// Where its lines have their times; nothing for binary formats and those without stamps.
    pub(super) time: Option<TimeColumn>,
    pub(super) told: Told,
}

impl FormatSpec {
    /// Lines of text in the order of the file, with stamps, of several devices.
    const fn new(name: &'static str, title: &'static str, build: Build) -> FormatSpec {
        FormatSpec {
            name,
            aliases: &[],
            title,
            build,
            devices: true,
            events: false,
            only_event: None,
            stamps: true,
            wild_clock: false,
            order: Order::File,
            time: None,
            told: Told::ByLines,
        }
    }
}

impl TraceFormat {
    /// Microsoft event tracing (ETW) as text.
    pub(super) const MS_ETW: TraceFormat = TraceFormat(&etw::FORMAT);
    /// ssdlab's own CSV.
    pub(super) const CSV: TraceFormat = TraceFormat(&csv::FORMAT);
    /// blktrace's binary.
    pub(super) const BLKTRACE: TraceFormat = TraceFormat(&blktrace::FORMAT);
    /// CloudPhysics vscsi binary.
    pub(super) const VSCSI: TraceFormat = TraceFormat(&vscsi::FORMAT);
    /// fio iologs, version 2 and 3.
    pub(super) const FIO_V2: TraceFormat = TraceFormat(&fio_iolog::V2);
    pub(super) const FIO_V3: TraceFormat = TraceFormat(&fio_iolog::V3);

    /// Every format, in the order in which recognition prefers them.
    pub fn all() -> impl Iterator<Item = TraceFormat> {
        FORMATS.iter().copied()
    }

    pub(super) const fn spec(self) -> &'static FormatSpec {
        self.0
    }

    /// The name that `format=` takes.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// The format in words.
    pub const fn title(self) -> &'static str {
        self.spec().title
    }

    /// The format of that name, or an error that lists them all.
    pub fn named(name: &str) -> Result<TraceFormat, WorkloadError> {
        TraceFormat::all().find(|format| format.name() == name || format.spec().aliases.contains(&name)).ok_or_else(
            || {
                let names = TraceFormat::all().map(TraceFormat::name).collect::<Vec<_>>().join(", ");
                WorkloadError(format!("format=: found `{name}`, expected one of {names}"))
            },
        )
    }

    pub(super) fn decoder(self, options: &Options) -> Box<dyn Decoder> {
        (self.spec().build)(options)
    }

    /// Refuses options that mean nothing for this format.
    pub(super) fn check(self, options: &Options) -> Result<(), WorkloadError> {
        let spec = self.spec();
        let refuse = |key: &str, why: &str| {
            Err(WorkloadError(format!("`{key}=` has no meaning for a trace in format {}: {why}", spec.name)))
        };
        if options.event.is_some() && !spec.events {
            return refuse("event", "its lines are requests, not events of a request's life");
        }
        if options.device.is_some() && !spec.devices {
            return refuse("device", "it holds a single device");
        }
        if options.time_unit.is_some() && !spec.stamps {
            return refuse("time", "its unit of time is fixed");
        }
        Ok(())
    }
}

impl PartialEq for TraceFormat {
    fn eq(&self, other: &TraceFormat) -> bool {
        self.name() == other.name()
    }
}

impl Eq for TraceFormat {}

impl fmt::Debug for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ssdlab_base::Op;

    use crate::trace::Trace;

    #[test]
    fn a_trace_in_the_format_of_the_template_is_recognised_and_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.txt");
        fs::write(&path, "# two requests\nW 8 16 100\nR 24 8 350\n").expect("a file");
        let mut trace = Trace::open(path.to_str().expect("a plain path")).expect("a trace");
        assert_eq!(trace.format().name(), "template");
        let (mut found, mut requests) = (Vec::new(), Vec::new());
        while trace.read(&mut requests).expect("it is sound") > 0 {
            found.extend(requests.iter().map(|one| (one.op, one.sector, one.sectors, one.at.0)));
        }
        assert_eq!(found, [(Op::Write, 8, 16, 0), (Op::Read, 24, 8, 250_000)]);
        fs::write(&path, "W 8 16 100\nX 24 8 350\n").expect("a file");
        let mut trace = Trace::open(&format!("format=template:{}", path.display())).expect("a trace");
        let error = loop {
            match trace.read(&mut requests) {
                Ok(0) => panic!("a line is wrong"),
                Ok(_) => {}
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("R|W sector sectors time_us") && error.contains(":2"), "{error}");
    }
}
