//! Served drives whose process ends at a chosen moment, inside this process: what was answered until then, and what the
//! image holds after it.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng};
use ssdlab_device::DriveConfig;
use ssdlab_flash::Lifeline;
use ssdlab_host::Host;
use ssdlab_live::engine::{Kind, PROMISES};
use ssdlab_live::{Answer, Command, Engine, Failure, Pace, Promise, Sink, Target, image};
use ssdlab_torture::stacks::StackScope;
use ssdlab_torture::{configs, draw};

const SECTOR: usize = 512;

/// A version of a sector: its number, and whether it is zeroes.
type Version = (u64, bool);

/// What every sector of a drive may hold.
pub(crate) struct Oracle {
    /// The durable version first, then all later ones that were sent.
    may: Vec<Vec<Version>>,
    /// Answered, and promised by no answer yet: first sector, count, version.
    answered: Vec<(u64, u64, u64)>,
    versions: u64,
}

impl Oracle {
    fn new(sectors: u64) -> Oracle {
        Oracle { may: vec![vec![(0, true)]; sectors as usize], answered: Vec::new(), versions: 0 }
    }

    fn sent(&mut self, request: &Request) -> u64 {
        self.versions += 1;
        let version = (self.versions, request.op != Op::Write);
        self.may[request.sector as usize..request.end() as usize].iter_mut().for_each(|may| may.push(version));
        self.versions
    }

    fn settle(&mut self, (first, count, version): (u64, u64, u64)) {
        for may in &mut self.may[first as usize..(first + count) as usize] {
            // A later one may be durable already.
            if let Some(at) = may.iter().position(|(known, _)| *known == version) {
                may.drain(..at);
            }
        }
    }

    /// Whether a sector may hold these bytes; with the power on only its last version is good.
    fn look(&mut self, sector: usize, found: &[u8], power: bool) -> Result<(), String> {
        let may = &mut self.may[sector];
        let from = if power { may.len() - 1 } else { 0 };
        match may[from..].iter().rposition(|version| contents(sector as u64, *version) == found) {
            Some(at) if !power => *may = vec![may[at]],
            Some(_) => {}
            None => {
                let held = u64::from_le_bytes(found[8..16].try_into().expect("eight bytes"));
                return Err(format!("sector {sector} holds version {held}; it may hold {:?}", &may[from..]));
            }
        }
        Ok(())
    }
}

fn contents(sector: u64, (version, zeroes): Version) -> Vec<u8> {
    if zeroes { vec![0; SECTOR] } else { [sector.to_le_bytes(), version.to_le_bytes()].concat().repeat(SECTOR / 16) }
}

/// Takes answers until the process ends, which it may do itself, on an answer.
pub(crate) struct Inbox {
    pub(crate) lifeline: Lifeline,
    state: Mutex<(Vec<Answer>, Option<u64>)>,
    came: Condvar,
}

impl Inbox {
    pub(crate) fn new(lifeline: Lifeline) -> Arc<Inbox> {
        Arc::new(Inbox { lifeline, state: Mutex::default(), came: Condvar::new() })
    }

    /// Hands commands to the engine; the cookie of each is its place.
    pub(crate) fn submit(self: &Arc<Inbox>, engine: &Engine, batch: Vec<(Request, Vec<u8>)>) {
        let sink = |request, data, cookie| {
            let sink = Arc::clone(self) as Arc<dyn Sink>;
            Command { request, data, cookie, sink }
        };
        let commands = batch.into_iter().zip(0..);
        engine.submit(&mut commands.map(|((request, data), cookie)| sink(request, data, cookie)).collect());
    }

    /// Waits for so many answers, or the end of the process.
    pub(crate) fn wait(&self, count: usize) -> Vec<Answer> {
        let state = self.state.lock().expect("the test holds");
        let waits = |state: &mut (Vec<Answer>, _)| state.0.len() < count && self.lifeline.is_alive();
        let (mut state, late) =
            self.came.wait_timeout_while(state, Duration::from_secs(60), waits).expect("the test holds");
        assert!(!late.timed_out(), "{} of {count} answers came", state.0.len());
        std::mem::take(&mut state.0)
    }
}

impl Sink for Inbox {
    fn answers(&self, answers: &mut Vec<Answer>) {
        let mut state = self.state.lock().expect("the test holds");
        for answer in answers.drain(..).filter(|_| self.lifeline.is_alive()) {
            if state.1 == Some(answer.cookie) {
                self.lifeline.end();
            }
            state.0.push(answer);
        }
        self.came.notify_all();
    }
}

/// A command that was sent.
struct Sent {
    request: Request,
    /// Of what changes data.
    version: u64,
    /// Of a flush: what was answered before it was sent.
    covers: Vec<(u64, u64, u64)>,
}

/// A drive or a stack, the folder of its images, and what it may hold; its process ends again and again.
pub(crate) struct Subject {
    directory: tempfile::TempDir,
    host: Host,
    config: DriveConfig,
    oracle: Oracle,
}

/// A process that serves the drive.
struct Process<'a> {
    engine: Engine,
    inbox: Arc<Inbox>,
    oracle: &'a mut Oracle,
    buffered: bool,
}

impl Subject {
    /// A small drive of any design, with or without a write buffer.
    pub(crate) fn draw(rng: &mut Rng, buffered: bool) -> Subject {
        let config = loop {
            let mut config = configs::random(rng);
            config.timed |= rng.random_bool(0.5);
            let small = config.user_bytes <= 128 << 10 && config.flash.geometry.pages() <= 700;
            if small && (config.buffer.policy != "none") == buffered {
                break config;
            }
        };
        Subject::of(Host::bare(), config)
    }

    /// Layers above small drives, with images of their own: `drivers` are those that need a command set of their drive's.
    pub(crate) fn draw_stack(rng: &mut Rng, drivers: bool) -> Subject {
        loop {
            let scope = StackScope { host: None, drive: None, commands: 0, drivers, faults: false };
            let Ok(case) = draw(rng.random(), &scope) else { continue };
            let (host, drive) = (case.subject.host, case.drive);
            // With fewer blocks in reserve a drive may end read-only after a few cuts.
            if drive.gc.free_blocks >= 3 {
                return Subject::of(host, DriveConfig { timed: rng.random_bool(0.5), ..drive });
            }
        }
    }

    fn of(host: Host, config: DriveConfig) -> Subject {
        let directory = tempfile::tempdir().expect("a directory");
        let oracle = Oracle::new(host.sectors(&config).expect("the layers take the drive"));
        Subject { directory, host, config, oracle }
    }

    /// Starts a process, which looks at every sector first.
    fn start(&mut self, rng: &mut Rng) -> Result<Process<'_>, String> {
        let opened = image::open_stack(self.directory.path(), &self.host, &self.config, 5);
        let mut device = opened.map_err(|error| format!("the image is refused: {error}"))?.device;
        // One process: it ends in a write to any of the images.
        let lifeline = Lifeline::default();
        device.drives_mut().into_iter().for_each(|part| part.device.end_with(&lifeline));
        device.disks_mut().into_iter().for_each(|part| part.device.end_with(&lifeline));
        let identity = device.identify();
        let buffered = identity.has_write_cache || identity.has_host_cache;
        let pace = if rng.random_bool(0.2) { Pace::Model { slower: 1e-3 } } else { Pace::None };
        let engine = Engine::new(device, pace).expect("an engine");
        let inbox = Inbox::new(lifeline);
        let process = Process { engine, inbox, oracle: &mut self.oracle, buffered };
        let sectors = process.oracle.may.len() as u64;
        let data = process.read(Request::new(Op::Read, 0, sectors))?;
        for (sector, found) in data.chunks_exact(SECTOR).enumerate() {
            process.oracle.look(sector, found, false)?;
        }
        process.oracle.answered.clear();
        Ok(process)
    }

    /// Some commands, then one of a kind; its answer ends the process.
    pub(crate) fn cut_when_answered(&mut self, kind: &Kind, rng: &mut Rng) -> Result<(), String> {
        let mut process = self.start(rng)?;
        for _ in 0..rng.random_range(0..4) {
            let other = PROMISES[rng.random_range(0..PROMISES.len())];
            process.run(vec![process.draw(&other, rng)], None)?;
        }
        if kind.op == Op::Flush {
            let change = PROMISES.iter().find(|kind| kind.op == Op::Write && !kind.fua).expect("a plain write");
            process.run(vec![process.draw(change, rng)], None)?;
        }
        let request = process.draw(kind, rng);
        if matches!(kind.op, Op::Trim | Op::WriteZeroes) {
            // Something is there that could come back.
            process.run(vec![Request { op: Op::Write, fua: true, ..request }], None)?;
        }
        process.run(vec![request], Some(0))?;
        process.end();
        Ok(())
    }

    /// Commands, several at a time, until the process ends in any of the writes to the image's files.
    pub(crate) fn cut_in_any_write(&mut self, rng: &mut Rng) -> Result<(), String> {
        let writes = 1 << rng.random_range(0..6);
        let writes = rng.random_range(0..writes);
        let mut process = self.start(rng)?;
        process.inbox.lifeline.end_after(writes);
        for _ in 0..10 {
            if !process.inbox.lifeline.is_alive() {
                break;
            }
            let mut batch: Vec<Request> = Vec::new();
            for _ in 0..rng.random_range(1..6) {
                let request = process.draw(&PROMISES[rng.random_range(0..PROMISES.len())], rng);
                if batch.iter().all(|other| request.end() <= other.sector || other.end() <= request.sector) {
                    batch.push(request);
                }
            }
            process.run(batch, None)?;
        }
        process.end();
        Ok(())
    }

    /// Looks once more at what the last process left.
    pub(crate) fn look(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.start(rng).map(Process::end)
    }
}

pub(crate) fn open(directory: &Path, config: &DriveConfig) -> Result<image::Opened, String> {
    image::open(directory, config, 5).map_err(|error| format!("the image is refused: {error}"))
}

impl Process<'_> {
    fn draw(&self, kind: &Kind, rng: &mut Rng) -> Request {
        if kind.op == Op::Flush {
            return Request { fua: kind.fua, ..Request::new(Op::Flush, 0, 0) };
        }
        let sectors = self.oracle.may.len() as u64;
        let first = rng.random_range(0..sectors);
        let count = rng.random_range(1..=(sectors - first).min(24));
        // Above a disk a write takes the place of a trim.
        let op = match kind.op {
            Op::Trim | Op::WriteZeroes if !self.engine.trims() => Op::Write,
            op => op,
        };
        Request { fua: kind.fua, ..Request::new(op, first, count) }
    }

    fn read(&self, request: Request) -> Result<Vec<u8>, String> {
        self.inbox.submit(&self.engine, vec![(request, Vec::new())]);
        let answer = self.inbox.wait(1).pop().ok_or("no answer")?;
        answer.result.map_err(|failure| format!("a read of {} sectors: {failure}", request.sectors))
    }

    /// Sends commands that touch no sector twice, and takes their answers; the one of number `last` ends the process.
    fn run(&mut self, batch: Vec<Request>, last: Option<u64>) -> Result<(), String> {
        self.inbox.state.lock().expect("the test holds").1 = last;
        let (mut sent, mut commands) = (Vec::new(), Vec::new());
        for request in batch {
            let (mut version, mut covers, mut data) = (0, Vec::new(), Vec::new());
            match request.op {
                Op::Read => {}
                Op::Flush => covers = self.oracle.answered.clone(),
                Op::Write | Op::Trim | Op::WriteZeroes => version = self.oracle.sent(&request),
            }
            if request.op == Op::Write {
                data = (request.sector..request.end()).flat_map(|at| contents(at, (version, false))).collect();
            }
            sent.push(Sent { request, version, covers });
            commands.push((request, data));
        }
        self.inbox.submit(&self.engine, commands);
        for Answer { cookie, result } in self.inbox.wait(sent.len()) {
            let Sent { request, version, covers } = &sent[cookie as usize];
            let data = match result {
                Ok(data) => data,
                Err(failure) => return Err(self.refused(request, failure)),
            };
            let itself = (request.sector, request.sectors, *version);
            match Promise::of(request.op, request.fua, self.buffered) {
                Promise::Itself => self.oracle.settle(itself),
                Promise::AllAnswered => covers.iter().for_each(|covered| self.oracle.settle(*covered)),
                Promise::Nothing if request.op == Op::Read => {
                    for (sector, found) in (request.sector as usize..).zip(data.chunks_exact(SECTOR)) {
                        self.oracle.look(sector, found, true)?;
                    }
                }
                Promise::Nothing => self.oracle.answered.push(itself),
            }
        }
        Ok(())
    }

    fn refused(&self, request: &Request, failure: Failure) -> String {
        format!("{:?} of {} sectors is refused: {failure}", request.op, request.sectors)
    }

    /// The process ends, if it has not already.
    fn end(self) {
        self.engine.cut();
    }
}
