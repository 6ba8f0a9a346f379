//! Small chips under test: a clock, what was asked of them, and when it ended.
//!
//! Latencies are odd numbers of nanoseconds, so that a sum can only come about in one way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ssdlab_base::Nanos;
use ssdlab_flash::{
    BlockId, Cause, Class, Contents, DieId, Done, Faults, Flash, FlashConfig, Geometry, Latency, MultiPlane, Observer,
    OobUse, OpId, OpKind, Ppn, Resource, SchedulerKind, Span, Submit, Timing,
};

/// Array read.
pub(crate) const READ: u64 = 20_003;
/// Array program.
pub(crate) const PROGRAM: u64 = 200_017;
/// Block erase.
pub(crate) const ERASE: u64 = 1_500_019;
/// Command and address cycles.
pub(crate) const COMMAND: u64 = 177;
/// One page on the channel.
pub(crate) const TRANSFER: u64 = 10_247;
/// From asking for a suspend to a ready die.
pub(crate) const SUSPEND: u64 = 1_009;
/// From resuming to progress.
pub(crate) const RESUME: u64 = 503;
/// Data bytes of a page.
pub(crate) const PAGE: u32 = 4096;

/// A lone page read on an idle drive.
pub(crate) const READ_PAGE: u64 = COMMAND + READ + TRANSFER;
/// Channel time of a page program.
pub(crate) const DATA_IN: u64 = COMMAND + TRANSFER;
/// A lone page program on an idle drive.
pub(crate) const PROGRAM_PAGE: u64 = DATA_IN + PROGRAM;

/// A latency without a range.
pub(crate) fn fixed(ns: u64) -> Latency {
    Latency { min: Nanos(ns), max: Nanos(ns) }
}

/// Chips of one plane a die: 4 blocks of 16 pages a plane.
pub(crate) fn chips(channels: u32, ways: u32, planes: u32) -> FlashConfig {
    FlashConfig {
        geometry: Geometry {
            channels,
            chips_per_channel: ways,
            dies_per_chip: 1,
            planes_per_die: planes,
            blocks_per_plane: 4,
            pages_per_block: 16,
            page_bytes: PAGE,
            oob_bytes: 128,
        },
        timing: Timing {
            read: vec![fixed(READ)],
            program: vec![fixed(PROGRAM)],
            erase: fixed(ERASE),
            command: Nanos(COMMAND),
            transfer: Nanos(TRANSFER),
            suspend: Nanos(SUSPEND),
            resume: Nanos(RESUME),
        },
        multi_plane: MultiPlane::SameOffset,
        copyback: true,
        checks_copyback: false,
        cache_program: false,
        program_suspend: false,
        erase_suspend: false,
        suspend_limit: 16,
        scheduler: SchedulerKind::Fifo,
        oob: OobUse::Free,
        faults: Faults::default(),
    }
}

/// The chips, their clock, and what ended when.
pub(crate) struct Bench {
    pub(crate) flash: Flash,
    pub(crate) now: u64,
    next_token: u32,
    last_end: u64,
    ended: BTreeMap<u32, (u64, Done)>,
}

impl Bench {
    pub(crate) fn new(config: &FlashConfig) -> Bench {
        Bench::seeded(config, 1)
    }

    pub(crate) fn seeded(config: &FlashConfig, seed: u64) -> Bench {
        Bench {
            flash: Flash::new(config, 1, Contents::Nothing, seed, true),
            now: 0,
            next_token: 0,
            last_end: 0,
            ended: BTreeMap::new(),
        }
    }

    /// Programs the first `pages` pages of a block without time.
    pub(crate) fn fill(&mut self, block: u32, pages: u32) {
        for page in self.flash.blocks.get(BlockId(block)).programmed..pages {
            self.flash.execute(OpKind::Program, Cause::Host, BlockId(block), page);
        }
    }

    /// The block of a plane.
    pub(crate) fn block(&self, die: u32, plane: u32, block: u32) -> u32 {
        let geometry = self.flash.geometry();
        (die * geometry.planes_per_die + plane) * geometry.blocks_per_plane + block
    }

    /// Submits now; returns the token.
    pub(crate) fn submit(&mut self, kind: OpKind, class: Class, block: u32, page: u32, bytes: u32) -> u32 {
        self.submit_full(kind, class, block, page, bytes, Ppn::NONE, 0).0
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn submit_full(
        &mut self,
        kind: OpKind,
        class: Class,
        block: u32,
        page: u32,
        bytes: u32,
        source: Ppn,
        waits_for: u16,
    ) -> (u32, OpId) {
        let token = self.next_token;
        self.next_token += 1;
        let cause = if matches!(class, Class::HostRead | Class::HostWrite) { Cause::Host } else { Cause::Gc };
        let (block, pin) = (BlockId(block), BlockId::NONE);
        let submit = Submit { kind, cause, class, block, page, source, bytes, token, pin, waits_for };
        let op = self.flash.submit(Nanos(self.now), submit);
        (token, op)
    }

    /// A host read of a whole page, which is filled if need be.
    pub(crate) fn read(&mut self, block: u32, page: u32) -> u32 {
        self.read_bytes(block, page, PAGE)
    }

    pub(crate) fn read_bytes(&mut self, block: u32, page: u32, bytes: u32) -> u32 {
        self.fill(block, page + 1);
        self.submit(OpKind::Read, Class::HostRead, block, page, bytes)
    }

    pub(crate) fn program(&mut self, block: u32, page: u32) -> u32 {
        self.submit(OpKind::Program, Class::HostWrite, block, page, PAGE)
    }

    pub(crate) fn erase(&mut self, block: u32) -> u32 {
        self.submit(OpKind::Erase, Class::Erase, block, 0, 0)
    }

    /// Runs every event up to and including `until`.
    pub(crate) fn run_until(&mut self, until: u64) {
        let mut done = Vec::new();
        while let Some(at) = self.flash.next_event()
            && at.0 <= until
        {
            assert!(at.0 >= self.now, "time goes forward: {at:?} after {}", self.now);
            self.now = at.0;
            self.flash.step(&mut done);
            for done in done.drain(..) {
                self.last_end = at.0;
                self.ended.insert(done.token, (at.0, done));
            }
        }
        self.now = self.now.max(until);
    }

    /// Runs until nothing is left; returns when the last operation ended.
    pub(crate) fn run(&mut self) -> u64 {
        while let Some(at) = self.flash.next_event() {
            self.run_until(at.0);
        }
        assert_eq!(self.flash.in_flight(), 0, "everything that was asked for ends");
        self.last_end
    }

    pub(crate) fn end(&self, token: u32) -> Option<u64> {
        self.ended.get(&token).map(|(at, _)| *at)
    }

    /// Not there at `t - 1`, there at `t`.
    #[track_caller]
    pub(crate) fn assert_ends_at(&mut self, token: u32, t: u64) {
        assert_eq!(self.end(token), None, "it has ended before it was looked for");
        self.run_until(t - 1);
        assert_eq!(self.end(token), None, "refused at {t} - 1");
        self.run_until(t);
        assert_eq!(self.end(token), Some(t), "accepted at {t}");
    }
}

/// What an observer saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) edges: Vec<(DieId, Nanos, bool)>,
    pub(crate) spans: Vec<Span>,
}

/// An observer that writes everything down.
#[derive(Clone, Default)]
pub(crate) struct Recorder(pub(crate) Arc<Mutex<Seen>>);

impl Recorder {
    pub(crate) fn watch(flash: &mut Flash) -> Recorder {
        let recorder = Recorder::default();
        flash.observe(Some(Box::new(recorder.clone())));
        recorder
    }

    pub(crate) fn seen(&self) -> Seen {
        self.0.lock().expect("nobody panicked while writing down").clone()
    }
}

impl Observer for Recorder {
    fn ready_busy(&mut self, die: DieId, at: Nanos, busy: bool) {
        self.0.lock().expect("one thread").edges.push((die, at, busy));
    }

    fn span(&mut self, span: Span) {
        self.0.lock().expect("one thread").spans.push(span);
    }
}

impl Seen {
    /// The laws of every recording: edges alternate and do not go back; stays on a resource do not overlap, and their
    /// sum, like the time between edges, is the busy time.
    pub(crate) fn check(&self, flash: &Flash) {
        let (channels, dies) = flash.busy();
        for (die, busy) in dies.iter().enumerate() {
            let edges: Vec<_> = self.edges.iter().filter(|(of, ..)| of.index() == die).collect();
            assert!(edges.windows(2).all(|pair| pair[0].1 <= pair[1].1), "die {die}: edges in order of time");
            assert!(edges.iter().enumerate().all(|(i, edge)| edge.2 == (i % 2 == 0)), "die {die}: edges alternate");
            assert!(edges.len() % 2 == 0, "die {die} is ready at the end");
            let low: u64 = edges.chunks(2).map(|pair| pair[1].1.0 - pair[0].1.0).sum();
            assert_eq!(low, busy.0, "die {die}: R/B is low for as long as the die is busy");
            self.check_resource(Resource::Die(DieId(die as u32)), *busy);
        }
        for (channel, busy) in channels.iter().enumerate() {
            self.check_resource(Resource::Channel(channel as u32), *busy);
        }
    }

    fn check_resource(&self, resource: Resource, busy: Nanos) {
        let mut spans: Vec<_> = self.spans.iter().filter(|span| span.resource == resource).collect();
        spans.sort_by_key(|span| span.start);
        for pair in spans.windows(2) {
            assert!(pair[0].end <= pair[1].start, "{resource:?} carries one thing at a time: {pair:?}");
        }
        let sum: u64 = spans.iter().map(|span| span.end.0 - span.start.0).sum();
        assert_eq!(sum, busy.0, "{resource:?}: spans add up to the busy time");
    }
}
