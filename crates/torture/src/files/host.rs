//! A host with a file system, the model and the oracle beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Instant;

use ssdlab_base::Nanos;
use ssdlab_device::{Drive, Status};
use ssdlab_flash::FaultKind;
use ssdlab_fs::call::{Sync, WriteMode};
use ssdlab_fs::check::check;
use ssdlab_fs::{Answer, Call, Content, Errno, FileId, FileSystem, Job, MountError, ROOT, Reply};
use ssdlab_host::Device;

use super::below::Below;
use super::call::{FileCall, Kind, Path, Simple, pattern};
use super::model::{Model, describe};
use super::oracle::Oracle;
use super::{Files, tree};
use crate::case::{Case, Refused, System};
use crate::cut::{Cut, Moment, Whose};
use crate::step::{Place, Step};
use crate::totals::Totals;

/// Attempts to mount where reads may fail.
const MOUNTS: u32 = 5;

/// A cut that waits for its moment.
struct Trap {
    cut: Cut,
    /// fsyncs that had been answered when it was set.
    durable: u64,
    /// Events since, of those that its moment counts.
    events: u32,
}

/// A call in flight, and the path by which it was asked.
struct Asked {
    call: Call,
    path: Option<Path>,
}

/// A file system, and what it must be.
pub struct FileHost {
    subject: Files,
    /// Always there, but for the instant of a cut.
    fs: Option<FileSystem>,
    below: Below,
    model: Model,
    /// Where the host crashes or the power goes.
    oracle: Option<Oracle>,
    is_cut: bool,
    in_flight: BTreeMap<u32, Asked>,
    /// Calls that took effect behind one that is not answered: by number of their apply.
    ended: BTreeMap<u64, (Asked, Answer, bool)>,
    next_order: u64,
    tag: u32,
    /// What paths led to last.
    known: BTreeMap<Path, FileId>,
    /// Where listings continue.
    positions: BTreeMap<FileId, u64>,
    trap: Option<Trap>,
    /// fsyncs, syncs and durable writes that have been answered.
    durable: u64,
    /// The drive lost its power under this mount.
    drive_was_cut: bool,
    /// Nothing was compared since the last cut.
    is_due: bool,
    /// Media lost what is needed to go on.
    is_lost: bool,
    /// Reads that failed since media may.
    unreadable: u64,
    refused: u64,
}

impl FileHost {
    /// A new file system on a new drive.
    ///
    /// # Errors
    /// The drive is refused, or is none for the file system.
    pub(super) fn new(case: &Case<Files>) -> Result<FileHost, Refused> {
        let (below, device) = Below::new(case)?;
        let subject = case.subject.clone();
        let fs = FileSystem::make(device, &subject.make, &subject.options)?;
        let is_cut = case.steps.iter().any(|step| matches!(step, Step::Cut(_)));
        let model = Model::new();
        Ok(FileHost {
            subject,
            fs: Some(fs),
            below,
            oracle: is_cut.then(|| case.subject.oracle(&model)),
            is_cut,
            model,
            in_flight: BTreeMap::new(),
            ended: BTreeMap::new(),
            next_order: 0,
            tag: 0,
            known: BTreeMap::new(),
            positions: BTreeMap::new(),
            trap: None,
            durable: 0,
            drive_was_cut: false,
            is_due: false,
            is_lost: false,
            unreadable: 0,
            refused: 0,
        })
    }

    /// The file system.
    ///
    /// # Panics
    /// It is the instant of a cut.
    pub fn fs(&mut self) -> &mut FileSystem {
        self.fs.as_mut().expect("it is mounted")
    }

    /// Whether the file system may have become read-only.
    const fn may_be_read_only(&self) -> bool {
        self.drive_was_cut || self.below.allowed.failed_reads || self.below.allowed.read_only
    }

    /// What a path leads to, or led to last.
    fn resolve(&self, path: &Path) -> Option<FileId> {
        if path.0.is_empty() {
            return Some(ROOT);
        }
        self.model.walk(path.0.iter().map(Vec::as_slice)).or_else(|| self.known.get(path).copied())
    }

    /// The directory that a path's last name is in, and that name.
    fn place(&self, path: &Path) -> Option<(FileId, Vec<u8>)> {
        let (above, name) = path.split()?;
        Some((self.resolve(&above)?, name.to_vec()))
    }

    /// A call as the file system takes it; `None` where its path has never led anywhere.
    fn call_of(&mut self, kind: &Kind) -> Option<(Call, Option<Path>)> {
        let call = match kind {
            Kind::Simple(simple, path) => {
                let named = |host: &FileHost| host.place(path);
                let file = |host: &FileHost| host.resolve(path);
                let call = match simple {
                    Simple::Create => named(self).map(|(directory, name)| Call::Create { directory, name }),
                    Simple::Mkdir => named(self).map(|(directory, name)| Call::Mkdir { directory, name }),
                    Simple::Unlink => named(self).map(|(directory, name)| Call::Unlink { directory, name }),
                    Simple::Rmdir => named(self).map(|(directory, name)| Call::Rmdir { directory, name }),
                    Simple::Lookup => named(self).map(|(directory, name)| Call::Lookup { directory, name }),
                    Simple::Open => file(self).map(|file| Call::Open { file }),
                    Simple::Close => file(self).map(|file| Call::Close { file }),
                    Simple::Stat => file(self).map(|file| Call::Stat { file }),
                    Simple::Fsync => file(self).map(|file| Call::Fsync { file }),
                    Simple::Fdatasync => file(self).map(|file| Call::Fdatasync { file }),
                };
                return Some((call?, Some(path.clone())));
            }
            Kind::Rename { from, to, no_replace } => {
                let ((from_directory, from), (to_directory, name)) = (self.place(from)?, self.place(to)?);
                let call = Call::Rename { from_directory, from, to_directory, to: name, no_replace: *no_replace };
                return Some((call, Some(to.clone())));
            }
            Kind::List { directory, most, goes_on } => {
                let directory = self.resolve(directory)?;
                let position = if *goes_on { self.positions.get(&directory).copied().unwrap_or(0) } else { 0 };
                Call::List { directory, position, most: *most }
            }
            Kind::Read { file, offset, length, is_direct } => {
                Call::Read { file: self.resolve(file)?, offset: *offset, length: *length, is_direct: *is_direct }
            }
            Kind::Write { file, offset, length, is_direct, sync } => {
                let (file, length) = (self.resolve(file)?, *length);
                let content = Content::Bytes(pattern(self.tag, length));
                let mode = WriteMode { is_direct: *is_direct, sync: *sync };
                match offset {
                    Some(offset) => Call::Write { file, offset: *offset, length, content, mode },
                    None => Call::Append { file, length, content, mode },
                }
            }
            Kind::Truncate { file, size } => Call::Truncate { file: self.resolve(file)?, size: *size },
            Kind::Sync => Call::Sync,
            Kind::StatFs => Call::StatFs,
            Kind::DropCaches | Kind::Remount => unreachable!("{kind:?} is no call"),
        };
        Some((call, None))
    }

    /// Takes what was answered, and compares.
    fn collect(&mut self) {
        if !self.fs().answers().is_empty() {
            for answer in std::mem::take(self.fs().answers()) {
                let asked = self.in_flight.remove(&answer.tag).expect("a call is answered once");
                let before = self.ended.insert(answer.order, (asked, answer, true));
                assert!(before.is_none(), "each apply has a number of its own");
            }
            self.repeat();
        }
        let without_room = self.fs().without_room();
        assert!(without_room == 0, "{without_room} calls or jobs failed since cleaning won no room");
        if let Some(reason) = self.fs().read_only_reason() {
            let reason = reason.to_string();
            assert!(self.may_be_read_only(), "the file system became read-only: {reason}");
        }
    }

    /// Repeats in the model what took effect, in that order.
    fn repeat(&mut self) {
        while let Some((asked, answer, is_answered)) = self.ended.remove(&self.next_order) {
            self.next_order += 1;
            self.repeat_one(asked, &answer, is_answered);
        }
    }

    fn repeat_one(&mut self, asked: Asked, answer: &Answer, is_answered: bool) {
        let Asked { call, path } = asked;
        match answer.result {
            Err(Errno::Io) => {
                // What a check-point sent and the drive did not take is nowhere when it has left the cache.
                let reason = self.fs.as_ref().and_then(|fs| fs.read_only_reason());
                let is_allowed = self.below.allowed.failed_reads || self.may_be_read_only() && reason.is_some();
                assert!(is_allowed, "{} fails where no read does ({reason:?})", describe(&call));
                self.unreadable += 1;
            }
            Err(Errno::ReadOnly) => {
                let is_told = self.fs.as_ref().is_none_or(|fs| fs.read_only_reason().is_some());
                assert!(self.may_be_read_only() && is_told, "{} ends as read-only", describe(&call));
                self.refused += 1;
            }
            _ => {}
        }
        let changed = self.model.repeat(&call, answer);
        if let Some(oracle) = &mut self.oracle {
            oracle.note(&call, answer, changed, &self.model, is_answered);
        }
        let is_durable = match &call {
            Call::Fsync { .. } | Call::Fdatasync { .. } | Call::Sync => true,
            Call::Write { mode, .. } | Call::Append { mode, .. } => mode.sync != Sync::No,
            _ => false,
        };
        self.durable += u64::from(is_durable && answer.result.is_ok());
        match (&call, &answer.result) {
            (Call::List { directory, position, .. }, Ok(Reply::Listed { entries, is_end })) => {
                let next = entries.last().map_or(*position, |entry| entry.next);
                self.positions.insert(*directory, if *is_end { 0 } else { next });
            }
            (Call::Rename { to_directory, to, .. }, Ok(_)) => {
                let moved = self.model.names(*to_directory).ok().and_then(|names| names.get(to).copied());
                self.known.extend(path.zip(moved));
            }
            (_, Ok(Reply::Found(found))) => self.known.extend(path.map(|path| (path, found.file))),
            _ => {}
        }
    }

    /// Runs the next event; false if there is none.
    fn step(&mut self) -> bool {
        let Some(at) = self.fs().next_event() else { return false };
        self.fs().run_until(at);
        if let Some(Trap { cut, .. }) = &self.trap {
            let counts = match cut.at {
                Moment::Job(job, _) => self.fs().jobs().contains(&job),
                _ => true,
            };
            let trap = self.trap.as_mut().expect("it is there");
            trap.events += u32::from(counts);
        }
        self.collect();
        true
    }

    /// Whether the moment has come that a cut waits for.
    fn is_cut_due(&mut self) -> bool {
        let Some(Trap { cut, durable, events }) = &self.trap else { return false };
        let (at, durable, events) = (cut.at, *durable, *events);
        let now = self.durable;
        let work = |host: &mut FileHost| {
            let device = host.fs().device();
            let parts = device.drives();
            parts.first().map(|part| part.device.array_work(part.device.now() + Nanos(1))).unwrap_or_default()
        };
        match at {
            Moment::Now => true,
            Moment::Program => work(self).programs > 0,
            Moment::Erase => work(self).erases > 0,
            Moment::Durable => now > durable,
            Moment::After(most) => events >= most,
            Moment::Job(job, most) => events >= most && self.fs().jobs().contains(&job),
        }
    }

    /// Runs until fewer calls are in flight, over cuts whose moment comes.
    fn wait_for_fewer_than(&mut self, count: usize, totals: &mut Totals) -> ControlFlow<()> {
        let until = Nanos(self.fs().now().0.saturating_add(self.below.hangs_after.0));
        let (mut events, before) = (0, self.next_order);
        while self.in_flight.len() >= count.max(1) {
            if self.is_cut_due() {
                self.take_cut(totals)?;
                continue;
            }
            let goes_on = if self.trap.is_some() { self.step() } else { self.fs().run_to_completion(until) };
            self.collect();
            events = if self.next_order == before { events + 1 } else { 0 };
            let is_late = self.fs().now() > until || events > self.below.most_events;
            assert!(goes_on && !is_late, "calls never end: {}", self.first_in_flight());
        }
        ControlFlow::Continue(())
    }

    fn first_in_flight(&mut self) -> String {
        let call = self.in_flight.values().next().map(|asked| describe(&asked.call));
        let (jobs, metrics) = (self.fs().jobs(), self.fs().metrics());
        let reason = self.fs().read_only_reason();
        format!("{call:?}, jobs {jobs:?}, read-only {reason:?}, {metrics:?}")
    }

    fn submit(&mut self, call: Call, path: Option<Path>) {
        assert!(self.tag < u32::MAX - 1, "tags are used up");
        self.tag += 1;
        let tag = self.tag;
        self.in_flight.insert(tag, Asked { call: call.clone(), path });
        self.fs().submit(call, tag);
        self.collect();
    }

    fn command(&mut self, command: &FileCall, totals: &mut Totals) -> ControlFlow<()> {
        self.compare_if_due(totals)?;
        match &command.kind {
            Kind::DropCaches => self.fs().drop_caches(),
            Kind::Remount => return self.remount(totals),
            kind => {
                self.wait_for_fewer_than(command.depth as usize, totals)?;
                self.compare_if_due(totals)?;
                // A path that is being made leads somewhere when that is answered.
                if self.call_of(kind).is_none() {
                    self.wait_for_fewer_than(1, totals)?;
                    self.compare_if_due(totals)?;
                }
                if let Some((call, path)) = self.call_of(kind) {
                    totals.commands += 1;
                    self.submit(call, path);
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Runs events until a time, or so many, over cuts whose moment comes.
    fn run(&mut self, until: Nanos, events: u32, totals: &mut Totals) -> ControlFlow<()> {
        for _ in 0..events {
            if self.is_cut_due() {
                return self.take_cut(totals);
            }
            if self.fs().next_event().is_none_or(|at| at > until) || !self.step() {
                break;
            }
        }
        if self.is_cut_due() {
            return self.take_cut(totals);
        }
        ControlFlow::Continue(())
    }

    /// Lets the part of the time to the next event pass that a cut wants.
    fn pass_part(&mut self, cut: &Cut) {
        let in_the_middle = matches!(cut.at, Moment::Program | Moment::Erase);
        let now = self.fs().now().0;
        if (cut.percent > 0 || in_the_middle)
            && let Some(next) = self.fs().next_event()
        {
            let left = next.0.saturating_sub(now);
            let part = (left * u64::from(cut.percent) / 100).max(u64::from(in_the_middle)).min(left.saturating_sub(1));
            self.fs().run_until(Nanos(now + part));
            self.collect();
        }
    }

    /// The cut that waits comes now.
    fn take_cut(&mut self, totals: &mut Totals) -> ControlFlow<()> {
        let Some(Trap { cut, .. }) = self.trap.take() else { return ControlFlow::Continue(()) };
        self.pass_part(&cut);
        self.cut(&cut, totals)?;
        if cut.unread { ControlFlow::Continue(()) } else { self.compare_if_due(totals) }
    }

    fn count_cut(&mut self, whose: Whose, totals: &mut Totals) {
        totals.stack_cut(whose);
        for job in self.fs().jobs() {
            *totals.cuts_by_work.entry(job.name()).or_default() += 1;
        }
    }

    fn cut(&mut self, cut: &Cut, totals: &mut Totals) -> ControlFlow<()> {
        self.collect();
        self.count_cut(cut.whose, totals);
        let start = Instant::now();
        if let Whose::Drive(drive) = cut.whose {
            self.drive_was_cut = true;
            let part = drive % self.fs().device().members();
            self.fs().cut(part, &mut cut.again());
            self.collect();
            totals.recovering += start.elapsed();
            return ControlFlow::Continue(());
        }
        self.host_ends();
        let device = self.fs.take().expect("it is mounted").into_device();
        let Some(device) = self.come_back(device, cut, totals) else {
            self.is_lost = true;
            return ControlFlow::Break(());
        };
        let device = self.check(device);
        let result = self.mount(device);
        totals.recovering += start.elapsed();
        self.is_due = true;
        result
    }

    /// The device when its power is back, over mounts that end in the middle; `None` where it does not come back.
    fn come_back(&mut self, device: Box<dyn Device>, cut: &Cut, totals: &mut Totals) -> Option<Box<dyn Device>> {
        let mut again = cut.again();
        let mut device = self.below.come_back(device, cut, &mut again)?;
        for events in cut.mount.into_iter().flatten() {
            device = self.cut_in_mount(device, events, cut.whose, totals);
            device = self.below.come_back(device, cut, &mut again)?;
        }
        Some(device)
    }

    /// The host's memory is gone. What took effect without an answer may be there.
    fn host_ends(&mut self) {
        for (tag, order) in self.fs().unanswered() {
            let asked = self.in_flight.remove(&tag).expect("it is in flight");
            let now = self.fs().now();
            let result = Ok(Reply::Done);
            let answer = Answer { tag, submitted: now, at: now, order, took_effect: true, result };
            self.ended.insert(order, (asked, answer, false));
        }
        self.repeat();
        assert!(self.ended.is_empty(), "the order of effects has a gap at {}", self.next_order);
        self.in_flight.clear();
        self.positions.clear();
        self.model.host_ends();
    }

    /// Mounts, and ends again after so many events.
    fn cut_in_mount(
        &mut self,
        device: Box<dyn Device>,
        events: u32,
        whose: Whose,
        totals: &mut Totals,
    ) -> Box<dyn Device> {
        self.below.limit.set(events);
        let mounted = FileSystem::mount_or_return(device, &self.subject.options);
        let left = self.below.limit.lift();
        match mounted {
            Ok(mut fs) => {
                self.note_lost(&fs);
                // What the file system takes up again by itself.
                for _ in 0..left.unwrap_or(0) {
                    let Some(at) = fs.next_event() else { break };
                    fs.run_until(at);
                }
                self.fs = Some(fs);
                self.count_cut(whose, totals);
                self.fs.take().expect("it is mounted").into_device()
            }
            Err((error, device)) => {
                let is_silence = matches!(error, MountError::Silent | MountError::DeviceFailed(Status::Aborted));
                let is_ours = is_silence && left == Some(0);
                assert!(is_ours || self.may_be_read_only(), "a mount fails: {error}");
                totals.stack_cut(whose);
                *totals.cuts_by_work.entry("mount").or_default() += 1;
                device
            }
        }
    }

    /// The check finds nothing, unless media lost something. Where that may be the newest check-point, nothing can be compared.
    fn check(&mut self, device: Box<dyn Device>) -> Box<dyn Device> {
        for (name, invariant) in device.check() {
            assert!(invariant.passed, "{name}: {}", invariant.detail);
        }
        let (device, found) = check(device);
        match found {
            Ok(found) => {
                let is_unreadable = found.unreadable_checkpoint_blocks > 0
                    || found.problems.iter().any(|problem| problem.what.contains("cannot be read"));
                let is_allowed = self.below.allowed.failed_reads && is_unreadable;
                let first = found.problems.first().map(ToString::to_string);
                assert!(first.is_none() || is_allowed, "the check finds in version {}: {first:?}", found.version);
                self.is_lost |= self.below.allowed.failed_reads && found.unreadable_checkpoint_blocks > 0;
            }
            Err(error) => {
                assert!(self.may_lose(&error), "the check finds no file system: {error}");
                self.is_lost = true;
            }
        }
        device
    }

    /// Blocks that a mount could not read may have been the newest check-point, or those of an fsync that was answered.
    fn note_lost(&mut self, fs: &FileSystem) {
        let metrics = fs.metrics();
        let is_unreadable = metrics.unreadable_fsync_blocks + metrics.unreadable_checkpoint_blocks > 0;
        self.is_lost |= self.below.allowed.failed_reads && is_unreadable;
    }

    /// Whether media may have lost what an error names.
    const fn may_lose(&self, error: &MountError) -> bool {
        let is_lost = match error {
            MountError::Unreadable { .. } | MountError::Checkpoint { .. } => true,
            MountError::NoCheckpoint { unreadable } => *unreadable > 0,
            _ => false,
        };
        self.below.allowed.failed_reads && is_lost
    }

    /// Mounts; `Break` where media lost what that needs.
    fn mount(&mut self, mut device: Box<dyn Device>) -> ControlFlow<()> {
        self.drive_was_cut = false;
        if self.is_lost {
            return ControlFlow::Break(());
        }
        for _ in 0..MOUNTS {
            match FileSystem::mount_or_return(device, &self.subject.options) {
                Ok(fs) => {
                    self.note_lost(&fs);
                    self.fs = Some(fs);
                    return if self.is_lost { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                }
                Err((error, back)) => {
                    assert!(self.may_lose(&error), "it cannot be mounted: {error}");
                    device = back;
                }
            }
        }
        self.is_lost = true;
        ControlFlow::Break(())
    }

    /// Compares what is there behind a cut, where that has not been done.
    fn compare_if_due(&mut self, totals: &mut Totals) -> ControlFlow<()> {
        if !self.is_due {
            return ControlFlow::Continue(());
        }
        if self.fs().is_shut_down() {
            // It tells nothing: the next mount is compared.
            self.next_order = tree::ask(self.fs(), Call::StatFs).order + 1;
            return ControlFlow::Continue(());
        }
        self.is_due = false;
        let oracle = self.oracle.take().expect("a case with cuts has an oracle");
        // What a crash took may be given out again.
        self.compare(&oracle, BTreeSet::new(), totals)
    }

    /// What is there is what the oracle allows, and the model from now on.
    fn compare(&mut self, oracle: &Oracle, given: BTreeSet<FileId>, totals: &mut Totals) -> ControlFlow<()> {
        let start = Instant::now();
        let lossy = self.below.allowed.failed_reads;
        let compared = oracle.compare(self.fs(), given, lossy);
        totals.comparing += start.elapsed();
        let Ok(model) = compared else {
            self.is_lost = true;
            return ControlFlow::Break(());
        };
        totals.sectors_compared += model.files().map(|(_, bytes)| bytes.blocks().count() as u64 * 8).sum::<u64>();
        self.model = model;
        self.oracle = self.is_cut.then(|| self.subject.oracle(&self.model));
        self.next_order = tree::ask(self.fs(), Call::StatFs).order + 1;
        self.collect();
        // A drive that takes no more may have shown what it can no longer put on flash: with its power that is gone.
        let device = self.fs().device();
        if device.is_read_only() && device.identify().has_write_cache {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Unmounts, checks, mounts and compares: then everything is as the model has it.
    fn remount(&mut self, totals: &mut Totals) -> ControlFlow<()> {
        self.wait_for_fewer_than(1, totals)?;
        self.compare_if_due(totals)?;
        if self.fs().read_only_reason().is_some() {
            return ControlFlow::Continue(());
        }
        let oracle = self.subject.oracle(&self.durable_model());
        let until = Nanos(self.fs().now().0.saturating_add(self.below.hangs_after.0));
        match self.fs.take().expect("it is mounted").unmount_by(until) {
            Ok(device) => {
                self.host_ends_well();
                let device = self.check(device);
                self.mount(device)?;
                let given = self.model.given().clone();
                self.compare(&oracle, given, totals)
            }
            Err((reason, device)) => {
                assert!(self.may_be_read_only(), "it cannot be unmounted: {reason}");
                self.host_ends_well();
                // What of it is there, only the oracle of a case with cuts knows.
                if self.oracle.is_none() {
                    self.is_lost = true;
                    return ControlFlow::Break(());
                }
                self.mount(device)?;
                self.is_due = true;
                self.compare_if_due(totals)
            }
        }
    }

    /// The model when everything is closed.
    fn durable_model(&self) -> Model {
        let mut model = self.model.clone();
        model.host_ends();
        model
    }

    fn host_ends_well(&mut self) {
        assert!(self.in_flight.is_empty() && self.ended.is_empty(), "nothing is in flight at an unmount");
        self.positions.clear();
        self.model.host_ends();
    }
}

impl System for FileHost {
    type Command = FileCall;

    fn apply(&mut self, step: &Step<FileCall>, totals: &mut Totals) -> ControlFlow<()> {
        match step {
            Step::Command(command) => self.command(command, totals),
            Step::Run(events) => self.run(Nanos::MAX, *events, totals),
            Step::Pass(time) => {
                let until = Nanos(self.fs().now().0.saturating_add(time.0));
                self.run(until, u32::MAX, totals)?;
                if self.fs().now() < until {
                    self.fs().run_until(until);
                    self.collect();
                }
                ControlFlow::Continue(())
            }
            Step::Drain => self.wait_for_fewer_than(1, totals),
            Step::Fail(kind, place) => {
                self.fail(*kind, *place);
                ControlFlow::Continue(())
            }
            Step::Cut(cut) => {
                self.trap = Some(Trap { cut: *cut, durable: self.durable, events: 0 });
                if self.is_cut_due() { self.take_cut(totals) } else { ControlFlow::Continue(()) }
            }
        }
    }

    fn end(&mut self, totals: &mut Totals) {
        self.trap = None;
        let _ = self.finish(totals);
    }

    fn drives(&self) -> Vec<&Drive> {
        self.fs.iter().flat_map(|fs| fs.device().drives()).map(|part| part.device).collect()
    }

    fn count(&self, totals: &mut Totals) {
        totals.unreadable += self.unreadable;
        totals.refused += self.refused;
        totals.not_back += u64::from(self.is_lost);
        let is_read_only = self.fs.as_ref().is_some_and(|fs| fs.device().is_read_only());
        totals.read_only += u64::from(is_read_only);
    }
}

impl FileHost {
    fn fail(&mut self, kind: FaultKind, place: Place) {
        for part in self.fs().device_mut().drives_mut() {
            part.device.fail_next(kind, place.block());
        }
    }

    /// The end of a case.
    fn finish(&mut self, totals: &mut Totals) -> ControlFlow<()> {
        self.wait_for_fewer_than(1, totals)?;
        self.remount(totals)?;
        if self.is_cut {
            self.cut(&Cut { whose: Whose::All, ..Cut::NOW }, totals)?;
            self.compare_if_due(totals)?;
        }
        ControlFlow::Continue(())
    }

    /// Jobs that are in flight, for tests.
    pub fn jobs(&mut self) -> Vec<Job> {
        self.fs().jobs()
    }
}
