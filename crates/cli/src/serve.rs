//! `ssdlab serve`: a drive as a network block device, until it is told to stop.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use ssdlab_base::Nanos;
use ssdlab_device::{DriveConfig, DriveError};
use ssdlab_host::Host;
use ssdlab_live::control::{Control, serve_metrics};
use ssdlab_live::image::{self, OpenError, OpenedStack};
use ssdlab_live::nbd::{Endpoint, EndpointError, Export, Limits, REQUEST_BYTES_MAX, ServeError, Server};
use ssdlab_live::record::{Recorder, RecordingFile};
use ssdlab_live::{Engine, Figures, Pace, Target};

use crate::background::Background;
use crate::conditions::ConditionReport;
use crate::damage::DamageReport;
use crate::failure::Failure;
use crate::memory::allowed;
use crate::stdout::say;
use crate::{interrupt, outputs, panic, shipped, stderr};

/// How often the main thread looks whether it is time to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes of requests that all clients may have in the server: the longest request always, and no more than this.
const CLIENTS_LEAST: u64 = REQUEST_BYTES_MAX as u64;
const CLIENTS_MOST: u64 = 1 << 30;

/// What lets other machines connect.
const ALLOW_REMOTE: &str = "with --allow-remote other machines may connect";

/// What every command that serves a drive takes.
#[derive(Args, Debug)]
pub(crate) struct Served {
    /// The drive: a description FILE, or the NAME of a shipped one (see `ssdlab devices`)
    ///
    /// A host description that names all its drives and disks needs none.
    #[arg(long, short, value_name = "FILE|NAME")]
    pub(crate) device: Option<String>,

    /// Override a key of the drive's description, e.g. gc.victim=fifo
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Host layers above the drives: a host description (docs/host.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) host: Option<PathBuf>,

    /// The folder that holds the drive's flash; created if it does not exist
    ///
    /// Its files are sparse. It must not be on a file system that this drive serves.
    #[arg(long, value_name = "DIR")]
    pub(crate) image: PathBuf,

    /// When to answer: model, model*K (everything takes K times as long), or none (at once)
    #[arg(long, value_name = "SCALE", default_value = "model")]
    pub(crate) time_scale: Pace,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::args::whole::<u64>(0, u64::MAX))]
    pub(crate) seed: u64,

    /// Memory for the drive, such as 4g; by default three quarters of what is available
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Record the clients' commands to this file, as a trace that `ssdlab run` replays; .zst and .gz are compressed
    ///
    /// If the file holds an earlier recording, this one goes to FILE with a number: trace-2.csv, trace-3.csv.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// Where `ssdlab stat` and `ssdlab record` connect; by default control.sock in the image's folder
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,

    /// Serve metrics to Prometheus at http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) prometheus: Option<SocketAddr>,

    /// Let other machines connect; neither NBD nor the metrics have passwords
    #[arg(long)]
    pub(crate) allow_remote: bool,
}

/// Serve a drive to a real system as a network block device.
///
/// A folder holds the drive's flash. Stopping the server flushes the drive. Killing it is a power cut, and the next start
/// runs the drive's recovery.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab serve -d demo-tlc --image /var/tmp/drive --nbd unix:/tmp/drive.sock
  fio --name=t --ioengine=nbd --uri='nbd+unix:///?socket=/tmp/drive.sock' --rw=randwrite --bs=4k --iodepth=32
  ssdlab stat /var/tmp/drive/control.sock

docs/serving.md has more: guests, file systems, databases, recording.")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) served: Served,

    /// Where to listen: unix:PATH, or tcp:PORT or tcp:ADDRESS:PORT (loopback)
    #[arg(long, value_name = "unix:PATH|tcp:ADDR", required = true)]
    pub(crate) nbd: String,

    /// The export's name; clients may also use the empty name
    #[arg(long, value_name = "NAME", default_value = "ssdlab")]
    pub(crate) export: String,

    #[command(flatten)]
    background: Background,
}

/// A drive that is served, whatever the transport.
pub(crate) struct Live {
    pub(crate) engine: Arc<Engine>,
    control: Option<Control>,
    recorder: Option<(PathBuf, Recorder)>,
    pace: Pace,
    damage: DamageReport,
    conditions: ConditionReport,
    /// Set when the server is to end.
    stop: &'static AtomicBool,
    /// Memory that `--memory` leaves for clients, in bytes.
    left: u64,
}

/// What a transport sends to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// What clients send, who may know the drive's rules.
    Commands,
    /// Block I/O of a file system.
    BlockIo,
}

/// Serves until it is interrupted.
pub(crate) fn serve(args: &Serve) -> Result<ExitCode, Failure> {
    let background = &args.background;
    if let Some(status) = background.start("serve", &args.served, |process| format!("kill {process}"))? {
        return Ok(status);
    }
    let endpoint = Endpoint::parse(&args.nbd, args.served.allow_remote)
        .and_then(|endpoint| endpoint.check().map(|()| endpoint))
        .map_err(|error| unusable("--nbd", &args.nbd, &error))?;
    let mut live = Live::start(&args.served, background, Wants::Commands)?;
    if live.is_to_stop() {
        return live.finish();
    }
    let export = Export { target: Arc::clone(&live.engine) as Arc<dyn Target>, name: args.export.clone() };
    let total_bytes = live.left.clamp(CLIENTS_LEAST, CLIENTS_MOST);
    let server =
        Server::start(&endpoint, export, Limits { total_bytes, ..Limits::default() }).map_err(
            |error| match &error {
                ServeError::Listen { source, .. } => cannot_listen(&error, source),
                _ => Failure::work(&error),
            },
        )?;
    say(&format!("NBD: {}", server.uri()))?;
    if background.ready() {
        live.wait(|| false);
    }
    server.stop();
    live.finish()
}

impl Live {
    /// Opens the image, recovers the drive, and makes it ready for a transport.
    pub(crate) fn start(args: &Served, background: &Background, wants: Wants) -> Result<Live, Failure> {
        panic::end_the_process();
        let (host, named) = match args.host.as_deref() {
            Some(host) => shipped::host_and_drives(host)?,
            None => (Host::bare(), Vec::new()),
        };
        let mut description = match &args.device {
            Some(device) => shipped::open(device)?,
            None if args.host.is_none() => {
                return Err(shipped::no_device("the drive, or a --host that names all its drives and disks"));
            }
            None => shipped::stand_in(&host, &named, &args.set)?.into(),
        };
        for assignment in &args.set {
            description.set(assignment).map_err(Failure::input)?;
        }
        let config = description.resolve().map_err(Failure::input)?;
        let drives: Vec<DriveConfig> = host.drives(&config).into_iter().map(|(_, config)| config).collect();
        // Before an image is made.
        for drive in &drives {
            drive.validate().map_err(|error| {
                if *drive == config { Failure::input(description.place(&error)) } else { Failure::input(&error) }
            })?;
        }
        match args.host {
            Some(_) => drop(host.sectors(&config).map_err(Failure::input)?),
            None if config.zones().is_some() => {
                let design = &config.ftl.design;
                let reason = format!(
                    "\"{design}\": a drive with zones cannot be served: NBD and FUSE have no zone commands; serve it as a block device \
                     through the layer append (--host examples/hosts/append.toml), or use `ssdlab run`"
                );
                let error = DriveError { key: "ftl.design".to_string(), reason };
                return Err(Failure::input(description.place(&error)));
            }
            // Clients of a drive with segments are told its rules.
            None if wants == Wants::BlockIo => config.takes_block_io().map_err(|error| {
                Failure::input(description.place(&error))
                    .hint("or mount with --file without --fs: the drive as a file that accepts appends")
            })?,
            None => {}
        }
        let left = allowed(args.memory.as_deref())?.check_served(&drives, &host)?;
        if let Some(address) = args.prometheus.filter(|address| !address.ip().is_loopback() && !args.allow_remote) {
            let why = format!(
                "--prometheus {address}: it can be reached from other machines, and the metrics have no passwords"
            );
            return Err(Failure::input(why).hint(ALLOW_REMOTE));
        }
        if let Some(record) = &args.record {
            outputs::is_not_in_image("--record ", record, &args.image)?;
        }
        if args.image.exists() && !args.image.is_dir() {
            return Err(Failure::input(format!("--image {}: found a file, expected a folder", args.image.display())));
        }
        // The folder of the default is the image's, which may not be there yet.
        if let Some(path) = args.control.as_ref().filter(|path| path.parent() != Some(&args.image)) {
            let wrong = |error| unusable("--control", &path.display().to_string(), &error);
            Endpoint::Unix(path.clone()).check().map_err(wrong)?;
        }
        let stop = interrupt::listen_saying("stopping: flushing the drive; a second signal cuts its power")?;
        if image::is_there(&args.image, &host, &config) {
            say(&format!("{}: recovering the drive from its image, {}", config.name, args.image.display()))?;
        }
        let OpenedStack { device, recovery, fresh } =
            image::open_stack(&args.image, &host, &config, args.seed).map_err(refused)?;
        background.owns(&args.image)?;
        // A drive that is refused leaves an earlier recording as it is.
        let recording = args.record.as_deref().map(recording_beside).transpose()?;
        let gigabytes = device.sectors() as f64 * 512.0 / 1e9;
        let how = if fresh {
            "a new image".to_string()
        } else {
            format!("recovered from {} pages; a real drive would take {}", recovery.pages_read, recovery.time)
        };
        let name = device.identify().name;
        say(&format!("{name}: {gigabytes:.1} GB, {}: {how}", args.image.display()))?;
        let engine = Engine::new(device, args.time_scale).map_err(Failure::work)?;
        let engine = Arc::new(engine);
        let path = args.control.clone().unwrap_or_else(|| args.image.join("control.sock"));
        let control = Control::listen(&path, &engine)
            .map_err(|error| cannot_listen(format!("--control {}: {error}", path.display()), &error))?;
        say(&format!("control: {}", path.display()))?;
        if let Some(address) = args.prometheus {
            let address = serve_metrics(address, &engine)
                .map_err(|error| Failure::work(format!("--prometheus {address}: {error}")))?;
            say(&format!("metrics: http://{address}/metrics"))?;
        }
        let recorder = match recording {
            Some((path, out)) => {
                let shown = path.display().to_string();
                let broken = move |error: &io::Error| {
                    stderr::say(format_args!(
                        "warning: --record {shown}: {error}; the recording ends here, incomplete, and the drive is served on"
                    ));
                };
                Some((path, Recorder::start(&engine, out, Box::new(broken)).map_err(Failure::work)?))
            }
            None => None,
        };
        Ok(Live {
            engine,
            control: Some(control),
            recorder,
            pace: args.time_scale,
            damage: DamageReport::default(),
            conditions: ConditionReport::default(),
            stop,
            left,
        })
    }

    /// Waits for Ctrl-C, SIGTERM, a `stop` on the control socket, or `over`; meanwhile names damaged pages, and says
    /// what is not as it should be.
    pub(crate) fn wait(&mut self, over: impl Fn() -> bool) {
        loop {
            self.name_damage();
            self.conditions.look(&self.engine);
            if self.is_to_stop() || over() {
                break;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether the server is to end: also while the drive was recovering.
    pub(crate) fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.control.as_ref().is_some_and(Control::stop_asked)
    }

    /// Names damaged pages that were found since the last look.
    pub(crate) fn name_damage(&mut self) {
        self.damage.look(&self.engine, false);
    }

    /// Flushes the drive, ends the recording, and says what was served; fails where the drive did not take all that was written.
    pub(crate) fn finish(mut self) -> Result<ExitCode, Failure> {
        drop(self.control.take());
        let flushed = self.engine.stop();
        self.damage.look(&self.engine, true);
        let figures = self.engine.figures(false);
        if let Some((path, recorder)) = self.recorder.take() {
            let count = recorder
                .finish(&self.engine)
                .map_err(|error| Failure::work(format!("--record {}: {error}", path.display())))?;
            say(&format!("recorded {count} requests: {}", path.display()))?;
        }
        say(&summary(&figures, self.pace))?;
        if let Some(broken) = &figures.broken {
            return Err(Failure::work(format!("the image could not be written: {broken}"))
                .hint("clients were told of every write that failed; the image is what a power cut would have left"));
        }
        flushed.map_err(|why| {
            Failure::work(format!("the drive could not be flushed: {why}"))
                .hint("what no flush covered is lost, as in a power cut")
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// An address that cannot be listened on: another server there is not the input's fault.
fn unusable(option: &str, text: &str, error: &EndpointError) -> Failure {
    let sentence = format!("{option} {text}: {error}");
    match error {
        EndpointError::InUse => Failure::work(sentence),
        EndpointError::Remote(_) => Failure::input(sentence).hint(ALLOW_REMOTE),
        _ => Failure::input(sentence),
    }
}

/// A socket that cannot be had: the input is wrong where that is for the path's sake.
fn cannot_listen(sentence: impl std::fmt::Display, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::NotADirectory
        | ErrorKind::AlreadyExists
        | ErrorKind::PermissionDenied
        | ErrorKind::InvalidInput => Failure::input(sentence),
        _ => Failure::work(sentence),
    }
}

/// Where a recording is written, compressed if its name says so.
fn packed(path: &Path, file: RecordingFile) -> io::Result<Box<dyn io::Write + Send>> {
    Ok(match path.extension().and_then(|extension| extension.to_str()) {
        Some("zst") => Box::new(zstd::Encoder::new(file.into_inner(), 3)?.auto_finish()),
        Some("gz") => Box::new(flate2::write::GzEncoder::new(file.into_inner(), flate2::Compression::default())),
        _ => Box::new(file),
    })
}

/// The file of `--record`; what an earlier server recorded stays, and this one writes beside it.
fn recording_beside(path: &Path) -> Result<(PathBuf, Box<dyn io::Write + Send>), Failure> {
    let wrong = |error| Failure::input(format!("--record {}: {error}", path.display()));
    let (found, file) = RecordingFile::create_beside(path).map_err(wrong)?;
    if found != path {
        stderr::note(format_args!("{} holds an earlier recording; this one is {}", path.display(), found.display()));
    }
    let out = packed(&found, file).map_err(wrong)?;
    Ok((found, out))
}

/// The file of `ssdlab record --out`, which must be a new one.
pub(crate) fn new_recording(path: &Path) -> Result<Box<dyn io::Write + Send>, Failure> {
    let file = RecordingFile::create(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::input(format!("--out {}: this file is there already", path.display()))
            .hint("name another file, or remove it: a recording is never written over"),
        _ => Failure::input(format!("--out {}: {error}", path.display())),
    })?;
    packed(path, file).map_err(|error| Failure::input(format!("--out {}: {error}", path.display())))
}

fn refused(error: OpenError) -> Failure {
    match &error {
        OpenError::Description { .. } => Failure::input(&error).hint(
            "serve it with the description it was made from (description.toml in the image), or make a new image",
        ),
        OpenError::Layers { found, .. } if found.is_empty() => Failure::input(&error)
            .hint("layers would write over what is there: copy the data to a new image, or serve it without --host"),
        OpenError::Layers { .. } => Failure::input(&error).hint("serve it with the host description it was made with"),
        _ => Failure::input(&error),
    }
}

fn summary(figures: &Figures, pace: Pace) -> String {
    let [read, write, trim, flush] = figures.counters.commands;
    let of = |number: u64, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    let mut text = format!(
        "served {}, {}, {}, {} in {:.1} s; virtual time {}",
        of(read, "read", "reads"),
        of(write, "write", "writes"),
        of(trim, "trim", "trims"),
        of(flush, "flush", "flushes"),
        figures.seconds,
        figures.virtual_time
    );
    if let Some(amplification) = figures.write_amplification() {
        text += &format!("; write amplification {amplification:.3}");
    }
    if pace != Pace::None && figures.lateness_in_all.count > 0 {
        let late = &figures.lateness_in_all;
        text += &format!(
            "\nanswers left {} later than the model says on average ({} for 99 %, {} at most)",
            Nanos(late.mean as u64),
            Nanos(late.p99),
            Nanos(late.max)
        );
    }
    text
}
