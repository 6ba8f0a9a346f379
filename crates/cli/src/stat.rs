//! `ssdlab stat` and `ssdlab record`: a served drive from outside, through its control socket.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use ssdlab_base::Nanos;
use ssdlab_base::command_sets::segments::SegmentState;
use ssdlab_lab::text::clipped;
use ssdlab_workload::trace::CSV_HEADER;

use crate::failure::Failure;
use crate::stat_segments::{Selection, shown, states};
use crate::stdout::{say, say_bold};
use crate::{interrupt, stderr, stdout};

/// Show a served drive live: IOPS, latency, write amplification, free blocks, garbage collection.
#[derive(Args, Debug)]
pub(crate) struct Stat {
    /// The server's control socket, or the image's folder
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,
    /// Seconds between two lines
    #[arg(long, short, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Number of lines; by default until interrupted
    #[arg(long, short = 'n', value_name = "N")]
    count: Option<u64>,
    /// Print the metrics as JSON, one line each time
    #[arg(long)]
    json: bool,
    /// Print the drive's log once, as JSON with the keys of `nvme smart-log`, for `ssdlab wa drive`
    #[arg(long, conflicts_with_all = ["interval", "count", "json"])]
    smart: bool,
    /// Print the append-only segments of each drive once: their size, their number by state, and the refused commands
    ///
    /// --range and --state select segments to list, one a line. --json lists the selected segments, by default all; adjacent
    /// segments with the same state and written bytes share an entry.
    #[arg(long, conflicts_with_all = ["interval", "count", "smart"])]
    segments: bool,
    /// Show only this drive of a stack
    #[arg(long, value_name = "NAME", requires = "segments")]
    drive: Option<String>,
    /// List these segments
    #[arg(long, value_name = "FIRST-LAST", requires = "segments", value_parser = parse_range)]
    range: Option<RangeInclusive<u64>>,
    /// List segments in these states: free, open, full, closed
    #[arg(long, value_name = "STATE", requires = "segments", value_delimiter = ',', value_parser = parse_state)]
    state: Vec<SegmentState>,
}

/// Record the commands of a served drive's clients as a trace that `ssdlab run` replays.
///
/// The recording starts now and has times, flushes, FUA and trims. To record from the first request, start the server with
/// --record.
#[derive(Args, Debug)]
pub(crate) struct Record {
    /// The server's control socket, or the image's folder
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,
    /// The trace to write, a new file; .zst and .gz are compressed
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Stop after this many seconds; by default when interrupted
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
}

/// Reads `FIRST-LAST` or a single number.
fn parse_range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err("expected a segment or a range of them, such as 7 or 0-99".to_string()),
    }
}

/// Reads the name of a state.
fn parse_state(text: &str) -> Result<SegmentState, String> {
    let named = SegmentState::ALL.into_iter().find(|state| state.name() == text);
    named.ok_or_else(|| format!("expected {}", SegmentState::ALL.map(SegmentState::name).join(", ")))
}

/// A connection to a control socket.
struct Asked {
    to: UnixStream,
    from: BufReader<UnixStream>,
    path: PathBuf,
}

impl Asked {
    fn connect(socket: &Path) -> Result<Asked, Failure> {
        let path = if socket.is_dir() { socket.join("control.sock") } else { socket.to_path_buf() };
        let to = UnixStream::connect(&path)
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())).hint(EXPECTED))?;
        let from = BufReader::new(to.try_clone().map_err(Failure::work)?);
        Ok(Asked { to, from, path })
    }

    /// Asks in a word. The answer's first line begins with `begins`, or an error of the server's; nothing if the server has
    /// ended. What answers otherwise is no control socket: NBD's, for one, speaks first.
    fn ask(&mut self, word: &str, begins: &str) -> Result<Option<String>, Failure> {
        // Who hangs up on the question may have said why it is none: what it said is read all the same.
        let _ = self.to.write_all(format!("{word}\n").as_bytes());
        self.to.set_read_timeout(Some(PATIENCE)).map_err(Failure::work)?;
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            let arrived = match self.from.fill_buf() {
                Ok([]) => return Ok(None),
                Ok(arrived) => arrived,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let sentence = format!("{}: no answer for {} s", self.path.display(), PATIENCE.as_secs());
                    return Err(Failure::input(sentence).hint(EXPECTED));
                }
                Err(_) => return Ok(None),
            };
            let taken = arrived.iter().position(|byte| *byte == b'\n').map_or(arrived.len(), |at| at + 1);
            line.extend_from_slice(&arrived[..taken]);
            self.from.consume(taken);
            let is_answer = [begins, ERROR].iter().any(|known| {
                let both = known.len().min(line.len());
                line[..both] == known.as_bytes()[..both]
            });
            if !is_answer || line.len() > LINE_MAX {
                let said = clipped(&String::from_utf8_lossy(&line[..line.len().min(80)]), 40);
                let sentence = format!("{}: it answered '{said}', which no control socket says", self.path.display());
                return Err(Failure::input(sentence).hint(EXPECTED));
            }
        }
        self.to.set_read_timeout(None).map_err(Failure::work)?;
        let line = String::from_utf8_lossy(&line).into_owned();
        if begins != ERROR && line.starts_with(ERROR) {
            return Err(Failure::work(format!("the server answered {}", line.trim_end())));
        }
        Ok(Some(line))
    }

    /// Asks once, for JSON.
    fn ask_json(&mut self, word: &str) -> Result<Value, Failure> {
        let line = self.ask(word, "{")?.ok_or_else(ended)?;
        serde_json::from_str(&line)
            .map_err(|error| Failure::work(format!("the server answered '{}': {error}", line.trim_end())))
    }
}

/// What a socket should be.
const EXPECTED: &str = "expected the control socket of a running `ssdlab serve` or `ssdlab mount`";

/// How an answer begins that says what is wrong.
const ERROR: &str = "{\"error\":";

/// How long a server is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of an answer in one line, at most.
const LINE_MAX: usize = 1 << 30;

/// Shows figures until it is told to stop or the server ends.
pub(crate) fn stat(args: &Stat) -> Result<ExitCode, Failure> {
    if !(0.01..=86400.0).contains(&args.interval) {
        return Err(Failure::input(format!("--interval {}: expected 0.01 to 86400 seconds", args.interval)));
    }
    let mut server = Asked::connect(&args.socket)?;
    if args.smart {
        stdout::print_json(&server.ask_json("smart")?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.segments {
        let told = server.ask_json("segments")?;
        let selection = Selection { drive: args.drive.clone(), range: args.range.clone(), states: args.state.clone() };
        let text = shown(told, &selection, args.json)?;
        if args.json {
            stdout::print_as_json(|to| writeln!(to, "{text}"))?
        } else {
            say(&text)?
        }
        return Ok(ExitCode::SUCCESS);
    }
    let stop = interrupt::listen_saying("")?;
    let mut last: Option<Value> = None;
    let mut shown = 0;
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) && args.count.is_none_or(|count| shown < count) {
        let Some(line) = server.ask("figures", "{")? else {
            if last.is_none() {
                return Err(ended());
            }
            stderr::say("the server has ended");
            return Ok(ExitCode::SUCCESS);
        };
        let now: Value = serde_json::from_str(&line)
            .map_err(|error| Failure::work(format!("the server answered {line}: {error}")))?;
        if args.json {
            stdout::print_as_json(|to| writeln!(to, "{}", line.trim_end()))?;
            shown += 1;
        } else if let Some(before) = &last {
            if shown % 20 == 0 {
                say_bold(&heading(&now))?;
            }
            say(&row(before, &now))?;
            let lines = [layers(before, &now), disks(before, &now), sets(before, &now), conditions(&now)];
            for line in lines.into_iter().flatten() {
                say(&line)?;
            }
            shown += 1;
        }
        last = Some(now);
        next += Duration::from_secs_f64(args.interval);
        while Instant::now() < next && !stop.load(Ordering::Relaxed) {
            std::thread::sleep((next - Instant::now().min(next)).min(Duration::from_millis(50)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The server has gone and said nothing.
fn ended() -> Failure {
    Failure::work("the server ended before it answered")
}

fn heading(now: &Value) -> String {
    let name = now["name"].as_str().unwrap_or("");
    // Of a drive that caches its map.
    let map = if now["map"].is_null() { "" } else { " map hits" };
    format!(
        "{name}\n{:>8} {:>8} {:>9} {:>9} {:>10} {:>10} {:>5} {:>7} {:>6} {:>9} {:>7}{map}",
        "read/s", "write/s", "read", "write", "read p99", "write p99", "depth", "WA", "free", "GC/s", "late"
    )
}

fn row(before: &Value, now: &Value) -> String {
    let number = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    let seconds = (number(now, "/seconds") - number(before, "/seconds")).max(1e-9);
    let rate = |path: &str| (number(now, path) - number(before, path)) / seconds;
    let time = |path: &str| Nanos(number(now, path) as u64).to_string();
    let pages = rate("/flash/program/total") + rate("/flash/copyback/total");
    let host = rate("/flash/program/by_cause/host") + rate("/flash/program/by_cause/rmw");
    let (hits, misses) = (rate("/map/hits"), rate("/map/misses"));
    let map = match &now["map"] {
        Value::Null => String::new(),
        _ if hits + misses > 0.0 => format!(" {:>7.1}%", 100.0 * hits / (hits + misses)),
        _ => format!(" {:>8}", "-"),
    };
    let amplification = if host > 0.0 { format!("{:.2}", pages / host) } else { "-".to_string() };
    format!(
        "{:>8.0} {:>8.0} {:>7.1}MB {:>7.1}MB {:>10} {:>10} {:>5.0} {:>7} {:>6.0} {:>9.1} {:>7}{map}",
        rate("/commands/read"),
        rate("/commands/write"),
        rate("/bytes/read") / 1e6,
        rate("/bytes/write") / 1e6,
        time("/latency_ns/read/p99"),
        time("/latency_ns/write/p99"),
        number(now, "/outstanding"),
        amplification,
        number(now, "/free_blocks"),
        rate("/gc/victims_foreground") + rate("/gc/victims_background"),
        time("/lateness_ns/mean"),
    )
}

/// What each layer of the host has taken and sent so far, and those of its own metrics that have changed.
fn layers(before: &Value, now: &Value) -> Vec<String> {
    let requests = |layer: &Value, way: &str| -> u64 {
        layer[way]["requests"].as_array().into_iter().flatten().filter_map(Value::as_u64).sum()
    };
    let line = |(number, layer): (usize, &Value)| {
        let mut line = format!(
            "  {}: took {} requests, sent {}",
            layer["kind"].as_str().unwrap_or(""),
            requests(layer, "taken"),
            requests(layer, "sent")
        );
        for (name, value) in layer["metrics"].as_object().into_iter().flatten() {
            if before["host_layers"][number]["metrics"][name] != *value {
                line += &format!(", {name} {}", value.as_f64().unwrap_or(0.0));
            }
        }
        line
    };
    now["host_layers"].as_array().into_iter().flatten().enumerate().map(line).collect()
}

/// Those counters of each disk that have changed.
fn disks(before: &Value, now: &Value) -> Vec<String> {
    let line = |(number, disk): (usize, &Value)| {
        let before = &before["disks"][number]["counters"];
        let counters = disk["counters"].as_object().into_iter().flatten();
        let changed: Vec<String> = counters
            .filter(|(name, count)| before[*name] != **count)
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        (!changed.is_empty()).then(|| format!("  {}: {}", disk["name"].as_str().unwrap_or(""), changed.join(", ")))
    };
    now["disks"].as_array().into_iter().flatten().enumerate().filter_map(line).collect()
}

/// A line for each drive or layer that is not as it should be.
fn conditions(now: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_string();
    let line = |condition: &Value| format!("  {}: {}", text(&condition["of"]), text(&condition["what"]));
    now["conditions"].as_array().into_iter().flatten().map(line).collect()
}

/// A line for each drive with segments: how many of each state, and what it refused since the line before.
fn sets(before: &Value, now: &Value) -> Vec<String> {
    let line = |(number, of): (usize, &Value)| {
        let segments = of.get("segments")?;
        let mut line = format!("  {}: segments {}", of["drive"].as_str().unwrap_or(""), states(segments));
        for (reason, count) in of["refused"].as_object().into_iter().flatten() {
            let count = count.as_u64().unwrap_or(0);
            let earlier = before["command_sets"][number]["refused"][reason].as_u64().unwrap_or(0);
            if count > earlier {
                line += &format!(", {reason} +{}", count - earlier);
            }
        }
        Some(line)
    };
    now["command_sets"].as_array().into_iter().flatten().enumerate().filter_map(line).collect()
}

/// Records until it is told to stop or the server ends.
pub(crate) fn record(args: &Record) -> Result<ExitCode, Failure> {
    if let Some(seconds) = args.seconds.filter(|seconds| !(0.0..=1e9).contains(seconds)) {
        return Err(Failure::input(format!("--seconds {seconds}: expected 0 to 1000000000")));
    }
    let mut server = Asked::connect(&args.socket)?;
    // What is no control socket leaves no file behind.
    let head = server.ask("record", CSV_HEADER)?.ok_or_else(ended)?;
    let mut out = crate::serve::new_recording(&args.out)?;
    server.to.set_read_timeout(Some(Duration::from_millis(50))).map_err(Failure::work)?;
    let stop = interrupt::listen_saying("ending the recording")?;
    let until = args.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let wrong = |error: std::io::Error| {
        Failure::work(format!("--out {}: {error}; the recording ends here, incomplete", args.out.display()))
    };
    out.write_all(head.as_bytes()).map_err(wrong)?;
    let mut bytes = vec![0; 1 << 16];
    // The beginning of a line; the rest of it may never come.
    let mut begun: Vec<u8> = Vec::new();
    let (mut lines, mut asked) = (0_u64, false);
    loop {
        if !asked && (stop.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() >= until)) {
            // The server sends what it has, and hangs up.
            asked = true;
            server.to.shutdown(std::net::Shutdown::Write).map_err(Failure::work)?;
        }
        match server.from.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => {
                begun.extend_from_slice(&bytes[..count]);
                let whole = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                lines += begun[..whole].iter().filter(|byte| **byte == b'\n').count() as u64;
                out.write_all(&begun[..whole]).map_err(wrong)?;
                begun.drain(..whole);
            }
            // A signal ends a read early: the loop sees then that it is time to stop.
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            // A server that was killed has ended.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => return Err(Failure::work(error)),
        }
    }
    out.flush().map_err(wrong)?;
    drop(out);
    if !asked {
        stderr::note("the server has ended, and the recording with it");
    }
    stdout::print(|to| writeln!(to, "recorded {lines} requests: {}", args.out.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_selected_by_range_and_state() {
        for text in ["", "x", "3-2", "1-2-3", "-1"] {
            assert!(parse_range(text).is_err(), "{text}");
        }
        assert_eq!((parse_range("7"), parse_range("0-99")), (Ok(7..=7), Ok(0..=99)));
        assert!(parse_state("full").is_ok() && parse_state("Full").is_err());
    }
}
