//! The trace formats, one file for each.
//!
//! To add one: a file with a [`Decoder`], a variant here, and a line in [`TraceFormat::spec`].

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
mod tencent;
mod vscsi;
mod wiscsee;

use std::fmt;

use super::options::{Options, Order};
use super::record::{Build, Decoder, TimeColumn};
use crate::WorkloadError;

pub(super) use blktrace::is_blktrace;
pub use csv::HEADER as CSV_HEADER;
pub(super) use five_columns::recognise as recognise_five_columns;
pub(super) use vscsi::version as vscsi_version;

/// A format that traces are read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceFormat {
    /// ssdlab's own CSV.
    Csv,
    /// Microsoft event tracing (ETW) as text.
    MsEtw,
    /// MSR Cambridge.
    Msr,
    /// UMass and SPC.
    Spc,
    /// SSDSim and MQSim ASCII.
    Ssdsim,
    /// TraceTracker.
    TraceTracker,
    /// DiskSim ASCII, and the UCARE Microsoft traces.
    Disksim,
    /// DiskSim ASCII as FlashSim forks write it, lengths in 4 KB pages.
    DisksimPages,
    /// LinnOS and Heimdall replay input.
    Linnos,
    /// FlashNet and LinnOS replay log.
    Flashnet,
    /// FIU IODedup.
    Fiu,
    /// blkparse's default text.
    Blkparse,
    /// blktrace's binary.
    Blktrace,
    /// fio iolog version 2.
    FioV2,
    /// fio iolog version 3.
    FioV3,
    /// SYSTOR '17.
    Systor17,
    /// Tencent CBS.
    Tencent,
    /// Alibaba block traces 2020.
    Alibaba,
    /// CloudPhysics vscsi binary.
    Vscsi,
    /// libCacheSim's dump of a vscsi trace.
    VscsiCsv,
    /// WiscSee events.
    Wiscsee,
}

/// What the rest of the reader has to know of a format.
pub(super) struct FormatSpec {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) title: &'static str,
    pub(super) build: Build,
    /// Whether one file can hold requests to several devices.
    pub(super) devices: bool,
    /// Whether an event of a request's life has to be chosen.
    pub(super) events: bool,
    /// Whether `time=` has a meaning.
    pub(super) stamps: bool,
    /// Whether stamps of a wild clock are known to occur.
    pub(super) wild_clock: bool,
    pub(super) order: Order,
    /// Where its lines have their times; nothing for binary formats and those without stamps.
    pub(super) time: Option<TimeColumn>,
}

impl TraceFormat {
    /// Every format, in the order in which recognition prefers them.
    pub const ALL: [TraceFormat; 21] = [
        TraceFormat::Csv,
        TraceFormat::Msr,
        TraceFormat::MsEtw,
        TraceFormat::Spc,
        TraceFormat::Ssdsim,
        TraceFormat::TraceTracker,
        TraceFormat::Disksim,
        TraceFormat::DisksimPages,
        TraceFormat::Linnos,
        TraceFormat::Flashnet,
        TraceFormat::Fiu,
        TraceFormat::Blkparse,
        TraceFormat::Blktrace,
        TraceFormat::FioV2,
        TraceFormat::FioV3,
        TraceFormat::Systor17,
        TraceFormat::Tencent,
        TraceFormat::Alibaba,
        TraceFormat::Vscsi,
        TraceFormat::VscsiCsv,
        TraceFormat::Wiscsee,
    ];

    pub(super) fn spec(self) -> FormatSpec {
        let base = |name, title, build: Build| FormatSpec {
            name,
            aliases: &[],
            title,
            build,
            devices: true,
            events: false,
            stamps: true,
            wild_clock: false,
            order: Order::File,
            time: self.time_column(),
        };
        match self {
            TraceFormat::Csv => {
                FormatSpec { devices: false, aliases: &["ssdlab"], ..base("csv", "ssdlab CSV", csv::build) }
            }
            TraceFormat::MsEtw => {
                FormatSpec { order: Order::Time, aliases: &["etw"], ..base("ms-etw", "Microsoft ETW text", etw::build) }
            }
            TraceFormat::Msr => FormatSpec {
                order: Order::Time,
                aliases: &["msr-cambridge"],
                ..base("msr", "MSR Cambridge", msr::build)
            },
            TraceFormat::Spc => FormatSpec { aliases: &["umass"], ..base("spc", "UMass/SPC", spc::build) },
            TraceFormat::Ssdsim => {
                FormatSpec { aliases: &["mqsim"], ..base("ssdsim", "SSDSim/MQSim ASCII", five_columns::ssdsim) }
            }
            TraceFormat::TraceTracker => base("tracetracker", "TraceTracker", five_columns::tracetracker),
            TraceFormat::Disksim => {
                FormatSpec { aliases: &["ucare"], ..base("disksim", "DiskSim ASCII", five_columns::disksim) }
            }
            TraceFormat::DisksimPages => {
                base("disksim-pages", "DiskSim ASCII with lengths in 4 KB pages", five_columns::disksim_pages)
            }
            TraceFormat::Linnos => FormatSpec {
                aliases: &["heimdall"],
                ..base("linnos", "LinnOS/Heimdall replay input", five_columns::linnos)
            },
            TraceFormat::Flashnet => FormatSpec {
                devices: false,
                order: Order::Time,
                aliases: &["linnos-result"],
                ..base("flashnet", "FlashNet/LinnOS replay log", flashnet::build)
            },
            TraceFormat::Fiu => FormatSpec { aliases: &["iodedup"], ..base("fiu", "FIU IODedup", fiu::build) },
            TraceFormat::Blkparse => FormatSpec {
                events: true,
                wild_clock: true,
                order: Order::Time,
                ..base("blkparse", "blkparse text", blkparse::build)
            },
            TraceFormat::Blktrace => FormatSpec {
                events: true,
                stamps: false,
                wild_clock: true,
                order: Order::Time,
                ..base("blktrace", "blktrace binary", blktrace::build)
            },
            TraceFormat::FioV2 => FormatSpec {
                stamps: false,
                aliases: &["fio-iolog-v2"],
                ..base("fio-v2", "fio iolog version 2", fio_iolog::build_v2)
            },
            TraceFormat::FioV3 => {
                FormatSpec { aliases: &["fio-iolog-v3"], ..base("fio-v3", "fio iolog version 3", fio_iolog::build_v3) }
            }
            TraceFormat::Systor17 => {
                FormatSpec { order: Order::Time, ..base("systor17", "SYSTOR '17", systor17::build) }
            }
            TraceFormat::Tencent => FormatSpec { order: Order::Time, ..base("tencent", "Tencent CBS", tencent::build) },
            TraceFormat::Alibaba => {
                FormatSpec { order: Order::Time, ..base("alibaba", "Alibaba block traces 2020", alibaba::build) }
            }
            TraceFormat::Vscsi => FormatSpec {
                devices: false,
                stamps: false,
                order: Order::Time,
                aliases: &["cloudphysics"],
                ..base("vscsi", "CloudPhysics vscsi binary", vscsi::build)
            },
            TraceFormat::VscsiCsv => {
                FormatSpec { devices: false, ..base("vscsi-csv", "vscsi as libCacheSim's CSV", vscsi::build_csv) }
            }
            TraceFormat::Wiscsee => FormatSpec {
                devices: false,
                events: true,
                order: Order::Time,
                ..base("wiscsee", "WiscSee events", wiscsee::build)
            },
        }
    }

    fn time_column(self) -> Option<TimeColumn> {
        const US: u64 = 1_000;
        const MS: u64 = 1_000_000;
        const S: u64 = 1_000_000_000;
        let (column, commas, unit_ns) = match self {
            TraceFormat::Blktrace | TraceFormat::Vscsi | TraceFormat::FioV2 => return None,
            TraceFormat::Csv => (1, true, US),
            TraceFormat::Msr => (1, true, 100),
            TraceFormat::MsEtw => (2, true, US),
            TraceFormat::Spc => (5, true, S),
            TraceFormat::Ssdsim => (1, false, 1),
            TraceFormat::TraceTracker => (1, false, 100),
            TraceFormat::Disksim | TraceFormat::DisksimPages | TraceFormat::Linnos => (1, false, MS),
            TraceFormat::Flashnet => (6, true, MS),
            TraceFormat::Fiu => (1, false, 1),
            TraceFormat::Blkparse => (4, false, S),
            TraceFormat::FioV3 => (1, false, US),
            TraceFormat::Systor17 | TraceFormat::Tencent => (1, true, S),
            TraceFormat::Alibaba => (5, true, US),
            TraceFormat::VscsiCsv => (2, true, S),
            TraceFormat::Wiscsee => (6, false, S),
        };
        Some(TimeColumn { column, commas, unit_ns })
    }

    /// The name that `format=` takes.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The format in words.
    pub fn title(self) -> &'static str {
        self.spec().title
    }

    /// The format of that name, or an error that lists them all.
    pub fn named(name: &str) -> Result<TraceFormat, WorkloadError> {
        TraceFormat::ALL
            .into_iter()
            .find(|format| format.name() == name || format.spec().aliases.contains(&name))
            .ok_or_else(|| {
                let names = TraceFormat::ALL.map(TraceFormat::name).join(", ");
                WorkloadError(format!("format=: found `{name}`, expected one of {names}"))
            })
    }

    /// Whether the format is lines of text.
    pub(super) fn is_text(self) -> bool {
        !matches!(self, TraceFormat::Blktrace | TraceFormat::Vscsi)
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

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
