//! Looking at a served drive from outside: a control socket, and figures for Prometheus.
//!
//! The control socket speaks lines. `metrics` is answered with one line of JSON, `smart` with the
//! drive's log as `nvme smart-log` would print it, also in one line, `segments` with the segments of the
//! drives that have them, in another; `record` with the requests from then
//! on as ssdlab's own CSV, until the asker hangs up; `stop` ends the server as SIGTERM would.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

use crate::engine::Engine;
use crate::record::Recorder;
use crate::report::{figures_json, prometheus};
use crate::segments::reports_json;

/// Longest line or request that is read.
const LINE_MAX: u64 = 8 << 10;

/// How long a silent asker is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Scrapes in progress at a time. Beyond that the oldest is hung up on, so that idle connections keep no client out.
const SCRAPES_MAX: usize = 16;

/// A listening control socket; its file goes with it.
pub struct Control {
    path: PathBuf,
    /// What a `stop` sets.
    stop: Arc<AtomicBool>,
}

impl Control {
    /// Listens on `path`, readable and writable for its owner only. A socket that no process listens on any more is
    /// replaced.
    ///
    /// # Errors
    /// A server listens there, or the path cannot be had.
    pub fn listen(path: &Path, engine: &Arc<Engine>) -> io::Result<Control> {
        if let Ok(found) = std::fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "found a file that is not a socket"));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "a server listens there"));
            }
            std::fs::remove_file(path)?;
        }
        let listener = listen_alone(path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (engine, asked) = (Arc::downgrade(engine), Arc::clone(&stop));
        std::thread::Builder::new().name("control".to_string()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let (engine, asked) = (engine.clone(), Arc::clone(&asked));
                // Without a thread for it the asker is hung up on.
                let _ = std::thread::Builder::new().spawn(move || answer(stream, &engine, &asked));
            }
        })?;
        Ok(Control { path: path.to_path_buf(), stop })
    }

    /// Whether a client of the socket asked the server to stop.
    pub fn stop_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// Listens on a socket whose file has mode 0600 from its first moment: Linux makes it with the mode of the unbound socket.
fn listen_alone(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

impl Drop for Control {
    fn drop(&mut self) {
        // The thread that listens ends with the process.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn answer(stream: UnixStream, engine: &Weak<Engine>, stop: &AtomicBool) -> io::Result<()> {
    let mut to = stream.try_clone()?;
    let mut from = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if from.by_ref().take(LINE_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let Some(engine) = engine.upgrade() else { return Ok(()) };
        match line.trim() {
            // `figures` is its name in earlier versions.
            "metrics" | "figures" => writeln!(to, "{}", figures_json(&engine.figures(true)))?,
            "smart" => writeln!(to, "{}", engine.smart())?,
            "segments" => writeln!(to, "{}", reports_json(&engine.segment_reports()))?,
            "record" => {
                // An asker who has hung up needs to be told nothing.
                let recorder = Recorder::start(&engine, Box::new(to.try_clone()?), Box::new(|_| ()))?;
                // Until the asker hangs up, or at least stops reading.
                let _ = from.read_line(&mut line);
                let _ = recorder.finish(&engine);
                return Ok(());
            }
            "stop" => {
                stop.store(true, Ordering::Relaxed);
                writeln!(to, "{{\"stopping\":true}}")?;
            }
            other => writeln!(
                to,
                "{}",
                serde_json::json!({ "error": format!("found `{other}`, expected metrics, smart, segments, record or stop") })
            )?,
        }
    }
}

/// Serves the figures to Prometheus at `http://ADDRESS/metrics`, as long as the process lives; returns the address.
///
/// # Errors
/// The address cannot be had.
pub fn serve_metrics(address: SocketAddr, engine: &Arc<Engine>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let local = listener.local_addr()?;
    let engine = Arc::downgrade(engine);
    std::thread::Builder::new().name("metrics".to_string()).spawn(move || {
        let scrapes = Arc::new(Scrapes::default());
        for (number, stream) in (0..).zip(listener.incoming().flatten()) {
            if engine.strong_count() == 0 {
                return;
            }
            if !scrapes.begin(number, &stream) {
                continue;
            }
            let (engine, ended) = (engine.clone(), Arc::clone(&scrapes));
            let scrape = move || {
                let _ = metrics(stream, &engine);
                ended.end(number);
            };
            if std::thread::Builder::new().name("scrape".to_string()).spawn(scrape).is_err() {
                scrapes.end(number);
            }
        }
    })?;
    Ok(local)
}

/// Scrapes in progress, the oldest first.
#[derive(Default)]
struct Scrapes(Mutex<VecDeque<(u64, TcpStream)>>);

impl Scrapes {
    fn open(&self) -> MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more. False if the system has no descriptor left for it.
    fn begin(&self, number: u64, stream: &TcpStream) -> bool {
        let Ok(stream) = stream.try_clone() else { return false };
        let mut open = self.open();
        if open.len() == SCRAPES_MAX
            && let Some((_, oldest)) = open.pop_front()
        {
            // Its thread reads the end of the connection.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        open.push_back((number, stream));
        true
    }

    fn end(&self, number: u64) {
        self.open().retain(|(open, _)| *open != number);
    }
}

fn metrics(stream: TcpStream, engine: &Weak<Engine>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut to = stream.try_clone()?;
    let mut from = BufReader::new(stream.take(LINE_MAX));
    let mut request = String::new();
    from.read_line(&mut request)?;
    let mut header = String::new();
    while from.read_line(&mut header)? > 2 {
        header.clear();
    }
    let Some(engine) = engine.upgrade() else { return Ok(()) };
    let mut words = request.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", prometheus(&engine.figures(false))),
        (Some("GET"), Some(_)) => ("404 Not Found", "the figures are at /metrics\n".to_string()),
        _ => ("405 Method Not Allowed", "only GET\n".to_string()),
    };
    write!(
        to,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
