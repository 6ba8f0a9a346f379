//! What a drive is made of, besides chips, mapping, collection and counters: parts with one job each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;
use ssdlab_base::{Answer, CommandSet, Nanos, Op, Request};
use ssdlab_flash::Lpn;

use super::commands::{CommandCount, SetCommandState};
use super::destaging::Destager;
use super::stripe_read::Rebuild;
use super::versions::{IdlePace, VersionRead};
use super::{Eviction, PendingRewrite, ReadToKeep, Retirement, Timer};
use crate::buffer::{Slot, WriteBuffer};
use crate::gc::IdlePolicy;
use crate::interface::Interface;
use crate::slots::Slots;
use crate::{Completion, Status};

/// The host's side: what comes over the link, and what goes back.
pub(super) struct HostSide {
    pub(super) interface: Interface,
    /// Commands that waited on the host's side are being let in.
    pub(super) admitting: bool,
    pub(super) completions: Vec<Completion>,
    pub(super) read_data: Vec<(u32, Vec<u8>)>,
    /// The commands that the drive knows beyond block I/O, how often each ended, and their answers.
    pub(super) set: Option<&'static CommandSet>,
    pub(super) command_counts: Vec<CommandCount>,
    pub(super) answers: Vec<Answer>,
}

/// A command in the drive or waiting for it.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) request: Request,
    pub(super) queue: u16,
    pub(super) status: Status,
    /// What the command still waits for; it completes at zero.
    pub(super) remaining: u32,
    /// How far its dispatch got: units of a write, stages of a trim.
    pub(super) cursor: u32,
    /// Write commands dispatched before a flush, which it covers.
    pub(super) covers: Option<u64>,
    /// The unit that a trim zeroes in part is known to hold data.
    pub(super) holds_data: bool,
    pub(super) order: u64,
    /// Since when it has been waiting for a free block; `Nanos::MAX` if it is not.
    pub(super) stalled_since: Nanos,
    /// Sectors a stalled write waits to bring into the buffer.
    pub(super) wanted_sectors: u64,
    /// Cells of a write, or of what a read found.
    pub(super) cells: Vec<u8>,
    /// What a command of the drive's own set has beyond that.
    pub(super) set_state: Option<Box<SetCommandState>>,
}

impl Default for Command {
    fn default() -> Command {
        Command {
            request: Request::new(Op::Read, 0, 0),
            queue: 0,
            status: Status::Success,
            remaining: 1,
            cursor: 0,
            covers: None,
            holds_data: false,
            order: UNNUMBERED,
            stalled_since: Nanos::MAX,
            wanted_sectors: 0,
            cells: Vec::new(),
            set_state: None,
        }
    }
}

impl Command {
    /// Nothing of it is done yet.
    #[inline]
    pub(super) fn begin(&mut self, request: &Request, queue: u16) {
        self.request = *request;
        self.queue = queue;
        self.status = Status::Success;
        self.remaining = 1;
        self.cursor = 0;
        self.covers = None;
        self.holds_data = false;
        self.order = UNNUMBERED;
        self.stalled_since = Nanos::MAX;
        self.wanted_sectors = 0;
    }

    /// Bytes that cross the link before its dispatch.
    #[inline]
    pub(super) fn bytes_in(&self) -> u64 {
        match &self.set_state {
            None if self.request.op == Op::Write => self.request.bytes(),
            None => 0,
            Some(set_state) => set_state.bytes_in(&self.request),
        }
    }

    /// Bytes that cross the link before its completion.
    #[inline]
    pub(super) fn bytes_out(&self) -> u64 {
        match &self.set_state {
            None if self.request.op == Op::Read => self.request.bytes(),
            None => 0,
            Some(set_state) => set_state.bytes_out(&self.request),
        }
    }
}

/// The order of a command that has not taken effect.
pub(super) const UNNUMBERED: u64 = u64::MAX;

// The compiler copies what is larger by a call.
const _: () = assert!(size_of::<Command>() <= 128);

/// The commands, by slot.
#[derive(Default)]
pub(super) struct CommandTable {
    pub(super) slots: Slots<Command>,
    /// Submitted and not completed.
    pub(super) outstanding: u64,
    /// The number of the command that takes effect next.
    pub(super) order: u64,
    pub(super) writes_dispatched: u64,
}

impl CommandTable {
    /// A command takes effect, or never will: it has its place in the order, unless its design's part gave it one before.
    #[inline]
    pub(super) fn number(&mut self, slot: u32) {
        let state = &mut self.slots[slot];
        if state.order == UNNUMBERED {
            state.order = self.order;
            self.order += 1;
        }
    }
}

impl Index<u32> for CommandTable {
    type Output = Command;

    #[inline]
    fn index(&self, slot: u32) -> &Command {
        &self.slots[slot]
    }
}

impl IndexMut<u32> for CommandTable {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Command {
        &mut self.slots[slot]
    }
}

/// What happens at a time of the controller's own.
#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u64, Timer)>>,
    serial: u64,
}

impl Timers {
    /// Of timers for one time the first set is the first to come.
    pub(super) fn set(&mut self, at: Nanos, timer: Timer) {
        self.serial += 1;
        self.heap.push(Reverse((at, self.serial, timer)));
    }

    /// When the next one is due.
    #[inline]
    pub(super) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next one out if it is due at `at`.
    #[inline]
    pub(super) fn take_due(&mut self, at: Nanos) -> Option<Timer> {
        if self.next() != Some(at) {
            return None;
        }
        debug_assert!(self.next().is_none_or(|next| next >= at), "a timer is in the past of {at}");
        self.heap.pop().map(|Reverse((.., timer))| timer)
    }
}

/// When the drive is idle, and what it does then.
pub(super) struct Idle {
    /// The earlier of the two times at which it will count as idle.
    pub(super) at: Option<Nanos>,
    pub(super) work: IdlePace,
}

/// The write buffer, and what is on its way from there to flash.
#[derive(Default)]
pub(super) struct BufferStage {
    pub(super) buffer: Option<WriteBuffer>,
    pub(super) evictions: Slots<Eviction>,
    /// Evictions issued and not on flash, by serial number from `evictions_base` on.
    pub(super) evicting: VecDeque<bool>,
    pub(super) evictions_base: u64,
    pub(super) leaving_sectors: u64,
    /// Programs that took units out of the buffer since the drive was made.
    pub(super) programs_sent: u64,
    /// Where units leave the buffer before their room is wanted.
    pub(super) destager: Option<Destager>,
    /// Destaging found no space and waits until some is freed.
    pub(super) destage_waits: bool,
    /// Since when writes have been waiting for room.
    pub(super) full_since: Option<Nanos>,
    /// Sectors that all stalled writes wait to bring.
    pub(super) wanted_sectors: u64,
    /// The FTL takes small partial units of a region into one page.
    pub(super) compacts: bool,
    /// Units of the blocks that leave the buffer padded, if they do.
    pub(super) pads: Option<u32>,
    /// By the first unit of a block that left in part: where its padding is to go on. Commands that wait for space send
    /// different blocks in turn, so each block keeps its place.
    pub(super) padded_to: BTreeMap<Lpn, Lpn>,
    /// Units that were to leave the buffer, and wait for their map pages.
    pub(super) awaiting_map: Vec<Lpn>,
    /// The buffer keeps what is read from flash.
    pub(super) caches_reads: bool,
    /// By command: what it fetches from flash, where the buffer keeps reads.
    pub(super) reads_to_keep: FxHashMap<u32, Vec<ReadToKeep>>,
    /// Working space: units that leave, those that leave with one, and the cells of a page.
    pub(super) slots: Vec<Slot>,
    pub(super) companions: Vec<Slot>,
    pub(super) scratch: Vec<u8>,
}

/// What is left to do about programs that failed.
#[derive(Default)]
pub(super) struct Failures {
    /// Pages that found no space yet to be written again.
    pub(super) pending_rewrites: Vec<PendingRewrite>,
    /// What failed pages superseded, until their data is on flash.
    pub(super) retirements: Vec<Retirement>,
    /// The over-provisioning is gone: reads go on, writes are refused.
    pub(super) read_only: bool,
    /// The over-provisioning is there, and the victim policy let it be.
    pub(super) idle_policy: Option<IdlePolicy>,
}

/// Reads that take more than one step.
#[derive(Default)]
pub(super) struct SteppedReads {
    /// From version to version.
    pub(super) versions: Slots<VersionRead>,
    /// Pages that are being had from the rest of their stripes.
    pub(super) rebuilds: Slots<Rebuild>,
}
