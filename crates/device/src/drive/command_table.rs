//! The commands in the drive: what each still waits for, and in which order they take effect.

use std::ops::{Index, IndexMut};

use ssdlab_base::{Nanos, Op, Request};

use super::commands::SetCommandState;
use crate::Status;
use crate::slots::Slots;

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
    /// Lists of owners that it promises were asked for.
    pub(super) listed: bool,
    /// What it writes is expendable: the host has it elsewhere.
    pub(super) expendable: bool,
    pub(super) order: u64,
    /// Since when it has been waiting for a free block; `Nanos::MAX` if it is not.
    pub(super) stalled_since: Nanos,
    /// Sectors a stalled write waits to bring into the buffer.
    pub(super) wanted_sectors: u64,
    /// Sector data of a write, or what a read found.
    pub(super) sector_data: Vec<u8>,
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
            listed: false,
            expendable: false,
            order: UNNUMBERED,
            stalled_since: Nanos::MAX,
            wanted_sectors: 0,
            sector_data: Vec::new(),
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
        self.listed = false;
        self.expendable = false;
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
        debug_assert!(state.order < self.order, "command {slot} has place {} of {}", state.order, self.order);
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
