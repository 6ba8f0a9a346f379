//! The command line: what can be asked for, and the help that a stranger reads.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::builder::styling::{AnsiColor, Effects, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueEnum};
use ssdlab_base::{Nanos, is_negative, renamed};
use ssdlab_lab::text::{is_unprintable, printable_lines};

use crate::failure::Failure;
use crate::files::Files;
use crate::mount::Mount;
use crate::reproduce::Reproduce;
use crate::serve::Serve;
use crate::stat::{Record, Stat};
use crate::stderr;
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
#[command(name = "ssdlab", version, styles = STYLES, max_term_width = 110)]
#[command(after_help = "\
Examples:
  ssdlab devices
  ssdlab run -d demo-tlc -w rw=randwrite,bs=4k,iodepth=32,io_size=100% --precondition steady
  ssdlab trace stats trace.csv.zst
  ssdlab run -d demo-tlc mine.toml -w trace.csv.zst --fit --out out/compare

Exit status: 0 done; 1 the work failed, was interrupted, or an invariant did not hold; 2 the input was wrong.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Ends the command where the command line asks for help or is wrong; an option of an earlier version is told its new name.
pub(crate) fn refuse(error: &clap::Error) -> ! {
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && let Some(new) = renamed(option.split('=').next().unwrap_or(option))
    {
        stderr::say(format_args!("error: '{option}' is now called '{new}'"));
        std::process::exit(2);
    }
    if let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::MissingRequiredArgument
        && missing.iter().any(|argument| argument.contains(crate::reproduce::WHAT))
    {
        stderr::say(crate::reproduce::what_is_missing());
        std::process::exit(2);
    }
    if let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && is_negative(found)
        && let Some((option, value)) = negative_value(found)
    {
        stderr::say(format_args!("error: {option}: found '{value}', expected at least 0"));
        std::process::exit(2);
    }
    let said = error.to_string();
    if error.use_stderr() && printable_lines(&said) != said {
        // What was given stands in it.
        stderr::say(said.trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// The option before the word of the command line that begins with `found`, and the word: no option takes a number
/// below 0.
fn negative_value(found: &str) -> Option<(String, String)> {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_it = |pair: &&[String]| pair[0].starts_with('-') && pair[1].starts_with(found);
    words.windows(2).find(is_it).map(|pair| (pair[0].clone(), pair[1].clone()))
}

/// The numbers that an option takes, told where it was given something else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedNumber {
    least: u64,
    most: u64,
}

impl std::fmt::Display for ExpectedNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.least, self.most) {
            (least, u64::MAX) => write!(f, "expected a whole number of at least {least}"),
            (least, most) => write!(f, "expected a whole number from {least} to {most}"),
        }
    }
}

impl std::error::Error for ExpectedNumber {}

/// Reads a whole number of `least` to `most`, and says so of what is none.
pub(crate) fn whole<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, ExpectedNumber> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or(ExpectedNumber { least, most })
    }
}

/// Characters of a title.
const TITLE_MAX: usize = 200;

/// What `--title` takes, told where it was given something else.
#[derive(Clone, Copy, Debug)]
struct ExpectedTitle;

impl std::fmt::Display for ExpectedTitle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected 1 to {TITLE_MAX} characters without control characters")
    }
}

impl std::error::Error for ExpectedTitle {}

/// A title is a line: nothing in it ends the line or turns the direction of writing.
fn title(text: &str) -> Result<String, ExpectedTitle> {
    let is_title = !text.trim().is_empty() && text.chars().count() <= TITLE_MAX && !text.contains(is_unprintable);
    is_title.then(|| text.to_string()).ok_or(ExpectedTitle)
}

/// The time that a variable of the environment says, if it is set to something.
pub(crate) fn time_of_environment(name: &str, example: &str) -> Result<Option<Duration>, Failure> {
    let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let time: Nanos = ssdlab_base::parse_duration(&text.to_string_lossy())
        .map_err(|error| Failure::input(format!("{name}: {error}; expected a time such as {example}")))?;
    Ok(Some(Duration::from_nanos(time.0)))
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<Run>),
    /// Inspect a block trace, or convert it to another format
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
    /// Measure write amplification: by the model, from a capture of Ready/Busy lines, from a drive's logs
    Wa {
        #[command(subcommand)]
        what: Wa,
    },
}

/// Run a workload on one or more drives and show what it cost.
///
/// Every drive gets the same workload, and the same requests unless their number depends on the drive's size or on time. The
/// results go to standard output as a table; --out also writes them to files, with a report to look at. The run checks its
/// invariants (no request lost, bytes conserved...). If one does not hold, it says so and exits with 1.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  A trace on a shipped drive, at the trace's own times:
    ssdlab run -d demo-tlc -w trace.csv.zst --fit --replay timed

  Uniform random overwrites in steady state, on two drives:
    ssdlab run -d demo-tlc demo-qlc --precondition steady --out out/steady \\
        -w rw=randwrite,bs=4k,iodepth=32,io_size=100%,norandommap,randseed=1

  One drive twice, with another victim policy the second time:
    ssdlab run -d demo-tlc demo-tlc --set 2:name=fifo --set 2:gc.victim=fifo -w job.fio

Ctrl-C ends a run and writes the results so far, marked as incomplete. A second Ctrl-C ends at once.")]
pub(crate) struct Run {
    /// A drive: a description FILE, or the NAME of a shipped one (see `ssdlab devices`); may be repeated
    #[arg(long, short, value_name = "FILE|NAME", required_unless_present = "host", num_args = 1..)]
    pub(crate) device: Vec<String>,

    /// A trace in any supported format, a fio job file (*.fio), fio options such as rw=randwrite,bs=4k,iodepth=32, or a
    /// trace model such as model:msnfs,requests=500k
    ///
    /// ssdlab recognises a trace's format by content; `format=NAME:PATH` sets it. The path - is standard input. Traces may be
    /// compressed with gzip, zstd, xz or bzip2.
    #[arg(long, short, value_name = "FILE|SPEC", required = true)]
    pub(crate) workload: String,

    /// What ${NAME} stands for in job files; may be repeated. Other variables are those of the environment
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,

    /// Host layers between the workload and the drives, as a host description (docs/host.md)
    ///
    /// Requests, latencies and write amplification are then those of the workload, above the layers; `host_layers` in
    /// result.json says what each layer took and sent. If the layers pass one drive's sectors through unchanged, preconditioning
    /// bypasses them.
    #[arg(long, value_name = "FILE")]
    pub(crate) host: Option<PathBuf>,

    /// Precondition the drives one by one, below the host layers, instead of through them
    #[arg(long, requires = "host")]
    pub(crate) precondition_below: bool,

    /// Override a key of the drives' descriptions, e.g. gc.victim=fifo; DRIVE:key=value for one drive only
    ///
    /// DRIVE is a drive's name or its position in the list of --device, from 1.
    #[arg(long, value_name = "[DRIVE:]KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Run a variant of each drive for every value of a key; several --vary make all combinations
    ///
    /// Such as --vary gc.victim=greedy,fifo --vary capacity.over_provisioning=7%,14%. A variant is called after its values. The
    /// values stand as `overrides` in result.json and as columns in summary.csv.
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub(crate) vary: Vec<String>,

    /// Run everything N times with other seeds (--seed and those after it): the table has means and 95 % intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1, 1000), conflicts_with_all = ["trace_window", "vcd"])]
    pub(crate) repeat: u32,

    /// Precondition each drive first: none, fill, footprint, steady, steady:WORKLOAD, fill+WORKLOAD, or another workload
    ///
    /// `fill` writes the whole drive once, `footprint` only what the workload will read, write or trim. `steady` repeats the workload
    /// until write amplification is stable within 1 %, `steady:WORKLOAD` another one, such as steady:micro:4KiB-RD-100%-W-Y.
    /// `fill+WORKLOAD` writes the whole drive once and then runs another workload; WORKLOAD alone runs it on an empty drive, on
    /// which all that it does not write serves as over-provisioning. None of it counts in the results.
    #[arg(long, short, value_name = "HOW", default_value = "none")]
    pub(crate) precondition: String,

    /// When to send a trace's requests: timed, timed*K (each at K times its time), or closed:QD (QD always in flight)
    ///
    /// By default `timed`; timed*0.5 is twice as fast. A fio workload has its own iodepth and rate.
    #[arg(long, short, value_name = "HOW")]
    pub(crate) replay: Option<String>,

    /// Wrap offsets beyond a drive's end (modulo its size)
    #[arg(long, conflicts_with = "fit")]
    pub(crate) wrap: bool,

    /// Pack the 1 MiB extents of a trace's footprint densely onto the drive
    #[arg(long)]
    pub(crate) fit: bool,

    /// Stop after N requests
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX))]
    pub(crate) limit: Option<u64>,

    /// Seed of everything random; the same seed gives the same result, bit for bit
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(0, u64::MAX))]
    pub(crate) seed: u64,

    /// Write the results to this folder: result.json, report.html, tables and the drives' descriptions
    ///
    /// result.json, report.html, summary.csv, summary.parquet, latency.csv, timeline.parquet; for each drive drive-NAME.toml,
    /// smart/before.json and smart/after.json (of several smart/before-NAME.json); with --trace-window trace.json
    /// (docs/results.md).
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// The run's title: the heading of report.html and of the table
    ///
    /// By default the drives and the workload. 1 to 200 characters without control characters.
    #[arg(long, value_name = "TEXT", value_parser = title)]
    pub(crate) title: Option<String>,

    /// Drives to run in parallel; by default one per core, if memory allows
    ///
    /// It does not change results. With --trace-window or --vcd drives run one after the other.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, 1024))]
    pub(crate) jobs: Option<u64>,

    /// Length of the timeline's intervals, such as 100ms; by default it grows with the run to 512 to 1024 intervals
    ///
    /// `rate_variation` in result.json uses the same intervals, by default 100 ms. Beyond 65,536 intervals ssdlab merges
    /// neighbours, with a warning.
    #[arg(long, value_name = "TIME")]
    pub(crate) timeline_interval: Option<String>,

    /// Write a trace of every channel, die and request in this window of virtual time, for ui.perfetto.dev; needs --out
    #[arg(long, value_name = "FROM..TO", requires = "out")]
    pub(crate) trace_window: Option<String>,

    /// Show what requests waited for, by cause: the mean and the tails from p99 and p99.9
    ///
    /// Other operations on the die, the channel, the link, space in the write buffer, a free block... (docs/latency.md). The
    /// parts add up to the latency of every request, to the nanosecond, and the run checks that. `latency_breakdown` in
    /// result.json.
    #[arg(long)]
    pub(crate) latency_breakdown: bool,

    /// List the N slowest requests and what each waited for; includes --latency-breakdown
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 100_000))]
    pub(crate) slowest: Option<u32>,

    /// Write the Ready/Busy line of every die as a VCD, for GTKWave, PulseView and `ssdlab wa capture`; one drive only
    ///
    /// A wire for each die (ch0.chip0.die0), low while the die is busy, in nanoseconds of virtual time. A name that ends in
    /// .gz is compressed. A flash operation takes about 25 bytes, compressed about 8.
    #[arg(long, value_name = "FILE")]
    pub(crate) vcd: Option<PathBuf>,

    /// Probe this die's R/B# line and compare the estimators of write amplification
    ///
    /// Name a die by its number (by default 0) or by its line, ch1.chip0.die0, as in the output and in a VCD. The window is the
    /// description's program time. Results have the estimates, the real programs, and the recorder's error by level (sampling,
    /// classification, plane, die, chip, channel): `ready_busy` in result.json.
    #[arg(long, value_name = "DIE", num_args = 0..=1, default_missing_value = "0")]
    pub(crate) rb_probe: Option<String>,

    /// Run the workload in sub-tests by bytes written, such as 2g or 15x5g, with idle gaps of 5.5 minutes
    ///
    /// A workload that ends earlier starts again. Each sub-test is counted separately: `subtests` in result.json. With :level, as
    /// in 15x5g:level, the run ends when three in a row have the same write amplification within 1 %.
    #[arg(long, value_name = "VOLUMES", conflicts_with = "limit")]
    pub(crate) subtests: Option<String>,

    /// Write initial data: run this workload once before the sub-tests, as a sub-test of its own
    #[arg(long, value_name = "FILE|SPEC", requires = "subtests")]
    pub(crate) initial: Option<String>,

    /// Compare every read with what was written, and the whole drive at the end; uses no snapshots
    ///
    /// Every sector then carries a stamp: 8 bytes of memory for each 512 of flash, and as much for the expected contents. A
    /// sector that differs breaks the invariant `reads_return_what_was_written`, and the run exits with 1.
    #[arg(long)]
    pub(crate) verify: bool,

    /// Precondition the drives again, and keep no snapshots
    #[arg(long)]
    pub(crate) no_snapshot: bool,

    /// Memory for the run, such as 40g; by default three quarters of what is available
    ///
    /// ssdlab estimates the memory in advance and refuses a run that needs more.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Print the results as JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    ///
    /// Without a terminal, progress is a line on standard error every 20 s; SSDLAB_PROGRESS_EVERY=10s sets another time.
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
    /// The trace: any supported format, plain or compressed; `format=NAME:PATH` sets the format; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Convert a trace to ssdlab's CSV or to a fio iolog, or write down the requests of a fio workload.
///
/// Requests and their order stay the same. A name that ends in .gz or .zst is compressed. A fio workload needs the size of the
/// drive that it is for; its requests are written as if each were answered after 100 us. In an iolog, each of several jobs is a file.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab trace convert Financial1.spc fin1.csv
  ssdlab trace convert msr_hm_0.csv.gz hm_0.iolog --to fio
  ssdlab trace convert rw=randwrite,bs=4k,io_size=100% requests.csv --capacity 64m")]
pub(crate) struct TraceConvert {
    /// The trace to read, or a fio job file (*.fio) or fio options
    #[arg(value_name = "IN")]
    pub(crate) input: String,
    /// The file to write; it appears when it is complete
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// The format to write; by default OUT's extension decides (.csv, or .fio, .iolog, .log)
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<TraceFormat>,
    /// The drive's user capacity, for a fio workload
    #[arg(long, value_name = "SIZE")]
    pub(crate) capacity: Option<String>,
    /// Seed of everything random in a fio workload
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(0, u64::MAX))]
    pub(crate) seed: u64,
    /// What ${NAME} stands for in a job file; may be repeated. Other variables are those of the environment
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
}

/// The formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// time_us,op,offset_bytes,length_bytes
    Csv,
    /// fio iolog version 3
    Fio,
}

/// Show the first requests of a trace as ssdlab's CSV.
#[derive(Args, Debug)]
pub(crate) struct TraceHead {
    /// The trace
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// How many requests
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = whole::<u64>(0, u64::MAX))]
    pub(crate) count: u64,
}

/// List the shipped drives, or show what follows from a drive's description.
///
/// Of a drive it shows a datasheet (capacities, over-provisioning, peak rates by what bounds them, latencies of single operations,
/// RAM, endurance) and every key with its value and where that is from: the description, another key, or a default.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab devices
  ssdlab devices demo-tlc
  ssdlab devices mine.toml --set flash.cell=qlc
  ssdlab devices demo-tlc --toml > mine.toml      # to start your own drive from a shipped one")]
pub(crate) struct Devices {
    /// A drive: a description FILE, or the NAME of a shipped one
    #[arg(value_name = "FILE|NAME")]
    pub(crate) device: Option<String>,
    /// Override a key of the drive's description
    #[arg(long, value_name = "KEY=VALUE", requires = "device")]
    pub(crate) set: Vec<String>,
    /// Print the description as it was written
    #[arg(long, requires = "device", conflicts_with_all = ["set", "expanded", "json"])]
    pub(crate) toml: bool,
    /// Print the description with every default filled in, as TOML that --device takes
    #[arg(long, requires = "device", conflicts_with = "json")]
    pub(crate) expanded: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the policies and designs that a description can name and the shipped workloads, or the keys of a description.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab list
  ssdlab list --keys gc
  ssdlab list --keys --schema > ssdlab.schema.json")]
pub(crate) struct List {
    /// List the keys with type, range, default and meaning; of one SECTION, such as gc, flash.timing or host
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

/// Cut the power at any moment, make chips fail, and check that the drive loses no data.
///
/// Each seed draws a small drive with few spare blocks, commands, faults and power cuts. After every cut torture compares all
/// sectors with what they may hold. It shrinks the first seed that fails to a few steps, prints them, and saves them for --replay.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab torture --seeds 10000
  ssdlab torture --device mine.toml --until 10min
  ssdlab torture --design page --buffer none --buffer lru --ops 500
  ssdlab torture --exhaustive 4
  ssdlab torture --replay torture-17.toml

Exit status: 0 nothing found; 1 something was found, or it was interrupted; 2 the input was wrong.")]
pub(crate) struct Torture {
    /// Your own drive, FILE or NAME; a small drive of its kind if it is large. By default torture draws small drives
    #[arg(long, short, value_name = "FILE|NAME")]
    pub(crate) device: Option<String>,

    /// Torture the stack of a host description (docs/host.md) above small drives, or those of --device's kind
    #[arg(long, value_name = "FILE", conflicts_with_all = ["design", "buffer", "exhaustive", "replay"])]
    pub(crate) host: Option<PathBuf>,

    /// Draw stacks of layers, too
    #[arg(long, conflicts_with_all = ["host", "design", "buffer", "exhaustive", "replay"])]
    pub(crate) stacks: bool,

    /// Draw layers that need drives of their own kind: `shrd`, `append` and `cache`
    #[arg(long, conflicts_with_all = ["host", "stacks", "design", "buffer", "exhaustive", "replay"])]
    pub(crate) drivers: bool,

    /// Draw small drives of a command set, and commands, answers and events of it beside block I/O
    #[arg(long, value_name = "SET", value_parser = PossibleValuesParser::new(ssdlab_torture::SETS), conflicts_with_all = ["host", "stacks", "drivers", "device", "set", "design", "buffer", "exhaustive", "replay", "fs_set"])]
    pub(crate) command_set: Option<String>,

    /// Torture a file system of this kind, `alfs`, `lfs` or `journaling`, on small drives
    #[arg(long, value_name = "KIND",
        conflicts_with_all = ["host", "stacks", "drivers", "command_set", "device", "set", "design", "buffer", "replay"])]
    pub(crate) fs: Option<String>,

    /// Set a key of the file system in place of drawing it
    #[arg(long, value_name = "KEY=VALUE", requires = "fs", conflicts_with = "exhaustive")]
    pub(crate) fs_set: Vec<String>,

    /// Override a key of the drive's description
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// FTL design; may be repeated. By default all, with --device its own
    #[arg(long, value_name = "NAME")]
    pub(crate) design: Vec<String>,

    /// Buffer policy; may be repeated. By default all, with --device its own
    #[arg(long, value_name = "NAME")]
    pub(crate) buffer: Vec<String>,

    /// Number of seeds; by default 1000, or with --until as many as fit into the time
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX))]
    pub(crate) seeds: Option<u64>,

    /// Commands of each seed; by default 200. Cases of the command sets cache, segments and shrd have lengths of their own
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, 1_000_000))]
    pub(crate) ops: Option<u64>,

    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(0, u64::MAX))]
    pub(crate) seed: u64,

    /// Stop starting seeds after TIME, such as 90s or 10min
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,

    /// Threads; by default one for each core
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, 1024))]
    pub(crate) jobs: Option<u64>,

    /// Memory for drives of --device or --replay on all threads, such as 4g; by default 3/4 of what is available
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Try every power cut of every sequence of up to LENGTH commands, instead of seeds
    #[arg(long, value_name = "LENGTH", num_args = 0..=1, default_missing_value = "3",
        value_parser = whole::<u32>(1, 6), conflicts_with_all = ["seeds", "until"])]
    pub(crate) exhaustive: Option<u32>,

    /// Run the case saved in this file
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["device", "set", "design", "buffer", "seeds", "until", "exhaustive"])]
    pub(crate) replay: Option<PathBuf>,

    /// Where to save the shrunk case of a failing seed; by default torture-SEED.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
