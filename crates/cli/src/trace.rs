//! `ssdlab trace`: what a trace is made of, its first requests, and the same requests in another format.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::write::GzEncoder;
use ssdlab_base::{Nanos, SECTOR_BYTES, parse_size};
use ssdlab_lab::output::Staging;
use ssdlab_workload::fio::{FioJob, Variables};
use ssdlab_workload::stats::TraceStats;
use ssdlab_workload::trace::{Converted, Target, Trace, TraceWriter, convert};
use ssdlab_workload::{Workload, WorkloadError, WorkloadKind, open_trace};

use crate::args::{self, TraceConvert, TraceFormat, TraceHead};
use crate::failure::Failure;
use crate::{outputs, stderr, stdout};

/// The name that stands in every line of an iolog; fio's `replay_redirect` puts the real device in its place.
const IOLOG_FILE: &str = "ssdlab";

/// Does what was asked for.
pub(crate) fn trace(what: args::Trace) -> Result<(), Failure> {
    match what {
        args::Trace::Stats(args) => print_stats(&args),
        args::Trace::Convert(args) => write_converted(&args),
        args::Trace::Head(args) => head(&args),
    }
}

fn open(spec: &str) -> Result<Trace, Failure> {
    open_trace(spec).map_err(Failure::input)
}

fn tell(notes: impl IntoIterator<Item = String>) {
    for note in notes {
        stderr::note(note);
    }
}

/// Counts the whole trace and prints what was counted.
fn print_stats(args: &args::TraceStats) -> Result<(), Failure> {
    let mut trace = open(&args.file)?;
    let stats = TraceStats::of(&mut trace).map_err(Failure::input)?;
    tell(trace.notes().into_iter().chain(trace.gap()));
    if args.json {
        return stdout::print_json(&stats);
    }
    let packed = match trace.compression() {
        "" => String::new(),
        packing => format!(", {packing}"),
    };
    stdout::print(|to| write!(to, "{:<24} {}{packed}\n{stats}", "format", trace.format()))
}

/// Prints the first requests as CSV, one after the other, so that a reader who has enough can go.
fn head(args: &TraceHead) -> Result<(), Failure> {
    let mut trace = open(&args.file)?;
    let mut wrong = None;
    stdout::print(|to| {
        let mut to = Watched { to, error: None };
        let copied = copy_head(&mut trace, args.count, &mut to);
        match (to.error, copied) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => {
                wrong = Some(error);
                Ok(())
            }
            (None, Ok(())) => Ok(()),
        }
    })?;
    tell(trace.notes().into_iter().chain(trace.gap()));
    wrong.map_or(Ok(()), |error| Err(Failure::input(error)))
}

fn copy_head(trace: &mut Trace, count: u64, to: impl Write) -> Result<(), WorkloadError> {
    let mut writer = TraceWriter::new(Target::Csv, to)?;
    let mut left = count;
    let mut batch = Vec::new();
    while left > 0 && trace.read(&mut batch)? > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(batch.len());
        for request in &batch[..wanted] {
            writer.write(request)?;
        }
        left -= wanted as u64;
    }
    writer.finish().map(drop)
}

fn write_converted(args: &TraceConvert) -> Result<(), Failure> {
    let target = target(args)?;
    let mut requests = Requests::open(args)?;
    if args.output == Path::new("-") {
        return Err(Failure::input("found '-', expected a file's name: a converted trace is not printed")
            .hint("`ssdlab trace head` prints the first requests"));
    }
    outputs::is_not_read("", &args.output, [Path::new(&requests.name())])?;
    let name = args
        .output
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .ok_or_else(|| Failure::input(format!("'{}' is not the name of a file to write", args.output.display())))?;
    let folder = match args.output.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut staging = Staging::in_existing(folder).map_err(Failure::input)?;
    let file = staging.open(&name).map_err(Failure::input)?;
    let mut to = Watched { to: BufWriter::with_capacity(1 << 18, &file), error: None };
    let converted = compressed(&name, &mut requests, &target, &mut to);
    if let Some(error) = to.error {
        return Err(Failure::work(format!("{} could not be written: {error}", args.output.display())));
    }
    let converted = converted.map_err(Failure::input)?;
    drop(to);
    staging.close(&name, &file).and_then(|()| staging.commit()).map_err(Failure::work)?;
    tell(requests.notes().into_iter().chain(converted.notes));
    let requests = if converted.requests == 1 { "request" } else { "requests" };
    stdout::print(|to| writeln!(to, "{}: {} {requests}", args.output.display(), converted.requests))
}

/// What is converted.
enum Requests {
    Trace(Box<Trace>),
    Jobs { file: String, job: FioJob, capacity: u64, seed: u64 },
}

impl Requests {
    fn open(args: &TraceConvert) -> Result<Requests, Failure> {
        let input = args.input.as_str();
        if WorkloadKind::of(input) == WorkloadKind::Trace {
            if args.capacity.is_some() || !args.env.is_empty() {
                let option = if args.capacity.is_some() { "--capacity" } else { "--env" };
                return Err(Failure::input(format!("{option} is for fio workloads, and '{input}' is a trace")));
            }
            return open(input).map(|trace| Requests::Trace(Box::new(trace)));
        }
        let variables = variables(&args.env)?;
        let job = match WorkloadKind::of(input) {
            WorkloadKind::JobFile => FioJob::parse_file(Path::new(input), &variables),
            _ => FioJob::parse_line_with(input, &variables),
        };
        let job = job.map_err(Failure::input)?;
        let Some(text) = &args.capacity else {
            return Err(Failure::input(format!(
                "'{input}' is a fio workload, whose requests depend on the size of the drive"
            ))
            .hint("give it with --capacity, such as --capacity 64g"));
        };
        let capacity = parse_size(text).map_err(|error| Failure::input(format!("--capacity: {error}")))? / SECTOR_BYTES
            * SECTOR_BYTES;
        Ok(Requests::Jobs { file: input.to_string(), job, capacity, seed: args.seed })
    }

    fn name(&self) -> String {
        match self {
            Requests::Trace(trace) => trace.name(),
            Requests::Jobs { file, .. } => file.clone(),
        }
    }

    fn notes(&self) -> Vec<String> {
        match self {
            Requests::Trace(trace) => trace.notes().into_iter().chain(trace.gap()).collect(),
            Requests::Jobs { job, .. } => job.notes(),
        }
    }

    fn convert(&mut self, target: &Target, out: impl Write) -> Result<Converted, WorkloadError> {
        /// Long enough that jobs in flight take turns, and short enough for any `runtime`.
        const LATENCY: Nanos = Nanos(100_000);
        let (job, capacity, seed) = match self {
            Requests::Trace(trace) => return convert(trace, target, out),
            Requests::Jobs { job, capacity, seed, .. } => (job, *capacity, *seed),
        };
        let mut workload = job.generator(capacity, seed)?;
        let files: Vec<String> =
            Workload::jobs(&workload).iter().map(|name| name.replace(char::is_whitespace, "_")).collect();
        let mut writer = TraceWriter::new(target.clone(), out)?;
        workload.list(LATENCY, |request, job| {
            if let Some(file) = files.get(job) {
                writer.of_file(file)?;
            }
            writer.write(request).map(|()| true)
        })?;
        Ok(writer.finish()?.0)
    }
}

/// The variables of `--env`, before those of the environment.
pub(crate) fn variables(given: &[String]) -> Result<Variables, Failure> {
    given.iter().try_fold(Variables::of_environment(), |variables, text| {
        variables.with(text).map_err(|error| Failure::input(format!("--env: {error}")))
    })
}

/// Converts into `to`, through the compression that the name asks for.
fn compressed(
    name: &str,
    requests: &mut Requests,
    target: &Target,
    to: &mut Watched<impl Write>,
) -> Result<Converted, WorkloadError> {
    let failed = |error: io::Error| WorkloadError(error.to_string());
    if name.ends_with(".gz") {
        let mut gzip = GzEncoder::new(&mut *to, flate2::Compression::default());
        let converted = requests.convert(target, &mut gzip)?;
        gzip.finish().and_then(|to| to.flush()).map_err(failed)?;
        return Ok(converted);
    }
    if name.ends_with(".zst") {
        let mut zstd = zstd::Encoder::new(&mut *to, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(failed)?;
        zstd.include_checksum(true).map_err(failed)?;
        let converted = requests.convert(target, &mut zstd)?;
        zstd.finish().and_then(|to| to.flush()).map_err(failed)?;
        return Ok(converted);
    }
    requests.convert(target, to)
}

fn target(args: &TraceConvert) -> Result<Target, Failure> {
    let fio = || Target::FioV3 { file: IOLOG_FILE.to_string() };
    if let Some(format) = args.to {
        return Ok(match format {
            TraceFormat::Csv => Target::Csv,
            TraceFormat::Fio => fio(),
        });
    }
    let name = args.output.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    match plain.rsplit_once('.').map(|(_, extension)| extension) {
        Some("csv") => Ok(Target::Csv),
        Some("fio" | "iolog" | "log") => Ok(fio()),
        _ => Err(Failure::input(format!("'{}' does not say which format to write", args.output.display()))
            .hint("end the name in .csv or .iolog, or say --to csv or --to fio")),
    }
}

/// A writer that keeps the first error, which [`TraceWriter`] gives back only as a sentence.
struct Watched<W> {
    to: W,
    error: Option<io::Error>,
}

impl<W: Write> Watched<W> {
    fn keep<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.error.get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.to.write(bytes);
        self.keep(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.to.flush();
        self.keep(result)
    }
}
