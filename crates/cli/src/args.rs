//! The command line: what can be asked for, and the help that a stranger reads.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Effects, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::files::Files;
use crate::mount::Mount;
use crate::reproduce::Reproduce;
use crate::serve::Serve;
use crate::stat::{Record, Stat};
use crate::wa::Wa;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default());

/// A laboratory for solid-state drives.
///
/// Takes a drive's datasheet and a block trace (or a fio job), and shows latency, throughput, write amplification by
/// cause, wear and utilisation, for several drives side by side.
#[derive(Debug, Parser)]
#[command(name = "ssdlab", version, styles = STYLES, max_term_width = 110, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  ssdlab devices
  ssdlab run -d demo-tlc -w rw=randwrite,bs=4k,iodepth=32,io_size=100% --precondition steady
  ssdlab trace stats trace.csv.zst
  ssdlab run -d demo-tlc mine.toml -w trace.csv.zst --fit --out out/compare

Exit status: 0 done; 1 the work failed, was interrupted, or a check did not hold; 2 the input was wrong.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<Run>),
    /// Look at a block trace, or write it in another format
    Trace {
        #[command(subcommand)]
        what: Trace,
    },
    Serve(Box<Serve>),
    Mount(Box<Mount>),
    Stat(Stat),
    Record(Record),
    Devices(Devices),
    #[command(alias = "designs")]
    List(List),
    Report(Report),
    Files(Box<Files>),
    Reproduce(Box<Reproduce>),
    Torture(Box<Torture>),
    /// Write amplification: from the model, from a capture of Ready/Busy lines, from a real drive's logs
    Wa {
        #[command(subcommand)]
        what: Wa,
    },
}

/// Run a workload on one or more drives and show what it cost.
///
/// Every drive gets the same workload, and the same requests unless that is sized by the drive or by time. A table goes to standard output; with --out, result.json, latency.csv,
/// timeline.parquet and report.html go to a folder. The run checks itself: if a law is broken (requests lost, bytes not
/// conserved...) it says so and ends with status 1.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  A trace on a shipped drive, as the trace's own clock says:
    ssdlab run -d demo-tlc -w trace.csv.zst --fit --replay timed

  The most basic experiment, on two drives: uniform random overwrites in steady state:
    ssdlab run -d demo-tlc demo-qlc --precondition steady --out out/steady \\
        -w rw=randwrite,bs=4k,iodepth=32,io_size=100%,norandommap,randseed=1

  One drive twice, with another victim policy the second time:
    ssdlab run -d demo-tlc demo-tlc --set 2:name=fifo --set 2:gc.victim=fifo -w job.fio

Interrupting a run (Ctrl-C) leaves the results up to then, marked as incomplete; a second Ctrl-C ends at once.")]
pub(crate) struct Run {
    /// A drive: a description's FILE, or the NAME of one that ships (see `ssdlab devices`); may be repeated
    #[arg(long, short, value_name = "FILE|NAME", required = true, num_args = 1..)]
    pub(crate) device: Vec<String>,

    /// A trace in any supported format, a fio job file (*.fio), fio options such as rw=randwrite,bs=4k,iodepth=32, or a
    /// modelled trace such as model:msnfs,requests=500k
    ///
    /// A trace's format is recognised by its content; `format=NAME:PATH` states it. The path - is standard input. gzip, zstd, xz and bzip2 are
    /// unpacked on the way.
    #[arg(long, short, value_name = "FILE|SPEC", required = true)]
    pub(crate) workload: String,

    /// What stands between the workload and each drive, as a host description (docs/host.md)
    ///
    /// Requests, latencies and write amplification are then those of the workload, above the host; `host_rooms` in
    /// result.json says what each room took and sent. A host that passes one drive's sectors through as they are is left
    /// out while the drive is preconditioned.
    #[arg(long, value_name = "FILE")]
    pub(crate) host: Option<PathBuf>,

    /// Precondition the drives of a host one by one, below its layers, rather than through them
    #[arg(long, requires = "host")]
    pub(crate) precondition_below: bool,

    /// Override a key of the drives' descriptions, e.g. gc.victim=fifo; DRIVE:key=value for one drive only
    ///
    /// DRIVE is a drive's name or its place in the list of --device, from 1.
    #[arg(long, value_name = "[DRIVE:]KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Bring each drive to an age first: none, fill, touched, steady, steady:WORKLOAD, or a workload of its own
    ///
    /// `fill` writes it full once, `touched` only what the workload will read or write. `steady` goes on with the workload until write amplification is stable within 1 %,
    /// `steady:WORKLOAD` with another one, such as steady:micro:4KiB-RD-100%-W-Y.
    /// None of it counts in the results.
    #[arg(long, short, value_name = "AGE", default_value = "none")]
    pub(crate) precondition: String,

    /// When a trace's requests are sent: timed, timed*K (each at K times its time), or closed:QD (QD always under way)
    ///
    /// By default `timed`; timed*0.5 is twice as fast. A fio workload says itself, by its iodepth and rate.
    #[arg(long, short, value_name = "HOW")]
    pub(crate) replay: Option<String>,

    /// Fold offsets beyond a drive back into it (modulo its size)
    #[arg(long, conflicts_with = "fit")]
    pub(crate) wrap: bool,

    /// Pack the extents of 1 MiB that a trace touches densely onto the drive
    #[arg(long)]
    pub(crate) fit: bool,

    /// Stop after so many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,

    /// Seed of everything random; the same seed gives the same result, bit for bit
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write result.json, latency.csv, timeline.parquet and report.html to this folder
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Drives that run at a time; by default one for each core, as far as memory goes
    ///
    /// It changes no result. With --trace-window or --vcd drives run one after the other.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) jobs: Option<u64>,

    /// Length of the timeline's intervals, such as 100ms; by default it grows with the run, which has 512 to 1024 of them
    ///
    /// `rate_variation` in result.json is over the same intervals, by default over 100 ms. After 65,536 intervals
    /// neighbours are merged, and a warning says so.
    #[arg(long, value_name = "TIME")]
    pub(crate) timeline_interval: Option<String>,

    /// Write the work of every channel and die, and the requests, in this window of virtual time, for ui.perfetto.dev; needs
    /// --out
    #[arg(long, value_name = "FROM..TO", requires = "out")]
    pub(crate) trace_window: Option<String>,

    /// Say what requests waited for: their mean and the tail from p99 and p99.9 on, by cause
    ///
    /// Behind whose reads, programs and erases on the die, for the channel, the link, space in the write buffer, a free
    /// block... (docs/latency.md). The parts add up to the latency of every request, to the nanosecond, which the run checks.
    /// `latency_breakdown` in result.json.
    #[arg(long)]
    pub(crate) latency_breakdown: bool,

    /// List the N slowest requests with what each waited for, in order; with --latency-breakdown's results
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) slowest: Option<u32>,

    /// Write the Ready/Busy line of every die as a VCD, for GTKWave, PulseView and `ssdlab wa capture`; one drive only
    ///
    /// A wire for each die (ch0.chip0.die0), low while it is busy, in nanoseconds of virtual time. A name that ends in .gz
    /// is compressed. A flash operation takes about 25 bytes, compressed about 8.
    #[arg(long, value_name = "FILE")]
    pub(crate) vcd: Option<PathBuf>,

    /// Record the Ready/Busy lines with the recorder on this die's, and say what it and better classifiers count
    ///
    /// A die by its number (0 if none is given) or by the name of its line, ch1.chip0.die0, as in the output and in a VCD.
    /// The window is the description's program time. Beside the estimates stands what was really programmed, and at which
    /// level (sampling, classification, plane, die, chip, channel) the recorder goes wrong; `ready_busy` in result.json.
    #[arg(long, value_name = "DIE", num_args = 0..=1, default_missing_value = "0")]
    pub(crate) recorder: Option<String>,

    /// Send the workload in sub-tests of so many bytes written, such as 2g or 15x5g, with 5.5 minutes of quiet between them
    ///
    /// A workload that ends earlier begins anew. Each sub-test is counted for itself: `subtests` in result.json. With :level
    /// behind them, as in 15x5g:level, the run ends when three in a row have the same write amplification, within 1 %.
    #[arg(long, value_name = "VOLUMES", conflicts_with = "limit")]
    pub(crate) subtests: Option<String>,

    /// Send this workload once before the sub-tests, as one of its own: initial data
    #[arg(long, value_name = "FILE|SPEC", requires = "subtests")]
    pub(crate) initial: Option<String>,

    /// Compare every read with what was written, and the whole drive at the end; ages anew, without snapshots
    ///
    /// Every sector then carries a stamp: 8 bytes of memory for each 512 of flash, and as much for what is expected. A
    /// sector that differs breaks the check `reads_return_what_was_written`, and the run ends with status 1.
    #[arg(long)]
    pub(crate) verify: bool,

    /// Age the drives anew, and keep no snapshot of them
    #[arg(long)]
    pub(crate) no_snapshot: bool,

    /// Memory that the run may take, such as 40g; by default three quarters of what is available
    ///
    /// What a drive takes is known before it is made; a run that would take more is refused.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Print the results as JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What to do with a trace.
#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    Stats(TraceStats),
    Convert(TraceConvert),
    Head(TraceHead),
}

/// Counts, mix, sizes, rates, footprint, sequentiality and alignment of a trace.
#[derive(Args, Debug)]
pub(crate) struct TraceStats {
    /// The trace: any supported format, plain or compressed; `format=NAME:PATH` states the format; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a trace as our CSV or as fio's iolog.
///
/// The requests are the same, in the same order. A name that ends in .gz or .zst is compressed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab trace convert Financial1.spc fin1.csv
  ssdlab trace convert msr_hm_0.csv.gz hm_0.iolog --to fio")]
pub(crate) struct TraceConvert {
    /// The trace to read
    #[arg(value_name = "IN")]
    pub(crate) input: String,
    /// The file to write; it appears only when it is whole
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// The format to write; by default OUT's extension decides (.csv, or .fio, .iolog, .log)
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<TraceFormat>,
}

/// The formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// time_us,op,offset_bytes,length_bytes
    Csv,
    /// fio iolog version 3
    Fio,
}

/// Show the first requests of a trace as our CSV.
#[derive(Args, Debug)]
pub(crate) struct TraceHead {
    /// The trace
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// How many requests
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) count: u64,
}

/// The drives that ship, one line each; with a NAME, its description.
#[derive(Args, Debug)]
#[command(after_help = "\
To start a drive of your own from one that ships:
  ssdlab devices demo-tlc > mine.toml")]
pub(crate) struct Devices {
    /// Print this drive's description
    #[arg(value_name = "NAME", conflicts_with = "json")]
    pub(crate) name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The policies and designs that a description can name, and the workloads that ship, one line each; or the keys that a
/// description can hold.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab list
  ssdlab list --keys gc
  ssdlab list --keys --schema > ssdlab.schema.json")]
pub(crate) struct List {
    /// The keys with type, range, default and meaning; those of one SECTION, such as gc, flash.timing or host
    #[arg(long, value_name = "SECTION", num_args = 0..=1, default_missing_value = "")]
    pub(crate) keys: Option<String>,
    /// Print the keys as tables in Markdown
    #[arg(long, requires = "keys", conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print the keys as a JSON Schema (draft 2020-12) of a drive's description; with `--keys host`, of a host's
    #[arg(long, requires = "keys", conflicts_with_all = ["json", "markdown"])]
    pub(crate) schema: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write report.html again from the results in a folder.
#[derive(Args, Debug)]
pub(crate) struct Report {
    /// The folder with result.json, as `ssdlab run --out` wrote it
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Cut the power at any moment, let chips fail, and look whether the drive comes back with nothing lost.
///
/// Each seed draws a small drive with few spare blocks, commands, faults and power cuts. After every cut all sectors are
/// compared with what they may hold. The first seed that fails is shrunk to few steps, printed, and saved to be replayed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab torture --seeds 10000
  ssdlab torture --device mine.toml --until 10min
  ssdlab torture --design page --buffer none --buffer lru --ops 500
  ssdlab torture --exhaustive 4
  ssdlab torture --replay torture-17.toml

Exit status: 0 nothing found; 1 something was found; 2 the input was wrong.")]
pub(crate) struct Torture {
    /// A drive of one's own, FILE or NAME; if it is large, a small drive of its kind. By default small drives are drawn
    #[arg(long, short, value_name = "FILE|NAME")]
    pub(crate) device: Option<String>,

    /// Torture the stack of a host description (docs/host.md) above small drives, or those of --device's kind
    #[arg(long, value_name = "FILE", conflicts_with_all = ["design", "buffer", "exhaustive", "replay"])]
    pub(crate) host: Option<PathBuf>,

    /// Torture stacks of layers that are drawn, too
    #[arg(long, conflicts_with_all = ["host", "design", "buffer", "exhaustive", "replay"])]
    pub(crate) stacks: bool,

    /// Override a key of the drive's description
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// FTL designs, in turn; by default all (with --device its own)
    #[arg(long, value_name = "NAME")]
    pub(crate) design: Vec<String>,

    /// Buffer policies, in turn; by default all (with --device its own)
    #[arg(long, value_name = "NAME")]
    pub(crate) buffer: Vec<String>,

    /// How many seeds; by default 1000, or with --until as many as there is time for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,

    /// Commands of each seed
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) ops: u64,

    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Begin no seed after so much time, such as 90s or 10min
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,

    /// Threads; by default one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) jobs: Option<u64>,

    /// Memory that all threads may take, such as 4g; by default three quarters of what is available
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Every power cut of every sequence of up to LENGTH commands, instead of seeds
    #[arg(long, value_name = "LENGTH", num_args = 0..=1, default_missing_value = "3",
        value_parser = clap::value_parser!(u32).range(1..=6), conflicts_with_all = ["seeds", "until"])]
    pub(crate) exhaustive: Option<u32>,

    /// Run the case that was saved in this file
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["device", "set", "design", "buffer", "seeds", "until", "exhaustive"])]
    pub(crate) replay: Option<PathBuf>,

    /// Where to save what a failing seed shrinks to; by default torture-SEED.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
