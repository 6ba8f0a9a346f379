//! `ssdlab wa drive`: what a drive's own logs say between two moments.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::{Value, json};
use ssdlab_base::read_text;
use ssdlab_lab::table;
use ssdlab_measure::drive_log::{LifeLeft, Report, Snapshot, Span, attributes, compare, whole_life};

use super::grouped;
use crate::failure::Failure;
use crate::{outputs, stdout};

/// Compute a drive's write amplification, wear and remaining life between two snapshots of its log.
///
/// A snapshot is a file with the JSON of `nvme smart-log`, `nvme ocp smart-add-log`, `nvme id-ctrl` (concatenated for one
/// snapshot) or `smartctl -j -x`, or a device to query now, such as /dev/nvme0. With one snapshot, the result covers the
/// drive's whole life.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab wa drive /dev/nvme0 --save before.json      # (root) then work, then:
  ssdlab wa drive before.json /dev/nvme0
  smartctl -j -x /dev/sda > before.json              # the same by hand, from any machine
  ssdlab wa drive before.json after.json")]
pub(crate) struct DriveArgs {
    /// The first snapshot: a file, or a device
    #[arg(value_name = "BEFORE", required_unless_present = "attributes")]
    before: Option<PathBuf>,
    /// The second
    #[arg(value_name = "AFTER")]
    after: Option<PathBuf>,
    /// Save the device's answer to this file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// List the supported ATA attributes, by number and smartctl's name, and exit
    #[arg(long, conflicts_with_all = ["before", "save"])]
    attributes: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn drive(args: &DriveArgs) -> Result<(), Failure> {
    if args.attributes {
        let rows: Vec<Vec<String>> =
            attributes().into_iter().map(|(id, name, what)| vec![id.to_string(), name.to_string(), what]).collect();
        return stdout::print(|to| to.write_all(stdout::aligned(&rows).as_bytes()));
    }
    let Some(before) = &args.before else { return Err(Failure::input("a snapshot is missing")) };
    let paths: Vec<&PathBuf> = std::iter::once(before).chain(&args.after).collect();
    let devices = paths.iter().filter(|path| is_device(path)).count();
    if args.save.is_some() && devices != 1 {
        let found = if devices == 0 { "none of the snapshots is one" } else { "both snapshots are devices" };
        return Err(Failure::input(format!("--save keeps what a device says, and {found}")));
    }
    let mut snapshots = Vec::new();
    for path in paths {
        let text = text_of(path)?;
        if let (Some(save), true) = (&args.save, is_device(path)) {
            outputs::is_not_read("--save ", save, args.before.iter().chain(&args.after).map(PathBuf::as_path))?;
            std::fs::write(save, &text)
                .map_err(|error| Failure::input(format!("--save {}: {error}", save.display())))?;
        }
        let snapshot = Snapshot::parse(&path.display().to_string(), &text).map_err(Failure::input);
        snapshots.push(snapshot.map_err(|refused| match logs_beside(path) {
            Some(logs) => refused.hint(format!("the logs of the drives of a run are in {}", logs.display())),
            None => refused,
        })?);
    }
    let report = match snapshots.as_slice() {
        [before, after] => compare(before, after).map_err(Failure::input)?,
        [only] => whole_life(only).map_err(Failure::input)?,
        _ => return Err(Failure::input("expected one or two snapshots")),
    };
    let last = snapshots.last().map_or(&[][..], |snapshot| &snapshot.logs);
    if args.json { stdout::print_json(&as_json(&report)) } else { show(&report, last, snapshots.len() == 1) }
}

/// The folder of the logs of a run whose results the user took for a log.
fn logs_beside(path: &Path) -> Option<PathBuf> {
    let logs = path.parent()?.join("smart");
    (path.file_name()? == "result.json" && logs.is_dir()).then_some(logs)
}

fn is_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    std::fs::metadata(path).map_or_else(
        |_| path.starts_with("/dev"),
        |metadata| metadata.file_type().is_block_device() || metadata.file_type().is_char_device(),
    )
}

/// A snapshot longer than this is none.
const TEXT_MAX: u64 = 16 << 20;

fn text_of(path: &Path) -> Result<String, Failure> {
    if is_device(path) {
        return ask(path);
    }
    let wrong = |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", path.display()));
    let metadata =
        std::fs::metadata(path).map_err(|error| wrong(&format!("the snapshot cannot be opened: {error}")))?;
    if metadata.is_dir() {
        return Err(wrong(&"this is a directory; expected a file with a snapshot, or a device such as /dev/nvme0"));
    }
    read_text(path, TEXT_MAX, "a snapshot in JSON").map_err(|error| wrong(&error))
}

/// What a program printed, or nothing if it is not installed.
fn output(program: &str, words: &[&str], device: &Path) -> Result<Option<std::process::Output>, Failure> {
    match Command::new(program).args(words).arg(device).output() {
        Ok(output) => Ok(Some(output)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::work(format!("{program}: {error}"))),
    }
}

/// Asks a device for its logs.
fn ask(device: &Path) -> Result<String, Failure> {
    let shown = device.display();
    if !device.exists() {
        return Err(Failure::input(format!("{shown}: there is no such device")));
    }
    let nvme = device.file_name().is_some_and(|name| name.to_string_lossy().starts_with("nvme"));
    if nvme && let Some(log) = output("nvme", &["smart-log", "-o", "json"], device)? {
        if !log.status.success() {
            let said = String::from_utf8_lossy(&log.stderr);
            return Err(Failure::work(format!("nvme smart-log {shown}: {}", said.trim())).hint("reading it needs root"));
        }
        let mut text = String::from_utf8_lossy(&log.stdout).into_owned();
        // Not every drive has OCP's log: what it does not tell is said later.
        for words in [&["id-ctrl", "-o", "json"][..], &["ocp", "smart-add-log", "-o", "json"]] {
            if let Some(more) = output("nvme", words, device)?.filter(|more| more.status.success()) {
                text.push_str(&String::from_utf8_lossy(&more.stdout));
            }
        }
        return Ok(text);
    }
    match output("smartctl", &["-j", "-x"], device)? {
        // Its exit status has bits for a failing drive too: what it printed says whether it could read it.
        Some(log) if !log.stdout.is_empty() => Ok(String::from_utf8_lossy(&log.stdout).into_owned()),
        Some(log) => Err(Failure::work(format!("smartctl {shown}: {}", String::from_utf8_lossy(&log.stderr).trim()))),
        None => {
            Err(Failure::work(format!("{shown} cannot be asked: neither nvme (nvme-cli) nor smartctl is installed"))
                .hint("Debian, Ubuntu: apt-get install nvme-cli smartmontools; or save their JSON on another machine"))
        }
    }
}

fn as_json(report: &Report) -> Value {
    // JSON numbers are exact to 2^53 in most readers; bytes beyond are rounded there, not here.
    let bytes = |span: Option<Span>| span.map(|span| json!({ "bytes": span.bytes as f64, "unit": span.unit }));
    let left = |left: &LifeLeft| json!({ "percent": left.percent, "seconds": left.seconds, "host_bytes": left.host_bytes, "rate_of": left.rate_of });
    json!({
        "format": 1,
        "model": report.model,
        "serial": report.serial,
        "elapsed_s": report.elapsed.map(|elapsed| elapsed.seconds),
        "elapsed_by": report.elapsed.map(|elapsed| elapsed.by),
        "host_written": bytes(report.host),
        "media_written": bytes(report.media),
        "write_amplification": report.amplification.map(|ratio| json!({
            "value": ratio.value,
            "least": ratio.least,
            "most": ratio.most.is_finite().then_some(ratio.most),
            "from": ratio.from,
        })),
        "lifetime_write_amplification": report.lifetime_amplification,
        "percent_used": report.percent_used.map(|(before, after)| [before, after]),
        "erases_mean": report.erases.map(|(before, after)| [before, after]),
        "spare_percent": report.spare.map(|(before, after)| [before, after]),
        "lifetime": report.lifetime,
        "life_left": report.life_left.as_ref().map(left),
        "notes": report.notes,
    })
}

fn show(report: &Report, logs: &[&str], whole: bool) -> Result<(), Failure> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_string(), value]);
    let unknown = || "not told".to_string();
    row("drive", report.model.clone().unwrap_or_else(unknown));
    row("serial number", report.serial.clone().unwrap_or_else(unknown));
    let mut kinds: Vec<&str> = Vec::new();
    kinds.extend(logs.iter().enumerate().filter(|(place, log)| !logs[..*place].contains(log)).map(|(_, log)| *log));
    row("logs", kinds.join(", "));
    // Its counters do not cover what came before, and its erases do.
    let simulated = kinds.contains(&"ssdlab");
    let between = match (whole, simulated) {
        (true, true) => "since its run or server began",
        (true, false) => "since it was new",
        (false, _) => "between the snapshots",
    };
    row(
        between,
        report.elapsed.map_or_else(unknown, |elapsed| format!("{} (by {})", span(elapsed.seconds), elapsed.by)),
    );
    let data = |span: Option<Span>| {
        span.map_or_else(unknown, |span| {
            let off =
                if span.unit > 0 { format!(", to {}", ssdlab_base::format_size(span.unit)) } else { String::new() };
            format!("{} ({} bytes{off})", volume(span.bytes as f64), grouped(span.bytes))
        })
    };
    row("written by the host", data(report.host));
    row("written to the chips", data(report.media));
    row(
        "write amplification",
        report.amplification.map_or_else(
            || "cannot be told".to_string(),
            |ratio| {
                let exact = ratio.least == ratio.value && ratio.most == ratio.value;
                let range = if exact {
                    String::new()
                } else {
                    format!(" ({:.3} to {:.3} by the drive's units)", ratio.least, ratio.most)
                };
                format!("{:.3}{range}: {}", ratio.value, ratio.from)
            },
        ),
    );
    if !whole && let Some(ratio) = report.lifetime_amplification {
        row("  over its whole life", format!("{ratio:.3}"));
    }
    let change = |pair: Option<(String, String)>| {
        pair.map_or_else(
            unknown,
            |(before, after)| if whole || before == after { after } else { format!("{before} -> {after}") },
        )
    };
    row("life used", change(report.percent_used.map(|(before, after)| (percent(before), percent(after)))));
    row(
        "erases of a block, mean",
        change(report.erases.map(|(before, after)| (grouped(before.into()), grouped(after.into())))),
    );
    row("spare blocks left", change(report.spare.map(|(before, after)| (format!("{before} %"), format!("{after} %")))));
    if let Some(lasts) = &report.lifetime {
        for (label, figure) in table::LIFETIME {
            if let Some(value) = figure(lasts) {
                row(label, value);
            }
        }
    }
    if let Some(left) = &report.life_left {
        let time = left.seconds.map(|seconds| format!(", {}", span(seconds))).unwrap_or_default();
        let host = left.host_bytes.map(|bytes| format!(", {} of the host's", volume(bytes))).unwrap_or_default();
        row("life left", format!("{}{time}{host}", percent(left.percent)));
        row("  at the rate of", left.rate_of.to_string());
    }
    stdout::print(|to| {
        to.write_all(stdout::aligned(&rows).as_bytes())?;
        if whole && simulated {
            writeln!(
                to,
                "note: a simulated drive counts commands and bytes from the start of the measured run (or of the server), without \
                 preconditioning; erases and the life used are those since it was new"
            )?;
        }
        report.notes.iter().try_for_each(|note| writeln!(to, "note: {note}"))
    })
}

/// A percentage to a thousandth, which only a simulated drive tells.
fn percent(percent: f64) -> String {
    let digits = format!("{percent:.3}");
    format!("{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// A span of real time, in the largest unit that leaves a number above 2.
fn span(seconds: f64) -> String {
    let units = [(31_557_600.0, "years"), (86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")];
    let unit = units.into_iter().find(|(length, _)| seconds >= 2.0 * length);
    unit.map_or_else(|| format!("{seconds:.1} seconds"), |(length, name)| format!("{:.1} {name}", seconds / length))
}

/// Bytes as drives are sold: powers of 1000.
fn volume(bytes: f64) -> String {
    let units = [(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = units.into_iter().find(|(size, _)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes:.0} bytes"), |(size, name)| format!("{:.2} {name}", bytes / size))
}
