//! The timeline of channels and dies for a window of virtual time, as a file that Perfetto (ui.perfetto.dev) and
//! Chrome's tracing page open.
//!
//! Each drive has a process for its channels and one for its dies, each channel and die a track, each operation a slice
//! named by what it does and why. Where the paths of requests are recorded a third process has the requests, in as many
//! tracks as it takes to keep them apart, each request a slice and what it waited for slices inside it. The file is written as the run goes, through a buffer of fixed size: memory does not
//! grow with the window. Times in the file are microseconds with three decimals, so nanoseconds survive exactly.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use ssdlab_base::Nanos;
use ssdlab_device::critical_path::Path;
use ssdlab_flash::{Geometry, Observer, OpKind, Resource, Span};

use crate::breakdown::{OPS, RequestLanes};

/// A window of virtual time, from its start to before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceWindow {
    /// From.
    pub from: Nanos,
    /// To.
    pub to: Nanos,
}

impl std::fmt::Display for TraceWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.from, self.to)
    }
}

/// Why a window was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is not a window: expected FROM..TO with FROM before TO, such as 10ms..12ms{reason}")]
pub struct TraceWindowError {
    found: String,
    reason: String,
}

impl std::str::FromStr for TraceWindow {
    type Err = TraceWindowError;

    /// Reads `FROM..TO`; an empty FROM is the start.
    ///
    /// ```
    /// use ssdlab_lab::perfetto::TraceWindow;
    /// let window: TraceWindow = "1ms..1.5ms".parse().expect("a window");
    /// assert_eq!(window.to.0 - window.from.0, 500_000);
    /// assert!("2ms..1ms".parse::<TraceWindow>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<TraceWindow, TraceWindowError> {
        let error = |reason: String| TraceWindowError { found: text.to_string(), reason };
        let (from, to) = text.split_once("..").ok_or_else(|| error(String::new()))?;
        let time = |text: &str| ssdlab_base::parse_duration(text).map_err(|why| error(format!(" ({why})")));
        let from = if from.trim().is_empty() { Nanos::ZERO } else { time(from.trim())? };
        let to = time(to.trim())?;
        if from >= to {
            return Err(error(String::new()));
        }
        Ok(TraceWindow { from, to })
    }
}

/// Processes of a drive: its channels, its dies, its requests.
const PROCESSES: u32 = 3;

/// The events of a trace on their way to a file.
struct Stream<W> {
    to: W,
    first: bool,
    /// For each drive, how many slices its window holds.
    slices: Vec<u64>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

impl<W: Write> Stream<W> {
    fn event(&mut self, write: impl FnOnce(&mut W) -> io::Result<()>) {
        if self.error.is_some() {
            return;
        }
        let separator: &[u8] = if self.first { b"\n" } else { b",\n" };
        self.first = false;
        self.error = self.to.write_all(separator).and_then(|()| write(&mut self.to)).err();
    }
}

/// A trace file being written. Drives share it: each gets tracks of its own.
pub struct Trace<W> {
    stream: Arc<Mutex<Stream<W>>>,
    window: TraceWindow,
    drives: u32,
}

impl<W: Write + Send + 'static> Trace<W> {
    /// Begins a trace; `to` should be buffered.
    pub fn begin(mut to: W, window: TraceWindow) -> io::Result<Trace<W>> {
        to.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(Trace {
            stream: Arc::new(Mutex::new(Stream { to, first: true, slices: Vec::new(), error: None })),
            window,
            drives: 0,
        })
    }

    /// The observer for the next drive.
    pub fn observer(&mut self, name: &str, geometry: &Geometry) -> Box<dyn Observer> {
        let channels_pid = PROCESSES * self.drives + 1;
        self.drives += 1;
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let mut label = |pid: u32, tid: Option<u32>, text: String| {
            let what = if tid.is_some() { "thread" } else { "process" };
            let text = serde_json::Value::String(text);
            let tid = tid.unwrap_or(0);
            stream.event(|to| {
                write!(to, r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"{what}_name","args":{{"name":{text}}}}}"#)
            });
        };
        label(channels_pid, None, format!("{name}: channels"));
        label(channels_pid + 1, None, format!("{name}: dies"));
        for channel in 0..geometry.channels {
            label(channels_pid, Some(channel), format!("channel {channel}"));
        }
        for die in 0..geometry.dies() {
            let way = die / geometry.dies_per_chip;
            let (channel, way) = (way / geometry.chips_per_channel, way % geometry.chips_per_channel);
            label(channels_pid + 1, Some(die), format!("die {die} (channel {channel}, way {way})"));
        }
        let drive = stream.slices.len();
        stream.slices.push(0);
        drop(stream);
        Box::new(Tracks { stream: Arc::clone(&self.stream), window: self.window, channels_pid, drive })
    }

    /// What takes the requests of the next drive: to be asked for before its observer.
    pub fn requests(&mut self, name: &str) -> Box<dyn RequestLanes> {
        let pid = PROCESSES * self.drives + 3;
        let name = serde_json::Value::String(format!("{name}: requests"));
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.event(|to| {
            write!(to, r#"{{"ph":"M","pid":{pid},"tid":0,"name":"process_name","args":{{"name":{name}}}}}"#)
        });
        drop(stream);
        Box::new(Requests { stream: Arc::clone(&self.stream), window: self.window, pid, lanes: Vec::new() })
    }

    /// For each drive so far, in order, how many slices lie in the window.
    pub fn slices(&self) -> Vec<u64> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).slices.clone()
    }

    /// Ends the trace and gives the writer back; the first error that occurred comes out here. The drives' observers
    /// must be gone.
    pub fn finish(self) -> io::Result<W> {
        let stream = Arc::into_inner(self.stream).ok_or_else(|| io::Error::other("a drive still writes the trace"))?;
        let mut stream = stream.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = stream.error {
            return Err(error);
        }
        stream.to.write_all(b"\n]}\n")?;
        stream.to.flush()?;
        Ok(stream.to)
    }
}

struct Tracks<W> {
    stream: Arc<Mutex<Stream<W>>>,
    window: TraceWindow,
    channels_pid: u32,
    /// Its place among the drives.
    drive: usize,
}

impl<W: Write + Send> Observer for Tracks<W> {
    fn span(&mut self, span: Span) {
        if span.end <= self.window.from || span.start >= self.window.to {
            return;
        }
        let (pid, tid) = match span.resource {
            Resource::Channel(channel) => (self.channels_pid, channel),
            Resource::Die(die) => (self.channels_pid + 1, die.0),
        };
        let kind = match span.kind {
            OpKind::Read => "read",
            OpKind::Program => "program",
            OpKind::Erase => "erase",
            OpKind::Copyback => "copyback",
        };
        let cause = span.cause.key();
        let (start, length) = (span.start.0, span.end.since(span.start).0);
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.slices[self.drive] += 1;
        stream.event(|to| {
            write!(
                to,
                r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{}.{:03},"dur":{}.{:03},"name":"{kind} {cause}","cat":"{kind}","args":{{"ppn":{},"planes":{}}}}}"#,
                start / 1000,
                start % 1000,
                length / 1000,
                length % 1000,
                span.ppn,
                span.planes
            )
        });
    }
}

/// The requests of a drive.
struct Requests<W> {
    stream: Arc<Mutex<Stream<W>>>,
    window: TraceWindow,
    pid: u32,
    /// When the last request of each track ended.
    lanes: Vec<Nanos>,
}

impl<W: Write + Send> RequestLanes for Requests<W> {
    fn request(&mut self, path: &Path) {
        let from = path.request.at;
        let to = path.segments.last().map_or(from, |last| last.to);
        if to <= self.window.from || from >= self.window.to {
            return;
        }
        // Requests come in the order of their ends, so the track whose last one ended latest, but before this one began,
        // has a place for it.
        let free = self.lanes.iter().enumerate().filter(|(_, ended)| **ended <= from);
        let lane = free.max_by_key(|(_, ended)| **ended).map(|(lane, _)| lane);
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = self.pid;
        let lane = lane.unwrap_or_else(|| {
            let lane = self.lanes.len();
            self.lanes.push(to);
            stream.event(|out| {
                write!(
                    out,
                    r#"{{"ph":"M","pid":{pid},"tid":{lane},"name":"thread_name","args":{{"name":"requests {lane}"}}}}"#
                )
            });
            lane
        });
        self.lanes[lane] = to;
        let mut slice = |name: &str, from: Nanos, to: Nanos, rest: std::fmt::Arguments<'_>| {
            let (start, length) = (from.0, to.since(from).0);
            stream.event(|out| {
                write!(
                    out,
                    r#"{{"ph":"X","pid":{pid},"tid":{lane},"ts":{}.{:03},"dur":{}.{:03},"name":"{name}"{rest}}}"#,
                    start / 1000,
                    start % 1000,
                    length / 1000,
                    length % 1000
                )
            });
        };
        let name = OPS[path.request.op.class()];
        let (sector, sectors) = (path.request.sector, path.request.sectors);
        slice(name, from, to, format_args!(r#","cat":"request","args":{{"sector":{sector},"sectors":{sectors}}}"#));
        for segment in &path.segments {
            slice(&segment.key(), segment.from, segment.to, format_args!(r#","cat":"wait""#));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdlab_flash::{Cause, DieId, Ppn};

    fn geometry() -> Geometry {
        Geometry {
            channels: 2,
            chips_per_channel: 2,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 8,
            pages_per_block: 4,
            page_bytes: 4096,
            oob_bytes: 64,
        }
    }

    fn span(start: u64, end: u64) -> Span {
        let (kind, cause) = (OpKind::Program, Cause::Gc);
        Span {
            resource: Resource::Die(DieId(3)),
            kind,
            cause,
            ppn: Ppn(77),
            planes: 1,
            start: Nanos(start),
            end: Nanos(end),
        }
    }

    #[test]
    fn a_trace_is_json_with_exact_times_and_only_the_window() {
        let window = TraceWindow { from: Nanos(1_000), to: Nanos(5_000) };
        let mut trace = Trace::begin(Vec::new(), window).expect("a vector takes everything");
        let mut observer = trace.observer("a \"drive\"", &geometry());
        observer.span(span(0, 1_000));
        observer.span(span(900, 1_001));
        observer.span(span(4_999, 6_000));
        observer.span(span(5_000, 6_000));
        drop(observer);
        assert_eq!(trace.slices(), [2]);
        let text = String::from_utf8(trace.finish().expect("written")).expect("text");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let events = json["traceEvents"].as_array().expect("a list");
        let slices: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(slices.len(), 2);
        assert!(text.contains(r#""ts":0.900,"dur":0.101"#));
        assert_eq!(slices[0]["name"], "program gc");
        assert_eq!(slices[0]["args"]["ppn"], 77);
        let tracks = events.iter().filter(|event| event["name"] == "thread_name").count();
        assert_eq!(tracks, 2 + 4);
    }

    #[test]
    fn requests_that_overlap_are_in_tracks_of_their_own_and_their_waits_inside_them() {
        use ssdlab_base::{Op, Request};
        use ssdlab_device::critical_path::{Part, Segment, Stage};
        let window = TraceWindow { from: Nanos(1_000), to: Nanos(50_000) };
        let mut trace = Trace::begin(Vec::new(), window).expect("a vector takes everything");
        let mut requests = trace.requests("drive");
        let mut request = |from: u64, middle: u64, to: u64| {
            let segment = |part, from, to| Segment { stage: Stage::Request, part, from: Nanos(from), to: Nanos(to) };
            let segments = vec![segment(Part::LinkWait, from, middle), segment(Part::Link, middle, to)];
            let request = Request { at: Nanos(from), ..Request::new(Op::Write, 16, 8) };
            requests.request(&Path { request, segments });
        };
        request(0, 500, 1_000);
        request(2_000, 2_500, 4_000);
        request(1_000, 3_000, 6_001);
        request(4_000, 5_000, 7_000);
        request(50_000, 50_500, 51_000);
        drop(requests);
        let text = String::from_utf8(trace.finish().expect("written")).expect("text");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let events = json["traceEvents"].as_array().expect("a list");
        let of = |cat: &str| events.iter().filter(|event| event["cat"] == cat).collect::<Vec<_>>();
        let tracks: Vec<_> = of("request").iter().map(|event| event["tid"].as_u64().expect("a track")).collect();
        assert_eq!(tracks, [0, 1, 0]);
        let waits: Vec<_> = of("wait").iter().map(|event| event["name"].as_str().expect("a name")).collect();
        assert_eq!(waits, ["link_wait", "link", "link_wait", "link", "link_wait", "link"]);
        assert!(text.contains(r#""ts":3.000,"dur":3.001,"name":"link""#));
        assert_eq!(of("request")[0]["args"]["sector"], 16);
    }

    #[test]
    fn a_full_disk_comes_out_at_the_end() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let window = TraceWindow { from: Nanos(0), to: Nanos(5_000) };
        let mut trace = Trace::begin(Full(2_000), window).expect("enough for the start");
        let mut observer = trace.observer("drive", &geometry());
        (0..100).for_each(|_| observer.span(span(0, 1_000)));
        drop(observer);
        assert_eq!(trace.finish().map(|_| ()).expect_err("full").kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn windows_are_refused_with_a_sentence() {
        for bad in ["", "5ms", "1ms..1ms", "3ms..2ms", "1..2", "a..b", "1ms.."] {
            let error = bad.parse::<TraceWindow>().expect_err(bad).to_string();
            assert!(error.contains("FROM..TO"), "{error}");
        }
        assert_eq!("..1us".parse(), Ok(TraceWindow { from: Nanos(0), to: Nanos(1_000) }));
    }
}
